"""Tables of several trainings: the settings of a grid, and the trials of a study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.experiments.command_options import option_text
from dragoman.experiments.grid_results import GridResults, is_shown
from dragoman.experiments.search_space import Parameter, Value
from dragoman.experiments.study_results import StudyResults, format_objective
from dragoman.report.tables import format_table
from dragoman.report.tuning_charts import OptionPanel, draw_trials

DIGITS = {"MB": 1}  # of figures that do not have two


def grid_table(results: GridResults) -> str:
    """Return a table with a row for each setting: the mean over the seeds, and the range in parentheses."""
    summaries = list(results.summaries())
    settings = list(dict.fromkeys(name for summary in summaries for name in summary.settings))
    names = list(dict.fromkeys(name for summary in summaries for name in summary.figures if is_shown(name)))
    rows: list[Sequence[object]] = []
    for summary in summaries:
        cells = [
            summary.figures[name].describe(DIGITS.get(name, 2)) if name in summary.figures else None for name in names
        ]
        rows.append([*(summary.settings.get(name) for name in settings), summary.runs, *cells])
    return format_table([*settings, "runs", *names], rows)


def trials_table(results: StudyResults) -> str:
    """Return a table with a row for each trial, the best first."""
    tuning = results.tuning
    sign = -1 if tuning.is_maximized else 1
    order = sorted(results.trials, key=lambda trial: (trial.value is None, sign * (trial.value or 0.0), trial.number))
    names = [parameter.name for parameter in tuning.parameters]
    rows: list[Sequence[object]] = [
        [
            trial.number,
            *(option_text(trial.values[name]) for name in names),
            trial.status if trial.same_as is None else f"as trial {trial.same_as}",
            None if trial.value is None else format_objective(trial.value),
            f"{trial.seconds / 60:.2f}",
        ]
        for trial in order
    ]
    return format_table(["trial", *names, "", tuning.objective, "minutes"], rows)


def influence_text(results: StudyResults) -> str:
    """Return the influence of each option in a line."""
    shares = ", ".join(f"{name} {share:.0%}" for name, share in results.influence.items())
    return f"influence: {shares}" if shares else ""


def draw_study(results: StudyResults, path: Path, title: str = "") -> None:
    """Draw the trials of a study. At least one must be finished."""
    tuning, trials = results.tuning, results.trials
    values = {trial.number: trial.value for trial in trials if trial.value is not None}
    others = {trial.number: trial.status for trial in trials if trial.status in ("stopped", "failed")}
    order = sorted(tuning.parameters, key=lambda parameter: -results.influence.get(parameter.name, 0.0))
    panels = [
        OptionPanel(
            parameter.name,
            {trial.number: _plotted(trial.values[parameter.name], parameter) for trial in trials},
            [option_text(choice) for choice in parameter.choices],
            parameter.is_log,
            results.influence.get(parameter.name),
        )
        for parameter in order
    ]
    draw_trials(values, others, panels, path, objective=tuning.objective, is_maximized=tuning.is_maximized, title=title)


def _plotted(value: Value, parameter: Parameter) -> float | str:
    return float(value) if parameter.is_number and isinstance(value, int | float) else option_text(value)
