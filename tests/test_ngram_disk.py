"""N-gram models with counts on disk: the same files as in memory, to the byte, with budgets that need many parts."""

from __future__ import annotations

import errno
import fcntl
import gzip
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import dragoman
from command import written
from dragoman import Corpus, DataError, NgramModel
from dragoman.core import memory
from dragoman.core.errors import DragomanError
from dragoman.data.array_files import ArrayFile, BucketFiles, CountFile
from dragoman.data.text_chunks import read_chunks
from dragoman.io.array_writer import ArraySpec, ArrayWriter
from dragoman.io.files import scratch_directory
from dragoman.io.storage import write_arrays
from dragoman.ngram import model as model_module
from dragoman.ngram import trie
from dragoman.ngram.disk.bucket import BucketCounts, count_records
from dragoman.ngram.disk.levels import StoredCounts
from dragoman.ngram.disk.plan import DiskSpace, MemoryPlan
from dragoman.ngram.disk.records import RecordFormat, sort_records
from dragoman.ngram.disk.smoothing import DiskSmoother, StoredStatistics
from dragoman.ngram.disk.table_file import TableFile
from dragoman.ngram.disk.training import StageReport, check_config, disk_training
from dragoman.ngram.model import NgramConfig
from dragoman.ngram.smoothing import METHODS, SMOOTHINGS

# Parts so small that every text has many: lines are read one by one, frequent words are divided again and again.
TINY = MemoryPlan(chunk_bytes=200, chunk_tokens=37, bucket_records=16, block_ngrams=23, range_ngrams=19)
BUDGET = 1 << 30


def sentences() -> Iterator[str]:
    source = random.Random(1)
    words, weights = [f"w{number}" for number in range(40)], [1 / (rank + 1) for rank in range(40)]
    for _ in range(200):
        yield " ".join(source.choices(words, weights, k=source.randrange(0, 12)))
    yield from ["w0 w0 w0 w0 w0 w0 <unk> w1"] * 30  # one 5-gram is more than one part
    yield from ["w3 w5 last"] * 2  # the last n-gram from right to left: its suffixes occur twice, after one word


class Texts(NamedTuple):
    path: Path
    lines: list[str]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Texts:
    lines = list(sentences())
    path = tmp_path_factory.mktemp("disk") / "text.txt"
    path.write_text("\n".join(lines) + "\n")
    return Texts(path, lines)


def train(text: Path, output: Path, plan: MemoryPlan = TINY, min_count: int = 1, **settings: object) -> NgramModel:
    """Train on disk, and write all files."""
    config = NgramConfig.model_validate(settings)
    with disk_training(output.parent, BUDGET, plan) as training:
        corpus = training.read(text, output, config.order, min_count=min_count)
        output.mkdir()
        model = training.train(corpus, output, config)
        model.write_description(output)
        model.write_card(output, [], {"train": corpus.fingerprint()})
    return model


def assert_equal_directories(first: Path, second: Path) -> None:
    names, others = (
        sorted(path.relative_to(place) for path in place.rglob("*") if path.is_file()) for place in (first, second)
    )
    assert others == names
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


# -- the same files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "smoothing", "prune", "min_count"),
    [
        (5, "modified-kneser-ney", (), 1),
        (5, "modified-kneser-ney", (0, 0, 1), 3),
        (4, "kneser-ney", (0, 1, 2), 1),
        (3, "absolute-discounting", (0, 500), 1),  # only unigrams remain
        (3, "katz", (), 2),
        (2, "witten-bell", (), 1),
        (3, "interpolated", (), 1),
        (2, "maximum-likelihood", (), 1),
        (1, "modified-kneser-ney", (), 1),
    ],
)
def test_files_are_those_of_training_in_memory(
    text: Texts, tmp_path: Path, order: int, smoothing: str, prune: tuple[int, ...], min_count: int
) -> None:
    settings = {"order": order, "smoothing": smoothing, "prune": prune}
    with warnings.catch_warnings(action="ignore"):
        corpus = Corpus.read(text.path, min_count=min_count)
        expected = NgramModel.train(corpus, NgramConfig.model_validate(settings))
        expected.save(tmp_path / "memory", data={"train": corpus.fingerprint()})
        model = train(text.path, tmp_path / "disk", min_count=min_count, **settings)
    assert_equal_directories(tmp_path / "memory", tmp_path / "disk")
    assert model.notes == expected.notes
    assert model.score(text.lines[:3]) == expected.score(text.lines[:3])
    assert [path.name for path in written(tmp_path)] == ["disk", "memory"]  # no temporary files


@pytest.mark.parametrize("lines", [["a b", "", "c"], ["a"], ["", "a b c d e f g"]])
def test_short_texts_have_no_ngrams_of_high_orders(tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "text").write_text("\n".join(lines))
    with warnings.catch_warnings(action="ignore"):
        NgramModel.train(Corpus.from_sentences(lines), order=5).save(tmp_path / "memory")
        train(tmp_path / "text", tmp_path / "disk", order=5)
    assert (tmp_path / "memory/model.safetensors").read_bytes() == (tmp_path / "disk/model.safetensors").read_bytes()


def test_every_method_is_streamed_or_refused() -> None:
    for smoothing in SMOOTHINGS:
        if smoothing in METHODS:
            check_config(NgramConfig(smoothing=smoothing))  # type: ignore[arg-type]
        else:
            with pytest.raises(DataError, match=f"--smoothing {smoothing} needs all n-grams in memory"):
                check_config(NgramConfig(smoothing=smoothing))  # type: ignore[arg-type]


def test_a_writer_gives_the_file_of_the_library(tmp_path: Path) -> None:
    arrays = {
        "b": np.arange(5, dtype=np.int32),
        "a": np.arange(3, dtype=np.float32),
        "c": np.zeros((0, 256), np.float32),
    }
    arrays["words"] = np.arange(7, dtype=np.uint16)
    write_arrays(tmp_path / "whole", arrays)
    with ArrayWriter(tmp_path / "parts", {k: ArraySpec(v.dtype, v.shape) for k, v in arrays.items()}) as writer:
        for name in ("words", "a", "b"):
            writer.write(name, 2, arrays[name][2:])
            writer.write(name, 0, arrays[name][:2])
        writer.finish()
        with pytest.raises(ValueError, match="values 4 to 6 of 5"):
            writer.write("b", 4, np.zeros(2))
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()


# -- parts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vocab_size", [3, 5_000, 1 << 21, 1 << 23])  # one, two, two and three numbers for a record
def test_records_are_sorted_by_their_words(vocab_size: int) -> None:
    format = RecordFormat.of(5, vocab_size)
    generator = np.random.default_rng(vocab_size)
    fields = generator.integers(0, [2, 2, 3, 2, 3, vocab_size], (300, 6)).astype(np.uint64)
    records = np.zeros((len(fields), format.numbers), np.uint64)
    for field in range(6):
        number, place = divmod(field, format.words_per_number)
        records[:, number] |= fields[:, field] << np.uint64(format.bits * (format.words_per_number - 1 - place))
    ordered = sort_records(records)
    unpacked = np.stack([format.fields(ordered, field) for field in range(6)], axis=1)
    assert unpacked.tolist() == sorted(fields.tolist())


def test_files_of_arrays(tmp_path: Path) -> None:
    counts = CountFile(tmp_path / "counts")
    values = np.array([1, 254, 255, 256, 2**40, 0, 3], np.int64)
    counts.append(values[:4])
    counts.append(values[4:])
    for start in range(7):
        for stop in range(start, 8):
            assert counts.read(start, stop).tolist() == values[start:stop].tolist()
    buckets = BucketFiles(tmp_path, "b", np.uint32, 2)
    for _ in range(2):
        buckets.append(np.arange(6, dtype=np.uint32).reshape(3, 2), np.array([1, 1, 3]))
    assert [buckets.size(bucket) for bucket in range(3)] == [2, 0, 4]
    assert buckets.read(2, 1, 3).tolist() == [[4, 5], [2, 3]]
    numbers = ArrayFile(tmp_path / "numbers", np.int32)
    numbers.append(np.array([1, 4]))
    with pytest.raises(OSError, match="shorter"):
        numbers.read(0, 3)


def test_counts_beyond_32_bits(tmp_path: Path) -> None:
    """The bigrams `a a` and `a b`, 6 and 2 thousand million times. The first is divided between two buckets."""
    format, a, b = RecordFormat(2, 4), 3, 4
    zerogram = np.full(5, 0.2)

    def bucket(second: int, times: int) -> BucketCounts:
        record = np.array([[((a << 4 | second) << 4) << 52]], np.uint64)
        counted = count_records(record, format)
        return counted._replace(levels=[level._replace(counts=np.array([times])) for level in counted.levels])

    counts = StoredCounts(tmp_path, format, 5)
    for second, times in ((a, 3_000_000_000), (a, 3_000_000_000), (b, 2_000_000_000)):
        counts.add(bucket(second, times))
    counts.finish()
    assert counts[2].count.read(0, 2).tolist() == [6_000_000_000, 2_000_000_000]
    assert counts[1].count.read(0, 5).tolist() == [0, 0, 0, 8_000_000_000, 0]
    statistics = StoredStatistics(counts)
    assert statistics.count_of_counts(2, 4).tolist() == [0, 0, 0, 0, 0]
    table = TableFile(tmp_path / "table", counts, None, 10)
    table.write_ngrams()
    DiskSmoother(counts, zerogram, tmp_path, 10, 10).write(METHODS["maximum-likelihood"](statistics), table)
    table.finish(lambda done, total: None)
    from dragoman.io.storage import map_arrays

    assert np.exp(map_arrays(tmp_path / "table")["log_prob"][6:]).tolist() == pytest.approx([0.75, 0.25])


def test_nodes_beyond_32_bits(text: Texts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a low limit, the first children are stored in 64 bits."""
    with warnings.catch_warnings(action="ignore"):
        small = train(text.path, tmp_path / "small", order=3)
        monkeypatch.setattr(trie, "MAX_NODES", 50)
        train(text.path, tmp_path / "large", order=3)
    large = dragoman.load(tmp_path / "large")
    assert (small.table.trie.begin.dtype, large.table.trie.begin.dtype) == (np.int32, np.int64)
    assert large.score(text.lines[:5]) == small.score(text.lines[:5])
    corpus = Corpus.from_sentences(text.lines[:9], small.vocab)
    assert large.trace(corpus).matched.tolist() == small.trace(corpus).matched.tolist()


# -- large tables are not read when they are loaded -----------------------------------------------------------------


def test_a_damaged_large_table_is_noticed_when_it_matters(
    text: Texts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings(action="ignore"):
        model = train(text.path, tmp_path / "model", order=3)
    arrays = {name: np.array(array) for name, array in model.arrays().items()}
    arrays["begin"][60:90] = 2**30
    arrays["begin"][90:110] = -5
    write_arrays(tmp_path / "model/model.safetensors", arrays)
    with pytest.raises(DataError, match="begin does not divide the orders"):
        dragoman.load(tmp_path / "model")
    monkeypatch.setattr(model_module, "MAX_CHECKED_SIZE", 0)
    damaged = dragoman.load(tmp_path / "model")
    assert len(damaged.score(text.lines)) == len(text.lines)  # no access outside the arrays
    with pytest.raises(DataError, match="begin does not divide the orders"):
        damaged.next_words("w0")


# -- reading -------------------------------------------------------------------------------------------------------


def test_chunks_are_whole_lines(tmp_path: Path) -> None:
    content = "\ufeffa long line without end\nb\n\nc é d\ne".encode()
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(content))
    for name in ("plain", "packed.gz"):
        for size in (1, 3, 7, 100):
            chunks = list(read_chunks(tmp_path / name, size))
            assert b"".join(chunk.text for chunk in chunks) == content[3:]
            assert all(chunk.text.endswith(b"\n") for chunk in chunks[:-1])
            before = np.cumsum([0, *(chunk.text.count(b"\n") for chunk in chunks)])
            assert [chunk.first_line for chunk in chunks] == (before[:-1] + 1).tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"a\nb\n" * 300 + b"x <s> y\n" + b"a\n" * 300 + b"z </s>\n<s>\n",
            r"text:601: <s> is reserved in training text",
        ),
        (b"a b\n" * 300 + b"x \xff\n", r"text:301: not UTF-8 \(byte 0xff at column 3\)"),
        (b"a b\n" * 300 + b"x \0\n", r"text:301: NUL byte at column 3"),
        (b"", r"text: empty"),
        (b"\n\n", r"text: the text has no words"),
        (b"\x1f\x8b", r"text: this is gzip data"),
    ],
)
def test_errors_of_texts_name_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(DataError, match=message):
        train(tmp_path / "text", tmp_path / "model")
    with pytest.raises(DataError, match=message):
        if not Corpus.read(tmp_path / "text").num_words:
            raise DataError(f"{tmp_path / 'text'}: the text has no words")  # as the command says
    assert [path.name for path in written(tmp_path)] == ["text"]


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, text: Texts) -> Path:
    place = tmp_path_factory.mktemp("command")
    shutil.copy(text.path, place / "text.txt")
    (place / "text.txt.gz").write_bytes(gzip.compress(text.path.read_bytes()))
    (place / "dev.txt").write_text("w0 w1\nw9 unseen w0\n")
    (place / "tmp").mkdir()
    pieces = Corpus.read(text.path, units="subword:220")
    NgramModel.train(pieces, order=2, smoothing="witten-bell").save(place / "pieces")
    return place


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("text.txt", ["--dev-text", "dev.txt", "--min-count", 2, "--prune", "0,0,1"]),
        ("text.txt.gz", ["--units", "word", "--unknown", "characters", "--max-size", 20]),
        ("text.txt", ["--units", "char"]),
        ("text.txt", ["--vocab", "pieces", "--order", 3]),
        ("-", ["--units", "word", "--order", 2]),
    ],
)
def test_the_command_writes_the_same_files(small, good, monkeypatch, name, options):
    monkeypatch.chdir(small)
    stdin = (small / "text.txt").read_text() if name == "-" else ""
    memory, disk = (
        good("train", "ngram", "--text", name, *options, *limit, "-o", output, "--force", stdin=stdin)
        for output, limit in (("memory", []), ("disk", ["--memory", "80M", "--tmp", "tmp"]))
    )
    assert_equal_directories(small / "memory", small / "disk")
    assert not list((small / "tmp").iterdir())
    for stage in ("reading", "distributing", "counting", "smoothing", "checksum"):
        assert f"{stage}: " in disk.err
    report = [line for line in disk.err.splitlines() if "perplexity" in line or "are not in the vocabulary" in line]
    assert report == [line for line in memory.err.splitlines() if line in report]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--memory", "lots"], "--memory lots: give an amount of memory such as 2G or 500M"),
        (["--memory", "1M"], "--memory 1M: give at least 64M"),
        (["--tmp", "."], "--tmp .: temporary files are only written with --memory; give both or none"),
        (["--memory", "1G", "--gap", "1"], "--gap 1 needs all n-grams in memory; leave it out, or --memory"),
        (["--memory", "1G", "--units", "subword:300"], "subwords cannot be learned in parts of a text; give --vocab"),
        (["--memory", "1G", "--dev-text", "mistyped.txt"], "mistyped.txt: no such file"),
        (["--memory", "1G", "--tmp", "refused/tmp"], "--tmp refused/tmp: is in the output refused"),
        (["--memory", "1G", "--field", "2"], "--memory reads plain text only"),
        (["--memory", "1G", "--vocab", "pieces", "--min-count", "2"], "--vocab uses a vocabulary without changes"),
    ],
)
def test_wrong_options_are_refused_in_one_line(small, run, monkeypatch, options, message):
    monkeypatch.chdir(small)
    outcome = run("train", "ngram", "--text", "text.txt", *options, "-o", "refused")
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (small / "refused").exists()


def test_texts_that_cannot_be_read_in_parts(small, run, monkeypatch):
    monkeypatch.chdir(small)
    (small / "table.tsv").write_text("a\tb\n")
    (small / "raw.txt").write_text("The cat, as ever, sat.\n" * 9)
    os.mkfifo(small / "pipe")
    for name, message in (
        ("pipe", "pipe: can be read only once, so units cannot be chosen by the text; give --units word"),
        ("table.tsv", "table.tsv: only plain text and .gz can be read in parts"),
        ("raw.txt", "raw.txt: not split into words; give --units word or char, or --vocab"),
        ("-", "<stdin>: can be read only once, so units cannot be chosen by the text; give --units word"),
    ):
        outcome = run("train", "ngram", "--text", name, "--memory", "1G", "-o", "refused", stdin="a\n")
        assert (outcome.code, message in outcome.err) == (2, True), outcome.err


def test_a_vocabulary_that_does_not_fit(text: Texts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.ngram.disk.plan.BYTES_PER_WORD", 1 << 30)
    with pytest.raises(DataError, match=r"41 distinct words, the vocabulary 43; give at least 44097M"):
        train(text.path, tmp_path / "model")
    monkeypatch.setattr("dragoman.ngram.disk.plan.BYTES_PER_TYPE", 1 << 30)
    few = replace(TINY, chunk_bytes=1)  # a line: reading ends after the first
    with pytest.raises(DataError, match=r"more than \d distinct words; give more than \d+M"):
        train(text.path, tmp_path / "model", few)


def test_plans_depend_on_the_order() -> None:
    low, high = MemoryPlan.of_budget(2 << 30), MemoryPlan.of_budget(2 << 30, order=20, row_bytes=88)
    assert low.bucket_records > 3 * high.bucket_records
    assert low.chunk_tokens > 3 * high.chunk_tokens
    tokens = 10**10  # numbers of n-grams take 64 bits
    space = DiskSpace.needed(tokens, 10**6, 5)
    assert (space.temporary // tokens, space.model // tokens) == (56, 68)


def test_too_little_disk_space_is_noticed_before_the_work(
    text: Texts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[StageReport] = []
    usage = shutil.disk_usage(tmp_path)._replace(free=10_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with (
        pytest.raises(DataError, match=r"up to \d.* are needed for temporary files and the model, 10.0 kB are free"),
        disk_training(tmp_path, BUDGET, TINY, stages.append) as training,
    ):
        training.read(text.path, tmp_path / "model", 5)
    assert not stages
    with pytest.raises(DataError, match="--tmp"):
        DiskSpace(0, 20_000).check(tmp_path, tmp_path / "model")
    DiskSpace(1, 1).check(tmp_path, tmp_path / "model")


def test_a_full_disk_is_that_of_the_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", refuse)
    monkeypatch.setattr(os, "pwrite", refuse)
    message = re.escape(f"{tmp_path}: temporary files could not be written (No space left on device); free")
    with pytest.raises(DragomanError, match=message):
        ArrayFile(tmp_path / "numbers", np.int32).append(np.arange(3))
    with pytest.raises(DragomanError, match=message):
        BucketFiles(tmp_path, "rows", np.int64, 1).append(np.ones((2, 1)), np.array([2]))


def test_a_file_that_was_cut_off_is_noticed(tmp_path: Path) -> None:
    with ArrayWriter(tmp_path / "arrays", {"a": ArraySpec(np.dtype(np.int32), (3,))}) as writer:
        (tmp_path / "arrays").write_bytes(b"")
        with pytest.raises(OSError, match="shorter than what was written"):
            writer.finish()


def test_training_in_memory_says_when_it_will_not_fit(small, run, monkeypatch):
    monkeypatch.chdir(small)
    monkeypatch.setattr(memory, "physical_memory", lambda: 10_000)
    outcome = run("train", "ngram", "--text", "text.txt", "-o", "model", "--order", 1)
    [warning] = [line for line in outcome.err.splitlines() if "--memory" in line]
    assert "training takes about" in warning and "with --memory 1M, n-grams" in warning
    assert outcome.code == 0


# -- temporary files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_temporary_files_are_removed_after_errors(tmp_path: Path, failure: type[BaseException]) -> None:
    with pytest.raises(failure), scratch_directory(tmp_path) as scratch:
        (scratch / "file").write_text("half")
        with scratch_directory(tmp_path) as other:  # of another run: both are in use
            assert scratch.exists() and other != scratch
        raise failure
    assert not list(tmp_path.iterdir())


def test_without_locks_temporary_files_of_other_processes_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    with scratch_directory(tmp_path) as scratch:
        pass
    scratch.mkdir()  # by a process that has not locked it yet
    with scratch_directory(tmp_path):
        assert scratch.exists()
    (scratch / "lock").touch()
    monkeypatch.setattr(fcntl, "flock", refuse)
    with scratch_directory(tmp_path) as other:
        assert scratch.exists()
    assert not other.exists()


KILLED = """
import os, sys
from pathlib import Path
from dragoman.io.files import scratch_directory
with scratch_directory(Path(sys.argv[1])) as scratch:
    (scratch / "file").write_text("half")
    os.kill(os.getpid(), 9)
"""


def test_temporary_files_of_a_killed_process_are_removed_by_the_next(tmp_path: Path) -> None:
    process = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert process.returncode == -signal.SIGKILL
    [left] = tmp_path.iterdir()
    assert (left / "file").exists()
    (tmp_path / f"{left.name}-notes").mkdir()  # not ours
    with scratch_directory(tmp_path) as scratch:
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([scratch.name, f"{left.name}-notes"])
