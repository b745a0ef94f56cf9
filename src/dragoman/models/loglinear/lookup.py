"""From 64-bit keys to the numbers of features: a table with open addressing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel

EMPTY = -1


@dataclass(frozen=True)
class Lookup:
    """The place of each key in an array of keys. Binary search would miss the processor's cache at every step."""

    keys: NDArray[np.uint64]  # (features,)
    slots: NDArray[np.int32]  # (a power of two,) places in `keys`, or EMPTY

    @classmethod
    def of(cls, keys: NDArray[np.uint64]) -> Self:
        size = 1 << max(1, 2 * len(keys)).bit_length()  # at most half full, so that searches are short and end
        slots = np.full(size, EMPTY, np.int32)
        if not _fill(keys, slots):
            raise ValueError("a feature has two numbers")
        return cls(keys, slots)

    def find(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The number of each key, or EMPTY."""
        found = np.empty(len(keys), np.int32)
        _find(self.keys, self.slots, keys, found)
        return found


@kernel
def _slot(keys: Any, slots: Any, key: Any) -> Any:
    """Where a key is, or the empty slot where it would go."""
    slot = np.int64(key & np.uint64(slots.size - 1))
    while slots[slot] != EMPTY and keys[slots[slot]] != key:
        slot = (slot + 1) & (slots.size - 1)
    return slot


@kernel
def _fill(keys: Any, slots: Any) -> bool:
    for number in range(keys.size):
        slot = _slot(keys, slots, keys[number])
        if slots[slot] != EMPTY:
            return False
        slots[slot] = number
    return True


@kernel
def _find(keys: Any, slots: Any, wanted: Any, found: Any) -> None:
    for place in range(wanted.size):
        found[place] = slots[_slot(keys, slots, wanted[place])]
