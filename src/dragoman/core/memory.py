"""How the C library (glibc) gives memory back to the operating system."""

from __future__ import annotations

import ctypes
from contextlib import suppress

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)
KEPT_BYTES = 1 << 30


def release_freed_memory() -> None:
    """Return freed memory to the operating system."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def keep_freed_memory() -> None:
    """Keep freed memory for the next tensors instead of returning it at once, from now on in this process.

    The system must clear every page that it hands out. In training, which frees its largest tensors after each update,
    this takes up to a fifth of the time.
    """
    with suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(MMAP_THRESHOLD, KEPT_BYTES)
        library.mallopt(TRIM_THRESHOLD, KEPT_BYTES)
