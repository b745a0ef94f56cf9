"""Splitting text into words and numbering them.

Lines end only at the byte `\\n`, words only at spaces and TABs, so no other character (U+2028, vertical tab, no-break
space) can shift the lines of a parallel text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import error_at_line
from dragoman.core.kernels import inline_kernel, kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.ranges import offsets_of

NEWLINE, RETURN, SPACE, TAB = 10, 13, 32, 9
OTHER_WHITESPACE = (b"\r", b"\v", b"\f")  # separators for bytes.split, but not for words
COMPILED_BYTES = 1 << 24  # texts from this size on are scanned by compiled code: smaller ones are not worth loading it
# Scripts written without spaces: Thai, Lao, Tibetan, Burmese, Khmer, Japanese kana, Chinese characters.
UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
CHUNK_BYTES = 1 << 21  # split at a time without compiled code


@dataclass(frozen=True)
class ScannedText:
    """The distinct words (types) of a text in order of first use, and each token as the index of its type."""

    types: list[str]
    counts: NDArray[np.int64]  # (types,)
    tokens: NDArray[np.int32]  # (tokens,) index of the type
    offsets: NDArray[np.int64]  # (lines + 1,) first token of each line

    def first_line_with(self, word: str) -> int:
        """Return the first line, counted from 1, that has `word`."""
        first = int(np.argmax(self.tokens == self.types.index(word)))
        return int(np.searchsorted(self.offsets, first, side="right"))


def scan(text: bytes, compiled: bool | None = None) -> ScannedText:
    """Split a text into lines and words, by compiled code or in Python (by default according to its size).

    >>> scan(b"the cat\\n\\nthe  dog\\r\\n").types
    ['the', 'cat', 'dog']
    >>> scan(b"the cat\\n\\nthe  dog\\r\\n").offsets.tolist()
    [0, 2, 2, 4]
    """
    if not (len(text) >= COMPILED_BYTES if compiled is None else compiled):
        return _concatenate(
            [_split_chunk(bytes(chunk)) for chunk in split_at_lines(text, len(text) // CHUNK_BYTES + 1)]
        )
    cores = len(split_range(0, len(text), min_size=1 << 18, per_core=1))
    return _concatenate(parallel_map(_scan_chunk, split_at_lines(text, cores)))


def split_at_lines(text: bytes, number: int) -> list[memoryview]:
    """Divide a text between lines into about `number` parts of similar size."""
    ends = [0]
    for start in (len(text) * i // number for i in range(1, number)):
        ends.append(max(ends[-1], text.find(b"\n", start) + 1))
    view = memoryview(text)
    return [view[a:b] for a, b in zip(ends, [*ends[1:], len(text)], strict=True) if b > a]


def _concatenate(chunks: Sequence[ScannedText]) -> ScannedText:
    """Join consecutive parts of a text, with one numbering of types."""
    if len(chunks) == 1:
        return chunks[0]
    index: dict[str, int] = {}
    for chunk in chunks:
        for word in chunk.types:
            index.setdefault(word, len(index))
    counts = np.zeros(len(index), np.int64)
    tokens, offsets, num_tokens = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)], 0
    for chunk in chunks:
        new_index = np.array([index[word] for word in chunk.types], np.int32)
        counts[new_index] += chunk.counts
        tokens.append(new_index[chunk.tokens])
        offsets.append(chunk.offsets[1:] + num_tokens)
        num_tokens += len(chunk.tokens)
    return ScannedText(list(index), counts, np.concatenate(tokens), np.concatenate(offsets))


def split_words(line: str) -> list[str]:
    """Split a line at spaces and TABs only. A trailing carriage return is ignored.

    >>> split_words(" no\\u00a0break \\t space")
    ['no\\xa0break', 'space']
    """
    return [word for word in line.rstrip("\r").replace("\t", " ").split(" ") if word]


def check_lines(lines: Iterable[str]) -> list[str]:
    """Return the lines, or raise an error that names the first one (from 1) with a line break or invalid characters."""
    lines = list(lines)
    for number, line in enumerate(lines, 1):
        if "\n" in line:
            raise error_at_line("sentences", number, "contains a line break; give one sentence per string")
        try:
            line.encode()
        except UnicodeEncodeError:
            problem = "contains an unpaired surrogate; remove or fix the character"
            raise error_at_line("sentences", number, problem) from None
    return lines


def _split_chunk(text: bytes) -> ScannedText:
    """Scan with Python's own functions."""
    text = text.removesuffix(b"\n")
    if any(separator in text for separator in OTHER_WHITESPACE):
        lines = [
            [word for word in line.removesuffix(b"\r").replace(b"\t", b" ").split(b" ") if word]
            for line in text.split(b"\n")
        ]
        words = [word for line in lines for word in line]
        offsets = offsets_of(np.fromiter(map(len, lines), np.int64, len(lines)))
    else:
        words, data = text.split(), np.frombuffer(text, np.uint8)
        is_blank = (data == SPACE) | (data == TAB) | (data == NEWLINE)
        starts = ~is_blank
        starts[1:] &= is_blank[:-1]
        offsets = np.concatenate([[0], np.cumsum(starts)[data == NEWLINE], [len(words)]])
    index: defaultdict[bytes, int] = defaultdict()
    index.default_factory = index.__len__  # a new word gets the next index
    tokens = np.fromiter(map(index.__getitem__, words), np.int32, len(words))
    types = [str(word, "utf-8") for word in index]
    return ScannedText(types, np.bincount(tokens, minlength=len(types)).astype(np.int64), tokens, offsets)


def _scan_chunk(text: memoryview) -> ScannedText:
    """Scan with compiled code: a hash table of the words, by open addressing."""
    data = np.frombuffer(text, np.uint8)
    max_tokens = data.size // 2 + 1  # memory is used only where it is written
    token_type = np.empty(max_tokens, np.int32)
    lines = int((data == NEWLINE).sum()) + int(data.size > 0 and data[-1] != NEWLINE)  # the last may have no break
    offsets = np.zeros(lines + 1, np.int64)
    starts, lengths = np.empty(max_tokens, np.int64), np.empty(max_tokens, np.int32)  # of each type
    counts, hashes = np.empty(max_tokens, np.int64), np.empty(max_tokens, np.uint64)
    slots = np.full(1 << 15, -1, np.int32)  # hash -> type
    byte = line = token = types = 0
    while byte < data.size:
        tables, done = (slots, starts, lengths, counts, hashes), (byte, line, token, types)
        byte, line, token, types = _assign_types(data, token_type, offsets, tables, done)
        if byte < data.size:
            slots = rehash(hashes[:types], 4 * slots.size)
    offsets[-1] = token
    ranges = zip(starts[:types].tolist(), lengths[:types].tolist(), strict=True)
    return ScannedText([str(text[a : a + n], "utf-8") for a, n in ranges], counts[:types], token_type[:token], offsets)


@inline_kernel
def ends_word(data: Any, i: Any) -> bool:
    """A word ends at a blank, at the end of the line, and before a `\\r` that closes the line."""
    byte = data[i]
    if byte > SPACE:
        return False
    if byte == RETURN:
        following = np.uint64(i) + np.uint64(1)
        return bool(following == data.size or data[following] == NEWLINE)
    return bool(byte == SPACE or byte == NEWLINE or byte == TAB)  # noqa: SIM109 - faster than `in`


@kernel
def _assign_types(data: Any, token_type: Any, offsets: Any, tables: Any, done: Any) -> tuple[int, int, int, int]:
    """Number the words after those that are done, until the text ends or the hash table is half full."""
    slots, starts, lengths, counts, hashes = tables
    i, line, token, types = done
    mask = np.uint64(slots.size - 1)
    while i < data.size and 2 * types < slots.size:
        if ends_word(data, i):
            if data[i] == NEWLINE:
                line += 1
                offsets[line] = token
            i += 1
            continue
        start = i
        key = np.uint64(14695981039346656037)  # FNV-1a
        while i < data.size and not ends_word(data, i):
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
    """Return whether the word at byte `a` is the type `other`."""
    if key != hashes[other] or length != lengths[other]:
        return False
    b = starts[other]
    for k in range(length):
        if data[a + k] != data[b + k]:
            return False
    return True


@kernel
def rehash(hashes: Any, size: int) -> Any:
    """Return a hash table of `size` slots for the types with these hashes."""
    slots = np.full(size, -1, np.int32)
    mask = np.uint64(size - 1)
    for index in range(hashes.size):
        slot = hashes[index] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = index
    return slots
