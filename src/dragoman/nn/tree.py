"""Networks over binary trees, each cell written once as a step (tutorial, section "Tree-structured Networks").

A step goes from the children of a node to the node. Leaves have a word and no children, inner nodes two children and no
word: of the sum W_xp x + W_lp h_l + W_rp h_r + b_p each has its own part, which comes in computed, for all nodes of one
height at once. The matrices of a cell's several sums (its gates) stand on top of each other in the order of
`TreeCell.sums`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman.data.trees import TreeBatch, TreeLevel
from dragoman.nn.cells import CellState
from dragoman.nn.init import uniform

Step = Callable[[Tensor, tuple[CellState, ...]], CellState]  # p (rows, sums * H), states of the children -> state


class TreeCell(NamedTuple):
    """One way to put a phrase together from its parts."""

    step: Step
    sums: tuple[str, ...]  # what the affine transforms of an inner node are for
    leaf_sums: int  # so many of them, the first, a leaf has too
    state: tuple[str, ...]  # the vectors handed up; the first, h, is what the outside sees
    first_biases: tuple[tuple[str, float], ...] = ()  # of sums, where they are not 0


class TreeLayer(NamedTuple):
    """The parameters of a network over trees."""

    W_xp: Tensor  # (leaf sums * H, inputs)
    W_lp: Tensor  # (sums * H, H)
    W_rp: Tensor  # (sums * H, H)
    b_p: Tensor  # (sums * H,) leaves take the first of it


class EncodedTrees(NamedTuple):
    """What a network makes of some trees."""

    vectors: Tensor  # (sentences, most nodes, H) h of each node; 0 in padding
    mask: Tensor  # (sentences, most nodes) bool: where a sentence's own nodes stand
    root: CellState  # of each sentence, (sentences, H) each


def recursive(p: Tensor, children: tuple[CellState, ...]) -> CellState:
    """h_p = tanh(W_xp x + W_lp h_l + W_rp h_r + b_p), the recursive neural network (Socher et al. 2011)."""
    return (p.tanh(),)


def tree_lstm(p: Tensor, children: tuple[CellState, ...]) -> CellState:
    """c_p = i * u + f_l * c_l + f_r * c_r, h_p = o * tanh(c_p): the binary tree-LSTM (Tai et al. 2015, eqs. 9 to 14).

    There is a forget gate for each child, which sees both children.
    """
    i, u, o, *f = p.chunk(3 + len(children), dim=1)  # (rows, H) each
    c = i.sigmoid() * u.tanh()
    for f_k, (_, c_k) in zip(f, children, strict=True):
        c = c + f_k.sigmoid() * c_k
    return o.sigmoid() * c.tanh(), c


TREE_CELLS: dict[str, TreeCell] = {
    "recursive": TreeCell(recursive, ("h",), 1, ("h",)),
    "tree-lstm": TreeCell(tree_lstm, ("i", "u", "o", "f_l", "f_r"), 3, ("h", "c"), (("f_l", 1.0), ("f_r", 1.0))),
}


def first_parameters(cell: str, inputs: int, H: int, chance: Generator, dtype: torch.dtype) -> TreeLayer:
    """Matrices between -1/sqrt(H) and 1/sqrt(H), as for recurrent networks; biases 0 or the cell's own."""
    kind, reach = TREE_CELLS[cell], 1 / math.sqrt(H)
    sums, first_biases = len(kind.sums), dict(kind.first_biases)
    return TreeLayer(
        W_xp=uniform((kind.leaf_sums * H, inputs), reach, chance, dtype),
        W_lp=uniform((sums * H, H), reach, chance, dtype),
        W_rp=uniform((sums * H, H), reach, chance, dtype),
        b_p=torch.cat([torch.full((H,), first_biases.get(name, 0.0), dtype=dtype) for name in kind.sums]),
    )


def encode(cell: str, layer: TreeLayer, x: Tensor, trees: TreeBatch) -> EncodedTrees:
    """The vectors of all nodes, from the leaves up: one product of matrices a height.

    # x: (leaves, inputs), of the words in `trees.ids`

    A height takes the states of its children from those below and hands its own up (see `text.trees.Level`); each
    state is so copied a few times, and not once for every height, forth and back.
    """
    step = TREE_CELLS[cell].step
    W = torch.cat([layer.W_lp, layer.W_rp], dim=1).t()  # (2 H, sums * H)
    waiting: list[list[CellState]] = [[] for _ in range(len(trees.levels) + 1)]  # by the height they are handed to
    h = []
    for height, level in enumerate(trees.levels):
        if height == 0:
            b, leaves = layer.b_p[: len(layer.W_xp)], x.index_select(0, _on(x, level.inputs))
            state = step(torch.addmm(b, leaves, layer.W_xp.t()), ())
        else:
            both = _taken(waiting[height], level.inputs)  # (2 nodes, H) each: left, right, left, right, ...
            p = torch.addmm(layer.b_p, both[0].unflatten(0, (-1, 2)).flatten(1), W)  # (nodes, sums * H)
            state = step(p, _left_and_right(both))
        waiting[height] = []  # done with
        h.append(state[0])
        _hand_up(state, level, waiting)
    return EncodedTrees(_grid(torch.cat(h), trees), _on(x, trees.mask), _taken(waiting[-1], trees.roots))


def _taken(arrived: list[CellState], places: NDArray[np.int64]) -> CellState:
    """These of the states that were handed up, from the lowest to the highest.  # (places, H) each"""
    parts = (torch.cat(parts) for parts in zip(*arrived, strict=True))
    return tuple(part.index_select(0, _on(part, places)) for part in parts)


def _left_and_right(both: CellState) -> tuple[CellState, ...]:
    """The states of the left children, and those of the right.  # (2 nodes, H) each -> (nodes, H) each"""
    pairs = (part.unflatten(0, (-1, 2)).unbind(1) for part in both)
    return tuple(zip(*pairs, strict=True))


def _hand_up(state: CellState, level: TreeLevel, waiting: list[list[CellState]]) -> None:
    """Give the nodes of a level, run by run, to the heights of their parents."""
    heights, sizes = zip(*level.outputs, strict=True)
    for height, run in zip(heights, zip(*(part.split(sizes) for part in state), strict=True), strict=True):
        waiting[height].append(run)


def _grid(h: Tensor, trees: TreeBatch) -> Tensor:
    """The vectors of the nodes, height after height, at their places.  # (nodes, H) -> (sentences, most nodes, H)"""
    sentences, most = trees.mask.shape
    flat = h.new_zeros(sentences * most, h.shape[1]).index_copy(0, _on(h, trees.grid_positions), h)
    return flat.unflatten(0, (sentences, most))


def _on(x: Tensor, numbers: NDArray[np.int64] | NDArray[np.bool_]) -> Tensor:
    """Numbers where a tensor is."""
    return torch.from_numpy(numbers).to(x.device)
