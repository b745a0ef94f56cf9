"""The kernels as a differentiable function, shared out among the processor's cores."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.core.threads import available_cores, parallel_map
from dragoman.models.loglinear import scoring
from dragoman.models.loglinear.layout import Layout
from dragoman.models.loglinear.scoring import Gradients, Groups, Weights

SMALLEST = 1 << 16  # weights to be looked at that are worth a thread


def log_probs(
    bias: Tensor, pairs: Tensor, windows: Tensor, layout: Layout, groups: Groups, target: NDArray[np.int32]
) -> Tensor:
    """log p_{e_t} of every prediction; gradients flow to the three kinds of weights.  # (predictions,) float64"""
    return cast(Tensor, _LogProbs.apply(bias, pairs, windows, layout, groups, target))  # type: ignore[no-untyped-call]


class _LogProbs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, bias: Tensor, pairs: Tensor, windows: Tensor, layout: Layout, groups: Groups, target: NDArray[Any]
    ) -> Tensor:
        weights = Weights(*layout, *(tensor.detach().numpy() for tensor in (bias, pairs, windows)))
        out, log_sum = np.empty(len(target)), np.empty(len(target))
        parallel_map(lambda part: scoring.log_probs(weights, groups, target, *part, out, log_sum), _parts(groups))
        ctx.save_for_backward(bias, pairs, windows)
        ctx.rest = layout, groups, target, log_sum
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        layout, groups, target, log_sum = ctx.rest
        weights = Weights(*layout, *(tensor.detach().numpy() for tensor in ctx.saved_tensors))
        above = np.ascontiguousarray(upstream.numpy(), np.float64)

        def work(part: tuple[int, int]) -> Gradients:
            out = Gradients(*(np.zeros_like(array) for array in (weights.bias, weights.pairs, weights.windows)))
            scoring.gradients(weights, groups, target, *part, log_sum, above, out)
            return out

        first, *others = parallel_map(work, _parts(groups))
        for other in others:  # always in this order, so that sums are the same to the bit
            for total, part in zip(first, other, strict=True):
                total += part
        return (*(torch.from_numpy(array) for array in first), None, None, None)


def _parts(groups: Groups) -> list[tuple[int, int]]:
    """The groups in as many parts as there are threads, each about as much work."""
    done = np.cumsum(groups.cost)
    total = int(done[-1]) if len(done) else 0
    parts = max(1, min(available_cores(), total // SMALLEST))
    cuts = np.searchsorted(done, [total * part // parts for part in range(1, parts)])
    edges = [0, *cuts.tolist(), len(done)]
    return list(zip(edges[:-1], edges[1:], strict=True))
