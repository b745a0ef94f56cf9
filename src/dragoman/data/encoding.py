"""Text to the ids of a known vocabulary by compiled code, without Python strings for words that are known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import inline_kernel, kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.ranges import offsets_of
from dragoman.data.scanner import NEWLINE, ends_word, split_at_lines
from dragoman.data.spellings import (
    EIGHT,
    ONE,
    SEED,
    Spellings,
    eight_bytes,
    find_slot,
    hash_word,
    is_word,
    likely_word,
    mix,
    padded,
)
from dragoman.data.vocabulary import END, UNK

MIN_CHUNK_BYTES = 1 << 18
BLOCK_WORDS = 512  # looked up at a time
ONES = 0x0101010101010101  # one in each of eight bytes


class EncodedText(NamedTuple):
    """The arrays of a corpus."""

    ids: NDArray[np.int32]  # (words,)
    offsets: NDArray[np.int64]  # (lines + 1,)
    unknown_positions: NDArray[np.int64]  # (unknown words,)
    unknown_spelling_ids: NDArray[np.int32]  # (unknown words,)
    spellings: tuple[str, ...]


class _Chunk(NamedTuple):
    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    unknown: NDArray[np.int64]  # (3, unknown words) their positions among the words, and their first and last bytes


def encode(text: bytes, spellings: Spellings) -> EncodedText:
    """Split a text into lines and words, and look the words up."""
    if len(text) < 2 * MIN_CHUNK_BYTES:  # a short text, often a single line: as few steps as possible
        ids, offsets, unknown = _encode_chunk(spellings, text)
        return EncodedText(ids, offsets, *_spell([text], [unknown], [0]))
    cores = len(split_range(0, len(text), min_size=MIN_CHUNK_BYTES, per_core=1))
    parts = split_at_lines(text, cores)
    chunks = parallel_map(partial(_encode_chunk, spellings), parts)
    starts = offsets_of(np.array([len(chunk.ids) for chunk in chunks]))
    ends = [chunk.offsets[1:] + start for chunk, start in zip(chunks, starts, strict=False)]
    unknown_words = _spell(parts, [chunk.unknown for chunk in chunks], starts.tolist())
    return EncodedText(
        np.concatenate([chunk.ids for chunk in chunks]),
        np.concatenate([np.zeros(1, np.int64), *ends]),
        *unknown_words,
    )


def _spell(
    parts: Sequence[bytes | memoryview], unknown: Sequence[NDArray[np.int64]], starts: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int32], tuple[str, ...]]:
    """Return the positions of the unknown words of all parts of a text, their spelling ids, and their spellings."""
    if not any(chunk.size for chunk in unknown):
        return np.zeros(0, np.int64), np.zeros(0, np.int32), ()
    index: dict[bytes, int] = {}
    words = [bytes(part[a:b]) for part, chunk in zip(parts, unknown, strict=True) for a, b in chunk[1:].T.tolist()]
    spelling_ids = np.array([index.setdefault(word, len(index)) for word in words], np.int32)
    positions = np.concatenate([chunk[0] + start for chunk, start in zip(unknown, starts, strict=False)])
    return positions, spelling_ids, tuple(str(word, "utf-8") for word in index)


def _encode_chunk(spellings: Spellings, text: bytes | memoryview) -> _Chunk:
    data = padded(text)
    max_words = len(text) // 2 + 1  # memory is used only where it is written
    ids, unknown = np.empty(max_words, np.int32), np.empty((3, max_words), np.int64)
    offsets = np.zeros(int(np.count_nonzero(data == NEWLINE)) + 2, np.int64)
    lines, words, num_unknown = _encode(
        data, eight_bytes(data), len(text), spellings.for_kernels(), ids, offsets, unknown
    )
    return _Chunk(ids[:words], offsets[: lines + 1], unknown[:, :num_unknown])


@kernel
def _encode(text: Any, parts: Any, size: int, known: Any, ids: Any, offsets: Any, unknown: Any) -> tuple[int, int, int]:
    """Look up the words of a padded text, `parts` its `eight_bytes`.

    Returns the numbers of lines, words and unknown words. Words are looked up in blocks: the steps of a block are
    independent of each other, so the processor does several at once.
    """
    data, begin, slots = known
    first, last = np.empty(BLOCK_WORDS, np.uint64), np.empty(BLOCK_WORDS, np.uint64)
    keys = np.empty(BLOCK_WORDS, np.uint64)
    line = words = num_unknown = 0
    i = np.uint64(0)
    while i < size:
        i, line, number = _split(text, parts, size, i, line, words, offsets, first, last, keys)
        for j in range(number):
            ids[words + j] = likely_word(keys[j], slots)
        for j in range(number):
            word = ids[words + j]
            if word >= 0 and not is_word(parts, first[j], last[j], data, begin, word):
                word = slots[find_slot(parts, first[j], last[j], keys[j], data, begin, slots), 0]
            if word <= END:  # unknown; `<s>` and `</s>` in a text are unknown words too
                unknown[0, num_unknown], unknown[1, num_unknown], unknown[2, num_unknown] = words + j, first[j], last[j]
                num_unknown += 1
                word = UNK
            ids[words + j] = word
        words += number
    if size > 0 and text[size - 1] != NEWLINE:
        line += 1
        offsets[line] = words
    return line, words, num_unknown


@kernel
def _split(
    text: Any,
    parts: Any,
    size: int,
    i: Any,
    line: int,
    words: int,
    offsets: Any,
    first: Any,
    last: Any,
    keys: Any,
) -> tuple[Any, int, int]:
    """Find the next words of a text from byte `i` on, as many as fit, and their hashes.

    `words` come before them. Returns where to continue, the number of lines so far, and the number of words found.
    """
    number = 0
    while i < size and number < first.size:
        if ends_word(text, i):
            if text[i] == NEWLINE:
                line += 1
                offsets[line] = words + number
            i += ONE
            continue
        first[number], key = i, np.uint64(SEED)
        blanks = blanks_of(parts[i])
        while blanks == 0:
            key = mix(key, parts[i])
            i += EIGHT
            blanks = blanks_of(parts[i])
        # The lowest bit is that of the first blank.
        before = ((blanks & (~blanks + ONE)) >> np.uint64(7)) - ONE  # all bits of the bytes before it
        key = mix(key, parts[i] & before)
        i += ((before & np.uint64(ONES)) * np.uint64(ONES)) >> np.uint64(56)  # the number of these bytes
        if not ends_word(text, i):  # a control character that is part of the word
            while not ends_word(text, i):
                i += ONE
            key = hash_word(parts, first[number], i)
        last[number], keys[number] = i, key
        number += 1
    return i, line, number


@inline_kernel
def blanks_of(part: Any) -> Any:
    """Return a number whose lowest bit marks the first of eight bytes that is a blank or control character; 0 if none."""
    return (part - np.uint64(0x21 * ONES)) & ~part & np.uint64(0x80 * ONES)
