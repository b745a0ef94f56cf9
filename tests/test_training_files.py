"""Training with an output directory: bit-identical resuming, non-finite losses, signals."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dragoman
from dragoman import Corpus, DataError, DragomanError, fit
from dragoman.io.storage import ARRAYS_FILE, CHECKPOINT_FILE, METRICS_FILE, map_arrays, map_arrays_with_metadata
from dragoman.training import run_directory
from dragoman.training.fit import StoppedError
from dragoman.training.loop import DivergedError
from dragoman.training.objectives import negative_log_likelihood
from dragoman.training.optimizers import OPTIMIZERS
from training_helpers import (
    CORPUS,
    DEV,
    ONE_THREAD,
    Recorder,
    assert_same,
    metrics,
    network,
    parameters,
    set_dev_losses,
    stop_at,
)
from zoo import HELD_OUT

# -- directories -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_resumed_training_is_bit_identical(tmp_path: Path, optimizer: str) -> None:
    settings: dict[str, Any] = {
        "optimizer": optimizer,
        "batch_size": 30,
        "max_epochs": 3,
        "save_every": 3,
        "report_every": 2,
        "learning_rate": 0.02,
        "l1": 0.01,
        **ONE_THREAD,
    }
    whole = network(dropout=0.3)
    fit(whole, CORPUS, DEV, output=tmp_path / "whole", **settings)
    for update in (1, 5, 11, 17, 23):
        stop_at(tmp_path / "parts", update, DEV, **settings)
    parts = network(dropout=0.3)
    fitted = fit(parts, CORPUS, DEV, output=tmp_path / "parts", **settings)
    assert not fitted.already_finished
    assert_same(parameters(whole), parameters(parts))
    assert (tmp_path / "whole" / ARRAYS_FILE).read_bytes() == (tmp_path / "parts" / ARRAYS_FILE).read_bytes()
    first, second = (map_arrays_with_metadata(tmp_path / name / CHECKPOINT_FILE) for name in ("whole", "parts"))
    assert_same(first[0], second[0])
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "parts")


def test_the_directory_is_a_model_from_the_first_step_on(tmp_path: Path) -> None:
    stop_at(tmp_path / "model", 2, **ONE_THREAD)
    assert len(dragoman.load(tmp_path / "model").score(HELD_OUT)) == len(HELD_OUT)


def test_the_saved_model_is_the_best(tmp_path: Path) -> None:
    model = network()
    fit(model, CORPUS, DEV, output=tmp_path / "model", max_epochs=5, learning_rate=0.05, batch_size=20, **ONE_THREAD)
    assert dragoman.load(tmp_path / "model").score(HELD_OUT) == model.score(HELD_OUT)


def test_a_finished_training_is_not_repeated(tmp_path: Path) -> None:
    fit(network(), CORPUS, output=tmp_path / "model", max_epochs=2, **ONE_THREAD)
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in (tmp_path / "model").iterdir()}
    model = network()
    assert fit(model, CORPUS, output=tmp_path / "model", max_epochs=2, **ONE_THREAD).already_finished
    after = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in (tmp_path / "model").iterdir()}
    assert {name: content for name, (content, _) in before.items()} == {n: content for n, (content, _) in after.items()}
    assert model.score(HELD_OUT) == dragoman.load(tmp_path / "model").score(HELD_OUT)


def test_a_finished_training_continues_with_larger_limits(tmp_path: Path) -> None:
    """Without a schedule that depends on the end, the result is the same as in one training."""
    settings = {"batch_size": 20, "schedule": "constant", **ONE_THREAD}
    fit(network(), CORPUS, DEV, output=tmp_path / "model", max_epochs=1, patience=9, **settings)
    longer = {**settings, "max_epochs": 3, "patience": 8}
    resumed, uninterrupted = network(), network()
    fitted = fit(resumed, CORPUS, DEV, output=tmp_path / "model", **longer)
    assert (fitted.already_finished, fitted.stop_reason) == (False, "3 epochs")
    fit(uninterrupted, CORPUS, DEV, **longer)
    for name, tensor in uninterrupted.named_parameters():
        assert torch.equal(tensor, resumed.state_dict()[name])
    assert fit(network(), CORPUS, DEV, output=tmp_path / "model", **longer).already_finished
    narrower = fit(network(), CORPUS, DEV, output=tmp_path / "model", **{**longer, "max_epochs": 2})
    assert (narrower.already_finished, narrower.stop_reason) == (True, "2 epochs")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learning_rate": 0.5}, "training.learning_rate"),
        ({"seed": 7}, "training.seed"),
        ({"clip": 2.0, "max_epochs": 3}, "training.clip"),
    ],
)
def test_another_configuration_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    fit(network(), CORPUS, output=tmp_path / "model", max_epochs=2, **ONE_THREAD)
    with pytest.raises(DataError, match=message):
        fit(network(), CORPUS, output=tmp_path / "model", **{"max_epochs": 2, **ONE_THREAD, **change})


def test_another_text_or_model_is_refused(tmp_path: Path) -> None:
    settings = {"output": tmp_path / "model", "max_epochs": 2, **ONE_THREAD}
    fit(network(), CORPUS, **settings)
    with pytest.raises(DataError, match=r"different training run \(another training text\)"):
        fit(network(), CORPUS.select(np.arange(10)), **settings)
    with pytest.raises(DataError, match="another training text"):
        fit(network(), CORPUS.select(np.arange(len(CORPUS))[::-1]), **settings)
    with pytest.raises(DataError, match=r"model\.embedding"):
        fit(network(embedding=3), CORPUS, **settings)


def test_another_kind_of_model_is_another_training(tmp_path: Path) -> None:
    fit(network(), CORPUS, output=tmp_path / "model", max_epochs=1, **ONE_THREAD)
    other = dragoman.RecurrentModel.create(CORPUS, embedding=4, hidden=4)
    with pytest.raises(DataError, match="contains a different training run"):
        fit(other, CORPUS, output=tmp_path / "model", max_epochs=1, **ONE_THREAD)


def test_more_threads_are_the_same_training(tmp_path: Path) -> None:
    fit(network(), CORPUS, output=tmp_path / "model", max_epochs=1, threads=1)
    assert fit(network(), CORPUS, output=tmp_path / "model", max_epochs=1, threads=2).already_finished


def test_force_trains_again(tmp_path: Path) -> None:
    fit(network(), CORPUS, output=tmp_path / "model", max_epochs=1, **ONE_THREAD)
    again = fit(network(), CORPUS, output=tmp_path / "model", max_epochs=2, force=True, **ONE_THREAD)
    assert not again.already_finished
    assert again.progress.epoch == 2


def test_other_models_are_not_written_over(tmp_path: Path) -> None:
    dragoman.NgramModel.train(CORPUS, order=1, smoothing="witten-bell").save(tmp_path / "model")
    with pytest.raises(DataError, match="already contains a model"):
        fit(network(), CORPUS, output=tmp_path / "model", max_epochs=1, **ONE_THREAD)


def test_the_complete_configuration_is_saved_with_the_model(tmp_path: Path) -> None:
    fit(network(), CORPUS, output=tmp_path / "model", max_epochs=1, learning_rate=0.0125, **ONE_THREAD)
    loaded = dragoman.load(tmp_path / "model")
    loaded.save(tmp_path / "copy")
    for config in (loaded.config(), dragoman.load(tmp_path / "copy").config()):
        assert config["training"]["learning_rate"] == 0.0125
        assert config["model"]["hidden"] == [5]
        assert config["data"]["train"]["tokens"] == CORPUS.num_tokens


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"batch_size": 30, "max_epochs": 2, "save_every": 2, **ONE_THREAD}
    whole = network()
    fit(whole, CORPUS, output=tmp_path / "whole", **settings)
    calls = []

    def full(*arguments: Any) -> None:
        calls.append(arguments)
        Path(arguments[0]).write_bytes(b"half")
        if len(calls) == 4:
            raise OSError(28, "No space left on device", str(arguments[0]))
        write(*arguments)

    write = run_directory.write_arrays
    monkeypatch.setattr(run_directory, "write_arrays", full)
    with pytest.raises(DragomanError, match=r"No space left on device.*the last checkpoint is intact"):
        fit(network(), CORPUS, output=tmp_path / "model", **settings)
    monkeypatch.undo()
    assert run_directory.read_progress(tmp_path / "model" / CHECKPOINT_FILE).update == 4
    assert not [file for file in (tmp_path / "model").iterdir() if file.name.startswith(".")]
    model = network()
    fit(model, CORPUS, output=tmp_path / "model", **settings)
    assert_same(parameters(model), parameters(whole))


def test_damaged_checkpoints_are_reported_in_one_line(tmp_path: Path) -> None:
    settings = {"output": tmp_path / "model", "max_epochs": 1, **ONE_THREAD}
    fit(network(), CORPUS, **settings)
    good = (tmp_path / "model" / CHECKPOINT_FILE).read_bytes()
    for bad in (
        b"",
        good[:100],
        good[:-40],
        good.replace(b'"best/embedding.weight"', b'"bset/embedding.weight"'),
        good.replace(b"epoch", b"hcope"),
    ):
        (tmp_path / "model" / CHECKPOINT_FILE).write_bytes(bad)
        with pytest.raises(DataError, match=r"training\.safetensors"):
            fit(network(), CORPUS, **settings)


def test_metrics_that_were_cut_off_do_no_harm(tmp_path: Path) -> None:
    settings = {"batch_size": 30, "max_epochs": 2, "report_every": 1, **ONE_THREAD}
    stop_at(tmp_path / "model", 7, **settings)
    with (tmp_path / "model" / METRICS_FILE).open("a") as file:
        file.write('{"update": 8, "tra')
    fit(network(dropout=0.3), CORPUS, output=tmp_path / "model", **settings)
    updates = [line["update"] for line in metrics(tmp_path / "model")]
    assert updates == list(range(1, len(updates) + 1))


def test_leftovers_of_a_killed_training_are_removed(tmp_path: Path) -> None:
    settings = {"batch_size": 30, "max_epochs": 2, "save_every": 1, **ONE_THREAD}
    for again in ({}, {"force": True}):
        stop_at(tmp_path / "model", 4, **settings, **again)
        (tmp_path / "model" / ".training.safetensors.tmp-x1y2z3_4").write_bytes(b"half")
        fit(network(dropout=0.3), CORPUS, output=tmp_path / "model", **settings, **again)
        assert sorted(file.name for file in (tmp_path / "model").iterdir()) == sorted(
            ["README.md", "config.yaml", "vocab.tsv", ARRAYS_FILE, CHECKPOINT_FILE, METRICS_FILE]
        )


@pytest.mark.parametrize("damage", ["config.yaml", "vocab.tsv", ARRAYS_FILE])
def test_broken_directories_are_not_called_finished(tmp_path: Path, damage: str) -> None:
    settings = {"output": tmp_path / "model", "max_epochs": 1, **ONE_THREAD}
    fit(network(), CORPUS, **settings)
    (tmp_path / "model" / damage).unlink()
    with pytest.raises(DataError, match="broken training directory"):
        fit(network(), CORPUS, **settings)
    (tmp_path / "model" / "config.yaml").write_text("{: broken")
    with pytest.raises(DataError, match="broken training directory"):
        fit(network(), CORPUS, **settings)


def test_other_classes_are_another_training(tmp_path: Path) -> None:
    def model(**classes: str) -> dragoman.LogLinearModel:
        every = {"dog": "A", "cat": "A", "bird": "A", "sees": "B", "hears": "B", **classes}
        return dragoman.LogLinearModel.create(CORPUS, features="class1", classes=every)

    settings = {"output": tmp_path / "model", "max_epochs": 1, **ONE_THREAD}
    fit(model(), CORPUS, **settings)
    assert fit(model(), CORPUS, **settings).already_finished
    with pytest.raises(DataError, match="other initial words, classes or parameters"):
        fit(model(bird="B"), CORPUS, **settings)


def test_training_settings_are_saved_after_training_in_memory(tmp_path: Path) -> None:
    model = network()
    fit(model, CORPUS, max_epochs=1, learning_rate=0.0125, **ONE_THREAD)
    model.save(tmp_path / "model")
    assert dragoman.load(tmp_path / "model").config()["training"]["learning_rate"] == 0.0125


# -- non-finite losses -----------------------------------------------------------------------------------------------


def failing_at(*updates: int) -> tuple[Callable[..., torch.Tensor], list[int]]:
    """The likelihood, but infinite at these steps."""
    steps = [0]

    def objective(model: Any, corpus: Corpus, generator: Any = None) -> torch.Tensor:
        losses = negative_log_likelihood(model, corpus, generator)
        if generator is not None:
            steps[0] += 1
            if steps[0] in updates:
                return losses * math.inf
        return losses

    return objective, steps


def test_a_non_finite_loss_rolls_back_once(tmp_path: Path) -> None:
    objective, _ = failing_at(3)
    model, recorded = network(), []
    settings = {"batch_size": 0, "max_epochs": 4, "learning_rate": 0.1, "check_every": 2, **ONE_THREAD}
    recorder = Recorder(3, lambda: recorded.append(parameters(model)))
    fit(model, CORPUS, output=tmp_path / "model", objective=objective, callback=recorder, **settings)
    assert [report.rolled_back for report in recorder.reports] == [False, False, True, False]
    assert [report.learning_rate for report in recorder.reports] == [0.1, 0.1, 0.1, 0.05]
    reference = network()
    fit(reference, CORPUS, **{**settings, "max_updates": 2})
    assert_same(recorded[0], parameters(reference))
    for file in (ARRAYS_FILE, CHECKPOINT_FILE):
        assert all(np.isfinite(array).all() for array in map_arrays(tmp_path / "model" / file).values())
    assert any(line["went_back"] for line in metrics(tmp_path / "model"))


def test_twice_is_the_end(tmp_path: Path) -> None:
    objective, _ = failing_at(3, 5)
    settings = {"batch_size": 0, "max_epochs": 9, "check_every": 2, "save_every": 1, **ONE_THREAD}
    with pytest.raises(DivergedError, match="not finite") as caught:
        fit(network(), CORPUS, output=tmp_path / "model", objective=objective, **settings)
    assert caught.value.exit_code == 3
    for file in (ARRAYS_FILE, CHECKPOINT_FILE):
        assert all(np.isfinite(array).all() for array in map_arrays(tmp_path / "model" / file).values())
    assert run_directory.read_progress(tmp_path / "model" / CHECKPOINT_FILE).update == 4


def test_divergence_has_a_distinct_exit_code() -> None:
    with pytest.raises(DivergedError):
        fit(network(), CORPUS, optimizer="sgd", learning_rate=1e30, max_epochs=50, batch_size=20, **ONE_THREAD)


@pytest.mark.parametrize("settings", [{"optimizer": "sgd", "clip": 1.0}, {"optimizer": "adam"}])
def test_a_loss_that_is_far_too_high_is_divergence(settings: dict[str, Any]) -> None:
    """All numbers are finite."""
    with pytest.raises(DivergedError, match="far too high"):
        fit(network(), CORPUS, DEV, learning_rate=1e6, max_epochs=2, batch_size=0, **settings, **ONE_THREAD)


def test_a_non_finite_dev_loss_is_never_best(monkeypatch: pytest.MonkeyPatch) -> None:
    set_dev_losses(monkeypatch, [3.0, math.nan, 2.0])
    recorder = Recorder()
    fitted = fit(network(), CORPUS, DEV, batch_size=0, max_epochs=3, callback=recorder, **ONE_THREAD)
    assert fitted.progress.rolled_back
    assert fitted.progress.best_dev_loss == 2.0


def test_parameters_that_are_not_finite_are_never_written(tmp_path: Path) -> None:
    """The loss of the step before was finite: it is the step that was too large."""
    wild = {"optimizer": "sgd", "learning_rate": 1e300, "max_epochs": 1, "batch_size": 0, **ONE_THREAD}
    fitted = fit(network(), CORPUS, output=tmp_path / "model", **wild)
    assert fitted.progress.rolled_back
    for file in (ARRAYS_FILE, CHECKPOINT_FILE):
        assert all(np.isfinite(array).all() for array in map_arrays(tmp_path / "model" / file).values())
    with pytest.raises(DivergedError):
        fit(network(), CORPUS, **{**wild, "max_epochs": 2, "learning_rate": 1e305})


def test_a_dev_loss_that_was_never_finite_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    set_dev_losses(monkeypatch, [math.nan])
    with pytest.raises(DivergedError, match="never finite"):
        fit(network(), CORPUS, DEV, batch_size=0, max_epochs=1, **ONE_THREAD)


def test_rolling_back_because_of_the_dev_text_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    set_dev_losses(monkeypatch, [3.0, math.inf, 2.0])
    recorder = Recorder()
    fit(network(), CORPUS, DEV, batch_size=0, max_epochs=3, callback=recorder, **ONE_THREAD)
    assert [report.rolled_back for report in recorder.reports] == [False, True, False]


def test_models_that_are_not_finite_are_not_loaded(tmp_path: Path) -> None:
    model = network()
    model.state_dict()["output.bias"][3] = math.nan
    model.save(tmp_path / "model")
    with pytest.raises(DataError, match=r"output\.bias"):
        dragoman.load(tmp_path / "model")


# -- signals ---------------------------------------------------------------------------------------------------------


def test_signals_are_handled_between_steps(tmp_path: Path) -> None:
    recorder = Recorder(3, lambda: signal.raise_signal(signal.SIGINT))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(StoppedError, match="run the same command again") as caught:
        fit(network(), CORPUS, output=tmp_path / "model", batch_size=30, max_epochs=2, callback=recorder, **ONE_THREAD)
    assert caught.value.exit_code == 130
    assert run_directory.read_progress(tmp_path / "model" / CHECKPOINT_FILE).update == 3
    assert signal.getsignal(signal.SIGINT) is before
