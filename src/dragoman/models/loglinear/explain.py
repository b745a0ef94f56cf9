"""Explanation of a log-linear model's predictions: the contribution of each feature to each next word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.data.segmenters import SPACE_MARK
from dragoman.data.vocabulary import START, Vocab
from dragoman.models.loglinear.features import WordHistories
from dragoman.models.loglinear.weights import NOT_FOUND

if TYPE_CHECKING:  # the model imports this module
    from dragoman.models.loglinear.model import LogLinearModel

TOP_WORDS = 3  # words with the largest and with the smallest contributions of a feature


@dataclass(frozen=True)
class FeatureContribution:
    """What a feature adds to the score of a word: W_{w,j} x_j. None if it has no weight for the word."""

    feature: str
    amount: float | None


@dataclass(frozen=True)
class ExplainedWord:
    """A next word: its probability, and its score as the sum of bias and contributions."""

    word: str
    prob: float
    score: float
    bias: float
    contributions: tuple[FeatureContribution, ...]


@dataclass(frozen=True)
class WordContribution:
    """What a feature adds to the score of this word."""

    word: str
    amount: float


@dataclass(frozen=True)
class ExplainedFeature:
    """An active feature and the words whose scores it raises and lowers most."""

    feature: str
    value: float  # x_j
    up: tuple[WordContribution, ...]
    down: tuple[WordContribution, ...]


@dataclass(frozen=True)
class Explanation:
    """The next words after a prefix, and the active features."""

    prefix: str
    words: tuple[ExplainedWord, ...]
    features: tuple[ExplainedFeature, ...]
    unseen: tuple[str, ...]  # features of the prefix that have no weights


def _token(vocab: Vocab, word: str) -> str:
    """Return a word as a token: in a vocabulary of pieces, it begins with the mark of a space."""
    marked = SPACE_MARK + word
    return marked if vocab.segmenter.kind != "word" and marked in vocab.tokens else word


def explain(model: LogLinearModel, prefix: str, words: Sequence[str], k: int) -> Explanation:
    """Explain the k most probable next words after a prefix, and `words`."""
    tokens, extractor = model.vocab.tokens, model.extractor
    rows = Corpus.from_sentences([prefix], model.vocab).ids[None, :].astype(np.int64)
    history = WordHistories.from_rows(np.concatenate([np.full((1, 1), START), rows], axis=1))
    scores = model.scores(extractor.extract(history))[0]
    log_probs = scores - np.logaddexp.reduce(scores)
    best = np.argsort(-log_probs, kind="stable")[: min(k, len(scores) - 1)]  # `<s>` is last
    given, words = words, [_token(model.vocab, word) for word in words]
    for word, token in zip(given, words, strict=True):
        if token not in tokens[START + 1 :]:  # which include `</s>` and `<unk>`
            raise DataError(f"{word!r}: the model does not predict this word; choose another word, or <unk>")
    features, columns, unseen = list[ExplainedFeature](), list[NDArray[np.float64]](), list[str]()
    for template in extractor.templates:
        occurrences = template.extract(history, extractor.tables, extractor.vocab)
        names = template.describe(history, extractor.tables, extractor.vocab)
        ids = extractor.index.find(occurrences.key).tolist()
        for name, feature, value in zip(names, ids, occurrences.value.tolist(), strict=True):
            if feature == NOT_FOUND:
                unseen.append(name)
                continue
            amounts = value * _column(model, feature)
            order = np.argsort(-amounts, kind="stable")[: np.count_nonzero(~np.isnan(amounts))]
            ranked = [WordContribution(tokens[word], float(amounts[word])) for word in order]
            up = tuple(word for word in ranked[:TOP_WORDS] if word.amount > 0)
            down = tuple(word for word in ranked[: -TOP_WORDS - 1 : -1] if word.amount < 0)
            features.append(ExplainedFeature(name, value, up, down))
            columns.append(amounts)
    bias = model.bias.detach().double().numpy()
    explained = tuple(
        ExplainedWord(
            tokens[word],
            float(np.exp(log_probs[word])),
            float(scores[word]),
            float(bias[word]),
            tuple(
                FeatureContribution(feature.feature, None if np.isnan(amounts[word]) else float(amounts[word]))
                for feature, amounts in zip(features, columns, strict=True)
            ),
        )
        for word in dict.fromkeys([*best.tolist(), *map(tokens.index, words)])
    )
    return Explanation(prefix, explained, tuple(features), tuple(unseen))


def _column(model: LogLinearModel, feature: int) -> NDArray[np.float64]:
    """Return the column of W of a feature, NaN for words without a weight.  # (|V|,)"""
    weights, size = model.weights(), len(model.vocab)
    pairs, start = slice(weights.begin[feature], weights.begin[feature + 1]), weights.window_start[feature]
    column = np.full(size, np.nan)
    if start < 0:
        column[weights.word[pairs]] = weights.pairs[pairs]
    else:
        column[START + 1 :] = weights.windows[start + START + 1 : start + size]
    return column
