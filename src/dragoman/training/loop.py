"""The training loop: every model that has gradients learns by this one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.optim import Optimizer

from dragoman.core.errors import DragomanError
from dragoman.training import regularization as penalties
from dragoman.training.batch_order import SENTENCES, DataOrder, memory_chunks
from dragoman.training.config import TrainingConfig
from dragoman.training.objectives import Carry, StatefulObjective
from dragoman.training.optimizers import create_optimizer, set_learning_rate
from dragoman.training.progress import Progress
from dragoman.training.protocols import Examples, Trainable
from dragoman.training.schedule import scheduled_learning_rate

MAX_PREDICTIONS = 4096  # predictions computed together; larger batches are gathered from several such pieces


class DivergedError(DragomanError):
    """The loss was not finite, twice."""

    exit_code = 3


@dataclass(frozen=True)
class TrainingTask:
    """What there is to learn, and how."""

    data: Examples
    dev: Examples | None
    objective: StatefulObjective
    config: TrainingConfig
    clock: Callable[[], float]  # seconds
    data_order: DataOrder = SENTENCES

    @cached_property
    def predictions(self) -> int:
        """Predictions in the training text."""
        return int(self.data.sizes.sum())

    def batches(self, epoch: int) -> Sequence[Examples]:
        return self.data_order.epoch_batches(self.data, self.config, epoch)

    def evaluation_batches(self, data: Examples) -> Iterable[Examples]:
        """All of a text, where it is only judged."""
        return self.data_order.evaluation_batches(data, MAX_PREDICTIONS)


@dataclass
class TrainState:
    """A model that is learning: all that a step changes, and so all that a checkpoint holds."""

    model: Trainable
    optimizer: Optimizer
    best_parameters: dict[str, Tensor]  # the best parameters so far by the dev text, or the last ones
    progress: Progress
    carry: Carry = None  # what the model remembers of the batch before, in this epoch
    average: dict[str, Tensor] = field(default_factory=dict)  # of the parameters, if they are being averaged

    @classmethod
    def create(cls, model: Trainable, config: TrainingConfig) -> TrainState:
        parameters = model.parameters()
        return cls(model, create_optimizer(parameters, config), copy_parameters(parameters), Progress())


@dataclass(frozen=True)
class StepReport:
    """What there is to tell after a step."""

    progress: Progress
    loss: float  # mean loss of the batch
    predictions: int  # predictions in it
    learning_rate: float  # the learning rate
    gradient_norm: float  # its norm, before clipping
    fraction_done: float  # how much of the training is done
    rolled_back: bool  # a loss was not finite, and the parameters are again those kept
    evaluated: bool  # the model was judged, and kept if it is the best so far
    dev_loss: float | None  # by which it was judged, if there is a dev text
    train_loss: float | None  # mean since it was last told, where it is to be told


def training_steps(state: TrainState, task: TrainingTask) -> Iterator[StepReport]:
    """Take step after step until a bound is reached or the dev text is no longer predicted better.

    Whoever asks for the next moment may first save, report or stop; what follows is the same.
    """
    while not state.progress.finished:
        batches = task.batches(state.progress.epoch)
        for number in range(state.progress.batch, len(batches)):
            yield _train_batch(state, task, batches[number], len(batches))
            if state.progress.finished:
                return


def _train_batch(learner: TrainState, task: TrainingTask, batch: Examples, batches: int) -> StepReport:
    config, began, before = task.config, task.clock(), learner.progress
    share = before.fraction_done(config, batches)
    rate = scheduled_learning_rate(config, before.update, share) * before.rate_factor
    loss, gradient, held = _gradients(learner, task, batch)
    finite = math.isfinite(loss) and math.isfinite(gradient)
    if finite and _step(learner, task, rate, gradient, held):
        _average(learner, config, batches)
    else:
        _roll_back(learner, config)
    items = int(batch.sizes.sum())
    told = (loss * items, items) if finite else (0.0, 0)
    learner.progress = learner.progress.after_batch(batches, *told, task.clock() - began)
    if learner.progress.batch == 0:
        learner.carry = None
    judged = _is_due(learner.progress, config)
    dev_loss = _evaluate(learner, task) if judged else None
    train_loss = _training_loss(learner, config, judged)
    went_back = learner.progress.rolled_back and not before.rolled_back
    return StepReport(learner.progress, loss, items, rate, gradient, share, went_back, judged, dev_loss, train_loss)


def _gradients(
    learner: TrainState, task: TrainingTask, batch: Examples
) -> tuple[float, float, list[penalties.SignConstraint]]:
    """Mean loss of a batch, the norm of its gradient, which is left in the parameters, and what L1 holds.

    Large batches are gone through in pieces, whose gradients add up.
    """
    config, update = task.config, learner.progress.update
    parameters = list(learner.model.parameters().values())
    learner.optimizer.zero_grad(set_to_none=True)
    items, total = int(batch.sizes.sum()), 0.0
    for piece, numbers in enumerate(memory_chunks(batch, MAX_PREDICTIONS)):
        noise = step_generator(config.seed, update, piece, parameters[0].device)
        losses, learner.carry = task.objective(learner.model, batch.select(numbers), noise, learner.carry)
        loss = losses.sum() / items
        loss.backward()
        total += float(loss.detach())
    weights = learner.model.regularized_parameters().values()
    held = penalties.add_penalty_gradients(weights, config.l1 / task.predictions, config.l2 / task.predictions)
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return total, float(torch.nn.utils.get_total_norm(gradients)), held


def _step(
    learner: TrainState, task: TrainingTask, rate: float, gradient: float, held: list[penalties.SignConstraint]
) -> bool:
    """theta <- theta - eta * gradient, as the optimiser sees it; whether the parameters are finite after it."""
    config, parameters = task.config, list(learner.model.parameters().values())
    if config.clip is not None and gradient > config.clip:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(config.clip / gradient)
    set_learning_rate(learner.optimizer, rate)
    learner.optimizer.step()
    penalties.clip_at_zero(learner.model.regularized_parameters().values(), held)
    return math.isfinite(float(torch.nn.utils.get_total_norm([parameter.detach() for parameter in parameters])))


def _average(learner: TrainState, config: TrainingConfig, batches: int) -> None:
    """Near the end, the mean of the parameters so far: less subject to where the last steps happened to go."""
    if learner.progress.fraction_done(config, batches) < 1 - config.average or not config.average:
        return
    parameters = learner.model.parameters()
    number = learner.progress.averaged_steps + 1
    if number == 1:
        learner.average = copy_parameters(parameters)
    for name, tensor in parameters.items():
        learner.average[name].lerp_(tensor.detach(), 1 / number)
    learner.progress = replace(learner.progress, averaged_steps=number)


def _roll_back(learner: TrainState, config: TrainingConfig) -> None:
    """To the parameters kept, with half the rate and an optimiser that remembers nothing; but once only."""
    if learner.progress.rolled_back:
        where = f"update {learner.progress.update:,}"
        raise DivergedError(f"the loss is not finite (at {where}), after going back once; lower --learning-rate")
    load_parameters(learner.model, learner.best_parameters)
    learner.optimizer = create_optimizer(learner.model.parameters(), config)
    learner.average, learner.carry = {}, None
    learner.progress = replace(
        learner.progress, rolled_back=True, rate_factor=learner.progress.rate_factor / 2, averaged_steps=0
    )


def _is_due(position: Progress, config: TrainingConfig) -> bool:
    """The model is judged at the end of each epoch, or every so many steps, and at the end of the training."""
    if position.limit_reached(config):
        return True
    return position.update % config.check_every == 0 if config.check_every else position.batch == 0


def _evaluate(learner: TrainState, task: TrainingTask) -> float | None:
    """Look at the dev text, and keep the parameters if they are the best so far; without one, keep the last ones."""
    began = task.clock()
    with _averaged_parameters(learner):
        dev_loss = (
            None if task.dev is None else mean_loss(learner.model, task.evaluation_batches(task.dev), task.objective)
        )
    if dev_loss is not None and not math.isfinite(dev_loss):
        _roll_back(learner, task.config)
    else:
        learner.progress = learner.progress.after_evaluation(dev_loss, task.config)
        if learner.progress.best_update == learner.progress.update:
            learner.best_parameters = copy_parameters(learner.average or learner.model.parameters())
    why = learner.progress.finished or learner.progress.limit_reached(task.config)
    if why and task.dev is not None and learner.progress.best_dev_loss is None:
        raise DivergedError("the loss of the dev text was never finite; lower --learning-rate")
    seconds = learner.progress.seconds + task.clock() - began
    learner.progress = replace(learner.progress, finished=why, seconds=seconds)
    return dev_loss


@contextmanager
def _averaged_parameters(learner: TrainState) -> Iterator[None]:
    """The model with the mean of its parameters, if they are being averaged, and then as it was again."""
    if not learner.average:
        yield
        return
    learning = copy_parameters(learner.model.parameters())
    load_parameters(learner.model, learner.average)
    try:
        yield
    finally:
        load_parameters(learner.model, learning)


def _training_loss(learner: TrainState, config: TrainingConfig, judged: bool) -> float | None:
    """The mean training loss since it was last told, every so many steps."""
    if not (judged or learner.progress.update % config.report_every == 0):
        return None
    loss = learner.progress.mean_loss
    learner.progress = replace(learner.progress, loss=0.0, predictions=0)
    return loss


def mean_loss(model: Trainable, pieces: Iterable[Examples], objective: StatefulObjective) -> float:
    """Mean loss of the predictions that a text asks for, piece after piece, without noise."""
    total, items, carry = 0.0, 0, None
    with torch.no_grad():
        for piece in pieces:
            losses, carry = objective(model, piece, None, carry)
            total, items = total + float(losses.double().sum()), items + len(losses)
    return total / items


def step_generator(seed: int, update: int, piece: int, device: Any) -> Generator:
    """The randomness of one piece of one batch: it depends on nothing else, so nothing of it needs saving."""
    drawn = np.random.SeedSequence([seed, update, piece]).generate_state(1, np.uint64)
    return Generator(device).manual_seed(int(drawn[0]) >> 1)


def copy_parameters(parameters: Any) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in parameters.items()}


def load_parameters(model: Trainable, values: dict[str, Tensor]) -> None:
    """Give the parameters these values."""
    with torch.no_grad():
        for name, tensor in model.parameters().items():
            tensor.copy_(values[name])
