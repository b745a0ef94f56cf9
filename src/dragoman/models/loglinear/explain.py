"""Why a model says what it says: which features pushed which next words up and down."""

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

if TYPE_CHECKING:  # the model knows this module
    from dragoman.models.loglinear.model import LogLinearModel

TOP_WORDS = 3  # words shown that a feature pushes most, up and down each


@dataclass(frozen=True)
class FeatureContribution:
    """What one feature adds to the score of one word: W_{w,j} x_j. None: it has no weight for this word."""

    feature: str
    amount: float | None


@dataclass(frozen=True)
class ExplainedWord:
    """A next word: its probability, and the sum of which it came, bias and contributions."""

    word: str
    prob: float
    score: float
    bias: float
    contributions: tuple[FeatureContribution, ...]


@dataclass(frozen=True)
class WordContribution:
    word: str
    amount: float


@dataclass(frozen=True)
class ExplainedFeature:
    """A feature that is on, how strongly, and the words it pushes most."""

    feature: str
    value: float  # x_j
    up: tuple[WordContribution, ...]
    down: tuple[WordContribution, ...]


@dataclass(frozen=True)
class Explanation:
    """What follows a prefix, and why."""

    prefix: str
    words: tuple[ExplainedWord, ...]
    features: tuple[ExplainedFeature, ...]
    unseen: tuple[str, ...]  # features that would be on, had training met them


@dataclass(frozen=True)
class _ActiveFeature:
    """A feature that is on after the prefix, with its column of W."""

    name: str
    value: float
    words: NDArray[np.int64]  # (weights,) the words it has weights for
    amounts: NDArray[np.float64]  # (weights,) W_{w,j} x_j


def explain(model: LogLinearModel, prefix: str, words: Sequence[str], k: int) -> Explanation:
    """The k most probable next words after a prefix and those asked for, each taken apart."""
    rows = Corpus.from_sentences([prefix], model.vocab).ids[None, :].astype(np.int64)
    history = WordHistories.from_rows(np.concatenate([np.full((1, 1), START), rows], axis=1))
    features, unseen = _features(model, history)
    scores = model.scores(model.extractor.extract(history))[0]
    log_probs = scores - np.logaddexp.reduce(scores)
    best = np.argsort(-log_probs, kind="stable")[: min(k, len(scores) - 1)]  # `<s>` is the last of all
    chosen = dict.fromkeys([*best.tolist(), *(_word_id(word, model.vocab) for word in words)])
    bias = model.bias.detach().double().numpy()
    explained = tuple(
        ExplainedWord(
            model.vocab.tokens[word],
            float(np.exp(log_probs[word])),
            float(scores[word]),
            float(bias[word]),
            tuple(FeatureContribution(on.name, _amount(on, word)) for on in features),
        )
        for word in chosen
    )
    return Explanation(prefix, explained, tuple(_strongest_words(on, model.vocab) for on in features), unseen)


def _word_id(word: str, vocab: Vocab) -> int:
    """The number of a word that can come next, `</s>` and `<unk>` among them."""
    if word not in vocab.tokens[START + 1 :]:
        raise DataError(f"{word!r} is not among the words the model predicts; ask for others, or for <unk>")
    return vocab.tokens.index(word)


def _features(model: LogLinearModel, history: WordHistories) -> tuple[list[_ActiveFeature], tuple[str, ...]]:
    """What is on after a prefix, and what training never met."""
    contexts, seen, unseen = model.extractor, list[_ActiveFeature](), list[str]()
    for feature in contexts.templates:
        found = feature.extract(history, contexts.tables, contexts.vocab)
        names = feature.describe(history, contexts.tables, contexts.vocab)
        numbers = contexts.index.find(found.key).tolist()
        for name, number, value in zip(names, numbers, found.value.tolist(), strict=True):
            if number == NOT_FOUND:
                unseen.append(name)
            else:
                seen.append(_active_feature(model, name, number, value))
    return seen, tuple(unseen)


def _active_feature(model: LogLinearModel, name: str, number: int, value: float) -> _ActiveFeature:
    weights, size = model.weights(), len(model.vocab)
    pairs, place = slice(weights.begin[number], weights.begin[number + 1]), weights.window_start[number]
    if place < 0:
        return _ActiveFeature(
            name, value, weights.word[pairs].astype(np.int64), value * weights.pairs[pairs].astype(float)
        )
    window = weights.windows[place + 1 : place + size].astype(float)  # without `<s>`
    return _ActiveFeature(name, value, np.arange(1, size), value * window)


def _amount(on: _ActiveFeature, word: int) -> float | None:
    place = int(np.searchsorted(on.words, word))
    return float(on.amounts[place]) if place < len(on.words) and on.words[place] == word else None


def _strongest_words(on: _ActiveFeature, vocab: Vocab) -> ExplainedFeature:
    order = np.argsort(-on.amounts, kind="stable")
    pushes = [WordContribution(vocab.tokens[on.words[place]], float(on.amounts[place])) for place in order.tolist()]
    up = tuple(push for push in pushes[:TOP_WORDS] if push.amount > 0)
    down = tuple(push for push in pushes[: -TOP_WORDS - 1 : -1] if push.amount < 0)
    return ExplainedFeature(on.name, on.value, up, down)
