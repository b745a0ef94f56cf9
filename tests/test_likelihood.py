"""Likelihood and perplexity: an example by hand, and agreement with the scorer."""

import json
import math

import numpy as np
import pytest

from dragoman import Corpus, DataError, Mixture, NgramModel
from dragoman.data.unknown_words import ClosedVocabulary, UniformUnknownWords
from dragoman.evaluation.likelihood import Likelihood, likelihood
from dragoman.report.tables import format_table

KEYS = {
    *("sentences", "words", "tokens", "unknown_words", "log_likelihood", "log_likelihood_unknown"),
    *("perplexity", "perplexity_words", "perplexity_class", "perplexity_known", "bits_per_character"),
}
TEXT = ["the cat sat", "the dog sat on the mat", "a cat saw the dog", "", "the <unk> ran"]
TEST = ["the cat ran", "the bird saw a <unk>", "", "<s> is a word here", "on the mat"]


@pytest.fixture(scope="module")
def unigrams() -> NgramModel:
    """Counts a: 2, b: 1, </s>: 1; alpha_1 = 1/2 is the share of a language of 100 words, of which 3 are known."""
    corpus = Corpus.from_sentences(["a a b"])
    unknown = UniformUnknownWords(corpus.vocab.num_known, 100)
    return NgramModel.train(corpus, order=1, smoothing="interpolated", coefficients=(0.5,), unknown=unknown)


@pytest.fixture(scope="module")
def bigrams() -> NgramModel:
    return NgramModel.train(Corpus.from_sentences(TEXT), order=2, smoothing="witten-bell")


def test_an_example_by_hand(unigrams):
    # P(e) = 1/2 count/4 + 1/2 1/100 (eq. ngramlm:unkinterpolation); <unk> has the shares of 97 words.
    a, end, unk = 0.5 * 2 / 4 + 0.005, 0.5 * 1 / 4 + 0.005, 0.5 * 97 / 100
    result = likelihood(unigrams, Corpus.from_sentences(["a zebra"], unigrams.vocab))
    assert (result.sentences, result.words, result.tokens, result.unknown_words) == (1, 2, 3, 1)
    assert result.characters == len("a zebra\n")
    assert result.log_likelihood == pytest.approx(math.log(a * unk * end), rel=1e-6)
    assert result.log_likelihood_unknown == pytest.approx(-math.log(97))
    full = a * (unk / 97) * end
    assert unk / 97 == pytest.approx(0.005)  # the share of one unknown word
    assert result.perplexity == pytest.approx(full ** (-1 / 3), rel=1e-6)
    assert result.perplexity_words == pytest.approx(full ** (-1 / 2), rel=1e-6)
    assert result.perplexity_class == pytest.approx((a * unk * end) ** (-1 / 3), rel=1e-6)
    assert result.perplexity_known == pytest.approx((a * end) ** (-1 / 2), rel=1e-6)
    assert result.bits_per_character == pytest.approx(-math.log2(full) / 8, rel=1e-6)
    assert result.matched_orders == {1: 3}


def test_a_literal_unk_is_not_an_unknown_word(unigrams):
    result = likelihood(unigrams, Corpus.from_sentences(["a <unk>"], unigrams.vocab))
    assert (result.words, result.unknown_words, result.log_likelihood_unknown) == (2, 0, 0.0)
    assert result.log_likelihood == pytest.approx(math.log(0.255 * 0.485 * 0.13), rel=1e-6)
    assert result.perplexity == result.perplexity_class == result.perplexity_known


def test_parts_add_up(bigrams):
    first, second = (Corpus.from_sentences(lines, bigrams.vocab) for lines in (TEST[:2], TEST[2:]))
    added = likelihood(bigrams, first) + likelihood(bigrams, second)
    whole = likelihood(bigrams, Corpus.from_sentences(TEST, bigrams.vocab))
    added_values, values = added.as_dict(), whole.as_dict()
    assert added_values.pop("found_orders") == values.pop("found_orders")
    assert added_values == pytest.approx(values)
    assert whole + Likelihood() == Likelihood() + whole == whole


def test_orders_without_matches_are_listed():
    none = Likelihood(matched_orders={1: 2, 2: 0})
    assert (none + none).matched_orders == {1: 4, 2: 0}


def test_agrees_with_scoring(bigrams):
    result = likelihood(bigrams, Corpus.from_sentences(TEST, bigrams.vocab))
    assert result.unknown_words == 5  # bird, <s>, is, word, here; the literal <unk> is not one
    assert result.log_likelihood_total == pytest.approx(sum(bigrams.score(TEST)))
    words = [word for sentence in bigrams.score_words(TEST) for word in sentence]
    assert result.tokens == len(words)
    assert result.log_likelihood == pytest.approx(sum(word.log_prob for word in words))
    assert sum(result.matched_orders.values()) == result.tokens


def test_a_mixture_has_no_orders(bigrams):
    corpus = Corpus.from_sentences(TEST, bigrams.vocab)
    single, doubled = likelihood(bigrams, corpus), likelihood(Mixture.uniform([bigrams, bigrams]), corpus)
    assert doubled.perplexity == pytest.approx(single.perplexity)
    assert "found_orders" not in doubled.as_dict()


def test_a_text_with_another_vocabulary_is_rejected(bigrams):
    other = Corpus.from_sentences(["quite other words stand here and there are more of them than the model has"] * 2)
    with pytest.raises(DataError, match="another vocabulary"):
        likelihood(bigrams, other)


def test_report_keys(bigrams):
    report = likelihood(bigrams, Corpus.from_sentences(TEST, bigrams.vocab)).as_dict()
    assert report.keys() >= KEYS
    assert all(isinstance(report[key], int | float) for key in KEYS)


def test_a_closed_vocabulary_makes_unknown_words_impossible():
    corpus = Corpus.from_sentences(TEXT)
    model = NgramModel.train(corpus, order=2, smoothing="witten-bell", unknown=ClosedVocabulary(corpus.vocab.num_known))
    result = likelihood(model, Corpus.from_sentences(["the bird sat"], corpus.vocab))
    assert result.perplexity == math.inf
    assert result.impossible == 1
    assert math.isfinite(result.perplexity_class) and math.isfinite(result.perplexity_known)
    strict = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert strict["perplexity"] is strict["bits_per_character"] is strict["log_likelihood_unknown"] is None
    assert strict["perplexity_class"] == pytest.approx(result.perplexity_class)


def test_an_impossible_class_does_not_affect_known_words():
    """Maximum likelihood gives <unk> probability 0; the perplexity of the other words is finite."""
    model = NgramModel.train(Corpus.from_sentences(["a b"]), order=1, smoothing="maximum-likelihood")
    result = likelihood(model, Corpus.from_sentences(["a x"], model.vocab))
    assert result.perplexity == result.perplexity_class == math.inf
    assert result.perplexity_known == pytest.approx(3.0)


def test_the_perplexity_without_tokens_is_undefined():
    report = Likelihood(sentences=2, log_likelihood_known=-1.0, characters=2).as_dict()
    assert report["perplexity_words"] is None
    assert report["perplexity"] == pytest.approx(math.exp(0.5))
    assert Likelihood().as_dict()["perplexity"] is None
    assert Likelihood(sentences=1, log_likelihood_known=-1e6).perplexity == math.inf


def test_tables_align_numbers_and_wide_characters():
    lines = format_table(["word", "n", "share"], [["東京", 1234, "0.5"], ["x", None, "12.25"]]).splitlines()
    assert lines == ["word      n  share", "----  -----  -----", "東京  1,234    0.5", "x         -  12.25"]


def test_table_without_rows():
    assert format_table(["a", "b"], []) == "a  b\n-  -"


def test_likelihood_does_not_change_the_log_probs_of_the_model(bigrams):
    corpus = Corpus.from_sentences(TEST, bigrams.vocab)
    before = bigrams.token_log_probs(corpus)
    likelihood(bigrams, corpus)
    assert np.array_equal(before, bigrams.token_log_probs(corpus))
