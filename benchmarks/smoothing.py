"""Every n-gram method on one real text: perplexity, size and time.

    python benchmarks/smoothing.py --data DIR [--json FILE]

DIR holds train.txt, valid.txt and test.txt, one sentence a line. A literal `<unk>` is renamed to an ordinary word,
as published figures on the Penn Treebank and WikiText-2 have it, and the vocabulary is closed. Coefficients and
mixture weights are fitted on valid.txt. Nothing here is random.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from dragoman import CacheModel, Corpus, Mixture, NgramModel
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.evaluation.likelihood import likelihood
from dragoman.models.language_model import LanguageModel
from dragoman.ngram.smoothing import SMOOTHINGS
from dragoman.report.tables import format_table

RENAMED = b"UNKNOWN"


@dataclass(frozen=True)
class Texts:
    train: Corpus
    valid: Corpus
    test: Corpus


@dataclass(frozen=True)
class Row:
    model: str
    valid: float  # perplexity
    test: float
    megabytes: float | None  # on disk
    seconds: float  # to train


def read(data: Path) -> Texts:
    with tempfile.TemporaryDirectory() as place:
        for name in ("train", "valid", "test"):
            text = (data / f"{name}.txt").read_bytes().replace(b"<unk>", RENAMED)
            (Path(place) / name).write_bytes(text)
        train = Corpus.read(Path(place) / "train")
        valid, test = (Corpus.read(Path(place) / name, train.vocab) for name in ("valid", "test"))
    return Texts(train, valid, test)


def measure(name: str, texts: Texts, make: Callable[[], LanguageModel]) -> tuple[Row, LanguageModel]:
    began = time.perf_counter()
    model = make()
    seconds = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as place:
        model.save(Path(place) / "model")
        size = sum(file.stat().st_size for file in Path(place).rglob("*")) / 1e6
    valid, test = (likelihood(model, text).perplexity for text in (texts.valid, texts.test))
    return Row(name, valid, test, size, seconds), model


def rows(texts: Texts, order: int) -> Iterator[Row]:
    closed = ClosedVocabulary(texts.train.vocab.num_known)

    def ngram(**settings: object) -> Callable[[], LanguageModel]:
        return lambda: NgramModel.train(texts.train, unknown=closed, heldout=texts.valid, **settings)

    for smoothing in SMOOTHINGS:
        yield measure(f"{smoothing}, order {order}", texts, ngram(smoothing=smoothing, order=order))[0]
    for smoothing in ("katz", "witten-bell"):  # single 3-grams and longer left out, as SRILM does by default
        name = f"{smoothing}, order {order}, pruned 0,0,1"
        yield measure(name, texts, ngram(smoothing=smoothing, order=order, prune=(0, 0, 1)))[0]
    for lower in range(1, 8):
        if lower != order:
            yield measure(f"modified-kneser-ney, order {lower}", texts, ngram(order=lower))[0]
    best = ngram(order=order)()
    for name, settings in {
        "  quantised": {"quantise": True},
        "  pruned by counts 0,0,1": {"prune": (0, 0, 1)},
        "  pruned by entropy 1e-8": {"entropy_prune": 1e-8},
        "  pruned by entropy 1e-7": {"entropy_prune": 1e-7},
        "  pruned by entropy 1e-7, quantised": {"entropy_prune": 1e-7, "quantise": True},
    }.items():
        yield measure(name, texts, ngram(order=order, **settings))[0]
    skips = [ngram(order=3, gap=gap)() for gap in (1, 2)]
    yield measure("  mixed with skip 3-grams", texts, lambda: Mixture.fit([best, *skips], texts.valid))[0]
    for size in (1, 3):
        cache = CacheModel.train(texts.train, unknown=closed, order=size)
        name = f"  mixed with a cache of order {size}"
        yield measure(name, texts, lambda cache=cache: Mixture.fit([best, cache], texts.valid))[0]  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.txt, valid.txt and test.txt")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    texts = read(options.data)
    results = list(rows(texts, options.order))
    cells = [[r.model, r.valid, r.test, f"{r.megabytes:.1f}", f"{r.seconds:.2f}"] for r in results]
    print(format_table(["model", "valid", "test", "MB", "seconds"], cells))
    print(f"\n{texts.train.num_tokens:,} training tokens, {texts.test.num_tokens:,} test tokens")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in results], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
