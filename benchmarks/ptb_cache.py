"""What a cache adds to Kneser-Ney on the Penn Treebank (published: KN5 141.2, KN5 with cache 125.7 on test).

    python benchmarks/ptb_cache.py --data DIR [--json FILE]

DIR holds train.txt, valid.txt and test.txt, one sentence a line, unknown words as a literal `<unk>`. Decay and prior of
the cache are the library's defaults, which were chosen on valid.txt; so are the mixture weights, by EM. Nothing
here is random.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from dragoman import Corpus, Mixture, NgramModel
from dragoman.evaluation.log_probs import token_log_probs
from dragoman.models.cache import CacheModel
from dragoman.models.language_model import LanguageModel
from dragoman.report.tables import format_table

GOAL = 125.7  # test perplexity published for a Kneser-Ney 5-gram with a cache


@dataclass(frozen=True)
class Row:
    model: str
    weights: tuple[float, ...]  # of the mixture's members
    valid: float  # perplexity
    test: float
    seconds: float  # from the counts, or the members, to both figures


def perplexity(model: LanguageModel, text: Corpus) -> float:
    return float(np.exp(-token_log_probs(model, text).mean()))


def measure(data: Path) -> list[Row]:
    train = Corpus.read(data / "train.txt")
    valid, test = (Corpus.read(data / f"{name}.txt", train.vocab) for name in ("valid", "test"))
    models: dict[str, LanguageModel] = {}
    rows = []

    def add(name: str, started: float, model: LanguageModel) -> None:
        models[name] = model
        weights = tuple(model.weights.tolist()) if isinstance(model, Mixture) else ()
        figures = perplexity(model, valid), perplexity(model, test)
        rows.append(Row(name, weights, *figures, time.perf_counter() - started))

    add("KN5", time.perf_counter(), NgramModel.train(train, order=5, smoothing="modified-kneser-ney"))
    for order in (1, 3):
        cache = f"cache of order {order}"
        add(cache, time.perf_counter(), CacheModel.train(train, order=order))
        add(f"KN5 + {cache}", time.perf_counter(), Mixture.fit([models["KN5"], models[cache]], valid))
    return rows


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(": ", 1)[1] for line in lines if line.startswith("model name")), platform.processor())


def print_table(rows: list[Row]) -> None:
    cells = [
        [row.model, " ".join(f"{weight:.3f}" for weight in row.weights), row.valid, row.test, f"{row.seconds:.2f}"]
        for row in rows
    ]
    print(format_table(["model", "weights", "valid", "test", "seconds"], cells))
    print(f"\npublished for KN5 with a cache: {GOAL} on test; reached: {rows[-1].test:.2f}\nprocessor: {processor()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.txt, valid.txt and test.txt")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    options = parser.parse_args()
    rows = measure(options.data)
    print_table(rows)
    if options.json:
        report = {"processor": processor(), "goal": GOAL, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
