"""Attention to source words (tutorial, section "Attentional Neural MT").

alpha_t = softmax(a_t), a_{t,j} = attn_score(h^(f)_j, h^(e)_t), c_t = H^(f) alpha_t (eqs. attention:attnscore,
attention:softmax, attention:context). Scores are computed for the whole source at once, from keys: the part that does
not depend on the decoder, computed once per sentence. (The tutorial asks for the combined forms. With the source
vectors as rows of H: dot, H h; bilinear, (H W_a) h; perceptron, tanh(H W_f^T + 1 (W_e h)^T) w_a2.)

Several hypotheses can attend to one sentence: queries are arranged in a grid (sentences, width, length).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.autograd.function import once_differentiable

from dragoman.core.errors import DataError
from dragoman.data.alignments import WordAlignments
from dragoman.nn.activations import tanh_
from dragoman.nn.attention_priors import AttentionHistory, AttentionPrior, PriorInput
from dragoman.nn.layers import TypedModuleDict, empty_linear, glorot_, uniform_
from dragoman.nn.products import GradientContext
from dragoman.nn.step_products import STEPWISE_PRODUCTS, StepProducts

if TYPE_CHECKING:
    from dragoman.nn.lexicon import Candidates

SOFT_SHARE = 0.5  # share of the rows that use soft attention while hard attention is trained
MIN_ATTENTION = 1e-6  # lower values are raised before a logarithm


class Memory(NamedTuple):
    """What the decoder needs of the source sentences, computed once."""

    vectors: Tensor  # H (sentences, longest, D)
    keys: Tensor  # (sentences, longest, K)
    padding_mask: Tensor  # (sentences, longest) 0 at words, -inf at padding
    prior_features: tuple[Tensor | None, ...] = ()  # of each attention prior  # (sentences, longest, ...)
    candidates: Candidates | None = None  # translations in the lexicon


class AttentionOutput(NamedTuple):
    """Attention of some rows."""

    weights: Tensor  # alpha_t (rows, longest)
    context: Tensor  # c_t (rows, D)
    choice: Tensor | None = None  # hard attention: 1 at the chosen word, or alpha_t where none was chosen


# -- scores ------------------------------------------------------------------------------------------------------------


class AttentionScore(nn.Module, ABC):
    """A scoring function of keys, from the source vectors, and queries, from the decoder's state.

    The number of hidden units is used by `MLPScore` only.
    """

    def __init__(self, query_size: int, vector_size: int, hidden_size: int):
        super().__init__()

    def reset_parameters(self, generator: Generator) -> None:
        """Draw initial parameters, if there are any."""

    @abstractmethod
    def keys(self, vectors: Tensor) -> Tensor:
        """# (sentences, longest, D) -> (sentences, longest, K)"""

    @abstractmethod
    def query(self, h: Tensor, products: StepProducts) -> Tensor:
        """# (rows, H) -> (rows, K)"""

    @abstractmethod
    def forward(self, keys: Tensor, query: Tensor, products: StepProducts = STEPWISE_PRODUCTS) -> Tensor:
        """a_t.  # keys: (sentences, longest, K), query: (sentences, width, K) -> (sentences, width, longest)"""


class _ProductScore(AttentionScore):
    """The product of keys and the decoder's state."""

    def query(self, h: Tensor, products: StepProducts) -> Tensor:
        return h

    def forward(self, keys: Tensor, query: Tensor, products: StepProducts = STEPWISE_PRODUCTS) -> Tensor:
        return products.per_sentence("score", keys.transpose(1, 2), query)


class DotScore(_ProductScore):
    """attn_score = h^(f)_j . h^(e)_t: no parameters, but both vectors need the same length."""

    def __init__(self, query_size: int, vector_size: int, hidden_size: int):
        super().__init__(query_size, vector_size, hidden_size)
        if query_size != vector_size:
            sizes = f"the decoder's have {query_size} numbers, the encoder's {vector_size}"
            raise DataError(
                f"dot attention needs vectors of the same length ({sizes}); use equal sizes, or bilinear or mlp"
            )

    def keys(self, vectors: Tensor) -> Tensor:
        return vectors


class BilinearScore(_ProductScore):
    """attn_score = h^(f)_j W_a h^(e)_t."""

    def __init__(self, query_size: int, vector_size: int, hidden_size: int):
        super().__init__(query_size, vector_size, hidden_size)
        self.bilinear = empty_linear(query_size, vector_size, bias=False)  # W_a

    def reset_parameters(self, generator: Generator) -> None:
        glorot_(self.bilinear.weight, generator)

    def keys(self, vectors: Tensor) -> Tensor:
        return vectors @ self.bilinear.weight  # (sentences, longest, H)


class MLPScore(AttentionScore):
    """attn_score = w_a2 . tanh(W_a1 [h^(e)_t; h^(f)_j]), W_a1 = [W_e, W_f] (Bahdanau et al. 2015)."""

    def __init__(self, query_size: int, vector_size: int, hidden_size: int):
        super().__init__(query_size, vector_size, hidden_size)
        self.query_input = empty_linear(query_size, hidden_size, bias=False)  # W_e
        self.key_input = empty_linear(vector_size, hidden_size, bias=False)  # W_f
        self.output = nn.Parameter(torch.zeros(hidden_size))  # w_a2

    def reset_parameters(self, generator: Generator) -> None:
        glorot_(self.query_input.weight, generator)
        glorot_(self.key_input.weight, generator)
        uniform_(self.output, 1 / math.sqrt(len(self.output)), generator)

    def keys(self, vectors: Tensor) -> Tensor:
        return self.key_input(vectors)  # (sentences, longest, A)

    def query(self, h: Tensor, products: StepProducts) -> Tensor:
        return products.linear("query", self.query_input.weight, h)

    def forward(self, keys: Tensor, query: Tensor, products: StepProducts = STEPWISE_PRODUCTS) -> Tensor:
        scores: Tensor = _TanhScore.apply(keys, query, self.output)  # type: ignore[no-untyped-call]
        return scores


class _TanhScore(torch.autograd.Function):
    """tanh(keys + query) w: the largest tensors of a decoder's step, so passes over them are kept few."""

    @staticmethod
    def forward(ctx: GradientContext, keys: Tensor, query: Tensor, w: Tensor) -> Tensor:
        y = tanh_(keys[:, None] + query[:, :, None])  # (sentences, rows, longest, A)
        ctx.save_for_backward(y, w)
        return y @ w.to(y.dtype)  # (sentences, rows, longest)

    @staticmethod
    @once_differentiable
    def backward(ctx: GradientContext, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (da,) = gradients  # (sentences, rows, longest)
        y, w = ctx.saved_tensors
        w, da = w.to(y.dtype), da.to(y.dtype)
        dw = da.reshape(-1) @ y.flatten(0, 2)  # (A,)
        slope = torch.addcmul(w, y * w, y, value=-1).mul_(da[..., None])  # da w (1 - y^2)
        return slope.sum(dim=1) if slope.shape[1] > 1 else slope[:, 0], slope.sum(dim=2), dw


SCORES: dict[str, type[AttentionScore]] = {"dot": DotScore, "bilinear": BilinearScore, "mlp": MLPScore}


# -- attention ---------------------------------------------------------------------------------------------------------


class Attention(nn.Module):
    """alpha_t and c_t from the decoder's state. Priors are terms added to the scores.

    Hard attention uses the vector of one word instead of the average: the most probable one, in training a sampled one.
    """

    def __init__(
        self, score: AttentionScore, priors: Mapping[str, AttentionPrior] | None = None, *, hard: bool = False
    ):
        super().__init__()
        self.score, self.hard = score, hard
        self.priors = TypedModuleDict(priors or {})

    def reset_parameters(self, generator: Generator) -> None:
        self.score.reset_parameters(generator)
        for prior in self.priors.values():
            prior.reset_parameters(generator)

    def memory(self, vectors: Tensor, mask: Tensor) -> Memory:
        """Return what attention needs of source sentences.  # (sentences, longest, D), (sentences, longest)"""
        padding_mask = torch.zeros_like(mask, dtype=vectors.dtype).masked_fill_(~mask, -torch.inf)
        features = tuple(prior.features(vectors) for prior in self.priors.values())
        return Memory(vectors, self.score.keys(vectors).to(vectors.dtype), padding_mask, features)

    def forward(
        self,
        memory: Memory,
        h: Tensor,
        layout: RowLayout,
        previous: Tensor | None = None,
        history: AttentionHistory | None = None,
        products: StepProducts = STEPWISE_PRODUCTS,
        generator: Generator | None = None,
    ) -> AttentionOutput:
        """Attend with some rows.

        # h: (rows, H); previous: (rows, longest) attention of the word before, for priors, as is history
        """
        query = layout.to_grid(self.score.query(h, products))  # (sentences, width, K)
        a = self.score(memory.keys, query, products) + memory.padding_mask[:, None]  # (sentences, width, longest)
        if previous is not None and history is not None:
            sizes = layout.expand((memory.padding_mask == 0).sum(dim=1)).to(h)  # (rows,)
            terms = []
            for prior, features in zip(self.priors.values(), memory.prior_features, strict=True):
                of_rows = None if features is None else layout.expand(features)
                terms.append(prior(PriorInput(h, previous, history, sizes, of_rows)))
            a = a + layout.to_grid(torch.stack(terms).sum(dim=0))
        alpha = a.softmax(dim=2)
        choice = None
        if self.hard:
            choice = sample(alpha, generator) if self.training else most_probable(alpha)
        context = products.per_sentence("context", memory.vectors, alpha if choice is None else choice)
        return AttentionOutput(
            layout.to_rows(alpha), layout.to_rows(context), None if choice is None else layout.to_rows(choice)
        )


def most_probable(alpha: Tensor) -> Tensor:
    """Return 1 at the word of the highest weight and 0 elsewhere."""
    return torch.zeros_like(alpha).scatter_(-1, alpha.argmax(dim=-1, keepdim=True), 1.0)


def sample(alpha: Tensor, generator: Generator | None = None) -> Tensor:
    """Sample a word by its weight; for a share of the rows return the weights instead (Xu et al. 2015).

    The weights are the expectation of the samples, so attention learns before single choices are good.
    """
    weights = alpha.detach().flatten(0, -2)  # (rows, longest)
    words = torch.multinomial(weights, 1, generator=generator)
    choice = torch.zeros_like(weights).scatter_(1, words, 1.0).view_as(alpha)
    soft = torch.rand(alpha.shape[:-1], generator=generator, device=alpha.device) < SOFT_SHARE
    return torch.where(soft[..., None], alpha, choice)


class RowLayout(NamedTuple):
    """Places of rows in a grid (sentences, width)."""

    sentences: int
    width: int  # most rows that a sentence has
    flat_indices: Tensor | None = None  # (rows,) index of each row in the flat grid; None: rows fill the grid in order

    @classmethod
    def of(cls, sentence: Tensor, sentences: int) -> RowLayout:
        """Return the layout of rows by the sentence of each.  # sentence: (rows,)"""
        if sentences == 1:
            return cls(1, len(sentence))
        numbers = sentence.numpy()
        counts = np.bincount(numbers, minlength=sentences)  # (sentences,)
        width = int(counts.max())
        order = np.argsort(numbers, kind="stable")
        first = counts.cumsum() - counts  # (sentences,) first row of each sentence after sorting
        within = np.empty_like(numbers)
        within[order] = np.arange(len(numbers)) - first[numbers[order]]
        flat_indices = numbers * width + within
        full = len(numbers) == sentences * width and bool((flat_indices == np.arange(len(flat_indices))).all())
        return cls(sentences, width, None if full else torch.from_numpy(flat_indices))

    def to_grid(self, x: Tensor) -> Tensor:
        """# (rows, n) -> (sentences, width, n), 0 where there is no row"""
        if self.flat_indices is None:
            return x.view(self.sentences, self.width, -1)
        flat = x.new_zeros(self.sentences * self.width, x.shape[1]).index_copy_(0, self.flat_indices.to(x.device), x)
        return flat.view(self.sentences, self.width, -1)

    def expand(self, x: Tensor) -> Tensor:
        """Repeat values of sentences for their rows.  # (sentences, ...) -> (rows, ...)"""
        if self.flat_indices is not None:
            return x.index_select(0, (self.flat_indices // self.width).to(x.device))
        return x if self.width == 1 else x.repeat_interleave(self.width, dim=0)

    def to_rows(self, grid: Tensor) -> Tensor:
        """# (sentences, width, n) -> (rows, n)"""
        flat = grid.flatten(0, 1)
        return flat if self.flat_indices is None else flat.index_select(0, self.flat_indices.to(flat.device))


# -- losses on attention, with a value per token, and the gradient of hard attention -----------------------------------


def gold_attention(alignments: WordAlignments, steps: int, longest: int) -> Tensor:
    """Return uniform attention to the aligned words; 0 where there are none.  # (steps, pairs, longest)"""
    gold = torch.zeros(steps, len(alignments), longest)
    links = (alignments.target, alignments.pair_indices, alignments.source)
    gold[tuple(torch.from_numpy(part.astype(np.int64)) for part in links)] = 1.0
    return gold / gold.sum(dim=2, keepdim=True).clamp(min=1.0)


def supervision_loss(attention: Tensor, alignments: WordAlignments) -> Tensor:
    """-sum_j gold_{t,j} log alpha_{t,j} of words whose alignment is known (Mi et al. 2016).

    # attention: (steps, pairs, longest) -> (steps, pairs)
    """
    gold = gold_attention(alignments, *attention.shape[::2]).to(attention)
    return -(gold * attention.clamp(min=MIN_ATTENTION).log()).sum(dim=2)


def fertility_loss(attention: Tensor, mask: Tensor, phi: Tensor, source_words: Tensor) -> Tensor:
    """(sum_t alpha_{t,j} - phi_j)^2 of each source word except `</s>`, in equal parts for the tokens of its sentence.

    phi_j is the expected number of translations of the word (Cohn et al. 2016).
    # attention: (steps, pairs, longest), mask: (steps, pairs), phi: (pairs, longest), source_words: (pairs,)
    """
    coverage = (attention * mask[:, :, None]).sum(dim=0)  # (pairs, longest)
    is_word = torch.arange(attention.shape[2], device=attention.device) < source_words[:, None]
    per_sentence = ((coverage - phi) ** 2 * is_word).sum(dim=1)  # (pairs,)
    return mask * per_sentence / mask.sum(dim=0)


def agreement(attention: Tensor, reverse_attention: Tensor, target_words: Tensor, source_words: Tensor) -> Tensor:
    """sum_j alpha_{t,j} beta_{j,t} of each target word t, where beta is the attention in the other direction.

    Summed over a sentence, it is the trace of the product of the two matrices (Cohn et al. 2016). `</s>` is left out.
    # attention: (steps, pairs, longest), reverse_attention: (longest, pairs, steps); words: (pairs,)
    """
    steps, _, longest = attention.shape
    is_target = torch.arange(steps, device=attention.device)[:, None] < target_words  # (steps, pairs)
    is_source = torch.arange(longest, device=attention.device) < source_words[:, None]  # (pairs, longest)
    return (attention * reverse_attention.permute(2, 1, 0) * is_source).sum(dim=2) * is_target


def reinforce(log_probs: Tensor, attention: Tensor, choice: Tensor, baseline: Tensor) -> Tensor:
    """Return log_probs with the gradient of sampled attention added (Williams 1992).

    The gradient has an additional term: that of log alpha of the chosen word, times how much better the next word was
    predicted than by soft attention, the baseline.

    # log_probs, baseline: (tokens,); attention, choice: (tokens, longest), choice is 1 at one word, or attention
    """
    sampled = choice * (choice == 1)
    log_choice = (attention.clamp(min=MIN_ATTENTION).log() * sampled.detach()).sum(dim=1)
    term = log_choice * (log_probs - baseline).detach()
    return log_probs + term - term.detach()
