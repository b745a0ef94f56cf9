"""The tutorial's "farmers eat hay": what single words cannot tell, and pairs of words and a hidden layer can.

    python benchmarks/crossed.py [--drawn 200000] [--seed 1] [--json FILE]

From the laboratory's English, the sentences about crossed quadruples are taken: those with a subject, a verb and an
object of one (fishermen mend nets and hoist sails, sailors mend sails and hoist nets). Three models of the last four
words learn from them: log-linear with single words, log-linear with pairs of words as well, and feed-forward. A
quadruple is right if all four of its contrasts are; those are asked in which subject and verb are within four words of
the object.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from dragoman import Corpus, FeedForwardModel, LogLinearModel, NgramModel, fit
from dragoman.cli.progress import training_progress
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy, accuracy_by_kind
from dragoman.lab.lab import german_english_lab
from dragoman.lab.minimal_pairs import MinimalPair, sample_minimal_pairs
from dragoman.report.tables import format_table
from dragoman.training.presets import FEED_FORWARD, LOG_LINEAR
from ptb_cache import processor

NEAR = 4  # words of context, and so the distance at which a quadruple is out of sight
PAIRS = "word1+word2,word1+word3,word1+word4,word2+word3,word2+word4,word3+word4"
ASKED = 300  # contrasts


@dataclass(frozen=True)
class Row:
    model: str
    dev: float  # perplexity by class
    contrasts: float  # % right
    quadruples: float  # % of which all four are right
    seconds: float


def quadruples(seed: int) -> list[MinimalPair]:
    found = sample_minimal_pairs("en", ASKED, seed)
    return [one for one in found if one.phenomenon == "selection" and one.distance < NEAR]


def deciding_words(asked: list[MinimalPair]) -> set[str]:
    """The words in which the sentences of a quadruple differ."""
    words: set[str] = set()
    for _, group in groupby(asked, key=lambda one: one.group):
        sentences = [side.split() for one in group for side in (one.right, one.wrong)]
        columns = (set(column) for column in zip(*sentences, strict=False))
        words |= {word for column in columns if len(column) == 2 for word in column}
    return words - {"a", "an"}


def texts(drawn: int, seed: int, words: set[str]) -> tuple[Corpus, Corpus]:
    """Sentences with subject, verb and object of a quadruple; every twentieth is held out."""
    found = [line for line in german_english_lab().sentences("en", drawn, seed) if len(words & set(line.split())) >= 3]
    train = Corpus.from_sentences([line for number, line in enumerate(found) if number % 20], min_count=2)
    return train, Corpus.from_sentences(found[::20], train.vocab)


Make = Callable[[Corpus, Corpus, int], Any]


def log_linear(features: str) -> Make:
    def make(train: Corpus, dev: Corpus, seed: int) -> LogLinearModel:
        model = LogLinearModel.create(train, features=features, weights="seen")
        return _fitted(model, train, dev, LOG_LINEAR, seed=seed, max_epochs=6)

    return make


def feed_forward(reach: float) -> Make:
    def make(train: Corpus, dev: Corpus, seed: int) -> FeedForwardModel:
        settings: dict[str, Any] = {"order": 5, "embedding": 64, "hidden": (256,), "activation": "relu"}
        model = FeedForwardModel.create(train, seed=seed, softmax="brown", embedding_reach=reach, **settings)
        return _fitted(model, train, dev, FEED_FORWARD, seed=seed, learning_rate=0.003, max_epochs=6)

    return make


def _fitted(model: Any, train: Corpus, dev: Corpus, config: Any, **settings: Any) -> Any:
    with training_progress() as report:
        fit(model, train, dev, config, callback=report, **settings)
    return model


MODELS: dict[str, Make] = {
    "Kneser-Ney, order 5": lambda train, dev, seed: NgramModel.train(train, order=5),
    "log-linear, single words": log_linear("words-4"),
    "log-linear, single words and pairs": log_linear(f"words-4,{PAIRS}"),
    "feed-forward": feed_forward(1.0),
    "feed-forward, small first vectors": feed_forward(0.1),
}


def measure(train: Corpus, dev: Corpus, asked: list[MinimalPair], seed: int) -> Iterator[Row]:
    from dragoman.evaluation.likelihood import likelihood

    for name, make in MODELS.items():
        began = time.perf_counter()
        model = make(train, dev, seed)
        seconds = time.perf_counter() - began
        right = sum(accuracy_by_kind(model, asked, kind=lambda one: one.phenomenon).values(), MinimalPairAccuracy())
        perplexity = likelihood(model, dev).perplexity_class
        yield Row(name, perplexity, 100 * right.accuracy, 100 * right.group_accuracy, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drawn", type=int, default=200_000, help="sentences of the laboratory to choose from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    options = parser.parse_args()
    asked = quadruples(options.seed)
    train, dev = texts(options.drawn, options.seed, deciding_words(asked))
    rows = list(measure(train, dev, asked, options.seed))
    headers = ["model", "perplexity by class", "contrasts right, %", "quadruples right, %", "seconds"]
    cells = [
        [row.model, row.dev, f"{row.contrasts:.1f}", f"{row.quadruples:.1f}", f"{row.seconds:.0f}"] for row in rows
    ]
    print(format_table(headers, cells))
    quads = len({one.group for one in asked})
    print(
        f"\n{train.num_sentences:,} sentences of {options.drawn:,}; {quads} quadruples; seed {options.seed}; {processor()}"
    )
    if options.json:
        report = {"processor": processor(), "seed": options.seed, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
