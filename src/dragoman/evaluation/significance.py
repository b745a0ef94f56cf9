"""Paired bootstrap resampling (Koehn 2004): is one system better than another, or is the difference due to chance?

The test set is resampled many times from its own sentences, with replacement, and both systems are scored on each
resample. Statistics add up over sentences, so those of a resample are a sum weighted by how often each sentence was
drawn, and those of all resamples are one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.evaluation.results import JsonResult
from dragoman.evaluation.translation_metrics import MetricStatistics

RESAMPLES = 1000
SEED = 12345  # sacreBLEU's default: both draw the same sentences
MAX_DRAWS = 1 << 22  # sentences drawn before they are summed, to limit memory on large test sets
TAIL = 40  # one resample in this many lies beyond each end of a 95% interval
SIGNIFICANCE_LEVEL = 0.05


@dataclass(frozen=True)
class ConfidenceInterval:
    """The mean over all resamples, and the interval that contains 95% of them."""

    mean: float
    low: float
    high: float

    @classmethod
    def from_samples(cls, values: NDArray[np.float64]) -> ConfidenceInterval:
        ordered, tail = np.sort(values), len(values) // TAIL
        return cls(float(values.mean()), float(ordered[tail]), float(ordered[len(values) - tail - 1]))


@dataclass(frozen=True)
class PairedBootstrapResult(JsonResult):
    """Two systems on the same sentences. Differences are second minus first."""

    metric: str
    first: float  # scores on the test set itself
    second: float
    first_interval: ConfidenceInterval
    second_interval: ConfidenceInterval
    difference_interval: ConfidenceInterval
    p_value: float  # probability of a difference this large if the systems were equal: see `p_value`
    wins: int  # resamples in which the second is better
    losses: int  # resamples in which the first is better
    resamples: int
    seed: int
    lower_is_better: bool = False

    reported = ("difference", "significant")

    @property
    def difference(self) -> float:
        return self.second - self.first

    @property
    def second_is_better(self) -> bool:
        """Whether the second has the better score on the test set."""
        return self.difference < 0 if self.lower_is_better else self.difference > 0

    @property
    def significant(self) -> bool:
        return self.p_value < SIGNIFICANCE_LEVEL


def confidence_interval(
    statistics: MetricStatistics, *, resamples: int = RESAMPLES, seed: int = SEED
) -> ConfidenceInterval:
    """Resample a text and return the interval that contains 95% of the scores."""
    return ConfidenceInterval.from_samples(resampled_scores([statistics], resamples, seed)[0])


def paired_bootstrap(
    first: MetricStatistics, second: MetricStatistics, *, resamples: int = RESAMPLES, seed: int = SEED
) -> PairedBootstrapResult:
    """Compare two systems by the statistics of one metric on the same sentences."""
    if len(first) != len(second):
        raise DataError(f"{len(first):,} and {len(second):,} translations; compare systems on the same sentences")
    if first.metric != second.metric:
        raise DataError(f"cannot compare {first.metric.signature} with {second.metric.signature}; use one metric")
    if not len(first):
        raise DataError("no translations to compare; give at least one line")
    if resamples < 1:
        raise DataError(f"{resamples} resamples; give at least 1, usually {RESAMPLES:,}")
    first_scores, second_scores = resampled_scores([first, second], resamples, seed)  # (resamples,) each
    differences = second_scores - first_scores
    higher, lower = int((differences > 0).sum()), int((differences < 0).sum())
    lower_is_better = first.metric.lower_is_better
    return PairedBootstrapResult(
        metric=first.metric.name,
        first=first.score,
        second=second.score,
        first_interval=ConfidenceInterval.from_samples(first_scores),
        second_interval=ConfidenceInterval.from_samples(second_scores),
        difference_interval=ConfidenceInterval.from_samples(differences),
        p_value=p_value(differences, second.score - first.score),
        wins=lower if lower_is_better else higher,
        losses=higher if lower_is_better else lower,
        resamples=resamples,
        seed=seed,
        lower_is_better=lower_is_better,
    )


@dataclass(frozen=True)
class BaselineComparison:
    """A system compared to the first one, by each metric."""

    names: tuple[str, str]
    tests: tuple[PairedBootstrapResult, ...]

    def as_dict(self) -> dict[str, object]:
        first, second = self.names
        return {"first": first, "second": second, **{test.metric.lower(): test.as_dict() for test in self.tests}}


def compare_to_first(statistics: Mapping[str, Sequence[MetricStatistics]]) -> list[BaselineComparison]:
    """Compare each system to the first one, by the statistics of the same metrics."""
    (name, first), *others = statistics.items()
    return [BaselineComparison((name, other), tuple(map(paired_bootstrap, first, second))) for other, second in others]


def p_value(differences: NDArray[np.float64], difference: float) -> float:
    """Estimate how often chance gives more than the observed difference, as defined in sacreBLEU (and Moses).

    The absolute resampled differences are shifted to mean 0, as if the systems were equal, and those above the
    absolute observed difference are counted. Systems that never differ have 1, while sacreBLEU gives them the smallest
    possible value.

    >>> p_value(np.zeros(99), 0.0), p_value(np.array([1.0, 1.1, 0.9]), 1.0)
    (1.0, 0.25)
    """
    if not differences.any():
        return 1.0
    sizes = np.abs(differences)
    above = int((sizes - sizes.mean() > abs(difference)).sum())
    return (above + 1) / (len(sizes) + 1)


def resampled_scores(systems: Sequence[MetricStatistics], resamples: int, seed: int) -> list[NDArray[np.float64]]:
    """Score all systems on the same resamples.  # (resamples,) each"""
    counts = [system.counts.astype(np.float64) for system in systems]  # for a fast product; exact up to 2 ** 53
    sums = [[draws @ numbers for numbers in counts] for draws in _draws(len(systems[0]), resamples, seed)]
    return [
        system.metric.scores(np.concatenate(parts))
        for system, parts in zip(systems, zip(*sums, strict=True), strict=True)
    ]


def _draws(sentences: int, resamples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """How often each sentence is drawn in each resample, in chunks of resamples.  # (chunk, sentences)"""
    generator = np.random.default_rng(seed)
    chunk = max(1, MAX_DRAWS // sentences)
    for start in range(0, resamples, chunk):
        rows = min(chunk, resamples - start)
        drawn = generator.choice(sentences, size=(rows, sentences), replace=True)  # (rows, sentences)
        drawn += sentences * np.arange(rows)[:, None]  # so that one bincount counts each resample separately
        yield np.bincount(drawn.ravel(), minlength=rows * sentences).reshape(rows, sentences).astype(np.float64)
