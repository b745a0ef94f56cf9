"""The floor of laboratory text: what its truth comes to in numbers, and models beside it in a table.

>>> from dragoman.lab.lab import german_english_lab
>>> from dragoman.data.corpus import Corpus
>>> corpus = Corpus.from_sentences(german_english_lab().sentences("en", 20, seed=1, split="test"))
>>> floor = floor_of("en", corpus)
>>> floor.perplexity_class == floor.perplexity  # every word is known
True
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.data.corpus import Corpus
from dragoman.evaluation.floor import Floor, FloorGap, LanguageModelEvaluation, RatioEstimator, TrueLogProbs
from dragoman.lab.lab import german_english_lab
from dragoman.report.tables import format_cell, format_table, format_with_error

NATS = 4  # digits of nats a token


def lab_true_log_probs(language: str, corpus: Corpus, source: str = "sentences") -> TrueLogProbs:
    """The truth about a laboratory's text, `de` or `en`, by the vocabulary that the text was read with.

    `evaluation.floor.measured` holds a model of that vocabulary to it. Refused if a sentence cannot have been drawn
    from the grammar; `source` is what the message then calls the text.
    """
    truth = german_english_lab()
    return TrueLogProbs(
        truth.log_probs(language, corpus),
        truth.log_probs_with_spelling(language, corpus),
        np.diff(corpus.offsets),
        np.array([len(sentence) + 1 for sentence in corpus.sentences_as_text()], np.int64),
        source,
    )


def lab_floor(language: str, corpus: Corpus) -> Floor:
    """The least that any model can be expected to pay for a laboratory's text, by the text's vocabulary."""
    return Floor.from_true_log_probs(lab_true_log_probs(language, corpus))


def floor_table(results: Sequence[tuple[str, LanguageModelEvaluation]]) -> str:
    """Named models beside the floor: by class, then in full. Models without a floor are left out."""
    headers = ["model", "class", "floor", "nats above", "perplexity", "floor", "nats above"]
    rows = [
        (
            *(
                name,
                result.likelihood.perplexity_class,
                format_with_error(*floor.perplexity_class),
                _nats(gap.by_class),
            ),
            *(result.likelihood.perplexity, format_with_error(*floor.perplexity), _nats(gap.full)),
        )
        for name, result in results
        if (floor := result.floor) is not None and (gap := result.gap) is not None
    ]
    return format_table(headers, rows)


def gap_text(gap: FloorGap) -> str:
    """How far above the floor a model is, in a sentence."""
    return f"above the floor: {format_cell(_nats(gap.by_class))} nats a token by class, {format_cell(_nats(gap.full))} in full"


def _nats(ratio: RatioEstimator) -> str | float:
    return format_with_error(*ratio.estimate, NATS)
