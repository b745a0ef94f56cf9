"""The directory of a training run: a model that can be used at any time, and a checkpoint to resume from."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from numpy.typing import NDArray

from dragoman.core.errors import DataError, DragomanError
from dragoman.core.settings import config_differences
from dragoman.io.storage import (
    CHECKPOINT_FILE,
    CONFIG_FILE,
    METRICS_FILE,
    atomic_directory,
    atomic_file,
    remove_temporary_files,
    to_yaml,
    write_arrays,
)
from dragoman.training.checkpoint import load_checkpoint, read_progress, write_checkpoint
from dragoman.training.config import TrainingConfig
from dragoman.training.progress import Progress

if TYPE_CHECKING:
    from dragoman.training.loop import TrainState
    from dragoman.training.protocols import StorableModel

MACHINE_SETTINGS = ("threads", "device")  # settings of the machine rather than of the training
LIMITS = ("max_epochs", "max_updates", "minutes", "patience")  # settings that may change when training is resumed


@dataclass(frozen=True)
class TrainingDirectory:
    """The directory of one training."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        return self.path / CHECKPOINT_FILE

    def progress(self) -> Progress | None:
        """Return the progress of the training in this directory, or None if there is none."""
        return read_progress(self.checkpoint) if self.checkpoint.is_file() else None

    def create(self, state: TrainState, model: StorableModel, *, replace: bool) -> None:
        """Write the model as it is before training."""
        with atomic_directory(self.path, replace=replace) as directory:
            model.write_into(directory)
            (directory / METRICS_FILE).touch()
            write_checkpoint(directory / CHECKPOINT_FILE, state)

    def resume(self, state: TrainState, model: StorableModel) -> None:
        """Load the last checkpoint and remove metrics written after it."""
        load_checkpoint(state, self.checkpoint)
        for directory in {(self.path / name).parent for name in model.file_names()}:
            remove_temporary_files(directory)
        metrics = self.path / METRICS_FILE
        lines = metrics.read_bytes().decode("utf-8", "replace").splitlines() if metrics.exists() else []
        with atomic_file(metrics) as temporary:
            valid = [line for line in lines if _update_of(line) <= state.progress.update]
            temporary.write_text("".join(line + "\n" for line in valid), encoding="utf-8")

    def check_same_config(self, model: StorableModel) -> bool:
        """Raise an error if the training in this directory has other settings. Return whether its limits differ."""
        old, new = self._config(), yaml.safe_load(yaml.safe_dump(model.configs()[CONFIG_FILE]))
        _fill_defaults(old, model)
        for config in (old, new):
            for key in MACHINE_SETTINGS:
                config.get("training", {}).pop(key, None)
        old_limits, new_limits = (
            {key: config.get("training", {}).pop(key, None) for key in LIMITS} for config in (old, new)
        )
        if changes := _changes(old, new):
            remedy = "use the same settings, choose another directory, or start again with --force"
            raise DataError(f"{self.path}: contains a different training run ({'; '.join(changes)}); {remedy}")
        if not all((self.path / name).is_file() for name in model.file_names()):
            raise self._broken_error()
        return old_limits != new_limits

    def update_limits(self, model: StorableModel) -> None:
        """Write the new limits to config.yaml."""
        for name, config in model.configs().items():
            with self._saving(), atomic_file(self.path / name) as temporary:
                temporary.write_text(to_yaml(config), encoding="utf-8")

    def _config(self) -> dict[str, Any]:
        """Return the contents of config.yaml."""
        try:
            config = yaml.safe_load((self.path / CONFIG_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError, yaml.YAMLError):
            config = None
        if not (isinstance(config, dict) and isinstance(config.get("training", {}), dict)):
            raise self._broken_error()
        return config

    def _broken_error(self) -> DataError:
        return DataError(f"{self.path}: broken training directory; start again with --force")

    def save_model(self, state: TrainState, model: StorableModel) -> None:
        """Write the best parameters as the model of this directory."""
        best = {name: tensor.cpu().numpy() for name, tensor in state.best_parameters.items()}
        for name, arrays in model.arrays_by_file(best).items():
            with self._saving(), atomic_file(self.path / name) as temporary:
                write_arrays(temporary, arrays)

    def save_checkpoint(self, state: TrainState) -> None:
        with self._saving():
            write_checkpoint(self.checkpoint, state)

    def append_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Append a line to metrics.jsonl."""
        with self._saving(), (self.path / METRICS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(metrics) + "\n")

    @contextmanager
    def _saving(self) -> Iterator[None]:
        try:
            yield
        except (DragomanError, OSError) as error:
            why = str(error) if isinstance(error, DragomanError) else f"{self.path}: {error.strerror}"
            remedy = "the last checkpoint is intact: free some space and run the same command again"
            raise DragomanError(f"{why}; {remedy}") from error


def _changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return descriptions of the differences between two configurations."""
    old_data, new_data = (config.pop("data", {}) for config in (old, new))
    texts = {"train": "another training text", "dev": "another dev text, or none"}
    changed_texts = [message for name, message in texts.items() if old_data.get(name) != new_data.get(name)]
    without_unknown = ({name: part for name, part in config.items() if name != "unknown"} for config in (old, new))
    changes = config_differences(*without_unknown) + changed_texts
    if not changes and (old_data != new_data or old != new):
        return ["other initial words, classes or parameters"]
    return changes


def _fill_defaults(config: dict[str, Any], model: StorableModel) -> None:
    """Add the defaults of settings that did not exist when the training run was started."""
    for name, kind in (("model", type(model.settings)), ("training", TrainingConfig)):
        if isinstance(config.get(name), dict):
            config[name] = {**kind().model_dump(mode="json"), **config[name]}


def _update_of(line: str) -> int:
    """Return the update of a line of metrics.jsonl; a very large number for an incomplete line."""
    try:
        return int(json.loads(line)["update"])
    except (ValueError, KeyError, TypeError):
        return 1 << 62


def arrays_fingerprint(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return a checksum of the arrays of an untrained model: parameters, classes, features."""
    checksum = 0
    for name, array in sorted(arrays.items()):
        checksum = zlib.crc32(np.ascontiguousarray(array).tobytes(), zlib.crc32(name.encode(), checksum))
    return f"{checksum:08x}"
