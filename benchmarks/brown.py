"""Brown clustering of a text: time, mutual information, and class n-gram models with the classes.

    python benchmarks/brown.py --data DIR [--classes 50,200,500,1000] [--passes 0,10] [--json FILE]

DIR has train.txt, valid.txt and test.txt, one sentence per line, unknown words as a literal `<unk>`. Each clustering of
train.txt is used in a class n-gram model (modified Kneser-Ney over classes), which is evaluated by itself and mixed
with a modified Kneser-Ney model over words. The weights of the mixture are fitted on valid.txt. Nothing is random, and
the clustering uses one core.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

from dragoman import ClassNgramModel, Corpus, Mixture, NgramModel
from dragoman.data.brown import brown_clusters
from dragoman.report.tables import format_table
from texts_and_results import TextSplits, perplexity, processor, write_json


@dataclass(frozen=True)
class Row:
    classes: int
    passes: int  # maximum number of exchange passes
    seconds: float  # of CPU time, for the clustering
    information: float  # mutual information of adjacent classes, in nats per token
    valid_alone: float  # perplexity of the class n-gram model
    test_alone: float
    valid_mixed: float  # perplexity of the mixture with the n-gram model over words
    test_mixed: float
    weight: float  # of the class n-gram model in the mixture


def measure(texts: TextSplits, word_model: NgramModel, classes: int, passes: int, order: int) -> Row:
    start = time.process_time()
    clustering = brown_clusters(texts.train, classes, passes=passes)
    seconds = time.process_time() - start
    class_model = ClassNgramModel.train(texts.train, clustering.as_mapping(), order=order)
    mixture = Mixture.fit([word_model, class_model], texts.valid)
    models = (class_model, mixture)
    perplexities = (perplexity(model, text) for model in models for text in (texts.valid, texts.test))
    return Row(classes, passes, seconds, clustering.mutual_information, *perplexities, weight=float(mixture.weights[1]))


def print_table(rows: list[Row], word_perplexity: float, order: int) -> None:
    headers = ["classes", "passes", "seconds", "information", "valid", "test", "mixed: valid", "test", "weight"]
    cells = [
        [
            *(row.classes, row.passes, f"{row.seconds:.1f}", f"{row.information:.4f}"),
            *(row.valid_alone, row.test_alone, row.valid_mixed, row.test_mixed, f"{row.weight:.3f}"),
        ]
        for row in rows
    ]
    print(format_table(headers, cells))
    print(f"\nmodified Kneser-Ney over words, order {order}: {word_perplexity:.2f} on test\nprocessor: {processor()}")


def parse_numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.txt, valid.txt and test.txt")
    parser.add_argument("--classes", type=parse_numbers, default=[50, 200, 500, 1000], help="numbers of classes")
    parser.add_argument("--passes", type=parse_numbers, default=[0, 10], help="numbers of exchange passes")
    parser.add_argument("--order", type=int, default=5, help="order of the n-gram models")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    texts = TextSplits.read(arguments.data)
    word_model = NgramModel.train(texts.train, order=arguments.order)
    word_perplexity = perplexity(word_model, texts.test)
    brown_clusters(Corpus.from_sentences(["a b", "b c"]), 2)  # compiles the kernels
    choices = [(classes, passes) for classes in arguments.classes for passes in arguments.passes]
    rows = [measure(texts, word_model, *choice, arguments.order) for choice in choices]
    print_table(rows, word_perplexity, arguments.order)
    report = {"processor": processor(), "words": word_perplexity, "rows": [asdict(row) for row in rows]}
    write_json(arguments.json, report)


if __name__ == "__main__":
    main()
