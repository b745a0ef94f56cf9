"""Matrices prepared for search, and translators with 8-bit weights."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dragoman
from command import good, is_one_line, run
from dragoman import ParallelCorpus, Translator
from dragoman.core.errors import DataError
from dragoman.core.scorer import fold, log_prob, select_rows
from dragoman.data.batches import Batch
from dragoman.io.storage import ARRAYS_FILE, map_arrays, write_arrays
from dragoman.models import translator_scorer
from dragoman.models.loading import load_translator
from dragoman.models.quantized_translator import QuantizedTranslator
from dragoman.models.translator_scorer import TranslatorScorer, WordInputs
from dragoman.nn import int8, packed
from dragoman.nn.int8 import Int8Matrix, dequantize_rows, quantize_rows
from dragoman.nn.packed import pack_float32
from model_files import remove_digests
from small_translators import ENGLISH, GERMAN, place, translators

__all__ = ["good", "place", "run"]  # fixtures
ROWS, INPUTS, OUTPUTS = 5, 33, 20


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("has_kernel", [True, False])
@pytest.mark.parametrize("rows", [0, 1, ROWS, 33, 64])
def test_a_packed_matrix_gives_the_same_products(rows: int, has_kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MIN_SIZE", 1)
    if not has_kernel:
        monkeypatch.setattr(packed, "can_pack", lambda W: False)
    W, b, x = random(OUTPUTS, INPUTS), random(OUTPUTS, seed=1), random(rows, INPUTS, seed=2)
    torch.testing.assert_close(pack_float32(W, b)(x), x @ W.t() + b, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(pack_float32(W)(x), x @ W.t(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("has_kernel", [True, False])
def test_an_int8_matrix_multiplies_rounded_numbers_exactly(has_kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_kernel:
        monkeypatch.setattr(int8, "has_int8_products", lambda: False)
    W, b, x = random(OUTPUTS, INPUTS), random(OUTPUTS, seed=1), random(ROWS, INPUTS, seed=2)
    x[1], W[3] = 0.0, 0.0
    scale = x.abs().amax(dim=1, keepdim=True).clamp(min=1e-30) / 127
    rounded = (x / scale).round() * scale
    expected = rounded.double() @ dequantize_rows(*quantize_rows(W)).double().t() + b
    result = Int8Matrix(W, b)(x)
    torch.testing.assert_close(result.double(), expected, rtol=1e-5, atol=1e-5)
    assert (result - (x @ W.t() + b)).abs().max() < 0.02 * (x @ W.t()).abs().max()


def test_many_numbers_of_rows_are_few_shapes() -> None:
    """For each shape oneDNN compiles and keeps functions."""
    rounded = [packed.rounded_rows(rows) for rows in range(1, 641)]
    assert all(rows <= size <= 1.125 * rows for rows, size in enumerate(rounded, start=1))
    assert len(set(rounded)) <= 64


def test_a_row_does_not_depend_on_the_others() -> None:
    W, x = random(OUTPUTS, INPUTS), random(ROWS, INPUTS, seed=2)
    x[0] *= 1000
    matrix = Int8Matrix(W)
    for row in range(ROWS):
        assert torch.equal(matrix(x)[row], matrix(x[row : row + 1])[0])


def test_rounding_twice_changes_nothing() -> None:
    W = random(OUTPUTS, INPUTS)
    once = dequantize_rows(*quantize_rows(W))
    assert (once - W).abs().max() <= W.abs().max() / 254 + 1e-6
    torch.testing.assert_close(dequantize_rows(*quantize_rows(once)), once, rtol=1e-6, atol=0)


SETTINGS: dict[str, dict[str, Any]] = {
    "attention": {"readout": 12},
    "two layers": {"layers": 2, "cell": "gru", "attention": "bilinear"},
    "no attention": {"attention": "none", "layers": 2},
    "classes": {"softmax": "frequency"},
    "tied": {"tied": True, "lexicon": True},
}


SOURCE, TARGET = dragoman.Tokenizer.train("word", GERMAN), dragoman.Tokenizer.train("word", ENGLISH)


def create_pairs() -> ParallelCorpus:
    return ParallelCorpus(SOURCE.encode(GERMAN), TARGET.encode(ENGLISH))


def create(name: str) -> tuple[Translator, Batch]:
    pairs, source, target = create_pairs(), SOURCE, TARGET
    model = Translator.create(pairs, source, target, embedding=16, hidden=16, embedding_reach=1.0, **SETTINGS[name])
    return model, Batch.from_sentences(pairs.target, pairs.source)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_translator_prepared_for_search_has_the_same_scores(name: str) -> None:
    model, batch = create(name)
    prepared = model.prepare_for_search()
    torch.testing.assert_close(log_prob(prepared, batch), log_prob(model, batch), rtol=1e-5, atol=1e-4)


def in_place(model: Translator) -> None:
    with torch.no_grad():
        model.decoder.layers[0].recurrent.weight[3, 2] += 2


def one_row_of_data(model: Translator) -> None:
    model.embedding.weight.data[5].mul_(2)


def all_data(model: Translator) -> None:
    for parameter in model.parameters():
        parameter.data.mul_(0.5)


def as_a_vector(model: Translator) -> None:
    vector = torch.nn.utils.parameters_to_vector(model.parameters())
    torch.nn.utils.vector_to_parameters(vector * 0.5, model.parameters())


def fused_step(model: Translator) -> None:
    """Fused optimizers change parameters without changing their versions."""
    optimizer = torch.optim.Adam(model.parameters(), 0.1, fused=True)
    model(create_pairs()).log_probs.sum().backward()
    optimizer.step()


def in_64_bits(model: Translator) -> None:
    model.double()


CHANGES = [in_place, one_row_of_data, all_data, as_a_vector, fused_step, in_64_bits]


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_prepared_again_after_a_change(change: Callable[[Translator], None]) -> None:
    model, batch = create("attention")
    first = model.prepare_for_search()
    log_prob(first, batch)  # which fills the table of word inputs
    assert model.prepare_for_search() is first and deepcopy(model).prepare_for_search() is not first
    change(model)
    assert model.prepare_for_search() is not first
    torch.testing.assert_close(
        log_prob(model.prepare_for_search(), batch), log_prob(model, batch), rtol=1e-5, atol=1e-4
    )
    assert np.isfinite(model.translate(GERMAN[:1])[0].log_prob)


def test_inputs_of_words_are_computed_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translator_scorer, "TABLE_BLOCK", 4)
    model, _ = create("attention")
    expected = model.decoder.word_inputs(model.embedding.weight)
    with torch.no_grad():
        inputs = WordInputs(model)
        computed = []
        monkeypatch.setattr(inputs, "_compute", lambda m: computed.append(len(m)) or model.decoder.word_inputs(m))
        last = len(model.vocab) - 1
        for words, rows in (([9, 2, 9], [4, 4]), ([8, 3], []), ([last], [last % 4 + 1])):
            torch.testing.assert_close(inputs(torch.tensor(words)), expected[words])
            assert computed == rows
            computed.clear()


def test_a_table_of_many_words_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translator_scorer, "MAX_TABLE_SIZE", 1)
    monkeypatch.setattr(translator_scorer, "WordInputs", None)
    model, batch = create("attention")
    prepared = model.prepare_for_search()
    torch.testing.assert_close(log_prob(prepared, batch), log_prob(model, batch), rtol=1e-5, atol=1e-4)


def test_search_while_a_model_is_trained_sees_its_parameters() -> None:
    model, batch = create("attention")
    model.translate(GERMAN[:1])  # prepares the model
    optimizer = torch.optim.Adam(model.parameters(), 0.1, fused=True)
    model.train()
    model(create_pairs()).log_probs.sum().backward()
    optimizer.step()
    for mode in (True, False):
        model.train(mode)
        expected = log_prob(TranslatorScorer(model), batch)
        torch.testing.assert_close(log_prob(model.prepare_for_search(), batch), expected, rtol=1e-5, atol=1e-4)


def test_search_does_not_use_autocast() -> None:
    model, _ = create("attention")
    expected = model.translate(GERMAN[:2])
    with torch.autocast("cpu", torch.bfloat16):
        translations_in_autocast = create("attention")[0].translate(GERMAN[:2])
    assert [best.log_prob for best in translations_in_autocast] == [best.log_prob for best in expected]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_quantized_translator_is_nearly_the_same_scorer(name: str) -> None:
    model, batch = create(name)
    quantized = QuantizedTranslator.quantize(model)
    state = quantized.start(batch)
    log_probs = quantized.log_probs(state)
    assert torch.allclose(log_probs.exp().sum(dim=1), torch.ones(len(log_probs)), atol=1e-5)
    few = select_rows(state, torch.tensor([3, 1]))
    torch.testing.assert_close(quantized.log_probs(few), log_probs[[3, 1]], rtol=1e-5, atol=1e-5)
    difference = (fold(quantized, batch)[0] - fold(model, batch)[0]).abs().max()
    assert 0 < difference < 0.2


def test_a_quantized_translator_translates_the_same() -> None:
    model = translators()["one"]
    quantized = QuantizedTranslator.quantize(model)
    assert [best.text for best in quantized.translate(GERMAN)] == [best.text for best in model.translate(GERMAN)]
    assert quantized.translate(GERMAN[:1])[0].attention is not None


def test_saving_and_loading_changes_nothing(tmp_path: Path) -> None:
    quantized = QuantizedTranslator.quantize(create("attention")[0])
    batch = create("attention")[1]
    quantized.save(tmp_path / "model")
    loaded = load_translator(tmp_path / "model")
    assert isinstance(loaded, QuantizedTranslator)
    assert torch.equal(log_prob(loaded, batch), log_prob(quantized, batch))
    with pytest.raises(DataError, match="its weights have 8 bits"):
        load_translator(tmp_path / "model", "float32")
    with pytest.raises(DataError, match="choose float32 or int8"):
        load_translator(tmp_path / "model", "int4")


@pytest.mark.parametrize("change", ["scale", "shape", "type", "missing"])
def test_damaged_weights_are_refused(tmp_path: Path, change: str) -> None:
    QuantizedTranslator.quantize(create("attention")[0]).save(tmp_path / "model")
    file = tmp_path / "model" / ARRAYS_FILE
    arrays = {name: np.array(array) for name, array in map_arrays(file).items()}
    match change:
        case "scale":
            arrays["readout.weight.scale"][0] = np.nan
        case "shape":
            arrays["readout.weight.scale"] = arrays["readout.weight.scale"][:-1]
        case "missing":
            del arrays["readout.weight.scale"]
        case _:
            arrays["readout.weight"] = arrays["readout.weight"].astype(np.int32)
    write_arrays(file, arrays)
    remove_digests(tmp_path / "model")
    with pytest.raises(DataError, match=r"broken|not finite|train or copy"):
        load_translator(tmp_path / "model")


def test_the_command(place: Path, tmp_path: Path, run: Any, good: Any) -> None:
    assert "MB instead of" in good("quantize", place / "one", "-o", tmp_path / "small").err
    text = "".join(f"{line}\n" for line in GERMAN)
    expected = good("translate", place / "one", stdin=text).out
    assert good("translate", tmp_path / "small", stdin=text).out == expected
    assert good("translate", place / "one", "--precision", "int8", stdin=text).out == expected
    good("verify", tmp_path / "small")
    good("evaluate", place / "one", tmp_path / "small", "--src", place / "test.de", "--ref", place / "test.en")
    for arguments, message in (
        ((tmp_path / "small", "-o", tmp_path / "smaller"), "already"),
        ((place / "one", "-o", place / "one", "--force"), "would be lost"),
    ):
        outcome = run("quantize", *arguments)
        assert outcome.code == 2 and is_one_line(outcome.err) and message in outcome.err
