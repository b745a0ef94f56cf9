"""The directory of a training run: a model that can be used at any time, and a checkpoint to resume from.

`training.safetensors` is the checkpoint: the parameters, the best parameters, their average, the state of the
optimizer, the states carried from batch to batch and, as metadata, the progress. Files are replaced atomically, so that
a killed training run leaves the last checkpoint. The directory is an ordinary model directory with the best parameters.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry
from dragoman.core.settings import config_differences, validate
from dragoman.core.types import Arrays
from dragoman.data.corpus import arrays_checksum
from dragoman.io.digests import FILES
from dragoman.io.files import append_line, atomic_file, sync, write_text
from dragoman.io.storage import (
    CHECKPOINT_FILE,
    CONFIG_FILE,
    METRICS_FILE,
    PACE_FILE,
    SHORTLIST,
    check_digests,
    config_text,
    map_arrays_with_metadata,
    new_directory,
    read_config,
    read_metadata,
    saving_run,
    write_arrays,
)
from dragoman.training.config import TrainingConfig
from dragoman.training.distributed import Communicator
from dragoman.training.loop import StepReport, TrainState, load_parameters
from dragoman.training.optimizers import load_state_tensors, state_tensors
from dragoman.training.pace import PaceLog
from dragoman.training.progress import Progress

if TYPE_CHECKING:
    from dragoman.training.protocols import StorableModel

MACHINE_SETTINGS = ("threads", "device")  # settings of the machine rather than of the training run
CHANGEABLE_SETTINGS = ("max_epochs", "max_updates", "minutes", "patience")  # when training is resumed
# Of settings whose defaults are not what runs without them used.
EARLIER_DEFAULTS: Mapping[str, object] = {"precision": "float32", "pieces": 1}
PARAMETERS, BEST, OPTIMIZER, AVERAGE = "parameters/", "best/", "optimizer/", "average/"
CARRY, CARRIES = "carry/", "carries/"  # of batches of one piece, and of several
BUFFERS = "buffers/"  # of the model, which a checkpoint does not need
PROGRESS = "progress"


def stored_training_settings(path: Path) -> Mapping[str, object]:
    """Return the settings of the training run in a directory; none if there is no run, or a broken one."""
    try:
        settings = read_config(path).get("training") if (path / CHECKPOINT_FILE).is_file() else None
    except DataError:
        return {}
    return {**EARLIER_DEFAULTS, **settings} if isinstance(settings, dict) else {}


@dataclass(frozen=True)
class TrainingDirectory:
    """The directory in which a model is trained."""

    path: Path
    model: StorableModel

    @property
    def checkpoint(self) -> Path:
        return self.path / CHECKPOINT_FILE

    @property
    def pace_file(self) -> Path:
        return self.path / PACE_FILE

    def create_or_resume(self, state: TrainState, config: TrainingConfig, *, force: bool) -> bool:
        """Start a training run, or resume the one in this directory. Return whether it is finished already.

        A training run that is resumed with other limits continues, or stops, by these.
        """
        if force or not self.checkpoint.is_file():
            with new_directory(self.path, replace=force) as directory:
                self.model.write_into(directory)
                (directory / METRICS_FILE).touch()
                write_checkpoint(directory / CHECKPOINT_FILE, state)
            return False
        limits_changed = self._check_same_config()
        self._resume(state)
        if limits_changed:
            PaceLog(self.pace_file, last_update=state.progress.update)  # later decisions were for the other limits
            state.progress, state.average = state.progress.with_new_limits(config), {}
            with saving_run(self.path):
                write_checkpoint(self.checkpoint, state)  # before the new limits, which would not be new afterwards
            for name, contents in self.model.configs().items():
                with saving_run(self.path):
                    file = self.path / name
                    if state.progress.stop_reason and (shortlist := read_config(file.parent).get(SHORTLIST)):
                        contents = {**contents, SHORTLIST: shortlist}  # the parameters remain as they are
                    write_text(file, config_text(file.parent, contents), create_parents=False)
        return bool(state.progress.stop_reason)

    def _resume(self, state: TrainState) -> None:
        """Load the last checkpoint and remove metrics written after it."""
        load_checkpoint(state, self.checkpoint)
        metrics = self.path / METRICS_FILE
        lines = metrics.read_bytes().decode("utf-8", "replace").splitlines() if metrics.exists() else []
        write_text(metrics, "".join(f"{line}\n" for line in lines if _update_of(line) <= state.progress.update))

    def _check_same_config(self) -> bool:
        """Raise an error if the training run in this directory has other settings. Return whether its limits differ."""
        broken = f"{self.path}: broken training directory; start again with --force"
        try:
            old = read_config(self.path)
        except DataError as error:
            raise DataError(f"{broken} ({error})") from None
        if not isinstance(old.get("training", {}), dict):
            raise DataError(broken)
        old.pop(FILES, None)
        for name, kind in (("model", type(self.model.settings)), ("training", TrainingConfig)):
            if isinstance(old.get(name), dict) and old.get("kind") == self.model.configs()[CONFIG_FILE].get("kind"):
                # Settings that did not exist then have their defaults.
                given = {**EARLIER_DEFAULTS, **old[name]} if name == "training" else old[name]
                try:
                    old[name] = validate(kind, given, str(self.path)).model_dump(mode="json")
                except DataError as error:
                    raise DataError(f"{broken} ({error})") from None
        new = json.loads(json.dumps(self.model.configs()[CONFIG_FILE]))
        limits = []
        for settings in (old.get("training", {}), new.get("training", {})):
            for key in MACHINE_SETTINGS:
                settings.pop(key, None)
            limits.append({key: settings.pop(key, None) for key in CHANGEABLE_SETTINGS})
        if changes := _changes(old, new):
            remedy = "use the same settings, choose another directory, or start again with --force"
            raise DataError(f"{self.path}: contains a different training run ({'; '.join(changes)}); {remedy}")
        if not all((self.path / name).is_file() for name in self.model.file_names()):
            raise DataError(broken)
        for directory in {(self.path / name).parent for name in self.model.configs()}:
            check_digests(directory, read_config(directory))
        return limits[0] != limits[1]

    def save_step(self, state: TrainState, report: StepReport, *, checkpoint: bool) -> None:
        """Write metrics, model and checkpoint where they are due.

        The model is written first, so that a finished training run has its model.
        """
        progress = report.progress
        if report.train_loss is not None or report.rolled_back:
            with saving_run(self.path):
                append_line(self.path / METRICS_FILE, json.dumps(_metrics(report)))
        if report.evaluated and progress.best_update == progress.update:
            best = {name: tensor.cpu().numpy() for name, tensor in state.best_parameters.items()}
            for name, arrays in self.model.arrays_by_file(best).items():
                with saving_run(self.path), atomic_file(self.path / name, create_parents=False) as temporary:
                    write_arrays(temporary, arrays)
        if report.evaluated or checkpoint:
            with saving_run(self.path):
                sync(self.path / METRICS_FILE)
                write_checkpoint(self.checkpoint, state)


Config = dict[str, dict[str, object]]


def _changes(old: Config, new: Config) -> list[str]:
    """Return descriptions of the differences between two configurations."""
    old_data, new_data = (config.pop("data", {}) for config in (old, new))
    for data in (old_data, new_data):
        data.pop("placeholders", None)  # they are part of the training text; some training runs have not stored them
    old.pop(SHORTLIST, None)  # which is decided after training
    if old.pop("trained_from", None) != new.pop("trained_from", None):
        return ["another initial model"]
    texts = {
        "train": "another training text",
        "dev": "another dev text, or none",
        "replay": "another old text to replay, or none",
        "replay_dev": "another old dev text, or none",
    }
    changed_texts = [message for name, message in texts.items() if old_data.get(name) != new_data.get(name)]
    without_unknown = ({name: part for name, part in config.items() if name != "unknown"} for config in (old, new))
    changes = config_differences(*without_unknown) + changed_texts
    if not changes and (old_data != new_data or old != new):
        return ["other initial words, classes or parameters"]
    return changes


def _metrics(report: StepReport) -> dict[str, float]:
    """Return a line of metrics.jsonl."""
    progress = report.progress
    record = {
        "update": progress.update,
        "epoch": progress.epoch,
        "seconds": round(progress.seconds, 3),
        "learning_rate": report.learning_rate,
        "gradient_norm": report.gradient_norm,
        "train_loss": report.train_loss,
        "train_sample_loss": report.sample_loss,
        "dev_loss": report.dev_loss,
        "replay_dev_loss": report.replay_dev_loss,
        "best_dev_loss": progress.best_dev_loss,
        "went_back": report.rolled_back,
    }
    return {key: value for key, value in record.items() if value is not None and math.isfinite(value)}


def _update_of(line: str) -> int:
    """Return the update of a line of metrics.jsonl; a very large number for an incomplete line."""
    try:
        return int(json.loads(line)["update"])
    except (ValueError, KeyError, TypeError):
        return 1 << 62


def arrays_fingerprint(arrays: Arrays) -> str:
    """Return a checksum of the arrays of an untrained model: parameters, classes, features."""
    names = {name: np.frombuffer(name.encode(), np.uint8) for name in sorted(arrays)}
    return arrays_checksum(array for name in names for array in (names[name], arrays[name]))


def checkpoint_tensors(state: TrainState) -> dict[str, Tensor]:
    """Return everything that is needed to resume training except the progress, by the names in a checkpoint."""
    parameters = dict(state.model.named_parameters())
    is_single = len(state.carries) == 1
    groups: dict[str, Mapping[str, Tensor]] = {
        PARAMETERS: parameters,
        BEST: state.best_parameters,
        OPTIMIZER: state_tensors(state.optimizer, list(parameters)),
        AVERAGE: state.average,
        CARRY if is_single else CARRIES: dict(_flatten(state.carries[0] if is_single else tuple(state.carries))),
    }
    return {prefix + name: tensor for prefix, tensors in groups.items() for name, tensor in tensors.items()}


def write_checkpoint(path: Path, state: TrainState) -> None:
    """Write everything that is needed to resume training, completely or not at all."""
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in checkpoint_tensors(state).items()}
    with atomic_file(path, create_parents=False) as temporary:
        write_arrays(temporary, arrays, {PROGRESS: state.progress.to_json()})


def read_progress(path: Path) -> Progress:
    """Return the progress of a checkpoint."""
    return _parse_progress(path, read_metadata(path))


def load_checkpoint(state: TrainState, path: Path) -> None:
    """Restore the training state from a checkpoint."""
    arrays, metadata = map_arrays_with_metadata(path)
    progress = _parse_progress(path, metadata)
    try:
        load_checkpoint_tensors(state, {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
    except (KeyError, RuntimeError, ValueError) as error:
        raise _checkpoint_error(path, error) from None
    state.progress = progress


def load_checkpoint_tensors(state: TrainState, tensors: Mapping[str, Tensor]) -> None:
    """Restore what `checkpoint_tensors` has returned."""

    def group(prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}

    load_parameters(state.model, group(PARAMETERS))
    best, average = group(BEST), group(AVERAGE)
    parameters = dict(state.model.named_parameters())
    state.best_parameters = {name: best[name].to(tensor.detach()) for name, tensor in parameters.items()}
    load_state_tensors(state.optimizer, list(parameters), group(OPTIMIZER))
    state.average = {name: average[name].to(tensor.detach()) for name, tensor in parameters.items() if average}
    device = next(iter(parameters.values())).device
    single, several = (
        _unflatten({name: tensor.to(device) for name, tensor in group(prefix).items()}) for prefix in (CARRY, CARRIES)
    )
    state.carries = list(several) if isinstance(several, tuple) else [] if single is None else [single]


def share_state(state: TrainState, processes: Communicator) -> None:
    """Give all processes the training state of process 0, and its buffers of the model."""
    buffers = {BUFFERS + name: tensor for name, tensor in state.model.named_buffers()}
    received = processes.broadcast({**checkpoint_tensors(state), **buffers})
    progress = Progress.from_json(processes.from_main(state.progress.to_json))
    if not processes.is_main:
        load_checkpoint_tensors(state, received)
        for name, tensor in state.model.named_buffers():
            tensor.copy_(received[BUFFERS + name])
        state.progress = progress


def share_carries(state: TrainState, processes: Communicator) -> None:
    """Give all processes the states that each of them carries to the next batch, so that a checkpoint has all."""
    for number, carry in enumerate(state.carries):
        received = processes.broadcast(dict(_flatten(carry)), processes.owner(number))
        if processes.owner(number) != processes.rank:
            state.carries[number] = _unflatten(received)


def _parse_progress(path: Path, metadata: Mapping[str, str]) -> Progress:
    try:
        return Progress.from_json(metadata[PROGRESS])
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise _checkpoint_error(path, error) from None


def _checkpoint_error(path: Path, error: Exception) -> DataError:
    why = " ".join(str(error).split())
    return DataError(f"{path}: not a checkpoint of this training run ({why}); --force starts it again")


def _flatten(nested: Carry, path: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of nested tuples with their paths, such as `0.1`."""
    if isinstance(nested, tuple):
        for number, part in enumerate(nested):
            yield from _flatten(part, f"{path}.{number}" if path else f"{number}")
    elif nested is not None:
        yield path, nested


def _unflatten(tensors: Mapping[str, Tensor]) -> Carry:
    """Return the nested tuples that `_flatten` was given."""
    if not tensors:
        return None
    if "" in tensors:
        return tensors[""]
    parts: dict[int, dict[str, Tensor]] = {}
    for path, tensor in tensors.items():
        number, _, rest = path.partition(".")
        parts.setdefault(int(number), {})[rest] = tensor
    return tuple(_unflatten(parts[number]) for number in range(len(parts)))
