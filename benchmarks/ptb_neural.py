"""Log-linear, feed-forward and recurrent models on the Penn Treebank, by themselves and mixed with n-gram models.

    python benchmarks/ptb_neural.py --data DIR --output DIR [--models "NAME;NAME"] [--seed N] [--json FILE]

DIR has train.txt, valid.txt and test.txt, one sentence per line, with `<unk>` as a word of the text; the vocabulary is
closed, and `</s>` is predicted like a word (82,430 test tokens). Each model is trained in a directory under --output;
a stopped training is resumed, and a finished model is loaded. Settings and mixture weights were chosen on valid.txt.

Published on test (Mikolov et al. 2011): maximum entropy with 5-gram features 142.1; feed-forward 140.2, with KN5 116.7.
LSTM with dropout (Zaremba et al. 2014): 2x200 without dropout 114.5, 2x650 82.7. Like theirs, the LSTM here reads the
text as one stream, with its state carried from sentence to sentence.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman import (
    CacheModel,
    ClassNgramModel,
    FeedForwardModel,
    LogLinearModel,
    Mixture,
    NgramModel,
    RecurrentModel,
    TrainingConfig,
    fit,
)
from dragoman.cli.progress import training_progress
from dragoman.data.brown import brown_clusters
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.models.language_model import LanguageModel
from dragoman.report.tables import format_table
from dragoman.training.config import FEED_FORWARD, LOG_LINEAR, RECURRENT
from texts_and_results import TextSplits, perplexity, processor, write_json

MORE_FEATURES = "5-gram,word2,word3,word1+word3,word2+word3,class1,class1+class2,class1+class2+class3,suffix1"
CLASSES = 200


@dataclass(frozen=True)
class Row:
    model: str
    valid: float  # perplexity
    test: float
    parameters: int | None = None
    epochs: int | None = None
    minutes: float | None = None


def closed_vocabulary(texts: TextSplits) -> ClosedVocabulary:
    return ClosedVocabulary(texts.train.vocab.num_known)


# -- models that are trained with gradients: each function returns an untrained model and its training settings -------


def log_linear(texts: TextSplits, seed: int) -> tuple[Any, TrainingConfig]:
    return LogLinearModel.create(texts.train, unknown=closed_vocabulary(texts), features="5-gram"), LOG_LINEAR


def log_linear_with_more_features(texts: TextSplits, seed: int) -> tuple[Any, TrainingConfig]:
    classes = brown_clusters(texts.train, CLASSES).as_mapping()
    unknown = closed_vocabulary(texts)
    return LogLinearModel.create(texts.train, unknown=unknown, features=MORE_FEATURES, classes=classes), LOG_LINEAR


def feed_forward(texts: TextSplits, seed: int) -> tuple[Any, TrainingConfig]:
    model = FeedForwardModel.create(
        texts.train,
        unknown=closed_vocabulary(texts),
        seed=seed,
        order=6,
        embedding=200,
        hidden=(600,),
        activation="relu",
        tied=True,
        softmax="brown",
        softmax_classes=100,
        dropout=0.4,
        embedding_dropout=0.1,
    )
    return model, FEED_FORWARD.model_copy(update={"warmup": 200, "max_epochs": 8})


def lstm(texts: TextSplits, seed: int) -> tuple[Any, TrainingConfig]:
    model = RecurrentModel.create(
        texts.train,
        unknown=closed_vocabulary(texts),
        seed=seed,
        cell="lstm",
        layers=2,
        embedding=400,
        hidden=400,
        carries=True,
        tied=True,
        softmax="brown",
        softmax_classes=100,
        dropout=0.5,
        embedding_dropout=0.2,
        weight_dropout=0.2,
    )
    changes = {"learning_rate": 0.003, "batch_size": 700, "steps": 35, "warmup": 200, "max_epochs": 12}
    return model, RECURRENT.model_copy(update=changes)


CREATE_FUNCTIONS: dict[str, Callable[[TextSplits, int], tuple[Any, TrainingConfig]]] = {
    "log-linear": log_linear,
    "log-linear, more features": log_linear_with_more_features,
    "feed-forward": feed_forward,
    "lstm": lstm,
}


def train(name: str, texts: TextSplits, directory: Path, seed: int) -> tuple[LanguageModel, Row]:
    model, config = CREATE_FUNCTIONS[name](texts, seed)
    output = directory / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"
    with training_progress() as report:
        progress = fit(model, texts.train, texts.valid, config, output=output, callback=report, seed=seed).progress
    return model, create_row(name, model, texts, model.num_parameters, progress.epoch, progress.seconds / 60)


def create_row(name: str, model: LanguageModel, texts: TextSplits, *size_and_time: Any) -> Row:
    return Row(name, perplexity(model, texts.valid), perplexity(model, texts.test), *size_and_time)


# -- n-gram models and mixtures ----------------------------------------------------------------------------------------


def train_ngram_models(texts: TextSplits) -> dict[str, LanguageModel]:
    classes, unknown = brown_clusters(texts.train, CLASSES).as_mapping(), closed_vocabulary(texts)
    return {
        "KN5": NgramModel.train(texts.train, order=5, unknown=unknown),
        "cache": CacheModel.train(texts.train, unknown=unknown),
        "class 5-gram": ClassNgramModel.train(texts.train, classes, order=5, unknown=unknown),
    }


def measure(data: Path, directory: Path, names: list[str], seed: int) -> list[Row]:
    texts = TextSplits.read(data)
    models = train_ngram_models(texts)

    def mixture_row(members: list[str]) -> Row:
        mixture = Mixture.fit([models[member] for member in members], texts.valid)
        return create_row(" + ".join(members), mixture, texts)

    rows = [create_row("KN5", models["KN5"], texts), mixture_row(["KN5", "class 5-gram"])]
    for name in names:
        models[name], row = train(name, texts, directory, seed)
        rows += [row, mixture_row(["KN5", name])]
    if len(names) > 1:
        rows += [mixture_row([name for name in models if name != "cache"]), mixture_row(list(models))]
    return rows


def print_table(rows: list[Row], seed: int) -> None:
    headers = ["model", "valid", "test", "parameters", "epochs", "minutes"]
    cells = [
        [
            *(row.model, row.valid, row.test, row.parameters, row.epochs),
            None if row.minutes is None else f"{row.minutes:.1f}",
        ]
        for row in rows
    ]
    print(f"{format_table(headers, cells)}\n\nseed {seed}; processor: {processor()}")


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)  # some discounts of class n-grams are replaced by fixed ones
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.txt, valid.txt and test.txt")
    parser.add_argument("--output", type=Path, required=True, help="directory for the trained models")
    parser.add_argument(
        "--models", default=";".join(CREATE_FUNCTIONS), help="names of models, separated by semicolons (default: all)"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    rows = measure(arguments.data, arguments.output, arguments.models.split(";"), arguments.seed)
    print_table(rows, arguments.seed)
    report = {"processor": processor(), "seed": arguments.seed, "rows": [asdict(row) for row in rows]}
    write_json(arguments.json, report)


if __name__ == "__main__":
    main()
