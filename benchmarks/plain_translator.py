"""An attentional translator in plain PyTorch, with which `translate.py` compares ours.

Embeddings, a bidirectional `nn.LSTM` over packed sentences, an `nn.LSTMCell` that reads the last word and the last
context at each step, MLP attention (keys are computed once per sentence), a tanh layer over [h; c] and a softmax over
all words (computed for all steps at once in training). It has what a careful user would write with `torch.nn` and
`torch.optim`, and no optimisations beyond that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from dragoman import Corpus, ParallelCorpus
from dragoman.data.vocabulary import END, START

IGNORE = -100  # targets that cross_entropy ignores


@dataclass(frozen=True)
class Sizes:
    """The sizes of a translator: 11.8 M parameters with the words that occur at least twice in Multi30k."""

    source_words: int
    target_words: int
    embedding: int = 256
    encoder: int = 256  # of each direction
    decoder: int = 512
    attention: int = 512
    output: int = 512
    dropout: float = 0.2


class Memory(NamedTuple):
    """Encoder outputs of a batch."""

    vectors: Tensor  # (B, S, 2 * encoder)
    keys: Tensor  # (B, S, attention)
    mask: Tensor  # (B, S) True at words


class State(NamedTuple):
    """The state of the decoder."""

    h: Tensor  # (B, decoder)
    c: Tensor  # (B, decoder)
    context: Tensor  # (B, 2 * encoder)


class PlainTranslator(nn.Module):
    """The model."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        vectors = 2 * sizes.encoder
        self.source_embedding = nn.Embedding(sizes.source_words, sizes.embedding)
        self.target_embedding = nn.Embedding(sizes.target_words, sizes.embedding)
        self.encoder = nn.LSTM(sizes.embedding, sizes.encoder, batch_first=True, bidirectional=True)
        self.bridge_h = nn.Linear(vectors, sizes.decoder)
        self.bridge_c = nn.Linear(vectors, sizes.decoder)
        self.decoder = nn.LSTMCell(sizes.embedding + vectors, sizes.decoder)
        self.key = nn.Linear(vectors, sizes.attention, bias=False)
        self.query = nn.Linear(sizes.decoder, sizes.attention, bias=False)
        self.energy = nn.Linear(sizes.attention, 1, bias=False)
        self.combine = nn.Linear(sizes.decoder + vectors, sizes.output)
        self.output = nn.Linear(sizes.output, sizes.target_words)
        self.dropout = nn.Dropout(sizes.dropout)

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Memory, State]:
        """Read the source sentences.  # (B, S), (B,)"""
        embedded = self.dropout(self.source_embedding(source))  # (B, S, embedding)
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        outputs, (h, c) = self.encoder(packed)
        vectors, _ = pad_packed_sequence(outputs, batch_first=True)  # (B, S, 2 * encoder)
        mask = torch.arange(vectors.shape[1]) < lengths[:, None]  # (B, S)
        h = torch.tanh(self.bridge_h(torch.cat([h[0], h[1]], dim=1)))  # (B, decoder)
        c = torch.tanh(self.bridge_c(torch.cat([c[0], c[1]], dim=1)))  # (B, decoder)
        context = vectors.new_zeros(len(vectors), vectors.shape[2])  # (B, 2 * encoder)
        return Memory(vectors, self.key(vectors), mask), State(h, c, context)

    def step(self, embedded: Tensor, state: State, memory: Memory) -> State:
        """Return the state after one more word.  # embedded: (B, embedding)"""
        h, c = self.decoder(torch.cat([embedded, state.context], dim=1), (state.h, state.c))  # (B, decoder) each
        energies = torch.tanh(memory.keys + self.query(h)[:, None])  # (B, S, attention)
        scores = self.energy(energies).squeeze(2).masked_fill(~memory.mask, -torch.inf)  # (B, S)
        alpha = scores.softmax(dim=1)  # (B, S)
        context = torch.bmm(alpha[:, None], memory.vectors).squeeze(1)  # (B, 2 * encoder)
        return State(h, c, context)

    def scores(self, h: Tensor, context: Tensor) -> Tensor:
        """Return the scores of all words before the softmax.  # (..., target words)"""
        return self.output(self.dropout(torch.tanh(self.combine(torch.cat([h, context], dim=-1)))))

    def forward(self, source: Tensor, lengths: Tensor, inputs: Tensor) -> Tensor:
        """Return the scores of all words after each input word, of which the first is `<s>`.  # (B, T, target words)"""
        memory, state = self.encode(source, lengths)
        h, contexts = [], []
        for embedded in self.dropout(self.target_embedding(inputs)).unbind(dim=1):  # (B, embedding)
            state = self.step(embedded, state, memory)
            h.append(state.h)
            contexts.append(state.context)
        return self.scores(torch.stack(h, dim=1), torch.stack(contexts, dim=1))

    def log_probs(self, words: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """Return log P of the words after these, and the new state.  # words: (B,)"""
        state = self.step(self.target_embedding(words), state, memory)
        return self.scores(state.h, state.context).log_softmax(dim=1), state  # (B, target words)


# -- sentences as tensors ------------------------------------------------------------------------------------------


def to_tensors(sentences: Iterable[np.ndarray], *, first: Sequence[int] = (), last: Sequence[int] = ()) -> list[Tensor]:
    """Return sentences as tensors, with tokens added at the start or the end."""
    return [torch.from_numpy(np.concatenate([first, ids, last]).astype(np.int64)) for ids in sentences]


def pad_source(source: Corpus) -> tuple[Tensor, Tensor]:
    """Return source sentences with `</s>`, padded, and their lengths.  # (B, S), (B,)"""
    rows = to_tensors(source, last=[END])
    return pad_sequence(rows, batch_first=True, padding_value=END), torch.tensor([len(row) for row in rows])


def batches_by_length(source: Corpus, batch_size: int) -> Iterator[np.ndarray]:
    """Yield the indices of all sentences in batches of similar length."""
    order = np.argsort(source.sizes, kind="stable")
    return (order[start : start + batch_size] for start in range(0, len(order), batch_size))


# -- training ------------------------------------------------------------------------------------------------------


def train_step(model: PlainTranslator, optimizer: torch.optim.Optimizer, batch: ParallelCorpus, clip: float) -> float:
    """Train on a batch and return the mean loss."""
    source, lengths = pad_source(batch.source)
    inputs = pad_sequence(to_tensors(batch.target, first=[START]), batch_first=True, padding_value=END)  # (B, T)
    targets = pad_sequence(to_tensors(batch.target, last=[END]), batch_first=True, padding_value=IGNORE)  # (B, T)
    optimizer.zero_grad()
    scores = model(source, lengths, inputs)  # (B, T, target words)
    loss = cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=IGNORE)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return loss.item()


# -- search --------------------------------------------------------------------------------------------------------


def max_length(source: Tensor) -> int:
    return 2 * source.shape[1] + 10


def truncate_at_end(ids: list[int]) -> list[int]:
    return ids[: ids.index(END)] if END in ids else ids


@torch.inference_mode()
def greedy_search(model: PlainTranslator, source: Corpus) -> list[list[int]]:
    """Choose the best next word until all sentences of the batch have ended."""
    ids, lengths = pad_source(source)
    memory, state = model.encode(ids, lengths)
    words = torch.full((len(ids),), START)
    finished = torch.zeros(len(ids), dtype=torch.bool)
    steps = []
    for _ in range(max_length(ids)):
        log_probs, state = model.log_probs(words, state, memory)
        words = log_probs.argmax(dim=1)  # (B,)
        steps.append(words)
        finished |= words == END
        if finished.all():
            break
    return [truncate_at_end(row) for row in torch.stack(steps, dim=1).tolist()]


@torch.inference_mode()
def beam_search(model: PlainTranslator, source: Corpus, beam_size: int) -> list[list[int]]:
    """Return the best hypothesis of each sentence.

    The hypotheses are rows of one batch; finished ones are continued with `</s>` at no cost. A sentence is done when
    its best hypothesis is finished: because log P only decreases, no other can become better.
    """
    ids, lengths = pad_source(source)
    memory, state = model.encode(ids, lengths)
    memory = Memory(*(part.repeat_interleave(beam_size, dim=0) for part in memory))  # (B * beam, ...)
    state = State(*(part.repeat_interleave(beam_size, dim=0) for part in state))
    B, V = len(ids), model.output.out_features
    first_row = torch.arange(B)[:, None] * beam_size  # (B, 1)
    words = torch.full((B, beam_size), START)
    totals = torch.full((B, beam_size), -torch.inf)  # log P of the hypotheses; at first, one per sentence
    totals[:, 0] = 0.0
    finished = torch.zeros((B, beam_size), dtype=torch.bool)
    only_end = torch.full((V,), -torch.inf)
    only_end[END] = 0.0
    hypotheses = torch.zeros((B, beam_size, 0), dtype=torch.int64)
    for _ in range(max_length(ids)):
        log_probs, state = model.log_probs(words.flatten(), state, memory)
        log_probs[finished.flatten()] = only_end
        extended = (totals[:, :, None] + log_probs.view(B, beam_size, V)).flatten(1)  # (B, beam * V)
        totals, best = extended.topk(beam_size, dim=1)  # (B, beam)
        parents, words = best // V, best % V  # (B, beam) each
        rows = (first_row + parents).flatten()  # (B * beam,)
        state = State(*(part.index_select(0, rows) for part in state))
        finished = finished.gather(1, parents) | (words == END)
        previous = hypotheses.flatten(0, 1)[rows].view(B, beam_size, -1)
        hypotheses = torch.cat([previous, words[:, :, None]], dim=2)  # (B, beam, steps)
        if finished[:, 0].all():
            break
    return [truncate_at_end(row) for row in hypotheses[:, 0].tolist()]
