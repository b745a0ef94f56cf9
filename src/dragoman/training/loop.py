"""The training loop of all models that are trained with gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from dragoman.core.errors import DragomanError
from dragoman.core.memory import keep_freed_memory
from dragoman.core.scorer import Carry
from dragoman.training.batch_order import SENTENCES, DataOrder, EpochBatches
from dragoman.training.config import TrainingConfig
from dragoman.training.distributed import SINGLE_PROCESS, Communicator
from dragoman.training.objectives import StatefulObjective
from dragoman.training.optimizers import (
    SignConstraint,
    add_penalty_gradients,
    clip_at_zero,
    create_optimizer,
    scheduled_learning_rate,
)
from dragoman.training.pace import PaceKeeper, PaceLog, TimeReserve
from dragoman.training.precision import product_precision
from dragoman.training.progress import Progress
from dragoman.training.protocols import Examples, RegularizedModel

MAX_LOSS = 100.0  # per prediction, as -log P: no model of any use has such a loss
MAX_PREDICTIONS = 4096  # computed at a time; gradients of larger batches are accumulated


class DivergedError(DragomanError):
    """The loss was not finite or far too high, after one roll-back."""

    exit_code = 3


@dataclass(frozen=True)
class TrainingTask:
    """Data, objective and settings of a training run."""

    data: Examples
    predictions: int  # in an epoch
    dev: Examples | None
    objective: StatefulObjective
    config: TrainingConfig
    clock: Callable[[], float]  # seconds
    data_order: DataOrder = SENTENCES
    replay_dev: Examples | None = None  # an old dev text, evaluated but not used to select the best parameters
    train_sample: Examples | None = None  # of the training data, evaluated like the dev text
    pace_log: PaceLog = field(default_factory=PaceLog)
    start: float | None = None  # reading of the clock when training began; None: when the first update begins
    elapsed_seconds: float = 0.0  # of the time limit, used before that
    reserve: TimeReserve = field(default_factory=TimeReserve)  # of the time limit, for the time after training
    max_loss: float = math.inf  # a higher loss is treated like one that is not finite
    communicator: Communicator = SINGLE_PROCESS  # the processes that train together
    precision_reason: str = ""  # why the precision of the settings was chosen, if it was

    def batches(self, epoch: int) -> EpochBatches:
        return self.data_order.epoch_batches(self.data, self.config, epoch)

    def pieces(self, batch: Examples) -> EpochBatches:
        """Return the pieces of a batch, which the processes share."""
        pieces = self.config.pieces or self.communicator.world_size
        return self.data_order.pieces(batch, pieces, MAX_PREDICTIONS)

    def is_usable(self, loss: float) -> bool:
        """Return whether a loss is finite and not far too high, so that training has not diverged."""
        return math.isfinite(loss) and loss <= self.max_loss


@dataclass
class TrainState:
    """Everything that a step changes, and so everything that a checkpoint has."""

    model: nn.Module
    optimizer: Optimizer
    best_parameters: dict[str, Tensor]  # by the dev text; without one, the last parameters
    progress: Progress
    carries: list[Carry] = field(default_factory=list)  # states after the pieces of the batch before, in this epoch
    average: dict[str, Tensor] = field(default_factory=dict)  # of the parameters, once they are averaged

    @classmethod
    def create(cls, model: nn.Module, config: TrainingConfig) -> TrainState:
        return cls(model, create_optimizer(model.parameters(), config), copy_parameters(model), Progress())


@dataclass(frozen=True)
class StepReport:
    """What is known after a step."""

    progress: Progress
    loss: float  # mean loss of the batch
    predictions: int  # in the batch
    learning_rate: float
    gradient_norm: float  # before clipping
    fraction_done: float  # of training, before the step
    rolled_back: bool  # the loss was not finite or far too high, and the parameters are again the best ones
    evaluated: bool  # the model was evaluated, and kept if it was the best
    dev_loss: float | None  # of the evaluation, if there is a dev text
    train_loss: float | None  # mean since the last report of it, if it is due; with dropout and label smoothing
    replay_dev_loss: float | None = None  # of the old dev text, if there is one
    sample_loss: float | None = None  # of a sample of the training text, evaluated like the dev text


def training_steps(state: TrainState, task: TrainingTask) -> Iterator[StepReport]:
    """Train until a limit is reached or the dev loss no longer improves, and yield a report after each step.

    The caller may save or stop between steps; the following steps do not depend on it.
    """
    keep_freed_memory()
    keeper = None
    while not state.progress.stop_reason:
        batches = task.batches(state.progress.epoch)
        keeper = keeper or _create_pace_keeper(state, task, len(batches))
        for number in range(state.progress.batch, len(batches)):
            yield _train_batch(state, task, batches[number], len(batches), keeper)
            if state.progress.stop_reason:
                return


def _create_pace_keeper(state: TrainState, task: TrainingTask, batches: int) -> PaceKeeper:
    limit = None if task.config.minutes is None else 60 * task.config.minutes
    preparation = 0.0 if task.start is None else task.clock() - task.start
    elapsed = state.progress.seconds + task.elapsed_seconds + preparation
    check_every = task.config.check_every or batches
    texts = (task.dev, task.replay_dev, task.train_sample)
    evaluation = sum(int(text.sizes.sum()) for text in texts if text is not None) / 3  # without the backward pass
    work = task.reserve, task.predictions / batches, evaluation
    return PaceKeeper(task.clock, task.pace_log, limit, check_every, elapsed, *work)


def _train_batch(
    state: TrainState, task: TrainingTask, batch: Examples, batches: int, keeper: PaceKeeper
) -> StepReport:
    config, previous = task.config, state.progress
    fraction = previous.fraction_done(config, batches)
    learning_rate = scheduled_learning_rate(config, previous.update, fraction) * previous.rate_factor
    loss, gradient_norm, constraints = _compute_gradients(state, task, batch)
    finite = task.is_usable(loss) and math.isfinite(gradient_norm)
    stepped = finite and _step(state, config, learning_rate, gradient_norm, constraints)
    if task.communicator.max(not stepped):  # in any process
        _roll_back(state, config)
    else:
        _update_average(state, config, batches)
    predictions = int(batch.sizes.sum())
    measured = (loss * predictions, predictions) if finite else (0.0, 0)
    progress = state.progress.after_batch(batches, *measured)
    pace = keeper.decide(progress.update, progress.pace)
    state.progress = replace(progress, pace=pace, seconds=keeper.seconds)
    if state.progress.batch == 0:
        state.carries = []
    evaluated = state.progress.evaluation_due(config)
    losses = _evaluate(state, task, batches, keeper) if evaluated else EvaluationLosses()
    train_loss = None
    if evaluated or state.progress.update % config.report_every == 0:
        train_loss = state.progress.loss / state.progress.predictions if state.progress.predictions else math.nan
        state.progress = replace(state.progress, loss=0.0, predictions=0)
    rolled_back = state.progress.rolled_back and not previous.rolled_back
    return StepReport(
        state.progress,
        loss,
        predictions,
        learning_rate,
        gradient_norm,
        fraction,
        rolled_back,
        evaluated,
        losses.dev,
        train_loss,
        losses.replay_dev,
        losses.train_sample,
    )


def _compute_gradients(
    state: TrainState, task: TrainingTask, batch: Examples
) -> tuple[float, float, list[SignConstraint]]:
    """Compute the gradients of a batch. Return its mean loss, the norm of the gradient and the constraints of L1.

    Gradients are accumulated over the pieces of the batch, and summed over the processes that compute them.
    """
    config, update = task.config, state.progress.update
    parameters = list(state.model.parameters())
    state.model.train()
    state.optimizer.zero_grad(set_to_none=True)
    predictions, total, pieces = int(batch.sizes.sum()), 0.0, task.pieces(batch)
    if len(state.carries) != len(pieces):
        state.carries = [None] * len(pieces)
    for number in task.communicator.share(len(pieces)):
        generator = step_generator(config.seed, update, number, parameters[0].device)
        with product_precision(config.precision, parameters[0].device):
            losses, state.carries[number] = task.objective(pieces[number], generator, state.carries[number])
        loss = losses.sum() / predictions
        loss.backward()
        total += float(loss.detach())
    total = task.communicator.sum_gradients(parameters, total)
    weights = regularized_parameters(state.model).values()
    constraints = add_penalty_gradients(weights, config.l1 / task.predictions, config.l2 / task.predictions)
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return total, float(torch.nn.utils.get_total_norm(gradients)), constraints


def _step(
    state: TrainState,
    config: TrainingConfig,
    learning_rate: float,
    gradient_norm: float,
    constraints: list[SignConstraint],
) -> bool:
    """Take a step of the optimizer. Return whether the parameters are finite after it."""
    parameters = list(state.model.parameters())
    if config.clip is not None and gradient_norm > config.clip:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(config.clip / gradient_norm)
    for group in state.optimizer.param_groups:
        group["lr"] = learning_rate
    state.optimizer.step()
    clip_at_zero(regularized_parameters(state.model).values(), constraints)
    return math.isfinite(float(torch.nn.utils.get_total_norm([parameter.detach() for parameter in parameters])))


def _update_average(state: TrainState, config: TrainingConfig, batches: int) -> None:
    """Near the end of training, include the parameters in their average."""
    if not config.average or state.progress.fraction_done(config, batches) < 1 - config.average:
        return
    number = state.progress.averaged_steps + 1
    if number == 1:
        state.average = copy_parameters(state.model)
    for name, parameter in state.model.named_parameters():
        state.average[name].lerp_(parameter.detach(), 1 / number)
    state.progress = replace(state.progress, averaged_steps=number)


def _roll_back(state: TrainState, config: TrainingConfig) -> None:
    """Return to the best parameters, with half the learning rate and a new optimizer; only once per run."""
    if state.progress.rolled_back:
        where = f"at update {state.progress.update:,}, after one roll-back"
        raise DivergedError(f"the loss is not finite or far too high ({where}); lower --learning-rate")
    load_parameters(state.model, state.best_parameters)
    state.optimizer = create_optimizer(state.model.parameters(), config)
    state.average, state.carries = {}, []
    rate_factor = state.progress.rate_factor / 2
    state.progress = replace(state.progress, rolled_back=True, rate_factor=rate_factor, averaged_steps=0)


class EvaluationLosses(NamedTuple):
    """Mean losses of an evaluation, of the texts that there are."""

    dev: float | None = None
    replay_dev: float | None = None
    train_sample: float | None = None


def _evaluate(state: TrainState, task: TrainingTask, batches: int, keeper: PaceKeeper) -> EvaluationLosses:
    """Evaluate on the dev text and keep the parameters if they are the best; without one, keep the last ones."""
    start = keeper.seconds
    texts = (task.dev, task.replay_dev, task.train_sample)
    losses = EvaluationLosses(*(evaluate_loss(text, state, task) for text in texts))
    dev_loss = losses.dev
    if dev_loss is not None and not task.is_usable(dev_loss):
        _roll_back(state, task.config)
    else:
        state.progress = state.progress.after_evaluation(dev_loss, task.config)
        if state.progress.best_update == state.progress.update:
            best = state.average or dict(state.model.named_parameters())
            state.best_parameters = {name: tensor.detach().clone() for name, tensor in best.items()}
        _cool_down_on_plateau(state, task.config, batches, keeper)
    reason = state.progress.stop_reason or state.progress.limit_reached(task.config)
    if reason and task.dev is not None and state.progress.best_dev_loss is None:
        raise DivergedError("the loss of the dev text was never finite, or always far too high; lower --learning-rate")
    seconds = keeper.seconds
    keeper.evaluation_ended(seconds - start)
    state.progress = replace(state.progress, stop_reason=reason, seconds=seconds)
    return losses


def _cool_down_on_plateau(state: TrainState, config: TrainingConfig, batches: int, keeper: PaceKeeper) -> None:
    """With the schedule `cooldown`, start the cooldown from the best parameters instead of ending training."""
    progress = state.progress
    is_stable = progress.fraction_done(config, batches) < 1 - config.cooldown
    if config.schedule == "cooldown" and progress.stop_reason and is_stable:
        load_parameters(state.model, state.best_parameters)
        pace = keeper.start_cooldown(progress.update, progress.pace, config.cooldown)
        state.progress = replace(progress, stop_reason="", evaluations_without_improvement=0, pace=pace)


def evaluate_start(state: TrainState, task: TrainingTask) -> None:
    """Evaluate a model that was trained before, so that its parameters are kept unless training improves them."""
    if task.dev is not None and not state.progress.update and state.progress.best_dev_loss is None:
        loss = evaluate_loss(task.dev, state, task)
        if loss is not None and task.is_usable(loss):
            state.progress = state.progress.after_evaluation(loss, task.config)


def evaluate_loss(text: Examples | None, state: TrainState, task: TrainingTask) -> float | None:
    """Return the mean loss of a text, if there is one, with averaged parameters if there are any."""
    if text is None:
        return None
    processes = task.communicator
    batches = task.data_order.evaluation_batches(text, MAX_PREDICTIONS, processes.rank, processes.world_size)
    with _averaged_parameters(state):
        return mean_loss(state.model, batches, task.objective, processes)


@contextmanager
def _averaged_parameters(state: TrainState) -> Iterator[None]:
    """Give the model the average of its parameters, if there is one, and restore them afterwards."""
    if not state.average:
        yield
        return
    parameters = copy_parameters(state.model)
    load_parameters(state.model, state.average)
    try:
        yield
    finally:
        load_parameters(state.model, parameters)


def mean_loss(
    model: nn.Module,
    batches: Iterable[Examples],
    objective: StatefulObjective,
    communicator: Communicator = SINGLE_PROCESS,
) -> float:
    """Return the mean loss of the predictions of some batches, and of those of other processes, in evaluation mode."""
    total, predictions, carry = 0.0, 0, None
    model.eval()
    with torch.no_grad():
        for batch in batches:
            losses, carry = objective(batch, None, carry)
            total, predictions = total + float(losses.double().sum()), predictions + len(losses)
    total, all_predictions = communicator.sum([total, predictions])
    return total / all_predictions


def step_generator(seed: int, update: int, piece: int, device: torch.device) -> Generator:
    """Return the random generator of a piece of a batch. It depends on nothing else, so it needs no saving."""
    state = np.random.SeedSequence([seed, update, piece]).generate_state(1, np.uint64)
    return Generator(device).manual_seed(int(state[0]) >> 1)


def regularized_parameters(model: nn.Module) -> Mapping[str, Tensor]:
    """Return the parameters of L1 and L2 regularization: the model's choice, or all matrices."""
    if isinstance(model, RegularizedModel):
        return model.regularized_parameters()
    return {name: parameter for name, parameter in model.named_parameters() if parameter.dim() > 1}


def copy_parameters(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def load_parameters(model: nn.Module, values: Mapping[str, Tensor]) -> None:
    """Copy values into the parameters."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(values[name])
