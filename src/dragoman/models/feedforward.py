"""Feed-forward neural language models (tutorial, section "Neural-network Language Models"; Bengio et al. 2003)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor
from torch.nn.functional import embedding

from dragoman.core.scorer import Carry, State
from dragoman.data.batches import Batch
from dragoman.data.corpus import Corpus, context_windows
from dragoman.data.vocabulary import START
from dragoman.models.feedforward_config import FeedForwardConfig
from dragoman.models.network import EmbeddingLanguageModel
from dragoman.nn.dropout import dropout
from dragoman.nn.init import glorot
from dragoman.nn.mlp import ACTIVATIONS, hidden


class FeedForwardModel(EmbeddingLanguageModel):
    """m = concat(M_{e_{t-n+1}}, ..., M_{e_{t-1}}), h = tanh(W_mh m + b_h), p = softmax(W_hs h + b_s) (eq. nnlm:nnlm).

    >>> from dragoman import Corpus, fit
    >>> corpus = Corpus.from_sentences(["cows eat hay", "farmers grow hay", "farmers eat meat"] * 20)
    >>> model = FeedForwardModel.create(corpus, order=3, embedding=8, hidden=(16,))
    >>> fitted = fit(model, corpus, max_epochs=20, learning_rate=0.02)
    >>> model.next_words("farmers eat")[0].word
    'meat'
    """

    kind: ClassVar[str] = "feed-forward"
    config_class = FeedForwardConfig
    settings: FeedForwardConfig

    @classmethod
    def _inner_parameters(cls, settings: Any, chance: Generator, dtype: torch.dtype) -> tuple[dict[str, Tensor], int]:
        sizes = [settings.embedding * (settings.order - 1), *settings.hidden]
        inner = {}
        for layer, (inputs, outputs) in enumerate(pairwise(sizes), 1):
            inner[f"W_{layer}"] = glorot(outputs, inputs, chance, dtype)
            inner[f"b_{layer}"] = torch.zeros(outputs, dtype=dtype)
        return inner, sizes[-1]

    @classmethod
    def _past_hidden(cls, settings: Any) -> int:
        return settings.embedding * (settings.order - 1) if settings.direct else 0

    # -- the network -------------------------------------------------------------------------------------------------

    def _hidden(self, contexts: Tensor, noise: Generator | None) -> Tensor:
        """What the output layer sees of a context.  # (rows, n - 1) -> (rows, outputs)"""
        settings, parameters = self.settings, self._parameters
        m = embedding(contexts, parameters["M"]).flatten(1)  # (rows, (n - 1) L_m)
        m = dropout(m, settings.embedding_dropout, noise)
        h = m
        for layer in range(1, len(settings.hidden) + 1):
            W, b = parameters[f"W_{layer}"], parameters[f"b_{layer}"]
            h = hidden(h, W, b, ACTIVATIONS[settings.activation])  # (rows, hidden)
            h = dropout(h, settings.dropout, noise)
        h = self._outward(h)  # (rows, L_m) if tied
        return torch.cat([h, m], dim=1) if settings.direct else h

    def batch_log_probs(self, corpus: Corpus, noise: Generator | None = None, smoothing: float = 0.0) -> Tensor:
        contexts = torch.from_numpy(context_windows(corpus, self.settings.order - 1)).long().to(self.device)
        return self._target_log_probs(self._hidden(contexts, noise), corpus.ids_with_boundaries(starts=0), smoothing)

    # -- the scorer ------------------------------------------------------------------------------------------------

    def start(self, batch: Batch, carry: Carry = None) -> State:
        return State(torch.full((batch.num_rows, self.settings.order - 1), START))

    def log_probs(self, state: State) -> Tensor:
        contexts: Tensor = state.rows  # (rows, n - 1)
        return self._word_log_probs(self._hidden(contexts.to(self.device), None))

    def advance(self, state: State, words: Tensor) -> State:
        return State(torch.cat([state.rows[:, 1:], words[:, None]], dim=1))
