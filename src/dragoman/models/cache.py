"""The cache: what was said lately is likely to be said again (Kuhn and De Mori 1990).

A newspaper that wrote `guterman` once will soon write it again, and after `guterman` what came after it before. The
model forgets by exponential decay and has learned nothing but how frequent words are, so it is of use as a member of
a mixture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.kernels import kernel
from dragoman.core.scorer import Carry, State
from dragoman.data.corpus import Corpus
from dragoman.data.unknown_words import UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import START, Vocab
from dragoman.models.base import SavedModel
from dragoman.models.language_model import LanguageModel

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch

MIN_WEIGHT = 1e-3  # a word whose weight has decayed to this leaves the cache


class CacheModel(LanguageModel):
    """P_m(w | h) = (sum_i d^i [w = e_{t-i}, its m-1 words before = ours] + k P_{m-1}(w | h)) / (sum_i d^i [...] + k).

    Here d is the `decay` and k the `prior`; the sums go over the words that the cache holds, and P_0 is the training
    text's unigram distribution. With `order` 1 this is the classical cache of single words; from 2 on, it also knows
    what followed the present word lately. The cache holds `</s>` like any word and runs on across sentences: it is
    what `finish` hands over and `start` takes up.

    >>> from dragoman.data import Corpus
    >>> model = CacheModel.train(Corpus.from_sentences(["the cat sat", "the dog sat"]), prior=1.0)
    >>> once, again = model.score_words(["the dog", "the dog"])
    >>> again[1].log_prob > once[1].log_prob
    True
    """

    kind: ClassVar[str] = "cache"

    def __init__(
        self,
        vocab: Vocab,
        unigram: NDArray[np.float64],
        unknown: UnknownWordModel,
        *,
        decay: float,
        prior: float,
        order: int,
    ):
        if not 0 < decay < 1:
            raise DataError(f"a decay of {decay}: it must lie between 0 and 1, for example 0.994")
        if not 0 < prior < math.inf:
            raise DataError(f"a prior of {prior}: it must be above 0, for example 2")
        if order < 1:
            raise DataError(f"order {order}: a cache counts one word or more")
        self.vocab, self.unknown = vocab, unknown
        self.unigram = unigram  # (|V|,)
        self.decay, self.prior, self.order = float(decay), float(prior), int(order)
        self.size = math.ceil(math.log(MIN_WEIGHT) / math.log(decay))  # words the cache holds

    @classmethod
    def train(
        cls,
        corpus: Corpus,
        *,
        unknown: UnknownWordModel | None = None,
        decay: float = 0.994,
        prior: float = 2.0,
        order: int = 3,
    ) -> Self:
        """A cache over the words of a text, with the text's unigram distribution as what it falls back on."""
        unknown = unknown or UniformUnknownWords(corpus.vocab.num_known)
        return cls(corpus.vocab, _unigram(corpus), unknown, decay=decay, prior=prior, order=order)

    # -- the scorer ------------------------------------------------------------------------------------------------

    def start(self, batch: Batch, carry: Carry = None) -> State:
        import torch

        return State(torch.zeros((batch.num_rows, 0), dtype=torch.int64) if carry is None else carry)

    def log_probs(self, state: State) -> Tensor:
        import torch

        history: Tensor = state.rows  # (rows, words)
        rows, words = history.shape
        weights = self.decay ** torch.arange(words, 0, -1, dtype=torch.float64).expand(rows, words)
        probs = torch.from_numpy(np.array(self.unigram)).expand(rows, -1)  # (rows, |V|)
        for context in range(min(self.order, words + 1)):
            if context:  # keep the words that had the same word as now, `context` places before them
                before = history.roll(context, dims=1)
                before[:, :context] = -1
                weights = weights * (before == history[:, -context, None])
            cached = torch.zeros_like(probs).scatter_add(1, history, weights)
            probs = (cached + self.prior * probs) / (weights.sum(dim=1, keepdim=True) + self.prior)
        return probs.log()

    def advance(self, state: State, words: Tensor) -> State:
        import torch

        return State(torch.cat([state.rows, words[:, None]], dim=1)[:, -self.size :])

    @property
    def carries(self) -> bool:
        return True

    def finish(self, state: State) -> Carry:
        return state.rows

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        tokens = corpus.ids_with_boundaries(starts=0)
        weights = self.decay ** np.arange(self.size + 1)  # by age; the last word has age 1
        return np.log(_stream(tokens, np.array(self.unigram), weights, self.prior, self.order))

    # -- on disk -----------------------------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        return {"decay": self.decay, "prior": self.prior, "order": self.order}

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {"unigram": self.unigram}

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        unigram = saved.arrays["unigram"]
        if unigram.shape != (len(saved.vocab),):
            raise DataError(f"{saved.path}: table and vocabulary do not fit together; the model directory is broken")
        return cls(saved.vocab, unigram, saved.unknown, **saved.config)


def _unigram(corpus: Corpus) -> NDArray[np.float64]:
    """How frequent words and `</s>` are, each counted once more than it was seen; `<s>` never comes.  # (|V|,)"""
    counts = np.bincount(corpus.ids_with_boundaries(starts=0), minlength=len(corpus.vocab)) + 1.0
    counts[START] = 0.0
    return counts / counts.sum()


@kernel
def _stream(tokens: Any, unigram: Any, weights: Any, prior: float, order: int) -> Any:
    """P of every token given all before it; the work a token takes is the use of its last word in the cache."""
    size = weights.size - 1
    held = np.cumsum(weights) - weights[0]  # the weight of a cache of so many words
    probs = np.empty(tokens.size)
    last = np.full(unigram.size, -1)  # the last place of each word so far
    before = np.empty(tokens.size, np.int64)  # the place where each token's word stood before
    mass, total = np.empty(order), np.empty(order)
    for t in range(tokens.size):
        w = tokens[t]
        mass[:], total[:] = 0.0, 0.0
        total[0] = held[min(t, size)]
        place = last[w]
        while place >= 0 and t - place <= size:
            mass[0] += weights[t - place]
            place = before[place]
        _add_followers(tokens, before, weights, t, mass, total)
        p = unigram[w]
        for k in range(order):
            p = (mass[k] + prior * p) / (total[k] + prior)
        probs[t] = p
        before[t] = last[w]
        last[w] = t
    return probs


@kernel
def _add_followers(tokens: Any, before: Any, weights: Any, t: int, mass: Any, total: Any) -> None:
    """For each length k of context, the weight of what followed it in the cache, and of token t among that."""
    if t == 0 or mass.size == 1:
        return
    size = weights.size - 1
    first = max(0, t - size)  # the oldest word of the cache
    place = before[t - 1]
    while place >= first:
        weight = weights[t - place - 1]
        same = 1
        while same < mass.size and place - same + 1 >= first and tokens[place - same + 1] == tokens[t - same]:
            total[same] += weight
            if tokens[place + 1] == tokens[t]:
                mass[same] += weight
            same += 1
        place = before[place]
