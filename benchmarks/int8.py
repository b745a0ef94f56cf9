"""8-bit weights against float32: size, resident memory, quality and speed of scoring.

    python benchmarks/int8.py --data ptb --output DIR [--minutes 5] [--models lstm]
    python benchmarks/int8.py --translator DIR --source FILE [--before SRC]

- Language models: LSTMs of the Penn Treebank are trained for some minutes each, one that reads sentence by sentence and
  one that carries its state through the text. A finished model under --output is used again. Perplexity is that of
  valid.txt and test.txt, with `<unk>` as a word. Speed is measured in alternating rounds.
- Memory: each model is loaded in a process of its own, used and deleted, so that all code is imported; then it is
  loaded and used again. The table has the growth of the resident memory in MB. A language model scores sentences, a
  translator (of any kind, given by --translator) translates lines of --source with a beam of 5.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from dragoman import Corpus, RecurrentModel, TrainingConfig, fit
from dragoman.cli.progress import training_progress
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.evaluation.likelihood import token_log_probs
from dragoman.io.storage import CHECKPOINT_FILE
from dragoman.models.language_model import LanguageModel
from dragoman.models.loading import load
from dragoman.report.tables import format_table
from dragoman.training.config import RECURRENT
from texts_and_results import TextSplits, perplexity, processor, write_json

MB = 1e6
SOURCE = Path(__file__).parent.parent / "src"
LSTM = {"layers": 2, "embedding": 400, "hidden": 400, "tied": True, "dropout": 0.3, "embedding_dropout": 0.1}
MODELS = {"lstm": LSTM, "lstm-carries": LSTM | {"carries": True}}
SENTENCES, LINES = 400, 64  # that are scored and translated while memory is measured
TOKENS = 20_000  # scored per round


def train(name: str, texts: TextSplits, output: Path, minutes: float, seed: int) -> Path:
    """Train a model, or continue its training, and return its directory."""
    unknown = ClosedVocabulary(texts.train.vocab.num_known)
    model = RecurrentModel.create(texts.train, unknown=unknown, seed=seed, cell="lstm", **MODELS[name])
    changes = {"minutes": minutes, "max_epochs": None, "schedule": "cooldown", "learning_rate": 0.003}
    config: TrainingConfig = RECURRENT.model_copy(update=changes)
    with training_progress() as report:
        fit(model, texts.train, texts.valid, config, output=output / name, callback=report, seed=seed, threads=1)
    return output / name


def quantized_directory(directory: Path) -> Path:
    """Return the directory of a model with 8-bit weights, which is written if it does not exist."""
    output = directory.with_name(f"{directory.name}-int8")
    if not output.exists():
        from dragoman.models.quantized import quantize_model  # which older source trees do not have

        quantize_model(load(directory), directory).save(output)
    return output


def size(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.iterdir() if file.name != CHECKPOINT_FILE)


# -- memory, in a process of its own -----------------------------------------------------------------------------------


def resident() -> int:
    """Return the resident memory of this process in bytes, without what is free but not returned to the system."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def use(model, text: Path) -> None:
    """Score or translate the first lines of a text."""
    lines = text.read_text(encoding="utf-8").splitlines()
    if isinstance(model, LanguageModel):
        model.score(lines[:SENTENCES])
        model.sample(2, prefix="the", max_words=20)
    else:
        model.translate(lines[:LINES])


def measure_memory(directory: Path, text: Path) -> dict[str, float]:
    """Return the growth of the resident memory by loading and by using a model, in MB."""
    torch.set_num_threads(1)
    model = load(directory)
    use(model, text)
    del model
    before = resident()
    model = load(directory)
    loaded = resident()
    use(model, text)
    return {"loaded": (loaded - before) / MB, "used": (resident() - before) / MB}


def memory(directory: Path, text: Path, source: Path = SOURCE) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", str(directory), "--source", str(text)]
    environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
    process = subprocess.run(command, capture_output=True, check=True, env=environment)
    values: dict[str, float] = json.loads(process.stdout)
    return values


def translator_rows(directory: Path, text: Path, before: Path | None) -> list[list[object]]:
    """Return a row for each precision, and for the older source tree."""
    directories = {"float32": directory, "int8": quantized_directory(directory)}
    trees = {"": SOURCE} | ({} if before is None else {"before: ": before})
    rows: list[list[object]] = []
    for prefix, tree in trees.items():
        for precision, path in directories.items():
            grown = memory(path, text, tree)
            rows.append([prefix + precision, *(f"{value:.1f}" for value in (size(path) / MB, *grown.values()))])
    return rows


# -- language models ---------------------------------------------------------------------------------------------------


def speeds(models: dict[str, LanguageModel], text: Corpus, rounds: int) -> dict[str, list[float]]:
    """Return tokens scored per second, one value per round."""
    part = text.select(np.arange(np.searchsorted(text.token_offsets, TOKENS)))
    values: dict[str, list[float]] = {name: [] for name in models}
    for number in range(rounds + 1):  # the first is not counted
        for name, model in models.items():
            start = perf_counter()
            token_log_probs(model, part)
            if number:
                values[name].append(part.num_tokens / (perf_counter() - start))
    return values


def measure_language_model(
    name: str, directory: Path, texts: TextSplits, text: Path, rounds: int
) -> list[list[object]]:
    """Return a row for each precision."""
    directories = {"float32": directory, "int8": quantized_directory(directory)}
    models = {precision: load(path) for precision, path in directories.items()}
    speed = speeds(models, texts.test, rounds)
    rows = []
    for precision, path in directories.items():
        grown = memory(path, text)
        rows.append(
            [
                *(name, precision, f"{size(path) / MB:.1f}", f"{grown['loaded']:.1f}", f"{grown['used']:.1f}"),
                *(f"{perplexity(models[precision], part):.2f}" for part in (texts.valid, texts.test)),
                f"{statistics.median(speed[precision]):,.0f}",
                f"{min(speed[precision]):,.0f} to {max(speed[precision]):,.0f}",
            ]
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of train.txt, valid.txt and test.txt")
    parser.add_argument("--output", type=Path, help="directory for the trained models")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--minutes", type=float, default=5.0, help="of training of each language model")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--translator", type=Path, help="also measure the memory of this translator")
    parser.add_argument("--source", type=Path, help="text for the translator")
    parser.add_argument("--before", type=Path, help="src of an older revision, for the memory of the translator")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(measure_memory(options.measure, options.source)))
        return
    torch.set_num_threads(1)
    report: dict[str, object] = {"processor": processor(), "seed": options.seed}
    if options.data is not None:
        texts, headers = TextSplits.read(options.data), ["model", "weights", "directory MB", "loaded MB", "used MB"]
        rows = [
            row
            for name in options.models
            for row in measure_language_model(
                name,
                train(name, texts, options.output, options.minutes, options.seed),
                texts,
                options.data / "test.txt",
                options.rounds,
            )
        ]
        report["language models"] = rows
        print(format_table([*headers, "valid", "test", "tokens/s", "spread"], rows), end="\n\n")
    if options.translator is not None:
        rows = translator_rows(options.translator, options.source, options.before)
        report["translator"] = rows
        print(format_table(["translator", "directory MB", "loaded MB", "used MB"], rows), end="\n\n")
    print(f"seed {options.seed}; one thread; processor: {processor()}")
    write_json(options.json, report)


if __name__ == "__main__":
    main()
