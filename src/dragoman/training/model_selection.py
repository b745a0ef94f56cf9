"""Choosing training settings by the dev loss."""

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
    """One combination of settings and its result."""

    name: str
    dev_loss: float  # infinite if it diverged
    updates: int  # until the best dev loss


def candidates(config: TrainingConfig, choices: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, TrainingConfig]]:
    """Yield every combination of settings with a name such as `l1=0.5,l2=0.1`.

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
    """Train a model with every combination of settings and copy the best by the dev text to `output`.

    Each candidate is trained in a directory of its own next to it, where a stopped training is resumed. Return the
    candidates, the best first.
    """
    if dev is None:
        raise DataError("settings are chosen by the dev loss, and there is no dev text; give --dev-text")
    combinations = list(candidates(config, choices))
    directory = output.with_name(f"{output.name}.candidates")
    check_output_directory(output, replace=force or _is_copy_of_candidate(output, directory))
    results = []
    for name, settings in combinations:
        path = directory / name
        train = partial(fit, create(), data, dev, settings, output=path, force=force, callback=callback(name))
        results.append(_result(name, train))
    results.sort(key=lambda candidate: candidate.dev_loss)
    if not math.isfinite(results[0].dev_loss):
        raise DivergedError("no combination of settings led to a finite loss; lower the learning rates")
    with atomic_directory(output, replace=True) as temporary:
        shutil.copytree(directory / results[0].name, temporary, dirs_exist_ok=True)
    return results


def _result(name: str, train: Callable[[], FitResult]) -> Candidate:
    try:
        progress = train().progress
    except DivergedError:
        return Candidate(name, math.inf, 0)
    assert progress.best_dev_loss is not None
    return Candidate(name, progress.best_dev_loss, progress.best_update)


def _is_copy_of_candidate(output: Path, directory: Path) -> bool:
    """Return whether a directory is empty or a copy of one of the candidates, so that it can be replaced."""
    config = output / CONFIG_FILE
    if not config.is_file():
        return True
    return any(other.read_bytes() == config.read_bytes() for other in directory.glob(f"*/{CONFIG_FILE}"))
