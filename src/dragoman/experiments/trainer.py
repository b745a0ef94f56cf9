"""A workshop makes models that are compared: by counting, from each other, or by gradients.

Each is a model directory, made once: whoever asks again gets it loaded, and a training that was stopped goes on. What
there is to make is a dictionary of recipes: `rungs` has those of language models, `translator_rungs` of translators.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from dragoman.core.errors import DataError
from dragoman.experiments.callbacks import SILENT, Callbacks

if TYPE_CHECKING:
    from dragoman.training.config import TrainingConfig

FEW = 20  # sentences, to warm up with
SECONDS = "seconds.json"  # of the training of each model that is finished

Text = TypeVar("Text")  # what models learn from
M = TypeVar("M")  # what they are


class TimeAllocator(Protocol):
    """What shares out time; `dragoman.experiments.time_budget.Budget` does."""

    def minutes_for(self, name: str) -> float: ...

    def bound_for(self, name: str) -> float: ...


@dataclass(frozen=True)
class TrainingContext(Generic[Text]):
    """What a model is made from, and where it is kept."""

    train: Text
    dev: Text
    seed: int
    minutes: float | None  # most minutes that a model is trained by gradients
    path: Path  # of the model's directory
    callbacks: Callbacks = SILENT
    bound: Callable[[], float] | None = None  # of these minutes, how many are left when training begins


@dataclass(frozen=True)
class Recipe(Generic[M]):
    """How a model is made: by counting, from others, or by gradients, which `make` follows in the model's path."""

    make: Callable[..., M]  # (ground, *parts) -> model
    parts: tuple[str, ...] = ()  # models that it is made of
    by_gradients: bool = False


@dataclass(frozen=True)
class TrainedRung(Generic[M]):
    """A model that is finished."""

    name: str
    path: Path
    model: M
    seconds: float  # of its training and that of its parts


def select_models(names: str, known: Iterable[str]) -> list[str]:
    """The models that are asked for, with commas between their names, in the order known; all if none is.

    >>> chosen("three, one", ["one", "two", "three"]), chosen("", ["one", "two"])
    (['one', 'three'], ['one', 'two'])
    """
    there = list(known)
    wanted = [name.strip() for name in names.split(",") if name.strip()] or there
    for name in wanted:
        if name not in there:
            near = difflib.get_close_matches(name, there, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(there)}"
            raise DataError(f"--models {name}: the ladder has no such rung; {hint}")
    return [name for name in there if name in wanted]


def train_model(
    ground: TrainingContext[Any],
    model: M,
    examples: tuple[Any, Any],
    recommended: TrainingConfig,
    training: Mapping[str, Any],
    *,
    force: bool = False,
) -> M:
    """The model after training in its directory; unless forced, what was done there before is taken up.

    # examples: the training text and the dev text as numbers
    """
    from dragoman.training.fit import fit

    if ground.minutes is not None:
        _warm_up(model, examples[0], recommended)
    minutes = ground.minutes if ground.bound is None else ground.bound()
    settings = {**training, "seed": ground.seed, "minutes": minutes}
    with ground.callbacks.training_progress() as report:
        module: Any = model
        fit(module, *examples, recommended, output=ground.path, force=force, callback=report, **settings)
    return model


def _warm_up(model: Any, examples: Any, recommended: TrainingConfig) -> None:
    """Take one step with a few sentences and undo it: the minutes of training are then not spent on compiling."""
    import numpy as np

    from dragoman.training.fit import fit
    from dragoman.training.loop import copy_parameters, load_parameters

    before = copy_parameters(model)
    few = examples.select(np.arange(min(FEW, len(examples))))
    if few.sizes.sum():
        fit(model, few, few, recommended, max_updates=1, warmup=0)
        load_parameters(model, before)


@dataclass(frozen=True)
class ModelTrainer(Generic[Text, M]):
    """Where models are made, or found finished: a directory with a model directory for each."""

    place: Path
    ground: TrainingContext[Text]
    recipes: Mapping[str, Recipe[M]]
    load: Callable[[Path], M]
    time: TimeAllocator | None = None  # what says how long each is trained, if the ground does not for all

    def train_all(self, names: Iterable[str]) -> Iterator[TrainedRung[M]]:
        """These models, one after the other; those they are made of come before, unless they are there."""
        for name in names:
            yield self.train(name)

    def train(self, name: str) -> TrainedRung[M]:
        path, seconds = self.place / name, self._seconds()
        if name in seconds and path.exists():
            self._say(f"{name}: finished already, in {path}")
            return TrainedRung(name, path, self.load(path), seconds[name])
        parts = [self.train(part) for part in self.recipes[name].parts]
        self._say(f"{name}: making it in {path}")
        made = self._make(name, path, parts)
        self._note(name, made.seconds)
        self._say(f"{name}: finished after {made.seconds:,.1f} seconds")
        return made

    def _make(self, name: str, path: Path, parts: Sequence[TrainedRung[M]]) -> TrainedRung[M]:
        """Make and save a model. Seconds of an earlier run that was stopped, and of the parts, count."""
        recipe, ground = self.recipes[name], replace(self.ground, path=path)
        if recipe.by_gradients and self.time is not None:
            ground = replace(ground, minutes=self.time.minutes_for(name), bound=partial(self.time.bound_for, name))
        models = [part.model for part in parts]
        if not recipe.by_gradients:
            _compile(recipe, ground, models)
        before, began = _seconds_spent(path), perf_counter()
        with ground.callbacks.collapse_warnings():
            model: Any = recipe.make(ground, *models)
        seconds = before + perf_counter() - began + sum(part.seconds for part in parts)
        if not path.exists():  # training by gradients has written it
            model.save(path)
        return TrainedRung(name, path, model, round(seconds, 3))  # as it is noted

    def _say(self, message: str) -> None:
        self.ground.callbacks.info(message)

    def _seconds(self) -> dict[str, float]:
        path = self.place / SECONDS
        try:
            return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
        except (ValueError, TypeError):
            raise DataError(f"{path}: damaged; delete it, and rungs are made anew") from None

    def _note(self, name: str, seconds: float) -> None:
        from dragoman.io.storage import atomic_file

        noted = {**self._seconds(), name: seconds}
        with atomic_file(self.place / SECONDS) as temporary:
            temporary.write_text(json.dumps(noted, indent=1) + "\n", encoding="utf-8")


def _compile(recipe: Recipe[M], ground: TrainingContext[Any], parts: Sequence[M]) -> None:
    """Make the model of a small text once, so that the time taken afterwards is the method's own."""
    import warnings

    with warnings.catch_warnings(), suppress(DataError):  # such a text may have too few words for classes
        warnings.simplefilter("ignore")  # or too few counts for some discounts
        recipe.make(replace(ground, train=ground.dev), *parts)


def _seconds_spent(path: Path) -> float:
    """Seconds of a training by gradients that is not finished."""
    from dragoman.io.storage import CHECKPOINT_FILE

    if not (path / CHECKPOINT_FILE).is_file():
        return 0.0
    from dragoman.training.checkpoint import read_progress

    return read_progress(path / CHECKPOINT_FILE).seconds


def megabytes(path: Path) -> float:
    """What a model takes on disk, without what its training left beside it."""
    from dragoman.io.storage import ARRAYS_FILE, CONFIG_FILE, VOCAB_FILE

    return (
        sum(file.stat().st_size for file in path.rglob("*") if file.name in (CONFIG_FILE, VOCAB_FILE, ARRAYS_FILE))
        / 1e6
    )
