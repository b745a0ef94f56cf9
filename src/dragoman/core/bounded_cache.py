"""A cache with a limit of its size in bytes, which forgets what was not used for the longest time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Values by their keys.

    >>> cache = BoundedCache[str, str](max_bytes=6, size_of=lambda key, value: len(value))
    >>> for key, value in (("a", "one"), ("b", "two"), ("a", "one"), ("c", "six")):
    ...     cache.add(key, value)
    >>> cache.get("a"), cache.get("b"), cache.get("c")
    ('one', None, 'six')
    """

    def __init__(self, max_bytes: int, size_of: Callable[[K, V], int]):
        """`size_of` returns about how many bytes a key and its value take."""
        self.max_bytes, self.size_of = max_bytes, size_of
        self._values = OrderedDict[K, tuple[V, int]]()
        self._bytes = 0

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None if it has none (any more)."""
        entry = self._values.get(key)
        if entry is None:
            return None
        self._values.move_to_end(key)
        return entry[0]

    def add(self, key: K, value: V) -> None:
        """Store a value, and forget others if there is no space for it."""
        if key in self._values:
            self._values.move_to_end(key)
            return
        size = self.size_of(key, value)
        self._values[key] = value, size
        self._bytes += size
        while self._bytes > self.max_bytes:
            _, (_, size) = self._values.popitem(last=False)
            self._bytes -= size
