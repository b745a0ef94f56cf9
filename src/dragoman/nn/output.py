"""Output layers: from a hidden vector to the probability of the next word.

`FullSoftmax` scores all words at once. `ClassFactoredSoftmax` scores classes and the words of one class (Goodman 2001).
The matrix of a tied output layer is the embedding, which the model passes at each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
from torch import Generator, Tensor, nn

from dragoman.data.vocabulary import START
from dragoman.nn.init import empty_linear, glorot_
from dragoman.nn.word_classes import WordClasses

CACHE_SIZE = 1 << 20  # scores computed at a time


class WordSubset(NamedTuple):
    """Some words of the vocabulary and how to score them."""

    words: Tensor  # (n,)
    scores: Callable[[Tensor], Tensor]  # (rows, inputs) -> (rows, n)


class OutputLayer(Protocol):
    """The interface of output layers, which are torch modules.

    `x` is the hidden vector, or with direct connections the hidden vector and the word vectors.  # (rows, inputs)
    `tied` is the matrix of a tied layer.  # (|V|, hidden)
    """

    def reset_parameters(self, generator: Generator) -> None:
        """Draw initial parameters."""
        ...

    def start_as_unigram(self, log_unigram: Tensor) -> None:
        """Set the biases so that an untrained model predicts these probabilities.  # (|V|,)"""
        ...

    def log_probs(self, x: Tensor, tied: Tensor | None = None) -> Tensor:
        """Return log p of all words; that of `<s>` is -inf.  # (rows, |V|)"""
        ...

    def target_log_probs(
        self, x: Tensor, targets: Tensor, label_smoothing: float = 0.0, tied: Tensor | None = None
    ) -> Tensor:
        """Return log p of one word per row, for training.  # targets: (rows,) -> (rows,)

        With label smoothing: (1 - label_smoothing) log p + label_smoothing times the mean log p of all words.
        """
        ...

    def subset(self, words: Tensor, tied: Tensor | None = None) -> WordSubset:
        """Prepare the scores of some words: log p up to a constant per row.  # words: (n,)"""
        ...


class FullSoftmax(nn.Module):
    """p = softmax(W x + b) over all words except `<s>` (eq. nnlm:nnlm).

    Args:
        words: Size of the vocabulary, |V|.
        hidden_size: Length of the hidden vector.
        tied: The layer has no matrix; the embedding is passed at each call.
        direct_size: Length of the word vectors that are connected directly; 0 for none.
    """

    def __init__(
        self,
        words: int,
        hidden_size: int,
        *,
        tied: bool = False,
        direct_size: int = 0,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.weight = None if tied else empty_linear(hidden_size, words, bias=False, dtype=dtype)
        self.direct = empty_linear(direct_size, words, bias=False, dtype=dtype) if direct_size else None
        self.bias = nn.Parameter(torch.zeros(words, dtype=dtype))
        start_mask = torch.zeros(words, dtype=dtype)
        start_mask[START] = -torch.inf
        self.register_buffer("start_mask", start_mask, persistent=False)
        self.start_mask: Tensor

    def reset_parameters(self, generator: Generator) -> None:
        if self.weight is not None:
            glorot_(self.weight.weight, generator)
        if self.direct is not None:
            nn.init.zeros_(self.direct.weight)
        nn.init.zeros_(self.bias)

    def start_as_unigram(self, log_unigram: Tensor) -> None:
        with torch.no_grad():
            self.bias.copy_(log_unigram)

    def weights(self, tied: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return W and b; the bias of `<s>` is -inf.  # (|V|, inputs), (|V|,)"""
        W = tied if self.weight is None else self.weight.weight
        assert W is not None, "a tied output layer needs the embedding"
        if self.direct is not None:
            W = torch.cat([W, self.direct.weight], dim=1)
        return W, self.bias + self.start_mask

    def log_probs(self, x: Tensor, tied: Tensor | None = None) -> Tensor:
        W, b = self.weights(tied)
        return nn.functional.linear(x, W, b).log_softmax(dim=1)

    def target_log_probs(
        self, x: Tensor, targets: Tensor, label_smoothing: float = 0.0, tied: Tensor | None = None
    ) -> Tensor:
        return target_log_probs(x, *self.weights(tied), targets, label_smoothing)

    def subset(self, words: Tensor, tied: Tensor | None = None) -> WordSubset:
        W, b = (part[words.to(part.device)] for part in self.weights(tied))
        return WordSubset(words, lambda x: nn.functional.linear(x, W, b))


class ClassFactoredSoftmax(nn.Module):
    """P(e_t | x) = P(c_t | x) P(e_t | c_t, x), where c_t is the class of e_t.

    The distribution is normalised over all words, but training needs only the scores of |C| classes and of the |V_c|
    words of one class.
    """

    def __init__(
        self,
        classes: WordClasses,
        hidden_size: int,
        *,
        tied: bool = False,
        direct_size: int = 0,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.within = FullSoftmax(
            len(classes.class_of), hidden_size, tied=tied, direct_size=direct_size, dtype=dtype
        )  # scores of words
        self.classes = empty_linear(hidden_size + direct_size, len(classes), dtype=dtype)  # scores of classes
        self.sizes = classes.sizes  # words of each class
        self.register_buffer("class_of", classes.class_of)
        for name in ("words", "places", "places_within"):
            self.register_buffer(name, getattr(classes, name), persistent=False)
        self.class_of: Tensor  # (|V|,), as are the following; see `WordClasses`
        self.words: Tensor
        self.places: Tensor
        self.places_within: Tensor

    @property
    def word_classes(self) -> WordClasses:
        return WordClasses(self.class_of)

    def reset_parameters(self, generator: Generator) -> None:
        self.within.reset_parameters(generator)
        nn.init.zeros_(self.classes.weight)
        nn.init.zeros_(self.classes.bias)

    def start_as_unigram(self, log_unigram: Tensor) -> None:
        self.within.start_as_unigram(log_unigram)
        with torch.no_grad():
            probs = torch.zeros_like(self.classes.bias).index_add_(0, self.class_of, log_unigram.exp())
            self.classes.bias.copy_(probs.log())

    def log_probs(self, x: Tensor, tied: Tensor | None = None) -> Tensor:
        class_log_probs = self.classes(x).log_softmax(dim=1)  # (rows, |C|)
        scores = nn.functional.linear(x, *self.within.weights(tied))[:, self.words]  # (rows, |V|) class by class
        parts = [part.log_softmax(dim=1) for part in scores.split(self.sizes, dim=1)]  # log P(e | c, x)
        return torch.cat(parts, dim=1)[:, self.places] + class_log_probs[:, self.class_of]

    def target_log_probs(
        self, x: Tensor, targets: Tensor, label_smoothing: float = 0.0, tied: Tensor | None = None
    ) -> Tensor:
        """Rows are sorted by the class of their word, and each class present is a softmax of its own. Both softmaxes
        are smoothed."""
        W, b = self.within.weights(tied)
        class_of = self.class_of[targets]  # (rows,)
        result = target_log_probs(x, self.classes.weight, self.classes.bias, class_of, label_smoothing)
        order = torch.argsort(class_of, stable=True)
        rows = torch.bincount(class_of, minlength=len(self.sizes)).tolist()
        parts = zip(
            x[order].split(rows),
            W.index_select(0, self.words).split(self.sizes),
            b.index_select(0, self.words).split(self.sizes),
            self.places_within[targets[order]].split(rows),
            strict=True,
        )
        within = [target_log_probs(*part, label_smoothing) for part in parts if len(part[0])]
        return result + torch.cat([result[:0], *within])[torch.argsort(order)]

    def subset(self, words: Tensor, tied: Tensor | None = None) -> WordSubset:
        """Scores of some words cost as much as those of all, because words are normalised within their classes."""
        columns = words.to(self.class_of.device)
        return WordSubset(words, lambda x: self.log_probs(x, tied)[:, columns])


# -- log probabilities of targets --------------------------------------------------------------------------------------


def target_log_probs(x: Tensor, W: Tensor, b: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Return log softmax(W x + b) of one word per row.  # (rows,)"""
    log_probs, log_z = target_scores(x, W, b, targets)
    if not label_smoothing:
        return log_probs
    return (1 - label_smoothing) * log_probs + label_smoothing * mean_log_prob(x, W, b, log_z)


def target_scores(x: Tensor, W: Tensor, b: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return log p of one word per row, and log Z, the logarithm of the normaliser.  # (rows,) each"""
    log_probs: Tensor
    log_z: Tensor
    with torch.autocast(x.device.type, enabled=False):
        log_probs, log_z = _TargetLogProbs.apply(x.to(W.dtype), W, b, targets)  # type: ignore[no-untyped-call]
    return log_probs, log_z


def mean_log_prob(x: Tensor, W: Tensor, b: Tensor, log_z: Tensor) -> Tensor:
    """Return the mean log p of all words that are possible.  # (rows,)"""
    share = b.isfinite().to(b) / b.isfinite().sum()  # (|V|,)
    mean_score = x @ (share @ W) + (share * b.nan_to_num(neginf=0.0)).sum()  # (rows,) scores are linear in x
    return mean_score - log_z


class _TargetLogProbs(torch.autograd.Function):
    """log p_w = s_w - log Z of one word w per row, and log Z.

    The scores of all words are by far the largest tensor in training, so they are written only once: in the forward
    pass, for as many rows at a time as fit the processor's cache, as e = exp(s - m), where m is the row's best score.
    The gradient of the scores, ds = g (onehot(w) - e / Z) + g_Z e / Z, is never stored: its two parts go separately
    into dW and dx. 1 / Z and g are numbers per row, which multiply the short rows of x instead of the long ones.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, W: Tensor, b: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        needs_grad = any(ctx.needs_input_grad)
        rows_at_once = max(16, CACHE_SIZE // len(W))
        e = x.new_empty((len(x) if needs_grad else min(rows_at_once, len(x)), len(W)))  # (rows, |V|)
        target_score, best, z = x.new_empty((3, len(x))).unbind()  # (rows,) each
        for first in range(0, len(x), rows_at_once):
            rows = slice(first, first + rows_at_once)
            part = e[rows] if needs_grad else e[: len(x[rows])]
            torch.addmm(b, x[rows], W.t(), out=part)
            torch.amax(part, dim=1, out=best[rows])
            torch.gather(part, 1, targets[rows, None], out=target_score[rows, None])
            torch.sum(part.sub_(best[rows, None]).exp_(), dim=1, out=z[rows])
        log_z = best + z.log()
        ctx.save_for_backward(x, W, targets, z)
        ctx.e = e if needs_grad else None
        return target_score - log_z, log_z

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        g, g_z = gradients  # (rows,) of log p and of log Z
        x, W, targets, z = ctx.saved_tensors
        e, ctx.e = ctx.e, None  # release the large tensor
        if e is None:
            raise RuntimeError("the gradient of these log-probabilities was taken already; compute them again")
        ds = (g_z - g) / z  # (rows,) gradient of the scores, divided by e
        dx = (e @ W).mul_(ds[:, None]).addcmul_(g[:, None], W[targets])  # (rows, inputs)
        dW = (e.t() @ (x * ds[:, None])).index_add_(0, targets, x * g[:, None])  # (|V|, inputs)
        db = (ds @ e).index_add_(0, targets, g)  # (|V|,)
        return dx, dW, db, None
