"""Minimal pairs of the lab."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache

import numpy as np
import pytest

from dragoman.lab.grammar import LANGUAGES
from dragoman.lab.inside import MonolingualGrammar, inside_log_probs_with_spelling
from dragoman.lab.lab import german_english_lab
from dragoman.lab.minimal_pairs import (
    DISTANCE_CLASSES,
    PHENOMENA,
    MinimalPair,
    distance_class,
    sample_minimal_pairs,
)


@cache
def all_minimal_pairs(language: str) -> list[MinimalPair]:
    return sample_minimal_pairs(language, count=40)


@pytest.mark.parametrize("language", LANGUAGES)
def test_right_sentences_are_more_probable_than_wrong_ones(language):
    pairs = all_minimal_pairs(language)
    grammar = MonolingualGrammar.project(german_english_lab().grammar, LANGUAGES[language])
    right, wrong = (
        inside_log_probs_with_spelling(grammar, [getattr(pair, which) for pair in pairs])
        for which in ("right", "wrong")
    )
    assert np.isfinite(right).all()
    assert (right > wrong + 1).all()
    possible = {pair.phenomenon for pair, log_prob in zip(pairs, wrong, strict=True) if np.isfinite(log_prob)}
    assert possible == {"selection"}, "only a preference leaves the wrong sentence possible"


@pytest.mark.parametrize("language", LANGUAGES)
def test_minimal_pairs_differ_in_at_most_two_words(language):
    for pair in all_minimal_pairs(language):
        right, wrong = pair.right.split(), pair.wrong.split()
        assert len(right) == len(wrong)
        assert right != wrong
        if pair.phenomenon in ("verb-final", "inversion"):
            assert Counter(right) == Counter(wrong)
        else:
            assert sum(a != b for a, b in zip(right, wrong, strict=True)) <= 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_phenomenon_has_minimal_pairs_with_long_distances(language):
    pairs = all_minimal_pairs(language)
    by_phenomenon = defaultdict(Counter)
    for pair in pairs:
        by_phenomenon[pair.phenomenon][distance_class(pair.distance)] += 1
    assert set(by_phenomenon) == set(PHENOMENA[language])
    for phenomenon in {"agreement", "reflexive", "selection", "register"} & set(by_phenomenon):
        assert by_phenomenon[phenomenon][DISTANCE_CLASSES[3]] >= 10, phenomenon


@pytest.mark.parametrize("language", LANGUAGES)
def test_crossed_minimal_pairs_are_groups_of_four(language):
    groups = defaultdict(list)
    for pair in all_minimal_pairs(language):
        if pair.phenomenon == "selection":
            groups[pair.group].append(pair)
    assert len(groups) > 5
    for group in groups.values():
        assert len(group) == 4
        last = Counter(pair.right.split()[place] for pair in group for place in differing(pair)[-1:])
        assert sorted(last.values()) == [2, 2], "each object is right twice"


def differing(pair: MinimalPair) -> list[int]:
    pairs = zip(pair.right.split(), pair.wrong.split(), strict=True)
    return [place for place, (right, wrong) in enumerate(pairs) if right != wrong]


def test_same_seed_gives_same_minimal_pairs():
    assert sample_minimal_pairs("en", count=3, seed=2) == sample_minimal_pairs("en", count=3, seed=2)
    assert sample_minimal_pairs("en", count=3, seed=2) != sample_minimal_pairs("en", count=3, seed=3)
