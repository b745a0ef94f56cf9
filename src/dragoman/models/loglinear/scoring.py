"""Scores, probabilities and gradients of many predictions at once.

s = sum_{j: x_j != 0} W_{.,j} x_j + b,  p = softmax(s)                                (section 4.1, eq. lllm:softmaxsum)
d log p_{e_t} / db = onehot(e_t) - p,  d log p_{e_t} / dW_{.,j} = x_j (onehot(e_t) - p)                   (section 4.3)

W is sparse, so most scores equal the bias. The normaliser is computed once for the bias and corrected at the words
whose score differs. There are two levels: predictions with the same *head* (all features that have windows; if there
are none, the feature with the most pairs, usually that of the previous word) form a group, and the head is added once
per group; the *tail*, all other features, is added for each prediction.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import Function, FunctionCtx

from dragoman.core.kernels import kernel
from dragoman.core.threads import available_cores, parallel_map
from dragoman.data.vocabulary import START
from dragoman.models.loglinear.weights import ActiveFeatures, WeightLayout

MIN_REMAINDER = 1e-6  # a corrected sum below this share of the original has lost its digits and is computed again
MIN_THREAD_COST = 1 << 16  # number of weights that makes a thread worthwhile


class LogLinearWeights(NamedTuple):
    """The columns of W with their values, and b."""

    begin: NDArray[np.int64]  # see WeightLayout
    word: NDArray[np.int32]
    window_start: NDArray[np.int64]
    bias: NDArray[np.floating]  # (|V|,)
    pairs: NDArray[np.floating]  # (pairs,)
    windows: NDArray[np.floating]


class PredictionGroups(NamedTuple):
    """Predictions sorted by head; the features of each prediction begin with its head."""

    begin: NDArray[np.int64]  # (predictions + 1,) see ActiveFeatures
    feature: NDArray[np.int32]
    value: NDArray[np.float64]
    tail: NDArray[np.int64]  # (predictions,) where the tail begins
    order: NDArray[np.int64]  # (predictions,) sorted by head
    first: NDArray[np.int64]  # (groups + 1,) where each group begins in `order`
    cost: NDArray[np.int64]  # (groups,) number of weights to visit


class Workspace(NamedTuple):
    """Scores of a prediction without features, of the current group, and of the current prediction."""

    bias: NDArray[np.float64]  # (|V|,) b, and -inf for `<s>`
    bias_mass: NDArray[np.float64]  # (|V|,) exp(bias - shift)
    shift: float  # the largest bias
    total: float  # sum of the masses
    score: NDArray[np.float64]  # (|V|,) bias and head
    mass: NDArray[np.float64]  # (|V|,) exp(score - shift)
    extra: NDArray[np.float64]  # (|V|,) sum of the tail
    touched: NDArray[np.int32]  # (|V|,) the words whose score the tail changes
    is_touched: NDArray[np.bool_]  # (|V|,)


def group_predictions(active: ActiveFeatures, layout: WeightLayout, has_windows: bool) -> PredictionGroups:
    """Group predictions with the same head."""
    begin, feature, value = active.begin, active.feature.copy(), active.value.copy()
    tail, head = _split_heads(begin, feature, value, layout, has_windows)
    order = np.argsort(head, kind="stable")
    is_first, cost = _group_boundaries(begin, feature, value, tail, order, layout)
    first = np.flatnonzero(is_first)
    cost = np.add.reduceat(cost, first) if len(first) else cost
    return PredictionGroups(begin, feature, value, tail, order, np.append(first, len(order)), cost)


GroupedBatch = tuple[WeightLayout, PredictionGroups, NDArray[np.int32]]  # with the target of each prediction


class _Context(FunctionCtx):
    saved_tensors: tuple[Tensor, ...]
    constants: tuple[WeightLayout, PredictionGroups, NDArray[np.int32], NDArray[np.float64]]


class SparseLogProbs(Function):
    """log p_{e_t} of every prediction, differentiable with respect to the weights.  # (predictions,) float64"""

    @staticmethod
    def forward(ctx: _Context, bias: Tensor, pairs: Tensor, windows: Tensor, batch: GroupedBatch) -> Tensor:
        layout, groups, target = batch
        weights = LogLinearWeights(*layout, *(tensor.detach().numpy() for tensor in (bias, pairs, windows)))
        out, log_normalizer = np.empty(len(target)), np.empty(len(target))
        parallel_map(partial(log_probs, weights, groups, target, out, log_normalizer), _balanced_parts(groups))
        ctx.save_for_backward(bias, pairs, windows)
        ctx.constants = *batch, log_normalizer
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: _Context, upstream: Tensor) -> tuple[Tensor | None, ...]:
        layout, groups, target, log_normalizer = ctx.constants
        weights = LogLinearWeights(*layout, *(tensor.detach().numpy() for tensor in ctx.saved_tensors))
        upstream_array = np.ascontiguousarray(upstream.numpy(), np.float64)

        def work(part: tuple[int, int]) -> LogLinearWeights:
            out = LogLinearWeights(*layout, *(np.zeros_like(array) for array in weights[3:]))  # the gradients
            gradients(weights, groups, target, log_normalizer, upstream_array, out, part)
            return out

        total, *others = parallel_map(work, _balanced_parts(groups))
        for other in others:  # always in the same order, so that results are reproducible to the bit
            for sum_array, array in zip(total[3:], other[3:], strict=True):
                sum_array += array
        return (*(torch.from_numpy(array) for array in total[3:]), None)


def _balanced_parts(groups: PredictionGroups) -> list[tuple[int, int]]:
    """Split the groups into one range per thread, with about equal cost."""
    cumulative = np.cumsum(groups.cost)
    total = int(cumulative[-1]) if len(cumulative) else 0
    parts = max(1, min(available_cores(), total // MIN_THREAD_COST))
    cuts = np.searchsorted(cumulative, [total * part // parts for part in range(1, parts)])
    return list(pairwise([0, *cuts.tolist(), len(cumulative)]))


# -- kernels: grouping ------------------------------------------------------------------------------------------------


@kernel
def _split_heads(begin: Any, feature: Any, value: Any, layout: Any, has_windows: bool) -> Any:
    """Move each prediction's head to the front; return where it ends, and a hash of it."""
    predictions = begin.size - 1
    tail, head = np.empty(predictions, np.int64), np.zeros(predictions, np.int64)
    for t in range(predictions):
        tail[t] = begin[t]
        if has_windows:
            for k in range(begin[t], begin[t + 1]):
                if layout.window_start[feature[k]] >= 0:
                    head[t] = head[t] * 1_000_003 + feature[k] + 1
                    _swap(feature, value, k, tail[t])
                    tail[t] += 1
        elif begin[t] < begin[t + 1]:
            longest, most = begin[t], -1  # the feature with the most pairs
            for k in range(begin[t], begin[t + 1]):
                size = layout.begin[feature[k] + 1] - layout.begin[feature[k]]
                if size > most:
                    longest, most = k, size
            _swap(feature, value, longest, begin[t])
            head[t] = feature[begin[t]] + 1
            tail[t] += 1
    return tail, head


@kernel
def _swap(feature: Any, value: Any, i: int, j: int) -> None:
    feature[i], feature[j] = feature[j], feature[i]
    value[i], value[j] = value[j], value[i]


@kernel
def _group_boundaries(begin: Any, feature: Any, value: Any, tail: Any, order: Any, layout: Any) -> Any:
    """Return which predictions have another head than the previous one in order, and the cost of each."""
    is_first, cost = np.ones(order.size, np.bool_), np.empty(order.size, np.int64)
    for k in range(order.size):
        t = order[k]
        cost[k] = 16
        if k > 0:
            previous = order[k - 1]
            first, last, other = begin[t], tail[t], begin[previous]
            is_first[k] = last - first != tail[previous] - other
            for i in range(0 if is_first[k] else last - first):
                if feature[first + i] != feature[other + i] or value[first + i] != value[other + i]:
                    is_first[k] = True
                    break
        for i in range(begin[t] if is_first[k] else tail[t], begin[t + 1]):
            j = feature[i]
            cost[k] += layout.begin[j + 1] - layout.begin[j]
    return is_first, cost


# -- kernels: scores --------------------------------------------------------------------------------------------------


@kernel
def _new_workspace(weights: Any) -> Any:
    bias = weights.bias.astype(np.float64)
    bias[START] = -np.inf
    shift, size = bias.max(), bias.size
    mass = np.exp(bias - shift)
    extra, touched, is_touched = np.zeros(size), np.empty(size, np.int32), np.zeros(size, np.bool_)
    return Workspace(bias, mass, shift, mass.sum(), bias.copy(), mass.copy(), extra, touched, is_touched)


@kernel
def _add_head(weights: Any, groups: Any, t: int, work: Any) -> Any:
    """Add the head's columns; return shift and total of the masses, and whether every word has changed."""
    dense, total = weights.windows.size > 0, work.total
    score, mass = work.score, work.mass
    for k in range(groups.begin[t], groups.tail[t]):
        j, x = groups.feature[k], groups.value[k]
        for i in range(weights.begin[j], weights.begin[j + 1]):
            w = weights.word[i]
            score[w] += x * weights.pairs[i]
            if not dense:
                new = math.exp(score[w] - work.shift)
                total += new - mass[w]
                mass[w] = new
        if weights.window_start[j] >= 0:
            window = weights.windows[weights.window_start[j] : weights.window_start[j] + score.size]
            for w in range(score.size):
                score[w] += x * window[w]
    if not dense and work.total * MIN_REMAINDER < total < np.inf:
        return work.shift, total, False
    if groups.begin[t] == groups.tail[t]:
        return work.shift, work.total, False
    shift, total = score.max(), 0.0
    for w in range(score.size):
        mass[w] = math.exp(score[w] - shift)
        total += mass[w]
    return shift, total, True


@kernel
def _remove_head(weights: Any, groups: Any, t: int, work: Any, dense: bool) -> None:
    """Restore the bias."""
    if dense:
        work.score[:] = work.bias
        work.mass[:] = work.bias_mass
        return
    for k in range(groups.begin[t], groups.tail[t]):
        j = groups.feature[k]
        for i in range(weights.begin[j], weights.begin[j + 1]):
            w = weights.word[i]
            work.score[w], work.mass[w] = work.bias[w], work.bias_mass[w]


@kernel
def _add_tail(weights: Any, groups: Any, t: int, work: Any) -> int:
    """Add the tail's columns; return the number of words that they touch."""
    touched = 0
    for k in range(groups.tail[t], groups.begin[t + 1]):
        j, x = groups.feature[k], groups.value[k]
        for i in range(weights.begin[j], weights.begin[j + 1]):
            w = weights.word[i]
            if not work.is_touched[w]:
                work.is_touched[w] = True
                work.touched[touched] = w
                touched += 1
            work.extra[w] += x * weights.pairs[i]
    return touched


@kernel
def _remove_tail(work: Any, touched: int) -> None:
    for k in range(touched):
        work.extra[work.touched[k]] = 0.0
        work.is_touched[work.touched[k]] = False


@kernel
def _log_normalizer(work: Any, touched: int, shift: float, total: float) -> float:
    """Return log sum_w exp(s_w): the sum of the head, corrected at the words that the tail touches."""
    score, extra, mass, corrected = work.score, work.extra, work.mass, total
    for k in range(touched):
        w = work.touched[k]
        corrected += math.exp(score[w] + extra[w] - shift) - mass[w]
    if total * MIN_REMAINDER < corrected < np.inf:
        return shift + math.log(corrected)
    highest = (score + extra).max()
    return highest + math.log(np.exp(score + extra - highest).sum())


@kernel
def log_probs(weights: Any, groups: Any, target: Any, out: Any, log_normalizer: Any, part: Any) -> None:
    """Compute log p_{e_t} and the log normaliser of all predictions of a range of groups."""
    work = _new_workspace(weights)
    for group in range(part[0], part[1]):
        head = groups.order[groups.first[group]]
        shift, total, dense = _add_head(weights, groups, head, work)
        for k in range(groups.first[group], groups.first[group + 1]):
            t = groups.order[k]
            touched = _add_tail(weights, groups, t, work)
            log_normalizer[t] = _log_normalizer(work, touched, shift, total)
            out[t] = work.score[target[t]] + work.extra[target[t]] - log_normalizer[t]
            _remove_tail(work, touched)
        _remove_head(weights, groups, head, work, dense)


@kernel
def all_scores(weights: Any, begin: Any, feature: Any, value: Any, out: Any) -> None:
    """Compute s of each prediction directly by the equation.  # out: (predictions, |V|)"""
    for t in range(out.shape[0]):
        out[t] = weights.bias
        out[t, START] = -np.inf
        for k in range(begin[t], begin[t + 1]):
            j, x = feature[k], value[k]
            for i in range(weights.begin[j], weights.begin[j + 1]):
                out[t, weights.word[i]] += x * weights.pairs[i]
            if weights.window_start[j] >= 0:
                for w in range(out.shape[1]):
                    out[t, w] += x * weights.windows[weights.window_start[j] + w]


@kernel
def gradients(weights: Any, groups: Any, target: Any, log_normalizer: Any, upstream: Any, out: Any, part: Any) -> None:
    """Add sum_t g_t x_j (onehot(e_t) - p) to the gradient of each column, where g_t is the upstream gradient.

    For a group, sum_t g_t (onehot(e_t) - p) is `error` at the touched words, minus `scale` times the mass of all words.
    """
    work = _new_workspace(weights)
    size = work.score.size
    error, residual = np.zeros(size), np.empty(size)
    changed, is_changed = np.empty(size, np.int32), np.zeros(size, np.bool_)
    base_scale = 0.0
    for group in range(part[0], part[1]):
        head = groups.order[groups.first[group]]
        shift, total, dense = _add_head(weights, groups, head, work)
        scale, count = 0.0, 0
        for k in range(groups.first[group], groups.first[group + 1]):
            t = groups.order[k]
            g, ratio = upstream[t], math.exp(shift - log_normalizer[t])
            touched = _add_tail(weights, groups, t, work)
            if not total * ratio * MIN_REMAINDER < 1.0:  # the common part would drown the differences
                touched, ratio = size, 0.0
                work.touched[:], work.is_touched[:] = np.arange(size), True
            if not work.is_touched[target[t]]:
                work.is_touched[target[t]] = True
                work.touched[touched] = target[t]
                touched += 1
            for i in range(touched):
                w = work.touched[i]
                residual[w] = (w == target[t]) - math.exp(work.score[w] + work.extra[w] - log_normalizer[t])
                error[w] += g * (residual[w] + work.mass[w] * ratio)
                if not is_changed[w]:
                    is_changed[w] = True
                    changed[count] = w
                    count += 1
            for i in range(groups.tail[t], groups.begin[t + 1]):
                j, gx = groups.feature[i], g * groups.value[i]
                for pair in range(weights.begin[j], weights.begin[j + 1]):
                    out.pairs[pair] += gx * residual[weights.word[pair]]
            _remove_tail(work, touched)
            scale += g * ratio
        base_scale += _add_head_gradients(weights, groups, head, work, dense, error, scale, out)
        for i in range(count):
            out.bias[changed[i]] += error[changed[i]]
            error[changed[i]], is_changed[changed[i]] = 0.0, False
        _remove_head(weights, groups, head, work, dense)
    for w in range(size):
        out.bias[w] -= base_scale * work.bias_mass[w]


@kernel
def _add_head_gradients(
    weights: Any, groups: Any, t: int, work: Any, dense: bool, error: Any, scale: float, out: Any
) -> float:
    """Add the gradients of the head's columns for a whole group; return the scale of the bias' own masses."""
    mass = work.mass
    for k in range(groups.begin[t], groups.tail[t]):
        j, x = groups.feature[k], groups.value[k]
        for i in range(weights.begin[j], weights.begin[j + 1]):
            w = weights.word[i]
            out.pairs[i] += x * (error[w] - scale * mass[w])
            if not dense:
                out.bias[w] -= scale * (mass[w] - work.bias_mass[w])
        if weights.window_start[j] >= 0:
            window = out.windows[weights.window_start[j] : weights.window_start[j] + mass.size]
            for w in range(mass.size):
                window[w] += x * (error[w] - scale * mass[w])
    if not dense:
        return scale
    for w in range(mass.size):
        out.bias[w] -= scale * mass[w]
    return 0.0
