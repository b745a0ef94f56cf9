"""Length handling and coverage penalty: what the search maximises instead of log P(E | F).

The probability falls with each word, so the best sentence by log P(E | F) tends to be too short, more so with a wider
beam (tutorial, section "Beam Search"). Each length handling turns the log-probability of a finished sentence into the
score by which it is compared with sentences of other lengths. |E| is the number of words without `</s>`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.data.batches import Batch

DEFAULT_MAX_WORDS = 200  # of a sentence without a source
LENGTH_BITS = 31  # lengths are below 2 to the power of this
MIN_ATTENTION = 1e-6  # in the coverage penalty, so that it is finite

MaxWords = int | Tensor | Callable[[Tensor], Tensor] | None  # see `word_limits`


class LengthHandling(Protocol):
    """The objective of a search. All tensors have one value per hypothesis."""

    name: ClassVar[str]

    def score(self, log_prob: Tensor, words: Tensor, source_words: Tensor | None) -> Tensor:
        """Return the score of finished sentences with |E| = words.  # (n,)"""
        ...

    def bound(self, log_prob: Tensor, words: Tensor, max_words: Tensor, source_words: Tensor | None) -> Tensor:
        """Return an upper bound of the scores of continuations with at most `max_words` words.  # (n,)"""
        ...


@dataclass(frozen=True)
class NoLengthHandling:
    """log P(E | F)."""

    name: ClassVar[str] = "none"

    def score(self, log_prob: Tensor, words: Tensor, source_words: Tensor | None) -> Tensor:
        return log_prob

    def bound(self, log_prob: Tensor, words: Tensor, max_words: Tensor, source_words: Tensor | None) -> Tensor:
        return log_prob


@dataclass(frozen=True)
class LengthNormalization:
    """log P(E | F) / (|E| + 1): the mean over the predicted tokens, `</s>` included (Cho et al. 2014).

    >>> LengthNormalization().score(torch.tensor([-1.0, -6.0]), torch.tensor([0, 2]), None)
    tensor([-1., -2.])
    """

    name: ClassVar[str] = "norm"

    def score(self, log_prob: Tensor, words: Tensor, source_words: Tensor | None) -> Tensor:
        return log_prob / (words + 1)

    def bound(self, log_prob: Tensor, words: Tensor, max_words: Tensor, source_words: Tensor | None) -> Tensor:
        return torch.maximum(log_prob / (words + 1), log_prob / (max_words + 1))


@dataclass(frozen=True)
class WordPenalty:
    """log P(E | F) + penalty |E|: a positive value favours longer sentences, a negative one shorter sentences."""

    penalty: float = 0.5
    name: ClassVar[str] = "penalty"

    def __post_init__(self) -> None:
        if not math.isfinite(self.penalty):
            raise DataError(f"word penalty {self.penalty}: must be a finite number")

    def score(self, log_prob: Tensor, words: Tensor, source_words: Tensor | None) -> Tensor:
        return log_prob + self.penalty * words

    def bound(self, log_prob: Tensor, words: Tensor, max_words: Tensor, source_words: Tensor | None) -> Tensor:
        return log_prob + self.penalty * (max_words if self.penalty > 0 else words)


class _Lookup(NamedTuple):
    """Numbers by keys; 0 for other keys."""

    keys: Tensor  # (keys,) increasing
    values: Tensor  # (keys,)

    @classmethod
    def of(cls, keys: NDArray[np.int64], values: NDArray[np.number]) -> _Lookup:
        order = np.argsort(keys)
        return cls(torch.from_numpy(keys[order]), torch.from_numpy(values[order].astype(np.float64)))

    def find(self, keys: Tensor) -> Tensor:
        index = torch.searchsorted(self.keys, keys.contiguous()).clamp(max=len(self.keys) - 1)
        return torch.where(self.keys[index] == keys, self.values[index], 0.0)


@dataclass(frozen=True, eq=False)
class LengthPrior:
    """log P(|E| given |F|) + log P(E | F), with a smoothed multinomial from training data (Eriguchi et al. 2016).

    The tutorial's c(|E|, |F|) / c(|F|) is 0 for unseen pairs of lengths. Here it is interpolated with a Poisson
    distribution, whose mean is proportional to |F| + 1, by Witten-Bell weights: a source length seen c times with d
    different target lengths gives c / (c + d) to the counts and d / (c + d) to the Poisson. An unseen source length
    has the Poisson only. So there is a distribution over |E| = 0, 1, 2, ... for every |F|.

    >>> prior = LengthPrior.estimate([2, 2, 2, 3], [2, 2, 3, 4])
    >>> prior.log_probs(torch.arange(50), torch.tensor(2)).exp().sum()
    tensor(1., dtype=torch.float64)
    >>> prior.log_probs(torch.tensor([2, 3, 4]), torch.tensor(2)).exp()
    tensor([0.5011, 0.2866, 0.0557], dtype=torch.float64)
    """

    pairs: NDArray[np.int64]  # (pairs, 3): source length, target length, count
    name: ClassVar[str] = "prior"

    def __post_init__(self) -> None:
        pairs, limit = self.pairs, 1 << LENGTH_BITS
        fits = pairs.ndim == 2 and pairs.shape[1] == 3 and len(pairs) > 0 and pairs.dtype == np.int64
        if not fits or (pairs < [0, 0, 1]).any() or (pairs >= limit).any() or len(np.unique(self._keys)) != len(pairs):
            raise DataError("a length prior is a list of pairs of lengths with their counts; estimate it again")

    @classmethod
    def estimate(cls, source_lengths: ArrayLike, target_lengths: ArrayLike) -> LengthPrior:
        """Estimate the prior from the lengths of training pairs, without `</s>`."""
        source, target = np.asarray(source_lengths, np.int64), np.asarray(target_lengths, np.int64)
        if len(source) != len(target):
            raise DataError(f"{len(source)} source lengths but {len(target)} target lengths")
        if not len(source):
            raise DataError("a length prior needs at least one pair of sentences")
        pairs, counts = np.unique(np.stack([source, target], axis=1), axis=0, return_counts=True)
        return cls(np.concatenate([pairs, counts[:, None]], axis=1).astype(np.int64))

    def arrays(self) -> Mapping[str, NDArray[np.generic]]:
        return {"pairs": self.pairs}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> LengthPrior:
        return cls(np.asarray(arrays["pairs"]))

    @property
    def _keys(self) -> NDArray[np.int64]:
        """Both lengths of each pair as one number.  # (pairs,)"""
        return (self.pairs[:, 0] << LENGTH_BITS) | self.pairs[:, 1]

    @cached_property
    def _counts(self) -> tuple[_Lookup, _Lookup, _Lookup]:
        """c(|E|, |F|), c(|F|), and the number of target lengths seen with |F|."""
        lengths, index = np.unique(self.pairs[:, 0], return_inverse=True)
        counts = self.pairs[:, 2]
        totals, types = np.bincount(index, counts), np.bincount(index)
        return _Lookup.of(self._keys, counts), _Lookup.of(lengths, totals), _Lookup.of(lengths, types)

    @cached_property
    def _ratio(self) -> float:
        """Target words per source token, `</s>` included; add-one counts keep it above 0."""
        source, target, count = self.pairs.T.astype(np.float64)
        return float((target @ count + 1) / ((source + 1) @ count + 1))

    def log_probs(self, words: Tensor, source_words: Tensor) -> Tensor:
        """Return log P(|E| = words given |F| = source_words)."""
        counts, totals, source_types = self._counts
        types = source_types.find(source_words).clamp(min=1)
        total = totals.find(source_words) + types
        mean = self._ratio * (source_words.double() + 1)
        poisson = words * mean.log() - mean - torch.lgamma(words.double() + 1)
        seen = counts.find((source_words << LENGTH_BITS) | words)
        return torch.logaddexp((seen / total).log(), (types / total).log() + poisson)

    def score(self, log_prob: Tensor, words: Tensor, source_words: Tensor | None) -> Tensor:
        return log_prob + self.log_probs(words, _require_source(source_words))

    def bound(self, log_prob: Tensor, words: Tensor, max_words: Tensor, source_words: Tensor | None) -> Tensor:
        lengths = torch.arange(int(max_words.max()) + 1)
        log_probs = self.log_probs(lengths, _require_source(source_words)[:, None])  # (n, lengths)
        outside = (lengths < words[:, None]) | (lengths > max_words[:, None])
        return log_prob + log_probs.masked_fill(outside, -torch.inf).max(dim=1).values


def _require_source(source_words: Tensor | None) -> Tensor:
    if source_words is None:
        raise DataError("the prior of |E| given |F| needs a source; choose another length handling")
    return source_words


LENGTH_HANDLINGS: dict[str, type[LengthHandling]] = {
    handling.name: handling for handling in (NoLengthHandling, LengthNormalization, LengthPrior, WordPenalty)
}


def length_handling_by_name(name: str, prior: LengthPrior) -> LengthHandling:
    """Return a length handling by its name; `penalty:0.5` includes its value. The prior is that of the translator."""
    kind, colon, number = name.partition(":")
    if kind not in LENGTH_HANDLINGS or (colon and (kind != WordPenalty.name or not number)):
        choices = f"{', '.join(LENGTH_HANDLINGS)}, and penalty:X with a number"
        raise DataError(f"length handling {name!r}: choose from {choices}")
    if kind == LengthPrior.name:
        return prior
    try:
        return WordPenalty(float(number)) if number else LENGTH_HANDLINGS[kind]()
    except ValueError:
        raise DataError(f"length handling {name!r}: give a number, such as penalty:0.5") from None


def source_lengths(batch: Batch) -> Tensor | None:
    """Return |F| of each row, or None without a source.  # (rows,)"""
    return None if batch.source is None else torch.as_tensor(batch.source.sizes - 1)


def default_max_words(source_words: Tensor) -> Tensor:
    """Return the default maximum length of translations, which is far more than they need."""
    return 2 * source_words + 20


def word_limits(max_words: MaxWords, batch: Batch) -> Tensor:
    """Return the maximum number of words of each row.  # (rows,)

    `max_words` is one number, a number per row, or a function of |F|; None: 2 |F| + 20, or 200 without a source.
    """
    source_words = source_lengths(batch)
    if max_words is None:
        no_source = torch.full((batch.num_rows,), DEFAULT_MAX_WORDS)
        limits = no_source if source_words is None else default_max_words(source_words)
    elif callable(max_words):
        limits = max_words(_require_source(source_words))
    else:
        limits = torch.as_tensor(max_words).expand(batch.num_rows)
    if batch.num_rows and int(limits.min()) < 1:
        raise DataError(f"max_words must be >= 1 (got {int(limits.min())})")
    return limits


def coverage_penalty(coverage: Tensor, source_words: Tensor, strength: float) -> Tensor:
    """Return the coverage penalty (Wu et al. 2016; tutorial, section "Intuitive Priors on Attention"), at most 0.

    It is strength * sum_j log min(sum_t alpha_{t,j}, 1) over the source words: 0 if each has received attention of at
    least 1, and lower the less attention they have received.

    # coverage: (n, longest source) the sum of the attention over t, source_words: (n,) -> (n,)

    >>> coverage_penalty(torch.tensor([[1.3, 0.5, 0.2]]), torch.tensor([2]), 2.0).exp()
    tensor([0.2500], dtype=torch.float64)
    """
    logs = coverage.double().clamp(MIN_ATTENTION, 1.0).log()  # (n, longest)
    is_word = torch.arange(coverage.shape[1]) < source_words[:, None]
    return strength * (logs * is_word).sum(dim=1)
