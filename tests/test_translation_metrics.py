"""BLEU and chrF against sacreBLEU, and sums of their statistics."""

from __future__ import annotations

import math
import subprocess
import sys
from random import Random

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.errors import DataError
from dragoman.evaluation.translation_metrics import (
    FEW_SENTENCES,
    Bleu,
    Bucket,
    Chrf,
    bleu_by_length,
    bucket_indices,
    buckets,
    length_ratio,
    score_translations,
)

WORDS = ["the", "cat", "sat", "on", "a", "mat", ",", ".", "Dogs", "didn't", "run."]
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
PAIRS = st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=8)
TOKENISERS = {True: "none", False: "13a"}


def make_text(seed: int, sentences: int = 60) -> tuple[list[str], list[str]]:
    """References, and translations in which about two words in three are correct."""
    rng = Random(seed)
    references = [[rng.choice(WORDS) for _ in range(rng.randint(1, 20))] for _ in range(sentences)]
    hypotheses = [[word if rng.random() < 0.7 else rng.choice(WORDS) for word in words] for words in references]
    return [" ".join(words) for words in hypotheses], [" ".join(words) for words in references]


# -- agreement with sacreBLEU -----------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(PAIRS, st.booleans())
def test_scores_equal_those_of_sacrebleu(pairs: list[tuple[str, str]], tokenised: bool) -> None:
    hypotheses, references = map(list, zip(*pairs, strict=True))
    scores = score_translations(hypotheses, references, tokenised)
    expected = sacrebleu.corpus_bleu(hypotheses, [references], tokenize=TOKENISERS[tokenised], force=True)
    assert scores.bleu == pytest.approx(expected.score, abs=1e-9)
    assert scores.precisions == pytest.approx(expected.precisions)
    assert scores.brevity_penalty == pytest.approx(expected.bp)
    assert (scores.words, scores.reference_words) == (expected.sys_len, expected.ref_len)
    assert scores.chrf == pytest.approx(sacrebleu.corpus_chrf(hypotheses, [references]).score, abs=1e-9)


@given(SENTENCES, SENTENCES)
def test_sentence_scores_equal_those_of_sacrebleu(hypothesis: str, reference: str) -> None:
    statistics = Bleu(tokenised=True).statistics([hypothesis], [reference])
    expected = sacrebleu.sentence_bleu(hypothesis, [reference], tokenize="none").score
    assert Bleu(tokenised=True, sentence_level=True).scores(statistics.counts)[0] == pytest.approx(expected, abs=1e-9)


def test_signatures_name_the_tokeniser() -> None:
    for tokenised, name in TOKENISERS.items():
        scores = score_translations(["a"], ["a"], tokenised)
        assert f"|tok:{name}|" in scores.signature
        assert scores.signature.startswith("nrefs:1|")
        assert "|nc:6|nw:0|" in scores.chrf_signature


def test_only_raw_text_is_tokenised() -> None:
    raw = score_translations(["The cat sat, then ran."], ["The cat sat, then ran."], tokenised=False)
    assert raw.words == 7
    assert score_translations(["The cat sat, then ran."], ["The cat sat, then ran."], tokenised=True).words == 5
    assert raw.bleu == pytest.approx(100)


def test_tokenised_text_causes_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    score_translations(["the cat ."] * 200, ["the cat ."] * 200, tokenised=False)
    assert not caplog.records


# -- sums of statistics ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [Bleu(tokenised=True), Bleu(tokenised=False), Chrf()], ids=lambda m: m.signature)
def test_statistics_of_parts_add_up(metric) -> None:
    hypotheses, references = make_text(1)
    whole = metric.statistics(hypotheses, references)
    cut = 23
    parts = [metric.statistics(hypotheses[part], references[part]) for part in (slice(0, cut), slice(cut, None))]
    assert (sum(part.total for part in parts) == whole.total).all()
    assert metric.scores((parts[0].total + parts[1].total)[None])[0] == whole.score
    assert whole.select(np.arange(cut)).score == parts[0].score
    mask = np.arange(len(whole)) < cut
    assert (whole.select(mask).counts == parts[0].counts).all()


def test_the_order_of_sentences_does_not_matter() -> None:
    hypotheses, references = make_text(2)
    statistics = Bleu(tokenised=True).statistics(hypotheses, references)
    assert statistics.select(np.random.default_rng(1).permutation(len(statistics))).score == statistics.score
    assert Bleu(tokenised=True).statistics(hypotheses[::-1], references).score < statistics.score


# -- special cases -----------------------------------------------------------------------------------------------------------


def test_a_perfect_translation_has_the_highest_scores() -> None:
    _, references = make_text(3)
    scores = score_translations(references, references, tokenised=True)
    assert (scores.bleu, scores.chrf, scores.length_ratio) == (pytest.approx(100), pytest.approx(100), 1)
    assert (scores.sentences, scores.empty) == (60, 0)


def test_empty_translations_lower_the_scores() -> None:
    scores = score_translations(["a b c d e", "", "  "], ["a b c d e", "f", "g h"], tokenised=True)
    assert scores.empty == 2
    assert scores.length_ratio == 5 / 8
    assert scores.brevity_penalty == pytest.approx(math.exp(1 - 8 / 5))
    nothing = score_translations(["", ""], ["a b", "c"], tokenised=True)
    assert (nothing.bleu, nothing.chrf, nothing.length_ratio, nothing.empty) == (0, 0, 0, 2)


def test_the_length_ratio_of_empty_references_is_undefined() -> None:
    scores = score_translations(["a"], [""], tokenised=True)
    assert math.isnan(scores.length_ratio)
    assert scores.as_dict()["length_ratio"] is None
    assert scores.as_dict()["bleu"] == 0


def test_texts_of_different_length_are_rejected() -> None:
    with pytest.raises(DataError, match="2 translations for 3 references"):
        score_translations(["a", "b"], ["a", "b", "c"], tokenised=True)
    with pytest.raises(DataError, match="at least one line"):
        score_translations([], [], tokenised=True)


def test_sacrebleu_is_imported_lazily() -> None:
    script = "import sys, dragoman.evaluation.comparison, dragoman.cli.compare; print('sacrebleu' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout == "False\n"


# -- by length -------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 40), unique=True).map(sorted), st.lists(st.integers(0, 60)))
def test_each_number_is_in_one_bucket(edges: list[int], values: list[int]) -> None:
    for value, index in zip(values, bucket_indices(values, edges).tolist(), strict=True):
        matching = [
            number
            for number, bucket in enumerate(buckets(edges))
            if bucket.minimum <= value and (bucket.maximum is None or value <= bucket.maximum)
        ]
        assert matching == [index]


@pytest.mark.parametrize("edges", [(0, 5), (5, 5), (7, 3), (-1,)])
def test_edges_must_increase(edges: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="edges"):
        buckets(edges)


def test_buckets_are_scored_as_separate_texts() -> None:
    hypotheses, references = make_text(4)
    lengths = [len(line.split()) for line in references]
    results = bleu_by_length(Bleu(tokenised=True).statistics(hypotheses, references), lengths, (6, 11))
    assert [result.bucket for result in results] == [Bucket(0, 5), Bucket(6, 10), Bucket(11, None)]
    assert sum(result.sentences for result in results) == len(references)
    for result in results:
        lines = [
            n for n, length in enumerate(lengths) if result.bucket.minimum <= length <= (result.bucket.maximum or 99)
        ]
        scores = score_translations([hypotheses[n] for n in lines], [references[n] for n in lines], tokenised=True)
        assert (result.sentences, result.bleu, result.length_ratio) == (len(lines), scores.bleu, scores.length_ratio)
        assert result.is_small == (len(lines) < FEW_SENTENCES)


def test_empty_buckets_are_left_out() -> None:
    statistics = Bleu(tokenised=True).statistics(["a", "b"], ["a", "b"])
    results = bleu_by_length(statistics, [3, 50], (5, 10, 40))
    assert [(result.bucket.name, result.sentences, result.is_small) for result in results] == [
        ("up to 4", 1, True),
        ("40 and more", 1, True),
    ]
    assert length_ratio(statistics) == 1


def test_each_translation_needs_a_length() -> None:
    with pytest.raises(DataError, match="1 source lengths for 2 translations"):
        bleu_by_length(Bleu(tokenised=True).statistics(["a", "b"], ["a", "b"]), [3])
