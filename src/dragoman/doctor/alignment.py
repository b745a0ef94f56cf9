"""Lines that do not translate each other: single pairs, runs that are out of step, and files of unequal length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.doctor.findings import Finding
from dragoman.doctor.reader import Document
from dragoman.doctor.single_text import shortened
from dragoman.doctor.word_association import AssociationCounts, WordSets, learn, scores, word_sets

ENOUGH = 300  # pairs to learn from; fewer teach too few words
SAMPLE = 50_000  # lines that are paired at random, to see what chance gives
BUCKETS = (9, 13, 19, 31)  # pairs are compared with others of about as many words; shorter ones are not judged
IN_BUCKET = 30  # pairs by which a bucket can be judged
CHANCE = (0, 50, 95, 95, 95)  # per cent of random pairs that score below this: no better than chance
FENCE = 1.5  # interquartile ranges below the first quartile, where Tukey calls a value an outlier
MARGIN = 0.1  # nats a word: pairs that may become misaligned ones when others are taken out
FAR = 5  # lines by which a run may be out of step
SHORTEST = 4  # lines of a run
SWITCH = 12.0  # nats of evidence that a run must bring for each of its two ends
IMPOSSIBLE = -1e9


@dataclass(frozen=True)
class AlignmentCheck:
    """What was found about the pairing of lines."""

    findings: tuple[Finding, ...]
    remark: str  # why some pairs were not judged
    near: tuple[Finding, ...] = ()  # pairs that are hardly better than misaligned ones


@dataclass(frozen=True)
class AlignmentThresholds:
    """Scores of pairs, and below which score a pair of that size looks like chance."""

    lexicon: AssociationCounts
    source: WordSets
    target: WordSets
    edges: NDArray[np.float64]  # (buckets,) -infinity where nothing can be said
    middles: NDArray[np.float64]  # (buckets,) half way between chance and what pairs usually have

    @classmethod
    def of(cls, source: WordSets, target: WordSets) -> tuple[AlignmentThresholds, NDArray[np.float64]]:
        """A judge, and the scores of all pairs as they stand."""
        lexicon = learn(source, target)
        every = np.arange(len(source.sizes))
        paired = scores(lexicon, source, target, every, every)
        one, other = _random_pairs(target)
        chance = scores(lexicon, source, target, one, other)
        sizes, chance_sizes = _bucket(source.sizes + target.sizes), _bucket(source.sizes[one] + target.sizes[other])
        edges, middles = np.full(len(BUCKETS) + 1, -np.inf), np.full(len(BUCKETS) + 1, -np.inf)
        for bucket in range(1, len(edges)):
            seen = paired[(sizes == bucket) & ~np.isnan(paired)]
            random = chance[(chance_sizes == bucket) & ~np.isnan(chance)]
            if min(len(seen), len(random)) >= IN_BUCKET:
                low, usual, high = np.percentile(seen, [25, 50, 75])
                edges[bucket] = min(float(np.percentile(random, CHANCE[bucket])), low - FENCE * (high - low))
                middles[bucket] = (usual + float(np.median(random))) / 2
        return cls(lexicon, source, target, edges, middles), paired

    def edge(self, lines: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.edges[_bucket(self.source.sizes[lines] + self.target.sizes[lines])]

    def middle(self, lines: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.middles[_bucket(self.source.sizes[lines] + self.target.sizes[lines])]


def _bucket(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.searchsorted(BUCKETS, sizes, side="right")


def _random_pairs(target: WordSets) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of lines that have nothing to do with each other except that they are about as long."""
    order = np.argsort(target.draws, kind="stable")[:SAMPLE]  # in a sorted text neighbours are related
    order = order[np.argsort(target.sizes[order], kind="stable")]
    return np.roll(order, max(1, min(37, len(order) // 10))), order


def check_alignment(source: Document, target: Document) -> AlignmentCheck:
    """Judge how well lines that stand in the same place translate each other."""
    if len(source) < ENOUGH:
        return AlignmentCheck((), f"not checked for misaligned pairs: {len(source):,} are too few, that takes {ENOUGH}")
    one, two = word_sets(source.lines), word_sets(target.lines)
    judge, paired = AlignmentThresholds.of(one, two)
    edge = judge.edge(np.arange(len(source)))
    judged = ~np.isnan(paired) & np.isfinite(edge)
    if 2 * int(judged.sum()) < len(source):
        return AlignmentCheck((), "most pairs have too few words that are known from others to tell misaligned ones")
    runs = [run for run in _runs(_steps(judge, paired)) if _is_clear(run, paired, judge)]
    in_run = np.zeros(len(source), np.bool_)
    for run in runs:
        in_run[run.first : run.last + 1] = True
    findings, near = (
        [_pair_finding(kind, source, target, line) for line in np.flatnonzero(judged & ~in_run & poor).tolist()]
        for kind, poor in (
            ("misaligned", paired < edge),
            ("nearly-misaligned", (paired >= edge) & (paired < edge + MARGIN)),
        )
    )
    told = (*(_run_finding(source, target, run) for run in runs), *findings)
    return AlignmentCheck(told, "", tuple(near))


def _pair_finding(kind: str, source: Document, target: Document, line: int) -> Finding:
    what = f"{shortened(source.lines[line], 40)!r} beside {shortened(target.lines[line], 40)!r}"
    return source.finding(kind, line, what)


# -- runs that are out of step ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShiftedRun:
    first: int
    last: int
    step: int  # target line i belongs to source line i + step


def _steps(judge: AlignmentThresholds, paired: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each target line, how many lines further on its source stands: the likeliest path through all lines."""
    lines = len(paired)
    near = _near_trouble(paired < judge.middle(np.arange(lines)))
    evidence = np.full((lines, 2 * FAR + 1), IMPOSSIBLE)
    evidence[:, FAR] = np.nan_to_num(paired * _weight(judge, np.arange(lines), np.arange(lines)))
    for step in (step for step in range(-FAR, FAR + 1) if step):
        target_lines = near[(near + step >= 0) & (near + step < lines)]
        source_lines = target_lines + step
        found = scores(judge.lexicon, judge.source, judge.target, source_lines, target_lines)
        evidence[target_lines, FAR + step] = np.nan_to_num(found * _weight(judge, source_lines, target_lines))
    return np.asarray(_best_path(evidence, SWITCH)) - FAR


def _weight(
    judge: AlignmentThresholds, source_lines: NDArray[np.int64], target_lines: NDArray[np.int64]
) -> NDArray[np.float64]:
    """How many words a pair's evidence comes from: half of both sides, as each word was asked from both."""
    return (judge.source.sizes[source_lines] + judge.target.sizes[target_lines]) / 2


def _near_trouble(weak: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Lines near two weak ones out of three: only there other steps need to be tried."""
    padded = np.concatenate([[False, False], weak, [False, False]]).astype(np.int64)
    sums = padded[:-2] + padded[1:-1] + padded[2:]
    around = np.convolve(sums[1:-1] >= 2, np.ones(2 * FAR + 3), mode="same")
    return np.flatnonzero(around[: len(weak)] > 0)


@kernel
def _best_path(evidence: Any, switch: float) -> Any:
    """Viterbi: the step of each line that makes most of the evidence, where every change of step costs `switch`."""
    lines, steps = evidence.shape
    score = np.full(steps, -np.inf)
    score[steps // 2] = 0.0
    came_from = np.zeros((lines, steps), np.int8)
    for line in range(lines):
        best = np.argmax(score)
        for step in range(steps):
            stay = score[step]
            if score[best] - switch > stay:
                stay = score[best] - switch
                came_from[line, step] = best
            else:
                came_from[line, step] = step
            score[step] = stay + evidence[line, step]
    path = np.zeros(lines, np.int64)
    step = int(np.argmax(score))
    for line in range(lines - 1, -1, -1):
        path[line] = step
        step = came_from[line, step]
    return path


def _runs(steps: NDArray[np.int64]) -> Iterator[ShiftedRun]:
    cuts = np.flatnonzero(np.diff(steps, prepend=0, append=0))
    for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        if steps[first]:
            yield ShiftedRun(first, last - 1, int(steps[first]))


def _is_clear(run: ShiftedRun, paired: NDArray[np.float64], judge: AlignmentThresholds) -> bool:
    """Whether a run is long enough, and most of its pairs are poor as they stand. Lines that say the same as the one
    before count once: where a sentence stands several times, with other translations, any of them may fit best."""
    lines = np.arange(run.first, run.last + 1)
    lines = lines[[not _repeats(judge.source, line) and not _repeats(judge.target, line) for line in lines.tolist()]]
    return len(lines) >= SHORTEST and 2 * int((paired[lines] < judge.middle(lines)).sum()) > len(lines)


def _repeats(sets: WordSets, line: int) -> bool:
    return line > 0 and bool(sets.draws[line] == sets.draws[line - 1])


def _run_finding(source: Document, target: Document, run: ShiftedRun) -> Finding:
    far = f"{abs(run.step)} line{'s' if abs(run.step) > 1 else ''} {'later' if run.step > 0 else 'earlier'}"
    lines = f"lines {target.number(run.first)} to {target.number(run.last)}"
    what = f"{lines} of {target.name} fit the lines of {source.name} {far}"
    return target.finding("shifted", run.first, what, last=run.last)


# -- files of different line counts -----------------------------------------------------------------------------------


def divergence_line(source: Sequence[str], target: Sequence[str]) -> int | None:
    """Where two files of different length most probably go apart: the first line (from 0) after which the longer one
    has lines too many. None if nothing can be said.

    Lengths say roughly where; then word associations, learned as if that were right, say it more exactly.
    """
    shift = len(target) - len(source)
    if abs(shift) > min(len(source), len(target)) // 2:
        return None
    short, long = (source, target) if shift > 0 else (target, source)
    lengths = [np.log1p(np.fromiter(map(len, lines), np.float64)) for lines in (short, long)]
    usual = float(np.median(lengths[1]) - np.median(lengths[0]))
    straight = -np.abs(lengths[1][: len(short)] - lengths[0] - usual)
    moved = -np.abs(lengths[1][abs(shift) :] - lengths[0] - usual)
    place = _turning_point(straight, moved)
    one, two = word_sets(short), word_sets(long)
    for _ in range(3 if len(short) >= ENOUGH else 0):
        rows = np.arange(len(short))
        paired = np.where(rows < place, rows, rows + abs(shift))
        lexicon = learn(one, _picked(two, paired))
        outside = np.zeros(len(long), np.bool_)  # no pair's own share is taken out: it would be another pair's
        lexicon = replace(lexicon, learned_from=outside)
        straight, moved = (scores(lexicon, one, two, rows, rows + step) for step in (0, abs(shift)))
        place = _turning_point(np.nan_to_num(straight), np.nan_to_num(moved))
    return place


def _picked(sets: WordSets, lines: NDArray[np.int64]) -> WordSets:
    sizes = sets.sizes[lines]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    taken = np.repeat(sets.offsets[lines] - offsets[:-1], sizes) + np.arange(offsets[-1])
    return WordSets(sets.words[taken], offsets, sets.size, sets.draws[lines])


def _turning_point(straight: NDArray[np.float64], moved: NDArray[np.float64]) -> int:
    """From which line on `moved` fits better than `straight`, all in all."""
    gained = np.concatenate([[0.0], np.cumsum(straight - moved)])
    return int(np.argmax(gained))
