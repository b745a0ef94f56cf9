"""YAML files that describe several trainings of one command: what all have in common, and what differs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from dragoman.core.errors import DataError
from dragoman.core.settings import GivenValue, Settings, read_settings, validate
from dragoman.experiments.command_options import CommandLine, GivenOptions, check_scalar, option_text, read_options
from dragoman.experiments.directories import MARK_FILE
from dragoman.experiments.grid_results import RESULTS_FILE, TABLE_FILE
from dragoman.experiments.runs import LOG_DIRECTORY, TRAIN, Run, Step

TRANSLATOR = "train translator"
EVALUATE = "evaluate"
ONE_FOR_ALL = "it is chosen for each run; remove it"
RESERVED = {
    "output": ONE_FOR_ALL,
    "force": "finished runs are kept; choose another output to train again",
    "threads": "write `threads: N` at the beginning of the line, beside `options`, so that the runs fit the cores",
    "rejected": "runs would overwrite each other's file; remove it",
}
RESERVED_IN_EVALUATION = {
    "output": ONE_FOR_ALL,
    "json": ONE_FOR_ALL,
    "rejected": RESERVED["rejected"],
    "ensemble": "runs are evaluated one by one; remove it",
    "threads": RESERVED["threads"],
}
UNUSUAL = re.compile(r"[^\w.+-]+")  # characters that are replaced in names of directories
OTHER_NAMES = {LOG_DIRECTORY, RESULTS_FILE, TABLE_FILE, MARK_FILE}  # in the output directory, beside the runs
MAX_NAME_PART = 40  # characters of a value in the name of a run

FindCommand = Callable[[str], CommandLine]


class RunFile(Settings):
    """What the files of `dragoman train-many` and `dragoman tune` have in common."""

    command: str
    """The command that trains, such as `train recurrent`."""
    options: dict[str, object] = Field(default_factory=dict)
    """Options of the command that all runs share, as on the command line, without the dashes."""
    output: str | None = None
    """Directory of models, logs and results. The option --output overrides it."""
    threads: int = Field(default=1, ge=1)
    """Threads of each run."""


@dataclass(frozen=True)
class RunSource:
    """The file that describes runs, with the command and the options that all runs share."""

    path: Path
    command: CommandLine
    evaluate: CommandLine
    options: dict[str, GivenValue]
    threads: int

    @property
    def dev_options(self) -> dict[str, GivenValue]:
        """The options of an evaluation on the dev text that training uses; empty if there is none."""
        names = {"dev-text": "text", "field": "field"}
        if self.command.name == TRANSLATOR:
            fields = ("src-field", "tgt-field", "src-lang", "tgt-lang")
            names = {"dev-src": "src", "dev-tgt": "ref", "dev-pairs": "pairs", **{name: name for name in fields}}
            names["tgt-field"] = "ref-field"
        options = {new: self.options[old] for old, new in names.items() if old in self.options}
        return options if {"text", "pairs", "ref"} & options.keys() else {}

    def training_step(self, options: GivenOptions) -> Step:
        words = (*self.command.name.split(), *self.command.words(options))
        return Step(TRAIN, words, self.command.identity(options))

    def evaluation_step(self, name: str, model: Path, options: GivenOptions) -> Step:
        """Return the step that evaluates a model on the dev or test text."""
        words = (EVALUATE, str(model), *self.evaluate.words(options), "--json")
        return Step(name, words, self.evaluate.identity(options))

    def run(
        self,
        name: str,
        directory: Path,
        varied: GivenOptions,
        evaluations: Mapping[str, GivenOptions],
        shown: Mapping[str, str] | None = None,
    ) -> Run:
        """Return a run with these options, and evaluations by the names of the texts.

        Args:
            shown: What distinguishes the run, if it is not only `varied`.
        """
        training = self.training_step({**self.options, **varied})
        model = directory / name
        steps = (self.evaluation_step(text, model, options) for text, options in evaluations.items() if options)
        texts = {option: option_text(value.value) for option, value in varied.items()}
        return Run(name, directory, (training, *steps), texts if shown is None else shown)

    def check(self, varied: GivenOptions) -> None:
        """Raise an error if a run with these options cannot be started."""
        options = {**self.options, **varied}
        self.command.check_names(options, RESERVED)
        self.command.check_files(options)
        self.command.check_values(options, ["-o", "DIR"], str(self.path))

    def check_evaluation(self, options: GivenOptions) -> None:
        self.evaluate.check_names(options, RESERVED_IN_EVALUATION)
        self.evaluate.check_files(options)
        self.evaluate.check_values(options, ["DIR"], str(self.path))


def read_run_file(
    path: Path, kind: type[RunFile], find_command: FindCommand
) -> tuple[RunSource, RunFile, dict[str, GivenValue]]:
    """Read a file. Return also its settings, and its sections with the lines that they are from."""
    given = read_settings(path)
    settings = validate(kind, given, str(path))
    try:
        command = find_command(settings.command)
    except DataError as error:
        raise DataError(f"{given['command'].origin}: {error}") from None
    options = read_options(given["options"], "options") if "options" in given else {}
    for name, value in options.items():
        check_scalar(name, value)
    source = RunSource(path, command, find_command(EVALUATE), options, settings.threads)
    source.command.check_names(options, RESERVED)
    return source, settings, given


def run_name(parts: Iterable[tuple[str, str]], names: set[str]) -> str:
    """Return a name for a run that is not among `names`, and add it to them.

    >>> names = set()
    >>> run_name([("hidden", "400,200"), ("seed", "1")], names), run_name([("text", "a/b.txt")], names)
    ('hidden=400-200,seed=1', 'text=a-b.txt')
    >>> run_name([("", "logs")], names), run_name([("", "..")], names)
    ('logs-2', 'run')
    """
    joined = ",".join(f"{key}={_short(value)}" if key else _short(value) for key, value in parts)
    joined = joined.lstrip(".") or "run"  # names with a dot in front are those of locks
    name, number = joined, 2
    while name in names or name in OTHER_NAMES:
        name, number = f"{joined}-{number}", number + 1
    names.add(name)
    return name


def _short(value: str) -> str:
    return UNUSUAL.sub("-", value)[-MAX_NAME_PART:].strip("-") or "none"
