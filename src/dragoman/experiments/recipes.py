"""How the models of experiments are made: language models, translators of the lab's text and of the user's text.

A model joins an experiment by one entry in a dictionary of recipes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from dragoman.combine.mixture import Mixture
from dragoman.data.brown import brown_clusters
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.tokenizer import PLAIN_TEXT, TREE, LinePairs, Tokenizer
from dragoman.experiments.trainer import Recipe, TextT, TrainingContext, train_model
from dragoman.models.cache import CacheModel
from dragoman.models.configs import FeedForwardConfig, NetworkConfig, RecurrentConfig, TranslatorConfig
from dragoman.models.feedforward import FeedForwardModel
from dragoman.models.language_model import LanguageModel
from dragoman.models.loglinear.model import LogLinearModel
from dragoman.models.neural import EmbeddingLanguageModel
from dragoman.models.planning import EncodedPairs, StoredRun, TranslatorPlanner, plan_language_model
from dragoman.models.recurrent import RecurrentModel
from dragoman.models.translator import Translator
from dragoman.ngram.class_model import ClassNgramModel
from dragoman.ngram.model import NgramModel
from dragoman.training.config import FEED_FORWARD, LOG_LINEAR, RECURRENT, TRANSLATOR, TrainingConfig

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
# Probabilities are reported, so labels are not smoothed.
CORPUS_TRAINING: Settings = {"label_smoothing": 0.0}


def translator_names(minutes: float) -> list[str]:
    """Return the translators that there is time for."""
    return [ENCODER_DECODER, ATTENTION, *([SECOND] if minutes >= ENSEMBLE_MINUTES else [])]


def time_weights(is_parallel: bool, minutes: float) -> dict[str, float]:
    """Return the weights by which models trained by gradient descent, and searching, share the time."""
    if not is_parallel:
        return LANGUAGE_MODEL_WEIGHTS
    translators = {name: TRANSLATOR_WEIGHTS[name] for name in translator_names(minutes)}
    return {**LANGUAGE_MODEL_WEIGHTS, **translators, SEARCHING: SEARCHING_WEIGHT}


def train_corpus_translator(
    context: TrainingContext[CorpusSplit], *, seed_offset: int = 0, same_as: str | None = None, **settings: str
) -> Translator:
    """Train a translator with sizes that suit the text and the time; with those of `same_as`, if that is trained."""
    split = context.train
    train, dev = split.encode(split.train), split.encode(split.dev)
    config, training = TranslatorConfig.model_validate(settings), TRANSLATOR.model_copy(update=CORPUS_TRAINING)
    given = {"model": set(settings), "training": set(CORPUS_TRAINING)}
    stored = _stored_run(context, same_as)
    if stored is not None:
        config, training = stored.apply(config, training, given)
    else:
        data = EncodedPairs(train, *split.tokenizers)
        dev_lines = LinePairs(list(split.dev.sources), list(split.dev.target))
        plan = TranslatorPlanner(lambda subwords: data, dev_lines, config, training, given).plan(context.minutes)
        config, training = plan.model, plan.training
    model = Translator.create(train, *split.tokenizers, config, seed=context.seed + seed_offset)
    return train_model(context, model, (train, dev), training, {})


def train_corpus_network(
    context: TrainingContext[Corpus],
    network: type[EmbeddingLanguageModel],
    config: NetworkConfig,
    training: TrainingConfig,
) -> LanguageModel:
    """Train a language model with sizes that suit the text and the time. Classes in the softmax make it fast."""
    config = config.model_copy(update={"softmax": "brown"})
    given = {"model": {"softmax"}, "training": set[str]()}
    stored = _stored_run(context)
    if stored is not None:
        config, training = stored.apply(config, training, given)
    else:
        settings = config, training, given, context.minutes
        plan = plan_language_model(network, context.train, context.dev, *settings)
        config, training = plan.model, plan.training
    model = network.create(context.train, config, seed=context.seed)
    return train_model(context, model, (context.train, context.dev), training, {})


def _stored_run(context: TrainingContext[TextT], same_as: str | None = None) -> StoredRun | None:
    """Return the settings of a training run that is resumed, or those of another model."""
    stored = None if context.retrain else StoredRun.read(context.path)
    return stored or (None if same_as is None else StoredRun.read(context.path.parent / same_as))


_with_attention = partial(train_corpus_translator, encoder="bidirectional", attention="mlp")
CORPUS_TRANSLATORS: dict[str, Recipe[Translator]] = {
    ENCODER_DECODER: Recipe(partial(train_corpus_translator, encoder="forward", attention="none"), uses_gradients=True),
    ATTENTION: Recipe(_with_attention, uses_gradients=True),
    SECOND: Recipe(partial(_with_attention, seed_offset=1, same_as=ATTENTION), uses_gradients=True),
}
_feed_forward_recipe = partial(
    train_corpus_network, network=FeedForwardModel, config=FeedForwardConfig(), training=FEED_FORWARD
)
_recurrent_recipe = partial(train_corpus_network, network=RecurrentModel, config=RecurrentConfig(), training=RECURRENT)
CORPUS_LANGUAGE_MODELS: dict[str, Recipe[LanguageModel]] = {
    **{name: LANGUAGE_MODELS[name] for name in dict.fromkeys((*NGRAMS, *CLASSES_AND_CACHE, *NETWORKS, *MIXTURES))},
    "feed-forward": Recipe(_feed_forward_recipe, uses_gradients=True),
    "lstm": Recipe(_recurrent_recipe, uses_gradients=True),
}
