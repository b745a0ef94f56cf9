"""The laws of sampling, over scorers of several sorts, with a source and without."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Corpus, DataError, NgramModel
from dragoman.core.scorer import fold
from dragoman.data.batches import Batch
from dragoman.data.vocabulary import END, UNK
from dragoman.models.language_model import LanguageModel
from dragoman.search.diagnosis import force_decode
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.sampling import sample, sample_translations, warp_log_probs
from toy_translator import SOURCES, ToyTranslator, source_of
from zoo import SEARCHED_MODELS, model

TOY = ToyTranslator()
CUTS: list[dict[str, Any]] = [
    {"top_k": 3},
    {"top_p": 0.7},
    {"temperature": 1.5, "top_k": 4, "top_p": 0.8},
    {"temperature": 0.7, "top_p": 0.9},
]

several_sorts = pytest.mark.parametrize("scorer", SEARCHED_MODELS, indirect=True)
several_cuts = pytest.mark.parametrize("cut", CUTS, ids=str)


@pytest.fixture
def scorer(request: pytest.FixtureRequest) -> LanguageModel:
    return model(request.param)


def next_probs(scorer: LanguageModel, prefix: tuple[int, ...] = ()) -> np.ndarray:
    state = scorer.start(Batch.empty(1))
    for word in prefix:
        state = scorer.advance(state, torch.tensor([word]))
    return scorer.log_probs(state)[0].exp().numpy()


def true_log_prob(scorer: LanguageModel, hypothesis: Hypothesis) -> float:
    """log P of a hypothesis by the fold; without its `</s>` if it was cut off."""
    steps = fold(scorer, Batch.from_sentences([hypothesis.ids]))[0][0]
    return float(steps.sum() if hypothesis.finished else steps[:-1].sum())


@several_sorts
def test_frequencies_match_probabilities(scorer: LanguageModel) -> None:
    """Of 3,000 samples, first words, and the words after the most frequent first word, come as often as they should."""
    drawn = sample(scorer, 3000, seed=1, batch_size=1000, max_words=3)
    firsts = Counter(hypothesis.ids[0] if hypothesis.ids else END for hypothesis in drawn)
    assert not too_far((firsts, next_probs(scorer)))
    ((most, _),) = firsts.most_common(1)
    seconds = Counter((*hypothesis.ids, END)[1] for hypothesis in drawn if hypothesis.ids[:1] == (most,))
    assert not too_far((seconds, next_probs(scorer, (most,))))


def chi_square(tally: Counter[int], probs: np.ndarray) -> tuple[float, int]:
    """Pearson's statistic and its degrees of freedom; outcomes expected less than five times are put together."""
    total = sum(tally.values())
    observed = np.array([tally.get(word, 0) for word in range(len(probs))], float)
    often = probs * total >= 5
    counts = np.append(observed[often], observed[~often].sum())
    expected = np.append(probs[often], probs[~often].sum()) * total
    if counts[expected == 0].any():
        return math.inf, 1  # what cannot happen happened
    counts, expected = counts[expected > 0], expected[expected > 0]
    return float(((counts - expected) ** 2 / expected).sum()), max(0, len(counts) - 1)


def too_far(*tallies: tuple[Counter[int], np.ndarray]) -> bool:
    """Chi-square of tallies, each with its probabilities, five standard deviations above its mean or more.

    It is summed over all of them: of many separate tallies, one would be far out by chance.
    """
    statistics, freedoms = zip(*(chi_square(tally, probs) for tally, probs in tallies), strict=True)
    return sum(statistics) > sum(freedoms) + 5 * math.sqrt(2 * sum(freedoms))


@several_sorts
def test_log_prob_is_that_of_the_sentence(scorer: LanguageModel) -> None:
    for temperature in (1.0, 0.5):
        for hypothesis in sample(scorer, 20, seed=2, temperature=temperature, max_words=6):
            assert hypothesis.log_prob == pytest.approx(true_log_prob(scorer, hypothesis), abs=1e-9)


@several_sorts
def test_a_sample_depends_only_on_its_number_and_the_seed(scorer: LanguageModel) -> None:
    many = sample(scorer, 30, seed=3, max_words=15)
    for fewer in (sample(scorer, 7, seed=3, max_words=15), sample(scorer, 30, seed=3, batch_size=4, max_words=15)):
        assert [(hypothesis.ids, hypothesis.finished) for hypothesis in fewer] == [
            (hypothesis.ids, hypothesis.finished) for hypothesis in many[: len(fewer)]
        ]
    assert [hypothesis.ids for hypothesis in many] != [
        hypothesis.ids for hypothesis in sample(scorer, 30, seed=4, max_words=15)
    ]


@several_sorts
def test_low_temperature_gives_greedy_samples(scorer: LanguageModel) -> None:
    for temperature in (1e-6, 1e-300, 5e-324):
        for hypothesis in sample(scorer, 3, seed=5, temperature=temperature, max_words=8):
            whole = (*hypothesis.ids, END) if hypothesis.finished else hypothesis.ids
            for place, word in enumerate(whole):
                probs = next_probs(scorer, whole[:place])
                assert probs[word] == pytest.approx(probs.max(), rel=1e-6)  # one of the best, where several tie


@several_sorts
def test_high_temperature_makes_possible_words_uniform(scorer: LanguageModel) -> None:
    possible = next_probs(scorer) > 0
    drawn = sample(scorer, 2000, seed=6, temperature=1e9, max_words=1, batch_size=2000)
    tally = Counter(hypothesis.ids[0] if hypothesis.ids else END for hypothesis in drawn)
    assert not too_far((tally, possible / possible.sum()))
    assert too_far((tally, next_probs(scorer)))


@several_sorts
def test_temperature_changes_the_score_but_not_the_log_prob(scorer: LanguageModel) -> None:
    (hypothesis,) = sample(scorer, 1, seed=7, temperature=2.0, max_words=1)
    tempered = next_probs(scorer) ** 0.5
    word = hypothesis.ids[0] if hypothesis.ids else END
    assert hypothesis.score == pytest.approx(math.log(tempered[word] / tempered.sum()), abs=1e-9)
    plain = sample(scorer, 5, seed=7, max_words=15)
    assert [hypothesis.score for hypothesis in plain] == pytest.approx(
        [hypothesis.log_prob for hypothesis in plain], abs=1e-5
    )


def test_samples_at_the_maximum_length_are_unfinished() -> None:
    talker = NgramModel.train(Corpus.from_sentences(["a " * 16]), order=1, smoothing="witten-bell")
    drawn = sample(talker, 50, seed=8, max_words=3)
    assert {hypothesis.finished for hypothesis in drawn} == {True, False}
    for hypothesis in drawn:
        assert len(hypothesis.ids) == 3 if not hypothesis.finished else len(hypothesis.ids) < 3
    whole = sample(talker, 50, seed=8)
    assert all(short.ids == full.ids[:3] for short, full in zip(drawn, whole, strict=True))


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_invalid_temperatures_are_refused(temperature: float) -> None:
    with pytest.raises(DataError, match="temperature"):
        sample(model(SEARCHED_MODELS[0]), 1, temperature=temperature)


def test_zero_samples() -> None:
    assert sample(model(SEARCHED_MODELS[0]), 0) == []


def test_sampled_text_consists_of_vocabulary_words() -> None:
    zebra = model(SEARCHED_MODELS[0])
    for text, hypothesis in zip(zebra.sample(10, seed=9, show_unknown=True), sample(zebra, 10, seed=9), strict=True):
        assert Corpus.from_sentences([text], zebra.vocab).ids.tolist() == list(hypothesis.ids)
    assert any(UNK in hypothesis.ids for hypothesis in sample(zebra, 100, seed=9))


# -- top-k and nucleus -----------------------------------------------------------------------------------------------


def warp_by_definition(probs: Any, temperature: float = 1.0, top_k: int | None = None, top_p: Any = 1) -> list[Any]:
    """One distribution after top-k and nucleus sampling, by definition: words in order of (probability, id)."""
    tempered = list(probs) if temperature == 1 else [p ** (1 / temperature) for p in probs]
    order = sorted(range(len(tempered)), key=lambda word: (-tempered[word], word))[:top_k]
    total = sum(tempered[word] for word in order)
    chosen, mass = set[int](), 0
    for word in order:
        if mass < top_p * total:
            chosen.add(word)
            mass += tempered[word]
    return [p / mass if word in chosen else 0 for word, p in enumerate(tempered)]


def steps(hypothesis: Hypothesis) -> list[tuple[tuple[int, ...], int]]:
    """Each word of a hypothesis, `</s>` too if it got there, after the words before it."""
    whole = (*hypothesis.ids, END) if hypothesis.finished else hypothesis.ids
    return [(whole[:place], word) for place, word in enumerate(whole)]


COUNTS = st.lists(st.integers(0, 6), min_size=1, max_size=12).filter(any)  # ties and words that cannot occur


@given(COUNTS, st.one_of(st.none(), st.integers(1, 14)), st.fractions(Fraction(1, 50), 1, max_denominator=60))
def test_top_k_and_top_p_follow_their_definition(counts: list[int], top_k: int | None, top_p: Fraction) -> None:
    """Also where a set reaches p exactly, and where the last selected word ties with the first that is not."""
    exact = [Fraction(count, sum(counts)) for count in counts]
    log_probs = torch.tensor([[float(p) for p in exact]], dtype=torch.float64).log()
    warped = warp_log_probs(log_probs, top_k=top_k, top_p=float(top_p))[0].exp().tolist()
    assert warped == pytest.approx([float(p) for p in warp_by_definition(exact, top_k=top_k, top_p=top_p)], abs=1e-12)


def test_of_equally_probable_words_the_first_are_kept() -> None:
    uniform = torch.full((2, 4), 0.25, dtype=torch.float64).log()
    half = [[0.5, 0.5, 0, 0]] * 2
    for cut in ({"top_k": 2}, {"top_p": 0.5}, {"top_p": 0.26}, {"top_k": 3, "top_p": 0.5}):
        assert warp_log_probs(uniform, **cut).exp().tolist() == [pytest.approx(row) for row in half], cut


def test_top_p_tolerates_rounding() -> None:
    """Of n equally probable words, k have the mass k/n, however their logarithms add up."""
    for n in range(1, 30):
        uniform = torch.full((1, n), 1 / n, dtype=torch.float64).log()
        assert [int(warp_log_probs(uniform, top_p=k / n).isfinite().sum()) for k in range(1, n + 1)] == list(
            range(1, n + 1)
        )


def test_top_p_of_one_keeps_every_word() -> None:
    """Also one that is so rare that the others have all of the mass except for rounding."""
    log_probs = torch.tensor([[0.0, -40.0, -50.0]], dtype=torch.float64).log_softmax(dim=1)
    assert warp_log_probs(log_probs, top_p=1.0).isfinite().all()
    assert warp_log_probs(log_probs, top_p=0.999).isfinite().tolist() == [[True, False, False]]


def test_the_most_probable_word_is_always_kept() -> None:
    log_probs = torch.tensor([[0.2, 0.5, 0.3]], dtype=torch.float64).log()
    for top_p in (1e-15, 5e-324):
        assert warp_log_probs(log_probs, top_p=top_p).exp().tolist() == [[0, 1, 0]]


@several_cuts
def test_rows_are_warped_independently(cut: dict[str, Any]) -> None:
    several = torch.stack([torch.linspace(0, slope, 9, dtype=torch.float64) for slope in (-4, 0, 9)]).log_softmax(dim=1)
    original = several.clone()
    separate = torch.cat([warp_log_probs(row[None], **cut) for row in several])
    assert torch.equal(warp_log_probs(several, **cut), separate)
    assert torch.equal(several, original)  # the model's distribution is unchanged


@several_sorts
@several_cuts
def test_frequencies_match_the_warped_probabilities(scorer: LanguageModel, cut: dict[str, Any]) -> None:
    drawn = sample(scorer, 2000, seed=11, batch_size=1000, max_words=2, **cut)
    firsts = Counter(hypothesis.ids[0] if hypothesis.ids else END for hypothesis in drawn)
    assert not too_far((firsts, np.array(warp_by_definition(next_probs(scorer), **cut))))
    ((most, _),) = firsts.most_common(1)
    seconds = Counter((*hypothesis.ids, END)[1] for hypothesis in drawn if hypothesis.ids[:1] == (most,))
    if most != END:
        assert not too_far((seconds, np.array(warp_by_definition(next_probs(scorer, (most,)), **cut))))


@several_sorts
@several_cuts
def test_score_is_the_log_prob_by_the_warped_distribution(scorer: LanguageModel, cut: dict[str, Any]) -> None:
    """So nothing that was cut off is ever drawn: its logarithm would be infinite."""
    for hypothesis in sample(scorer, 20, seed=12, max_words=6, **cut):
        probs = [warp_by_definition(next_probs(scorer, before), **cut)[word] for before, word in steps(hypothesis)]
        assert hypothesis.score == pytest.approx(sum(math.log(p) for p in probs), abs=1e-6)
        assert hypothesis.log_prob == pytest.approx(true_log_prob(scorer, hypothesis), abs=1e-9)


@several_sorts
def test_top_k_of_one_is_greedy(scorer: LanguageModel) -> None:
    for hypothesis in sample(scorer, 3, seed=13, top_k=1, max_words=8):
        assert hypothesis.score == 0.0
        assert [word for _, word in steps(hypothesis)] == [
            int(next_probs(scorer, before).argmax()) for before, _ in steps(hypothesis)
        ]


@several_sorts
def test_top_k_of_the_whole_vocabulary_changes_nothing(scorer: LanguageModel) -> None:
    plain = sample(scorer, 20, seed=14, temperature=1.3, max_words=10)
    for size in (len(scorer.vocab), 10**9):
        assert sample(scorer, 20, seed=14, temperature=1.3, max_words=10, top_k=size, top_p=1.0) == plain
    log_probs = scorer.log_probs(scorer.start(Batch.empty(2))).double()
    assert torch.equal(
        warp_log_probs(log_probs), (log_probs - log_probs.max(dim=1, keepdim=True).values).log_softmax(dim=1)
    )


@several_sorts
@several_cuts
def test_warped_samples_depend_only_on_their_number_and_the_seed(scorer: LanguageModel, cut: dict[str, Any]) -> None:
    many = sample(scorer, 12, seed=15, max_words=10, **cut)
    assert sample(scorer, 5, seed=15, max_words=10, **cut) == many[:5]
    assert sample(scorer, 12, seed=15, max_words=10, batch_size=1, **cut) == many


@pytest.mark.parametrize("cut", [{"top_k": 0}, {"top_k": -1}, *({"top_p": p} for p in (0.0, -0.1, 1.1, math.nan))])
def test_invalid_top_k_and_top_p_are_refused(cut: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=next(iter(cut))):
        sample(model(SEARCHED_MODELS[0]), 1, **cut)


# -- continuing a prefix ---------------------------------------------------------------------------------------------


@several_sorts
def test_samples_continue_a_prefix(scorer: LanguageModel) -> None:
    prefix = tuple(Corpus.from_sentences(["the dog"], scorer.vocab).ids.tolist())
    drawn = sample(scorer, 2000, seed=16, batch_size=1000, prefix=prefix, max_words=4)
    assert {hypothesis.ids[:2] for hypothesis in drawn} == {prefix}
    assert max(len(hypothesis.ids) for hypothesis in drawn) == 4
    thirds = Counter((*hypothesis.ids, END)[2] for hypothesis in drawn)
    assert not too_far((thirds, next_probs(scorer, prefix)))
    for hypothesis in drawn[:20]:
        assert hypothesis.log_prob == pytest.approx(true_log_prob(scorer, hypothesis), abs=1e-9)  # of all tokens
        given = sum(math.log(next_probs(scorer, prefix[:place])[word]) for place, word in enumerate(prefix))
        assert hypothesis.score == pytest.approx(hypothesis.log_prob - given, abs=1e-6)  # of what was drawn
    assert sample(scorer, 5, seed=16, prefix=prefix, max_words=4, batch_size=2) == drawn[:5]


def test_a_prefix_keeps_its_spelling_and_counts_towards_the_limit() -> None:
    zebra = model(SEARCHED_MODELS[0])
    drawn = zebra.sample(10, seed=17, prefix="the  zebra <s>", max_words=6)
    assert all(text.startswith("the zebra <s>") and len(text.split()) <= 6 for text in drawn)
    assert len(set(drawn)) > 1
    assert zebra.sample(10, seed=17, prefix="") == zebra.sample(10, seed=17)
    for longest in (2, 3):
        with pytest.raises(DataError, match="a prefix of 3 words"):
            zebra.sample(1, prefix="the zebra sees", max_words=longest)


# -- with a source -----------------------------------------------------------------------------------------------------


def given_source(sentence: str, prefix: tuple[int, ...] = ()) -> np.ndarray:
    """P(e | F, prefix) by the toy translator."""
    state = TOY.start(Batch.empty(1, source_of([sentence])))
    for word in prefix:
        state = TOY.advance(state, torch.tensor([word]))
    return TOY.log_probs(state)[0].exp().numpy()


def test_frequencies_match_probabilities_given_the_source() -> None:
    tallies = []
    together = sample_translations(TOY, source_of(), 700, seed=1, batch_size=1500, max_words=2)
    for sentence, drawn in zip(SOURCES, together, strict=True):
        assert len(drawn) == 700
        tallies.append((Counter((*hypothesis.ids, END)[0] for hypothesis in drawn), given_source(sentence)))
        for first in range(UNK + 1, len(TOY.vocab)):
            seconds = Counter((*hypothesis.ids, END)[1] for hypothesis in drawn if hypothesis.ids[:1] == (first,))
            tallies.append((seconds, given_source(sentence, (first,))))
    assert not too_far(*tallies)
    counts, probs = zip(*tallies, strict=True)
    step = len(tallies) // len(SOURCES)
    assert too_far(*zip(counts, (*probs[step:], *probs[:step]), strict=True))  # another sentence's distributions


def test_sampled_translations_have_scores_and_attention() -> None:
    limits = torch.tensor([1, 2, 3, 4, 50, 50, 50])
    for options in ({}, {"top_k": 2, "temperature": 1.5}):
        together = sample_translations(TOY, source_of(), 4, seed=2, max_words=limits, **options)
        for sentence, limit, drawn in zip(SOURCES, limits.tolist(), together, strict=True):
            for hypothesis in drawn:
                assert len(hypothesis.ids) < limit if hypothesis.finished else len(hypothesis.ids) == limit
                whole = Batch.from_sentences([hypothesis.ids], source_of([sentence]))
                steps = fold(TOY, whole)[0][0, : len(hypothesis.ids) + hypothesis.finished]
                assert hypothesis.log_prob == pytest.approx(float(steps.sum()), abs=1e-9)
                (same,) = force_decode(TOY, whole)
                assert hypothesis.attention is not None and same.attention is not None
                torch.testing.assert_close(hypothesis.attention, same.attention[: len(steps)], rtol=0, atol=1e-12)
                assert options or hypothesis.score == pytest.approx(hypothesis.log_prob, abs=1e-9)


def test_a_sampled_translation_depends_only_on_its_numbers_and_the_seed() -> None:
    """A sample depends on its number and its sentence, not on how many samples are drawn."""
    many = sample_translations(TOY, source_of(), 6, seed=3)
    words = [[hypothesis.ids for hypothesis in drawn] for drawn in many]
    assert len({tuple(drawn) for drawn in words}) == len(words)
    for fewer in (
        sample_translations(TOY, source_of(), 4, seed=3),
        sample_translations(TOY, source_of(), 6, seed=3, batch_size=1),
        sample_translations(TOY, source_of(), 6, seed=3, batch_size=5),
        sample_translations(TOY, source_of(SOURCES[:3]), 6, seed=3),
    ):
        assert [[hypothesis.ids for hypothesis in drawn] for drawn in fewer] == [
            drawn[: len(fewer[0])] for drawn in words[: len(fewer)]
        ]
    assert [
        [hypothesis.ids for hypothesis in drawn] for drawn in sample_translations(TOY, source_of(), 6, seed=4)
    ] != words


def test_zero_sampled_translations() -> None:
    assert sample_translations(TOY, source_of(), 0) == [[]] * len(SOURCES)
    assert sample_translations(TOY, source_of([]), 3) == []
