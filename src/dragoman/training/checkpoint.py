"""A training on disk: one file that is replaced whole, so that a kill at any moment leaves the last one.

`training.safetensors` holds the parameters as they are, those kept, the optimiser's memory and, as a note, the
position. The model directory around it is an ordinary one, with the parameters kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.errors import DataError
from dragoman.storage import map_annotated_arrays, new_file, write_arrays
from dragoman.training.loop import Learner, put_back
from dragoman.training.optimizers import memory_of, remind
from dragoman.training.position import Position

NOW, KEPT, MEMORY = "now/", "kept/", "optimizer/"
POSITION = "position"


def write_checkpoint(path: Path, learner: Learner) -> None:
    """Write all that a training needs to go on, whole or not at all."""
    parameters = learner.model.parameters()
    tensors = {
        **{NOW + name: tensor for name, tensor in parameters.items()},
        **{KEPT + name: tensor for name, tensor in learner.kept.items()},
        **{MEMORY + name: tensor for name, tensor in memory_of(learner.optimizer, list(parameters)).items()},
    }
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    with new_file(path) as temporary:
        write_arrays(temporary, arrays, {POSITION: learner.position.to_json()})


def read_position(path: Path) -> Position:
    return _position(path, map_annotated_arrays(path)[1])


def restore(learner: Learner, path: Path) -> None:
    """Put a learner where the checkpoint was written."""
    arrays, notes = map_annotated_arrays(path)
    position = _position(path, notes)
    try:
        put_back(learner.model, _tensors(arrays, NOW))
        kept = _tensors(arrays, KEPT)
        learner.kept = {name: kept[name].to(tensor) for name, tensor in learner.model.parameters().items()}
        remind(learner.optimizer, list(learner.kept), _tensors(arrays, MEMORY))
    except (KeyError, RuntimeError, ValueError) as error:
        raise _broken(path, str(error)) from None
    learner.position = position


def _position(path: Path, notes: Mapping[str, str]) -> Position:
    try:
        return Position.from_json(notes[POSITION])
    except (KeyError, ValueError, TypeError) as error:
        raise _broken(path, str(error)) from None


def _tensors(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): torch.from_numpy(np.array(array))
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _broken(path: Path, why: str) -> DataError:
    why = " ".join(why.split())
    return DataError(f"{path}: does not belong to this training ({why}); --force trains anew")
