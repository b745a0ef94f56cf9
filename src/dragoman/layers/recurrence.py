"""A cell over time: the fold of its step, and faster ways to the same where there are some."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.layers.cells import CELLS, CellState


class Layer(NamedTuple):
    """The parameters of one recurrent layer."""

    W_x: Tensor  # (sums * H, inputs)
    W_h: Tensor  # (sums * H, H)
    b: Tensor  # (sums * H,)


Unrolled = tuple[Tensor, CellState]  # h of all steps (steps, rows, H), and the state after the last


def step(cell: str, layer: Layer, x: Tensor, state: CellState) -> CellState:
    """One word on.  # x: (rows, inputs)"""
    return CELLS[cell].step(torch.addmm(layer.b, x, layer.W_x.t()), state, layer.W_h)


def unroll(cell: str, layer: Layer, x: Tensor, state: CellState) -> Unrolled:
    """All words of some rows of text, one after the other.  # x: (steps, rows, inputs)"""
    fast = FAST.get(cell)
    return fold(cell, layer, x, state) if fast is None else fast(layer, x, state)


def fold(cell: str, layer: Layer, x: Tensor, state: CellState) -> Unrolled:
    """The definition. What the inputs contribute is one product of matrices for all steps."""
    p = torch.addmm(layer.b, x.flatten(0, 1), layer.W_x.t()).unflatten(0, x.shape[:2])  # (steps, rows, sums * H)
    h = []
    for p_t in p.unbind():
        state = CELLS[cell].step(p_t, state, layer.W_h)
        h.append(state[0])
    return torch.stack(h), state


def _torch_lstm(layer: Layer, x: Tensor, state: CellState) -> Unrolled:
    """By torch's LSTM, whose equations are `cells.lstm`: compiled, all its steps are one call."""
    out, h, c = torch.lstm(x, _first(state), *_as_torch_has_them(layer))
    return out, (h[0], c[0])


def _torch_rnn(layer: Layer, x: Tensor, state: CellState) -> Unrolled:
    """By torch's Elman network, whose equation is `cells.elman`."""
    out, h = torch.rnn_tanh(x, _first(state)[0], *_as_torch_has_them(layer))
    return out, (h[0],)


def _first(state: CellState) -> CellState:
    """One state expanded to all rows is not contiguous, as CUDA's must be."""
    return tuple(part[None].contiguous() for part in state)


def _as_torch_has_them(layer: Layer) -> tuple[list[Tensor], bool, int, float, bool, bool, bool]:
    """Weights and biases, to which torch adds a second one; one layer, no dropout, forwards, steps first."""
    weights = [layer.W_x, layer.W_h, layer.b, torch.zeros_like(layer.b)]
    return weights, True, 1, 0.0, torch.is_grad_enabled(), False, False


FAST: dict[str, Callable[[Layer, Tensor, CellState], Unrolled]] = {"lstm": _torch_lstm, "rnn": _torch_rnn}
