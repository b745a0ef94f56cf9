"""Convolution and pooling against torch, plain loops and single sentences."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv1d

from dragoman.nn.encoders import POOLINGS, Convolved, convolve

SIZE, FILTERS = 3, 4
LENGTHS = [5, 0, 1, 7, 2, 7]
K = 3
poolings = pytest.mark.parametrize("pooling", POOLINGS)
widths = pytest.mark.parametrize("w", [1, 2, 3, 9])


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def batch(padding: float = 100.0) -> tuple[Tensor, Tensor]:
    """Sentences of several lengths with arbitrary values in their padding."""
    m, lengths = random(len(LENGTHS), max(LENGTHS), SIZE), torch.tensor(LENGTHS)
    return m.masked_fill((torch.arange(max(LENGTHS)) >= lengths[:, None])[..., None], padding), lengths


def filters(w: int, *, bias: bool = False, dtype: torch.dtype = torch.float64) -> torch.nn.Linear:
    layer = torch.nn.Linear(w * SIZE, FILTERS, bias=bias, dtype=dtype)
    with torch.no_grad():
        layer.weight.copy_(random(FILTERS, w * SIZE, seed=1))
        if bias:
            layer.bias.copy_(random(FILTERS, seed=2))
    return layer


def columns(w: int) -> list[int]:
    return [max(length - w + 1, 1) for length in LENGTHS]


def naive(m: Tensor, length: int, W: Tensor) -> Tensor:
    """H of one sentence, written as the equation has it.  # (columns, n)"""
    w = W.shape[1] // SIZE
    words = [*m[:length], *[torch.zeros(SIZE, dtype=m.dtype)] * (w - length)]
    return torch.stack([W @ torch.cat(words[t : t + w]) for t in range(len(words) - w + 1)])


@widths
def test_columns_have_the_tutorials_equation(w: int) -> None:
    m, lengths = batch()
    actual = convolve(m, lengths, filters(w))
    assert actual.columns.tolist() == columns(w)
    assert actual.h.shape == (len(LENGTHS), max(columns(w)), FILTERS)
    for row, length in enumerate(LENGTHS):
        expected = naive(m[row], length, filters(w).weight)
        torch.testing.assert_close(actual.h[row][actual.mask[row]], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("w", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_convolution_equals_torch(w: int, dtype: torch.dtype) -> None:
    """torch orders the weights of a filter by feature, then by position; the tutorial by position, then by feature."""
    m, layer = random(5, 7, SIZE).to(dtype), filters(w, bias=True, dtype=dtype)
    kernel = layer.weight.unflatten(1, (w, SIZE)).transpose(1, 2)  # (n, L_m, w)
    expected = conv1d(m.transpose(1, 2), kernel, layer.bias).transpose(1, 2)
    actual = convolve(m, torch.full((5,), 7), layer)
    assert actual.h.dtype == dtype
    torch.testing.assert_close(actual.h, expected)


def pooled_by_hand(pooling: str, H: Tensor, k: int) -> Tensor:
    """One sentence without padding, filter by filter.  # (columns, n)"""
    by_filter = []
    for column in H.T.tolist():
        if pooling == "average":
            by_filter.append([sum(column) / len(column)])
        elif pooling == "max":
            by_filter.append([max(column)])
        else:
            best = sorted(sorted(range(len(column)), key=lambda t: -column[t])[:k])
            by_filter.append(([column[t] for t in best] + [0.0] * k)[:k])
    return torch.tensor(by_filter, dtype=H.dtype).T.flatten()


@poolings
@widths
@pytest.mark.parametrize("k", [1, K, 20])
def test_pooling_equals_a_loop_over_the_columns_of_a_sentence(pooling: str, w: int, k: int) -> None:
    m, lengths = batch()
    pooled = POOLINGS[pooling](convolve(m, lengths, filters(w)), k)
    assert pooled.shape == (len(LENGTHS), k * FILTERS if pooling == "k-max" else FILTERS)
    for row, length in enumerate(LENGTHS):
        expected = pooled_by_hand(pooling, naive(m[row], length, filters(w).weight), k)
        torch.testing.assert_close(pooled[row], expected, rtol=1e-12, atol=1e-12)


@poolings
def test_padding_has_no_effect(pooling: str) -> None:
    """Not even not-a-number."""
    m, lengths = batch(padding=torch.nan)
    layer = filters(3, bias=True)
    pooled = POOLINGS[pooling](convolve(m, lengths, layer), K)
    for row, length in enumerate(LENGTHS):
        single = convolve(m[row : row + 1, :length], lengths[row : row + 1], layer)
        torch.testing.assert_close(pooled[row], POOLINGS[pooling](single, K)[0], rtol=1e-12, atol=1e-12)


def test_k_max_pooling_keeps_the_order_and_prefers_earlier_values() -> None:
    h = torch.tensor([[[5.0, 1.0], [9.0, 2.0], [7.0, 1.0], [8.0, 1.0], [0.0, 3.0]]])
    actual = POOLINGS["k-max"](Convolved(h, torch.tensor([5])), 3)
    assert actual.tolist() == [[9.0, 1.0, 7.0, 2.0, 8.0, 3.0]]
    shorter = POOLINGS["k-max"](Convolved(-h, torch.tensor([2])), 3)
    assert shorter.tolist() == [[-5.0, -1.0, -9.0, -2.0, 0.0, 0.0]]


@pytest.mark.parametrize("k", [1, K])
def test_max_pooling_is_k_max_pooling_with_k_1(k: int) -> None:
    m, lengths = batch()
    convolved = convolve(m, lengths, filters(2))
    torch.testing.assert_close(POOLINGS["max"](convolved, k), POOLINGS["k-max"](convolved, 1))


@poolings
def test_gradients(pooling: str) -> None:
    m, lengths = batch()

    layer = filters(3, bias=True)

    def pooled(m: Tensor, *parameters: Tensor) -> Tensor:
        return POOLINGS[pooling](convolve(m, lengths, layer), K)

    inputs = [m.clone().requires_grad_(), *layer.parameters()]
    assert torch.autograd.gradcheck(pooled, inputs)
    pooled(*inputs).sum().backward()
    grad = inputs[0].grad
    assert grad is not None
    padding = torch.arange(max(LENGTHS)) >= lengths[:, None]
    assert not grad[padding].any()
    assert grad[~padding].any()
