"""Encoders of source sentences (tutorial, "Encoder-decoder Models" and "Other Ways of Encoding Sequences").

Every encoder returns a state from which the decoder can start, and vectors for attention: one for each word and for
`</s>`, or for trees one for each node. It has the sizes `output_size` (D, of the vectors) and `state_size` (of the
`num_layers` final states).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn
from torch.nn.functional import pad

from dragoman.data.batches import Batch
from dragoman.data.corpus import Corpus
from dragoman.data.trees import Treebank, TreeBatch
from dragoman.nn.activations import tanh
from dragoman.nn.cells import CellState
from dragoman.nn.layers import (
    Dropout,
    TypedModuleDict,
    TypedModuleList,
    empty_linear,
    reset_gate_biases,
    reset_linear,
    uniform_,
)
from dragoman.nn.products import linear
from dragoman.nn.recurrent import PackedOrder, RecurrentLayer

LEFT_TO_RIGHT, RIGHT_TO_LEFT = "left_to_right", "right_to_left"
TreeStep = Callable[[Tensor, tuple[CellState, ...]], CellState]  # sums (rows, gates * H), states of the children
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
    ):
        super().__init__()
        self.num_layers = num_layers
        self.output_size = self.state_size = len(directions) * hidden_size
        sizes = [input_size] + [self.output_size] * (num_layers - 1)
        self.layers = TypedModuleList(
            TypedModuleDict({name: RecurrentLayer(cell, size, hidden_size) for name in directions}) for size in sizes
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
    ):
        super().__init__()
        self.width, self.pooling, self.k = width, pooling, k
        self.output_size, self.state_size = filters, k * filters if pooling == "k-max" else filters
        self.filters = empty_linear(width * input_size, filters)
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
        convolved = convolved._replace(h=tanh(convolved.h))  # (sentences, longest, n)
        pooled = POOLINGS[self.pooling](convolved, self.k)
        return EncoderOutput(self.dropout(convolved.h, generator), convolved.mask, ((pooled,),))


# -- recursive networks over binary trees (tutorial, section "Tree-structured Networks") -------------------------------
#
# A step goes from the children of a node to the node. Leaves have a word and no children, inner nodes have two children
# and no word, so each has a part of the sum W_xp x + W_lp h_l + W_rp h_r + b_p. The matrices of a cell's transforms
# (its gates) are stacked in the order of `TreeCell.gates`.


class TreeCell(NamedTuple):
    """One way to compute the state of a phrase from its parts."""

    step: TreeStep
    gates: tuple[str, ...]  # affine transforms of an inner node
    leaf_gates: int  # the first of them that a leaf has as well
    state: tuple[str, ...]  # the vectors of the state; the first, h, is the output
    initial_biases: Mapping[str, float] = {}  # of gates, where they are not 0


class EncodedTrees(NamedTuple):
    """States of the nodes of some trees."""

    vectors: Tensor  # (sentences, most nodes, H) h of each node; 0 in padding
    mask: Tensor  # (sentences, most nodes) bool: True at nodes
    root: CellState  # of each sentence, (sentences, H) each


def recursive(p: Tensor, children: tuple[CellState, ...]) -> CellState:
    """h_p = tanh(W_xp x + W_lp h_l + W_rp h_r + b_p), the recursive neural network (Socher et al. 2011)."""
    return (tanh(p),)


def tree_lstm(p: Tensor, children: tuple[CellState, ...]) -> CellState:
    """c_p = i * u + f_l * c_l + f_r * c_r, h_p = o * tanh(c_p): the binary tree-LSTM (Tai et al. 2015, eqs. 9 to 14).

    There is a forget gate for each child. Each depends on both children.
    """
    i, u, o, *f = p.chunk(3 + len(children), dim=1)  # (rows, H) each
    c = i.sigmoid() * tanh(u)
    for f_k, (_, c_k) in zip(f, children, strict=True):
        c = c + f_k.sigmoid() * c_k
    return o.sigmoid() * tanh(c), c


TREE_CELLS: dict[str, TreeCell] = {
    "recursive": TreeCell(recursive, ("h",), 1, ("h",)),
    "tree-lstm": TreeCell(tree_lstm, ("i", "u", "o", "f_l", "f_r"), 3, ("h", "c"), {"f_l": 1.0, "f_r": 1.0}),
}


class TreeLayer(nn.Module):
    """A recursive network over binary trees, with one of `TREE_CELLS` and vectors of length H."""

    def __init__(self, cell: str, input_size: int, hidden_size: int):
        super().__init__()
        self.cell, self.hidden_size = TREE_CELLS[cell], hidden_size
        gates = len(self.cell.gates) * hidden_size
        self.word = empty_linear(input_size, self.cell.leaf_gates * hidden_size, bias=False)  # W_xp
        self.left = empty_linear(hidden_size, gates, bias=False)  # W_lp
        self.right = empty_linear(hidden_size, gates, bias=False)  # W_rp
        self.bias = nn.Parameter(torch.zeros(gates))  # b_p; leaves use the first part

    def reset_parameters(self, generator: Generator) -> None:
        """Draw matrices between -1/sqrt(H) and 1/sqrt(H), as for recurrent networks."""
        for layer in (self.word, self.left, self.right):
            uniform_(layer.weight, 1 / math.sqrt(self.hidden_size), generator)
        reset_gate_biases(self.bias, self.cell.gates, self.cell.initial_biases)

    def forward(self, x: Tensor, trees: TreeBatch) -> EncodedTrees:
        """Compute the states of all nodes from the leaves up, one product of matrices per height.

        # x: (leaves, inputs), of the words in `trees.ids`

        A height takes the states of its children from the heights below and passes its own on (see
        `dragoman.data.trees.TreeLevel`), so that each state is copied a few times rather than once per height.
        """
        W = torch.cat([self.left.weight, self.right.weight], dim=1)  # (gates * H, 2 H)
        waiting: list[list[CellState]] = [[] for _ in range(len(trees.levels) + 1)]  # states by the height they go to
        h = []
        for height, level in enumerate(trees.levels):
            if height == 0:
                leaves = x.index_select(0, _to_device(level.inputs, x))
                state = self.cell.step(self.word(leaves) + self.bias[: self.word.out_features], ())
            else:
                children = _take(waiting[height], level.inputs)  # (2 nodes, H) each: left, right, left, right, ...
                pairs = [part.unflatten(0, (-1, 2)) for part in children]  # (nodes, 2, H) each
                left_and_right = tuple(zip(*(part.unbind(1) for part in pairs), strict=True))  # (nodes, H) each
                state = self.cell.step(linear(pairs[0].flatten(1), W, self.bias), left_and_right)
            waiting[height] = []
            h.append(state[0])
            heights, sizes = zip(*level.outputs, strict=True)  # nodes go, run by run, to the heights of their parents
            runs = zip(*(part.split(sizes) for part in state), strict=True)
            for parent, run in zip(heights, runs, strict=True):
                waiting[parent].append(run)
        nodes = torch.cat(h)  # (nodes, H) height by height
        grid = nodes.new_zeros(trees.mask.size, self.hidden_size)
        vectors = grid.index_copy(0, _to_device(trees.grid_positions, x), nodes).unflatten(0, trees.mask.shape)
        return EncodedTrees(vectors, _to_device(trees.mask, x), _take(waiting[-1], trees.roots))


def _take(states: list[CellState], positions: NDArray[np.int64]) -> CellState:
    """Select states among those passed on, from the lowest height to the highest.  # (positions, H) each"""
    parts = (torch.cat(parts) for parts in zip(*states, strict=True))
    return tuple(part.index_select(0, _to_device(positions, part)) for part in parts)


def _to_device(array: NDArray[np.int64] | NDArray[np.bool_], x: Tensor) -> Tensor:
    """Return an array as a tensor on the device of x."""
    return torch.from_numpy(array).to(x.device)


class TreeEncoder(nn.Module):
    """A recursive network over binary trees: a vector for each node, and the state of the root."""

    num_layers = 1

    def __init__(
        self, cell: str, input_size: int, hidden_size: int, embedding_dropout: float = 0.0, dropout: float = 0.0
    ):
        super().__init__()
        self.output_size = self.state_size = hidden_size
        self.layer = TreeLayer(cell, input_size, hidden_size)
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
