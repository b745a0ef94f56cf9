"""The command line and trouble: every bad input is answered by one line and the right exit code."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from command import COMMAND, in_a_process, is_one_line, written
from model_files import remove_digests

# -- bad usage and bad data -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["conjure"], "No such command 'conjure'"),
        (["train"], "Missing command"),
        (["train", "--text", "TEXT", "-o", "OUT"], "dragoman train ngram --text"),
        (["next", "BI", "the", "cat"], "put the prefix in quotes"),
        (["doctor", "TEXT"], "; name a file after its option: --text, --src, --tgt, --pairs"),
        (["train", "recurrent", "--src", "TEXT"], "No such option: --src (see dragoman train recurrent --help)"),
        (["train", "translator", "--minuts", "3"], "No such option: --minuts; did you mean --minutes? (see"),
        (["train", "translator", "--pairs", "TEXT", "--tgt", "TEXT", "-o", "OUT"], "both sides; remove --tgt\n"),
        (
            ["train", "translator", "--minutes", "two", "--pairs", "TEXT", "-o", "OUT"],
            "--minutes two: must be a number",
        ),
        (["doctor", "--pairs", "TEXT", "--src", "TEXT"], "both sides; remove --src\n"),
        (["evaluate", "BI", "--pairs", "TEXT", "--src", "TEXT", "--ref", "TEXT"], "is a language model"),
        (["serve", "BI", "--port", "abc"], "--port abc: must be a whole number (see dragoman serve --help)"),
        (["serve", "BI", "--port", "70000"], "--port 70000: must be at most 65535"),
        (["evaluate", "BI", "--text", "TEXT", "--dynamic", "x"], "--dynamic x: must be a number"),
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
        (
            ["train", "ngram", "--text", "TEXT", "-o", "OUT", "--coefficients", ".1,.2"],
            "0.1,0.2: only for interpolated",
        ),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--order", "2", "--prune", "0,0,1"], "0,0,1: 3 thresholds"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--smoothing", "whole-prefix", "--order", "5"], "--order 5"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--gap", "-1"], "gap -1"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--entropy-prune", "2"], "--entropy-prune 2.0"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--prune", "1,0"], "start at 0"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--prune", "0,x"], "--prune"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--unknown", "guess"], "characters"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--unknown-words", "3"], "--unknown-words"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--unknown", "none", "--unknown-words", "99"], "uniform"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--vocab", "BI", "--min-count", "2"], "--min-count"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--vocab", "NOWHERE"], "no such directory"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--min-count", "0"], "--min-count"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--field", "2"], "field"),
        (["train", "ngram", "--text", "TEXT", "-o", "OUT", "--dev-text", "NOWHERE"], "no such file"),
        (["train", "class-ngram", "--text", "TEXT", "-o", "OUT"], "--classes"),
        (["train", "class-ngram", "--text", "TEXT", "-o", "OUT", "--classes", "TEXT"], "TAB"),
        (["train", "cache", "--text", "TEXT", "-o", "OUT", "--decay", "2"], "decay"),
        (["evaluate", "BI"], "--text"),
        (["evaluate", "--text", "TEXT"], "DIR"),
        (["evaluate", "NOWHERE", "--text", "TEXT"], "no such directory"),
        (["evaluate", "TEXT", "--text", "TEXT"], "is a file, not a model directory; convert an ARPA file"),
        (["evaluate", "BI", "--text", "BI"], "is a directory"),
        (["mix", "BI", "TRI", "-o", "OUT"], "--dev-text"),
        (["mix", "BI", "TRI", "-o", "OUT", "--dev-text", "TEXT", "--equal-weights"], "either"),
        (["mix", "BI", "OTHER", "-o", "OUT", "--dev-text", "TEXT"], "different vocabularies"),
        (["mix", "BI", "OTHER", "-o", "OUT", "--equal-weights"], "other have different vocabularies"),
        (["mix", "BI", "TRI", "-o", "OUT", "--equal-weights", "--field", "2"], "--field 2"),
        (["score", "BI", "--raw", "--text", "TEXT"], "stupid-backoff"),
        (["score", "BOTH", "--raw", "--text", "TEXT"], "stupid-backoff"),
        (["score", "BI", "TEXT"], "if it is the text, use --text"),
        (["score", "BI", "BI", "--text", "TEXT"], "named twice"),
        (["score", "BI", "NOWHERE", "--text", "TEXT"], "no such directory"),
        (["score", "BI", "TRI", "--raw", "--text", "TEXT"], "not probabilities"),
        (["score", "BI", "--raw", "--picture", "OUT.svg", "--text", "TEXT"], "not probabilities"),
        (["score", "BI", "TRI", "--words", "--log10", "--text", "TEXT"], "bits"),
        (["score", "BI", "--picture", "OUT", "--text", "TEXT"], "end the name in .svg or .png"),
        (["score", "BI", "--picture", "OUT.svg", "--text", "TEXT"], "a figure holds at most 60"),
        (["score", "BI", "--picture", "OUT.svg"], "<stdin>: empty"),
        (["sample", "BI", "-n", "0"], "-n 0: must be at least 1"),
        (["sample", "BI", "--seed", "-1"], "--seed"),
        (["sample", "BI", "--temperature", "0"], "temperature"),
        (["sample", "BI", "--top-k", "0"], "top_k"),
        (["sample", "BI", "--top-p", "0"], "top_p"),
        (["sample", "BI", "--top-p", "1.5"], "top_p"),
        (["sample", "BI", "--prefix", "two\nlines"], "line break"),
        (["sample", "BI", "--prefix", "bad\udcff"], "UTF-8"),
        (["sample", "BI", "--prefix", "the cat", "--max-words", "2"], "a prefix of 2 words"),
        (["next", "BI", "two\nlines"], "line break"),
        (["translate", "BI", "--precision"], "--precision needs a value (see dragoman translate --help)"),
        (["train", "translator", "--precision"], "--precision needs a value (see dragoman train translator --help)"),
        (["train", "recurrent", "--precision", "int8", "--text", "TEXT", "-o", "x"], "point; dragoman quantize rounds"),
        (["next", "BI", "bad\udcff"], "UTF-8"),
        (["export", "BI"], "--arpa"),
        (["export", "BOTH", "--arpa", "OUT"], "mixture"),
        (["import", "NOWHERE", "-o", "OUT"], "nowhere"),
        (["import", "TEXT", "-o", "OUT"], "train.txt: not an ARPA file"),
        (["export", "BI", "--arpa", "BI"], "is not a file"),
    ],
)
def test_bad_usage(run, shared, tmp_path, arguments, message):
    places = {name.upper(): shared / name for name in ("bi", "tri", "both", "other")}
    places |= {"TEXT": shared / "train.txt", "OUT": tmp_path / "out", "NOWHERE": tmp_path / "nowhere"}
    places |= {"OUT.svg": tmp_path / "out.svg"}
    outcome = run(*[str(places.get(word, word)) for word in arguments])
    assert (outcome.code, outcome.out) == (2, ""), outcome.err
    assert is_one_line(outcome.err) and message in outcome.err, outcome.err
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"fine\nnot \xff fine\n", ":2: not UTF-8 (byte 0xff at column 5); convert it"),
        (b"fine\n\na\0b\n", ":3: NUL byte at column 2"),
        (b"", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"fine\nthe <s> here\n", ":2: <s> is reserved"),
        (b"fine\nthe </s>\n", ":2: </s> is reserved"),
        (b"\n\n\n", "bad.txt: the text has no words"),
        (b"\x1f\x8b\x08", "this is gzip data; give it a name that ends in .gz"),
    ],
)
def test_bad_training_text(run, tmp_path, content, message):
    text = tmp_path / "bad.txt"
    text.write_bytes(content)
    outcome = run("train", "ngram", "--text", text, "-o", tmp_path / "out")
    assert outcome.code == 2
    assert is_one_line(outcome.err) and message in outcome.err, outcome.err
    assert written(tmp_path) == [text]


def test_reserved_symbols_raise_with_a_given_vocabulary(run, shared, tmp_path):
    lent = ("--vocab", shared / "bi", "-o", tmp_path / "out")
    outcome = run("train", "ngram", "--text", "-", *lent, stdin="fine\nthe <s> here\n")
    assert outcome.code == 2 and is_one_line(outcome.err) and ":2: <s> is reserved" in outcome.err, outcome.err


def test_dev_text_without_words(run, shared, tmp_path):
    train = ("train", "ngram", "--text", shared / "train.txt", "--order", 1)
    for command in (("mix", shared / "bi", shared / "tri"), train):
        outcome = run(*command, "--dev-text", "-", "-o", tmp_path / "out", stdin="\n\n")
        assert outcome.code == 2 and is_one_line(outcome.err) and "<stdin>: the dev text has no words" in outcome.err
    assert written(tmp_path) == []


def test_whole_prefix_needs_no_order(run, shared, tmp_path):
    train = ("train", "ngram", "--text", shared / "train.txt", "--smoothing", "whole-prefix")
    assert run(*train, "-o", tmp_path / "m").code == 0


@pytest.mark.parametrize("stdin", [b"\xff\n", b"a\0\n", b"\x1f\x8b\x08"])
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
        pytest.param(edit("config.yaml", b"format: 2", b"format: 99"), id="format of the future"),
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
    remove_digests(model)
    damage(model if whose == "alone" else model / "member-1")
    outcome = run("score", model, stdin="the cat .\n")
    assert (outcome.code, outcome.out) == (2, ""), outcome.err
    assert is_one_line(outcome.err) and str(model) in outcome.err, outcome.err


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda place: shutil.rmtree(place / "member-2"), "member-2: missing; this model directory is broken"),
        (edit("member-2/config.yaml", b"order: 3", b"ordre: 3"), "unknown key 'ordre'; did you mean 'order'?"),
        (edit("member-2/config.yaml", b"order: 3", b"order: 3\ncolour: red"), "unknown key 'colour'"),
        (write("config.yaml", b"kind: mixture\nunknown: {kind: uni"), "broken or incomplete; train the model"),
        (lambda place: (place / "vocab.tsv").unlink(), "vocab.tsv: missing; this model directory is broken"),
    ],
)
def test_broken_files_are_named(run, shared, tmp_path, damage, message):
    model = tmp_path / "m"
    shutil.copytree(shared / "both", model)
    remove_digests(model)
    damage(model)
    outcome = run("score", model, stdin="the cat .\n")
    assert outcome.code == 2 and is_one_line(outcome.err) and message in outcome.err, outcome.err


def test_models_that_cannot_be_mixed_are_named(run, shared, tmp_path):
    lent = ("--vocab", shared / "bi", "--unknown", "none", "--order", 1, "--smoothing", "witten-bell")
    assert run("train", "ngram", "--text", shared / "train.txt", *lent, "-o", tmp_path / "m").code == 0
    outcome = run("mix", shared / "bi", tmp_path / "m", "--equal-weights", "-o", tmp_path / "out")
    assert outcome.code == 2 and is_one_line(outcome.err)
    assert f"{shared / 'bi'} and {tmp_path / 'm'} have different unknown-word models" in outcome.err
    assert "(uniform over 10,000,000 words, and none)" in outcome.err


def test_full_disk_while_writing_arrays(run, shared, tmp_path, monkeypatch):
    """NumPy's own message has no reason in it."""

    def fail(*_):
        raise OSError("1000 requested and 0 written")

    monkeypatch.setattr("dragoman.io.storage.write_arrays", fail)
    outcome = run("train", "ngram", "--order", 1, "--text", shared / "train.txt", "-o", tmp_path / "m")
    assert outcome.code == 1 and written(tmp_path) == []
    assert "(1000 requested and 0 written; is the disk full?); nothing was changed" in outcome.err


@pytest.mark.parametrize("verb", ["train", "mix", "import"])
def test_existing_directories_are_not_replaced(run, shared, tmp_path, verb):
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
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "out of memory"),
        (OSError(28, "No space left on device", "some/file"), 1, "some/file: No space left on device"),
        (ZeroDivisionError("two\nlines"), 1, "internal error: ZeroDivisionError: two lines (set DRAGOMAN_DEBUG=1"),
        (dragoman.DragomanError("broke"), 1, "broke"),
        (dragoman.DataError("bad"), 2, "bad"),
    ],
)
def test_errors_are_one_line(run, shared, monkeypatch, error, code, message):
    monkeypatch.delenv("DRAGOMAN_DEBUG", raising=False)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr("dragoman.models.loading.load", fail)
    outcome = run("sample", shared / "bi")
    assert outcome.code == code
    assert is_one_line(outcome.err) and message in outcome.err


def test_debug_variable_shows_the_traceback(run, shared, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_DEBUG", "1")
    monkeypatch.setattr("dragoman.models.loading.load", lambda path: 1 / 0)
    outcome = run("sample", shared / "bi")
    assert outcome.code == 1 and "Traceback" in outcome.err


def test_sigterm_removes_partial_output(shared, tmp_path):
    """A stop while the model is being written: 143, one line, and no half-written directory."""
    script = (
        "import sys, time; from dragoman.models import base; from dragoman.cli.main import main\n"
        "def slow(*_):\n    print('writing', flush=True); time.sleep(60)\n"
        "base.storage.write_arrays = slow\n"
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
    assert written(tmp_path) == []


def test_closed_pipe_prints_nothing():
    reader, writer = os.pipe()
    os.close(reader)
    done = in_a_process(COMMAND, "--version", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_is_one_line():
    with Path("/dev/full").open("w") as full:
        done = in_a_process(COMMAND, "--version", stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, "dragoman: No space left on device\n")
