"""Matrices of 8-bit integers in place of floating-point ones, and language models that have them."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import dragoman
from command import good, is_one_line, run
from dragoman import Corpus, FeedForwardModel, LogLinearModel, Mixture, NgramModel, RecurrentModel
from dragoman.core.errors import DataError
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.evaluation.likelihood import folded_log_probs, token_log_probs
from dragoman.io.model_card import CardScore, read_examples, read_scores, write_examples
from dragoman.io.storage import ARRAYS_FILE, CARD_FILE
from dragoman.models.loading import NEURAL_KINDS, load, load_language_model
from dragoman.models.quantized import QUANTIZED_CLASSES, QuantizedModel, quantize_model
from dragoman.models.quantized_language_model import QuantizedRecurrentModel
from dragoman.models.quantized_translator import QuantizedTranslator
from dragoman.models.translator_scorer import WordInputs
from dragoman.nn import int8
from dragoman.nn.int8 import Int8Matrix, Int8Tensor, dequantize_rows, linear, quantize_parameters, quantize_rows
from dragoman.nn.output import FullSoftmax
from dragoman.serve.registry import ModelRegistry
from small_translators import place, translators

__all__ = ["good", "place", "run"]  # fixtures
OUTPUTS, INPUTS, ROWS = 12, 40, 5
LINES = [f"the {noun} {verb} {other} ." for noun in ("cat", "dog") for verb in ("saw", "met") for other in ("it", "us")]


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(params=[True, False], ids=["with instructions", "without"])
def matrices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[torch.Tensor, Int8Tensor]:
    """A matrix that was rounded, in floating point and as it is stored, on a processor with and without instructions."""
    if not request.param:
        monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    quantized, scale = quantize_rows(random(OUTPUTS, INPUTS))
    return dequantize_rows(quantized, scale), Int8Tensor(quantized, scale)


# -- the matrix --------------------------------------------------------------------------------------------------------


def test_every_product_is_that_of_the_engine(matrices: tuple[torch.Tensor, Int8Tensor]) -> None:
    floats, W = matrices
    x, b, p = random(ROWS, INPUTS, seed=1), random(OUTPUTS, seed=2), random(ROWS, OUTPUTS, seed=3)
    product = Int8Matrix(floats)(x)
    torch.testing.assert_close(functional.linear(x, W), product)
    assert torch.equal(functional.linear(x, W, b), functional.linear(x, W) + b)
    assert torch.equal(linear(x, W, b), functional.linear(x, W, b))
    assert torch.equal(x @ W.t(), functional.linear(x, W))
    assert torch.equal(torch.addmm(p, x, W.t()), p + functional.linear(x, W))
    assert torch.equal(functional.linear(x[None], W, b)[0], functional.linear(x, W, b))


def test_parts_and_rows_are_those_of_the_matrix(matrices: tuple[torch.Tensor, Int8Tensor]) -> None:
    floats, W = matrices
    x, indices = random(ROWS, INPUTS, seed=1), torch.tensor([3, 0, 3])
    product = functional.linear(x, W)
    for part, expected in zip(W.split([8, 4]), product.split([8, 4], dim=1), strict=True):
        assert torch.equal(functional.linear(x, part), expected)
    assert torch.equal(functional.linear(x, W[indices]), product[:, indices])
    assert torch.equal(functional.linear(x, W.index_select(0, indices)), product[:, indices])
    assert torch.equal(functional.embedding(indices[None], W), floats[indices][None])
    assert W.split([8, 4])[0] is W.split([8, 4])[0], "or it would be reordered again in each step"


def test_other_functions_see_floating_point_numbers(matrices: tuple[torch.Tensor, Int8Tensor]) -> None:
    floats, W = matrices
    functional.linear(random(1, INPUTS), W)  # reorders it
    assert torch.equal(torch.cat([W, floats], dim=1), torch.cat([floats, floats], dim=1))
    assert torch.equal(W.abs().max(), floats.abs().max())
    assert torch.equal(W.t() @ floats, floats.t() @ floats)
    assert (W.shape, W.dtype, len(W)) == (floats.shape, floats.dtype, len(floats))


def test_every_way_to_read_it_gives_its_numbers(matrices: tuple[torch.Tensor, Int8Tensor]) -> None:
    floats, W = matrices
    x = random(ROWS, OUTPUTS, seed=1)
    for read in (
        lambda W: x @ W.T.mT,
        lambda W: W.data,
        lambda W: W.mT,
        lambda W: W[0],
        lambda W: W[:, 1],
        lambda W: W[2:4, 1:3],
        lambda W: torch.stack(W.split(4)),
        lambda W: torch.stack(W.split([20, 20], dim=1)),
        lambda W: W.index_select(1, torch.tensor([2, 0])),
    ):
        assert torch.equal(read(W), read(floats))
    assert torch.equal(functional.linear(random(INPUTS), W), functional.linear(random(INPUTS)[None], W)[0])


def test_it_exists_once(matrices: tuple[torch.Tensor, Int8Tensor]) -> None:
    """A matrix that was reordered for products, or divided, is not kept in its first order as well."""
    _, W = matrices
    quantized = W.quantized
    functional.linear(random(1, INPUTS), W)
    assert W._rows is None and torch.equal(W.quantized, quantized)
    other = Int8Tensor(quantized, W.scale)
    other.split([8, 4])
    assert other._rows is None and torch.equal(other.quantized, quantized)


def test_copies_and_pickles(matrices: tuple[torch.Tensor, Int8Tensor]) -> None:
    layer, x = nn.Linear(INPUTS, OUTPUTS), random(ROWS, INPUTS)
    layer.weight = nn.Parameter(matrices[1], requires_grad=False)
    for same in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(same(x), layer(x)) and [name for name, _ in same.named_parameters()] == ["weight", "bias"]


@pytest.mark.skipif(not int8.has_int8_products(), reason="the processor has no 8-bit products")
def test_products_that_are_not_added_up_exactly_are_not_used() -> None:
    """oneDNN may be limited to instructions that add up in 16 bits."""
    code = "from dragoman.nn.int8 import adds_exactly, has_int8_products; print(adds_exactly(), has_int8_products())"
    limited = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}
    done = subprocess.run([sys.executable, "-c", code], env=limited, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_the_scores_of_words_do_not_depend_on_their_number() -> None:
    """With many words in all, a shortlist is scored by the product with the whole matrix."""
    layer = FullSoftmax(INPUTS, 50)
    layer.reset_parameters(torch.Generator().manual_seed(1))
    quantize_parameters(layer, {"weight.weight": quantize_rows(layer.weights()[0].detach())})
    assert layer.subset(torch.tensor([[3, 7]])).weights is None
    assert layer.subset(torch.arange(50).repeat(50, 1)).weights is None


def test_a_quantized_model_cannot_be_trained() -> None:
    model = quantize_model(RecurrentModel.create(CORPUS, hidden=8), "lstm")
    with pytest.raises(DataError, match=r"QuantizedRecurrentModel .* 8-bit weights cannot be trained"):
        dragoman.fit(model, CORPUS, max_updates=1)


def test_long_sums_are_exact_without_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    generator = torch.Generator().manual_seed(0)
    W = torch.randint(100, 128, (20, 5000), generator=generator, dtype=torch.int8)
    x = torch.randint(228, 256, (5, 5000), generator=generator, dtype=torch.uint8)
    expected = (x.double() - int8.ZERO_POINT) @ W.double().t()
    assert torch.equal(int8.Int8Product(W, torch.ones(20))(x), expected.float())


# -- language models ---------------------------------------------------------------------------------------------------

CORPUS = Corpus.from_sentences(LINES)
SETTINGS: dict[str, tuple[Any, dict[str, Any]]] = {
    "lstm": (RecurrentModel, {"cell": "lstm", "layers": 2, "tied": True}),
    "gru": (RecurrentModel, {"cell": "gru", "carries": True, "softmax": "frequency"}),
    "feed-forward": (FeedForwardModel, {"order": 3, "softmax": "frequency", "tied": True}),
}


def create(name: str, size: int = 16) -> Any:
    kind, settings = SETTINGS[name]
    sizes = {"embedding": size, "hidden": (size,) if kind is FeedForwardModel else size, "embedding_reach": 1.0}
    return kind.create(CORPUS, unknown=ClosedVocabulary(CORPUS.vocab.num_known), **sizes, **settings)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_quantized_language_model_is_nearly_the_same(name: str, tmp_path: Path) -> None:
    model = create(name)
    quantized = quantize_model(model, name)
    log_probs = token_log_probs(quantized, CORPUS)
    np.testing.assert_allclose(log_probs, folded_log_probs(quantized, CORPUS), rtol=0, atol=1e-5)
    assert 0 < np.abs(log_probs - token_log_probs(model, CORPUS)).max() < 0.2
    assert quantized.sizes() == model.sizes()
    quantized.save(tmp_path / "model")
    assert np.array_equal(token_log_probs(load(tmp_path / "model"), CORPUS), log_probs)


@pytest.mark.parametrize("name", [*SETTINGS, "translator"])
def test_all_matrices_are_rounded_and_none_is_kept_in_floating_point(name: str) -> None:
    model = translators()["one"] if name == "translator" else create(name)
    quantized = quantize_model(model, name)
    parameters = dict(quantized.model.named_parameters())
    assert {type(parameter) for parameter in parameters.values() if parameter.dim() == 2} == {Int8Tensor}
    assert list(parameters) == [name for name, _ in model.named_parameters()]
    if isinstance(quantized, QuantizedTranslator):
        assert not isinstance(quantized._scorer._word_inputs, WordInputs), "a table larger than the model"


def test_the_directory_has_about_a_quarter_of_the_size(tmp_path: Path) -> None:
    model = create("lstm", size=128)
    model.save(tmp_path / "model")
    quantize_model(model, "").save(tmp_path / "small")
    before, after = ((tmp_path / name / ARRAYS_FILE).stat().st_size for name in ("model", "small"))
    assert after < 0.3 * before


def test_the_given_model_is_not_changed() -> None:
    model = create("lstm")
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    quantize_model(model, "")
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


def test_only_neural_models_are_quantized() -> None:
    kinds = {f"quantized-{kind}" for kind in QUANTIZED_CLASSES}
    assert {*QUANTIZED_CLASSES, *kinds} == {*NEURAL_KINDS, "translator", "quantized-translator"}
    for model in (LogLinearModel.create(CORPUS, features="words-1"), Mixture.uniform([create("lstm")])):
        with pytest.raises(DataError, match=rf"^place: is a model of kind {model.kind}; only translators"):
            quantize_model(model, "place")


def test_a_loaded_translator_does_not_keep_its_file_in_memory(tmp_path: Path) -> None:
    translators()["one"].save(tmp_path / "model")
    arrays = load(tmp_path / "model").length_prior.arrays()
    assert arrays and all(array.flags.owndata for array in arrays.values())


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A text, `lstm`, and `bi` over its vocabulary."""
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES))
    create("lstm").save(tmp_path / "lstm")
    unknown = ClosedVocabulary(CORPUS.vocab.num_known)
    NgramModel.train(CORPUS, order=2, smoothing="witten-bell", unknown=unknown).save(tmp_path / "bi")
    return tmp_path


def test_the_commands(models: Path, good: Any, run: Any) -> None:
    small, text = models / "small", models / "text"
    outcome = good("quantize", models / "lstm", "-o", small)
    assert "MB instead of" in outcome.err and "--text FILE" in outcome.err
    report = json.loads(good("evaluate", small, "--text", text, "--json").out)
    rounded = json.loads(good("evaluate", models / "lstm", "--text", text, "--precision", "int8", "--json").out)
    assert {**rounded, "model": report["model"]} == report
    good("evaluate", models / "lstm", small, "--text", text)
    good("score", small, "--words", stdin=text.read_text())
    assert good("sample", small, "-n", 2, "--seed", 3).out == good("sample", small, "-n", 2, "--seed", 3).out
    good("next", small, "the cat")
    good("verify", small)
    good("mix", small, models / "bi", "--dev-text", text, "-o", models / "both")
    good("verify", models / "both")
    good("evaluate", models / "both", "--text", text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("quantize", "bi", "-o", "x"), "is a model of kind ngram; only translators, recurrent and feed-forward"),
        (("quantize", "small", "-o", "x"), "8 bits already"),
        (("evaluate", "bi", "--text", "text", "--precision", "int8"), "is a model of kind ngram; only"),
        (("evaluate", "small", "--text", "text", "--precision", "float32"), "its weights have 8 bits"),
        (("evaluate", "small", "--text", "text", "--precision", "int4"), "choose float32 or int8"),
        (("evaluate", "small", "--text", "text", "--dynamic", "0.1"), "learns by gradient descent"),
        (
            ("train", "recurrent", "--from", "small", "--text", "text", "-o", "x"),
            "small: has 8-bit weights and cannot be",
        ),
        (("inspect", "cells", "small", "--text", "text"), "small: has 8-bit weights and cannot be"),
        (("serve", "lstm", "--precision", "int4"), "precision int4: choose float32 or int8"),
        (("serve", "small", "--precision", "float32"), "its weights have 8 bits"),
        (("serve", "bi", "--precision", "int8"), "is a model of kind ngram; only"),
    ],
)
def test_errors(models: Path, run: Any, arguments: tuple[str, ...], message: str) -> None:
    quantize_model(load(models / "lstm"), "").save(models / "small")
    outcome = run(*(str(models / word) if word in ("bi", "lstm", "small", "x", "text") else word for word in arguments))
    assert outcome.code == 2 and is_one_line(outcome.err) and message in outcome.err


def test_a_service_rounds_neural_models_only(models: Path) -> None:
    with pytest.warns(UserWarning, match="bi: served without rounding"):
        registry = ModelRegistry.from_arguments([str(models / "lstm"), str(models / "bi")], "int8")
    assert isinstance(registry.get("lstm").load_language_model(), QuantizedRecurrentModel)
    assert isinstance(registry.get("bi").load_language_model(), NgramModel)


def test_the_quantized_model_keeps_scores_and_examples(models: Path, good: Any) -> None:
    scores = [CardScore("dev", "BLEU | x", 1234.5, "nrefs:1|tok:13a"), CardScore("dev", "perplexity per word", 7.25)]
    load(models / "lstm").write_card(models / "lstm", scores)
    write_examples(models / "lstm", ["the cat"])
    good("quantize", models / "lstm", "-o", models / "small")
    marked = [score._replace(text="dev, before rounding to 8 bits") for score in scores]
    assert read_scores(models / "small") == marked and read_examples(models / "small") == ["the cat"]
    (models / "small" / CARD_FILE).write_text("## Scores\n| dev | BLEU | 1 |  |\n")
    assert read_scores(models / "small") == [], "a card of the user"


def test_rounding_while_loading_in_python(models: Path) -> None:
    rounded = dragoman.load(models / "lstm", precision="int8")
    quantize_model(load(models / "lstm"), "").save(models / "small")
    assert rounded.score("the cat") == dragoman.load(models / "small").score("the cat")
    for name, precision, message in (
        ("lstm", "int4", "choose float32 or int8"),
        ("bi", "int8", "is a model of kind ngram"),
        ("small", "float32", "its weights have 8 bits"),
    ):
        with pytest.raises(DataError, match=message):
            dragoman.load(models / name, precision=precision)
    assert isinstance(dragoman.load(models / "lstm", precision="float32"), RecurrentModel)


def test_the_user_is_told_where_int8_is_slow(
    models: Path, good: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small, text = models / "small", models / "text"
    assert "slower" not in good("quantize", models / "lstm", "-o", small).err or not int8.has_int8_products()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True})
    for arguments, directory, remedy in (
        (("score", small), small, "use the model that it was made from"),
        (("evaluate", models / "lstm", "--text", text, "--precision", "int8"), models / "lstm", "load it without"),
        (("quantize", models / "lstm", "-o", small, "--force"), small, f"use {models / 'lstm'}"),
    ):
        lines = [line for line in good(*arguments, stdin="the cat\n").err.splitlines() if "slower" in line]
        assert len(lines) == 1 and lines[0].startswith(f"warning: {directory}: ") and remedy in lines[0]
    assert isinstance(quantize_model(load_language_model(models / "lstm"), ""), QuantizedModel)
    assert capsys.readouterr() == ("", ""), "the library prints nothing"
