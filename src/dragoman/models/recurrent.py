"""Recurrent language models (tutorial, section "Recurrent Neural Network Language Models"; Mikolov et al. 2010)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman.core.scorer import Carry, State
from dragoman.data.batches import Batch, Segment, TextStream
from dragoman.data.corpus import Corpus
from dragoman.data.ranges import split_by_size
from dragoman.data.vocabulary import END, START
from dragoman.models.configs import RecurrentConfig
from dragoman.models.neural import TOKENS_PER_BATCH, EmbeddingLanguageModel, LanguageModelOutput
from dragoman.nn.layers import Dropout
from dragoman.nn.recurrent import LayerStates, RecurrentStack

STREAM_STEPS = 512  # tokens of a stream that are computed at a time


class RecurrentModel(EmbeddingLanguageModel):
    """m_t = M_{e_{t-1}}, h_t = RNN(m_t, h_{t-1}), p_t = softmax(W_hs h_t + b_s) (eq. rnnlm:rnnlmabbrv).

    >>> from dragoman import Corpus, fit
    >>> corpus = Corpus.from_sentences(["he said that he saw himself", "she said that she saw herself"] * 20)
    >>> model = RecurrentModel.create(corpus, cell="lstm", embedding=8, embedding_reach=1.0, hidden=16)
    >>> result = fit(model, corpus, max_epochs=20, batch_size=100, learning_rate=0.05)
    >>> model.next_words("she said that she saw")[0].word
    'herself'
    """

    kind: ClassVar[str] = "recurrent"
    config_class = RecurrentConfig
    settings: RecurrentConfig

    def _create_body(self) -> tuple[int, int]:
        settings = self.settings
        self.embedding_dropout = Dropout(settings.embedding_dropout, shared_dim=0 if settings.variational else None)
        self.rnn = RecurrentStack(
            settings.cell,
            settings.layers,
            settings.embedding,
            settings.hidden,
            residual=settings.residual,
            learned_state=settings.first_state == "learned",
            dropout=settings.dropout,
            variational=settings.variational,
            weight_dropout=settings.weight_dropout,
        )
        return settings.hidden, 0

    def _reset_body(self, generator: Generator) -> None:
        self.rnn.reset_parameters(generator)

    @property
    def carries(self) -> bool:
        return self.settings.carries

    def shape(self) -> dict[str, object]:
        return {name: getattr(self.settings, name) for name in ("cell", "layers", "embedding", "hidden")}

    def embed(self, words: NDArray[np.integer]) -> Tensor:
        """Return the vectors of words.  # (...) -> (..., L_m)"""
        return self.embedding(torch.from_numpy(words).long().to(self.device))

    def target_log_probs(self, h: Tensor, words: NDArray[np.integer], label_smoothing: float = 0.0) -> Tensor:
        """Return log P of one word for each output of the last layer.  # (rows, H), (rows,) -> (rows,)"""
        return self._target_log_probs(self._project(h), words, label_smoothing)

    def forward(
        self,
        batch: Corpus | Segment,
        *,
        carry: LayerStates | None = None,
        generator: Generator | None = None,
        label_smoothing: float = 0.0,
    ) -> LanguageModelOutput:
        """Return log P of every token, with label smoothing if requested.

        Args:
            batch: Sentences, each read from the initial state; or a segment of a stream.
            carry: States after the segment before. Gradients do not flow into it (truncated back-propagation).
            generator: Generator of dropout, in training.
            label_smoothing: Epsilon of label smoothing.
        """
        if isinstance(batch, Segment):
            states = carry or self.rnn.initial_states(batch.targets.shape[1])
            h, states = self.rnn(self.embedding_dropout(self.embed(batch.inputs), generator), states, generator)
            log_probs = self.target_log_probs(h.flatten(0, 1), batch.targets.reshape(-1), label_smoothing)
            return LanguageModelOutput(log_probs, tuple(tuple(part.detach() for part in state) for state in states))
        if not len(batch):
            return LanguageModelOutput(self.embedding.weight.new_zeros(0))
        rows = Batch.from_sentences(list(batch))
        inputs = np.insert(rows.ids.numpy()[:, :-1], 0, START, axis=1)  # (rows, longest)
        m = self.embedding_dropout(self.embed(inputs.T), generator)  # (longest, rows, L_m)
        h, _ = self.rnn(m, self.rnn.initial_states(rows.num_rows), generator)
        tokens = h.transpose(0, 1)[rows.mask.to(self.device)]  # (tokens, H) sentence after sentence
        words = batch.ids_with_boundaries(starts=0)
        return LanguageModelOutput(self.target_log_probs(tokens, words, label_smoothing))

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        """Read sentences of similar length together or, if the state is carried, the whole text as one row."""
        log_probs, offsets = np.zeros(corpus.num_tokens), corpus.token_offsets
        order = np.argsort(corpus.sizes, kind="stable")
        with self.evaluation_mode():
            if not self.carries:
                for sentences in split_by_size(order, corpus.sizes, TOKENS_PER_BATCH):
                    positions = np.concatenate(
                        [np.arange(offsets[number], offsets[number + 1]) for number in sentences]
                    )
                    log_probs[positions] = self(corpus.select(sentences)).log_probs.double().cpu().numpy()
                return log_probs
            parts, carry = [np.zeros(0)], None
            for segment in TextStream.from_corpus(corpus, rows=1, steps=STREAM_STEPS) if corpus.num_tokens else ():
                output = self(segment, carry=carry)
                carry = output.carry
                parts.append(output.log_probs.double().cpu().numpy())
            return np.concatenate(parts)

    def start(self, batch: Batch, carry: Carry = None) -> State:
        """A stream continues after the `</s>` of the sentence before, and starts as if there had been one."""
        if carry is not None:
            return State(carry)
        with self.evaluation_mode():
            first = torch.full((batch.num_rows,), END if self.carries else START)
            return self._after(first, self.rnn.initial_states(batch.num_rows))

    def log_probs(self, state: State) -> Tensor:
        h, _ = state.rows
        with self.evaluation_mode():
            return self.output.log_probs(self._project(h), self.tied_weight).cpu()

    def advance(self, state: State, words: Tensor) -> State:
        with self.evaluation_mode():
            return self._after(words, state.rows[1])

    def finish(self, state: State) -> Carry:
        return state.rows if self.carries else None

    def _after(self, words: Tensor, states: LayerStates) -> State:
        """Return the output of the last layer and the states of all layers after one more word.  # words: (rows,)"""
        return State(self.rnn.step(self.embedding(words.to(self.device)), states))
