"""Attention against the tutorial's equations, one source word at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dragoman import DataError
from dragoman.nn.attention import SCORES, Attention, RowLayout, _TanhScore

SENTENCES, LONGEST, SIZE, UNITS = 3, 4, 5, 6
LENGTHS = (4, 1, 3)

every_score = pytest.mark.parametrize("name", SCORES)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def create(name: str, query: int = SIZE, vector: int = SIZE) -> Attention:
    attention = Attention(SCORES[name](query, vector, UNITS).double())
    attention.reset_parameters(torch.Generator().manual_seed(1))
    return attention.eval()


def mask_of(lengths: tuple[int, ...] = LENGTHS) -> Tensor:
    return torch.arange(LONGEST) < torch.tensor(lengths)[:, None]


def tutorial_score(name: str, attention: Attention, h_f: np.ndarray, h_e: np.ndarray) -> float:
    """attn_score(h^(f)_j, h^(e)_t) of the tutorial's section "Ways of Calculating Attention Scores"."""
    arrays = {key: tensor.numpy() for key, tensor in attention.score.state_dict().items()}
    match name:
        case "dot":
            return sum(float(a * b) for a, b in zip(h_f, h_e, strict=True))
        case "bilinear":
            return float(h_f @ arrays["bilinear.weight"] @ h_e)
        case _:
            W_a1 = np.concatenate([arrays["query_input.weight"], arrays["key_input.weight"]], axis=1)
            return float(arrays["output"] @ np.tanh(W_a1 @ np.concatenate([h_e, h_f])))


def attend(attention: Attention, H: Tensor, mask: Tensor, h: Tensor, layout: RowLayout) -> tuple[Tensor, Tensor]:
    """Weights and context."""
    with torch.no_grad():
        return attention(attention.memory(H, mask), h, layout)[:2]


@every_score
def test_attention_has_the_tutorials_equations(name: str) -> None:
    """a_{t,j} by j, alpha_t = softmax(a_t), c_t = H alpha_t."""
    H, h = random(SENTENCES, LONGEST, SIZE, seed=2), random(SENTENCES, SIZE, seed=3)
    attention = create(name)
    alpha, context = attend(attention, H, mask_of(), h, RowLayout(SENTENCES, 1))
    for sentence, length in enumerate(LENGTHS):
        a = [tutorial_score(name, attention, H[sentence, j].numpy(), h[sentence].numpy()) for j in range(length)]
        total = sum(map(math.exp, a))
        expected = np.array([math.exp(score) / total for score in a])
        np.testing.assert_allclose(alpha[sentence, :length], expected, rtol=1e-12)
        c = sum(expected[j] * H[sentence, j].numpy() for j in range(length))
        np.testing.assert_allclose(context[sentence], c, rtol=1e-12, atol=1e-14)


@every_score
def test_weights_sum_to_one_and_are_zero_at_padding(name: str) -> None:
    """Whatever stands in the padding, if only it is finite."""
    h = random(SENTENCES, SIZE, seed=3)
    weights = []
    for filling in (0.0, 1e6, -1e6):
        H = random(SENTENCES, LONGEST, SIZE, seed=2).masked_fill(~mask_of()[..., None], filling)
        alpha, context = attend(create(name), H, mask_of(), h, RowLayout(SENTENCES, 1))
        torch.testing.assert_close(alpha.sum(dim=1), torch.ones(SENTENCES, dtype=torch.float64))
        assert not alpha[~mask_of()].any()
        weights.append((alpha, context))
    for alpha, context in weights[1:]:
        torch.testing.assert_close(alpha, weights[0][0])
        torch.testing.assert_close(context, weights[0][1])


@every_score
@pytest.mark.parametrize("owners", [[0, 0, 1, 2, 2, 2], [2, 0, 2, 1, 0], [1], [0, 1, 2], [2, 1, 0], [1, 1], [2, 2, 0]])
def test_several_rows_of_a_sentence_equal_single_rows(name: str, owners: list[int]) -> None:
    """However many rows a sentence has, also none, and in whatever order they stand."""
    H, h = random(SENTENCES, LONGEST, SIZE, seed=2), random(len(owners), SIZE, seed=3)
    attention = create(name)
    alpha, context = attend(attention, H, mask_of(), h, RowLayout.of(torch.tensor(owners), SENTENCES))
    assert alpha.shape == (len(owners), LONGEST)
    for row, owner in enumerate(owners):
        only = slice(owner, owner + 1)
        weights, single = attend(attention, H[only], mask_of()[only], h[row : row + 1], RowLayout(1, 1))
        torch.testing.assert_close((alpha[row], context[row]), (weights[0], single[0]), rtol=1e-12, atol=1e-14)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_rows_can_be_restored_from_the_grid(owners: list[int]) -> None:
    layout = RowLayout.of(torch.tensor(owners), 6)
    x = torch.arange(2.0 * len(owners)).view(-1, 2)
    grid = layout.to_grid(x)
    assert grid.shape == (6, max(map(owners.count, owners)), 2)
    assert torch.equal(layout.to_rows(grid), x)
    for sentence in range(6):  # in the line of its sentence, in the order of the rows, zeros after them
        rows = x[torch.tensor(owners) == sentence]
        assert torch.equal(grid[sentence, : len(rows)], rows)
        assert not grid[sentence, len(rows) :].any()


def test_rows_that_fill_the_grid_need_no_indices() -> None:
    assert RowLayout.of(torch.tensor([0, 0, 1, 1]), 2) == (2, 2, None)
    assert RowLayout.of(torch.tensor([1, 1, 0, 0]), 2).flat_indices is not None


@pytest.mark.parametrize("rows", [1, 3])
def test_the_gradient_of_the_mlp_score(rows: int) -> None:
    keys, q, w = random(2, 3, UNITS, seed=1), random(2, rows, UNITS, seed=2), random(UNITS, seed=3)
    leaves = [part.requires_grad_() for part in (keys, q, w)]
    assert torch.autograd.gradcheck(_TanhScore.apply, leaves)
    plain = (keys[:, None] + q[:, :, None]).tanh() @ w
    torch.testing.assert_close(_TanhScore.apply(*leaves), plain)


@every_score
def test_gradients_of_attention(name: str) -> None:
    attention = create(name)
    H, h = random(2, 3, SIZE, seed=2).requires_grad_(), random(3, SIZE, seed=3).requires_grad_()
    mask, layout = torch.tensor([[True, True, False], [True] * 3]), RowLayout.of(torch.tensor([1, 0, 1]), 2)

    def attended(H: Tensor, h: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        return attention(attention.memory(H, mask), h, layout)[:2]

    assert torch.autograd.gradcheck(attended, (H, h, *attention.parameters()))


@pytest.mark.parametrize("name", ["bilinear", "mlp"])
def test_vectors_of_different_lengths(name: str) -> None:
    attention = create(name, query=3, vector=SIZE)
    H, h = random(1, LONGEST, SIZE, seed=2), random(1, 3, seed=3)
    alpha, _ = attend(attention, H, torch.ones(1, LONGEST, dtype=torch.bool), h, RowLayout(1, 1))
    a = np.array([tutorial_score(name, attention, H[0, j].numpy(), h[0].numpy()) for j in range(LONGEST)])
    np.testing.assert_allclose(alpha[0], np.exp(a) / np.exp(a).sum(), rtol=1e-12)


def test_dot_attention_needs_vectors_of_equal_length() -> None:
    with pytest.raises(DataError, match=r"the decoder's have 3 numbers, the encoder's 5.*bilinear or mlp"):
        create("dot", query=3, vector=5)
