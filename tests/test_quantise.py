"""Quantised tables: size, accuracy and normalisation."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import dragoman
from dragoman import Corpus, NgramModel
from dragoman.ngram.quantization import _bin, quantize
from dragoman.ngram.table import NgramTable, renormalize
from dragoman.ngram.trie import Trie


def _zipf(source: random.Random, sentences: int) -> list[str]:
    words = [f"w{number}" for number in range(400)]
    weights = [1 / (rank + 1) for rank in range(400)]
    return [" ".join(source.choices(words, weights, k=source.randrange(12))) for _ in range(sentences)]


@pytest.fixture(scope="module")
def texts() -> tuple[Corpus, Corpus]:
    source = random.Random(2)
    train = Corpus.from_sentences(_zipf(source, 1500))
    return train, Corpus.from_sentences(_zipf(source, 200), train.vocab)


@pytest.fixture(scope="module")
def plain(texts: tuple[Corpus, Corpus]) -> NgramModel:
    return NgramModel.train(texts[0], order=3)


@pytest.fixture(scope="module")
def small(texts: tuple[Corpus, Corpus]) -> NgramModel:
    return NgramModel.train(texts[0], order=3, quantise=True)


def test_every_distribution_sums_to_one(small: NgramModel) -> None:
    table = small.table
    assert table.quantized
    assert max(len(np.unique(table.values(order))) for order in (1, 2, 3)) <= 255
    sums = np.exp(table.distributions(np.arange(table.trie.contexts))).sum(axis=1)
    np.testing.assert_allclose(sums, 1.0, atol=1e-5)


def test_perplexity_is_nearly_the_same(plain: NgramModel, small: NgramModel, texts: tuple[Corpus, Corpus]) -> None:
    before, after = (np.exp(-model.token_log_probs(texts[1]).mean()) for model in (plain, small))
    assert before != after
    assert after == pytest.approx(before, rel=0.01)


def test_quantised_model_is_smaller_on_disk(
    plain: NgramModel, small: NgramModel, texts: tuple[Corpus, Corpus], tmp_path: Path
) -> None:
    for name, model in (("plain", plain), ("small", small)):
        model.save(tmp_path / name)
    sizes = {name: (tmp_path / name / "model.safetensors").stat().st_size for name in ("plain", "small")}
    assert sizes["plain"] - sizes["small"] > 2.5 * plain.table.trie.nodes  # three of four bytes, less the codebook
    again = dragoman.load(tmp_path / "small")
    assert isinstance(again, NgramModel)
    np.testing.assert_array_equal(again.token_log_probs(texts[1]), small.token_log_probs(texts[1]))


def test_few_distinct_values_are_exact() -> None:
    values = np.array([-0.7, -2.3, -0.7, -np.inf, -1.4, 0.0], np.float32)
    means, codes = _bin(values)
    np.testing.assert_array_equal(means[codes], values)
    assert codes.tolist() == [3, 1, 3, 0, 2, 4]


def test_many_values_are_approximated_in_order() -> None:
    values = np.random.default_rng(0).normal(-8, 2, 100_000).astype(np.float32)
    values[0] = -200.0  # one far away does not spoil the others
    means, codes = _bin(values)
    rounded = means[codes]
    assert len(np.unique(codes)) > 128
    assert np.abs(rounded - values).mean() < 0.05
    order = np.argsort(values)
    assert (np.diff(rounded[order]) >= 0).all()


def test_all_values_minus_infinity() -> None:
    means, codes = _bin(np.full(3, -np.inf, np.float32))
    assert means[codes].tolist() == [-np.inf] * 3


def test_zero_probabilities_stay_zero(texts: tuple[Corpus, Corpus]) -> None:
    model = NgramModel.train(texts[0], order=2, smoothing="maximum-likelihood", quantise=True)
    probs = {word.word: word.prob for word in model.next_words("w1", k=None)}
    assert probs["<s>"] == probs["<unk>"] == 0.0


@pytest.fixture(scope="module")
def tight() -> NgramTable:
    """600 words, none as probable as another; after each, two words have all but a thousandth of the mass."""
    size, source = 600, np.random.default_rng(3)
    words = source.dirichlet(np.ones(size - 1))
    unigrams = np.concatenate([[0.0], words])  # <s> first
    halves = source.uniform(0.05, 0.95, size - 1)[:, None] * [0.999, -0.999] + [0.0, 0.999]  # (contexts, 2)
    followers = source.integers(1, size - 1, (size - 1, 1)) + np.arange(2)  # (contexts, 2)
    word = np.concatenate([[0], np.arange(size), followers.ravel()]).astype(np.int32)
    begin = np.concatenate([[1, 1 + size], 1 + size + 2 * np.arange(size)]).astype(np.int32)
    trie = Trie((0, 1, 1 + size, 1 + size + 2 * (size - 1)), word, begin)
    with np.errstate(divide="ignore"):
        log_prob = np.log(np.concatenate([[1.0], unigrams, halves.ravel()])).astype(np.float32)
    return renormalize(NgramTable(trie, log_prob, np.zeros(trie.contexts, np.float32)))


def test_sums_stay_one_where_rounding_up_would_leave_nothing(tight: NgramTable) -> None:
    for table in (tight, quantize(tight)):
        sums = np.exp(table.distributions(np.arange(table.trie.contexts))).sum(axis=1)
        np.testing.assert_allclose(sums, 1.0, atol=1e-5)


def test_at_least_half_of_the_backoff_mass_remains(tight: NgramTable) -> None:
    listed = np.exp(quantize(tight).values(2), dtype=float).reshape(-1, 2).sum(axis=1)
    assert (1 - listed >= 0.499 * 0.001).all()
    assert (1 - listed).max() < 0.25  # and codes are not lower than needed


def test_table_with_full_contexts_is_not_quantised() -> None:
    """They have no back-off to even out the rounding."""
    source, words = np.random.default_rng(5), [f"w{number}" for number in range(30)]
    every_pair = [f"{first} {second} <unk> {first}" for first in words for second in words]
    corpus = Corpus.from_sentences([*every_pair, *(" ".join(source.choice(words, 9)) for _ in range(400))])
    with pytest.warns(UserWarning, match="not quantised"):
        model = NgramModel.train(corpus, order=2, smoothing="witten-bell", quantise=True)
    sums = np.exp(model.table.distributions(np.arange(model.table.trie.contexts))).sum(axis=1)
    np.testing.assert_allclose(sums, 1.0, atol=1e-5)
