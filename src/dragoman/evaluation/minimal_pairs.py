"""Accuracy on minimal pairs: how often a model gives the correct one of two sentences a higher probability."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dragoman.core.scorer import CarryScorer, Scorer
from dragoman.data.corpus import Corpus
from dragoman.evaluation.likelihood import token_scores
from dragoman.evaluation.results import AdditiveResult

RELATIVE_TOLERANCE = 1e-9  # by which log-probabilities of the same words in another order may differ


class MinimalPairLike(Protocol):
    """A correct sentence and an incorrect one."""

    @property
    def right(self) -> str: ...

    @property
    def wrong(self) -> str: ...

    @property
    def group(self) -> int:
        """The same for pairs that belong together, such as the two orders of one contrast."""
        ...


P = TypeVar("P", bound=MinimalPairLike)
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class MinimalPairAccuracy(AdditiveResult):
    """Numbers of pairs and groups of pairs, and how many of them are right.

    >>> (MinimalPairAccuracy(4, 3.0, 1, 0) + MinimalPairAccuracy(4, 4.0, 1, 1)).accuracy
    0.875
    """

    pairs: int = 0
    right: float = 0.0  # pairs of which the correct sentence is more probable; 1/2 for each tie
    groups: int = 0
    groups_right: int = 0  # groups of which all pairs are right

    @property
    def accuracy(self) -> float:
        return self.right / self.pairs if self.pairs else float("nan")

    @property
    def group_accuracy(self) -> float:
        return self.groups_right / self.groups if self.groups else float("nan")


def _log_probs(scorer: Scorer, sentences: list[str]) -> NDArray[np.float64]:
    """log P of each sentence, including the spellings of unknown words; no state is carried over."""
    if isinstance(scorer, CarryScorer) and not scorer.carries:
        return token_scores(scorer, Corpus.from_sentences(sentences, scorer.vocab)).sentence_log_probs
    texts = (Corpus.from_sentences([sentence], scorer.vocab) for sentence in sentences)
    return np.array([token_scores(scorer, text).sentence_log_probs[0] for text in texts])


def accuracy_by_kind(scorer: Scorer, pairs: Sequence[P], kind: Callable[[P], K]) -> dict[K, MinimalPairAccuracy]:
    """Compute the accuracy on each kind of pair, in the order in which the kinds first occur."""
    accuracies: defaultdict[K, MinimalPairAccuracy] = defaultdict(MinimalPairAccuracy)
    right_log_probs = _log_probs(scorer, [pair.right for pair in pairs])
    wrong_log_probs = _log_probs(scorer, [pair.wrong for pair in pairs])
    is_tie = np.isclose(right_log_probs, wrong_log_probs, rtol=RELATIVE_TOLERANCE, atol=0)
    outcomes = np.where(is_tie, 0.5, right_log_probs > wrong_log_probs).tolist()  # (pairs,)
    pairs_with_outcomes = zip(pairs, outcomes, strict=True)
    for (name, _), group in groupby(pairs_with_outcomes, key=lambda item: (kind(item[0]), item[0].group)):
        right = [outcome for _, outcome in group]
        accuracies[name] += MinimalPairAccuracy(len(right), sum(right), 1, int(min(right) == 1.0))
    return dict(accuracies)
