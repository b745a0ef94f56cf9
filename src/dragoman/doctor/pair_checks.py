"""Checks of two texts line by line, and of dev text against training text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import shorten
from dragoman.doctor.documents import Document
from dragoman.doctor.findings import Finding
from dragoman.doctor.text_checks import DoctorLimits, long_line_findings, repeat_findings, writing_habits

OUTLIER_DEVIATIONS = 5.0  # robust standard deviations from the usual length
MIN_SENTENCE_WORDS = 4  # shorter lines, such as names and titles, may be the same in two languages
MAX_COPIED_SHARE, MIN_PAIRS = 0.2, 20  # with more copies than this, of at least so many pairs, the file is wrong
MAX_OVERLAP_SHARE = 0.5  # of dev; with more in train, most of what dev measures is memory
OVERLAP_DEVIATIONS = 3.0  # by chance in one of 700 dev texts
MIN_KEY_LETTERS = 8  # letters and spaces; shorter lines are the same or not
MAX_UNKNOWN_SHARE = 0.15  # of the words of dev
MAX_HABIT_DIFFERENCE = 0.5  # between the shares of lines that follow a convention


@dataclass(frozen=True)
class PairStatistics:
    """Statistics of a parallel text."""

    pairs: int
    word_ratio: float  # target words per source word
    character_ratio: float
    identical: int  # pairs with two equal sides
    repeated: int  # pairs that occurred before
    other_target: int  # pairs whose source occurred before with another target


def pair_statistics(source: Document, target: Document) -> PairStatistics:
    """Summarise a parallel text."""
    pairs = list(zip(source.lines, target.lines, strict=True))
    targets_per_source = Counter(line for line, _ in set(pairs))
    return PairStatistics(
        pairs=len(pairs),
        word_ratio=float(target.words.sum()) / max(1, int(source.words.sum())),
        character_ratio=float(target.characters.sum()) / max(1, int(source.characters.sum())),
        identical=int(_is_identical(source, target).sum()),
        repeated=len(pairs) - len(set(pairs)),
        other_target=targets_per_source.total() - len(targets_per_source),
    )


def is_copied_sentence(source: Document, target: Document) -> NDArray[np.bool_]:
    """Whether each line is a sentence that is the same on both sides.  # (lines,)"""
    words = np.diff(source.letters.words().offsets)
    return _is_identical(source, target) & (words >= MIN_SENTENCE_WORDS)


def _is_identical(source: Document, target: Document) -> NDArray[np.bool_]:
    pairs = zip(source.lines, target.lines, strict=True)
    return np.fromiter((first == second != "" for first, second in pairs), np.bool_, len(source))


def pair_findings(source: Document, target: Document, limits: DoctorLimits) -> Iterator[Finding]:
    """Find pairs with empty, very long or copied sides, unusual lengths, and repeated pairs."""
    for line in np.flatnonzero((source.words == 0) | (target.words == 0)).tolist():
        both = source.words[line] == 0 and target.words[line] == 0
        document = source if source.words[line] == 0 else target
        yield document.finding("empty-side", line, "both sides are empty" if both else "no words here")
    for document in (source, target):
        yield from long_line_findings("long-pair", document, limits)
    yield from _length_findings(source, target, limits)
    identical = int(_is_identical(source, target).sum())
    if len(source) >= MIN_PAIRS and identical > MAX_COPIED_SHARE * len(source):
        message = f"{identical:,} of {len(source):,} pairs are the same in {source.name} and {target.name}"
        yield target.finding("same-text", None, message)
    yield from target.findings("untranslated", is_copied_sentence(source, target), target.quoted)
    yield from repeat_findings("duplicate-pair", "the same pair as in", source, target)


def _length_findings(source: Document, target: Document, limits: DoctorLimits) -> Iterator[Finding]:
    """Find pairs whose lengths, in characters or words, are far from the usual ratio.

    The standard deviation of the length of a translation grows with the square root of the length (Gale and Church),
    so short lines may differ by large factors. Its scale is estimated from the middle half of the text.
    """
    has_words = (source.words > 0) & (target.words > 0)
    messages: dict[int, str] = {}
    for unit, sizes, target_sizes in (
        ("characters", source.characters, target.characters),
        ("words", source.words, target.words),
    ):
        length, target_length = (values[has_words].astype(np.float64) for values in (sizes, target_sizes))
        if len(length) < 2:
            return
        ratio = float(np.median(target_length / length))
        deviations = (target_length - ratio * length) / np.sqrt((target_length + ratio * length) / 2)
        low, high = np.percentile(deviations, [25, 75])
        scale = max((high - low) / 1.349, 0.3)  # of a normal distribution with these quartiles
        factor = target_length / (ratio * length)
        is_outlier = np.abs(deviations - np.median(deviations)) > OUTLIER_DEVIATIONS * scale
        is_outlier &= np.maximum(factor, 1 / factor) > limits.max_ratio
        for line in np.flatnonzero(has_words)[is_outlier].tolist():
            lengths = f"{sizes[line]:,} and {target_sizes[line]:,} {unit}"
            messages.setdefault(line, f"{lengths}: {source.quoted(line, 30)}")
    for line, message in sorted(messages.items()):
        yield source.finding("length-ratio", line, message)


@dataclass(frozen=True)
class DevStatistics:
    """Statistics of a dev text compared with the training text."""

    file: str
    lines: int
    in_train: int  # lines (or pairs) that are also in the training text
    source_in_train: int | None  # pairs whose source is also a training source
    unknown_tokens: float  # share of its words that are not in the training text
    unknown_types: float


def overlap_findings(train: Sequence[Document], dev: Sequence[Document]) -> Iterator[Finding]:
    """Find dev lines or pairs that are also in the training text, where they are dropped by `--fix`.

    If most of dev is in train, training lines with nearly the same source are dropped as well.
    """
    dev_rows = _rows(dev)
    first_line = {row: number for number, row in reversed(list(enumerate(dev_rows)))}
    overlap = count_overlap(train, dev)
    near_sources: dict[bytes, int] = {}
    same_sources: set[str] = set()
    if overlap.is_most:
        yield dev[0].finding("dev-in-train", None, overlap.describe(train, dev))
        near_sources = {key: number for number, key in reversed(list(enumerate(_source_keys(dev[0])))) if key}
        same_sources = set(dev[0].lines) - {""}
    train_keys = _source_keys(train[0]) if near_sources else [b""] * len(train[0])
    for number, (row, key) in enumerate(zip(_rows(train), train_keys, strict=True)):
        if row in first_line and all(row):
            message = f"the same as {dev[0].name}:{dev[0].number(first_line[row])}"
            yield train[0].finding("overlap", number, message)
        elif key in near_sources:
            message = f"nearly the same source as {dev[0].name}:{dev[0].number(near_sources[key])}"
            yield train[0].finding("overlap", number, message)
        elif row[0] in same_sources:
            yield train[0].finding("overlap", number, f"the same source as in {dev[0].name}")
    if len(train) == 2:
        sources, pairs = set(train[0].lines), set(_rows(train))
        for number, row in enumerate(dev_rows):
            if row[0] in sources and row not in pairs:
                yield dev[0].finding("overlap-source", number, f"{shorten(row[0])!r}, with another target in train")


@dataclass(frozen=True)
class Overlap:
    """How many lines of dev are in the training text."""

    lines: int  # of dev, without empty ones
    same: int  # lines or pairs that are in train
    other_target: int  # further pairs with a source that is in train
    near: int  # further lines with nearly the same source: only case, punctuation, digits or spaces differ
    repeated: float  # share of the training lines that are nearly the same as another training line

    @property
    def is_most(self) -> bool:
        """Whether most of dev is in train, and more than a text that repeats itself this often would have.

        By chance, the share of a sample of dev's size is hardly ever `OVERLAP_DEVIATIONS` standard deviations too high.
        """
        expected = max(MAX_OVERLAP_SHARE, self.repeated)
        deviation = math.sqrt(expected * (1 - expected) / max(1, self.lines))
        share = (self.same + self.other_target + self.near) / max(1, self.lines)
        return self.lines > 0 and share > expected + OVERLAP_DEVIATIONS * deviation

    def describe(self, train: Sequence[Document], dev: Sequence[Document]) -> str:
        total = self.same + self.other_target + self.near
        parts = [f"{self.same:,} the same"]
        if len(dev) == 2:
            parts.append(f"{self.other_target:,} with another translation")
        parts.append(f"{self.near:,} nearly the same source")
        return f"{total:,} of {self.lines:,} lines are in {train[0].name} ({', '.join(parts)})"


def count_overlap(train: Sequence[Document], dev: Sequence[Document]) -> Overlap:
    """Count the lines of dev that are in train."""
    rows, train_rows = [row for row in _rows(dev) if all(row)], set(_rows(train))
    sources = set(train[0].lines)
    train_keys, dev_keys = _source_keys(train[0]), _source_keys(dev[0])
    key_counts = Counter(train_keys)
    same = sum(row in train_rows for row in rows)
    same_source = sum(row[0] in sources for row in rows)
    is_near = (key in key_counts and bool(key) for key in dev_keys)
    near = sum(
        is_near_key and all(row) and row[0] not in sources for row, is_near_key in zip(_rows(dev), is_near, strict=True)
    )
    repeated = sum(count for key, count in key_counts.items() if key and count > 1) / max(1, len(train_keys))
    return Overlap(len(rows), same, same_source - same, near, repeated)


def _source_keys(document: Document) -> list[bytes]:
    """The letters of each line, by which lines are nearly the same; empty for very short lines."""
    letters = document.letters
    data, offsets = letters.codes.tobytes(), (4 * letters.offsets).tolist()
    keys = (data[start:end] for start, end in pairwise(offsets))
    return [key if len(key) >= 4 * MIN_KEY_LETTERS else b"" for key in keys]


def _rows(documents: Sequence[Document]) -> list[tuple[str, ...]]:
    return list(zip(*(document.lines for document in documents), strict=True))


def dev_statistics(train: Sequence[Document], dev: Sequence[Document]) -> list[DevStatistics]:
    """Summarise each dev file; the overlap is the same for both sides."""
    train_rows, rows = set(_rows(train)), _rows(dev)
    in_train = sum(row in train_rows for row in rows if all(row))
    sources = {row[0] for row in train_rows}
    source_in_train = sum(row[0] in sources for row in rows if all(row)) if len(train) == 2 else None
    return [
        DevStatistics(side.name, len(rows), in_train, source_in_train, *unknown_shares(train_side, side))
        for train_side, side in zip(train, dev, strict=True)
    ]


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
