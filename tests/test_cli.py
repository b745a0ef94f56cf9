"""The command line: good paths, and every bad input answered by one line and the right exit code."""

import gzip
import io
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import dragoman
from dragoman.cli import main as command_line
from dragoman.cli.train_ngram import MEANINGS
from dragoman.ngram.smoothing import SMOOTHINGS

TRAIN = "".join(
    f"{who} {verb} {what} .\n"
    for who in ("the cat", "the dog", "a bird")
    for verb in ("saw", "heard", "met")
    for what in ("the cat", "the mouse", "a bird", "nobody")
)
DEV = "the cat met nobody .\na dog saw the zebra .\n\n"
ODD = "the cat\u2028sat\nvertical\vtab here\n\nno\u00a0break saw\r\nthe dog\x85heard\x1cthe cat .\nthe mouse"
KEYS = {
    *("sentences", "words", "tokens", "unknown_words", "log_likelihood", "log_likelihood_unknown"),
    *("perplexity", "perplexity_words", "perplexity_class", "perplexity_known", "bits_per_character"),
}


COMMAND = "import sys; from dragoman.cli.main import main; sys.exit(main())"


class Outcome:
    """What a command left behind."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.lines = out.splitlines()


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command line in this process, with this on standard input."""

    def call(*arguments, stdin=""):
        raw = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        monkeypatch.setattr(sys, "argv", ["dragoman", *map(str, arguments)])
        code = command_line.main()
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def good(run):
    """The same, for commands that must succeed."""

    def call(*arguments, stdin=""):
        outcome = run(*arguments, stdin=stdin)
        assert outcome.code == 0, outcome.err
        return outcome

    return call


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    """Texts and a few models: `bi` and `tri` over one vocabulary, `other` over its own, `stupid`, and `both` mixed."""
    place = tmp_path_factory.mktemp("shared")
    (place / "train.txt").write_text(TRAIN)
    (place / "dev.txt").write_text(DEV)
    corpus = dragoman.Corpus.from_sentences(TRAIN.splitlines())
    bi = dragoman.NgramModel.train(corpus, order=2, smoothing="witten-bell")
    tri = dragoman.NgramModel.train(corpus, order=3, smoothing="witten-bell")
    bi.save(place / "bi")
    tri.save(place / "tri")
    dragoman.ensemble([bi, tri]).save(place / "both")
    dragoman.NgramModel.train(corpus, order=2, smoothing="stupid-backoff").save(place / "stupid")
    strangers = dragoman.Corpus.from_sentences(["quite another language"])
    dragoman.NgramModel.train(strangers, order=1, smoothing="witten-bell").save(place / "other")
    return place


def is_one_line(text: str) -> bool:
    return text.count("\n") == 1 and text.startswith("dragoman: ") and "Traceback" not in text


def in_a_process(script: str, *arguments, **options):
    """Run Python as a user would: output is held back in a buffer."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, check=False, text=True, env=buffered, **options)


# -- good paths -----------------------------------------------------------------------------------------------------


def test_train_then_evaluate(good, shared, tmp_path):
    trained = good(
        *("train", "ngram", "--text", shared / "train.txt", "--dev-text", shared / "dev.txt"),
        *("--order", 3, "--smoothing", "kneser-ney", "-o", tmp_path / "m"),
    )
    assert trained.out == ""
    assert "3-grams" in trained.err and "seconds" in trained.err and "perplexity" in trained.err
    assert trained.err.splitlines()[-1] == f"next: dragoman evaluate {tmp_path / 'm'} --text {shared / 'dev.txt'}"
    report = json.loads(good("evaluate", tmp_path / "m", "--text", shared / "dev.txt", "--json").out)
    assert report.keys() >= KEYS
    assert {key for key in KEYS if isinstance(report[key], int)} == {"sentences", "words", "tokens", "unknown_words"}
    assert (report["sentences"], report["words"], report["tokens"], report["unknown_words"]) == (3, 11, 14, 1)
    assert report["log_likelihood_unknown"] == pytest.approx(-math.log(10_000_000 - 11))
    full = report["log_likelihood"] + report["log_likelihood_unknown"]
    assert report["perplexity"] == pytest.approx(math.exp(-full / 14))
    assert sum(report["found_orders"].values()) == 14


def test_the_report_explains_itself(good, shared):
    report = good("evaluate", shared / "tri", "--text", shared / "dev.txt").out
    for key in KEYS:
        assert key.replace("_", " ").replace("log likelihood", "log-likelihood") in report
    assert "nats a token, and the unknown-word model 16.12 more for each unknown word" in report
    assert "n-grams of order" in report


def test_several_models_make_a_table(good, shared):
    names = [shared / name for name in ("bi", "other", "both")]
    table = good("evaluate", *names, "--text", "-", stdin=DEV).lines
    assert [line.split()[0] for line in table[2:5]] == list(map(str, names))
    reports = json.loads(good("evaluate", *names, "--text", "-", "--json", stdin=DEV).out)["models"]
    assert [report["model"] for report in reports] == list(map(str, names))
    assert [report["unknown_words"] for report in reports] == [1, 11, 1]  # each by its own vocabulary
    alone = json.loads(good("evaluate", shared / "both", "--text", shared / "dev.txt", "--json").out)
    assert alone == reports[2]


def test_what_is_infinite_is_null(good, tmp_path):
    text = tmp_path / "train.txt"
    text.write_text("a b\nb a\n")
    options = ("--smoothing", "maximum-likelihood", "--order", 1, "--unknown", "none", "-o", tmp_path / "m")
    good("train", "ngram", "--text", text, *options)
    report = json.loads(good("evaluate", tmp_path / "m", "--text", "-", "--json", stdin="a c\n").out)
    assert report["perplexity"] is None and report["log_likelihood"] is None
    assert report["perplexity_known"] == pytest.approx(3)
    assert "infinite" in good("evaluate", tmp_path / "m", "--text", "-", stdin="a c\n").out


def test_a_mixture_is_a_model_like_any_other(good, shared, tmp_path):
    mixed = good("mix", shared / "bi", shared / "tri", "--dev-text", shared / "dev.txt", "-o", tmp_path / "m")
    weights = [float(line.split("\t")[0]) for line in mixed.lines]
    assert sum(weights) == pytest.approx(1, abs=1e-5) and len(weights) == 2
    every = [shared / "bi", shared / "tri", tmp_path / "m"]
    reports = json.loads(good("evaluate", *every, "--text", shared / "dev.txt", "--json").out)["models"]
    assert reports[2]["perplexity"] <= min(reports[0]["perplexity"], reports[1]["perplexity"]) + 1e-6
    scores = [float(line) for line in good("score", tmp_path / "m", stdin=DEV).lines]
    assert sum(scores) == pytest.approx(reports[2]["log_likelihood"] + reports[2]["log_likelihood_unknown"], abs=1e-4)
    assert len(good("sample", tmp_path / "m", "-n", 3).lines) == 3
    assert len(good("next", tmp_path / "m", "the", "-k", 2).lines) == 2


def test_an_ensemble_needs_no_dev_text(good, shared, tmp_path):
    mixed = good("mix", shared / "bi", shared / "tri", "--equal-weights", "-o", tmp_path / "m")
    assert [line.split("\t")[0] for line in mixed.lines] == ["0.500000", "0.500000"]


def test_scores_are_those_of_the_library(good, shared):
    model = dragoman.load(shared / "tri")
    expected = model.score(DEV.split("\n")[:-1])
    assert [float(line) for line in good("score", shared / "tri", stdin=DEV).lines] == pytest.approx(expected, abs=1e-6)
    log10 = [float(line) for line in good("score", shared / "tri", "--log10", stdin=DEV).lines]
    assert log10 == pytest.approx([score / math.log(10) for score in expected], abs=1e-6)


def test_one_line_out_for_each_line_in(good, shared):
    scored = good("score", shared / "tri", stdin=ODD)
    assert scored.out.count("\n") == 6  # not one more for U+2028, VT, U+0085 or FS
    model = dragoman.load(shared / "tri")
    lines = ["the cat\u2028sat", "vertical\vtab here", "", "no\u00a0break saw", "the dog\x85heard\x1cthe cat ."]
    expected = model.score([*lines, "the mouse"])
    assert [float(line) for line in scored.out.split("\n")[:-1]] == pytest.approx(expected, abs=1e-6)


def test_scores_word_by_word(good, shared):
    out = good("score", shared / "tri", "--words", stdin="the zebra <unk>\n\n<s> </s>\n").out
    blocks = [[row.split("\t") for row in block.split("\n")] for block in out.removesuffix("\n").split("\n\n")]
    assert [[row[0] for row in block] for block in blocks] == [
        ["the", "zebra", "<unk>", "</s>"],
        ["</s>"],
        ["<s>", "</s>", "</s>"],
    ]
    # Unknown words show their two parts; the literal <unk> is a word, and in a text <s> and </s> are unknown words.
    assert [[len(row) for row in block] for block in blocks] == [[2, 5, 2, 2], [2], [5, 5, 2]]
    zebra = blocks[0][1]
    assert zebra[2] == "<unk>"
    assert float(zebra[1]) == pytest.approx(float(zebra[3]) + float(zebra[4]), abs=2e-6)
    assert float(zebra[4]) == pytest.approx(-math.log(10_000_000 - 11), abs=1e-6)
    [line] = good("score", shared / "tri", stdin="the zebra <unk>\n").lines
    assert float(line) == pytest.approx(sum(float(row[1]) for row in blocks[0]), abs=1e-5)


def test_raw_scores_of_stupid_backoff(good, shared):
    raw = good("score", shared / "stupid", "--raw", "--words", stdin="the cat saw\n").lines
    probabilities = good("score", shared / "stupid", "--words", stdin="the cat saw\n").lines
    # c(the cat) / c(the): 12 of "the cat ..." and 9 of "... the cat" among 24 + 18
    assert float(raw[1].split("\t")[1]) == pytest.approx(math.log(21 / 42), abs=1e-6)
    assert float(probabilities[1].split("\t")[1]) < math.log(21 / 42)
    [line] = good("score", shared / "stupid", "--raw", stdin="the cat saw\n").lines
    assert float(line) == pytest.approx(sum(float(row.split("\t")[1]) for row in raw), abs=1e-5)


def test_samples_follow_the_seed(good, shared):
    first = good("sample", shared / "tri", "-n", 5, "--seed", 7).out
    assert first == good("sample", shared / "tri", "-n", 5, "--seed", 7).out
    assert first != good("sample", shared / "tri", "-n", 5, "--seed", 8).out
    short = good("sample", shared / "tri", "-n", 4, "--max-words", 2, "--temperature", 0.5).lines
    assert all(len(line.split()) <= 2 for line in short)


def test_next_words(good, shared):
    rows = [line.split("\t") for line in good("next", shared / "tri", "the cat", "-k", 100).lines]
    probabilities = [float(prob) for _, prob in rows]
    assert sum(probabilities) == pytest.approx(1, abs=1e-4)
    assert probabilities == sorted(probabilities, reverse=True)
    assert rows[0][0] in {"saw", "heard", "met", "."}


def test_there_and_back_by_arpa(good, shared, tmp_path):
    good("export", shared / "tri", "--arpa", tmp_path / "tri.arpa.gz")
    assert gzip.decompress((tmp_path / "tri.arpa.gz").read_bytes()).lstrip().startswith(b"\\data\\")
    good("import", tmp_path / "tri.arpa.gz", "-o", tmp_path / "again")
    before, after = (good("score", model, stdin=DEV).lines for model in (shared / "tri", tmp_path / "again"))
    assert [float(x) for x in after] == pytest.approx([float(x) for x in before], abs=1e-3)


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("t.txt.gz", gzip.compress(TRAIN.encode()), ()),
        ("t.tsv", "".join(f"x\t{line}\n" for line in TRAIN.splitlines()).encode(), ("--field", "2")),
        ("t.jsonl", "".join(json.dumps({"s": line}) + "\n" for line in TRAIN.splitlines()).encode(), ("--field", "s")),
        ("t.txt", b"\xef\xbb\xbf" + TRAIN.replace("\n", "\r\n").encode(), ()),
    ],
)
def test_kinds_of_text_make_the_same_model(good, shared, tmp_path, name, content, options):
    (tmp_path / name).write_bytes(content)
    train = ("train", "ngram", "--order", 2, "--smoothing", "witten-bell", "--text")
    good(*train, tmp_path / name, *options, "-o", tmp_path / "m")
    assert good("score", tmp_path / "m", stdin=DEV).out == good("score", shared / "bi", stdin=DEV).out


def test_training_text_from_standard_input(good, shared, tmp_path):
    good("train", "ngram", "--order", 2, "--smoothing", "witten-bell", "--text", "-", "-o", tmp_path / "m", stdin=TRAIN)
    assert (tmp_path / "m" / "vocab.tsv").read_text() == (shared / "bi" / "vocab.tsv").read_text()


def test_settings_reach_the_model(good, shared, tmp_path):
    good(
        *("train", "ngram", "--text", shared / "train.txt", "--order", 2, "--smoothing", "interpolated"),
        *("--coefficients", "0.1,0.4", "--prune", "0,1", "--gap", 1, "--quantize", "--no-interpolate-unigrams"),
        *("--unknown-words", 5000, "--max-size", 4, "-o", tmp_path / "m"),
    )
    config = yaml.safe_load((tmp_path / "m" / "config.yaml").read_text())
    assert (config["coefficients"], config["prune"], config["gap"]) == ([0.1, 0.4], [0, 1], 1)
    assert (config["quantise"], config["interpolate_unigrams"]) == (True, False)
    assert config["unknown"] == {"kind": "uniform", "total": 5000}
    assert len(dragoman.load(tmp_path / "m").vocab) == 3 + 4


def test_replacing_singletons_is_a_minimum_count_of_two(good, tmp_path):
    text = tmp_path / "t.txt"
    text.write_text("a b\na c\n")
    train = ("train", "ngram", "--text", text, "--order", 1, "--smoothing", "witten-bell")
    good(*train, "--replace-singletons", "-o", tmp_path / "one")
    good(*train, "--min-count", 2, "-o", tmp_path / "two")
    vocabularies = [dragoman.load(tmp_path / name).vocab for name in ("one", "two")]
    assert vocabularies[0].words[3:] == vocabularies[1].words[3:] == ("a",)


def test_a_lent_vocabulary_makes_models_that_mix(good, shared, tmp_path):
    """The unknown-word model comes along with the vocabulary, even one that spells words out."""
    (tmp_path / "talk.txt").write_text("a mouse heard a mouse .\nnobody sings .\n")
    small = ("--order", 2, "--smoothing", "witten-bell")
    good("train", "ngram", "--text", shared / "train.txt", *small, "--unknown", "characters", "-o", tmp_path / "news")
    lent = ("--text", tmp_path / "talk.txt", "--vocab", tmp_path / "news")
    good("train", "ngram", *lent, *small, "-o", tmp_path / "talk")
    good("train", "cache", *lent, "-o", tmp_path / "cache")
    (tmp_path / "classes.tsv").write_text("cat\tANIMAL\ndog\tANIMAL\nmouse\tANIMAL\n")
    good("train", "class-ngram", *lent, *small, "--classes", tmp_path / "classes.tsv", "-o", tmp_path / "classes")
    members = [tmp_path / name for name in ("news", "talk", "cache", "classes")]
    assert len(good("mix", *members, "--dev-text", shared / "dev.txt", "-o", tmp_path / "m").lines) == 4
    assert dragoman.load(tmp_path / "m").unknown.config()["kind"] == "characters"


def test_force_replaces_a_model(good, shared, tmp_path):
    train = ("train", "ngram", "--text", shared / "train.txt", "--smoothing", "witten-bell", "-o", tmp_path / "m")
    good(*train, "--order", 1)
    good(*train, "--order", 2, "--force")
    assert yaml.safe_load((tmp_path / "m" / "config.yaml").read_text())["order"] == 2


def test_fallbacks_are_told_as_plain_warnings(good, tmp_path):
    (tmp_path / "t.txt").write_text("too small a text\n")
    trained = good("train", "ngram", "--text", tmp_path / "t.txt", "--order", 2, "-o", tmp_path / "m")
    told = [line for line in trained.err.splitlines() if line.startswith("warning: ")]
    assert told and all("order" in line for line in told) and len(set(told)) == len(told)
    assert ".py:" not in trained.err


# -- help -----------------------------------------------------------------------------------------------------------


def test_help_teaches(good):
    overview = good("--help").out
    for verb in command_line.VERBS:
        assert f"\n  {verb} " in overview
        assert "Usage: " in good(verb, "--help").out
        if verb != "train":
            assert "Example" in good(verb, "--help").out
    assert good().out == overview
    for kind in ("ngram", "class-ngram", "cache"):
        assert "Example" in good("train", kind, "--help").out
    assert good("--version").out == f"dragoman {dragoman.__version__}\n"


def test_help_knows_every_smoothing(good):
    assert MEANINGS.keys() == SMOOTHINGS.keys()
    assert all(meaning in good("train", "ngram", "--help").out for meaning in MEANINGS.values())


# -- bad usage and bad data -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["conjure"], "No such command 'conjure'"),
        (["train"], "Missing command"),
        (["train", "loglinar"], "No such command"),
        (["train", "ngram", "-o", "OUT"], "--text"),
        (["train", "ngram", "--text", "TEXT"], "--output"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--oder", "2"], "--order"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--order", "two"], "--order"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--order", "0"], "order 0"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--smoothing", "smooth"], "modified-kneser-ney"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--coefficients", "half"], "--coefficients 'half'"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--coefficients", "1.5"], "between 0 and 1"),
        (
            ["train", "ngram", "--text", "TEXT", "-o", "OUT", "--smoothing", "interpolated", "--coefficients", ".1,.2"],
            "order 5 needs 5",
        ),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--prune", "1,0"], "start at 0"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--prune", "0,x"], "--prune"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--unknown", "guess"], "characters"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--unknown-words", "3"], "--unknown-words"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--unknown", "none", "--unknown-words", "99"], "uniform"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--vocab", "BI", "--min-count", "2"], "--min-count"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--vocab", "NOWHERE"], "not a model directory"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--min-count", "0"], "--min-count"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--field", "2"], "field"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--dev-text", "NOWHERE"], "no such file"),
        (["train", "class-ngram", "--text", "TEXT", "-o", "OUT"], "--classes"),
        (["train", "class-ngram", "--text", "TEXT", "-o", "OUT", "--classes", "TEXT"], "TAB"),
        (["train", "cache", "--text", "TEXT", "-o", "OUT", "--decay", "2"], "decay"),
        (["evaluate", "BI"], "--text"),
        (["evaluate", "--text", "TEXT"], "DIR"),
        (["evaluate", "NOWHERE", "--text", "TEXT"], "not a model directory"),
        (["evaluate", "TEXT", "--text", "TEXT"], "cannot be read"),
        (["evaluate", "BI", "--text", "BI"], "is a directory"),
        (["mix", "BI", "TRI", "-o", "OUT"], "--dev-text"),
        (["mix", "BI", "TRI", "-o", "OUT", "--dev-text", "TEXT", "--equal-weights"], "either"),
        (["mix", "BI", "OTHER", "-o", "OUT", "--dev-text", "TEXT"], "different vocabularies"),
        (["mix", "BI", "OTHER", "-o", "OUT", "--equal-weights"], "different vocabularies"),
        (["score", "BI", "--raw", "--text", "TEXT"], "stupid-backoff"),
        (["score", "BOTH", "--raw", "--text", "TEXT"], "stupid-backoff"),
        (["sample", "BI", "-n", "0"], "-n"),
        (["sample", "BI", "--seed", "-1"], "--seed"),
        (["sample", "BI", "--temperature", "0"], "temperature"),
        (["next", "BI", "two\nlines"], "line break"),
        (["next", "BI", "bad\udcff"], "UTF-8"),
        (["export", "BI"], "--arpa"),
        (["export", "BOTH", "--arpa", "OUT"], "mixture"),
        (["import", "NOWHERE", "-o", "OUT"], "nowhere"),
        (["import", "TEXT", "-o", "OUT"], "train.txt"),
    ],
)
def test_bad_usage(run, shared, tmp_path, arguments, says):
    places = {name.upper(): shared / name for name in ("bi", "tri", "both", "other")}
    places |= {"TEXT": shared / "train.txt", "OUT": tmp_path / "out", "NOWHERE": tmp_path / "nowhere"}
    outcome = run(*[str(places.get(word, word)) for word in arguments])
    assert (outcome.code, outcome.out) == (2, ""), outcome.err
    assert is_one_line(outcome.err) and says in outcome.err, outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"fine\nnot \xff fine\n", ":2: not UTF-8 (byte 0xff at column 5); convert it"),
        (b"fine\n\na\0b\n", ":3: NUL byte at column 2"),
        (b"", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"fine\nthe <s> here\n", ":2: <s> is reserved"),
        (b"fine\nthe </s>\n", ":2: </s> is reserved"),
        (b"\n\n\n", "no words"),
    ],
)
def test_bad_training_text(run, tmp_path, content, says):
    text = tmp_path / "bad.txt"
    text.write_bytes(content)
    outcome = run("train", "ngram", "--text", text, "-o", tmp_path / "out")
    assert outcome.code == 2
    assert is_one_line(outcome.err) and says in outcome.err, outcome.err
    assert list(tmp_path.iterdir()) == [text]


def test_reserved_symbols_are_refused_with_a_lent_vocabulary_too(run, shared, tmp_path):
    lent = ("--vocab", shared / "bi", "-o", tmp_path / "out")
    outcome = run("train", "ngram", "--text", "-", *lent, stdin="fine\nthe <s> here\n")
    assert outcome.code == 2 and is_one_line(outcome.err) and ":2: <s> is reserved" in outcome.err, outcome.err


@pytest.mark.parametrize("stdin", [b"\xff\n", b"a\0\n", b""])
@pytest.mark.parametrize("verb", [("score",), ("evaluate", "--text", "-")])
def test_bad_text_to_score(run, shared, verb, stdin):
    outcome = run(*verb, shared / "bi", stdin=stdin)
    assert (outcome.code, outcome.out) == (2, "")
    assert is_one_line(outcome.err) and "<stdin>" in outcome.err


@pytest.mark.parametrize(("name", "content"), [("t.gz", b"no gzip"), ("t.jsonl", b"{]\n"), ("t.tsv", b"one\n")])
def test_bad_containers(run, shared, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    field = ("--field", "2") if name.endswith("tsv") else ()
    outcome = run("evaluate", shared / "bi", "--text", tmp_path / name, *field)
    assert outcome.code == 2
    assert is_one_line(outcome.err) and name in outcome.err, outcome.err


def write(name: str, content: bytes):
    return lambda place: (place / name).write_bytes(content)


def edit(name: str, old: bytes, new: bytes):
    return lambda place: (place / name).write_bytes((place / name).read_bytes().replace(old, new))


def truncate(name: str, size: int):
    return lambda place: (place / name).write_bytes((place / name).read_bytes()[:size])


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda place: (place / "config.yaml").unlink(), id="no config"),
        pytest.param(lambda place: (place / "vocab.tsv").unlink(), id="no vocabulary"),
        pytest.param(lambda place: (place / "model.safetensors").unlink(), id="no tables"),
        pytest.param(truncate("model.safetensors", -8), id="tables cut short"),
        pytest.param(truncate("model.safetensors", 100), id="tables cut in the header"),
        pytest.param(write("model.safetensors", b""), id="tables empty"),
        pytest.param(write("model.safetensors", b"\xff" * 64), id="tables of nonsense"),
        pytest.param(edit("model.safetensors", b'"log_prob"', b'"log_brop"'), id="a table missing"),
        pytest.param(edit("model.safetensors", b'"F32"', b'"F99"'), id="a table of no known type"),
        pytest.param(write("config.yaml", b"{broken: [yaml"), id="broken yaml"),
        pytest.param(write("config.yaml", b""), id="empty yaml"),
        pytest.param(write("config.yaml", b"\xff\xfe"), id="yaml not UTF-8"),
        pytest.param(write("config.yaml", b"!!python/object/apply:os.system ['true']"), id="yaml with code"),
        pytest.param(edit("config.yaml", b"kind: ngram", b"kind: oracle"), id="wrong kind"),
        pytest.param(edit("config.yaml", b"kind: ngram", b"kind: [1]"), id="kind of a wrong type"),
        pytest.param(edit("config.yaml", b"kind: ngram", b"kind: mixture"), id="kind of another model"),
        pytest.param(edit("config.yaml", b"format: 1", b"format: 99"), id="format of the future"),
        pytest.param(edit("config.yaml", b"order: 2", b"order: two"), id="order not a number"),
        pytest.param(edit("config.yaml", b"order: 2", b"ordre: 2"), id="unknown setting"),
        pytest.param(edit("config.yaml", b"unknown:", b"unwissend:"), id="no unknown-word model"),
        pytest.param(edit("config.yaml", b"kind: uniform", b"kind: psychic"), id="no such unknown-word model"),
        pytest.param(edit("config.yaml", b"levels:", b"levels: 7\nold:"), id="levels not a list"),
        pytest.param(edit("vocab.tsv", b"dog\t", b"cat\t"), id="a word twice"),
        pytest.param(edit("vocab.tsv", b"dog\t", b"dog "), id="a word without a count"),
        pytest.param(write("vocab.tsv", b"<s>\t0\n</s>\t0\n<unk>\t0\n"), id="vocabulary too small"),
        pytest.param(write("vocab.tsv", b"cat\t1\n"), id="vocabulary without specials"),
        pytest.param(write("vocab.tsv", b"\xff\t1\n"), id="vocabulary not UTF-8"),
    ],
)
@pytest.mark.parametrize("whose", ["alone", "member"])
def test_broken_model_directory(run, shared, tmp_path, damage, whose):
    """Wherever the damage is, also in a member of a mixture."""
    model = tmp_path / "m"
    shutil.copytree(shared / ("bi" if whose == "alone" else "both"), model)
    damage(model if whose == "alone" else model / "member-1")
    outcome = run("score", model, stdin="the cat .\n")
    assert (outcome.code, outcome.out) == (2, ""), outcome.err
    assert is_one_line(outcome.err) and str(model) in outcome.err, outcome.err


@pytest.mark.parametrize("verb", ["train", "mix", "import"])
def test_what_is_there_stays(run, shared, tmp_path, verb):
    """An output directory that is taken is refused before any work is done."""
    arpa = tmp_path / "never.arpa"  # does not exist, so reading it first would give another message
    commands = {
        "train": ("train", "ngram", "--text", tmp_path / "no.txt"),
        "mix": ("mix", tmp_path / "no", "--equal-weights"),
        "import": ("import", arpa),
    }
    for name, content in (("model", "config.yaml"), ("notes", "diary.txt")):
        taken = tmp_path / name
        taken.mkdir()
        (taken / content).write_text("mine")
        outcome = run(*commands[verb], "-o", taken)
        assert outcome.code == 2 and is_one_line(outcome.err) and str(taken) in outcome.err
        assert (taken / content).read_text() == "mine"
    assert run(*commands[verb], "-o", tmp_path / "notes", "--force").code == 2
    assert (tmp_path / "notes" / "diary.txt").read_text() == "mine"


# -- what goes wrong while running ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "out of memory"),
        (OSError(28, "No space left on device", "some/file"), 1, "some/file: No space left on device"),
        (ZeroDivisionError("two\nlines"), 1, "internal error: ZeroDivisionError: two lines (set DRAGOMAN_DEBUG=1"),
        (dragoman.DragomanError("broke"), 1, "broke"),
        (dragoman.DataError("bad"), 2, "bad"),
    ],
)
def test_every_failure_is_one_line(run, shared, monkeypatch, error, code, says):
    monkeypatch.delenv("DRAGOMAN_DEBUG", raising=False)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr("dragoman.loading.load", fail)
    outcome = run("sample", shared / "bi")
    assert outcome.code == code
    assert is_one_line(outcome.err) and says in outcome.err


def test_debugging_shows_the_traceback(run, shared, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_DEBUG", "1")
    monkeypatch.setattr("dragoman.loading.load", lambda path: 1 / 0)
    outcome = run("sample", shared / "bi")
    assert outcome.code == 1 and "Traceback" in outcome.err


def test_sigterm_ends_the_work_and_leaves_nothing(shared, tmp_path):
    """A stop while the model is being written: 143, one line, and no half-written directory."""
    script = (
        "import sys, time; from dragoman import language_model; from dragoman.cli.main import main\n"
        "def slow(*_):\n    print('writing', flush=True); time.sleep(60)\n"
        "language_model.write_arrays = slow\n"
        "sys.exit(main())"
    )
    train = ("train", "ngram", "--text", shared / "train.txt", "--order", "1", "--smoothing", "witten-bell")
    command = [sys.executable, "-c", script, *map(str, train), "-o", str(tmp_path / "m")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 143
    assert errors == "dragoman: terminated\n"
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_is_no_news():
    reader, writer = os.pipe()
    os.close(reader)
    done = in_a_process(COMMAND, "--version", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line():
    with Path("/dev/full").open("w") as full:
        done = in_a_process(COMMAND, "--version", stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, "dragoman: No space left on device\n")


# -- what is imported -------------------------------------------------------------------------------------------------


def modules_after(*commands) -> set[str]:
    """The modules that Python holds when these commands have been run, one after the other, in one process."""
    script = (
        "import json, sys; from dragoman.cli.main import main\n"
        "codes = [main(command) for command in json.loads(sys.argv[1])]\n"
        "print('\\n'.join(sys.modules), file=sys.stderr); sys.exit(max(codes))"
    )
    every = json.dumps([list(map(str, command)) for command in commands])
    done = in_a_process(script, every, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines())


def test_help_waits_for_nothing_heavy():
    assert not {"numpy", "numba", "torch", "rich", "yaml"} & modules_after(["--help"], ["train", "ngram", "--help"])


def test_ngrams_do_without_torch(shared, tmp_path):
    text = ("--text", shared / "dev.txt")
    used = modules_after(
        ("train", "ngram", *text, "--dev-text", shared / "dev.txt", "--order", 3, "-o", tmp_path / "m"),
        ("evaluate", tmp_path / "m", shared / "both", *text),
        ("score", shared / "bi", "--words", *text),
        ("mix", shared / "bi", shared / "tri", "--dev-text", shared / "dev.txt", "-o", tmp_path / "mixed"),
        ("export", shared / "bi", "--arpa", tmp_path / "bi.arpa"),
        ("import", tmp_path / "bi.arpa", "-o", tmp_path / "again"),
    )
    assert "numba" in used
    assert not {"torch", "rich"} & used
