"""From bytes to numbered words: the one place where text is split.

Lines end at the byte `\\n` alone and words at space and TAB alone, so that no other character (U+2028, vertical
tab, no-break space) can ever shift a line of a parallel text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range

NEWLINE, RETURN, SPACE, TAB = 10, 13, 32, 9


@dataclass(frozen=True)
class ScannedText:
    """A text as word types in order of first use, and each token as the number of its type."""

    types: list[str]
    counts: NDArray[np.int64]  # (types,)
    tokens: NDArray[np.int32]  # (tokens,) number of the type
    offsets: NDArray[np.int64]  # (lines + 1,) first token of each line

    def first_line_with(self, word: str) -> int:
        """The line, counted from 1, that first uses `word`."""
        first = int(np.argmax(self.tokens == self.types.index(word)))
        return int(np.searchsorted(self.offsets, first, side="right"))


def scan(text: bytes) -> ScannedText:
    """Split a text into lines and words.

    >>> scan(b"the cat\\n\\nthe  dog\\r\\n").types
    ['the', 'cat', 'dog']
    >>> scan(b"the cat\\n\\nthe  dog\\r\\n").offsets.tolist()
    [0, 2, 2, 4]
    """
    pieces = parallel_map(_scan_chunk, _split_at_lines(text))
    number: dict[str, int] = {}
    for piece in pieces:  # one numbering for all, still in order of first use
        number.update({word: len(number) + new for new, word in enumerate(w for w in piece.types if w not in number)})
    counts = np.zeros(len(number), np.int64)
    tokens, offsets, before = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)], 0
    for piece in pieces:
        renumber = np.array([number[word] for word in piece.types], np.int32)
        counts[renumber] += piece.counts
        tokens.append(renumber[piece.tokens] if len(pieces) > 1 else piece.tokens)
        offsets.append(piece.offsets[1:] + before)
        before += len(piece.tokens)
    return ScannedText(list(number), counts, np.concatenate(tokens), np.concatenate(offsets))


def _split_at_lines(text: bytes) -> list[memoryview]:
    """Cut a long text between lines, one piece for each core."""
    cuts = [0]
    for first, _ in split_range(0, len(text), min_size=1 << 18, per_core=1)[1:]:
        cuts.append(max(cuts[-1], text.find(b"\n", first) + 1))
    whole = memoryview(text)
    return [whole[a:b] for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True) if b > a]


def _scan_chunk(text: memoryview) -> ScannedText:
    data = np.frombuffer(text, np.uint8)
    most = data.size // 2 + 1  # tokens; memory is only taken as it is touched
    token_type = np.empty(most, np.int32)
    offsets = np.zeros(_count_lines(data) + 1, np.int64)
    starts, lengths = np.empty(most, np.int64), np.empty(most, np.int32)  # of each type
    counts, hashes = np.empty(most, np.int64), np.empty(most, np.uint64)
    slots = np.full(1 << 15, -1, np.int32)  # open addressing: hash -> type
    byte = line = token = types = 0
    while True:
        tables = slots, starts, lengths, counts, hashes
        byte, line, token, types = _assign_types(data, token_type, offsets, *tables, byte, line, token, types)
        if byte == data.size:
            break
        slots = rehash(hashes[:types], 4 * slots.size)
    offsets[-1] = token
    places = zip(starts[:types].tolist(), lengths[:types].tolist(), strict=True)
    return ScannedText([str(text[a : a + n], "utf-8") for a, n in places], counts[:types], token_type[:token], offsets)


@kernel
def _ends_word(data: Any, i: int) -> bool:
    """A word ends at a blank, at the end of the line, and before the one `\\r` that may close a line."""
    byte = data[i]
    if byte > SPACE:
        return False
    if byte == RETURN:
        return i + 1 == data.size or data[i + 1] == NEWLINE
    return bool(byte == SPACE or byte == NEWLINE or byte == TAB)  # noqa: SIM109 - as fast as it gets


def _count_lines(data: NDArray[np.uint8]) -> int:
    """Line breaks, and a last line that has none."""
    return int((data == NEWLINE).sum()) + int(data.size > 0 and data[-1] != NEWLINE)


@kernel
def _assign_types(
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
        while slots[slot] >= 0 and not _is_type(data, start, i - start, key, slots[slot], starts, lengths, hashes):
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] < 0:
            slots[slot] = types
            starts[types], lengths[types], counts[types], hashes[types] = start, i - start, 0, key
            types += 1
        counts[slots[slot]] += 1
        token_type[token] = slots[slot]
        token += 1
    return i, line, token, types


@kernel
def _is_type(data: Any, a: int, length: int, key: Any, other: int, starts: Any, lengths: Any, hashes: Any) -> bool:
    """Whether the word at byte `a` is the type `other`."""
    if key != hashes[other] or length != lengths[other]:
        return False
    b = starts[other]
    for k in range(length):
        if data[a + k] != data[b + k]:
            return False
    return True


@kernel
def rehash(hashes: Any, size: int) -> Any:
    slots = np.full(size, -1, np.int32)
    mask = np.uint64(size - 1)
    for number in range(hashes.size):
        slot = hashes[number] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number
    return slots
