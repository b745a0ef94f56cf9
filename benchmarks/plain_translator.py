"""An attentional translator as one would write it oneself in PyTorch: what `translate.py` measures ours against.

Embeddings, a bidirectional `nn.LSTM` over packed sentences, an `nn.LSTMCell` step by step that reads the last word and
the last context, attention by a multi-layer perceptron (keys are computed once a sentence), a tanh layer over [h; c]
and a softmax over all words (computed for all steps at once in training). Nothing is left out that a careful user does,
and nothing is done that needs more than `torch.nn` and `torch.optim`.
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

NO_WORD = -100  # what cross_entropy leaves out


@dataclass(frozen=True)
class Shape:
    """The sizes of a translator. With the words that Multi30k has at least twice, these are 11.8 M parameters."""

    source_words: int
    target_words: int
    embedding: int = 256
    encoder: int = 256  # each way
    decoder: int = 512
    attention: int = 512
    output: int = 512
    dropout: float = 0.2


class Memory(NamedTuple):
    """A batch of source sentences as the decoder sees it."""

    vectors: Tensor  # (B, S, 2 * encoder)
    keys: Tensor  # (B, S, attention)
    mask: Tensor  # (B, S) where words are


class State(NamedTuple):
    """What the decoder knows after some words."""

    h: Tensor  # (B, decoder)
    c: Tensor  # (B, decoder)
    context: Tensor  # (B, 2 * encoder)


class PlainTranslator(nn.Module):
    """The model."""

    def __init__(self, shape: Shape):
        super().__init__()
        vectors = 2 * shape.encoder
        self.source_embedding = nn.Embedding(shape.source_words, shape.embedding)
        self.target_embedding = nn.Embedding(shape.target_words, shape.embedding)
        self.encoder = nn.LSTM(shape.embedding, shape.encoder, batch_first=True, bidirectional=True)
        self.bridge_h = nn.Linear(vectors, shape.decoder)
        self.bridge_c = nn.Linear(vectors, shape.decoder)
        self.decoder = nn.LSTMCell(shape.embedding + vectors, shape.decoder)
        self.key = nn.Linear(vectors, shape.attention, bias=False)
        self.query = nn.Linear(shape.decoder, shape.attention, bias=False)
        self.energy = nn.Linear(shape.attention, 1, bias=False)
        self.combine = nn.Linear(shape.decoder + vectors, shape.output)
        self.output = nn.Linear(shape.output, shape.target_words)
        self.dropout = nn.Dropout(shape.dropout)

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Memory, State]:
        """Read the source sentences.  # (B, S), (B,)"""
        embedded = self.dropout(self.source_embedding(source))  # (B, S, embedding)
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        out, (h, c) = self.encoder(packed)
        vectors, _ = pad_packed_sequence(out, batch_first=True)  # (B, S, 2 * encoder)
        mask = torch.arange(vectors.shape[1]) < lengths[:, None]  # (B, S)
        h = torch.tanh(self.bridge_h(torch.cat([h[0], h[1]], dim=1)))  # (B, decoder)
        c = torch.tanh(self.bridge_c(torch.cat([c[0], c[1]], dim=1)))  # (B, decoder)
        nothing_read = vectors.new_zeros(len(vectors), vectors.shape[2])  # (B, 2 * encoder)
        return Memory(vectors, self.key(vectors), mask), State(h, c, nothing_read)

    def step(self, embedded: Tensor, state: State, memory: Memory) -> State:
        """One word on.  # embedded: (B, embedding)"""
        h, c = self.decoder(torch.cat([embedded, state.context], dim=1), (state.h, state.c))  # (B, decoder) each
        energies = torch.tanh(memory.keys + self.query(h)[:, None])  # (B, S, attention)
        scores = self.energy(energies).squeeze(2).masked_fill(~memory.mask, -torch.inf)  # (B, S)
        alpha = scores.softmax(dim=1)  # (B, S)
        context = torch.bmm(alpha[:, None], memory.vectors).squeeze(1)  # (B, 2 * encoder)
        return State(h, c, context)

    def scores(self, h: Tensor, context: Tensor) -> Tensor:
        """Those of all words, before the softmax.  # (..., target words)"""
        return self.output(self.dropout(torch.tanh(self.combine(torch.cat([h, context], dim=-1)))))

    def forward(self, source: Tensor, lengths: Tensor, inputs: Tensor) -> Tensor:
        """The scores of all words after each word of the target, its first being `<s>`.  # (B, T, target words)"""
        memory, state = self.encode(source, lengths)
        h, contexts = [], []
        for embedded in self.dropout(self.target_embedding(inputs)).unbind(dim=1):  # (B, embedding)
            state = self.step(embedded, state, memory)
            h.append(state.h)
            contexts.append(state.context)
        return self.scores(torch.stack(h, dim=1), torch.stack(contexts, dim=1))

    def log_probs(self, words: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """log P of the next word after this one, and the state in which it is asked for.  # words: (B,)"""
        state = self.step(self.target_embedding(words), state, memory)
        return self.scores(state.h, state.context).log_softmax(dim=1), state  # (B, target words)


# -- sentences as tensors ------------------------------------------------------------------------------------------


def rows_of(sentences: Iterable[np.ndarray], *, first: Sequence[int] = (), last: Sequence[int] = ()) -> list[Tensor]:
    """Sentences, each between these words."""
    return [torch.from_numpy(np.concatenate([first, words, last]).astype(np.int64)) for words in sentences]


def read(source: Corpus) -> tuple[Tensor, Tensor]:
    """Source sentences, closed by `</s>`, and their lengths.  # (B, S), (B,)"""
    rows = rows_of(source, last=[END])
    return pad_sequence(rows, batch_first=True, padding_value=END), torch.tensor([len(row) for row in rows])


def by_length(source: Corpus, rows: int) -> Iterator[np.ndarray]:
    """The numbers of all sentences in batches of like length."""
    order = np.argsort(source.sizes, kind="stable")
    return (order[at : at + rows] for at in range(0, len(order), rows))


# -- training ------------------------------------------------------------------------------------------------------


def train_step(model: PlainTranslator, optimizer: torch.optim.Optimizer, batch: ParallelCorpus, clip: float) -> float:
    """One step of training; its mean loss."""
    source, lengths = read(batch.source)
    inputs = pad_sequence(rows_of(batch.target, first=[START]), batch_first=True, padding_value=END)  # (B, T)
    wanted = pad_sequence(rows_of(batch.target, last=[END]), batch_first=True, padding_value=NO_WORD)  # (B, T)
    optimizer.zero_grad()
    scores = model(source, lengths, inputs)  # (B, T, target words)
    loss = cross_entropy(scores.flatten(0, 1), wanted.flatten(), ignore_index=NO_WORD)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return loss.item()


# -- decoding ------------------------------------------------------------------------------------------------------


def longest_output(source: Tensor) -> int:
    return 2 * source.shape[1] + 10


def up_to_end(words: Iterable[int]) -> list[int]:
    found = list(words)
    return found[: found.index(END)] if END in found else found


@torch.inference_mode()
def greedy(model: PlainTranslator, source: Corpus) -> list[list[int]]:
    """The best next word, again and again, until every sentence of the batch has its `</s>`."""
    ids, lengths = read(source)
    memory, state = model.encode(ids, lengths)
    words = torch.full((len(ids),), START)
    finished = torch.zeros(len(ids), dtype=torch.bool)
    found = []
    for _ in range(longest_output(ids)):
        log_probs, state = model.log_probs(words, state, memory)
        words = log_probs.argmax(dim=1)  # (B,)
        found.append(words)
        finished |= words == END
        if finished.all():
            break
    return [up_to_end(row) for row in torch.stack(found, dim=1).tolist()]


@torch.inference_mode()
def beam(model: PlainTranslator, source: Corpus, size: int) -> list[list[int]]:
    """The best of `size` hypotheses a sentence, which are rows of one batch; finished ones go on with `</s>` for free.

    A sentence is done when its best hypothesis is finished: no other can overtake it, for log P only falls.
    """
    ids, lengths = read(source)
    memory, state = model.encode(ids, lengths)
    memory = Memory(*(part.repeat_interleave(size, dim=0) for part in memory))  # (B * size, ...)
    state = State(*(part.repeat_interleave(size, dim=0) for part in state))
    B, V = len(ids), model.output.out_features
    first_row = torch.arange(B)[:, None] * size  # (B, 1)
    words = torch.full((B, size), START)
    totals = torch.full((B, size), -torch.inf)  # log P of the hypotheses; at first there is one a sentence
    totals[:, 0] = 0.0
    finished = torch.zeros((B, size), dtype=torch.bool)
    closed = torch.full((V,), -torch.inf)
    closed[END] = 0.0
    found = torch.zeros((B, size, 0), dtype=torch.int64)
    for _ in range(longest_output(ids)):
        log_probs, state = model.log_probs(words.flatten(), state, memory)
        log_probs[finished.flatten()] = closed
        totals, best = (totals[:, :, None] + log_probs.view(B, size, V)).flatten(1).topk(size, dim=1)  # (B, size)
        parents, words = best // V, best % V  # (B, size) each
        rows = (first_row + parents).flatten()  # (B * size,)
        state = State(*(part.index_select(0, rows) for part in state))
        finished = finished.gather(1, parents) | (words == END)
        found = torch.cat([found.flatten(0, 1)[rows].view(B, size, -1), words[:, :, None]], dim=2)  # (B, size, t)
        if finished[:, 0].all():
            break
    return [up_to_end(row) for row in found[:, 0].tolist()]
