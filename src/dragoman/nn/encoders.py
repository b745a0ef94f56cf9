"""Encoders of source sentences (tutorial, "Encoder-decoder Models" and "Other Ways of Encoding Sequences").

Every encoder returns a state from which the decoder can start, and vectors for attention: one for each word and for
`</s>`, or for trees one for each node. It has the sizes `output_size` (D, of the vectors) and `state_size` (of the
`num_layers` final states).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import pad

from dragoman.data.batches import Batch
from dragoman.data.corpus import Corpus
from dragoman.data.trees import Treebank, TreeBatch
from dragoman.nn.cells import CellState
from dragoman.nn.layers import Dropout, TypedModuleDict, TypedModuleList, empty_linear, reset_linear
from dragoman.nn.recurrent import PackedOrder, RecurrentLayer
from dragoman.nn.tree import TreeLayer

LEFT_TO_RIGHT, RIGHT_TO_LEFT = "left_to_right", "right_to_left"
Pooling = Callable[["Convolved", int], Tensor]  # the number k is used by k-max only -> (sentences, pooled size)


class EncoderOutput(NamedTuple):
    """Encoded sentences."""

    vectors: Tensor  # H^(f) (sentences, longest, D)
    mask: Tensor  # (sentences, longest) True where there is a vector
    final_states: tuple[CellState, ...]  # of each layer: h, or h and c  # (sentences, state_size) each


class RecurrentEncoder(nn.Module):
    """h_t = RNN(m_t, h_{t-1}) in one or two directions, whose vectors are concatenated."""

    def __init__(
        self,
        directions: tuple[str, ...],  # `LEFT_TO_RIGHT`, `RIGHT_TO_LEFT` or both, in the order of concatenation
        cell: str,  # one of `dragoman.nn.cells.CELLS`
        num_layers: int,
        input_size: int,  # L_m
        hidden_size: int,  # of each direction
        embedding_dropout: float = 0.0,
        dropout: float = 0.0,
        *,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.num_layers = num_layers
        self.output_size = self.state_size = len(directions) * hidden_size
        sizes = [input_size] + [self.output_size] * (num_layers - 1)
        self.layers = TypedModuleList(
            TypedModuleDict({name: RecurrentLayer(cell, size, hidden_size, dtype=dtype) for name in directions})
            for size in sizes
        )
        self.embedding_dropout, self.dropout = Dropout(embedding_dropout), Dropout(dropout)

    def reset_parameters(self, generator: Generator) -> None:
        for directions in self.layers:
            for layer in directions.values():
                layer.reset_parameters(generator)

    def forward(self, source: Corpus, embedding: nn.Embedding, generator: Generator | None = None) -> EncoderOutput:
        batch = Batch.from_sentences(source)
        device = embedding.weight.device
        order = PackedOrder.of(batch.lengths, device)
        x = self.embedding_dropout(embedding(batch.ids.T.to(device)), generator)  # (longest, sentences, L_m)
        final_states: list[CellState] = []
        for directions in self.layers:
            outputs = [order.run(layer, x, reverse=name == RIGHT_TO_LEFT) for name, layer in directions.items()]
            parts = zip(*(state for _, state in outputs), strict=True)
            final_states.append(tuple(torch.cat(part, dim=1) for part in parts))
            x = self.dropout(torch.cat([h for h, _ in outputs], dim=2), generator)  # (longest, sentences, D)
        return EncoderOutput(x.transpose(0, 1).contiguous(), batch.mask.to(device), tuple(final_states))


# -- convolution over words, and pooling over a sentence (tutorial, "Convolutional Neural Networks") -------------------


class Convolved(NamedTuple):
    """H: a vector of n features for each window of w words."""

    h: Tensor  # (sentences, columns, n)
    columns: Tensor  # (sentences,) int64: |F| - w + 1, and 1 for a sentence shorter than w

    @property
    def mask(self) -> Tensor:
        """True where a sentence has a column.  # (sentences, columns)"""
        return _length_mask(self.columns, self.h.shape[1])

    def filled(self, value: float) -> Tensor:
        """Return H with this value in the padding.  # (sentences, columns, n)"""
        return self.h.masked_fill(~self.mask[..., None], value)


def convolve(m: Tensor, lengths: Tensor, filters: nn.Linear) -> Convolved:
    """Return h_t = W concat(m_t, m_{t+1}, ..., m_{t+w-1}) + b for all windows, with one product of matrices.

    # m: (sentences, longest, L_m), lengths: (sentences,), filters: from w L_m to n

    The tutorial has no bias; Kim (2014) has one. Sentences shorter than w are padded with zero vectors.
    """
    words, size = m.shape[1:]
    w, rest = divmod(filters.in_features, size)
    assert rest == 0, f"filters over {filters.in_features} numbers, but vectors of {size}"
    m = m.masked_fill(~_length_mask(lengths, words)[..., None], 0.0)
    m = pad(m, (0, 0, 0, max(w - words, 0)))  # (sentences, w or more, L_m)
    windows = m.unfold(1, w, 1).transpose(2, 3).flatten(2)  # (sentences, columns, w L_m)
    return Convolved(filters(windows), (lengths - w + 1).clamp(min=1))


def average_pool(convolved: Convolved, k: int) -> Tensor:
    """Return the mean of each filter.  # -> (sentences, n)"""
    return convolved.filled(0.0).sum(dim=1) / convolved.columns[:, None]


def max_pool(convolved: Convolved, k: int) -> Tensor:
    """Return the maximum of each filter.  # -> (sentences, n)"""
    return convolved.filled(-torch.inf).amax(dim=1)


def k_max_pool(convolved: Convolved, k: int) -> Tensor:
    """Return the k largest values of each filter in the order of the sentence (Kalchbrenner et al. 2014).

    # -> (sentences, k n): the first value of every filter, then the second of every filter, ...

    Missing values are 0. Of equal values the earlier ones are taken.
    """
    h = pad(convolved.h, (0, 0, 0, max(k - convolved.h.shape[1], 0)))  # (sentences, k or more, n)
    padded = Convolved(h, convolved.columns).filled(-torch.inf)
    columns = padded.sort(dim=1, descending=True, stable=True).indices[:, :k].sort(dim=1).values  # (sentences, k, n)
    in_sentence = columns < convolved.columns[:, None, None]
    return h.gather(1, columns).masked_fill(~in_sentence, 0.0).flatten(1)


POOLINGS: dict[str, Pooling] = {"average": average_pool, "max": max_pool, "k-max": k_max_pool}


def _length_mask(lengths: Tensor, longest: int) -> Tensor:
    """True at the positions of each sentence.  # (sentences, longest)"""
    return torch.arange(longest, device=lengths.device) < lengths[:, None]


class ConvolutionalEncoder(nn.Module):
    """n filters of width w: a vector for each word, from the words around it, and the pooled vector of the sentence.

    Sentences are padded with zeros on both sides, so that there is a window around each word.
    """

    num_layers = 1

    def __init__(
        self,
        filters: int,
        width: int,
        pooling: str,
        k: int,
        input_size: int,
        embedding_dropout: float = 0.0,
        dropout: float = 0.0,
        *,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.width, self.pooling, self.k = width, pooling, k
        self.output_size, self.state_size = filters, k * filters if pooling == "k-max" else filters
        self.filters = empty_linear(width * input_size, filters, dtype=dtype)
        self.embedding_dropout, self.dropout = Dropout(embedding_dropout), Dropout(dropout)

    def reset_parameters(self, generator: Generator) -> None:
        reset_linear(self.filters, generator)

    def forward(self, source: Corpus, embedding: nn.Embedding, generator: Generator | None = None) -> EncoderOutput:
        batch = Batch.from_sentences(source)
        device = embedding.weight.device
        m = self.embedding_dropout(embedding(batch.ids.to(device)), generator)  # (sentences, longest, L_m)
        m = m * batch.mask[..., None].to(m)
        before = (self.width - 1) // 2
        m = pad(m, (0, 0, before, self.width - 1 - before))  # (sentences, longest + w - 1, L_m)
        convolved = convolve(m, (batch.lengths + self.width - 1).to(device), self.filters)
        convolved = convolved._replace(h=convolved.h.tanh())  # (sentences, longest, n)
        pooled = POOLINGS[self.pooling](convolved, self.k)
        return EncoderOutput(self.dropout(convolved.h, generator), convolved.mask, ((pooled,),))


class TreeEncoder(nn.Module):
    """A recursive network over binary trees: a vector for each node, and the state of the root."""

    num_layers = 1

    def __init__(
        self,
        cell: str,
        input_size: int,
        hidden_size: int,
        embedding_dropout: float = 0.0,
        dropout: float = 0.0,
        *,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.output_size = self.state_size = hidden_size
        self.layer = TreeLayer(cell, input_size, hidden_size, dtype=dtype)
        self.embedding_dropout, self.dropout = Dropout(embedding_dropout), Dropout(dropout)

    def reset_parameters(self, generator: Generator) -> None:
        self.layer.reset_parameters(generator)

    def forward(self, source: Corpus, embedding: nn.Embedding, generator: Generator | None = None) -> EncoderOutput:
        assert isinstance(source, Treebank), "a tree encoder reads trees"
        batch = TreeBatch.from_trees(source)
        m = embedding(torch.from_numpy(batch.ids).to(embedding.weight.device))  # (leaves, L_m)
        trees = self.layer(self.embedding_dropout(m, generator), batch)
        return EncoderOutput(self.dropout(trees.vectors, generator), trees.mask, (trees.root,))


Encoder = RecurrentEncoder | ConvolutionalEncoder | TreeEncoder
