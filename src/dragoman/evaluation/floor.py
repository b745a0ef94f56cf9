"""The floor: what a text costs by the truth itself, where that is known, and how far above it a model is.

In expectation nothing is cheaper than the distribution that a text was drawn from: a model that pays log P(E) pays
the Kullback-Leibler divergence on top. On the sentences at hand the floor wavers, as they do. So every number here
has a standard error, and a model is compared to the floor sentence by sentence, which takes out most of what wavers:
a sentence that is improbable by the truth is improbable by every model.

Standard errors are over sentences, which are drawn independently of each other (tokens are not). A price a token is
a ratio of two sums over sentences, and its error is that of the ratio estimator; a perplexity is the exponential of
such a price, and has the price's error times its slope there, the perplexity itself (the delta method).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import error_at_line
from dragoman.core.scorer import Scorer
from dragoman.data.corpus import Corpus
from dragoman.evaluation.likelihood import Likelihood, TokenScores, finite_or_none, token_scores

ROUNDING_ERROR = 1e-9  # nats a token: what sums of rounded logarithms may differ by


class PointEstimate(NamedTuple):
    """A number known from a sample, and its standard error."""

    value: float
    standard_error: float


@dataclass(frozen=True)
class RatioEstimator:
    """A sum of costs over a sum of counts, kept as numbers that add up: of two texts it is the sum of theirs.

    With c_i and n_i the cost and the count of sentence i of N, the ratio is r = sum c_i / sum n_i, and its error the
    root of N / (N - 1) * sum (c_i - r n_i)^2 / (sum n_i)^2: the spread of what is left of a sentence's cost after r
    for each of its counts.

    >>> Ratio.of(np.array([1.0, 5.0]), np.array([1, 3])).estimate
    Estimate(value=1.5, error=0.25)
    """

    sentences: int = 0  # N
    cost: float = 0.0
    count: float = 0.0
    cost_cost: float = 0.0  # the sum of squared costs
    cost_count: float = 0.0  # the sum of products
    count_count: float = 0.0  # the sum of squared counts

    @classmethod
    def from_sentences(cls, costs: NDArray[np.float64], counts: NDArray[np.integer]) -> Self:
        """One cost and one count a sentence."""
        n = counts.astype(np.float64)
        sums = (costs.sum(), n.sum(), (costs * costs).sum(), (costs * n).sum(), (n * n).sum())
        return cls(len(costs), *map(float, sums))

    def __add__(self, other: RatioEstimator) -> RatioEstimator:
        return RatioEstimator(
            self.sentences + other.sentences,
            self.cost + other.cost,
            self.count + other.count,
            self.cost_cost + other.cost_cost,
            self.cost_count + other.cost_count,
            self.count_count + other.count_count,
        )

    @property
    def estimate(self) -> PointEstimate:
        """The ratio; of nothing it is undefined, and so is the error of a single sentence or of an infinite cost."""
        if not self.count:
            return PointEstimate(math.nan, math.nan)
        ratio = self.cost / self.count
        if self.sentences < 2 or not math.isfinite(ratio):
            return PointEstimate(ratio, math.nan)
        left = self.cost_cost - 2 * ratio * self.cost_count + ratio * ratio * self.count_count
        error = math.sqrt(max(0.0, left) * self.sentences / (self.sentences - 1)) / self.count
        return PointEstimate(ratio, error)

    def scaled(self, unit: float) -> PointEstimate:
        """The ratio with costs counted in another unit."""
        ratio, error = self.estimate
        return PointEstimate(ratio / unit, error / unit)

    @property
    def exponential(self) -> PointEstimate:
        """The perplexity where costs are in nats, by the delta method."""
        ratio, error = self.estimate
        perplexity = math.exp(ratio)
        return PointEstimate(perplexity, perplexity * error)


@dataclass(frozen=True, eq=False)
class TrueLogProbs:
    """The true log-probability of each sentence of a text, and how long the sentences are.

    Refused if a sentence is impossible: then the text was not drawn from this distribution, and has no floor.
    """

    log_probs_class: NDArray[np.float64]  # (sentences,) words outside a model's vocabulary collapsed to `<unk>`
    log_probs: NDArray[np.float64]  # (sentences,) every word spelled out
    words: NDArray[np.integer]  # (sentences,)
    characters: NDArray[np.integer]  # (sentences,) spaces and the line break among them
    source: str = "sentences"  # what messages call the text

    def __post_init__(self) -> None:
        impossible = np.flatnonzero(~(np.isfinite(self.log_probs_class) & np.isfinite(self.log_probs)))
        if len(impossible):
            raise error_at_line(
                *(self.source, int(impossible[0]) + 1),
                "impossible by the distribution that the text is said to come from; give the text as it was drawn",
            )

    @property
    def tokens(self) -> NDArray[np.integer]:
        """Words and the sentence's end."""
        return self.words + 1


@dataclass(frozen=True)
class Floor:
    """What a text costs by the truth, in each convention of `Likelihood` that the truth has a price in.

    `perplexity_known` has none: what a text costs without its unknown words is no probability of anything.

    >>> halves = Truth(np.log([0.5, 0.5]), np.log([0.25, 0.25]), np.array([1, 1]), np.array([4, 4]))
    >>> floor = Floor.of(halves)
    >>> round(floor.perplexity.value, 9), round(floor.perplexity_words.value, 9), floor.bits_per_character.value
    (2.0, 4.0, 0.5)
    """

    per_token: RatioEstimator  # the full price, a token
    per_word: RatioEstimator  # the full price, a word
    per_character: RatioEstimator  # the full price, a character
    per_token_class: RatioEstimator  # a token, where a word outside the vocabulary costs only its class

    @classmethod
    def from_true_log_probs(cls, true_log_probs: TrueLogProbs) -> Self:
        return cls(
            per_token=RatioEstimator.from_sentences(-true_log_probs.log_probs, true_log_probs.tokens),
            per_word=RatioEstimator.from_sentences(-true_log_probs.log_probs, true_log_probs.words),
            per_character=RatioEstimator.from_sentences(-true_log_probs.log_probs, true_log_probs.characters),
            per_token_class=RatioEstimator.from_sentences(-true_log_probs.log_probs_class, true_log_probs.tokens),
        )

    def __add__(self, other: Floor) -> Floor:
        return Floor(
            self.per_token + other.per_token,
            self.per_word + other.per_word,
            self.per_character + other.per_character,
            self.per_token_class + other.per_token_class,
        )

    @property
    def perplexity(self) -> PointEstimate:
        return self.per_token.exponential

    @property
    def perplexity_words(self) -> PointEstimate:
        return self.per_word.exponential

    @property
    def perplexity_class(self) -> PointEstimate:
        return self.per_token_class.exponential

    @property
    def bits_per_character(self) -> PointEstimate:
        return self.per_character.scaled(math.log(2))

    def as_dict(self) -> dict[str, float | None]:
        """Each price and its standard error as plain values; what is undefined is None."""
        names = ("perplexity", "perplexity_words", "perplexity_class", "bits_per_character")
        return _with_errors({name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class FloorGap:
    """How many nats a token a model pays more than the truth, sentence by sentence.

    Below zero only by chance: by more than the standard error, and the model knew more of these sentences than it
    should, or its probabilities add up to more than one.
    """

    full: RatioEstimator  # unknown words paid for in full
    by_class: RatioEstimator  # an unknown word costs only its class

    @classmethod
    def from_token_scores(cls, true_log_probs: TrueLogProbs, scores: TokenScores) -> Self:
        return cls(
            full=RatioEstimator.from_sentences(
                true_log_probs.log_probs - scores.sentence_log_probs, true_log_probs.tokens
            ),
            by_class=RatioEstimator.from_sentences(
                true_log_probs.log_probs_class - scores.sentence_class_log_probs, true_log_probs.tokens
            ),
        )

    def __add__(self, other: FloorGap) -> FloorGap:
        return FloorGap(self.full + other.full, self.by_class + other.by_class)

    def is_below(self, errors: float = 1.0) -> bool:
        """Whether the model beats the floor by more than so many standard errors, by either price."""
        estimates = (ratio.estimate for ratio in (self.full, self.by_class))
        return any(gap < -(errors * error + ROUNDING_ERROR) for gap, error in estimates)

    def as_dict(self) -> dict[str, float | None]:
        """Nats a token and their standard errors as plain values; what is infinite or undefined is None."""
        return _with_errors({"nats": self.full.estimate, "nats_class": self.by_class.estimate})


@dataclass(frozen=True)
class LanguageModelEvaluation:
    """What a text costs by a model and, where the truth is known, by the truth."""

    likelihood: Likelihood
    floor: Floor | None = None
    gap: FloorGap | None = None

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values: those of the likelihood, then `floor` and `above_floor`."""
        report = self.likelihood.as_dict()
        if self.floor is not None and self.gap is not None:
            report |= {"floor": self.floor.as_dict(), "above_floor": self.gap.as_dict()}
        return report


def evaluate_language_model(
    scorer: Scorer, corpus: Corpus, true_log_probs: TrueLogProbs | None = None
) -> LanguageModelEvaluation:
    """A model against the truth about a text, which must be that of the model's own vocabulary."""
    return evaluate_token_scores(token_scores(scorer, corpus), true_log_probs)


def evaluate_token_scores(scores: TokenScores, true_log_probs: TrueLogProbs | None = None) -> LanguageModelEvaluation:
    """The same, by what a model says the text costs."""
    if true_log_probs is None:
        return LanguageModelEvaluation(scores.likelihood())
    return LanguageModelEvaluation(
        scores.likelihood(),
        Floor.from_true_log_probs(true_log_probs),
        FloorGap.from_token_scores(true_log_probs, scores),
    )


def _with_errors(estimates: dict[str, PointEstimate]) -> dict[str, float | None]:
    return {
        key: finite_or_none(number)
        for name, estimate in estimates.items()
        for key, number in zip((name, f"{name}_error"), estimate, strict=True)
    }
