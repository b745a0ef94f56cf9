"""How often a model finds the right one of two sentences more probable."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dragoman.core.scorer import Scorer
from dragoman.data.corpus import Corpus
from dragoman.evaluation.likelihood import token_scores


class MinimalPairLike(Protocol):
    """A right sentence and a wrong one."""

    @property
    def right(self) -> str: ...

    @property
    def wrong(self) -> str: ...

    @property
    def group(self) -> int:
        """Contrasts that belong together have one number."""
        ...


RELATIVE_TOLERANCE = 1e-9  # of a log-probability, as the order of adding up may change it

C = TypeVar("C", bound=MinimalPairLike)
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class MinimalPairAccuracy:
    """Numbers that add up: the accuracy on two sets of contrasts is the sum of theirs.

    >>> (Accuracy(4, 3.0, 1, 0) + Accuracy(4, 4.0, 1, 1)).share
    0.875
    """

    pairs: int = 0
    right: float = 0.0  # where the right sentence is more probable; one half where both are alike
    groups: int = 0
    groups_right: int = 0  # where all contrasts of the group are right

    def __add__(self, other: MinimalPairAccuracy) -> MinimalPairAccuracy:
        return MinimalPairAccuracy(
            self.pairs + other.pairs,
            self.right + other.right,
            self.groups + other.groups,
            self.groups_right + other.groups_right,
        )

    @property
    def accuracy(self) -> float:
        return self.right / self.pairs if self.pairs else float("nan")

    @property
    def group_accuracy(self) -> float:
        return self.groups_right / self.groups if self.groups else float("nan")


def pair_outcomes(scorer: Scorer, pairs: Sequence[MinimalPairLike]) -> NDArray[np.float64]:
    """1 where the right sentence is the more probable one, 0 where the wrong one is, 1/2 where neither is.

    The same words in another order may differ by rounding alone: that is not more probable.
    """
    right = _log_probs(scorer, [contrast.right for contrast in pairs])
    wrong = _log_probs(scorer, [contrast.wrong for contrast in pairs])
    alike = np.isclose(right, wrong, rtol=RELATIVE_TOLERANCE, atol=0)
    return np.where(alike, 0.5, (right > wrong).astype(np.float64))


def _log_probs(scorer: Scorer, sentences: list[str]) -> NDArray[np.float64]:
    """Unknown words are paid for in full. Each sentence is a text of its own, where a model would carry over."""
    if not getattr(scorer, "carries", True):
        return token_scores(scorer, Corpus.from_sentences(sentences, scorer.vocab)).sentence_log_probs
    texts = (Corpus.from_sentences([sentence], scorer.vocab) for sentence in sentences)
    return np.array([token_scores(scorer, text).sentence_log_probs[0] for text in texts])


def accuracy_by_kind(scorer: Scorer, pairs: Sequence[C], kind: Callable[[C], K]) -> dict[K, MinimalPairAccuracy]:
    """The accuracy on each kind of contrast, in the order in which the kinds are met."""
    found: dict[K, MinimalPairAccuracy] = {}
    judged = zip(pairs, pair_outcomes(scorer, pairs).tolist(), strict=True)
    for (name, _), group in groupby(judged, key=lambda pair: (kind(pair[0]), pair[0].group)):
        right = [share for _, share in group]
        own = MinimalPairAccuracy(len(right), sum(right), 1, int(min(right) == 1.0))
        found[name] = found.get(name, MinimalPairAccuracy()) + own
    return found
