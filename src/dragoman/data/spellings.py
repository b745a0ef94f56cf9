"""Words as one array of bytes with a hash table, so that a million of them need no Python strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import inline_kernel, kernel
from dragoman.data.ranges import offsets_of

TAB, NEWLINE, DIGIT_0 = 9, 10, 48
MAX_DIGITS = 18  # of a count
PADDING = b"\n" * 8
EMPTY = -1  # a slot without a word
SEED = 0x9E3779B97F4A7C15  # of hashes
# Kernels index by unsigned numbers: for signed ones, numba checks whether they count from the end of an array.
ONE, EIGHT = np.uint64(1), np.uint64(8)


class Spellings(NamedTuple):
    """Distinct words, and a hash table to find them by open addressing."""

    data: NDArray[np.uint8]  # the words one after the other, and padding
    begin: NDArray[np.int64]  # (words + 1,) the first byte of each word
    slots: NDArray[np.int32]  # (slots, 2) a word, and half of its hash; the number of slots is a power of two
    parts: NDArray[np.uint64]  # the `eight_bytes` of the data

    @classmethod
    def from_words(cls, words: Sequence[bytes]) -> Spellings:
        """Build from words, which must be distinct."""
        return cls._with_slots(padded(b"".join(words)), offsets_of(np.array([*map(len, words)])))[0]

    @classmethod
    def _with_slots(cls, data: NDArray[np.uint8], begin: NDArray[np.int64]) -> tuple[Spellings, int]:
        """Return the spellings, and the first word that repeats another one, or -1."""
        slots, parts = np.full((1 << (2 * len(begin)).bit_length(), 2), EMPTY, np.int32), eight_bytes(data)
        repeated = _fill_slots(parts, begin, slots)
        return cls(data, begin, slots, parts), repeated

    @classmethod
    def parse(cls, content: bytes) -> tuple[Spellings, NDArray[np.int64]] | None:
        """Return the words and counts of lines `word TAB count`, or None if a line is damaged or repeats a word."""
        text = np.frombuffer(content, np.uint8)
        lines = content.count(b"\n") + (not content.endswith(b"\n"))
        data, begin = np.empty(text.size, np.uint8), np.zeros(lines + 1, np.int64)
        counts = np.zeros(lines, np.int64)
        if not _parse(text, data, begin, counts):
            return None
        spellings, repeated = cls._with_slots(padded(data[: begin[-1]]), begin)
        return (spellings, counts) if repeated < 0 else None

    def for_kernels(self) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int32]]:
        """Return the arrays that `find_slot` reads."""
        return self.parts, self.begin, self.slots

    def strings(self) -> tuple[str, ...]:
        """Return all words as strings."""
        text, ends = self.data[: self.begin[-1]].tobytes(), self.begin.tolist()
        if text.isascii():
            characters = text.decode()
            return tuple(characters[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True))
        return tuple(str(text[a:b], "utf-8") for a, b in zip(ends[:-1], ends[1:], strict=True))

    def lengths(self) -> NDArray[np.int64]:
        """Return the number of characters of each word: its bytes that do not continue a character."""
        starts = np.concatenate([[0], np.cumsum((self.data & 0xC0) != 0x80)])  # (bytes + 1,)
        return np.diff(starts[self.begin])


def padded(text: bytes | memoryview | NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return bytes with eight line breaks after them, so that eight bytes can be read from any of their positions."""
    data = bytearray(text)  # a call for a single line spends less time here than with arrays
    data += PADDING
    return np.frombuffer(data, np.uint8)


def eight_bytes(data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return the eight bytes from each position on as one number, the first byte being the lowest.

    This is what reading eight bytes means on all processors that numba supports.
    """
    return np.ndarray((data.size - 7,), np.uint64, data, strides=(1,))


@inline_kernel
def mix(key: Any, part: Any) -> Any:
    """Add eight bytes to a hash."""
    key = (key ^ part) * np.uint64(0xFF51AFD7ED558CCD)
    return key ^ (key >> np.uint64(32))


@inline_kernel
def low_bytes(number: Any) -> Any:
    """Return a mask of the lowest bytes of a number, at most seven."""
    return (ONE << (EIGHT * np.uint64(number))) - ONE


@inline_kernel
def hash_word(text: Any, first: Any, last: Any) -> Any:
    """Return the hash of a word of a text that is given by `eight_bytes`."""
    key, i, end = np.uint64(SEED), np.uint64(first), np.uint64(last)
    while end - i >= EIGHT:
        key = mix(key, text[i])
        i += EIGHT
    return mix(key, text[i] & low_bytes(end - i))


@inline_kernel
def likely_word(key: Any, slots: Any) -> int:
    """Return the first word whose stored half of the hash is that of `key`, or -1 if no word has the hash."""
    mask = np.uint64(slots.shape[0] - 1)
    slot, half = key & mask, np.int32(key >> np.uint64(33))
    while slots[slot, 0] >= 0 and slots[slot, 1] != half:
        slot = (slot + ONE) & mask
    return int(slots[slot, 0])


@inline_kernel
def is_word(text: Any, first: Any, last: Any, data: Any, begin: Any, word: int) -> bool:
    """Return whether a word of a text is this word of the spellings; text and data are given by `eight_bytes`."""
    i, end, start = np.uint64(first), np.uint64(last), np.uint64(begin[np.uint64(word)])
    if np.uint64(begin[np.uint64(word) + ONE]) - start != end - i:
        return False
    while end - i >= EIGHT:
        if text[i] != data[start]:
            return False
        i += EIGHT
        start += EIGHT
    return bool((text[i] ^ data[start]) & low_bytes(end - i) == 0)


@inline_kernel
def find_slot(text: Any, first: Any, last: Any, key: Any, data: Any, begin: Any, slots: Any) -> Any:
    """Return the slot of a word of a text, whose hash is `key`: empty if it is not known.

    The text and the data of the spellings are given by `eight_bytes`.
    """
    mask = np.uint64(slots.shape[0] - 1)
    slot, half = key & mask, np.int32(key >> np.uint64(33))
    while slots[slot, 0] >= 0:
        if slots[slot, 1] == half and is_word(text, first, last, data, begin, slots[slot, 0]):
            break
        slot = (slot + ONE) & mask
    return slot


@kernel
def _fill_slots(data: Any, begin: Any, slots: Any) -> int:
    """Enter the words; return the first that repeats another one, or -1."""
    for word in range(begin.size - 1):
        key = hash_word(data, begin[word], begin[word + 1])
        slot = find_slot(data, begin[word], begin[word + 1], key, data, begin, slots)
        if slots[slot, 0] >= 0:
            return word
        slots[slot, 0], slots[slot, 1] = word, np.int32(key >> np.uint64(33))
    return -1


@kernel
def _parse(text: Any, data: Any, begin: Any, counts: Any) -> bool:
    """Split lines `word TAB count`; return whether all are valid."""
    i = used = 0
    for line in range(counts.size):
        while i < text.size and text[i] != TAB and text[i] != NEWLINE:
            data[used] = text[i]
            used += 1
            i += 1
        begin[line + 1] = used
        if i == text.size or text[i] == NEWLINE:
            return False
        first = i + 1
        i = first
        while i < text.size and text[i] != NEWLINE:
            digit = np.int64(text[i]) - DIGIT_0
            if not 0 <= digit <= 9 or i - first >= MAX_DIGITS:
                return False
            counts[line] = 10 * counts[line] + digit
            i += 1
        if i == first:
            return False
        i += 1
    return True
