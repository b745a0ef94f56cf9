"""Perplexity per word and per character of language models of words, subwords and characters.

    python benchmarks/units.py --train train.en --dev dev.en --test test.en [--lstm 10] [--without-spaces]

Trains an n-gram model (modified Kneser-Ney) for each kind of tokens, with the order of 3, 5 and 8 that is best on the
dev text. Unknown words are spelled by a character model. With --lstm N, also trains LSTMs of the first
two kinds of tokens for N epochs on one thread, with the settings of `dragoman train recurrent --max-epochs N` and seed 1.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from time import perf_counter

from dragoman import Corpus, NgramModel, RecurrentModel, evaluate, fit
from dragoman.data.formats import read_lines
from dragoman.models.language_model import LanguageModel
from dragoman.ngram.spelling import create_unknown_word_model
from dragoman.report.tables import format_table
from dragoman.training.config import RECURRENT

UNITS = "word,subword,unigram,char"
ORDERS = (3, 5, 8)


def encode(train: list[str], units: str) -> Corpus:
    with warnings.catch_warnings(action="ignore"):  # of a small text that has fewer subwords
        return Corpus.from_sentences(train, units=units)


def train_ngram(corpus: Corpus, dev: list[str]) -> tuple[str, LanguageModel]:
    """Return the n-gram model with the best order on the dev text, and its name."""
    unknown = create_unknown_word_model("characters" if corpus.vocab.segmenter.kind == "word" else "uniform", corpus)
    with warnings.catch_warnings(action="ignore"):  # an alphabet is too small for its own discounts
        models = {order: NgramModel.train(corpus, order=order, unknown=unknown) for order in ORDERS}
    best = min(ORDERS, key=lambda order: evaluate(models[order], dev).perplexity)
    return f"{best}-gram", models[best]


def train_lstm(corpus: Corpus, dev: list[str], epochs: int) -> tuple[str, LanguageModel]:
    unknown = create_unknown_word_model("characters" if corpus.vocab.segmenter.kind == "word" else "uniform", corpus)
    model = RecurrentModel.create(corpus, cell="lstm", embedding=256, hidden=256, dropout=0.3, unknown=unknown)
    fit(model, corpus, Corpus.from_sentences(dev, corpus.vocab), RECURRENT, max_epochs=epochs, threads=1)
    return f"LSTM, {epochs} epochs", model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("train", "dev", "test"):
        parser.add_argument(f"--{name}", type=Path, required=True, help=f"{name} text")
    parser.add_argument("--units", default=UNITS, help=f"kinds of tokens, separated by commas (default {UNITS})")
    parser.add_argument("--lines", type=int, default=None, help="use only the first lines of the training text")
    parser.add_argument("--lstm", type=int, default=0, metavar="EPOCHS", help="also train LSTMs for this many epochs")
    parser.add_argument("--without-spaces", action="store_true", help="remove all spaces from the texts")
    arguments = parser.parse_args()
    train, dev, test = (read_lines(str(path)) for path in (arguments.train, arguments.dev, arguments.test))
    if arguments.without_spaces:
        train, dev, test = ([line.replace(" ", "") for line in lines] for lines in (train, dev, test))
    train, all_units = train[: arguments.lines], arguments.units.split(",")
    runs = [("n-gram", units) for units in all_units] + [("lstm", units) for units in all_units[:2] if arguments.lstm]
    rows = []
    for kind, units in runs:
        start = perf_counter()
        corpus = encode(train, units)
        name, model = train_ngram(corpus, dev) if kind == "n-gram" else train_lstm(corpus, dev, arguments.lstm)
        seconds, result = perf_counter() - start, evaluate(model, test)
        sizes = [corpus.vocab.num_known - 1, result.unknown_words]
        perplexities = [f"{result.perplexity:,.2f}", f"{result.perplexity_characters:.4f}"]
        rows.append([name, corpus.vocab.segmenter.spec, *sizes, *perplexities, f"{seconds:.0f}"])
    print(f"{arguments.train}: {len(train):,} lines; test: {result.words:,} words, {result.characters:,} characters")
    print(format_table(["model", "units", "tokens", "unknown", "per word", "per character", "seconds"], rows))


if __name__ == "__main__":
    main()
