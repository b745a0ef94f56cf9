"""The rungs of the ladder: every kind of language model, and how it is made.

A model joins the ladder by one line of `RUNGS`. Where they are made is `workshop`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from dragoman.experiments.trainer import Recipe, TrainingContext, train_model

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.models.language_model import LanguageModel
    from dragoman.models.neural import NeuralLanguageModel
    from dragoman.training.config import TrainingConfig


# -- how each is made ------------------------------------------------------------------------------------------------


def kneser_ney(ground: TrainingContext[Corpus], order: int) -> LanguageModel:
    from dragoman.ngram.model import NgramModel

    return NgramModel.train(ground.train, order=order)


def brown_class_ngram(ground: TrainingContext[Corpus], order: int, classes: int) -> LanguageModel:
    """The classes are found in the training text; a text that has few words has as many as there are."""
    from dragoman.data.brown import brown_clusters
    from dragoman.ngram.class_model import ClassNgramModel

    words = len(set(ground.train.ids.tolist()))
    clustering = brown_clusters(ground.train, max(2, min(classes, words // 2)))
    return ClassNgramModel.train(ground.train, clustering.as_mapping(), order=order)


def train_cache_mixture(ground: TrainingContext[Corpus], partner: LanguageModel) -> LanguageModel:
    from dragoman.models.cache import CacheModel

    return train_mixture(ground, partner, CacheModel.train(ground.train))


def train_mixture(ground: TrainingContext[Corpus], *parts: LanguageModel) -> LanguageModel:
    """A mixture with weights fitted on the dev text."""
    from dragoman.combine.mixture import Mixture

    return Mixture.fit(parts, ground.dev)


def log_linear(ground: TrainingContext[Corpus], features: str) -> LanguageModel:
    from dragoman.models.loglinear.model import LogLinearModel
    from dragoman.training.presets import LOG_LINEAR

    return _learned(ground, LogLinearModel.create(ground.train, features=features), LOG_LINEAR, LOG_LINEAR_TRAINING)


def feed_forward(ground: TrainingContext[Corpus], training: dict[str, Any], **settings: Any) -> LanguageModel:
    from dragoman.models.feedforward import FeedForwardModel
    from dragoman.training.presets import FEED_FORWARD

    model = FeedForwardModel.create(ground.train, seed=ground.seed, **settings)
    return _learned(ground, model, FEED_FORWARD, training)


def recurrent(ground: TrainingContext[Corpus], cell: str) -> LanguageModel:
    from dragoman.models.recurrent import RecurrentModel
    from dragoman.training.presets import RECURRENT

    model = RecurrentModel.create(ground.train, cell=cell, seed=ground.seed, **RECURRENT_NETWORK)
    return _learned(ground, model, RECURRENT, RECURRENT_TRAINING)


def _learned(
    ground: TrainingContext[Corpus], model: NeuralLanguageModel, recommended: TrainingConfig, training: dict[str, Any]
) -> NeuralLanguageModel:
    return train_model(ground, model, (ground.train, ground.dev), recommended, training)


# Found on the dev text of 20,000 sentences. L1 keeps what was seen once from being believed, as a discount does.
LOG_LINEAR_TRAINING: dict[str, Any] = {
    "learning_rate": 1.0,
    "batch_size": 1000,
    "max_epochs": 8,
    "l1": 0.6,
    "l2": 0.1,
    "schedule": "linear",
    "decay": 1.0,  # the schedule alone says how the rate falls,
    "patience": 8,  # and when to end
}
PAIRS = "word1+word2,word1+word3,word1+word4,word2+word3,word2+word4,word3+word4"
NETWORK: dict[str, Any] = {
    "order": 5,
    "embedding": 64,
    "embedding_reach": 0.5,
    "hidden": (256,),
    "activation": "relu",
    "dropout": 0.2,
    "softmax": "brown",
}
# Tied vectors and much dropout: 20,000 sentences are soon known by heart.
RECURRENT_NETWORK: dict[str, Any] = {
    "embedding": 96,
    "embedding_reach": 0.3,
    "hidden": 256,
    "tied": True,
    "dropout": 0.5,
    "embedding_dropout": 0.15,
    "weight_dropout": 0.3,
    "softmax": "brown",
}
RECURRENT_TRAINING: dict[str, Any] = {
    "learning_rate": 0.005,
    "batch_size": 700,
    "warmup": 100,
    "max_epochs": 12,
    "patience": 12,
}
LANGUAGE_MODELS: dict[str, Recipe[LanguageModel]] = {
    "kn-1": Recipe(partial(kneser_ney, order=1)),
    "kn-2": Recipe(partial(kneser_ney, order=2)),
    "kn-3": Recipe(partial(kneser_ney, order=3)),
    "kn-4": Recipe(partial(kneser_ney, order=4)),
    "kn-5": Recipe(partial(kneser_ney, order=5)),
    "brown-5": Recipe(partial(brown_class_ngram, order=5, classes=400)),
    "kn-5-cache": Recipe(train_cache_mixture, ("kn-5",)),
    "log-linear-words": Recipe(partial(log_linear, features="words-4"), by_gradients=True),
    "log-linear-ngrams": Recipe(partial(log_linear, features="5-gram"), by_gradients=True),
    "log-linear-pairs": Recipe(partial(log_linear, features=f"words-4,{PAIRS}"), by_gradients=True),
    "feed-forward": Recipe(partial(feed_forward, **NETWORK, training={"learning_rate": 0.003}), by_gradients=True),
    "kn-5-feed-forward": Recipe(train_mixture, ("kn-5", "feed-forward")),
    "rnn": Recipe(partial(recurrent, cell="rnn"), by_gradients=True),
    "gru": Recipe(partial(recurrent, cell="gru"), by_gradients=True),
    "lstm": Recipe(partial(recurrent, cell="lstm"), by_gradients=True),
    "kn-5-lstm": Recipe(train_mixture, ("kn-5", "lstm")),
}
