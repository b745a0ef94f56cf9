"""Checks of dev text against training text: lines that are in both, unknown words and other ways of writing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dragoman.data.near_duplicates import DEFAULT_SIMILARITY, find_duplicates, group_duplicates
from dragoman.doctor.documents import Document
from dragoman.doctor.findings import Finding
from dragoman.doctor.text_checks import writing_habits

NEAR, SAME_SOURCE, SAME = 1, 2, 3  # how much a dev line has in common with a training line; 0: nothing
MAX_OVERLAP_SHARE = 0.5  # of dev; with more in train, most of what dev measures is memory
MAX_SAME_SHARE = 0.9  # of dev that is the same as in train, even if train repeats itself
OVERLAP_DEVIATIONS = 3.0  # a random sample exceeds its expected share by this many in one of 700 cases
MAX_UNKNOWN_SHARE = 0.15  # of the words of dev
MAX_HABIT_DIFFERENCE = 0.5  # between the shares of lines that follow a convention
Row = TypeVar("Row", bound=Hashable)


@dataclass(frozen=True)
class Overlap:
    """For each dev line the most similar training line: the same line or pair, the same source, or nearly the same."""

    train: Sequence[Document]
    dev: Sequence[Document]
    levels: NDArray[np.int64]  # (dev lines,) 0, NEAR, SAME_SOURCE or SAME
    train_lines: NDArray[np.int64]  # (dev lines,) from 0, or -1

    @classmethod
    def find(cls, train: Sequence[Document], dev: Sequence[Document]) -> Overlap:
        """Find the dev lines that are in train. Dev lines with an empty side are in no text."""
        rows, sources = _first_lines(_rows(train)), _first_lines(train[0].lines)
        levels, train_lines = np.zeros(len(dev[0]), np.int64), np.full(len(dev[0]), -1)
        for number, row in enumerate(_rows(dev)):
            if all(row) and row[0] in sources:
                levels[number] = SAME if row in rows else SAME_SOURCE
                train_lines[number] = rows.get(row, sources[row[0]])
        others = np.flatnonzero((levels == 0) & [all(row) for row in _rows(dev)])
        train_lines[others] = find_duplicates([dev[0].lines[line] for line in others.tolist()], train[0].lines)
        levels[others[train_lines[others] >= 0]] = NEAR
        return cls(train, dev, levels, train_lines)

    def count(self, level: int) -> int:
        return int((self.levels == level).sum())

    def dominant_level(self) -> int:
        """Return the level at which most of dev is in train, or 0.

        If lines are repeated, are similar or have several translations, a dev text that was drawn at random has as many
        such lines in train as train has itself. That is no error, unless nearly all of dev is the same as train.
        """
        lines = sum(all(row) for row in _rows(self.dev))
        for level in (SAME, SAME_SOURCE, NEAR):
            share = int((self.levels >= level).sum()) / max(1, lines)
            if level == SAME and share > MAX_SAME_SHARE:
                return level
            if share > MAX_OVERLAP_SHARE:
                expected = self._repeated_share(level)
                deviation = math.sqrt(expected * (1 - expected) / lines)
                if share > expected + OVERLAP_DEVIATIONS * deviation:
                    return level
        return 0

    def _repeated_share(self, level: int) -> float:
        """The share of training lines that are the same as another one, or whose source is, or nearly so."""
        if level == SAME:
            sizes = np.array(list(Counter(_rows(self.train)).values()))
        else:
            similarity = 1.0 if level == SAME_SOURCE else DEFAULT_SIMILARITY
            _, sizes = np.unique(group_duplicates([self.train[0].lines], similarity), return_counts=True)
        return int(sizes[sizes > 1].sum()) / max(1, int(sizes.sum()))

    def findings(self) -> Iterator[Finding]:
        """Report dev lines that are in train, and the training lines that `--fix` drops.

        If most of dev is in train, training lines with the same or nearly the same source are dropped as well.
        """
        train, dev = self.train, self.dev
        level = self.dominant_level()
        if level:
            yield dev[0].finding("dev-in-train", None, self._describe())
        for number, message in sorted(self._leaked_lines(level or SAME).items()):
            yield train[0].finding("overlap", number, message)
        for kind, kind_level, suffix in (
            ("overlap-source", SAME_SOURCE, ", with another target"),
            ("overlap-near", NEAR, ""),
        ):
            for line in np.flatnonzero(self.levels == kind_level).tolist():
                place = f"{train[0].name}:{train[0].number(self.train_lines[line])}"
                yield dev[0].finding(kind, line, f"{dev[0].quoted(line)} is in {place}{suffix}")

    def _describe(self) -> str:
        counts = [f"{self.count(SAME):,} the same"]
        if len(self.dev) == 2:
            counts.append(f"{self.count(SAME_SOURCE):,} with another translation")
        counts.append(f"{self.count(NEAR):,} nearly the same")
        total = int((self.levels > 0).sum())
        return f"{total:,} of {len(self.levels):,} lines are in {self.train[0].name}: {', '.join(counts)}"

    def _leaked_lines(self, level: int) -> dict[int, str]:
        """The training lines that are in dev at this level or above, each with the dev line that it is in."""
        train, dev = self.train, self.dev
        leaked: dict[int, str] = {}
        if level <= NEAR:
            duplicates = find_duplicates(train[0].lines, dev[0].lines)
            for number in np.flatnonzero(duplicates >= 0).tolist():
                leaked[number] = f"nearly the same as {dev[0].name}:{dev[0].number(duplicates[number])}"
        if level <= SAME_SOURCE:
            sources = _first_lines(dev[0].lines)
            for number, source in enumerate(train[0].lines):
                if source and source in sources:
                    leaked[number] = f"the same source as {dev[0].name}:{dev[0].number(sources[source])}"
        rows = _first_lines(_rows(dev))
        for number, row in enumerate(_rows(train)):
            if all(row) and row in rows:
                leaked[number] = f"the same as {dev[0].name}:{dev[0].number(rows[row])}"
        return leaked


def _rows(documents: Sequence[Document]) -> list[tuple[str, ...]]:
    return list(zip(*(document.lines for document in documents), strict=True))


def _first_lines(rows: Sequence[Row]) -> dict[Row, int]:
    """The number of the first line that is equal to each row."""
    return {row: number for number, row in reversed(list(enumerate(rows)))}


@dataclass(frozen=True)
class DevStatistics:
    """Statistics of a dev text compared with the training text."""

    file: str
    lines: int
    in_train: int  # lines (or pairs) that are also in the training text
    source_in_train: int | None  # pairs whose source is also a training source
    unknown_tokens: float  # share of its words that are not in the training text
    unknown_types: float
    nearly_in_train: int  # further lines whose source is nearly the same as a training source


def dev_statistics(train: Sequence[Document], dev: Sequence[Document], overlap: Overlap) -> tuple[DevStatistics, ...]:
    """Summarise each dev file; the overlap is the same for both sides."""
    same = overlap.count(SAME)
    source_in_train = same + overlap.count(SAME_SOURCE) if len(train) == 2 else None
    return tuple(
        DevStatistics(
            side.name, len(side), same, source_in_train, *unknown_shares(train_side, side), overlap.count(NEAR)
        )
        for train_side, side in zip(train, dev, strict=True)
    )


def unknown_shares(train: Document, dev: Document) -> tuple[float, float]:
    """Return the shares of the tokens and of the types of dev that are not in train."""
    known = set(train.scanned.types)
    is_unknown = np.array([word not in known for word in dev.scanned.types], np.bool_)
    if not len(is_unknown):
        return 0.0, 0.0
    return float(dev.scanned.counts[is_unknown].sum()) / float(dev.scanned.counts.sum()), float(is_unknown.mean())


def dev_findings(train: Document, dev: Document) -> Iterator[Finding]:
    """Report a dev side that differs in style from its training side."""
    name = train.name
    unknown_tokens, _ = unknown_shares(train, dev)
    if unknown_tokens > MAX_UNKNOWN_SHARE:
        yield dev.finding("unknown-words", None, f"{100 * unknown_tokens:.1f}% of the words are not in {name}")
    train_habits, dev_habits = writing_habits(train), writing_habits(dev)
    for habit in train_habits.keys() & dev_habits.keys():
        if abs(train_habits[habit] - dev_habits[habit]) > MAX_HABIT_DIFFERENCE:
            shares = [100 * habits[habit] for habits in (dev_habits, train_habits)]
            message = f"{shares[0]:.0f}% of the lines {habit}, but {shares[1]:.0f}% in {name}"
            yield dev.finding("dev-differs", None, message)
