"""Linear mixtures and ensembles of any language models over the same words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DataError
from dragoman.language_model import LanguageModel, Saved, require_same_vocab
from dragoman.scorer import Carry, State, token_log_probs
from dragoman.text.corpus import Corpus

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.text.batches import Batch

ITERATIONS = 1000
TOLERANCE = 1e-10  # gain in log-likelihood a token at which EM stops


class Mixture(LanguageModel):
    """P(w | h) = sum_i weight_i P_i(w | h). With equal weights: an ensemble.

    >>> from dragoman import NgramModel
    >>> corpus = Corpus.from_sentences(["the cat sat", "the dog sat", "a cat ran"])
    >>> models = [NgramModel.train(corpus, order=order, smoothing="witten-bell") for order in (1, 3)]
    >>> one, three = Mixture.fit(models, Corpus.from_sentences(["a dog ran", "the cat sat"], corpus.vocab)).weights
    >>> three > one
    np.True_
    """

    kind: ClassVar[str] = "mixture"

    def __init__(self, models: Sequence[LanguageModel], weights: Sequence[float] | None = None):
        if len(models) < 1:
            raise DataError("a mixture needs at least one model")
        require_same_vocab(models)
        self.models = tuple(models)
        self.weights = np.full(len(models), 1 / len(models)) if weights is None else np.asarray(weights, float)
        if len(self.weights) != len(models) or (self.weights < 0).any() or not abs(self.weights.sum() - 1) < 1e-6:
            raise DataError(f"weights {self.weights.tolist()}: one for each of {len(models)} models, adding up to 1")
        self.vocab, self.unknown = models[0].vocab, models[0].unknown

    @classmethod
    def fit(cls, models: Sequence[LanguageModel], dev: Corpus) -> Self:
        """A mixture with the weights that make the dev text most probable, by EM."""
        require_same_vocab(models)
        return cls(models, fit_weights(np.stack([token_log_probs(model, dev) for model in models])).tolist())

    def start(self, batch: Batch, carry: Carry = None) -> State:
        carries = carry or [None] * len(self.models)
        return _joined([model.start(batch, c) for model, c in zip(self.models, carries, strict=True)])

    def log_probs(self, state: State) -> Tensor:
        import torch

        weights = torch.from_numpy(self.weights).log()
        parts = [model.log_probs(part).double() for model, part in self._parts(state)]
        return torch.logsumexp(torch.stack(parts) + weights[:, None, None], dim=0)  # (rows, |V|)

    def advance(self, state: State, words: Tensor) -> State:
        return _joined([model.advance(part, words) for model, part in self._parts(state)])

    def finish(self, state: State) -> Carry:
        return [model.finish(part) for model, part in self._parts(state)]

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        parts = np.stack([token_log_probs(model, corpus) for model in self.models])  # (models, tokens)
        with np.errstate(divide="ignore"):
            return np.asarray(np.logaddexp.reduce(parts + np.log(self.weights)[:, None], axis=0))

    def _parts(self, state: State) -> list[tuple[LanguageModel, State]]:
        states = (State(*part) for part in zip(state.rows, state.memory, strict=True))
        return list(zip(self.models, states, strict=True))

    # -- on disk -----------------------------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        return {"weights": self.weights.tolist()}

    def members(self) -> Mapping[str, LanguageModel]:
        return {f"member-{number}": model for number, model in enumerate(self.models, 1)}

    @classmethod
    def from_saved(cls, saved: Saved) -> Self:
        weights = saved.config["weights"]
        names = [f"member-{number}" for number in range(1, len(weights) + 1)]
        for name in names:
            if name not in saved.members:
                raise DataError(f"{saved.path}: broken model directory: {name} is missing; train or copy it again")
        return cls([saved.members[name] for name in names], weights)


def ensemble(models: Sequence[LanguageModel]) -> Mixture:
    """The average of the models' probabilities.

    >>> from dragoman import NgramModel
    >>> corpus = Corpus.from_sentences(["the cat sat", "the dog sat"])
    >>> both = ensemble([NgramModel.train(corpus, order=n, smoothing="witten-bell") for n in (1, 2)])
    >>> both.weights.tolist()
    [0.5, 0.5]
    """
    return Mixture(models)


def fit_weights(log_probs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mixture weights by expectation-maximisation.  # log_probs: (models, tokens) -> (models,)

    Each step gives a model the share of the tokens it is held responsible for; the likelihood never falls.
    """
    probs = np.exp(log_probs - log_probs.max(axis=0, initial=-700))
    weights = np.full(len(probs), 1 / len(probs))
    before = -np.inf
    for _ in range(ITERATIONS):
        joint = weights[:, None] * probs  # (models, tokens)
        total = joint.sum(axis=0)
        if not total.all():
            raise DataError("the dev text has a word to which every model gives probability 0; mix in a smoothed one")
        gained = float(np.log(total).mean())
        if gained - before < TOLERANCE:
            break
        weights, before = (joint / total).mean(axis=1), gained
    return np.asarray(weights / weights.sum())


def _joined(states: Sequence[State]) -> State:
    return State(tuple(state.rows for state in states), tuple(state.memory for state in states))
