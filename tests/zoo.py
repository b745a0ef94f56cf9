"""One small model of every sort, on one small text. A new sort of model joins all laws by a line in `MODELS`."""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from dragoman import Corpus, LanguageModel, Mixture, NgramModel, ensemble
from dragoman.models.cache import CacheModel
from dragoman.ngram.arpa import read_arpa, write_arpa
from dragoman.ngram.classes import ClassModel
from dragoman.ngram.smoothing import SMOOTHINGS
from dragoman.ngram.spelling import SpellingModel
from dragoman.text.unknown import Closed

ORDERS = (1, 2, 3, 4)


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


@cache
def _text() -> Corpus:
    return Corpus.from_sentences(TRAINING, LANGUAGE)


def _ngram(**settings: Any) -> NgramModel:
    with warnings.catch_warnings():  # a text this small has too few counts of counts, and the model says so
        warnings.simplefilter("ignore")
        return NgramModel.train(_text(), **settings)


def _classes(**settings: Any) -> ClassModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ClassModel.train(_text(), CLASSES, **settings)


def _imported(name: str, **settings: Any) -> NgramModel:
    """A model that went through an ARPA file."""
    with tempfile.TemporaryDirectory() as directory:
        write_arpa(_ngram(**settings), Path(directory) / name)
        return read_arpa(Path(directory) / name)


def _cache(**settings: Any) -> CacheModel:
    return CacheModel.train(_text(), **settings)


MODELS: dict[str, Callable[[], LanguageModel]] = {
    **{
        f"{smoothing}, order {order}": lambda smoothing=smoothing, order=order: _ngram(smoothing=smoothing, order=order)
        for smoothing in SMOOTHINGS
        for order in ORDERS
    },
    "with a closed vocabulary": lambda: _ngram(order=2, unknown=Closed(LANGUAGE.known)),
    "unigrams not interpolated": lambda: _ngram(order=3, interpolate_unigrams=False),
    "with a gap": lambda: _ngram(order=3, gap=1),
    "with a wide gap": lambda: _ngram(order=2, gap=3, smoothing="witten-bell"),
    "pruned": lambda: _ngram(order=4, prune=(0, 1, 2)),
    "pruned to nothing": lambda: _ngram(order=3, prune=(0, 1000)),
    "pruned back-off": lambda: _ngram(order=3, prune=(0, 1, 1), smoothing="katz"),
    "pruned stupid back-off": lambda: _ngram(order=3, prune=(0, 1, 1), smoothing="stupid-backoff"),
    "pruned by entropy": lambda: _ngram(order=4, entropy_prune=0.01),
    "pruned by entropy and by counts": lambda: _ngram(order=3, prune=(0, 0, 1), entropy_prune=0.001),
    "quantised": lambda: _ngram(order=3, quantise=True),
    "quantised back-off": lambda: _ngram(order=3, smoothing="katz", quantise=True),
    "pruned and quantised": lambda: _ngram(order=4, entropy_prune=0.01, quantise=True),
    "unknown words spelled out": lambda: _ngram(order=2, unknown=SpellingModel.train(_text(), order=2)),
    "classes": lambda: _classes(order=3),
    "classes with a gap": lambda: _classes(order=2, gap=1, smoothing="witten-bell"),
    "from an ARPA file": lambda: _imported("model.arpa", order=3),
    "back-off from an ARPA file": lambda: _imported("model.arpa.gz", order=3, smoothing="katz"),
    "unigrams from an ARPA file": lambda: _imported("model.arpa", order=1),
    "cache of single words": lambda: _cache(order=1, decay=0.9, prior=1.0),
    "cache": lambda: _cache(order=3, decay=0.8, prior=0.5),
    "mixture": lambda: Mixture([_ngram(order=3), _cache(order=2)], [0.9, 0.1]),
    "mixture with a skip n-gram": lambda: Mixture([_ngram(order=3), _ngram(order=2, gap=1)], [0.7, 0.3]),
    "mixture with a member that has no say": lambda: Mixture([_ngram(order=2), _cache(order=1)], [1.0, 0.0]),
    "mixture with classes": lambda: Mixture([_ngram(order=3), _classes(order=3)], [0.5, 0.5]),
    "mixture of mixtures": lambda: Mixture([ensemble([_cache(order=1), _cache(order=2)]), _ngram(order=2)], [0.2, 0.8]),
    "ensemble": lambda: ensemble([_ngram(order=2, smoothing="maximum-likelihood"), _ngram(order=1)]),
}


@cache
def model(name: str) -> LanguageModel:
    """A model of the zoo, made once: nothing changes a model, so tests may share it."""
    return MODELS[name]()
