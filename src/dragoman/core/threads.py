"""Work on several cores by threads: numba kernels and NumPy's sorts release the interpreter lock while they run."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_limit: ContextVar[int | None] = ContextVar("_limit", default=None)


def available_cores() -> int:
    """Return the number of threads to use: the limit of `limit_threads`, else OMP_NUM_THREADS, else all cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    setting = os.environ.get("OMP_NUM_THREADS", "")
    return _limit.get() or min(cores, int(setting) if setting.isdecimal() and int(setting) else cores)


@contextmanager
def limit_threads(threads: int | None) -> Iterator[None]:
    """Use at most this many threads inside the `with` block, also in torch."""
    import torch

    previous, token = torch.get_num_threads(), _limit.set(threads)
    torch.set_num_threads(available_cores())
    try:
        yield
    finally:
        _limit.reset(token)
        torch.set_num_threads(previous)


def parallel_map(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Apply a function to all items, several at a time. The results are in the order of the items."""
    items = list(items)
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(available_cores()) as pool:
        return list(pool.map(function, items))


def parallel_stream(function: Callable[[T], R], items: Iterable[T], chunk_size: int) -> Iterator[R]:
    """Apply a function to items as they arrive, `chunk_size` at a time, so that not all need to fit in memory."""
    waiting = iter(items)
    while chunk := list(islice(waiting, chunk_size)):
        yield from parallel_map(function, chunk)


def parallel_pipeline(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Apply a function to items as they arrive, while the caller works on the results, which come in their order."""
    cores, waiting = available_cores(), deque[Future[R]]()
    with ThreadPoolExecutor(cores) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > cores:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def split_range(start: int, stop: int, min_size: int = 4096, per_core: int = 4) -> list[tuple[int, int]]:
    """Split start..stop into `per_core` ranges for each core, or fewer if they would be smaller than `min_size`."""
    if stop - start < 2 * min_size:
        return [(start, stop)]
    parts = min(per_core * available_cores(), (stop - start) // min_size)
    bounds = [start + (stop - start) * part // parts for part in range(parts + 1)]
    return list(zip(bounds[:-1], bounds[1:], strict=True))
