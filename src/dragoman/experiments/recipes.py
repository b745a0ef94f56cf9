"""How the models of experiments are made: language models, translators of the lab's text and of the user's text.

A model joins an experiment by one entry in a dictionary of recipes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from dragoman.combine.mixture import Mixture
from dragoman.data.brown import brown_clusters
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.tokenizer import PLAIN_TEXT, TREE, Tokenizer
from dragoman.experiments.trainer import Recipe, TrainingContext, train_model
from dragoman.models.cache import CacheModel
from dragoman.models.configs import TranslatorConfig, size_preset
from dragoman.models.feedforward import FeedForwardModel
from dragoman.models.language_model import LanguageModel
from dragoman.models.loglinear.model import LogLinearModel
from dragoman.models.recurrent import RecurrentModel
from dragoman.models.translator import Translator
from dragoman.ngram.class_model import ClassNgramModel
from dragoman.ngram.model import NgramModel
from dragoman.training.config import FEED_FORWARD, LOG_LINEAR, RECURRENT, TRANSLATOR

if TYPE_CHECKING:
    from dragoman.experiments.corpus_data import CorpusSplit
    from dragoman.experiments.lab import LabPairs

Settings = dict[str, Any]


# Tuned on the dev text of 20,000 sentences. L1 removes features that occur only once, as a discount does.
LOG_LINEAR_TRAINING: Settings = {
    "learning_rate": 1.0,
    "batch_size": 1000,
    "max_epochs": 8,
    "l1": 0.6,
    "l2": 0.1,
    "schedule": "linear",
    "decay": 1.0,  # only the schedule lowers the learning rate,
    "patience": 8,  # and only it ends training
}
WORD_PAIRS = "word1+word2,word1+word3,word1+word4,word2+word3,word2+word4,word3+word4"
FEED_FORWARD_NETWORK: Settings = {
    "order": 5,
    "embedding": 64,
    "embedding_reach": 0.5,
    "hidden": (256,),
    "activation": "relu",
    "dropout": 0.2,
    "softmax": "brown",
}
FEED_FORWARD_TRAINING: Settings = {"learning_rate": 0.003}
# Tied embeddings and much dropout: 20,000 sentences are quickly memorised.
RECURRENT_NETWORK: Settings = {
    "embedding": 96,
    "embedding_reach": 0.3,
    "hidden": 256,
    "tied": True,
    "dropout": 0.5,
    "embedding_dropout": 0.15,
    "weight_dropout": 0.3,
    "softmax": "brown",
}
RECURRENT_TRAINING: Settings = {
    "learning_rate": 0.005,
    "batch_size": 700,
    "warmup": 100,
    "max_epochs": 12,
    "patience": 12,
}


def train_ngram(context: TrainingContext[Corpus], order: int) -> LanguageModel:
    """Train a modified Kneser-Ney n-gram model."""
    return NgramModel.train(context.train, order=order)


def train_brown_classes(context: TrainingContext[Corpus], order: int, classes: int) -> LanguageModel:
    """Train a class-based n-gram model; a small text has at most half as many classes as words."""
    words = len(set(context.train.ids.tolist()))
    clustering = brown_clusters(context.train, max(2, min(classes, words // 2)))
    return ClassNgramModel.train(context.train, clustering.as_mapping(), order=order)


def train_mixture(context: TrainingContext[Corpus], *parts: LanguageModel) -> LanguageModel:
    """Fit the weights of a mixture on the dev text."""
    return Mixture.fit(parts, context.dev)


def train_cache_mixture(context: TrainingContext[Corpus], partner: LanguageModel) -> LanguageModel:
    return train_mixture(context, partner, CacheModel.train(context.train))


def train_log_linear(context: TrainingContext[Corpus], features: str) -> LanguageModel:
    model = LogLinearModel.create(context.train, features=features)
    return train_model(context, model, (context.train, context.dev), LOG_LINEAR, LOG_LINEAR_TRAINING)


def train_feed_forward(context: TrainingContext[Corpus], network: Settings, training: Settings) -> LanguageModel:
    model = FeedForwardModel.create(context.train, seed=context.seed, **network)
    return train_model(context, model, (context.train, context.dev), FEED_FORWARD, training)


def train_recurrent(
    context: TrainingContext[Corpus],
    cell: str,
    network: Settings = RECURRENT_NETWORK,
    training: Settings = RECURRENT_TRAINING,
) -> LanguageModel:
    model = RecurrentModel.create(context.train, cell=cell, seed=context.seed, **network)
    return train_model(context, model, (context.train, context.dev), RECURRENT, training)


_feed_forward = partial(train_feed_forward, network=FEED_FORWARD_NETWORK, training=FEED_FORWARD_TRAINING)
LANGUAGE_MODELS: dict[str, Recipe[LanguageModel]] = {
    **{f"kn-{order}": Recipe(partial(train_ngram, order=order)) for order in range(1, 6)},
    "brown-5": Recipe(partial(train_brown_classes, order=5, classes=400)),
    "kn-5-cache": Recipe(train_cache_mixture, ("kn-5",)),
    "log-linear-words": Recipe(partial(train_log_linear, features="words-4"), uses_gradients=True),
    "log-linear-ngrams": Recipe(partial(train_log_linear, features="5-gram"), uses_gradients=True),
    "log-linear-pairs": Recipe(partial(train_log_linear, features=f"words-4,{WORD_PAIRS}"), uses_gradients=True),
    "feed-forward": Recipe(_feed_forward, uses_gradients=True),
    "kn-5-feed-forward": Recipe(train_mixture, ("kn-5", "feed-forward")),
    **{cell: Recipe(partial(train_recurrent, cell=cell), uses_gradients=True) for cell in ("rnn", "gru", "lstm")},
    "kn-5-lstm": Recipe(train_mixture, ("kn-5", "lstm")),
}


# All have the same sizes and the same training, so that they differ only in what their names say.
MAX_LAB_PAIRS = 10_000  # of the ladder, which has many translators
TRANSLATOR_NETWORK: Settings = {
    "embedding": 64,
    "embedding_reach": 0.5,
    "hidden": 128,
    "attention_hidden": 64,
    "filters": 128,
    "readout": 64,
    "tied": True,
    "dropout": 0.2,
}
TRANSLATOR_TRAINING: Settings = {
    "learning_rate": 0.005,
    "batch_size": 32,
    "batch_by": "sentences",
    "warmup": 50,
    "max_epochs": 6,
    "patience": 6,
    "label_smoothing": 0.0,  # probabilities are compared with the true ones, which are not smoothed
}


def train_lab_translator(context: TrainingContext[LabPairs], **settings: str) -> Translator:
    """Train a translator of words; `settings` are those that differ from `TRANSLATOR_NETWORK`."""
    config = TranslatorConfig(**{**TRANSLATOR_NETWORK, **settings})
    format = TREE if config.reads_trees else PLAIN_TEXT
    source = Tokenizer.train("word", context.train.sources(format), format=format)
    target = Tokenizer.train("word", context.train.english)
    train, dev = (
        ParallelCorpus(source.encode(pairs.sources(format)), target.encode(pairs.english))
        for pairs in (context.train, context.dev)
    )
    model = Translator.create(train, source, target, config, seed=context.seed)
    return train_model(context, model, (train, dev), TRANSLATOR, TRANSLATOR_TRAINING)


def _lab_recipe(encoder: str, attention: str) -> Recipe[Translator]:
    return Recipe(partial(train_lab_translator, encoder=encoder, attention=attention), uses_gradients=True)


ENCODERS = ("forward", "reverse", "bidirectional", "convolutional", "recursive", "tree-lstm")
ATTENTIONS = ("dot", "bilinear", "mlp")
LAB_TRANSLATORS: dict[str, Recipe[Translator]] = {
    **{f"encdec-{encoder}": _lab_recipe(encoder, "none") for encoder in ENCODERS},
    **{f"attn-{attention}": _lab_recipe("bidirectional", attention) for attention in ATTENTIONS},
    **{f"attn-{encoder}": _lab_recipe(encoder, "mlp") for encoder in ENCODERS if encoder != "bidirectional"},
}


DEMO_NETWORK: Settings = {
    "embedding": 64,
    "embedding_reach": 0.5,
    "hidden": 128,
    "dropout": 0.2,
    "softmax": "brown",
}
DEMO_TRAINING: Settings = {"learning_rate": 0.008, "max_epochs": 6, "warmup": 50, "patience": 6}
_demo_lstm = partial(train_recurrent, cell="lstm", network=DEMO_NETWORK, training=DEMO_TRAINING)
DEMO_LANGUAGE_MODELS: dict[str, Recipe[LanguageModel]] = {
    "kneser-ney": Recipe(partial(train_ngram, order=4)),
    "lstm": Recipe(_demo_lstm, uses_gradients=True),
}
DEMO_TRANSLATORS: dict[str, Recipe[Translator]] = {
    "encoder-decoder": _lab_recipe("forward", "none"),
    "attention": _lab_recipe("bidirectional", "mlp"),
}


NGRAMS = ("kn-1", "kn-2", "kn-3", "kn-4", "kn-5")
CLASSES_AND_CACHE = ("kn-5", "brown-5", "kn-5-cache")
NETWORKS = ("kn-5", "log-linear-words", "feed-forward", "lstm")
MIXTURES = ("kn-5-feed-forward", "kn-5-lstm")
CORPUS_LANGUAGE_MODELS: dict[str, Recipe[LanguageModel]] = {
    name: LANGUAGE_MODELS[name] for name in dict.fromkeys((*NGRAMS, *CLASSES_AND_CACHE, *NETWORKS, *MIXTURES))
}
ENCODER_DECODER, ATTENTION, SECOND, ENSEMBLE = "encoder-decoder", "attention", "attention-2", "ensemble"
DESCRIPTIONS = {
    **{name: f"n-grams of order {name[-1]}, modified Kneser-Ney" for name in NGRAMS},
    "brown-5": "5-grams of Brown classes",
    "kn-5-cache": "kn-5 mixed with a cache",
    "log-linear-words": "log-linear model of the last four words",
    "feed-forward": "network over the last four words",
    "lstm": "recurrent network over the sentence so far",
    "kn-5-feed-forward": "mixture of n-grams and network",
    "kn-5-lstm": "mixture of n-grams and recurrent network",
    ENCODER_DECODER: "translator: the source as one vector",
    ATTENTION: "translator: attention to each source word",
    SECOND: "the same with another random seed",
    ENSEMBLE: "two translators with attention together",
}
ENSEMBLE_MINUTES = 10.0  # of the experiment; from 10 on, a second translator is trained for an ensemble
# Shares of the time. Searching is the translation of test sentences.
LANGUAGE_MODEL_WEIGHTS = {"log-linear-words": 0.8, "feed-forward": 1.2, "lstm": 2.2}
TRANSLATOR_WEIGHTS = {ENCODER_DECODER: 3.0, ATTENTION: 4.5, SECOND: 4.5}
SEARCHING, SEARCHING_WEIGHT = "searching", 3.0
# Larger translators learn more but need longer: (least minutes of training, sizes).
SIZES_BY_MINUTES: tuple[tuple[float, dict[str, int]], ...] = (
    (0.0, {"embedding": 64, "hidden": 96, "readout": 64}),
    (0.75, {"embedding": 96, "hidden": 128, "readout": 96}),
    (2.0, {"embedding": 128, "hidden": 192, "readout": 128}),
    (6.0, {"embedding": 192, "hidden": 256, "readout": 192}),
    (15.0, {"embedding": 256, "hidden": 384, "readout": 256}),
)
# Time is short, so the first steps are large; probabilities are reported, so labels are not smoothed.
CORPUS_TRAINING: Settings = {"learning_rate": 0.004, "warmup": 60, "label_smoothing": 0.0, "batch_size": 600}


def translator_names(minutes: float) -> list[str]:
    """Return the translators that there is time for."""
    return [ENCODER_DECODER, ATTENTION, *([SECOND] if minutes >= ENSEMBLE_MINUTES else [])]


def time_weights(is_parallel: bool, minutes: float) -> dict[str, float]:
    """Return the weights by which models trained by gradient descent, and searching, share the time."""
    if not is_parallel:
        return LANGUAGE_MODEL_WEIGHTS
    translators = {name: TRANSLATOR_WEIGHTS[name] for name in translator_names(minutes)}
    return {**LANGUAGE_MODEL_WEIGHTS, **translators, SEARCHING: SEARCHING_WEIGHT}


def sizes_within(pairs: int, minutes: float) -> Settings:
    """Return sizes that suit the number of pairs, but can be trained in the given time."""
    suited, largest = size_preset(pairs).model, [sizes for minimum, sizes in SIZES_BY_MINUTES if minimum <= minutes][-1]
    return {**suited, **{name: min(suited[name], size) for name, size in largest.items()}}


def train_corpus_translator(
    context: TrainingContext[CorpusSplit], *, seed_offset: int = 0, **settings: str
) -> Translator:
    """Train a translator with sizes that suit the text and the time."""
    split = context.train
    train, dev = split.encode(split.train), split.encode(split.dev)
    assert context.minutes is not None, "given by the time budget"
    config = TranslatorConfig(**{**sizes_within(len(train), context.minutes), **settings})
    model = Translator.create(train, *split.tokenizers, config, seed=context.seed + seed_offset)
    preset = size_preset(len(train)).training
    batch_size = min(preset.get("batch_size", 900), CORPUS_TRAINING["batch_size"])
    training = {**preset, **CORPUS_TRAINING, "batch_size": batch_size}
    return train_model(context, model, (train, dev), TRANSLATOR, training)


_with_attention = partial(train_corpus_translator, encoder="bidirectional", attention="mlp")
CORPUS_TRANSLATORS: dict[str, Recipe[Translator]] = {
    ENCODER_DECODER: Recipe(partial(train_corpus_translator, encoder="forward", attention="none"), uses_gradients=True),
    ATTENTION: Recipe(_with_attention, uses_gradients=True),
    SECOND: Recipe(partial(_with_attention, seed_offset=1), uses_gradients=True),
}
