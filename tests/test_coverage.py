"""The coverage penalty."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from command import is_one_line
from dragoman import DataError
from dragoman.data.batches import Batch
from dragoman.data.vocabulary import END, START, UNK
from dragoman.search.beam import beam_search
from dragoman.search.diagnosis import force_decode
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.length import LengthNormalization, NoLengthHandling, coverage_penalty
from small_translators import ENGLISH, GERMAN, place, translators
from toy_translator import SOURCES, ToyTranslator, source_of
from zoo import model

__all__ = ["place"]

TOY = ToyTranslator()
STRENGTH = 0.7
handlings = pytest.mark.parametrize(
    "length", [NoLengthHandling(), LengthNormalization()], ids=lambda length: length.name
)


def penalty(hypothesis: Hypothesis, source_words: int) -> float:
    """By definition: over the source words without `</s>`."""
    assert hypothesis.attention is not None
    coverage = hypothesis.attention.sum(dim=0).tolist()[:source_words]
    return STRENGTH * sum(math.log(min(max(weight, 1e-6), 1.0)) for weight in coverage)


def searched(**options: Any) -> list[list[Hypothesis]]:
    return beam_search(TOY, Batch.empty(len(SOURCES), source_of()), **options)


@handlings
def test_scores_include_the_penalty(length: Any) -> None:
    for source, best in zip(SOURCES, searched(beam_size=4, n_best=4, length=length, coverage=STRENGTH), strict=True):
        words = len(source.split())
        assert [hypothesis.score for hypothesis in best] == sorted(
            (hypothesis.score for hypothesis in best), reverse=True
        )
        for hypothesis in best:
            plain = length.score(torch.tensor([hypothesis.log_prob]), torch.tensor([len(hypothesis.ids)]), None)
            assert hypothesis.finished and hypothesis.score == pytest.approx(
                float(plain) + penalty(hypothesis, words), abs=1e-6
            )
            (same,) = force_decode(
                TOY, Batch.from_sentences([hypothesis.ids], source_of([source])), length=length, coverage=STRENGTH
            )
            assert same.score == pytest.approx(hypothesis.score, abs=1e-9)


@handlings
@pytest.mark.parametrize("n_best", [2, 5000])
def test_a_wide_beam_is_exhaustive_search(length: Any, n_best: int) -> None:
    """With and without early stopping: the penalty is never above 0."""
    words = [word for word in range(len(TOY.vocab)) if word not in (START, END, UNK)]
    every = [sentence for size in range(4) for sentence in product(words, repeat=size)]
    lists = searched(beam_size=5000, n_best=n_best, length=length, coverage=STRENGTH, max_words=4)
    for source, best in zip(SOURCES, lists, strict=True):
        batch = Batch.from_sentences(every, source_of([source] * len(every)))
        scored = force_decode(TOY, batch, length=length, coverage=STRENGTH)
        expected = sorted((hypothesis.score for hypothesis in scored), reverse=True)[:n_best]
        assert [hypothesis.score for hypothesis in best] == pytest.approx(expected, abs=1e-9)


def test_results_do_not_depend_on_the_batch() -> None:
    together = searched(beam_size=3, coverage=STRENGTH)
    for source, (best, *_) in zip(SOURCES, together, strict=True):
        ((single,),) = beam_search(TOY, Batch.empty(1, source_of([source])), 3, coverage=STRENGTH)
        assert single.ids == best.ids and single.score == pytest.approx(best.score, abs=1e-9)


def test_a_strength_of_zero_changes_nothing() -> None:
    assert searched(beam_size=3, coverage=0.0) == searched(beam_size=3)
    assert coverage_penalty(torch.ones(2, 3), torch.tensor([3, 1]), 5.0).tolist() == [0.0, 0.0]


def test_the_penalty_increases_coverage() -> None:
    plain, covering = (searched(beam_size=8, coverage=strength) for strength in (0.0, 3.0))
    assert plain != covering
    penalties = [
        sum(penalty(best[0], len(source.split())) for source, best in zip(SOURCES, lists, strict=True))
        for lists in (plain, covering)
    ]
    assert penalties[1] > penalties[0]


def test_invalid_uses_are_refused() -> None:
    with pytest.raises(DataError, match="has none"):
        language = model("modified-kneser-ney, order 3")
        beam_search(language, Batch.empty(1, source_of(["x"])), coverage=1.0)
    with pytest.raises(DataError, match="requires a source"):
        beam_search(model("modified-kneser-ney, order 3"), Batch.empty(1), coverage=1.0)
    with pytest.raises(DataError, match=r"got -1\.0"):
        searched(coverage=-1.0)


def test_the_command_line_option(good: Any, run: Any, place: Path) -> None:
    text = ("--src", place / "test.de", "--ref", place / "test.en")
    report = json.loads(good("evaluate", place / "two", *text, "--coverage-penalty", "0.3", "--diagnose", "--json").out)
    assert report["coverage_penalty"] == 0.3 and sum(report["errors"].values()) == len(GERMAN)
    translations = translators()["two"].translate(GERMAN, coverage=0.3)
    shown = good("translate", place / "two", "--coverage-penalty", "0.3", "--json", stdin=f"{GERMAN[0]}\n")
    assert json.loads(shown.lines[0])["score"] == pytest.approx(translations[0].score, abs=1e-6)
    assert "coverage penalty 0.3" in good("evaluate", place / "one", *text, "--coverage-penalty", "0.3").out
    for name, options in (("plain", []), ("one", ["--sample", "1"])):
        refused = run("translate", place / name, "--coverage-penalty", "1", *options, stdin="der hund\n")
        assert refused.code == 2 and is_one_line(refused.err)
    assert [translation.text for translation in translators()["one"].translate(GERMAN, coverage=0.1)] == ENGLISH
