"""From a hidden vector to the probability of the next word."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dragoman.text.vocab import START


def never_start(scores: Tensor) -> Tensor:
    """Scores of words with that of `<s>` made impossible: no sentence has it inside.  # (..., |V|)"""
    barred = torch.zeros(scores.shape[-1], dtype=scores.dtype, device=scores.device)
    barred[START] = -torch.inf
    return scores + barred


def word_log_probs(h: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """log p, p = softmax(s), s = W h + b (eq. nnlm:nnlm), over all words.  # (rows, |V|)"""
    return torch.addmm(b, h, W.t()).log_softmax(dim=1)


def target_log_probs(h: Tensor, W: Tensor, b: Tensor, targets: Tensor) -> Tensor:
    """log p of one word in each row, with gradients: what training needs of `word_log_probs`.  # (rows,)"""
    picked: Tensor = _TargetLogProbs.apply(h, W, b, targets)  # type: ignore[no-untyped-call]
    return picked


class _TargetLogProbs(torch.autograd.Function):
    """The scores are kept from forward to backward and turned there, in place, into p - onehot(e_t): one array of
    rows times words in all, where automatic differentiation would make three."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, W: Tensor, b: Tensor, targets: Tensor) -> Tensor:
        scores = torch.addmm(b, h, W.t())  # (rows, |V|)
        log_z = scores.logsumexp(dim=1)  # (rows,)
        ctx.save_for_backward(h, W, targets, log_z)
        ctx.scores = scores if any(ctx.needs_input_grad) else None
        return scores.gather(1, targets[:, None])[:, 0] - log_z

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = gradients  # (rows,) that of log p
        h, W, targets, log_z = ctx.saved_tensors
        scores, ctx.scores = ctx.scores, None
        ds = scores.sub_(log_z[:, None]).exp_().mul_(-g[:, None])  # (rows, |V|)
        ds.scatter_add_(1, targets[:, None], g[:, None])  # g (onehot(e_t) - p)
        return ds @ W, ds.t() @ h, ds.sum(dim=0), None
