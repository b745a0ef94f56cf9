"""dragoman inspect: cells, saliency and gradients of recurrent models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dragoman
from command import TRAIN, is_one_line
from dragoman import Corpus, RecurrentModel
from dragoman.models.inspection import activations, correlated_cells, gradient_by_distance, saliency, untrained_copy

HIDDEN = {"lstm": 6, "gru": 9}
SENTENCE = "the cat saw the mouse ."


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`lstm` with two layers, and `gru`; and a text without words."""
    place = tmp_path_factory.mktemp("recurrent")
    corpus = Corpus.from_sentences(TRAIN.splitlines())
    for cell, layers in (("lstm", 2), ("gru", 1)):
        RecurrentModel.create(corpus, cell=cell, layers=layers, embedding=5, hidden=HIDDEN[cell]).save(place / cell)
    (place / "text.txt").write_text(TRAIN)
    (place / "blank.txt").write_text("\n \n")
    return place


def loaded(path: Path) -> RecurrentModel:
    model = dragoman.load(path)
    assert isinstance(model, RecurrentModel)
    return model


def rows_of(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


# -- cells -----------------------------------------------------------------------------------------------------------


def test_cells_that_are_named(good: Any, models: Path) -> None:
    result = good("inspect", "cells", models / "lstm", "--cells", "4,0", "--part", "c", stdin=f"{SENTENCE}\n\na bird\n")
    model = loaded(models / "lstm")
    expected = activations(model, Corpus.from_sentences([SENTENCE, "", "a bird"], model.vocab), "c")
    header, *rows = rows_of(result.out)
    assert header == ["word", "4", "0"]
    words = SENTENCE.split()
    assert [row[0] for row in rows] == [*words, "", "", "a", "bird"]
    values = np.array([[float(value) for value in row[1:]] for row in rows if len(row) > 1])
    assert np.allclose(values, np.concatenate(expected.values)[:, [4, 0]], atol=1e-6)
    assert "follows" not in result.err and result.err.startswith("next: ") and f"'{SENTENCE}'" in result.err


@pytest.mark.parametrize("follow", ["position", "bird"])
def test_cells_that_follow_something(good: Any, models: Path, follow: str) -> None:
    arguments = ("--follow", follow, "--most", 2, "--layer", 1)
    result = good("inspect", "cells", models / "lstm", "--text", models / "text.txt", *arguments)
    model = loaded(models / "lstm")
    best = correlated_cells(activations(model, Corpus.read(models / "text.txt", model.vocab), layer=1), follow, 2)
    assert rows_of(result.out)[0] == ["word", *(str(cell) for cell, _ in best)]
    *lines, following = result.err.splitlines()
    assert lines == [f"cell {cell} follows {follow}: correlation {correlation:.2f}" for cell, correlation in best]
    assert following.startswith("next: ")


def test_without_a_choice_cells_that_follow_the_position(good: Any, models: Path) -> None:
    result = good("inspect", "cells", models / "gru", "--text", models / "text.txt")
    assert result.err.count("follows position") == 5 and len(rows_of(result.out)[0]) == 6


def test_a_picture_of_cells_has_the_sentences_with_the_word(good: Any, models: Path, tmp_path: Path) -> None:
    arguments = ("--follow", "mouse", "--most", 1, "--picture", tmp_path / "cells.svg")
    result = good("inspect", "cells", models / "gru", "--text", models / "text.txt", *arguments)
    picture = (tmp_path / "cells.svg").read_text()
    sentences = picture.count(">mouse<")
    assert 1 < sentences < 36 and picture.count(">nobody<") == 0
    assert f"{sentences} of 36 sentences" in result.err
    alone = good("inspect", "cells", models / "gru", "--cells", 2, "--picture", tmp_path / "one.png", stdin=SENTENCE)
    assert "1 of 1 sentences" in alone.err and (tmp_path / "one.png").stat().st_size > 1000


def test_a_sentence_too_long_for_a_picture_is_left_out_or_refused(run: Any, models: Path, tmp_path: Path) -> None:
    long = " ".join(["cat"] * 70)
    arguments = ("inspect", "cells", models / "gru", "--cells", 2, "--picture", tmp_path / "cells.svg")
    assert "1 of 2 sentences" in run(*arguments, stdin=f"{long}\nthe dog\n").err
    (tmp_path / "cells.svg").unlink()
    refused = run(*arguments, stdin=long)
    assert (
        refused.code == 2
        and is_one_line(refused.err)
        and "70 words, and a figure holds at most 60" in refused.err
        and not refused.out
    )
    refused = run(*arguments[:3], "--most", 9, *arguments[5:], stdin=TRAIN)
    assert refused.code == 2 and is_one_line(refused.err) and "holds at most 8" in refused.err
    assert list(tmp_path.iterdir()) == []


# -- saliency --------------------------------------------------------------------------------------------------------


def test_what_one_prediction_hangs_on(good: Any, models: Path) -> None:
    actual = saliency(loaded(models / "lstm"), SENTENCE)
    for arguments, row in (((), 5), (("--word", "the"), 3), (("--word", "</s>"), 6)):
        result = good("inspect", "saliency", models / "lstm", SENTENCE, *arguments)
        rows = rows_of(result.out)
        assert [word for word, _ in rows] == ["<s>", *SENTENCE.split()][: row + 1]
        assert np.allclose([float(norm) for _, norm in rows], actual.norms[row, : row + 1], rtol=1e-5)
        assert f"the prediction of {actual.predicted[row]} depends on" in result.err and "next: " in result.err


def test_all_predictions(good: Any, models: Path, tmp_path: Path) -> None:
    arguments = ("--all", "--picture", tmp_path / "saliency.svg")
    result = good("inspect", "saliency", models / "gru", SENTENCE, *arguments)
    header, *rows = rows_of(result.out)
    actual = saliency(loaded(models / "gru"), SENTENCE)
    assert header == ["predicted", *actual.read]
    assert [row[0] for row in rows] == list(actual.predicted)
    norms = np.array([[float(norm) for norm in row[1:]] for row in rows])
    assert np.allclose(norms, actual.norms, rtol=1e-5) and rows[0][2] == "0"
    assert (tmp_path / "saliency.svg").read_text().count(">mouse<") == 2
    assert "depends on:" not in result.err and "next:" not in result.err


def test_bars_on_a_terminal(good: Any, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    header, _, *rows = good("inspect", "saliency", models / "gru", SENTENCE).out.splitlines()
    assert header.split() == ["word", "gradient"] and len(rows) == 6
    norms, bars = [float(row.split()[1]) for row in rows], [row.count("█") for row in rows]
    assert max(bars) == 40 == bars[int(np.argmax(norms))]
    assert all(abs(bar - 40 * norm / max(norms)) < 1 for bar, norm in zip(bars, norms, strict=True))


# -- gradients -------------------------------------------------------------------------------------------------------


def test_gradients_of_several_models(good: Any, models: Path, tmp_path: Path) -> None:
    arguments = ("--words", 4, "--picture", tmp_path / "gradients.svg")
    result = good("inspect", "gradients", models / "lstm", models / "gru", "--text", "-", *arguments, stdin=TRAIN)
    header, *rows = rows_of(result.out)
    assert header == [
        "words back",
        *(f"{models / name}{when}" for name in ("lstm", "gru") for when in ("", ", untrained")),
    ]
    assert [row[0] for row in rows] == ["0", "1", "2", "3"]
    columns = np.array([[float(norm) for norm in row[1:]] for row in rows]).T
    for place, name in enumerate(("lstm", "gru")):
        model = loaded(models / name)
        corpus = Corpus.from_sentences(TRAIN.splitlines(), model.vocab)
        assert np.allclose(columns[2 * place], gradient_by_distance(model, corpus, 4), rtol=0.01)
        assert np.allclose(columns[2 * place + 1], gradient_by_distance(untrained_copy(model), corpus, 4), rtol=0.01)
    assert ">lstm, untrained<" in (tmp_path / "gradients.svg").read_text().replace("> ", ">")
    assert (
        result.err.count("of the gradient is left 3 words back; before training, ") == 2 and "next:" not in result.err
    )


def test_gradients_on_a_terminal(good: Any, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    result = good("inspect", "gradients", models / "gru", "--text", models / "text.txt", "--words", 3)
    assert (
        result.lines[0].startswith("words back  ")
        and result.lines[1].startswith("----------  --")
        and len(result.lines) == 5
    )
    assert result.err.splitlines()[-1].endswith("--words 3 --picture gradients.svg")


# -- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("cells gru --cells 9", "--cells 9: a layer has the cells 0 to 8"),
        ("cells gru --cells=-1", "--cells -1: a layer has the cells 0 to 8"),
        ("cells gru --cells 2,2", "--cells 2: named twice"),
        ("cells gru --cells 1,x", "--cells '1,x': give numbers separated by commas, such as 3,17"),
        ("cells gru --cells 1 --follow the", "remove one of them"),
        ("cells gru --part c", "part 'c': the state of a cell gru has h"),
        ("cells lstm --part x", "part 'x': the state of a cell lstm has h and c"),
        ("cells lstm --layer 3", "layer 3: the model has layers 1 to 2"),
        ("cells gru --text blank.txt", "has no words; give at least one sentence"),
        ("cells gru --follow unicorn", "no cell can correlate with 'unicorn'"),
        ("cells gru --picture x.pdf", "end the name in .svg or .png"),
        ("cells gru --most 0", "--most"),
        ("cells text.txt", "is a file, not a model directory"),
        ("saliency gru _", "the sentence is empty; give one in quotes"),
        ("saliency gru the_cat --word dog", "--word 'dog': not in the sentence; its words are the cat </s>"),
        ("saliency gru the_cat --word the --all", "remove one of the options"),
        ("saliency gru the_cat --picture x", "end the name in .svg or .png"),
        ("gradients gru gru --text text.txt", "named twice"),
        ("gradients gru --text text.txt --words 7", "no sentence has more than 7 words; use fewer"),
        ("gradients gru --text blank.txt", "has no words; give at least one sentence"),
        ("gradients gru", "--text"),
        ("gradients gru --text text.txt --words 0", "--words"),
    ],
)
def test_one_line_says_what_is_wrong(
    run: Any, models: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, problem: str
) -> None:
    monkeypatch.chdir(models)
    before = sorted(models.iterdir())
    words = [word.replace("_", " ") for word in arguments.split()]
    outcome = run("inspect", *words, stdin=TRAIN)
    assert outcome.code == 2 and is_one_line(outcome.err) and problem in outcome.err, outcome.err
    assert not outcome.out and sorted(models.iterdir()) == before


@pytest.mark.parametrize("look", [("cells",), ("saliency", "the cat"), ("gradients", "--text", "-")])
@pytest.mark.parametrize("kind", ["bi", "both"])
def test_models_that_are_not_recurrent(run: Any, shared: Path, look: tuple[str, ...], kind: str) -> None:
    verb, *others = look
    outcome = run("inspect", verb, shared / kind, *others, stdin=TRAIN)
    assert outcome.code == 2 and is_one_line(outcome.err)
    named = {"bi": "a model of kind ngram", "both": "a model of kind mixture"}[kind]
    assert f"{named}, not recurrent; give a model of dragoman train recurrent" in outcome.err


def test_a_text_of_strangers_is_doubted(good: Any, models: Path) -> None:
    result = good("inspect", "cells", models / "gru", "--cells", "1", stdin="quite another language\n")
    assert "warning: <stdin>: 3 of 3 words are unknown" in result.err


@pytest.mark.parametrize("verb", ["cells", "saliency", "gradients"])
def test_help_has_an_example(good: Any, verb: str) -> None:
    assert f"dragoman inspect {verb} " in good("inspect", verb, "--help").out.partition("Example")[2]
    overview = good("inspect", "--help").out
    assert f"\n  {verb} " in overview and "..." not in overview.replace("[ARGS]...", "")  # no summary is cut off
