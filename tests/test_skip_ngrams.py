"""Skip n-grams: contexts without the nearest words."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from dragoman import Corpus, Mixture, NgramModel
from dragoman.data.vocabulary import END, START
from dragoman.evaluation.likelihood import folded_log_probs
from dragoman.ngram.counting import count_ngrams
from dragoman.ngram.smoothing import SMOOTHINGS
from zoo import ngram_words

LINES = ["the big dog saw a cat", "a cat saw the big dog", "", "the dog", "dog", "big big big big", "a big cat <unk>"]
ORDER = 3
WITHOUT_GAP = {"whole-prefix"}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.from_sentences(LINES * 3 + ["the dog saw a big cat"])


@pytest.fixture(scope="module")
def unseen(corpus: Corpus) -> Corpus:
    return Corpus.from_sentences(["a big dog saw saw the mouse", "", "cat", "<unk> <unk> dog big the"], corpus.vocab)


def _counted(corpus: Corpus, order: int, gap: int) -> Counter[tuple[int, ...]]:
    """A slow computation: before each token, `order - 1` words that end `gap` words early, as far as the frame reaches."""
    counts: Counter[tuple[int, ...]] = Counter()
    for sentence in corpus:
        framed = [START] * (1 + gap) + sentence.tolist() + [END]
        for place in range(1 + gap, len(framed)):
            context = framed[: place - gap]
            for length in range(min(order - 1, len(context)) + 1):
                counts[(*context[len(context) - length :], framed[place])] += 1
    return counts


@pytest.mark.parametrize("gap", [0, 1, 2, 3])
def test_counts_against_brute_force(gap: int, corpus: Corpus) -> None:
    counts = count_ngrams(corpus, ORDER, gap)
    expected_counts: Counter[tuple[int, ...]] = Counter()
    for order in range(1, ORDER + 1):
        rows = ngram_words(counts.trie, order).tolist()
        for row, count in zip(rows, counts.of_order(order), strict=True):
            expected_counts[tuple(row)] = int(count)
    assert +expected_counts == _counted(corpus, ORDER, gap)


@pytest.mark.parametrize("gap", [1, 2])
def test_maximum_likelihood_against_brute_force(gap: int, corpus: Corpus) -> None:
    model = NgramModel.train(corpus, order=2, gap=gap, smoothing="maximum-likelihood")
    counts = _counted(corpus, 2, gap)
    totals: Counter[int] = Counter()
    for ngram, count in counts.items():
        if len(ngram) == 2:
            totals[ngram[0]] += count
    expected = []
    for sentence in corpus:
        framed = [START] * (1 + gap) + sentence.tolist() + [END]
        for place in range(1 + gap, len(framed)):
            context = framed[place - gap - 1]
            expected.append(math.log(counts[context, framed[place]] / totals[context]))
    np.testing.assert_allclose(model.token_log_probs(corpus), expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:order")
@pytest.mark.parametrize("prune", [(), (0, 0, 1), (0, 2)], ids=str)
@pytest.mark.parametrize("gap", [1, 2])
@pytest.mark.parametrize("smoothing", [name for name in SMOOTHINGS if name not in WITHOUT_GAP])
def test_distributions_sum_to_one_and_the_fold_agrees(
    smoothing: str, gap: int, prune: tuple[int, ...], corpus: Corpus, unseen: Corpus
) -> None:
    model = NgramModel.train(corpus, order=ORDER, gap=gap, smoothing=smoothing, prune=prune)
    sums = np.exp(model.table.distributions(np.arange(model.table.trie.contexts))).sum(axis=1)
    np.testing.assert_allclose(sums, 1.0, atol=1e-5)
    np.testing.assert_allclose(
        np.exp(model.token_log_probs(unseen)), np.exp(folded_log_probs(model, unseen)), atol=1e-9
    )


@pytest.mark.parametrize("gap", [1, 2])
def test_skipped_words_have_no_effect(gap: int, corpus: Corpus) -> None:
    model = NgramModel.train(corpus, order=ORDER, gap=gap, smoothing="witten-bell")
    skipped = [" ".join(["the big", *words]) for words in (["dog"] * gap, ["cat"] * gap)]
    assert model.next_words(skipped[0], k=None) == model.next_words(skipped[1], k=None)
    near = [model.next_words(f"{word} saw" + " a" * (gap - 1), k=None) for word in ("dog", "the")]
    assert near[0] != near[1]


def test_skip_and_plain_members_in_a_mixture() -> None:
    """Some words agree with the last word but one, which bigrams cannot see, and some with the last word."""
    lines = [f"{a} x {a} {b} not-{b}" for a in "abcd" for b in "efgh"]
    text = Corpus.from_sentences(lines)
    plain, skip = (NgramModel.train(text, order=2, gap=gap, smoothing="witten-bell") for gap in (0, 1))
    both = Mixture.fit([plain, skip], text)
    scores = [float(model.token_log_probs(text).sum()) for model in (plain, skip, both)]
    assert scores[2] > max(scores[:2])
    assert (both.weights > 0.05).all()
    assert math.fsum(word.prob for word in both.next_words("a x", k=None)) == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(both.token_log_probs(text)[:20], folded_log_probs(both, text)[:20], atol=1e-9)
    assert both.next_words("c x", k=1)[0].word == "c"
    assert both.next_words("c x c f", k=1)[0].word == "not-f"
