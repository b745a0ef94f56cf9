"""Counting n-grams by sorting in blocks."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dragoman import Corpus, DataError, Vocab
from dragoman.ngram import counting
from dragoman.ngram.counting import count_ngrams
from zoo import ngram_words


@pytest.fixture(scope="module")
def text() -> Corpus:
    random = np.random.default_rng(3)
    words = [f"w{number}" for number in range(12)]
    return Corpus.from_sentences([" ".join(random.choice(words, random.integers(0, 9))) for _ in range(60)])


def one_by_one(corpus: Corpus, order: int) -> Counter[tuple[int, ...]]:
    """All n-grams of one order that the framed sentences have; the unigram `<s>` is never predicted."""
    counts = Counter[tuple[int, ...]]()
    for sentence in corpus:
        framed = [0, *sentence.tolist(), 1]
        counts.update(tuple(framed[start : start + order]) for start in range(len(framed) - order + 1))
    counts.pop((0,), None)
    return counts


def as_counter(counts: counting.NgramCounts, order: int) -> dict[tuple[int, ...], int]:
    rows, count = ngram_words(counts.trie, order).tolist(), counts.of_order(order).tolist()
    assert rows == sorted(rows)
    assert len({tuple(row) for row in rows}) == len(rows)
    return {tuple(row): number for row, number in zip(rows, count, strict=True) if number}


@pytest.mark.parametrize("block", [1, 2, 7, 1 << 18])
def test_block_size_does_not_change_counts(text, monkeypatch, block):
    monkeypatch.setattr(counting, "BLOCK_ROWS", block)
    counts = count_ngrams(text, 4)
    for order in range(1, 5):
        assert as_counter(counts, order) == one_by_one(text, order)


@pytest.mark.parametrize("block", [1, 3])
def test_block_size_does_not_change_counts_with_a_gap(text, monkeypatch, block):
    whole = count_ngrams(text, 3, gap=1)
    monkeypatch.setattr(counting, "BLOCK_ROWS", block)
    parts = count_ngrams(text, 3, gap=1)
    for order in (1, 2, 3):
        assert as_counter(parts, order) == as_counter(whole, order)


def test_distant_contexts_of_a_huge_vocabulary_stay_distinct():
    """A block's keys number its groups, not its nodes: node numbers could fill 64 bits."""
    node = np.repeat(np.array([5, 5 + 2**27, 5 + 2**30], np.int32), 4)
    word = np.array([9, 2**20, 0, 9] * 3, np.int32)
    order, _ = counting._sort(node, word, 2**21)
    assert order.tolist() == [2, 0, 3, 1, 6, 4, 7, 5, 10, 8, 11, 9]


def test_block_with_distant_nodes():
    """As many rows as a block has, over a range of nodes that would not fit in a key beside them."""
    rows = 1 << 18
    node = np.linspace(0, 2**31 - 2, rows).astype(np.int32)
    word = np.full(rows, 2**22, np.int32)
    order, _ = counting._sort(node, word, 2**22 + 1)
    assert np.array_equal(order, np.arange(rows))


def test_orders_longer_than_all_sentences_are_dropped():
    counts = count_ngrams(Corpus.from_sentences(["a b", "b"]), 100_000)
    assert counts.trie.order == 4  # <s> a b </s>


def test_too_many_tokens_raise_an_error(text, monkeypatch):
    monkeypatch.setattr(counting, "MAX_NODES", 100)
    with pytest.raises(DataError, match="split the text"):
        count_ngrams(text, 2)


def test_a_large_vocabulary_and_a_small_text():
    vocab = Vocab(["<s>", "</s>", "<unk>", *(f"w{number}" for number in range(50_000))])
    corpus = Corpus.from_sentences(["w1 w49999 w7", "w49999 w1"], vocab)
    counts = count_ngrams(corpus, 3)
    assert as_counter(counts, 3) == one_by_one(corpus, 3)
