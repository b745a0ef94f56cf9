"""What the commands that train with gradients share: options, resuming, and choosing settings on the dev text."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Self

from dragoman.cli.fine_tuning import FromOptions, ReplayTextOptions
from dragoman.cli.main import seconds_since_start
from dragoman.cli.messages import info, warn
from dragoman.cli.option_groups import GivenSettings, option
from dragoman.cli.options import prepare_training_output
from dragoman.cli.processes import connect_processes
from dragoman.cli.progress import fit_with_progress, format_perplexity, training_progress
from dragoman.cli.training import (
    LanguageModelOptions,
    TrainingData,
    VocabOptions,
    read_dev,
    report_model,
    suggest_next_commands,
)
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.core.settings import Settings
    from dragoman.data.corpus import Corpus
    from dragoman.models.base import Model
    from dragoman.models.fine_tuning import N
    from dragoman.models.neural import NeuralLanguageModel
    from dragoman.training.config import TrainingConfig
    from dragoman.training.fit import TrainingCallback

CreateModel = Callable[[], "NeuralLanguageModel"]


@dataclass(frozen=True)
class GradientTrainingData(TrainingData):
    replay: Corpus | None  # the old text
    replay_dev: Corpus | None


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
    start: FromOptions
    replay: ReplayTextOptions

    def load_base(self, model_class: type[N], settings: Settings, given: GivenSettings) -> N | None:
        """Load the model of --from, if there is one, with new words of the text if requested."""
        from dragoman.data.formats import field_for, read_lines
        from dragoman.models.neural import EmbeddingLanguageModel

        self.start.check_output(self.output)
        base = self.start.load(model_class, settings, given["model"])
        if base is None:
            return None
        sizes = self.vocab if not self.start.extend_vocabulary else replace(self.vocab, min_count=1)
        if sizes != VocabOptions() or self.unknown is not None or self.unknown_words is not None:
            names = "--vocab, --min-count, --max-size, --replace-singletons, --unknown and --unknown-words"
            raise DataError(f"--from uses the vocabulary of its model; remove {names}")
        if not self.start.extend_vocabulary:
            return base
        if not isinstance(base, EmbeddingLanguageModel):
            remedy = "train a new model, or leave it out"
            raise DataError(f"--extend-vocabulary: the features of a {base.kind} model belong to its words; {remedy}")
        if self.text == "-":
            raise DataError(
                "--extend-vocabulary reads the text twice, and standard input can be read once; give a file"
            )
        lines = read_lines(self.text, field_for(self.text, self.field, self.dev_text))
        extended = self.start.extend_language_model(base, lines, self.vocab.min_count)
        assert isinstance(extended, model_class)
        return extended

    def connected(self, training: TrainingConfig) -> Self:
        """Connect the processes. Return the options with `force` only if a training run is to be replaced."""
        from dragoman.training.agreement import replaces_run

        processes = connect_processes(training.device)
        return replace(self, force=replaces_run(processes, self.output, force=self.force))

    def start_training(
        self, model_class: type[N], model: Settings, training: TrainingConfig, given: GivenSettings
    ) -> tuple[N | None, TrainingConfig]:
        """Load the model of --from, if there is one. Return also the settings to train it, or a new one, with."""
        from dragoman.training.config import for_fine_tuning, with_given_limits

        training = with_given_limits(training, given["training"])
        base = self.load_base(model_class, model, given)
        return base, training if base is None else for_fine_tuning(training, given["training"])

    def read_texts(self, base: Model | None, training: TrainingConfig) -> GradientTrainingData:
        """Check the options and read the texts. A trained model `base` that is trained further has the vocabulary."""
        from dragoman.data.formats import field_for
        from dragoman.training.distributed import communicator

        communicator().from_main(lambda: prepare_training_output(self.output, force=self.force))
        choices = _parse_choices(self.choose or ())
        self.replay.check(training)
        data = self.read(base, self.start.from_model)
        old, old_dev = (
            None if text is None else read_dev(text, data.corpus.vocab, field_for(text, self.field, self.text))
            for text in (self.replay.replay, self.replay.replay_dev_text)
        )
        if choices and old is not None:
            raise DataError("--choose compares trainings by one text; leave out --replay")
        return GradientTrainingData(**vars(data), replay=old, replay_dev=old_dev)


def train_with_gradients(
    options: GradientTrainingOptions,
    data: GradientTrainingData,
    create: CreateModel,
    training: TrainingConfig,
    given: Collection[str],
) -> None:
    """Train the model that `create` returns, and report. An interrupted run is resumed; a finished one is not changed.

    Args:
        given: the names of the training settings that the user has chosen.
    """
    from dragoman.data.segmenters import token_name
    from dragoman.io.model_card import has_scores
    from dragoman.models.loading import load_language_model
    from dragoman.models.neural import NeuralLanguageModel
    from dragoman.models.planning import reserve_for_evaluation
    from dragoman.training.distributed import communicator

    is_main = communicator().is_main
    if choices := _parse_choices(options.choose or ()):
        _train_candidates(options, create, training, choices, data)
        if not is_main:
            return
        best = load_language_model(options.output)
        assert isinstance(best, NeuralLanguageModel)
        model = best
    else:
        model = create()
        result = fit_with_progress(
            model,
            (data.corpus, data.dev, data.replay, data.replay_dev),
            training,
            options.output,
            given,
            force=options.force,
            token_name=token_name(model.vocab.segmenter),
            elapsed_seconds=seconds_since_start(),
            reserve=reserve_for_evaluation(0 if data.dev is None else int(data.dev.sizes.sum())),
        )
        if not is_main:
            return
        if result.already_finished and (data.dev is None or has_scores(options.output)):
            suggest_next_commands(options)
            return
        if (loss := result.progress.best_dev_loss) is not None and loss > math.log(len(model.vocab)):
            warn("this is worse than a uniform distribution over words; lower --learning-rate, or train longer")
    report_model(options, data, model, f"{model.num_parameters:,} parameters")
    suggest_next_commands(options)


def _train_candidates(
    options: GradientTrainingOptions,
    create: CreateModel,
    training: TrainingConfig,
    choices: dict[str, list[object]],
    data: TrainingData,
) -> None:
    """Train with each combination of settings, and make the best model that of the output directory."""
    from dragoman.data.segmenters import token_name
    from dragoman.report.tables import format_table
    from dragoman.training.model_selection import fit_best

    with training_progress(token_name(data.corpus.vocab.segmenter)) as callback:

        def announce(name: str) -> TrainingCallback:
            info(f"with {name}:")
            return callback

        candidates = fit_best(
            create,
            data.corpus,
            data.dev,
            training,
            choices,
            options.output,
            force=options.force,
            callback=announce,
        )
    rows = [[candidate.name, format_perplexity(candidate.dev_loss), candidate.updates] for candidate in candidates]
    info(format_table(["settings", "dev perplexity", "updates"], rows))
    info(f"{candidates[0].name} is the best")


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
