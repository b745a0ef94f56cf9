"""Recurrent cells: each is one pure step function (tutorial, section "Recurrent Neural Network Language Models").

A step goes from the state before a word to the state after it. The input part of its affine transforms,
p = W_x x_t + b, is computed before, for all words at once where they are known. The recurrent part is added by
callables (p, h) -> p + W_h h, so that the caller decides how matrices are multiplied, such as with gathered gradients
in training. The matrices of a cell's transforms (its gates) are stacked in the order of `Cell.gates`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.nn.activations import tanh

CellState = tuple[Tensor, ...]  # h, or h and c, each (rows, H)
AddProduct = Callable[[Tensor, Tensor], Tensor]  # (p, x) -> p + W x
CellStep = Callable[[Tensor, CellState, Sequence[AddProduct]], CellState]  # p: (rows, gates * H)


class Cell(NamedTuple):
    """One kind of recurrence."""

    step: CellStep
    gates: tuple[str, ...]  # its affine transforms, by the tutorial's letters
    state: tuple[str, ...]  # the vectors of its state; the first, h, is the output
    products: tuple[int, ...]  # gates computed by each product with W_h
    initial_biases: Mapping[str, float] = {}  # of gates, where they are not 0


def elman(p: Tensor, state: CellState, products: Sequence[AddProduct]) -> CellState:
    """h_t = tanh(W_xh x_t + W_hh h_{t-1} + b_h) (eq. rnnlm:rnn)."""
    (add_h,), (h,) = products, state
    return (tanh(add_h(p, h)),)


def lstm_without_forget_gate(p: Tensor, state: CellState, products: Sequence[AddProduct]) -> CellState:
    """The original long short-term memory (eqs. rnnlm:lstmupdate to rnnlm:lstmhidden): dc_t/dc_{t-1} = 1."""
    (add_h,), (h, c) = products, state
    i, u, o = add_h(p, h).chunk(3, dim=1)  # (rows, H) each
    c = i.sigmoid() * tanh(u) + c
    return o.sigmoid() * tanh(c), c


def lstm(p: Tensor, state: CellState, products: Sequence[AddProduct]) -> CellState:
    """Long short-term memory with a forget gate: c_t = i_t * u_t + f_t * c_{t-1} (eq. rnnlm:lstmforget)."""
    (add_h,), (h, c) = products, state
    i, f, u, o = add_h(p, h).chunk(4, dim=1)  # (rows, H) each
    c = i.sigmoid() * tanh(u) + f.sigmoid() * c
    return o.sigmoid() * tanh(c), c


def gru(p: Tensor, state: CellState, products: Sequence[AddProduct]) -> CellState:
    """Gated recurrent unit (eqs. rnnlm:grureset to rnnlm:gruhidden).

    The reset gate is applied to h before its matrix. torch.nn.GRU applies it after, and swaps z and 1 - z.
    """
    (add_h, add_reset_h), (h,) = products, state
    H = h.shape[1]
    p_gates, p_new = p.split([2 * H, H], dim=1)
    r, z = add_h(p_gates, h).sigmoid().chunk(2, dim=1)  # (rows, H) each
    new = tanh(add_reset_h(p_new, r * h))  # (rows, H)
    return (torch.lerp(h, new.to(h.dtype), z.to(h.dtype)),)  # (1 - z) h + z new


CELLS: dict[str, Cell] = {
    "rnn": Cell(elman, ("h",), ("h",), (1,)),
    "lstm-without-forget-gate": Cell(lstm_without_forget_gate, ("i", "u", "o"), ("h", "c"), (3,)),
    "lstm": Cell(lstm, ("i", "f", "u", "o"), ("h", "c"), (4,), {"f": 1.0}),
    "gru": Cell(gru, ("r", "z", "h"), ("h",), (2, 1)),
}
