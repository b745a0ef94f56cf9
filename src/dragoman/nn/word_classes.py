"""Classes of words for a class-factored softmax.

What is the ideal class size (the tutorial's question)? With classes of equal size the cost |C| + |V| / |C| is least
where its derivative 1 - |V| / |C|^2 is 0: at sqrt(|V|) classes of sqrt(|V|) words, 2 sqrt(|V|) in all. Classes need not
have equal sizes: the expected cost, |C| + sum_c P(c) |V_c|, is lower if frequent words are in small classes.
`frequency_classes` builds both kinds, and `expected_cost` compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.data.vocabulary import END, START


@dataclass(frozen=True, eq=False)
class WordClasses:
    """The class of each word of a vocabulary. Create it with `from_numbers`, which numbers classes without gaps."""

    class_of: Tensor  # (|V|,)

    @classmethod
    def from_numbers(cls, class_of: NDArray[np.integer]) -> Self:
        """Create classes from any numbers. `<s>`, which has no probability, joins the class of `</s>`.

        >>> WordClasses.from_numbers(np.array([0, 1, 2, 9, 2])).class_of.tolist()
        [0, 0, 1, 2, 1]
        """
        joined = np.where(np.arange(len(class_of)) == START, class_of[END], class_of)
        return cls(torch.from_numpy(np.unique(joined, return_inverse=True)[1].astype(np.int64)))

    @cached_property
    def sizes(self) -> list[int]:
        """|V_c| of each class.  # (|C|,)"""
        return torch.bincount(self.class_of).tolist()

    def __len__(self) -> int:
        """|C|."""
        return len(self.sizes)

    @cached_property
    def words(self) -> Tensor:
        """The words, class by class.  # (|V|,)"""
        return torch.argsort(self.class_of, stable=True)

    @cached_property
    def places(self) -> Tensor:
        """The place of each word in `words`.  # (|V|,)"""
        return torch.argsort(self.words)

    @cached_property
    def places_within(self) -> Tensor:
        """The place of each word within its class.  # (|V|,)"""
        firsts = torch.tensor([0, *self.sizes[:-1]], device=self.class_of.device).cumsum(0)
        return self.places - firsts[self.class_of]


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
