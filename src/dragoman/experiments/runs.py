"""Runs of commands as separate processes: a training, and then evaluations of its model, with a log and a record.

The record says what is done, so that a run that was stopped or killed is continued with the step that is missing.
Training itself resumes from its own checkpoint.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from dragoman.core.errors import DataError, shell_command
from dragoman.io.files import write_text
from dragoman.io.storage import CHECKPOINT_FILE, METRICS_FILE, model_megabytes
from dragoman.training.config import LIMITS

LOG_DIRECTORY = "logs"
TRAIN, DEV, TEST = "train", "dev", "test"  # steps of a run
PERPLEXITY, CHARACTER_PERPLEXITY, LOSS = "perplexity", "perplexity per character", "loss"
CHANGEABLE = {*(limit.replace("_", "-") for limit in LIMITS), "patience"}  # options with which training continues

Scores = dict[str, float | None]  # by the names of metrics; infinite ones are None


@dataclass(frozen=True)
class Step:
    """A command of a run."""

    name: str  # train, dev or test
    words: tuple[str, ...]  # after `dragoman`
    identity: Mapping[str, str]  # what the result depends on: options as text, and digests of files


class RunRecord(BaseModel):
    """What is known about a run."""

    identity: dict[str, str] = {}  # of the training
    trained: bool = False
    seconds: float = 0.0  # of the training command, in all its runs
    scores: dict[str, Scores] = {}  # by step
    evaluations: dict[str, dict[str, str]] = {}  # the identities of the steps that the scores are from
    failure: str = ""  # the last line of the log of the step that failed last


@dataclass(frozen=True)
class Run:
    """A training run of a grid or a study."""

    name: str
    directory: Path  # of all runs
    steps: tuple[Step, ...]  # training first
    varied: Mapping[str, str]  # the options in which runs differ

    @property
    def model(self) -> Path:
        return self.directory / self.name

    @property
    def log(self) -> Path:
        return self.directory / LOG_DIRECTORY / f"{self.name}.log"

    @property
    def record_file(self) -> Path:
        return self.directory / LOG_DIRECTORY / f"{self.name}.json"

    @property
    def command(self) -> str:
        """The training command as it is typed into a shell."""
        return shell_command(["dragoman", *self.steps[0].words, "-o", str(self.model)])

    @property
    def is_started(self) -> bool:
        """Whether training has written to the model directory."""
        return (self.model / CHECKPOINT_FILE).is_file()

    @property
    def megabytes(self) -> float:
        return model_megabytes(self.model)

    def read_record(self) -> RunRecord:
        """Return the record; an empty one if there is none."""
        try:
            text = self.record_file.read_text(encoding="utf-8") if self.record_file.is_file() else "{}"
            return RunRecord.model_validate_json(text)
        except (ValidationError, UnicodeDecodeError):
            remedy = f"delete it and the directory {self.model} to train again"
            raise DataError(f"{self.record_file}: damaged; {remedy}") from None

    def write_record(self, record: RunRecord) -> None:
        write_text(self.record_file, record.model_dump_json(indent=1) + "\n")

    def pending_steps(self, record: RunRecord) -> list[Step]:
        """Return the steps that are not done."""
        if not self.is_trained(record):
            return list(self.steps)
        return [step for step in self.steps[1:] if record.evaluations.get(step.name) != step.identity]

    def is_trained(self, record: RunRecord) -> bool:
        return record.trained and record.identity == self.steps[0].identity and self.model.is_dir()

    def check_record(self, record: RunRecord) -> None:
        """Raise an error if the model was trained with other options, unless training continues with these."""
        new = self.steps[0].identity
        if not record.identity or not self.model.exists():
            return
        names = [name for name in {**record.identity, **new} if record.identity.get(name) != new.get(name)]
        if set(names) - (CHANGEABLE if self.is_started else set()):
            changes = "; ".join(
                f"{name}: {record.identity.get(name, 'not set')} -> {new.get(name, 'not set')}" for name in names
            )
            remedy = f"choose another output, or delete {self.model} to train it again"
            raise DataError(f"{self.model}: was trained with other options or texts ({changes}); {remedy}")


def read_metrics(model: Path) -> list[dict[str, float]]:
    """Return the lines of metrics.jsonl of a training run; none if there is no such file."""
    file = model / METRICS_FILE
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    records = []
    for line in lines:
        try:
            records.append(json.loads(line))
        except ValueError:
            continue  # the last line, which is being written
    return [record for record in records if isinstance(record, dict)]


def best_dev_loss(model: Path) -> float | None:
    """Return the lowest dev loss of a training run, in nats per token; None if there is none."""
    losses = [record["dev_loss"] for record in read_metrics(model) if "dev_loss" in record]
    return min(losses, default=None)


def read_scores(report: Mapping[str, object]) -> Scores:
    """Return the scores in what `dragoman evaluate --json` prints about one model, the most important first."""
    metrics, headline = report.get("metrics"), report.get("headline")
    scores: Scores = {}
    if isinstance(metrics, Mapping) and isinstance(headline, list):
        scores = {name: _number(metrics[name]["value"]) for name in headline}
    scores[PERPLEXITY] = _number(report.get("perplexity"))
    scores[CHARACTER_PERPLEXITY] = _number(report.get("perplexity_characters"))
    return scores


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
