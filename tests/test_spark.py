"""Spark gives what one process gives: models, scores, translations and duplicates, also when tasks are killed.

All tests share one session in local mode. Without Java they are skipped.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dragoman import Corpus, DataError, DragomanError, NgramModel, Translator, load, write_arpa
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.near_duplicates import group_duplicates
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.unknown_words import UniformUnknownWords
from dragoman.models.cache import CacheModel
from dragoman.ngram.spelling import SpellingModel
from guide_commands import guide_commands
from small_translators import ENGLISH, GERMAN, SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("java"), reason="Spark needs Java, which is not installed"),
]

NOUNS = ("cat", "dog", "bird", "mouse", "Straße", "naïve\u2028x", "\u00a0")
VERBS = ("saw", "heard", "met", "left")
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.files.maxPartitionBytes": "3k",  # several tasks per file
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.autoBroadcastJoinThreshold": "2k",  # joins of both kinds
    "spark.driver.memory": "1g",
    # For texts as small as these, compiling takes longer than interpreting.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    from dragoman.spark import spark_session

    with spark_session("local[2,4]", SETTINGS) as session:
        yield session


def sentences(count: int, seed: int) -> list[str]:
    """Random sentences, some empty, some with odd white space, with words of any frequency."""
    generator = np.random.default_rng(seed)
    lines = []
    for number in range(count):
        words = [f"w{int(generator.pareto(0.7))}" if generator.random() < 0.2 else str(generator.choice(NOUNS))]
        for _ in range(int(generator.integers(0, 5))):
            words += [str(generator.choice(VERBS)), str(generator.choice(NOUNS))]
        lines.append(("", " \t ", "  ".join(words), "\t".join(words) + " ")[number % 50 if number % 50 < 4 else 2])
    return lines


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files: plain, with CR LF and a byte order mark, and gzip without a final line break."""
    directory = tmp_path_factory.mktemp("texts")
    parts = [sentences(300, seed) for seed in (1, 2, 3)]
    parts[1][7:9] = ["<unk> saw the cat", "a\rb saw a\vb\r"]
    (directory / "a.txt").write_bytes("".join(f"{line}\n" for line in parts[0]).encode())
    (directory / "b c.txt").write_bytes(b"\xef\xbb\xbf" + "".join(f"{line}\r\n" for line in parts[1]).encode())
    (directory / "d.txt.gz").write_bytes(gzip.compress("\n".join(parts[2]).encode()))
    return directory


@pytest.fixture(scope="module")
def text(texts: Path) -> bytes:
    """The same text in one piece."""
    parts = [(texts / "a.txt").read_bytes(), (texts / "b c.txt").read_bytes().removeprefix(b"\xef\xbb\xbf")]
    return b"".join([*parts, gzip.decompress((texts / "d.txt.gz").read_bytes()), b"\n"])


def lines_of(text: bytes) -> list[str]:
    return [line.removesuffix("\r") for line in text.decode().removesuffix("\n").split("\n")]


def assert_equal_models(model: NgramModel, expected: NgramModel) -> None:
    assert model.vocab.tokens == expected.vocab.tokens
    assert model.vocab.counts.tolist() == expected.vocab.counts.tolist()
    assert model.table.trie.levels == expected.table.trie.levels
    arrays, expected_arrays = model.arrays(), expected.arrays()
    assert arrays.keys() == expected_arrays.keys()
    for name, array in expected_arrays.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_allclose(arrays[name], array, rtol=0, atol=1e-6, err_msg=name)


def killed_once(marker: Path) -> Any:
    """Return a function on Arrow batches whose first worker kills itself after it has passed a batch on."""

    def pass_on(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
            if not marker.exists():
                marker.touch()
                os.kill(os.getpid(), 9)

    return pass_on


# -- reading -----------------------------------------------------------------------------------------------------------


def test_lines_have_the_same_numbers_in_any_partitions(spark: SparkSession, texts: Path, text: bytes) -> None:
    from dragoman.spark.lines import read_lines

    lines = read_lines(spark, [str(texts / "*")])
    assert lines.frame.rdd.getNumPartitions() > 3
    rows = lines.frame.orderBy("number").collect()
    assert [tuple(row) for row in rows] == list(enumerate(lines_of(text), 1))
    assert lines.total == len(rows) == 900
    assert lines.places.find(301) == (str(texts / "b c.txt"), 1)
    assert lines.places.find(900) == (str(texts / "d.txt.gz"), 300)


GOOD = b"the cat saw the dog\n" * 400  # three partitions


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD + b"caf\xe9\n" + GOOD, "bad.txt:401: not UTF-8 (byte 0xe9 at column 4)"),
        (GOOD + b"a\0b", "bad.txt:401: NUL byte at column 2"),
        (GOOD + b"the </s>\r\n", "bad.txt:401: </s> is reserved in training text"),
        (gzip.compress(GOOD), "bad.txt: this is gzip data; give it a name that ends in .gz"),
    ],
)
def test_bad_lines_are_named(spark: SparkSession, tmp_path: Path, content: bytes, message: str) -> None:
    from dragoman.spark.lines import read_lines

    (tmp_path / "a.txt").write_bytes(GOOD)
    (tmp_path / "bad.txt").write_bytes(content)
    with pytest.raises(DataError) as error:
        read_lines(spark, [str(tmp_path)], training=True)
    assert str(error.value).startswith(str(tmp_path / message))


def test_errors_of_files_take_one_line(run: Any, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(os.urandom(9999).hex().encode())[:-2000])
    (tmp_path / "x.jsonl").write_bytes(b'{"text": "a"}\n' * 500 + b'{"txt": "b"}\n')
    (tmp_path / "empty.txt").touch()
    for name, message in (
        ("cut.txt.gz", "cut.txt.gz: not a complete gzip file"),
        ("x.jsonl", "x.jsonl:501: no key 'text'; found txt"),
        (
            "empty.txt",
            "empty.txt: empty; give files with one sentence per line (files whose names begin with _ or . are not read)",
        ),
        ("none.txt", "none.txt: no such file"),
    ):
        outcome = run("spark", "dedup", "--text", tmp_path / name, "-o", tmp_path / "out")
        assert outcome.code == 2
        assert f"dragoman: {tmp_path / message}" == outcome.err.splitlines()[-1]
        assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".out*"))


def test_a_signal_is_not_an_error_of_spark() -> None:
    from py4j.protocol import Py4JError

    from dragoman.spark.session import spark_errors

    class Terminated(BaseException): ...

    with pytest.raises(Terminated), spark_errors():
        try:
            raise Terminated
        finally:
            raise Py4JError("the job was cancelled")


# -- training ----------------------------------------------------------------------------------------------------------


def test_kneser_ney_model_equals_that_in_memory(
    good: Any, spark: SparkSession, texts: Path, text: bytes, tmp_path: Path
) -> None:
    """By the command, with pruning and a limited vocabulary; the ARPA files are the same bytes."""
    corpus = Corpus.from_text(text, min_count=2, max_size=60)
    expected = NgramModel.train(corpus, order=3, prune=(0, 0, 1), unknown=SpellingModel.train(corpus))
    write_arpa(expected, tmp_path / "expected.arpa")
    outcome = good(
        *("train", "ngram", "--engine", "spark", "--text", texts / "*", "--units", "word", "--order", 3),
        *("--prune", "0,0,1", "--min-count", 2, "--max-size", 60, "--unknown", "characters", "-o", tmp_path / "model"),
        *("--arpa", tmp_path / "model.arpa", "--counts", tmp_path / "counts", "--partitions", 2),
    )
    assert "900 lines in 3 files" in outcome.err and outcome.out == ""
    trained = load(tmp_path / "model")
    assert_equal_models(trained, expected)
    assert trained.unknown.config() == expected.unknown.config()
    assert (tmp_path / "model.arpa").read_bytes() == (tmp_path / "expected.arpa").read_bytes()
    check_counts(spark, tmp_path / "counts", corpus)


def check_counts(spark: SparkSession, path: Path, corpus: Corpus) -> None:
    """The counts in Parquet are those of the text."""
    from dragoman.ngram.adjusted import adjusted_counts
    from dragoman.ngram.counting import count_ngrams

    expected = count_ngrams(corpus, 3)
    for order in (1, 2, 3):
        rows = (
            spark.read.parquet(str(path / f"order={order}")).orderBy(*(f"w{k}" for k in range(1, order + 1))).collect()
        )
        occurs = expected.of_order(order) > 0
        assert [row["count"] for row in rows] == expected.of_order(order)[occurs].tolist()
        assert [row["adjusted"] for row in rows] == adjusted_counts(expected, order)[occurs].tolist()
    words = spark.read.parquet(str(path / "vocabulary")).orderBy("id").collect()
    assert tuple(row["word"] for row in words) == corpus.vocab.tokens


def test_stupid_backoff_survives_a_killed_worker(
    spark: SparkSession,
    texts: Path,
    text: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dragoman.ngram.model import NgramConfig
    from dragoman.spark import train, train_ngram

    def read_and_kill(*arguments: Any, **options: Any) -> Any:
        lines = original(*arguments, **options)
        frame = lines.frame.mapInArrow(killed_once(tmp_path / "marker"), lines.frame.schema)
        return replace(lines, frame=frame)

    original = train.read_lines
    monkeypatch.setattr(train, "read_lines", read_and_kill)
    config = NgramConfig(order=3, smoothing="stupid-backoff", prune=(0, 1))
    source = train.VocabularySource(units="word")
    (tmp_path / "file").touch()
    trained = train_ngram(
        spark,
        [str(texts / "*")],
        config,
        source,
        unknown=lambda c: UniformUnknownWords(c.vocab.num_known),
        counts_path=str(tmp_path / "file" / "counts"),
    )
    assert (tmp_path / "marker").exists()
    assert trained.counts_error is not None and "Spark failed" in str(trained.counts_error)
    assert_equal_models(trained.model, NgramModel.train(Corpus.from_text(text), config))


@pytest.mark.parametrize("is_split", [True, False])
def test_short_sentences_and_a_given_vocabulary(spark: SparkSession, tmp_path: Path, is_split: bool) -> None:
    """No sentence has five words, no discounts can be computed, and the tokens are those of another model."""
    from dragoman.ngram.model import NgramConfig
    from dragoman.spark import train, train_ngram

    lines, config = (["b c", "", "b c", "a"] if is_split else ["bc", "", "bc", "a"]), NgramConfig(order=5)
    (tmp_path / "short.txt").write_text("".join(f"{line}\n" for line in lines))
    vocab = Corpus.from_sentences(["abc"], units="char").vocab
    source = train.VocabularySource(vocab)
    with pytest.warns(UserWarning, match="no discounts from this text"):
        trained = train_ngram(
            spark, [str(tmp_path)], config, source, unknown=lambda c: UniformUnknownWords(c.vocab.num_known)
        )
    with pytest.warns(UserWarning, match="no discounts from this text"):
        sentences = [line.split() for line in lines] if is_split else lines
        expected = NgramModel.train(Corpus.from_sentences(sentences, vocab), config)
    assert expected.table.trie.order == 4
    assert_equal_models(trained.model, expected)
    assert trained.model.notes == expected.notes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--smoothing", "katz"],
            "--smoothing katz: not with --engine spark; choose modified-kneser-ney or stupid-backoff",
        ),
        (["--gap", "1"], "--gap 1: not with --engine spark"),
        (["--units", "subword:100"], "--units subword:100: Spark counts words, or the tokens of --vocab"),
        (["--field", "en"], "--field en: --engine spark reads plain text files"),
        (["--spark-conf", "x"], "--spark-conf x: give a name and a value"),
        (["--engine", "hadoop"], "--engine hadoop: choose memory or spark"),
        (["--engine", "hadoop", "--memory", "2G"], "--engine hadoop: choose memory or spark"),
        (["--memory", "2G", "--arpa", "x"], "--memory 2G: not with --engine spark; remove it"),
        (["--tmp", "x"], "--tmp x: not with --engine spark; remove it"),
        (["--dev-text", "mistyped.txt"], "mistyped.txt: no such file"),
        (
            ["--engine", "memory", "--master", "local"],
            "--master, --partitions, --spark-conf, --arpa and --counts are for",
        ),
    ],
)
def test_unsuitable_options_are_refused(
    run: Any, texts: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    command = ["train", "ngram", "--engine", "spark", "--text", texts / "a.txt", "-o", tmp_path / "m", *options]
    outcome = run(*command)
    assert outcome.code == 2 and outcome.err.startswith(f"dragoman: {message}") and outcome.err.count("\n") == 1


def test_raw_text_is_refused(run: Any, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "raw.txt").write_text("He left, I think. She stays, too.\n" * 30)
    outcome = run("train", "ngram", "--engine", "spark", "--text", tmp_path / "raw.txt", "-o", tmp_path / "m")
    assert outcome.code == 2 and "raw text, and Spark learns no subwords" in outcome.err.splitlines()[-1]


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "bigrams"
    NgramModel.train(Corpus.from_sentences(sentences(200, 9)), order=2, smoothing="witten-bell").save(path)
    return path


@pytest.fixture(scope="module")
def translator() -> Translator:
    source, target = Tokenizer.train("word", GERMAN), Tokenizer.train("word", ENGLISH)
    return Translator.create(ParallelCorpus(source.encode(GERMAN), target.encode(ENGLISH)), source, target, **SMALL)


def test_scores_are_those_in_memory_in_order(
    good: Any, spark: SparkSession, texts: Path, text: bytes, model: Path
) -> None:
    expected = good("score", model, "--text", "-", stdin=text)
    output = model.parent / "scores.txt"
    good("spark", "score", model, "--text", texts / "*", "-o", output, "--partitions", 5)
    files = sorted(output.glob("part-*"))
    assert len(files) == 5
    assert "".join(file.read_text() for file in files) == expected.out


def test_rows_keep_their_columns_when_a_worker_is_killed(
    good: Any, spark: SparkSession, model: Path, tmp_path: Path
) -> None:
    from dragoman.spark import score

    lines = [*sentences(200, 4), "impossible"]
    frame = spark.createDataFrame([(f"id{number}", line) for number, line in enumerate(lines)], "id string, en string")
    crashing = frame.repartition(4).mapInArrow(killed_once(tmp_path / "marker"), frame.schema)
    scored = score(crashing, model, "en").collect()
    assert (tmp_path / "marker").exists()
    scores = {row["id"]: row["log_prob"] for row in scored}
    expected = load(model).score(lines)
    assert scores == pytest.approx({f"id{number}": value for number, value in enumerate(expected)})
    frame.coalesce(1).write.parquet(str(tmp_path / "in.parquet"))
    good("spark", "score", model, "--text", tmp_path / "in.parquet", "--column", "en", "-o", tmp_path / "out.jsonl.gz")
    written = spark.read.json(str(tmp_path / "out.jsonl.gz")).collect()
    assert {row["id"]: row["log_prob"] for row in written} == pytest.approx(scores)
    assert {row["en"] for row in written} == set(lines)
    options = ("--column", "en", "--match", "exact", "-o", tmp_path / "distinct.txt")
    good("spark", "dedup", "--text", tmp_path / "in.parquet", *options)
    distinct = "".join(file.read_bytes().decode() for file in sorted((tmp_path / "distinct.txt").glob("part-*")))
    kept = [line for number, line in enumerate(lines) if not line.strip() or line not in lines[:number]]
    assert distinct == "".join(f"{line}\n" for line in kept)  # in the order of the rows, not of their ids


def test_infinite_scores_are_null_in_jsonl(good: Any, spark: SparkSession, tmp_path: Path) -> None:
    NgramModel.train(Corpus.from_sentences(["a b"]), order=2, smoothing="maximum-likelihood").save(tmp_path / "ml")
    (tmp_path / "lines.txt").write_text("a b\nb a\n")
    good(
        "spark",
        "score",
        tmp_path / "ml",
        "--text",
        tmp_path / "lines.txt",
        "-o",
        tmp_path / "o.jsonl",
        "--partitions",
        1,
    )
    [file] = (tmp_path / "o.jsonl").glob("part-*")
    first, second = map(json.loads, file.read_text().splitlines())
    assert first == {"id": 1, "text": "a b", "log_prob": 0.0}
    assert second == {"id": 2, "text": "b a", "log_prob": None}


def test_translations_and_their_scores_are_those_in_memory(
    good: Any, spark: SparkSession, translator: Translator, tmp_path: Path
) -> None:
    translator.save(tmp_path / "de-en")
    records = [{"de": line, "n": number} for number, line in enumerate([*GERMAN[:7], ""])]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    options = ("--text", tmp_path / "in.jsonl", "--column", "de", "--beam-size", 2, "--partitions", 2)
    good("spark", "translate", tmp_path / "de-en", *options, "-o", tmp_path / "out.parquet")
    rows = spark.read.parquet(str(tmp_path / "out.parquet")).orderBy("id").collect()
    expected = [line.text for line in translator.translate_text([record["de"] for record in records], 2)]
    assert [row["translation"] for row in rows] == expected
    pairs = ("--column", "translation", "--src-column", "de", "-o", tmp_path / "scored.parquet")
    good("spark", "score", tmp_path / "de-en", "--text", tmp_path / "out.parquet", *pairs)
    scored = spark.read.parquet(str(tmp_path / "scored.parquet")).orderBy("id").collect()
    log_probs = translator.score([row["de"] for row in scored], [row["translation"] for row in scored])
    assert [row["log_prob"] for row in scored] == pytest.approx(log_probs, abs=1e-5)


def test_the_first_of_duplicates_stays(
    good: Any, spark: SparkSession, texts: Path, text: bytes, tmp_path: Path
) -> None:
    lines = lines_of(text)
    groups = group_duplicates([lines], similarity=1.0)
    good("spark", "dedup", "--text", texts / "*", "-o", tmp_path / "distinct.parquet")
    rows = spark.read.parquet(str(tmp_path / "distinct.parquet")).orderBy("id").collect()
    kept = [number for number, group in enumerate(groups.tolist()) if number == group]
    assert len(kept) < len(lines)
    assert [(row["id"], row["text"]) for row in rows] == [(number + 1, lines[number]) for number in kept]


def test_duplicates_of_several_columns(good: Any, spark: SparkSession, tmp_path: Path) -> None:
    pairs = [("a", "b c"), ("a b", "c"), ("A.", "b c!"), ("a", "b c"), ("", ""), ("", "")]
    spark.createDataFrame(pairs, "de string, en string").coalesce(1).write.parquet(str(tmp_path / "in"))
    options = ("--text", tmp_path / "in", "--input-format", "parquet", "--column", "de", "--column", "en")
    for match, ids in (("simplified", [1, 2, 5, 6]), ("exact", [1, 2, 3, 5, 6])):
        output = tmp_path / f"{match}.jsonl"
        good("spark", "dedup", *options, "--match", match, "-o", output)
        records = [json.loads(line) for file in sorted(output.glob("part-*")) for line in file.read_text().splitlines()]
        assert [record["id"] for record in records] == ids


def test_blank_rows_stay_and_line_breaks_do_not(good: Any, spark: SparkSession, tmp_path: Path) -> None:
    rows = [(7, ""), (7, "a\r\nb"), (7, ""), (None, " "), (None, ""), (7, "a b")]
    spark.createDataFrame(rows, "id int, text string").coalesce(1).write.parquet(str(tmp_path / "in.parquet"))
    good("spark", "dedup", "--text", tmp_path / "in.parquet", "-o", tmp_path / "out.txt", "--partitions", 1)
    files = sorted((tmp_path / "out.txt").glob("part-*"))
    assert "".join(file.read_text() for file in files) == "\na b\n\n \n\n"


def test_the_output_of_another_program_is_not_lost(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman.spark import files

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "theirs").touch()
    monkeypatch.setattr(files, "check_output", lambda spark, path: None)  # it appears after the check
    with pytest.raises(DragomanError, match="another program has created it"):
        files.write_rows(spark.range(1).selectExpr("'a' AS text"), str(tmp_path / "out"), "text")
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "theirs"]


def test_wrong_requests_are_refused(run: Any, spark: SparkSession, model: Path, texts: Path, tmp_path: Path) -> None:
    from dragoman.spark import dedup, score

    frame = spark.createDataFrame([(1, "a"), (2, None)], "id int, text string")
    CacheModel.train(Corpus.from_sentences(["a b"])).save(tmp_path / "cache")
    for request, message in (
        (lambda: score(frame, model, "txt"), "no column 'txt'; did you mean 'text'?"),
        (lambda: score(frame, model, output="id"), "there is a column 'id' already"),
        (lambda: score(frame, tmp_path / "cache"), "depends on the lines before"),
        (lambda: dedup(frame, match="fuzzy"), "--match fuzzy: choose simplified or exact"),
    ):
        with pytest.raises(DataError, match=message.replace("?", r"\?")):
            request()
    frame.write.parquet(str(tmp_path / "in.parquet"))
    outcome = run("spark", "score", model, "--text", tmp_path / "in.parquet", "-o", tmp_path / "out.txt")
    assert (outcome.code, outcome.err.splitlines()[-1]) == (
        2,
        "dragoman: id 2: column 'text' has no value; fill it or remove the row",
    )
    outcome = run("spark", "dedup", "--text", "x.jsonl", "--column", "id", "-o", tmp_path / "out.txt")
    assert outcome.code == 2 and "--column id: of JSONL files" in outcome.err
    outcome = run("spark", "dedup", "--text", texts / "a.txt", "-o", tmp_path / "in.parquet")
    assert outcome.code == 2 and "exists already" in outcome.err
    outcome = run("spark", "translate", model, "--text", texts / "a.txt", "-o", tmp_path / "out.txt")
    assert outcome.code == 2 and "not a translator" in outcome.err


# -- installation ------------------------------------------------------------------------------------------------------


def test_what_is_missing_is_named(run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dragoman.spark import session

    command = ("spark", "dedup", "--text", "lines.txt", "-o", tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setenv("JAVA_HOME", str(tmp_path))
        assert run(*command).err == (
            f"dragoman: Spark needs Java 17 or later, and JAVA_HOME ({tmp_path}) has no bin/java; "
            "run: apt install default-jre-headless, or set JAVA_HOME\n"
        )
        patch.delenv("JAVA_HOME")
        patch.setenv("PATH", str(tmp_path))
        assert "there is no java command" in run(*command).err
    monkeypatch.setattr(session, "is_installed", lambda package: package != "pyspark")
    outcome = run(*command)
    assert (outcome.code, outcome.err) == (
        2,
        "dragoman: pyspark is not installed; run: pip install 'dragoman[spark]'\n",
    )


def test_commands_of_the_guides_work(good: Any, spark: SparkSession, model: Path, tmp_path: Path) -> None:
    """Those of the overview, and those of Spark's own guide that use a model."""
    for name, lines in {"train.txt": 60, "big.txt": 200, "lab/train.en": 200, "lab/test.en": 30}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("".join(f"{line}\n" for line in sentences(lines, 5)))
    (tmp_path / "kn5").symlink_to(model)
    overview = [command for command in guide_commands("scaling.md") if "spark" in command]
    own = [command for command in guide_commands("scaling-spark.md") if command.startswith("dragoman spark")]
    assert (len(overview), len(own)) == (2, 3)
    for command in overview + own:  # Spark was started in another directory, so paths must not be relative
        path_like = re.compile(r"kn[35]|.*\.(txt|en|parquet|jsonl)")
        words = shlex.split(command)[1:]
        good(*(str(tmp_path / word) if path_like.fullmatch(word) else word for word in words))
    assert spark.read.parquet(str(tmp_path / "scores.parquet")).count() == 200
    distinct = spark.read.parquet(str(tmp_path / "distinct.parquet")).count()
    assert spark.read.json(str(tmp_path / "distinct-scores.jsonl")).count() == distinct < 200
