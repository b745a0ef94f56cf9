"""Feed-forward neural language models (tutorial, section "Neural-network Language Models"; Bengio et al. 2003)."""

from __future__ import annotations

from typing import ClassVar, Self

import torch
from torch import Generator, Tensor

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, State
from dragoman.core.types import Arrays
from dragoman.data.batches import Batch
from dragoman.data.corpus import Corpus, context_windows
from dragoman.data.vocabulary import START
from dragoman.models.configs import FeedForwardConfig
from dragoman.models.neural import EmbeddingLanguageModel, LanguageModelOutput
from dragoman.nn.layers import MLP, Dropout

MAX_OUTPUT = 1e24  # of the hidden layers; times the largest weights, scores are still finite in 32 bits


class FeedForwardModel(EmbeddingLanguageModel):
    """m = concat(M_{e_{t-n+1}}, ..., M_{e_{t-1}}), h = tanh(W_mh m + b_h), p = softmax(W_hs h + b_s) (eq. nnlm:nnlm).

    >>> from dragoman import Corpus, fit
    >>> corpus = Corpus.from_sentences(["cows eat hay", "farmers grow hay", "farmers eat meat"] * 20)
    >>> model = FeedForwardModel.create(corpus, order=3, embedding=8, hidden=(16,))
    >>> result = fit(model, corpus, max_epochs=20, learning_rate=0.02)
    >>> model.next_words("farmers eat")[0].word
    'meat'
    """

    kind: ClassVar[str] = "feed-forward"
    config_class = FeedForwardConfig
    settings: FeedForwardConfig

    def _create_body(self) -> tuple[int, int]:
        settings = self.settings
        sizes = [settings.embedding * (settings.order - 1), *settings.hidden]
        self.embedding_dropout = Dropout(settings.embedding_dropout)
        self.mlp = MLP(sizes, settings.activation, settings.dropout)
        return sizes[-1], sizes[0] if settings.direct else 0

    def _reset_body(self, generator: Generator) -> None:
        self.mlp.reset_parameters(generator)

    def load_arrays(self, arrays: Arrays, source: str) -> Self:
        model = super().load_arrays(arrays, source)
        if not float(self.mlp.output_bound(self.embedding.weight.abs().max())) < MAX_OUTPUT:
            raise DataError(f"{source}: the hidden layers would overflow; the model directory is broken")
        return model

    def _hidden(self, contexts: Tensor, generator: Generator | None = None) -> Tensor:
        """Return the input of the output layer.  # (rows, n - 1) -> (rows, inputs)"""
        m = self.embedding(contexts.to(self.device)).flatten(1)  # (rows, (n - 1) L_m)
        m = self.embedding_dropout(m, generator)
        h = self._project(self.mlp(m, generator))
        return torch.cat([h, m], dim=1) if self.settings.direct else h

    def forward(
        self, batch: Corpus, *, generator: Generator | None = None, label_smoothing: float = 0.0
    ) -> LanguageModelOutput:
        """Return log P of every token of some sentences, with label smoothing if requested."""
        contexts = torch.from_numpy(context_windows(batch, self.settings.order - 1)).long()
        x = self._hidden(contexts, generator)
        return LanguageModelOutput(self._target_log_probs(x, batch.ids_with_boundaries(starts=0), label_smoothing))

    def shape(self) -> dict[str, object]:
        return {name: getattr(self.settings, name) for name in ("order", "embedding", "hidden")}

    def start(self, batch: Batch, carry: Carry = None) -> State:
        return State(torch.full((batch.num_rows, self.settings.order - 1), START))

    def log_probs(self, state: State) -> Tensor:
        with self.evaluation_mode():
            return self.output.log_probs(self._hidden(state.rows), self.tied_weight).cpu()

    def advance(self, state: State, words: Tensor) -> State:
        return State(torch.cat([state.rows[:, 1:], words[:, None]], dim=1))
