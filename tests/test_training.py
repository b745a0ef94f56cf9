"""The training loop: steps, order, losses, schedules, stopping, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from dragoman import Corpus, DataError, FeedForwardModel, TrainingConfig, fit
from dragoman.core.threads import available_cores, limit_threads
from dragoman.data.ranges import split_by_size
from dragoman.evaluation.likelihood import token_log_probs
from dragoman.training import loop
from dragoman.training.batch_order import epoch_batches
from dragoman.training.objectives import negative_log_likelihood
from dragoman.training.optimizers import SCHEDULES, add_penalty_gradients, scheduled_learning_rate
from dragoman.training.progress import Progress
from training_helpers import (
    CORPUS,
    DEV,
    ONE_THREAD,
    ORIGIN,
    Bowl,
    Points,
    Recorder,
    assert_same,
    distance,
    network,
    parameters,
    set_dev_losses,
)

# -- steps, on a model with a known loss -----------------------------------------------------------------------------


def path(rule: Callable[[np.ndarray, int], np.ndarray], start: tuple[float, ...], steps: int) -> np.ndarray:
    theta = np.array(start)
    for number in range(1, steps + 1):
        theta = rule(theta, number)
    return theta


def momentum_rule() -> Callable[[np.ndarray, int], np.ndarray]:
    velocity = np.zeros(2)

    def rule(theta: np.ndarray, number: int) -> np.ndarray:
        velocity[:] = 0.8 * velocity + theta
        return theta - 0.1 * velocity

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
    np.testing.assert_allclose(bowl.theta.detach(), path(RULES[name](), (3.0, -0.2), 7), rtol=1e-9)


def test_gradients_are_clipped_to_their_norm() -> None:
    bowl = Bowl(3.0, 4.0)
    fit(bowl, ORIGIN, objective=distance, optimizer="sgd", learning_rate=0.1, clip=1.0, max_epochs=1)
    np.testing.assert_allclose(bowl.theta.detach(), [3.0 - 0.06, 4.0 - 0.08])


def test_l2_strength_is_per_text() -> None:
    points = Points(np.zeros((4, 2)))
    bowl = Bowl(3.0, -1.0)
    fit(bowl, points, objective=distance, optimizer="sgd", learning_rate=0.1, l2=2.0, batch_size=0, max_epochs=1)
    np.testing.assert_allclose(bowl.theta.detach(), np.array([3.0, -1.0]) * (1 - 0.1 * (1 + 2.0 / 4)))


def test_l1_finds_the_optimum_and_its_zeros() -> None:
    """The optimum of (theta - 1)^2 / 2 + l1 |theta| is theta = 1 - l1, and 0 from l1 = 1 on."""
    points = Points(np.array([[1.0, -1.0, 0.1, -0.1]]))
    bowl = Bowl(0.0, 0.0, 0.5, -0.4)
    fit(bowl, points, objective=distance, optimizer="sgd", learning_rate=0.3, l1=0.25, max_epochs=60)
    np.testing.assert_allclose(bowl.theta.detach(), [0.75, -0.75, 0.0, 0.0], atol=1e-6)
    assert bowl.theta[2:].tolist() == [0.0, 0.0]


def test_regularization_excludes_biases() -> None:
    model = network()
    assert {name for name, _ in model.named_parameters()} - set(model.regularized_parameters()) == {
        "mlp.layers.0.bias",
        "output.bias",
    }


def test_penalty_gradients_are_those_of_the_penalty() -> None:
    weight = torch.tensor([1.5, -0.5, 2.0], dtype=torch.float64, requires_grad=True)
    weight.grad = torch.zeros(3, dtype=torch.float64)
    add_penalty_gradients([weight], l1=0.3, l2=0.7)
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
    assert [run.tolist() for run in split_by_size(np.arange(6), sizes, 6)] == [[0, 1], [2], [3], [4, 5]]


@pytest.mark.parametrize(("batch_size", "updates"), [(1, len(CORPUS)), (0, 1)])
def test_online_and_full_batch_training(batch_size: int, updates: int) -> None:
    assert fit(network(), CORPUS, batch_size=batch_size, max_epochs=1, **ONE_THREAD).progress.update == updates


def test_a_batch_in_pieces_is_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"batch_size": 0, "max_epochs": 3, "learning_rate": 0.1, "optimizer": "sgd", **ONE_THREAD}
    whole, pieces = network(dtype="float64"), network(dtype="float64")
    fit(whole, CORPUS, **settings)
    monkeypatch.setattr(loop, "MAX_PREDICTIONS", 13)
    fit(pieces, CORPUS, **settings)
    for name, tensor in whole.named_parameters():
        np.testing.assert_allclose(pieces.state_dict()[name], tensor.detach(), rtol=0, atol=1e-12)


# -- the loss ---------------------------------------------------------------------------------------------------------


def test_the_loss_is_the_likelihood_that_the_scorer_reports() -> None:
    model = network(dtype="float64", dropout=0.5)
    losses = negative_log_likelihood(model, CORPUS).detach()
    np.testing.assert_allclose(-losses, token_log_probs(model, CORPUS), rtol=0, atol=1e-12)


def test_dropout_applies_in_training_only() -> None:
    model, device = network(dropout=0.5, embedding_dropout=0.5).train(), torch.device("cpu")
    dropped = negative_log_likelihood(model, CORPUS, loop.step_generator(1, 0, 0, device))
    again = negative_log_likelihood(model, CORPUS, loop.step_generator(1, 0, 0, device))
    other = negative_log_likelihood(model, CORPUS, loop.step_generator(1, 1, 0, device))
    assert torch.equal(dropped, again)
    assert not torch.equal(dropped, other)
    model.eval()
    assert not torch.equal(dropped, negative_log_likelihood(model, CORPUS))
    assert torch.equal(negative_log_likelihood(model, CORPUS), negative_log_likelihood(model, CORPUS))


def test_reported_losses_are_the_means_of_their_steps() -> None:
    recorder = Recorder()
    fit(network(), CORPUS, batch_size=30, max_epochs=2, report_every=3, callback=recorder, **ONE_THREAD)
    with_loss = [report for report in recorder.reports if report.train_loss is not None]
    first = recorder.reports[:3]
    mean = sum(report.loss * report.predictions for report in first) / sum(report.predictions for report in first)
    assert with_loss[0].train_loss == pytest.approx(mean)
    assert with_loss[0].progress.update == 3


def test_training_lowers_the_loss_and_turns_gradients_off_again() -> None:
    model = network()
    before = token_log_probs(model, CORPUS).mean()
    fit(model, CORPUS, max_epochs=20, learning_rate=0.02, batch_size=50, **ONE_THREAD)
    assert token_log_probs(model, CORPUS).mean() > before + 0.5
    assert not model.training
    assert all(tensor.grad is None for tensor in model.parameters())


# -- rates, bounds, stopping -----------------------------------------------------------------------------------------


def test_rates_by_schedule() -> None:
    def rates(**settings: Any) -> list[float]:
        recorder = Recorder()
        fit(
            network(),
            CORPUS,
            batch_size=0,
            max_epochs=5,
            learning_rate=0.1,
            callback=recorder,
            **settings,
            **ONE_THREAD,
        )
        return [report.learning_rate for report in recorder.reports]

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
    assert all(
        0 <= scheduled_learning_rate(config, update, update / 10) <= config.learning_rate for update in range(14)
    )


def test_plateaus_lower_the_learning_rate_then_stop_training(monkeypatch: pytest.MonkeyPatch) -> None:
    set_dev_losses(monkeypatch, [3.0, 2.0, 2.5, 1.5, 1.6, 1.7, 1.8])
    recorder = Recorder()
    fitted = fit(
        *(network(), CORPUS, DEV),
        **{"batch_size": 0, "max_epochs": 50, "patience": 3, "decay": 0.5, "learning_rate": 0.1, **ONE_THREAD},
        callback=recorder,
    )
    assert fitted.stop_reason == "3 evaluations without improvement"
    assert [report.learning_rate for report in recorder.reports] == [0.1, 0.1, 0.1, 0.05, 0.05, 0.025, 0.0125]
    assert (fitted.progress.best_dev_loss, fitted.progress.best_update) == (1.5, 4)


def test_the_best_parameters_are_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    set_dev_losses(monkeypatch, [3.0, 2.0, 2.5, 2.6])
    model, recorded = network(), []
    recorder = Recorder(at=2, act=lambda: recorded.append(parameters(model)))
    fit(model, CORPUS, DEV, batch_size=0, max_epochs=4, callback=recorder, **ONE_THREAD)
    assert_same(parameters(model), recorded[0])


def test_without_a_dev_text_the_last_parameters_are_used() -> None:
    model, recorded = network(), []
    recorder = Recorder(at=3, act=lambda: recorded.append(parameters(model)))
    fit(model, CORPUS, batch_size=0, max_epochs=3, callback=recorder, **ONE_THREAD)
    assert_same(parameters(model), recorded[0])


def test_evaluation_every_n_updates() -> None:
    recorder = Recorder()
    fit(
        network(),
        CORPUS,
        DEV,
        batch_size=30,
        check_every=4,
        max_updates=10,
        callback=recorder,
        patience=9,
        **ONE_THREAD,
    )
    assert [report.progress.update for report in recorder.reports if report.evaluated] == [4, 8, 10]


# -- threads, devices, what is refused --------------------------------------------------------------------------------


@pytest.fixture
def three_threads() -> Iterator[None]:
    """The same limit as if the user had set it in torch."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
def test_threads_are_limited_and_restored() -> None:
    recorded, free = [], available_cores()
    recorder = Recorder(1, lambda: recorded.append((torch.get_num_threads(), available_cores())))
    fit(network(), CORPUS, batch_size=0, max_epochs=1, threads=1, callback=recorder)
    assert recorded == [(1, 1)]
    assert (torch.get_num_threads(), available_cores()) == (3, free)


@pytest.mark.parametrize(("value", "expected"), [("1", 1), ("100000", None), ("0", None), ("all", None), ("", None)])
def test_omp_num_threads_limits_the_cores(monkeypatch: pytest.MonkeyPatch, value: str, expected: int | None) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    free = available_cores()
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert available_cores() == (expected or free)
    with limit_threads(3):
        assert available_cores() == 3


@pytest.mark.parametrize("device", ["nonsense", "cuda:7"])
def test_missing_devices_are_refused(device: str) -> None:
    with pytest.raises(DataError, match="use cpu"):
        fit(network(), CORPUS, device=device)


@pytest.mark.parametrize("settings", [{"learning_rate": 0}, {"optimizer": "newton"}, {"lerning_rate": 1}])
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"learning_rate|optimizer"):
        fit(network(), CORPUS, **settings)


def test_empty_texts_are_refused() -> None:
    with pytest.raises(DataError, match="training text is empty"):
        fit(network(), CORPUS.select(np.zeros(0, np.int64)))
    with pytest.raises(DataError, match="dev text is empty"):
        fit(network(), CORPUS, CORPUS.select(np.zeros(0, np.int64)))


def test_a_position_survives_its_file() -> None:
    position = Progress(3, 5, 77, 0.1 + 0.2, 1 / 3, 70, 2, 0.25, True, 1e-300, 9, "")
    assert Progress.from_json(position.to_json()) == position


def test_texts_with_another_vocabulary_are_refused() -> None:
    other = Corpus.from_sentences(["quite another language"])
    with pytest.raises(DataError, match="another vocabulary"):
        fit(network(), CORPUS, other)
    with pytest.raises(DataError, match="another vocabulary"):
        fit(network(), other)


# -- unknown words ----------------------------------------------------------------------------------------------------

RARE = [f"the {word} sat" for word in ("cat", "cat", "dog", "dog", "emu", "gnu", "owl", "yak")]


def unknown_after_the(**settings: Any) -> float:
    corpus = Corpus.from_sentences(RARE)
    model = FeedForwardModel.create(corpus, order=2, embedding=4, hidden=(8,))
    fit(model, corpus, max_epochs=150, learning_rate=0.02, **settings, **ONE_THREAD)
    return dict(model.next_words("the", k=None))["<unk>"]


def test_singletons_train_the_unknown_word() -> None:
    """Half the words after `the` occur once, and half of these are unknown: a quarter."""
    assert unknown_after_the() == pytest.approx(0.25, abs=0.12)
    assert unknown_after_the(unknown_rate=0.0) < 0.02


def test_texts_with_unknown_words_need_no_replacement() -> None:
    watched = []

    def objective(model: Any, corpus: Corpus, generator: Any) -> torch.Tensor:
        watched.append(corpus.ids.copy())
        return negative_log_likelihood(model, corpus, generator)

    fit(network(), CORPUS, objective=objective, batch_size=0, max_epochs=1, **ONE_THREAD)
    assert sorted(watched[0].tolist()) == sorted(CORPUS.ids.tolist())
