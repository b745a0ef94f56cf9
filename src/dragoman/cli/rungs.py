"""The rungs of the ladder: every kind of model, how it is made and where it is kept.

A model joins the ladder by one line of `RUNGS`. Each rung is a model directory, made once: whoever asks again gets it
loaded, and a training that was stopped goes on.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dragoman.cli.messages import few_warnings, say
from dragoman.cli.watching import watching
from dragoman.errors import DataError

if TYPE_CHECKING:
    from dragoman.language_model import LanguageModel
    from dragoman.models.neural import NeuralModel
    from dragoman.text.corpus import Corpus
    from dragoman.training.config import TrainingConfig

SECONDS = "seconds.json"  # of the training of each rung that is finished


@dataclass(frozen=True)
class Ground:
    """What a rung is made from, and where it is kept."""

    train: Corpus
    dev: Corpus
    seed: int
    minutes: float | None  # most minutes that a rung is trained by gradients
    path: Path  # of the rung's model directory


Make = Callable[..., "LanguageModel"]  # (ground, *parts) -> model


@dataclass(frozen=True)
class Recipe:
    """How a rung is made: by counting, from other rungs, or by gradients, which `make` follows in the rung's path."""

    make: Make
    parts: tuple[str, ...] = ()  # rungs that it is made of
    by_gradients: bool = False


@dataclass(frozen=True)
class Made:
    """A rung that is finished."""

    name: str
    path: Path
    model: LanguageModel
    seconds: float  # of its training and that of its parts


# -- how each is made ------------------------------------------------------------------------------------------------


def kneser_ney(ground: Ground, order: int) -> LanguageModel:
    from dragoman.ngram.model import NgramModel

    return NgramModel.train(ground.train, order=order)


def brown_class_ngram(ground: Ground, order: int, classes: int) -> LanguageModel:
    """The classes are found in the training text; a text that has few words has as many as there are."""
    from dragoman.ngram.classes import ClassModel
    from dragoman.text.brown import brown_clusters

    words = len(set(ground.train.ids.tolist()))
    clustering = brown_clusters(ground.train, min(classes, words // 2))
    return ClassModel.train(ground.train, clustering.as_mapping(), order=order)


def with_cache(ground: Ground, partner: LanguageModel) -> LanguageModel:
    from dragoman.models.cache import CacheModel

    return mixed(ground, partner, CacheModel.train(ground.train))


def mixed(ground: Ground, *parts: LanguageModel) -> LanguageModel:
    """A mixture with weights fitted on the dev text."""
    from dragoman.mixture import Mixture

    return Mixture.fit(parts, ground.dev)


def log_linear(ground: Ground, features: str) -> LanguageModel:
    from dragoman.models.loglinear.model import LogLinearModel
    from dragoman.training.recommended import LOG_LINEAR

    return _learned(ground, LogLinearModel.create(ground.train, features=features), LOG_LINEAR, LOG_LINEAR_TRAINING)


def feed_forward(ground: Ground, training: dict[str, Any], **settings: Any) -> LanguageModel:
    from dragoman.models.feedforward import FeedForwardModel
    from dragoman.training.recommended import FEED_FORWARD

    model = FeedForwardModel.create(ground.train, seed=ground.seed, **settings)
    return _learned(ground, model, FEED_FORWARD, training)


def recurrent(ground: Ground, cell: str) -> LanguageModel:
    from dragoman.models.recurrent import RecurrentModel
    from dragoman.training.recommended import RECURRENT

    model = RecurrentModel.create(ground.train, cell=cell, seed=ground.seed, **RECURRENT_NETWORK)
    return _learned(ground, model, RECURRENT, RECURRENT_TRAINING)


def _learned(ground: Ground, model: NeuralModel, recommended: TrainingConfig, training: dict[str, Any]) -> NeuralModel:
    """The model after training in its directory; what was done there before is taken up."""
    from dragoman.training.fit import fit

    settings = {**training, "seed": ground.seed, "minutes": ground.minutes}
    with watching() as report:
        fit(model, ground.train, ground.dev, recommended, output=ground.path, report=report, **settings)
    return model


# Found on the dev text of 20,000 sentences. L1 keeps what was seen once from being believed, as a discount does.
LOG_LINEAR_TRAINING: dict[str, Any] = {
    "learning_rate": 1.0,
    "batch_size": 1000,
    "max_epochs": 8,
    "l1": 0.6,
    "l2": 0.1,
    "schedule": "linear",
    "decay": 1.0,  # the schedule alone says how the rate falls,
    "patience": 8,  # and when to end
}
PAIRS = "word1+word2,word1+word3,word1+word4,word2+word3,word2+word4,word3+word4"
NETWORK: dict[str, Any] = {
    "order": 5,
    "embedding": 64,
    "embedding_reach": 0.5,
    "hidden": (256,),
    "activation": "relu",
    "dropout": 0.2,
    "softmax": "brown",
}
# Tied vectors and much dropout: 20,000 sentences are soon known by heart.
RECURRENT_NETWORK: dict[str, Any] = {
    "embedding": 96,
    "embedding_reach": 0.3,
    "hidden": 256,
    "tied": True,
    "dropout": 0.5,
    "embedding_dropout": 0.15,
    "weight_dropout": 0.3,
    "softmax": "brown",
}
RECURRENT_TRAINING: dict[str, Any] = {
    "learning_rate": 0.005,
    "batch_size": 700,
    "warmup": 100,
    "max_epochs": 12,
    "patience": 12,
}
RUNGS: dict[str, Recipe] = {
    "kn-1": Recipe(partial(kneser_ney, order=1)),
    "kn-2": Recipe(partial(kneser_ney, order=2)),
    "kn-3": Recipe(partial(kneser_ney, order=3)),
    "kn-4": Recipe(partial(kneser_ney, order=4)),
    "kn-5": Recipe(partial(kneser_ney, order=5)),
    "brown-5": Recipe(partial(brown_class_ngram, order=5, classes=400)),
    "kn-5-cache": Recipe(with_cache, ("kn-5",)),
    "log-linear-words": Recipe(partial(log_linear, features="words-4"), by_gradients=True),
    "log-linear-ngrams": Recipe(partial(log_linear, features="5-gram"), by_gradients=True),
    "log-linear-pairs": Recipe(partial(log_linear, features=f"words-4,{PAIRS}"), by_gradients=True),
    "feed-forward": Recipe(partial(feed_forward, **NETWORK, training={"learning_rate": 0.003}), by_gradients=True),
    "kn-5-feed-forward": Recipe(mixed, ("kn-5", "feed-forward")),
    "rnn": Recipe(partial(recurrent, cell="rnn"), by_gradients=True),
    "gru": Recipe(partial(recurrent, cell="gru"), by_gradients=True),
    "lstm": Recipe(partial(recurrent, cell="lstm"), by_gradients=True),
    "kn-5-lstm": Recipe(mixed, ("kn-5", "lstm")),
}


# -- making them -----------------------------------------------------------------------------------------------------


def chosen(names: str) -> list[str]:
    """The rungs that are asked for, with commas between their names, in the ladder's order; all if none is."""
    wanted = [name.strip() for name in names.split(",") if name.strip()] or list(RUNGS)
    for name in wanted:
        if name not in RUNGS:
            near = difflib.get_close_matches(name, RUNGS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(RUNGS)}"
            raise DataError(f"--models {name}: the ladder has no such rung; {hint}")
    return [name for name in RUNGS if name in wanted]


@dataclass(frozen=True)
class Workshop:
    """Where rungs are made, or found finished: a directory with a model directory for each."""

    place: Path
    ground: Ground

    def rungs(self, names: list[str]) -> Iterator[Made]:
        """These rungs, one after the other; those they are made of come before, unless they are there."""
        for name in names:
            yield self.rung(name)

    def rung(self, name: str) -> Made:
        from dragoman.loading import load_language_model

        path, seconds = self.place / name, self._seconds()
        if name in seconds and path.exists():
            say(f"{name}: finished already, in {path}")
            return Made(name, path, load_language_model(path), seconds[name])
        parts = [self.rung(part) for part in RUNGS[name].parts]
        say(f"{name}: making it in {path}")
        made = self._make(name, path, parts)
        self._note(name, made.seconds)
        say(f"{name}: finished after {made.seconds:,.1f} seconds")
        return made

    def _make(self, name: str, path: Path, parts: list[Made]) -> Made:
        """Make and save a rung. Seconds of an earlier run that was stopped, and of the parts, count."""
        recipe, ground = RUNGS[name], replace(self.ground, path=path)
        models = [part.model for part in parts]
        if not recipe.by_gradients:
            _compile(recipe, ground, models)
        before, began = _seconds_spent(path), perf_counter()
        with few_warnings():
            model = recipe.make(ground, *models)
        seconds = before + perf_counter() - began + sum(part.seconds for part in parts)
        if not path.exists():  # training by gradients has written it
            model.save(path)
        return Made(name, path, model, round(seconds, 3))  # as it is noted

    def _seconds(self) -> dict[str, float]:
        path = self.place / SECONDS
        try:
            return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
        except (ValueError, TypeError):
            raise DataError(f"{path}: damaged; delete it, and rungs are made anew") from None

    def _note(self, name: str, seconds: float) -> None:
        from dragoman.storage import new_file

        noted = {**self._seconds(), name: seconds}
        with new_file(self.place / SECONDS) as temporary:
            temporary.write_text(json.dumps(noted, indent=1) + "\n", encoding="utf-8")


def _compile(recipe: Recipe, ground: Ground, parts: list[LanguageModel]) -> None:
    """Make the rung of a small text once, so that the time taken afterwards is the method's own."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such a text has too few counts for some discounts
        recipe.make(replace(ground, train=ground.dev), *parts)


def _seconds_spent(path: Path) -> float:
    """Seconds of a training by gradients that is not finished."""
    from dragoman.storage import CHECKPOINT

    if not (path / CHECKPOINT).is_file():
        return 0.0
    from dragoman.training.checkpoint import read_position

    return read_position(path / CHECKPOINT).seconds


def megabytes(path: Path) -> float:
    """What a model takes on disk, without what its training left beside it."""
    from dragoman.storage import ARRAYS, CONFIG, VOCAB

    return sum(file.stat().st_size for file in path.rglob("*") if file.name in (CONFIG, VOCAB, ARRAYS)) / 1e6
