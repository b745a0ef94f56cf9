"""The results of a grid: one row for each run, and for each setting the mean and the range over the random seeds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from dragoman.experiments.runs import (
    CHARACTER_PERPLEXITY,
    DEV,
    PERPLEXITY,
    TEST,
    Run,
    Scores,
    best_dev_loss,
    read_metrics,
)
from dragoman.io.files import write_text

RESULTS_FILE, TABLE_FILE = "results.json", "results.tsv"
SEED = "seed"  # the option over which settings are summarised
MINUTES, MEGABYTES = "minutes", "MB"
TOKEN_PERPLEXITY = "perplexity per token"
EXTRA_SCORES = {CHARACTER_PERPLEXITY}  # in the files only
MAX_LOSS = 700.0  # whose exponential is finite


@dataclass(frozen=True)
class RunResult:
    """What is known about a run."""

    run: Run
    status: str  # finished, failed or unfinished
    failure: str
    scores: Scores  # of all texts, such as `dev perplexity`
    seconds: float
    megabytes: float

    @property
    def figures(self) -> dict[str, float | None]:
        """All figures by their names, as in the columns of the table."""
        return {**self.scores, MINUTES: self.seconds / 60, MEGABYTES: self.megabytes}

    def as_dict(self) -> dict[str, object]:
        figures = {name: None if value is None else round(value, 6) for name, value in self.figures.items()}
        failure = {"failure": self.failure} if self.failure else {}
        files = {"model": str(self.run.model), "log": str(self.run.log), "command": self.run.command}
        settings = dict(self.run.varied)
        return {"name": self.run.name, "settings": settings, "status": self.status, **failure, **figures, **files}


@dataclass(frozen=True)
class Summary:
    """A figure over several seeds."""

    values: tuple[float, ...]

    def as_dict(self) -> dict[str, float]:
        """Return mean, standard deviation of the sample (from two values on), smallest and largest value."""
        spread = {"standard_deviation": stdev(self.values)} if len(self.values) > 1 else {}
        return {"mean": mean(self.values), **spread, "low": min(self.values), "high": max(self.values)}

    def describe(self, digits: int = 2) -> str:
        """Return the mean and the range, if there is one.

        >>> Summary((1.0, 2.5)).describe(), Summary((1.0,)).describe(1)
        ('1.75 (1.00 to 2.50)', '1.0')
        """
        low, high, middle = (
            f"{value:,.{digits}f}" for value in (min(self.values), max(self.values), mean(self.values))
        )
        return middle if low == high else f"{middle} ({low} to {high})"


@dataclass(frozen=True)
class SettingSummary:
    """The finished runs of one setting, which differ in their random seeds."""

    settings: dict[str, str]
    runs: int
    figures: dict[str, Summary]  # undefined ones are left out

    def as_dict(self) -> dict[str, object]:
        figures = {name: summary.as_dict() for name, summary in self.figures.items()}
        return {"settings": self.settings, "runs": self.runs, **figures}


@dataclass(frozen=True)
class GridResults:
    """The results of a grid, read from the records and models of its runs."""

    command: str
    runs: Sequence[Run]

    def result(self, run: Run) -> RunResult:
        record = run.read_record()
        is_finished = not run.pending_steps(record)
        status = "finished" if is_finished else "failed" if record.failure else "unfinished"
        scores: Scores = {}
        if run.is_trained(record):
            if DEV not in record.scores and (loss := best_dev_loss(run.model)) is not None:
                scores[f"{DEV} {TOKEN_PERPLEXITY}"] = math.exp(loss) if loss < MAX_LOSS else None
            scores |= {
                f"{text} {name}": value
                for text in (DEV, TEST)
                for name, value in record.scores.get(text, {}).items()
                if value is not None or name == PERPLEXITY
            }
        megabytes = run.megabytes if run.model.is_dir() else 0.0
        # The record lacks the time of a process that was killed; metrics have that of its last checkpoint.
        seconds = max([record.seconds, *(line.get("seconds", 0.0) for line in read_metrics(run.model)[-1:])])
        return RunResult(run, status, record.failure, scores, seconds, megabytes)

    @property
    def results(self) -> list[RunResult]:
        return [self.result(run) for run in self.runs]

    def describe(self, run: Run) -> str:
        """Return the most important figures of a run in a line."""
        result = self.result(run)
        shown = {name: value for name, value in result.scores.items() if is_shown(name)}
        parts = [f"{name} {'infinite' if value is None else f'{value:,.2f}'}" for name, value in shown.items()]
        return ", ".join([*parts, f"{result.seconds / 60:.1f} minutes"])

    def summaries(self) -> Iterator[SettingSummary]:
        """Yield the settings in the order of the runs."""
        groups: dict[tuple[tuple[str, str], ...], list[RunResult]] = {}
        for result in self.results:
            key = tuple((name, value) for name, value in result.run.varied.items() if name != SEED)
            groups.setdefault(key, []).append(result)
        for key, members in groups.items():
            finished = [member.figures for member in members if member.status == "finished"]
            columns = dict.fromkeys(name for figures in finished for name in figures)
            values = {name: [figures.get(name) for figures in finished] for name in columns}
            figures = {
                name: Summary(tuple(value for value in column if value is not None))
                for name, column in values.items()
                if None not in column
            }
            yield SettingSummary(dict(key), len(finished), figures)

    def write(self, directory: Path) -> None:
        """Write the results as JSON, and the runs as TSV."""
        results = self.results
        report = {
            "command": self.command,
            "runs": [result.as_dict() for result in results],
            "settings": [summary.as_dict() for summary in self.summaries()],
        }
        write_text(directory / RESULTS_FILE, json.dumps(report, indent=1) + "\n")
        write_text(directory / TABLE_FILE, results_tsv(results))


def is_shown(name: str) -> bool:
    """Return whether a score is in tables that people read."""
    return not any(name.endswith(extra) for extra in EXTRA_SCORES)


def results_tsv(results: Sequence[RunResult]) -> str:
    """Return one line for each run, with its settings and figures, under the names of the columns."""
    settings = list(dict.fromkeys(name for result in results for name in result.run.varied))
    names = list(dict.fromkeys(name for result in results for name in result.scores))
    columns = [*names, MINUTES, MEGABYTES]
    lines = [["run", *settings, "status", *columns]]
    for result in results:
        figures = [result.figures.get(name) for name in columns]
        cells = ["" if value is None else f"{value:.6g}" for value in figures]
        lines.append([result.run.name, *(result.run.varied.get(name, "") for name in settings), result.status, *cells])
    return "".join("\t".join(line) + "\n" for line in lines)
