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
from dragoman.training.batch_order import SENTENCES, Arrangement, pieces_of
from dragoman.training.config import TrainingConfig
from dragoman.training.objectives import Carry, CarryingObjective
from dragoman.training.optimizers import optimizer_for, set_rate
from dragoman.training.progress import Position
from dragoman.training.protocols import Examples, Trainable
from dragoman.training.schedule import scheduled_rate

AT_ONCE = 4096  # predictions computed together; larger batches are gathered from several such pieces


class DivergedError(DragomanError):
    """The loss was not finite, twice."""

    exit_code = 3


@dataclass(frozen=True)
class Task:
    """What there is to learn, and how."""

    examples: Examples
    dev: Examples | None
    objective: CarryingObjective
    config: TrainingConfig
    clock: Callable[[], float]  # seconds
    arrangement: Arrangement = SENTENCES

    @cached_property
    def items(self) -> int:
        """Predictions in the training text."""
        return int(self.examples.sizes.sum())

    def batches(self, epoch: int) -> Sequence[Examples]:
        return self.arrangement.epoch(self.examples, self.config, epoch)

    def pieces(self, examples: Examples) -> Iterable[Examples]:
        """All of a text, where it is only judged."""
        return self.arrangement.whole(examples, AT_ONCE)


@dataclass
class Learner:
    """A model that is learning: all that a step changes, and so all that a checkpoint holds."""

    model: Trainable
    optimizer: Optimizer
    kept: dict[str, Tensor]  # the best parameters so far by the dev text, or the last ones
    position: Position
    carry: Carry = None  # what the model remembers of the batch before, in this epoch
    average: dict[str, Tensor] = field(default_factory=dict)  # of the parameters, if they are being averaged

    @classmethod
    def beginner(cls, model: Trainable, config: TrainingConfig) -> Learner:
        parameters = model.parameters()
        return cls(model, optimizer_for(parameters, config), copied(parameters), Position())


@dataclass(frozen=True)
class Moment:
    """What there is to tell after a step."""

    position: Position
    loss: float  # mean loss of the batch
    items: int  # predictions in it
    rate: float  # the learning rate
    gradient: float  # its norm, before clipping
    share: float  # how much of the training is done
    went_back: bool  # a loss was not finite, and the parameters are again those kept
    judged: bool  # the model was judged, and kept if it is the best so far
    dev_loss: float | None  # by which it was judged, if there is a dev text
    train_loss: float | None  # mean since it was last told, where it is to be told


def learn(learner: Learner, task: Task) -> Iterator[Moment]:
    """Take step after step until a bound is reached or the dev text is no longer predicted better.

    Whoever asks for the next moment may first save, report or stop; what follows is the same.
    """
    while not learner.position.finished:
        batches = task.batches(learner.position.epoch)
        for number in range(learner.position.batch, len(batches)):
            yield _one_batch_on(learner, task, batches[number], len(batches))
            if learner.position.finished:
                return


def _one_batch_on(learner: Learner, task: Task, batch: Examples, batches: int) -> Moment:
    config, began, before = task.config, task.clock(), learner.position
    share = before.share(config, batches)
    rate = scheduled_rate(config, before.update, share) * before.rate
    loss, gradient, held = _gradients(learner, task, batch)
    finite = math.isfinite(loss) and math.isfinite(gradient)
    if finite and _step(learner, task, rate, gradient, held):
        _average(learner, config, batches)
    else:
        _go_back(learner, config)
    items = int(batch.sizes.sum())
    told = (loss * items, items) if finite else (0.0, 0)
    learner.position = learner.position.after_batch(batches, *told, task.clock() - began)
    if learner.position.batch == 0:
        learner.carry = None
    judged = _is_due(learner.position, config)
    dev_loss = _judge(learner, task) if judged else None
    train_loss = _told(learner, config, judged)
    went_back = learner.position.went_back and not before.went_back
    return Moment(learner.position, loss, items, rate, gradient, share, went_back, judged, dev_loss, train_loss)


def _gradients(learner: Learner, task: Task, batch: Examples) -> tuple[float, float, list[penalties.Held]]:
    """Mean loss of a batch, the norm of its gradient, which is left in the parameters, and what L1 holds.

    Large batches are gone through in pieces, whose gradients add up.
    """
    config, update = task.config, learner.position.update
    parameters = list(learner.model.parameters().values())
    learner.optimizer.zero_grad(set_to_none=True)
    items, total = int(batch.sizes.sum()), 0.0
    for piece, numbers in enumerate(pieces_of(batch, AT_ONCE)):
        noise = noise_of(config.seed, update, piece, parameters[0].device)
        losses, learner.carry = task.objective(learner.model, batch.select(numbers), noise, learner.carry)
        loss = losses.sum() / items
        loss.backward()
        total += float(loss.detach())
    weights = learner.model.penalised().values()
    held = penalties.add_gradients(weights, config.l1 / task.items, config.l2 / task.items)
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return total, float(torch.nn.utils.get_total_norm(gradients)), held


def _step(learner: Learner, task: Task, rate: float, gradient: float, held: list[penalties.Held]) -> bool:
    """theta <- theta - eta * gradient, as the optimiser sees it; whether the parameters are finite after it."""
    config, parameters = task.config, list(learner.model.parameters().values())
    if config.clip is not None and gradient > config.clip:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(config.clip / gradient)
    set_rate(learner.optimizer, rate)
    learner.optimizer.step()
    penalties.stop_at_zero(learner.model.penalised().values(), held)
    return math.isfinite(float(torch.nn.utils.get_total_norm([parameter.detach() for parameter in parameters])))


def _average(learner: Learner, config: TrainingConfig, batches: int) -> None:
    """Near the end, the mean of the parameters so far: less subject to where the last steps happened to go."""
    if learner.position.share(config, batches) < 1 - config.average or not config.average:
        return
    parameters = learner.model.parameters()
    number = learner.position.averaged + 1
    if number == 1:
        learner.average = copied(parameters)
    for name, tensor in parameters.items():
        learner.average[name].lerp_(tensor.detach(), 1 / number)
    learner.position = replace(learner.position, averaged=number)


def _go_back(learner: Learner, config: TrainingConfig) -> None:
    """To the parameters kept, with half the rate and an optimiser that remembers nothing; but once only."""
    if learner.position.went_back:
        where = f"update {learner.position.update:,}"
        raise DivergedError(f"the loss is not finite (at {where}), after going back once; lower --learning-rate")
    put_back(learner.model, learner.kept)
    learner.optimizer = optimizer_for(learner.model.parameters(), config)
    learner.average, learner.carry = {}, None
    learner.position = replace(learner.position, went_back=True, rate=learner.position.rate / 2, averaged=0)


def _is_due(position: Position, config: TrainingConfig) -> bool:
    """The model is judged at the end of each epoch, or every so many steps, and at the end of the training."""
    if position.bound_reached(config):
        return True
    return position.update % config.check_every == 0 if config.check_every else position.batch == 0


def _judge(learner: Learner, task: Task) -> float | None:
    """Look at the dev text, and keep the parameters if they are the best so far; without one, keep the last ones."""
    began = task.clock()
    with _as_averaged(learner):
        dev_loss = None if task.dev is None else mean_loss(learner.model, task.pieces(task.dev), task.objective)
    if dev_loss is not None and not math.isfinite(dev_loss):
        _go_back(learner, task.config)
    else:
        learner.position = learner.position.after_look(dev_loss, task.config)
        if learner.position.best_update == learner.position.update:
            learner.kept = copied(learner.average or learner.model.parameters())
    why = learner.position.finished or learner.position.bound_reached(task.config)
    if why and task.dev is not None and learner.position.best is None:
        raise DivergedError("the loss of the dev text was never finite; lower --learning-rate")
    seconds = learner.position.seconds + task.clock() - began
    learner.position = replace(learner.position, finished=why, seconds=seconds)
    return dev_loss


@contextmanager
def _as_averaged(learner: Learner) -> Iterator[None]:
    """The model with the mean of its parameters, if they are being averaged, and then as it was again."""
    if not learner.average:
        yield
        return
    learning = copied(learner.model.parameters())
    put_back(learner.model, learner.average)
    try:
        yield
    finally:
        put_back(learner.model, learning)


def _told(learner: Learner, config: TrainingConfig, judged: bool) -> float | None:
    """The mean training loss since it was last told, every so many steps."""
    if not (judged or learner.position.update % config.report_every == 0):
        return None
    loss = learner.position.mean_loss
    learner.position = replace(learner.position, loss=0.0, items=0)
    return loss


def mean_loss(model: Trainable, pieces: Iterable[Examples], objective: CarryingObjective) -> float:
    """Mean loss of the predictions that a text asks for, piece after piece, without noise."""
    total, items, carry = 0.0, 0, None
    with torch.no_grad():
        for piece in pieces:
            losses, carry = objective(model, piece, None, carry)
            total, items = total + float(losses.double().sum()), items + len(losses)
    return total / items


def noise_of(seed: int, update: int, piece: int, device: Any) -> Generator:
    """The randomness of one piece of one batch: it depends on nothing else, so nothing of it needs saving."""
    drawn = np.random.SeedSequence([seed, update, piece]).generate_state(1, np.uint64)
    return Generator(device).manual_seed(int(drawn[0]) >> 1)


def copied(parameters: Any) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in parameters.items()}


def put_back(model: Trainable, values: dict[str, Tensor]) -> None:
    """Give the parameters these values."""
    with torch.no_grad():
        for name, tensor in model.parameters().items():
            tensor.copy_(values[name])
