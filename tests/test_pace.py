"""Time limits: training ends in time whatever the speed, and stored decisions give the same result again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dragoman import fit
from dragoman.io.storage import CHECKPOINT_FILE, PACE_FILE
from dragoman.training import fit as fit_module
from dragoman.training.config import TrainingConfig
from dragoman.training.fit import TrainingStarted, create_task
from dragoman.training.loop import TrainState, training_steps
from dragoman.training.optimizers import scheduled_learning_rate
from dragoman.training.pace import Pace, PaceLog, TimeReserve
from training_helpers import CORPUS, DEV, ONE_THREAD, Bowl, Points, PowerCut, assert_same, distance, network, parameters

Speed = Callable[[int], float]  # seconds of an update


class SimulatedMachine:
    """A clock that is advanced by each update and each evaluation."""

    def __init__(self, update_seconds: Speed, evaluation_seconds: float = 0.0):
        self.now, self.updates = 1000.0, 0
        self.update_seconds, self.evaluation_seconds = update_seconds, evaluation_seconds

    def __call__(self) -> float:
        return self.now

    def objective(self, model: Bowl, points: Points, generator: object = None) -> torch.Tensor:
        if generator is None:
            self.now += self.evaluation_seconds
        else:
            self.now += self.update_seconds(self.updates)
            self.updates += 1
        return distance(model, points)


POINTS = Points(np.random.default_rng(1).normal(size=(50, 2)))
SPEEDS: dict[str, Speed] = {
    "steady": lambda update: 0.2,
    "twice as slow": lambda update: 0.2 if update < 100 else 0.4,
    "ten times as slow": lambda update: 0.05 if update < 600 else 0.5,
    "three times as fast": lambda update: 0.3 if update < 80 else 0.1,
    "slow first update": lambda update: 5.0 if update == 0 else 0.1,
    "uneven": lambda update: 0.05 + 0.3 * (update % 7 == 0),
}


def train(machine: SimulatedMachine, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Any:
    monkeypatch.setattr(fit_module, "perf_counter", machine)
    model = Bowl(3.0, -2.0)
    reports: list[Any] = []
    options = {"batch_size": 5, "max_epochs": None, "minutes": 1.0, "check_every": 40, "patience": 1000, **settings}
    fit(model, POINTS, POINTS, objective=machine.objective, callback=reports.append, **options)
    return reports[1:]


@pytest.mark.parametrize("speed", SPEEDS)
def test_training_ends_in_time_and_completes_its_schedule(speed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = SimulatedMachine(SPEEDS[speed], evaluation_seconds=2.0)
    reports = train(machine, monkeypatch, schedule="linear", learning_rate=0.01)
    last = reports[-1].progress
    assert last.stop_reason == "1 minute"
    assert 60 * 0.95 <= machine.now - 1000 <= 60 * 1.02
    assert reports[-1].learning_rate < 0.01 * 0.03
    rates = [report.learning_rate for report in reports]
    assert rates == sorted(rates, reverse=True), "the fraction that is done never goes back"


@pytest.mark.parametrize(
    ("reserve", "seconds"),
    [
        (TimeReserve(seconds=20), 25),
        (TimeReserve(predictions=500), 25),  # as 100 updates of 5 predictions and 0.2 seconds each
        (TimeReserve(predictions=500, seconds=5), 20),
        (TimeReserve(predictions=500, seconds=5, max_share=0.1), 39),
    ],
)
def test_time_before_and_after_training_counts(
    reserve: TimeReserve, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = SimulatedMachine(SPEEDS["steady"])
    train(machine, monkeypatch, elapsed_seconds=15.0, reserve=reserve)
    assert seconds - 2 <= machine.now - 1000 <= seconds + 0.5
    assert reserve.share_within(60, 0.2 / 5) == pytest.approx(1 if reserve.max_share == 1 else 6 / 25)


def test_time_after_training_is_kept_if_the_machine_gets_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = SimulatedMachine(SPEEDS["twice as slow"])
    train(machine, monkeypatch, reserve=TimeReserve(predictions=250))
    assert 60 - 20 - 2 <= machine.now - 1000 <= 60 - 20 + 0.5


def run_with_log(path: Path, speed: Speed, **settings: Any) -> tuple[list[float], dict[str, np.ndarray]]:
    """Train a network with a time limit and a file of decisions. Return learning rates and parameters."""
    config = TrainingConfig(
        **{"batch_size": 10, "max_epochs": None, "minutes": 0.2, "schedule": "cooldown", **ONE_THREAD, **settings}
    )
    machine, model = SimulatedMachine(speed), network(dropout=0.3)
    task = replace(create_task(model, CORPUS, DEV, config), clock=machine, pace_log=PaceLog(path))
    state, rates = TrainState.create(model, config), []
    for report in training_steps(state, task):
        machine.now += speed(report.progress.update)
        rates.append(report.learning_rate)
    return rates, parameters(model)


PLATEAU = {"patience": 1, "check_every": 3, "learning_rate": 0.3, "decay": 1.0, "cooldown": 0.8, "minutes": 0.1}


@pytest.mark.parametrize(("settings", "has_plateau"), [({"patience": 1000}, False), (PLATEAU, True)])
def test_the_same_decisions_give_the_same_bits_at_any_speed(
    settings: dict[str, Any], has_plateau: bool, tmp_path: Path
) -> None:
    path = tmp_path / PACE_FILE
    rates, first = run_with_log(path, lambda update: 0.2, **settings)
    decisions = path.read_text()
    assert ('"plateau": true' in decisions) == has_plateau
    again, second = run_with_log(path, lambda update: 7.0 + update, **settings)
    assert rates == again
    assert_same(first, second)
    assert path.read_text() == decisions
    other, _ = run_with_log(tmp_path / "new", lambda update: 2.0, **settings)
    assert other != rates


def test_a_killed_run_repeats_its_decisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions after the last checkpoint are made again as they were; those after them by the clock."""
    settings: dict[str, Any] = {
        "batch_size": 10,
        "max_epochs": None,
        "minutes": 0.5,
        "schedule": "linear",
        "save_every": 30,
        "check_every": 1000,
        **ONE_THREAD,
    }
    machine, rates = SimulatedMachine(lambda update: 0.2), dict[int, list[float]]()
    monkeypatch.setattr(fit_module, "perf_counter", machine)

    def record(event: Any) -> None:
        if hasattr(event, "learning_rate"):
            machine.now += machine.update_seconds(event.progress.update)
            rates.setdefault(event.progress.update, []).append(event.learning_rate)
            if event.progress.update == 85 and len(rates[85]) == 1:
                raise PowerCut

    with pytest.raises(PowerCut):
        fit(network(dropout=0.3), CORPUS, output=tmp_path / "run", callback=record, **settings)
    with (tmp_path / "run" / PACE_FILE).open("a") as file:
        file.write('{"update": 86, "frac')  # cut off while it was written
    machine.update_seconds = lambda update: 0.4
    result = fit(network(dropout=0.3), CORPUS, output=tmp_path / "run", callback=record, **settings)
    repeated = [rates[update] for update in range(61, 86)]
    assert all(len(pair) == 2 and pair[0] == pair[1] for pair in repeated)
    assert all(len(rates[update]) == 1 for update in (*range(1, 61), 90))
    assert result.stop_reason == "0.5 minutes"
    assert 28 <= result.progress.seconds <= 31, "the time of lost work does not count"
    assert fit(network(dropout=0.3), CORPUS, output=tmp_path / "run", **settings).already_finished


def test_more_minutes_continue_a_finished_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"batch_size": 10, "max_epochs": None, "schedule": "linear", **ONE_THREAD}
    machine, rates = SimulatedMachine(lambda update: 0.2), list[float]()
    monkeypatch.setattr(fit_module, "perf_counter", machine)

    def record(event: Any) -> None:
        machine.now += 0.2
        if hasattr(event, "learning_rate"):
            rates.append(event.learning_rate)

    first = fit(network(), CORPUS, output=tmp_path / "run", minutes=0.25, callback=record, **settings)
    second = fit(network(), CORPUS, output=tmp_path / "run", minutes=0.5, callback=record, **settings)
    assert second.progress.update > 1.7 * first.progress.update
    assert rates[first.progress.update] == pytest.approx(0.001 * 0.5, rel=0.1), "half of the time is over"
    assert fit(network(), CORPUS, output=tmp_path / "run", minutes=0.1, **settings).already_finished


def test_time_before_the_first_update_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = SimulatedMachine(SPEEDS["steady"])

    def wait(event: Any) -> None:
        machine.now += 30 if isinstance(event, TrainingStarted) else 0

    monkeypatch.setattr(fit_module, "perf_counter", machine)
    settings = {"batch_size": 5, "max_epochs": None, "minutes": 1.0, "patience": 1000}
    fit(Bowl(3.0, -2.0), POINTS, objective=machine.objective, callback=wait, **settings)
    assert 57 <= machine.now - 1000 <= 61


def test_new_limits_hold_if_the_run_is_killed_before_its_next_checkpoint(tmp_path: Path) -> None:
    def cut_power(event: Any) -> None:
        raise PowerCut

    settings: dict[str, Any] = {"batch_size": 10, **ONE_THREAD}
    fit(network(), CORPUS, output=tmp_path / "run", max_epochs=1, **settings)
    with pytest.raises(PowerCut):
        fit(network(), CORPUS, output=tmp_path / "run", max_epochs=3, callback=cut_power, **settings)
    last = fit(network(), CORPUS, output=tmp_path / "run", max_epochs=3, **settings)
    assert not last.already_finished and last.stop_reason == "3 epochs"


def test_a_plateau_starts_the_cooldown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quadratic loss reaches its minimum; with a constant rate the dev loss then stays where it is."""
    machine = SimulatedMachine(SPEEDS["steady"])
    settings = {"schedule": "cooldown", "cooldown": 0.5, "learning_rate": 0.3, "patience": 3, "decay": 1.0}
    reports = train(machine, monkeypatch, optimizer="sgd", minutes=60.0, check_every=20, **settings)
    last = reports[-1].progress
    assert last.stop_reason == "the dev loss stopped improving" or "without improvement" in last.stop_reason
    assert last.pace.plateau
    rates = [report.learning_rate for report in reports]
    constant = rates.count(0.3)
    assert rates[:constant] == [0.3] * constant and constant % 20 in (0, 1), "it starts at an evaluation"
    assert sorted(rates[constant:], reverse=True) == rates[constant:] and rates[-1] < 0.3
    assert len(rates) <= 2 * constant + 1, "and takes as long as the training before it"
    assert machine.now - 1000 < 600, "long before the time limit"


def test_cooldown_schedule() -> None:
    config = TrainingConfig(learning_rate=1.0, schedule="cooldown", cooldown=0.4)
    rates = [scheduled_learning_rate(config, 1, fraction) for fraction in (0, 0.3, 0.6, 0.8, 1.0)]
    assert rates == pytest.approx([1, 1, 1, 0.5, 0])


def test_pace_is_in_the_checkpoint(tmp_path: Path) -> None:
    from dragoman.training.run_directory import read_progress

    fit(network(), CORPUS, output=tmp_path / "run", max_epochs=None, minutes=0.005, batch_size=10, **ONE_THREAD)
    progress = read_progress(tmp_path / "run" / CHECKPOINT_FILE)
    assert progress.pace.end == progress.update and progress.pace != Pace()
