"""Comparison of two systems: words by frequency, n-grams, word errors, examples, and reports."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.errors import DataError
from dragoman.evaluation.comparison import (
    Comparison,
    ComparisonInput,
    NgramDifference,
    WordErrorCounts,
    WordMatches,
    compare_systems,
    count_all_word_errors,
    count_word_errors,
    matches_by_frequency,
    ngram_differences,
    ngram_matches,
)
from dragoman.evaluation.translation_metrics import Bleu, score_translations
from dragoman.report.translators import comparison_text, lengths_section, significance_text

SENTENCE = st.lists(st.sampled_from("abcd"), max_size=7)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=5)
FEWER_EXAMPLES = settings(max_examples=50)


def split(*lines: str) -> list[list[str]]:
    return [line.split() for line in lines]


# -- words by frequency ----------------------------------------------------------------------------------------------


@FEWER_EXAMPLES
@given(PAIRS)
def test_buckets_add_up_to_all_words(pairs) -> None:
    hypotheses, references = zip(*pairs, strict=True)
    results = matches_by_frequency(hypotheses, references, {"a": 1, "b": 3, "c": 2000})
    total = sum((result.matches for result in results), WordMatches())
    assert total.predicted == sum(map(len, hypotheses))
    assert total.expected == sum(map(len, references))
    unigrams = sum(int(row[2]) for row in Bleu(tokenised=True).statistics(*_joined(pairs)).counts)
    assert total.correct == unigrams, "what BLEU counts as correct"


def _joined(pairs) -> tuple[list[str], list[str]]:
    hypotheses, references = zip(*pairs, strict=True)
    return list(map(" ".join, hypotheses)), list(map(" ".join, references))


def test_words_are_compared_within_their_sentence() -> None:
    results = matches_by_frequency(split("a b", "c"), split("a c", "b c"), {"a": 1, "b": 1, "c": 9}, edges=(5,))
    assert [result.matches for result in results] == [
        WordMatches(correct=1, predicted=2, expected=2),
        WordMatches(correct=1, predicted=1, expected=2),
    ]
    assert results[1].matches.precision == 1
    assert results[1].matches.recall == 0.5
    assert results[1].matches.f1 == pytest.approx(2 / 3)
    assert results[0].as_dict() | {"from": 0, "to": 4, "wanted": 2, "f1": 0.5} == results[0].as_dict()


def test_repeated_words_are_counted_as_often_as_in_the_reference() -> None:
    (result,) = matches_by_frequency(split("a a a"), split("a b"), {}, edges=())
    assert result.matches == WordMatches(correct=1, predicted=3, expected=2)


def test_rates_without_words_are_undefined() -> None:
    assert all(math.isnan(share) for share in (WordMatches().precision, WordMatches().recall, WordMatches().f1))
    (result,) = matches_by_frequency(split(""), split(""), {}, edges=())
    assert result.as_dict()["f1"] is None


# -- n-grams -------------------------------------------------------------------------------------------------------


@FEWER_EXAMPLES
@given(PAIRS)
def test_ngram_matches_equal_those_of_bleu(pairs) -> None:
    hypotheses, references = zip(*pairs, strict=True)
    matches = ngram_matches(hypotheses, references)
    by_order = Counter(dict.fromkeys((1, 2, 3, 4), 0))
    for ngram, count in matches.items():
        by_order[len(ngram)] += count
    total = Bleu(tokenised=True).statistics(*_joined(pairs)).total
    assert [by_order[n] for n in (1, 2, 3, 4)] == total[2:6].tolist()


@FEWER_EXAMPLES
@given(PAIRS, st.integers(0, 9))
def test_exchanging_the_systems_changes_the_sign(pairs, seed: int) -> None:
    first, references = zip(*pairs, strict=True)
    second = [Random(seed).sample(words, len(words)) for words in first]
    forward, backward = ngram_differences(first, second, references), ngram_differences(second, first, references)
    assert {(n.words, n.log_odds) for n in forward} == {(n.words, -n.log_odds) for n in backward}
    ranks = [ngram.log_odds / ngram.standard_error for ngram in forward]
    assert ranks == sorted(ranks, reverse=True)
    assert ngram_differences(first, first, references) == []


def test_systematic_differences_come_before_random_ones() -> None:
    """The second has `guy` for every `man`, and both have random errors."""
    rng = Random(1)
    references = [["the", rng.choice(["man", "dog", "cat"]), rng.choice("xyz")] for _ in range(60)]
    first, second = ([[w if rng.random() < 0.9 else "?" for w in line] for line in references] for _ in "12")
    second = [["guy" if word == "man" else word for word in line] for line in second]
    lost = ngram_differences(first, second, references)[-1]
    assert lost.words == ("man",)
    assert lost.second == 0 < lost.first <= lost.expected
    assert lost.log_odds < -3 * lost.standard_error


def test_parts_of_longer_ngrams_are_left_out() -> None:
    differences = ngram_differences(split("x x x x e", "e"), split("a b c d e", "x"), split("a b c d e", "e"))
    assert [(n.words, n.first, n.second) for n in differences if n.log_odds > 0] == [
        (("a", "b", "c", "d"), 0, 1),
        (("b", "c", "d", "e"), 0, 1),
    ]
    assert [(n.words, n.expected) for n in differences if n.log_odds < 0] == [(("e",), 2)]


def test_log_odds_are_smoothed() -> None:
    once, often = NgramDifference(("a",), 1, 0, 1), NgramDifference(("b",), 20, 0, 20)
    assert once.log_odds == pytest.approx(2 * math.log(2))
    assert often.log_odds == pytest.approx(2 * math.log(21))
    assert often.log_odds / often.standard_error > once.log_odds / once.standard_error


# -- repeated and missing words --------------------------------------------------------------------------------------


@FEWER_EXAMPLES
@given(PAIRS)
def test_word_errors_add_up(pairs) -> None:
    hypotheses, references = zip(*pairs, strict=True)
    whole = count_all_word_errors(hypotheses, references)
    assert whole == sum((count_word_errors(*pair) for pair in pairs), WordErrorCounts())
    assert whole.words - whole.extra == sum(map(len, references)) - whole.missing, "both are the matching words"


@pytest.mark.parametrize(
    ("hypothesis", "reference", "expected"),
    [
        ("a b c", "a b c", WordErrorCounts(3, 0, 0, 0, 0)),
        ("a a a b", "a b", WordErrorCounts(4, doubled=2, looped=0, missing=0, extra=2)),
        ("a b a b a b", "a b", WordErrorCounts(6, doubled=0, looped=2, missing=0, extra=4)),
        ("", "a b", WordErrorCounts(0, 0, 0, missing=2, extra=0)),
        ("", "", WordErrorCounts()),
        ("x", "a a", WordErrorCounts(1, 0, 0, missing=2, extra=1)),
    ],
)
def test_word_errors_of_a_sentence(hypothesis: str, reference: str, expected: WordErrorCounts) -> None:
    assert count_word_errors(hypothesis.split(), reference.split()) == expected


# -- comparison ------------------------------------------------------------------------------------------------------

SOURCES = ["eine katze saß auf der matte .", "ein hund rannte weg .", "niemand sah ihn | .", "ja , so war es wohl ."]
REFERENCES = ["a cat sat on the mat .", "a dog ran away .", "nobody saw him | .", "yes ."]
FIRST = ["a cat sat on the mat .", "a dog dog ran .", "no saw .", "yes ."]
SECOND = ["a cat on a mat .", "a dog ran away .", "nobody saw him | .", "yes ."]


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    texts = ComparisonInput(REFERENCES, FIRST, SECOND, ("old", "new"), SOURCES, ["a cat sat on a mat .", "a dog ."])
    return compare_systems(texts, tokenised=True, resamples=50)


def test_scores_are_those_of_each_system(comparison: Comparison) -> None:
    assert comparison.first.scores == score_translations(FIRST, REFERENCES, tokenised=True)
    assert comparison.second.scores == score_translations(SECOND, REFERENCES, tokenised=True)
    assert comparison.bleu.difference == comparison.second.scores.bleu - comparison.first.scores.bleu
    assert comparison.chrf.second == comparison.second.scores.chrf


def test_examples_have_the_largest_differences(comparison: Comparison) -> None:
    assert [example.line for example in comparison.better] == [3, 2]
    assert [example.line for example in comparison.worse] == [1]
    worst = comparison.worse[0]
    assert (worst.source, worst.reference, worst.first, worst.second) == (
        *(SOURCES[0], REFERENCES[0]),
        *(FIRST[0], SECOND[0]),
    )
    assert worst.first_bleu == pytest.approx(100)
    assert worst.difference < 0


def test_lengths_are_of_the_source_and_frequencies_of_training_text(comparison: Comparison) -> None:
    assert [(bucket.bucket.name, bucket.sentences) for bucket in comparison.first.by_length] == [
        ("up to 5", 2),
        ("6 to 10", 2),
    ]
    never = comparison.first.by_frequency[0]
    unseen = set(" ".join(REFERENCES).split()) - {"a", "cat", "sat", "on", "mat", ".", "dog"}
    assert never.matches.expected == sum(word in unseen for word in " ".join(REFERENCES).split())


def test_without_source_and_training_text_the_references_decide() -> None:
    comparison = compare_systems(ComparisonInput(REFERENCES, FIRST, SECOND), tokenised=True, resamples=5)
    assert not comparison.has_source and not comparison.has_training
    assert [bucket.sentences for bucket in comparison.first.by_length] == [3, 1]
    assert comparison.first.by_frequency[0].matches.expected == 0, "every word of the references is in the references"
    assert "Words by frequency in the references" in comparison_text(comparison)
    assert comparison.better[0].source is None


def test_the_numbers_of_ngrams_and_examples_are_limited() -> None:
    comparison = compare_systems(
        ComparisonInput(REFERENCES, FIRST, SECOND), tokenised=True, resamples=5, max_ngrams=1, max_examples=1
    )
    assert (len(comparison.gained), len(comparison.lost), len(comparison.better), len(comparison.worse)) == (1, 1, 1, 1)
    none = compare_systems(
        ComparisonInput(REFERENCES, FIRST, SECOND), tokenised=True, resamples=5, max_ngrams=0, max_examples=0
    )
    assert (none.gained, none.lost, none.better, none.worse) == ((), (), (), ())


def test_a_system_does_not_differ_from_itself() -> None:
    comparison = compare_systems(ComparisonInput(REFERENCES, FIRST, FIRST), tokenised=False, resamples=20)
    assert (comparison.gained, comparison.lost, comparison.better, comparison.worse) == ((), (), (), ())
    assert comparison.bleu.p_value == 1
    assert comparison_text(comparison).count("none") >= 4


def test_raw_text_is_tokenised_as_in_bleu() -> None:
    comparison = compare_systems(
        ComparisonInput(["Yes, he ran."], ["Yes he ran."], ["Yes, he ran."]), tokenised=False, resamples=5
    )
    assert comparison.first.word_errors == WordErrorCounts(words=4, missing=1)


@pytest.mark.parametrize(("first", "sources"), [(["a"], None), (["a", "b"], ["x"])])
def test_texts_of_different_length_are_rejected(first: list[str], sources: list[str] | None) -> None:
    with pytest.raises(DataError, match="1 translations for 2 references"):
        ComparisonInput(["a", "b"], first, ["a", "b"], sources=sources)


# -- tables ----------------------------------------------------------------------------------------------------------


def test_text_shows_every_part(comparison: Comparison) -> None:
    shown = comparison_text(comparison)
    for title in (
        "Scores of 4 sentences",
        "new compared with old",
        "By sentence length",
        "training text",
        "Repeated and missing",
    ):
        assert title in shown
    assert "BLEU|nrefs:1|case:mixed|eff:no|tok:none|" in shown
    assert "nobody saw him |" in shown
    assert "* fewer than" in shown
    assert max(len(line) for line in shown.splitlines()) <= 120


def test_markdown_has_as_many_cells_in_every_line_of_a_table(comparison: Comparison) -> None:
    shown = comparison_text(comparison, markdown=True)
    tables = [part.splitlines() for part in shown.split("\n\n") if part.startswith("| ")]
    assert len(tables) == 6 + bool(comparison.lost)
    for lines in tables:
        cells = {line.replace(r"\|", "").count("|") for line in lines}
        assert len(cells) == 1, lines
    assert r"nobody saw him \|" in shown
    assert "```\nline 3\n" in shown


def test_plain_values_are_json(comparison: Comparison) -> None:
    plain = json.loads(json.dumps(comparison.as_dict(), allow_nan=False))
    assert [system["name"] for system in plain["systems"]] == ["old", "new"]
    assert plain["systems"][0]["bleu"] == comparison.first.scores.bleu
    assert plain["paired_bootstrap"]["bleu"]["difference"] == comparison.bleu.difference
    assert plain["gained"][0]["words"] == " ".join(comparison.gained[0].words)
    assert plain["better"][0]["line"] == 3


def test_significance_is_described(comparison: Comparison) -> None:
    names = ("old", "new")
    assert "new is significantly better in BLEU" in significance_text(
        names, replace(comparison.bleu, p_value=0.01, first=1.0, second=2.0)
    )
    assert "old is significantly better in BLEU" in significance_text(
        names, replace(comparison.bleu, p_value=0.01, first=2.0, second=1.0)
    )
    assert "no significant difference" in significance_text(names, replace(comparison.bleu, p_value=0.2))


def test_lengths_of_any_number_of_systems_are_one_table(comparison: Comparison) -> None:
    lengths = dict.fromkeys(("a", "b", "c"), comparison.first.by_length)
    shown = lengths_section(lengths).as_text()
    assert "BLEU a" in shown and "BLEU c" in shown and "6 to 10" in shown
