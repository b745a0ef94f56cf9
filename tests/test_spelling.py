"""The spelling model of unknown words is a distribution over spellings outside the vocabulary."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

import dragoman
from dragoman import Corpus, DataError, Mixture, NgramModel
from dragoman.data.unknown_words import ClosedVocabulary, UniformUnknownWords
from dragoman.ngram.spelling import (
    NUM_CODE_POINTS,
    SpellingModel,
    _as_characters,
    _log_probs,
    create_unknown_word_model,
)

LONGEST = 7


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.from_sentences(["ab ba ab", "a bab", "abba ab a"], min_count=2)


@pytest.fixture(scope="module")
def model(corpus: Corpus) -> SpellingModel:
    return SpellingModel.train(corpus, order=3)


def test_all_spellings_outside_the_vocabulary_sum_to_one(model: SpellingModel, corpus: Corpus) -> None:
    """All strings of up to seven characters, `?` for any character never seen, and the mass of longer ones."""
    assert model.vocab.tokens[3:] == ("ab", "a")
    unseen = NUM_CODE_POINTS - 2
    strings = ["".join(letters) for n in range(LONGEST + 1) for letters in itertools.product("ab?", repeat=n)]
    probs = np.exp(model.log_probs(strings)) * [float(unseen) ** string.count("?") for string in strings]
    longest = _as_characters([string for string in strings if len(string) == LONGEST], model.characters.vocab)
    assert isinstance(model.characters, NgramModel)
    tokens = model.characters.token_log_probs(longest).reshape(-1, LONGEST + 1)
    prefix, ended = np.exp(tokens[:, :LONGEST].sum(axis=1)), np.exp(tokens[:, LONGEST])
    longer = (prefix * (1 - ended)).sum() / math.exp(model.log_outside)
    assert 0.0 < longer < 0.5
    assert probs.sum() + longer == pytest.approx(1.0, abs=1e-5)


def test_spellings_of_known_words_have_probability_zero(model: SpellingModel) -> None:
    assert model.log_probs(["ab", "a", "", "<unk>"]) == [-math.inf] * 4
    assert all(math.isfinite(cost) for cost in model.log_probs(["ba", "<s>", "</s>", "abababababab"]))


def test_normaliser_is_the_mass_outside_the_vocabulary(model: SpellingModel) -> None:
    inside = np.exp(_log_probs(model.characters, ["", "ab", "a", "<unk>"])).sum()
    assert math.exp(model.log_outside) == pytest.approx(1 - inside)
    assert 0.1 < inside < 0.9


def test_likely_spellings_cost_less(model: SpellingModel) -> None:
    likely, unlikely, foreign = model.log_probs(["bab", "bbb", "bxb"])
    assert likely > unlikely > foreign
    assert foreign < unlikely - math.log(NUM_CODE_POINTS) + math.log(100)  # any of a million characters


def test_learns_from_words_outside_the_vocabulary() -> None:
    corpus = Corpus.from_sentences(["the the the xyzzy"], min_count=2)
    assert corpus.spellings == ("xyzzy",)
    trained = SpellingModel.train(corpus)
    assert trained.log_probs(["xyzz"])[0] > trained.log_probs(["qqqq"])[0] + 10


def test_unusual_characters_are_supported() -> None:
    """No-break space, carriage return, NUL and signs beyond the first plane stand in words like letters."""
    unusual = ["a\u00a0b", "c\rd", "e\u2028", "f\r", "\U0001f600\U0001f600", "g\0"]
    corpus = Corpus.from_sentences([" ".join(unusual) + " end"])
    assert [word for word in unusual if corpus.vocab.id(word) > 2] == unusual
    model = SpellingModel.train(corpus, order=2)
    assert {"\u00a0", "\r", "\u2028", "\U0001f600", "\0"} < set(model.characters.vocab.tokens)
    assert np.isfinite(model.log_probs(["a\r", "\U0001f600", "g\u00a0", "\U0001f601"])).all()


def test_empty_list_of_spellings(model: SpellingModel) -> None:
    assert model.log_probs([]) == []


def test_spelling_model_is_saved_with_the_model(corpus: Corpus, tmp_path: Path) -> None:
    model = NgramModel.train(corpus, order=2, smoothing="witten-bell", unknown=SpellingModel.train(corpus))
    model.save(tmp_path / "m")
    again = dragoman.load(tmp_path / "m")
    assert again.unknown.config() == model.unknown.config()
    assert again.unknown.language_size == 10_000_000
    assert again.score(["ab bbb zzz", "<unk> a"]) == model.score(["ab bbb zzz", "<unk> a"])
    known, unknown = model.score_words(["ab bbb"])[0][:2]
    assert known.log_prob_unknown == 0.0
    assert unknown.log_prob_unknown == model.unknown.log_probs(["bbb"])[0]


def test_mixtures_need_one_spelling_model(corpus: Corpus) -> None:
    unknown = [SpellingModel.train(corpus, order=order) for order in (2, 3)]
    models = [NgramModel.train(corpus, order=1, smoothing="witten-bell", unknown=spelling) for spelling in unknown]
    with pytest.raises(DataError, match="have different unknown-word models"):
        Mixture(models)
    assert Mixture([models[0], models[0]]).score(["bbb"]) == pytest.approx(models[0].score(["bbb"]))


def test_create_unknown_word_model(corpus: Corpus) -> None:
    assert create_unknown_word_model("none", corpus) == ClosedVocabulary(corpus.vocab.num_known)
    assert create_unknown_word_model("uniform", corpus, language_size=500) == UniformUnknownWords(
        corpus.vocab.num_known, 500
    )
    assert isinstance(create_unknown_word_model("characters", corpus), SpellingModel)
    with pytest.raises(
        DataError, match=r"unknown-word model 'letters' does not exist; choose none, uniform, characters"
    ):
        create_unknown_word_model("letters", corpus)
