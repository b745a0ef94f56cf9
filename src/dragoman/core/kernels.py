"""Loops compiled by numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop over arrays. It runs without Python's lock, and what was compiled is kept for the next time.

    Where nothing can be kept, because neither the package nor a home directory can be written to, it is compiled
    anew in each process.
    """
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)
