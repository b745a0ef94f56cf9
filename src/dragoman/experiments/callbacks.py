"""How whoever asked for a ladder hears of it while it is made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any


def _silent(message: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class Voice:
    """By default nothing is said; the command line speaks on standard error."""

    say: Callable[[str], None] = _silent  # one line
    working: Callable[[str], AbstractContextManager[Any]] = nullcontext  # a sign of life while something takes long
    few_warnings: Callable[[], AbstractContextManager[Any]] = nullcontext  # warnings that several share, said once
    watching: Callable[[], AbstractContextManager[Any]] = nullcontext  # something for `fit` to report to


SILENT = Voice()
