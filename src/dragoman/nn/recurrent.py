"""A cell over time: the fold of its step, and faster ways to the same where there are some."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from dragoman.nn.cells import CELLS, CellState
from dragoman.nn.init import uniform


class Layer(NamedTuple):
    """The parameters of one recurrent layer."""

    W_x: Tensor  # (sums * H, inputs)
    W_h: Tensor  # (sums * H, H)
    b: Tensor  # (sums * H,)


def first_layer(cell: str, inputs: int, H: int, chance: Generator, dtype: torch.dtype) -> Layer:
    """Matrices between -1/sqrt(H) and 1/sqrt(H), as is usual for recurrent networks; biases 0 or the cell's own."""
    sums, biases, reach = CELLS[cell].sums, dict(CELLS[cell].first_biases), 1 / math.sqrt(H)
    W_x = uniform((len(sums) * H, inputs), reach, chance, dtype)
    W_h = uniform((len(sums) * H, H), reach, chance, dtype)
    b = torch.cat([torch.full((H,), biases.get(name, 0.0), dtype=dtype) for name in sums])
    return Layer(W_x, W_h, b)


LARGE = 1e4  # a sum whose sigmoid is 1 to the last bit
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


def unroll_sentences(cell: str, layer: Layer, x: Tensor, state: CellState, mask: Tensor) -> Unrolled:
    """The same for rows of different lengths, and the state of each after its own last word.

    Padding comes last in a row. There the gates are held such that c stays what it was: no gate is ever as open as with
    a sum this large. h is looked up where the row ends.  # mask: (steps, rows)
    """
    if bool(mask.all()):
        return unroll(cell, layer, x, state)
    holding = _holding(cell, layer)  # (sums * H, 1)
    padded = Layer(torch.cat([layer.W_x, holding], dim=1), layer.W_h, layer.b)
    h, ended = unroll(cell, padded, torch.cat([x, (~mask)[..., None].to(x)], dim=2), state)
    last = mask.sum(dim=0) - 1  # (rows,)
    return h, (h[last, torch.arange(len(last), device=h.device)], *ended[1:])


def _holding(cell: str, layer: Layer) -> Tensor:
    """What a padded step adds to the sums of each gate.  # (sums * H, 1)"""
    signs = dict(CELLS[cell].holds)
    H = layer.W_h.shape[1]
    return torch.cat([layer.b.new_full((H, 1), LARGE * signs.get(name, 0.0)) for name in CELLS[cell].sums])


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
