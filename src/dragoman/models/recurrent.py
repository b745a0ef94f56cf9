"""Recurrent language models (tutorial, section "Recurrent Neural Network Language Models"; Mikolov et al. 2010)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn.functional import embedding

from dragoman.core.scorer import Carry, State
from dragoman.data.batches import Batch, Segment, TextStream
from dragoman.data.corpus import Corpus
from dragoman.data.ranges import split_by_size
from dragoman.data.vocabulary import END, START
from dragoman.models.network import EmbeddingLanguageModel
from dragoman.models.recurrent_config import RecurrentConfig
from dragoman.nn.cells import CELLS, CellState
from dragoman.nn.dropout import dropout
from dragoman.nn.recurrent import Layer, first_layer, step, unroll

LayerStates = tuple[CellState, ...]  # that of each layer, from the first to the last
TOKENS_PER_BATCH = 4096  # tokens computed together, where a text is scored
STREAM_STEPS = 512  # of a stream


class RecurrentModel(EmbeddingLanguageModel):
    """m_t = M_{e_{t-1}}, h_t = RNN(m_t, h_{t-1}), p_t = softmax(W_hs h_t + b_s) (eq. rnnlm:rnnlmabbrv).

    >>> from dragoman import Corpus, fit
    >>> corpus = Corpus.from_sentences(["he said that he saw himself", "she said that she saw herself"] * 20)
    >>> model = RecurrentModel.create(corpus, cell="lstm", embedding=8, embedding_reach=1.0, hidden=16)
    >>> fitted = fit(model, corpus, max_epochs=20, batch_size=100, learning_rate=0.05)
    >>> model.next_words("she said that she saw")[0].word
    'herself'
    """

    kind: ClassVar[str] = "recurrent"
    config_class = RecurrentConfig
    settings: RecurrentConfig

    @classmethod
    def _inner_parameters(cls, settings: Any, chance: Generator, dtype: torch.dtype) -> tuple[dict[str, Tensor], int]:
        cell, H = CELLS[settings.cell], settings.hidden
        inner: dict[str, Tensor] = {}
        for layer in range(1, settings.layers + 1):
            inputs = settings.embedding if layer == 1 else H
            first = first_layer(settings.cell, inputs, H, chance, dtype)
            inner |= {f"W_x{layer}": first.W_x, f"W_h{layer}": first.W_h, f"b_{layer}": first.b}
            if settings.first_state == "learned":
                inner |= {f"{name}_0{layer}": torch.zeros(H, dtype=dtype) for name in cell.state}
        return inner, H

    @property
    def carries(self) -> bool:
        """Whether sentences begin where the one before ended."""
        return self.settings.carries

    # -- the network -------------------------------------------------------------------------------------------------

    def initial_states(self, rows: int) -> LayerStates:
        """h_0, and c_0 where there is one, of every layer."""
        return tuple(
            tuple(self._first_state(f"{name}_0{layer}").expand(rows, -1) for name in CELLS[self.settings.cell].state)
            for layer in range(1, self.settings.layers + 1)
        )

    def _first_state(self, name: str) -> Tensor:
        learned = self._parameters.get(name)
        return self._parameters["M"].new_zeros(self.settings.hidden) if learned is None else learned

    def layer(self, number: int, noise: Generator | None = None) -> Layer:
        """The parameters of a layer; with noise, some of its recurrent weights are left out."""
        W_x, W_h, b = (self._parameters[f"{name}{number}"] for name in ("W_x", "W_h", "b_"))
        return Layer(W_x, dropout(W_h, self.settings.weight_dropout, noise), b)

    def hidden(self, m: Tensor, states: LayerStates, noise: Generator | None = None) -> tuple[Tensor, LayerStates]:
        """The last layer's h at every step, and the states after the last step.

        # m: (steps, rows, L_m), the vectors of the words read -> (steps, rows, H)
        """
        settings, ended = self.settings, []
        x = self._dropped(m, settings.embedding_dropout, noise)
        for number, state in enumerate(states, 1):
            h, state = unroll(settings.cell, self.layer(number, noise), x, state)
            ended.append(state)
            x = self._dropped(h + x if settings.residual else h, settings.dropout, noise)
        return x, tuple(ended)

    def step(self, x: Tensor, states: LayerStates) -> tuple[Tensor, LayerStates]:
        """The same, one step on and without noise.  # x: (rows, L_m) -> (rows, H)"""
        settings, after = self.settings, []
        for number, state in enumerate(states, 1):
            after.append(step(settings.cell, self.layer(number), x, state))
            x = after[-1][0] + x if settings.residual else after[-1][0]
        return x, tuple(after)

    def _dropped(self, x: Tensor, rate: float, noise: Generator | None) -> Tensor:
        """Dropout of a layer's output at all steps; the variational one leaves out the same at each."""
        return dropout(x, rate, noise, alike_in=0 if self.settings.variational else None)

    def embed(self, words: NDArray[np.integer]) -> Tensor:
        """m: the vectors of words."""
        return embedding(torch.from_numpy(words).long().to(self.device), self._parameters["M"])

    def batch_log_probs(self, corpus: Corpus, noise: Generator | None = None, smoothing: float = 0.0) -> Tensor:
        """Sentences side by side, padded with `</s>`; what padded places say is left out before the softmax."""
        if not len(corpus):
            return self._parameters["M"].new_zeros(0)
        batch = Batch.from_sentences(list(corpus))
        h, _ = self.hidden(self.embed(_shifted(batch.ids.numpy()).T), self.initial_states(batch.num_rows), noise)
        own = h.transpose(0, 1)[batch.mask.to(self.device)]  # (tokens, H) sentence after sentence
        return self._target_log_probs(self._outward(own), corpus.ids_with_boundaries(starts=0), smoothing)

    def target_log_probs(self, h: Tensor, words: NDArray[np.integer]) -> Tensor:
        """log P of one word after each of some rows of the last layer's h.  # (rows, H), (rows,) -> (rows,)"""
        return self._target_log_probs(self._outward(h), words, 0.0)

    def segment_log_probs(
        self, segment: Segment, carry: LayerStates | None, noise: Generator | None = None, smoothing: float = 0.0
    ) -> tuple[Tensor, LayerStates]:
        """log P of every token of a segment, step after step, and the states to carry over, without their gradients."""
        states = carry or self.initial_states(segment.targets.shape[1])
        h, states = self.hidden(self.embed(segment.inputs), states, noise)
        log_probs = self._target_log_probs(self._outward(h.flatten(0, 1)), segment.targets.reshape(-1), smoothing)
        return log_probs, tuple(tuple(part.detach() for part in state) for state in states)

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        with torch.no_grad():
            return self._stream_log_probs(corpus) if self.carries else self._sentences_log_probs(corpus)

    def _stream_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        """The whole text as one row: exactly what the fold would say."""
        parts, carry = [np.zeros(0)], None
        for segment in TextStream.from_corpus(corpus, rows=1, steps=STREAM_STEPS) if corpus.num_tokens else ():
            log_probs, carry = self.segment_log_probs(segment, carry)
            parts.append(log_probs.double().cpu().numpy())
        return np.concatenate(parts)

    def _sentences_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        """Sentences of like length together, and each token back to its place."""
        found = np.zeros(corpus.num_tokens)
        offsets = corpus.token_offsets
        for run in split_by_size(np.argsort(corpus.sizes, kind="stable"), corpus.sizes, TOKENS_PER_BATCH):
            places = np.concatenate([np.arange(offsets[number], offsets[number + 1]) for number in run])
            found[places] = self.batch_log_probs(corpus.select(run)).double().cpu().numpy()
        return found

    # -- the scorer ------------------------------------------------------------------------------------------------

    def start(self, batch: Batch, carry: Carry = None) -> State:
        """A stream goes on where it was, which is after a `</s>`; and it begins as if there had been one."""
        if carry is not None:
            return State(carry)
        first = torch.full((batch.num_rows,), END if self.carries else START)
        return self._after(first, self.initial_states(batch.num_rows))

    def log_probs(self, state: State) -> Tensor:
        x, _ = state.rows
        return self._word_log_probs(self._outward(x))

    def advance(self, state: State, words: Tensor) -> State:
        return self._after(words, state.rows[1])

    def finish(self, state: State) -> Carry:
        return state.rows if self.carries else None

    def _after(self, words: Tensor, states: LayerStates) -> State:
        """The output of the last layer and all layers' states, one word on.  # words: (rows,)"""
        return State(self.step(embedding(words.to(self.device), self._parameters["M"]), states))


def _shifted(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """What is read where these words are predicted: `<s>`, then the words but the last.  # (rows, longest)"""
    return np.concatenate([np.full((len(words), 1), START, words.dtype), words[:, :-1]], axis=1)
