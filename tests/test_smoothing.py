"""Smoothing methods on examples worked by hand.

Most are on two sentences, `a b` and `a`: a and `</s>` occur twice and b once among five tokens. The language has ten
words, of which the vocabulary has three (a, b, `</s>`), so the zerogram gives 0.1 to each and 0.7 to `<unk>`.
"""

from __future__ import annotations

import math
import random
import warnings
from pathlib import Path

import numpy as np
import pytest

import dragoman
from dragoman import Corpus, DataError, NgramModel
from dragoman.data.unknown_words import UniformUnknownWords
from dragoman.ngram.counting import count_ngrams
from dragoman.ngram.heldout import _collect_evidence, _iterate, fit_coefficients
from dragoman.ngram.model import zerogram
from dragoman.ngram.smoothing import FITTED_SMOOTHINGS, SMOOTHINGS
from zoo import ngram_words

DISCOUNTED = ("katz", "absolute-discounting", "kneser-ney", "modified-kneser-ney")


@pytest.fixture(scope="module")
def tiny() -> Corpus:
    return Corpus.from_sentences(["a b", "a"])


def _train(corpus: Corpus, **settings: object) -> NgramModel:
    return NgramModel.train(corpus, unknown=UniformUnknownWords(corpus.vocab.num_known, 10), **settings)  # type: ignore[arg-type]


def _probs(model: NgramModel, prefix: str) -> dict[str, float]:
    return {word.word: word.prob for word in model.next_words(prefix, k=None)}


def _zipf(seed: int, sentences: int, size: int = 60) -> list[str]:
    source = random.Random(seed)
    words = [f"w{number}" for number in range(size)]
    weights = [1 / (rank + 1) for rank in range(size)]
    return [" ".join(source.choices(words, weights, k=source.randrange(1, 9))) for _ in range(sentences)]


@pytest.fixture(scope="module")
def text() -> Corpus:
    return Corpus.from_sentences(_zipf(1, 800))


@pytest.fixture(scope="module")
def heldout(text: Corpus) -> Corpus:
    return Corpus.from_sentences([*_zipf(2, 100), *["w0 unheard w1"] * 10], text.vocab)


# -- maximum likelihood ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def utah() -> Corpus:
    return Corpus.from_sentences(["i am from ohio .", "you are from utah ."])


def test_whole_prefix_gives_new_sentences_probability_zero(utah: Corpus) -> None:
    known, new = NgramModel.train(utah, smoothing="whole-prefix").score(["i am from ohio .", "i am from utah ."])
    assert known == pytest.approx(math.log(1 / 2), abs=1e-6)
    assert new == -math.inf


def test_bigrams_generalise_to_new_combinations(utah: Corpus) -> None:
    model = NgramModel.train(utah, order=2, smoothing="maximum-likelihood")
    words = model.score_words(["i am from utah ."])[0]
    # P(i | <s>) = P(utah | from) = 1/2; all else is certain
    assert np.exp([word.log_prob for word in words]) == pytest.approx([1 / 2, 1, 1, 1 / 2, 1, 1])
    assert model.score(["i am from texas ."]) == [-math.inf]


# -- interpolation -----------------------------------------------------------------------------------------------------


def test_fixed_interpolation(tiny: Corpus) -> None:
    model = _train(tiny, order=2, smoothing="interpolated", coefficients=(0.2, 0.4))
    # P(a) = 0.8 2/5 + 0.2 0.1 = 0.34, P(b) = 0.18, P(<unk>) = 0.2 0.7 = 0.14; after a, b occurs once and </s> once
    after_a = {"a": 0.4 * 0.34, "b": 0.6 / 2 + 0.4 * 0.18, "</s>": 0.6 / 2 + 0.4 * 0.34, "<unk>": 0.4 * 0.14, "<s>": 0}
    assert _probs(model, "a") == pytest.approx(after_a, abs=1e-7)


def test_number_of_coefficients_must_match_the_order(tiny: Corpus) -> None:
    with pytest.raises(DataError, match="2 coefficients given, but order 3 needs 3"):
        _train(tiny, order=3, smoothing="interpolated", coefficients=(0.2, 0.4))


def test_witten_bell(tiny: Corpus) -> None:
    model = _train(tiny, order=2, smoothing="witten-bell")
    # five tokens of three types: alpha = 3/8; after a two tokens of two types: alpha = 1/2
    a, b, unknown = 2 / 8 + 3 / 8 * 0.1, 1 / 8 + 3 / 8 * 0.1, 3 / 8 * 0.7
    after_a = {"a": a / 2, "b": 1 / 4 + b / 2, "</s>": 1 / 4 + a / 2, "<unk>": unknown / 2, "<s>": 0}
    assert _probs(model, "a") == pytest.approx(after_a, abs=1e-7)


def test_absolute_discounting(tiny: Corpus) -> None:
    model = _train(tiny, order=2, smoothing="absolute-discounting")
    assert model.notes == ()
    # words: n_1 = 1, n_2 = 2, D = 1/5; bigrams: n_1 = 3 (a b, a </s>, b </s>), n_2 = 1 (<s> a), D = 3/5
    a, b, unknown = 1.8 / 5 + 0.12 * 0.1, 0.8 / 5 + 0.12 * 0.1, 0.12 * 0.7
    after_a = {"a": 0.6 * a, "b": 0.4 / 2 + 0.6 * b, "</s>": 0.4 / 2 + 0.6 * a, "<unk>": 0.6 * unknown, "<s>": 0}
    assert _probs(model, "a") == pytest.approx(after_a, abs=1e-7)
    assert _probs(model, "")["a"] == pytest.approx(1.4 / 2 + 0.3 * a, abs=1e-7)


def test_kneser_ney_counts_neighbours_not_occurrences() -> None:
    lines = [*["san francisco"] * 5, "the dog", "a dog", "my dog", "san jose", "the end", "the end"]
    corpus = Corpus.from_sentences(lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        neighbors = NgramModel.train(corpus, order=2, smoothing="kneser-ney")
        occurrences = NgramModel.train(corpus, order=2, smoothing="absolute-discounting")
    unseen = {model.settings.smoothing: _probs(model, "dog") for model in (neighbors, occurrences)}
    assert unseen["kneser-ney"]["francisco"] < unseen["kneser-ney"]["dog"]
    assert unseen["absolute-discounting"]["francisco"] > unseen["absolute-discounting"]["dog"]


# -- coefficients from held-out text -----------------------------------------------------------------------------------


def test_expectation_maximisation_never_loses_likelihood(text: Corpus, heldout: Corpus) -> None:
    counts = count_ngrams(text, 3)
    evidence = _collect_evidence(counts, zerogram(text.vocab, UniformUnknownWords(text.vocab.num_known)), heldout)
    table, likelihoods = np.full((3, 20), 0.9), []
    for _ in range(15):
        table, likelihood = _iterate(table, evidence)
        likelihoods.append(likelihood)
    assert likelihoods == sorted(likelihoods)
    assert likelihoods[-1] > likelihoods[0] + 1


def test_fitted_coefficients_are_a_local_optimum(text: Corpus, heldout: Corpus) -> None:
    fitted = fit_coefficients(
        count_ngrams(text, 2), zerogram(text.vocab, UniformUnknownWords(text.vocab.num_known)), heldout, bucketed=False
    ).table[:, 0]

    def likelihood(coefficients: np.ndarray) -> float:
        model = NgramModel.train(text, order=2, smoothing="interpolated", coefficients=tuple(coefficients))
        return float(model.token_log_probs(heldout).sum())

    for order in range(2):
        for factor in (0.95, 1.05):
            moved = fitted.copy()
            moved[order] *= factor
            assert likelihood(moved) < likelihood(fitted)


def test_fitted_coefficients_beat_all_fixed_ones_on_heldout_text(text: Corpus, heldout: Corpus) -> None:
    def likelihood(smoothing: str, *coefficients: float) -> float:
        model = NgramModel.train(text, heldout=heldout, order=2, smoothing=smoothing, coefficients=coefficients)
        return float(model.token_log_probs(heldout).sum())

    grid = [0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99]
    best = max(likelihood("interpolated", first, second) for first in grid for second in grid)
    assert likelihood("interpolated-fitted") > best
    assert likelihood("interpolated-bucketed") > likelihood("interpolated-fitted")


def test_every_tenth_sentence_is_held_out_by_default(text: Corpus, tiny: Corpus) -> None:
    number = np.arange(len(text))
    tenth = text.select(number[number % 10 == 9])
    rest = NgramModel.train(
        text.select(number[number % 10 != 9]), heldout=tenth, order=2, smoothing="interpolated-fitted"
    )
    default = NgramModel.train(text, order=2, smoothing="interpolated-fitted")
    assert rest.coefficients is not None and default.coefficients is not None
    np.testing.assert_allclose(default.coefficients.table, rest.coefficients.table)
    greedy = NgramModel.train(text, heldout=text, order=2, smoothing="interpolated-fitted")
    assert greedy.coefficients is not None
    assert (
        greedy.coefficients.table[1, 0] < default.coefficients.table[1, 0] - 0.1
    )  # fitted on what was counted: too sure of itself
    with pytest.raises(DataError, match="10 training sentences"):
        NgramModel.train(tiny, order=2, smoothing="interpolated-fitted")


# -- back-off ----------------------------------------------------------------------------------------------------------


def test_katz_discounts_seen_words_and_backs_off_for_the_rest() -> None:
    text = Corpus.from_sentences(_zipf(3, 3000, size=5000))
    model = NgramModel.train(text, order=2, smoothing="katz")
    assert model.notes == ()
    counts = count_ngrams(text, 2)
    bigrams = zip(ngram_words(counts.trie, 2), counts.of_order(2), strict=True)
    pairs = {tuple(row): int(count) for row, count in bigrams}
    history = text.vocab.id("w3")
    total = sum(count for (first, _), count in pairs.items() if first == history)
    after, unigrams = _probs(model, "w3"), dict(zip(text.vocab.tokens, np.exp(model.table.values(1)), strict=True))
    ratios: dict[int, list[float]] = {}
    unseen = []
    for word, prob in after.items():
        count = pairs.get((history, text.vocab.id(word) if word != "</s>" else 1), 0)
        if count:
            ratios.setdefault(count, []).append(prob * total / count)
        elif word != "<s>":
            unseen.append(prob / unigrams[word])
    assert {1, 2, 3} <= set(ratios)
    assert max(ratios) > 5
    for count, ratio in ratios.items():
        assert ratio == pytest.approx([ratio[0]] * len(ratio), rel=1e-5)  # one ratio for each count
        assert ratio[0] == pytest.approx(1.0, rel=1e-5) if count > 5 else 0 < ratio[0] < 1
    assert len(unseen) > 5
    assert unseen == pytest.approx([unseen[0]] * len(unseen), rel=1e-4)  # one back-off weight
    assert math.fsum(after.values()) == pytest.approx(1.0, abs=1e-6)


def test_stupid_backoff_scores(tiny: Corpus) -> None:
    model = _train(tiny, order=3, smoothing="stupid-backoff")

    def raw(sentence: str) -> list[float]:
        return np.exp(model.raw_token_scores(Corpus.from_sentences([sentence], tiny.vocab))).tolist()

    assert raw("a b") == pytest.approx([1, 1 / 2, 1])
    # b is not seen after <s>; no word is seen after <s> b, nor a after b; only a is left of the context b a
    assert raw("b a") == pytest.approx([0.4 * 1 / 5, 0.4 * 0.4 * 2 / 5, 0.4 * 1 / 2])
    assert raw("a z") == pytest.approx([1, 0.4 * 0.4 * 0.4 * 0.7, 0.4 * 0.4 * 2 / 5])


def test_stupid_backoff_normalised(tiny: Corpus) -> None:
    model = _train(tiny, order=2, smoothing="stupid-backoff")
    # after a: 1/2 for b and </s>, 0.4 2/5 for a, 0.4 0.4 0.7 for the unknown class
    scores = {"a": 0.16, "b": 0.5, "</s>": 0.5, "<unk>": 0.112, "<s>": 0}
    assert _probs(model, "a") == pytest.approx({word: s / 1.272 for word, s in scores.items()}, abs=1e-6)


def test_stupid_backoff_on_pruned_counts(tiny: Corpus) -> None:
    model = _train(tiny, order=2, smoothing="stupid-backoff", prune=(0, 1))
    scores = np.exp(model.raw_token_scores(Corpus.from_sentences(["a b"], tiny.vocab)))
    assert scores == pytest.approx([1, 0.4 * 1 / 5, 0.4 * 2 / 5])  # only <s> a, seen twice, is left
    assert math.fsum(_probs(model, "a").values()) == pytest.approx(1.0, abs=1e-6)
    more = Corpus.from_sentences(["a b", "a b", "a"])
    model = _train(more, order=2, smoothing="stupid-backoff", prune=(0, 1))
    assert np.exp(model.raw_token_scores(more)[:3]) == pytest.approx(
        [1, 2 / 3, 1]
    )  # a </s> is pruned, a b is unchanged


def test_only_stupid_backoff_has_raw_scores(tiny: Corpus) -> None:
    with pytest.raises(DataError, match="raw scores"):
        _train(tiny, order=2, smoothing="witten-bell").raw_token_scores(tiny)


# -- texts too small, too plain or too odd --------------------------------------------------------------------------


@pytest.mark.parametrize("order", range(1, 8))
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_a_tiny_text_trains_every_model(smoothing: str, order: int, tmp_path: Path) -> None:
    corpus = Corpus.from_sentences(["a b <unk>", "", "", ""])  # nothing occurs twice
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = NgramModel.train(corpus, heldout=corpus, order=order, smoothing=smoothing)
    assert [str(warning.message) for warning in caught] == list(model.notes)
    if smoothing in DISCOUNTED:
        longest = min(order, model.table.trie.order)  # no sentence fills the orders above
        assert any(note.startswith(f"order {longest}: no ") for note in model.notes)
    for prefix in ("", "a", "a b", "b b b", "<unk>", "never seen"):
        assert math.fsum(_probs(model, prefix).values()) == pytest.approx(1.0, abs=1e-5)
    model.save(tmp_path / "m")  # with orders that no sentence is long enough for
    assert dragoman.load(tmp_path / "m").score(["a b", ""]) == model.score(["a b", ""])


@pytest.mark.filterwarnings("ignore:order 1")
@pytest.mark.parametrize("smoothing", [name for name in SMOOTHINGS if name not in {"whole-prefix", *FITTED_SMOOTHINGS}])
def test_order_one_ignores_context(smoothing: str, text: Corpus) -> None:
    model = NgramModel.train(text, order=1, smoothing=smoothing)
    assert _probs(model, "") == _probs(model, "w1 w2")
    assert model.table.trie.order == 1


def test_an_empty_line_is_a_sentence(tiny: Corpus) -> None:
    with_empty = Corpus.from_sentences(["a b", "", "a", ""])
    model = NgramModel.train(with_empty, order=2, smoothing="maximum-likelihood")
    assert model.score([""]) == pytest.approx([math.log(2 / 4)], abs=1e-6)
    assert NgramModel.train(tiny, order=2, smoothing="maximum-likelihood").score([""]) == [-math.inf]


def test_literal_unk_is_counted_like_a_word() -> None:
    corpus = Corpus.from_sentences(["the <unk> sat", "the cat sat"])
    model = NgramModel.train(corpus, order=2, smoothing="maximum-likelihood")
    assert _probs(model, "the")["<unk>"] == pytest.approx(1 / 2)
    literal, spelled = model.score_words(["the <unk> sat", "the dog sat"])
    assert literal[1].log_prob == spelled[1].log_prob
    assert literal[1].log_prob_unknown == 0.0 > spelled[1].log_prob_unknown


@pytest.mark.filterwarnings("ignore:order")
@pytest.mark.parametrize("smoothing", ["witten-bell", "katz", "modified-kneser-ney", "stupid-backoff", "interpolated"])
def test_unseen_contexts_back_off(smoothing: str, text: Corpus) -> None:
    model = NgramModel.train(text, order=3, smoothing=smoothing)
    pairs = {
        (text.vocab.tokens[first], text.vocab.tokens[second])
        for first, second in ngram_words(count_ngrams(text, 2).trie, 2)
    }
    context = next(word for word in text.vocab.tokens[3:] if (word, "w59") not in pairs)
    usual = next(word for word in text.vocab.tokens[3:] if (word, "w59") in pairs)
    assert _probs(model, f"{context} w59") == _probs(model, "unheard w59")
    assert _probs(model, f"{usual} w59") != _probs(model, "unheard w59")
    assert _probs(model, "w0 unheard") == _probs(model, "w1 w2 unheard")  # after an unknown word, only unigrams
