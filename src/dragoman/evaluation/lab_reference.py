"""What the lab knows exactly about its own text: true probabilities, alignments, and accuracy on minimal pairs.

Text files that `dragoman lab` wrote are recognised by their names.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dragoman.core.errors import DataError
from dragoman.core.scorer import Scorer
from dragoman.data.corpus import Corpus
from dragoman.evaluation.alignment import read_gold_alignments
from dragoman.evaluation.floor import TrueLogProbs
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy, accuracy_by_kind
from dragoman.evaluation.translator import ReferenceData, read_log_probs
from dragoman.lab.corpus_files import lab_language

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
    if corpus.vocab.segmenter.kind != "word":  # the grammar is one of words, all of which the model can spell
        corpus = Corpus.from_sentences(corpus.lines())
    return TrueLogProbs(
        lab.log_probs(language, corpus),
        lab.log_probs_with_spelling(language, corpus),
        np.diff(corpus.offsets),
        np.array([len(sentence) + 1 for sentence in corpus.sentences_as_text()], np.int64),
        source,
    )


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


def true_log_probs_of(text: str, corpus: Corpus) -> TrueLogProbs | None:
    """Return the true log-probabilities of a text; None if it is not from the lab or was changed (with a warning)."""
    language = lab_language(text)
    if language is None:
        return None
    try:
        return lab_true_log_probs(language, corpus, text)
    except DataError as error:
        warnings.warn(f"no floor: {error}", stacklevel=2)
        return None


def reference_data_of(src: str, ref: str, references: Sequence[str]) -> ReferenceData:
    """Return references with true alignments and log-probabilities, if source and references are from the lab."""
    languages = (lab_language(src), lab_language(ref))
    part, target_part = (Path(path.removesuffix(".gz")).with_suffix("") for path in (src, ref))  # such as lab/test
    if None in languages or languages[0] == languages[1] or part != target_part:
        return ReferenceData(references)
    gold, log_probs = read_gold_alignments(f"{part}.align"), read_log_probs(Path(f"{part}.logprob"))
    if len(gold) != len(references) or len(log_probs) != len(references):
        warnings.warn(f"{part}.align or .logprob has another number of lines, so neither is used", stacklevel=2)
        return ReferenceData(references)
    if languages[0] == "en":
        return ReferenceData(references, gold_alignments=[alignment.reversed for alignment in gold])
    return ReferenceData(references, log_probs, gold)
