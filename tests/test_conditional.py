"""Evaluation of translators: the floor of P(E | F), alignment of the attention, kinds of errors."""

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
TREES = [f"(S (NP {article} {noun}) (VP {verb}) {end})" for article, noun, verb, end in map(str.split, GERMAN)]
DATA = ReferenceData(ENGLISH, np.log([0.5, 0.25, 0.125, 0.5]), [parse_gold_alignment("0-0 1-1 2-2 3-3")] * 4)


def make_translator(encoder: str, attention: str, lines: list[str]) -> Translator:
    format = TREE if encoder == "tree-lstm" else "text"
    source, target = Tokenizer.train("word", lines, format=format), Tokenizer.train("word", ENGLISH)
    pairs = ParallelCorpus(source.encode(lines), target.encode(ENGLISH))
    return Translator.create(pairs, source, target, encoder=encoder, attention=attention, embedding=4, hidden=4)


def test_the_floor_is_the_true_perplexity_of_the_references() -> None:
    assert DATA.floor is not None
    value, error = DATA.floor
    assert value == pytest.approx((2 * 4 * 8 * 2) ** (1 / 20)), "four words and an end, four times"
    losses = -np.asarray(DATA.true_log_probs)
    assert error == pytest.approx(value * losses.std(ddof=1) / 5 / math.sqrt(4)), (
        "sentences of equal length: the error of a mean"
    )


def test_reference_data_of_different_lengths_are_rejected() -> None:
    with pytest.raises(DataError, match="4 references but 3 log-probabilities"):
        ReferenceData(ENGLISH, np.zeros(3), DATA.gold_alignments)
    with pytest.raises(DataError, match="4 references but 1 alignments"):
        ReferenceData(ENGLISH, gold_alignments=[parse_gold_alignment("0-0")])


def test_log_probs_are_read_from_their_column(tmp_path: Path) -> None:
    (tmp_path / "test.logprob").write_text("-1\t-2\t-3.5\n-4\t-5\t-6\n")
    assert read_log_probs(tmp_path / "test.logprob").tolist() == [-3.5, -6.0]
    assert read_log_probs(tmp_path / "test.logprob", 0).tolist() == [-1.0, -4.0]


@pytest.mark.parametrize("line", ["-1\t-2", "", "-1\t-2\tmany"])
def test_an_invalid_line_of_log_probs_is_reported(tmp_path: Path, line: str) -> None:
    (tmp_path / "test.logprob").write_text(f"-1\t-2\t-3\n{line}\n")
    with pytest.raises(DataError, match=r"test\.logprob:2: .*column 3"):
        read_log_probs(tmp_path / "test.logprob")


def test_attention_is_distributed_over_source_words() -> None:
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


def test_attention_is_compared_with_gold_alignments() -> None:
    """The first word is linked correctly, the second incorrectly, the third to `</s>`, which is not a link."""
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
    assert DATA.gold_alignments is not None
    counts = attention_alignment_counts(model, GERMAN, ENGLISH, DATA.gold_alignments)
    assert counts is not None
    assert (counts.predicted, counts.sure, counts.predicted_sure) == (3 * 4, 4 * 4, 2 * 4)
    assert counts.error_rate == pytest.approx(1 - 2 * 2 / (3 + 4))


@pytest.mark.parametrize(
    ("encoder", "attention", "lines"),
    [("forward", "none", GERMAN), ("bidirectional", "dot", GERMAN), ("tree-lstm", "mlp", TREES)],
)
def test_evaluation_of_a_translator(encoder: str, attention: str, lines: list[str]) -> None:
    model = make_translator(encoder, attention, lines)
    evaluation = evaluate_translator(model, lines, DATA)
    assert evaluation.perplexity == pytest.approx(model.likelihood(lines, ENGLISH).perplexity)
    assert evaluation.perplexity_class == pytest.approx(model.likelihood(lines, ENGLISH).perplexity_class)
    assert evaluation.floor is not None and evaluation.above_floor is not None
    assert evaluation.above_floor == pytest.approx(math.log(evaluation.perplexity) - math.log(evaluation.floor.value))
    assert evaluation.texts == [translation.text for translation in model.translate(lines)]
    assert [(bucket.bucket.name, bucket.sentences) for bucket in evaluation.by_length] == [("up to 5", 4)], (
        "of words, not of nodes"
    )
    assert evaluation.by_length[0].bleu == pytest.approx(evaluation.scores.bleu)
    assert (evaluation.alignment is None) == (attention == "none")
    plain = evaluation.as_dict()
    assert plain["sentences"] == 4 and plain["perplexity"] == evaluation.perplexity
    assert plain["perplexity_floor"] == evaluation.floor.value and "errors" not in plain
    assert ("alignment_error_rate" in plain) == (attention != "none")


def test_without_true_probabilities_and_alignments() -> None:
    model = make_translator("bidirectional", "dot", GERMAN)
    evaluation = evaluate_translator(
        model, GERMAN, ReferenceData(ENGLISH, tokenised=False), 2, length="none", diagnose=True
    )
    assert evaluation.floor is None and evaluation.above_floor is None and evaluation.alignment is None
    assert "tok:13a" in evaluation.scores.signature
    assert evaluation.texts == [translation.text for translation in model.translate(GERMAN, 2, length="none")]
    assert sum(evaluation.errors.values()) == 4
    assert not {"perplexity_floor", "alignment"} & set(evaluation.as_dict())


def test_errors_are_diagnosed_line_by_line() -> None:
    """The best translation is not an error; blank lines are not diagnosed."""
    model = make_translator("bidirectional", "dot", GERMAN)
    lines = [GERMAN[0], " ", GERMAN[1], f"{GERMAN[2]} " * 80]
    translations = model.translate(lines, 3)
    assert model.diagnose(lines, [translation.text for translation in translations], translations)[:3] == [
        "none",
        None,
        "none",
    ]
    assert model.diagnose(lines, [translation.text for translation in translations], translations)[3] is None, (
        "translated in pieces"
    )
    worst = [replace(translation, tokens=("dog",) * 30, score=-100.0) for translation in translations]
    assert model.diagnose(lines, ["a dog"] * 4, worst)[0] == "search"
    with pytest.raises(DataError, match="2 lines but 4 translations"):
        model.diagnose(lines[:2], ["a"] * 2, translations)
