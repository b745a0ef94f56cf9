"""Entropy pruning: losses of n-grams, and which ones are dropped."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from dragoman import Corpus, NgramModel
from dragoman.data.vocabulary import END, START
from dragoman.ngram.entropy import context_log_probs, prune_by_entropy, pruning_losses
from dragoman.ngram.scoring import NgramScorer
from dragoman.ngram.table import NgramTable, keep_nodes, renormalize
from zoo import ngram_words


def _walk(source: random.Random) -> str:
    """A sentence in which each word depends on the one before."""
    word, words = source.randrange(30), []
    while source.random() < 0.85:
        words.append(f"w{word}")
        word = (word * 7 + source.choice([1, 1, 1, 2, 5, source.randrange(30)])) % 30
    return " ".join(words)


@pytest.fixture(scope="module")
def text() -> Corpus:
    source = random.Random(1)
    return Corpus.from_sentences([_walk(source) for _ in range(400)])


@pytest.fixture(scope="module")
def trigrams(text: Corpus) -> NgramModel:
    return NgramModel.train(text, order=3, smoothing="witten-bell")


@pytest.fixture(scope="module")
def bigrams() -> NgramTable:
    corpus = Corpus.from_sentences(["a b a b c", "b a c", "a b", "c c a"])
    return NgramModel.train(corpus, order=2, smoothing="witten-bell").table


def _strings(table: NgramTable, order: int) -> set[tuple[int, ...]]:
    return set(map(tuple, ngram_words(table.trie, order).tolist())) if order <= table.trie.order else set()


def _perplexity(table: NgramTable, corpus: Corpus) -> float:
    return float(np.exp(-NgramScorer(table).trace(corpus).log_prob.mean()))


def test_loss_is_the_relative_entropy_between_the_model_with_and_without_the_bigram(bigrams: NgramTable) -> None:
    words, contexts = ngram_words(bigrams.trie, 1)[:, 0], context_log_probs(bigrams)
    closed = pruning_losses(bigrams)
    first = bigrams.trie.levels[2]
    assert bigrams.trie.nodes - first == 12
    for node, parent in zip(range(first, bigrams.trie.nodes), bigrams.trie.parents(2), strict=True):
        keep = np.ones(bigrams.trie.nodes, bool)
        keep[node] = False
        without = renormalize(keep_nodes(bigrams, keep))
        before, after = (table.distributions(np.array([parent]))[0] for table in (bigrams, without))
        possible = words != START
        entropy = np.sum(np.exp(before[possible]) * (before[possible] - after[possible]))
        assert closed[node] == pytest.approx(math.exp(contexts[parent]) * entropy, rel=1e-4, abs=1e-8)


def test_contexts_have_the_probabilities_along_their_strings(trigrams: NgramModel) -> None:
    table = trigrams.table
    contexts = context_log_probs(table)
    assert contexts[1 + START] == table.log_prob[1 + END]
    node = table.trie.levels[3] - 1
    first, _ = ngram_words(table.trie, 2)[-1]
    assert contexts[node] == pytest.approx(float(table.log_prob[1 + first] + table.log_prob[node]))


def test_pruned_distributions_sum_to_one(trigrams: NgramModel) -> None:
    for threshold in (1e-6, 1e-4, 1e-2):
        pruned = prune_by_entropy(trigrams.table, threshold)
        sums = np.exp(pruned.distributions(np.arange(pruned.trie.contexts))).sum(axis=1)
        np.testing.assert_allclose(sums, 1.0, atol=1e-5)


def test_threshold_zero_drops_nothing(trigrams: NgramModel, text: Corpus) -> None:
    same = prune_by_entropy(trigrams.table, 0.0)
    assert same.trie.sizes() == trigrams.table.trie.sizes()
    assert _perplexity(same, text) == pytest.approx(_perplexity(trigrams.table, text), rel=1e-5)


def test_a_larger_threshold_drops_more_and_costs_more(trigrams: NgramModel, text: Corpus) -> None:
    tables = [prune_by_entropy(trigrams.table, threshold) for threshold in (0.0, 1e-4, 2e-4, 3e-4, 1e-3)]
    sizes = [table.trie.nodes for table in tables]
    perplexities = [_perplexity(table, text) for table in tables]
    assert sizes == sorted(set(sizes), reverse=True)
    assert perplexities == sorted(set(perplexities))
    assert sizes[3] < 0.5 * sizes[0]
    assert perplexities[3] < 1.2 * perplexities[0]


def test_drops_ngrams_with_small_loss_that_are_not_contexts(trigrams: NgramModel) -> None:
    threshold = 2e-4
    table = trigrams.table
    pruned, loss = prune_by_entropy(table, threshold), np.expm1(pruning_losses(table))
    dear = [set(map(tuple, ngram_words(table.trie, k)[loss[table.trie.span(k)] >= threshold].tolist())) for k in (2, 3)]
    needed = {string[:2] for string in dear[1]}
    assert _strings(pruned, 3) == dear[1]
    assert _strings(pruned, 2) == dear[0] | needed
    assert needed - dear[0]  # the case that matters occurs
    assert _strings(pruned, 1) == _strings(table, 1)


def test_all_ngrams_above_order_one_can_be_dropped(trigrams: NgramModel, text: Corpus) -> None:
    words = prune_by_entropy(trigrams.table, 10.0)
    assert words.trie.order == 1
    unigrams = NgramModel(trigrams.vocab, words, trigrams.unknown, trigrams.settings)
    assert np.isfinite(unigrams.token_log_probs(text)).all()
    assert len(unigrams.next_words("w1", k=None)) == len(text.vocab)


def test_training_applies_entropy_pruning(text: Corpus, trigrams: NgramModel) -> None:
    pruned = NgramModel.train(text, order=3, smoothing="witten-bell", entropy_prune=1e-4)
    assert pruned.table.trie.sizes() == prune_by_entropy(trigrams.table, 1e-4).trie.sizes()
