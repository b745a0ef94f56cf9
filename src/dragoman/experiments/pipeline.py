"""The pipeline of the demo and the ladders: prepare data, train and measure models, write a report."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from dragoman.core.errors import DataError, is_installed, shell_command
from dragoman.core.settings import config_differences
from dragoman.core.yaml_files import read_yaml
from dragoman.experiments.time_budget import TimeBudget
from dragoman.experiments.trainer import SILENT, Callbacks, ModelT, ModelTrainer, Recipe, TextT, TrainingContext
from dragoman.io.digests import to_yaml
from dragoman.io.files import write_text
from dragoman.io.storage import REPORT_FILE
from dragoman.report.page import Page, PageSection, Preformatted, section_text, to_markdown, write_html

MARKDOWN_FILE, VALUES_FILE = "ladder.md", "ladder.json"
SETTINGS_FILE = "settings.yaml"
MARK_FILE = "ABOUT-THESE-FILES.txt"  # by which a command recognises the directory of an earlier run
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


def claim_directory(output: Path, command: str, behaviour: str) -> None:
    """Create a directory, or accept one that is empty or from an earlier run of the same command.

    Args:
        behaviour: what the command does when it is run again, for the file that marks the directory.
    """
    remedy = "choose another directory with -o"
    about = f"Written by dragoman {command}, which {behaviour}. Do not keep your own files here.\n"
    mark = output / MARK_FILE
    if output.exists() and not output.is_dir():
        raise DataError(f"{output}: is a file, not a directory; {remedy}")
    is_claimed = mark.is_file() and mark.read_text(encoding="utf-8", errors="replace") == about
    if output.is_dir() and any(output.iterdir()) and not is_claimed:
        raise DataError(f"{output}: contains files that dragoman {command} did not write; {remedy}")
    write_text(mark, about)


def check_settings(output: Path, settings: Mapping[str, object], notes: Mapping[str, object] | None = None) -> None:
    """Save the settings of an experiment; raise an error if it was started with others.

    Models that were trained with different settings could not be compared. `notes` are saved as well, but may change.
    """
    notes = notes or {}
    path = output / SETTINGS_FILE
    if path.exists():
        try:
            saved = read_yaml(path)
        except DataError:
            saved = None
        if not isinstance(saved, dict):
            remedy = "delete the directory to start again, or choose another one with -o"
            raise DataError(f"{path}: damaged, so the settings of the ladder are not known; {remedy}")
        saved = {name: value for name, value in saved.items() if name not in notes}
        if changes := config_differences(saved, settings):
            remedy = "repeat the settings it was started with, or choose another directory with -o"
            raise DataError(f"{output}: contains another ladder ({'; '.join(changes)}); {remedy}")
    write_text(path, to_yaml({**settings, **notes}))
