"""The laws of search, over scorers of several sorts, with a source and without: greedy search and beams."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch

from dragoman.core.scorer import Scorer, fold
from dragoman.data.batches import Batch
from dragoman.data.vocabulary import END, START
from dragoman.search.beam import beam_search, greedy_search
from dragoman.search.diagnosis import force_decode
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.length import LengthHandling, LengthNormalization, LengthPrior, NoLengthHandling, WordPenalty
from toy_translator import SOURCES, ToyTranslator, source_of
from zoo import SEARCHED_MODELS, model

TOY = ToyTranslator()
PRIOR = LengthPrior.estimate([1, 2, 2, 3, 4, 4], [2, 2, 3, 4, 4, 6])
HANDLINGS: list[LengthHandling] = [NoLengthHandling(), LengthNormalization(), WordPenalty(0.7), WordPenalty(-0.7)]
BEAM_SORTS = [*SEARCHED_MODELS, "recurrent, LSTM", "feed-forward"]

# Every scorer with every length handling; the prior needs a source.
CASES = [
    *((name, handling) for name in BEAM_SORTS for handling in HANDLINGS),
    *(("toy translator", handling) for handling in (*HANDLINGS, PRIOR)),
]
every_case = pytest.mark.parametrize(("name", "length"), CASES, ids=lambda part: getattr(part, "name", part))


def search_with(
    name: str, search: Callable[..., list[list[Hypothesis]]] = beam_search, **options: Any
) -> list[tuple[Scorer, str | None, list[Hypothesis]]]:
    """The scorer, a source, and what a search finds for it, for each source."""
    scorer: Scorer = TOY
    sources: list[str | None] = list(SOURCES)
    batch = Batch.empty(len(SOURCES), source_of())
    if name != "toy translator":
        scorer, sources, batch = model(name), [None], Batch.empty(1)
    return [(scorer, source, best) for source, best in zip(sources, search(scorer, batch, **options), strict=True)]


def batch_for(sentences: list[tuple[int, ...]], source: str | None) -> Batch:
    return Batch.from_sentences(sentences, None if source is None else source_of([source] * len(sentences)))


def all_sentences(
    scorer: Scorer, source: str | None, longest: int, length: LengthHandling
) -> list[tuple[tuple[int, ...], float]]:
    """Every sentence up to a length that can be, with its score, the best first."""
    words = [word for word in range(len(scorer.vocab)) if word not in (START, END)]
    every = [sentence for size in range(longest + 1) for sentence in product(words, repeat=size)]
    scored = force_decode(scorer, batch_for(every, source), length=length)
    return sorted(
        ((hypothesis.ids, hypothesis.score) for hypothesis in scored if hypothesis.log_prob > -math.inf),
        key=lambda pair: -pair[1],
    )


@every_case
def test_greedy_search_is_a_beam_of_one(name: str, length: LengthHandling) -> None:
    """And takes the best word at every step."""
    beams = search_with(name, beam_size=1, length=length, max_words=12)
    greedy = search_with(name, greedy_search, length=length, max_words=12)
    assert [best for *_, best in greedy] == [best for *_, best in beams]
    for scorer, source, (hypothesis,) in beams:
        state = scorer.start(batch_for([()], source))
        for word in (*hypothesis.ids, *([END] if hypothesis.finished else [])):
            log_probs = scorer.log_probs(state)[0]
            assert log_probs[word] == log_probs.max()  # one of the best, where several tie
            state = scorer.advance(state, torch.tensor([word]))


@every_case
def test_a_wide_beam_is_exhaustive_search(name: str, length: LengthHandling) -> None:
    """Every sentence has a place in the beam, so the list is complete; equal scores may be in any order."""
    longest = 3 if name == "toy translator" else 2
    options = {"beam_size": 5000, "n_best": 5000, "length": length, "max_words": longest + 1}
    for scorer, source, best in search_with(name, **options):
        expected = all_sentences(scorer, source, longest, length)
        assert len(best) == len(expected)
        assert [hypothesis.score for hypothesis in best] == pytest.approx([score for _, score in expected], abs=1e-9)
        assert {hypothesis.ids for hypothesis in best} == {words for words, _ in expected}


@every_case
def test_a_wide_beam_finds_the_best_sentence(name: str, length: LengthHandling) -> None:
    """Also when it stops as soon as no better hypothesis is possible."""
    longest = 3 if name == "toy translator" else 2
    options = {"beam_size": 5000, "n_best": 2, "length": length, "max_words": longest + 1}
    for scorer, source, best in search_with(name, **options):
        expected = [score for _, score in all_sentences(scorer, source, longest, length)[:2]]
        assert [hypothesis.score for hypothesis in best] == pytest.approx(expected, abs=1e-9)


@every_case
@pytest.mark.parametrize("beam_size", [2, 5])
def test_n_best_lists_are_sorted_and_distinct(name: str, length: LengthHandling, beam_size: int) -> None:
    for max_words in (2, 15):
        options = {"beam_size": beam_size, "n_best": beam_size, "length": length, "max_words": max_words}
        for scorer, source, best in search_with(name, **options):
            assert 1 <= len(best) <= beam_size
            assert len({hypothesis.ids for hypothesis in best}) == len(best)
            assert [hypothesis.score for hypothesis in best] == sorted(
                (hypothesis.score for hypothesis in best), reverse=True
            )
            assert len({hypothesis.finished for hypothesis in best}) == 1
            for hypothesis in best:
                (same,) = force_decode(scorer, batch_for([hypothesis.ids], source), length=length)
                scored = fold(scorer, batch_for([hypothesis.ids], source))[0][0]
                if hypothesis.finished:
                    assert hypothesis.log_prob == pytest.approx(float(scored.sum()), abs=1e-9)
                    assert hypothesis.score == pytest.approx(same.score, abs=1e-9)
                else:
                    assert hypothesis.log_prob == pytest.approx(float(scored[:-1].sum()), abs=1e-9)
                    assert len(hypothesis.ids) == max_words


@pytest.mark.parametrize("name", BEAM_SORTS)
def test_rows_without_a_source_have_the_same_result(name: str) -> None:
    scorer = model(name)
    results = beam_search(scorer, Batch.empty(3), 4, 2, max_words=9)
    assert len(results) == 3 and len({tuple(hypothesis.ids for hypothesis in best) for best in results}) == 1
