"""Which two classes of words can be merged at the least loss of information, and which words had better move.

The information that adjacent classes hold about each other is, but for a constant, a sum of f(x) = x log x:

    tokens * I = sum over pairs of f(n_cd) - 2 * sum over classes of f(n_c) + f(tokens)

where n_cd counts how often class d follows class c, and n_c counts c. Merging c and d thus changes it by g(x, y) =
f(x + y) - f(x) - f(y) of their counts in each context, and g is 0 where one of the two has none. A word that was seen
ten times has twenty contexts at most: adding it to a class touches few of the pairs of classes, and the table of all
losses stays exact at little cost (Brown et al. 1992 and Liang 2005 update it in full).

f is kept in whole numbers of a small unit: what is added and taken away leaves no rounding behind, the same losses are
ties on every machine, and whatever raises the information raises it by one unit at least, so that nothing goes round in
circles.

Items are words, or classes, in the order of their frequency, from `FIRST` on. Three classes stand still: the frame of
sentences, `<unk>`, and the rest, which holds the items that have not been added yet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel

FRAME, UNKNOWN, REST, FIRST = 0, 1, 2, 3
UNIT = float(1 << 24)  # so many to a nat: f of two thousand million tokens fits into 64 bits several times
LARGEST_TABLE = 1 << 20  # values of f kept; those of larger counts are computed when asked for
LOWEST = -(1 << 62)  # the gain of merging what is not there


class Neighbours(NamedTuple):
    """How often items stand next to each other: of each item, those after it and, from `items` on, those before it."""

    begin: NDArray[np.int64]  # (2 * items + 1,) where the neighbours of each item begin
    other: NDArray[np.int32]  # (neighbours,)
    often: NDArray[np.int32]  # (neighbours,) how often each is one
    total: NDArray[np.int64]  # (items,) how often each item occurs


class MergeTables(NamedTuple):
    """Classes in slots, and what it would bring to merge two of them."""

    gain: NDArray[np.int64]  # (slots, slots) [c, d], c > d: what merging changes, at most 0 but for rounding
    beside: NDArray[np.int64]  # (2 * slots, slots) [x, c]: class x after c; [slots + x, c]: class x before c
    total: NDArray[np.int64]  # (slots,) how often each class occurs; 0 for an empty slot
    name: NDArray[np.int64]  # (slots,) the first of the items in each class
    xlogx: NDArray[np.int64]  # f of small numbers


def count_bigrams(text: NDArray[np.int32], items: int) -> Neighbours:
    """Count neighbours in a text of items. It goes round: after the last item comes the first."""
    keys, count = np.unique(text.astype(np.int64) * items + np.roll(text, -1), return_counts=True)
    left, right = np.divmod(keys, items)
    order = np.argsort(right, kind="stable")
    degree = np.concatenate([np.bincount(left, minlength=items), np.bincount(right, minlength=items)])
    return Neighbours(
        np.concatenate([[0], np.cumsum(degree)]).astype(np.int64),
        np.concatenate([right, left[order]]).astype(np.int32),
        np.concatenate([count, count[order]]).astype(np.int32),
        np.bincount(text, minlength=items).astype(np.int64),
    )


def xlogx_table(tokens: int, largest: int = LARGEST_TABLE) -> NDArray[np.int64]:
    """f(0), f(1), ... as far as they are kept."""
    x = np.arange(min(tokens + 1, largest), dtype=np.float64)
    return np.rint(x * np.log(np.maximum(x, 1)) * UNIT).astype(np.int64)


def empty_tables(classes: int, xlogx: NDArray[np.int64]) -> MergeTables:
    slots = FIRST + classes
    return MergeTables(
        np.full((slots, slots), LOWEST, np.int64),
        np.zeros((2 * slots, slots), np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        xlogx,
    )


# -- information, a pair of numbers at a time ----------------------------------------------------------------------


@kernel
def _f(xlogx: Any, x: int) -> int:
    """x log x, in units."""
    if x < xlogx.size:
        return xlogx[x]
    return np.int64(np.rint(x * np.log(x) * UNIT))  # type: ignore[return-value]


@kernel
def _g(xlogx: Any, x: int, y: int) -> int:
    """What one context holds more once two classes that have it x and y times are one."""
    return _f(xlogx, x + y) - _f(xlogx, x) - _f(xlogx, y)


@kernel
def _gain_difference(xlogx: Any, u: int, v: int, t: int) -> int:
    """g(u + v, t) - g(v, t)."""
    return _f(xlogx, u + v + t) - _f(xlogx, u + v) - _f(xlogx, v + t) + _f(xlogx, v)


@kernel
def _self_terms(tables: Any, c: int, d: int) -> int:
    """What merging c and d changes beyond the sum of g over their contexts.

    That sum takes c and d as contexts like any others, but they are merged too: four counts become one.
    """
    f, beside = tables.xlogx, tables.beside
    cc, cd, dc, dd = beside[c, c], beside[d, c], beside[c, d], beside[d, d]
    merged = _f(f, cc + cd + dc + dd) - _f(f, cc) - _f(f, cd) - _f(f, dc) - _f(f, dd)
    as_contexts = _g(f, cc, dc) + _g(f, cd, dd) + _g(f, cc, cd) + _g(f, dc, dd)
    return merged - as_contexts - 2 * _g(f, tables.total[c], tables.total[d])


# -- keeping the table of gains ------------------------------------------------------------------------------------


@kernel
def _add_self_terms(tables: Any, c: int, sign: int) -> None:
    """Add to the gains of c with all others, or take away, what is not of their contexts."""
    gain, total = tables.gain, tables.total
    for d in range(FIRST, total.size):
        if d != c and total[d] > 0:
            gain[max(c, d), min(c, d)] += sign * _self_terms(tables, c, d)


@kernel
def _merge_contexts(tables: Any, a: int, b: int, sign: int) -> None:
    """What the gains of all pairs of classes become as contexts a and b become one (or, with sign -1, fall apart)."""
    gain, f = tables.gain, tables.xlogx
    slots = tables.total.size
    present = np.empty(slots, np.int64)
    for side in range(2):
        in_a, in_b = tables.beside[side * slots + a], tables.beside[side * slots + b]
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
    """Class b is in so many more contexts: what its gains with all others become."""
    gain, beside, f = tables.gain, tables.beside, tables.xlogx
    slots = tables.total.size
    more = np.zeros(slots, np.int64)
    for y in range(2 * slots):
        u, v = counts[y], beside[y, b]
        if u > 0:
            for d in range(FIRST, slots):
                if beside[y, d] > 0:
                    more[d] += _gain_difference(f, u, v, beside[y, d])
            beside[y, b] = u + v
    for d in range(FIRST, slots):
        if d != b:
            gain[max(b, d), min(b, d)] += more[d]


@kernel
def _merge(tables: Any, a: int, b: int) -> None:
    """Merge class a into class b; slot a is empty then. The fewer contexts a has, the quicker it goes."""
    gain, beside, total, name = tables.gain, tables.beside, tables.total, tables.name
    slots = total.size
    _add_self_terms(tables, b, -1)
    _merge_contexts(tables, a, b, 1)
    for c in range(slots):
        for side in (0, slots):
            beside[side + b, c] += beside[side + a, c]
            beside[side + a, c] = 0
    counts = np.empty(2 * slots, np.int64)
    for y in range(2 * slots):
        counts[y] = beside[y, a]
        beside[y, a] = 0
    _add_contexts(tables, b, counts)
    total[b] += total[a]
    total[a] = 0
    name[b] = min(name[a], name[b])
    _add_self_terms(tables, b, 1)
    for c in range(slots):
        gain[max(a, c), min(a, c)] = LOWEST


@kernel
def _add(tables: Any, slot: int, item: int, count: int, counts: Any) -> None:
    """Take an item that stands in these contexts out of the rest, as a class of its own."""
    gain, beside, total = tables.gain, tables.beside, tables.total
    slots = total.size
    for c in range(FIRST, slots):
        if total[c] > 0:  # what follows a class has the class before it
            beside[slot, c] = counts[slots + c]
            beside[slots + slot, c] = counts[c]
            beside[REST, c] -= counts[slots + c]
            beside[slots + REST, c] -= counts[c]
            gain[max(slot, c), min(slot, c)] = 0
    _merge_contexts(tables, slot, REST, -1)
    _add_contexts(tables, slot, counts)
    total[slot], tables.name[slot] = count, item
    _add_self_terms(tables, slot, 1)


@kernel
def _best_pair(tables: Any) -> tuple[int, int]:
    """The two classes whose merging loses least, the one of the earlier name first.

    Of equally good pairs it is the one whose first class has the earliest name, then that whose second has.
    """
    gain, name = tables.gain, tables.name
    best, first, second = LOWEST, -1, -1
    for c in range(FIRST + 1, name.size):
        highest = LOWEST
        for d in range(FIRST, c):
            highest = max(highest, gain[c, d])
        if highest == LOWEST or highest < best:
            continue
        for d in range(FIRST, c):
            if gain[c, d] == highest:
                one, two = (c, d) if name[c] < name[d] else (d, c)
                if highest > best or (name[one], name[two]) < (name[first], name[second]):
                    best, first, second = highest, one, two
    return first, second


@kernel
def _count_contexts(tables: Any, c: int) -> int:
    """In how many different contexts a class stands."""
    different = 0
    for y in range(tables.beside.shape[0]):
        different += tables.beside[y, c] > 0
    return different


# -- items into classes --------------------------------------------------------------------------------------------


@kernel
def _leader(leaders: Any, item: int) -> int:
    """The first item of the class that an item is in."""
    while leaders[item] != item:
        leaders[item] = leaders[leaders[item]]
        item = leaders[item]
    return item


@kernel
def _contexts(bigrams: Any, item: int, leaders: Any, slot_of: Any, slots: int) -> Any:
    """How often each class stands after an item and, from `slots` on, before it."""
    items = bigrams.total.size
    counts = np.zeros(2 * slots, np.int64)
    for side in range(2):
        row = side * items + item
        for place in range(bigrams.begin[row], bigrams.begin[row + 1]):
            counts[side * slots + slot_of[_leader(leaders, bigrams.other[place])]] += bigrams.often[place]
    return counts


@kernel
def add_items(tables: Any, bigrams: Any, leaders: Any, slot_of: Any, free: int, first: int, last: int) -> int:
    """Make each item from `first` to `last` a class, and merge two classes whenever no slot is left.

    `slot_of` has the slot of each class by its first item (of what is not added yet: the rest). Starts at the slot
    that is free; returns the one that is free next.
    """
    slots = tables.total.size
    for item in range(first, last):
        slot_of[item] = free
        counts = _contexts(bigrams, item, leaders, slot_of, slots)
        _add(tables, free, item, bigrams.total[item], counts)
        free += 1
        if item + 1 >= slots:  # all are taken
            _, _, free = merge_best(tables, leaders, slot_of)
    return free


@kernel
def merge_best(tables: Any, leaders: Any, slot_of: Any) -> tuple[int, int, int]:
    """Do the best merge: the names of the two classes, the earlier one first, and the slot that is now empty."""
    kept, empty = _best_pair(tables)
    earlier, later = tables.name[kept], tables.name[empty]
    if _count_contexts(tables, kept) < _count_contexts(tables, empty):
        kept, empty = empty, kept
    _merge(tables, empty, kept)
    leaders[later] = earlier
    slot_of[earlier] = kept
    return earlier, later, empty


# -- moving single items -------------------------------------------------------------------------------------------


@kernel
def exchange_items(tables: Any, bigrams: Any, members: Any, class_of: Any, first: int, last: int) -> int:
    """Move each item from `first` to `last` to the class where it brings most information; how many moved.

    It stays where no other class is better, and the last item of a class stays. Of equally good classes the first is
    taken. Of the tables, gains and names are not used.
    """
    alone = np.arange(class_of.size)
    moved = 0
    for item in range(first, last):
        home = class_of[item]
        if members[home] == 1:
            continue
        class_of[item] = REST  # its own neighbours among itself are counted there
        counts = _contexts(bigrams, item, alone, class_of, tables.total.size)
        _update_class(tables, home, counts, bigrams.total[item], -1)
        worth = _class_scores(tables, counts, bigrams.total[item])
        best = FIRST + np.argmax(worth[FIRST:])
        if worth[best] == worth[home]:
            best = home
        _update_class(tables, best, counts, bigrams.total[item], 1)
        class_of[item] = best
        members[home] -= 1
        members[best] += 1
        moved += best != home
    return moved


@kernel
def _update_class(tables: Any, c: int, counts: Any, count: int, sign: int) -> None:
    """Put an item that stands in these contexts into class c, or take it out."""
    beside, total = tables.beside, tables.total
    slots = total.size
    total[c] += sign * count
    for x in range(slots):
        if x != REST:
            beside[x, c] += sign * counts[x]
            beside[slots + x, c] += sign * counts[slots + x]
            beside[c, x] += sign * counts[slots + x]
            beside[slots + c, x] += sign * counts[x]
    beside[c, c] += sign * counts[REST]
    beside[slots + c, c] += sign * counts[REST]


@kernel
def _class_scores(tables: Any, counts: Any, count: int) -> Any:
    """What the information becomes, but for a constant, if an item in these contexts joins each of the classes."""
    beside, total, f = tables.beside, tables.total, tables.xlogx
    slots = total.size
    worth = np.zeros(slots, np.int64)
    for y in range(2 * slots):
        u = counts[y]
        if u > 0 and y % slots != REST:
            for d in range(FIRST, slots):
                worth[d] += _f(f, beside[y, d] + u) - _f(f, beside[y, d])
    for d in range(FIRST, slots):
        dd, after, before = beside[d, d], counts[d], counts[slots + d]
        worth[d] += _f(f, dd + after + before + counts[REST]) - _f(f, dd + after) - _f(f, dd + before) + _f(f, dd)
        worth[d] -= 2 * (_f(f, total[d] + count) - _f(f, total[d]))
    return worth
