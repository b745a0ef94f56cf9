"""Where the lines of two files are shifted: from some line on, line i of one belongs with line i + shift of the other.

The files are compared in short chunks, each at several shifts (see `line_similarity`). Where the best shift changes
between two chunks, further chunks between them narrow the place down, and single lines decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dragoman.doctor.line_similarity import (
    FloatArray,
    NgramVectors,
    centered_similarities,
    fit_at_shifts,
    nearby_permutation,
    profile_scores,
)

CHUNK_LINES, MIN_CHUNK_LINES = 200, 60
MAX_CHUNKS = 24
MAX_UNKNOWN_CHUNKS = 6  # after so many in a row that fit at no shift, the search ends
MAX_SHIFT = 20  # lines by which a chunk may be shifted against the one before
RANDOM_PAIRINGS = 50  # of a chunk that seems to be shifted
FALSE_ALARM_RATE = 1e-4  # probability that a chunk without any pairs seems to be shifted
MAX_KNOWN_PAIRS = 400  # that single lines are compared with
ROUNDS = 3
EULER = 0.5772156649015329  # mean of the standard Gumbel distribution


@dataclass(frozen=True)
class ShiftedLines:
    """Source lines from `first` on, which belong with the target lines `shift` lines further on."""

    first: int
    shift: int


@dataclass(frozen=True)
class ShiftSearch:
    """The lines of two texts, and the weights of their n-grams."""

    source: Sequence[str]
    target: Sequence[str]
    generator: np.random.Generator
    weights: tuple[NgramVectors, NgramVectors]

    @classmethod
    def create(cls, source: Sequence[str], target: Sequence[str], generator: np.random.Generator) -> ShiftSearch:
        samples = (lines[:: max(1, len(lines) // 1000)] for lines in (source, target))
        first, second = (NgramVectors.fit(sample) for sample in samples)
        return cls(source, target, generator, (first, second))

    @property
    def chunk_lines(self) -> int:
        return min(CHUNK_LINES, max(MIN_CHUNK_LINES, len(self.source) // 4))

    def find_segments(self) -> list[ShiftedLines]:
        """Return the segments of the source in order; a single one with shift 0 if nothing is shifted."""
        if min(len(self.source), len(self.target)) < MIN_CHUNK_LINES + 2 * MAX_SHIFT:
            return [ShiftedLines(0, 0)]
        known, unknown_in_a_row = [ShiftedLines(0, 0)], 0
        for start in self._chunk_starts():
            shift = self.best_shift(start, [known[-1].shift])
            unknown_in_a_row = unknown_in_a_row + 1 if shift is None else 0
            if shift is not None:
                known.append(ShiftedLines(start, shift))
            elif unknown_in_a_row == MAX_UNKNOWN_CHUNKS:
                break
        if len(known) == 1:  # no chunk fits at any shift
            return known
        changes = [(first, second) for first, second in pairwise(known) if first.shift != second.shift]
        if 2 * len(changes) > max(4, len(known)):  # the lines are in another order
            return [ShiftedLines(0, 0)]
        narrowed = [change for first, second in changes for change in self._narrow(first, second)]
        end_shift = len(self.target) - len(self.source)
        if end_shift and known[-1].shift != end_shift:  # lines at the end of one file that the other lacks
            narrowed.append((known[-1], ShiftedLines(len(self.source), end_shift)))
        return self._locate(narrowed)

    def _chunk_starts(self) -> list[int]:
        """Starts of chunks, far enough from both ends of the files that all shifts are possible."""
        last_start = min(len(self.source), len(self.target)) - self.chunk_lines - MAX_SHIFT
        count = max(1, min(MAX_CHUNKS, len(self.source) // self.chunk_lines))
        return list(np.linspace(MAX_SHIFT, last_start, count).astype(int).tolist())

    def best_shift(self, start: int, expected: Sequence[int]) -> int | None:
        """Return the shift at which a chunk fits best; None if it fits no better than at random.

        It is one of the expected shifts unless another fits at least twice as well: the lines of a text may be similar.
        """
        lines = self.source[start : start + self.chunk_lines]
        source = centered_similarities(self.weights[0].vectors(lines))
        best, best_fit, best_target = expected[0], -np.inf, source
        best_expected, expected_fit = expected[0], -np.inf
        for low, high in self._shift_ranges(expected[0]):
            first, last = max(low, -start), min(high, len(self.target) - start - len(lines))
            if last < first:
                continue
            window = self.target[start + first : start + last + len(lines)]
            target = centered_similarities(self.weights[1].vectors(window))
            fits = fit_at_shifts(source, target)
            for shift in expected:
                if first <= shift <= last and fits[shift - first] > expected_fit:
                    best_expected, expected_fit = shift, float(fits[shift - first])
            if fits.max() > best_fit:
                best, best_fit, best_target = first + int(np.argmax(fits)), float(fits.max()), target
        if best == best_expected:
            return best
        random_fits = self._random_fits(source, best_target)
        mean, deviation = float(np.mean(random_fits)), max(float(np.std(random_fits)), 1e-12)
        # The best fits at random follow an extreme value distribution (Gumbel).
        if np.pi / np.sqrt(6) * (best_fit - mean) / deviation + EULER < -np.log(FALSE_ALARM_RATE):
            return None
        return best_expected if best_fit - mean < 2 * (expected_fit - mean) else best

    def _shift_ranges(self, current: int) -> list[tuple[int, int]]:
        """Ranges of shifts to try: around the current one, and around the one at the end of the files."""
        end_shift = len(self.target) - len(self.source)
        ranges = [(current - MAX_SHIFT, current + MAX_SHIFT)]
        if abs(end_shift - current) > MAX_SHIFT:
            ranges.append((end_shift - MAX_SHIFT, end_shift + MAX_SHIFT))
        return ranges

    def _random_fits(self, source: FloatArray, target: FloatArray) -> list[float]:
        """The best fit at any shift of each of several random pairings."""
        fits = []
        for _ in range(RANDOM_PAIRINGS):
            order = nearby_permutation(len(target), self.generator)
            fits.append(float(fit_at_shifts(source, target[np.ix_(order, order)]).max()))
        return fits

    def _narrow(self, first: ShiftedLines, second: ShiftedLines) -> list[tuple[ShiftedLines, ShiftedLines]]:
        """Compare chunks between two of different shifts until these are neighbours."""
        if second.first - first.first <= self.chunk_lines // 2:
            return [(first, second)]
        middle = (first.first + second.first) // 2
        shift = self.best_shift(middle, [first.shift, second.shift])
        if shift is None or shift == second.shift:
            return self._narrow(first, ShiftedLines(middle, second.shift))
        if shift == first.shift:
            return self._narrow(ShiftedLines(middle, shift), second)
        between = ShiftedLines(middle, shift)
        return [*self._narrow(first, between), *self._narrow(between, second)]

    # -- single lines --------------------------------------------------------------------------------------------------

    def _locate(self, changes: list[tuple[ShiftedLines, ShiftedLines]]) -> list[ShiftedLines]:
        """Find the line of each change between two chunks, several times: each time with better known pairs."""
        places = [min(second.first + self.chunk_lines // 2, len(self.source)) for _, second in changes]
        for _ in range(ROUNDS if changes else 0):
            segments = [
                ShiftedLines(0, 0),
                *(ShiftedLines(place, second.shift) for place, (_, second) in zip(places, changes, strict=True)),
            ]
            known = self._known_pairs(segments)
            new_places = [self._change_line(first, second, known) for first, second in changes]
            if new_places == places:
                break
            places = new_places
        located = [ShiftedLines(place, second.shift) for place, (_, second) in zip(places, changes, strict=True)]
        return _without_empty([ShiftedLines(0, 0), *located])

    def _known_pairs(self, segments: list[ShiftedLines]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """A sample of the pairs of lines that belong together by these segments."""
        source, target = paired_lines(segments, len(self.source), len(self.target))
        chosen = np.sort(self.generator.permutation(len(source))[:MAX_KNOWN_PAIRS])
        return source[chosen], target[chosen]

    def _change_line(
        self, first: ShiftedLines, second: ShiftedLines, known: tuple[NDArray[np.int64], NDArray[np.int64]]
    ) -> int:
        """The first source line that fits better by the second shift, so that all lines together fit best."""
        end = min(len(self.source), second.first + self.chunk_lines)
        lines = np.arange(first.first, end)
        scores = []
        for shift in (first.shift, second.shift):
            is_possible = (lines + shift >= 0) & (lines + shift < len(self.target))
            of_shift = np.full(len(lines), -1.0)
            of_shift[is_possible] = self._pair_scores(lines[is_possible], lines[is_possible] + shift, known)
            scores.append(of_shift)
        gains = np.concatenate([[0.0], np.cumsum(scores[0] - scores[1])])
        return first.first + int(np.argmax(gains))

    def _pair_scores(
        self,
        source_lines: NDArray[np.int64],
        target_lines: NDArray[np.int64],
        known: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> FloatArray:
        similarities = []
        sides = zip((self.source, self.target), self.weights, (source_lines, target_lines), known, strict=True)
        for text, weights, lines, known_lines in sides:
            vectors, known_vectors = (
                weights.vectors([text[line] for line in chosen.tolist()]) for chosen in (lines, known_lines)
            )
            similarity = vectors @ known_vectors.T  # (lines, known pairs)
            similarity[lines[:, None] == known_lines[None, :]] = np.nan
            similarities.append(similarity)
        return profile_scores(similarities[0], similarities[1])


def _without_empty(segments: list[ShiftedLines]) -> list[ShiftedLines]:
    """Remove segments without lines, and join those of equal shift."""
    result: list[ShiftedLines] = []
    for segment in segments:
        if result and result[-1].first >= segment.first:
            result.pop()
        if not result or result[-1].shift != segment.shift:
            result.append(segment)
    return result


def paired_lines(
    segments: list[ShiftedLines], source_size: int, target_size: int, margin: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the source and target lines that belong together, without `margin` lines at each change."""
    sources, targets = [], []
    ends = [*(segment.first for segment in segments[1:]), source_size]
    for number, (segment, end) in enumerate(zip(segments, ends, strict=True)):
        low = segment.first + (margin if number else 0)
        high = end - (margin if number < len(segments) - 1 else 0)
        lines = np.arange(max(low, -segment.shift), min(high, target_size - segment.shift), dtype=np.int64)
        sources.append(lines)
        targets.append(lines + segment.shift)
    source, target = np.concatenate(sources), np.concatenate(targets)
    # Where a line is missing in the target, both neighbours of the change would have the same target line.
    _, keep = np.unique(target, return_index=True)
    return source[keep], target[keep]
