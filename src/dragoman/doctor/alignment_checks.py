"""Lines that are not translations of each other: single pairs, and shifted runs of lines."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.align.pair_grid import NULL, IdLines
from dragoman.align.word_association import WordAssociations
from dragoman.core.kernels import kernel
from dragoman.data.scanner import scan
from dragoman.doctor.characters import SCRIPTS_WITHOUT_SPACES
from dragoman.doctor.documents import Document, join_lines
from dragoman.doctor.findings import CheckResult, Finding

MIN_PAIRS = 300  # fewer pairs teach too few words
MAX_LINE_WORDS = 60  # further words of a line are ignored
MAX_TRAINING_CELLS = 8_000_000  # word pairs to train on; larger texts are sampled
RANDOM_PAIRS = 50_000  # pairs of unrelated lines, to compare scores with
LENGTH_EDGES = (9, 13, 19, 31)  # pairs are compared with others of about as many words; shorter ones are not checked
MIN_BUCKET_PAIRS = 30  # with fewer pairs of a length nothing is reported
RANDOM_PERCENTILES = (0, 50, 95, 95, 95)  # by length: a score below this percentile of random pairs may be random
OUTLIER_RANGES = 1.5  # interquartile ranges below the first quartile: Tukey's definition of an outlier
DROP_SHARES = (1.0, 0.5, 0.25)  # of the random pairs below the limit; see `_is_surely_wrong`
MIN_LOW_PAIRS = 5  # with fewer pairs of very low scores none is surely wrong
MIN_WRONG_SHARE = 0.6  # by this estimate, of the pairs that are dropped; it is rather too low
MAX_SHIFT = 5  # lines
MIN_RUN_LINES = 4
SHIFT_COST = 12.0  # nats of evidence required for each end of a shifted run
IMPOSSIBLE = -1e9
# Punctuation marks are words, and so are the characters of scripts without spaces between words.
SEPARATE_CHARACTERS = re.compile(rf"([^\w\s]|[{SCRIPTS_WITHOUT_SPACES}])")


def check_alignment(source: Document, target: Document) -> CheckResult:
    """Find lines that are not translations of the lines at the same position."""
    remark = f"{source.name}: not checked for misaligned pairs"
    if len(source) < MIN_PAIRS:
        return CheckResult(remarks=(f"{remark}: needs {MIN_PAIRS}, there are {len(source):,}",))
    scorer = LinePairScorer.train(word_sets(source.lines), word_sets(target.lines))
    lines = np.arange(len(source))
    scores = scorer.scores(lines, lines)
    limits = _score_limits(scorer, scores)
    is_checked = ~np.isnan(scores) & np.isfinite(limits.limit)
    if 2 * int(is_checked.sum()) < len(source):
        return CheckResult(remarks=(f"{remark}: most have too few words known from other pairs",))
    runs = _shifted_runs(scorer, scores, scores < limits.midpoint)
    for run in runs:
        is_checked[run.first : run.last + 1] = False

    def message(line: int) -> str:
        return f"{source.quoted(line, 40)} with {target.quoted(line, 40)}"

    shifted = [_run_finding(source, target, run) for run in runs]
    low = np.flatnonzero(is_checked & (scores < limits.limit))
    misaligned = (
        replace(source.finding("misaligned", line, message(line)), is_kept=not is_wrong)
        for line, is_wrong in zip(low.tolist(), _is_surely_wrong(limits.rank[low]).tolist(), strict=True)
    )
    return CheckResult((*shifted, *misaligned))


def _is_surely_wrong(ranks: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether pairs with low scores are wrong, and not free translations.  # ranks: (pairs,)

    The rank of a wrong pair among random pairs may be anything from 0 to 1. Free translations have high ranks: they
    are the end of the distribution of correct pairs. So if the pairs up to a rank are wrong, about half of them are in
    the lower half. The largest share of the ranks is chosen for which this holds.
    """
    for share in DROP_SHARES:
        lower_half = int((ranks <= share / 2).sum())
        if lower_half >= MIN_LOW_PAIRS and 2 * lower_half >= MIN_WRONG_SHARE * int((ranks <= share).sum()):
            return ranks <= share
    return np.zeros(len(ranks), np.bool_)


@dataclass(frozen=True)
class WordSets:
    """Each line as the sorted set of its words. Words of a single line are left out: nothing is known about them."""

    lines: IdLines
    checksums: NDArray[np.int64]  # (lines,) by which lines are sampled: the same ones whichever others are dropped

    @property
    def sizes(self) -> NDArray[np.int64]:
        return self.lines.sizes

    def select(self, lines: NDArray[np.int64]) -> WordSets:
        return WordSets(self.lines.select(lines), self.checksums[lines])


def word_sets(lines: Sequence[str]) -> WordSets:
    """Split lines into sets of words.

    >>> word_sets(["A cat, a dog.", "a dog"]).sizes.tolist()
    [2, 2]
    """
    scanned = scan(SEPARATE_CHARACTERS.sub(r" \1 ", join_lines(lines).decode().lower()).encode())
    types = max(1, len(scanned.types))
    line_numbers = np.repeat(np.arange(len(lines)), np.diff(scanned.offsets))
    keys = np.sort(line_numbers * types + scanned.tokens)
    line, word = np.divmod(keys[np.diff(keys, prepend=-1) > 0], types)
    is_known = np.bincount(word, minlength=types) > 1
    ids = np.cumsum(is_known) + NULL
    line, word = line[is_known[word]], ids[word[is_known[word]]]
    position = np.arange(len(line)) - np.searchsorted(line, line)
    line, word = line[position < MAX_LINE_WORDS], word[position < MAX_LINE_WORDS]
    offsets = np.searchsorted(line, np.arange(len(lines) + 1)).astype(np.int64)
    checksums = np.fromiter((zlib.crc32(text.encode("utf-8", "replace")) for text in lines), np.int64, len(lines))
    return WordSets(IdLines(word.astype(np.int32), offsets, NULL + 1 + int(is_known.sum())), checksums)


@dataclass(frozen=True)
class LinePairScorer:
    """Scores of pairs of lines by the word associations of the text itself."""

    source: WordSets
    target: WordSets
    associations: WordAssociations
    is_training_pair: NDArray[np.bool_]  # (lines,)

    @classmethod
    def train(cls, source: WordSets, target: WordSets) -> LinePairScorer:
        """Train on all pairs of lines, or on a sample."""
        cells = (source.sizes + 1) * target.sizes
        stride = max(1, -(-int(cells.sum()) // MAX_TRAINING_CELLS))
        is_training_pair = (source.sizes > 0) & (target.sizes > 0) & (source.checksums % stride == 0)
        lines = np.flatnonzero(is_training_pair)
        associations = WordAssociations.train(source.lines.select(lines), target.lines.select(lines))
        return cls(source, target, associations, is_training_pair)

    def scores(self, source_lines: NDArray[np.int64], target_lines: NDArray[np.int64]) -> NDArray[np.float64]:
        """Nats per word by which the words of two lines are likelier together than apart; NaN without known words."""
        lines = (self.source.lines, self.target.lines, source_lines, target_lines)
        return self.associations.pair_scores(*lines, self.is_training_pair)


class ScoreLimits(NamedTuple):
    """What the score of each pair is compared with, by the random pairs of its length. All are arrays (lines,)."""

    limit: NDArray[np.float64]  # a pair with a lower score looks misaligned; -infinity where nothing is known
    midpoint: NDArray[np.float64]  # between the median scores of random pairs and of the pairs of the text
    rank: NDArray[np.float64]  # share of the random pairs below the limit that have a lower score


def _score_limits(scorer: LinePairScorer, scores: NDArray[np.float64]) -> ScoreLimits:
    """Estimate limits from the scores of all pairs of a text and of random pairs, for each length.  # scores: (lines,)"""
    target = scorer.target
    order = np.argsort(target.checksums, kind="stable")[:RANDOM_PAIRS]  # neighbours in a sorted text are related
    targets = order[np.argsort(target.sizes[order], kind="stable")]
    sources = np.roll(targets, max(1, min(37, len(order) // 10)))  # unrelated lines of about the same length
    random_scores = scorer.scores(sources, targets)
    words, random_words = scorer.source.sizes + target.sizes, scorer.source.sizes[sources] + target.sizes[targets]
    buckets, random_buckets = (np.searchsorted(LENGTH_EDGES, sizes, side="right") for sizes in (words, random_words))
    limits, midpoints = np.full((2, len(LENGTH_EDGES) + 1), -np.inf)
    ranks = np.ones(len(scores))
    for bucket in range(1, len(limits)):
        values = scores[(buckets == bucket) & ~np.isnan(scores)]
        random_values = random_scores[(random_buckets == bucket) & ~np.isnan(random_scores)]
        if min(len(values), len(random_values)) >= MIN_BUCKET_PAIRS:
            low, median, high = np.percentile(values, [25, 50, 75])
            random_limit = float(np.percentile(random_values, RANDOM_PERCENTILES[bucket]))
            limits[bucket] = min(random_limit, low - OUTLIER_RANGES * (high - low))
            midpoints[bucket] = (median + float(np.median(random_values))) / 2
            low_values = np.sort(random_values[random_values < limits[bucket]])
            in_bucket = buckets == bucket
            ranks[in_bucket] = np.searchsorted(low_values, scores[in_bucket]) / max(1, len(low_values))
    return ScoreLimits(limits[buckets], midpoints[buckets], ranks)


@dataclass(frozen=True)
class ShiftedRun:
    """Lines of the target that translate lines a few positions before or after."""

    first: int
    last: int
    shift: int  # target line i belongs to source line i + shift


def _shifted_runs(scorer: LinePairScorer, scores: NDArray[np.float64], is_low: NDArray[np.bool_]) -> list[ShiftedRun]:
    """Find runs that are long enough, and of which most pairs have low scores.

    Lines that repeat the line before are not counted: where a sentence occurs several times with different
    translations, any of them may fit best.
    """
    shifts = _best_shifts(scorer, scores, is_low)
    is_repeated = np.zeros(len(scores), np.bool_)
    for checksums in (scorer.source.checksums, scorer.target.checksums):
        is_repeated[1:] |= checksums[1:] == checksums[:-1]
    runs = []
    for first, end in pairwise(np.flatnonzero(np.diff(shifts, prepend=0, append=0)).tolist()):
        lines = first + np.flatnonzero(~is_repeated[first:end])
        if shifts[first] and len(lines) >= MIN_RUN_LINES and 2 * int(is_low[lines].sum()) > len(lines):
            runs.append(ShiftedRun(first, end - 1, int(shifts[first])))
    return runs


def _best_shifts(scorer: LinePairScorer, scores: NDArray[np.float64], is_low: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each target line the shift of its source line, on the most probable path through all lines."""
    lines = np.arange(len(scores))
    # Other shifts need to be tried only near a place with two low scores out of three.
    low_of_three = np.convolve(is_low, np.ones(3), mode="same")
    nearby = np.convolve(low_of_three >= 2, np.ones(2 * MAX_SHIFT + 3), mode="same")
    candidates = np.flatnonzero(nearby > 0)
    evidence = np.full((len(lines), 2 * MAX_SHIFT + 1), IMPOSSIBLE)
    for shift in range(-MAX_SHIFT, MAX_SHIFT + 1):
        target_lines = candidates[(candidates + shift >= 0) & (candidates + shift < len(lines))] if shift else lines
        source_lines = target_lines + shift
        shifted_scores = scorer.scores(source_lines, target_lines) if shift else scores
        mean_words = (scorer.source.sizes[source_lines] + scorer.target.sizes[target_lines]) / 2
        evidence[target_lines, MAX_SHIFT + shift] = np.nan_to_num(shifted_scores * mean_words)
    return np.asarray(best_path(evidence, SHIFT_COST)) - MAX_SHIFT


@kernel
def best_path(evidence: Any, cost: float) -> Any:
    """Viterbi: the shifts with the highest sum of evidence, where each change of the shift has a cost."""
    lines, shifts = evidence.shape
    score = np.full(shifts, -np.inf)
    score[shifts // 2] = 0.0
    previous = np.zeros((lines, shifts), np.int8)
    for line in range(lines):
        best = np.argmax(score)
        for shift in range(shifts):
            value = score[shift]
            if score[best] - cost > value:
                value = score[best] - cost
                previous[line, shift] = best
            else:
                previous[line, shift] = shift
            score[shift] = value + evidence[line, shift]
    path = np.zeros(lines, np.int64)
    shift = int(np.argmax(score))
    for line in range(lines - 1, -1, -1):
        path[line] = shift
        shift = previous[line, shift]
    return path


def _run_finding(source: Document, target: Document, run: ShiftedRun) -> Finding:
    count = abs(run.shift)
    distance = f"{count} line{'s' if count > 1 else ''} {'later' if run.shift > 0 else 'earlier'}"
    lines = f"lines {target.number(run.first)} to {target.number(run.last)}"
    message = f"{lines} of {target.name} match the lines of {source.name} {distance}"
    return target.finding("shifted", run.first, message, last=run.last)
