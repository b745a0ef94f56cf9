"""Linear mixtures and ensembles of any language models over the same words; weights may depend on the context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dragoman.combine.buckets import NO_BUCKETS, make_bucketing
from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, Rows, State
from dragoman.data.corpus import Corpus
from dragoman.evaluation.log_probs import token_log_probs
from dragoman.io.storage import CONFIG_FILE
from dragoman.models.base import SavedModel
from dragoman.models.language_model import LanguageModel, require_same_vocab

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch

MAX_ITERATIONS = 1000
TOLERANCE = 1e-10  # gain in log-likelihood a token at which EM stops
PRIOR_STRENGTH = 10.0  # dev tokens that the weights of all contexts are worth in each bucket


class Mixture(LanguageModel):
    """P(w | h) = sum_i weight_i(bucket of h) P_i(w | h). With equal weights: an ensemble.

    >>> from dragoman import NgramModel
    >>> corpus = Corpus.from_sentences(["the cat sat", "the dog sat", "a cat ran"])
    >>> dev = Corpus.from_sentences(["a dog ran", "the cat sat"], corpus.vocab)
    >>> models = [NgramModel.train(corpus, order=order, smoothing="witten-bell") for order in (1, 3)]
    >>> one, three = Mixture.fit(models, dev).weights
    >>> three > one
    np.True_

    Weights that depend on the context are a row for each bucket of `dragoman.combine.buckets`:

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
        """Without `bucket_weights`, every bucket has the weights of all."""
        if len(models) < 1:
            raise DataError("a mixture needs at least one model")
        require_same_vocab(models)
        self.models = tuple(models)
        self.weights = np.full(len(models), 1 / len(models)) if weights is None else np.asarray(weights, float)
        _check_weights(self.weights, len(models), "weights")
        self.buckets, self.bucketing = buckets, make_bucketing(buckets, models)
        labels = self.bucketing.labels
        rows = [self.weights] * len(labels) if bucket_weights is None else bucket_weights
        self.bucket_weights = np.asarray(rows, float)  # (buckets, models)
        if len(self.bucket_weights) != len(labels):
            told = f"{len(self.bucket_weights)} rows of weights, but {len(labels)} buckets of {buckets!r}"
            raise DataError(f"{told}: fit the mixture again")
        for label, row in zip(labels, self.bucket_weights, strict=True):
            _check_weights(row, len(models), f"{label}: weights")
        self.vocab, self.unknown = models[0].vocab, models[0].unknown

    @classmethod
    def fit(
        cls,
        models: Sequence[LanguageModel],
        dev: Corpus,
        *,
        buckets: str = NO_BUCKETS,
        prior_strength: float = PRIOR_STRENGTH,
    ) -> Self:
        """A mixture with the weights that make the dev text most probable, by EM.

        In each bucket they shrink towards those of all contexts, which count as `strength` tokens there: an unseen
        bucket has just those.
        """
        require_same_vocab(models)
        where = make_bucketing(buckets, models)
        log_probs = np.stack([token_log_probs(model, dev) for model in models])  # (models, tokens)
        weights = fit_mixture_weights(log_probs)
        if buckets == NO_BUCKETS:
            return cls(models, weights.tolist())
        rows = fit_bucket_weights(log_probs, where.buckets_of_corpus(dev), len(where.labels), weights, prior_strength)
        return cls(models, weights.tolist(), buckets=buckets, bucket_weights=rows)

    def start(self, batch: Batch, carry: Carry = None) -> State:
        carries = carry or [None] * len(self.models)
        states = [model.start(batch, c) for model, c in zip(self.models, carries, strict=True)]
        return _join_states(states, self.bucketing.start(batch.num_rows))

    def bucket(self, state: State) -> Tensor:
        """The bucket whose weights count in each row.  # (rows,)"""
        import torch

        return torch.from_numpy(self.bucketing.buckets_of_state(self._states(state), state.rows[-1]))

    def log_probs(self, state: State) -> Tensor:
        import torch

        weights = torch.from_numpy(self.bucket_weights).log()[self.bucket(state)]  # (rows, models)
        parts = [model.log_probs(part).double() for model, part in self._parts(state)]
        return torch.logsumexp(torch.stack(parts) + weights.T[:, :, None], dim=0)  # (rows, |V|)

    def advance(self, state: State, words: Tensor) -> State:
        states = [model.advance(part, words) for model, part in self._parts(state)]
        return _join_states(states, self.bucketing.advance(state.rows[-1], words))

    def finish(self, state: State) -> Carry:
        return [model.finish(part) for model, part in self._parts(state)]

    @property
    def carries(self) -> bool:
        return any(model.carries for model in self.models)

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        parts = np.stack([token_log_probs(model, corpus) for model in self.models])  # (models, tokens)
        return mix_log_probs(parts, self.bucket_weights, self.bucketing.buckets_of_corpus(corpus))

    def _states(self, state: State) -> list[State]:
        return [State(*part) for part in zip(state.rows[:-1], state.memory, strict=True)]

    def _parts(self, state: State) -> list[tuple[LanguageModel, State]]:
        return list(zip(self.models, self._states(state), strict=True))

    # -- on disk -----------------------------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = {"weights": self.weights.tolist()}
        if self.buckets == NO_BUCKETS:
            return config
        return {**config, "buckets": self.buckets, "bucket_weights": self.bucket_weights.tolist()}

    def members(self) -> Mapping[str, LanguageModel]:
        return {f"member-{number}": model for number, model in enumerate(self.models, 1)}

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        config = dict(saved.config)
        weights = config.pop("weights")
        names = [f"member-{number}" for number in range(1, len(weights) + 1)]
        for name in names:
            if name not in saved.members:
                raise DataError(f"{saved.path}: broken model directory: {name} is missing; train or copy it again")
        try:
            _check_setting_names(config)
            return cls([saved.members[name] for name in names], weights, **config)
        except DataError as error:
            raise DataError(f"{saved.path / CONFIG_FILE}: {error}") from None


def ensemble(models: Sequence[LanguageModel]) -> Mixture:
    """The average of the models' probabilities.

    >>> from dragoman import NgramModel
    >>> corpus = Corpus.from_sentences(["the cat sat", "the dog sat"])
    >>> both = ensemble([NgramModel.train(corpus, order=n, smoothing="witten-bell") for n in (1, 2)])
    >>> both.weights.tolist()
    [0.5, 0.5]
    """
    return Mixture(models)


def fit_mixture_weights(
    log_probs: NDArray[np.float64], prior_weights: NDArray[np.float64] | None = None, prior_strength: float = 0.0
) -> NDArray[np.float64]:
    """Mixture weights by expectation-maximisation.  # log_probs: (models, tokens) -> (models,)

    Each step gives a model the share of the tokens it is held responsible for; the likelihood never falls. The weights
    that EM is led `towards` are where it starts from, and count as so many tokens of the text as `strength` says (a
    Dirichlet prior); then it is the likelihood times the prior that never falls.
    """
    probs = np.exp(log_probs - log_probs.max(axis=0, initial=-700))
    weights = np.full(len(probs), 1 / len(probs)) if prior_weights is None else prior_weights
    prior = prior_strength * weights  # tokens
    before = -np.inf
    for _ in range(MAX_ITERATIONS):
        joint = weights[:, None] * probs  # (models, tokens)
        total = joint.sum(axis=0)
        if not total.all():
            raise DataError("the dev text has a word to which every model gives probability 0; mix in a smoothed one")
        gained = float(np.log(total).mean()) + _log_dirichlet(weights, prior) / len(total)
        if gained - before < TOLERANCE:
            break
        weights, before = ((joint / total).sum(axis=1) + prior) / (len(total) + prior.sum()), gained
    return np.asarray(weights / weights.sum())


def fit_bucket_weights(
    log_probs: NDArray[np.float64],
    buckets: NDArray[np.int64],
    num_buckets: int,
    weights: NDArray[np.float64],
    prior_strength: float = PRIOR_STRENGTH,
) -> NDArray[np.float64]:
    """Weights for each bucket of the tokens, led towards those of all tokens.  # (number, models)"""
    rows = np.tile(weights, (num_buckets, 1))
    for bucket in np.unique(buckets).tolist():
        rows[bucket] = fit_mixture_weights(log_probs[:, buckets == bucket], weights, prior_strength)
    return rows


def mix_log_probs(
    log_probs: NDArray[np.float64], bucket_weights: NDArray[np.float64], buckets: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What the members say of each token, mixed by the weights of its bucket.  # (models, tokens) -> (tokens,)"""
    with np.errstate(divide="ignore"):
        log_weights = np.log(bucket_weights)  # (buckets, models)
    return np.asarray(np.logaddexp.reduce(log_probs + log_weights.T[:, buckets], axis=0))


def _log_dirichlet(weights: NDArray[np.float64], prior: NDArray[np.float64]) -> float:
    """The log of the Dirichlet density, up to a constant; what counts as no token has no say."""
    counted = prior > 0
    return float(prior[counted] @ np.log(weights[counted]))


def _check_weights(weights: NDArray[np.float64], models: int, name: str) -> None:
    if weights.shape != (models,) or (weights < 0).any() or not abs(weights.sum() - 1) < 1e-6:
        raise DataError(f"{name} {weights.tolist()}: one for each of {models} models, adding up to 1")


def _check_setting_names(config: Mapping[str, Any]) -> None:
    """Refuse settings that there are not: a misspelled one would quietly make another model."""
    known = ("weights", "buckets", "bucket_weights")
    for name in config:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise DataError(f"no setting {name!r}; {hint}")


def _join_states(states: Sequence[State], own: Rows) -> State:
    """The states of the members side by side; after their rows stand those of the bucketing."""
    return State((*(state.rows for state in states), own), tuple(state.memory for state in states))
