"""Scores, probabilities and gradients of many predictions at once.

s = sum_{j: x_j != 0} W_{.,j} x_j + b,  p = softmax(s)                                (section 4.1, eq. lllm:softmaxsum)
d log p_{e_t} / db = onehot(e_t) - p,  d log p_{e_t} / dW_{.,j} = x_j (onehot(e_t) - p)                   (section 4.3)

Most weights of a sparse model are 0, so most scores are the bias alone, and the sum over all words is one that is
known, corrected at the few words whose score differs. This is done on two levels: predictions that share their *head*
(all features with windows; without any, the feature of most pairs, nearly always the word before) are taken together,
and the head is summed once for all of them; the *tail*, the other features, is corrected for one prediction at a time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.core.kernels import kernel
from dragoman.core.threads import available_cores, parallel_map
from dragoman.data.vocabulary import START
from dragoman.models.loglinear.weights import ActiveFeatures, WeightLayout

MIN_REMAINDER = 1e-6  # a sum that corrections brought below this share of itself has lost its digits


class LogLinearWeights(NamedTuple):
    """All columns of W with their values, and b."""

    begin: NDArray[np.int64]  # see Layout
    word: NDArray[np.int32]
    window_start: NDArray[np.int64]
    bias: NDArray[Any]  # (|V|,)
    pairs: NDArray[Any]  # (pairs,)
    windows: NDArray[Any]


class PredictionGroups(NamedTuple):
    """Predictions in order of their heads; the features of each stand head first."""

    begin: NDArray[np.int64]  # (predictions + 1,) see Active
    feature: NDArray[np.int32]
    value: NDArray[np.float64]
    tail: NDArray[np.int64]  # (predictions,) where the head ends and the tail begins
    order: NDArray[np.int64]  # (predictions,) those of one head are neighbours
    first: NDArray[np.int64]  # (groups + 1,) where each group begins in `order`
    cost: NDArray[np.int64]  # (groups,) weights to be looked at


class WeightGradients(NamedTuple):
    """What weights are to be changed by, of one part of the predictions."""

    bias: NDArray[Any]
    pairs: NDArray[Any]
    windows: NDArray[Any]


class BiasDistribution(NamedTuple):
    """The distribution of a prediction without features."""

    score: NDArray[np.float64]  # (|V|,) b, and -inf for `<s>`
    mass: NDArray[np.float64]  # (|V|,) exp(score - shift)
    shift: float
    total: float  # of the masses


class Workspace(NamedTuple):
    """Where a kernel works: what the features of a group, then of a prediction, make of the base."""

    score: NDArray[np.float64]  # (|V|,) bias and head
    mass: NDArray[np.float64]  # (|V|,) exp(score - shift)
    extra: NDArray[np.float64]  # (|V|,) what the tail adds
    touched: NDArray[np.int32]  # (|V|,) the words to which it adds something
    is_touched: NDArray[np.bool_]  # (|V|,)


def group_predictions(active: ActiveFeatures, layout: WeightLayout, has_windows: bool) -> PredictionGroups:
    """Bring predictions with the same head together."""
    begin, feature, value = active.begin, active.feature.copy(), active.value.copy()
    tail, head = _split_heads(begin, feature, value, layout, has_windows)
    order = np.argsort(head, kind="stable")
    fresh, cost = _group_boundaries(begin, feature, value, tail, order, layout)
    first = np.flatnonzero(fresh)
    cost = np.add.reduceat(cost, first) if len(first) else cost
    return PredictionGroups(begin, feature, value, tail, order, np.append(first, len(order)), cost)


# -- kernels ---------------------------------------------------------------------------------------------------------


@kernel
def _split_heads(begin: Any, feature: Any, value: Any, layout: Any, has_windows: bool) -> Any:
    """Move the head of each prediction to the front; where it ends, and a number that equal heads share."""
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
            _swap(feature, value, _longest_column(layout, feature, begin[t], begin[t + 1]), begin[t])
            head[t] = feature[begin[t]] + 1
            tail[t] += 1
    return tail, head


@kernel
def _longest_column(layout: Any, feature: Any, first: int, last: int) -> int:
    """The place of the feature that has the most pairs."""
    longest, most = first, -1
    for k in range(first, last):
        size = layout.begin[feature[k] + 1] - layout.begin[feature[k]]
        if size > most:
            longest, most = k, size
    return longest


@kernel
def _swap(feature: Any, value: Any, one: int, two: int) -> None:
    feature[one], feature[two] = feature[two], feature[one]
    value[one], value[two] = value[two], value[one]


@kernel
def _group_boundaries(begin: Any, feature: Any, value: Any, tail: Any, order: Any, layout: Any) -> Any:
    """Which predictions have another head than the one before them in order; and what each costs."""
    fresh, cost = np.ones(order.size, np.bool_), np.empty(order.size, np.int64)
    for k in range(order.size):
        t = order[k]
        cost[k] = 16
        if k > 0:
            before = order[k - 1]
            size = tail[t] - begin[t]
            same = size == tail[before] - begin[before]
            i = 0
            while same and i < size:
                one, two = begin[t] + i, begin[before] + i
                same = feature[one] == feature[two] and value[one] == value[two]
                i += 1
            fresh[k] = not same
        for i in range(begin[t] if fresh[k] else tail[t], begin[t + 1]):
            j = feature[i]
            cost[k] += layout.begin[j + 1] - layout.begin[j]
    return fresh, cost


@kernel
def _bias_distribution(bias: Any) -> Any:
    """The bias alone."""
    score = bias.astype(np.float64)
    score[START] = -np.inf
    shift = score.max()
    mass = np.exp(score - shift)
    return BiasDistribution(score, mass, shift, mass.sum())


@kernel
def _new_workspace(base: Any) -> Any:
    size = base.score.size
    return Workspace(
        base.score.copy(), base.mass.copy(), np.zeros(size), np.empty(size, np.int32), np.zeros(size, np.bool_)
    )


@kernel
def _add_head(weights: Any, groups: Any, t: int, base: Any, bench: Any) -> Any:
    """Add the head's columns to the base. Returns shift and total, and whether every word was touched."""
    dense = weights.windows.size > 0
    total = base.total
    score, mass = bench.score, bench.mass
    for k in range(groups.begin[t], groups.tail[t]):
        j, x = groups.feature[k], groups.value[k]
        for i in range(weights.begin[j], weights.begin[j + 1]):
            w = weights.word[i]
            score[w] += x * weights.pairs[i]
            if not dense:
                new = math.exp(score[w] - base.shift)
                total += new - mass[w]
                mass[w] = new
        if weights.window_start[j] >= 0:
            window = weights.windows[weights.window_start[j] : weights.window_start[j] + score.size]
            for w in range(score.size):
                score[w] += x * window[w]
    if not dense and base.total * MIN_REMAINDER < total < np.inf:
        return base.shift, total, False
    if groups.begin[t] == groups.tail[t]:
        return base.shift, base.total, False
    shift, total = score.max(), 0.0
    for w in range(score.size):
        mass[w] = math.exp(score[w] - shift)
        total += mass[w]
    return shift, total, True


@kernel
def _remove_head(weights: Any, groups: Any, t: int, base: Any, bench: Any, dense: bool) -> None:
    """Back to the base."""
    if dense:
        bench.score[:] = base.score
        bench.mass[:] = base.mass
        return
    for k in range(groups.begin[t], groups.tail[t]):
        j = groups.feature[k]
        for i in range(weights.begin[j], weights.begin[j + 1]):
            w = weights.word[i]
            bench.score[w], bench.mass[w] = base.score[w], base.mass[w]


@kernel
def _add_tail(weights: Any, groups: Any, t: int, bench: Any) -> int:
    """Add the columns of the tail; how many words they touch."""
    touched = 0
    for k in range(groups.tail[t], groups.begin[t + 1]):
        j, x = groups.feature[k], groups.value[k]
        for i in range(weights.begin[j], weights.begin[j + 1]):
            w = weights.word[i]
            if not bench.is_touched[w]:
                bench.is_touched[w] = True
                bench.touched[touched] = w
                touched += 1
            bench.extra[w] += x * weights.pairs[i]
    return touched


@kernel
def _touch_all(bench: Any) -> int:
    """Take every word for touched, where a sum must be taken anew."""
    for w in range(bench.touched.size):
        bench.touched[w] = w
        bench.is_touched[w] = True
    return bench.touched.size


@kernel
def _remove_tail(bench: Any, touched: int) -> None:
    for k in range(touched):
        bench.extra[bench.touched[k]] = 0.0
        bench.is_touched[bench.touched[k]] = False


@kernel
def _log_sum(bench: Any, touched: int, shift: float, total: float) -> float:
    """log sum_w exp(s_w): the sum of the head, corrected at the words that the tail touched."""
    corrected = total
    for k in range(touched):
        w = bench.touched[k]
        corrected += math.exp(bench.score[w] + bench.extra[w] - shift) - bench.mass[w]
    if total * MIN_REMAINDER < corrected < np.inf:
        return shift + math.log(corrected)
    highest = (bench.score + bench.extra).max()
    return highest + math.log(np.exp(bench.score + bench.extra - highest).sum())


@kernel
def log_probs(weights: Any, groups: Any, target: Any, first: int, last: int, out: Any, log_sum: Any) -> None:
    """log p_{e_t} of the predictions of these groups, and the log of what they were divided by."""
    base = _bias_distribution(weights.bias)
    bench = _new_workspace(base)
    for group in range(first, last):
        head = groups.order[groups.first[group]]
        shift, total, dense = _add_head(weights, groups, head, base, bench)
        for k in range(groups.first[group], groups.first[group + 1]):
            t = groups.order[k]
            touched = _add_tail(weights, groups, t, bench)
            log_sum[t] = _log_sum(bench, touched, shift, total)
            out[t] = bench.score[target[t]] + bench.extra[target[t]] - log_sum[t]
            _remove_tail(bench, touched)
        _remove_head(weights, groups, head, base, bench, dense)


@kernel
def gradients(
    weights: Any, groups: Any, target: Any, first: int, last: int, log_sum: Any, upstream: Any, out: Any
) -> None:
    """Add sum_t g_t x_j (onehot(e_t) - p) to the gradient of each column, g_t being what comes from above.

    `pull` is sum_t g_t (onehot(e_t) - p) of a group, but for what all its words share, `spent` times their mass.
    """
    base = _bias_distribution(weights.bias)
    bench = _new_workspace(base)
    size = base.score.size
    pull, residual = np.zeros(size), np.empty(size)
    pulled, is_pulled = np.empty(size, np.int32), np.zeros(size, np.bool_)
    spent_on_base = 0.0
    for group in range(first, last):
        head = groups.order[groups.first[group]]
        shift, total, dense = _add_head(weights, groups, head, base, bench)
        spent, count = 0.0, 0
        for k in range(groups.first[group], groups.first[group + 1]):
            t = groups.order[k]
            g, ratio = upstream[t], math.exp(shift - log_sum[t])
            touched = _add_tail(weights, groups, t, bench)
            if not total * ratio * MIN_REMAINDER < 1.0:  # what the words share would drown what they do not
                touched, ratio = _touch_all(bench), 0.0
            if not bench.is_touched[target[t]]:
                bench.is_touched[target[t]] = True
                bench.touched[touched] = target[t]
                touched += 1
            for i in range(touched):
                w = bench.touched[i]
                residual[w] = (w == target[t]) - math.exp(bench.score[w] + bench.extra[w] - log_sum[t])
                pull[w] += g * (residual[w] + bench.mass[w] * ratio)
                if not is_pulled[w]:
                    is_pulled[w] = True
                    pulled[count] = w
                    count += 1
            _add_tail_gradients(weights, groups, t, g, residual, out)
            _remove_tail(bench, touched)
            spent += g * ratio
        spent_on_base += _add_head_gradients(weights, groups, head, base, bench, dense, pull, spent, out)
        for i in range(count):
            out.bias[pulled[i]] += pull[pulled[i]]
            pull[pulled[i]], is_pulled[pulled[i]] = 0.0, False
        _remove_head(weights, groups, head, base, bench, dense)
    for w in range(size):
        out.bias[w] -= spent_on_base * base.mass[w]


@kernel
def _add_tail_gradients(weights: Any, groups: Any, t: int, g: float, residual: Any, out: Any) -> None:
    """x_j (onehot - p), where the feature has weights."""
    for k in range(groups.tail[t], groups.begin[t + 1]):
        j, x = groups.feature[k], groups.value[k]
        for i in range(weights.begin[j], weights.begin[j + 1]):
            out.pairs[i] += g * x * residual[weights.word[i]]


@kernel
def _add_head_gradients(
    weights: Any, groups: Any, t: int, base: Any, bench: Any, dense: bool, pull: Any, spent: float, out: Any
) -> float:
    """The same for the head, of all predictions of a group together; what is left to be spent on the base."""
    mass = bench.mass
    for k in range(groups.begin[t], groups.tail[t]):
        j, x = groups.feature[k], groups.value[k]
        for i in range(weights.begin[j], weights.begin[j + 1]):
            w = weights.word[i]
            out.pairs[i] += x * (pull[w] - spent * mass[w])
            if not dense:
                out.bias[w] -= spent * (mass[w] - base.mass[w])
        if weights.window_start[j] >= 0:
            window = out.windows[weights.window_start[j] : weights.window_start[j] + mass.size]
            for w in range(mass.size):
                window[w] += x * (pull[w] - spent * mass[w])
    if not dense:
        return spent
    for w in range(mass.size):
        out.bias[w] -= spent * mass[w]
    return 0.0


@kernel
def all_scores(weights: Any, begin: Any, feature: Any, value: Any, out: Any) -> None:
    """s of each prediction, word by word: the equation as it stands.  # out: (predictions, |V|)"""
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


MIN_THREAD_COST = 1 << 16  # weights to be looked at that are worth a thread


def target_log_probs(
    bias: Tensor,
    pairs: Tensor,
    windows: Tensor,
    layout: WeightLayout,
    groups: PredictionGroups,
    target: NDArray[np.int32],
) -> Tensor:
    """log p_{e_t} of every prediction; gradients flow to the three kinds of weights.  # (predictions,) float64"""
    return cast(Tensor, _TargetLogProbs.apply(bias, pairs, windows, layout, groups, target))  # type: ignore[no-untyped-call]


class _TargetLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        bias: Tensor,
        pairs: Tensor,
        windows: Tensor,
        layout: WeightLayout,
        groups: PredictionGroups,
        target: NDArray[Any],
    ) -> Tensor:
        weights = LogLinearWeights(*layout, *(tensor.detach().numpy() for tensor in (bias, pairs, windows)))
        out, log_sum = np.empty(len(target)), np.empty(len(target))
        parallel_map(lambda part: log_probs(weights, groups, target, *part, out, log_sum), _parts(groups))
        ctx.save_for_backward(bias, pairs, windows)
        ctx.rest = layout, groups, target, log_sum
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        layout, groups, target, log_sum = ctx.rest
        weights = LogLinearWeights(*layout, *(tensor.detach().numpy() for tensor in ctx.saved_tensors))
        above = np.ascontiguousarray(upstream.numpy(), np.float64)

        def work(part: tuple[int, int]) -> WeightGradients:
            out = WeightGradients(*(np.zeros_like(array) for array in (weights.bias, weights.pairs, weights.windows)))
            gradients(weights, groups, target, *part, log_sum, above, out)
            return out

        first, *others = parallel_map(work, _parts(groups))
        for other in others:  # always in this order, so that sums are the same to the bit
            for total, part in zip(first, other, strict=True):
                total += part
        return (*(torch.from_numpy(array) for array in first), None, None, None)


def _parts(groups: PredictionGroups) -> list[tuple[int, int]]:
    """The groups in as many parts as there are threads, each about as much work."""
    done = np.cumsum(groups.cost)
    total = int(done[-1]) if len(done) else 0
    parts = max(1, min(available_cores(), total // MIN_THREAD_COST))
    cuts = np.searchsorted(done, [total * part // parts for part in range(1, parts)])
    edges = [0, *cuts.tolist(), len(done)]
    return list(zip(edges[:-1], edges[1:], strict=True))
