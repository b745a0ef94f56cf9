"""Choosing training settings by the dev loss."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from dragoman.core.errors import DataError
from dragoman.core.settings import format_value, validate
from dragoman.io.storage import CONFIG_FILE, check_output_directory, new_directory
from dragoman.training.config import TrainingConfig
from dragoman.training.distributed import communicator
from dragoman.training.fit import TrainingCallback, fit
from dragoman.training.loop import DivergedError
from dragoman.training.objectives import ModelT
from dragoman.training.protocols import ExamplesT


@dataclass(frozen=True)
class FittedCandidate:
    """One combination of settings and its result."""

    name: str
    dev_loss: float  # infinite if it diverged
    updates: int  # until the best dev loss


def candidates(config: TrainingConfig, choices: Mapping[str, Sequence[object]]) -> Iterator[tuple[str, TrainingConfig]]:
    """Yield every combination of settings with a name such as `l1=0.5,l2=0.1`.

    >>> [name for name, _ in candidates(TrainingConfig(), {"l1": [0, 0.5], "l2": [0.1]})]
    ['l1=0,l2=0.1', 'l1=0.5,l2=0.1']
    """
    for values in product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        name = ",".join(f"{key}={format_value(value)}" for key, value in chosen.items())
        yield name, validate(config, chosen, f"choice {name}")


def fit_best(
    create: Callable[[], ModelT],
    data: ExamplesT,
    dev: ExamplesT | None,
    config: TrainingConfig,
    choices: Mapping[str, Sequence[object]],
    output: Path,
    *,
    force: bool = False,
    callback: Callable[[str], TrainingCallback | None] = lambda name: None,
) -> list[FittedCandidate]:
    """Train a model with every combination of settings and copy the best by the dev text to `output`.

    Each candidate is trained in its own directory next to it, where a stopped training run is resumed. Return the
    candidates, the best first.
    """
    if dev is None:
        raise DataError("settings are chosen by the dev loss, and there is no dev text; give --dev-text")
    combinations = list(candidates(config, choices))
    directory, processes = output.with_name(f"{output.name}.candidates"), communicator(config.device)
    processes.from_main(lambda: _check_output(output, directory, force=force))
    results = []
    for name, settings in combinations:
        try:
            fitted = fit(create(), data, dev, settings, output=directory / name, force=force, callback=callback(name))
        except DivergedError:
            results.append(FittedCandidate(name, math.inf, 0))
        else:
            assert fitted.progress.best_dev_loss is not None
            results.append(FittedCandidate(name, fitted.progress.best_dev_loss, fitted.progress.best_update))
    results.sort(key=lambda candidate: candidate.dev_loss)
    if not math.isfinite(results[0].dev_loss):
        raise DivergedError("no combination of settings led to a finite loss; lower the learning rates")
    processes.from_main(lambda: _copy_model(directory / results[0].name, output))
    return results


def _check_output(output: Path, directory: Path, *, force: bool) -> None:
    """Raise an error if the output would replace something else than the model of one of these candidates."""
    config_file = output / CONFIG_FILE
    is_copy = config_file.is_file() and any(
        other.read_bytes() == config_file.read_bytes() for other in directory.glob(f"*/{CONFIG_FILE}")
    )
    check_output_directory(output, replace=force or is_copy or not config_file.is_file())


def _copy_model(source: Path, output: Path) -> None:
    with new_directory(output, replace=True) as temporary:
        shutil.copytree(source, temporary, dirs_exist_ok=True)
