"""From a hidden vector to the probability of the next word."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dragoman.data.vocabulary import START

IN_CACHE = 1 << 20  # scores worked on at a time


def never_start(scores: Tensor) -> Tensor:
    """Scores of words with that of `<s>` made impossible: no sentence has it inside.  # (..., |V|)"""
    barred = torch.zeros(scores.shape[-1], dtype=scores.dtype, device=scores.device)
    barred[START] = -torch.inf
    return scores + barred


def word_log_probs(h: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """log p, p = softmax(s), s = W h + b (eq. nnlm:nnlm), over all words.  # (rows, |V|)"""
    return torch.addmm(b, h, W.t()).log_softmax(dim=1)


def target_log_probs(h: Tensor, W: Tensor, b: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """log p of one word in each row, with gradients: what training needs of `word_log_probs`.  # (rows,)

    Smoothed: (1 - smoothing) log p of the word + smoothing times the mean of the log p of all words that can come.
    """
    picked, log_z = target_scores(h, W, b, targets)
    if not smoothing:
        return picked
    return (1 - smoothing) * picked + smoothing * mean_log_prob(h, W, b, log_z)


def target_scores(h: Tensor, W: Tensor, b: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """log p of one word in each row, and log Z, the logarithm of what all were divided by.  # (rows,) each"""
    picked: Tensor
    log_z: Tensor
    picked, log_z = _TargetLogProbs.apply(h, W, b, targets)  # type: ignore[no-untyped-call]
    return picked, log_z


def mean_log_prob(h: Tensor, W: Tensor, b: Tensor, log_z: Tensor) -> Tensor:
    """The mean of the log p of all words that can come.  # (rows,)"""
    share = b.isfinite().to(b) / b.isfinite().sum()  # (|V|,)
    mean_score = h @ (share @ W) + (share * b.nan_to_num(neginf=0.0)).sum()  # (rows,) scores are linear in h
    return mean_score - log_z


class _TargetLogProbs(torch.autograd.Function):
    """log p_w = s_w - log Z of one word w in each row, and log Z.

    Rows times words are far more numbers than anything else in training, so they are written once: in the forward pass,
    some rows at a time that fit the processor's cache, as e = exp(s - m), m being the row's best score. The gradient of
    the scores, ds = g (onehot(w) - e / Z) + g_Z e / Z, is never written down: its two parts go separately into dW and
    dh, and 1 / Z and g are numbers by rows, by which the short rows of h are multiplied instead of the long ones.
    """

    @staticmethod
    def forward(ctx: Any, h: Tensor, W: Tensor, b: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        learning = any(ctx.needs_input_grad)
        at_once = max(16, IN_CACHE // len(W))
        e = h.new_empty((len(h) if learning else min(at_once, len(h)), len(W)))  # (rows, |V|)
        picked, best, z = h.new_empty((3, len(h))).unbind()  # (rows,) each
        for first in range(0, len(h), at_once):
            rows = slice(first, first + at_once)
            part = e[rows] if learning else e[: len(h[rows])]
            torch.addmm(b, h[rows], W.t(), out=part)
            torch.amax(part, dim=1, out=best[rows])
            torch.gather(part, 1, targets[rows, None], out=picked[rows, None])
            torch.sum(part.sub_(best[rows, None]).exp_(), dim=1, out=z[rows])
        log_z = best + z.log()
        ctx.save_for_backward(h, W, targets, z)
        ctx.e = e if learning else None
        return picked - log_z, log_z

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        g, g_z = gradients  # (rows,) those of log p and of log Z
        h, W, targets, z = ctx.saved_tensors
        e, ctx.e = ctx.e, None  # large, so it is not kept any longer than needed
        if e is None:
            raise RuntimeError("the gradient of these log-probabilities was taken already; compute them again")
        of_e = (g_z - g) / z  # (rows,)
        dh = (e @ W).mul_(of_e[:, None]).addcmul_(g[:, None], W[targets])  # (rows, hidden)
        dW = (e.t() @ (h * of_e[:, None])).index_add_(0, targets, h * g[:, None])  # (|V|, hidden)
        db = (of_e @ e).index_add_(0, targets, g)  # (|V|,)
        return dh, dW, db, None
