"""The tutorial's "farmers eat hay": word pairs and a hidden layer learn what single words cannot.

    python benchmarks/crossed.py [--drawn 200000] [--seed 1] [--json FILE]

Uses sentences of the lab's English with subject, verb and object from one crossed quadruple (fishermen mend nets and
hoist sails, sailors mend sails and hoist nets). Three kinds of model of the last four words are trained on them:
log-linear with single words, log-linear with word pairs as well, and feed-forward. A quadruple counts as right if all
four of its minimal pairs are right. Only quadruples with subject and verb within four words of the object are used.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from dragoman import Corpus, FeedForwardModel, LogLinearModel, NgramModel, TrainingConfig, fit
from dragoman.cli.progress import training_progress
from dragoman.evaluation.likelihood import likelihood
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy, accuracy_by_kind
from dragoman.lab.lab import german_english_lab
from dragoman.lab.minimal_pairs import MinimalPair, sample_minimal_pairs
from dragoman.models.language_model import LanguageModel
from dragoman.report.tables import format_table
from dragoman.training.config import FEED_FORWARD, LOG_LINEAR
from texts_and_results import processor, write_json

CONTEXT = 4  # words that the models see
WORD_PAIRS = "word1+word2,word1+word3,word1+word4,word2+word3,word2+word4,word3+word4"
MINIMAL_PAIRS = 300  # per phenomenon and class of distance


@dataclass(frozen=True)
class Row:
    model: str
    dev: float  # perplexity by class
    contrasts: float  # % of the minimal pairs that are right
    quadruples: float  # % of the quadruples that are right
    seconds: float


def sample_quadruples(seed: int) -> list[MinimalPair]:
    """Sample the minimal pairs of crossed quadruples within the context of the models."""
    pairs = sample_minimal_pairs("en", MINIMAL_PAIRS, seed)
    return [pair for pair in pairs if pair.phenomenon == "selection" and pair.distance < CONTEXT]


def deciding_words(pairs: list[MinimalPair]) -> set[str]:
    """Return the words in which the sentences of a quadruple differ."""
    words: set[str] = set()
    for _, group in groupby(pairs, key=lambda pair: pair.group):
        sentences = [sentence.split() for pair in group for sentence in (pair.right, pair.wrong)]
        columns = (set(column) for column in zip(*sentences, strict=False))
        words |= {word for column in columns if len(column) == 2 for word in column}
    return words - {"a", "an"}


def read_texts(sentences: int, seed: int, words: set[str]) -> tuple[Corpus, Corpus]:
    """Return the sentences with at least three deciding words; every twentieth is in the dev text."""
    lines = german_english_lab().sentences("en", sentences, seed)
    lines = [line for line in lines if len(words & set(line.split())) >= 3]
    train = Corpus.from_sentences([line for number, line in enumerate(lines) if number % 20], min_count=2)
    return train, Corpus.from_sentences(lines[::20], train.vocab)


# -- models ------------------------------------------------------------------------------------------------------------

TrainModel = Callable[[Corpus, Corpus, int], LanguageModel]  # from a training text, a dev text and a random seed


def log_linear(features: str) -> TrainModel:
    def train(text: Corpus, dev: Corpus, seed: int) -> LanguageModel:
        model = LogLinearModel.create(text, features=features, weights="seen")
        return run_training(model, text, dev, LOG_LINEAR, seed=seed, max_epochs=6)

    return train


def feed_forward(reach: float) -> TrainModel:
    def train(text: Corpus, dev: Corpus, seed: int) -> LanguageModel:
        settings: dict[str, Any] = {"order": 5, "embedding": 64, "hidden": (256,), "activation": "relu"}
        model = FeedForwardModel.create(text, seed=seed, softmax="brown", embedding_reach=reach, **settings)
        return run_training(model, text, dev, FEED_FORWARD, seed=seed, learning_rate=0.003, max_epochs=6)

    return train


def run_training(model: Any, text: Corpus, dev: Corpus, config: TrainingConfig, **settings: Any) -> LanguageModel:
    with training_progress() as report:
        fit(model, text, dev, config, callback=report, **settings)
    return model


MODELS: dict[str, TrainModel] = {
    "Kneser-Ney, order 5": lambda text, dev, seed: NgramModel.train(text, order=5),
    "log-linear, single words": log_linear("words-4"),
    "log-linear, single words and pairs": log_linear(f"words-4,{WORD_PAIRS}"),
    "feed-forward": feed_forward(1.0),
    "feed-forward, small initial vectors": feed_forward(0.1),
}


# -- measurements ------------------------------------------------------------------------------------------------------


def measure(text: Corpus, dev: Corpus, pairs: list[MinimalPair], seed: int) -> Iterator[Row]:
    for name, train in MODELS.items():
        start = time.perf_counter()
        model = train(text, dev, seed)
        seconds = time.perf_counter() - start
        accuracies = accuracy_by_kind(model, pairs, kind=lambda pair: pair.phenomenon)
        accuracy = sum(accuracies.values(), MinimalPairAccuracy())
        perplexity = likelihood(model, dev).perplexity_class
        yield Row(name, perplexity, 100 * accuracy.accuracy, 100 * accuracy.group_accuracy, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drawn", type=int, default=200_000, help="lab sentences from which the text is selected")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    pairs = sample_quadruples(arguments.seed)
    train, dev = read_texts(arguments.drawn, arguments.seed, deciding_words(pairs))
    rows = list(measure(train, dev, pairs, arguments.seed))
    headers = ["model", "perplexity by class", "minimal pairs right, %", "quadruples right, %", "seconds"]
    cells = [
        [row.model, row.dev, f"{row.contrasts:.1f}", f"{row.quadruples:.1f}", f"{row.seconds:.0f}"] for row in rows
    ]
    print(format_table(headers, cells))
    sentences = f"{train.num_sentences:,} of {arguments.drawn:,} sentences"
    print(f"\n{sentences}; {len({pair.group for pair in pairs})} quadruples; seed {arguments.seed}; {processor()}")
    report = {"processor": processor(), "seed": arguments.seed, "rows": [asdict(row) for row in rows]}
    write_json(arguments.json, report)


if __name__ == "__main__":
    main()
