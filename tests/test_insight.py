"""Looking inside recurrent models: activations, saliency, how far gradients reach, and the pictures of them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dragoman import Corpus, DataError, RecurrentModel, fit
from dragoman.core.scorer import State
from dragoman.data.batches import Batch
from dragoman.data.vocabulary import END, START
from dragoman.models.inspection import (
    POSITION,
    activations,
    correlated_cells,
    gradient_by_distance,
    saliency,
    untrained_copy,
)
from dragoman.report.networks import (
    MAX_CELLS,
    MAX_SQUARES,
    MAX_WORDS,
    SALIENCY_NOTE,
    GradientNorms,
    draw_cells,
    draw_gradients,
    draw_saliency,
)

LINES = ["the cat sat on a mat", "a dog ran", "", "the dog that sat on a mat ran from the cat", "ran", "a cat"]
CORPUS = Corpus.from_sentences(LINES)
WAYS: dict[str, dict[str, Any]] = {
    "rnn": {"cell": "rnn"},
    "lstm": {"cell": "lstm"},
    "without": {"cell": "lstm-without-forget-gate", "first_state": "learned"},
    "gru": {"cell": "gru"},
    "deep": {"cell": "lstm", "layers": 3, "residual": True},
    "carried": {"cell": "gru", "layers": 2, "carries": True},
}


def create_model(corpus: Corpus = CORPUS, **settings: Any) -> RecurrentModel:
    """A small model in 64 bits, with embeddings large enough to have an effect."""
    common = {"embedding": 5, "hidden": 5, "dtype": "float64", "embedding_reach": 1.0}
    return RecurrentModel.create(corpus, seed=3, **{**common, **settings})


@pytest.fixture(params=WAYS)
def model(request: pytest.FixtureRequest) -> RecurrentModel:
    return create_model(**WAYS[request.param])


def states_of(model: RecurrentModel, words: list[int], carry: Any = None) -> list[State]:
    """The states of the scorer, before the first word and after each."""
    states = [model.start(Batch.empty(1), carry)]
    for word in words:
        states.append(model.advance(states[-1], torch.tensor([word])))
    return states


# -- cells -----------------------------------------------------------------------------------------------------------


def test_activations_are_the_scorers_states(model: RecurrentModel) -> None:
    """Of every layer and part, after every word, unknown ones too; carried over where the model carries."""
    corpus = Corpus.from_sentences([*LINES, "the unicorn sat"], model.vocab)
    carry, expected = None, []
    for sentence in corpus:
        *states, last = states_of(model, [*sentence.tolist(), END], carry)
        expected.append(states[1:])
        carry = model.finish(last)
    for layer in range(1, model.settings.layers + 1):
        for place, part in enumerate("hc"[: len(expected[0][0].rows[1][0])]):
            actual = activations(model, corpus, part, layer)
            assert (actual.part, actual.layer) == (part, layer)
            for words, line in zip(actual.words, [*LINES, "the unicorn sat"], strict=True):
                assert " ".join(words) == line
            for values, states in zip(actual.values, expected, strict=True):
                assert values.shape == (len(states), 5)
                for row, state in zip(values, states, strict=True):
                    np.testing.assert_allclose(row, state.rows[1][layer - 1][place][0].numpy(), atol=1e-12)


def test_the_last_layer_is_the_one_if_none_is_named() -> None:
    model = create_model(**WAYS["deep"])
    assert activations(model, CORPUS).layer == 3
    assert np.array_equal(activations(model, CORPUS).of_cell(2)[0], activations(model, CORPUS, "h", 3).values[0][:, 2])


def test_a_carrying_model_begins_where_it_ended() -> None:
    """The same sentence twice: other values the second time, and the same ones where nothing is carried."""
    twice = Corpus.from_sentences(["a dog ran", "a dog ran"], CORPUS.vocab)
    for way, same in (("carried", False), ("gru", True)):
        first, second = activations(create_model(**WAYS[way]), twice).values
        assert np.allclose(first, second) == same


def counting() -> RecurrentModel:
    """Elman's network, of which cell 3 adds a hundredth per word, and cell 1 takes one away."""
    model = create_model(cell="rnn", embedding=4)
    parameters = model.state_dict()
    with torch.no_grad():
        for cell, amount in ((3, 0.01), (1, -0.01)):
            parameters["rnn.layers.0.input.weight"][cell] = 0
            parameters["rnn.layers.0.recurrent.weight"][cell] = torch.eye(5, dtype=torch.float64)[cell]
            parameters["rnn.layers.0.input.bias"][cell] = amount
    return model


def test_followers_find_the_cells_that_count() -> None:
    (first, rise), (second, fall) = correlated_cells(activations(counting(), CORPUS), POSITION, 2)
    assert {first: np.sign(rise), second: np.sign(fall)} == {3: 1, 1: -1}
    assert min(abs(rise), abs(fall)) > 0.999


def test_followers_find_the_memory_that_a_word_switches_on() -> None:
    """An LSTM without a forget gate: the memory of cell 2 takes `that` in, keeps it, and lets nothing else in."""
    model = create_model(cell="lstm-without-forget-gate", embedding=len(CORPUS.vocab))
    parameters = model.state_dict()
    with torch.no_grad():
        parameters["embedding.weight"].copy_(torch.eye(len(CORPUS.vocab)))
        i, u = 2, 5 + 2  # its rows in the matrices, which stand on top of each other in the order i, u, o
        for name in ("rnn.layers.0.input.weight", "rnn.layers.0.recurrent.weight", "rnn.layers.0.input.bias"):
            parameters[name][[i, u]] = 0
        parameters["rnn.layers.0.input.bias"][i] = 20.0
        parameters["rnn.layers.0.input.weight"][u, CORPUS.vocab.id("that")] = 20.0
    recorded = activations(model, CORPUS, "c")
    ((cell, correlation),) = correlated_cells(recorded, "that", 1)
    assert cell == 2 and correlation > 0.999
    assert [values[-1].round(6) if len(values) else 0 for values in recorded.of_cell(2)] == [0, 0, 0, 1, 0, 0]


def test_correlations_are_numpys() -> None:
    recorded = activations(create_model(), CORPUS)
    correlations = correlated_cells(recorded, POSITION, 99)
    assert [abs(r) for _, r in correlations] == sorted((abs(r) for _, r in correlations), reverse=True)
    places = np.concatenate([np.arange(len(words)) for words in recorded.words])
    for cell, correlation in correlations:
        assert correlation == pytest.approx(np.corrcoef(np.concatenate(recorded.of_cell(cell)), places)[0, 1])


def test_a_cell_that_never_moves_follows_nothing() -> None:
    model = create_model(cell="rnn")
    for name in ("rnn.layers.0.input.weight", "rnn.layers.0.recurrent.weight"):
        model.state_dict()[name][4] = 0
    model.state_dict()["rnn.layers.0.input.bias"][4] = 0.1
    assert correlated_cells(activations(model, CORPUS), POSITION, 5)[-1] == (4, 0.0)


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda: activations(create_model(), CORPUS, "c", 2), "layer 2: the model has one layer, 1"),
        (lambda: activations(create_model(layers=2), CORPUS, "c", 0), "layers 1 to 2"),
        (lambda: activations(create_model(cell="gru"), CORPUS, "c"), "part 'c': the state of a cell gru has h"),
        (lambda: activations(create_model(), Corpus.from_sentences(["x"])), "another vocabulary"),
        (
            lambda: correlated_cells(activations(create_model(), CORPUS), "unicorn", 3),
            "'unicorn' in this text: it is never read",
        ),
        (
            lambda: correlated_cells(activations(create_model(), CORPUS.select(np.array([2, 4]))), POSITION, 3),
            "all sentences have one word",
        ),
        (lambda: correlated_cells(activations(create_model(), CORPUS.select(np.array([], int))), "a", 3), "never read"),
        (lambda: gradient_by_distance(create_model(), CORPUS, 11), "no sentence has more than 11 words"),
        (lambda: gradient_by_distance(create_model(), Corpus.from_sentences(["x y"]), 1), "another vocabulary"),
    ],
)
def test_invalid_arguments_are_refused(ask: Callable[[], Any], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        ask()


# -- saliency --------------------------------------------------------------------------------------------------------


def test_saliency_is_the_norm_of_the_gradient(model: RecurrentModel) -> None:
    """Against finite differences of the scores: each word occurs once, so its vector stands in one place."""
    sentence, step = "the cat sat on a mat", 1e-5
    result = saliency(model, sentence)
    words = sentence.split()
    assert result.read == ("</s>" if model.carries else "<s>", *words)
    assert result.predicted == (*words, "</s>")
    M = model.state_dict()["embedding.weight"]
    corpus = Corpus.from_sentences([sentence], model.vocab)
    for column, number in enumerate([END if model.carries else START, *corpus[0].tolist()]):
        differences = np.zeros((len(result.predicted), M.shape[1]))
        for at in range(M.shape[1]):
            sides = []
            for shift in (step, -2 * step, step):  # there, to the other side, and back
                M[number, at] += shift
                sides.append(model.token_log_probs(corpus))
            differences[:, at] = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(result.norms[:, column], np.linalg.norm(differences, axis=1), rtol=1e-5, atol=1e-9)


def test_words_not_yet_read_have_no_saliency(model: RecurrentModel) -> None:
    result = saliency(model, "the the unicorn\u00a0ran the")
    assert result.predicted == ("the", "the", "unicorn\u00a0ran", "the", "</s>")  # a space that does not break
    norms = result.norms
    read = np.tril(np.ones((5, 5), bool))
    assert (norms[~read] == 0).all() and (norms[read] > 0).all()


def test_saliency_with_tied_embeddings_and_classes() -> None:
    model = create_model(tied=True, hidden=7, softmax="frequency", softmax_classes=3)
    norms = saliency(model, "a cat").norms
    assert (norms[np.tril_indices(3)] > 0).all() and not model.state_dict()["embedding.weight"].requires_grad


# -- the vanishing gradient ------------------------------------------------------------------------------------------


def by_hand(model: RecurrentModel, words: list[int], back: int) -> float:
    """|dl / d state `back` words before the last of these|, by single steps from there on."""
    x, states = states_of(model, words[:-1])[-1 - back].rows
    leaves = [[part.clone().requires_grad_(True) for part in state] for state in states]
    hidden = sum(state[0] for state in leaves) if model.settings.residual else leaves[-1][0]
    h, after = hidden + (x - hidden.detach()), tuple(map(tuple, leaves))
    for word in words[len(words) - 1 - back : -1]:
        h, after = model.rnn.step(model.embedding(torch.tensor([word])), after)
    flat = [part for state in leaves for part in state]
    loss = -model.target_log_probs(h, np.array(words[-1:]))[0]
    gradients = torch.autograd.grad(loss, flat, allow_unused=True, materialize_grads=True)
    return float(torch.cat(gradients, dim=1).norm())


def test_gradients_by_distance_are_those_of_the_scorer(model: RecurrentModel) -> None:
    result = gradient_by_distance(model, CORPUS, 5)
    sentences = [sentence.tolist()[:6] for sentence in CORPUS if len(sentence) > 5]
    assert len(sentences) == 2 and result.shape == (5,)
    expected = [np.mean([by_hand(model, words, back) for words in sentences]) for back in range(5)]
    np.testing.assert_allclose(result, expected, rtol=1e-9)


def test_the_memory_of_an_lstm_without_forget_gate_keeps_the_gradient() -> None:
    """If h is not used in the next step, only dc_t / dc_{t-1} = 1 is left (eq. rnnlm:lstmcell)."""
    gradients = {}
    for cell in ("lstm-without-forget-gate", "lstm", "rnn"):
        model = create_model(cell=cell)
        model.state_dict()["rnn.layers.0.recurrent.weight"].zero_()
        gradients[cell] = gradient_by_distance(model, CORPUS, 8)
    without_gate = gradients["lstm-without-forget-gate"]
    np.testing.assert_allclose(without_gate[1:], without_gate[1], rtol=1e-12)
    assert (without_gate > 0).all()
    assert (np.diff(gradients["lstm"]) < 0).all()
    assert gradients["rnn"][0] > 0 and not gradients["rnn"][1:].any()


def test_many_sentences_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, many = create_model(), Corpus.from_sentences(LINES * 5, CORPUS.vocab)
    together = gradient_by_distance(model, many, 3)
    monkeypatch.setattr("dragoman.models.inspection.TOKENS_PER_BATCH", 9)
    np.testing.assert_allclose(gradient_by_distance(model, many, 3), together, rtol=1e-12)


def test_untrained_is_the_model_as_it_was() -> None:
    """But for the biases of the output, which begin as the text's frequencies."""
    model = create_model(layers=2)
    before = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}
    fit(model, CORPUS, max_updates=3, threads=1)
    for again in (untrained_copy(model, seed=3), untrained_copy(recorded(model, 3))):
        for name, tensor in again.named_parameters():
            assert torch.equal(tensor, before[name]) == (name != "output.bias"), name
    other = untrained_copy(model, seed=4).state_dict()
    for name in ("embedding.weight", "rnn.layers.0.input.weight", "rnn.layers.1.recurrent.weight"):
        assert not torch.equal(model.state_dict()[name], before[name])
        assert not torch.equal(other[name], before[name])
    assert not np.allclose(
        gradient_by_distance(model, CORPUS, 4), gradient_by_distance(untrained_copy(model, 3), CORPUS, 4)
    )


def recorded(model: RecurrentModel, seed: int) -> RecurrentModel:
    """The model loaded from disk, with its training settings."""
    record = {"training": {"seed": seed}}
    loaded = RecurrentModel(model.vocab, model.unknown, model.settings, model.classes, record)
    loaded.load_state_dict(model.state_dict())
    return loaded.eval()


# -- pictures --------------------------------------------------------------------------------------------------------

SENTENCES = [["he", "sees", "$x$ & <her>"], [], ["z" * 99]]
HELD: dict[str, list[NDArray[np.float64]]] = {
    "cell 3": [np.array([0.5, -1.25, 0.0]), np.zeros(0), np.array([0.25])],
    "cell $4$": [np.zeros(3), np.zeros(0), np.zeros(1)],
}
NORMS = np.array([[2.0, 0.0], [0.5, 4.0]])
REACHES = {
    "rnn": GradientNorms(np.array([2.0, 0.2, 2e-7]), np.array([1.0, 0.0, 0.0])),
    "$x": GradientNorms(*np.ones((2, 3))),
}
DRAWINGS: dict[str, Callable[[Path], None]] = {
    "cells": lambda path: draw_cells(SENTENCES, HELD, path, title="Cells & $more$"),
    "saliency": lambda path: draw_saliency(["<s>", "$a$"], ["$a$", "</s>"], NORMS, path, title="Which & $why$"),
    "gradients": lambda path: draw_gradients(REACHES, path, title="How & $far$"),
}
TEXTS = {
    "cells": {"he", "sees", "$x$ & <her>", "z" * 59 + "…", "cell 3", "cell $4$", "1.2", "−1.2", "Cells & $more$"},
    "saliency": {"<s>", "$a$", "</s>", "read", "predicted", SALIENCY_NOTE, "Which & $why$"},
    "gradients": {"rnn", "rnn, untrained", "$x", "$x, untrained", "1", "0.1", "10⁻⁷", "How & $far$"},
}


def texts_of(path: Path) -> list[str]:
    root = ET.fromstring(path.read_bytes())
    return ["".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_picture_has_every_word_and_the_same_bytes(tmp_path: Path, name: str) -> None:
    for file in ("one.svg", "two.svg", "one.png", "two.png"):
        DRAWINGS[name](tmp_path / file)
    assert TEXTS[name] <= set(texts_of(tmp_path / "one.svg"))
    for ending in ("svg", "png"):
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


def fills(path: Path) -> list[tuple[int, ...]]:
    """The colours of the fields that stand for numbers, in order: red, green and blue."""
    colors = []
    for element in ET.fromstring(path.read_bytes()).iter("{http://www.w3.org/2000/svg}path"):
        style = element.get("style") or ""
        if "fill: #" in style and "stroke: #ffffff" in style:
            color = style.partition("fill: #")[2][:6]
            colors.append(tuple(int(color[at : at + 2], 16) for at in (0, 2, 4)))
    return colors


def test_cells_are_red_above_zero_and_blue_below(tmp_path: Path) -> None:
    draw_cells(SENTENCES, {"cell 3": HELD["cell 3"]}, tmp_path / "cells.svg")
    half, down, nothing, quarter = fills(tmp_path / "cells.svg")
    assert half[0] > half[2] and quarter[0] > quarter[2] and down[0] < down[2]
    assert min(nothing) > 240
    assert half[2] < quarter[2] < nothing[2]  # the farther from 0, the less white


def test_rows_of_saliency_are_scaled_and_unread_words_are_blank(tmp_path: Path) -> None:
    draw_saliency(["<s>", "a"], ["a", "</s>"], NORMS, tmp_path / "saliency.svg")
    first, weak, strong = fills(tmp_path / "saliency.svg")
    assert first == strong and sum(weak) > sum(strong)


@pytest.mark.parametrize(
    ("draw", "problem"),
    [
        (lambda path: draw_cells([[]], HELD, path), "nothing to draw"),
        (lambda path: draw_cells([["a"]], {}, path), "nothing to draw"),
        (
            lambda path: draw_cells([["a"] * 61], {"x": [np.ones(61)]}, path),
            f"61 words, and a figure holds at most {MAX_WORDS}",
        ),
        (
            lambda path: draw_cells([["a"]], {str(n): [np.ones(1)] for n in range(9)}, path),
            f"holds at most {MAX_CELLS}",
        ),
        (lambda path: draw_cells([["a"]], {"x": [np.array([np.nan])]}, path), "x has a value that is infinite"),
        (lambda path: draw_saliency([], [], np.zeros((0, 0)), path), "a row for each word"),
        (lambda path: draw_saliency(["a"], ["b"], np.full((1, 1), np.inf), path), "a gradient is infinite"),
        (
            lambda path: draw_saliency(["a"] * 41, ["a"] * 41, np.ones((41, 41)), path),
            f"holds at most {MAX_SQUARES - 1}",
        ),
        (lambda path: draw_gradients({}, path), "nothing to draw"),
        (lambda path: draw_gradients({"x": GradientNorms(np.zeros(2), np.ones(2))}, path), "x has no gradient to draw"),
        (lambda path: draw_gradients({str(n): REACHES["$x"] for n in range(10)}, path), "10 models"),
    ],
)
def test_too_large_figures_are_refused(tmp_path: Path, draw: Callable[[Path], None], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        draw(tmp_path / "picture.svg")
    with pytest.raises(DataError, match=r"end the name in \.svg or \.png"):
        draw(tmp_path / "picture.pdf")
    assert list(tmp_path.iterdir()) == []


def test_the_largest_figures(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(MAX_WORDS)]
    cells = {str(number): [np.linspace(-1, 1, MAX_WORDS)] for number in range(MAX_CELLS)}
    draw_cells([words], cells, tmp_path / "cells.svg")
    assert all(texts_of(tmp_path / "cells.svg").count(word) == MAX_CELLS for word in words)
    side = words[:MAX_SQUARES]
    draw_saliency(side, side, np.tril(np.ones((MAX_SQUARES,) * 2)), tmp_path / "saliency.svg")
    assert all(texts_of(tmp_path / "saliency.svg").count(word) == 2 for word in side)
