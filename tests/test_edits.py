"""Edits between translations and references."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import DataError
from dragoman.evaluation.edit_distance import count_edits, edit_distance

words = st.lists(st.sampled_from("abc"), max_size=6)


def exhaustive(one: list[str], other: list[str]) -> tuple[int, int]:
    """Edits, and words put in: by trying everything."""
    if not one or not other:
        return len(one) + len(other), len(other)

    def after(step: tuple[int, int], rest: tuple[int, int]) -> tuple[int, int]:
        return step[0] + rest[0], step[1] + rest[1]

    kept = after((int(one[0] != other[0]), 0), exhaustive(one[1:], other[1:]))
    return min(kept, after((1, 0), exhaustive(one[1:], other)), after((1, 1), exhaustive(one, other[1:])))


@given(words, words)
def test_it_is_the_least(one: list[str], other: list[str]) -> None:
    assert edit_distance(one, other) == exhaustive(one, other)
    assert edit_distance(one, other)[0] == edit_distance(other, one)[0]


def test_what_is_repeated_and_what_is_dropped() -> None:
    said = ["a cat a cat sat", "", "the <unk> <unk> dog", "b c"]
    counted = count_edits(said, ["a cat sat", "a", "the dog", "x b y c"])
    assert (counted.repeated, counted.dropped) == (2, 3)  # a and cat; a, x and y: unknown words may be two


def test_rates() -> None:
    counted = count_edits(["a b c", "", "x"], ["a b c", "d e", "x"])
    assert (counted.exact_match, counted.word_error_rate) == (2 / 3, 2 / 6)


def test_other_numbers_of_lines_are_refused() -> None:
    with pytest.raises(DataError, match="2"):
        count_edits(["a"], ["a", "b"])
