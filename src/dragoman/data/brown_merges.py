"""Kernels of Brown clustering: the loss of merging two classes, and the gain of moving a word.

The mutual information of adjacent classes is, up to a constant, a sum of f(x) = x log x:

    tokens * I = sum over pairs of f(n_cd) - 2 * sum over classes of f(n_c) + f(tokens)

where n_cd counts how often class d follows class c, and n_c counts c. So merging c and d changes it by g(x, y) =
f(x + y) - f(x) - f(y) of their counts in each context, and g is 0 if one of the counts is 0. A word that occurs ten
times has at most twenty contexts, so adding it to a class changes few pairs of classes, and the table of all losses is
updated exactly at low cost (Brown et al. 1992 and Liang 2005 update it in full).

f is stored as an integer multiple of a small unit. So additions and subtractions leave no rounding errors, ties are the
same on every machine, and every improvement is at least one unit, which guarantees termination.

Items are words, or classes, in order of frequency, from `FIRST` on. Three classes are fixed: the sentence boundary,
`<unk>`, and the rest, which holds the items that have not been added yet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.data.ranges import offsets_of

BOUNDARY, UNKNOWN, REST, FIRST = 0, 1, 2, 3
UNIT = float(1 << 24)  # units per nat: f of two billion tokens still fits into 64 bits several times
LARGEST_TABLE = 1 << 20  # values of f in the table; larger ones are computed when needed
LOWEST = -(1 << 62)  # the gain of a merge with an empty slot


class Neighbours(NamedTuple):
    """How often items are adjacent: for each item the items after it and, from `items` on, the items before it."""

    begin: NDArray[np.int64]  # (2 * items + 1,) first neighbour of each item
    neighbor: NDArray[np.int32]  # (neighbours,)
    frequency: NDArray[np.int32]  # (neighbours,) how often
    total: NDArray[np.int64]  # (items,) how often each item occurs


class MergeTables(NamedTuple):
    """Classes in slots, and the gain of merging two of them."""

    gain: NDArray[np.int64]  # (slots, slots) [c, d], c > d: the change by merging, at most 0 up to rounding
    context_counts: NDArray[np.int64]  # (2 * slots, slots) [x, c]: class x after c; [slots + x, c]: class x before c
    total: NDArray[np.int64]  # (slots,) how often each class occurs; 0 for an empty slot
    first_item: NDArray[np.int64]  # (slots,) the first of the items in each class
    xlogx: NDArray[np.int64]  # f of small integers


def count_bigrams(text: NDArray[np.int32], items: int) -> Neighbours:
    """Count neighbours in a circular text of items."""
    keys, count = np.unique(text.astype(np.int64) * items + np.roll(text, -1), return_counts=True)
    left, right = np.divmod(keys, items)
    order = np.argsort(right, kind="stable")
    degree = np.concatenate([np.bincount(left, minlength=items), np.bincount(right, minlength=items)])
    return Neighbours(
        offsets_of(degree),
        np.concatenate([right, left[order]]).astype(np.int32),
        np.concatenate([count, count[order]]).astype(np.int32),
        np.bincount(text, minlength=items).astype(np.int64),
    )


def xlogx_table(tokens: int, largest: int = LARGEST_TABLE) -> NDArray[np.int64]:
    """Return f(0), f(1), ... up to the size of the table."""
    x = np.arange(min(tokens + 1, largest), dtype=np.float64)
    return np.rint(x * np.log(np.maximum(x, 1)) * UNIT).astype(np.int64)


def empty_tables(
    classes: int, items: int, xlogx: NDArray[np.int64]
) -> tuple[MergeTables, NDArray[np.int64], NDArray[np.int64]]:
    """Return tables without classes, the leader of each item (itself) and its slot (for words: the rest)."""
    slots = FIRST + classes
    gain, counts = np.full((slots, slots), LOWEST, np.int64), np.zeros((2 * slots, slots), np.int64)
    tables = MergeTables(gain, counts, np.zeros(slots, np.int64), np.zeros(slots, np.int64), xlogx)
    return tables, np.arange(items), np.minimum(np.arange(items), REST)


# -- terms of the information ----------------------------------------------------------------------------------------


@kernel
def _f(xlogx: Any, x: int) -> int:
    """x log x, in units."""
    if x < xlogx.size:
        return xlogx[x]
    return np.int64(np.rint(x * np.log(x) * UNIT))  # type: ignore[return-value]


@kernel
def _g(xlogx: Any, x: int, y: int) -> int:
    """The gain in one context by merging two classes that have it x and y times."""
    return _f(xlogx, x + y) - _f(xlogx, x) - _f(xlogx, y)


@kernel
def _gain_difference(xlogx: Any, u: int, v: int, t: int) -> int:
    """g(u + v, t) - g(v, t)."""
    return _f(xlogx, u + v + t) - _f(xlogx, u + v) - _f(xlogx, v + t) + _f(xlogx, v)


@kernel
def _self_terms(tables: Any, c: int, d: int) -> int:
    """The change by merging c and d in addition to the sum of g over their contexts.

    That sum treats c and d as ordinary contexts, but they are merged as well: four counts become one.
    """
    f, adjacent = tables.xlogx, tables.context_counts
    cc, cd, dc, dd = adjacent[c, c], adjacent[d, c], adjacent[c, d], adjacent[d, d]
    merged = _f(f, cc + cd + dc + dd) - _f(f, cc) - _f(f, cd) - _f(f, dc) - _f(f, dd)
    as_contexts = _g(f, cc, dc) + _g(f, cd, dd) + _g(f, cc, cd) + _g(f, dc, dd)
    return merged - as_contexts - 2 * _g(f, tables.total[c], tables.total[d])


# -- updates of the table of gains ------------------------------------------------------------------------------------


@kernel
def _add_self_terms(tables: Any, c: int, sign: int) -> None:
    """Add the self terms to the gains of c with all others, or subtract them."""
    gain, total = tables.gain, tables.total
    for d in range(FIRST, total.size):
        if d != c and total[d] > 0:
            gain[max(c, d), min(c, d)] += sign * _self_terms(tables, c, d)


@kernel
def _merge_contexts(tables: Any, a: int, b: int, sign: int) -> None:
    """Update the gains of all pairs of classes when contexts a and b are merged (or split, with sign -1)."""
    gain, f = tables.gain, tables.xlogx
    slots = tables.total.size
    present = np.empty(slots, np.int64)
    for side in range(2):
        in_a, in_b = tables.context_counts[side * slots + a], tables.context_counts[side * slots + b]
        size = 0
        for d in range(FIRST, slots):
            if in_a[d] > 0 or in_b[d] > 0:
                present[size] = d
                size += 1
        for c in present[:size]:
            u, v = in_a[c], in_b[c]
            if u == 0:
                continue
            for d in present[:size]:
                s, t = in_a[d], in_b[d]
                if s == 0:
                    gain[max(c, d), min(c, d)] += sign * _gain_difference(f, u, v, t)
                elif d < c:
                    gain[c, d] += sign * (_g(f, u + v, s + t) - _g(f, u, s) - _g(f, v, t))


@kernel
def _add_contexts(tables: Any, b: int, counts: Any) -> None:
    """Update the gains of class b with all others when contexts are added to it."""
    gain, adjacent, f = tables.gain, tables.context_counts, tables.xlogx
    slots = tables.total.size
    more = np.zeros(slots, np.int64)
    for y in range(2 * slots):
        u, v = counts[y], adjacent[y, b]
        if u > 0:
            for d in range(FIRST, slots):
                if adjacent[y, d] > 0:
                    more[d] += _gain_difference(f, u, v, adjacent[y, d])
            adjacent[y, b] = u + v
    for d in range(FIRST, slots):
        if d != b:
            gain[max(b, d), min(b, d)] += more[d]


@kernel
def _merge(tables: Any, a: int, b: int) -> None:
    """Merge class a into class b and empty slot a. The time grows with the number of contexts of a."""
    gain, adjacent, total, first_item = tables.gain, tables.context_counts, tables.total, tables.first_item
    slots = total.size
    _add_self_terms(tables, b, -1)
    _merge_contexts(tables, a, b, 1)
    for c in range(slots):
        for side in (0, slots):
            adjacent[side + b, c] += adjacent[side + a, c]
            adjacent[side + a, c] = 0
    counts = np.empty(2 * slots, np.int64)
    for y in range(2 * slots):
        counts[y] = adjacent[y, a]
        adjacent[y, a] = 0
    _add_contexts(tables, b, counts)
    total[b] += total[a]
    total[a] = 0
    first_item[b] = min(first_item[a], first_item[b])
    _add_self_terms(tables, b, 1)
    for c in range(slots):
        gain[max(a, c), min(a, c)] = LOWEST


@kernel
def _add(tables: Any, slot: int, item: int, count: int, counts: Any) -> None:
    """Move an item with these contexts from the rest to a new class."""
    gain, adjacent, total = tables.gain, tables.context_counts, tables.total
    slots = total.size
    for c in range(FIRST, slots):
        if total[c] > 0:  # an item after a class has that class before it
            adjacent[slot, c] = counts[slots + c]
            adjacent[slots + slot, c] = counts[c]
            adjacent[REST, c] -= counts[slots + c]
            adjacent[slots + REST, c] -= counts[c]
            gain[max(slot, c), min(slot, c)] = 0
    _merge_contexts(tables, slot, REST, -1)
    _add_contexts(tables, slot, counts)
    total[slot], tables.first_item[slot] = count, item
    _add_self_terms(tables, slot, 1)


@kernel
def _best_pair(tables: Any) -> tuple[int, int]:
    """Return the two classes with the best merge, the one with the earlier first item first.

    Ties go to the pair with the earliest first class, then to that with the earliest second class.
    """
    gain, first_item = tables.gain, tables.first_item
    best, first, second = LOWEST, -1, -1
    for c in range(FIRST + 1, first_item.size):
        highest = LOWEST
        for d in range(FIRST, c):
            highest = max(highest, gain[c, d])
        if highest == LOWEST or highest < best:
            continue
        for d in range(FIRST, c):
            if gain[c, d] == highest:
                earlier, later = (c, d) if first_item[c] < first_item[d] else (d, c)
                if highest > best or (first_item[earlier], first_item[later]) < (first_item[first], first_item[second]):
                    best, first, second = highest, earlier, later
    return first, second


# -- items into classes --------------------------------------------------------------------------------------------


@kernel
def _leader(leaders: Any, item: int) -> int:
    """Return the first item of the class of an item."""
    while leaders[item] != item:
        leaders[item] = leaders[leaders[item]]
        item = leaders[item]
    return item


@kernel
def _contexts(bigrams: Any, item: int, leaders: Any, slot_of: Any, slots: int) -> Any:
    """Count how often each class comes after an item and, from `slots` on, before it."""
    items = bigrams.total.size
    counts = np.zeros(2 * slots, np.int64)
    for side in range(2):
        row = side * items + item
        for index in range(bigrams.begin[row], bigrams.begin[row + 1]):
            counts[side * slots + slot_of[_leader(leaders, bigrams.neighbor[index])]] += bigrams.frequency[index]
    return counts


@kernel
def add_items(tables: Any, bigrams: Any, leaders: Any, slot_of: Any, free: int, first: int, last: int) -> int:
    """Make each item from `first` to `last` a class, and merge two classes whenever no slot is free.

    `slot_of` is the slot of each class by its first item (for items not yet added: the rest). Starts with the slot
    `free` and returns the next free slot.
    """
    slots = tables.total.size
    for item in range(first, last):
        slot_of[item] = free
        counts = _contexts(bigrams, item, leaders, slot_of, slots)
        _add(tables, free, item, bigrams.total[item], counts)
        free += 1
        if item + 1 >= slots:  # all slots are used
            _, _, free = merge_best(tables, leaders, slot_of)
    return free


@kernel
def merge_best(tables: Any, leaders: Any, slot_of: Any) -> tuple[int, int, int]:
    """Do the best merge. Returns the first items of both classes, the earlier one first, and the freed slot."""
    target, empty = _best_pair(tables)
    earlier, later = tables.first_item[target], tables.first_item[empty]
    adjacent = tables.context_counts
    if np.count_nonzero(adjacent[:, target]) < np.count_nonzero(adjacent[:, empty]):
        target, empty = empty, target
    _merge(tables, empty, target)
    leaders[later] = earlier
    slot_of[earlier] = target
    return earlier, later, empty


# -- moving single items ---------------------------------------------------------------------------------------------


@kernel
def exchange_items(tables: Any, bigrams: Any, members: Any, class_of: Any, first: int, last: int) -> int:
    """Move each item from `first` to `last` to the class where it gives the most information; return how many moved.

    An item stays if no other class is better or if it is the only item of its class. Ties go to the first class. The
    gains and first items of the tables are not used.
    """
    leaders = np.arange(class_of.size)
    moved = 0
    for item in range(first, last):
        home = class_of[item]
        if members[home] == 1:
            continue
        class_of[item] = REST  # occurrences next to itself are counted there
        counts = _contexts(bigrams, item, leaders, class_of, tables.total.size)
        _update_class(tables, home, counts, bigrams.total[item], -1)
        scores = _class_scores(tables, counts, bigrams.total[item])
        best = FIRST + np.argmax(scores[FIRST:])
        if scores[best] == scores[home]:
            best = home
        _update_class(tables, best, counts, bigrams.total[item], 1)
        class_of[item] = best
        members[home] -= 1
        members[best] += 1
        moved += best != home
    return moved


@kernel
def _update_class(tables: Any, c: int, counts: Any, count: int, sign: int) -> None:
    """Add an item with these contexts to class c, or remove it."""
    adjacent, total = tables.context_counts, tables.total
    slots = total.size
    total[c] += sign * count
    for x in range(slots):
        if x != REST:
            adjacent[x, c] += sign * counts[x]
            adjacent[slots + x, c] += sign * counts[slots + x]
            adjacent[c, x] += sign * counts[slots + x]
            adjacent[slots + c, x] += sign * counts[x]
    adjacent[c, c] += sign * counts[REST]
    adjacent[slots + c, c] += sign * counts[REST]


@kernel
def _class_scores(tables: Any, counts: Any, count: int) -> Any:
    """Return the information, up to a constant, if an item with these contexts joins each class."""
    adjacent, total, f = tables.context_counts, tables.total, tables.xlogx
    slots = total.size
    scores = np.zeros(slots, np.int64)
    for y in range(2 * slots):
        u = counts[y]
        if u > 0 and y % slots != REST:
            for d in range(FIRST, slots):
                scores[d] += _f(f, adjacent[y, d] + u) - _f(f, adjacent[y, d])
    for d in range(FIRST, slots):
        dd, after, before = adjacent[d, d], counts[d], counts[slots + d]
        scores[d] += _f(f, dd + after + before + counts[REST]) - _f(f, dd + after) - _f(f, dd + before) + _f(f, dd)
        scores[d] -= 2 * (_f(f, total[d] + count) - _f(f, total[d]))
    return scores
