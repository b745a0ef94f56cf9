"""Checks of two texts line by line, and of dev text against training text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import shorten
from dragoman.doctor.alignment_checks import divergence_line
from dragoman.doctor.documents import Document
from dragoman.doctor.findings import Finding
from dragoman.doctor.text_checks import DoctorLimits, long_line_findings, repeat_findings, writing_habits

OUTLIER_DEVIATIONS = 5.0  # robust standard deviations from the usual length
MIN_SENTENCE_WORDS = 4  # shorter lines, such as names and titles, may be the same in two languages
MAX_COPIED_SHARE, MIN_PAIRS = 0.2, 20  # with more copies than this, of at least so many pairs, the file is wrong
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


def line_count_finding(source: Document, target: Document) -> Finding:
    """Report files of different length, and where they probably diverge."""
    longer, shorter = (target, source) if len(target) > len(source) else (source, target)
    extra = len(longer) - len(shorter)
    message = f"{source.name} has {len(source):,} lines, {target.name} {len(target):,}"
    line = divergence_line(source.lines, target.lines)
    if line is not None:
        line = min(line, len(longer) - 1)
        message += f"; this file has {f'{extra} lines' if extra > 1 else 'one line'} too many near here"
    return longer.finding("line-counts", line, message)


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
    """Find dev lines or pairs that are also in the training text, where they are dropped by `--fix`."""
    dev_rows = _rows(dev)
    first_line = {row: number for number, row in reversed(list(enumerate(dev_rows)))}
    for number, row in enumerate(_rows(train)):
        if row in first_line and all(row):
            message = f"the same as {dev[0].name}:{dev[0].number(first_line[row])}"
            yield train[0].finding("overlap", number, message)
    if len(train) == 2:
        sources, pairs = set(train[0].lines), set(_rows(train))
        for number, row in enumerate(dev_rows):
            if row[0] in sources and row not in pairs:
                yield dev[0].finding("overlap-source", number, f"{shorten(row[0])!r}, with another target in train")


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
