"""The laws of search, over scorers of several sorts: for now, of sampling."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch

from dragoman import Corpus, DataError, LanguageModel, NgramModel
from dragoman.scorer import fold
from dragoman.search import Hypothesis, sample
from dragoman.text.batches import Batch
from dragoman.text.vocab import END, UNK
from zoo import model

SORTS = ["modified-kneser-ney, order 3", "maximum-likelihood, order 2", "with a gap", "cache", "mixture"]

several_sorts = pytest.mark.parametrize("scorer", SORTS, indirect=True)


@pytest.fixture
def scorer(request: pytest.FixtureRequest) -> LanguageModel:
    return model(request.param)


def next_probs(scorer: LanguageModel, prefix: tuple[int, ...] = ()) -> np.ndarray:
    state = scorer.start(Batch.to_generate(1))
    for word in prefix:
        state = scorer.advance(state, torch.tensor([word]))
    return scorer.log_probs(state)[0].exp().numpy()


def rescored(scorer: LanguageModel, found: Hypothesis) -> float:
    """log P of a hypothesis by the fold; without its `</s>` if it was cut off."""
    steps = fold(scorer, Batch.of([found.words]))[0][0]
    return float(steps.sum() if found.finished else steps[:-1].sum())


@several_sorts
def test_frequencies_match_probabilities(scorer: LanguageModel) -> None:
    """Of 3,000 samples, first words, and the words after the most frequent first word, come as often as they should."""
    drawn = sample(scorer, 3000, seed=1, batch_size=1000, max_words=3)
    firsts = Counter(found.words[0] if found.words else END for found in drawn)
    assert not too_far(firsts, next_probs(scorer))
    ((most, _),) = firsts.most_common(1)
    seconds = Counter((*found.words, END)[1] for found in drawn if found.words[:1] == (most,))
    assert not too_far(seconds, next_probs(scorer, (most,)))


def too_far(tally: Counter[int], probs: np.ndarray) -> bool:
    """Pearson's chi-square, five standard deviations above its mean or more: never by chance, always by a mistake.

    Outcomes expected less than five times are put together.
    """
    total = sum(tally.values())
    observed = np.array([tally.get(word, 0) for word in range(len(probs))], float)
    often = probs * total >= 5
    seen = np.append(observed[often], observed[~often].sum())
    expected = np.append(probs[often], probs[~often].sum()) * total
    if seen[expected == 0].any():
        return True  # what cannot happen happened
    seen, expected = seen[expected > 0], expected[expected > 0]
    freedom = len(seen) - 1
    return float(((seen - expected) ** 2 / expected).sum()) > freedom + 5 * math.sqrt(2 * freedom)


@several_sorts
def test_log_prob_is_what_rescoring_gives(scorer: LanguageModel) -> None:
    for temperature in (1.0, 0.5):
        for found in sample(scorer, 20, seed=2, temperature=temperature, max_words=6):
            assert found.log_prob == pytest.approx(rescored(scorer, found), abs=1e-9)


@several_sorts
def test_sample_depends_on_its_number_and_the_seed_alone(scorer: LanguageModel) -> None:
    many = sample(scorer, 30, seed=3, max_words=15)
    for fewer in (sample(scorer, 7, seed=3, max_words=15), sample(scorer, 30, seed=3, batch_size=4, max_words=15)):
        assert [(found.words, found.finished) for found in fewer] == [
            (found.words, found.finished) for found in many[: len(fewer)]
        ]
    assert [found.words for found in many] != [found.words for found in sample(scorer, 30, seed=4, max_words=15)]


@several_sorts
def test_at_low_temperature_samples_are_greedy(scorer: LanguageModel) -> None:
    for temperature in (1e-6, 1e-300, 5e-324):
        for found in sample(scorer, 3, seed=5, temperature=temperature, max_words=8):
            whole = (*found.words, END) if found.finished else found.words
            for place, word in enumerate(whole):
                probs = next_probs(scorer, whole[:place])
                assert probs[word] == pytest.approx(probs.max(), rel=1e-6)  # one of the best, where several tie


@several_sorts
def test_at_high_temperature_possible_words_come_alike(scorer: LanguageModel) -> None:
    possible = next_probs(scorer) > 0
    drawn = sample(scorer, 2000, seed=6, temperature=1e9, max_words=1, batch_size=2000)
    tally = Counter(found.words[0] if found.words else END for found in drawn)
    assert not too_far(tally, possible / possible.sum())
    assert too_far(tally, next_probs(scorer))


@several_sorts
def test_temperature_shapes_the_score_not_the_log_prob(scorer: LanguageModel) -> None:
    (found,) = sample(scorer, 1, seed=7, temperature=2.0, max_words=1)
    tempered = next_probs(scorer) ** 0.5
    word = found.words[0] if found.words else END
    assert found.score == pytest.approx(math.log(tempered[word] / tempered.sum()), abs=1e-9)
    plain = sample(scorer, 5, seed=7, max_words=15)
    assert [found.score for found in plain] == pytest.approx([found.log_prob for found in plain], abs=1e-5)


def test_longest_length_is_kept_to_and_said() -> None:
    talker = NgramModel.train(Corpus.from_sentences(["a " * 16]), order=1, smoothing="witten-bell")
    drawn = sample(talker, 50, seed=8, max_words=3)
    assert {found.finished for found in drawn} == {True, False}
    for found in drawn:
        assert len(found.words) == 3 if not found.finished else len(found.words) < 3
    whole = sample(talker, 50, seed=8)
    assert all(short.words == full.words[:3] for short, full in zip(drawn, whole, strict=True))


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_bad_temperature_is_refused(temperature: float) -> None:
    with pytest.raises(DataError, match="temperature"):
        sample(model(SORTS[0]), 1, temperature=temperature)


def test_no_samples_are_no_samples() -> None:
    assert sample(model(SORTS[0]), 0) == []


def test_sampled_text_is_spelled_with_the_vocabulary() -> None:
    zebra = model(SORTS[0])
    for text, found in zip(zebra.sample(10, seed=9), sample(zebra, 10, seed=9), strict=True):
        assert Corpus.from_sentences([text], zebra.vocab).ids.tolist() == list(found.words)
    assert any(UNK in found.words for found in sample(zebra, 100, seed=9))
