"""The rules by which gradients become steps, and what they remember."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.optim import Adagrad, Adam, Optimizer

from dragoman.core.errors import DataError
from dragoman.training.config import TrainingConfig

# theta <- theta - eta * dl/dtheta, and what was made of it (tutorial, section "Learning Model Parameters").
OPTIMIZERS: dict[str, Callable[[Sequence[Tensor], TrainingConfig], Optimizer]] = {
    "sgd": lambda tensors, config: torch.optim.SGD(tensors, config.learning_rate, fused=True),
    "momentum": lambda tensors, config: torch.optim.SGD(
        tensors, config.learning_rate, momentum=config.momentum, fused=True
    ),
    "adagrad": lambda tensors, config: Adagrad(tensors, config.learning_rate, fused=_fused_adagrad(tensors)),
    "adam": lambda tensors, config: Adam(tensors, config.learning_rate, fused=True),
}


def create_optimizer(parameters: Mapping[str, Tensor], config: TrainingConfig) -> Optimizer:
    """A fresh optimiser of these parameters."""
    return OPTIMIZERS[config.optimizer](list(parameters.values()), config)


def _fused_adagrad(tensors: Sequence[Tensor]) -> bool:
    """torch has it for the processor alone."""
    return all(tensor.device.type == "cpu" for tensor in tensors)


def set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def state_tensors(optimizer: Optimizer, names: Sequence[str]) -> dict[str, Tensor]:
    """What an optimiser remembers of each parameter, such as Adam's averages, by `parameter/what`."""
    remembered = optimizer.state_dict()["state"]
    return {
        f"{name}/{what}": tensor
        for number, name in enumerate(names)
        for what, tensor in remembered.get(number, {}).items()
        if isinstance(tensor, Tensor)
    }


def load_state_tensors(optimizer: Optimizer, names: Sequence[str], memory: Mapping[str, Tensor]) -> None:
    """Give an optimiser back what `memory_of` took from one like it."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in memory.items():
        name, _, what = key.rpartition("/")
        if name not in names:
            raise DataError(f"the checkpoint remembers a parameter {name!r} that the model does not have")
        state.setdefault(names.index(name), {})[what] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
