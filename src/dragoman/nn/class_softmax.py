"""From a hidden vector to the probability of the next word, by way of its class (Goodman 2001).

P(e_t | h) = P(c_t | h) P(e_t | c_t, h), where c_t is the class of e_t: exact and normalised, but training needs the
scores of |C| classes and of the |V_c| words of one class, not those of |V| words.

What is the ideal class size (the tutorial's question)? With classes of one size the cost |C| + |V| / |C| is least where
its derivative 1 - |V| / |C|^2 is 0: at sqrt(|V|) classes of sqrt(|V|) words, 2 sqrt(|V|) in all. Classes need not have
one size, though: what counts is the expected cost, |C| + sum_c P(c) |V_c|, which is less if frequent words are in small
classes. `frequency_classes` makes either, and `expected_cost` compares.
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
from dragoman.nn import softmax


@dataclass(frozen=True, eq=False)
class WordClasses:
    """Which class each word of a vocabulary is in. Make it by `of`, which numbers classes without gaps."""

    class_of: Tensor  # (|V|,)

    @classmethod
    def of(cls, class_of: NDArray[np.integer]) -> Self:
        """Classes by any numbers. `<s>`, which has no probability, goes with `</s>`: no class must be without any.

        >>> WordClasses.of(np.array([0, 1, 2, 9, 2])).class_of.tolist()
        [0, 0, 1, 2, 1]
        """
        joined = np.where(np.arange(len(class_of)) == START, class_of[END], class_of)
        return cls(torch.from_numpy(np.unique(joined, return_inverse=True)[1].astype(np.int64)))

    def on(self, device: torch.device) -> Self:
        """The same classes where the parameters are."""
        return self if self.class_of.device == device else type(self)(self.class_of.to(device))

    @cached_property
    def sizes(self) -> list[int]:
        """|V_c| of each class.  # (|C|,)"""
        return torch.bincount(self.class_of).tolist()

    def __len__(self) -> int:
        """|C|."""
        return len(self.sizes)

    @cached_property
    def words(self) -> Tensor:
        """The words, those of a class together.  # (|V|,)"""
        return torch.argsort(self.class_of, stable=True)

    @cached_property
    def places(self) -> Tensor:
        """The place of each word in `words`.  # (|V|,)"""
        return torch.argsort(self.words)

    @cached_property
    def places_within(self) -> Tensor:
        """The place of each word among those of its class.  # (|V|,)"""
        firsts = torch.tensor([0, *self.sizes[:-1]], device=self.class_of.device).cumsum(0)
        return self.places - firsts[self.class_of]


def frequency_classes(counts: NDArray[np.integer], classes: int | None = None, power: float = 0.0) -> WordClasses:
    """Words in order of frequency, cut into about so many classes (sqrt(|V|) of them) that weigh the same.

    A word weighs count ** power: with 0 classes have the same size, with 1 the same probability, and in between
    frequent words are in small classes, but not each in one of its own. In batches, which have words of most classes
    anyway, classes of the same size took as little time, and they predicted better.

    >>> frequency_classes(np.array([0, 9, 1, 4, 3, 1, 1]), classes=2, power=1).class_of.tolist()
    [0, 0, 1, 1, 1, 1, 1]
    >>> frequency_classes(np.array([0, 9, 1, 4, 3, 1, 1]), classes=2, power=0).class_of.tolist()
    [0, 0, 1, 0, 0, 1, 1]
    """
    wanted = classes or max(1, round(len(counts) ** 0.5))
    order = np.argsort(-counts, kind="stable")
    weights = np.maximum(counts[order], 1).astype(np.float64) ** power
    middles = np.cumsum(weights) - weights / 2
    class_of = np.empty(len(counts), np.int64)
    class_of[order] = middles * wanted / weights.sum()
    return WordClasses.of(class_of)


def expected_cost(classes: WordClasses, counts: NDArray[np.integer]) -> float:
    """|C| + sum_c P(c) |V_c|: scores that a token needs on average, where words are as frequent as this.

    >>> expected_cost(WordClasses.of(np.array([0, 0, 0, 1, 1])), np.array([0, 5, 0, 3, 2]))
    4.5
    """
    sizes = torch.tensor(classes.sizes)[classes.class_of].numpy()
    return len(classes) + float(counts @ sizes / counts.sum())


@dataclass(frozen=True, eq=False)
class Output:
    """The parameters of the output layer. Rows of W and elements of b are in the vocabulary's order, and as in the
    softmax over all words b has `<s>` barred (`softmax.never_start`)."""

    W: Tensor  # (|V|, hidden) for P(e | c, h)
    b: Tensor  # (|V|,)
    W_c: Tensor  # (|C|, hidden) for P(c | h)
    b_c: Tensor  # (|C|,)
    classes: WordClasses


def word_log_probs(h: Tensor, output: Output) -> Tensor:
    """log p of all words.  # (rows, |V|)"""
    classes = output.classes
    of_class = softmax.word_log_probs(h, output.W_c, output.b_c)  # (rows, |C|)
    scores = torch.addmm(output.b, h, output.W.t())[:, classes.words]  # (rows, |V|) those of a class together
    parts = [part.log_softmax(dim=1) for part in scores.split(classes.sizes, dim=1)]  # log P(e | c, h)
    return torch.cat(parts, dim=1)[:, classes.places] + of_class[:, classes.class_of]


def target_log_probs(h: Tensor, output: Output, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """log p of one word in each row, with gradients, by the scores of its class alone: rows are sorted by the class of
    their word, and each class present is a softmax of its own. Both softmaxes are smoothed alike.  # (rows,)"""
    classes = output.classes
    class_of = classes.class_of[targets]  # (rows,)
    of_class = softmax.target_log_probs(h, output.W_c, output.b_c, class_of, smoothing)
    order = torch.argsort(class_of, stable=True)
    rows = torch.bincount(class_of, minlength=len(classes)).tolist()
    pieces = zip(
        h[order].split(rows),
        output.W.index_select(0, classes.words).split(classes.sizes),
        output.b.index_select(0, classes.words).split(classes.sizes),
        classes.places_within[targets[order]].split(rows),
        strict=True,
    )
    within = [softmax.target_log_probs(*piece, smoothing) for piece, count in zip(pieces, rows, strict=True) if count]
    return of_class + torch.cat([of_class[:0], *within])[torch.argsort(order)]


def class_log_probs(of_words: Tensor, classes: WordClasses) -> Tensor:
    """log P(c) by the words' log P: b_c of a model that starts as a unigram model, if the words' are b.  # (|C|,)"""
    return torch.zeros(len(classes)).to(of_words).index_add(0, classes.class_of, of_words.exp()).log()
