"""What the verbs that train by gradients have in common: going on where an earlier run stopped, and telling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli import options
from dragoman.cli.messages import info
from dragoman.cli.option_groups import OptionGroup
from dragoman.cli.progress import format_perplexity, training_progress
from dragoman.cli.training import (
    TrainedModel,
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
    from dragoman.models.network import EmbeddingLanguageModel
    from dragoman.models.network_config import NetworkConfig
    from dragoman.models.neural import NeuralLanguageModel
    from dragoman.training.config import TrainingConfig
    from dragoman.training.fit import FitResult

Choose = Annotated[
    list[str] | None,
    typer.Option(
        "--choose",
        metavar="NAME=X,X,...",
        help="Train with each of these values of a setting of training, such as l2=0.1,0.3,1, and keep the best by the "
        "dev text; may be given for several settings.",
        show_default=False,
    ),
]

InitialVectors = Annotated[
    str | None,
    typer.Option(
        "--word-vectors",
        metavar="FILE",
        help="Initial word vectors, in the text format of word2vec.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(OptionGroup):
    """What every verb that trains by gradients is asked for on the command line."""

    panel = "Data"

    text: options.Text
    output: options.Output
    dev_text: options.DevText = None
    field: options.Field = None
    choose: Choose = None
    vocab: VocabOptions
    unknown: UnknownWordOptions
    force: options.Force = False


Create = Callable[[TrainingData], "NeuralLanguageModel"]


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


def train_with_gradients(job: TrainingOptions, create: Create, training: TrainingConfig) -> None:
    """Read, train, tell. A training that was stopped goes on; one that is finished is left as it is."""
    from dragoman.io.storage import CHECKPOINT_FILE, check_output_directory

    began = perf_counter()
    if not (job.output / CHECKPOINT_FILE).is_file():
        check_output_directory(job.output, replace=job.force)
    choices = _choices(job.choose)
    material = read_training_data(job.text, job.dev_text, job.field, job.vocab, job.unknown)
    if choices:
        _train_candidates(job, create, training, choices, material)
        model = _kept(job)
    else:
        model = create(material)
        if _train_one(job, model, training, material):
            suggest_next_commands(job.output, job.dev_text, job.field)
            return
    size = f"{sum(tensor.numel() for tensor in model.parameters().values()):,} parameters"
    report_model(TrainedModel(model, size, began), job.output, dev_text=job.dev_text, material=material)
    suggest_next_commands(job.output, job.dev_text, job.field)


def _train_one(
    job: TrainingOptions, model: NeuralLanguageModel, training: TrainingConfig, material: TrainingData
) -> bool:
    """Train a model; whether it was finished already."""
    from dragoman.training.fit import fit

    with training_progress() as report:
        fitted = fit(
            model, material.corpus, material.dev, training, output=job.output, force=job.force, callback=report
        )
    if fitted.already_finished:
        info(f"{job.output}: finished already, after {_ended(fitted)}; --force trains anew")
    else:
        info(f"finished after {_ended(fitted)}")
        _doubt(fitted, training, len(model.vocab))
    return fitted.already_finished


def _doubt(fitted: FitResult, training: TrainingConfig, words: int) -> None:
    """Warn of a training that came to nothing, or to no average."""
    if training.average and not fitted.progress.averaged_steps:
        info(
            "warning: the training ended before parameters were averaged; bound it by --max-epochs, or raise --average"
        )
    if fitted.progress.best_dev_loss is not None and fitted.progress.best_dev_loss > math.log(words):
        info(
            "warning: this is worse than taking all words for equally probable; lower --learning-rate, or train longer"
        )


def _train_candidates(
    job: TrainingOptions,
    create: Create,
    training: TrainingConfig,
    choices: dict[str, list[Any]],
    material: TrainingData,
) -> None:
    from dragoman.report.tables import format_table
    from dragoman.training.model_selection import fit_best

    with training_progress() as report:

        def watched(name: str) -> Any:
            info(f"with {name}:")
            return report

        tried = fit_best(
            *(lambda: create(material), material.corpus, material.dev, training, choices, job.output),
            force=job.force,
            callback=watched,
        )
    rows = [[one.name, format_perplexity(one.dev_loss), one.updates] for one in tried]
    info(f"{format_table(['settings', 'dev perplexity, by class', 'updates'], rows)}\n{tried[0].name} is the best")


def _kept(job: TrainingOptions) -> NeuralLanguageModel:
    from dragoman.models.loading import load_language_model
    from dragoman.models.neural import NeuralLanguageModel

    model = load_language_model(job.output)
    assert isinstance(model, NeuralLanguageModel), "it was trained by gradients"
    return model


def _choices(given: Sequence[str] | None) -> dict[str, list[Any]]:
    """`l2=0.1,1` as a setting and its values."""
    from dragoman.core.settings import parse_option
    from dragoman.training.config import TrainingConfig

    choices = {}
    for one in given or ():
        name, equals, values = one.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values:
            raise DataError(f"--choose {one!r}: give a setting and its values, such as l2=0.1,0.3,1")
        if name in choices:
            raise DataError(f"--choose {one!r}: {name} is given twice; put all its values into one")
        field = TrainingConfig.model_fields.get(name)
        kind = field.annotation if field else str
        choices[name] = [parse_option(kind, value.strip()) for value in values.split(",")]
    return choices


def _ended(fitted: FitResult) -> str:
    position = fitted.progress
    kept = f"; the model kept is that of update {position.best_update:,}" if position.best_dev_loss is not None else ""
    return f"{position.update:,} updates ({fitted.stop_reason}){kept}"
