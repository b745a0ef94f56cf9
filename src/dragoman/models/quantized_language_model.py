"""Neural language models with 8-bit weights."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dragoman.core.scorer import Carry, State
from dragoman.data.batches import Batch
from dragoman.data.corpus import Corpus
from dragoman.models.feedforward import FeedForwardModel
from dragoman.models.language_model import LanguageModel
from dragoman.models.neural import NeuralLanguageModel, NeuralModel
from dragoman.models.quantized import QuantizedModel
from dragoman.models.recurrent import RecurrentModel


class QuantizedLanguageModel(QuantizedModel, LanguageModel):
    """P(E) by a neural language model whose matrices are rounded to 8 bits.

    >>> from dragoman import Corpus
    >>> model = RecurrentModel.create(Corpus.from_sentences(["a b", "b a"]), embedding=4, hidden=4)
    >>> quantized = QuantizedRecurrentModel.quantize(model)
    >>> abs(quantized.score("a b")[0] - model.score("a b")[0]) < 0.1
    True
    """

    model: NeuralLanguageModel

    @property
    def carries(self) -> bool:
        return self.model.carries

    def start(self, batch: Batch, carry: Carry = None) -> State:
        return self.model.start(batch, carry)

    def log_probs(self, state: State) -> Tensor:
        return self.model.log_probs(state)

    def advance(self, state: State, words: Tensor) -> State:
        return self.model.advance(state, words)

    def finish(self, state: State) -> Carry:
        return self.model.finish(state)

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        return self.model.token_log_probs(corpus)


class QuantizedRecurrentModel(QuantizedLanguageModel):
    """A recurrent language model with 8-bit weights."""

    kind: ClassVar[str] = "quantized-recurrent"
    original: ClassVar[type[NeuralModel]] = RecurrentModel


class QuantizedFeedForwardModel(QuantizedLanguageModel):
    """A feed-forward language model with 8-bit weights."""

    kind: ClassVar[str] = "quantized-feed-forward"
    original: ClassVar[type[NeuralModel]] = FeedForwardModel
