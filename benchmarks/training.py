"""How to train, on the laboratory: optimisers and learning rates; hidden sizes and depths; sizes of batches.

    python benchmarks/training.py [--pairs 2000] [--seeds 1] [--epochs 5] [--json FILE]

A feed-forward 5-gram is trained on the laboratory's English with everything but one thing the same. Figures are
perplexities by class of the dev text, held against its exact floor, at the best look; over several seeds, the mean and
from the lowest to the highest. Times are seconds of training, on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman import Corpus, FeedForwardModel, fit
from dragoman.evaluation.floor import Floor
from dragoman.evaluation.lab_reference import lab_true_log_probs
from dragoman.lab.lab import german_english_lab
from dragoman.report.tables import format_table
from dragoman.training.loop import DivergedError
from ptb_cache import processor

MODEL: dict[str, Any] = {"order": 5, "embedding": 64, "hidden": (128,), "dropout": 0.2}
TRAINING: dict[str, Any] = {"optimizer": "adam", "learning_rate": 0.003, "batch_size": 500}
OPTIMIZERS = {
    "sgd": (0.1, 0.3, 1.0, 3.0),
    "momentum": (0.01, 0.03, 0.1, 0.3),
    "adagrad": (0.01, 0.03, 0.1, 0.3),
    "adam": (0.0003, 0.001, 0.003, 0.01),
}
SHAPES: tuple[tuple[int, ...], ...] = ((), (32,), (64,), (128,), (256,), (512,), (128, 128), (128, 128, 128))
BATCHES = (100, 500, 2000, 8000)


@dataclass(frozen=True)
class Run:
    """One training."""

    table: str
    name: str
    setting: str
    seed: int
    perplexity: float  # of the dev text, by class; infinite if training diverged
    updates: int
    seconds: float


def runs(texts: tuple[Corpus, Corpus], seeds: int, epochs: int) -> Iterable[Run]:
    for seed in range(1, seeds + 1):
        for optimizer, rates in OPTIMIZERS.items():
            for rate in rates:
                settings = {"optimizer": optimizer, "learning_rate": rate}
                yield run(texts, "optimizers", optimizer, f"{rate:g}", seed, epochs, {}, settings)
        for shape in SHAPES:
            name = " x ".join(map(str, shape)) or "none"
            yield run(texts, "hidden layers", name, "", seed, epochs, {"hidden": shape}, {})
    for size in BATCHES:  # with one seed
        yield run(texts, "batches", f"{size:,}", "", 1, epochs, {}, {"batch_size": size})


def run(
    texts: tuple[Corpus, Corpus],
    kind: str,
    name: str,
    setting: str,
    seed: int,
    epochs: int,
    model_settings: dict[str, Any],
    settings: dict[str, Any],
) -> Run:
    model = FeedForwardModel.create(texts[0], seed=seed, **{**MODEL, **model_settings})
    began = time.perf_counter()
    try:
        position = fit(model, *texts, **{**TRAINING, **settings}, max_epochs=epochs, seed=seed).progress
        loss, updates = position.best_dev_loss, position.update
    except DivergedError:
        loss, updates = None, 0
    seconds = time.perf_counter() - began
    print(f"{kind}: {name} {setting}, seed {seed}: {seconds:.1f} s", file=sys.stderr)
    return Run(kind, name, setting, seed, math.inf if loss is None else math.exp(loss), updates, seconds)


def spread(found: list[Run]) -> str:
    values = [one.perplexity for one in found]
    if math.inf in values:
        return "diverged"
    mean = sum(values) / len(values)
    return f"{mean:.2f}" if len(values) == 1 else f"{mean:.2f} ({min(values):.2f} to {max(values):.2f})"


def print_tables(done: list[Run]) -> None:
    def where(test: Callable[[Run], bool]) -> list[Run]:
        return [one for one in done if test(one)]

    rows: list[list[Any]] = []
    for optimizer, rates in OPTIMIZERS.items():
        for rate in rates:
            same = where(lambda one, o=optimizer, r=rate: (one.name, one.setting) == (o, f"{r:g}"))  # type: ignore[misc]
            rows.append([optimizer, f"{rate:g}", spread(same)])
    print(format_table(["optimizer", "learning rate", "dev perplexity by class"], rows))
    for kind, header in (("hidden layers", "hidden layers"), ("batches", "words a batch")):
        names = list(dict.fromkeys(one.name for one in where(lambda one, k=kind: one.table == k)))  # type: ignore[misc]
        rows = []
        for name in names:
            same = where(lambda one, k=kind, n=name: (one.table, one.name) == (k, n))  # type: ignore[misc]
            seconds = sum(one.seconds for one in same) / len(same)
            rows.append([name, spread(same), same[0].updates, f"{seconds:.1f}"])
        print(f"\n{format_table([header, 'dev perplexity by class', 'updates', 'seconds'], rows)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=2000, help="sentences to train on")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    options = parser.parse_args()
    lab = german_english_lab()
    train = Corpus.from_sentences(lab.sentences("en", options.pairs, seed=1))
    dev = Corpus.from_sentences(lab.sentences("en", 1000, seed=1, split="dev"), train.vocab)
    floor = Floor.from_true_log_probs(lab_true_log_probs("en", dev)).perplexity_class
    done = list(runs((train, dev), options.seeds, options.epochs))
    print_tables(done)
    print(f"\nfloor: {floor[0]:.2f} ± {floor[1]:.2f}; {train.num_tokens:,} words to train on; processor: {processor()}")
    if options.json:
        report = {"processor": processor(), "floor": floor[0], "runs": [asdict(one) for one in done]}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
