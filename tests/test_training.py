"""The training loop: order, steps, schedules, stopping, and going on to the bit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dragoman
from dragoman import Corpus, DataError, DragomanError, FeedForwardModel, TrainingConfig, fit
from dragoman.scorer import token_log_probs
from dragoman.storage import ARRAYS, CHECKPOINT, METRICS, map_annotated_arrays, map_arrays
from dragoman.text.pieces import cut
from dragoman.training import checkpoint, loop, penalties
from dragoman.training import fit as fit_module
from dragoman.training.fit import Started
from dragoman.training.loop import DivergedError, Moment
from dragoman.training.objectives import negative_log_likelihood
from dragoman.training.order import epoch_batches
from dragoman.training.position import Position
from dragoman.training.schedule import SCHEDULES, scheduled_rate
from dragoman.training.signals import StoppedError
from zoo import HELD_OUT, LANGUAGE, TRAINING

CORPUS = Corpus.from_sentences(TRAINING, LANGUAGE)
DEV = Corpus.from_sentences(HELD_OUT, LANGUAGE)
SMALL: dict[str, Any] = {"order": 3, "embedding": 4, "hidden": (5,)}
ONE_THREAD = {"threads": 1}


def network(**settings: Any) -> FeedForwardModel:
    return FeedForwardModel.create(CORPUS, **{**SMALL, **settings})


def parameters(model: FeedForwardModel) -> dict[str, np.ndarray]:
    return {name: tensor.detach().numpy().copy() for name, tensor in model.parameters().items()}


def assert_same(one: dict[str, np.ndarray], two: dict[str, np.ndarray]) -> None:
    assert one.keys() == two.keys()
    for name, array in one.items():
        assert np.array_equal(array, two[name]), name


def differ(one: dict[str, np.ndarray], two: dict[str, np.ndarray]) -> bool:
    return any(not np.array_equal(array, two[name]) for name, array in one.items())


class Watch:
    """Notes what is reported; may act at a step."""

    def __init__(self, at: int | None = None, act: Callable[[], None] = lambda: None):
        self.moments: list[Moment] = []
        self.started: Started | None = None
        self.at, self.act = at, act

    def __call__(self, event: Started | Moment) -> None:
        if isinstance(event, Started):
            self.started = event
            return
        self.moments.append(event)
        if event.position.update == self.at:
            self.act()


# -- a model whose loss is known by heart ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Points:
    """Numbers to be near to."""

    values: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    @property
    def sizes(self) -> np.ndarray:
        return np.ones(len(self.values), np.int64)

    def select(self, examples: np.ndarray) -> Points:
        return Points(self.values[examples])


class Bowl:
    """A vector theta with the loss |theta - point|^2 / 2, whose gradient is theta - point."""

    def __init__(self, *start: float):
        self.theta = torch.tensor(start, dtype=torch.float64)

    def parameters(self) -> dict[str, torch.Tensor]:
        return {"theta": self.theta}

    penalised = parameters


def distance(model: Bowl, points: Points, noise: Any = None) -> torch.Tensor:
    return (model.theta - torch.from_numpy(points.values)).square().sum(dim=1) / 2


ORIGIN = Points(np.zeros((1, 2)))


def path(rule: Callable[[np.ndarray, int], np.ndarray], start: tuple[float, ...], steps: int) -> np.ndarray:
    theta = np.array(start)
    for number in range(1, steps + 1):
        theta = rule(theta, number)
    return theta


def momentum_rule() -> Callable[[np.ndarray, int], np.ndarray]:
    kept = np.zeros(2)

    def rule(theta: np.ndarray, number: int) -> np.ndarray:
        kept[:] = 0.8 * kept + theta
        return theta - 0.1 * kept

    return rule


def adagrad_rule() -> Callable[[np.ndarray, int], np.ndarray]:
    squares = np.zeros(2)

    def rule(theta: np.ndarray, number: int) -> np.ndarray:
        squares[:] += theta**2
        return theta - 0.1 * theta / (np.sqrt(squares) + 1e-10)

    return rule


def adam_rule() -> Callable[[np.ndarray, int], np.ndarray]:
    mean, variance = np.zeros(2), np.zeros(2)

    def rule(theta: np.ndarray, number: int) -> np.ndarray:
        mean[:] = 0.9 * mean + 0.1 * theta
        variance[:] = 0.999 * variance + 0.001 * theta**2
        corrected = mean / (1 - 0.9**number), variance / (1 - 0.999**number)
        return theta - 0.1 * corrected[0] / (np.sqrt(corrected[1]) + 1e-8)

    return rule


RULES: dict[str, Callable[[], Callable[[np.ndarray, int], np.ndarray]]] = {
    "sgd": lambda: lambda theta, number: theta - 0.1 * theta,
    "momentum": momentum_rule,
    "adagrad": adagrad_rule,
    "adam": adam_rule,
}


@pytest.mark.parametrize("name", RULES)
def test_steps_are_those_of_the_optimiser(name: str) -> None:
    bowl = Bowl(3.0, -0.2)
    fit(bowl, ORIGIN, objective=distance, optimizer=name, learning_rate=0.1, momentum=0.8, max_epochs=7, **ONE_THREAD)
    np.testing.assert_allclose(bowl.theta, path(RULES[name](), (3.0, -0.2), 7), rtol=1e-9)


def test_gradients_are_clipped_to_their_norm() -> None:
    bowl = Bowl(3.0, 4.0)
    fit(bowl, ORIGIN, objective=distance, optimizer="sgd", learning_rate=0.1, clip=1.0, max_epochs=1)
    np.testing.assert_allclose(bowl.theta, [3.0 - 0.06, 4.0 - 0.08])


def test_l2_is_a_pull_of_its_strength_for_the_whole_text() -> None:
    points = Points(np.zeros((4, 2)))
    bowl = Bowl(3.0, -1.0)
    fit(bowl, points, objective=distance, optimizer="sgd", learning_rate=0.1, l2=2.0, batch_size=0, max_epochs=1)
    np.testing.assert_allclose(bowl.theta, np.array([3.0, -1.0]) * (1 - 0.1 * (1 + 2.0 / 4)))


def test_l1_finds_the_optimum_and_its_zeros() -> None:
    """The optimum of (theta - 1)^2 / 2 + l1 |theta| is theta = 1 - l1, and 0 from l1 = 1 on."""
    points = Points(np.array([[1.0, -1.0, 0.1, -0.1]]))
    bowl = Bowl(0.0, 0.0, 0.5, -0.4)
    fit(bowl, points, objective=distance, optimizer="sgd", learning_rate=0.3, l1=0.25, max_epochs=60)
    np.testing.assert_allclose(bowl.theta, [0.75, -0.75, 0.0, 0.0], atol=1e-6)
    assert bowl.theta[2:].tolist() == [0.0, 0.0]


def test_penalties_leave_biases_alone() -> None:
    model = network()
    assert {name for name in model.parameters() if name not in model.penalised()} == {"b_1", "b_s"}


def test_penalty_gradients_are_those_of_the_penalty() -> None:
    weight = torch.tensor([1.5, -0.5, 2.0], dtype=torch.float64, requires_grad=True)
    weight.grad = torch.zeros(3, dtype=torch.float64)
    penalties.add_gradients([weight], l1=0.3, l2=0.7)
    by_hand = weight.grad.clone()
    weight.grad = None
    (0.3 * weight.abs().sum() + 0.7 * weight.square().sum() / 2).backward()
    assert torch.allclose(by_hand, weight.grad)


# -- order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [0, 1, 7, 20, 10_000])
def test_an_epoch_has_every_sentence_once(batch_size: int) -> None:
    batches = epoch_batches(CORPUS.sizes, batch_size, seed=3, epoch=2)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(CORPUS)))
    for batch in batches:
        assert len(batch) == 1 or batch_size == 0 or CORPUS.sizes[batch].sum() <= batch_size


def test_the_order_is_a_function_of_seed_and_epoch() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return np.concatenate(epoch_batches(CORPUS.sizes, 20, seed, epoch)).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1, 2)}) == 6


def test_batches_are_as_full_as_they_can_be() -> None:
    sizes = np.array([3, 3, 3, 9, 1, 1])
    assert [run.tolist() for run in cut(np.arange(6), sizes, 6)] == [[0, 1], [2], [3], [4, 5]]


@pytest.mark.parametrize(("batch_size", "updates"), [(1, len(CORPUS)), (0, 1)])
def test_online_and_whole_batch_are_the_same_loop(batch_size: int, updates: int) -> None:
    assert fit(network(), CORPUS, batch_size=batch_size, max_epochs=1, **ONE_THREAD).position.update == updates


def test_a_batch_in_pieces_is_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"batch_size": 0, "max_epochs": 3, "learning_rate": 0.1, "optimizer": "sgd", **ONE_THREAD}
    whole, pieces = network(precision="float64"), network(precision="float64")
    fit(whole, CORPUS, **settings)
    monkeypatch.setattr(loop, "AT_ONCE", 13)
    fit(pieces, CORPUS, **settings)
    for name, tensor in whole.parameters().items():
        np.testing.assert_allclose(pieces.parameters()[name], tensor, rtol=0, atol=1e-12)


# -- the loss ---------------------------------------------------------------------------------------------------------


def test_the_loss_is_the_likelihood_that_the_scorer_reports() -> None:
    model = network(precision="float64", dropout=0.5)
    losses = negative_log_likelihood(model, CORPUS)
    np.testing.assert_allclose(-losses, token_log_probs(model, CORPUS), rtol=0, atol=1e-12)


def test_noise_is_for_training_alone() -> None:
    model = network(dropout=0.5, embedding_dropout=0.5)
    noisy = negative_log_likelihood(model, CORPUS, loop.noise_of(1, 0, 0, "cpu"))
    again = negative_log_likelihood(model, CORPUS, loop.noise_of(1, 0, 0, "cpu"))
    other = negative_log_likelihood(model, CORPUS, loop.noise_of(1, 1, 0, "cpu"))
    assert torch.equal(noisy, again)
    assert not torch.equal(noisy, other)
    assert not torch.equal(noisy, negative_log_likelihood(model, CORPUS))
    assert torch.equal(negative_log_likelihood(model, CORPUS), negative_log_likelihood(model, CORPUS))


def test_reported_losses_are_the_means_of_their_steps() -> None:
    watch = Watch()
    fit(network(), CORPUS, batch_size=30, max_epochs=2, report_every=3, report=watch, **ONE_THREAD)
    told = [moment for moment in watch.moments if moment.train_loss is not None]
    first = watch.moments[:3]
    mean = sum(moment.loss * moment.items for moment in first) / sum(moment.items for moment in first)
    assert told[0].train_loss == pytest.approx(mean)
    assert told[0].position.update == 3


def test_training_lowers_the_loss_and_turns_gradients_off_again() -> None:
    model = network()
    before = token_log_probs(model, CORPUS).mean()
    fit(model, CORPUS, max_epochs=20, learning_rate=0.02, batch_size=50, **ONE_THREAD)
    assert token_log_probs(model, CORPUS).mean() > before + 0.5
    assert not any(tensor.requires_grad for tensor in model.parameters().values())
    assert all(tensor.grad is None for tensor in model.parameters().values())


# -- rates, bounds, stopping -----------------------------------------------------------------------------------------


def test_rates_by_schedule() -> None:
    def rates(**settings: Any) -> list[float]:
        watch = Watch()
        fit(network(), CORPUS, batch_size=0, max_epochs=5, learning_rate=0.1, report=watch, **settings, **ONE_THREAD)
        return [moment.rate for moment in watch.moments]

    assert rates() == [0.1] * 5
    np.testing.assert_allclose(rates(schedule="linear"), [0.1, 0.08, 0.06, 0.04, 0.02])
    np.testing.assert_allclose(rates(schedule="cosine"), [0.05 * (1 + math.cos(math.pi * k / 5)) for k in range(5)])
    np.testing.assert_allclose(rates(warmup=4), [0.025, 0.05, 0.075, 0.1, 0.1])
    np.testing.assert_allclose(
        rates(warmup=2, schedule="inverse-sqrt"), [0.05, 0.1, 0.1, 0.1 * math.sqrt(2 / 3), 0.1 * math.sqrt(2 / 4)]
    )


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_gives_finite_rates(name: str) -> None:
    config = TrainingConfig(schedule=name, warmup=3)
    assert all(0 <= scheduled_rate(config, update, update / 10) <= config.learning_rate for update in range(14))


def judge_by(monkeypatch: pytest.MonkeyPatch, losses: list[float]) -> None:
    """Dev losses as given, one for each look."""
    left = iter(losses)
    monkeypatch.setattr(loop, "mean_loss", lambda *arguments: next(left))


def test_plateaus_lower_the_rate_and_then_end_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_by(monkeypatch, [3.0, 2.0, 2.5, 1.5, 1.6, 1.7, 1.8])
    watch = Watch()
    fitted = fit(
        *(network(), CORPUS, DEV),
        **{"batch_size": 0, "max_epochs": 50, "patience": 3, "decay": 0.5, "learning_rate": 0.1, **ONE_THREAD},
        report=watch,
    )
    assert fitted.why == "no improvement in 3 looks at the dev text"
    assert [moment.rate for moment in watch.moments] == [0.1, 0.1, 0.1, 0.05, 0.05, 0.025, 0.0125]
    assert (fitted.position.best, fitted.position.best_update) == (1.5, 4)


def test_the_best_model_is_the_one_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_by(monkeypatch, [3.0, 2.0, 2.5, 2.6])
    model, seen = network(), []
    watch = Watch(at=2, act=lambda: seen.append(parameters(model)))
    fit(model, CORPUS, DEV, batch_size=0, max_epochs=4, report=watch, **ONE_THREAD)
    assert_same(parameters(model), seen[0])


def test_without_a_dev_text_the_last_model_stays() -> None:
    model, seen = network(), []
    watch = Watch(at=3, act=lambda: seen.append(parameters(model)))
    fit(model, CORPUS, batch_size=0, max_epochs=3, report=watch, **ONE_THREAD)
    assert_same(parameters(model), seen[0])


def test_looks_every_so_many_steps() -> None:
    watch = Watch()
    fit(network(), CORPUS, DEV, batch_size=30, check_every=4, max_updates=10, report=watch, patience=9, **ONE_THREAD)
    assert [moment.position.update for moment in watch.moments if moment.judged] == [4, 8, 10]


class Clock:
    """A second passes at each look at it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_minutes_count_over_all_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_module, "perf_counter", Clock())
    settings = {"minutes": 0.5, "batch_size": 10, "save_every": 1, "max_epochs": 1000, **ONE_THREAD}
    alone = fit(network(dropout=0.3), CORPUS, output=tmp_path / "alone", **settings).position
    assert alone.finished == "0.5 minutes"
    assert 30 <= alone.seconds < 33
    stop_at(tmp_path / "stopped", 12, **settings)
    both = fit(network(dropout=0.3), CORPUS, output=tmp_path / "stopped", **settings).position
    assert both.update == alone.update


# -- on disk ---------------------------------------------------------------------------------------------------------


class PowerCut(BaseException):
    """As if the power had gone."""


def stop_at(directory: Path, update: int, dev: Corpus | None = None, **settings: Any) -> None:
    def stop() -> None:
        raise PowerCut

    with pytest.raises(PowerCut):
        fit(network(dropout=0.3), CORPUS, dev, output=directory, report=Watch(update, stop), **settings)


def metrics(directory: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (directory / METRICS).read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


@pytest.mark.parametrize("optimizer", RULES)
def test_a_stopped_training_goes_on_to_the_bit(tmp_path: Path, optimizer: str) -> None:
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
    assert not fitted.was_finished
    assert_same(parameters(whole), parameters(parts))
    assert (tmp_path / "whole" / ARRAYS).read_bytes() == (tmp_path / "parts" / ARRAYS).read_bytes()
    one, two = (map_annotated_arrays(tmp_path / name / CHECKPOINT) for name in ("whole", "parts"))
    assert_same(one[0], two[0])
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "parts")


def test_the_directory_is_a_model_from_the_first_step_on(tmp_path: Path) -> None:
    stop_at(tmp_path / "model", 2, **ONE_THREAD)
    assert len(dragoman.load(tmp_path / "model").score(HELD_OUT)) == len(HELD_OUT)


def test_the_model_on_disk_is_the_one_kept(tmp_path: Path) -> None:
    model = network()
    fit(model, CORPUS, DEV, output=tmp_path / "model", max_epochs=5, learning_rate=0.05, batch_size=20, **ONE_THREAD)
    assert dragoman.load(tmp_path / "model").score(HELD_OUT) == model.score(HELD_OUT)


def test_a_finished_training_is_left_alone(tmp_path: Path) -> None:
    fit(network(), CORPUS, output=tmp_path / "model", max_epochs=2, **ONE_THREAD)
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in (tmp_path / "model").iterdir()}
    model = network()
    assert fit(model, CORPUS, output=tmp_path / "model", max_epochs=2, **ONE_THREAD).was_finished
    after = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in (tmp_path / "model").iterdir()}
    assert {name: content for name, (content, _) in before.items()} == {n: content for n, (content, _) in after.items()}
    assert model.score(HELD_OUT) == dragoman.load(tmp_path / "model").score(HELD_OUT)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"learning_rate": 0.5}, "training.learning_rate"),
        ({"seed": 7}, "training.seed"),
        ({"max_epochs": 3}, "training.max_epochs"),
    ],
)
def test_another_configuration_is_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    fit(network(), CORPUS, output=tmp_path / "model", max_epochs=2, **ONE_THREAD)
    with pytest.raises(DataError, match=told):
        fit(network(), CORPUS, output=tmp_path / "model", **{"max_epochs": 2, **ONE_THREAD, **change})


def test_another_text_or_model_is_refused(tmp_path: Path) -> None:
    settings = {"output": tmp_path / "model", "max_epochs": 2, **ONE_THREAD}
    fit(network(), CORPUS, **settings)
    with pytest.raises(DataError, match=r"data\.train\.sentences"):
        fit(network(), CORPUS.select(np.arange(10)), **settings)
    with pytest.raises(DataError, match=r"data\.train\.checksum"):
        fit(network(), CORPUS.select(np.arange(len(CORPUS))[::-1]), **settings)
    with pytest.raises(DataError, match=r"model\.embedding"):
        fit(network(embedding=3), CORPUS, **settings)


def test_more_threads_are_the_same_training(tmp_path: Path) -> None:
    fit(network(), CORPUS, output=tmp_path / "model", max_epochs=1, threads=1)
    assert fit(network(), CORPUS, output=tmp_path / "model", max_epochs=1, threads=2).was_finished


def test_force_trains_anew(tmp_path: Path) -> None:
    fit(network(), CORPUS, output=tmp_path / "model", max_epochs=1, **ONE_THREAD)
    again = fit(network(), CORPUS, output=tmp_path / "model", max_epochs=2, force=True, **ONE_THREAD)
    assert not again.was_finished
    assert again.position.epoch == 2


def test_other_models_are_not_written_over(tmp_path: Path) -> None:
    dragoman.NgramModel.train(CORPUS, order=1, smoothing="witten-bell").save(tmp_path / "model")
    with pytest.raises(DataError, match="holds a model already"):
        fit(network(), CORPUS, output=tmp_path / "model", max_epochs=1, **ONE_THREAD)


def test_the_whole_configuration_is_kept_with_the_model(tmp_path: Path) -> None:
    fit(network(), CORPUS, output=tmp_path / "model", max_epochs=1, learning_rate=0.0125, **ONE_THREAD)
    loaded = dragoman.load(tmp_path / "model")
    loaded.save(tmp_path / "copy")
    for config in (loaded.config(), dragoman.load(tmp_path / "copy").config()):
        assert config["training"]["learning_rate"] == 0.0125
        assert config["model"]["hidden"] == [5]
        assert config["data"]["train"]["tokens"] == CORPUS.tokens


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

    write = checkpoint.write_arrays
    monkeypatch.setattr(checkpoint, "write_arrays", full)
    with pytest.raises(DragomanError, match=r"No space left on device.*the last checkpoint is intact"):
        fit(network(), CORPUS, output=tmp_path / "model", **settings)
    monkeypatch.undo()
    assert checkpoint.read_position(tmp_path / "model" / CHECKPOINT).update == 4
    assert not [file for file in (tmp_path / "model").iterdir() if file.name.startswith(".")]
    model = network()
    fit(model, CORPUS, output=tmp_path / "model", **settings)
    assert_same(parameters(model), parameters(whole))


def test_damaged_checkpoints_are_told_in_one_line(tmp_path: Path) -> None:
    settings = {"output": tmp_path / "model", "max_epochs": 1, **ONE_THREAD}
    fit(network(), CORPUS, **settings)
    good = (tmp_path / "model" / CHECKPOINT).read_bytes()
    for bad in (b"", good[:100], good[:-40], good.replace(b'"now/M"', b'"not/M"'), good.replace(b"epoch", b"hcope")):
        (tmp_path / "model" / CHECKPOINT).write_bytes(bad)
        with pytest.raises(DataError, match=r"training\.safetensors"):
            fit(network(), CORPUS, **settings)


def test_metrics_that_were_cut_off_do_no_harm(tmp_path: Path) -> None:
    settings = {"batch_size": 30, "max_epochs": 2, "report_every": 1, **ONE_THREAD}
    stop_at(tmp_path / "model", 7, **settings)
    with (tmp_path / "model" / METRICS).open("a") as file:
        file.write('{"update": 8, "tra')
    fit(network(dropout=0.3), CORPUS, output=tmp_path / "model", **settings)
    updates = [line["update"] for line in metrics(tmp_path / "model")]
    assert updates == list(range(1, len(updates) + 1))


# -- losses that are not finite -------------------------------------------------------------------------------------


def failing_at(*updates: int) -> tuple[Callable[..., torch.Tensor], list[int]]:
    """The likelihood, but infinite at these steps."""
    steps = [0]

    def objective(model: Any, corpus: Corpus, noise: Any = None) -> torch.Tensor:
        losses = negative_log_likelihood(model, corpus, noise)
        if noise is not None:
            steps[0] += 1
            if steps[0] in updates:
                return losses * math.inf
        return losses

    return objective, steps


def test_a_loss_that_is_not_finite_sends_back_once(tmp_path: Path) -> None:
    objective, _ = failing_at(3)
    model, seen = network(), []
    settings = {"batch_size": 0, "max_epochs": 4, "learning_rate": 0.1, "check_every": 2, **ONE_THREAD}
    watch = Watch(3, lambda: seen.append(parameters(model)))
    fit(model, CORPUS, output=tmp_path / "model", objective=objective, report=watch, **settings)
    assert [moment.went_back for moment in watch.moments] == [False, False, True, False]
    assert [moment.rate for moment in watch.moments] == [0.1, 0.1, 0.1, 0.05]
    reference = network()
    fit(reference, CORPUS, **{**settings, "max_updates": 2})
    assert_same(seen[0], parameters(reference))
    for file in (ARRAYS, CHECKPOINT):
        assert all(np.isfinite(array).all() for array in map_arrays(tmp_path / "model" / file).values())
    assert any(line["went_back"] for line in metrics(tmp_path / "model"))


def test_twice_is_the_end(tmp_path: Path) -> None:
    objective, _ = failing_at(3, 5)
    settings = {"batch_size": 0, "max_epochs": 9, "check_every": 2, "save_every": 1, **ONE_THREAD}
    with pytest.raises(DivergedError, match="not finite") as caught:
        fit(network(), CORPUS, output=tmp_path / "model", objective=objective, **settings)
    assert caught.value.exit_code == 3
    for file in (ARRAYS, CHECKPOINT):
        assert all(np.isfinite(array).all() for array in map_arrays(tmp_path / "model" / file).values())
    assert checkpoint.read_position(tmp_path / "model" / CHECKPOINT).update == 4


def test_a_wild_learning_rate_diverges_with_its_own_exit_code() -> None:
    with pytest.raises(DivergedError):
        fit(network(), CORPUS, optimizer="sgd", learning_rate=1e30, max_epochs=50, batch_size=20, **ONE_THREAD)


def test_a_dev_loss_that_is_not_finite_is_never_best(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_by(monkeypatch, [3.0, math.nan, 2.0])
    watch = Watch()
    fitted = fit(network(), CORPUS, DEV, batch_size=0, max_epochs=3, report=watch, **ONE_THREAD)
    assert fitted.position.went_back
    assert fitted.position.best == 2.0


# -- stopping by signal, threads, devices -----------------------------------------------------------------------------


def test_a_signal_is_seen_to_between_steps(tmp_path: Path) -> None:
    import signal

    watch = Watch(3, lambda: signal.raise_signal(signal.SIGINT))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(StoppedError, match="run the same command again") as caught:
        fit(network(), CORPUS, output=tmp_path / "model", batch_size=30, max_epochs=2, report=watch, **ONE_THREAD)
    assert caught.value.exit_code == 130
    assert checkpoint.read_position(tmp_path / "model" / CHECKPOINT).update == 3
    assert signal.getsignal(signal.SIGINT) is before


def test_threads_are_limited_and_given_back() -> None:
    from dragoman.threads import cores

    seen = []
    before = torch.get_num_threads(), cores()
    watch = Watch(1, lambda: seen.append((torch.get_num_threads(), cores())))
    fit(network(), CORPUS, batch_size=0, max_epochs=1, threads=1, report=watch)
    assert seen == [(1, 1)]
    assert (torch.get_num_threads(), cores()) == before


@pytest.mark.parametrize("device", ["nonsense", "cuda:7"])
def test_devices_that_are_not_there_are_refused(device: str) -> None:
    with pytest.raises(DataError, match="try cpu"):
        fit(network(), CORPUS, device=device)


@pytest.mark.parametrize("settings", [{"learning_rate": 0}, {"optimizer": "newton"}, {"lerning_rate": 1}])
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"learning_rate|optimizer"):
        fit(network(), CORPUS, **settings)


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(DataError, match="training text is empty"):
        fit(network(), CORPUS.select(np.zeros(0, np.int64)))
    with pytest.raises(DataError, match="dev text is empty"):
        fit(network(), CORPUS, CORPUS.select(np.zeros(0, np.int64)))


def test_a_position_survives_its_file() -> None:
    position = Position(3, 5, 77, 0.1 + 0.2, 1 / 3, 70, 2, 0.25, True, 1e-300, 9, "")
    assert Position.from_json(position.to_json()) == position


def test_parameters_that_are_not_finite_are_never_written(tmp_path: Path) -> None:
    """The loss of the step before was finite: it is the step that was too large."""
    wild = {"optimizer": "sgd", "learning_rate": 1e300, "max_epochs": 1, "batch_size": 0, **ONE_THREAD}
    fitted = fit(network(), CORPUS, output=tmp_path / "model", **wild)
    assert fitted.position.went_back
    for file in (ARRAYS, CHECKPOINT):
        assert all(np.isfinite(array).all() for array in map_arrays(tmp_path / "model" / file).values())
    with pytest.raises(DivergedError):
        fit(network(), CORPUS, **{**wild, "max_epochs": 2, "learning_rate": 1e305})


def test_a_dev_loss_that_was_never_finite_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_by(monkeypatch, [math.nan])
    with pytest.raises(DivergedError, match="never finite"):
        fit(network(), CORPUS, DEV, batch_size=0, max_epochs=1, **ONE_THREAD)


def test_going_back_because_of_the_dev_text_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_by(monkeypatch, [3.0, math.inf, 2.0])
    watch = Watch()
    fit(network(), CORPUS, DEV, batch_size=0, max_epochs=3, report=watch, **ONE_THREAD)
    assert [moment.went_back for moment in watch.moments] == [False, True, False]


def test_models_that_are_not_finite_are_not_loaded(tmp_path: Path) -> None:
    model = network()
    model.parameters()["b_s"][3] = math.nan
    model.save(tmp_path / "model")
    with pytest.raises(DataError, match="b_s"):
        dragoman.load(tmp_path / "model")


def test_texts_over_other_words_are_refused() -> None:
    other = Corpus.from_sentences(["quite another language"])
    with pytest.raises(DataError, match="another vocabulary"):
        fit(network(), CORPUS, other)
    with pytest.raises(DataError, match="another vocabulary"):
        fit(network(), other)


def test_how_it_was_trained_is_kept_in_memory_too(tmp_path: Path) -> None:
    model = network()
    fit(model, CORPUS, max_epochs=1, learning_rate=0.0125, **ONE_THREAD)
    model.save(tmp_path / "model")
    assert dragoman.load(tmp_path / "model").config()["training"]["learning_rate"] == 0.0125


def test_what_a_kill_left_behind_is_cleared_away(tmp_path: Path) -> None:
    settings = {"batch_size": 30, "max_epochs": 2, "save_every": 1, **ONE_THREAD}
    for again in ({}, {"force": True}):
        stop_at(tmp_path / "model", 4, **settings, **again)
        (tmp_path / "model" / ".training.safetensors.x1y2").write_bytes(b"half")
        fit(network(dropout=0.3), CORPUS, output=tmp_path / "model", **settings, **again)
        assert sorted(file.name for file in (tmp_path / "model").iterdir()) == sorted(
            ["config.yaml", "vocab.tsv", ARRAYS, CHECKPOINT, METRICS]
        )


@pytest.mark.parametrize("damage", ["config.yaml", "vocab.tsv", ARRAYS])
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
    assert fit(model(), CORPUS, **settings).was_finished
    with pytest.raises(DataError, match=r"data\.start"):
        fit(model(bird="B"), CORPUS, **settings)


# -- unknown words ----------------------------------------------------------------------------------------------------

RARE = [f"the {word} sat" for word in ("cat", "cat", "dog", "dog", "emu", "gnu", "owl", "yak")]


def unknown_after_the(**settings: Any) -> float:
    corpus = Corpus.from_sentences(RARE)
    model = FeedForwardModel.create(corpus, order=2, embedding=4, hidden=(8,))
    fit(model, corpus, max_epochs=150, learning_rate=0.02, **settings, **ONE_THREAD)
    return dict(model.next_words("the", k=None))["<unk>"]


def test_words_seen_once_teach_what_unknown_words_are_like() -> None:
    """Half the words after `the` are seen once, and half of these are unknown: a quarter."""
    assert unknown_after_the() == pytest.approx(0.25, abs=0.12)
    assert unknown_after_the(unknown_rate=0.0) < 0.02


def test_texts_that_have_unknown_words_teach_it_themselves() -> None:
    watched = []

    def objective(model: Any, corpus: Corpus, noise: Any) -> torch.Tensor:
        watched.append(corpus.ids.copy())
        return negative_log_likelihood(model, corpus, noise)

    fit(network(), CORPUS, objective=objective, batch_size=0, max_epochs=1, **ONE_THREAD)
    assert sorted(watched[0].tolist()) == sorted(CORPUS.ids.tolist())
