"""Recurrent cells, each written once as a step (tutorial, section "Recurrent Neural Network Language Models").

A step goes from the state before a word to the state after it. What of the sum W_x x_t + W_h h_{t-1} + b does not
depend on the state, p = W_x x_t + b, comes in computed: for a whole text at once where it is known. The matrices of a
cell's several sums (its gates) stand on top of each other in the order of `Cell.sums`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

CellState = tuple[Tensor, ...]  # h, or h and c, each (rows, H)
Step = Callable[[Tensor, CellState, Tensor], CellState]  # p (rows, sums * H), state, W_h (sums * H, H) -> state


class Cell(NamedTuple):
    """One kind of recurrence."""

    step: Step
    sums: tuple[str, ...]  # what its affine transforms are for, by the tutorial's letters
    state: tuple[str, ...]  # the vectors it hands on; the first, h, is what the outside sees
    first_biases: tuple[tuple[str, float], ...] = ()  # of sums, where they are not 0
    holds: tuple[tuple[str, float], ...] = ()  # signs of sums that, large, keep c as it is
    all_from_h: bool = True  # all sums are p + W_h h: no other vector is multiplied by W_h


def elman(p: Tensor, state: CellState, W_h: Tensor) -> CellState:
    """h_t = tanh(W_xh x_t + W_hh h_{t-1} + b_h) (eq. rnnlm:rnn)."""
    (h,) = state
    return (torch.addmm(p, h, W_h.t()).tanh(),)


def lstm_without_forget_gate(p: Tensor, state: CellState, W_h: Tensor) -> CellState:
    """Long short-term memory as it is first written (eqs. rnnlm:lstmupdate to rnnlm:lstmhidden): dc_t/dc_{t-1} = 1."""
    h, c = state
    i, u, o = torch.addmm(p, h, W_h.t()).chunk(3, dim=1)  # (rows, H) each
    c = i.sigmoid() * u.tanh() + c
    return o.sigmoid() * c.tanh(), c


def lstm(p: Tensor, state: CellState, W_h: Tensor) -> CellState:
    """Long short-term memory with a forget gate: c_t = i_t * u_t + f_t * c_{t-1} (eq. rnnlm:lstmforget)."""
    h, c = state
    i, f, u, o = torch.addmm(p, h, W_h.t()).chunk(4, dim=1)  # (rows, H) each
    c = i.sigmoid() * u.tanh() + f.sigmoid() * c
    return o.sigmoid() * c.tanh(), c


def gru(p: Tensor, state: CellState, W_h: Tensor) -> CellState:
    """The gated recurrent unit (eqs. rnnlm:grureset to rnnlm:gruhidden).

    The reset gate is applied to h before its matrix. torch.nn.GRU applies it after, and has z the other way round.
    """
    (h,) = state
    gates, candidate = 2 * h.shape[1], h.shape[1]
    p_gates, p_candidate = p.split([gates, candidate], dim=1)
    r, z = torch.addmm(p_gates, h, W_h[:gates].t()).sigmoid().chunk(2, dim=1)  # (rows, H) each
    new = torch.addmm(p_candidate, r * h, W_h[gates:].t()).tanh()  # (rows, H)
    return (torch.lerp(h, new, z),)  # (1 - z) h + z new


CELLS: dict[str, Cell] = {
    "rnn": Cell(elman, ("h",), ("h",)),
    "lstm-without-forget-gate": Cell(lstm_without_forget_gate, ("i", "u", "o"), ("h", "c"), holds=(("i", -1.0),)),
    "lstm": Cell(lstm, ("i", "f", "u", "o"), ("h", "c"), (("f", 1.0),), (("i", -1.0), ("f", 1.0))),
    "gru": Cell(gru, ("r", "z", "h"), ("h",), all_from_h=False),
}
