"""Translators held to the truth: the floor of P(E | F), and attention beside the true alignment."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dragoman import DataError
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.evaluation.alignment import parse_gold_alignment
from dragoman.evaluation.translator import (
    ReferenceData,
    attention_alignment_counts,
    attention_over_source_words,
    evaluate_translator,
    read_log_probs,
)
from dragoman.models.translator import Translator

ENGLISH = ["a dog barks .", "a cat sleeps .", "a dog sleeps .", "a cat barks ."]
GERMAN = ["ein hund bellt .", "eine katze schläft .", "ein hund schläft .", "eine katze bellt ."]
TREES = [f"(S (NP {one} {two}) (VP {verb}) {end})" for one, two, verb, end in map(str.split, GERMAN)]
ANSWERS = ReferenceData(ENGLISH, np.log([0.5, 0.25, 0.125, 0.5]), [parse_gold_alignment("0-0 1-1 2-2 3-3")] * 4)


def tiny(encoder: str, attention: str, lines: list[str]) -> Translator:
    format = TREE if encoder == "tree-lstm" else "text"
    source, target = Tokenizer.train("word", lines, format=format), Tokenizer.train("word", ENGLISH)
    pairs = ParallelCorpus(source.encode(lines), target.encode(ENGLISH))
    return Translator.create(pairs, source, target, encoder=encoder, attention=attention, embedding=4, hidden=4)


def test_the_floor_is_the_price_of_the_references_by_the_truth() -> None:
    assert ANSWERS.floor is not None
    value, error = ANSWERS.floor
    assert value == pytest.approx((2 * 4 * 8 * 2) ** (1 / 20)), "four words and an end, four times"
    costs = -np.asarray(ANSWERS.true_log_probs)
    assert error == pytest.approx(value * costs.std(ddof=1) / 5 / math.sqrt(4)), "sentences of one length: a mean"


def test_answers_of_different_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="4 references but 3 log-probabilities"):
        ReferenceData(ENGLISH, np.zeros(3), ANSWERS.gold_alignments)
    with pytest.raises(DataError, match="4 references but 1 alignments"):
        ReferenceData(ENGLISH, gold_alignments=[parse_gold_alignment("0-0")])


def test_log_probs_are_read_from_their_column(tmp_path: Path) -> None:
    (tmp_path / "test.logprob").write_text("-1\t-2\t-3.5\n-4\t-5\t-6\n")
    assert read_log_probs(tmp_path / "test.logprob").tolist() == [-3.5, -6.0]
    assert read_log_probs(tmp_path / "test.logprob", 0).tolist() == [-1.0, -4.0]


@pytest.mark.parametrize("line", ["-1\t-2", "", "-1\t-2\tmany"])
def test_a_broken_line_of_log_probs_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "test.logprob").write_text(f"-1\t-2\t-3\n{line}\n")
    with pytest.raises(DataError, match=r"test\.logprob:2: .*column 3"):
        read_log_probs(tmp_path / "test.logprob")


def test_attention_to_nodes_goes_to_the_words_under_them() -> None:
    side = Tokenizer.train("word", ["(S (NP a b) c)"] * 2, format=TREE)
    to_nodes = np.array([[0.1, 0.2, 0.0, 0.4, 0.3]])  # a, b, c, (a b), (a b c)
    assert attention_over_source_words(to_nodes, side, "(S (NP a b) c)")[0] == pytest.approx([0.4, 0.5, 0.1, 0.0])
    words = Tokenizer.train("word", ["a b c d"])
    assert np.array_equal(attention_over_source_words(to_nodes, words, "a b c d"), to_nodes)
    letters = np.array([[0.1, 0.2, 0.3, 0.1, 0.1, 0.2]])  # a, b, a space, c, d, `</s>`
    assert attention_over_source_words(letters, Tokenizer.train("char", ["ab cd"]), "ab cd")[0, -1] == pytest.approx(
        0.2
    )
    assert attention_over_source_words(letters, Tokenizer.train("char", ["ab cd"]), "ab cd").shape == (1, 3)


def test_links_are_where_each_word_of_the_reference_looks_most() -> None:
    """The first word looks at the right place, the second at a wrong one, the third at `</s>`: no link."""
    attention = np.array(
        [[0.9, 0.1, 0, 0, 0], [0.6, 0.4, 0, 0, 0], [0, 0, 0.4, 0, 0.6], [0, 0, 0, 1.0, 0], [0, 0, 0, 0, 1]]
    )
    model: Any = SimpleNamespace(
        source=Tokenizer.train("word", GERMAN),
        target=Tokenizer.train("word", ENGLISH),
        force_decode=lambda lines, references: [
            SimpleNamespace(attention=attention, tokens=line.split()) for line in references
        ],
    )
    assert ANSWERS.gold_alignments is not None
    counts = attention_alignment_counts(model, GERMAN, ENGLISH, ANSWERS.gold_alignments)
    assert counts is not None
    assert (counts.predicted, counts.sure, counts.predicted_sure) == (3 * 4, 4 * 4, 2 * 4)
    assert counts.error_rate == pytest.approx(1 - 2 * 2 / (3 + 4))


@pytest.mark.parametrize(
    ("encoder", "attention", "lines"),
    [("forward", "none", GERMAN), ("bidirectional", "dot", GERMAN), ("tree-lstm", "mlp", TREES)],
)
def test_all_is_measured_by_the_translator_itself(encoder: str, attention: str, lines: list[str]) -> None:
    model = tiny(encoder, attention, lines)
    measured = evaluate_translator(model, lines, ANSWERS)
    assert measured.perplexity == pytest.approx(model.likelihood(lines, ENGLISH).perplexity)
    assert measured.perplexity_class == pytest.approx(model.likelihood(lines, ENGLISH).perplexity_class)
    assert measured.floor is not None and measured.above_floor is not None
    assert measured.above_floor == pytest.approx(math.log(measured.perplexity) - math.log(measured.floor.value))
    assert measured.texts == [one.text for one in model.translate(lines)]
    assert [(own.bucket.name, own.sentences) for own in measured.by_length] == [("up to 5", 4)], (
        "of words, not of nodes"
    )
    assert measured.by_length[0].bleu == pytest.approx(measured.scores.bleu)
    assert (measured.alignment is None) == (attention == "none")
    plain = measured.as_dict()
    assert plain["sentences"] == 4 and plain["perplexity"] == measured.perplexity
    assert plain["perplexity_floor"] == measured.floor.value and "errors" not in plain
    assert ("alignment_error_rate" in plain) == (attention != "none")


def test_a_text_of_which_nothing_is_known_has_no_floor_and_no_alignment() -> None:
    model = tiny("bidirectional", "dot", GERMAN)
    measured = evaluate_translator(
        model, GERMAN, ReferenceData(ENGLISH, tokenised=False), 2, length="none", diagnose=True
    )
    assert measured.floor is None and measured.above_floor is None and measured.alignment is None
    assert "tok:13a" in measured.scores.signature
    assert measured.texts == [one.text for one in model.translate(GERMAN, 2, length="none")]
    assert sum(measured.errors.values()) == 4
    assert not {"perplexity_floor", "alignment"} & set(measured.as_dict())


def test_whose_fault_it_is_told_line_by_line() -> None:
    """The best translation that there is cannot be the search's fault; blank lines were not searched for."""
    model = tiny("bidirectional", "dot", GERMAN)
    lines = [GERMAN[0], " ", GERMAN[1], f"{GERMAN[2]} " * 80]
    found = model.translate(lines, 3)
    assert model.diagnose(lines, [one.text for one in found], found)[:3] == ["none", None, "none"]
    assert model.diagnose(lines, [one.text for one in found], found)[3] is None, "translated in pieces"
    worst = [replace(one, tokens=("dog",) * 30, score=-100.0) for one in found]
    assert model.diagnose(lines, ["a dog"] * 4, worst)[0] == "search"
    with pytest.raises(DataError, match="2 lines but 4 translations"):
        model.diagnose(lines[:2], ["a"] * 2, found)
