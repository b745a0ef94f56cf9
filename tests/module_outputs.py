"""Outputs of models in evaluation and in training mode, for tests."""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor


def log_probs(model: Any, data: Any, **options: Any) -> Tensor:
    """log P of every token, in evaluation mode and without gradients."""
    model.eval()
    with torch.no_grad():
        return model(data, **options).log_probs


def training_output(model: Any, data: Any, seed: int = 1, **options: Any) -> Any:
    """The output in training mode, with the dropout of a seed. The model is in evaluation mode afterwards."""
    model.train()
    output = model(data, generator=Generator().manual_seed(seed), **options)
    model.eval()
    return output


def gradients(model: torch.nn.Module, loss: Tensor) -> dict[str, Tensor]:
    """The gradient of each parameter; 0 for unused ones."""
    parameters = dict(model.named_parameters())
    values = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True, materialize_grads=True)
    return dict(zip(parameters, values, strict=True))
