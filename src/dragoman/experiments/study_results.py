"""The results of a search for settings: its trials, the best of them, and the influence of each option."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from dragoman.core.errors import shell_command
from dragoman.experiments.command_options import option_text
from dragoman.experiments.runs import Run
from dragoman.experiments.search_space import Value
from dragoman.experiments.tuning import Tuning
from dragoman.io.files import write_text

TRIALS_FILE, TRIALS_TABLE_FILE, TRIALS_FIGURE = "trials.json", "trials.tsv", "trials.svg"


def format_objective(value: float) -> str:
    """Return the value of an objective.

    >>> format_objective(1148.04), format_objective(4.99716)
    ('1,148.04', '4.9972')
    """
    return f"{value:,.2f}" if abs(value) >= 10 else f"{value:.4f}"


@dataclass(frozen=True)
class TrialResult:
    """A trial and its result."""

    number: int
    run: Run
    status: str  # finished, stopped (it was worse than the others), failed, or unfinished
    value: float | None  # of the objective, if the trial is finished
    values: Mapping[str, Value]  # of the options
    seconds: float  # of training
    failure: str
    same_as: int | None  # an earlier trial with the same settings, which was not repeated

    def as_dict(self) -> dict[str, object]:
        same = {} if self.same_as is None else {"same_as": self.same_as}
        failure = {"failure": self.failure} if self.failure else {}
        settings, minutes = dict(self.values), round(self.seconds / 60, 4)
        result = {"trial": self.number, "status": self.status, "value": self.value, "settings": settings}
        return {**result, "minutes": minutes, **same, **failure, "log": str(self.run.log)}


@dataclass(frozen=True)
class StudyResults:
    """The trials of a study."""

    tuning: Tuning
    trials: tuple[TrialResult, ...]
    best_number: int | None  # of the best trial; None if none is finished
    influence: Mapping[str, float]  # of each option, the largest first; they sum to one, or there are none

    @property
    def best(self) -> TrialResult | None:
        return next((trial for trial in self.trials if trial.number == self.best_number), None)

    @property
    def best_command(self) -> str:
        """The command that trains with the best settings. Its output directory is DIR."""
        best = self.best
        return "" if best is None else shell_command(["dragoman", *best.run.steps[0].words, "-o", "DIR"])

    def write(self) -> None:
        """Write the trials as JSON and TSV to the output directory."""
        best = self.best
        report = {
            "objective": self.tuning.objective,
            "best": None
            if best is None
            else {**best.as_dict(), "model": str(best.run.model), "command": self.best_command},
            "influence": dict(self.influence),
            "trials": [trial.as_dict() for trial in self.trials],
        }
        write_text(self.tuning.output / TRIALS_FILE, json.dumps(report, indent=1) + "\n")
        names = [parameter.name for parameter in self.tuning.parameters]
        lines = [["trial", *names, "status", self.tuning.objective, "minutes"]]
        for trial in self.trials:
            settings = [option_text(trial.values[name]) for name in names]
            value = "" if trial.value is None else f"{trial.value:.6g}"
            lines.append([str(trial.number), *settings, trial.status, value, f"{trial.seconds / 60:.4g}"])
        write_text(self.tuning.output / TRIALS_TABLE_FILE, "".join("\t".join(line) + "\n" for line in lines))
