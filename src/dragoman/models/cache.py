"""A cache language model: words that occurred recently are likely to occur again (Kuhn and De Mori 1990).

A newspaper that mentioned `guterman` will soon mention it again, followed by the same words as before. Words are
forgotten by exponential decay. The model has learned only word frequencies, so it is useful as a member of a mixture.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.core.errors import DataError
from dragoman.core.kernels import kernel
from dragoman.core.scorer import Carry, State
from dragoman.core.settings import Settings, validate
from dragoman.core.types import Arrays
from dragoman.data.corpus import Corpus
from dragoman.data.unknown_words import UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import START, Vocab
from dragoman.io.storage import CONFIG_FILE
from dragoman.models.base import Config, SavedModel
from dragoman.models.language_model import LanguageModel

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch

MIN_WEIGHT = 1e-3  # a word whose weight has decayed to this is removed from the cache


class CacheConfig(Settings):
    """The settings of a cache."""

    decay: float = Field(0.994, gt=0, lt=1)
    """Factor by which the weight of a word decreases with each further word."""
    prior: float = Field(2.0, ge=1e-6, le=1e9)
    """Weight of the lower-order distribution."""
    order: int = Field(3, ge=1, le=100)
    """Length of the longest n-grams that are counted."""


class CacheModel(LanguageModel):
    """P_m(w | h) = (sum_i d^i [w = e_{t-i} after the same m-1 words] + k P_{m-1}(w | h)) / (sum_i d^i [...] + k).

    Here d is the `decay` and k the `prior`. The sums are over the words in the cache, and P_0 is the unigram
    distribution of the training text. With `order` 1 this is the classical cache of single words; from 2 on, it also
    predicts the words that recently followed the current word. The cache also holds `</s>`, and continues across
    sentences by `finish` and `start`.

    >>> from dragoman import CacheModel, Corpus
    >>> model = CacheModel.train(Corpus.from_sentences(["the cat sat", "the dog sat"]), prior=1.0)
    >>> first, second = model.score_words(["the dog", "the dog"])
    >>> second[1].log_prob > first[1].log_prob
    True
    """

    kind: ClassVar[str] = "cache"

    def __init__(self, vocab: Vocab, unigram: NDArray[np.float64], unknown: UnknownWordModel, settings: CacheConfig):
        self.vocab, self.unknown, self.settings = vocab, unknown, settings
        self.unigram = unigram  # (|V|,)
        self.decay, self.prior, self.order = settings.decay, settings.prior, settings.order
        self.size = math.ceil(math.log(MIN_WEIGHT) / math.log(self.decay))  # words in the cache

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
        """Return a cache over the vocabulary of a corpus, with the unigram distribution of the corpus."""
        settings = validate(CacheConfig, {"decay": decay, "prior": prior, "order": order}, "cache")
        unknown = unknown or UniformUnknownWords(corpus.vocab.num_known)
        counts = np.bincount(corpus.ids_with_boundaries(starts=0), minlength=len(corpus.vocab)) + 1.0
        counts[START] = 0.0  # words and `</s>` are counted, with one added; (|V|,)
        return cls(corpus.vocab, counts / counts.sum(), unknown, settings)

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
            if context:  # keep the words whose previous `context` words are the last ones of the history
                previous = history.roll(context, dims=1)
                previous[:, :context] = -1
                weights = weights * (previous == history[:, -context, None])
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
        weights = self.decay ** np.arange(min(self.size, len(tokens)) + 1)  # by age; the last word has age 1
        return np.log(_stream_probs(tokens, np.array(self.unigram), weights, self.prior, self.order))

    def config(self) -> Config:
        return self.settings.model_dump(mode="json")

    def arrays(self) -> Arrays:
        return {"unigram": self.unigram}

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        unigram = saved.arrays["unigram"]
        if unigram.shape != (len(saved.vocab),) or unigram.dtype != np.float64:
            raise DataError(f"{saved.path}: table and vocabulary do not match; train or copy the model again")
        if not (unigram >= 0).all() or not abs(unigram.sum() - 1) < 1e-6:
            raise DataError(f"{saved.path}: the word frequencies do not sum to one; train or copy the model again")
        settings = validate(CacheConfig, saved.config, str(saved.path / CONFIG_FILE))
        return cls(saved.vocab, unigram, saved.unknown, settings)


@kernel
def _stream_probs(tokens: Any, unigram: Any, weights: Any, prior: float, order: int) -> Any:
    """Return P of each token given all before it. The cost per token is the number of its occurrences in the cache."""
    size = weights.size - 1
    cache_weights = np.cumsum(weights) - weights[0]  # total weight of a cache of n words
    probs = np.empty(tokens.size)
    last = np.full(unigram.size, -1)  # the last position of each word
    previous = np.empty(tokens.size, np.int64)  # the previous position of each token's word
    mass, total = np.empty(order), np.empty(order)
    for t in range(tokens.size):
        w = tokens[t]
        mass[:], total[:] = 0.0, 0.0
        total[0] = cache_weights[min(t, size)]
        position = last[w]
        while position >= 0 and t - position <= size:
            mass[0] += weights[t - position]
            position = previous[position]
        _add_followers(tokens, previous, weights, t, mass, total)
        p = unigram[w]
        for k in range(order):
            p = (mass[k] + prior * p) / (total[k] + prior)
        probs[t] = p
        previous[t] = last[w]
        last[w] = t
    return probs


@kernel
def _add_followers(tokens: Any, previous: Any, weights: Any, t: int, mass: Any, total: Any) -> None:
    """For each context length k, add the weight of the words that followed the context, and of token t among them."""
    if t == 0 or mass.size == 1:
        return
    size = weights.size - 1
    first = max(0, t - size)  # position of the oldest word in the cache
    position = previous[t - 1]
    while position >= first:
        weight = weights[t - position - 1]
        matched = 1
        while (
            matched < mass.size
            and position - matched + 1 >= first
            and tokens[position - matched + 1] == tokens[t - matched]
        ):
            total[matched] += weight
            if tokens[position + 1] == tokens[t]:
                mass[matched] += weight
            matched += 1
        position = previous[position]
