"""What is said beside the results: on standard error, so that standard output holds results alone."""

from __future__ import annotations

import shlex
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any


def say(message: str) -> None:
    """One line for the person at the terminal."""
    print(message, file=sys.stderr)


def suggest(*words: str | Path) -> None:
    """The next command to try, ready to be pasted."""
    say("next: " + shlex.join(["dragoman", *map(str, words)]))


def working(message: str) -> AbstractContextManager[Any]:
    """A sign of life while something takes long; only on a terminal."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(message)
