"""Work shared out among the processor's cores; kernels and NumPy's sorts release the lock while they run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


_limit: ContextVar[int | None] = ContextVar("_limit", default=None)


def available_cores() -> int:
    """How many cores there are to use, or as many as `at_most` allows; by default, as many as OMP_NUM_THREADS says."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    told = os.environ.get("OMP_NUM_THREADS", "")
    return _limit.get() or min(there, int(told) if told.isdecimal() and int(told) else there)


@contextmanager
def limit_threads(threads: int | None) -> Iterator[None]:
    """Use this many threads and no more, here and in torch, until done."""
    import torch

    before, token = torch.get_num_threads(), _limit.set(threads)
    torch.set_num_threads(available_cores())
    try:
        yield
    finally:
        _limit.reset(token)
        torch.set_num_threads(before)


def parallel_map(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """`work` done on every part, several at a time; the results in order."""
    items = list(items)
    if len(items) < 2:
        return [function(part) for part in items]
    with ThreadPoolExecutor(available_cores()) as pool:
        return list(pool.map(function, items))


def parallel_stream(function: Callable[[T], R], items: Iterable[T], chunk_size: int) -> Iterator[R]:
    """`work` done on parts as they come, so many at a time: parts and results need not all fit in memory."""
    waiting = iter(items)
    while batch := list(islice(waiting, chunk_size)):
        yield from parallel_map(function, batch)


def split_range(start: int, stop: int, min_size: int = 4096, per_core: int = 4) -> list[tuple[int, int]]:
    """Cut first..last into `each` pieces for each core, fewer rather than much smaller than `smallest`."""
    pieces = max(1, min(per_core * available_cores(), (stop - start) // min_size))
    cuts = [start + (stop - start) * piece // pieces for piece in range(pieces + 1)]
    return list(zip(cuts[:-1], cuts[1:], strict=True))
