"""How whoever asked for a ladder hears of it while it is made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any


def _silent(message: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class Callbacks:
    """By default nothing is said; the command line speaks on standard error."""

    info: Callable[[str], None] = _silent  # one line
    status: Callable[[str], AbstractContextManager[Any]] = nullcontext  # a sign of life while something takes long
    collapse_warnings: Callable[[], AbstractContextManager[Any]] = nullcontext  # warnings that several share, said once
    training_progress: Callable[[], AbstractContextManager[Any]] = nullcontext  # something for `fit` to report to


SILENT = Callbacks()
