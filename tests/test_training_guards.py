"""Properties of training that results do not show: dropout, evaluation, roll-backs, flushed files, resuming."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dragoman import DataError, FeedForwardModel, LogLinearModel, fit
from dragoman.core.threads import parallel_map
from dragoman.evaluation.likelihood import token_log_probs
from dragoman.io.files import atomic_file
from dragoman.io.storage import ARRAYS_FILE, CHECKPOINT_FILE, CONFIG_FILE, MODEL_DIRECTORY, map_arrays, new_directory
from dragoman.models.loglinear import scoring
from dragoman.nn.layers import Dropout
from dragoman.training import loop
from dragoman.training.batch_order import SENTENCES, split_by_size
from dragoman.training.objectives import negative_log_likelihood, stateless_objective
from training_helpers import (
    CORPUS,
    DEV,
    ONE_THREAD,
    ORIGIN,
    Bowl,
    Points,
    PowerCut,
    Recorder,
    assert_same,
    distance,
    metrics,
    network,
    stop_at,
)

# -- dropout ----------------------------------------------------------------------------------------------------------


def generator(seed: int = 1) -> torch.Generator:
    return loop.step_generator(seed, 0, 0, torch.device("cpu"))


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_dropout_keeps_the_mean(rate: float) -> None:
    elements = 100_000
    dropped = Dropout(rate)(torch.ones(elements, dtype=torch.float64), generator())
    np.testing.assert_allclose(np.unique(dropped), [0.0, 1 / (1 - rate)], rtol=1e-4)  # one in 65,536 more or less
    deviation = math.sqrt(rate / (1 - rate) / elements)  # of the mean
    assert float(dropped.mean()) == pytest.approx(1.0, abs=5 * deviation)


@pytest.mark.parametrize("shape", [(3,), (1, 1), (5, 0), (7, 9, 2)])
def test_dropout_of_any_shape(shape: tuple[int, ...]) -> None:
    dropped = Dropout(0.5)(torch.ones(shape), generator())
    assert dropped.shape == shape and set(dropped.unique().tolist()) <= {0.0, 2.0}
    rarely = Dropout(1e-9)(torch.ones(9999), generator())
    assert float((rarely > 0).float().mean()) > 0.99, "nor must so small a rate turn round"


def test_elements_are_dropped_independently() -> None:
    """Four are drawn at once: they must be independent and equally likely."""
    elements, rate = 400_000, 0.3
    is_kept = (Dropout(rate)(torch.ones(elements), generator(2)) > 0).double().numpy()
    quarters = is_kept.reshape(-1, 4)
    reach = 5 * math.sqrt(rate * (1 - rate) / len(quarters))
    np.testing.assert_allclose(quarters.mean(0), 1 - rate, rtol=0, atol=reach)
    together = np.corrcoef(quarters, rowvar=False) - np.eye(4)
    assert np.abs(together).max() < 5 / math.sqrt(len(quarters))
    assert abs(np.corrcoef(quarters[1:, 0], quarters[:-1, 3])[0, 1]) < 5 / math.sqrt(len(quarters))


def test_every_chunk_of_every_update_has_its_own_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    draws: list[tuple[float, ...]] = []

    def objective(model: Bowl, points: Points, generator: torch.Generator | None = None) -> torch.Tensor:
        if generator is not None:
            draws.append(tuple(torch.rand(4, generator=generator).tolist()))
        return distance(model, points)

    def drawn(seed: int) -> list[tuple[float, ...]]:
        draws.clear()
        fit(
            *(Bowl(1.0, 1.0), Points(np.zeros((12, 2)))),
            **{"objective": objective, "batch_size": 6, "max_epochs": 2, "seed": seed, **ONE_THREAD},
        )
        return draws.copy()

    monkeypatch.setattr(loop, "MAX_PREDICTIONS", 2)
    first = drawn(seed=1)
    assert len(first) == 2 * 2 * 3  # epochs, batches, pieces
    assert drawn(seed=1) == first
    assert len({*first, *drawn(seed=2)}) == 2 * len(first)


# -- evaluation ------------------------------------------------------------------------------------------------------


def test_the_mean_loss_is_that_of_all_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MAX_PREDICTIONS", 13)
    model = network(dtype="float64")
    losses = -token_log_probs(model, CORPUS)
    objective = stateless_objective(model, negative_log_likelihood)
    whole = loop.mean_loss(model, SENTENCES.evaluation_batches(CORPUS, loop.MAX_PREDICTIONS), objective)
    assert whole == pytest.approx(losses.mean(), rel=1e-12)
    pieces = list(split_by_size(np.arange(len(CORPUS)), CORPUS.sizes, loop.MAX_PREDICTIONS))
    assert len(pieces) > 10
    for piece in (pieces[0], pieces[-1]):  # a single piece has another mean
        assert abs(whole - loop.mean_loss(model, [CORPUS.select(piece)], objective)) > 1e-3


def test_another_dev_text_is_refused(tmp_path: Path) -> None:
    directory, settings = tmp_path / "model", {"batch_size": 30, "max_epochs": 2, **ONE_THREAD}
    stop_at(directory, 9, DEV, **settings)
    before = {file.name: file.read_bytes() for file in directory.iterdir()}
    for dev in (DEV.select(np.arange(len(DEV) - 1)), DEV.select(np.arange(len(DEV))[::-1]), None):
        with pytest.raises(DataError, match=r"different training run \(another dev text, or none\)"):
            fit(network(dropout=0.3), CORPUS, dev, output=directory, **settings)
    assert {file.name: file.read_bytes() for file in directory.iterdir()} == before
    assert not fit(network(dropout=0.3), CORPUS, DEV, output=directory, **settings).already_finished


# -- rolling back -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["momentum", "adagrad", "adam"])
def test_a_roll_back_starts_with_a_new_optimizer(optimizer: str) -> None:
    """Two successful steps, a third that fails, and two more that start from the parameters after the second."""
    steps = [0]

    def objective(model: Bowl, points: Points, generator: Any = None) -> torch.Tensor:
        steps[0] += 1
        return distance(model, points) * (math.inf if steps[0] == 3 else 1.0)

    settings = {"optimizer": optimizer, "momentum": 0.8, **ONE_THREAD}
    bowl, recorded = Bowl(3.0, -0.2), []
    recorder = Recorder(at=3, act=lambda: recorded.append(bowl.theta.tolist()))
    fit(
        bowl, ORIGIN, objective=objective, learning_rate=0.1, check_every=2, max_epochs=5, callback=recorder, **settings
    )
    assert [report.rolled_back for report in recorder.reports] == [False, False, True, False, False]
    restarted = Bowl(*recorded[0])
    fit(restarted, ORIGIN, objective=distance, learning_rate=0.1 / 2, max_epochs=2, **settings)
    assert bowl.theta.tolist() == restarted.theta.tolist()


# -- files reach the disk before they get their names -----------------------------------------------------------------


class Disk:
    """Notes what is flushed to it and what is renamed, in order, each by its inode."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.events: list[tuple[str, int]] = []
        self.sizes: dict[int, int] = {}  # bytes that were there to be flushed
        flush, rename = os.fsync, os.replace

        def noted_flush(descriptor: int) -> None:
            status = os.fstat(descriptor)
            self.events.append(("flushed", status.st_ino))
            self.sizes[status.st_ino] = status.st_size
            flush(descriptor)

        def noted_rename(source: Any, target: Any) -> None:
            self.events.append(("renamed", Path(source).stat().st_ino))
            rename(source, target)

        monkeypatch.setattr(os, "fsync", noted_flush)
        monkeypatch.setattr(os, "replace", noted_rename)

    def place(self, event: str, path: Path) -> int:
        """When this last happened to what is now at a path."""
        return max(place for place, entry in enumerate(self.events) if entry == (event, path.stat().st_ino))


def test_a_file_is_flushed_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    disk = Disk(monkeypatch)
    with atomic_file(path) as temporary:
        temporary.write_text("new and longer")
    assert disk.place("flushed", path) < disk.place("renamed", path) < disk.place("flushed", tmp_path)
    assert disk.sizes[path.stat().st_ino] == len("new and longer")


def test_a_directory_is_flushed_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    with new_directory(tmp_path / "model", kind=MODEL_DIRECTORY) as temporary:
        (temporary / CONFIG_FILE).write_text("one")
        (temporary / ARRAYS_FILE).write_text("another")
    renamed = disk.place("renamed", tmp_path / "model")
    for name, size in ((CONFIG_FILE, 3), (ARRAYS_FILE, 7)):
        assert disk.place("flushed", tmp_path / "model" / name) < renamed
        assert disk.sizes[(tmp_path / "model" / name).stat().st_ino] == size
    assert renamed < disk.place("flushed", tmp_path)


# -- resuming ---------------------------------------------------------------------------------------------------------


def assert_resumes_bit_identically(create: Callable[[], Any], directory: Path, **settings: Any) -> None:
    """A training stopped at several steps gives the same model as one without stops."""

    def stop() -> None:
        raise PowerCut

    whole, parts = directory / "whole", directory / "parts"
    fit(create(), CORPUS, DEV, output=whole, **settings)
    for update in (1, 5, 11, 17):
        with pytest.raises(PowerCut):
            fit(create(), CORPUS, DEV, output=parts, callback=Recorder(update, stop), **settings)
    assert not fit(create(), CORPUS, DEV, output=parts, **settings).already_finished
    for file in (ARRAYS_FILE, CHECKPOINT_FILE):
        assert_same(map_arrays(whole / file), map_arrays(parts / file))
    assert metrics(whole) == metrics(parts)


BRIEF: dict[str, Any] = {"batch_size": 30, "max_epochs": 2, "save_every": 3, "report_every": 2}


def test_a_log_linear_model_resumes_bit_identically_with_two_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared: list[int] = []

    def noted_share(work: Callable[[Any], Any], parts: list[Any]) -> list[Any]:
        shared.append(len(parts))
        return parallel_map(work, parts)

    def create() -> LogLinearModel:
        return LogLinearModel.create(CORPUS, features="word1,word1+word2,bag", dropout=0.2)

    monkeypatch.setattr(scoring, "MIN_THREAD_COST", 1)
    monkeypatch.setattr(scoring, "parallel_map", noted_share)
    assert_resumes_bit_identically(
        create, tmp_path, **BRIEF, optimizer="adagrad", learning_rate=0.3, l1=0.5, threads=2, patience=50
    )
    assert set(shared) == {2}
    arrays = map_arrays(tmp_path / "whole" / CHECKPOINT_FILE)
    weights = np.concatenate(
        [array for name, array in arrays.items() if name in ("parameters/pairs", "parameters/windows")]
    )
    assert 0 < np.count_nonzero(weights) < len(weights)  # the penalty has set some to zero, but not all


def test_a_class_factored_softmax_resumes_bit_identically(tmp_path: Path) -> None:
    def create() -> FeedForwardModel:
        return network(softmax="brown", dropout=0.3)

    assert "output.classes.weight" in create().state_dict()
    assert_resumes_bit_identically(create, tmp_path, **BRIEF, optimizer="adam", learning_rate=0.02, **ONE_THREAD)
