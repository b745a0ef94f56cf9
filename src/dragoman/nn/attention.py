"""Attention: how much each word of the source matters for the next word (tutorial, section "Attentional Neural MT").

alpha_t = softmax(a_t), a_{t,j} = attn_score(h^(f)_j, h^(e)_t), c_t = H^(f) alpha_t (eqs. attention:attnscore,
attention:softmax, attention:context). Every score is computed over the whole source at once, from keys: what of it does
not depend on the decoder, computed once for each sentence. (The tutorial asks what the combined versions look like.
With the source's vectors as rows of H: dot, H h; bilinear, (H W_a) h; perceptron, tanh(H W_f^T + 1 (W_e h)^T) w_a2.)

Several hypotheses may attend to one sentence: queries come as a grid (sentences, rows of each, length).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import torch
from torch import Generator, Tensor
from torch.autograd.function import once_differentiable

from dragoman.core.errors import DataError
from dragoman.nn.init import glorot, uniform
from dragoman.nn.step_products import Products


class Memory(NamedTuple):
    """What is known of the source sentences before the first word is predicted."""

    vectors: Tensor  # H (sentences, longest, D)
    keys: Tensor  # (sentences, longest, K)
    barred: Tensor  # (sentences, longest) 0, and -inf where padded
    lexical: tuple[Tensor, ...] | None = None  # what a lexicon has for their words: see `layers.lexical`
    believed: tuple[Tensor | None, ...] = ()  # what priors remember of them: see `layers.priors`


class Score(Protocol):
    """One way of scoring: a function of keys and queries, and the parameters in both."""

    def first(self, query: int, vector: int, hidden: int, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        """Parameters for queries and source vectors of these lengths."""
        ...

    def keys(self, parameters: Mapping[str, Tensor], vectors: Tensor) -> Tensor:
        """(sentences, longest, D) -> (sentences, longest, K)"""
        ...

    def query(self, parameters: Mapping[str, Tensor], h: Tensor, products: Products) -> Tensor:
        """What of h^(e)_t is compared with keys.  # (rows, H) -> (rows, K)"""
        ...

    def score(self, parameters: Mapping[str, Tensor], keys: Tensor, q: Tensor, products: Products) -> Tensor:
        """a_t.  # keys: (sentences, longest, K), q: (sentences, rows, K) -> (sentences, rows, longest)"""
        ...


class Dot:
    """attn_score = h^(f)_j . h^(e)_t: no parameters, but both must be of one length."""

    def first(self, query: int, vector: int, hidden: int, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        if query != vector:
            sizes = f"the decoder's has {query} numbers, the source's {vector}"
            remedy = "make them the same, or take bilinear or mlp attention"
            raise DataError(f"dot attention multiplies vectors of one length ({sizes}); {remedy}")
        return {}

    def keys(self, parameters: Mapping[str, Tensor], vectors: Tensor) -> Tensor:
        return vectors

    def query(self, parameters: Mapping[str, Tensor], h: Tensor, products: Products) -> Tensor:
        return h

    def score(self, parameters: Mapping[str, Tensor], keys: Tensor, q: Tensor, products: Products) -> Tensor:
        return products.by_sentence("score", q, keys.transpose(1, 2))  # (sentences, rows, longest)


class Bilinear(Dot):
    """attn_score = h^(f)_j W_a h^(e)_t."""

    def first(self, query: int, vector: int, hidden: int, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        return {"W_a": glorot(vector, query, chance, dtype)}

    def keys(self, parameters: Mapping[str, Tensor], vectors: Tensor) -> Tensor:
        return vectors @ parameters["W_a"]  # (sentences, longest, H)


class Perceptron:
    """attn_score = w_a2 . tanh(W_a1 [h^(e)_t; h^(f)_j]), W_a1 = [W_e, W_f] (Bahdanau et al. 2015)."""

    def first(self, query: int, vector: int, hidden: int, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        return {
            "W_e": glorot(hidden, query, chance, dtype),
            "W_f": glorot(hidden, vector, chance, dtype),
            "w_a2": uniform((hidden,), 1 / math.sqrt(hidden), chance, dtype),
        }

    def keys(self, parameters: Mapping[str, Tensor], vectors: Tensor) -> Tensor:
        return vectors @ parameters["W_f"].t()  # (sentences, longest, A)

    def query(self, parameters: Mapping[str, Tensor], h: Tensor, products: Products) -> Tensor:
        return products.linear("query", h, parameters["W_e"])

    def score(self, parameters: Mapping[str, Tensor], keys: Tensor, q: Tensor, products: Products) -> Tensor:
        scores: Tensor = _PerceptronScore.apply(keys, q, parameters["w_a2"])  # type: ignore[no-untyped-call]
        return scores


class _PerceptronScore(torch.autograd.Function):
    """tanh(keys + q) w: far more numbers than all else in a step of the decoder, so passes over them are counted."""

    @staticmethod
    def forward(ctx: Any, keys: Tensor, q: Tensor, w: Tensor) -> Tensor:
        y = (keys[:, None] + q[:, :, None]).tanh_()  # (sentences, rows, longest, A)
        ctx.save_for_backward(y, w)
        return y @ w  # (sentences, rows, longest)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (da,) = gradients  # (sentences, rows, longest)
        y, w = ctx.saved_tensors
        dw = da.reshape(-1) @ y.flatten(0, 2)  # (A,)
        slope = torch.addcmul(w, y * w, y, value=-1).mul_(da[..., None])  # da w (1 - y^2)
        return slope.sum(dim=1) if slope.shape[1] > 1 else slope[:, 0], slope.sum(dim=2), dw


SCORES: dict[str, Score] = {"dot": Dot(), "bilinear": Bilinear(), "mlp": Perceptron()}


def remember(score: Score, parameters: Mapping[str, Tensor], vectors: Tensor, mask: Tensor) -> Memory:
    """What attention needs of the source, once for each sentence.  # mask: (sentences, longest)"""
    barred = torch.zeros_like(mask, dtype=vectors.dtype).masked_fill_(~mask, -torch.inf)
    return Memory(vectors, score.keys(parameters, vectors), barred)


class Attended(NamedTuple):
    """What some rows look at."""

    alpha: Tensor  # (rows, longest)
    context: Tensor  # (rows, D)
    chosen: Tensor | None = None  # (rows, longest) of hard attention: 1 at the word chosen, or alpha, if none was


Choose = Callable[
    [Tensor], Tensor
]  # from alpha to the weights of the context, of hard attention  # (..., longest) both
EXPECTED = 0.5  # share of the rows that look at all words while hard attention is trained


def likeliest(alpha: Tensor) -> Tensor:
    """The word of the highest weight: 1 there, 0 elsewhere."""
    return torch.zeros_like(alpha).scatter_(-1, alpha.argmax(dim=-1, keepdim=True), 1.0)


def drawn(chance: Generator) -> Choose:
    """A word drawn by its weight; or, half of the time, all words by their weights, which is what is drawn on average
    (Xu et al. 2015). So attention learns where to look before it knows how to choose."""

    def choose(alpha: Tensor) -> Tensor:
        weights = alpha.detach().flatten(0, -2)  # (rows, longest)
        flat = torch.multinomial(weights, 1, generator=chance)
        chosen = torch.zeros_like(weights).scatter_(1, flat, 1.0).view_as(alpha)
        average = torch.rand(alpha.shape[:-1], generator=chance, device=alpha.device) < EXPECTED
        return torch.where(average[..., None], alpha, chosen)

    return choose


def attend(
    score: Score,
    parameters: Mapping[str, Tensor],
    memory: Memory,
    h: Tensor,
    places: Places,
    products: Products,
    bias: Tensor | None = None,
    choose: Choose | None = None,
) -> Attended:
    """alpha_t and c_t of some rows.  # h: (rows, H), bias: (rows, longest)

    c_t = H^(f) alpha_t, or with `choose`, the vector of the one word that is chosen by alpha_t (hard attention).
    """
    q = places.grid(score.query(parameters, h, products))  # (sentences, rows of each, K)
    a = score.score(parameters, memory.keys, q, products) + memory.barred[:, None]  # (sentences, rows of each, longest)
    if bias is not None:
        a = a + places.grid(bias)
    alpha = a.softmax(dim=2)
    chosen = None if choose is None else choose(alpha)
    context = products.by_sentence("context", alpha if chosen is None else chosen, memory.vectors)
    return Attended(places.rows(alpha), places.rows(context), None if chosen is None else places.rows(chosen))


class Places(NamedTuple):
    """Where the rows of sentences stand in a grid of (sentences, rows of each)."""

    sentences: int
    width: int  # most rows that a sentence has
    at: Tensor | None  # (rows,) place of each row in the flat grid; None: they fill it in order

    @classmethod
    def of(cls, sentence: Tensor, sentences: int) -> Places:
        """By the sentence of each row."""
        counts = torch.bincount(sentence, minlength=sentences)  # (sentences,)
        width = int(counts.max())
        order = torch.argsort(sentence, stable=True)
        first = counts.cumsum(0) - counts  # (sentences,) where a sentence's rows begin among the sorted
        within = torch.empty_like(sentence)
        within[order] = torch.arange(len(sentence)) - first[sentence[order]]
        at = sentence * width + within
        full = len(sentence) == sentences * width and bool((at == torch.arange(len(at))).all())
        return cls(sentences, width, None if full else at)

    def grid(self, x: Tensor) -> Tensor:
        """(rows, n) -> (sentences, width, n), 0 where there is no row."""
        if self.at is None:
            return x.view(self.sentences, self.width, -1)
        flat = x.new_zeros(self.sentences * self.width, x.shape[1]).index_copy_(0, self.at.to(x.device), x)
        return flat.view(self.sentences, self.width, -1)

    def spread(self, x: Tensor) -> Tensor:
        """What belongs to sentences, for each of their rows.  # (sentences, ...) -> (rows, ...)"""
        if self.at is not None:
            return x.index_select(0, (self.at // self.width).to(x.device))
        return x if self.width == 1 else x.repeat_interleave(self.width, dim=0)

    def rows(self, grid: Tensor) -> Tensor:
        """(sentences, width, n) -> (rows, n)"""
        flat = grid.flatten(0, 1)
        return flat if self.at is None else flat.index_select(0, self.at.to(flat.device))
