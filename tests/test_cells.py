"""Recurrent cells against torch where the equations agree, and against the tutorial's equations where not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.nn.cells import CELLS, CellState
from dragoman.nn.recurrent import FUSED, PackedOrder, RecurrentLayer

STEPS, ROWS, INPUTS, HIDDEN = 5, 3, 4, 6
LENGTHS = (3, 5, 1, 4)


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def create_layer(cell: str, dtype: torch.dtype = torch.float64) -> RecurrentLayer:
    """A layer with large random weights and biases."""
    layer = RecurrentLayer(cell, INPUTS, HIDDEN).to(dtype)
    with torch.no_grad():
        for seed, parameter in enumerate(layer.parameters()):
            parameter.copy_(random(*parameter.shape, seed=seed))
    return layer


def random_state(cell: str, rows: int = ROWS, dtype: torch.dtype = torch.float64) -> CellState:
    return tuple(random(rows, HIDDEN, seed=10 + part, dtype=dtype) for part, _ in enumerate(CELLS[cell].state))


def one_step(layer: RecurrentLayer, x: Tensor, state: CellState) -> CellState:
    return layer.step(layer.input(x), state)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


class TutorialEquations:
    """The tutorial's equations for single vectors, with a matrix for each gate."""

    def __init__(self, cell: str, layer: RecurrentLayer):
        gates = CELLS[cell].gates
        self.W_x, self.W_h, self.b = (
            dict(zip(gates, np.split(part.detach().numpy(), len(gates)), strict=True))
            for part in (layer.input.weight, layer.recurrent.weight, layer.input.bias)
        )

    def gate(self, name: str, x: np.ndarray, h: np.ndarray) -> np.ndarray:
        return np.asarray(self.W_x[name] @ x + self.W_h[name] @ h + self.b[name])

    def rnn(self, x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, ...]:
        return (np.tanh(self.gate("h", x, h)),)

    def lstm_without_forget_gate(self, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, ...]:
        u, i, o = np.tanh(self.gate("u", x, h)), sigmoid(self.gate("i", x, h)), sigmoid(self.gate("o", x, h))
        c = i * u + c
        return o * np.tanh(c), c

    def lstm(self, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, ...]:
        u, i, o = np.tanh(self.gate("u", x, h)), sigmoid(self.gate("i", x, h)), sigmoid(self.gate("o", x, h))
        c = i * u + sigmoid(self.gate("f", x, h)) * c
        return o * np.tanh(c), c

    def gru(self, x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, ...]:
        r, z = sigmoid(self.gate("r", x, h)), sigmoid(self.gate("z", x, h))
        new = np.tanh(self.gate("h", x, r * h))
        return ((1 - z) * h + z * new,)


# -- single steps ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
def test_a_step_has_the_tutorials_equations(cell: str) -> None:
    layer, x, state = create_layer(cell), random(ROWS, INPUTS, seed=5), random_state(cell)
    with torch.no_grad():
        after = one_step(layer, x, state)
    equations = getattr(TutorialEquations(cell, layer), cell.replace("-", "_"))
    for row in range(ROWS):
        expected = equations(x[row].numpy(), *(part[row].numpy() for part in state))
        for part, right in zip(after, expected, strict=True):
            np.testing.assert_allclose(part[row], right, rtol=1e-12)


@pytest.mark.parametrize(("cell", "module"), [("rnn", torch.nn.RNN), ("lstm", torch.nn.LSTM)])
def test_the_fold_equals_torch(cell: str, module: type[torch.nn.RNNBase]) -> None:
    layer, x, state = create_layer(cell), random(STEPS, ROWS, INPUTS, seed=5), random_state(cell)
    other = module(INPUTS, HIDDEN, dtype=torch.float64)
    with torch.no_grad():
        other.weight_ih_l0.copy_(layer.input.weight)
        other.weight_hh_l0.copy_(layer.recurrent.weight)
        other.bias_ih_l0.copy_(layer.input.bias)
        other.bias_hh_l0.zero_()
        first = tuple(part[None] for part in state)
        expected, last = other(x, first if len(first) > 1 else first[0])
        h, after = layer.fold(x, state)
    torch.testing.assert_close(h, expected)
    for part, right in zip(after, last if isinstance(last, tuple) else (last,), strict=True):
        torch.testing.assert_close(part, right[0])


def test_the_gru_equals_torch_when_the_reset_gate_is_open() -> None:
    """torch applies r after the matrix and swaps z and 1 - z; with r = 1 only the second difference is left."""
    layer, x, (h,) = create_layer("gru"), random(STEPS, ROWS, INPUTS, seed=5), random_state("gru")
    H = HIDDEN
    other = torch.nn.GRU(INPUTS, H, dtype=torch.float64)
    with torch.no_grad():
        layer.input.weight[:H], layer.recurrent.weight[:H], layer.input.bias[:H] = 0.0, 0.0, 50.0
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0")
        for name, value in zip(names, (layer.input.weight, layer.recurrent.weight, layer.input.bias), strict=True):
            value = value.clone()
            value[H : 2 * H] *= -1
            getattr(other, name).copy_(value)
        other.bias_hh_l0.zero_()
        expected, _ = other(x, h[None])
        result, _ = layer.fold(x, (h,))
    torch.testing.assert_close(result, expected)


def test_c_of_an_lstm_without_forget_gate_passes_its_gradient_on() -> None:
    """dc_t / dc_{t-1} = 1 where h has no effect (eq. rnnlm:lstmcell)."""
    layer = create_layer("lstm-without-forget-gate")
    torch.nn.init.zeros_(layer.recurrent.weight)
    h, c = (part.requires_grad_() for part in random_state("lstm-without-forget-gate"))
    _, (_, last) = layer.fold(random(STEPS, ROWS, INPUTS), (h, c))
    (gradient,) = torch.autograd.grad(last.sum(), c)
    torch.testing.assert_close(gradient, torch.ones_like(c))


# -- rows of equal length ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
def test_forward_equals_single_steps(cell: str) -> None:
    layer, x, state = create_layer(cell), random(STEPS, ROWS, INPUTS, seed=5), random_state(cell)
    h, after = layer(x, state)
    for t in range(STEPS):
        state = one_step(layer, x[t], state)
        torch.testing.assert_close(h[t], state[0])
    for part, right in zip(after, state, strict=True):
        torch.testing.assert_close(part, right)


@pytest.mark.parametrize("cell", FUSED)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_fused_kernels_have_the_gradients_of_the_fold(cell: str, dtype: torch.dtype) -> None:
    """Also in 32 bits, where torch uses another kernel."""
    results = []
    for name in ("fold", "forward"):
        layer = create_layer(cell, dtype)
        x = random(STEPS, ROWS, INPUTS, seed=5, dtype=dtype).requires_grad_()
        state = tuple(part.requires_grad_() for part in random_state(cell, dtype=dtype))
        h, after = getattr(layer, name)(x, state)
        loss = (h * random(STEPS, ROWS, HIDDEN, seed=7, dtype=dtype)).sum() + sum(part.sum() for part in after)
        results.append(torch.autograd.grad(loss, [*layer.parameters(), x, *state]))
    for first, other in zip(*results, strict=True):
        torch.testing.assert_close(first, other, rtol=1e-4 if dtype == torch.float32 else 1e-9, atol=1e-5)


def test_fused_kernels_get_contiguous_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA requires contiguous states; one state expanded to all rows is not."""
    kernel, states = torch.lstm, []
    monkeypatch.setattr(torch, "lstm", lambda x, first, *others: states.extend(first) or kernel(x, first, *others))
    state = tuple(part[0].expand(ROWS, -1) for part in random_state("lstm"))
    create_layer("lstm")(random(STEPS, ROWS, INPUTS), state)
    assert len(states) == 2
    assert all(part.is_contiguous() for part in states)


# -- rows of different lengths -----------------------------------------------------------------------------------------


def single_row(layer: RecurrentLayer, x: Tensor, length: int, reverse: bool) -> tuple[Tensor, CellState]:
    """The step over one row.  # x: (longest, inputs)"""
    state, h = layer.initial_state(1), {}
    for t in reversed(range(length)) if reverse else range(length):
        state = one_step(layer, x[t][None], state)
        h[t] = state[0][0]
    return torch.stack([h[t] for t in range(length)]), state


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("row_lengths", "padding"), [(LENGTHS, 0.0), (LENGTHS, 1e3), ((4, 7, 7, 4, 7), 1e3)])
def test_padded_rows_equal_single_rows(cell: str, reverse: bool, row_lengths: tuple[int, ...], padding: float) -> None:
    """Values and gradients, for any values in the padding, with many and with few different lengths."""
    layer, lengths = create_layer(cell), torch.tensor(row_lengths)
    steps, rows = int(lengths.max()), len(lengths)
    mask = torch.arange(steps)[:, None] < lengths
    x = random(steps, rows, INPUTS, seed=5).masked_fill(~mask[..., None], padding).requires_grad_()
    weights = random(steps, rows, HIDDEN, seed=6)
    h, last = PackedOrder.of(lengths, x.device).run(layer, x, reverse=reverse)
    assert not h[~mask].any()
    loss = (h * weights).sum() + sum((part * weights[0]).sum() for part in last)
    expected_loss = torch.zeros((), dtype=torch.float64)
    for row, length in enumerate(row_lengths):
        expected, state = single_row(layer, x[:, row], length, reverse)
        torch.testing.assert_close(h[:length, row], expected, rtol=1e-12, atol=1e-13)
        expected_loss = expected_loss + (expected * weights[:length, row]).sum()
        for part, right in zip(last, state, strict=True):
            torch.testing.assert_close(part[row], right[0], rtol=1e-12, atol=1e-13)
            expected_loss = expected_loss + (right[0] * weights[0, row]).sum()
    inputs = [*layer.parameters(), x]
    gradients = zip(torch.autograd.grad(loss, inputs), torch.autograd.grad(expected_loss, inputs), strict=True)
    for gradient, right in gradients:
        torch.testing.assert_close(gradient, right, rtol=1e-10, atol=1e-12)
