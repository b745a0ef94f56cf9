"""A search for the settings that are best on a dev text, by Optuna: a study of trials, each a training run.

The study is a journal on disk, and each trial a process. Settings of a trial are a function of the seed, the number of
the trial and the results before it, so that a study that was stopped and resumed tries what it would have tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from dragoman.core.errors import DataError, did_you_mean
from dragoman.core.settings import GivenValue
from dragoman.evaluation.task_scores import METRIC_NAMES
from dragoman.experiments.grid import output_directory
from dragoman.experiments.run_files import TRANSLATOR, FindCommand, RunFile, RunSource, read_run_file
from dragoman.experiments.runs import CHARACTER_PERPLEXITY, DEV, LOSS, PERPLEXITY, Run, RunRecord, best_dev_loss
from dragoman.experiments.search_space import Parameter, Value, read_search_space

HIGHER_IS_BETTER = ("accuracy", "BLEU", "chrF")
# Options that change what the dev loss is per, so that trials cannot be compared by it.
TOKEN_OPTIONS = {
    *("units", "tgt-units", "min-count", "max-size", "replace-singletons", "vocab", "unknown", "unknown-words"),
    *("placeholders", "src-format", "extend-vocabulary", "from"),
}
COUNTED = ("train ngram", "train class-ngram", "train cache")  # report no dev losses


class TuneFile(RunFile):
    """The file of `dragoman tune`. It has no test text: settings are chosen on the dev text."""

    search: dict[str, object]
    """For each option that varies: a range {low: 1, high: 5}, with `log: true` or `step: N`, or a list of values."""
    objective: str = PERPLEXITY
    """What is best on the dev text: perplexity (per word), `perplexity per character`, BLEU, chrF, accuracy, WER, PER,
    CER, or loss (the dev loss of training)."""
    trials: int | None = Field(default=None, ge=1)
    """Number of trials. Default: as many as there is time for."""
    minutes: float | None = Field(default=None, gt=0)
    """Minutes for all trials together. Default: no limit."""
    seed: int = Field(default=1, ge=0)
    """Random seed of the search."""
    stop_bad_trials: bool = True
    """Stop a trial whose dev loss is worse than the median of the trials before it at the same point of training."""
    keep: Literal["best", "all"] = "best"
    """Whose models are kept."""


@dataclass(frozen=True)
class Tuning:
    """What is searched, and how."""

    source: RunSource
    output: Path
    settings: TuneFile
    parameters: tuple[Parameter, ...]

    @property
    def objective(self) -> str:
        return self.settings.objective

    @property
    def is_maximized(self) -> bool:
        return self.objective in HIGHER_IS_BETTER

    @property
    def stops_bad_trials(self) -> bool:
        """Whether trials can be compared while they train."""
        names = {parameter.name for parameter in self.parameters}
        is_counted = self.source.command.name in COUNTED
        return self.settings.stop_bad_trials and not is_counted and not names & TOKEN_OPTIONS

    def run(self, number: int, values: Mapping[str, Value]) -> Run:
        """Return the run of a trial."""
        origins = {parameter.name: parameter.origin for parameter in self.parameters}
        varied = {name: GivenValue(value, origins[name]) for name, value in values.items()}
        evaluations = {} if self.objective == LOSS else {DEV: self._dev_options}
        return self.source.run(f"trial-{number:03}", self.output, varied, evaluations)

    @property
    def _dev_options(self) -> dict[str, GivenValue]:
        options = dict(self.source.dev_options)
        if self.objective in METRIC_NAMES:
            options["metrics"] = GivenValue(self.objective, str(self.source.path))
        return options

    def value(self, run: Run, record: RunRecord) -> float | None:
        """Return the objective of a trial that is done; None if it is infinite."""
        if self.objective == LOSS:
            return best_dev_loss(run.model)
        return record.scores[DEV].get(self.objective)

    def identity(self) -> dict[str, object]:
        """Return what must not change when the study is resumed."""
        search = {parameter.name: parameter.describe() for parameter in self.parameters}
        options = self.source.command.identity(self.source.options)
        names = ("objective", "seed", "stop_bad_trials")
        settings = {name: getattr(self.settings, name) for name in names}
        return {"command": self.source.command.name, "options": options, "search": search, **settings}


def read_tuning(
    path: Path,
    find_command: FindCommand,
    output: Path | None = None,
    trials: int | None = None,
    minutes: float | None = None,
) -> Tuning:
    """Read the file of a search. All options, files and values are checked.

    Args:
        find_command: Returns a command by its name.
        output: Replaces the output in the file, as do `trials` and `minutes`.
    """
    source, settings, given = read_run_file(path, TuneFile, find_command)
    assert isinstance(settings, TuneFile)
    if minutes is not None and not minutes > 0:
        raise DataError(f"--minutes {minutes:g}: must be above 0")
    limits = {"trials": trials, "minutes": minutes}
    settings = settings.model_copy(update={name: limit for name, limit in limits.items() if limit is not None})
    if settings.trials is None and settings.minutes is None:
        raise DataError(f"{path}: the search has no end; write `trials: N` or `minutes: N`")
    parameters = read_search_space(given["search"])
    if not parameters:
        raise DataError(f"{given['search'].origin}: search names no options; nothing would vary")
    for parameter in parameters:
        if parameter.name in source.options:
            raise DataError(f"{parameter.origin}: {parameter.name} is also in options; remove one of them")
    directory = output_directory(path, output, settings.output)
    tuning = Tuning(source, directory, settings, tuple(parameters))
    _check_objective(tuning, given.get("objective"))
    _check_values(tuning)
    return tuning


def _check_objective(tuning: Tuning, given: GivenValue | None) -> None:
    """Raise an error for an objective that the trials do not have."""
    source, objective = tuning.source, tuning.objective
    origin = str(source.path) if given is None else given.origin
    is_translator = source.command.name == TRANSLATOR
    names = [PERPLEXITY, CHARACTER_PERPLEXITY, LOSS, *METRIC_NAMES]
    if objective not in names:
        raise DataError(f"{origin}: objective {objective}: {did_you_mean(objective, names)}")
    if objective in METRIC_NAMES and not is_translator:
        raise DataError(f"{origin}: objective {objective}: is for translators; choose {PERPLEXITY}")
    if objective == LOSS:
        tokens = sorted({parameter.name for parameter in tuning.parameters} & TOKEN_OPTIONS)
        if tokens:
            problem = f"trials with different {tokens[0]} have different tokens, so their losses cannot be compared"
            raise DataError(f"{origin}: objective {LOSS}: {problem}; choose {PERPLEXITY}")
        if source.command.name in COUNTED:
            raise DataError(f"{origin}: objective {LOSS}: {source.command.name} has none; choose {PERPLEXITY}")
    if not source.dev_options:
        names_of_texts = "dev-src and dev-tgt, or dev-pairs" if is_translator else "dev-text"
        raise DataError(f"{source.path}: no dev text to choose settings on; add {names_of_texts} to options")


def _check_values(tuning: Tuning) -> None:
    """Raise an error if a trial could not be started: for the ends of each range, and for each choice."""
    first = {parameter.name: parameter.examples()[0] for parameter in tuning.parameters}
    for parameter in tuning.parameters:
        for value in parameter.examples():
            values = {**first, parameter.name: value}
            origins = {other.name: other.origin for other in tuning.parameters}
            tuning.source.check({name: GivenValue(value, origins[name]) for name, value in values.items()})
