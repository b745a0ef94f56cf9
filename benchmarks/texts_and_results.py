"""Texts split into train, dev and test, trainings by `dragoman train-many`, and results as JSON: what benchmarks share."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dragoman import Corpus
from dragoman.evaluation.likelihood import token_log_probs
from dragoman.models.language_model import LanguageModel


@dataclass(frozen=True)
class TextSplits:
    """A text in three parts, encoded with the vocabulary of the training part."""

    train: Corpus
    valid: Corpus
    test: Corpus

    @classmethod
    def read(cls, directory: Path) -> TextSplits:
        """Read train.txt, valid.txt and test.txt."""
        train = Corpus.read(directory / "train.txt")
        return cls(train, *(Corpus.read(directory / f"{name}.txt", train.vocab) for name in ("valid", "test")))


def perplexity(model: LanguageModel, corpus: Corpus) -> float:
    """Return the perplexity per token, with `<unk>` as one word."""
    return float(np.exp(-token_log_probs(model, corpus).mean()))


def processor() -> str:
    """Return the name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.split(": ", 1)[1] for line in lines if line.startswith("model name")), platform.processor())


def train_many(grid: Mapping[str, object], output: Path, jobs: int = 1) -> list[dict[str, Any]]:
    """Run a grid of trainings by `dragoman train-many`, and return its runs. Finished ones are not trained again.

    Args:
        grid: The contents of the YAML file, which is written beside the output directory.
        jobs: Runs at a time; 1 if the time they take is measured.
    """
    file = output.with_name(f"{output.name}.yaml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(dict(grid), sort_keys=False, allow_unicode=True), encoding="utf-8")
    command = [sys.executable, "-m", "dragoman", "train-many", file, "--jobs", str(jobs), "-o", output]
    subprocess.run(command, check=True)
    runs: list[dict[str, Any]] = json.loads((output / "results.json").read_text(encoding="utf-8"))["runs"]
    return runs


def options_from_words(words: Sequence[str]) -> dict[str, object]:
    """Return the options of a command line as they stand in a YAML file.

    >>> options_from_words(["--hidden", "256", "--no-tied", "--extend-vocabulary"])
    {'hidden': '256', 'tied': False, 'extend-vocabulary': True}
    >>> options_from_words([])
    {}
    """
    options: dict[str, object] = {}
    for word, value in zip(words, [*words, "--"][1:], strict=True):
        name = word.removeprefix("--")
        if word.startswith("--") and not value.startswith("--"):
            options[name] = value
        elif word.startswith("--"):
            options[name.removeprefix("no-")] = not name.startswith("no-")
    return options


def write_json(path: Path | None, report: object) -> None:
    """Write a report to a file, if one is given."""
    if path is not None:
        path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
