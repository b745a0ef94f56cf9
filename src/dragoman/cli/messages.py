"""What is said beside the results: on standard error, so that standard output holds results alone."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus


def info(message: str) -> None:
    """One line for the person at the terminal."""
    print(message, file=sys.stderr)


def warn(message: str) -> None:
    """Print a warning on standard error."""
    info(f"warning: {message}")


def suggest_command(*words: str | Path, line: str | None = None) -> None:
    """The next command to try, ready to be pasted; `line` is what it is given to read."""
    info("next: " + shell_command([_program(), *map(str, words)], line))


def shell_command(command: Sequence[str], line: str | None = None) -> str:
    """A command as it is typed into a shell.

    >>> shell_command(["dragoman", "translate", "de-en"], "ein hund bellt .")
    "echo 'ein hund bellt .' | dragoman translate de-en"
    """
    return shlex.join(command) if line is None else f"echo {shlex.quote(line)} | {shlex.join(command)}"


def warn_if_mostly_unknown(corpus: Corpus, source: str) -> None:
    """Warn of a text most of whose words a model does not know."""
    unknown = len(corpus.unknown_positions)
    if 2 * unknown > corpus.num_words:
        found = f"{unknown:,} of {corpus.num_words:,} words are unknown"
        info(f"warning: {source}: {found}; wrong column, language or tokenisation?")


@contextmanager
def grouped_warnings() -> Iterator[None]:
    """Warnings that several orders share, said once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in group_messages(str(warning.message) for warning in caught):
        info(f"warning: {message}")


def group_messages(messages: Iterable[str]) -> list[str]:
    """Messages `order N: problem`, with those in a row that have the same problem made one.

    >>> group_messages(["order 1: odd", "order 3: too few", "order 4: too few", "order 5: too few"])
    ['order 1: odd', 'orders 3 to 5: too few']
    """
    result = []
    for problem, same in groupby(messages, key=lambda message: message.partition(": ")[2]):
        first, *others = (message.partition(": ")[0] for message in same)
        if others and first.startswith("order "):
            first = f"orders {first.removeprefix('order ')} to {others[-1].removeprefix('order ')}"
        result.append(f"{first}: {problem}" if problem else first)
    return result


def _program() -> str:
    """How to call this program again: by its name if that is on the path, else by its place."""
    if shutil.which("dragoman") or not sys.argv[0].endswith("dragoman"):
        return "dragoman"
    return os.path.relpath(sys.argv[0])


def status(message: str) -> AbstractContextManager[Any]:
    """A sign of life while something takes long; only on a terminal."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(message)
