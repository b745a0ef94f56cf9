"""The floor: the likelihood of a text by the true distribution, where it is known, and a model's distance to it.

In expectation no model has a higher likelihood than the distribution that a text was drawn from: the difference is the
Kullback-Leibler divergence. On a sample both vary with the sentences. So every number has a standard error over
sentences, which are drawn independently of each other (tokens are not), and a model is compared to the floor sentence by
sentence, which removes most of the variation: a sentence that is improbable by the true distribution is improbable by
every model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import error_at_line
from dragoman.core.scorer import Scorer
from dragoman.data.corpus import Corpus
from dragoman.evaluation.likelihood import Likelihood, TokenScores, token_scores
from dragoman.evaluation.results import to_json

ROUNDING_ERROR = 1e-9  # nats per token by which sums of rounded logarithms may differ


class PointEstimate(NamedTuple):
    """A number estimated from a sample, and its standard error."""

    value: float
    standard_error: float

    @classmethod
    def of_ratio(cls, losses: NDArray[np.float64], counts: NDArray[np.integer]) -> Self:
        """Estimate a sum of losses divided by a sum of counts; undefined without counts.

        With c_i and n_i the loss and the count of sentence i of N, the ratio is r = sum c_i / sum n_i, and its standard
        error is sqrt(N / (N - 1) * sum (c_i - r n_i)^2) / sum n_i, undefined for one sentence or an infinite loss.

        >>> PointEstimate.of_ratio(np.array([1.0, 5.0]), np.array([1, 3]))
        PointEstimate(value=1.5, standard_error=0.25)
        """
        sentences, count = len(losses), int(counts.sum())
        ratio = float(losses.sum()) / count if count else math.nan
        if sentences < 2 or not math.isfinite(ratio):
            return cls(ratio, math.nan)
        residuals = float(np.square(losses - ratio * counts).sum())
        return cls(ratio, math.sqrt(residuals * sentences / (sentences - 1)) / count)

    def scaled(self, unit: float) -> PointEstimate:
        """The number in another unit."""
        return PointEstimate(self.value / unit, self.standard_error / unit)

    @property
    def exponential(self) -> PointEstimate:
        """The perplexity, if the number is a loss in nats, by the delta method."""
        perplexity = math.exp(self.value)
        return PointEstimate(perplexity, perplexity * self.standard_error)

    def as_dict(self, name: str) -> dict[str, object]:
        """Plain values, with keys for a number of this name; undefined ones are None."""
        return {name: to_json(self.value), f"{name}_error": to_json(self.standard_error)}


@dataclass(frozen=True, eq=False)
class TrueLogProbs:
    """The true log-probability of each sentence of a text, and the lengths of the sentences.

    Raises an error if a sentence is impossible: then the text was not drawn from this distribution.
    """

    log_probs_class: NDArray[np.float64]  # (sentences,) words outside the vocabulary counted as `<unk>`
    log_probs: NDArray[np.float64]  # (sentences,) including the spelling of every word
    words: NDArray[np.integer]  # (sentences,)
    characters: NDArray[np.integer]  # (sentences,) including spaces and the line break
    source: str = "sentences"  # name of the text in messages

    def __post_init__(self) -> None:
        impossible = np.flatnonzero(~(np.isfinite(self.log_probs_class) & np.isfinite(self.log_probs)))
        if len(impossible):
            problem = "has probability 0 under the grammar; use the unmodified text"
            raise error_at_line(self.source, int(impossible[0]) + 1, problem)

    @property
    def tokens(self) -> NDArray[np.integer]:
        """Words and the sentence end."""
        return self.words + 1


@dataclass(frozen=True)
class Floor:
    """The perplexities of `Likelihood` by the true distribution.

    There is none for `perplexity_known`: the text without its unknown words has no probability.
    """

    perplexity: PointEstimate  # including the spellings of unknown words
    perplexity_words: PointEstimate
    perplexity_class: PointEstimate  # counting only the class of unknown words
    bits_per_character: PointEstimate

    @classmethod
    def from_true_log_probs(cls, true_log_probs: TrueLogProbs) -> Self:
        loss, tokens = -true_log_probs.log_probs, true_log_probs.tokens
        return cls(
            PointEstimate.of_ratio(loss, tokens).exponential,
            PointEstimate.of_ratio(loss, true_log_probs.words).exponential,
            PointEstimate.of_ratio(-true_log_probs.log_probs_class, tokens).exponential,
            PointEstimate.of_ratio(loss, true_log_probs.characters).scaled(math.log(2)),
        )

    def as_dict(self) -> dict[str, object]:
        """Each value and its standard error as plain values; undefined ones are None."""
        estimates = vars(self).items()
        return {key: value for name, estimate in estimates for key, value in estimate.as_dict(name).items()}


@dataclass(frozen=True)
class FloorGap:
    """Nats per token by which a model's loss exceeds the floor.

    Below zero only by chance. If it is below by more than a few standard errors, the model was trained on these
    sentences, or its probabilities sum to more than one.
    """

    full: PointEstimate  # including the spellings of unknown words
    by_class: PointEstimate  # counting only the class of unknown words

    @classmethod
    def from_token_scores(cls, true_log_probs: TrueLogProbs, scores: TokenScores) -> Self:
        full = true_log_probs.log_probs - scores.sentence_log_probs
        by_class = true_log_probs.log_probs_class - scores.sentence_class_log_probs
        return cls(*(PointEstimate.of_ratio(gap, true_log_probs.tokens) for gap in (full, by_class)))

    def is_below(self, errors: float = 1.0) -> bool:
        """Whether the model is below the floor by more than this many standard errors, in either respect."""
        return any(gap < -(errors * error + ROUNDING_ERROR) for gap, error in (self.full, self.by_class))

    def as_dict(self) -> dict[str, object]:
        """Nats per token and their standard errors; infinite and undefined ones are None."""
        return self.full.as_dict("nats") | self.by_class.as_dict("nats_class")


@dataclass(frozen=True)
class LanguageModelEvaluation:
    """The likelihood of a text by a model and, where the true distribution is known, the floor."""

    likelihood: Likelihood
    floor: Floor | None = None
    gap: FloorGap | None = None

    def as_dict(self) -> dict[str, object]:
        """The values of the likelihood, then `floor` and `above_floor`."""
        if self.floor is None or self.gap is None:
            return self.likelihood.as_dict()
        return {**self.likelihood.as_dict(), "floor": self.floor.as_dict(), "above_floor": self.gap.as_dict()}


def evaluate_language_model(
    scorer: Scorer, corpus: Corpus, true_log_probs: TrueLogProbs | None = None
) -> LanguageModelEvaluation:
    """Evaluate a language model on a text, which must be encoded with the model's vocabulary.

    With the true log-probabilities of the text, the result includes the floor. These must be for the same vocabulary.
    """
    return evaluate_token_scores(token_scores(scorer, corpus), true_log_probs)


def evaluate_token_scores(scores: TokenScores, true_log_probs: TrueLogProbs | None = None) -> LanguageModelEvaluation:
    """Evaluate the scores of a text that a model has given before."""
    if true_log_probs is None:
        return LanguageModelEvaluation(scores.likelihood())
    floor = Floor.from_true_log_probs(true_log_probs)
    return LanguageModelEvaluation(scores.likelihood(), floor, FloorGap.from_token_scores(true_log_probs, scores))
