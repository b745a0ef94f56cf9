"""Explanation of a log-linear model's predictions: the contribution of each feature to each next word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
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


@dataclass(frozen=True)
class _ActiveFeature:
    """A feature of the prefix with its column of W."""

    name: str
    value: float
    words: NDArray[np.int64]  # (weights,) the words it has weights for, increasing
    amounts: NDArray[np.float64]  # (weights,) W_{w,j} x_j

    def amount(self, word: int) -> float | None:
        index = int(np.searchsorted(self.words, word))
        return float(self.amounts[index]) if index < len(self.words) and self.words[index] == word else None

    def strongest_words(self, vocab: Vocab) -> ExplainedFeature:
        order = np.argsort(-self.amounts, kind="stable").tolist()
        contributions = [WordContribution(vocab.tokens[self.words[i]], float(self.amounts[i])) for i in order]
        up = tuple(word for word in contributions[:TOP_WORDS] if word.amount > 0)
        down = tuple(word for word in contributions[: -TOP_WORDS - 1 : -1] if word.amount < 0)
        return ExplainedFeature(self.name, self.value, up, down)


def explain(model: LogLinearModel, prefix: str, words: Sequence[str], k: int) -> Explanation:
    """Explain the k most probable next words after a prefix, and `words`."""
    rows = Corpus.from_sentences([prefix], model.vocab).ids[None, :].astype(np.int64)
    history = WordHistories.from_rows(np.concatenate([np.full((1, 1), START), rows], axis=1))
    features, unseen = _features(model, history)
    scores = model.scores(model.extractor.extract(history))[0]
    log_probs = scores - np.logaddexp.reduce(scores)
    best = np.argsort(-log_probs, kind="stable")[: min(k, len(scores) - 1)]  # `<s>` is last
    chosen = dict.fromkeys([*best.tolist(), *(_word_id(word, model.vocab) for word in words)])
    bias = model.bias.detach().double().numpy()
    explained = tuple(
        ExplainedWord(
            model.vocab.tokens[word],
            float(np.exp(log_probs[word])),
            float(scores[word]),
            float(bias[word]),
            tuple(FeatureContribution(feature.name, feature.amount(word)) for feature in features),
        )
        for word in chosen
    )
    return Explanation(prefix, explained, tuple(feature.strongest_words(model.vocab) for feature in features), unseen)


def _word_id(word: str, vocab: Vocab) -> int:
    """Return the id of a word that the model can predict, including `</s>` and `<unk>`."""
    if word not in vocab.tokens[START + 1 :]:
        raise DataError(f"{word!r}: the model does not predict this word; choose another word, or <unk>")
    return vocab.tokens.index(word)


def _features(model: LogLinearModel, history: WordHistories) -> tuple[list[_ActiveFeature], tuple[str, ...]]:
    """Return the active features of the prefix, and the names of those without weights."""
    extractor, active, unseen = model.extractor, list[_ActiveFeature](), list[str]()
    for template in extractor.templates:
        occurrences = template.extract(history, extractor.tables, extractor.vocab)
        names = template.describe(history, extractor.tables, extractor.vocab)
        ids = extractor.index.find(occurrences.key).tolist()
        for name, feature, value in zip(names, ids, occurrences.value.tolist(), strict=True):
            if feature == NOT_FOUND:
                unseen.append(name)
            else:
                active.append(_active_feature(model, name, feature, value))
    return active, tuple(unseen)


def _active_feature(model: LogLinearModel, name: str, feature: int, value: float) -> _ActiveFeature:
    weights, size = model.weights(), len(model.vocab)
    pairs, start = slice(weights.begin[feature], weights.begin[feature + 1]), weights.window_start[feature]
    if start < 0:
        amounts = value * weights.pairs[pairs].astype(float)
        return _ActiveFeature(name, value, weights.word[pairs].astype(np.int64), amounts)
    window = weights.windows[start + 1 : start + size].astype(float)  # without `<s>`
    return _ActiveFeature(name, value, np.arange(1, size), value * window)
