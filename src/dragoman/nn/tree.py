"""Recursive networks over binary trees (tutorial, section "Tree-structured Networks").

A step goes from the children of a node to the node. Leaves have a word and no children, inner nodes have two children
and no word, so each has a part of the sum W_xp x + W_lp h_l + W_rp h_r + b_p. The matrices of a cell's transforms
(its gates) are stacked in the order of `TreeCell.gates`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from dragoman.data.trees import TreeBatch
from dragoman.nn.cells import CellState
from dragoman.nn.layers import empty_linear, reset_gate_biases, uniform_

TreeStep = Callable[[Tensor, tuple[CellState, ...]], CellState]  # sums (rows, gates * H), states of the children


class TreeCell(NamedTuple):
    """One way to compute the state of a phrase from its parts."""

    step: TreeStep
    gates: tuple[str, ...]  # affine transforms of an inner node
    leaf_gates: int  # the first of them that a leaf has as well
    state: tuple[str, ...]  # the vectors of the state; the first, h, is the output
    initial_biases: Mapping[str, float] = MappingProxyType({})  # of gates, where they are not 0


class EncodedTrees(NamedTuple):
    """States of the nodes of some trees."""

    vectors: Tensor  # (sentences, most nodes, H) h of each node; 0 in padding
    mask: Tensor  # (sentences, most nodes) bool: True at nodes
    root: CellState  # of each sentence, (sentences, H) each


def recursive(p: Tensor, children: tuple[CellState, ...]) -> CellState:
    """h_p = tanh(W_xp x + W_lp h_l + W_rp h_r + b_p), the recursive neural network (Socher et al. 2011)."""
    return (p.tanh(),)


def tree_lstm(p: Tensor, children: tuple[CellState, ...]) -> CellState:
    """c_p = i * u + f_l * c_l + f_r * c_r, h_p = o * tanh(c_p): the binary tree-LSTM (Tai et al. 2015, eqs. 9 to 14).

    There is a forget gate for each child. Each depends on both children.
    """
    i, u, o, *f = p.chunk(3 + len(children), dim=1)  # (rows, H) each
    c = i.sigmoid() * u.tanh()
    for f_k, (_, c_k) in zip(f, children, strict=True):
        c = c + f_k.sigmoid() * c_k
    return o.sigmoid() * c.tanh(), c


TREE_CELLS: dict[str, TreeCell] = {
    "recursive": TreeCell(recursive, ("h",), 1, ("h",)),
    "tree-lstm": TreeCell(tree_lstm, ("i", "u", "o", "f_l", "f_r"), 3, ("h", "c"), {"f_l": 1.0, "f_r": 1.0}),
}


class TreeLayer(nn.Module):
    """A recursive network over binary trees, with one of `TREE_CELLS` and vectors of length H."""

    def __init__(self, cell: str, input_size: int, hidden_size: int, *, dtype: torch.dtype | None = None):
        super().__init__()
        self.cell, self.hidden_size = TREE_CELLS[cell], hidden_size
        gates = len(self.cell.gates) * hidden_size
        self.word = empty_linear(input_size, self.cell.leaf_gates * hidden_size, bias=False, dtype=dtype)  # W_xp
        self.left = empty_linear(hidden_size, gates, bias=False, dtype=dtype)  # W_lp
        self.right = empty_linear(hidden_size, gates, bias=False, dtype=dtype)  # W_rp
        self.bias = nn.Parameter(torch.zeros(gates, dtype=dtype))  # b_p; leaves use the first part

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
                state = self.cell.step(nn.functional.linear(pairs[0].flatten(1), W, self.bias), left_and_right)
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


def _take(states: list[CellState], places: NDArray[np.int64]) -> CellState:
    """Select states among those passed on, from the lowest height to the highest.  # (places, H) each"""
    parts = (torch.cat(parts) for parts in zip(*states, strict=True))
    return tuple(part.index_select(0, _to_device(places, part)) for part in parts)


def _to_device(array: NDArray[np.int64] | NDArray[np.bool_], x: Tensor) -> Tensor:
    """Return an array as a tensor on the device of x."""
    return torch.from_numpy(array).to(x.device)
