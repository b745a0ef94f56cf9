"""Surprisal of the spellings of unknown words: uniform over 10,000,000 words, or by a character model.

    python benchmarks/spelling.py --train train.txt --test test.txt [--min-count 2]

Prints the number of unknown words in the test text and the mean surprisal of their spellings in bits. Nothing is
random.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from dragoman import Corpus
from dragoman.ngram.spelling import create_unknown_word_model
from dragoman.report.tables import format_table


def mean_surprisal(kind: str, train: Corpus, test: Corpus) -> float:
    """Return the mean of -log2 P(spelling | the word is unknown) over the unknown words of the test text."""
    log_probs = create_unknown_word_model(kind, train).log_probs(test.unknown_words)
    return -math.fsum(log_probs) / len(log_probs) / math.log(2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="training text")
    parser.add_argument("--test", type=Path, required=True, help="test text")
    parser.add_argument("--min-count", type=int, default=2, help="words that occur less often are unknown")
    arguments = parser.parse_args()
    train = Corpus.read(arguments.train, min_count=arguments.min_count)
    test = Corpus.read(arguments.test, train.vocab)
    bits = [f"{mean_surprisal(kind, train, test):.2f}" for kind in ("uniform", "characters")]
    headers = ["training text", "unknown words", "test words", "uniform, bits", "characters, bits"]
    print(format_table(headers, [[arguments.train.name, len(test.unknown_words), test.num_words, *bits]]))


if __name__ == "__main__":
    main()
