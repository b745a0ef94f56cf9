"""Output layers: from a hidden vector to the probability of the next word.

`FullSoftmax` scores all words at once. `ClassFactoredSoftmax` scores classes and the words of one class (Goodman 2001).
The matrix of a tied output layer is the embedding, which the model passes at each call.

What is the ideal class size (the tutorial's question)? With classes of equal size the cost |C| + |V| / |C| is least
where its derivative 1 - |V| / |C|^2 is 0: at sqrt(|V|) classes of sqrt(|V|) words, 2 sqrt(|V|) in all. Classes need not
have equal sizes: the expected cost, |C| + sum_c P(c) |V_c|, is lower if frequent words are in small classes.
`frequency_classes` builds both kinds, and `expected_cost` compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from dragoman.data.vocabulary import END, START
from dragoman.nn.int8 import Int8Matrix, Int8Tensor
from dragoman.nn.layers import empty_linear, glorot_
from dragoman.nn.products import GradientContext, linear, matmul
from dragoman.nn.step_products import product_dtype

CACHE_SIZE = 1 << 21  # scores computed at a time
MAX_COPIES = 4  # of each word's parameters on average, for products with the words of each sentence


class WordSubset(NamedTuple):
    """Some words for each sentence of a batch, and their parameters, unless it is better to score all words.

    The words are on the CPU, where scores are compared; parameters are on the model's device.
    """

    words: Tensor  # (sentences, n)
    weights: Tensor | None = None  # (sentences, inputs, n)
    bias: Tensor | None = None  # (sentences, 1, n)
    lexicon_probs: Tensor | None = None  # (sentences, longest, n) L(word | f_j), if there is a lexicon

    def scores(self, x: Tensor) -> Tensor:
        """Return log p of the words up to a constant per row.  # (sentences, width, inputs) -> (sentences, width, n)"""
        assert self.weights is not None and self.bias is not None
        return torch.baddbmm(self.bias, x, self.weights)


def may_copy(words: Tensor, vocab_size: int) -> bool:
    """Return whether it pays to copy the parameters of words of each sentence.  # words: (sentences, n)"""
    return words.numel() <= MAX_COPIES * vocab_size


class FullSoftmax(nn.Module):
    """p = softmax(W x + b) over all words except `<s>` (eq. nnlm:nnlm).

    In all methods, x is the hidden vector, or with direct connections the hidden vector and the word vectors, and `tied`
    is the matrix of a tied layer.  # (rows, inputs), (|V|, hidden)
    """

    def __init__(
        self,
        words: int,  # |V|
        hidden_size: int,
        *,
        tied: bool = False,  # the layer has no matrix; the embedding is passed at each call
        direct_size: int = 0,  # length of the word vectors that are connected directly; 0 for none
    ):
        super().__init__()
        self.weight = None if tied else empty_linear(hidden_size, words, bias=False)
        self.direct = empty_linear(direct_size, words, bias=False) if direct_size else None
        self.bias = nn.Parameter(torch.zeros(words))
        start_mask = torch.zeros(words)
        start_mask[START] = -torch.inf
        self.start_mask = nn.Buffer(start_mask, persistent=False)

    def reset_parameters(self, generator: Generator) -> None:
        if self.weight is not None:
            glorot_(self.weight.weight, generator)
        if self.direct is not None:
            nn.init.zeros_(self.direct.weight)
        nn.init.zeros_(self.bias)

    def start_as_unigram(self, log_unigram: Tensor) -> None:
        """Set the biases so that an untrained model predicts these probabilities.  # (|V|,)"""
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
        """Return log p of all words; that of `<s>` is -inf.  # (rows, |V|)"""
        W, b = self.weights(tied)
        return linear(x, W, b).log_softmax(dim=1)

    def target_log_probs(
        self, x: Tensor, targets: Tensor, label_smoothing: float = 0.0, tied: Tensor | None = None
    ) -> Tensor:
        """Return log p of one word per row, for training.  # targets: (rows,) -> (rows,)

        With label smoothing: (1 - label_smoothing) log p + label_smoothing times the mean log p of all words.
        """
        return target_log_probs(x, *self.weights(tied), targets, label_smoothing)

    def subset(self, words: Tensor, tied: Tensor | None = None) -> WordSubset:
        """Return the parameters of some words for each sentence; `<s>` has no probability.  # words: (sentences, n)

        They are copied, so for many words in all, which take long to read, it is better to score all words once.
        """
        W, b = self.weights(tied)
        if not may_copy(words, len(b)) or isinstance(W, Int8Tensor):  # whose products round the inputs
            return WordSubset(words)
        ids = words.to(b.device)
        return WordSubset(words, nn.functional.embedding(ids, W).transpose(1, 2), b.take(ids).unsqueeze(1))


@dataclass(frozen=True, eq=False)
class WordClasses:
    """The class of each word of a vocabulary."""

    class_of: Tensor  # (|V|,)
    sizes: list[int]  # (|C|,) |V_c| of each class
    words: Tensor  # (|V|,) the words, class by class
    positions: Tensor  # (|V|,) the position of each word in `words`
    positions_within: Tensor  # (|V|,) the position of each word within its class

    @classmethod
    def from_numbers(cls, numbers: NDArray[np.integer]) -> Self:
        """Create classes from any numbers. `<s>`, which has no probability, joins the class of `</s>`.

        >>> WordClasses.from_numbers(np.array([0, 1, 2, 9, 2])).class_of.tolist()
        [0, 0, 1, 2, 1]
        """
        joined = np.where(np.arange(len(numbers)) == START, numbers[END], numbers)
        class_of = torch.from_numpy(np.unique(joined, return_inverse=True)[1].astype(np.int64))
        sizes = torch.bincount(class_of)
        words = torch.argsort(class_of, stable=True)
        positions = torch.argsort(words)
        return cls(class_of, sizes.tolist(), words, positions, positions - (sizes.cumsum(0) - sizes)[class_of])

    def __len__(self) -> int:
        """|C|."""
        return len(self.sizes)


def frequency_classes(counts: NDArray[np.integer], classes: int | None = None, power: float = 0.0) -> WordClasses:
    """Divide words in order of frequency into about this many classes (default: sqrt(|V|)) of equal weight.

    A word weighs count ** power: with 0 classes have equal sizes, with 1 equal probabilities. In batches, which have
    words of most classes, classes of equal size were as fast and predicted better.

    >>> frequency_classes(np.array([0, 9, 1, 4, 3, 1, 1]), classes=2, power=1).class_of.tolist()
    [0, 0, 1, 1, 1, 1, 1]
    >>> frequency_classes(np.array([0, 9, 1, 4, 3, 1, 1]), classes=2, power=0).class_of.tolist()
    [0, 0, 1, 0, 0, 1, 1]
    """
    number = classes or max(1, round(len(counts) ** 0.5))
    order = np.argsort(-counts, kind="stable")
    weights = np.maximum(counts[order], 1).astype(np.float64) ** power
    middles = np.cumsum(weights) - weights / 2
    class_of = np.empty(len(counts), np.int64)
    class_of[order] = middles * number / weights.sum()
    return WordClasses.from_numbers(class_of)


def expected_cost(classes: WordClasses, counts: NDArray[np.integer]) -> float:
    """Return |C| + sum_c P(c) |V_c|: the mean number of scores per token for words of these frequencies.

    >>> expected_cost(WordClasses.from_numbers(np.array([0, 0, 0, 1, 1])), np.array([0, 5, 0, 3, 2]))
    4.5
    """
    sizes = torch.tensor(classes.sizes)[classes.class_of].numpy()
    return len(classes) + float(counts @ sizes / counts.sum())


class ClassFactoredSoftmax(nn.Module):
    """P(e_t | x) = P(c_t | x) P(e_t | c_t, x), where c_t is the class of e_t.

    The distribution is normalised over all words, but training needs only the scores of |C| classes and of the |V_c|
    words of one class.
    """

    def __init__(self, classes: WordClasses, hidden_size: int, *, tied: bool = False, direct_size: int = 0):
        super().__init__()
        words = len(classes.class_of)
        self.within = FullSoftmax(words, hidden_size, tied=tied, direct_size=direct_size)
        self.classes = empty_linear(hidden_size + direct_size, len(classes))  # scores of classes
        self.sizes = classes.sizes  # words of each class
        # Buffers, (|V|,) each; see `WordClasses`.
        self.class_of = nn.Buffer(classes.class_of)
        self.words = nn.Buffer(classes.words, persistent=False)
        self.positions = nn.Buffer(classes.positions, persistent=False)
        self.positions_within = nn.Buffer(classes.positions_within, persistent=False)

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
        scores = linear(x, *self.within.weights(tied))[:, self.words]  # (rows, |V|) class by class
        parts = [part.log_softmax(dim=1) for part in scores.split(self.sizes, dim=1)]  # log P(e | c, x)
        return torch.cat(parts, dim=1)[:, self.positions] + class_log_probs[:, self.class_of]

    def target_log_probs(
        self, x: Tensor, targets: Tensor, label_smoothing: float = 0.0, tied: Tensor | None = None
    ) -> Tensor:
        """Rows are sorted by the class of their word, and each class present is a separate softmax. Both softmaxes
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
            self.positions_within[targets[order]].split(rows),
            strict=True,
        )
        within = [target_log_probs(*part, label_smoothing) for part in parts if len(part[0])]
        return result + torch.cat([result[:0], *within])[torch.argsort(order)]


OutputLayer = FullSoftmax | ClassFactoredSoftmax


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
    if isinstance(W, Int8Tensor):
        return _int8_target_scores(x, W, b, targets)
    dtype = product_dtype(x) or W.dtype
    with torch.autocast(x.device.type, enabled=False):
        log_probs, log_z = _TargetLogProbs.apply(x, W, b, targets, dtype)  # type: ignore[no-untyped-call]
    return log_probs, log_z


def _int8_target_scores(x: Tensor, W: Int8Tensor, b: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """`target_scores` of a matrix of 8-bit integers, without gradients."""
    matrix, rows = Int8Matrix(W, b), max(16, CACHE_SIZE // len(b))
    log_probs, log_z = x.new_empty((2, len(x))).unbind()
    for first in range(0, len(x), rows):
        part = slice(first, first + rows)
        s = matrix(x[part])  # (rows, |V|)
        torch.logsumexp(s, dim=1, out=log_z[part])
        log_probs[part] = s.gather(1, targets[part, None])[:, 0] - log_z[part]
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
    def forward(
        ctx: GradientContext, x: Tensor, W: Tensor, b: Tensor, targets: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        needs_grad, is_full = any(ctx.needs_input_grad), dtype == b.dtype
        x, W = x.to(dtype), W.to(dtype)
        rows_at_once = max(16, CACHE_SIZE // len(W))
        e = x.new_empty((len(x) if needs_grad else 0, len(W)))  # (rows, |V|)
        target_score, best, z = b.new_empty((3, len(x))).unbind()  # (rows,) each
        for first in range(0, len(x), rows_at_once):
            rows = slice(first, first + rows_at_once)
            s = linear(x[rows], W, b) if is_full else linear(x[rows], W) + b
            torch.amax(s, dim=1, out=best[rows])
            torch.gather(s, 1, targets[rows, None], out=target_score[rows, None])
            exps = torch.exp(s.sub_(best[rows, None]), out=e[rows] if needs_grad and is_full else s)
            torch.sum(exps, dim=1, out=z[rows])
            if needs_grad and not is_full:
                e[rows] = exps
        log_z = best + z.log()
        ctx.save_for_backward(x, W, targets, z)
        ctx.e = e if needs_grad else None
        return target_score - log_z, log_z

    @staticmethod
    def backward(ctx: GradientContext, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        g, g_z = gradients  # (rows,) of log p and of log Z
        x, W, targets, z = ctx.saved_tensors
        e, ctx.e = ctx.e, None  # release the large tensor
        if e is None:
            raise RuntimeError("the gradient of these log-probabilities was taken already; compute them again")
        ds = (g_z - g) / z  # (rows,) gradient of the scores, divided by e
        dx = matmul(e, W).to(g.dtype).mul_(ds[:, None]).addcmul_(g[:, None], W[targets].to(g.dtype))  # (rows, inputs)
        dW = matmul(e.t(), (x * ds[:, None]).to(x.dtype)).to(g.dtype)  # (|V|, inputs)
        dW.index_add_(0, targets, x * g[:, None])
        db = (ds.to(e.dtype) @ e).to(g.dtype).index_add_(0, targets, g)  # (|V|,)
        return dx, dW, db, None, None
