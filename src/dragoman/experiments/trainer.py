"""Trains the models that an experiment compares, each once, into a model directory.

A model that is finished is loaded instead, and training that was stopped is resumed. What there is to train is a
dictionary of recipes; see `dragoman.experiments.recipes`.
"""

from __future__ import annotations

import difflib
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np

from dragoman.core.errors import DataError
from dragoman.core.settings import validate
from dragoman.experiments.time_budget import TimeBudget
from dragoman.io.files import write_text
from dragoman.io.storage import CHECKPOINT_FILE
from dragoman.training.fit import TrainingCallback, fit
from dragoman.training.run_directory import read_progress

if TYPE_CHECKING:
    from dragoman.models.neural import NeuralModel
    from dragoman.training.config import TrainingConfig
    from dragoman.training.protocols import Examples

WARM_UP_SENTENCES = 20
SECONDS_FILE = "seconds.json"  # training time of each finished model

TextT = TypeVar("TextT")  # what models are trained on
ModelT = TypeVar("ModelT", bound="SavableModel")
NeuralModelT = TypeVar("NeuralModelT", bound="NeuralModel")


class SavableModel(Protocol):
    def save(self, path: Path, *, replace: bool = False) -> object: ...


def _ignore(message: str) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Callbacks:
    """Receivers of messages and progress. By default they do nothing; the command line shows them to the user."""

    info: Callable[[str], None] = _ignore  # a message of one line
    status: Callable[[str], AbstractContextManager[object]] = nullcontext  # shown while something takes long
    collapse_warnings: Callable[[], AbstractContextManager[object]] = nullcontext  # joins warnings that repeat
    training_progress: Callable[[], AbstractContextManager[TrainingCallback | None]] = nullcontext  # for `fit`
    show: Callable[[str], None] = _ignore  # a part of the results that is available early


SILENT = Callbacks()


@dataclass(frozen=True)
class TrainingContext(Generic[TextT]):
    """What a recipe gets: data, settings and the directory of the model."""

    train: TextT
    dev: TextT
    seed: int
    path: Path  # of the model's directory, or of the directory of all models
    minutes: float | None = None  # time limit of training by gradient descent
    minutes_left: Callable[[], float] | None = None  # the limit again, as it is when training starts
    retrain: bool = False  # train again even if the model exists
    callbacks: Callbacks = SILENT


@dataclass(frozen=True)
class Recipe(Generic[ModelT]):
    """How to make a model: by counting, from other models, or by gradient descent, which writes the directory."""

    train: Callable[..., ModelT]  # (context, *parts) -> model
    parts: tuple[str, ...] = ()  # names of the models that it is made of
    uses_gradients: bool = False


@dataclass(frozen=True)
class TrainedRung(Generic[ModelT]):
    """A finished model."""

    name: str
    path: Path
    model: ModelT
    seconds: float  # of its training and that of its parts


@dataclass(frozen=True)
class ModelTrainer(Generic[TextT, ModelT]):
    """Trains models into subdirectories of the context's path, or loads those that are finished."""

    context: TrainingContext[TextT]
    recipes: Mapping[str, Recipe[ModelT]]
    load: Callable[[Path], ModelT]
    budget: TimeBudget | None = None  # decides how long each model is trained, instead of `context.minutes`

    def train_all(self, names: Iterable[str]) -> Iterator[TrainedRung[ModelT]]:
        """Yield the named models of this kind, each as soon as it is finished; other names are of other kinds."""
        return (self.train(name) for name in names if name in self.recipes)

    def train(self, name: str) -> TrainedRung[ModelT]:
        """Return a model; the models that it is made of are trained first."""
        path, seconds, callbacks = self.context.path / name, self._read_seconds(), self.context.callbacks
        if name in seconds and path.exists() and not self.context.retrain:
            callbacks.info(f"{name}: already trained, in {path}")
            return TrainedRung(name, path, self.load(path), seconds[name])
        parts = [self.train(part) for part in self.recipes[name].parts]
        callbacks.info(f"{name}: training in {path}")
        rung = self._train_now(name, path, parts)
        if not self.context.retrain:
            seconds = {**self._read_seconds(), name: rung.seconds}
            write_text(self.context.path / SECONDS_FILE, json.dumps(seconds, indent=1) + "\n")
        callbacks.info(f"{name}: trained in {rung.seconds:,.1f} seconds")
        return rung

    def _train_now(self, name: str, path: Path, parts: Sequence[TrainedRung[ModelT]]) -> TrainedRung[ModelT]:
        """Train and save a model. Its seconds include those of its parts and of an earlier run that was stopped."""
        recipe, context = self.recipes[name], replace(self.context, path=path)
        if recipe.uses_gradients and self.budget is not None:
            limit = self.budget.minutes_for(name)
            context = replace(context, minutes=limit, minutes_left=partial(self.budget.minutes_left_for, name))
        models = [part.model for part in parts]
        if not recipe.uses_gradients:
            # Train on the dev text once, so that compilation is not counted as training time. The dev text may have too
            # few words for classes, or too few counts for some discounts.
            with warnings.catch_warnings(), suppress(DataError):
                warnings.simplefilter("ignore")
                recipe.train(replace(context, train=context.dev), *models)
        checkpoint = path / CHECKPOINT_FILE
        earlier = read_progress(checkpoint).seconds if checkpoint.is_file() and not context.retrain else 0.0
        start = perf_counter()
        with context.callbacks.collapse_warnings():
            model = recipe.train(context, *models)
        seconds = earlier + perf_counter() - start + sum(part.seconds for part in parts)
        if not recipe.uses_gradients:
            model.save(path, replace=True)
        return TrainedRung(name, path, model, round(seconds, 3))

    def _read_seconds(self) -> dict[str, float]:
        path = self.context.path / SECONDS_FILE
        try:
            return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
        except (ValueError, TypeError):
            raise DataError(f"{path}: damaged; delete it, and the models are trained again") from None


def select_models(names: str, known: Iterable[str]) -> list[str]:
    """Return the named models (separated by commas) in the order known, or all if no name is given.

    >>> select_models("lstm, kn-1", ["kn-1", "kn-2", "lstm"]), select_models("", ["kn-1", "kn-2"])
    (['kn-1', 'lstm'], ['kn-1', 'kn-2'])
    """
    known = list(known)
    selected = [name.strip() for name in names.split(",") if name.strip()] or known
    for name in selected:
        if name not in known:
            similar = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {similar[0]}?" if similar else f"there are {', '.join(known)}"
            raise DataError(f"--models {name}: the ladder has no such model; {hint}")
    return [name for name in known if name in selected]


def train_model(
    context: TrainingContext[TextT],
    model: NeuralModelT,
    data: tuple[Examples, Examples],
    preset: TrainingConfig,
    settings: Mapping[str, object],
) -> NeuralModelT:
    """Train a model by gradient descent in its directory, resuming training that was stopped.

    Args:
        data: the training text and the dev text as ids.
        settings: settings that differ from the preset.
    """
    if context.minutes is not None:
        # Take one step with a copy on a few sentences, so that compilation does not use up the time for training.
        sample = data[0].select(np.arange(min(WARM_UP_SENTENCES, len(data[0]))))
        if sample.sizes.sum():
            fit(deepcopy(model), sample, sample, preset, max_updates=1, warmup=0)
    minutes = context.minutes if context.minutes_left is None else context.minutes_left()
    config = validate(preset, {**settings, "seed": context.seed, "minutes": minutes}, "settings")
    with context.callbacks.training_progress() as callback:
        fit(model, *data, config, output=context.path, force=context.retrain, callback=callback)
    return model
