"""Small training runs for tests: a network, a quadratic loss, a recorder of reports, a clock, and simulated power cuts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dragoman import Corpus, FeedForwardModel, fit
from dragoman.io.storage import METRICS_FILE
from dragoman.training import loop
from dragoman.training.fit import TrainingStarted
from dragoman.training.loop import StepReport
from zoo import HELD_OUT, LANGUAGE, TRAINING

CORPUS = Corpus.from_sentences(TRAINING, LANGUAGE)
DEV = Corpus.from_sentences(HELD_OUT, LANGUAGE)
SMALL: dict[str, Any] = {"order": 3, "embedding": 4, "hidden": (5,)}
ONE_THREAD = {"threads": 1}


def network(**settings: Any) -> FeedForwardModel:
    return FeedForwardModel.create(CORPUS, **{**SMALL, **settings})


def parameters(model: FeedForwardModel) -> dict[str, np.ndarray]:
    return {name: tensor.detach().numpy().copy() for name, tensor in model.named_parameters()}


def assert_same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert np.array_equal(array, second[name]), name


class Recorder:
    """A callback that records reports and can call a function at a given update."""

    def __init__(self, at: int | None = None, act: Callable[[], None] = lambda: None):
        self.reports: list[StepReport] = []
        self.started: TrainingStarted | None = None
        self.at, self.act = at, act

    def __call__(self, event: TrainingStarted | StepReport) -> None:
        if isinstance(event, TrainingStarted):
            self.started = event
            return
        self.reports.append(event)
        if event.progress.update == self.at:
            self.act()


class Clock:
    """A clock that advances by one second at each call."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@dataclass(frozen=True)
class Points:
    """Data points of the quadratic loss."""

    values: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    @property
    def sizes(self) -> np.ndarray:
        return np.ones(len(self.values), np.int64)

    def select(self, examples: np.ndarray) -> Points:
        return Points(self.values[examples])


class Bowl(torch.nn.Module):
    """A vector theta with the loss |theta - point|^2 / 2, whose gradient is theta - point."""

    def __init__(self, *start: float):
        super().__init__()
        self.theta = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))

    def regularized_parameters(self) -> dict[str, torch.nn.Parameter]:
        return dict(self.named_parameters())


def distance(model: Bowl, points: Points, generator: Any = None) -> torch.Tensor:
    return (model.theta - torch.from_numpy(points.values)).square().sum(dim=1) / 2


ORIGIN = Points(np.zeros((1, 2)))


def set_dev_losses(monkeypatch: pytest.MonkeyPatch, losses: list[float]) -> None:
    """Replace the dev losses by these, one per evaluation."""
    left = iter(losses)

    def evaluate_loss(text: object, state: object, task: loop.TrainingTask) -> float | None:
        return next(left) if text is task.dev else None

    monkeypatch.setattr(loop, "evaluate_loss", evaluate_loss)


class PowerCut(BaseException):
    """A simulated power cut."""


def stop_at(directory: Path, update: int, dev: Corpus | None = None, **settings: Any) -> None:
    def stop() -> None:
        raise PowerCut

    with pytest.raises(PowerCut):
        fit(network(dropout=0.3), CORPUS, dev, output=directory, callback=Recorder(update, stop), **settings)


def metrics(directory: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (directory / METRICS_FILE).read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]
