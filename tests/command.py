"""Running `dragoman` in tests: fixtures, and small models to run it on."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from dragoman.cli import main as command_line

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


def written(directory: Path) -> list[Path]:
    """Return what a directory contains, except lock files."""
    return sorted(path for path in directory.iterdir() if path.suffix != ".lock")


class Outcome:
    """Exit code and output of a command."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.lines = out.splitlines()


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process, with `stdin` as standard input."""

    def call(*arguments, stdin=""):
        raw = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(raw))))
        monkeypatch.setattr(sys, "argv", ["dragoman", *map(str, arguments)])
        code = command_line.main()
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def good(run):
    """Like `run`, for commands that must succeed."""

    def call(*arguments, stdin=""):
        outcome = run(*arguments, stdin=stdin)
        assert outcome.code == 0, outcome.err
        return outcome

    return call


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    """Texts and a few models: `bi` and `tri` over one vocabulary, `other` over another, `stupid`, and `both` mixed."""
    place = tmp_path_factory.mktemp("shared")
    (place / "train.txt").write_text(TRAIN)
    (place / "dev.txt").write_text(DEV)
    corpus = dragoman.Corpus.from_sentences(TRAIN.splitlines())
    bi = dragoman.NgramModel.train(corpus, order=2, smoothing="witten-bell")
    tri = dragoman.NgramModel.train(corpus, order=3, smoothing="witten-bell")
    bi.save(place / "bi")
    tri.save(place / "tri")
    dragoman.Mixture.uniform([bi, tri]).save(place / "both")
    dragoman.NgramModel.train(corpus, order=2, smoothing="stupid-backoff").save(place / "stupid")
    other_corpus = dragoman.Corpus.from_sentences(["quite another language"])
    dragoman.NgramModel.train(other_corpus, order=1, smoothing="witten-bell").save(place / "other")
    return place


def is_one_line(text: str) -> bool:
    return text.count("\n") == 1 and text.startswith("dragoman: ") and "Traceback" not in text


def in_a_process(script: str, *arguments, **options):
    """Run a script in a separate process, with buffered output."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, check=False, text=True, env=buffered, **options)


def modules_after(*commands) -> set[str]:
    """Return the modules that are imported after running these commands one after the other in one process."""
    script = (
        "import json, sys; from dragoman.cli.main import main\n"
        "codes = [main(command) for command in json.loads(sys.argv[1])]\n"
        "print('\\n'.join(sys.modules), file=sys.stderr); sys.exit(max(codes))"
    )
    every = json.dumps([list(map(str, command)) for command in commands])
    done = in_a_process(script, every, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines())
