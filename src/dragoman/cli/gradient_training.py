"""What the commands that train with gradients share: options, resuming, and choosing settings on the dev text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.messages import info, warn
from dragoman.cli.option_groups import option
from dragoman.cli.progress import format_perplexity, training_progress
from dragoman.cli.training import LanguageModelOptions, TrainingData, report_model, suggest_next_commands
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from torch import nn

    from dragoman.data.corpus import Corpus, ParallelCorpus
    from dragoman.models.neural import NeuralLanguageModel
    from dragoman.training.config import TrainingConfig
    from dragoman.training.fit import FitResult, TrainingCallback

CreateModel = Callable[[TrainingData], "NeuralLanguageModel"]


@dataclass(frozen=True, kw_only=True)
class GradientTrainingOptions(LanguageModelOptions):
    choose: Annotated[
        list[str] | None,
        option(
            "--choose NAME=X,X,...",
            "Train with each of these values of a training setting, such as l2=0.1,0.3,1, and keep the model with the "
            "lowest perplexity of the dev text. May be repeated for several settings.",
            panel="Training",
        ),
    ] = None


def check_training_output(output: Path, *, force: bool) -> None:
    """Raise an error if a model cannot be written to a directory, unless a training run in it can be resumed."""
    from dragoman.io.storage import CHECKPOINT_FILE, check_output_directory

    if not (output / CHECKPOINT_FILE).is_file():
        check_output_directory(output, replace=force)


def train_with_gradients(options: GradientTrainingOptions, create: CreateModel, training: TrainingConfig) -> None:
    """Read the texts, train and report. An interrupted run is resumed; a finished one is not changed."""
    check_training_output(options.output, force=options.force)
    choices = _parse_choices(options.choose or ())
    data = options.read()
    if choices:
        model = _train_candidates(options, create, training, choices, data)
    else:
        model = create(data)
        result = fit_with_progress(model, data.corpus, data.dev, training, options.output, force=options.force)
        if result.already_finished:
            suggest_next_commands(options)
            return
        if (loss := result.progress.best_dev_loss) is not None and loss > math.log(len(model.vocab)):
            warn("this is worse than a uniform distribution over words; lower --learning-rate, or train longer")
    report_model(options, data, model, f"{model.num_parameters:,} parameters")
    suggest_next_commands(options)


def fit_with_progress(
    model: nn.Module,
    data: Corpus | ParallelCorpus,
    dev: Corpus | ParallelCorpus | None,
    training: TrainingConfig,
    output: Path,
    *,
    force: bool,
    token_name: str = "word",
) -> FitResult:
    """Train a model, and report why training ended."""
    from dragoman.training.fit import fit

    with training_progress(token_name) as callback:
        result = fit(model, data, dev, training, output=output, force=force, callback=callback)
    progress = result.progress
    best = f"; the best model is that of update {progress.best_update:,}" if progress.best_dev_loss is not None else ""
    end = f"{progress.update:,} updates ({result.stop_reason}){best}"
    if result.already_finished:
        info(f"{output}: already finished, after {end}; a higher limit continues it, --force starts again")
        return result
    info(f"finished after {end}")
    if progress.best_dev_loss is not None and progress.best_update == progress.update:
        info("the dev loss was still improving; train longer with --minutes or --max-epochs")
    if training.average and not progress.averaged_steps:
        warn("training ended before parameters were averaged; set --max-epochs, or raise --average")
    return result


def _train_candidates(
    options: GradientTrainingOptions,
    create: CreateModel,
    training: TrainingConfig,
    choices: dict[str, list[object]],
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
            lambda: create(data),
            data.corpus,
            data.dev,
            training,
            choices,
            options.output,
            force=options.force,
            callback=announce,
        )
    rows = [[candidate.name, format_perplexity(candidate.dev_loss), candidate.updates] for candidate in candidates]
    info(format_table(["settings", "dev perplexity by class", "updates"], rows))
    info(f"{candidates[0].name} is the best")
    model = load_language_model(options.output)
    assert isinstance(model, NeuralLanguageModel)
    return model


def _parse_choices(given: Sequence[str]) -> dict[str, list[object]]:
    """Parse values such as `l2=0.1,1` to settings and their values."""
    from dragoman.core.settings import parse_option
    from dragoman.training.config import TrainingConfig

    choices: dict[str, list[object]] = {}
    for choice in given:
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
