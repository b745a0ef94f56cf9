"""Brown clustering on one real text: time, information, and what class n-grams make of the classes.

    python benchmarks/brown.py --data DIR [--classes 50,200,500,1000] [--passes 0,10] [--json FILE]

DIR holds train.txt, valid.txt and test.txt, one sentence a line, unknown words as a literal `<unk>`. Each clustering of
train.txt is used in a class n-gram model (modified Kneser-Ney over classes), alone and mixed with the modified
Kneser-Ney model over words; the mixture's weights are fitted on valid.txt. Nothing here is random, and the clustering
uses one core.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from dragoman import ClassNgramModel, Corpus, Mixture, NgramModel
from dragoman.data.brown import brown_clusters
from dragoman.evaluation.log_probs import token_log_probs
from dragoman.models.language_model import LanguageModel
from dragoman.report.tables import format_table


@dataclass(frozen=True)
class Texts:
    train: Corpus
    valid: Corpus
    test: Corpus


@dataclass(frozen=True)
class Row:
    classes: int
    passes: int  # of exchanging words, at most
    seconds: float  # of one core, to cluster
    information: float  # of adjacent classes, nats a token
    valid_alone: float  # perplexity of the class n-gram model
    test_alone: float
    valid_mixed: float  # with the n-gram model over words
    test_mixed: float
    weight: float  # of the class n-gram model in the mixture


def read(data: Path) -> Texts:
    train = Corpus.read(data / "train.txt")
    return Texts(train, *(Corpus.read(data / f"{name}.txt", train.vocab) for name in ("valid", "test")))


def perplexity(model: LanguageModel, text: Corpus) -> float:
    return float(np.exp(-token_log_probs(model, text).mean()))


def measure(texts: Texts, words: NgramModel, classes: int, passes: int, order: int) -> Row:
    began = time.process_time()
    clustering = brown_clusters(texts.train, classes, passes=passes)
    seconds = time.process_time() - began
    alone = ClassNgramModel.train(texts.train, clustering.as_mapping(), order=order)
    mixed = Mixture.fit([words, alone], texts.valid)
    figures = (perplexity(model, text) for model in (alone, mixed) for text in (texts.valid, texts.test))
    return Row(classes, passes, seconds, clustering.mutual_information, *figures, weight=float(mixed.weights[1]))


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(": ", 1)[1] for line in lines if line.startswith("model name")), platform.processor())


def print_table(rows: list[Row], words: float, order: int) -> None:
    headers = ["classes", "passes", "seconds", "information", "valid", "test", "mixed: valid", "test", "weight"]
    cells = [
        [
            *(row.classes, row.passes, f"{row.seconds:.1f}", f"{row.information:.4f}"),
            *(row.valid_alone, row.test_alone, row.valid_mixed, row.test_mixed, f"{row.weight:.3f}"),
        ]
        for row in rows
    ]
    print(format_table(headers, cells))
    print(f"\nmodified Kneser-Ney over words, order {order}: {words:.2f} on test\nprocessor: {processor()}")


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.txt, valid.txt and test.txt")
    parser.add_argument("--classes", type=numbers, default=[50, 200, 500, 1000], help="numbers of classes to try")
    parser.add_argument("--passes", type=numbers, default=[0, 10], help="numbers of exchange passes to try")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    texts = read(options.data)
    words = NgramModel.train(texts.train, order=options.order)
    on_test = perplexity(words, texts.test)
    brown_clusters(Corpus.from_sentences(["a b", "b c"]), 2)  # compiles what is not compiled yet
    choices = [(classes, passes) for classes in options.classes for passes in options.passes]
    rows = [measure(texts, words, *choice, options.order) for choice in choices]
    print_table(rows, on_test, options.order)
    if options.json:
        report = {"processor": processor(), "words": on_test, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
