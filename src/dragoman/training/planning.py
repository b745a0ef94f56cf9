"""Choosing the size of a model and the settings of its training by the time there is.

The speed of candidate sizes is measured on the text itself. A size fits if there is time to read enough text for its
number of parameters, measured by the entropy of single tokens: a character says less than a word. The largest size that
fits is chosen. Batches, warm-up, learning rate and dropout follow from the expected number of updates and epochs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Generic, TypeVar

import numpy as np
from torch import nn

from dragoman.core.threads import available_cores, limit_threads
from dragoman.training.config import LIMITS, TrainingConfig
from dragoman.training.distributed import communicator
from dragoman.training.fit import create_task, on_device
from dragoman.training.loop import TrainState, training_steps
from dragoman.training.pace import TimeReserve
from dragoman.training.precision import choose_precision
from dragoman.training.protocols import Examples

DEFAULT_MINUTES = 60.0  # at most, if no time is given
NOMINAL_SPEED = 1e10  # predictions times parameters per second, of one core: where measuring starts
NATS_PER_PARAMETER = 5.0  # of text; a model that is trained on less than this does better if it is smaller
WARM_UP_UPDATES = 2  # not measured: memory is allocated and kernels are compiled
MIN_MEASURED_UPDATES = 3
TRIAL_SHARE, MAX_TRIAL_SECONDS = 0.01, 4.0  # of the time, for measuring one candidate
SLOW_TRIAL = 3  # times this: a trial ends even if few updates were measured
LONG_TRIAL = 10  # times this, with warm-up: a trial ends even if only one update was measured
MEASURING_SHARE = 0.1  # of the time, for measuring all candidates after the first; then sizes are extrapolated
SHORT_TRIAL = 0.25  # times this: the least for a trial when little of that time is left
TARGET_UPDATES = 10_000  # batches are as large as this many updates allow
BATCH_SIZES = (500, 1500)  # least and most predictions per batch
MAX_LEARNING_RATE, FAST_UPDATES = 0.004, 8_000  # the rate of Adam up to this many updates
AVERAGE = 0.1  # of the updates, at the end: their parameters are averaged
WARM_UP_SHARE, MAX_WARM_UP = 0.05, 200  # of the updates
EVALUATION_SHARE, MAX_EVALUATION_SHARE = 0.03, 0.1  # of the time; the latter if evaluations are few
EVALUATIONS = (5, 25)  # least and most per training run, or one per epoch if there are more epochs
PATIENCE, PATIENCE_EPOCHS = 5, 2.0  # evaluations, and at least so many epochs, without improvement are a plateau
FULL_EPOCHS = 30.0  # until the dev loss stops improving, with 10,000 examples; fewer with more

SizeT = TypeVar("SizeT")


@dataclass(frozen=True)
class Speed:
    """The measured speed of training."""

    update_seconds: float
    predictions: float  # per update
    batch_size: int

    @property
    def predictions_per_second(self) -> float:
        return self.predictions / self.update_seconds


def measure_speed(model: nn.Module, data: Examples, config: TrainingConfig, seconds: float) -> Speed:
    """Train a model for a few updates. Its parameters change."""
    processes = communicator(config.device)
    precision = processes.from_main(lambda: choose_precision(config.precision, model, config.device))
    limits = dict.fromkeys(LIMITS)
    config = config.model_copy(update={**limits, "precision": precision})
    times, predictions, total = list[float](), list[int](), 0.0
    with limit_threads(config.threads), on_device(model, processes.local_device(config.device)):
        task, state = create_task(model, data, None, config), TrainState.create(model, config)
        clock = processes.shared_clock(perf_counter)
        start = clock()
        for number, report in enumerate(training_steps(state, task)):
            end = clock()
            total += end - start
            takes_long = total >= LONG_TRIAL * seconds  # as with very long lines
            if number >= WARM_UP_UPDATES or takes_long:
                times.append(end - start)
                predictions.append(report.predictions)
                is_slow = takes_long or sum(times) >= SLOW_TRIAL * seconds
                if is_slow or (len(times) >= MIN_MEASURED_UPDATES and sum(times) >= seconds):
                    break
            start = clock()
    return Speed(float(np.mean(times)), float(np.mean(predictions)), config.batch_size)


@dataclass(frozen=True)
class Candidate(Generic[SizeT]):
    """A size whose training speed was measured."""

    size: SizeT
    parameters: int
    speed: Speed

    def predictions_within(self, seconds: float) -> float:
        return self.speed.predictions_per_second * seconds


def choose_size(
    sizes: Sequence[SizeT],
    parameters: Callable[[SizeT], int],
    measure: Callable[[SizeT, float], Candidate[SizeT]],
    seconds_left: Callable[[], float],
    predictions_per_parameter: float,
    may_measure: Callable[[], bool] = lambda: True,
) -> Candidate[SizeT]:
    """Return the largest size that there is time for, or the smallest if there is too little for any.

    Speeds of sizes that have not been measured are predicted from one that has: a prediction costs time in proportion
    to the number of parameters. The size that is returned has been measured, unless there is no time to measure it.

    Args:
        sizes: From small to large.
        parameters: Returns the number of parameters of a size.
        measure: Measures a size; its second argument is the expected number of predictions per second.
        seconds_left: Returns the seconds that training can take.
        predictions_per_parameter: That a model needs to be trained on.
        may_measure: Returns whether there is time to measure one more size. The first one is measured in any case.
    """
    measured: dict[int, Candidate[SizeT]] = {}
    latest: Candidate[SizeT] | None = None
    parameter_rate = NOMINAL_SPEED
    while True:
        rates = [
            measured[i].speed.predictions_per_second if i in measured else parameter_rate / parameters(size)
            for i, size in enumerate(sizes)
        ]
        needed = [predictions_per_parameter * parameters(size) / seconds_left() for size in sizes]
        chosen = max((i for i, rate in enumerate(rates) if rate >= needed[i]), default=0)
        if chosen in measured:
            return measured[chosen]
        if latest is not None and not may_measure():
            seconds = latest.speed.predictions / rates[chosen]
            return Candidate(sizes[chosen], parameters(sizes[chosen]), replace(latest.speed, update_seconds=seconds))
        measured[chosen] = latest = measure(sizes[chosen], rates[chosen])
        parameter_rate = latest.speed.predictions_per_second * latest.parameters


@dataclass(frozen=True)
class TrainingPlan:
    """Settings of training, and what is expected of it."""

    training: TrainingConfig
    epochs: float
    minutes: float


@dataclass
class TrainingPlanner(Generic[SizeT]):
    """Chooses a size of a model and settings of its training. Settings that are given are kept."""

    sizes: Sequence[SizeT]  # from small to large
    create: Callable[[SizeT], nn.Module]
    estimate_parameters: Callable[[SizeT], int]
    data: Examples
    entropy: float  # of the unigram distribution of what is predicted, in nats
    training: TrainingConfig
    given: Collection[str]  # names of settings of training
    elapsed: Callable[[], float]  # seconds since the start
    learning_rate_factor: float = 1.0  # for models whose rates are lower or higher than those of recurrent networks
    scale: float = 1.0  # size of the text, if `data` is only a sample of it
    trial_seconds: float = MAX_TRIAL_SECONDS  # at most, for measuring one size
    measured: dict[SizeT, Candidate[SizeT]] = field(default_factory=dict)
    measuring_seconds: float = 0.0  # that measuring has taken
    threads: int | None = field(init=False)  # that are fastest, once they are known

    def __post_init__(self) -> None:
        self.threads = self.training.threads

    def seconds_left(self, limit: float) -> float:
        """Return the seconds that are left, the same in all processes that train together."""
        return max(1.0, limit - self._seconds())

    def _seconds(self) -> float:
        return communicator(self.training.device).from_main(self.elapsed)

    def choose(self, limit: float) -> Candidate[SizeT]:
        """Return the largest size that can be trained in a number of seconds since the start.

        When measuring has taken its share of the seconds, as on a busy machine, the speeds of other sizes are predicted.
        """
        budget, last_seconds = MEASURING_SHARE * limit, 0.0

        def measure(size: SizeT, predictions_per_second: float) -> Candidate[SizeT]:
            nonlocal last_seconds
            if size not in self.measured:
                config = self._with_batches(predictions_per_second * self.seconds_left(limit))
                model = self.create(size)
                before = self.measuring_seconds
                speed = self._measure(model, config, limit)
                last_seconds = self.measuring_seconds - before
                parameters = sum(parameter.numel() for parameter in model.parameters())
                self.measured[size] = Candidate(size, parameters, speed)
            return self.measured[size]

        def may_measure() -> bool:
            return self.measuring_seconds + last_seconds <= budget

        needed = NATS_PER_PARAMETER / max(1.0, self.entropy)
        times = lambda: self.seconds_left(limit), needed, may_measure
        return choose_size(self.sizes, self.estimate_parameters, measure, *times)

    def _measure(self, model: nn.Module, config: TrainingConfig, limit: float) -> Speed:
        """Measure the speed; the first time with all cores and with one, which is faster if other programs use them."""
        cores = communicator(config.device).from_main(available_cores)
        candidates = [self.threads] if self.threads else sorted({1, cores}, reverse=True)
        speeds = dict[int, Speed]()
        longest = min(self.trial_seconds, TRIAL_SHARE * limit)
        for threads in candidates:
            seconds_left = MEASURING_SHARE * limit - self.measuring_seconds
            seconds = min(longest, max(SHORT_TRIAL * longest, seconds_left / LONG_TRIAL))
            start = self._seconds()
            speed = measure_speed(model, self.data, config.model_copy(update={"threads": threads}), seconds)
            self.measuring_seconds += self._seconds() - start
            speeds[threads] = speed
            if speed.update_seconds >= LONG_TRIAL * seconds or self.measuring_seconds >= MEASURING_SHARE * limit:
                break  # another trial would take too long
        self.threads = max(speeds, key=lambda threads: speeds[threads].predictions_per_second)
        return speeds[self.threads]

    def _with_batches(self, predictions: float) -> TrainingConfig:
        size = float(batch_size_for(predictions))
        if self.training.batch_by == "sentences":
            size = max(1, size / self.data.sizes.mean())
        choices = {"batch_size": round(size), "threads": self.threads, "max_epochs": None}
        return self.training.model_copy(update=not_given(choices, self.given))

    def epochs_within(self, candidate: Candidate[SizeT], seconds: float) -> float:
        """Return how often the text can be read."""
        return candidate.predictions_within(seconds) / (self.scale * int(self.data.sizes.sum()))

    def complete(
        self, chosen: Candidate[SizeT], minutes: float | None, reserve: TimeReserve, dev_predictions: int
    ) -> TrainingPlan:
        """Return the settings with which a size is trained.

        Without minutes, the plan is to train until the dev loss stops improving; without a dev text, for some epochs.
        """
        limit, rate = 60 * (minutes or DEFAULT_MINUTES), chosen.speed.predictions_per_second
        seconds = max(1.0, self.seconds_left(limit) - reserve.within(limit, 1 / rate))
        text = self.scale * int(self.data.sizes.sum())
        epochs, enough_epochs = self.epochs_within(chosen, seconds), full_epochs(self.scale * len(self.data))
        if minutes is None:
            epochs = min(epochs, enough_epochs)
        training = self._with_batches(epochs * text)
        update_predictions = chosen.speed.predictions
        if chosen.speed.batch_size:  # 0: the whole text
            update_predictions = training.batch_size * update_predictions / chosen.speed.batch_size
        updates = epochs * text / update_predictions
        choices: dict[str, object] = {
            "learning_rate": self.learning_rate_factor * learning_rate_for(updates),
            "warmup": warmup_for(updates),
            "schedule": "cooldown",
            "average": AVERAGE,
            "minutes": limit / 60,
            **evaluations_for(updates, epochs, epochs * text / rate, dev_predictions, rate),
        }
        if minutes is None and not dev_predictions:
            choices["max_epochs"] = math.ceil(enough_epochs)
        training = training.model_copy(update=not_given(choices, self.given))
        return TrainingPlan(training, epochs, epochs * text / rate / 60)


def batch_size_for(predictions: float) -> int:
    """Return a batch size for training on this many predictions: large, but with enough updates.

    >>> [batch_size_for(predictions) for predictions in (1e5, 8e6, 1e8)]
    [500, 800, 1500]
    """
    least, most = BATCH_SIZES
    return int(min(most, max(least, round(predictions / TARGET_UPDATES, -2))))


def warmup_for(updates: float) -> int:
    """Return the updates of warm-up for this many updates.

    >>> [warmup_for(updates) for updates in (20, 1000, 10_000)]
    [1, 50, 200]
    """
    return int(min(MAX_WARM_UP, max(1, WARM_UP_SHARE * updates)))


def learning_rate_for(updates: float) -> float:
    """Return the learning rate of Adam for this many updates: the more there are, the lower.

    >>> [learning_rate_for(updates) for updates in (1_000, 8_000, 32_000)]
    [0.004, 0.004, 0.002]
    """
    return round(MAX_LEARNING_RATE * min(1.0, math.sqrt(FAST_UPDATES / max(1.0, updates))), 5)


def evaluations_for(
    updates: float, epochs: float, seconds: float, dev_predictions: int, predictions_per_second: float
) -> dict[str, object]:
    """Return the settings of evaluations, so that these take little of the time.

    There are enough of them to see when the dev loss stops improving. Of a dev text that takes too long, a sample is
    evaluated.

    Args:
        updates: Expected number of updates.
        epochs: Expected number of epochs.
        seconds: Expected time of training.
        dev_predictions: Number of predictions in the dev text.
        predictions_per_second: Speed of training.
    """
    least, most = EVALUATIONS
    # Also a sample of the training text is evaluated, half as large. There is no backward pass.
    cost = 1.5 * dev_predictions / (3 * predictions_per_second)
    number = max(float(least), min(max(most, epochs), EVALUATION_SHARE * seconds / max(1e-6, cost)))
    check_every = max(1, math.ceil(updates / number))
    patience = max(PATIENCE, math.ceil(PATIENCE_EPOCHS * updates / max(1e-6, epochs) / check_every))
    settings: dict[str, object] = {"check_every": check_every, "patience": patience}
    if number * cost > MAX_EVALUATION_SHARE * seconds:
        share = MAX_EVALUATION_SHARE * seconds / (number * cost)
        settings["dev_sample"] = max(1, int(share * dev_predictions))
    return settings


def full_epochs(examples: float) -> float:
    """Return an estimate of the epochs after which the dev loss stops improving: the more text, the fewer.

    >>> [round(full_epochs(examples)) for examples in (1_000, 10_000, 100_000, 1_000_000)]
    [65, 30, 14, 6]
    """
    return FULL_EPOCHS * (max(1, examples) / 10_000) ** (-1 / 3)


def not_given(choices: Mapping[str, object], given: Collection[str]) -> dict[str, object]:
    """Return the chosen settings without those that are given."""
    return {name: value for name, value in choices.items() if name not in given}
