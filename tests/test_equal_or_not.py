"""The tutorial's small network: what can represent it, what can learn it, and the picture of its hidden space."""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from dragoman.nn.activations import ACTIVATIONS

EXAMPLE = Path(__file__).parent.parent / "examples" / "equal_or_not.py"
SEEDS = (1, 2)


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """The example, as a module."""
    spec = importlib.util.spec_from_file_location("equal_or_not", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


# -- what can represent it -------------------------------------------------------------------------------------------


def test_the_points_are_the_function(example: ModuleType) -> None:
    points = example.POINTS
    assert {tuple(x) for x in points.x.tolist()} == {(1, 1), (1, -1), (-1, 1), (-1, -1)}
    assert all(
        y == (1 if first == second else -1)
        for (first, second), y in zip(points.x.tolist(), points.y.tolist(), strict=True)
    )
    chosen = points.select(np.array([2, 0]))
    assert (chosen.x.tolist(), chosen.y.tolist(), chosen.sizes.tolist()) == ([[1, -1], [1, 1]], [-1, 1], [1, 1])


def test_no_linear_model_is_better_than_an_error_of_one(example: ModuleType) -> None:
    """The least squares are those of y = 0: the function is orthogonal to x_1, x_2 and 1."""
    design = np.column_stack([example.POINTS.x.numpy(), np.ones(4)])
    best, residual, *_ = np.linalg.lstsq(design, example.POINTS.y.numpy())
    assert best == pytest.approx(np.zeros(3), abs=1e-7)
    assert residual / 4 == pytest.approx(1.0)


def test_training_a_linear_model_reaches_this_error(example: ModuleType) -> None:
    for seed in SEEDS:
        assert 1.0 - 1e-6 <= example.train(example.Linear(seed), seed) < 1.001


def test_the_handmade_network_is_exact(example: ModuleType) -> None:
    assert example.by_hand()(example.POINTS.x).tolist() == example.POINTS.y.tolist()


# -- what can learn it -----------------------------------------------------------------------------------------------


def test_through_step_only_the_output_layer_learns(example: ModuleType) -> None:
    network = example.Network("step", 2, seed=1)
    before = {name: tensor.clone() for name, tensor in network.named_parameters()}
    example.train(network, seed=1)
    same = {name: torch.equal(tensor, before[name]) for name, tensor in network.named_parameters()}
    assert same == {
        "hidden_layer.weight": True,
        "hidden_layer.bias": True,
        "output_layer.weight": False,
        "output_layer.bias": False,
    }


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_twenty_units_learn_it(example: ModuleType, activation: str) -> None:
    for seed in SEEDS:
        network = example.Network(activation, 20, seed)
        assert example.error_of(network) > 0.1
        assert example.train(network, seed) < example.SOLVED


# The derivatives of the functions in the hidden layer, dh/dh', from h' and h.
SLOPES = {
    "tanh": lambda inner, h: 1 - h**2,
    "relu": lambda inner, h: (inner > 0).double(),
    "step": lambda inner, h: 0 * h,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_are_the_closed_form(example: ModuleType, activation: str) -> None:
    """eq. nnlm:backward, factor by factor, against automatic differentiation, at each point for itself."""
    network = example.Network(activation, 3, seed=5).double()
    W_xh, b_h, w_hy, _ = network.parameters()
    for number in range(4):
        point = example.POINTS.select(np.array([number]))
        point = example.Points(point.x.double(), point.y.double())
        x, target = point.x[0], point.y[0]
        inner = W_xh @ x + b_h
        h = network.hidden(point.x)[0]
        dl_dy = -2 * (target - network(point.x)[0])
        dl_dinner = dl_dy * w_hy[0] * SLOPES[activation](inner, h)  # (hidden,)
        closed = {"W_xh": torch.outer(dl_dinner, x), "b_h": dl_dinner, "w_hy": (dl_dy * h)[None], "b_y": dl_dy[None]}
        loss = example.squared_error(network, point).sum()
        actual = torch.autograd.grad(loss, list(network.parameters()), allow_unused=True, materialize_grads=True)
        for (name, expected), gradient in zip(closed.items(), actual, strict=True):
            torch.testing.assert_close(gradient, expected.detach(), msg=name)


def test_the_program_prints_its_table_and_draws(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["equal_or_not", "--seeds", "1", "--picture", str(tmp_path / "picture.svg")])
    example.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:-1]] == [
        "linear",
        *["step,"],
        *["step"] * 2,
        *["tanh"] * 2,
        *["relu"] * 2,
        "tanh,",
    ]
    assert lines[2].split() == ["linear", "-", "0", "of", "1", "1.00", "(1)"]
    assert lines[3].split()[-5:] == ["2", "1", "of", "1", "-"]
    assert {"step, by hand", "(1, 1)", "h₁"} <= texts_of(tmp_path / "picture.svg")


# -- the picture -----------------------------------------------------------------------------------------------------


def texts_of(path: Path) -> set[str]:
    root = ET.fromstring(path.read_bytes())
    return {"".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")}


def test_a_picture_has_every_label_as_text(example: ModuleType, tmp_path: Path) -> None:
    example.draw_hidden_spaces({"mine": example.by_hand()}, tmp_path / "picture.svg", title="Mine & yours")
    texts = texts_of(tmp_path / "picture.svg")
    assert {"mine", "Mine & yours", "x₁", "x₂", "h₁", "h₂", "(1, −1)"} <= texts


def test_points_in_one_place_share_a_label(example: ModuleType) -> None:
    """Points nearer than this share a label; the others have separate labels."""
    points = np.array([[1.0, 1.0], [0.0, 0.0], [1.02, 0.99], [1.0, 2.0]])
    labels = example.merge_labels(points, ["a", "b", "c", "d"], tolerance=0.05)
    assert labels == {(1.0, 1.0): "a\nc", (0.0, 0.0): "b", (1.0, 2.0): "d"}
