"""Checkpoints: one file that is replaced atomically, so that a killed training run leaves the last one.

`training.safetensors` has the parameters, the best parameters, their average, the state of the optimizer, the state
carried from batch to batch and, as metadata, the progress. The model directory around it is an ordinary one, with the
best parameters.
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
from dragoman.core.scorer import Carry
from dragoman.io.storage import atomic_file, map_arrays_with_metadata, write_arrays
from dragoman.training.loop import TrainState, load_parameters, named_parameters
from dragoman.training.optimizers import load_state_tensors, state_tensors
from dragoman.training.progress import Progress

PARAMETERS, BEST, OPTIMIZER, AVERAGE, CARRY = "parameters/", "best/", "optimizer/", "average/", "carry/"
PROGRESS = "progress"


def write_checkpoint(path: Path, state: TrainState) -> None:
    """Write everything that is needed to resume training, completely or not at all."""
    parameters = named_parameters(state.model)
    tensors = {
        **{PARAMETERS + name: tensor for name, tensor in parameters.items()},
        **{BEST + name: tensor for name, tensor in state.best_parameters.items()},
        **{OPTIMIZER + name: tensor for name, tensor in state_tensors(state.optimizer, list(parameters)).items()},
        **{AVERAGE + name: tensor for name, tensor in state.average.items()},
        **{CARRY + path: tensor for path, tensor in _flatten(state.carry)},
    }
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    with atomic_file(path) as temporary:
        write_arrays(temporary, arrays, {PROGRESS: state.progress.to_json()})


def read_progress(path: Path) -> Progress:
    """Return the progress of a checkpoint."""
    return _parse_progress(path, map_arrays_with_metadata(path)[1])


def load_checkpoint(state: TrainState, path: Path) -> None:
    """Restore the training state from a checkpoint."""
    arrays, metadata = map_arrays_with_metadata(path)
    progress = _parse_progress(path, metadata)
    try:
        load_parameters(state.model, _tensors(arrays, PARAMETERS))
        best, average = _tensors(arrays, BEST), _tensors(arrays, AVERAGE)
        parameters = named_parameters(state.model)
        state.best_parameters = {name: best[name].to(tensor.detach()) for name, tensor in parameters.items()}
        load_state_tensors(state.optimizer, list(parameters), _tensors(arrays, OPTIMIZER))
        state.average = {name: average[name].to(tensor.detach()) for name, tensor in parameters.items() if average}
        device = next(iter(parameters.values())).device
        state.carry = _unflatten({path: tensor.to(device) for path, tensor in _tensors(arrays, CARRY).items()})
    except (KeyError, RuntimeError, ValueError) as error:
        raise _checkpoint_error(path, str(error)) from None
    state.progress = progress


def _parse_progress(path: Path, metadata: Mapping[str, str]) -> Progress:
    try:
        return Progress.from_json(metadata[PROGRESS])
    except (KeyError, ValueError, TypeError) as error:
        raise _checkpoint_error(path, str(error)) from None


def _tensors(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): torch.from_numpy(np.array(array))
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


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


def _checkpoint_error(path: Path, why: str) -> DataError:
    why = " ".join(why.split())
    return DataError(f"{path}: not a checkpoint of this training run ({why}); --force starts it again")
