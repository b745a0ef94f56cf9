"""The directory that a training writes to: a model that can be used at any time, and all that is needed to go on."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
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
    from collections.abc import Iterator

    from dragoman.training.loop import TrainState
    from dragoman.training.protocols import StorableModel

NOT_COMPARED = ("threads", "device")  # settings of the machine rather than of the training
LIMITS = ("max_epochs", "max_updates", "minutes", "patience")  # when to end: that may be decided anew


@dataclass(frozen=True)
class TrainingDirectory:
    """Where one training lives."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        return self.path / CHECKPOINT_FILE

    def progress(self) -> Progress | None:
        """How far the training here is; None if there is none."""
        return read_progress(self.checkpoint) if self.checkpoint.is_file() else None

    def create(self, learner: TrainState, model: StorableModel, *, replace: bool) -> None:
        """Write the model as it is before the first step."""
        with atomic_directory(self.path, replace=replace) as directory:
            model.write_into(directory)
            (directory / METRICS_FILE).touch()
            write_checkpoint(directory / CHECKPOINT_FILE, learner)

    def resume(self, learner: TrainState, model: StorableModel) -> None:
        """Put the learner where the last checkpoint was, and forget what was measured after it."""
        load_checkpoint(learner, self.checkpoint)
        for place in {(self.path / name).parent for name in model.file_names()}:
            remove_temporary_files(place)
        metrics = self.path / METRICS_FILE
        lines = metrics.read_bytes().decode("utf-8", "replace").splitlines() if metrics.exists() else []
        with atomic_file(metrics) as temporary:
            kept = [line for line in lines if _update_of(line) <= learner.progress.update]
            temporary.write_text("".join(line + "\n" for line in kept), encoding="utf-8")

    def check_same_config(self, model: StorableModel) -> bool:
        """Refuse to go on with another configuration than the one this directory was begun with; only the bounds may be
        others. Whether they are."""
        there, here = self._config(), yaml.safe_load(yaml.safe_dump(model.configs()[CONFIG_FILE]))
        _fill(there, model)
        for config in (there, here):
            for key in NOT_COMPARED:
                config.get("training", {}).pop(key, None)
        before, now = ({key: one.get("training", {}).pop(key, None) for key in LIMITS} for one in (there, here))
        if changes := _changes(there, here):
            remedy = "repeat the settings it was begun with, choose another directory, or --force to train anew"
            raise DataError(f"{self.path}: holds another training ({'; '.join(changes)}); {remedy}")
        if not all((self.path / name).is_file() for name in model.file_names()):
            raise self._broken()
        return before != now

    def update_limits(self, model: StorableModel) -> None:
        """Let config.yaml say which bounds hold from now on."""
        for name, config in model.configs().items():
            with self._saving(), atomic_file(self.path / name) as temporary:
                temporary.write_text(to_yaml(config), encoding="utf-8")

    def _config(self) -> dict[str, Any]:
        """What config.yaml says."""
        try:
            config = yaml.safe_load((self.path / CONFIG_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError, yaml.YAMLError):
            config = None
        if not (isinstance(config, dict) and isinstance(config.get("training", {}), dict)):
            raise self._broken()
        return config

    def _broken(self) -> DataError:
        return DataError(f"{self.path}: broken training directory; --force trains anew")

    def save_model(self, learner: TrainState, model: StorableModel) -> None:
        """Make the parameters kept the model of this directory."""
        best = {name: tensor.cpu().numpy() for name, tensor in learner.best_parameters.items()}
        for name, arrays in model.tables(best).items():
            with self._saving(), atomic_file(self.path / name) as temporary:
                write_arrays(temporary, arrays)

    def save_checkpoint(self, learner: TrainState) -> None:
        with self._saving():
            write_checkpoint(self.checkpoint, learner)

    def append_metrics(self, measured: Mapping[str, Any]) -> None:
        """Add a line to metrics.jsonl."""
        with self._saving(), (self.path / METRICS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(measured) + "\n")

    @contextmanager
    def _saving(self) -> Iterator[None]:
        try:
            yield
        except (DragomanError, OSError) as error:
            why = str(error) if isinstance(error, DragomanError) else f"{self.path}: {error.strerror}"
            remedy = "the last checkpoint is intact: make room and run the same command again"
            raise DragomanError(f"{why}; {remedy}") from error


def _changes(there: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """What differs between two configurations, as far as people can tell: settings by their names, texts as such."""
    texts = [one.pop("data", {}) for one in (there, here)]
    names = {"train": "another training text", "dev": "another dev text, or none"}
    changed = [told for name, told in names.items() if texts[0].get(name) != texts[1].get(name)]
    told = config_differences(
        *({name: part for name, part in one.items() if name != "unknown"} for one in (there, here))
    )
    if not (changed or told) and (texts[0] != texts[1] or there != here):
        changed = ["it began with other words, classes or parameters"]
    return told + changed


def _fill(config: dict[str, Any], model: StorableModel) -> None:
    """Settings that there were not yet when a training began have their defaults."""
    for name, kind in (("model", type(model.settings)), ("training", TrainingConfig)):
        if isinstance(config.get(name), dict):
            config[name] = {**kind().model_dump(mode="json"), **config[name]}


def _update_of(line: str) -> int:
    """The step that a line of metrics.jsonl tells of; a line that was cut off tells of none to be kept."""
    try:
        return int(json.loads(line)["update"])
    except (ValueError, KeyError, TypeError):
        return 1 << 62


def arrays_fingerprint(arrays: Mapping[str, NDArray[Any]]) -> str:
    """By what a model is known again as it was before its first step: parameters, classes, features."""
    checksum = 0
    for name, array in sorted(arrays.items()):
        checksum = zlib.crc32(np.ascontiguousarray(array).tobytes(), zlib.crc32(name.encode(), checksum))
    return f"{checksum:08x}"
