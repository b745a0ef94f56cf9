"""Surprisal of each word of a text by several models: -log2 P(e_t | e_1 ... e_{t-1}), in bits.

Each model encodes the text with its own vocabulary. The spellings of unknown words are included, and the surprisal of a
word is the sum over its pieces, so that the numbers of different models are comparable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.scorer import Scorer
from dragoman.data.corpus import Corpus
from dragoman.data.text_parts import common_parts, token_parts
from dragoman.evaluation.likelihood import token_scores


class SentenceSurprisals(NamedTuple):
    """Surprisals of the words of one sentence and of its `</s>`."""

    words: tuple[str, ...]
    bits: NDArray[np.float64]  # (words + 1, models)


@dataclass(frozen=True, eq=False)
class SurprisalTable:
    """The surprisal of each word, and of the `</s>` of each sentence, by each model."""

    models: tuple[str, ...]
    words: tuple[str, ...]  # (tokens,) as spelled in the text
    bits: NDArray[np.float64]  # (tokens, models) infinite for impossible words
    offsets: NDArray[np.int64]  # (sentences + 1,) first token of each sentence

    @property
    def sentences(self) -> Iterator[SentenceSurprisals]:
        for first, last in pairwise(self.offsets.tolist()):
            yield SentenceSurprisals(self.words[first:last], self.bits[first:last])


def surprisals(models: Mapping[str, Scorer], sentences: str | Iterable[str]) -> SurprisalTable:
    """Compute the surprisal of each word of sentences, which form one text, by several named models.

    >>> from dragoman import NgramModel
    >>> train = Corpus.from_sentences(["a b", "a c"])
    >>> bigrams = NgramModel.train(train, order=2, smoothing="maximum-likelihood")
    >>> unigrams = NgramModel.train(train, order=1, smoothing="maximum-likelihood")
    >>> table = surprisals({"unigrams": unigrams, "bigrams": bigrams}, "a b")
    >>> table.words, table.bits.round(2).tolist()
    (('a', 'b', '</s>'), [[1.58, 0.0], [2.58, 1.0], [1.58, 0.0]])
    """
    lines = [sentences] if isinstance(sentences, str) else list(sentences)
    return surprisal_table({name: (model, Corpus.from_sentences(lines, model.vocab)) for name, model in models.items()})


def surprisal_table(inputs: Mapping[str, tuple[Scorer, Corpus]], *, by_token: bool = False) -> SurprisalTable:
    """Compute the surprisals of one text by named models, for each of which it is already encoded.

    With `by_token`, the rows are the models' tokens, which must be the same, instead of words.
    """
    if not inputs:
        raise DataError("no model given; give at least one")
    corpora = [corpus for _, corpus in inputs.values()]
    has_words = all(corpus.vocab.segmenter.kind == "word" for corpus in corpora)
    parts = token_parts(corpora) if by_token or has_words else common_parts(corpora)
    log_probs = [token_scores(scorer, corpus).full_log_probs for scorer, corpus in inputs.values()]
    columns = [parts.sums(values, number) for number, values in enumerate(log_probs)]
    bits = np.stack(columns, axis=1) / -math.log(2) + 0.0  # + 0.0: certain words have 0, not -0
    return SurprisalTable(tuple(inputs), parts.words, bits, parts.offsets)
