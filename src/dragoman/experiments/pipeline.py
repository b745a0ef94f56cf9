"""The pipeline of the demo and the ladder: prepare data, train models, measure them, write a report."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from dragoman.core.errors import is_installed
from dragoman.experiments.trainer import Callbacks, TrainedRung
from dragoman.io.storage import REPORT_FILE, atomic_file
from dragoman.report.page import Page, PageFigure, PageSection, Preformatted, section_text, to_markdown, write_html

MARKDOWN_FILE, VALUES_FILE = "ladder.md", "ladder.json"
NO_FIGURES = "Matplotlib is not installed, so the report has no figures; run: pip install 'dragoman[plot]'"

DataT = TypeVar("DataT")
ResultsT = TypeVar("ResultsT")


class Experiment(Protocol[DataT, ResultsT]):
    """The stages of an experiment. All of them can be repeated: what is finished is read instead of done again."""

    @property
    def output(self) -> Path: ...

    @property
    def callbacks(self) -> Callbacks: ...

    def prepare(self) -> DataT:
        """Write and read the data."""
        ...

    def train(self, data: DataT) -> Iterator[TrainedRung[Any]]:
        """Yield models as they are finished."""
        ...

    def measure(self, data: DataT, rungs: Iterator[TrainedRung[Any]]) -> ResultsT:
        """Measure models. Taking the next one from `rungs` trains it."""
        ...

    def report(self, data: DataT, results: ResultsT) -> ExperimentReport:
        """Draw the figures and assemble the report."""
        ...


def run_experiment(experiment: Experiment[DataT, ResultsT]) -> ExperimentReport:
    """Run all stages, write the report to the output directory and return it."""
    data = experiment.prepare()
    results = experiment.measure(data, experiment.train(data))
    report = experiment.report(data, results)
    report.write(experiment.output)
    if not is_installed("matplotlib"):
        experiment.callbacks.info(NO_FIGURES)
    return report


# -- the report ------------------------------------------------------------------------------------------------------


class SuggestedCommand(NamedTuple):
    """A command to try next, and the line that it reads from standard input, if any."""

    words: list[str]
    line: str | None = None

    @property
    def text(self) -> str:
        """The command as it is typed into a shell."""
        command = shlex.join(["dragoman", *self.words])
        return command if self.line is None else f"echo {shlex.quote(self.line)} | {command}"


def commands_part(commands: Sequence[SuggestedCommand]) -> Preformatted:
    return Preformatted("\n".join(command.text for command in commands))


@dataclass(frozen=True)
class ExperimentReport:
    """The report of an experiment."""

    title: str
    sections: Sequence[PageSection]
    figures: Sequence[str]  # names of files
    commands: Sequence[SuggestedCommand]
    values: dict[str, Any] | None = None  # written to `ladder.json`, with the report as Markdown beside it
    minutes: float | None = None  # that the experiment took, if it had a time budget

    @property
    def page(self) -> Page:
        return Page(self.title, self.sections, note="" if is_installed("matplotlib") else NO_FIGURES)

    @property
    def files(self) -> list[str]:
        """Names of the files in the output directory."""
        return [*([MARKDOWN_FILE, VALUES_FILE] if self.values is not None else []), REPORT_FILE, *self.figures]

    def summary(self, *, colour: bool = False) -> str:
        """Return the sections that are printed in the terminal."""
        sections = (section for section in self.sections if section.in_summary)
        return "\n\n".join(section_text(section, colour=colour) for section in sections)

    def write(self, output: Path) -> None:
        if self.values is not None:
            texts = {MARKDOWN_FILE: to_markdown(self.page), VALUES_FILE: json.dumps(self.values, indent=1)}
            for name, text in texts.items():
                with atomic_file(output / name) as temporary:
                    temporary.write_text(text, encoding="utf-8")
        write_html(self.page, output / REPORT_FILE)


@dataclass
class FigureWriter:
    """Draws figures into the output directory, or none if Matplotlib is not installed."""

    output: Path
    files: list[str] = field(default_factory=list)

    def draw(self, name: str, caption: str, draw: Callable[[Path], None]) -> PageFigure | None:
        """Call `draw` with the path of the file, and return the figure for the page."""
        if not is_installed("matplotlib"):
            return None
        draw(self.output / name)
        self.files.append(name)
        return PageFigure((self.output / name).read_text(encoding="utf-8"), caption, name)
