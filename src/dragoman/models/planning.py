"""Plans: sizes, units and training settings of models for a text and a number of minutes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from dragoman.core.errors import DataError
from dragoman.core.settings import Settings, validate
from dragoman.data.copied_items import PLACEHOLDER
from dragoman.data.corpus import BidirectionalCorpus, Corpus, ParallelCorpus
from dragoman.data.tokenizer import LinePairs, Tokenizer
from dragoman.evaluation.task_scores import token_kind
from dragoman.io.storage import CHECKPOINT_FILE, FORWARD, SOURCE_VOCAB_FILE, TWO_WAY_KIND, read_config
from dragoman.models.configs import FeedForwardConfig, NetworkConfig, TranslatorConfig
from dragoman.models.neural import EmbeddingLanguageModel
from dragoman.models.translator import Translator
from dragoman.models.two_way import TwoWayTranslator
from dragoman.training.config import TrainingConfig, with_given_limits
from dragoman.training.distributed import communicator
from dragoman.training.pace import TimeReserve
from dragoman.training.planning import (
    DEFAULT_MINUTES,
    MAX_TRIAL_SECONDS,
    MEASURING_SHARE,
    Candidate,
    TrainingPlanner,
    not_given,
)

SettingsT = TypeVar("SettingsT", bound=Settings)
MAX_HIDDEN = 15.0  # of translators, times the fourth root of the number of predictions in the training text
MAX_LANGUAGE_MODEL_HIDDEN = 20.0  # of language models, likewise
FEED_FORWARD_RATE = 0.5  # learning rate of feed-forward networks, relative to recurrent ones
FEW_SUBWORDS = 4_000  # at most, unless there is time for more epochs than the following
EPOCHS_WITH_MORE_SUBWORDS = 5.0
EPOCHS_WITHOUT_DROPOUT, DROPOUT_OF_DOUBLING, MAX_DROPOUT = 1.5, 0.1, 0.4  # see dropout_for
SMOOTHED_EPOCHS = 3.0  # from this many on, labels are smoothed
LABEL_SMOOTHING = 0.1
SEARCH_COST = 2.5  # of translating the dev text by beam search, relative to training on its predictions once
SEARCH_STARTUP = 2.0  # seconds
SEARCH_SHARE = 0.05  # of the time, at most, for translating the dev text
LAST_EVALUATION_SHARE = 0.1  # of the time, at most, for the last evaluation of a language model


class NetworkSize(NamedTuple):
    """Sizes of a network."""

    embedding: int
    hidden: int


LANGUAGE_MODEL_SIZES = (32, 48, 64, 96, 128, 200, 300, 450, 650, 1000)
TRANSLATOR_SIZES = tuple(
    NetworkSize(*sizes)
    for sizes in (
        (48, 64),
        (64, 96),
        (96, 128),
        (128, 192),
        (192, 256),
        (256, 384),
        (320, 512),
        (448, 768),
        (512, 1024),
    )
)


class EncodedPairs(NamedTuple):
    """Training pairs, and the tokenizers that encoded them."""

    pairs: ParallelCorpus
    source: Tokenizer
    target: Tokenizer


@dataclass(frozen=True)
class TranslatorPlan:
    """What to train, and how."""

    data: EncodedPairs
    model: TranslatorConfig
    training: TrainingConfig
    parameters: int
    epochs: float  # that are expected
    minutes: float  # that training is expected to take

    def describe(self, *, with_time: bool = True) -> str:
        """Return the plan in a few words, such as "4,000 subwords, 2.1 million parameters, about 9 epochs"."""
        sizes = f"embedding {self.model.embedding}, hidden {self.model.hidden}"
        vocabulary = f"{self.data.target.vocab.num_known:,} {token_kind(self.data.target)}s"
        minutes = self.minutes if with_time else None
        return f"{vocabulary}, {sizes}, {_describe(self.parameters, self.epochs, minutes)}"


class StoredRun(NamedTuple):
    """The settings of a training run in a directory, which are used again when it is resumed."""

    model: Mapping[str, object]
    training: Mapping[str, object]
    units: tuple[str, str] | None  # of source and target of a translator
    pairs: int  # or sentences, that it is trained on
    dev_pairs: int  # in the dev text
    has_placeholders: bool  # in the training text of a translator
    path: Path

    @classmethod
    def read(cls, path: Path) -> StoredRun | None:
        """Read the settings; None if there is no training run that can be resumed.

        Of several processes, process 0 reads them.
        """
        values = communicator().from_main(lambda: cls._read_values(path))
        if values is None:
            return None
        model, training, units, pairs, dev_pairs, has_placeholders = values
        units = None if units is None else (units[0], units[1])
        return cls(model, training, units, pairs, dev_pairs, has_placeholders, path)

    @classmethod
    def _read_values(cls, path: Path) -> list[Any] | None:
        """Return the fields as plain types, without the path."""
        if not (path / CHECKPOINT_FILE).is_file():
            return None
        try:
            stored = read_config(path)
            part, directory = stored, path
            if stored["kind"] == TWO_WAY_KIND:
                directory = path / FORWARD
                part = read_config(directory)
            units = (part["source"]["units"], part["target"]["units"]) if "source" in part else None
            pairs, dev_pairs = (_count_sentences(stored["data"][name]) for name in ("train", "dev"))
            has_placeholders = stored["data"].get("placeholders")
            if has_placeholders is None and units is not None:  # not stored by earlier versions
                has_placeholders = PLACEHOLDER in (directory / SOURCE_VOCAB_FILE).read_text("utf-8")
            model = {"dtype" if name == "precision" else name: value for name, value in stored["model"].items()}
            return [model, dict(stored["training"]), units, pairs, dev_pairs, bool(has_placeholders)]
        except (DataError, OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # what is wrong is reported when training is resumed

    def apply(
        self, model: SettingsT, training: TrainingConfig, given: Mapping[str, Collection[str]]
    ) -> tuple[SettingsT, TrainingConfig]:
        """Return the stored settings, except those that are given. A limit that is given replaces the stored ones."""
        if set(self.model) - set(type(model).model_fields):
            remedy = "choose another directory, or start again with --force"
            raise DataError(f"{self.path}: contains a different training run (another kind of model); {remedy}")
        training = validate(training, not_given(self.training, given["training"]), "training")
        return (
            validate(model, not_given(self.model, given["model"]), "model"),
            with_given_limits(training, given["training"]),
        )


def _count_sentences(fingerprint: Mapping[str, Any] | None) -> int:
    """Return the number of sentences or pairs of a text by its fingerprint."""
    if fingerprint is None:
        return 0
    return int(fingerprint.get("source", fingerprint)["sentences"])


@dataclass(frozen=True)
class TranslatorPlanner:
    """Plans the training of a translator on a text. Settings that are not given are chosen."""

    encode: Callable[[int | None], EncodedPairs]  # the training pairs with at most this many subwords
    dev: LinePairs | None
    model: TranslatorConfig
    training: TrainingConfig
    given: Mapping[str, Collection[str]]  # names of the settings that are given, of the sections model and training
    scale: float = 1.0  # size of the text, if the pairs are only a sample of it
    trial_seconds: float = MAX_TRIAL_SECONDS  # at most, for measuring one size
    measured: dict[NetworkSize, Candidate[NetworkSize]] = field(default_factory=dict)

    def plan(self, minutes: float | None, elapsed: Callable[[], float] = lambda: 0.0) -> TranslatorPlan:
        """Return the plan for a number of minutes, of which `elapsed()` seconds are over.

        Without a number, training ends when the dev loss stops improving, after at most an hour.
        """
        limit = 60 * (minutes or DEFAULT_MINUTES)
        before = self._seconds(elapsed)
        data = self.encode(FEW_SUBWORDS)
        encoding_seconds = self._seconds(elapsed) - before
        planner = self._planner(data, self.training, elapsed)
        chosen = planner.choose(limit)
        has_time = encoding_seconds + planner.measuring_seconds <= MEASURING_SHARE * limit  # to do the same again
        if has_time and planner.epochs_within(chosen, planner.seconds_left(limit)) >= EPOCHS_WITH_MORE_SUBWORDS:
            more = self.encode(None)
            if _has_chosen_subwords(more, data):
                training = self.training.model_copy(update={"threads": planner.threads})
                other = replace(self, measured={})._planner(more, training, elapsed)
                other.measuring_seconds = planner.measuring_seconds
                candidate = other.choose(limit)
                if candidate.size >= min(chosen.size, other.sizes[-1]):
                    data, planner, chosen = more, other, candidate
        dev_predictions = self._count_dev_predictions(data)
        plan = planner.complete(chosen, minutes, reserve_for_search(dev_predictions), dev_predictions)
        smoothing = {"label_smoothing": LABEL_SMOOTHING if plan.epochs >= SMOOTHED_EPOCHS else 0.0}
        return TranslatorPlan(
            data=data,
            model=self._model_config(chosen.size, plan.epochs),
            training=plan.training.model_copy(update=not_given(smoothing, self.given["training"])),
            parameters=chosen.parameters,
            epochs=plan.epochs,
            minutes=plan.minutes,
        )

    def _seconds(self, elapsed: Callable[[], float]) -> float:
        """Return the seconds that are over, the same in all processes that train together."""
        return communicator(self.training.device).from_main(elapsed)

    def _count_dev_predictions(self, data: EncodedPairs) -> int:
        if self.dev is None:
            return 0
        predicted = [(data.target, self.dev.target), *([(data.source, self.dev.source)] if self.model.symmetry else [])]
        return sum(int(tokenizer.encode(text).sizes.sum()) for tokenizer, text in predicted)

    def _planner(
        self, data: EncodedPairs, training: TrainingConfig, elapsed: Callable[[], float]
    ) -> TrainingPlanner[NetworkSize]:
        pairs, symmetry = data.pairs, self.model.symmetry
        if symmetry:
            pairs = BidirectionalCorpus(pairs.source, pairs.target)

        def create(size: NetworkSize) -> Translator | TwoWayTranslator:
            """Return what is trained, for measuring its speed, without what takes long to prepare."""
            config = self._model_config(size, SMOOTHED_EPOCHS)
            config = config.model_copy(update={"lexicon": False, "supervision": 0.0})
            kind = TwoWayTranslator if symmetry else Translator
            return kind.create(pairs, data.source, data.target, config, seed=training.seed)

        def estimate_parameters(size: NetworkSize) -> int:
            """Return about how many parameters a translator has, without creating it."""
            embedding, hidden = size
            encoder = 4 * hidden * (embedding + hidden // 2)
            decoder = 4 * hidden * (embedding + 2 * hidden) + 3 * hidden * hidden + 2 * hidden * embedding
            single = encoder + decoder + embedding * (len(data.source.vocab) + len(data.target.vocab))
            return 2 * single if symmetry else single

        return TrainingPlanner(
            self._sizes(data),
            create,
            estimate_parameters,
            pairs,
            pairs.target.unigram_entropy,
            training,
            self.given["training"],
            elapsed,
            scale=self.scale,
            trial_seconds=self.trial_seconds,
            measured=self.measured,
        )

    def _sizes(self, data: EncodedPairs) -> list[NetworkSize]:
        """Return the sizes that suit the amount of text, with those that are given; at least one."""
        most = MAX_HIDDEN * (self.scale * int(data.pairs.sizes.sum())) ** 0.25
        suited = [size for size in TRANSLATOR_SIZES if size.hidden <= most] or [TRANSLATOR_SIZES[0]]
        fixed = {name: getattr(self.model, name) for name in NetworkSize._fields if name in self.given["model"]}
        return list(dict.fromkeys(size._replace(**fixed) for size in suited))

    def _model_config(self, size: NetworkSize, epochs: float) -> TranslatorConfig:
        choices = {"tied": True, **size._asdict(), "readout": size.embedding, **dropout_for(epochs)}
        return self.model.model_copy(update=not_given(choices, self.given["model"]))


def reserve_for_search(predictions: int, again: int = 0, seconds: float = 0.0) -> TimeReserve:
    """Return the time for translating texts with this many predictions, by beam search.

    Args:
        predictions: In the texts.
        again: In those that are translated twice, to compare two searches.
        seconds: Time for preparing the comparison.
    """
    if not predictions:
        return TimeReserve()
    share = SEARCH_SHARE * (predictions + again) / predictions
    return TimeReserve(SEARCH_COST * (predictions + again), SEARCH_STARTUP, share, seconds)


def reserve_for_evaluation(predictions: int) -> TimeReserve:
    """Return the time for computing the perplexity of this many predictions: no backward pass."""
    return TimeReserve(predictions / 3, max_share=LAST_EVALUATION_SHARE)


def dropout_for(epochs: float) -> dict[str, float]:
    """Return the dropout rates for a number of epochs: the more often a text is read, the more it is memorised.

    That of embeddings is lower, because it removes what was read.

    >>> [dropout_for(epochs)["dropout"] for epochs in (1, 3, 6, 12, 24, 100)]
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.4]
    """
    doublings = math.log2(max(EPOCHS_WITHOUT_DROPOUT, epochs) / EPOCHS_WITHOUT_DROPOUT)
    dropout = min(MAX_DROPOUT, DROPOUT_OF_DOUBLING * doublings)
    return {"dropout": round(dropout, 2), "embedding_dropout": round(min(MAX_DROPOUT / 2, max(0.0, dropout - 0.1)), 2)}


def _has_chosen_subwords(data: EncodedPairs, fewer: EncodedPairs) -> bool:
    """Return whether other numbers of subwords were chosen than in data with fewer."""
    return any(
        tokenizer.segmenter.spec != small.segmenter.spec
        for tokenizer, small in ((data.source, fewer.source), (data.target, fewer.target))
    )


@dataclass(frozen=True)
class FineTuningPlan:
    """How to train a translator further."""

    training: TrainingConfig
    parameters: int
    epochs: float  # that are expected
    minutes: float  # that training is expected to take

    def describe(self) -> str:
        """Return the plan in a few words, such as "2.1 million parameters, about 9 epochs in 10 minutes"."""
        return _describe(self.parameters, self.epochs, self.minutes)


def plan_fine_tuning(
    translator: Translator,
    pairs: ParallelCorpus,
    dev: LinePairs | None,
    training: TrainingConfig,
    given: Collection[str],
    elapsed: Callable[[], float],
) -> FineTuningPlan:
    """Return how to train a translator further, with its learning rate.

    Args:
        translator: The translator.
        pairs: The training pairs.
        dev: The dev text.
        training: Settings of training; those that are not given are chosen.
        given: Names of the settings of training that are given.
        elapsed: Returns the seconds of the minutes that are over.
    """
    parameters = sum(parameter.numel() for parameter in translator.parameters())
    planner = TrainingPlanner(
        [None],
        lambda size: deepcopy(translator),
        lambda size: parameters,
        pairs,
        pairs.target.unigram_entropy,
        training,
        {*given, "learning_rate", "warmup"},
        elapsed,
    )
    chosen = planner.choose(60 * (training.minutes or DEFAULT_MINUTES))
    dev_predictions = 0 if dev is None else int(translator.target.encode(dev.target).sizes.sum())
    reserve = reserve_for_search(2 * dev_predictions)  # with the translator before and after training
    plan = planner.complete(chosen, training.minutes, reserve, dev_predictions)
    return FineTuningPlan(plan.training, parameters, plan.epochs, plan.minutes)


@dataclass(frozen=True)
class LanguageModelPlan:
    """What to train, and how."""

    model: NetworkConfig
    training: TrainingConfig
    parameters: int
    epochs: float  # that are expected
    minutes: float  # that training is expected to take

    def describe(self) -> str:
        """Return the plan in a few words, such as "hidden 200, 2.1 million parameters, about 9 epochs"."""
        return f"hidden {self.model.model_dump()['hidden']}, {_describe(self.parameters, self.epochs, self.minutes)}"


def plan_language_model(
    network: type[EmbeddingLanguageModel],
    corpus: Corpus,
    dev: Corpus | None,
    model: NetworkConfig,
    training: TrainingConfig,
    given: Mapping[str, Collection[str]],
    minutes: float | None,
    elapsed: Callable[[], float] = lambda: 0.0,
) -> LanguageModelPlan:
    """Return the plan of a feed-forward or recurrent language model, as `TranslatorPlanner.plan` does.

    Args:
        network: The class of the model.
        corpus: The training text.
        dev: The dev text.
        model: Settings; those that are not given are chosen.
        training: Settings of training, likewise.
        given: Names of the settings that are given, for the sections model and training.
        minutes: For everything, or None.
        elapsed: Returns the seconds of these minutes that are over.
    """

    def config(size: int, epochs: float) -> NetworkConfig:
        sizes: dict[str, object] = {"embedding": size, "hidden": size, "tied": True}
        if isinstance(model, FeedForwardConfig):
            sizes = {"embedding": max(1, size // 2), "hidden": (size,)}
        return model.model_copy(update=not_given({**sizes, **dropout_for(epochs)}, given["model"]))

    def create(size: int) -> EmbeddingLanguageModel:
        return network.create(corpus, config(size, SMOOTHED_EPOCHS), seed=training.seed)

    def estimate_parameters(size: int) -> int:
        words, is_feed_forward = len(corpus.vocab), isinstance(model, FeedForwardConfig)
        return int(1.5 * words * size + 2 * size * size) if is_feed_forward else words * size + 8 * size * size

    most = MAX_LANGUAGE_MODEL_HIDDEN * int(corpus.sizes.sum()) ** 0.25
    sizes = [size for size in LANGUAGE_MODEL_SIZES if size <= most] or [LANGUAGE_MODEL_SIZES[0]]
    if "hidden" in given["model"]:
        hidden = model.model_dump()["hidden"]
        sizes = [hidden if isinstance(hidden, int) else max(hidden)]
    factor = FEED_FORWARD_RATE if isinstance(model, FeedForwardConfig) else 1.0
    text = corpus, corpus.unigram_entropy
    planner = TrainingPlanner(sizes, create, estimate_parameters, *text, training, given["training"], elapsed, factor)
    chosen = planner.choose(60 * (minutes or DEFAULT_MINUTES))
    dev_predictions = 0 if dev is None else int(dev.sizes.sum())
    plan = planner.complete(chosen, minutes, reserve_for_evaluation(dev_predictions), dev_predictions)
    settings = config(chosen.size, plan.epochs)
    return LanguageModelPlan(settings, plan.training, chosen.parameters, plan.epochs, plan.minutes)


def _describe(parameters: int, epochs: float, minutes: float | None) -> str:
    number = f"{epochs:.1f}" if epochs < 3 else f"{epochs:.0f}"
    time = ""
    if minutes is not None:
        seconds = max(1, round(60 * minutes))
        time = f" in {minutes:.0f} minutes" if minutes >= 2 else f" in {seconds} second{'' if seconds == 1 else 's'}"
    size = f"{parameters / 1e6:.1f} million" if parameters >= 1e5 else f"{parameters:,}"
    return f"{size} parameters, about {number} epochs{time}"
