"""Attention against the tutorial's equations written out, one word of the source at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dragoman import DataError
from dragoman.nn.attention import SCORES, Memory, Places, _PerceptronScore, attend, remember
from dragoman.nn.step_products import PLAIN

SENTENCES, LONGEST, SIZE, UNITS = 3, 4, 5, 6
LENGTHS = (4, 1, 3)

every_score = pytest.mark.parametrize("name", SCORES)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def parameters_of(name: str, query: int = SIZE, vector: int = SIZE) -> dict[str, Tensor]:
    return SCORES[name].first(query, vector, UNITS, torch.Generator().manual_seed(1), torch.float64)


def mask_of(lengths: tuple[int, ...] = LENGTHS) -> Tensor:
    return torch.arange(LONGEST) < torch.tensor(lengths)[:, None]


def by_hand(name: str, found: dict[str, Tensor], h_f: np.ndarray, h_e: np.ndarray) -> float:
    """attn_score(h^(f)_j, h^(e)_t) of the tutorial's section "Ways of Calculating Attention Scores"."""
    arrays = {key: tensor.numpy() for key, tensor in found.items()}
    match name:
        case "dot":
            return sum(float(a * b) for a, b in zip(h_f, h_e, strict=True))
        case "bilinear":
            return float(h_f @ arrays["W_a"] @ h_e)
        case _:
            W_a1 = np.concatenate([arrays["W_e"], arrays["W_f"]], axis=1)
            return float(arrays["w_a2"] @ np.tanh(W_a1 @ np.concatenate([h_e, h_f])))


def remembered(name: str, H: Tensor, mask: Tensor) -> tuple[dict[str, Tensor], Memory]:
    found = parameters_of(name)
    return found, remember(SCORES[name], found, H, mask)


@every_score
def test_attention_is_the_tutorials(name: str) -> None:
    """a_{t,j} by j, alpha_t = softmax(a_t), c_t = H alpha_t."""
    H, h = random(SENTENCES, LONGEST, SIZE, seed=2), random(SENTENCES, SIZE, seed=3)
    found, memory = remembered(name, H, mask_of())
    alpha, context, _ = attend(SCORES[name], found, memory, h, Places(SENTENCES, 1, None), PLAIN)
    for sentence, length in enumerate(LENGTHS):
        a = [by_hand(name, found, H[sentence, j].numpy(), h[sentence].numpy()) for j in range(length)]
        total = sum(map(math.exp, a))
        expected = np.array([math.exp(score) / total for score in a])
        np.testing.assert_allclose(alpha[sentence, :length], expected, rtol=1e-12)
        c = sum(expected[j] * H[sentence, j].numpy() for j in range(length))
        np.testing.assert_allclose(context[sentence], c, rtol=1e-12, atol=1e-14)


@every_score
def test_rows_sum_to_one_and_padding_has_nothing(name: str) -> None:
    """Whatever stands in the padding, if only it is finite."""
    h = random(SENTENCES, SIZE, seed=3)
    said = []
    for filling in (0.0, 1e6, -1e6):
        H = random(SENTENCES, LONGEST, SIZE, seed=2).masked_fill(~mask_of()[..., None], filling)
        found, memory = remembered(name, H, mask_of())
        alpha, context, _ = attend(SCORES[name], found, memory, h, Places(SENTENCES, 1, None), PLAIN)
        torch.testing.assert_close(alpha.sum(dim=1), torch.ones(SENTENCES, dtype=torch.float64))
        assert not alpha[~mask_of()].any()
        said.append((alpha, context))
    for alpha, context in said[1:]:
        torch.testing.assert_close(alpha, said[0][0])
        torch.testing.assert_close(context, said[0][1])


@every_score
@pytest.mark.parametrize("owners", [[0, 0, 1, 2, 2, 2], [2, 0, 2, 1, 0], [1], [0, 1, 2], [2, 1, 0], [1, 1], [2, 2, 0]])
def test_rows_of_a_sentence_are_what_they_are_alone(name: str, owners: list[int]) -> None:
    """However many rows a sentence has, also none, and in whatever order they stand."""
    H, h = random(SENTENCES, LONGEST, SIZE, seed=2), random(len(owners), SIZE, seed=3)
    found, memory = remembered(name, H, mask_of())
    places = Places.of(torch.tensor(owners), SENTENCES)
    alpha, context, _ = attend(SCORES[name], found, memory, h, places, PLAIN)
    assert alpha.shape == (len(owners), LONGEST)
    for row, owner in enumerate(owners):
        _, own = remembered(name, H[owner : owner + 1], mask_of()[owner : owner + 1])
        one = attend(SCORES[name], found, own, h[row : row + 1], Places(1, 1, None), PLAIN)
        torch.testing.assert_close((alpha[row], context[row]), (one[0][0], one[1][0]), rtol=1e-12, atol=1e-14)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_rows_come_back_from_their_places(owners: list[int]) -> None:
    places = Places.of(torch.tensor(owners), 6)
    x = torch.arange(2.0 * len(owners)).view(-1, 2)
    grid = places.grid(x)
    assert grid.shape == (6, max(map(owners.count, owners)), 2)
    assert torch.equal(places.rows(grid), x)
    for sentence in range(6):  # in its own line of the grid, in the order of the rows, zeros after them
        own = x[torch.tensor(owners) == sentence]
        assert torch.equal(grid[sentence, : len(own)], own)
        assert not grid[sentence, len(own) :].any()


def test_rows_that_fill_the_grid_are_left_where_they_are() -> None:
    assert Places.of(torch.tensor([0, 0, 1, 1]), 2) == (2, 2, None)
    assert Places.of(torch.tensor([1, 1, 0, 0]), 2).at is not None


@pytest.mark.parametrize("rows", [1, 3])
def test_the_perceptrons_own_gradient_is_right(rows: int) -> None:
    keys, q, w = random(2, 3, UNITS, seed=1), random(2, rows, UNITS, seed=2), random(UNITS, seed=3)
    leaves = [part.requires_grad_() for part in (keys, q, w)]
    assert torch.autograd.gradcheck(_PerceptronScore.apply, leaves)
    plain = (keys[:, None] + q[:, :, None]).tanh() @ w
    torch.testing.assert_close(_PerceptronScore.apply(*leaves), plain)


@every_score
def test_gradients_of_attention(name: str) -> None:
    found = {key: tensor.requires_grad_() for key, tensor in parameters_of(name).items()}
    H, h = random(2, 3, SIZE, seed=2).requires_grad_(), random(3, SIZE, seed=3).requires_grad_()
    mask, places = torch.tensor([[True, True, False], [True] * 3]), Places.of(torch.tensor([1, 0, 1]), 2)

    def attended(H: Tensor, h: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        own = dict(zip(found, values, strict=True))
        return attend(SCORES[name], own, remember(SCORES[name], own, H, mask), h, places, PLAIN)[:2]

    assert torch.autograd.gradcheck(attended, (H, h, *found.values()))


@pytest.mark.parametrize("name", ["bilinear", "mlp"])
def test_vectors_of_different_lengths_can_be_compared(name: str) -> None:
    found = parameters_of(name, query=3, vector=SIZE)
    H, h = random(1, LONGEST, SIZE, seed=2), random(1, 3, seed=3)
    memory = remember(SCORES[name], found, H, torch.ones(1, LONGEST, dtype=torch.bool))
    alpha, *_ = attend(SCORES[name], found, memory, h, Places(1, 1, None), PLAIN)
    a = np.array([by_hand(name, found, H[0, j].numpy(), h[0].numpy()) for j in range(LONGEST)])
    np.testing.assert_allclose(alpha[0], np.exp(a) / np.exp(a).sum(), rtol=1e-12)


def test_dot_attention_wants_vectors_of_one_length() -> None:
    with pytest.raises(DataError, match=r"the decoder's has 3 numbers, the source's 5.*bilinear or mlp"):
        parameters_of("dot", query=3, vector=5)
