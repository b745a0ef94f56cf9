"""What the lab knows exactly about its own text: true probabilities, the floor, and accuracy on minimal pairs.

>>> from dragoman.lab.lab import german_english_lab
>>> from dragoman.data.corpus import Corpus
>>> corpus = Corpus.from_sentences(german_english_lab().sentences("en", 20, seed=1, split="test"))
>>> floor = lab_floor("en", corpus)
>>> floor.perplexity_class == floor.perplexity  # every word is known
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dragoman.core.scorer import Scorer
from dragoman.data.corpus import Corpus
from dragoman.evaluation.floor import Floor, TrueLogProbs
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy, accuracy_by_kind

if TYPE_CHECKING:
    from dragoman.lab.minimal_pairs import MinimalPair

PhenomenonAccuracies = dict[tuple[str, int], MinimalPairAccuracy]  # by phenomenon and smallest distance of its class


def lab_true_log_probs(language: str, corpus: Corpus, source: str = "sentences") -> TrueLogProbs:
    """Return the true log-probabilities of text from the lab, by the vocabulary that the text was read with.

    Args:
        language: `de` or `en`.
        source: name of the text in the error that is raised if the grammar cannot have generated a sentence.
    """
    from dragoman.lab.lab import german_english_lab  # compiles the grammar

    lab = german_english_lab()
    return TrueLogProbs(
        lab.log_probs(language, corpus),
        lab.log_probs_with_spelling(language, corpus),
        np.diff(corpus.offsets),
        np.array([len(sentence) + 1 for sentence in corpus.sentences_as_text()], np.int64),
        source,
    )


def lab_floor(language: str, corpus: Corpus) -> Floor:
    """Return the best values that any model can be expected to reach on text from the lab."""
    return Floor.from_true_log_probs(lab_true_log_probs(language, corpus))


def minimal_pair_accuracies(model: Scorer, pairs: Sequence[MinimalPair]) -> PhenomenonAccuracies:
    """Return the accuracy of a model on minimal pairs, by phenomenon and class of distance."""
    from dragoman.lab.minimal_pairs import distance_class

    return accuracy_by_kind(model, pairs, lambda pair: (pair.phenomenon, distance_class(pair.distance)))


def distance_label(minimum: int) -> str:
    """Return the name of the class of distances that starts at `minimum`.

    >>> [distance_label(minimum) for minimum in (0, 1, 16)]
    ['0', '1 to 3', '16 and more']
    """
    from dragoman.lab.minimal_pairs import DISTANCE_CLASSES

    following = [start for start in DISTANCE_CLASSES if start > minimum]
    if not following:
        return f"{minimum} and more"
    return f"{minimum} to {following[0] - 1}" if following[0] - 1 > minimum else str(minimum)


def accuracies_as_dicts(accuracies: PhenomenonAccuracies) -> list[dict[str, object]]:
    """Return the accuracies of one model as plain values."""
    return [
        {
            "phenomenon": phenomenon,
            "distance_from": minimum,
            "contrasts": accuracy.pairs,
            "accuracy": accuracy.accuracy,
            "groups": accuracy.groups,
            "groups_accuracy": accuracy.group_accuracy,
        }
        for (phenomenon, minimum), accuracy in sorted(accuracies.items())
    ]
