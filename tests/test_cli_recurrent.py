"""dragoman train recurrent, and what evaluate says of such models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from command import TRAIN, is_one_line

SMALL = ("--embedding", 5, "--hidden", 6, "--threads", 1, "--batch-size", 30, "--max-epochs", 2)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TRAIN)
    return path


def trained(good: Any, text: Path, *options: Any) -> tuple[Path, str]:
    output = text.with_name("model")
    result = good("train", "recurrent", "--text", text, "--dev-text", text, "-o", output, *SMALL, *options)
    return output, result.err


def test_sentence_by_sentence(good: Any, text: Path) -> None:
    model, result = trained(good, text, "--cell", "gru", "--layers", 2, "--first-state", "learned")
    assert "batches of whole sentences" in result
    config = yaml.safe_load((model / "config.yaml").read_text())
    assert config["kind"] == "recurrent"
    assert config["model"]["cell"] == "gru" and config["model"]["layers"] == 2 and not config["model"]["carries"]
    assert "each is scored separately" in good("evaluate", model, "--text", text).out
    assert not json.loads(good("evaluate", model, "--text", text, "--json").out)["carries"]


def test_as_a_stream(good: Any, text: Path) -> None:
    model, result = trained(good, text, "--carries", "--steps", 6)
    assert "as a stream, gradients over 6 words" in result
    assert "the state is kept between them" in good("evaluate", model, "--text", text).out
    assert json.loads(good("evaluate", model, "--text", text, "--json").out)["carries"]
    assert f"the state is kept between sentences by {model}" in good("evaluate", model, model, "--text", text).out


def test_dynamic_evaluation_is_marked(good: Any, text: Path) -> None:
    model, _ = trained(good, text)
    still = json.loads(good("evaluate", model, "--text", text, "--json").out)
    result = good("evaluate", model, "--text", text, "--json", "--dynamic", 0.3)
    moving = json.loads(result.out)
    assert "dynamic_evaluation" not in still
    assert moving["dynamic_evaluation"]["rate"] == 0.3
    assert moving["perplexity"] != still["perplexity"]
    assert "dynamic evaluation" in result.err
    report = good("evaluate", model, "--text", text, "--dynamic", 0.3).out
    assert f"{model} (dynamic)" in report and "the model learned from the sentences before" in report


@pytest.mark.parametrize(
    ("options", "result"),
    [
        (("--cell", "lstn"), "did you mean"),
        (("--residual",), "embedding 5, hidden 6"),
        (("--carries", "--batch-size", 0), "batch_size 0"),
        (("--softmax-classes", 3), "softmax"),
        (("--dropout", 1), "dropout"),
    ],
)
def test_mistakes_are_told_in_one_line(run: Any, text: Path, options: tuple[Any, ...], result: str) -> None:
    outcome = run("train", "recurrent", "--text", text, "-o", text.with_name("model"), *SMALL, *options)
    assert outcome.code == 2
    assert is_one_line(outcome.err) and result in outcome.err
    assert not text.with_name("model").exists()


def test_dynamic_evaluation_needs_a_network(run: Any, good: Any, text: Path) -> None:
    good("train", "ngram", "--text", text, "--order", 2, "--smoothing", "witten-bell", "-o", text.with_name("kn"))
    outcome = run("evaluate", text.with_name("kn"), "--text", text, "--dynamic", 0.1)
    assert outcome.code == 2
    assert is_one_line(outcome.err.splitlines()[-1] + "\n") and "learns by gradient descent" in outcome.err
