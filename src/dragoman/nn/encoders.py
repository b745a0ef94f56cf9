"""Encoders of source sentences (tutorial, "Encoder-decoder Models" and "Other Ways of Encoding Sequences").

Every encoder returns a state from which the decoder can start, and vectors for attention: one for each word and for
`</s>`, or for trees one for each node.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import pad

from dragoman.data.batches import Batch
from dragoman.data.trees import TreeBatch
from dragoman.nn.cells import CellState
from dragoman.nn.containers import TypedModuleDict, TypedModuleList
from dragoman.nn.convolution import POOLINGS, convolve, pooled_size
from dragoman.nn.dropout import Dropout
from dragoman.nn.init import empty_linear, reset_linear
from dragoman.nn.recurrent import PackedOrder, RecurrentLayer
from dragoman.nn.tree import TreeLayer

LEFT_TO_RIGHT, RIGHT_TO_LEFT = "left_to_right", "right_to_left"


class EncoderOutput(NamedTuple):
    """Encoded sentences."""

    vectors: Tensor  # H^(f) (sentences, longest, D)
    mask: Tensor  # (sentences, longest) True where there is a vector
    final_states: tuple[CellState, ...]  # of each layer: h, or h and c  # (sentences, state_size) each


class Encoder(Protocol):
    """The interface of encoders, which are torch modules."""

    output_size: int  # D, length of the vectors
    state_size: int  # length of the vectors of final states
    num_layers: int  # number of final states

    def reset_parameters(self, generator: Generator) -> None:
        """Draw initial parameters."""
        ...

    def __call__(self, source: Any, embedding: nn.Embedding, generator: Generator | None = None) -> EncoderOutput:
        """Encode source sentences."""
        ...


class RecurrentEncoder(nn.Module):
    """h_t = RNN(m_t, h_{t-1}) in one or two directions, whose vectors are concatenated.

    Args:
        directions: `LEFT_TO_RIGHT`, `RIGHT_TO_LEFT` or both, in the order of concatenation.
        cell: One of `dragoman.nn.cells.CELLS`.
        num_layers: Number of layers.
        input_size: Length of the word vectors, L_m.
        hidden_size: Length of the hidden state of each direction.
    """

    def __init__(
        self,
        directions: tuple[str, ...],
        cell: str,
        num_layers: int,
        input_size: int,
        hidden_size: int,
        *,
        embedding_dropout: float = 0.0,
        dropout: float = 0.0,
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

    def forward(self, source: Any, embedding: nn.Embedding, generator: Generator | None = None) -> EncoderOutput:
        batch = Batch.from_sentences(source)
        device = embedding.weight.device
        order = PackedOrder.of(batch.lengths, device)
        x = embedding(batch.ids.T.to(device))  # (longest, sentences, L_m)
        x = self.embedding_dropout(x, generator)
        final_states: list[CellState] = []
        for directions in self.layers:
            outputs = [order.run(layer, x, reverse=name == RIGHT_TO_LEFT) for name, layer in directions.items()]
            parts = zip(*(state for _, state in outputs), strict=True)
            final_states.append(tuple(torch.cat(part, dim=1) for part in parts))
            x = self.dropout(torch.cat([h for h, _ in outputs], dim=2), generator)  # (longest, sentences, D)
        return EncoderOutput(x.transpose(0, 1).contiguous(), batch.mask.to(device), tuple(final_states))


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
        *,
        embedding_dropout: float = 0.0,
        dropout: float = 0.0,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.width, self.pooling, self.k = width, pooling, k
        self.output_size, self.state_size = filters, pooled_size(pooling, filters, k)
        self.filters = empty_linear(width * input_size, filters, dtype=dtype)
        self.embedding_dropout, self.dropout = Dropout(embedding_dropout), Dropout(dropout)

    def reset_parameters(self, generator: Generator) -> None:
        reset_linear(self.filters, generator)

    def forward(self, source: Any, embedding: nn.Embedding, generator: Generator | None = None) -> EncoderOutput:
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
        *,
        embedding_dropout: float = 0.0,
        dropout: float = 0.0,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.output_size = self.state_size = hidden_size
        self.layer = TreeLayer(cell, input_size, hidden_size, dtype=dtype)
        self.embedding_dropout, self.dropout = Dropout(embedding_dropout), Dropout(dropout)

    def reset_parameters(self, generator: Generator) -> None:
        self.layer.reset_parameters(generator)

    def forward(self, source: Any, embedding: nn.Embedding, generator: Generator | None = None) -> EncoderOutput:
        batch = TreeBatch.from_trees(source)
        m = embedding(torch.from_numpy(batch.ids).to(embedding.weight.device))  # (leaves, L_m)
        trees = self.layer(self.embedding_dropout(m, generator), batch)
        return EncoderOutput(self.dropout(trees.vectors, generator), trees.mask, (trees.root,))
