"""Surprisals by several models: the numbers, the coloured table and the figure."""

from __future__ import annotations

import io
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from dragoman import Corpus, DataError, NgramModel
from dragoman.evaluation.likelihood import likelihood
from dragoman.evaluation.surprisal import SentenceSurprisals, SurprisalTable, surprisal_table, surprisals
from dragoman.report.figures import COLORS, MAX_WORD_LENGTH
from dragoman.report.surprisal import (
    INFINITE,
    MAX_TOKENS,
    SURPRISAL_STYLES,
    draw_surprisals,
    surprisal_grid,
    surprisal_tsv,
    wrap_words,
)
from zoo import HELD_OUT, model

MODEL_KINDS = ["modified-kneser-ney, order 3", "maximum-likelihood, order 2", "unknown words spelled out", "cache"]


@pytest.fixture(scope="module")
def other_model() -> NgramModel:
    """A model with another vocabulary."""
    return NgramModel.train(Corpus.from_sentences(["the unicorn hears nobody"]), order=1, smoothing="witten-bell")


@pytest.fixture
def table(other_model: NgramModel) -> SurprisalTable:
    return surprisals({**{name: model(name) for name in MODEL_KINDS}, "other_model": other_model}, HELD_OUT)


def test_each_column_has_the_scores_of_its_model(table: SurprisalTable, other_model: NgramModel) -> None:
    assert table.models == (*MODEL_KINDS, "other_model")
    for column, scorer in enumerate([*map(model, MODEL_KINDS), other_model]):
        scores = [score for sentence in scorer.score_words(HELD_OUT) for score in sentence]
        assert table.words == tuple(score.word for score in scores)
        bits = [-(score.log_prob + score.log_prob_unknown) / math.log(2) for score in scores]
        assert table.bits[:, column].tolist() == pytest.approx(bits, abs=1e-9)


def test_the_sum_is_the_total_log_likelihood(table: SurprisalTable, other_model: NgramModel) -> None:
    corpus = Corpus.from_sentences(HELD_OUT, other_model.vocab)
    assert len(corpus.unknown_positions)
    assert -math.log(2) * table.bits[:, -1].sum() == pytest.approx(
        likelihood(other_model, corpus).log_likelihood_total, abs=1e-9
    )


def test_sentences_are_the_lines_of_the_text(table: SurprisalTable) -> None:
    sentences = list(table.sentences)
    assert [" ".join(sentence.words) for sentence in sentences] == [f"{line} </s>".strip() for line in HELD_OUT]
    assert np.array_equal(np.concatenate([sentence.bits for sentence in sentences]), table.bits)


def test_impossible_and_certain_words() -> None:
    certain = NgramModel.train(Corpus.from_sentences(["a b"]), order=2, smoothing="maximum-likelihood")
    bits = surprisals({"certain": certain}, ["a b", "b"]).bits[:, 0]
    assert [f"{b:.1f}" for b in bits] == ["0.0", "0.0", "0.0", "inf", "0.0"]  # never -0.0


def test_a_string_is_one_sentence() -> None:
    toy = model(MODEL_KINDS[0])
    assert surprisals({"toy": toy}, "the dog").words == ("the", "dog", "</s>")
    nothing = surprisals({"toy": toy}, [])
    assert (nothing.words, nothing.bits.shape, list(nothing.sentences)) == ((), (0, 1), [])


def test_different_texts_and_no_models_are_rejected(other_model: NgramModel) -> None:
    toy = model(MODEL_KINDS[0])
    inputs = {
        "toy": (toy, Corpus.from_sentences(["the dog"], toy.vocab)),
        "other_model": (other_model, Corpus.from_sentences(["the cat"], other_model.vocab)),
    }
    with pytest.raises(DataError, match="different texts"):
        surprisal_table(inputs)
    with pytest.raises(DataError, match="no model"):
        surprisals({}, "the dog")


# -- as text ---------------------------------------------------------------------------------------------------------


def make_table(words: str, bits: list[list[float]], *lengths: int) -> SurprisalTable:
    """A table of two models with the given numbers."""
    offsets = np.cumsum([0, *(lengths or (len(bits),))])
    return SurprisalTable(("kn2", "lstm"), tuple(words.split()), np.array(bits), offsets)


def test_tsv() -> None:
    table = make_table("a </s> </s>", [[1, 2], [0.5, math.inf], [3, 0]], 2, 1)
    assert surprisal_tsv(table).split("\n") == [
        "word\tkn2\tlstm",
        "a\t1.000000\t2.000000",
        "</s>\t0.500000\tinf",
        "",
        "</s>\t3.000000\t0.000000",
    ]


def test_heat_rises_with_surprise() -> None:
    """Each number stands on the colour of its step; darker ones for more bits."""
    table = make_table("a b c </s>", [[0.1, 2], [5.5, 9], [13.9, 14], [1e9, math.inf]])
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="truecolor", width=60)
    console.print(surprisal_grid(table))
    grounds = [int(part.partition("m")[0].split(";")[-1]) for part in out.getvalue().split("48;2;")[1:]]
    steps = [int(style[-2:], 16) for _, style in SURPRISAL_STYLES]  # the blue of each ground
    assert grounds == [steps[number] for number in (0, 1, 2, 3, 3, 4, 4, 4)]
    lightness = [sum(int(style[-6 + i : len(style) - 4 + i], 16) for i in (0, 2, 4)) for _, style in SURPRISAL_STYLES]
    assert lightness == sorted(lightness, reverse=True) and len(set(lightness)) == len(SURPRISAL_STYLES)


# -- the picture -----------------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def texts_of(path: Path) -> list[str]:
    return ["".join(element.itertext()).strip() for element in ET.fromstring(path.read_bytes()).iter(f"{SVG}text")]


def test_a_picture_has_every_word_model_and_bar(tmp_path: Path) -> None:
    table = make_table("the $b $x$ " + "z" * 99 + " </s>", [[1, 2], [3, 4], [5, math.inf], [7, 8], [9, 10]])
    draw_surprisals(table, tmp_path / "picture.svg", title="Costs & $more$")
    texts = texts_of(tmp_path / "picture.svg")
    short = "z" * (MAX_WORD_LENGTH - 1) + "…"
    assert {"the", "$b", "$x$", short, "</s>", "kn2", "lstm", INFINITE, "Costs & $more$"} <= set(texts)
    assert texts.count(INFINITE) == 1


def heights_of_bars(path: Path, color: str) -> list[float]:
    """How tall each bar of one colour is in an SVG."""
    paths = [
        path_element
        for path_element in ET.fromstring(path.read_bytes()).iter(f"{SVG}path")
        if path_element.get("style") == f"fill: {color}"
    ]
    ups = [
        [float(y) for y in re.findall(r"[ML] [-\d.]+ ([-\d.]+)", path_element.get("d", ""))] for path_element in paths
    ]
    return [max(up) - min(up) for up in ups]


def test_bars_are_as_tall_as_their_bits_and_infinite_ones_are_taller(tmp_path: Path) -> None:
    table = make_table("a b c </s>", [[1, 2], [3, 4], [5, math.inf], [7, 0]])
    draw_surprisals(table, tmp_path / "picture.svg")
    first, other = (heights_of_bars(tmp_path / "picture.svg", color.lower()) for color in COLORS[:2])
    bit = first[0]
    assert first == pytest.approx([bit, 3 * bit, 5 * bit, 7 * bit], rel=1e-4)
    assert [other[0], other[1], other[3]] == pytest.approx([2 * bit, 4 * bit, 0], rel=1e-4)
    assert other[2] > 7 * bit


def test_letters_that_the_font_has_not_are_no_trouble(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    draw_surprisals(make_table("猫が </s>", [[1, 2], [3, 4]]), tmp_path / "picture.svg")
    assert "猫が" in texts_of(tmp_path / "picture.svg")
    assert not recwarn.list


def test_the_same_numbers_make_the_same_picture(tmp_path: Path) -> None:
    table = make_table("a </s>", [[1, 2], [3, 4]])
    for name in ("one.svg", "two.svg", "one.png", "two.png"):
        draw_surprisals(table, tmp_path / name)
    for ending in ("svg", "png"):
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


@pytest.mark.parametrize("width", [0.1, 2.0, 5.0, 100.0])
def test_lines_hold_all_words_in_order_and_no_more_than_fit(width: float) -> None:
    bits = np.arange(40.0).reshape(20, 2)
    sentence = SentenceSurprisals(
        (*("some", "words", "are", "x", "and", "so", "on", "incomprehensibly", "long") * 2, "x", "</s>"), bits
    )
    lines = list(wrap_words(sentence.words, bits, width))
    assert tuple(word for line in lines for word in line.words) == sentence.words
    assert np.array_equal(np.concatenate([line.values for line in lines]), bits)
    assert all(line.widths.sum() <= width or len(line.words) == 1 for line in lines)
    for line, following in zip(lines[:-1], lines[1:], strict=True):
        assert line.widths.sum() + following.widths[0] > width


def test_too_large_figures_are_refused(tmp_path: Path) -> None:
    most = make_table("x " * MAX_TOKENS, [[1, 2]] * MAX_TOKENS)
    draw_surprisals(most, tmp_path / "most.png")
    (tmp_path / "most.png").unlink()
    for table, problem in [
        (make_table("x " * (MAX_TOKENS + 1), [[1, 2]] * (MAX_TOKENS + 1)), "61 words and sentence ends"),
        (make_table("a", [[1, math.nan]]), "undefined"),
        (surprisals({"toy": model(MODEL_KINDS[0])}, []), "nothing to draw"),
        (surprisals({str(number): model(MODEL_KINDS[0]) for number in range(10)}, "yes"), "10 models"),
    ]:
        with pytest.raises(DataError, match=problem):
            draw_surprisals(table, tmp_path / "picture.png")
    with pytest.raises(DataError, match=r"end the name in \.svg or \.png"):
        draw_surprisals(most, tmp_path / "picture.pdf")
    assert list(tmp_path.iterdir()) == []
