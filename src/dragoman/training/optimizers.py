"""Optimizers, learning rate schedules, and L1 and L2 regularization."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import SGD, Adagrad, Adam, Optimizer

from dragoman.core.errors import DataError
from dragoman.core.kernels import kernel
from dragoman.training.config import TrainingConfig

# theta <- theta - eta * dl/dtheta, and its variants (tutorial, section "Learning Model Parameters").
OPTIMIZERS: dict[str, Callable[[Sequence[Tensor], TrainingConfig], Optimizer]] = {
    "sgd": lambda tensors, config: SGD(tensors, config.learning_rate, fused=True),
    "momentum": lambda tensors, config: SGD(tensors, config.learning_rate, config.momentum, fused=True),
    "adagrad": lambda tensors, config: Adagrad(
        tensors, config.learning_rate, fused=all(tensor.device.type == "cpu" for tensor in tensors)
    ),
    "adam": lambda tensors, config: Adam(tensors, config.learning_rate, fused=True),
}


def create_optimizer(parameters: Iterable[Tensor], config: TrainingConfig) -> Optimizer:
    return OPTIMIZERS[config.optimizer](list(parameters), config)


def state_tensors(optimizer: Optimizer, names: Sequence[str]) -> dict[str, Tensor]:
    """Return the optimizer's tensors of each parameter, such as Adam's averages, by `parameter/tensor`."""
    state = optimizer.state_dict()["state"]
    return {
        f"{name}/{key}": tensor
        for number, name in enumerate(names)
        for key, tensor in state.get(number, {}).items()
        if isinstance(tensor, Tensor)
    }


def load_state_tensors(optimizer: Optimizer, names: Sequence[str], tensors: Mapping[str, Tensor]) -> None:
    """Load what `state_tensors` returned into an optimizer of the same parameters."""
    state: dict[int, dict[str, Tensor]] = {}
    for path, tensor in tensors.items():
        name, _, key = path.rpartition("/")
        if name not in names:
            raise DataError(f"the checkpoint has a parameter {name!r} that the model does not have")
        state.setdefault(names.index(name), {})[key] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


# Factors by the fraction of the training that is done (0 to 1) and the number of the update.
SCHEDULES: dict[str, Callable[[float, int, TrainingConfig], float]] = {
    "constant": lambda fraction, update, config: 1.0,
    "linear": lambda fraction, update, config: 1.0 - fraction,
    "cosine": lambda fraction, update, config: 0.5 * (1.0 + math.cos(math.pi * fraction)),
    "cooldown": lambda fraction, update, config: min(1.0, (1.0 - fraction) / config.cooldown),
    "inverse-sqrt": lambda fraction, update, config: math.sqrt(max(config.warmup, 1) / max(config.warmup, update, 1)),
}


def scheduled_learning_rate(config: TrainingConfig, update: int, fraction: float) -> float:
    """Return the learning rate of an update by warmup and schedule, before decay on plateaus.

    >>> config = TrainingConfig(learning_rate=0.1, warmup=4, schedule="linear")
    >>> [round(scheduled_learning_rate(config, update, update / 8), 3) for update in range(8)]
    [0.025, 0.044, 0.056, 0.062, 0.05, 0.038, 0.025, 0.013]
    """
    warmup = min(1.0, (update + 1) / config.warmup) if config.warmup else 1.0
    return config.learning_rate * warmup * SCHEDULES[config.schedule](min(max(fraction, 0.0), 1.0), update, config)


SignConstraint = NDArray[np.int8]  # the sign that each weight must keep: 1, -1, or 0 for none


def add_penalty_gradients(weights: Iterable[Tensor], l1: float, l2: float) -> list[SignConstraint]:
    """Add the gradients of l1 * |w| + l2 * w^2 / 2. Return the sign constraints of the next step.

    At w = 0, where |w| has no gradient, a weight stays unless the gradient of the loss is larger than the penalty.
    Elsewhere a weight may cross 0 only if the gradient of the loss is larger than the penalty, so the penalty by itself
    moves it to 0 and no further.
    """
    constraints = []
    for weight in weights:
        if l2 and weight.grad is not None:
            weight.grad.add_(weight.detach(), alpha=l2)
        if l1:
            constraints.append(np.zeros(weight.numel(), np.int8))
            if weight.grad is not None:
                _add_l1(_flat(weight), _flat(weight.grad), l1, constraints[-1])
    return constraints


def clip_at_zero(weights: Iterable[Tensor], constraints: Sequence[SignConstraint]) -> None:
    """Set weights to 0 that a step has moved across 0 against their constraints, so that L1 gives exact zeros."""
    if constraints:
        for weight, signs in zip(weights, constraints, strict=True):
            _clip(_flat(weight), signs)


def _flat(tensor: Tensor) -> NDArray[np.floating]:
    """Return the same memory as an array."""
    if tensor.device.type != "cpu":
        raise DataError(f"L1 regularization needs --device cpu, not {tensor.device.type}; use --l2")
    return tensor.detach().view(-1).numpy()


@kernel
def _add_l1(weight: Any, gradient: Any, l1: float, signs: Any) -> None:
    for i in range(weight.size):
        loss_gradient = gradient[i]
        if weight[i] == 0.0:
            gradient[i] = max(loss_gradient - l1, 0.0) + min(loss_gradient + l1, 0.0)
        else:
            sign = 1 if weight[i] > 0.0 else -1
            gradient[i] = loss_gradient + l1 * sign
            if abs(loss_gradient) <= l1:
                signs[i] = sign


@kernel
def _clip(weight: Any, signs: Any) -> None:
    for i in range(weight.size):
        if weight[i] * signs[i] < 0.0:
            weight[i] = 0.0
