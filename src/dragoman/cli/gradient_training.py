"""What the commands that train with gradients share: options, resuming, and choosing settings on the dev text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from dragoman.cli import options
from dragoman.cli.messages import info, warn
from dragoman.cli.option_groups import OptionGroup
from dragoman.cli.progress import format_perplexity, training_progress
from dragoman.cli.training import (
    TrainingData,
    UnknownWordOptions,
    VocabOptions,
    read_training_data,
    report_model,
    suggest_next_commands,
)
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.vocabulary import Vocab
    from dragoman.data.word_vectors import WordVectors
    from dragoman.models.configs import NetworkConfig
    from dragoman.models.neural import EmbeddingLanguageModel, NeuralLanguageModel
    from dragoman.training.config import TrainingConfig
    from dragoman.training.fit import FitResult, TrainingCallback

Choose = Annotated[
    list[str] | None,
    options.option(
        "--choose",
        metavar="NAME=X,X,...",
        help="Train with each of these values of a training setting, such as l2=0.1,0.3,1, and keep the model with the "
        "lowest perplexity of the dev text. May be repeated for several settings.",
        rich_help_panel="Training",
    ),
]
InitialVectors = Annotated[
    str | None,
    options.file_option(
        "--word-vectors", help="Initial word vectors, in the text format of word2vec.", rich_help_panel="Data"
    ),
]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(OptionGroup):
    """Options of all commands that train language models with gradients."""

    panel = "Data"

    text: options.Text
    output: options.Output
    dev_text: options.DevText = None
    field: options.Field = None
    choose: Choose = None
    vocab: VocabOptions
    unknown: UnknownWordOptions
    force: options.Force = False


CreateModel = Callable[[TrainingData], "NeuralLanguageModel"]


def train_network(
    network: type[EmbeddingLanguageModel],
    options: TrainingOptions,
    settings: NetworkConfig,
    training: TrainingConfig,
    word_vectors: str | None,
) -> None:
    """Train a neural network of this class."""

    def create(data: TrainingData) -> EmbeddingLanguageModel:
        vectors = _read_vectors(word_vectors, data.corpus.vocab)
        return network.create(data.corpus, settings, unknown=data.unknown, seed=training.seed, vectors=vectors)

    train_with_gradients(options, create, training)


def _read_vectors(path: str | None, vocab: Vocab) -> WordVectors | None:
    from dragoman.data.word_vectors import read_word_vectors

    if path is None:
        return None
    vectors = read_word_vectors(path, set(vocab.tokens))
    info(f"{path}: has {len(vectors):,} of {len(vocab):,} words (including <s>, </s> and <unk>)")
    return vectors


def train_with_gradients(options: TrainingOptions, create: CreateModel, training: TrainingConfig) -> None:
    """Read the texts, train and report. An interrupted training is resumed; a finished one is not changed."""
    from dragoman.io.storage import CHECKPOINT_FILE, check_output_directory

    start_time = perf_counter()
    if not (options.output / CHECKPOINT_FILE).is_file():
        check_output_directory(options.output, replace=options.force)
    choices = _parse_choices(options.choose)
    data = read_training_data(options.text, options.dev_text, options.field, options.vocab, options.unknown)
    if choices:
        model = _train_candidates(options, create, training, choices, data)
        already_finished = False
    else:
        model = create(data)
        already_finished = _train(options, model, training, data)
    if not already_finished:
        size = f"{model.num_parameters:,} parameters"
        report_model(model, size, options.output, data, start_time)
    suggest_next_commands(options.output, options.dev_text, options.field)


def _train(options: TrainingOptions, model: NeuralLanguageModel, training: TrainingConfig, data: TrainingData) -> bool:
    """Train a model. Return whether it was already finished."""
    from dragoman.training.fit import fit

    with training_progress() as callback:
        result = fit(
            model, data.corpus, data.dev, training, output=options.output, force=options.force, callback=callback
        )
    if result.already_finished:
        info(f"{options.output}: already finished, after {_describe_end(result)}; --force trains it again")
    else:
        info(f"finished after {_describe_end(result)}")
        _check_result(result, training, len(model.vocab))
    return result.already_finished


def _describe_end(result: FitResult) -> str:
    progress = result.progress
    best = f"; the best model is that of update {progress.best_update:,}" if progress.best_dev_loss is not None else ""
    return f"{progress.update:,} updates ({result.stop_reason}){best}"


def _check_result(result: FitResult, training: TrainingConfig, num_words: int) -> None:
    """Warn if no parameters were averaged, or the model is worse than a uniform distribution."""
    if training.average and not result.progress.averaged_steps:
        warn("training ended before parameters were averaged; set --max-epochs, or raise --average")
    if result.progress.best_dev_loss is not None and result.progress.best_dev_loss > math.log(num_words):
        warn("this is worse than a uniform distribution over words; lower --learning-rate, or train longer")


def _train_candidates(
    options: TrainingOptions,
    create: CreateModel,
    training: TrainingConfig,
    choices: dict[str, list[Any]],
    data: TrainingData,
) -> NeuralLanguageModel:
    """Train with each combination of settings, and return the best model."""
    from dragoman.models.loading import load_language_model
    from dragoman.models.neural import NeuralLanguageModel
    from dragoman.report.tables import format_table
    from dragoman.training.model_selection import fit_best

    with training_progress() as callback:

        def announce(name: str) -> TrainingCallback:
            info(f"with {name}:")
            return callback

        candidates = fit_best(
            *(lambda: create(data), data.corpus, data.dev, training, choices, options.output),
            force=options.force,
            callback=announce,
        )
    rows = [[candidate.name, format_perplexity(candidate.dev_loss), candidate.updates] for candidate in candidates]
    info(format_table(["settings", "dev perplexity by class", "updates"], rows))
    info(f"{candidates[0].name} is the best")
    model = load_language_model(options.output)
    assert isinstance(model, NeuralLanguageModel)
    return model


def _parse_choices(given: Sequence[str] | None) -> dict[str, list[Any]]:
    """Parse values such as `l2=0.1,1` to settings and their values."""
    from dragoman.core.settings import parse_option
    from dragoman.training.config import TrainingConfig

    choices: dict[str, list[Any]] = {}
    for choice in given or ():
        name, equals, values = choice.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values:
            raise DataError(f"--choose {choice!r}: give a setting and its values, such as l2=0.1,0.3,1")
        if name in choices:
            raise DataError(f"--choose {choice!r}: {name} is given twice; give all its values at once")
        field = TrainingConfig.model_fields.get(name)
        kind = field.annotation if field else str
        choices[name] = [parse_option(kind, value.strip()) for value in values.split(",")]
    return choices
