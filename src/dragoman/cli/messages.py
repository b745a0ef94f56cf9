"""What is said beside the results: on standard error, so that standard output holds results alone."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any


def say(message: str) -> None:
    """One line for the person at the terminal."""
    print(message, file=sys.stderr)


def suggest(*words: str | Path) -> None:
    """The next command to try, ready to be pasted."""
    say("next: " + shlex.join([_program(), *map(str, words)]))


def _program() -> str:
    """How to call this program again: by its name if that is on the path, else by its place."""
    if shutil.which("dragoman") or not sys.argv[0].endswith("dragoman"):
        return "dragoman"
    return os.path.relpath(sys.argv[0])


def working(message: str) -> AbstractContextManager[Any]:
    """A sign of life while something takes long; only on a terminal."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(message)
