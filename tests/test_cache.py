"""The cache model: its probabilities equal a slow computation of the formula."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import dragoman
from dragoman import Corpus, DataError, Mixture
from dragoman.data.vocabulary import END, START, UNK
from dragoman.evaluation.likelihood import folded_log_probs, token_log_probs
from dragoman.io.storage import write_arrays
from dragoman.models.cache import MIN_WEIGHT, CacheModel
from zoo import HELD_OUT, LANGUAGE, TRAINING, model


def by_definition(cache: CacheModel, history: list[int], word: int) -> float:
    """P(word | history) from the docstring's formula."""
    now = len(history)
    held = [place for place in range(now) if now - place <= cache.size]
    prob = float(cache.unigram[word])
    for context in range(cache.order):
        fits = [
            place
            for place in held
            if place - context >= held[0] and history[place - context : place] == history[now - context :]
        ]
        weight = {place: cache.decay ** (now - place) for place in fits}
        hits = math.fsum(weight[place] for place in fits if history[place] == word)
        prob = (hits + cache.prior * prob) / (math.fsum(weight.values()) + cache.prior)
    return prob


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("decay", [0.5, 0.9, 0.994])
def test_probabilities_follow_the_formula(training: Corpus, order: int, decay: float) -> None:
    cache = CacheModel.train(training, order=order, decay=decay, prior=0.7)
    tokens = training.ids_with_boundaries(starts=0).tolist()
    expected = [math.log(by_definition(cache, tokens[:place], word)) for place, word in enumerate(tokens)]
    np.testing.assert_allclose(token_log_probs(cache, training), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(folded_log_probs(cache, training), expected, rtol=0, atol=1e-10)


def test_empty_history_is_the_smoothed_unigram_distribution(training: Corpus) -> None:
    cache = CacheModel.train(training)
    assert cache.unigram[START] == 0
    assert (cache.unigram[END:] > 0).all()
    assert cache.unigram.sum() == pytest.approx(1)
    ends, cats = training.num_sentences + 1, int((training.ids == LANGUAGE.id("cat")).sum()) + 1
    assert cache.unigram[END] / cache.unigram[LANGUAGE.id("cat")] == pytest.approx(ends / cats)
    first = dict(cache.next_words("", k=None))
    assert [first[word] for word in LANGUAGE.tokens] == pytest.approx(cache.unigram.tolist())


def test_unseen_words_are_possible() -> None:
    cache = CacheModel.train(Corpus.from_sentences(["a"], Corpus.from_sentences(["a b"]).vocab))
    assert dict(cache.next_words("", k=None))["b"] > 0
    assert dict(cache.next_words("", k=None))["<unk>"] > 0


def test_the_history_continues_across_sentences_and_decays(training: Corpus) -> None:
    cache = CacheModel.train(training, order=1, decay=0.9, prior=1.0)
    filler = ["yes ! yes !"] * 5
    once, soon, *_, late = (words[0].log_prob for words in cache.score_words(["bird", "bird", *filler, "bird"]))
    *_, never = (words[0].log_prob for words in cache.score_words(["yes", "yes", *filler, "bird"]))
    assert soon > once
    assert soon > late > never


def test_the_cache_has_a_limited_size(training: Corpus) -> None:
    cache = CacheModel.train(training, order=1, decay=0.5, prior=1.0)
    assert cache.decay**cache.size <= MIN_WEIGHT < cache.decay ** (cache.size - 1)
    away = cache.size - 1  # words between the two, so that the first is the last that is held
    held, forgotten = (
        cache.score_words(" ".join(["bird", *["yes"] * between, "bird"]))[0][-2].log_prob
        for between in (away, away + 1)
    )
    assert held > forgotten
    never = cache.score_words(" ".join(["yes"] * (away + 2) + ["bird"]))[0][-2].log_prob
    assert forgotten == pytest.approx(never, abs=1e-12)


def test_repeated_bigrams_are_expected() -> None:
    """From order 2 on, what followed a word before is expected after it again."""
    text = Corpus.from_sentences(["a b", "c d"])
    single, pairs = (CacheModel.train(text, order=order, prior=0.5) for order in (1, 2))
    for cache, expects in ((single, False), (pairs, True)):
        after = dict(cache.next_words("a b c d a", k=None))
        assert (after["b"] > after["d"]) is expects


def test_it_improves_a_mixture_on_repetitive_text() -> None:
    general = model("witten-bell, order 2")
    cache = CacheModel.train(Corpus.from_sentences(TRAINING, LANGUAGE))
    document = Corpus.from_sentences(["old old bird", "a bird bird", "old old bird !"] * 4, LANGUAGE)
    both = Mixture.fit([general, cache], document)
    assert both.weights[1] > 0.2
    assert token_log_probs(both, document).sum() > token_log_probs(general, document).sum() + 10


def test_all_unknown_words_are_one_word(training: Corpus) -> None:
    cache = CacheModel.train(training, order=1)
    assert cache.score_words("unicorn")[0][0].log_prob == pytest.approx(math.log(cache.unigram[UNK]))
    (other,) = cache.score_words("unicorn phoenix")
    (same,) = cache.score_words("unicorn unicorn")
    assert [word.log_prob for word in other] == [word.log_prob for word in same]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"decay": 0.0}, "decay 0.0: must be above 0"),
        ({"decay": 1.0}, "decay 1.0: must be below 1"),
        ({"decay": math.nan}, "decay nan: must be a finite number"),
        ({"prior": 0.0}, "prior 0.0: must be at least 1e-06"),
        ({"prior": math.inf}, "prior inf: must be a finite number"),
        ({"order": 0}, "order 0: must be at least 1"),
    ],
)
def test_invalid_settings_are_refused(training: Corpus, settings: dict[str, float], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        CacheModel.train(training, **settings)


def test_broken_directories_are_refused(training: Corpus, tmp_path: Path) -> None:
    CacheModel.train(training).save(tmp_path / "cache")
    write_arrays(tmp_path / "cache" / "model.safetensors", {"unigram": np.ones(3)})
    with pytest.raises(DataError, match="do not match"):
        dragoman.load(tmp_path / "cache")
    (tmp_path / "cache" / "model.safetensors").unlink()
    with pytest.raises(DataError, match="cache"):
        dragoman.load(tmp_path / "cache")


def test_settings_are_saved(training: Corpus, tmp_path: Path) -> None:
    CacheModel.train(training, decay=0.7, prior=1.25, order=2).save(tmp_path / "cache")
    loaded = dragoman.load(tmp_path / "cache")
    assert isinstance(loaded, CacheModel)
    assert (loaded.decay, loaded.prior, loaded.order) == (0.7, 1.25, 2)
    assert loaded.score(HELD_OUT) == CacheModel.train(training, decay=0.7, prior=1.25, order=2).score(HELD_OUT)
