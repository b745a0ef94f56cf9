"""Two texts line by line, and a dev text beside the training text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.doctor.alignment_checks import divergence_line
from dragoman.doctor.findings import Finding
from dragoman.doctor.reader import Document
from dragoman.doctor.single_text import DoctorLimits, TextStatistics, repeats, shortened, writing_habits

FAR = 5.0  # standard deviations (robust) from the usual length
UNKNOWN = 0.15  # share of dev's words, above which something is probably wrong
SENTENCE = 4  # words of letters; names and titles, which have fewer, may be the same in two languages
SAME, SAME_OF = (
    0.2,
    20,
)  # share of the pairs, and of how many: with more copies than that, something is wrong with a file
DIFFERENT = 0.5  # difference of two shares, above which habits of writing differ


@dataclass(frozen=True)
class PairStatistics:
    """A parallel text in numbers."""

    pairs: int
    word_ratio: float  # target words for each source word, all in all
    character_ratio: float
    identical: int  # pairs whose two sides are the same
    repeated: int  # pairs that came before
    other_target: int  # pairs whose source came before, with another target: no fault


def pair_statistics(source: TextStatistics, target: TextStatistics) -> PairStatistics:
    pairs = list(zip(source.document.lines, target.document.lines, strict=True))
    distinct = Counter(one for one, _ in set(pairs))
    return PairStatistics(
        pairs=len(pairs),
        word_ratio=_ratio(target.words, source.words),
        character_ratio=_ratio(target.characters, source.characters),
        identical=int(_same(source.document, target.document).sum()),
        repeated=len(pairs) - len(set(pairs)),
        other_target=sum(distinct.values()) - len(distinct),
    )


def is_copied_sentence(source: TextStatistics, target: TextStatistics) -> NDArray[np.bool_]:
    """Sentences that stand on both sides as they are. That needs no knowledge of the languages."""
    words = np.diff(source.letters.words().offsets)
    return _same(source.document, target.document) & (words >= SENTENCE)


def _same(source: Document, target: Document) -> NDArray[np.bool_]:
    pairs = zip(source.lines, target.lines, strict=True)
    return np.fromiter((one == two != "" for one, two in pairs), np.bool_, len(source))


def _ratio(one: NDArray[np.int64], two: NDArray[np.int64]) -> float:
    return float(one.sum()) / max(1, int(two.sum()))


def line_count_finding(source: Document, target: Document) -> Finding:
    """Files of different length, and where they seem to go apart."""
    longer, shorter = (target, source) if len(target) > len(source) else (source, target)
    extra = len(longer) - len(shorter)
    what = f"{source.name} has {len(source):,} lines, {target.name} {len(target):,}"
    place = divergence_line(source.lines, target.lines)
    if place is None:
        return longer.finding("line-counts", None, what)
    many = f"{extra} lines" if extra > 1 else "a line"
    return longer.finding(
        "line-counts", min(place, len(longer) - 1), f"{what}; this one has {many} too many about here"
    )


def pair_findings(source: TextStatistics, target: TextStatistics, limits: DoctorLimits) -> Iterator[Finding]:
    """Empty, overlong and copied sides, unusual lengths, repeated pairs."""
    one, two = source.document, target.document
    for line in np.flatnonzero((source.words == 0) | (target.words == 0)).tolist():
        wrong = one if source.words[line] == 0 else two
        both = source.words[line] == 0 and target.words[line] == 0
        yield wrong.finding("empty-side", line, "both sides are empty" if both else "no words here")
    for side in (source, target):
        for line in np.flatnonzero(side.words > limits.max_words).tolist():
            yield side.document.finding("long-pair", line, f"{side.words[line]:,} words")
    yield from _unusual_lengths(source, target, limits)
    yield from _copies(source, target)
    if one.part == "train":
        for line, first in repeats(list(zip(one.lines, two.lines, strict=True))):
            if one.lines[line] and two.lines[line]:
                yield one.finding("duplicate-pair", line, f"the same pair as in line {one.number(first)}")


def _copies(source: TextStatistics, target: TextStatistics) -> Iterator[Finding]:
    one, two = source.document, target.document
    same = int(_same(one, two).sum())
    if len(one) >= SAME_OF and same > SAME * len(one):
        what = f"{same:,} of {len(one):,} pairs are the same in {one.name} and {two.name}"
        yield two.finding("same-text", None, what)
    for line in np.flatnonzero(is_copied_sentence(source, target)).tolist():
        yield two.finding("untranslated", line, repr(shortened(two.lines[line])))


def _unusual_lengths(source: TextStatistics, target: TextStatistics, limits: DoctorLimits) -> Iterator[Finding]:
    """Pairs whose lengths are far from the corpus' own ratio, by characters or by words.

    A translation of l characters varies with a standard deviation that grows like the root of l (Gale and Church), so
    short lines may differ by large factors; how much, is taken from the middle of the corpus itself.
    """
    both = (source.words > 0) & (target.words > 0)
    found: dict[int, str] = {}
    for unit in ("characters", "words"):
        one, two = getattr(source, unit)[both].astype(np.float64), getattr(target, unit)[both].astype(np.float64)
        if len(one) < 2:
            return
        usual = float(np.median(two / one))
        off = (two - usual * one) / np.sqrt((two + usual * one) / 2)
        low, high = np.percentile(off, [25, 75])
        deviation = max((high - low) / 1.349, 0.3)
        factor = two / (usual * one)
        beyond = (np.maximum(factor, 1 / factor) > limits.max_ratio) & (np.abs(off - np.median(off)) > FAR * deviation)
        for line in np.flatnonzero(both)[beyond].tolist():
            lengths = f"{getattr(source, unit)[line]:,} {unit} beside {getattr(target, unit)[line]:,}"
            found.setdefault(line, f"{lengths}: {shortened(source.document.lines[line], 30)!r}")
    for line, what in sorted(found.items()):
        yield source.document.finding("length-ratio", line, what)


# -- dev against train ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DevStatistics:
    """A dev text against the training text."""

    file: str
    lines: int
    in_train: int  # of its lines (or pairs) that are in the training text
    source_in_train: int | None  # of its pairs whose source is a training source
    unknown_tokens: float  # share of its words that the training text does not have
    unknown_types: float


def overlap_findings(train: Sequence[Document], dev: Sequence[Document]) -> Iterator[Finding]:
    """Dev lines or pairs that stand in the training text as well; found in train, as that is where they are dropped."""
    held = {line: number for number, line in reversed(list(enumerate(_rows(dev))))}
    for number, line in enumerate(_rows(train)):
        if line in held and all(line):
            what = f"the same as {dev[0].name}:{dev[0].number(held[line])}"
            yield train[0].finding("overlap", number, what)
    if len(train) == 2:
        sources, pairs = set(train[0].lines), set(_rows(train))
        for number, line in enumerate(_rows(dev)):
            if line[0] in sources and line not in pairs:
                yield dev[0].finding("overlap-source", number, f"{shortened(line[0])!r}, with another target in train")


def _rows(documents: Sequence[Document]) -> list[tuple[str, ...]]:
    return list(zip(*(document.lines for document in documents), strict=True))


def dev_statistics(train: Sequence[TextStatistics], dev: Sequence[TextStatistics]) -> list[DevStatistics]:
    """For each side how much is unknown; what overlaps is the same for all sides."""
    seen = set(_rows([side.document for side in train]))
    rows = _rows([side.document for side in dev])
    in_train = sum(row in seen for row in rows if all(row))
    sources = {row[0] for row in seen}
    source = sum(row[0] in sources for row in rows if all(row)) if len(train) == 2 else None
    return [
        DevStatistics(side.document.name, len(rows), in_train, source, *unknown_shares(known, side))
        for known, side in zip(train, dev, strict=True)
    ]


def unknown_shares(train: TextStatistics, dev: TextStatistics) -> tuple[float, float]:
    """The shares of dev's tokens and types that train does not have."""
    known = set(train.scan.types)
    new = np.array([word not in known for word in dev.scan.types], np.bool_)
    if not len(new):
        return 0.0, 0.0
    return float(dev.scan.counts[new].sum()) / float(dev.scan.counts.sum()), float(new.mean())


def dev_findings(train: TextStatistics, dev: TextStatistics) -> Iterator[Finding]:
    """A dev side that is unlike its training side."""
    tokens, _ = unknown_shares(train, dev)
    if tokens > UNKNOWN:
        what = f"{100 * tokens:.1f}% of the words are not in {train.document.name}"
        yield dev.document.finding("unknown-words", None, what)
    habit, other = writing_habits(train.document), writing_habits(dev.document)
    for name in habit.keys() & other.keys():
        if abs(habit[name] - other[name]) > DIFFERENT:
            what = (
                f"{100 * other[name]:.0f}% of the lines {name}, but {100 * habit[name]:.0f}% in {train.document.name}"
            )
            yield dev.document.finding("dev-differs", None, what)
