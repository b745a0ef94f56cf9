"""Texts split into train, dev and test, and results as JSON: what several benchmarks share."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np

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


def write_json(path: Path | None, report: object) -> None:
    """Write a report to a file, if one is given."""
    if path is not None:
        path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
