"""From bytes to numbered words: the one place where text is split.

Lines end at the byte `\\n` alone and words at space and TAB alone, so that no other character (U+2028, vertical
tab, no-break space) can ever shift a line of a parallel text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

NEWLINE, RETURN, SPACE, TAB = 10, 13, 32, 9


@dataclass(frozen=True)
class Scan:
    """A text as word types in order of first use, and each token as the number of its type."""

    types: list[str]
    counts: NDArray[np.int64]  # (types,)
    tokens: NDArray[np.int32]  # (tokens,) number of the type
    offsets: NDArray[np.int64]  # (lines + 1,) first token of each line

    def line_of(self, word: str) -> int:
        """The line, counted from 1, that first uses `word`."""
        first = int(np.argmax(self.tokens == self.types.index(word)))
        return int(np.searchsorted(self.offsets, first, side="right"))


def scan(text: bytes) -> Scan:
    """Split a text into lines and words.

    >>> scan(b"the cat\\n\\nthe  dog\\r\\n").types
    ['the', 'cat', 'dog']
    >>> scan(b"the cat\\n\\nthe  dog\\r\\n").offsets.tolist()
    [0, 2, 2, 4]
    """
    data = np.frombuffer(text, np.uint8)
    tokens, lines = _count(data)
    token_type = np.empty(tokens, np.int32)
    offsets = np.zeros(lines + 1, np.int64)
    starts, lengths = np.empty(tokens, np.int64), np.empty(tokens, np.int32)  # of each type; touched as needed
    counts, hashes = np.empty(tokens, np.int64), np.empty(tokens, np.uint64)
    slots = np.full(1 << 15, -1, np.int32)  # open addressing: hash -> type
    place = (0, 0, 0, 0)  # byte, line, token, types
    while place[0] < data.size:
        place = _number(data, token_type, offsets, slots, starts, lengths, counts, hashes, *place)
        slots = _rehash(hashes[: place[3]], 4 * slots.size)
    offsets[-1] = tokens
    types = [
        text[a : a + n].decode() for a, n in zip(starts[: place[3]].tolist(), lengths[: place[3]].tolist(), strict=True)
    ]
    return Scan(types, counts[: place[3]].copy(), token_type, offsets)


@njit(cache=True, nogil=True)
def _ends_word(data: Any, i: int) -> bool:
    """A word ends at a blank, at the end of the line, and before the one `\\r` that may close a line."""
    byte = data[i]
    if byte > SPACE:
        return False
    if byte == RETURN:
        return i + 1 == data.size or data[i + 1] == NEWLINE
    return bool(byte == SPACE or byte == NEWLINE or byte == TAB)


@njit(cache=True, nogil=True)
def _count(data: Any) -> tuple[int, int]:
    tokens = lines = 0
    inside = False
    for i in range(data.size):
        ends = _ends_word(data, i)
        tokens += (not ends) and (not inside)
        inside = not ends
        lines += data[i] == NEWLINE
    if data.size and data[-1] != NEWLINE:
        lines += 1
    return tokens, lines


@njit(cache=True, nogil=True)
def _number(
    data: Any,
    token_type: Any,
    offsets: Any,
    slots: Any,
    starts: Any,
    lengths: Any,
    counts: Any,
    hashes: Any,
    i: int,
    line: int,
    token: int,
    types: int,
) -> tuple[int, int, int, int]:
    """Number the words from byte `i` on, until the text ends or the hash table is half full."""
    mask = np.uint64(slots.size - 1)
    while i < data.size and 2 * types < slots.size:
        if _ends_word(data, i):
            if data[i] == NEWLINE:
                line += 1
                offsets[line] = token
            i += 1
            continue
        start = i
        key = np.uint64(14695981039346656037)  # FNV-1a
        while i < data.size and not _ends_word(data, i):
            key = (key ^ np.uint64(data[i])) * np.uint64(1099511628211)
            i += 1
        key ^= key >> np.uint64(32)
        slot = key & mask
        while slots[slot] >= 0 and not _same(data, start, i - start, key, slots[slot], starts, lengths, hashes):
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] < 0:
            slots[slot] = types
            starts[types], lengths[types], counts[types], hashes[types] = start, i - start, 0, key
            types += 1
        counts[slots[slot]] += 1
        token_type[token] = slots[slot]
        token += 1
    return i, line, token, types


@njit(cache=True, nogil=True)
def _same(data: Any, a: int, length: int, key: Any, other: int, starts: Any, lengths: Any, hashes: Any) -> bool:
    """Whether the word at byte `a` is the type `other`."""
    if key != hashes[other] or length != lengths[other]:
        return False
    b = starts[other]
    for k in range(length):
        if data[a + k] != data[b + k]:
            return False
    return True


@njit(cache=True, nogil=True)
def _rehash(hashes: Any, size: int) -> Any:
    slots = np.full(size, -1, np.int32)
    mask = np.uint64(size - 1)
    for number in range(hashes.size):
        slot = hashes[number] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number
    return slots
