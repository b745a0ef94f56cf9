"""Two texts as a whole: whether their lines belong together, and where they go out of step."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dragoman.doctor.documents import Document
from dragoman.doctor.findings import Finding
from dragoman.doctor.line_similarity import BLOCK_LINES, RANDOM_PAIRINGS, NgramVectors, pairing_p_value
from dragoman.doctor.slips import Segment, SlipSearch, paired_lines

SAMPLE_SIZES = (400, 2500)  # lines of a text to test; the second sample only if the first shows nothing
MIN_PAIRS, MIN_DEV_PAIRS = 200, 30  # fewer show nothing even if they are right
KNOWN_PAIRS = 600  # of the training text, with which the lines of a dev text are compared
CHANGE_MARGIN = 3  # lines on each side of a change that are dropped: the line may be wrong by a few
Pair = tuple[Document, Document]


@dataclass(frozen=True)
class Pairing:
    """What is known about the pairs of two texts."""

    source: Document
    target: Document
    segments: tuple[Segment, ...] = (Segment(0, 0),)
    is_paired: bool | None = None  # None: not tested

    @property
    def has_slips(self) -> bool:
        return self.segments != (Segment(0, 0),)

    @property
    def can_check_pairs(self) -> bool:
        """Whether single pairs can be examined: the lines belong together, perhaps after a shift."""
        return self.is_paired is not False and (len(self.source) == len(self.target) or self.has_slips)

    def lines(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the source and target lines that belong together, without some at each change of the shift."""
        return paired_lines(list(self.segments), len(self.source), len(self.target), CHANGE_MARGIN)

    def paired(self) -> Pair:
        """Return the documents with the lines that belong together."""
        if not self.has_slips and len(self.source) == len(self.target):
            return self.source, self.target
        source, target = self.lines()
        return self.source.select(source), self.target.select(target)

    def findings(self) -> tuple[Finding, ...]:
        """Report texts that do not belong together, texts of different length, and places where they slip."""
        if len(self.source) == len(self.target):
            return self._unpaired_findings() if self.is_paired is False else self._slip_findings()
        slips = self._slip_findings()
        count_finding = self._line_count_finding(slips[0] if len(slips) == 1 else None)
        return (count_finding, *(slips if len(slips) > 1 else ()))

    def _unpaired_findings(self) -> tuple[Finding, ...]:
        message = (
            f"line by line, {self.source.name} and {self.target.name} fit no better than lines paired at random "
            f"(1 in {RANDOM_PAIRINGS + 1} shuffled texts would pass this test)"
        )
        return (self.source.finding("unpaired", None, message),)

    def _line_count_finding(self, slip: Finding | None) -> Finding:
        source, target = self.source, self.target
        message = f"{source.name} has {len(source):,} lines, {target.name} {len(target):,}"
        if slip is None:
            longer = target if len(target) > len(source) else source
            return longer.finding("line-counts", None, message)
        document = source if slip.file == source.name else target
        line = None if slip.line is None else slip.line - document.first
        return document.finding("line-counts", line, f"{message}; {slip.message}")

    def _slip_findings(self) -> tuple[Finding, ...]:
        first = self.segments[0]
        before = [Segment(0, 0)] if first.shift else []
        return tuple(self._slip_finding(one, other) for one, other in pairwise([*before, *self.segments]))

    def _slip_finding(self, before: Segment, after: Segment) -> Finding:
        """Report a change of the shift, in the file that has lines too many if that is known."""
        count, source, target = abs(after.shift - before.shift), self.source, self.target
        lines = f"{count} lines" if count > 1 else "a line"
        # Target lines are too many, or source lines are missing; or the other way round.
        longer, shorter = (target, source) if after.shift > before.shift else (source, target)
        place = after.first + (before.shift if longer is target else 0)
        place = min(max(0, place), len(longer) - 1)
        cause = f"{lines} too many in {longer.name}, or missing in {shorter.name}, near here"
        line = after.first
        if line < len(source) and 0 <= line + after.shift < len(target):
            fit = f"{source.name}:{source.number(line)} fits {target.name}:{target.number(line + after.shift)}"
            cause = f"{cause}: {fit}, and so on"
        return longer.finding("out-of-step", place, cause)


def find_pairing(source: Document, target: Document, known: Pairing | None = None) -> Pairing:
    """Find out how the lines of two texts belong together, with `known` pairs of the same languages if there are any.

    Texts with too few lines are taken to be paired if they have equally many.
    """
    generator = np.random.default_rng(0)
    segments = tuple(SlipSearch.create(source.lines, target.lines, generator).find_segments())
    is_equal = len(source) == len(target)
    pairing = Pairing(source, target, segments)
    if not is_equal and not pairing.has_slips:
        return pairing
    is_paired = _is_paired(pairing, known, generator)
    if is_paired is False and pairing.has_slips:  # chance led to the slips
        pairing = Pairing(source, target)
        is_paired = _is_paired(pairing, known, generator) if is_equal else None
    return Pairing(source, target, pairing.segments, is_paired)


def _is_paired(pairing: Pairing, known: Pairing | None, generator: np.random.Generator) -> bool | None:
    """Whether the lines fit better than at random; None if there are too few."""
    has_known = known is not None and known.is_paired is True
    pair = pairing.paired()
    if len(pair[0]) < (MIN_DEV_PAIRS if has_known else MIN_PAIRS):
        return None
    for size in SAMPLE_SIZES:
        texts = [[side.lines[line] for line in lines] for side, lines in _sample(pair, size, generator)]
        known_texts: list[list[str]] = [[], []]
        if has_known and known is not None:
            sampled = _sample(known.paired(), KNOWN_PAIRS, generator)
            known_texts = [[side.lines[line] for line in lines] for side, lines in sampled]
        vectors = []
        for text, known_text in zip(texts, known_texts, strict=True):
            lines = [*known_text, *text]
            vectors.append(NgramVectors.fit(lines).vectors(lines))
        if pairing_p_value(vectors[0], vectors[1], generator, len(known_texts[0])) <= 1 / (RANDOM_PAIRINGS + 1):
            return True
        if len(pair[0]) <= size:
            break
    return False


def _sample(pair: Pair, size: int, generator: np.random.Generator) -> list[tuple[Document, list[int]]]:
    """The same random lines of both sides: groups of neighbours, which the test exchanges."""
    groups = np.arange(len(pair[0]) // BLOCK_LINES)
    chosen = np.sort(generator.permutation(groups)[: size // BLOCK_LINES])
    lines = (BLOCK_LINES * chosen[:, None] + np.arange(BLOCK_LINES)).ravel().tolist()
    return [(document, lines) for document in pair]
