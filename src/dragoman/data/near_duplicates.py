"""Lines that are the same or nearly the same: groups of them in a text, and lines of one text that are in another.

Lines are compared without case, punctuation, white space and the values of numbers. Near-duplicates are lines whose sets
of character 4-grams overlap: their Jaccard similarity |A and B| / |A or B| is at least a threshold. Candidates are found
with MinHash and locality-sensitive hashing (Leskovec et al., Mining of Massive Datasets, section 3.4), and each is
verified, so that only true near-duplicates are grouped; a few are missed (see `BANDS`). `find_leaks` misses none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.ranges import offsets_of

DEFAULT_SIMILARITY = 0.7  # one word of ten is different
NGRAM = 4  # characters
BANDS, ROWS = 20, 5  # a pair of similarity 0.7 is a candidate with probability 0.975, of similarity 0.8 with 0.9996
MAX_CANDIDATES = 200  # lines of a bucket that a line is compared with
TABLE_SIZE = 1 << 22  # places of hashed n-grams
ROUNDING = 1e-9  # of floating-point products
_SPACE, _DIGIT = ord(" "), ord("0")


class _Simplification(dict[int, int]):
    """A table for `str.translate`: all digits become 0, everything but letters, marks and digits a space."""

    def __missing__(self, code: int) -> int:
        category = unicodedata.category(chr(code))
        self[code] = _DIGIT if category == "Nd" else code if category[0] in "LMN" else _SPACE
        return self[code]


_SIMPLIFICATION = _Simplification()
_NUMBER = re.compile("0[0 ]*0")  # 1,000 and 1000 are the same


def simplify(line: str) -> str:
    """Return a line without case, punctuation, white space and the values of numbers.

    >>> simplify("Er kam, am 12.5., um 7 Uhr!"), simplify("...")
    ('er kam am 0 um 0 uhr', '...')
    """
    plain = line if line.isascii() else unicodedata.normalize("NFKC", line)
    words = " ".join(plain.casefold().translate(_SIMPLIFICATION).split())
    return _NUMBER.sub("0", words) or line.strip()


def group_duplicates(sides: Sequence[Sequence[str]], similarity: float = DEFAULT_SIMILARITY) -> NDArray[np.int64]:
    """Return the group of each line of a text, or of each pair of parallel texts.  # (lines,)

    Two pairs are in one group if their sources or their targets are duplicates, or if a chain of such pairs connects
    them. Blank lines have no duplicates. A group is the index of its first line.

    Args:
        sides: one text or several parallel ones, each a sequence of lines.
        similarity: the Jaccard similarity from which lines are near-duplicates; 1: only equal lines are duplicates.

    >>> group_duplicates([["A dog.", "a dog", "A cat."], ["Ein Hund", "Hund", "hund!"]]).tolist()
    [0, 0, 0]
    """
    _check_similarity(similarity)
    parents = np.arange(len(sides[0]))
    for lines in sides:
        first_lines: dict[str, int] = {}
        for number, key in enumerate(map(simplify, lines)):
            if key and (first := first_lines.setdefault(key, number)) != number:
                _join(parents, first, number)
        if similarity < 1:
            texts = _Texts.encode(list(first_lines))
            numbers = np.fromiter(first_lines.values(), np.int64, len(first_lines))
            for order, buckets in texts.bands():
                _join_buckets(texts.codes, texts.offsets, order, buckets, numbers, parents, similarity)
    return _roots(parents)


def find_duplicates(
    lines: Sequence[str], others: Sequence[str], similarity: float = DEFAULT_SIMILARITY
) -> NDArray[np.int64]:
    """Return for each line the index of a duplicate or near-duplicate among other lines, -1 if there is none.  # (lines,)

    The first duplicate is returned, or one of the near-duplicates. Blank lines have no duplicates.

    >>> find_duplicates(["A dog.", "a cat", ""], ["the cats", "a dog", "A dog!", ""]).tolist()
    [1, -1, -1]
    """
    _check_similarity(similarity)
    first_lines: dict[str, int] = {}
    for number, key in enumerate(map(simplify, others)):
        first_lines.setdefault(key, number)
    first_lines.pop("", None)
    keys = list(map(simplify, lines))
    matches = dict.fromkeys(keys, -1) | {key: first_lines[key] for key in set(keys) if key in first_lines}
    unmatched = [key for key, match in matches.items() if key and match < 0]
    if similarity < 1 and unmatched and first_lines:
        texts = _Texts.encode([*unmatched, *first_lines])
        similar = np.full(len(unmatched), -1)
        for order, buckets in texts.bands():
            _match_buckets(texts.codes, texts.offsets, order, buckets, similar, similarity)
        numbers = np.fromiter(first_lines.values(), np.int64, len(first_lines))
        is_matched = similar >= 0
        similar[is_matched] = numbers[similar[is_matched] - len(unmatched)]
        matches |= zip(unmatched, similar.tolist(), strict=True)
    return np.fromiter((matches[key] for key in keys), np.int64, len(keys))


def find_leaks(
    sides: Sequence[Sequence[str]], parts: NDArray[np.int64], similarity: float = DEFAULT_SIMILARITY
) -> NDArray[np.int64]:
    """Return the held-out lines that have a near-duplicate, on any side, in another part. None is missed.

    Lines of similarity s share at least s |A| n-grams of A. Therefore, with all n-grams in one order, the first
    (1 - s) |A| + 1 of both lines have one in common: lines are compared if they share one of their rarest n-grams (prefix
    filtering; Bayardo et al. 2007, Scaling up all pairs similarity search).

    Args:
        parts: the part of each line, 0 for training; -1 for lines that are in no part.  # (lines,)

    >>> find_leaks([["a small dog barks", "a cat", "A small dog barked!"]], np.array([0, 0, 1])).tolist()
    [2]
    """
    _check_similarity(similarity)
    held_out = np.flatnonzero(parts > 0)
    is_leak = np.zeros(len(held_out), np.bool_)
    for lines in sides:
        texts = _Texts.encode(list(map(simplify, lines)))
        counts = np.zeros(TABLE_SIZE, np.int64)
        _count_ngrams(texts.codes, texts.offsets, counts)
        index = _index_rarest(texts.codes, texts.offsets, held_out, counts, similarity)
        scan = partial(_scan_lines, texts.codes, texts.offsets, counts, index, held_out, parts, similarity)
        for found in parallel_map(lambda span, scan=scan: scan(*span), split_range(0, len(lines))):  # type: ignore[misc]
            is_leak |= found
    return held_out[is_leak]


def _check_similarity(similarity: float) -> None:
    if not 0 < similarity <= 1:
        raise DataError(f"similarity {similarity}: give a number above 0, at most 1")


@dataclass(frozen=True)
class _Texts:
    """Simplified lines, for the kernels."""

    codes: NDArray[np.uint32]  # the characters of all lines
    offsets: NDArray[np.int64]  # (lines + 1,)

    @classmethod
    def encode(cls, keys: Sequence[str]) -> _Texts:
        codes = np.frombuffer("".join(keys).encode("utf-32-le", "replace"), np.uint32)
        return cls(codes, offsets_of(np.fromiter(map(len, keys), np.int64, len(keys))))

    def bands(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """For each band, the bucket of each line, and the lines ordered by bucket, without those shorter than an n-gram."""
        spans = split_range(0, len(self.offsets) - 1)
        long_enough = np.diff(self.offsets) >= NGRAM
        for band in range(BANDS):
            parts = parallel_map(lambda span, band=band: _band_keys(self.codes, self.offsets, *span, band), spans)  # type: ignore[misc]
            buckets = np.concatenate([np.zeros(0, np.uint64), *parts])
            order = np.argsort(buckets, kind="stable")
            yield order[long_enough[order]], buckets


@kernel
def _mix(key: Any) -> Any:
    """Scramble the bits of a number (the finaliser of SplitMix64)."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@kernel
def _ngram(codes: Any, position: int) -> Any:
    key = np.uint64(0)
    for i in range(position, position + NGRAM):
        key = (key ^ np.uint64(codes[i])) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
    return key


@kernel
def _band_keys(codes: Any, offsets: Any, first: int, last: int, band: int) -> Any:
    """Return one number for the ROWS minimum hashes of each line."""
    result = np.zeros(last - first, np.uint64)
    minima = np.empty(ROWS, np.uint64)
    for line in range(first, last):
        minima[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        for position in range(offsets[line], offsets[line + 1] - NGRAM + 1):
            key = _ngram(codes, position)
            for row in range(ROWS):
                value = _mix(key + np.uint64(band * ROWS + row + 1) * np.uint64(0x9E3779B97F4A7C15))
                if value < minima[row]:
                    minima[row] = value
        for row in range(ROWS):
            result[line - first] = _mix(result[line - first] ^ minima[row])
    return result


@kernel
def _join_buckets(
    codes: Any, offsets: Any, order: Any, buckets: Any, numbers: Any, parents: Any, similarity: float
) -> None:
    """Join each line with the line before it in its bucket, and with the first one, if they are similar."""
    start = 0
    for k in range(1, order.size):
        if buckets[order[k]] != buckets[order[start]]:
            start = k
            continue
        for other in (order[k - 1], order[start]):
            root, other_root = _root(parents, numbers[order[k]]), _root(parents, numbers[other])
            if root != other_root and _is_similar(codes, offsets, order[k], other, similarity):
                parents[max(root, other_root)] = min(root, other_root)


@kernel
def _match_buckets(codes: Any, offsets: Any, order: Any, buckets: Any, matches: Any, similarity: float) -> None:
    """Compare each line without a match (these come first) with the other lines in its bucket."""
    start = 0
    while start < order.size:
        end = start + 1
        while end < order.size and buckets[order[end]] == buckets[order[start]]:
            end += 1
        middle = start
        while middle < end and order[middle] < matches.size:
            middle += 1
        for line in order[start:middle]:
            if matches[line] < 0:
                for other in order[middle : min(end, middle + MAX_CANDIDATES)]:
                    if _is_similar(codes, offsets, line, other, similarity):
                        matches[line] = other
                        break
        start = end


@kernel
def _distinct_ngrams(codes: Any, offsets: Any, line: int) -> Any:
    keys = np.empty(offsets[line + 1] - offsets[line] - NGRAM + 1, np.uint64)
    for k in range(keys.size):
        keys[k] = _ngram(codes, offsets[line] + k)
    keys.sort()
    size = 1
    for k in range(1, keys.size):
        if keys[k] != keys[size - 1]:
            keys[size] = keys[k]
            size += 1
    return keys[:size]


@kernel
def _is_similar(codes: Any, offsets: Any, line: int, other: int, similarity: float) -> bool:
    """Return whether the Jaccard similarity of two lines reaches the threshold."""
    return _are_similar_sets(
        _distinct_ngrams(codes, offsets, line), _distinct_ngrams(codes, offsets, other), similarity
    )


@kernel
def _are_similar_sets(a: Any, b: Any, similarity: float) -> bool:
    """Return whether the Jaccard similarity of two sorted sets reaches the threshold."""
    total = a.size + b.size
    if min(a.size, b.size) < similarity * max(a.size, b.size):
        return False
    most_different = total * (1 - similarity) / (1 + similarity) + 1  # elements of one set only; 1 for rounding
    i, j, common = 0, 0, 0
    while i < a.size and j < b.size:
        if a[i] == b[j]:
            common += 1
            i += 1
            j += 1
            continue
        if a[i] < b[j]:
            i += 1
        else:
            j += 1
        if i + j - 2 * common > most_different:
            return False
    return bool(common >= similarity * (total - common))


@kernel
def _count_ngrams(codes: Any, offsets: Any, counts: Any) -> None:
    """Count the n-grams of all lines, in a table in which several may share a place."""
    for line in range(offsets.size - 1):
        for position in range(offsets[line], offsets[line + 1] - NGRAM + 1):
            counts[_ngram(codes, position) & np.uint64(TABLE_SIZE - 1)] += 1


@kernel
def _rarest(ngrams: Any, counts: Any, similarity: float) -> Any:
    """Return the first n-grams of a line, in order of frequency, of which every similar line has one among its own."""
    frequencies = np.empty(ngrams.size, np.int64)
    for k in range(ngrams.size):
        frequencies[k] = counts[ngrams[k] & np.uint64(TABLE_SIZE - 1)]
    size = ngrams.size - int(np.ceil(similarity * ngrams.size - ROUNDING)) + 1
    return ngrams[np.argsort(frequencies, kind="mergesort")[:size]]  # stable: of equal frequency, in order of keys


@kernel
def _index_rarest(codes: Any, offsets: Any, lines: Any, counts: Any, similarity: float) -> Any:
    """Return the rarest n-grams of these lines, sorted, and which line has each; and the n-grams of all lines."""
    starts = np.zeros(lines.size + 1, np.int64)
    for owner in range(lines.size):
        length = offsets[lines[owner] + 1] - offsets[lines[owner]]
        starts[owner + 1] = starts[owner] + max(0, length - NGRAM + 1)
    ngrams, stops = np.empty(starts[-1], np.uint64), starts[:-1].copy()
    keys, owners = np.empty(starts[-1], np.uint64), np.empty(starts[-1], np.int64)
    size = 0
    for owner in range(lines.size):
        if starts[owner + 1] == starts[owner]:
            continue
        distinct = _distinct_ngrams(codes, offsets, lines[owner])
        stops[owner] = starts[owner] + distinct.size
        ngrams[starts[owner] : stops[owner]] = distinct
        for key in _rarest(distinct, counts, similarity):
            keys[size], owners[size] = key, owner
            size += 1
    order = np.argsort(keys[:size])
    return keys[order], owners[order], ngrams, starts, stops


@kernel
def _scan_lines(
    codes: Any,
    offsets: Any,
    counts: Any,
    index: Any,
    held_out: Any,
    parts: Any,
    similarity: float,
    first: int,
    last: int,
) -> Any:
    """Return for each held-out line whether one of the lines from `first` to `last` is similar and in another part."""
    keys, owners, ngrams, starts, stops = index
    is_leak = np.zeros(held_out.size, np.bool_)
    compared_with = np.full(held_out.size, -1)
    for line in range(first, last):
        if parts[line] < 0 or offsets[line + 1] - offsets[line] < NGRAM:
            continue
        distinct = _distinct_ngrams(codes, offsets, line)
        for key in _rarest(distinct, counts, similarity):
            place = np.searchsorted(keys, key)
            while place < keys.size and keys[place] == key:
                owner = owners[place]
                place += 1
                if is_leak[owner] or compared_with[owner] == line or parts[held_out[owner]] == parts[line]:
                    continue
                compared_with[owner] = line
                is_leak[owner] = _are_similar_sets(ngrams[starts[owner] : stops[owner]], distinct, similarity)
    return is_leak


@kernel
def _root(parents: Any, number: int) -> int:
    while parents[number] != number:
        parents[number] = parents[parents[number]]
        number = parents[number]
    return number


def _join(parents: NDArray[np.int64], first: int, second: int) -> None:
    """Join two groups; the lower number is the root."""
    while parents[first] != first:
        first = int(parents[first])
    while parents[second] != second:
        second = int(parents[second])
    parents[max(first, second)] = min(first, second)


def _roots(parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the root of each number."""
    roots = parents[parents]
    while not np.array_equal(roots, parents):
        parents, roots = roots, roots[roots]
    return roots
