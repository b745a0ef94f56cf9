"""Edits between translations and references."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import DataError
from dragoman.evaluation.edits import count_edits, distance

words = st.lists(st.sampled_from("abc"), max_size=6)


def exhaustive(one: list[str], other: list[str]) -> int:
    """By trying everything."""
    if not one or not other:
        return len(one) + len(other)
    rest = exhaustive(one[1:], other[1:]) + (one[0] != other[0])
    return min(rest, exhaustive(one[1:], other) + 1, exhaustive(one, other[1:]) + 1)


@given(words, words)
def test_it_is_the_least(one: list[str], other: list[str]) -> None:
    assert distance(one, other) == exhaustive(one, other) == distance(other, one)


def test_rates() -> None:
    counted = count_edits(["a b c", "", "x"], ["a b c", "d e", "x"])
    assert (counted.exact_match, counted.word_error_rate) == (2 / 3, 2 / 6)


def test_other_numbers_of_lines_are_refused() -> None:
    with pytest.raises(DataError, match="2"):
        count_edits(["a"], ["a", "b"])
