"""A training on disk: one file that is replaced whole, so that a kill at any moment leaves the last one.

`training.safetensors` holds the parameters as they are, those kept, their average, the optimiser's memory, what is
carried from batch to batch and, as a note, the position. The model directory around it is an ordinary one, with the
parameters kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.io.storage import atomic_file, map_arrays_with_metadata, write_arrays
from dragoman.training.loop import TrainState, load_parameters
from dragoman.training.objectives import Carry
from dragoman.training.optimizers import load_state_tensors, state_tensors
from dragoman.training.progress import Progress

NOW, KEPT, MEMORY, AVERAGE, CARRY = "now/", "kept/", "optimizer/", "average/", "carry/"
POSITION = "position"


def write_checkpoint(path: Path, learner: TrainState) -> None:
    """Write all that a training needs to go on, whole or not at all."""
    parameters = learner.model.parameters()
    tensors = {
        **{NOW + name: tensor for name, tensor in parameters.items()},
        **{KEPT + name: tensor for name, tensor in learner.best_parameters.items()},
        **{MEMORY + name: tensor for name, tensor in state_tensors(learner.optimizer, list(parameters)).items()},
        **{AVERAGE + name: tensor for name, tensor in learner.average.items()},
        **{CARRY + place: tensor for place, tensor in _flat(learner.carry)},
    }
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    with atomic_file(path) as temporary:
        write_arrays(temporary, arrays, {POSITION: learner.progress.to_json()})


def read_progress(path: Path) -> Progress:
    return _position(path, map_arrays_with_metadata(path)[1])


def load_checkpoint(learner: TrainState, path: Path) -> None:
    """Put a learner where the checkpoint was written."""
    arrays, notes = map_arrays_with_metadata(path)
    position = _position(path, notes)
    try:
        load_parameters(learner.model, _tensors(arrays, NOW))
        kept = _tensors(arrays, KEPT)
        learner.best_parameters = {name: kept[name].to(tensor) for name, tensor in learner.model.parameters().items()}
        load_state_tensors(learner.optimizer, list(learner.best_parameters), _tensors(arrays, MEMORY))
        average = _tensors(arrays, AVERAGE)
        learner.average = {
            name: average[name].to(tensor) for name, tensor in learner.best_parameters.items() if average
        }
        device = next(iter(learner.best_parameters.values())).device
        learner.carry = _nested({place: tensor.to(device) for place, tensor in _tensors(arrays, CARRY).items()})
    except (KeyError, RuntimeError, ValueError) as error:
        raise _broken(path, str(error)) from None
    learner.progress = position


def _position(path: Path, notes: Mapping[str, str]) -> Progress:
    try:
        return Progress.from_json(notes[POSITION])
    except (KeyError, ValueError, TypeError) as error:
        raise _broken(path, str(error)) from None


def _tensors(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): torch.from_numpy(np.array(array))
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _flat(nest: Carry, place: str = "") -> Iterator[tuple[str, Tensor]]:
    """A nest of tuples of tensors as tensors, each with its place in the nest, such as `0.1`."""
    if isinstance(nest, tuple):
        for number, part in enumerate(nest):
            yield from _flat(part, f"{place}.{number}" if place else f"{number}")
    elif nest is not None:
        yield place, nest


def _nested(flat: Mapping[str, Tensor]) -> Carry:
    """What `_flat` took apart."""
    if not flat:
        return None
    if "" in flat:
        return flat[""]
    parts: dict[int, dict[str, Tensor]] = {}
    for place, tensor in flat.items():
        number, _, rest = place.partition(".")
        parts.setdefault(int(number), {})[rest] = tensor
    return tuple(_nested(parts[number]) for number in range(len(parts)))


def _broken(path: Path, why: str) -> DataError:
    why = " ".join(why.split())
    return DataError(f"{path}: does not belong to this training ({why}); --force trains anew")
