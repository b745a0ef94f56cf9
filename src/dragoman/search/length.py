"""How long a translation should be: what the search maximises instead of log P(E | F).

A probability falls with every word, so the best sentence by log P(E | F) tends to be too short, and the more so the
wider the beam (tutorial, section "Beam Search"). Each handling here turns the log-probability of a finished sentence
into the score by which it is compared with others of other lengths. |E| is its words; `</s>` is counted where it says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.data.batches import Batch

DEFAULT_MAX_WORDS = 200  # of a sentence, where there is no source to judge by

MaxWords = int | Tensor | Callable[[Tensor], Tensor] | None  # see `word_limits`


class LengthHandling(Protocol):
    """What a search maximises. All tensors have one number for each hypothesis."""

    name: ClassVar[str]

    def score(self, log_prob: Tensor, words: Tensor, source_words: Tensor | None) -> Tensor:
        """Of finished sentences with |E| = words.  # (n,)"""
        ...

    def bound(self, log_prob: Tensor, words: Tensor, max_words: Tensor, source_words: Tensor | None) -> Tensor:
        """No sentence that goes on from these words, and ends with `longest` or fewer, has a higher score.  # (n,)"""
        ...


@dataclass(frozen=True)
class NoLengthHandling:
    """log P(E | F) as it is."""

    name: ClassVar[str] = "none"

    def score(self, log_prob: Tensor, words: Tensor, source_words: Tensor | None) -> Tensor:
        return log_prob

    def bound(self, log_prob: Tensor, words: Tensor, max_words: Tensor, source_words: Tensor | None) -> Tensor:
        return log_prob


@dataclass(frozen=True)
class LengthNormalization:
    """log P(E | F) / |E|: the mean over the words (Cho et al. 2014).

    `</s>` is a word here, as it is predicted like one: so the empty sentence has a score too.

    >>> PerWord().score(torch.tensor([-1.0, -6.0]), torch.tensor([0, 2]), None)
    tensor([-1., -2.])
    """

    name: ClassVar[str] = "norm"

    def score(self, log_prob: Tensor, words: Tensor, source_words: Tensor | None) -> Tensor:
        return log_prob / (words + 1)

    def bound(self, log_prob: Tensor, words: Tensor, max_words: Tensor, source_words: Tensor | None) -> Tensor:
        return torch.maximum(log_prob / (words + 1), log_prob / (max_words + 1))


@dataclass(frozen=True)
class WordPenalty:
    """log P(E | F) + penalty |E|: above 0 it makes sentences longer, below 0 shorter."""

    penalty: float = 0.5
    name: ClassVar[str] = "penalty"

    def __post_init__(self) -> None:
        if not math.isfinite(self.penalty):
            raise DataError(f"a word penalty of {self.penalty}: it must be a number")

    def score(self, log_prob: Tensor, words: Tensor, source_words: Tensor | None) -> Tensor:
        return log_prob + self.penalty * words

    def bound(self, log_prob: Tensor, words: Tensor, max_words: Tensor, source_words: Tensor | None) -> Tensor:
        return log_prob + self.penalty * (max_words if self.penalty > 0 else words)


@dataclass(frozen=True, eq=False)
class LengthPrior:
    """log P(|E| given |F|) + log P(E | F), the first a multinomial from training data (Eriguchi et al. 2016), smoothed.

    The tutorial's c(|E|, |F|) / c(|F|) is 0 for every pair of lengths that was not seen. So it is interpolated with a
    Poisson distribution whose mean grows with |F| + 1 as the target's lengths do, by Witten and Bell's weight: a source
    length seen c times with d target lengths has c / (c + d) of the counts and d / (c + d) of the Poisson; one that
    was never seen has the Poisson alone. So there is a distribution over all |E| = 0, 1, 2 ... for every |F|.

    >>> prior = LengthPrior.estimate([2, 2, 2, 3], [2, 2, 3, 4])
    >>> prior.log_probs(torch.arange(50), torch.tensor(2)).exp().sum()
    tensor(1., dtype=torch.float64)
    >>> prior.log_probs(torch.tensor([2, 3, 4]), torch.tensor(2)).exp()
    tensor([0.5011, 0.2866, 0.0557], dtype=torch.float64)
    """

    pairs: NDArray[np.int64]  # (pairs, 3): a source length, a target length, how often they went together
    name: ClassVar[str] = "prior"

    def __post_init__(self) -> None:
        if self.pairs.ndim != 2 or self.pairs.shape[1] != 3 or not len(self.pairs) or (self.pairs < [0, 0, 1]).any():
            raise DataError("a length prior is a list of pairs of lengths with their counts; estimate it again")

    @classmethod
    def estimate(cls, source_lengths: ArrayLike, target_lengths: ArrayLike) -> LengthPrior:
        """From the words of each training pair, `</s>` not counted."""
        source, target = np.asarray(source_lengths, np.int64), np.asarray(target_lengths, np.int64)
        if len(source) != len(target):
            raise DataError(f"{len(source)} source lengths but {len(target)} target lengths")
        if not len(source):
            raise DataError("a length prior needs at least one pair of sentences")
        pairs, counts = np.unique(np.stack([source, target], axis=1), axis=0, return_counts=True)
        return cls(np.concatenate([pairs, counts[:, None]], axis=1).astype(np.int64))

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """What a model directory keeps of it."""
        return {"pairs": self.pairs}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> LengthPrior:
        return cls(np.asarray(arrays["pairs"], np.int64))

    @cached_property
    def _counts(self) -> Tensor:
        """c(|E|, |F|); the last row and the last column are of lengths never seen.  # (source + 2, target + 2)"""
        source, target, count = torch.from_numpy(self.pairs.copy()).unbind(1)
        counts = torch.zeros(int(source.max()) + 2, int(target.max()) + 2, dtype=torch.float64)
        counts[source, target] = count.double()
        return counts

    @cached_property
    def _seen(self) -> Tensor:
        """c(|F|).  # (source + 2,)"""
        return self._counts.sum(dim=1)

    @cached_property
    def _kinds(self) -> Tensor:
        """How many target lengths each source length was seen with; 1 if it never was.  # (source + 2,)"""
        return (self._counts > 0).sum(dim=1).clamp(min=1)

    @cached_property
    def _ratio(self) -> float:
        """Target words for each source word and `</s>`; one more on either side, so that it is never 0."""
        source, target, count = self.pairs.T
        return float((target @ count + 1) / ((source + 1) @ count + 1))

    def log_probs(self, words: Tensor, source_words: Tensor) -> Tensor:
        """log P(|E| = words given |F| = source_words)."""
        row, column = (n.clamp(max=size - 1) for n, size in zip((source_words, words), self._counts.shape, strict=True))
        count, kinds, whole = self._counts[row, column], self._kinds[row], self._seen[row] + self._kinds[row]
        mean = self._ratio * (source_words.double() + 1)
        poisson = words * mean.log() - mean - torch.lgamma(words.double() + 1)
        return torch.logaddexp((count / whole).log(), (kinds / whole).log() + poisson)

    def score(self, log_prob: Tensor, words: Tensor, source_words: Tensor | None) -> Tensor:
        return log_prob + self.log_probs(words, _require_source(source_words))

    def bound(self, log_prob: Tensor, words: Tensor, max_words: Tensor, source_words: Tensor | None) -> Tensor:
        lengths = torch.arange(int(max_words.max()) + 1)
        log_probs = self.log_probs(lengths, _require_source(source_words)[:, None])  # (n, lengths)
        outside = (lengths < words[:, None]) | (lengths > max_words[:, None])
        return log_prob + log_probs.masked_fill(outside, -torch.inf).max(dim=1).values


def _require_source(source_words: Tensor | None) -> Tensor:
    if source_words is None:
        raise DataError("the prior of |E| given |F| needs a source; take another length handling without one")
    return source_words


LENGTH_HANDLINGS: dict[str, type[LengthHandling]] = {
    handling.name: handling for handling in (NoLengthHandling, LengthNormalization, LengthPrior, WordPenalty)
}


def source_lengths(batch: Batch) -> Tensor | None:
    """|F| of each row, if there is a source.  # (rows,)"""
    return None if batch.source is None else torch.as_tensor(batch.source.sizes - 1)


def default_max_words(source_words: Tensor) -> Tensor:
    """Words that a translation may have if nobody says otherwise: far more than it needs."""
    return 2 * source_words + 20


def word_limits(max_words: MaxWords, batch: Batch) -> Tensor:
    """How many words each row may have before it is cut off.  # (rows,)

    `max_words` is a number for all, one for each row, or a function of |F|; None: 2 |F| + 20, or 200 without a source.
    """
    source_words = source_lengths(batch)
    if max_words is None:
        limits = (
            torch.full((batch.num_rows,), DEFAULT_MAX_WORDS)
            if source_words is None
            else default_max_words(source_words)
        )
    elif callable(max_words):
        limits = max_words(_require_source(source_words))
    else:
        limits = torch.as_tensor(max_words).expand(batch.num_rows)
    if batch.num_rows and int(limits.min()) < 1:
        raise DataError(f"{int(limits.min())} words at most: allow one or more")
    return limits
