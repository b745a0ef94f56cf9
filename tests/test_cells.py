"""Recurrent cells against torch's own where the equations agree, and against the tutorial's written out where not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.nn.cells import CELLS
from dragoman.nn.recurrent import FAST, Layer, fold, step, unroll

STEPS, ROWS, INPUTS, HIDDEN = 5, 3, 4, 6


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def layer_of(cell: str) -> Layer:
    sums = len(CELLS[cell].sums)
    return Layer(random(sums * HIDDEN, INPUTS, seed=1), random(sums * HIDDEN, HIDDEN, seed=2), random(sums * HIDDEN))


def state_of(cell: str) -> tuple[Tensor, ...]:
    return tuple(random(ROWS, HIDDEN, seed=10 + number) for number, _ in enumerate(CELLS[cell].state))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


class ByHand:
    """The tutorial's equations, a vector at a time, with one matrix for each sum."""

    def __init__(self, cell: str):
        self.names = CELLS[cell].sums
        self.W_x, self.W_h, self.b = (
            dict(zip(self.names, np.split(part.numpy(), len(self.names)), strict=True)) for part in layer_of(cell)
        )

    def sum(self, name: str, x: np.ndarray, h: np.ndarray) -> np.ndarray:
        return np.asarray(self.W_x[name] @ x + self.W_h[name] @ h + self.b[name])

    def rnn(self, x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, ...]:
        return (np.tanh(self.sum("h", x, h)),)

    def lstm_without_forget_gate(self, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, ...]:
        u, i, o = np.tanh(self.sum("u", x, h)), sigmoid(self.sum("i", x, h)), sigmoid(self.sum("o", x, h))
        c = i * u + c
        return o * np.tanh(c), c

    def lstm(self, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, ...]:
        u, i, o = np.tanh(self.sum("u", x, h)), sigmoid(self.sum("i", x, h)), sigmoid(self.sum("o", x, h))
        c = i * u + sigmoid(self.sum("f", x, h)) * c
        return o * np.tanh(c), c

    def gru(self, x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, ...]:
        r, z = sigmoid(self.sum("r", x, h)), sigmoid(self.sum("z", x, h))
        new = np.tanh(self.sum("h", x, r * h))
        return ((1 - z) * h + z * new,)


@pytest.mark.parametrize("cell", CELLS)
def test_a_step_is_the_tutorials(cell: str) -> None:
    x, state = random(ROWS, INPUTS, seed=5), state_of(cell)
    after = step(cell, layer_of(cell), x, state)
    equations = getattr(ByHand(cell), cell.replace("-", "_"))
    for row in range(ROWS):
        expected = equations(x[row].numpy(), *(part[row].numpy() for part in state))
        for found, right in zip(after, expected, strict=True):
            np.testing.assert_allclose(found[row], right, rtol=1e-12)


@pytest.mark.parametrize(("cell", "module"), [("rnn", torch.nn.RNN), ("lstm", torch.nn.LSTM)])
def test_where_the_equations_agree_so_does_torch(cell: str, module: type[torch.nn.RNNBase]) -> None:
    layer, x, state = layer_of(cell), random(STEPS, ROWS, INPUTS, seed=5), state_of(cell)
    theirs = module(INPUTS, HIDDEN, dtype=torch.float64)
    with torch.no_grad():
        for name, value in (("weight_ih_l0", layer.W_x), ("weight_hh_l0", layer.W_h), ("bias_ih_l0", layer.b)):
            getattr(theirs, name).copy_(value)
        theirs.bias_hh_l0.zero_()
        first = tuple(part[None] for part in state)
        expected, last = theirs(x, first if len(first) > 1 else first[0])
    h, ended = fold(cell, layer, x, state)
    torch.testing.assert_close(h, expected)
    for found, right in zip(ended, last if isinstance(last, tuple) else (last,), strict=True):
        torch.testing.assert_close(found, right[0])


def test_torchs_gru_with_the_reset_gate_open_agrees_too() -> None:
    """torch applies r after the matrix and swaps z and 1 - z; with r = 1 only the second is left."""
    layer, x, (h,) = layer_of("gru"), random(STEPS, ROWS, INPUTS, seed=5), state_of("gru")
    (W_x, W_h, b), H = (part.clone() for part in layer), HIDDEN
    W_x[:H], W_h[:H], b[:H] = 0.0, 0.0, 50.0
    theirs = torch.nn.GRU(INPUTS, H, dtype=torch.float64)
    with torch.no_grad():
        for name, value in (("weight_ih_l0", W_x), ("weight_hh_l0", W_h), ("bias_ih_l0", b)):
            value = value.clone()
            value[H : 2 * H] *= -1
            getattr(theirs, name).copy_(value)
        theirs.bias_hh_l0.zero_()
        expected, _ = theirs(x, h[None])
    found, _ = fold("gru", Layer(W_x, W_h, b), x, (h,))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("cell", CELLS)
def test_unrolling_is_step_after_step(cell: str) -> None:
    layer, x, state = layer_of(cell), random(STEPS, ROWS, INPUTS, seed=5), state_of(cell)
    h, ended = unroll(cell, layer, x, state)
    for t in range(STEPS):
        state = step(cell, layer, x[t], state)
        torch.testing.assert_close(h[t], state[0])
    for found, right in zip(ended, state, strict=True):
        torch.testing.assert_close(found, right)


@pytest.mark.parametrize("cell", FAST)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_fast_way_has_the_folds_gradients(cell: str, dtype: torch.dtype) -> None:
    """In 32 bits too, where torch goes another way."""
    found = []
    for way in (fold, unroll):
        leaves = [part.to(dtype).requires_grad_() for part in (*layer_of(cell), random(STEPS, ROWS, INPUTS, seed=5))]
        leaves += [part.to(dtype).requires_grad_() for part in state_of(cell)]
        W_x, W_h, b, x, *state = leaves
        h, ended = way(cell, Layer(W_x, W_h, b), x, tuple(state))
        upstream = random(STEPS, ROWS, HIDDEN, seed=7).to(dtype)
        ((h * upstream).sum() + sum(part.sum() for part in ended)).backward()
        found.append([leaf.grad for leaf in leaves])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4 if dtype == torch.float32 else 1e-9, atol=1e-5)


def test_torch_gets_states_as_cuda_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """One state for all rows, expanded: the processor takes it as it is, CUDA only if it is contiguous."""
    torchs, seen = torch.lstm, []
    monkeypatch.setattr(torch, "lstm", lambda x, first, *others: seen.extend(first) or torchs(x, first, *others))
    state = tuple(part[0].expand(ROWS, -1) for part in state_of("lstm"))
    unroll("lstm", layer_of("lstm"), random(STEPS, ROWS, INPUTS), state)
    assert len(seen) == 2
    assert all(part.is_contiguous() for part in seen)


def test_without_a_forget_gate_the_cell_passes_its_gradient_on_whole() -> None:
    """dc_t / dc_{t-1} = 1 where h has no say (eq. rnnlm:lstmcell)."""
    W_x, W_h, b = layer_of("lstm-without-forget-gate")
    h, c = (part.requires_grad_() for part in state_of("lstm-without-forget-gate"))
    _, (_, last) = fold("lstm-without-forget-gate", Layer(W_x, W_h * 0, b), random(STEPS, ROWS, INPUTS), (h, c))
    (gradient,) = torch.autograd.grad(last.sum(), c)
    torch.testing.assert_close(gradient, torch.ones_like(c))
