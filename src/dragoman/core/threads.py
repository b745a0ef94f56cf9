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


def cores() -> int:
    """How many cores there are to use, or as many as `at_most` allows; by default, as many as OMP_NUM_THREADS says."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    told = os.environ.get("OMP_NUM_THREADS", "")
    return _limit.get() or min(there, int(told) if told.isdecimal() and int(told) else there)


@contextmanager
def at_most(threads: int | None) -> Iterator[None]:
    """Use this many threads and no more, here and in torch, until done."""
    import torch

    before, token = torch.get_num_threads(), _limit.set(threads)
    torch.set_num_threads(cores())
    try:
        yield
    finally:
        _limit.reset(token)
        torch.set_num_threads(before)


def share(work: Callable[[T], R], parts: Iterable[T]) -> list[R]:
    """`work` done on every part, several at a time; the results in order."""
    parts = list(parts)
    if len(parts) < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(work, parts))


def stream(work: Callable[[T], R], parts: Iterable[T], at_once: int) -> Iterator[R]:
    """`work` done on parts as they come, so many at a time: parts and results need not all fit in memory."""
    waiting = iter(parts)
    while batch := list(islice(waiting, at_once)):
        yield from share(work, batch)


def spans(first: int, last: int, smallest: int = 4096, each: int = 4) -> list[tuple[int, int]]:
    """Cut first..last into `each` pieces for each core, fewer rather than much smaller than `smallest`."""
    pieces = max(1, min(each * cores(), (last - first) // smallest))
    cuts = [first + (last - first) * piece // pieces for piece in range(pieces + 1)]
    return list(zip(cuts[:-1], cuts[1:], strict=True))
