"""Training with products in bfloat16: gradients, choice of the precision, and resuming."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from dragoman import Corpus, FeedForwardModel, ParallelCorpus, RecurrentModel, TrainingConfig, Translator, fit
from dragoman.core.errors import DataError
from dragoman.io.storage import CONFIG_FILE
from dragoman.models.configs import FeedForwardConfig, RecurrentConfig
from dragoman.models.planning import StoredRun
from dragoman.nn.activations import tanh
from dragoman.training import precision
from dragoman.training.precision import choose_precision, has_fast_bfloat16, precision_choice
from small_translators import ENGLISH, GERMAN
from training_helpers import CORPUS as PART
from training_helpers import ONE_THREAD, Recorder, assert_same, network, parameters

CORPUS = Corpus.from_sentences(ENGLISH)
PAIRS = ParallelCorpus(Corpus.from_sentences(GERMAN), CORPUS)
SIZES = {"embedding": 24, "hidden": 24, "dropout": 0.0, "embedding_reach": 1.0}
BFLOAT16 = {"precision": "bfloat16", **ONE_THREAD}

NETWORKS: dict[str, tuple[type[Any], Any, dict[str, Any]]] = {
    "feed-forward": (FeedForwardModel, CORPUS, {"order": 3, "hidden": (24,), "embedding": 24, "direct": True}),
    "recurrent, rnn": (RecurrentModel, CORPUS, {**SIZES, "cell": "rnn"}),
    "recurrent, lstm, deep": (RecurrentModel, CORPUS, {**SIZES, "layers": 2, "tied": True}),
    "recurrent, lstm without forget gate": (RecurrentModel, CORPUS, {**SIZES, "cell": "lstm-without-forget-gate"}),
    "recurrent, gru, classes": (RecurrentModel, CORPUS, {**SIZES, "cell": "gru", "softmax": "frequency"}),
    "translator, mlp, readout": (Translator, PAIRS, {**SIZES, "readout": 24, "layers": 2}),
    "translator, dot, lexicon": (Translator, PAIRS, {**SIZES, "attention": "dot", "lexicon": True}),
    "translator, bilinear, gru": (Translator, PAIRS, {**SIZES, "attention": "bilinear", "cell": "gru"}),
    "translator, convolutional": (Translator, PAIRS, {**SIZES, "encoder": "convolutional", "filters": 24}),
    "encoder-decoder": (Translator, PAIRS, {**SIZES, "attention": "none", "cell": "rnn"}),
}


def loss_and_gradients(model: Any, data: Any, dtype: torch.dtype) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        loss = -model(data).log_probs.mean()
    loss.backward()
    gradients = {name: part.grad.clone() for name, part in model.named_parameters() if part.grad is not None}
    model.zero_grad()
    return loss.detach(), gradients


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_those_of_float32(name: str) -> None:
    kind, data, settings = NETWORKS[name]
    model = kind.create(data, **settings).train()
    expected_loss, expected = loss_and_gradients(model, data, torch.float32)
    loss, gradients = loss_and_gradients(model, data, torch.bfloat16)
    assert float(loss) == pytest.approx(float(expected_loss), rel=5e-3)
    assert gradients.keys() == expected.keys()
    for parameter, gradient in gradients.items():
        assert gradient.dtype == torch.float32
        error = (gradient - expected[parameter]).norm() / expected[parameter].norm()
        assert error < 0.05, parameter
    assert any(not torch.equal(gradient, expected[parameter]) for parameter, gradient in gradients.items())


def test_what_is_not_a_product_stays_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """The states of the decoder, its contexts and its attention."""
    model = Translator.create(PAIRS, **SIZES).train()
    states: list[Any] = []
    step = model.decoder.attention_step
    monkeypatch.setattr(model.decoder, "attention_step", lambda *given: states.append(step(*given)) or states[-1])
    with torch.autocast("cpu", torch.bfloat16):
        output = model(PAIRS)
    tensors = [*states[-1].layers[0], states[-1].context, states[-1].attention, output.log_probs]
    assert {tensor.dtype for tensor in tensors} == {torch.float32}


def test_training_is_nearly_that_in_float32() -> None:
    losses = []
    for name in ("float32", "bfloat16"):
        model, recorder = RecurrentModel.create(CORPUS, **SIZES), Recorder()
        fit(model, CORPUS, CORPUS, max_epochs=10, learning_rate=0.02, callback=recorder, precision=name, **ONE_THREAD)
        losses.append(recorder.reports[-1].dev_loss)
        assert recorder.started is not None and recorder.started.precision == name
        assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
    assert losses[1] != losses[0]


def test_auto_is_bfloat16_for_large_models_on_processors_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    large = FeedForwardModel.create(CORPUS, embedding=200, hidden=(1500,))
    small, double = FeedForwardModel.create(CORPUS), FeedForwardModel.create(CORPUS, embedding=1500, dtype="float64")
    for available, chosen in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr(precision, "has_fast_bfloat16", lambda device, available=available: available)
        assert choose_precision("auto", large, "cpu") == chosen
        reason = "times as fast on this processor" if available else "bfloat16 is not faster on this processor"
        assert reason in precision_choice("auto", large, "cpu").reason
        assert precision_choice("auto", small, "cpu").reason == "the model is small"
        assert not precision_choice("float32", small, "cpu").reason
        assert choose_precision("auto", small, "cpu") == choose_precision("auto", double, "cpu") == "float32"
        with nullcontext() if available else pytest.warns(match="bfloat16 is not faster"):
            assert choose_precision("bfloat16", small, "cpu") == "bfloat16"
        assert choose_precision("auto", torch.nn.Linear(1500, 1500), "cpu") == "float32", "a module of the user"
    with pytest.raises(DataError, match="not float32"):
        choose_precision("bfloat16", double, "cpu")


@pytest.mark.parametrize(
    ("capabilities", "speedup", "expected"),
    [
        ({"avx512_bf16": True}, 3.0, True),
        ({"amx_bf16": True}, 3.0, True),
        ({"avx512_bf16": True}, 0.8, False),  # some processors have the instructions and are slower with them
        ({"avx512_f": True}, 3.0, False),
    ],
)
def test_processors_are_chosen_by_flags_and_measured_speed(
    capabilities: dict[str, bool], speedup: float, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    monkeypatch.setattr(precision, "bfloat16_speedup", lambda: speedup)
    assert has_fast_bfloat16.__wrapped__("cpu") == expected


def test_the_speedup_is_the_ratio_of_the_shortest_times(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([9.0, 2.0, 6.0, 3.0] + [9.0, 9.0] * (precision.MEASURED_ROUNDS - 2))  # float32, bfloat16, ...
    times = [time for elapsed in seconds for time in (100.0, 100.0 + elapsed)]
    monkeypatch.setattr(precision, "perf_counter", iter(times).__next__)
    assert precision.bfloat16_speedup.__wrapped__() == 3.0


def test_a_resumed_run_keeps_its_precision_and_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, resumed = network(), network()
    fit(whole, PART, output=tmp_path / "whole", max_epochs=4, **BFLOAT16)
    fit(resumed, PART, output=tmp_path / "resumed", max_epochs=2, **BFLOAT16)
    monkeypatch.setattr(precision, "has_fast_bfloat16", lambda device: False)
    monkeypatch.setattr("dragoman.training.fit.available_cores", lambda: 7)
    resumed, recorder = network(), Recorder()
    fit(resumed, PART, output=tmp_path / "resumed", max_epochs=4, callback=recorder)
    assert_same(parameters(resumed), parameters(whole))
    assert recorder.started is not None and (recorder.started.precision, recorder.started.threads) == ("bfloat16", 1)


def test_another_precision_is_another_training(tmp_path: Path) -> None:
    fit(network(), PART, output=tmp_path / "model", max_epochs=1, **BFLOAT16)
    with pytest.raises(DataError, match=r"training\.precision: bfloat16 -> float32"):
        fit(network(), PART, output=tmp_path / "model", max_epochs=1, precision="float32", **ONE_THREAD)


def test_runs_of_earlier_versions_resume_in_float32(tmp_path: Path) -> None:
    """They had no precision, and the type of the parameters was called so."""
    whole, resumed = network(), network()
    settings = {"precision": "float32", **ONE_THREAD}
    fit(whole, PART, output=tmp_path / "whole", max_epochs=3, **settings)
    fit(resumed, PART, output=tmp_path / "resumed", max_epochs=2, **settings)
    file = tmp_path / "resumed" / CONFIG_FILE
    config = yaml.safe_load(file.read_text())
    del config["training"]["precision"], config["files"]
    config["model"]["precision"] = config["model"].pop("dtype")
    file.write_text(yaml.safe_dump(config, sort_keys=False))
    resumed, recorder = network(), Recorder()
    fit(resumed, PART, output=tmp_path / "resumed", max_epochs=3, callback=recorder)
    assert recorder.started is not None and recorder.started.precision == "float32"
    assert_same(parameters(resumed), parameters(whole))


def test_the_default_is_auto() -> None:
    assert TrainingConfig().precision == "auto"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_tanh_equals_that_of_torch(dtype: torch.dtype) -> None:
    x = torch.linspace(-12, 12, 5_001).to(dtype)
    exact = x.double().tanh()
    assert (tanh(x).double() - exact).abs().max() < {torch.float64: 1e-15}.get(dtype, 2e-7)
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(tanh(x).sum(), x)
    torch.testing.assert_close(gradient.double(), 1 - exact**2, rtol=0, atol=1e-6 if dtype != torch.bfloat16 else 4e-3)


def test_stored_settings_are_applied_to_models_of_the_same_kind(tmp_path: Path) -> None:
    fit(network(), PART, output=tmp_path / "model", max_epochs=1, **BFLOAT16)
    file = tmp_path / "model" / CONFIG_FILE
    config = yaml.safe_load(file.read_text())
    config["model"]["precision"] = config["model"].pop("dtype")  # its name in earlier versions
    del config["files"]
    file.write_text(yaml.safe_dump(config, sort_keys=False))
    stored = StoredRun.read(tmp_path / "model")
    assert stored is not None
    given: dict[str, list[str]] = {"model": [], "training": []}
    model, training = stored.apply(FeedForwardConfig(), TrainingConfig(), given)
    assert (model.dtype, model.order, training.precision) == ("float32", 3, "bfloat16")
    with pytest.raises(DataError, match="contains a different training run"):
        stored.apply(RecurrentConfig(), TrainingConfig(), given)
