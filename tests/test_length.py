"""How long a translation should be."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson

from dragoman import DataError
from dragoman.io.storage import map_arrays, write_arrays
from dragoman.search.length import (
    LENGTH_HANDLINGS,
    LengthHandling,
    LengthNormalization,
    LengthPrior,
    NoLengthHandling,
    WordPenalty,
)

SOURCE = [3, 3, 3, 3, 5, 5, 8, 0]
TARGET = [3, 3, 4, 5, 6, 6, 9, 0]
PRIOR = LengthPrior.estimate(SOURCE, TARGET)
HANDLINGS: list[LengthHandling] = [
    NoLengthHandling(),
    LengthNormalization(),
    WordPenalty(0.4),
    WordPenalty(-0.4),
    PRIOR,
]


def numbers(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_scores_follow_their_definitions() -> None:
    log_prob, words, source = numbers(-6.0, -2.0), torch.tensor([2, 0]), torch.tensor([3, 0])
    assert NoLengthHandling().score(log_prob, words, source).tolist() == [-6, -2]
    assert LengthNormalization().score(log_prob, words, source).tolist() == [-2, -2]  # `</s>` is a word
    assert WordPenalty(0.5).score(log_prob, words, source).tolist() == [-5, -2]
    expected = log_prob + PRIOR.log_probs(words, source)
    assert torch.equal(PRIOR.score(log_prob, words, source), expected)


def test_every_handling_has_its_name() -> None:
    assert {name: handling.name for name, handling in LENGTH_HANDLINGS.items()} == {
        name: name for name in LENGTH_HANDLINGS
    }
    assert list(LENGTH_HANDLINGS) == ["none", "norm", "prior", "penalty"]


@given(
    st.sampled_from(HANDLINGS),
    st.floats(-50, 0),
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(0, 9),
    st.lists(st.floats(-3, 0), min_size=12, max_size=12),
)
def test_no_continuation_exceeds_the_bound(
    length: LengthHandling, log_prob: float, words: int, more: int, source: int, steps: list[float]
) -> None:
    """For any next words; it is reached if these have probability one."""
    longest, sources = words + more, torch.tensor([source])
    bound = float(length.bound(numbers(log_prob), torch.tensor([words]), torch.tensor([longest]), sources))
    free = []
    for on in range(more + 1):
        ended = torch.tensor([words + on])
        assert float(length.score(numbers(log_prob + sum(steps[:on])), ended, sources)) <= bound + 1e-12
        free.append(float(length.score(numbers(log_prob), ended, sources)))
    assert max(free) == pytest.approx(bound, abs=1e-12)


# -- the prior ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [0, 1, 3, 5, 8, 9, 60])
def test_prior_is_a_distribution_for_every_source_length(source: int) -> None:
    log_probs = PRIOR.log_probs(torch.arange(400), torch.tensor(source))
    assert log_probs.isfinite().all()
    assert float(log_probs.exp().sum()) == pytest.approx(1.0, abs=1e-12)


def test_prior_is_the_multinomial_smoothed() -> None:
    """|F| = 3 was seen four times with three lengths: 4/7 of c(|E|, |F|) / c(|F|), 3/7 of the Poisson."""
    ratio = (sum(TARGET) + 1) / (sum(SOURCE) + len(SOURCE) + 1)
    for words, count in ((3, 2), (4, 1), (5, 1), (6, 0), (100, 0)):
        expected = 4 / 7 * count / 4 + 3 / 7 * poisson.pmf(words, ratio * 4)
        assert math.exp(PRIOR.log_probs(torch.tensor(words), torch.tensor(3))) == pytest.approx(expected, rel=1e-9)
    for source in (1, 7, 200):  # never seen
        expected = poisson.logpmf(4, ratio * (source + 1))
        assert float(PRIOR.log_probs(torch.tensor(4), torch.tensor(source))) == pytest.approx(expected, rel=1e-9)


def test_with_much_data_the_prior_is_the_multinomial() -> None:
    prior = LengthPrior.estimate(SOURCE * 10_000, TARGET * 10_000)
    probs = prior.log_probs(torch.tensor([3, 4, 5]), torch.tensor(3)).exp()
    assert probs.tolist() == pytest.approx([0.5, 0.25, 0.25], abs=1e-3)


def test_prior_of_empty_sentences_is_a_distribution() -> None:
    prior = LengthPrior.estimate([0, 0], [0, 0])
    assert float(prior.log_probs(torch.arange(100), torch.tensor(4)).exp().sum()) == pytest.approx(1.0)


def test_prior_is_saved_as_arrays(tmp_path: Path) -> None:
    write_arrays(tmp_path / "arrays.safetensors", PRIOR.arrays())
    again = LengthPrior.from_arrays(map_arrays(tmp_path / "arrays.safetensors"))
    words, source = torch.arange(20), torch.tensor(3)
    assert torch.equal(again.log_probs(words, source), PRIOR.log_probs(words, source))


@pytest.mark.parametrize("pairs", [np.zeros((0, 3)), np.zeros((1, 3)), np.ones((2, 2)), np.ones(3), -np.ones((1, 3))])
def test_broken_arrays_are_refused(pairs: np.ndarray) -> None:
    with pytest.raises(DataError, match="estimate it again"):
        LengthPrior.from_arrays({"pairs": pairs})


def test_invalid_values_are_refused() -> None:
    with pytest.raises(DataError, match="at least one pair"):
        LengthPrior.estimate([], [])
    with pytest.raises(DataError, match="2 source lengths but 1"):
        LengthPrior.estimate([1, 2], [1])
    for penalty in (math.nan, math.inf):
        with pytest.raises(DataError, match="word penalty"):
            WordPenalty(penalty)
    with pytest.raises(DataError, match="needs a source"):
        PRIOR.score(numbers(-1.0), torch.tensor([1]), None)
