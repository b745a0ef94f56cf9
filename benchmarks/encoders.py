"""Encoders and attention functions compared on one corpus, over several seeds.

    python benchmarks/encoders.py --data DIR --langs es-en -o MODELS [--seeds 1 2 3] [--only NAME ...] [--json FILE]

DIR holds train, dev (or val) and test files in both languages. Every system has the sizes and the training that
`dragoman train translator` chooses for the corpus, and differs in encoder and attention alone; `--set name=value`
changes a setting of all of them. A model that is finished already is not trained again. Test BLEU is at a beam of 5,
`tok:none` for tokenised text; the spread is over seeds.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman import Translator, fit
from dragoman.evaluation.translation import judge
from dragoman.models.translator_config import sizes_for
from dragoman.report.tables import table
from dragoman.text.corpus import ParallelCorpus
from dragoman.text.sides import Side
from dragoman.training.recommended import TRANSLATOR, translator_training
from ptb_cache import processor

SYSTEMS: dict[str, dict[str, Any]] = {
    "forward, none": {"encoder": "forward", "attention": "none"},
    "reverse, none": {"encoder": "reverse", "attention": "none"},
    "bidirectional, none": {"encoder": "bidirectional", "attention": "none"},
    "convolutional, none": {"encoder": "convolutional", "attention": "none", "pooling": "k-max"},
    "bidirectional, dot": {"attention": "dot"},
    "bidirectional, bilinear": {"attention": "bilinear"},
    "bidirectional, mlp": {"attention": "mlp"},
    "forward, mlp": {"encoder": "forward"},
    "reverse, mlp": {"encoder": "reverse"},
    "convolutional, mlp": {"encoder": "convolutional"},
}
DEV = ("dev", "val")
TEST = ("test", "test_2016_flickr")


@dataclass(frozen=True)
class Row:
    system: str
    seed: int
    dev_perplexity: float  # a word
    bleu: float
    length_ratio: float
    minutes: float
    parameters: int


@dataclass(frozen=True)
class Data:
    """A corpus with its units."""

    source: Side
    target: Side
    train: ParallelCorpus
    dev: ParallelCorpus
    dev_lines: tuple[list[str], list[str]]
    test_lines: tuple[list[str], list[str]]


def read(directory: Path, languages: Sequence[str], units: str) -> Data:
    def lines(names: Sequence[str]) -> tuple[list[str], list[str]]:
        name = next(name for name in names if (directory / f"{name}.{languages[0]}").exists())
        one, two = ((directory / f"{name}.{language}").read_text(encoding="utf-8") for language in languages)
        return one.removesuffix("\n").split("\n"), two.removesuffix("\n").split("\n")

    train, dev, test = lines(["train"]), lines(DEV), lines(TEST)
    source, target = (Side.learn(units, side) for side in train)

    def numbers(pair: tuple[list[str], list[str]]) -> ParallelCorpus:
        return ParallelCorpus(source.read(pair[0]), target.read(pair[1]))

    return Data(source, target, numbers(train), numbers(dev), dev, test)


def measure(name: str, seed: int, data: Data, place: Path, settings: dict[str, Any], training: dict[str, Any]) -> Row:
    shape = {**sizes_for(len(data.train)), **settings, **SYSTEMS[name]}
    model = Translator.create(data.train, data.source, data.target, seed=seed, **shape)
    advised = {**translator_training(len(data.train)), **training, "seed": seed}
    output = place / f"{name.replace(', ', '-')}-{seed}"
    fitted = fit(model, data.train, data.dev, TRANSLATOR, output=output, **advised)
    told = [one.text for one in model.translate(data.test_lines[0])]
    judged = judge(told, data.test_lines[1], tokenised=data.target.tokenised)
    parameters = sum(tensor.numel() for tensor in model.parameters().values())
    perplexity = model.likelihood(*data.dev_lines).perplexity
    minutes = fitted.position.seconds / 60
    return Row(name, seed, perplexity, judged.bleu, judged.length_ratio, minutes, parameters)


def print_table(rows: list[Row]) -> None:
    cells = []
    for name in dict.fromkeys(row.system for row in rows):
        own = [row for row in rows if row.system == name]
        bleus = [row.bleu for row in own]
        spread = f"{statistics.mean(bleus):.2f} ({min(bleus):.2f} to {max(bleus):.2f})"
        means = [statistics.mean(getattr(row, key) for row in own) for key in ("dev_perplexity", "length_ratio")]
        minutes = statistics.mean(row.minutes for row in own)
        cells.append([name, len(own), spread, *(f"{mean:.3f}" for mean in means), f"{minutes:.1f}", own[0].parameters])
    headers = ["encoder, attention", "seeds", "BLEU", "dev perplexity", "length ratio", "minutes", "parameters"]
    print(f"{table(headers, cells)}\n\nprocessor: {processor()}")


def assigned(given: Sequence[str]) -> dict[str, Any]:
    """`hidden=128` as a setting."""
    return {name: json.loads(value) for name, _, value in (one.partition("=") for one in given)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--langs", required=True, help="such as de-en: endings of the files")
    parser.add_argument("--output", "-o", type=Path, required=True)
    parser.add_argument("--units", default="auto")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", default=list(SYSTEMS), metavar="NAME")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the model")
    parser.add_argument("--train", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the training")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    data = read(options.data, options.langs.split("-"), options.units)
    options.output.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in options.only:
        for seed in options.seeds:
            settings = (assigned(options.set), assigned(options.train))
            rows.append(measure(name, seed, data, options.output, *settings))
            print(rows[-1], flush=True)
    print_table(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
