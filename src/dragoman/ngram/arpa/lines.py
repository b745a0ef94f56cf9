"""Parsing and writing lines of an ARPA file: `log10 P  w1 ... wn  [log10 back-off]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.data.scanner import NEWLINE, RETURN, SPACE, TAB, rehash
from dragoman.data.vocabulary import UNK
from dragoman.ngram.trie import find_child

LOG_10 = float(np.log(10.0))
ZERO = -99.0  # written instead of minus infinity
DECIMALS = 7
SCALE = 10**DECIMALS
NUMBER_BYTES = 12  # maximum size of a written number, with the blank before it
ROUNDING = 1e-6  # a log-probability up to this far above 0 is a rounding error
MAX_POWER = 22  # of ten that a float represents exactly
POWERS = 10.0 ** np.arange(MAX_POWER + 1)
GOOD, WRONG_FIELDS, BAD_NUMBER, POSITIVE = 0, 1, 2, 3  # results of parsing a line
MINUS, PLUS, POINT, DIGIT_0, LETTER_E = (ord(sign) for sign in "-+.0e")
LETTERS_INF = np.frombuffer(b"inf", np.uint8)


@dataclass(frozen=True)
class Spellings:
    """The words of a vocabulary as one array of bytes, with a hash table."""

    data: NDArray[np.uint8]
    begin: NDArray[np.int64]  # (words + 1,) the first byte of each word
    hashes: NDArray[np.uint64]  # (words,)
    slots: NDArray[np.int32]  # open addressing: hash -> word

    @classmethod
    def from_words(cls, words: Sequence[bytes]) -> Spellings:
        data = np.frombuffer(b"".join(words), np.uint8)
        begin = np.concatenate([[0], np.cumsum([len(word) for word in words])]).astype(np.int64)
        hashes = _hashes(data, begin)
        return cls(data, begin, hashes, rehash(hashes, 1 << (2 * len(words)).bit_length()))

    @property
    def max_length(self) -> int:
        return int(np.diff(self.begin).max())


@kernel
def _hash(data: Any, first: int, last: int) -> Any:
    """Return the FNV-1a hash of bytes, with its upper half folded into the lower."""
    key = np.uint64(14695981039346656037)
    for i in range(first, last):
        key = (key ^ np.uint64(data[i])) * np.uint64(1099511628211)
    return key ^ (key >> np.uint64(32))


@kernel
def _hashes(data: Any, begin: Any) -> Any:
    hashes = np.empty(begin.size - 1, np.uint64)
    for word in range(hashes.size):
        hashes[word] = _hash(data, begin[word], begin[word + 1])
    return hashes


# -- reading -----------------------------------------------------------------------------------------------------


@kernel
def split_lines(data: Any, n: int, starts: Any, ends: Any, log_prob: Any, log_backoff: Any) -> tuple[int, int, int]:
    """Parse lines of n-grams: the positions of their words, and their two numbers as natural logarithms.

    Returns the number of n-grams, and the position and kind of the first error.
    """
    row = i = 0
    while i < data.size:
        line, fields, log_backoff[row] = i, 0, 0.0
        while True:
            while i < data.size and _is_blank(data[i]) and data[i] != NEWLINE:
                i += 1
            if i == data.size or data[i] == NEWLINE:
                break
            start = i
            while i < data.size and not _is_blank(data[i]):
                i += 1
            if 1 <= fields <= n:
                starts[row, fields - 1], ends[row, fields - 1] = start, i
            elif fields == 0 or fields == n + 1:
                value = _parse_number(data, start, i)
                if not value <= -ZERO:
                    return row, line, BAD_NUMBER
                if fields == 0 and value > ROUNDING:
                    return row, line, POSITIVE
                natural = -np.inf if value <= ZERO else value * LOG_10
                if fields == 0:
                    log_prob[row] = min(natural, 0.0)
                else:
                    log_backoff[row] = natural
            fields += 1
        i += 1
        if fields == n + 1 or fields == n + 2:
            row += 1
        elif fields > 0:
            return row, line, WRONG_FIELDS
    return row, -1, GOOD


@kernel
def _is_blank(byte: int) -> bool:
    """Return whether a byte separates fields; a `\\r` can only be at the end of a line."""
    return bool(byte <= SPACE and (byte == SPACE or byte == TAB or byte == NEWLINE or byte == RETURN))  # noqa: SIM109 - faster


@kernel
def _parse_number(data: Any, first: int, last: int) -> float:
    """Return the decimal number in these bytes, or NaN if it is not valid."""
    negative = data[first] == MINUS
    i = first + 1 if negative or data[first] == PLUS else first
    if negative and last - i == 3 and _is_inf(data, i):
        return -np.inf
    digits = point = exponent = 0
    mantissa = np.int64(0)
    while i < last and (0 <= np.int64(data[i]) - DIGIT_0 <= 9 or (data[i] == POINT and point == 0)):
        if data[i] == POINT:
            point = 1
        else:
            digits += 1
            if mantissa < 10**17:
                mantissa = mantissa * 10 + (np.int64(data[i]) - DIGIT_0)
                exponent -= point
            else:  # more digits than a float can represent: only the exponent changes
                exponent += 1 - point
        i += 1
    if digits > 0 and i + 1 < last and data[i] | SPACE == LETTER_E:
        written, i = _exponent(data, i + 1, last)
        exponent += written
    if digits == 0 or i < last:
        return np.nan
    size = float(mantissa)
    exact = max(-MAX_POWER, min(exponent, MAX_POWER))
    size = size / POWERS[-exact] if exact < 0 else size * POWERS[exact]
    if exponent != exact:
        size *= 10.0 ** (exponent - exact)
    return -size if negative else size


@kernel
def _exponent(data: Any, i: int, last: int) -> tuple[int, int]:
    """Return the signed integer at `i` and where it ends."""
    sign = -1 if data[i] == MINUS else 1
    if data[i] == MINUS or data[i] == PLUS:
        i += 1
    size = 0
    if i == last:
        return 0, i - 1  # a sign without digits is not consumed, which makes the number invalid
    while i < last and 0 <= np.int64(data[i]) - DIGIT_0 <= 9:
        size = min(10 * size + int(data[i]) - DIGIT_0, 1000)
        i += 1
    return sign * size, i


@kernel
def _is_inf(data: Any, i: int) -> bool:
    for k in range(3):
        if data[i + k] | SPACE != LETTERS_INF[k]:
            return False
    return True


@kernel
def find_words(
    data: Any, starts: Any, ends: Any, word_bytes: Any, begin: Any, hashes: Any, slots: Any, words: Any
) -> int:
    """Write the ids of the words at these positions to `words`; return the first row with an unknown word, or -1."""
    mask = np.uint64(slots.size - 1)
    for row in range(words.shape[0]):
        for k in range(words.shape[1]):
            first, length = starts[row, k], ends[row, k] - starts[row, k]
            key = _hash(data, first, first + length)
            slot = key & mask
            while slots[slot] >= 0 and not (
                hashes[slots[slot]] == key and _equal(data, first, length, word_bytes, begin, slots[slot])
            ):
                slot = (slot + np.uint64(1)) & mask
            if slots[slot] < 0:
                return row
            words[row, k] = slots[slot]
    return -1


@kernel
def _equal(data: Any, first: int, length: int, word_bytes: Any, begin: Any, word: int) -> bool:
    if begin[word + 1] - begin[word] != length:
        return False
    for i in range(length):
        if data[first + i] != word_bytes[begin[word] + i]:
            return False
    return True


@kernel
def find_contexts(word: Any, begin: Any, first: int, words: Any) -> Any:
    """Return the context of each row as its index among the strings of that length, from node `first` on; or -1."""
    contexts = np.empty(words.shape[0], np.int32)
    for row in range(words.shape[0]):
        node = 1 + words[row, 0]
        for k in range(1, words.shape[1] - 1):
            node = find_child(word, begin, node, words[row, k])
            if node < 0:
                break
        contexts[row] = node - first if node >= 0 else -1
    return contexts


# -- writing -----------------------------------------------------------------------------------------------------


@kernel
def write_lines(
    word: Any,
    begin: Any,
    log_prob: Any,  # (n-grams of this order,) from node `first` on
    log_backoff: Any,
    word_bytes: Any,
    bytes_begin: Any,
    log_members: float,  # log of the number of words in the class `<unk>`, of which one is written
    max_line_bytes: int,
    first: int,
    path: Any,  # (order,) the prefixes of the next n-gram, itself the last; updated
    last: int,
    out: Any,
) -> int:
    """Write n-grams from the end of `path` up to `last`, as many as fit into `out`; return the number of bytes."""
    n = path.size
    used = 0
    while path[n - 1] < last and used + max_line_bytes <= out.size:
        node = path[n - 1]
        for k in range(n - 2, -1, -1):  # an n-gram after the children of its context belongs to a later context
            while begin[path[k] + 1] <= path[k + 1]:
                path[k] += 1
        value = log_prob[node - first] - (log_members if word[node] == UNK else 0.0)
        used = _write_number(out, used, min(value, 0.0))
        for k in range(n):
            out[used] = TAB if k == 0 else SPACE
            w = word[path[k]]
            start, end = bytes_begin[w], bytes_begin[w + 1]
            for i in range(end - start):
                out[used + 1 + i] = word_bytes[start + i]
            used += 1 + end - start
        if node < log_backoff.size and log_backoff[node] != 0.0:
            out[used] = TAB
            used = _write_number(out, used + 1, log_backoff[node])
        out[used] = NEWLINE
        used += 1
        path[n - 1] += 1
    return used


@kernel
def _write_number(out: Any, used: int, natural: float) -> int:
    """Write a natural logarithm as log10 with seven decimals, in unsigned arithmetic, which divides fastest."""
    value = min(max(natural / LOG_10, ZERO), -ZERO)
    units = np.uint64(abs(value) * SCALE + 0.5)
    if units == 0:
        out[used] = DIGIT_0
        return used + 1
    if value < 0.0:
        out[used] = MINUS
        used += 1
    whole = np.uint32(units // np.uint64(SCALE))
    part = np.uint32(units - np.uint64(whole) * np.uint64(SCALE))
    used = _write_digits(out, used, whole, 1 if whole < 10 else 2)
    if part == 0:
        return used
    out[used] = POINT
    return _write_digits(out, used + 1, part, DECIMALS)


@kernel
def _write_digits(out: Any, used: int, value: Any, digits: int) -> int:
    for k in range(used + digits - 1, used - 1, -1):
        tenth = value // np.uint32(10)
        out[k] = np.uint8(DIGIT_0) + np.uint8(value - tenth * np.uint32(10))
        value = tenth
    return used + digits
