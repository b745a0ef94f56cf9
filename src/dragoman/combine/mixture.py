"""Linear mixtures of language models over the same vocabulary. The weights may depend on the context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dragoman.combine.buckets import NO_BUCKETS, make_bucketing
from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, Rows, State
from dragoman.core.settings import Settings, validate
from dragoman.data.corpus import Corpus
from dragoman.evaluation.likelihood import token_log_probs
from dragoman.io.storage import CONFIG_FILE
from dragoman.models.base import Config, SavedModel
from dragoman.models.language_model import LanguageModel, check_compatible

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch

MAX_ITERATIONS = 1000
TOLERANCE = 1e-10  # EM stops when the log-likelihood per token improves by less
PRIOR_STRENGTH = 10.0  # dev tokens that the global weights count as in each bucket

Floats = NDArray[np.float64]


def join_states(states: Sequence[State], *extra_rows: Rows) -> State:
    """Return the states of several scorers as one; `extra_rows` follow those of the scorers."""
    sentences = [state.sentence for state in states if state.sentence is not None]
    rows = (*(state.rows for state in states), *extra_rows)
    return State(rows, tuple(state.memory for state in states), sentences[0] if sentences else None)


def split_state(state: State) -> list[State]:
    """Return the states that `join_states` has joined."""
    return [
        State(rows, memory, None if memory is None else state.sentence)
        for rows, memory in zip(state.rows, state.memory, strict=False)
    ]


def log_weighted_sum(log_probs: Sequence[Tensor], log_weights: Sequence[Tensor | float]) -> Tensor:
    """Return log sum_i w_i P_i.  # log_probs: (rows, n) each; weights: numbers or (rows, 1) each"""
    import torch

    total = log_probs[0] + log_weights[0]
    for part, log_weight in zip(log_probs[1:], log_weights[1:], strict=True):
        total = torch.logaddexp(total, part + log_weight)
    return total


class MixtureConfig(Settings):
    """The settings of a mixture in config.yaml."""

    weights: tuple[float, ...]
    """One weight for each model."""
    buckets: str = NO_BUCKETS
    """The bucketing of contexts."""
    bucket_weights: tuple[tuple[float, ...], ...] | None = None
    """One weight for each bucket and model."""


class Mixture(LanguageModel):
    """P(w | h) = sum_i weight_i(bucket of h) P_i(w | h).

    >>> from dragoman import Corpus, Mixture, NgramModel
    >>> corpus = Corpus.from_sentences(["the cat sat", "the dog sat", "a cat ran"])
    >>> dev = Corpus.from_sentences(["a dog ran", "the cat sat"], corpus.vocab)
    >>> models = [NgramModel.train(corpus, order=order, smoothing="witten-bell") for order in (1, 3)]
    >>> mixture = Mixture.fit(models, dev)
    >>> [round(float(weight), 2) for weight in mixture.weights]
    [0.0, 1.0]

    Weights that depend on the context have a row for each bucket of `dragoman.combine.buckets`:

    >>> mixture = Mixture.fit(models, dev, buckets="position")
    >>> mixture.bucket_weights.shape, mixture.bucketing.labels[:3]
    ((8, 2), ('position 1', 'position 2', 'position 3-4'))
    """

    kind: ClassVar[str] = "mixture"

    def __init__(
        self,
        models: Sequence[LanguageModel],
        weights: Sequence[float] | None = None,
        *,
        buckets: str = NO_BUCKETS,
        bucket_weights: ArrayLike | None = None,
    ):
        """Without `weights` all models have the same; without `bucket_weights` all buckets have the same."""
        if len(models) < 1:
            raise DataError("a mixture needs at least one model")
        check_compatible(models)
        self.models = tuple(models)
        self.weights = np.full(len(models), 1 / len(models)) if weights is None else np.asarray(weights, float)
        _check_weights(self.weights, len(models), "weights")
        self.buckets, self.bucketing = buckets, make_bucketing(buckets, models)
        labels = self.bucketing.labels
        rows = [self.weights] * len(labels) if bucket_weights is None else bucket_weights
        self.bucket_weights = np.asarray(rows, float)  # (buckets, models)
        if len(self.bucket_weights) != len(labels):
            problem = f"{len(self.bucket_weights)} rows of weights, but {len(labels)} buckets of {buckets!r}"
            raise DataError(f"{problem}: fit the mixture again")
        for label, row in zip(labels, self.bucket_weights, strict=True):
            _check_weights(row, len(models), f"{label}: weights")
        self.vocab, self.unknown = models[0].vocab, models[0].unknown

    @classmethod
    def uniform(cls, models: Sequence[LanguageModel]) -> Self:
        """Return the mixture with equal weights: the average of the models' probabilities."""
        return cls(models)

    @classmethod
    def fit(
        cls,
        models: Sequence[LanguageModel],
        dev: Corpus,
        *,
        buckets: str = NO_BUCKETS,
        prior_strength: float = PRIOR_STRENGTH,
    ) -> Self:
        """Return the mixture with the weights that maximise the likelihood of a dev text, by EM.

        The weights of each bucket are smoothed towards the global ones, which count as `prior_strength` tokens; unseen
        buckets have the global weights.
        """
        check_compatible(models)
        bucketing = make_bucketing(buckets, models)
        log_probs = np.stack([token_log_probs(model, dev) for model in models])  # (models, tokens)
        weights = fit_mixture_weights(log_probs)
        if buckets == NO_BUCKETS:
            return cls(models, weights.tolist())
        token_buckets, num_buckets = bucketing.buckets_of_corpus(dev), len(bucketing.labels)
        bucket_weights = fit_bucket_weights(log_probs, token_buckets, num_buckets, weights, prior_strength)
        return cls(models, weights.tolist(), buckets=buckets, bucket_weights=bucket_weights)

    def start(self, batch: Batch, carry: Carry = None) -> State:
        carries = carry or [None] * len(self.models)
        states = [model.start(batch, part) for model, part in zip(self.models, carries, strict=True)]
        return join_states(states, self.bucketing.start(batch.num_rows))

    def bucket(self, state: State) -> Tensor:
        """Return the bucket of each row.  # (rows,)"""
        import torch

        return torch.from_numpy(self.bucketing.buckets_of_state(split_state(state), state.rows[-1]))

    def log_probs(self, state: State) -> Tensor:
        import torch

        log_weights = torch.from_numpy(self.bucket_weights).log()[self.bucket(state)]  # (rows, models)
        parts = [model.log_probs(part).double() for model, part in self._model_states(state)]
        return log_weighted_sum(parts, log_weights.T[:, :, None].unbind())  # (rows, |V|)

    def advance(self, state: State, words: Tensor) -> State:
        states = [model.advance(part, words) for model, part in self._model_states(state)]
        return join_states(states, self.bucketing.advance(state.rows[-1], words))

    def finish(self, state: State) -> Carry:
        return [model.finish(part) for model, part in self._model_states(state)]

    @property
    def carries(self) -> bool:
        return any(model.carries for model in self.models)

    def token_log_probs(self, corpus: Corpus) -> Floats:
        log_probs = np.stack([token_log_probs(model, corpus) for model in self.models])  # (models, tokens)
        return mix_log_probs(log_probs, self.bucket_weights, self.bucketing.buckets_of_corpus(corpus))

    def _model_states(self, state: State) -> list[tuple[LanguageModel, State]]:
        return list(zip(self.models, split_state(state), strict=True))

    def config(self) -> Config:
        config = {"weights": self.weights.tolist()}
        if self.buckets == NO_BUCKETS:
            return config
        return {**config, "buckets": self.buckets, "bucket_weights": self.bucket_weights.tolist()}

    def members(self) -> Mapping[str, LanguageModel]:
        return {f"member-{number}": model for number, model in enumerate(self.models, 1)}

    @classmethod
    def member_names(cls, config: Config) -> Sequence[str]:
        return [f"member-{number}" for number in range(1, len(config["weights"]) + 1)]

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        source = str(saved.path / CONFIG_FILE)
        config = validate(MixtureConfig, saved.config, source)
        models = [saved.members[name] for name in cls.member_names(saved.config)]
        try:
            return cls(models, config.weights, buckets=config.buckets, bucket_weights=config.bucket_weights)
        except DataError as error:
            raise DataError(f"{source}: {error}") from None


def _check_weights(weights: Floats, models: int, name: str) -> None:
    if weights.shape != (models,) or (weights < 0).any() or not abs(weights.sum() - 1) < 1e-6:
        raise DataError(f"{name} {weights.tolist()}: give one for each of {models} models, with a sum of 1")


def fit_mixture_weights(log_probs: Floats, prior_weights: Floats | None = None, prior_strength: float = 0.0) -> Floats:
    """Return the mixture weights by expectation-maximisation.  # log_probs: (models, tokens) -> (models,)

    Each step sets the weight of a model to its share of the responsibility for the tokens; the likelihood never falls.
    With `prior_weights`, EM starts from these, and they count as `prior_strength` tokens (a Dirichlet prior); then the
    posterior never falls.
    """
    probs = np.exp(log_probs - log_probs.max(axis=0, initial=-700))
    weights = np.full(len(probs), 1 / len(probs)) if prior_weights is None else prior_weights
    prior = prior_strength * weights  # tokens
    counted = prior > 0
    last = -np.inf
    for _ in range(MAX_ITERATIONS):
        joint = weights[:, None] * probs  # (models, tokens)
        total = joint.sum(axis=0)
        if not total.all():
            raise DataError("the dev text has a word to which every model gives probability 0; add a smoothed model")
        log_prior = float(prior[counted] @ np.log(weights[counted]))  # log of the Dirichlet density up to a constant
        objective = float(np.log(total).mean()) + log_prior / len(total)
        if objective - last < TOLERANCE:
            break
        weights, last = ((joint / total).sum(axis=1) + prior) / (len(total) + prior.sum()), objective
    return np.asarray(weights / weights.sum())


def fit_bucket_weights(
    log_probs: Floats,
    buckets: NDArray[np.int64],
    num_buckets: int,
    weights: Floats,
    prior_strength: float = PRIOR_STRENGTH,
) -> Floats:
    """Return weights for each bucket of the tokens, smoothed towards the global ones.  # (num_buckets, models)"""
    bucket_weights = np.tile(weights, (num_buckets, 1))
    for bucket in np.unique(buckets).tolist():
        bucket_weights[bucket] = fit_mixture_weights(log_probs[:, buckets == bucket], weights, prior_strength)
    return bucket_weights


def mix_log_probs(log_probs: Floats, bucket_weights: Floats, buckets: NDArray[np.int64]) -> Floats:
    """Return log sum_i w_i P_i of each token, by the weights of its bucket.  # (models, tokens) -> (tokens,)"""
    with np.errstate(divide="ignore"):
        log_weights = np.log(bucket_weights)  # (buckets, models)
    return np.asarray(np.logaddexp.reduce(log_probs + log_weights.T[:, buckets], axis=0))
