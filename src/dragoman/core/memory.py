"""Amounts of memory, and how much the C library (glibc) and oneDNN keep."""

from __future__ import annotations

import ctypes
import os
import re
from contextlib import suppress

from dragoman.core.errors import DataError

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


def parse_bytes(text: str, option: str) -> int:
    """Return the number of bytes of an amount such as 2G, 500M or 1.5g, for an option of this name.

    >>> parse_bytes("2G", "--memory"), parse_bytes("1.5k", "--memory")
    (2147483648, 1536)
    """
    match = re.fullmatch(r"([0-9]{1,6}(?:[.][0-9]{1,3})?)([KMGT])(?:I?B)?", text.strip().upper())
    if match is None:
        raise DataError(f"{option} {text}: give an amount of memory such as 2G or 500M")
    return int(float(match[1]) * 1024 ** (1 + "KMGT".index(match[2])))


def format_amount(number: int) -> str:
    """Return a number of bytes as an amount that `parse_bytes` reads, rounded up to megabytes.

    >>> format_amount(64 << 20), format_amount((64 << 20) + 1)
    ('64M', '65M')
    """
    return f"{-(-number // (1 << 20))}M"


def format_bytes(number: float) -> str:
    """Return a number of bytes in a readable unit.

    >>> format_bytes(2 << 30), format_bytes(1.5e6), format_bytes(10)
    ('2.1 GB', '1.5 MB', '10 bytes')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f} bytes"


def physical_memory() -> int:
    """Return the bytes of memory of the machine; 0 if the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0
