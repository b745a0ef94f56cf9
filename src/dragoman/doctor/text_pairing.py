"""Two texts as a whole: whether their lines belong together, and from where on they are shifted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dragoman.doctor.documents import Document
from dragoman.doctor.findings import Finding
from dragoman.doctor.line_shifts import ShiftedLines, ShiftSearch, paired_lines
from dragoman.doctor.line_similarity import BLOCK_LINES, pairing_score

SAMPLE_SIZES = (400, 2500)  # lines of a text to test; the second sample only if the first shows nothing
MIN_PAIRING_SCORE = 4.0  # of pairs that belong together; random ones reach it in about one of 10,000 texts
MIN_PAIRS, MIN_DEV_PAIRS = 100, 20  # fewer may show nothing even if they belong together
MIN_WORD_PAIRS = 1000  # the same for single words that have hardly any letters in common with their translations
MAX_WORD_CHARACTERS = 10  # of most single words; texts without spaces have longer lines
KNOWN_PAIRS = 600  # of the training text, with which the lines of a dev text are compared
CHANGE_MARGIN = 3  # lines on each side of a change that are dropped: the line may be wrong by a few
Pair = tuple[Document, Document]


@dataclass(frozen=True)
class Pairing:
    """What is known about the pairs of two texts."""

    source: Document
    target: Document
    segments: tuple[ShiftedLines, ...] = (ShiftedLines(0, 0),)
    is_paired: bool | None = None  # None: not tested

    @property
    def is_shifted(self) -> bool:
        return self.segments != (ShiftedLines(0, 0),)

    @property
    def can_check_pairs(self) -> bool:
        """Whether single pairs can be examined: the lines belong together, perhaps after a shift."""
        return self.is_paired is not False and (len(self.source) == len(self.target) or self.is_shifted)

    def lines(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the source and target lines that belong together, without some at each change of the shift."""
        return paired_lines(list(self.segments), len(self.source), len(self.target), CHANGE_MARGIN)

    def paired(self) -> Pair:
        """Return the documents with the lines that belong together."""
        if not self.is_shifted and len(self.source) == len(self.target):
            return self.source, self.target
        source, target = self.lines()
        return self.source.select(source), self.target.select(target)

    def findings(self) -> tuple[Finding, ...]:
        """Report texts that do not belong together, texts of different length, and places where a shift begins."""
        if len(self.source) == len(self.target):
            return self._unpaired_findings() if self.is_paired is False else self._shift_findings()
        shifts = self._shift_findings()
        count_finding = self._line_count_finding(shifts[0] if len(shifts) == 1 else None)
        return (count_finding, *(shifts if len(shifts) > 1 else ()))

    def _unpaired_findings(self) -> tuple[Finding, ...]:
        message = f"line by line, {self.source.name} and {self.target.name} fit no better than lines paired at random"
        return (self.source.finding("unpaired", None, message),)

    def _line_count_finding(self, shift: Finding | None) -> Finding:
        source, target = self.source, self.target
        message = f"{source.name} has {len(source):,} lines, {target.name} {len(target):,}"
        if shift is None:
            longer = target if len(target) > len(source) else source
            return longer.finding("line-counts", None, message)
        document = source if shift.file == source.name else target
        line = None if shift.line is None else shift.line - document.first
        return document.finding("line-counts", line, f"{message}; {shift.message}")

    def _shift_findings(self) -> tuple[Finding, ...]:
        first = self.segments[0]
        before = [ShiftedLines(0, 0)] if first.shift else []
        return tuple(self._shift_finding(one, other) for one, other in pairwise([*before, *self.segments]))

    def _shift_finding(self, before: ShiftedLines, after: ShiftedLines) -> Finding:
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
        return longer.finding("line-shift", place, cause)


def find_pairing(source: Document, target: Document, known: Pairing | None = None) -> Pairing:
    """Find out how the lines of two texts belong together, with `known` pairs of the same languages if there are any.

    Texts with too few lines are taken to be paired if they have equally many.
    """
    generator = np.random.default_rng(0)
    segments = tuple(ShiftSearch.create(source.lines, target.lines, generator).find_segments())
    is_equal = len(source) == len(target)
    pairing = Pairing(source, target, segments)
    if not is_equal and not pairing.is_shifted:
        return pairing
    is_paired = _is_paired(pairing, known, generator)
    if is_paired is False and pairing.is_shifted:  # the shifts were accidental
        pairing = Pairing(source, target)
        is_paired = _is_paired(pairing, known, generator) if is_equal else None
    return Pairing(source, target, pairing.segments, is_paired)


def fit_line_by_line(source: Sequence[str], target: Sequence[str]) -> bool | None:
    """Whether lines fit better than at random, by some hundred of them; None if there are too few to know."""
    size = SAMPLE_SIZES[0]
    if len(source) < MIN_PAIRS:
        return None
    score = pairing_score(source[:size], target[:size], np.random.default_rng(0))
    return None if score is None else score >= MIN_PAIRING_SCORE


def _is_paired(pairing: Pairing, known: Pairing | None, generator: np.random.Generator) -> bool | None:
    """Whether the lines fit better than at random; None if that cannot be known."""
    pair = pairing.paired()
    if known is not None and known.is_paired:
        return _is_dev_paired(pair, known.paired(), generator)
    if len(pair[0]) < (MIN_WORD_PAIRS if _is_vocabulary(pair) else MIN_PAIRS):
        return None
    score = None
    for size in SAMPLE_SIZES:
        source, target = _sample(pair, size, generator)
        score = pairing_score(source, target, generator)
        if len(pair[0]) <= size or (score is not None and score >= MIN_PAIRING_SCORE):
            break
    return None if score is None else score >= MIN_PAIRING_SCORE


def _is_dev_paired(dev: Pair, train: Pair, generator: np.random.Generator) -> bool | None:
    """Whether lines fit, together with training pairs, better than at random, and half as well as training pairs.

    None if as many training pairs would not fit much better than at random either.
    """
    if len(dev[0]) < MIN_DEV_PAIRS:
        return None
    known = _sample(train, KNOWN_PAIRS, generator)
    tested = _sample(dev, SAMPLE_SIZES[0], generator)

    def pairing_score_with(first: list[list[str]], last: list[list[str]]) -> float:
        source, target = ([*lines, *new] for lines, new in zip(first, last, strict=True))
        return pairing_score(source, target, generator, len(first[0])) or 0.0

    score = pairing_score_with(known, tested)
    if score >= MIN_PAIRING_SCORE:
        return True
    size = min(len(tested[0]), len(known[0]) // 2)
    reference = pairing_score_with([lines[size:] for lines in known], [lines[:size] for lines in known])
    return False if reference > max(MIN_PAIRING_SCORE, 2 * score) else None


def _is_vocabulary(pair: Pair) -> bool:
    """Whether most lines are words with translations in other letters, as in a dictionary: they show little."""
    if any(np.median(side.words) > 1 or np.median(side.characters) > MAX_WORD_CHARACTERS for side in pair):
        return False
    letters, target = set("".join(pair[0].lines)), "".join(pair[1].lines)
    return 2 * sum(letter in letters for letter in target) < len(target)


def _sample(pair: Pair, size: int, generator: np.random.Generator) -> list[list[str]]:
    """The same random lines of both sides: groups of neighbours, which the test exchanges."""
    groups = np.arange(-(-len(pair[0]) // BLOCK_LINES))
    chosen = np.sort(generator.permutation(groups)[: size // BLOCK_LINES])
    lines = (BLOCK_LINES * chosen[:, None] + np.arange(BLOCK_LINES)).ravel()
    return [[document.lines[line] for line in lines[lines < len(document)].tolist()] for document in pair]
