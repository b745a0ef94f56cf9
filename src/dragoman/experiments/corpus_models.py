"""The rungs of a ladder on one's own text: the laboratory's language models, and translators that suit the time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from dragoman.experiments.corpus_split import CorpusSplit
from dragoman.experiments.language_models import LANGUAGE_MODELS
from dragoman.experiments.trainer import Recipe, TrainingContext, train_model

if TYPE_CHECKING:
    from dragoman.models.language_model import LanguageModel
    from dragoman.models.translator import Translator

COUNTING = ("kn-1", "kn-2", "kn-3", "kn-4", "kn-5")
WITHIN = ("kn-5", "brown-5", "kn-5-cache")  # classes and a cache beside what they start from
LEARNED = ("kn-5", "log-linear-words", "feed-forward", "lstm")
MIXED = ("kn-5-feed-forward", "kn-5-lstm")
NAMES = tuple(dict.fromkeys((*COUNTING, *WITHIN, *LEARNED, *MIXED)))
CORPUS_LANGUAGE_MODELS: dict[str, Recipe[LanguageModel]] = {name: LANGUAGE_MODELS[name] for name in NAMES}

PLAIN, ATTENTION, SECOND = "encoder-decoder", "attention", "attention-2"
ENSEMBLE = "ensemble"
# What each is, in a few words.
DESCRIPTIONS = {
    **{name: f"n-grams of order {name[-1]}, modified Kneser-Ney" for name in COUNTING},
    "brown-5": "5-grams of Brown classes",
    "kn-5-cache": "kn-5 mixed with a cache",
    "log-linear-words": "log-linear, of each of the last four words",
    "feed-forward": "network over the last four words",
    "lstm": "recurrent network over the sentence so far",
    "kn-5-feed-forward": "n-grams and network mixed",
    "kn-5-lstm": "n-grams and recurrent network mixed",
    PLAIN: "translator: the source in one vector",
    ATTENTION: "translator: looks at each word of the source",
    SECOND: "the same from another beginning",
    ENSEMBLE: "two translators with attention together",
}
ENSEMBLE_MINUTES = 10.0  # minutes in all, from which on there is a second translator, for an ensemble
# What each part gets of the time, by weight. Searching is all translating of test sentences.
WEIGHTS = {"log-linear-words": 0.8, "feed-forward": 1.2, "lstm": 2.2}
TRANSLATOR_WEIGHTS = {PLAIN: 3.0, ATTENTION: 4.5, SECOND: 4.5}
SEARCHING = "searching"
SEARCHING_WEIGHT = 3.0
# The larger a translator, the more it can learn, and the longer that takes: (minutes of training from which on, sizes).
SIZES: tuple[tuple[float, dict[str, int]], ...] = (
    (0.0, {"embedding": 64, "hidden": 96, "readout": 64}),
    (0.75, {"embedding": 96, "hidden": 128, "readout": 96}),
    (2.0, {"embedding": 128, "hidden": 192, "readout": 128}),
    (6.0, {"embedding": 192, "hidden": 256, "readout": 192}),
    (15.0, {"embedding": 256, "hidden": 384, "readout": 256}),
)
# Time is short, so steps are large at first; probabilities are told, so labels are not smoothed.
TRAINING: dict[str, Any] = {"learning_rate": 0.004, "warmup": 60, "label_smoothing": 0.0, "batch_size": 600}


def time_weights(translated: bool, minutes: float) -> dict[str, float]:
    """What shares the time: models by gradients, and the search for translations."""
    if not translated:
        return WEIGHTS
    translators = {name: own for name, own in TRANSLATOR_WEIGHTS.items() if name in translator_names(minutes)}
    return {**WEIGHTS, **translators, SEARCHING: SEARCHING_WEIGHT}


def translator_names(minutes: float) -> list[str]:
    """Those that there is time for."""
    return [PLAIN, ATTENTION, *([SECOND] if minutes >= ENSEMBLE_MINUTES else [])]


def sizes_within(pairs: int, minutes: float) -> dict[str, Any]:
    """Settings that suit so many pairs, but no larger than can learn something in so many minutes."""
    from dragoman.models.translator_config import size_preset

    suited = size_preset(pairs)
    within = [sizes for least, sizes in SIZES if least <= minutes][-1]
    return {**suited, **{name: min(suited[name], size) for name, size in within.items()}}


def translator(ground: TrainingContext[CorpusSplit], *, more_seed: int = 0, **settings: Any) -> Translator:
    """A translator of whatever units suit the text, trained in its directory for the minutes that it has."""
    from dragoman.models.translator import Translator
    from dragoman.models.translator_config import TranslatorConfig
    from dragoman.training.presets import TRANSLATOR, translator_preset

    text = ground.train
    train, dev = text.pairs(text.train), text.pairs(text.dev)
    assert ground.minutes is not None, "a share of the time"
    config = TranslatorConfig(**{**sizes_within(len(train), ground.minutes), **settings})
    model = Translator.create(train, *text.tokenizers, config, seed=ground.seed + more_seed)
    advised = translator_preset(len(train))
    training = {**advised, **TRAINING, "batch_size": min(advised.get("batch_size", 900), TRAINING["batch_size"])}
    return train_model(ground, model, (train, dev), TRANSLATOR, training)


CORPUS_TRANSLATORS: dict[str, Recipe[Translator]] = {
    PLAIN: Recipe(partial(translator, encoder="forward", attention="none"), by_gradients=True),
    ATTENTION: Recipe(partial(translator, encoder="bidirectional", attention="mlp"), by_gradients=True),
    SECOND: Recipe(partial(translator, encoder="bidirectional", attention="mlp", more_seed=1), by_gradients=True),
}
