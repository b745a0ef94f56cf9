"""Discounts from counts of counts, computed by hand and as in KenLM."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dragoman import Corpus
from dragoman.ngram.adjusted import adjusted_count_of_counts, adjusted_counts, count_of_counts
from dragoman.ngram.counting import NgramCounts, count_ngrams
from dragoman.ngram.smoothing import DiscountError, absolute_discount, good_turing, modified_discounts


def n(*counts: int) -> np.ndarray:
    """n_1, n_2, ... at the indices 1, 2, ..."""
    return np.array([0, *counts], float)


# -- from counts of counts to discounts ------------------------------------------------------------------------------


def test_count_of_counts() -> None:
    assert count_of_counts(np.array([3, 1, 0, 1, 5, 4, 1]), 4).tolist() == [0, 3, 0, 1, 1]
    assert count_of_counts(np.array([7]), 2).tolist() == [0, 0, 0]


def test_absolute_discount() -> None:
    assert absolute_discount(n(6, 2)) == pytest.approx([0, 0.6, 0.6, 0.6])  # 6 / (6 + 2 * 2)


def test_modified_discounts() -> None:
    """Y = 10 / (10 + 2 * 5) = 1/2; 1 - 2 Y 5/10, 2 - 3 Y 2/5, 3 - 4 Y 1/2."""
    assert modified_discounts(n(10, 5, 2, 1)) == pytest.approx([0, 0.5, 1.4, 2.0])


def test_good_turing() -> None:
    """A = 3 * 1 / 12 = 1/4; (2 * 4 / 12 - A) / (1 - A) and (3 * 1 / (2 * 4) - A) / (1 - A)."""
    counts = n(12, 4, 1)
    ratios = good_turing(counts, max_count=2)
    assert ratios == pytest.approx([0, 5 / 9, 1 / 6, 1])
    taken = sum(counts[r] * r * (1 - ratios[r]) for r in (1, 2))
    assert taken == pytest.approx(12)  # Good-Turing: unseen n-grams get as much as those seen once


@pytest.mark.parametrize(
    ("counts", "why"),
    [((0, 3), "occurs once"), ((3, 0), "occurs twice")],
)
def test_absolute_discount_needs_counts_of_counts(counts: tuple[int, ...], why: str) -> None:
    with pytest.raises(DiscountError, match=why):
        absolute_discount(n(*counts))


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ((0, 5, 2, 1), "count 1"),
        ((10, 0, 2, 1), "count 2"),
        ((10, 5, 0, 1), "count 3"),
        ((10, 5, 2, 4), r"discount of count 3 would be -1\.000"),
        ((10, 5, 8, 1), r"discount of count 2 would be -0\.400"),
    ],
)
def test_modified_discounts_need_counts_of_counts(counts: tuple[int, ...], why: str) -> None:
    with pytest.raises(DiscountError, match=why):
        modified_discounts(n(*counts))


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ((0, 4, 1), "occurs once"),
        ((12, 0, 1), "too few n-grams occur 1 or 2 times"),
        ((12, 4, 0), "too few n-grams occur 2 or 3 times"),
        ((12, 4, 4), "too few"),  # A = 1
        ((12, 8, 1), "outside 0 to 1"),  # more words seen twice than once
    ],
)
def test_good_turing_needs_counts_of_counts(counts: tuple[int, ...], why: str) -> None:
    with pytest.raises(DiscountError, match=why):
        good_turing(n(*counts), max_count=2)


# -- adjusted counts -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trigrams() -> NgramCounts:
    """Of four sentences; words are numbered as they first come, so c is the last word."""
    return count_ngrams(Corpus.from_sentences(["a b c", "a b c", "b b c", "a c"]), order=3)


def test_adjusted_counts(trigrams: NgramCounts) -> None:
    """Different words before each n-gram; raw counts for those that begin with `<s>`, and at the highest order."""
    assert adjusted_counts(trigrams, 1).tolist() == [0, 1, 0, 1, 3, 2]  # <s>, never predicted; </s>, <unk>, a, b, c
    # <s> a, <s> b, a b, a c, b b, b c, c </s>
    assert adjusted_counts(trigrams, 2).tolist() == [3, 1, 1, 1, 1, 2, 2]
    # <s> a b, <s> a c, <s> b b, a b c, a c </s>, b b c, b c </s>
    assert adjusted_counts(trigrams, 3).tolist() == [2, 1, 1, 2, 1, 1, 3]


def test_statistics_use_raw_counts_of_the_last_ngram_like_lmplz(trigrams: NgramCounts) -> None:
    """Words compared from right to left, b b c is the last trigram: lmplz takes c and b c as often as they occur.

    c occurs 4 times after 2 different words, b c 3 times after 2. All other n-grams enter with the adjusted counts of
    the test above; so do a c, which is not a suffix of the last trigram, and c </s>, the last from left to right.
    """

    def statistics(order: int) -> NDArray[np.float64]:
        return adjusted_count_of_counts(trigrams, order, adjusted_counts(trigrams, order))

    assert statistics(1).tolist() == [0, 2, 0, 1, 1]  # </s> and a; none; b; c
    assert statistics(2).tolist() == [0, 4, 1, 2, 0]  # only c </s> is at 2; <s> a and b c at 3
    assert statistics(3).tolist() == [0, 4, 2, 1, 0]  # the highest order is raw anyway
