"""The pipeline of the demo and the ladders: prepare data, train and measure models, write a report."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from dragoman.core.errors import is_installed, shell_command
from dragoman.experiments.time_budget import TimeBudget
from dragoman.experiments.trainer import SILENT, Callbacks, ModelT, ModelTrainer, Recipe, TextT, TrainingContext
from dragoman.io.files import write_text
from dragoman.io.storage import REPORT_FILE
from dragoman.report.page import Page, PageSection, Preformatted, section_text, to_markdown, write_html

MARKDOWN_FILE, VALUES_FILE = "ladder.md", "ladder.json"
RESUME = "continues them when it runs again"  # what a ladder does with the files of an earlier run
NO_FIGURES = "Matplotlib is not installed, so the report has no figures; run: pip install 'dragoman[plot]'"

DataT = TypeVar("DataT")
ResultsT = TypeVar("ResultsT")


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC, Generic[DataT, ResultsT]):
    """The stages of an experiment. All of them can be repeated: what is finished is read instead of done again."""

    output: Path
    models: Path  # directory of the models
    seed: int
    minutes: float | None = None  # time limit of each training run by gradient descent
    budget: TimeBudget | None = None  # decides how long each model is trained, instead of `minutes`
    start_again: bool = False  # train models again even if they exist
    callbacks: Callbacks = SILENT

    @abstractmethod
    def prepare(self) -> DataT:
        """Write and read the data."""

    @abstractmethod
    def measure(self, data: DataT) -> ResultsT:
        """Train the models and measure them."""

    @abstractmethod
    def report(self, data: DataT, results: ResultsT) -> ExperimentReport:
        """Draw the figures and assemble the report."""

    def run(self) -> ExperimentReport:
        """Run all stages, write the report to the output directory and return it."""
        data = self.prepare()
        report = self.report(data, self.measure(data))
        report.write(self.output)
        if not is_installed("matplotlib"):
            self.callbacks.info(NO_FIGURES)
        return report

    def trainer(
        self, recipes: Mapping[str, Recipe[ModelT]], train: TextT, dev: TextT, load: Callable[[Path], ModelT]
    ) -> ModelTrainer[TextT, ModelT]:
        context = TrainingContext(
            train, dev, self.seed, self.models, self.minutes, retrain=self.start_again, callbacks=self.callbacks
        )
        return ModelTrainer(context, recipes, load, self.budget)


class SuggestedCommand(NamedTuple):
    """A command to try next, and the line that it reads from standard input, if any."""

    words: list[str]
    line: str | None = None

    @property
    def text(self) -> str:
        """The command as it is typed into a shell."""
        return shell_command(["dragoman", *self.words], self.line)


def commands_part(commands: Sequence[SuggestedCommand]) -> Preformatted:
    return Preformatted("\n".join(command.text for command in commands))


@dataclass(frozen=True)
class ExperimentReport:
    title: str
    sections: Sequence[PageSection]
    figures: Sequence[str]  # names of files
    commands: Sequence[SuggestedCommand]
    values: dict[str, object] | None = None  # written to `ladder.json`, with the report as Markdown beside it
    minutes: float | None = None  # that the experiment took, if it had a time budget

    @property
    def files(self) -> list[str]:
        """Names of the files in the output directory."""
        return [*([MARKDOWN_FILE, VALUES_FILE] if self.values is not None else []), REPORT_FILE, *self.figures]

    def summary(self, *, color: bool = False) -> str:
        """Return the sections that are printed in the terminal."""
        sections = (section for section in self.sections if section.in_summary)
        return "\n\n".join(section_text(section, color=color) for section in sections)

    def write(self, output: Path) -> None:
        page = Page(self.title, self.sections, note="" if is_installed("matplotlib") else NO_FIGURES)
        if self.values is not None:
            write_text(output / MARKDOWN_FILE, to_markdown(page))
            write_text(output / VALUES_FILE, json.dumps(self.values, indent=1))
        write_html(page, output / REPORT_FILE)
