"""Memory that is no longer needed, given back."""

from __future__ import annotations

import ctypes


def release_freed_memory() -> None:
    """Return what was freed in many small pieces to the system, where the C library can (glibc)."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)
