"""Choosing settings of training by what they make of the dev text."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from dragoman.core.errors import DataError
from dragoman.core.settings import format_value, validate
from dragoman.io.storage import CONFIG_FILE, atomic_directory, check_output_directory
from dragoman.training.config import TrainingConfig
from dragoman.training.fit import FitResult, TrainingCallback, fit
from dragoman.training.loop import DivergedError


@dataclass(frozen=True)
class Candidate:
    """One combination of the settings to choose among, and how it fared."""

    name: str
    dev_loss: float  # infinite if it diverged
    updates: int  # after which it was best


def candidates(config: TrainingConfig, choices: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, TrainingConfig]]:
    """Every combination, by a name such as `l1=0.5,l2=0.1`.

    >>> [name for name, _ in candidates(TrainingConfig(), {"l1": [0, 0.5], "l2": [0.1]})]
    ['l1=0,l2=0.1', 'l1=0.5,l2=0.1']
    """
    for values in product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        name = ",".join(f"{key}={format_value(value)}" for key, value in chosen.items())
        yield name, validate(config, chosen, f"choice {name}")


def fit_best(
    create: Callable[[], Any],
    data: Any,
    dev: Any,
    config: TrainingConfig,
    choices: Mapping[str, Sequence[Any]],
    output: Path,
    *,
    force: bool = False,
    callback: Callable[[str], TrainingCallback | None] = lambda name: None,
) -> list[Candidate]:
    """Train a model with every combination of settings, and make the best by the dev text the model of `output`.

    Each has a directory of its own beside it, where it goes on if it was stopped. The candidates, best first.
    """
    if dev is None:
        raise DataError("settings are chosen by the dev text, and there is none; give --dev-text")
    every = list(candidates(config, choices))
    workshop = output.with_name(f"{output.name}.candidates")
    check_output_directory(output, replace=force or _is_one_of(output, workshop))
    tried = []
    for name, chosen in every:
        train = partial(fit, create(), data, dev, chosen, output=workshop / name, force=force, callback=callback(name))
        tried.append(_tried(name, train))
    tried.sort(key=lambda candidate: candidate.dev_loss)
    if not math.isfinite(tried[0].dev_loss):
        raise DivergedError("no choice of settings led to a finite loss; try lower learning rates")
    with atomic_directory(output, replace=True) as directory:
        shutil.copytree(workshop / tried[0].name, directory, dirs_exist_ok=True)
    return tried


def _tried(name: str, train: Callable[[], FitResult]) -> Candidate:
    try:
        position = train().progress
    except DivergedError:
        return Candidate(name, math.inf, 0)
    assert position.best_dev_loss is not None, "there is a dev text"
    return Candidate(name, position.best_dev_loss, position.best_update)


def _is_one_of(output: Path, workshop: Path) -> bool:
    """Whether a directory holds what was chosen among these candidates before, and so nothing that would be lost."""
    config = output / CONFIG_FILE
    if not config.is_file():
        return True
    return any(other.read_bytes() == config.read_bytes() for other in workshop.glob(f"*/{CONFIG_FILE}"))
