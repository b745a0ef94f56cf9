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
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.experiments.time_budget import TimeBudget
    from dragoman.training.config import TrainingConfig

WARM_UP_SENTENCES = 20
SECONDS_FILE = "seconds.json"  # training time of each finished model

DataT = TypeVar("DataT")  # what models are trained on
ModelT = TypeVar("ModelT", bound="SavableModel")


class SavableModel(Protocol):
    def save(self, path: Path, *, replace: bool = False) -> Any: ...


def _ignore(message: str) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Callbacks:
    """Receivers of messages and progress. By default they do nothing; the command line shows them to the user."""

    info: Callable[[str], None] = _ignore  # a message of one line
    status: Callable[[str], AbstractContextManager[Any]] = nullcontext  # shown while something takes long
    collapse_warnings: Callable[[], AbstractContextManager[Any]] = nullcontext  # joins warnings that repeat
    training_progress: Callable[[], AbstractContextManager[Any]] = nullcontext  # yields a callback for `fit`
    show: Callable[[str], None] = _ignore  # a part of the results that is available early


SILENT = Callbacks()


@dataclass(frozen=True)
class TrainingContext(Generic[DataT]):
    """What a recipe gets: data, settings and the directory of the model."""

    train: DataT
    dev: DataT
    seed: int
    path: Path  # of the model's directory
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
class ModelTrainer(Generic[DataT, ModelT]):
    """Trains models into subdirectories of `directory`, or loads those that are finished."""

    directory: Path
    context: TrainingContext[DataT]
    recipes: Mapping[str, Recipe[ModelT]]
    load: Callable[[Path], ModelT]
    budget: TimeBudget | None = None  # decides how long each model is trained, instead of `context.minutes`

    def train_all(self, names: Iterable[str]) -> Iterator[TrainedRung[ModelT]]:
        """Yield models in this order, each as soon as it is finished."""
        for name in names:
            yield self.train(name)

    def train(self, name: str) -> TrainedRung[ModelT]:
        """Return a model; the models that it is made of are trained first."""
        path, seconds, callbacks = self.directory / name, self._read_seconds(), self.context.callbacks
        if name in seconds and path.exists() and not self.context.retrain:
            callbacks.info(f"{name}: already trained, in {path}")
            return TrainedRung(name, path, self.load(path), seconds[name])
        parts = [self.train(part) for part in self.recipes[name].parts]
        callbacks.info(f"{name}: training in {path}")
        rung = self._train_now(name, path, parts)
        if not self.context.retrain:
            self._write_seconds({**self._read_seconds(), name: rung.seconds})
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
            _compile_kernels(recipe, context, models)
        earlier, start = 0.0 if context.retrain else _seconds_so_far(path), perf_counter()
        with context.callbacks.collapse_warnings():
            model = recipe.train(context, *models)
        seconds = earlier + perf_counter() - start + sum(part.seconds for part in parts)
        if not recipe.uses_gradients:
            model.save(path, replace=True)
        return TrainedRung(name, path, model, round(seconds, 3))

    def _read_seconds(self) -> dict[str, float]:
        path = self.directory / SECONDS_FILE
        try:
            return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
        except (ValueError, TypeError):
            raise DataError(f"{path}: damaged; delete it, and the models are trained again") from None

    def _write_seconds(self, seconds: Mapping[str, float]) -> None:
        from dragoman.io.storage import atomic_file

        with atomic_file(self.directory / SECONDS_FILE) as temporary:
            temporary.write_text(json.dumps(seconds, indent=1) + "\n", encoding="utf-8")


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
    context: TrainingContext[Any],
    model: ModelT,
    data: tuple[Any, Any],
    preset: TrainingConfig,
    settings: Mapping[str, Any],
) -> ModelT:
    """Train a model by gradient descent in its directory, resuming training that was stopped.

    Args:
        data: the training text and the dev text as ids.
        settings: settings that differ from the preset.
    """
    from dragoman.training.fit import fit

    if context.minutes is not None:
        _warm_up(model, data[0], preset)
    minutes = context.minutes if context.minutes_left is None else context.minutes_left()
    all_settings = {**settings, "seed": context.seed, "minutes": minutes}
    with context.callbacks.training_progress() as callback:
        module: Any = model
        fit(module, *data, preset, output=context.path, force=context.retrain, callback=callback, **all_settings)
    return model


def _warm_up(model: Any, data: Any, preset: TrainingConfig) -> None:
    """Take one step on a few sentences and undo it, so that compilation does not use up the time for training."""
    import numpy as np

    from dragoman.training.fit import fit
    from dragoman.training.loop import copy_parameters, load_parameters

    before = copy_parameters(model)
    sample = data.select(np.arange(min(WARM_UP_SENTENCES, len(data))))
    if sample.sizes.sum():
        fit(model, sample, sample, preset, max_updates=1, warmup=0)
        load_parameters(model, before)


def _compile_kernels(recipe: Recipe[ModelT], context: TrainingContext[Any], parts: Sequence[ModelT]) -> None:
    """Train on the dev text once, so that compilation is not counted as training time."""
    with warnings.catch_warnings(), suppress(DataError):  # the dev text may have too few words for classes
        warnings.simplefilter("ignore")  # or too few counts for some discounts
        recipe.train(replace(context, train=context.dev), *parts)


def _seconds_so_far(path: Path) -> float:
    """Return the seconds of training by gradient descent that was stopped."""
    from dragoman.io.storage import CHECKPOINT_FILE
    from dragoman.training.run_directory import read_progress

    checkpoint = path / CHECKPOINT_FILE
    return read_progress(checkpoint).seconds if checkpoint.is_file() else 0.0


def model_megabytes(path: Path) -> float:
    """Return the size of a model on disk, without the files that are only needed to resume training."""
    from dragoman.io.storage import ARRAYS_FILE, CONFIG_FILE, VOCAB_FILE

    files = (CONFIG_FILE, VOCAB_FILE, ARRAYS_FILE)
    return sum(file.stat().st_size for file in path.rglob("*") if file.name in files) / 1e6
