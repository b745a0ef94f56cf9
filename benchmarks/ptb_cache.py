"""A cache mixed with a Kneser-Ney model on the Penn Treebank (published: KN5 141.2, KN5 with cache 125.7 on test).

    python benchmarks/ptb_cache.py --data DIR [--json FILE]

DIR has train.txt, valid.txt and test.txt, one sentence per line, unknown words as a literal `<unk>`. Decay and prior of
the cache are the defaults of the library, which were chosen on valid.txt. The mixture weights are fitted on valid.txt
by EM. Nothing is random.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from dragoman import CacheModel, Mixture, NgramModel
from dragoman.models.language_model import LanguageModel
from dragoman.report.tables import format_table
from texts_and_results import TextSplits, perplexity, processor, write_json

PUBLISHED = 125.7  # test perplexity of a Kneser-Ney 5-gram model with a cache


@dataclass(frozen=True)
class Row:
    model: str
    weights: tuple[float, ...]  # of a mixture
    valid: float  # perplexity
    test: float
    seconds: float  # for training or fitting, and evaluation


def measure(directory: Path) -> list[Row]:
    texts = TextSplits.read(directory)
    rows = []

    def add_row(name: str, train: Callable[[], LanguageModel]) -> LanguageModel:
        start = time.perf_counter()
        model = train()
        weights = tuple(model.weights.tolist()) if isinstance(model, Mixture) else ()
        perplexities = perplexity(model, texts.valid), perplexity(model, texts.test)
        rows.append(Row(name, weights, *perplexities, time.perf_counter() - start))
        return model

    ngram = add_row("KN5", lambda: NgramModel.train(texts.train, order=5, smoothing="modified-kneser-ney"))
    for order in (1, 3):
        name = f"cache of order {order}"
        cache = add_row(name, lambda order=order: CacheModel.train(texts.train, order=order))  # type: ignore[misc]
        add_row(f"KN5 + {name}", lambda cache=cache: Mixture.fit([ngram, cache], texts.valid))  # type: ignore[misc]
    return rows


def print_table(rows: list[Row]) -> None:
    cells = [
        [row.model, " ".join(f"{weight:.3f}" for weight in row.weights), row.valid, row.test, f"{row.seconds:.2f}"]
        for row in rows
    ]
    print(format_table(["model", "weights", "valid", "test", "seconds"], cells))
    print(f"\ntest perplexity of KN5 with a cache: published {PUBLISHED}, measured {rows[-1].test:.2f}")
    print(f"processor: {processor()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.txt, valid.txt and test.txt")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    rows = measure(arguments.data)
    print_table(rows)
    report = {"processor": processor(), "goal": PUBLISHED, "rows": [asdict(row) for row in rows]}
    write_json(arguments.json, report)


if __name__ == "__main__":
    main()
