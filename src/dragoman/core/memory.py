"""How much memory the C library (glibc) and oneDNN keep."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)
KEPT_BYTES = 1 << 30
MAX_KEPT_BYTES = 32 << 20  # of one block, before glibc 2.35
KERNEL_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")  # of oneDNN, and of torch
KERNELS = "256"


def limit_kernel_caches() -> None:
    """Limit how many matrix products of different shapes oneDNN keeps compiled, unless the user has set limits.

    Each takes about half a megabyte, and the default is 1,024. Must be called before the first product.
    """
    for name in KERNEL_CACHES:
        os.environ.setdefault(name, KERNELS)


def keep_freed_memory() -> None:
    """Keep freed memory for the next tensors instead of returning it at once, from now on in this process.

    The system must clear every page that it hands out. In training, which frees its largest tensors after each update,
    this takes up to a fifth of the time. `release_freed_memory` still returns what is free at that moment.
    """
    with suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        # Each setting ends glibc's own adjustment of both, so the second must not be set if the first has failed.
        if library.mallopt(MMAP_THRESHOLD, KEPT_BYTES) or library.mallopt(MMAP_THRESHOLD, MAX_KEPT_BYTES):
            library.mallopt(TRIM_THRESHOLD, KEPT_BYTES)


def release_freed_memory() -> None:
    """Return freed memory to the operating system."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
