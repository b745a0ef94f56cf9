"""BLEU and chrF: what sacreBLEU says, from statistics that add up."""

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
    Bucket,
    bleu,
    bleu_by_length,
    bucket_indices,
    buckets,
    by_length,
    chrf,
    length_ratio,
    score_translations,
    word_counts,
)

WORDS = ["the", "cat", "sat", "on", "a", "mat", ",", ".", "Dogs", "didn't", "run."]
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
PAIRS = st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=8)
TOKENISERS = {True: "none", False: "13a"}


def some_text(seed: int, sentences: int = 60) -> tuple[list[str], list[str]]:
    """References, and translations that get about two words in three right."""
    rng = Random(seed)
    references = [[rng.choice(WORDS) for _ in range(rng.randint(1, 20))] for _ in range(sentences)]
    hypotheses = [[word if rng.random() < 0.7 else rng.choice(WORDS) for word in words] for words in references]
    return [" ".join(words) for words in hypotheses], [" ".join(words) for words in references]


# -- sacreBLEU says the same -----------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(PAIRS, st.booleans())
def test_scores_are_those_of_sacrebleu(pairs: list[tuple[str, str]], tokenised: bool) -> None:
    hypotheses, references = map(list, zip(*pairs, strict=True))
    judged = score_translations(hypotheses, references, tokenised)
    expected = sacrebleu.corpus_bleu(hypotheses, [references], tokenize=TOKENISERS[tokenised], force=True)
    assert judged.bleu == pytest.approx(expected.score, abs=1e-9)
    assert judged.precisions == pytest.approx(expected.precisions)
    assert judged.brevity_penalty == pytest.approx(expected.bp)
    assert (judged.words, judged.reference_words) == (expected.sys_len, expected.ref_len)
    assert judged.chrf == pytest.approx(sacrebleu.corpus_chrf(hypotheses, [references]).score, abs=1e-9)


@given(SENTENCES, SENTENCES)
def test_single_sentences_are_scored_as_sacrebleu_does(hypothesis: str, reference: str) -> None:
    statistics = bleu(tokenised=True).statistics([hypothesis], [reference])
    expected = sacrebleu.sentence_bleu(hypothesis, [reference], tokenize="none").score
    assert statistics.sentence_scores(bleu(tokenised=True, sentences=True))[0] == pytest.approx(expected, abs=1e-9)


def test_signatures_name_the_tokeniser() -> None:
    for tokenised, name in TOKENISERS.items():
        judged = score_translations(["a"], ["a"], tokenised)
        assert f"|tok:{name}|" in judged.signature
        assert judged.signature.startswith("nrefs:1|")
        assert "|nc:6|nw:0|" in judged.chrf_signature


def test_raw_text_is_split_and_tokenised_text_is_not() -> None:
    raw = score_translations(["The cat sat, then ran."], ["The cat sat, then ran."], tokenised=False)
    assert raw.words == 7
    assert score_translations(["The cat sat, then ran."], ["The cat sat, then ran."], tokenised=True).words == 5
    assert raw.bleu == pytest.approx(100)


def test_hundreds_of_tokenised_lines_bring_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    score_translations(["the cat ."] * 200, ["the cat ."] * 200, tokenised=False)
    assert not caplog.records


# -- numbers that add up ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [bleu(tokenised=True), bleu(tokenised=False), chrf()], ids=lambda m: m.signature)
def test_statistics_of_parts_add_up_to_the_whole(metric) -> None:
    hypotheses, references = some_text(1)
    whole = metric.statistics(hypotheses, references)
    cut = 23
    parts = [metric.statistics(hypotheses[some], references[some]) for some in (slice(0, cut), slice(cut, None))]
    assert (sum(part.total for part in parts) == whole.total).all()
    assert metric.score(parts[0].total + parts[1].total) == whole.score
    assert whole.select(np.arange(cut)).score == parts[0].score
    mask = np.arange(len(whole)) < cut
    assert (whole.select(mask).counts == parts[0].counts).all()


def test_order_does_not_matter_and_translations_do() -> None:
    hypotheses, references = some_text(2)
    statistics = bleu(tokenised=True).statistics(hypotheses, references)
    assert statistics.select(np.random.default_rng(1).permutation(len(statistics))).score == statistics.score
    assert bleu(tokenised=True).statistics(hypotheses[::-1], references).score < statistics.score


# -- edges -----------------------------------------------------------------------------------------------------------


def test_a_perfect_translation_has_100_and_a_ratio_of_1() -> None:
    _, references = some_text(3)
    judged = score_translations(references, references, tokenised=True)
    assert (judged.bleu, judged.chrf, judged.length_ratio) == (pytest.approx(100), pytest.approx(100), 1)
    assert (judged.sentences, judged.empty) == (60, 0)


def test_empty_translations_are_counted_and_cost() -> None:
    judged = score_translations(["a b c d e", "", "  "], ["a b c d e", "f", "g h"], tokenised=True)
    assert judged.empty == 2
    assert judged.length_ratio == 5 / 8
    assert judged.brevity_penalty == pytest.approx(math.exp(1 - 8 / 5))
    nothing = score_translations(["", ""], ["a b", "c"], tokenised=True)
    assert (nothing.bleu, nothing.chrf, nothing.length_ratio, nothing.empty) == (0, 0, 0, 2)


def test_references_without_words_have_no_ratio() -> None:
    judged = score_translations(["a"], [""], tokenised=True)
    assert math.isnan(judged.length_ratio)
    assert judged.as_dict()["length_ratio"] is None
    assert judged.as_dict()["bleu"] == 0


def test_texts_that_are_out_of_step_are_refused() -> None:
    with pytest.raises(DataError, match="2 translations for 3 references"):
        score_translations(["a", "b"], ["a", "b", "c"], tokenised=True)
    with pytest.raises(DataError, match="at least one line"):
        score_translations([], [], tokenised=True)


def test_sacrebleu_waits_until_it_is_needed() -> None:
    script = "import sys, dragoman.evaluation.comparison, dragoman.cli.compare; print('sacrebleu' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


# -- by length -------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 40), unique=True).map(sorted), st.lists(st.integers(0, 60)))
def test_every_number_has_one_class(edges: list[int], values: list[int]) -> None:
    classes = buckets(edges)
    for value, number in zip(values, bucket_indices(values, edges).tolist(), strict=True):
        inside = [own.minimum <= value and (own.maximum is None or value <= own.maximum) for own in classes]
        assert [place for place, within in enumerate(inside) if within] == [number]


@pytest.mark.parametrize("edges", [(0, 5), (5, 5), (7, 3), (-1,)])
def test_edges_that_do_not_grow_are_refused(edges: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="edges"):
        buckets(edges)


def test_classes_are_scored_as_texts_of_their_own() -> None:
    hypotheses, references = some_text(4)
    lengths = word_counts(references)
    found = by_length(hypotheses, references, lengths, (6, 11), tokenised=True)
    assert [own.bucket for own in found] == [Bucket(0, 5), Bucket(6, 10), Bucket(11, None)]
    assert sum(own.sentences for own in found) == len(references)
    for own in found:
        kept = [n for n, length in enumerate(lengths) if own.bucket.minimum <= length <= (own.bucket.maximum or 99)]
        alone = score_translations([hypotheses[n] for n in kept], [references[n] for n in kept], tokenised=True)
        assert (own.sentences, own.bleu, own.length_ratio) == (len(kept), alone.bleu, alone.length_ratio)
        assert own.is_small == (len(kept) < FEW_SENTENCES)


def test_classes_without_sentences_are_left_out() -> None:
    statistics = bleu(tokenised=True).statistics(["a", "b"], ["a", "b"])
    found = bleu_by_length(statistics, [3, 50], (5, 10, 40))
    assert [(own.bucket.name, own.sentences, own.is_small) for own in found] == [
        ("up to 4", 1, True),
        ("40 and more", 1, True),
    ]
    assert length_ratio(statistics) == 1


def test_lengths_must_be_as_many() -> None:
    with pytest.raises(DataError, match="1 source lengths for 2 translations"):
        by_length(["a", "b"], ["a", "b"], [3], tokenised=True)
