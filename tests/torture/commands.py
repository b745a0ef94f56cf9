"""Writing commands on small texts, and what they write."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from threading import Thread
from time import sleep

from dragoman.core.errors import DragomanError
from dragoman.io.files import RANDOM_PART
from dragoman.io.storage import CARD_FILE, CHECKPOINT_FILE, METRICS_FILE, map_arrays_with_metadata
from small_translators import ENGLISH, GERMAN

PROCESSOR_SECONDS, SECONDS = 60, 300  # limits of computing (SIGPROF), and of waiting (SIGALRM)
NETWORK = ("--embedding", "4", "--hidden", "4", "--threads", "1", "--batch-size", "30", "--max-updates", "3")
SAVED_OFTEN = ("--save-every", "1", "--report-every", "1", "--check-every", "2")
TEXT = ("--text", "train.en", "--dev-text", "dev.en", "-o", "out")
PAIRS = ("--src", "train.de", "--tgt", "train.en", "--dev-src", "dev.de", "--dev-tgt", "dev.en", "-o", "out")

# Commands that write `out`, or files of this name. They run in a directory with the files of `write_inputs`.
COMMANDS: Mapping[str, Sequence[str]] = {
    "train ngram": ("train", "ngram", *TEXT, "--order", "2"),
    "train class-ngram": ("train", "class-ngram", *TEXT, "--order", "2", "--classes", "brown:3"),
    "train cache": ("train", "cache", "--text", "train.en", "-o", "out"),
    "train log-linear": ("train", "log-linear", *TEXT, *NETWORK[4:], *SAVED_OFTEN),
    "train feed-forward": ("train", "feed-forward", *TEXT, "--order", "2", *NETWORK, *SAVED_OFTEN),
    "train recurrent": ("train", "recurrent", *TEXT, *NETWORK, *SAVED_OFTEN),
    "train recurrent, carried": (
        "train",
        "recurrent",
        *TEXT,
        "--carries",
        *NETWORK[:6],
        *SAVED_OFTEN,
        "--max-updates",
        "3",
    ),
    "train translator": ("train", "translator", *PAIRS, *NETWORK, *SAVED_OFTEN, "--average", "0.5"),
    "train translator, symmetry": ("train", "translator", *PAIRS, "--symmetry", "0.1", *NETWORK, *SAVED_OFTEN),
    "mix": ("mix", "first", "second", "--dev-text", "dev.en", "-o", "out"),
    "align": ("align", "--src", "train.de", "--tgt", "train.en", "-o", "out"),
    "import": ("import", "first.arpa", "-o", "out"),
    "export": ("export", "first", "--arpa", "out", "--force"),
    "lab": ("lab", "-o", "out", "--pairs", "20", "--dev", "5", "--test", "5"),
    "doctor --fix": ("doctor", "--src", "train.de", "--tgt", "train.en", "--fix", "-o", "out"),
    "split": ("split", "--src", "train.de", "--tgt", "train.en", "--dev", "3", "--test", "3", "-o", "out", "--force"),
    "cluster": ("cluster", "--text", "train.en", "-n", "3", "-o", "out"),
    "score --shards": ("score", "first", "--text", "train.en", "--shards", "2", "--shard", "1", "-o", "out"),
}
REPLACING = {"train ngram", "train recurrent", "train translator", "mix", "align", "import", "lab"}  # with --force


def write_inputs(directory: Path) -> None:
    """Write the texts and models that the commands read, and prepare this process to run commands in forks."""
    import_everything()
    _write_inputs(directory)


@cache
def import_everything() -> None:
    """Run each command once in this process: forked processes need not import, and are killed while they work."""
    with tempfile.TemporaryDirectory() as temporary:
        inputs = Path(temporary) / "inputs"
        _write_inputs(inputs)
        for arguments in COMMANDS.values():
            run_here(arguments, fresh_copy(inputs, inputs.with_name("copy")))
    gc.collect()
    gc.freeze()  # otherwise garbage collection copies the memory of this process into each fork


def run_here(arguments: Sequence[str], directory: Path) -> None:
    """Run a command in this process, without its messages."""
    from dragoman.cli.main import main

    with chdir(directory), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        main(list(arguments))


def _write_inputs(directory: Path) -> None:
    directory.mkdir(parents=True)
    texts = {"train.de": GERMAN, "train.en": ENGLISH, "dev.de": GERMAN[::7], "dev.en": ENGLISH[::7]}
    for name, lines in texts.items():
        (directory / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = ("--text", "train.en")
    for arguments in (
        ("train", "ngram", *text, "--order", "2", "-o", "first"),
        ("train", "ngram", *text, "--order", "1", "--vocab", "first", "-o", "second"),
        ("export", "first", "--arpa", "first.arpa"),
    ):
        run_here(arguments, directory)


@dataclass(frozen=True)
class Finished:
    """How a process ended."""

    code: int  # negative: minus the number of the signal
    error: str  # what it wrote to standard error

    @property
    def last_line(self) -> str:
        return self.error.strip().rpartition("\n")[2]


@dataclass(frozen=True)
class ForkedCommand:
    """A command that runs in a forked process, which has imported everything already."""

    process: int
    error_file: Path

    def wait(self) -> Finished:
        _, status = os.waitpid(self.process, 0)
        error = self.error_file.read_text(encoding="utf-8", errors="replace") if self.error_file.exists() else ""
        self.error_file.unlink(missing_ok=True)
        return Finished(os.waitstatus_to_exitcode(status), error)

    def kill(self) -> Finished:
        os.kill(self.process, signal.SIGKILL)
        return self.wait()


def start_forked(
    arguments: Sequence[str],
    directory: Path,
    prepare: Callable[[], object] = lambda: None,
    output: Path = Path(os.devnull),
    name: str = "command",
) -> ForkedCommand:
    """Start a command in a directory, after calling `prepare` in its process."""
    error_file = directory.parent / f"{directory.name}.{name}.err"
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return ForkedCommand(child, error_file)
    code = 99
    try:
        os.chdir(directory)
        os.dup2(os.open(error_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        from dragoman.cli.main import main

        prepare()
        code = main(list(arguments))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run_forked(
    arguments: Sequence[str],
    directory: Path,
    prepare: Callable[[], object] = lambda: None,
    output: Path = Path(os.devnull),
) -> Finished:
    """Run a command in a directory to its end. `output` is the file for its standard output."""
    return start_forked(arguments, directory, prepare, output).wait()


@dataclass
class TimeLimit:
    """Ends this process by a signal when it computes or waits for too long.

    Time in which the process is stopped does not count, so that a campaign can be paused.
    """

    seconds: int = 0  # since the last start

    def start(self) -> None:
        Thread(target=self._count, daemon=True).start()
        self.restart()

    def restart(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, PROCESSOR_SECONDS)
        self.seconds = 0

    def _count(self) -> None:
        while self.seconds < SECONDS:
            sleep(1)
            self.seconds += 1
        os.kill(os.getpid(), signal.SIGALRM)


def fresh_copy(source: Path, target: Path) -> Path:
    """Copy a directory to a place where nothing is left of an earlier copy."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    return target


def contents(directory: Path) -> dict[str, object]:
    """Return the contents of all files below a directory, without times and lock files."""
    return {
        str(path.relative_to(directory)): _content(path)
        for path in sorted(directory.rglob("*"))
        if path.suffix != ".lock" and not path.is_dir()
    }


def state_digest(directory: Path) -> str:
    """Return a digest of everything below a directory, without times and the random parts of temporary names.

    What lock files contain is for messages only.
    """
    state = []
    for path in sorted(directory.rglob("*")):
        try:
            content = "" if path.is_dir() or path.suffix == ".lock" else _content(path)
        except (ValueError, KeyError, OSError, DragomanError):  # incomplete
            content = path.read_bytes()
        name = re.sub(rf"-{RANDOM_PART}(?=/|$)", "-", str(path.relative_to(directory)))
        state.append(f"{name} {path.is_dir()} {content!r}")
    return hashlib.sha256("\0".join(sorted(state)).encode()).hexdigest()


def _content(path: Path) -> object:
    if path.name == METRICS_FILE:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [{name: value for name, value in record.items() if name != "seconds"} for record in records]
    if path.name == CHECKPOINT_FILE:
        arrays, metadata = map_arrays_with_metadata(path)
        progress = json.loads(metadata["progress"])
        del progress["seconds"]
        return {name: array.tobytes() for name, array in arrays.items()}, progress
    if path.name == CARD_FILE:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if "second" not in line]
    return path.read_bytes()
