"""Recurrence over sentences of different lengths: each row is what it is alone, values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dragoman.nn.cells import CELLS
from dragoman.nn.recurrent import Layer, unroll_sentences

LENGTHS, INPUTS, HIDDEN = (3, 5, 1, 4), 3, 4
STEPS, ROWS = max(LENGTHS), len(LENGTHS)

every_cell = pytest.mark.parametrize("cell", CELLS)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def layer_of(cell: str) -> Layer:
    sums = len(CELLS[cell].sums)
    return Layer(random(sums * HIDDEN, INPUTS, seed=1), random(sums * HIDDEN, HIDDEN, seed=2), random(sums * HIDDEN))


def state_of(cell: str) -> tuple[Tensor, ...]:
    return tuple(random(ROWS, HIDDEN, seed=10 + number) for number, _ in enumerate(CELLS[cell].state))


def mask_of(lengths: tuple[int, ...] = LENGTHS) -> Tensor:
    return torch.arange(max(lengths))[:, None] < torch.tensor(lengths)  # (steps, rows)


def alone(cell: str, layer: Layer, x: Tensor, state: tuple[Tensor, ...], row: int, length: int) -> tuple[Tensor, ...]:
    """The step, word by word, over one row: its h, and its last state."""
    own = tuple(part[row : row + 1] for part in state)
    h = []
    for t in range(length):
        p = x[t, row : row + 1] @ layer.W_x.t() + layer.b
        own = CELLS[cell].step(p, own, layer.W_h)
        h.append(own[0][0])
    return torch.stack(h), *(part[0] for part in own)


@every_cell
@pytest.mark.parametrize("padding", [0.0, 1e3, -7.0])
def test_a_row_ends_where_it_would_alone(cell: str, padding: float) -> None:
    """Whatever stands in the padding."""
    layer, state, mask = layer_of(cell), state_of(cell), mask_of()
    x = random(STEPS, ROWS, INPUTS, seed=5).masked_fill(~mask[..., None], padding)
    h, ended = unroll_sentences(cell, layer, x, state, mask)
    assert [part.shape for part in ended] == [(ROWS, HIDDEN)] * len(CELLS[cell].state)
    for row, length in enumerate(LENGTHS):
        expected, *last = alone(cell, layer, x, state, row, length)
        torch.testing.assert_close(h[:length, row], expected, rtol=1e-12, atol=1e-13)
        for found, right in zip(ended, last, strict=True):
            torch.testing.assert_close(found[row], right, rtol=1e-12, atol=1e-13)


@every_cell
def test_sentences_of_one_length_need_no_padding(cell: str) -> None:
    layer, x, state = layer_of(cell), random(STEPS, ROWS, INPUTS, seed=5), state_of(cell)
    h, ended = unroll_sentences(cell, layer, x, state, mask_of((STEPS,) * ROWS))
    for row in range(ROWS):
        expected, *last = alone(cell, layer, x, state, row, STEPS)
        torch.testing.assert_close(h[:, row], expected)
        for found, right in zip(ended, last, strict=True):
            torch.testing.assert_close(found[row], right)


@every_cell
def test_gradients_are_those_of_the_rows_alone(cell: str) -> None:
    mask, upstream = mask_of(), random(STEPS, ROWS, HIDDEN, seed=7)
    weights = [random(ROWS, HIDDEN, seed=20 + number) for number, _ in enumerate(CELLS[cell].state)]
    found = []
    for together in (True, False):
        leaves = [part.clone().requires_grad_() for part in (*layer_of(cell), random(STEPS, ROWS, INPUTS, seed=5))]
        leaves += [part.clone().requires_grad_() for part in state_of(cell)]
        W_x, W_h, b, x, *state = leaves
        layer = Layer(W_x, W_h, b)
        if together:
            h, ended = unroll_sentences(cell, layer, x, tuple(state), mask)
            loss = (h * upstream * mask[..., None]).sum()
            loss = loss + sum((part * weight).sum() for part, weight in zip(ended, weights, strict=True))
        else:
            loss = torch.zeros((), dtype=torch.float64)
            for row, length in enumerate(LENGTHS):
                h, *last = alone(cell, layer, x, tuple(state), row, length)
                loss = loss + (h * upstream[:length, row]).sum()
                loss = loss + sum((part * weight[row]).sum() for part, weight in zip(last, weights, strict=True))
        loss.backward()
        found.append([leaf.grad for leaf in leaves])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)
    assert not found[0][3][~mask].any(), "padding has no gradient"


@pytest.mark.parametrize("cell", [cell for cell, kind in CELLS.items() if "c" in kind.state])
def test_c_is_held_to_the_last_bit_however_long_the_padding(cell: str) -> None:
    """In 32 bits too, and for a thousand steps."""
    layer = Layer(*(part.float() for part in layer_of(cell)))
    x, state = random(1000, 2, INPUTS, seed=5).float(), tuple(part[:2].float() for part in state_of(cell))
    short = x[:2]
    _, (_, c) = unroll_sentences(cell, layer, short, state, mask_of((2, 2)))
    _, (_, held) = unroll_sentences(cell, layer, x, state, mask_of((1000, 2)))
    torch.testing.assert_close(held[1], c[1], rtol=1e-6, atol=1e-7)
