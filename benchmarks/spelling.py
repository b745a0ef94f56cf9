"""What the identity of an unknown word costs: spread evenly over 10,000,000 words, or spelled out by characters.

    python benchmarks/spelling.py --train train.txt --test test.txt [--min-count 2]

Prints bits an unknown word, and how many there were. Nothing here is random.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from dragoman import Corpus
from dragoman.ngram.spelling import create_unknown_word_model
from dragoman.report.tables import format_table


def bits(choice: str, train: Corpus, test: Corpus) -> float:
    """-log2 P(which word | it is unknown), averaged over the unknown words of the test text."""
    costs = create_unknown_word_model(choice, train).log_probs(test.unknown_words)
    return -math.fsum(costs) / len(costs) / math.log(2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--min-count", type=int, default=2, help="words seen less often are unknown")
    options = parser.parse_args()
    train = Corpus.read(options.train, min_count=options.min_count)
    test = Corpus.read(options.test, train.vocab)
    found = [f"{bits(choice, train, test):.2f}" for choice in ("uniform", "characters")]
    headers = ["training text", "unknown words", "of words", "uniform, bits", "characters, bits"]
    print(format_table(headers, [[options.train.name, len(test.unknown_words), test.num_words, *found]]))


if __name__ == "__main__":
    main()
