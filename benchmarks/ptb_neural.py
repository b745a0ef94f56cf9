"""Log-linear, feed-forward and recurrent models on the Penn Treebank, alone and mixed with counting models.

    python benchmarks/ptb_neural.py --data DIR --output DIR [--models "NAME;NAME"] [--seed N] [--json FILE]

DIR holds train.txt, valid.txt and test.txt, one sentence a line, with `<unk>` as a word of the text; the vocabulary is
closed, and `</s>` is predicted like a word (82,430 test tokens). Each model is trained in a directory under --output:
what was stopped goes on, what is finished is read. Settings and mixture weights were chosen on valid.txt.

Published on test (Mikolov et al. 2011): maximum entropy with 5-gram features 142.1; feed-forward 140.2, with KN5 116.7.
LSTM with dropout (Zaremba et al. 2014): 2x200 without dropout 114.5, 2x650 82.7. The LSTM here reads the text as one
stream, its state carried from sentence to sentence, as theirs do.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragoman import CacheModel, Corpus, FeedForwardModel, LogLinearModel, Mixture, NgramModel, RecurrentModel, fit
from dragoman.cli.progress import training_progress
from dragoman.data.brown import brown_clusters
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.evaluation.log_probs import token_log_probs
from dragoman.models.language_model import LanguageModel
from dragoman.ngram.class_model import ClassNgramModel
from dragoman.report.tables import format_table
from dragoman.training.presets import FEED_FORWARD, LOG_LINEAR, RECURRENT
from ptb_cache import processor

MORE = "5-gram,word2,word3,word1+word3,word2+word3,class1,class1+class2,class1+class2+class3,suffix1"
CLASSES = 200


@dataclass(frozen=True)
class Texts:
    train: Corpus
    valid: Corpus
    test: Corpus

    @property
    def closed(self) -> ClosedVocabulary:
        return ClosedVocabulary(self.train.vocab.num_known)


@dataclass(frozen=True)
class Row:
    model: str
    valid: float  # perplexity
    test: float
    parameters: int | None
    epochs: int | None
    minutes: float | None


def read(data: Path) -> Texts:
    train = Corpus.read(data / "train.txt")
    return Texts(train, *(Corpus.read(data / f"{name}.txt", train.vocab) for name in ("valid", "test")))


# -- models that are trained by gradients: what there is before training, and the settings of it ----------------------


def log_linear(texts: Texts, seed: int) -> tuple[Any, Any]:
    return LogLinearModel.create(texts.train, unknown=texts.closed, features="5-gram"), LOG_LINEAR


def more_features(texts: Texts, seed: int) -> tuple[Any, Any]:
    classes = brown_clusters(texts.train, CLASSES).as_mapping()
    return LogLinearModel.create(texts.train, unknown=texts.closed, features=MORE, classes=classes), LOG_LINEAR


def feed_forward(texts: Texts, seed: int) -> tuple[Any, Any]:
    model = FeedForwardModel.create(
        texts.train,
        unknown=texts.closed,
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


def lstm(texts: Texts, seed: int) -> tuple[Any, Any]:
    model = RecurrentModel.create(
        texts.train,
        unknown=texts.closed,
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


TRAINED: dict[str, Callable[[Texts, int], tuple[Any, Any]]] = {
    "log-linear": log_linear,
    "log-linear, more features": more_features,
    "feed-forward": feed_forward,
    "lstm": lstm,
}


def trained(name: str, texts: Texts, place: Path, seed: int) -> tuple[LanguageModel, Row]:
    model, settings = TRAINED[name](texts, seed)
    output = place / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"
    with training_progress() as report:
        position = fit(model, texts.train, texts.valid, settings, output=output, callback=report, seed=seed).progress
    parameters = model.num_parameters
    return model, row(name, model, texts, parameters, position.epoch, position.seconds / 60)


def row(name: str, model: LanguageModel, texts: Texts, *size_and_time: Any) -> Row:
    figures = (perplexity(model, text) for text in (texts.valid, texts.test))
    return Row(name, *figures, *(size_and_time or (None, None, None)))


def perplexity(model: LanguageModel, text: Corpus) -> float:
    return math.exp(-float(np.mean(token_log_probs(model, text))))


# -- models that count ------------------------------------------------------------------------------------------------


def counted(texts: Texts) -> dict[str, LanguageModel]:
    classes = brown_clusters(texts.train, CLASSES).as_mapping()
    return {
        "KN5": NgramModel.train(texts.train, order=5, unknown=texts.closed),
        "cache": CacheModel.train(texts.train, unknown=texts.closed),
        "class 5-gram": ClassNgramModel.train(texts.train, classes, order=5, unknown=texts.closed),
    }


def measure(data: Path, place: Path, names: list[str], seed: int) -> list[Row]:
    texts = read(data)
    models, rows = counted(texts), []
    rows.append(row("KN5", models["KN5"], texts))
    rows.append(_mixed(models, ["KN5", "class 5-gram"], texts))
    for name in names:
        models[name], told = trained(name, texts, place, seed)
        rows += [told, _mixed(models, ["KN5", name], texts)]
    if len(names) > 1:
        rows.append(_mixed(models, [name for name in models if name != "cache"], texts))
        rows.append(_mixed(models, list(models), texts))
    return rows


def _mixed(models: dict[str, LanguageModel], names: list[str], texts: Texts) -> Row:
    mixture = Mixture.fit([models[name] for name in names], texts.valid)
    return row(" + ".join(names), mixture, texts)


def print_table(rows: list[Row], seed: int) -> None:
    headers = ["model", "valid", "test", "parameters", "epochs", "minutes"]
    cells = [
        [
            one.model,
            one.valid,
            one.test,
            one.parameters,
            one.epochs,
            None if one.minutes is None else f"{one.minutes:.1f}",
        ]
        for one in rows
    ]
    print(f"{format_table(headers, cells)}\n\nseed {seed}; processor: {processor()}")


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)  # classes have too few counts for some discounts; fixed ones serve
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.txt, valid.txt and test.txt")
    parser.add_argument("--output", type=Path, required=True, help="where models are trained")
    parser.add_argument("--models", default=";".join(TRAINED), help="which, with ; between them (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    options = parser.parse_args()
    rows = measure(options.data, options.output, options.models.split(";"), options.seed)
    print_table(rows, options.seed)
    if options.json:
        report = {"processor": processor(), "seed": options.seed, "rows": [asdict(one) for one in rows]}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
