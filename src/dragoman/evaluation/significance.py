"""Is one system better than another, or was it lucky with the test sentences? Paired bootstrap resampling (Koehn 2004).

The test set is drawn again and again from its own sentences, with replacement, and both systems are scored on each
draw. What was counted in a sentence adds up, so a draw is a sum weighted by how often each sentence was drawn, and all
draws together are one product of matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.evaluation.translation_metrics import MetricStatistics

RESAMPLES = 1000
SEED = 12345  # sacreBLEU's default, so that both draw the same sentences
MAX_DRAWS = 1 << 22  # sentences drawn before they are summed: keeps memory small on large test sets
TAIL = 40  # one in so many resamples lies beyond each end of an interval of 95%


@dataclass(frozen=True)
class ConfidenceInterval:
    """Where a number lies in 95% of the resamples, and its mean over all of them."""

    mean: float
    low: float
    high: float

    @classmethod
    def from_samples(cls, values: NDArray[np.float64]) -> ConfidenceInterval:
        ordered, beyond = np.sort(values), len(values) // TAIL
        return cls(float(values.mean()), float(ordered[beyond]), float(ordered[len(values) - beyond - 1]))


@dataclass(frozen=True)
class PairedBootstrapResult:
    """Two systems on the same sentences. Differences are those of the second from the first: above 0, it is better."""

    metric: str
    first: float  # the scores on the test set itself
    second: float
    first_interval: ConfidenceInterval
    second_interval: ConfidenceInterval
    difference_interval: ConfidenceInterval
    p_value: float  # how probable a difference this large would be if there were none: see `p_value`
    wins: int  # resamples in which the second is better
    losses: int  # resamples in which the first is better
    resamples: int
    seed: int

    @property
    def difference(self) -> float:
        return self.second - self.first

    @property
    def significant(self) -> bool:
        """At the usual level of 5%."""
        return self.p_value < 0.05

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"difference": self.difference, "significant": self.significant}


def paired_bootstrap(
    first: MetricStatistics, second: MetricStatistics, *, resamples: int = RESAMPLES, seed: int = SEED
) -> PairedBootstrapResult:
    """Compare two systems by what one metric counted in their translations of the same sentences."""
    _check(first, second, resamples)
    one, two = resampled_scores([first, second], resamples, seed)  # (resamples,) each
    return PairedBootstrapResult(
        metric=first.metric.name,
        first=first.score,
        second=second.score,
        first_interval=ConfidenceInterval.from_samples(one),
        second_interval=ConfidenceInterval.from_samples(two),
        difference_interval=ConfidenceInterval.from_samples(two - one),
        p_value=p_value(two - one, second.score - first.score),
        wins=int((two > one).sum()),
        losses=int((one > two).sum()),
        resamples=resamples,
        seed=seed,
    )


@dataclass(frozen=True)
class BaselineComparison:
    """A system beside the first: whether the difference could be luck with the sentences."""

    names: tuple[str, str]
    bleu: PairedBootstrapResult
    chrf: PairedBootstrapResult

    def as_dict(self) -> dict[str, Any]:
        first, second = self.names
        return {"first": first, "second": second, "bleu": self.bleu.as_dict(), "chrf": self.chrf.as_dict()}


def compare_to_first(statistics: Mapping[str, tuple[MetricStatistics, MetricStatistics]]) -> list[BaselineComparison]:
    """Each system but the first beside the first, by what BLEU and chrF counted."""
    (name, first), *others = statistics.items()
    return [BaselineComparison((name, other), *map(paired_bootstrap, first, second)) for other, second in others]


def _check(first: MetricStatistics, second: MetricStatistics, resamples: int) -> None:
    if len(first) != len(second):
        raise DataError(f"{len(first):,} and {len(second):,} translations; compare systems on the same sentences")
    if first.metric.signature != second.metric.signature:
        raise DataError(f"{first.metric.signature} and {second.metric.signature} are different measures")
    if not len(first):
        raise DataError("no translations to compare; give at least one line")
    if resamples < 1:
        raise DataError(f"{resamples} resamples; give at least 1, usually {RESAMPLES:,}")


def p_value(differences: NDArray[np.float64], difference: float) -> float:
    """How often chance alone gives more than the difference that was seen, as sacreBLEU (and Moses) define it.

    The sizes of the resampled differences are shifted to mean 0, as if the systems were alike, and those above the
    size of the difference that was seen are counted. Systems that never differ have 1: there is nothing to explain.
    (sacreBLEU gives them the smallest value there is.)

    >>> p_value(np.zeros(99), 0.0), p_value(np.array([1.0, 1.1, 0.9]), 1.0)
    (1.0, 0.25)
    """
    if not differences.any():
        return 1.0
    sizes = np.abs(differences)
    above = int((sizes - sizes.mean() > abs(difference)).sum())
    return (above + 1) / (len(sizes) + 1)


def resampled_scores(systems: Sequence[MetricStatistics], resamples: int, seed: int) -> list[NDArray[np.float64]]:
    """The scores of each system on the same resamples."""
    # as floating-point numbers, whose product is fast; whole numbers stay exact up to 2 ** 53
    counts = [system.counts.astype(np.float64) for system in systems]  # (sentences, numbers) each
    sums = [[weights @ own for own in counts] for weights in _weights(len(systems[0]), resamples, seed)]
    return [_scores(system, own) for system, own in zip(systems, zip(*sums, strict=True), strict=True)]


def _scores(system: MetricStatistics, sums: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.array([system.metric.score(row) for some in sums for row in some])  # (resamples,)


def _weights(sentences: int, resamples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """How often each sentence is drawn in each resample, some resamples at a time.  # (some, sentences)"""
    rng = np.random.default_rng(seed)
    most = max(1, MAX_DRAWS // sentences)
    for start in range(0, resamples, most):
        rows = min(most, resamples - start)
        drawn = rng.choice(sentences, size=(rows, sentences), replace=True)  # (rows, sentences)
        drawn += sentences * np.arange(rows)[:, None]  # each resample counts for itself
        yield np.bincount(drawn.ravel(), minlength=rows * sentences).reshape(rows, sentences).astype(np.float64)
