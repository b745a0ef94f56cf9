"""All methods of smoothing, pruning and mixing n-gram models on one text: perplexity, size and time.

    python benchmarks/smoothing.py --data DIR [--json FILE]

DIR has train.txt, valid.txt and test.txt, one sentence per line. A literal `<unk>` is renamed to an ordinary word, as
for published perplexities on the Penn Treebank and WikiText-2, and the vocabulary is closed. Coefficients and mixture
weights are fitted on valid.txt. Nothing is random.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from dragoman import CacheModel, Mixture, NgramModel
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.evaluation.likelihood import likelihood
from dragoman.models.language_model import LanguageModel
from dragoman.ngram.smoothing import SMOOTHINGS
from dragoman.report.tables import format_table
from texts_and_results import TextSplits, write_json

RENAMED_UNK = b"UNKNOWN"


@dataclass(frozen=True)
class Row:
    model: str
    valid: float  # perplexity
    test: float
    megabytes: float  # on disk
    seconds: float  # for training


def read_texts(data: Path) -> TextSplits:
    """Read the texts with `<unk>` renamed."""
    with tempfile.TemporaryDirectory() as directory:
        for name in ("train.txt", "valid.txt", "test.txt"):
            (Path(directory) / name).write_bytes((data / name).read_bytes().replace(b"<unk>", RENAMED_UNK))
        return TextSplits.read(Path(directory))


def measure(name: str, texts: TextSplits, train: Callable[[], LanguageModel]) -> Row:
    start = time.perf_counter()
    model = train()
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as directory:
        model.save(Path(directory) / "model")
        megabytes = sum(file.stat().st_size for file in Path(directory).rglob("*")) / 1e6
    valid, test = (likelihood(model, text).perplexity for text in (texts.valid, texts.test))
    return Row(name, valid, test, megabytes, seconds)


def measure_all(texts: TextSplits, order: int) -> Iterator[Row]:
    closed = ClosedVocabulary(texts.train.vocab.num_known)

    def ngram(**settings: object) -> Callable[[], LanguageModel]:
        return lambda: NgramModel.train(texts.train, unknown=closed, heldout=texts.valid, **settings)

    for smoothing in SMOOTHINGS:
        yield measure(f"{smoothing}, order {order}", texts, ngram(smoothing=smoothing, order=order))
    for smoothing in ("katz", "witten-bell"):  # without 3-grams and longer ones that occur once, the default of SRILM
        name = f"{smoothing}, order {order}, pruned 0,0,1"
        yield measure(name, texts, ngram(smoothing=smoothing, order=order, prune=(0, 0, 1)))
    for other_order in range(1, 8):
        if other_order != order:
            yield measure(f"modified-kneser-ney, order {other_order}", texts, ngram(order=other_order))
    best = ngram(order=order)()
    for name, settings in {
        "  quantised": {"quantise": True},
        "  pruned by counts 0,0,1": {"prune": (0, 0, 1)},
        "  pruned by entropy 1e-8": {"entropy_prune": 1e-8},
        "  pruned by entropy 1e-7": {"entropy_prune": 1e-7},
        "  pruned by entropy 1e-7, quantised": {"entropy_prune": 1e-7, "quantise": True},
    }.items():
        yield measure(name, texts, ngram(order=order, **settings))
    skip_models = [ngram(order=3, gap=gap)() for gap in (1, 2)]
    yield measure("  mixed with skip 3-grams", texts, lambda: Mixture.fit([best, *skip_models], texts.valid))
    for cache_order in (1, 3):
        cache = CacheModel.train(texts.train, unknown=closed, order=cache_order)
        name = f"  mixed with a cache of order {cache_order}"
        yield measure(name, texts, lambda cache=cache: Mixture.fit([best, cache], texts.valid))  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.txt, valid.txt and test.txt")
    parser.add_argument("--order", type=int, default=5, help="order of the n-gram models")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    texts = read_texts(arguments.data)
    rows = list(measure_all(texts, arguments.order))
    cells = [[row.model, row.valid, row.test, f"{row.megabytes:.1f}", f"{row.seconds:.2f}"] for row in rows]
    print(format_table(["model", "valid", "test", "MB", "seconds"], cells))
    print(f"\n{texts.train.num_tokens:,} training tokens, {texts.test.num_tokens:,} test tokens")
    write_json(arguments.json, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
