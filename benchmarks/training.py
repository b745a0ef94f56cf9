"""Training settings, compared on lab text: optimisers and learning rates, hidden layers, batch sizes.

    python benchmarks/training.py [--pairs 2000] [--seeds 1] [--epochs 5] [--json FILE]

A feed-forward 5-gram model is trained on the lab's English; each run changes one setting. The tables have the best
perplexity by class on the dev text, whose exact floor is known; for several seeds, the mean and the range. Times are
seconds of training on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman import Corpus, FeedForwardModel, fit
from dragoman.evaluation.floor import Floor
from dragoman.evaluation.lab_reference import lab_true_log_probs
from dragoman.lab.lab import german_english_lab
from dragoman.report.tables import format_table
from dragoman.training.loop import DivergedError
from texts_and_results import processor, write_json

MODEL: dict[str, Any] = {"order": 5, "embedding": 64, "hidden": (128,), "dropout": 0.2}
TRAINING: dict[str, Any] = {"optimizer": "adam", "learning_rate": 0.003, "batch_size": 500}
LEARNING_RATES = {
    "sgd": (0.1, 0.3, 1.0, 3.0),
    "momentum": (0.01, 0.03, 0.1, 0.3),
    "adagrad": (0.01, 0.03, 0.1, 0.3),
    "adam": (0.0003, 0.001, 0.003, 0.01),
}
HIDDEN_LAYERS: tuple[tuple[int, ...], ...] = ((), (32,), (64,), (128,), (256,), (512,), (128, 128), (128, 128, 128))
BATCH_SIZES = (100, 500, 2000, 8000)
HEADERS = {"hidden layers": "hidden layers", "batches": "words per batch"}  # first columns of the tables


@dataclass(frozen=True)
class Setting:
    """A row of a table, and what it changes in the model and the training."""

    table: str
    name: str
    value: str = ""
    model: tuple[tuple[str, Any], ...] = ()
    training: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Run:
    """The result of one training."""

    table: str
    name: str
    setting: str
    seed: int
    perplexity: float  # of the dev text, by class; infinite if the training diverged
    updates: int
    seconds: float


def settings() -> list[Setting]:
    optimizers = [
        Setting("optimizers", optimizer, f"{rate:g}", training=(("optimizer", optimizer), ("learning_rate", rate)))
        for optimizer, rates in LEARNING_RATES.items()
        for rate in rates
    ]
    hidden_layers = [
        Setting("hidden layers", " x ".join(map(str, sizes)) or "none", model=(("hidden", sizes),))
        for sizes in HIDDEN_LAYERS
    ]
    batches = [Setting("batches", f"{size:,}", training=(("batch_size", size),)) for size in BATCH_SIZES]
    return [*optimizers, *hidden_layers, *batches]


def run_all(texts: tuple[Corpus, Corpus], seeds: int, epochs: int) -> Iterable[Run]:
    for seed in range(1, seeds + 1):
        for setting in settings():
            if setting.table != "batches" or seed == 1:
                yield run(texts, setting, seed, epochs)


def run(texts: tuple[Corpus, Corpus], setting: Setting, seed: int, epochs: int) -> Run:
    model = FeedForwardModel.create(texts[0], seed=seed, **{**MODEL, **dict(setting.model)})
    start = time.perf_counter()
    try:
        config = {**TRAINING, **dict(setting.training)}
        progress = fit(model, *texts, **config, max_epochs=epochs, seed=seed).progress
        loss, updates = progress.best_dev_loss, progress.update
    except DivergedError:
        loss, updates = None, 0
    seconds = time.perf_counter() - start
    print(f"{setting.table}: {setting.name} {setting.value}, seed {seed}: {seconds:.1f} s", file=sys.stderr)
    perplexity = math.inf if loss is None else math.exp(loss)
    return Run(setting.table, setting.name, setting.value, seed, perplexity, updates, seconds)


def mean_and_range(runs: list[Run]) -> str:
    perplexities = [run.perplexity for run in runs]
    if math.inf in perplexities:
        return "diverged"
    mean = sum(perplexities) / len(perplexities)
    return f"{mean:.2f}" if len(runs) == 1 else f"{mean:.2f} ({min(perplexities):.2f} to {max(perplexities):.2f})"


def print_tables(runs: list[Run]) -> None:
    by_setting: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        by_setting.setdefault((run.table, run.name, run.setting), []).append(run)
    rows: dict[str, list[list[Any]]] = {}
    for (table, name, value), same in by_setting.items():
        if table == "optimizers":
            cells = [name, value, mean_and_range(same)]
        else:
            seconds = sum(run.seconds for run in same) / len(same)
            cells = [name, mean_and_range(same), same[0].updates, f"{seconds:.1f}"]
        rows.setdefault(table, []).append(cells)
    print(format_table(["optimizer", "learning rate", "dev perplexity by class"], rows["optimizers"]))
    for table, header in HEADERS.items():
        print(f"\n{format_table([header, 'dev perplexity by class', 'updates', 'seconds'], rows[table])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=2000, help="number of training sentences")
    parser.add_argument("--seeds", type=int, default=1, help="number of random seeds")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    lab = german_english_lab()
    train = Corpus.from_sentences(lab.sentences("en", arguments.pairs, seed=1))
    dev = Corpus.from_sentences(lab.sentences("en", 1000, seed=1, split="dev"), train.vocab)
    floor = Floor.from_true_log_probs(lab_true_log_probs("en", dev)).perplexity_class
    runs = list(run_all((train, dev), arguments.seeds, arguments.epochs))
    print_tables(runs)
    print(f"\nfloor: {floor.value:.2f} ± {floor.standard_error:.2f}; {train.num_tokens:,} training tokens")
    print(f"processor: {processor()}")
    report = {"processor": processor(), "floor": floor.value, "runs": [asdict(run) for run in runs]}
    write_json(arguments.json, report)


if __name__ == "__main__":
    main()
