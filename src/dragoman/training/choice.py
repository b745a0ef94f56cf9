"""Choosing settings of training by what they make of the dev text."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from dragoman.errors import DataError
from dragoman.settings import shown, validated
from dragoman.storage import check_free, new_directory
from dragoman.training.config import TrainingConfig
from dragoman.training.fit import Fitted, Report, fit


@dataclass(frozen=True)
class Candidate:
    """One combination of the settings to choose among, and how it fared."""

    name: str
    config: TrainingConfig
    fitted: Fitted

    @property
    def dev_loss(self) -> float:
        assert self.fitted.position.best is not None, "there is a dev text"
        return self.fitted.position.best


def candidates(config: TrainingConfig, choices: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, TrainingConfig]]:
    """Every combination, by a name such as `l1=0.5,l2=0.1`.

    >>> [name for name, _ in candidates(TrainingConfig(), {"l1": [0, 0.5], "l2": [0.1]})]
    ['l1=0,l2=0.1', 'l1=0.5,l2=0.1']
    """
    for values in product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        name = ",".join(f"{key}={shown(value)}" for key, value in chosen.items())
        yield name, validated(config, chosen, f"choice {name}")


def fit_best(
    create: Callable[[], Any],
    examples: Any,
    dev: Any,
    config: TrainingConfig,
    choices: Mapping[str, Sequence[Any]],
    output: Path,
    *,
    force: bool = False,
    report: Callable[[str], Report | None] = lambda name: None,
) -> list[Candidate]:
    """Train a model with every combination of settings, and make the best by the dev text the model of `output`.

    Each has a directory of its own beside it, where it goes on if it was stopped. The candidates, best first.
    """
    if dev is None:
        raise DataError("settings are chosen by the dev text, and there is none; give --dev-text")
    check_free(output, replace=True)
    workshop = output.with_name(f"{output.name}.candidates")
    tried = []
    for name, chosen in candidates(config, choices):
        place = workshop / name
        fitted = fit(create(), examples, dev, chosen, output=place, force=force, report=report(name))
        tried.append(Candidate(name, chosen, fitted))
    tried.sort(key=lambda candidate: candidate.dev_loss)
    with new_directory(output, replace=True) as directory:
        shutil.copytree(workshop / tried[0].name, directory, dirs_exist_ok=True)
    return tried
