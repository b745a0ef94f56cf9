"""Which words go together across two languages, learned from the very pairs that are being judged.

IBM Model 1 gives expected counts c(f, e): how often source word f stood for target word e. A pair is then judged by
how much better than chance its words explain each other, with the pair's own share taken out of the counts first:
otherwise two rare words that meet in one wrong pair only would vouch for each other.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.scanner import rehash, scan
from dragoman.doctor.reader import join_lines

MOST_WORDS = 60  # of a line that are looked at
CELLS = 8_000_000  # pairs of words to learn from; of a larger corpus, a sample
ITERATIONS = 4
PRIOR = 1.0  # how many sightings of a word chance is given credit for
FLOOR = 0.1  # the share of chance in every word's explanation: no word can count against a pair by more than its log
# Signs stand alone, and so do the characters of scripts that put no spaces between words.
ALONE = re.compile(r"([^\w\s]|[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff])")


@dataclass(frozen=True)
class WordSets:
    """Each line as the set of its words, numbered. Words of a single line are left out: nothing is known of them."""

    words: NDArray[np.int32]
    offsets: NDArray[np.int64]  # (lines + 1,)
    size: int  # different words
    draws: NDArray[np.int64]  # (lines,) a number drawn by what the line says: samples stay as other lines go

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)


def word_sets(lines: Sequence[str]) -> WordSets:
    """
    >>> word_sets(["A cat, a dog.", "a dog"]).sizes.tolist()
    [2, 2]
    """
    scanned = scan(ALONE.sub(r" \1 ", join_lines(lines).decode().lower()).encode())
    types = max(1, len(scanned.types))
    line = np.repeat(np.arange(len(lines)), np.diff(scanned.offsets))
    meetings = np.sort(line * types + scanned.tokens)
    meetings = meetings[np.diff(meetings, prepend=-1) > 0]
    line, word = meetings // types, meetings % types
    known = np.bincount(word, minlength=types) > 1
    number = np.cumsum(known) - 1
    line, word = line[known[word]], number[word[known[word]]]
    place = np.arange(len(line)) - np.searchsorted(line, line)
    line, word = line[place < MOST_WORDS], word[place < MOST_WORDS]
    offsets = np.searchsorted(line, np.arange(len(lines) + 1))
    draws = np.fromiter((zlib.crc32(line.encode("utf-8", "replace")) for line in lines), np.int64, len(lines))
    return WordSets(word.astype(np.int32), offsets.astype(np.int64), int(known.sum()), draws)


@dataclass(frozen=True)
class AssociationCounts:
    """Expected counts of Model 1, found by hash: word pairs (f, e) -> `joint`."""

    slots: NDArray[np.int32]
    keys: NDArray[np.uint64]
    joint: NDArray[np.float64]  # c(f, e)
    before: NDArray[np.float64]  # t(e | f) from which the last counts were made
    source: NDArray[np.float64]  # c(f); the last one is the empty word's
    target: NDArray[np.float64]  # c(e)
    learned_from: NDArray[np.bool_]  # (lines,)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return self.slots, self.keys, self.joint, self.before, self.source, self.target


def learn(source: WordSets, target: WordSets) -> AssociationCounts:
    """Model 1 by EM, with an empty source word, on all lines or on a sample."""
    cells = (source.sizes + 1) * target.sizes
    step = max(1, -(-int(cells.sum()) // CELLS))
    lines = np.flatnonzero((source.sizes > 0) & (target.sizes > 0) & (source.draws % step == 0))
    sides = (source.words, source.offsets, target.words, target.offsets)
    cell_of, keys, slots = _number_cells(*sides, lines, source.size, target.size, int(cells[lines].sum()))
    t = np.ones(len(keys))
    for _ in range(ITERATIONS):
        before = t
        joint, of_source, of_target = _expect(*sides, lines, cell_of, t, source.size, target.size)
        t = joint / of_source[(keys // np.uint64(max(1, target.size))).astype(np.int64)]
    used = np.zeros(len(cells), np.bool_)
    used[lines] = True
    return AssociationCounts(slots, keys, joint, before, of_source, of_target, used)


def _number_cells(
    f: Any, f_at: Any, e: Any, e_at: Any, lines: Any, f_size: int, e_size: int, cells: int
) -> tuple[NDArray[np.int32], NDArray[np.uint64], NDArray[np.int32]]:
    """Each different pair of words as a number, and the number of each cell of each line."""
    cell_of = np.empty(cells, np.int32)
    keys, hashes = np.empty(cells, np.uint64), np.empty(cells, np.uint64)
    slots = np.full(1 << 16, -1, np.int32)
    line = cell = pairs = 0
    while True:
        tables = (cell_of, keys, hashes, slots)
        line, cell, pairs = _number_lines(f, f_at, e, e_at, lines, f_size, e_size, *tables, line, cell, pairs)
        if line == len(lines):
            return cell_of, keys[:pairs].copy(), slots
        slots = rehash(hashes[:pairs], 4 * slots.size)


@kernel
def _hash(key: Any) -> Any:
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@kernel
def _number_lines(
    f: Any, f_at: Any, e: Any, e_at: Any, lines: Any, f_size: int, e_size: int, cell_of: Any, keys: Any, hashes: Any,
    slots: Any, line: int, cell: int, pairs: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Number the cells from `line` on, until the lines end or the hash table might get too full."""
    mask = np.uint64(slots.size - 1)
    while line < lines.size:
        s = lines[line]
        sources, targets = f_at[s + 1] - f_at[s], e_at[s + 1] - e_at[s]
        if 2 * (pairs + (sources + 1) * targets) >= slots.size:
            break
        for j in range(e_at[s], e_at[s + 1]):
            for i in range(sources + 1):
                word = f[f_at[s] + i] if i < sources else f_size
                key = np.uint64(word) * np.uint64(e_size) + np.uint64(e[j])
                mixed = _hash(key)
                slot = mixed & mask
                while slots[slot] >= 0 and keys[slots[slot]] != key:
                    slot = (slot + np.uint64(1)) & mask
                if slots[slot] < 0:
                    slots[slot] = pairs
                    keys[pairs], hashes[pairs] = key, mixed
                    pairs += 1
                cell_of[cell] = slots[slot]
                cell += 1
        line += 1
    return line, cell, pairs


@kernel
def _expect(
    f: Any, f_at: Any, e: Any, e_at: Any, lines: Any, cell_of: Any, t: Any, f_size: int, e_size: int
) -> tuple[Any, Any, Any]:
    """Expected counts: each target word is shared out among the line's source words in proportion to t(e | f)."""
    joint, of_source, of_target = np.zeros(t.size), np.zeros(f_size + 1), np.zeros(e_size)
    cell = 0
    for s in lines:
        sources = f_at[s + 1] - f_at[s]
        for j in range(e_at[s], e_at[s + 1]):
            total = 0.0
            for i in range(sources + 1):
                total += t[cell_of[cell + i]]
            for i in range(sources + 1):
                expected = t[cell_of[cell + i]] / total
                joint[cell_of[cell + i]] += expected
                of_source[f[f_at[s] + i] if i < sources else f_size] += expected
            of_target[e[j]] += 1
            cell += sources + 1
    return joint, of_source, of_target


# -- judging pairs ----------------------------------------------------------------------------------------------------


def scores(
    lexicon: AssociationCounts,
    source: WordSets,
    target: WordSets,
    source_lines: NDArray[np.int64],
    target_lines: NDArray[np.int64],
) -> NDArray[np.float64]:
    """For each source and target line paired: by how many nats a word its words are likelier together than apart.

    About 0 or less is chance; lines of which nothing is known are NaN.
    """
    sides = (source.words, source.offsets, target.words, target.offsets)

    def work(span: tuple[int, int]) -> Any:
        first, last = span
        rows = source_lines[first:last], target_lines[first:last]
        return _score(*sides, *rows, lexicon.learned_from, *lexicon.arrays, target.size)

    if not len(source_lines):
        return np.zeros(0)
    return np.concatenate(parallel_map(work, split_range(0, len(source_lines))))


@kernel
def _find(slots: Any, keys: Any, key: Any) -> int:
    mask = np.uint64(slots.size - 1)
    slot = _hash(key) & mask
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + np.uint64(1)) & mask
    return int(slots[slot])


@kernel
def _score(
    f: Any, f_at: Any, e: Any, e_at: Any, source_lines: Any, target_lines: Any, learned_from: Any, slots: Any,
    keys: Any, joint: Any, before: Any, of_source: Any, of_target: Any, e_size: int,
) -> Any:  # fmt: skip
    """The score of each pair, with the share of the very lines that are paired taken out of the counts.

    Source line a may have been learned from beside target line a, and target line b beside source line b: where these
    resemble the lines now paired, as neighbours often do, they must not vouch for them either.
    """
    result = np.full(source_lines.size, np.nan)
    total = of_target.sum()
    together, own = np.empty((MOST_WORDS, MOST_WORDS)), np.empty((MOST_WORDS, MOST_WORDS))
    for row in range(source_lines.size):
        a, b = source_lines[row], target_lines[row]
        m, n = f_at[a + 1] - f_at[a], e_at[b + 1] - e_at[b]
        if m == 0 or n == 0:
            continue
        own[:m, :n] = 0.0
        for j in range(n):
            e_word = e[e_at[b] + j]
            for i in range(m):
                cell = _find(slots, keys, np.uint64(f[f_at[a] + i]) * np.uint64(e_size) + np.uint64(e_word))
                together[i, j] = joint[cell] if cell >= 0 else 0.0
            if learned_from[a] and _holds(e, e_at[a], e_at[a + 1], e_word):
                _take_out(own, j, f, f_at[a], m, f_at[a], f_at[a + 1], e_word, e_size, slots, keys, before, of_source)
            if a != b and learned_from[b]:
                _take_out(own, j, f, f_at[a], m, f_at[b], f_at[b + 1], e_word, e_size, slots, keys, before, of_source)
        inside = 1.0 if learned_from[b] else 0.0
        result[row] = _gain(together, own, f, f_at[a], e, e_at[b], m, n, of_source, of_target, total, inside)
    return result


@kernel
def _holds(words: Any, first: int, last: int, word: int) -> bool:
    """Whether a word is in a line; the words of a line are sorted."""
    while first < last:
        middle = (first + last) // 2
        if words[middle] < word:
            first = middle + 1
        else:
            last = middle
    return bool(first < words.size and words[first] == word)


@kernel
def _take_out(
    own: Any, j: int, f: Any, f_first: int, m: int, first: int, last: int, e_word: int, e_size: int, slots: Any,
    keys: Any, before: Any, of_source: Any,
) -> None:  # fmt: skip
    """Add to `own` what the source line first..last, being learned from beside `e_word`, gave to each pair of words."""
    norm = before[_find(slots, keys, np.uint64(of_source.size - 1) * np.uint64(e_size) + np.uint64(e_word))]
    for k in range(first, last):
        norm += before[_find(slots, keys, np.uint64(f[k]) * np.uint64(e_size) + np.uint64(e_word))]
    for i in range(m):
        if _holds(f, first, last, f[f_first + i]):
            cell = _find(slots, keys, np.uint64(f[f_first + i]) * np.uint64(e_size) + np.uint64(e_word))
            own[i, j] += before[cell] / norm


@kernel
def _gain(
    together: Any, own: Any, f: Any, f_first: int, e: Any, e_first: int, m: int, n: int, of_source: Any, of_target: Any,
    total: float, inside: float,
) -> float:  # fmt: skip
    """Mean over the words of both sides of log(share of chance + share of what the other side's words make of it)."""
    by_target, by_source = np.zeros(n), np.zeros(m)
    for i in range(m):
        left = of_source[f[f_first + i]]
        for j in range(n):
            left -= own[i, j]
        for j in range(n):
            p = (of_target[e[e_first + j]] - inside) / total
            seen = max(0.0, together[i, j] - own[i, j])
            ratio = (seen / p + PRIOR) / (max(0.0, left) + PRIOR) if p > 0 else 1.0
            by_target[j] += ratio / m
            by_source[i] += ratio / n
    gain = 0.0
    for j in range(n):
        gain += np.log(FLOOR + (1 - FLOOR) * by_target[j])
    for i in range(m):
        gain += np.log(FLOOR + (1 - FLOOR) * by_source[i])
    return gain / (m + n)
