"""From a source sentence to vectors (tutorial, "Encoder-decoder Models" and "Other Ways of Encoding Sequences").

Every encoder gives the state that the decoder may begin with, and vectors to attend to: one for each word and for
`</s>`, of trees one for each node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Generator, Tensor
from torch.nn.functional import embedding, pad

from dragoman.data.batches import Batch
from dragoman.data.trees import TreeBatch
from dragoman.nn import tree
from dragoman.nn.cells import CELLS, CellState
from dragoman.nn.convolution import POOLINGS, convolve, pooled_size
from dragoman.nn.dropout import dropout
from dragoman.nn.init import glorot
from dragoman.nn.recurrent import Layer, first_layer, unroll_sentences

Parameters = Mapping[str, Tensor]


class EncoderOutput(NamedTuple):
    """What is known of some sentences, once they are read."""

    vectors: Tensor  # H^(f) (sentences, longest, D)
    mask: Tensor  # (sentences, longest) where there is a vector
    ends: tuple[CellState, ...]  # the state of each layer when all has been read: h, or h and c  # (sentences, ...)


class Noise(NamedTuple):
    """What is left out at random in training; nothing without `chance`."""

    embedding: float
    hidden: float
    chance: Generator | None


class Encoder(Protocol):
    """One way of reading."""

    def first(self, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        """Parameters before training, but for the words' vectors."""
        ...

    def sizes(self) -> Sizes:
        """How long its vectors and states are."""
        ...

    def encode(self, parameters: Parameters, M: Tensor, source: Any, noise: Noise) -> EncoderOutput:
        """The source read.  # M: (|V_f|, L_m)"""
        ...


class Sizes(NamedTuple):
    """How long an encoder's vectors and states are."""

    vectors: int
    ends: int
    state: tuple[str, ...]  # what an end consists of
    layers: int


FORWARD, BACKWARD = "forward", "backward"


@dataclass(frozen=True)
class RecurrentEncoder:
    """h_t = RNN(m_t, h_{t-1}) from the left, from the right (`reverse`), or both and their vectors side by side."""

    directions: tuple[str, ...]
    cell: str
    layers: int
    inputs: int  # L_m
    hidden: int  # of each direction

    def first(self, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for number in range(1, self.layers + 1):
            inputs = self.inputs if number == 1 else len(self.directions) * self.hidden
            for direction in self.directions:
                layer = first_layer(self.cell, inputs, self.hidden, chance, dtype)
                found |= {f"{direction}.{name}{number}": tensor for name, tensor in layer._asdict().items()}
        return found

    def sizes(self) -> Sizes:
        width = len(self.directions) * self.hidden
        return Sizes(width, width, CELLS[self.cell].state, self.layers)

    def encode(self, parameters: Parameters, M: Tensor, source: Any, noise: Noise) -> EncoderOutput:
        batch = Batch.from_sentences(source)
        mask = batch.mask.T.to(M.device)  # (longest, sentences)
        x = dropout(embedding(batch.ids.T.to(M.device), M), noise.embedding, noise.chance)  # (longest, sentences, L_m)
        backwards = _backwards(batch.lengths, len(x)).to(M.device) if BACKWARD in self.directions else None
        ends = []
        for number in range(1, self.layers + 1):
            read = [self._read(parameters, direction, number, x, mask, backwards) for direction in self.directions]
            ends.append(tuple(torch.cat(parts, dim=1) for parts in zip(*(end for _, end in read), strict=True)))
            x = dropout(torch.cat([h for h, _ in read], dim=2), noise.hidden, noise.chance)
        return EncoderOutput(x.transpose(0, 1).contiguous(), mask.T, tuple(ends))

    def _read(
        self, parameters: Parameters, direction: str, number: int, x: Tensor, mask: Tensor, backwards: Tensor | None
    ) -> tuple[Tensor, CellState]:
        """One layer in one direction.  # x: (longest, sentences, inputs)"""
        layer = Layer(*(parameters[f"{direction}.{name}{number}"] for name in Layer._fields))
        state = tuple(x.new_zeros(x.shape[1], self.hidden) for _ in CELLS[self.cell].state)
        if direction == FORWARD or backwards is None:
            return unroll_sentences(self.cell, layer, x, state, mask)
        h, end = unroll_sentences(self.cell, layer, _reordered(x, backwards), state, mask)
        return _reordered(h, backwards), end


def _backwards(lengths: Tensor, longest: int) -> Tensor:
    """Where to look for each sentence's words from the last to the first; padding stays.  # (longest * sentences,)

    Flat places in a batch that has steps first.
    """
    steps = torch.arange(longest)[:, None]  # (longest, 1)
    from_end = lengths[None] - 1 - steps  # (longest, sentences)
    return (torch.where(from_end >= 0, from_end, steps) * len(lengths) + torch.arange(len(lengths))).flatten()


def _reordered(x: Tensor, places: Tensor) -> Tensor:
    return x.flatten(0, 1).index_select(0, places).view_as(x)


@dataclass(frozen=True)
class ConvolutionalEncoder:
    """n filters of width w over the words: a vector for each word, by the words around it, and what pooling leaves.

    The sentence is set between zeros, so that there is a window around each of its words.
    """

    filters: int
    width: int
    pooling: str
    k: int
    inputs: int  # L_m

    def first(self, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        return {
            "W": glorot(self.filters, self.width * self.inputs, chance, dtype),
            "b": torch.zeros(self.filters, dtype=dtype),
        }

    def sizes(self) -> Sizes:
        return Sizes(self.filters, pooled_size(self.pooling, self.filters, self.k), ("h",), 1)

    def encode(self, parameters: Parameters, M: Tensor, source: Any, noise: Noise) -> EncoderOutput:
        batch = Batch.from_sentences(source)
        m = dropout(embedding(batch.ids.to(M.device), M), noise.embedding, noise.chance)  # (sentences, longest, L_m)
        own = m * batch.mask[..., None].to(m)
        before = (self.width - 1) // 2
        framed = pad(own, (0, 0, before, self.width - 1 - before))  # (sentences, longest + w - 1, L_m)
        lengths = (batch.lengths + self.width - 1).to(M.device)
        convolved = convolve(framed, lengths, parameters["W"], parameters["b"], torch.tanh)
        vectors = dropout(convolved.h, noise.hidden, noise.chance)  # (sentences, longest, n)
        return EncoderOutput(vectors, convolved.mask, ((POOLINGS[self.pooling](convolved, self.k),),))


@dataclass(frozen=True)
class TreeEncoder:
    """From the words up along a binary tree: a vector for each node, and the root's state."""

    cell: str  # of TREE_CELLS
    inputs: int  # L_m
    hidden: int

    def first(self, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        return tree.first_parameters(self.cell, self.inputs, self.hidden, chance, dtype)._asdict()

    def sizes(self) -> Sizes:
        return Sizes(self.hidden, self.hidden, tree.TREE_CELLS[self.cell].state, 1)

    def encode(self, parameters: Parameters, M: Tensor, source: Any, noise: Noise) -> EncoderOutput:
        batch = TreeBatch.from_trees(source)
        m = embedding(torch.from_numpy(batch.ids).to(M.device), M)  # (leaves, L_m)
        layer = tree.TreeLayer(*(parameters[name] for name in tree.TreeLayer._fields))
        encoded = tree.encode(self.cell, layer, dropout(m, noise.embedding, noise.chance), batch)
        return EncoderOutput(dropout(encoded.vectors, noise.hidden, noise.chance), encoded.mask, (encoded.root,))
