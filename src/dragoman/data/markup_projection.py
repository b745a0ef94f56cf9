"""Putting inline markup back into a translation, by word alignment.

Every mark is put back exactly once, and elements stay nested. An element covers the run of target words that best
agrees with the words that it covered in the source; a single mark stays next to the word it was next to.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dragoman.data.copied_items import PROTECTED
from dragoman.data.inline_markup import Mark, Node, Part, PlainText, shown_pattern
from dragoman.data.scanner import UNSPACED

Span = tuple[int, int]
FOLLOWING = ".,;:!?…%'\"、。，！？；："  # punctuation that is not preceded by a space
EDGE = 100  # characters at which texts are compared side by side


def split_units(text: str, unsplit: Sequence[Span] = ()) -> list[Span]:
    """Return the words and punctuation marks of a text as spans of characters; those of `unsplit` are not split.

    In scripts without spaces, each letter is a unit.

    >>> text = "Don't stop, 犬だ!"
    >>> [text[start:end] for start, end in split_units(text)]
    ["Don't", 'stop', ',', '犬', 'だ', '!']
    """
    end_of = {start: end for start, end in unsplit if end > start}
    spans: list[Span] = []
    position, can_grow = 0, False
    while position < len(text):
        if position in end_of:
            spans.append((position, end_of[position]))
            position, can_grow = end_of[position], False
            continue
        character = text[position]
        category = unicodedata.category(character)
        is_inside = character in "'’-" and can_grow and text[position + 1 : position + 2].isalpha()
        if category[0] == "Z" or category == "Cc":
            can_grow = False
        elif spans and (
            category[0] == "M" or (can_grow and not UNSPACED.match(character) and category[0] in "LN") or is_inside
        ):
            spans[-1] = (spans[-1][0], position + 1) if spans[-1][1] == position else (position, position + 1)
        else:
            spans.append((position, position + 1))
            can_grow = category[0] in "LN" and not UNSPACED.match(character)
        position += 1
    return spans


@dataclass(frozen=True, eq=False)
class UnitAlignment:
    """The units of a source text and of its translation, and how strongly they are connected."""

    source: list[Span]
    target: list[Span]
    weights: NDArray[np.float64]  # (target, source)

    @cached_property
    def best_source(self) -> NDArray[np.int64]:
        """The source unit of each target unit; -1 if there is none.  # (target,)"""
        if not self.source:
            return np.full(len(self.target), -1)
        return np.where(self.weights.max(axis=1) > 0, self.weights.argmax(axis=1), -1)

    def target_of(self, source: int, first: int, last: int) -> int:
        """Return the target unit in a range that is connected with a source unit, or else at its relative position."""
        column = self.weights[first:last, source]
        linked = column * (self.best_source[first:last] == source)
        for candidates in (linked, column):
            if candidates.max(initial=0.0) > 0:
                return first + int(candidates.argmax())
        return min(last - 1, max(first, source * len(self.target) // len(self.source)))


def diagonal_weights(targets: int, sources: int) -> NDArray[np.float64]:
    """Return weights by relative position, for translations without attention.  # (targets, sources)"""
    if not targets or not sources:
        return np.zeros((targets, sources))
    centres = [(np.arange(size) + 0.5) / size for size in (targets, sources)]
    return 1.0 - np.abs(centres[0][:, None] - centres[1][None, :])


def connected(weights: NDArray[np.float64], pairs: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """Return weights in which the units of each pair, target and source, are connected only with each other."""
    weights = weights.copy()
    for row, column in pairs:
        weights[row], weights[:, column] = 0.0, 0.0
        weights[row, column] = 1.0
    return weights


def prefer_equal_units(alignment: UnitAlignment, source: str, target: str) -> UnitAlignment:
    """Connect units that are the same on both sides, and occur once on each."""
    sources, targets = (
        [text[start:end].casefold() for start, end in units]
        for text, units in ((source, alignment.source), (target, alignment.target))
    )
    unique = {word for word, count in Counter(sources).items() if count == 1}
    shared = [word for word, count in Counter(targets).items() if count == 1 and word in unique]
    pairs = [(targets.index(word), sources.index(word)) for word in shared]
    return UnitAlignment(alignment.source, alignment.target, connected(alignment.weights, pairs))


def break_at_marks(
    plain: PlainText, target: str, source_units: Sequence[Span], target_units: Sequence[Span]
) -> tuple[list[Span], list[Span], list[tuple[int, int]]]:
    """Break the words in which markup starts or ends, on both sides if the translation has the same word.

    Returns:
        The units of the source, those of the target, and the pairs of parts (target, source) of the same word.
    """
    edges = {edge for node in plain.nodes for inner in node.all_nodes() for edge in (inner.start, inner.end)}
    broken: dict[tuple[str, int], list[list[int]]] = {}  # by word: the parts of each occurrence, as source units
    sources: list[Span] = []
    for start, end in source_units:
        cuts = [start, *(edge for edge in range(start + 1, end) if edge in edges), end]
        key = plain.text[start:end].casefold(), end - start
        broken.setdefault(key, []).append(list(range(len(sources), len(sources) + len(cuts) - 1)))
        sources += pairwise(cuts)
    targets, pairs = list[Span](), list[tuple[int, int]]()
    words = [(target[start:end].casefold(), end - start) for start, end in target_units]
    counts, used = Counter(words), Counter[tuple[str, int]]()
    for (start, end), key in zip(target_units, words, strict=True):
        parts = broken.get(key, [])
        indices = parts[used[key]] if len(parts) == counts[key] else []
        used[key] += 1
        if len(indices) < 2:
            targets.append((start, end))
            continue
        for index in indices:
            length = sources[index][1] - sources[index][0]
            pairs.append((len(targets), index))
            targets.append((start, start + length))
            start += length
    return sources, targets, pairs


def _follows_directly(character: str) -> bool:
    """Return whether there is no space before a character: punctuation that ends something."""
    return character in FOLLOWING or character.isspace() or unicodedata.category(character) in ("Pe", "Pf")


@dataclass
class _Placed:
    """Where a node is in the target: a run of units, or a position if it is empty."""

    node: Node
    first: int
    last: int
    start: int  # in characters
    end: int


def project(plain: PlainText, target: str, alignment: UnitAlignment) -> list[Part]:
    """Return a translation with the markup of its source.

    Args:
        plain: the source.
        target: the translation, one line; everything that the source shows is in it.
        alignment: of the units of both texts; what the source shows is one unit.
    """
    projection = _Projection(plain, target, alignment, list(shown_spans(plain, target)))
    projection.write_children(plain.nodes, (0, len(alignment.source)), (0, len(alignment.target)), 0, len(target))
    joined: list[Part] = []
    for part in projection.parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def shown_spans(plain: PlainText, target: str) -> Iterator[tuple[int, int, Mark]]:
    """Yield where a complete translation has the marks that its source shows."""
    waiting: dict[str, list[Mark]] = {}
    for _, mark in plain.shown:
        waiting.setdefault(mark.shown, []).append(mark)
    for match in shown_pattern(plain.shown_counts).finditer(target):
        yield match.start(), match.end(), waiting[match[0]].pop(0)


@dataclass
class _Projection:
    plain: PlainText
    text: str
    alignment: UnitAlignment
    shown: list[tuple[int, int, Mark]]  # in the translation
    parts: list[Part] = field(default_factory=list)
    last_character: str = ""  # that was written; empty at the start
    needs_space: bool = False  # if a word follows
    last_word: str = ""  # the text or the shown mark that was written last

    # -- where nodes are placed --

    def write_children(self, nodes: Sequence[Node], source: Span, target: Span, start: int, end: int) -> None:
        """Write the characters from `start` to `end`, with nodes inside. `source` and `target` are ranges of units."""
        position, before = start, None
        for placed in self._place(nodes, source, target, start, end):
            is_next = placed.node.is_adjacent and before is nodes[nodes.index(placed.node) - 1]
            if not (is_next and self.text[position : placed.start].isspace()):
                self._write_range(position, placed.start)
            self._write_node(placed)
            position, before = placed.end, placed.node
        self._write_range(position, end)

    def _place(self, nodes: Sequence[Node], source: Span, target: Span, start: int, end: int) -> list[_Placed]:
        first, last = target
        taken = np.zeros(last - first, bool)
        units = self.alignment.target
        placed: list[tuple[int, _Placed]] = []
        empty: list[tuple[int, Node]] = []
        for order, node in enumerate(nodes):
            run = self._best_run(node, first, last, taken)
            if run is None:
                empty.append((order, node))
                continue
            taken[run[0] - first : run[1] - first] = True
            placed.append((order, _Placed(node, *run, units[run[0]][0], units[run[1] - 1][1])))
        runs = [item for _, item in placed]
        for order, node in empty:
            position = self._position(node, source, target, start, end)
            for run_of in runs:
                if run_of.start < position < run_of.end:
                    position = run_of.start if node.end <= run_of.node.start else run_of.end
            placed.append((order, _Placed(node, 0, 0, position, position)))
        placed.sort(key=lambda item: (item[1].start, item[1].end > item[1].start, item[0]))
        return [item for _, item in placed]

    def _units_of(self, node: Node) -> Span:
        """Return the range of source units whose middle is inside a node."""
        middles = [start + end for start, end in self.alignment.source]
        inside = [index for index, middle in enumerate(middles) if 2 * node.start <= middle <= 2 * node.end - 1]
        return (inside[0], inside[-1] + 1) if inside else (0, 0)

    def _best_run(self, node: Node, first: int, last: int, taken: NDArray[np.bool_]) -> Span | None:
        """Return the free run of target units that agrees best with the source units of a node."""
        low, high = self._units_of(node)
        if low == high or taken.all():
            return None
        best = self.alignment.best_source[first:last]
        votes = np.where((best >= low) & (best < high), 1, np.where(best < 0, 0, -1))
        run, highest, total, begin = None, 0, 0, 0
        for index, vote in enumerate(votes.tolist()):
            if taken[index] or total + vote <= 0:
                total, begin = 0, index + 1
                continue
            total += vote
            if total > highest:
                run, highest = (first + begin, first + index + 1), total
        if run is not None:
            return run
        free = np.where(taken, -1.0, self.alignment.weights[first:last, low:high].sum(axis=1))
        if free.max() <= 0:
            centre = (low + high) / 2 * len(self.alignment.target) / len(self.alignment.source) - first
            free = np.where(taken, -np.inf, -np.abs(np.arange(last - first) + 0.5 - centre))
        index = int(free.argmax())
        return first + index, first + index + 1

    def _position(self, node: Node, source_range: Span, target_range: Span, start: int, end: int) -> int:
        """Return the character at which an empty node stands: next to the unit that it was next to."""
        source, target = self.alignment.source, self.alignment.target
        before = [index for index in range(*source_range) if source[index][1] <= node.start]
        after = [index for index in range(*source_range) if source[index][0] >= node.start]
        if target_range[0] == target_range[1] or not before:
            return start
        if not after:
            words = [unit for unit in target[slice(*target_range)] if self.text[unit[0]].isalnum()]
            ends_in_mark = not self.plain.text[source[before[-1]][0]].isalnum()
            return end if ends_in_mark or not words or not node.open.is_visible else words[-1][1]
        touches_before = not node.space_before and source[before[-1]][1] == node.start
        touches_after = not node.space_after and source[after[0]][0] == node.start
        is_visible, next_character = node.open.is_visible, self.plain.text[source[after[0]][0]]
        if (touches_before and not (touches_after and is_visible)) or (is_visible and not next_character.isalnum()):
            return target[self.alignment.target_of(before[-1], *target_range)][1]
        return target[self.alignment.target_of(after[0], *target_range)][0]

    # -- writing --

    def _write_range(self, start: int, end: int) -> None:
        """Write characters of the translation, with the marks that they show."""
        for first, last, mark in self.shown:
            if start <= first and last <= end:
                self._write_text(self.text[start:first])
                self._write_text(self.text[first:last], mark)
                start = last
        self._write_text(self.text[start:end])

    def _write_text(self, text: str, mark: Mark | None = None) -> None:
        if not text:
            return
        is_word = mark is not None or not _follows_directly(text[0])
        if (self.needs_space and is_word) or self._would_extend(self.last_word, text):
            self.parts.append(" ")
        self.parts.append(text if mark is None else mark)
        self.last_character, self.needs_space = text[-1], False
        self.last_word = text if mark is None else ""

    def _write_node(self, placed: _Placed) -> None:
        node = placed.node
        if node.open.is_visible:
            self._write_visible(node)
            return
        if placed.first == placed.last:
            first = next((leaf for leaf in node.leaves() if leaf.open.is_visible), None)
            self._write_space(first is not None and first.space_before)
        self.parts.append(node.open)
        if placed.first < placed.last:
            target = placed.first, placed.last
            self.write_children(node.children, self._units_of(node), target, placed.start, placed.end)
        else:
            for child in node.children:
                self._write_node(_Placed(child, 0, 0, 0, 0))
        if node.close is not None:
            self.parts.append(node.close)

    def _write_visible(self, node: Node) -> None:
        shown = node.open.shown
        self._write_space(node.space_before or self.needs_space or self._would_extend(self.last_word, shown))
        self.parts.append(node.open)
        self.last_character, self.needs_space, self.last_word = "x", node.space_after, shown

    @staticmethod
    def _would_extend(first: str, second: str) -> bool:
        """Return whether two texts side by side have other placeholders than apart: `$HOME` and `s`."""
        left, right = first[-EDGE:], second[:EDGE]
        if not left or not right or left[-1].isspace() or right[0].isspace():
            return False
        apart = PROTECTED.findall(left) + PROTECTED.findall(right)
        return PROTECTED.findall(left + right) != apart

    def _write_space(self, is_needed: bool) -> None:
        """Write a space if it is needed and there is none."""
        if is_needed and self.last_character and not self.last_character.isspace():
            self.parts.append(" ")
            self.last_character, self.needs_space = " ", False
