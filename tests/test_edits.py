"""Edits between translations and references."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import DataError
from dragoman.evaluation.edit_distance import count_edits, edit_distance

words = st.lists(st.sampled_from("abc"), max_size=6)


def exhaustive(hypothesis: list[str], reference: list[str]) -> tuple[int, int]:
    """Edits and insertions, by trying all sequences of edits."""
    if not hypothesis or not reference:
        return len(hypothesis) + len(reference), len(reference)

    def add(edits: int, insertions: int, rest: tuple[int, int]) -> tuple[int, int]:
        return edits + rest[0], insertions + rest[1]

    return min(
        add(int(hypothesis[0] != reference[0]), 0, exhaustive(hypothesis[1:], reference[1:])),
        add(1, 0, exhaustive(hypothesis[1:], reference)),
        add(1, 1, exhaustive(hypothesis, reference[1:])),
    )


@given(words, words)
def test_the_edit_distance_is_minimal_and_symmetric(first: list[str], second: list[str]) -> None:
    assert edit_distance(first, second) == exhaustive(first, second)
    assert edit_distance(first, second)[0] == edit_distance(second, first)[0]


def test_repeated_and_dropped_words() -> None:
    hypotheses = ["a cat a cat sat", "", "the <unk> <unk> dog", "b c", "a dog sees a cat a cat cat"]
    counts = count_edits(hypotheses, ["a cat sat", "a", "the dog", "x b y c", "a dog sees a cat"])
    assert (counts.repeated, counts.dropped) == (2 + 3, 3)  # a and cat; a, cat, cat; a, x and y; <unk> does not count


def test_rates() -> None:
    counts = count_edits(["a b c", "", "x"], ["a b c", "d e", "x"])
    assert (counts.exact_match, counts.word_error_rate) == (2 / 3, 2 / 6)


def test_texts_of_different_length_are_rejected() -> None:
    with pytest.raises(DataError, match="2"):
        count_edits(["a"], ["a", "b"])
