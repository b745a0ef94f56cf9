"""Loops compiled by numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop over arrays. It runs without the interpreter lock, and the machine code is cached on disk.

    If neither the package directory nor the home directory is writable, it is compiled again in each process.
    """
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)
