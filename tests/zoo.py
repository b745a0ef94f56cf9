"""One small model of every sort, made from any text. A new sort of model joins all laws by a line in `MODELS`."""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dragoman import (
    Corpus,
    FeedForwardModel,
    LanguageModel,
    LogLinearModel,
    Mixture,
    NgramModel,
    RecurrentModel,
    ensemble,
    fit,
)
from dragoman.buckets import bucketing
from dragoman.models.cache import CacheModel
from dragoman.ngram.arpa import read_arpa, write_arpa
from dragoman.ngram.classes import ClassModel
from dragoman.ngram.smoothing import SMOOTHINGS
from dragoman.ngram.spelling import SpellingModel
from dragoman.text.unknown import Closed

ORDERS = (1, 2, 3, 5)


def _sentence(source: random.Random) -> str:
    """Who does what: `the old dog sees a cat .`, now and then with an unknown word in it."""
    noun = [source.choice(["dog", "cat", "bird", "<unk>"]) for _ in range(2)]
    old = "old " if source.random() < 0.3 else ""
    verb = source.choice(["sees", "hears"])
    end = source.choice([".", ".", "!"])
    return f"the {old}{noun[0]} {verb} {source.choice(['the', 'a'])} {noun[1]} {end}" if noun[1] != noun[0] else "yes !"


TRAINING = [_sentence(random.Random(number)) for number in range(47)] + [""]
HELD_OUT = [
    "the dog sees a cat .",
    "a cat hears the old dog !",
    "",
    "the unicorn sees a <unk> unicorn .",
    "old old the ! yes",
    "the dog sees a cat .",
    "yes",
]
CLASSES = {"dog": "ANIMAL", "cat": "ANIMAL", "bird": "ANIMAL", "sees": "VERB", "hears": "VERB", "!": "END", ".": "END"}
LANGUAGE = Corpus.from_sentences(TRAINING).vocab


@dataclass(frozen=True, eq=False)
class Text:
    """What a model of the zoo is made from."""

    corpus: Corpus
    classes: Mapping[str, str]  # words that go together


TOY = Text(Corpus.from_sentences(TRAINING, LANGUAGE), CLASSES)


def _ngram(text: Text, **settings: Any) -> NgramModel:
    with warnings.catch_warnings():  # a text this small has too few counts of counts, and the model says so
        warnings.simplefilter("ignore")
        return NgramModel.train(text.corpus, **settings)


def _classes(text: Text, **settings: Any) -> ClassModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ClassModel.train(text.corpus, text.classes, **settings)


def _imported(text: Text, name: str, **settings: Any) -> NgramModel:
    """A model that went through an ARPA file."""
    with tempfile.TemporaryDirectory() as directory:
        write_arpa(_ngram(text, **settings), Path(directory) / name)
        return read_arpa(Path(directory) / name)


def _cache(text: Text, **settings: Any) -> CacheModel:
    return CacheModel.train(text.corpus, **settings)


def _feedforward(text: Text, **settings: Any) -> FeedForwardModel:
    """In 64 bits, so that laws hold to the last digits."""
    model = FeedForwardModel.create(text.corpus, embedding=6, precision="float64", **settings)
    fit(model, text.corpus, max_updates=30, learning_rate=0.02, batch_size=100, threads=1)
    return model


def _recurrent(text: Text, **settings: Any) -> RecurrentModel:
    model = RecurrentModel.create(text.corpus, precision="float64", **{"embedding": 6, "hidden": 8, **settings})
    fit(model, text.corpus, max_updates=20, learning_rate=0.02, batch_size=100, steps=10, pool=2, threads=1)
    return model


def _loglinear(text: Text, features: str, **settings: Any) -> LogLinearModel:
    model = LogLinearModel.create(
        text.corpus, features=features, classes=text.classes, precision="float64", suffix_types=2, **settings
    )
    fit(model, text.corpus, optimizer="adagrad", max_updates=15, learning_rate=0.5, batch_size=200, l2=0.1, threads=1)
    return model


def _bucketed(buckets: str, models: list[LanguageModel]) -> Mixture:
    """Weights drawn at random: they differ from bucket to bucket, also where a text has little of one."""
    number = len(bucketing(buckets, models).labels)
    rows = np.random.default_rng(1).dirichlet(np.ones(len(models)), number)
    return Mixture(models, buckets=buckets, bucket_weights=rows)


MODELS: dict[str, Callable[[Text], LanguageModel]] = {
    **{
        f"{smoothing}, order {order}": lambda text, smoothing=smoothing, order=order: _ngram(
            text, smoothing=smoothing, order=order
        )
        for smoothing in SMOOTHINGS
        for order in ORDERS
    },
    "with a closed vocabulary": lambda text: _ngram(text, order=2, unknown=Closed(text.corpus.vocab.known)),
    "unigrams not interpolated": lambda text: _ngram(text, order=3, interpolate_unigrams=False),
    "with a gap": lambda text: _ngram(text, order=3, gap=1),
    "with a wide gap": lambda text: _ngram(text, order=2, gap=3, smoothing="witten-bell"),
    "pruned": lambda text: _ngram(text, order=4, prune=(0, 1, 2)),
    "pruned to nothing": lambda text: _ngram(text, order=3, prune=(0, 1000)),
    "pruned back-off": lambda text: _ngram(text, order=3, prune=(0, 1, 1), smoothing="katz"),
    "pruned stupid back-off": lambda text: _ngram(text, order=3, prune=(0, 1, 1), smoothing="stupid-backoff"),
    "pruned by entropy": lambda text: _ngram(text, order=4, entropy_prune=0.01),
    "pruned by entropy and by counts": lambda text: _ngram(text, order=3, prune=(0, 0, 1), entropy_prune=0.001),
    "quantised": lambda text: _ngram(text, order=3, quantise=True),
    "quantised back-off": lambda text: _ngram(text, order=3, smoothing="katz", quantise=True),
    "pruned and quantised": lambda text: _ngram(text, order=4, entropy_prune=0.01, quantise=True),
    "unknown words spelled out": lambda text: _ngram(text, order=2, unknown=SpellingModel.train(text.corpus, order=2)),
    "classes": lambda text: _classes(text, order=3),
    "classes with a gap": lambda text: _classes(text, order=2, gap=1, smoothing="witten-bell"),
    "from an ARPA file": lambda text: _imported(text, "model.arpa", order=3),
    "back-off from an ARPA file": lambda text: _imported(text, "model.arpa.gz", order=3, smoothing="katz"),
    "unigrams from an ARPA file": lambda text: _imported(text, "model.arpa", order=1),
    "cache of single words": lambda text: _cache(text, order=1, decay=0.9, prior=1.0),
    "cache": lambda text: _cache(text, order=3, decay=0.8, prior=0.5),
    "feed-forward": lambda text: _feedforward(text, order=3, hidden=(8,)),
    "feed-forward, deep, tied, direct": lambda text: _feedforward(
        text, order=4, hidden=(8, 7), activation="relu", tied=True, direct=True, dropout=0.2, embedding_dropout=0.1
    ),
    "feed-forward, softmax by classes": lambda text: _feedforward(
        text, order=3, hidden=(8,), softmax="frequency", softmax_classes=4, direct=True
    ),
    "feed-forward, softmax by Brown classes": lambda text: _feedforward(
        text, order=3, hidden=(8,), softmax="brown", softmax_classes=3, tied=True
    ),
    "feed-forward without a hidden layer": lambda text: _feedforward(text, order=2, hidden=()),
    "log-linear, single words": lambda text: _loglinear(text, "words-2", weights="full", min_seen=5),
    "log-linear, conjunctions": lambda text: _loglinear(text, "4-gram", weights="seen", dropout=0.2),
    "log-linear, hashed": lambda text: _loglinear(text, "word1,word1+word3", weights="hashed", hash_bits=13),
    "log-linear, every sort of feature": lambda text: _loglinear(text, "word1+word2,class1+word3,suffix1,bag"),
    "recurrent, Elman": lambda text: _recurrent(text, cell="rnn"),
    "recurrent, LSTM without forget gate": lambda text: _recurrent(text, cell="lstm-without-forget-gate"),
    "recurrent, LSTM": lambda text: _recurrent(text, cell="lstm", softmax="brown", softmax_classes=3, tied=True),
    "recurrent, LSTM, carries": lambda text: _recurrent(text, cell="lstm", carries=True, layers=2),
    "recurrent, GRU, deep": lambda text: _recurrent(
        text, cell="gru", layers=3, residual=True, hidden=6, first_state="learned", dropout=0.2, variational=True
    ),
    "recurrent, GRU, carries": lambda text: _recurrent(
        text, cell="gru", carries=True, first_state="learned", weight_dropout=0.2
    ),
    "mixture": lambda text: Mixture([_ngram(text, order=3), _cache(text, order=2)], [0.9, 0.1]),
    "mixture with a skip n-gram": lambda text: Mixture(
        [_ngram(text, order=3), _ngram(text, order=2, gap=1)], [0.7, 0.3]
    ),
    "mixture with a member that has no say": lambda text: Mixture(
        [_ngram(text, order=2), _cache(text, order=1)], [1.0, 0.0]
    ),
    "mixture with classes": lambda text: Mixture([_ngram(text, order=3), _classes(text, order=3)], [0.5, 0.5]),
    "mixture of mixtures": lambda text: Mixture(
        [ensemble([_cache(text, order=1), _cache(text, order=2)]), _ngram(text, order=2)], [0.2, 0.8]
    ),
    "mixture by order": lambda text: _bucketed("order", [_ngram(text, order=4), _cache(text, order=2)]),
    "mixture by order, with a gap": lambda text: _bucketed(
        "order", [_cache(text, order=1), _ngram(text, order=3, gap=1), _ngram(text, order=2)]
    ),
    "mixture by entropy": lambda text: _bucketed(
        "entropy", [_classes(text, order=2), _ngram(text, order=3, smoothing="katz"), _ngram(text, order=1)]
    ),
    "mixture by position": lambda text: _bucketed(
        "position", [_ngram(text, order=1), _feedforward(text, order=3, hidden=(8,))]
    ),
    "mixture by frequency": lambda text: _bucketed("frequency", [_ngram(text, order=2), _cache(text, order=1)]),
    "mixture by recency": lambda text: _bucketed(
        "recent", [_ngram(text, order=2), _cache(text, order=3, decay=0.8, prior=0.5)]
    ),
    "mixture by everything": lambda text: _bucketed(
        "order+position+frequency+recent", [_ngram(text, order=3), _cache(text, order=3)]
    ),
    "mixture of bucketed mixtures": lambda text: _bucketed(
        "position",
        [_bucketed("order+recent", [_ngram(text, order=3), _cache(text, order=2)]), _ngram(text, order=1)],
    ),
    "mixture with a feed-forward": lambda text: Mixture(
        [_ngram(text, order=3), _feedforward(text, order=3, hidden=(8,))], [0.5, 0.5]
    ),
    "mixture with a recurrent that carries": lambda text: Mixture(
        [_ngram(text, order=3), _cache(text, order=1), _recurrent(text, carries=True)], [0.5, 0.1, 0.4]
    ),
    "ensemble": lambda text: ensemble([_ngram(text, order=2, smoothing="maximum-likelihood"), _ngram(text, order=1)]),
}


@cache
def model(name: str, text: Text = TOY) -> LanguageModel:
    """A model of the zoo, made once: nothing changes a model, so tests may share it."""
    return MODELS[name](text)
