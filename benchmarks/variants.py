"""Variants of a translator on one corpus, over several seeds: encoders and attention, or attention priors.

    python benchmarks/variants.py encoders --data DIR --langs es-en -o MODELS [--seeds 1 2 3] [--only NAME ...]
    python benchmarks/variants.py priors --data LAB --langs de-en -o MODELS

DIR has train, dev (or val) and test files in both languages; a lab corpus also has the true alignments (train.align and
test.align). Every system has the sizes and training settings that `dragoman train translator --max-epochs N` chooses
for the corpus, except for what its name says; `--set name=value` and `--train name=value` change settings of all
systems. Finished models are not trained again. `--rows FILE ...` reads results that other runs, perhaps in parallel,
wrote with `--json`.

Test BLEU is for beam size 5, with `tok:none` for tokenised text; the range is over seeds. The alignment error rate is
that of the attention (the source word of the highest weight for each target word, without `</s>`), compared with the
true alignment. If there is none, it is compared with an aligner trained on the training text, which favours systems
that learn from an aligner (supervision, lexicon). The minutes of systems with symmetry are those of both translators.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dragoman import Corpus, Translator, fit
from dragoman.align.aligner import Aligner
from dragoman.data.alignments import WordAlignments, word_links_to_tokens
from dragoman.data.corpus import BidirectionalCorpus, ParallelCorpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.evaluation.alignment import GoldAlignment, read_gold_alignments
from dragoman.evaluation.translator import ReferenceData, evaluate_translator
from dragoman.models.configs import size_preset
from dragoman.models.two_way import TwoWayTranslator
from dragoman.report.tables import format_table
from dragoman.training.config import TRANSLATOR
from texts_and_results import processor, write_json

COVERAGE_PENALTY = "coverage_penalty"  # a setting of the search, not of the model
TRUE_ALIGNMENT = "true_alignment"  # whether the attention is supervised by the true alignment
SYSTEMS: dict[str, dict[str, dict[str, Any]]] = {
    "encoders": {
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
    },
    "priors": {
        "none": {},
        "position": {"position": 2.0},
        "markov": {"markov": 1.0},
        "markov, weaker": {"markov": 0.3},
        "fertility": {"fertility": 1.0},
        "fertility, with penalty": {"fertility": 1.0, "fertility_penalty": 0.1},
        "coverage": {"coverage": 16},
        "coverage penalty": {"coverage_penalty": 0.2},
        "coverage penalty, weaker": {"coverage_penalty": 0.05},
        "coverage and penalty": {"coverage": 16, "coverage_penalty": 0.2},
        "local": {"local": 8.0},
        "supervision": {"supervision": 1.0},
        "supervision, true alignment": {"supervision": 1.0, TRUE_ALIGNMENT: True},
        "symmetry": {"symmetry": 1.0},
        "symmetry, stronger": {"symmetry": 4.0},
        "hard": {"hard": True},
        "lexicon": {"lexicon": True},
        "lexicon and supervision": {"lexicon": True, "supervision": 1.0},
    },
}
DEV_NAMES = ("dev", "val")
TEST_NAMES = ("test", "test_2016_flickr")

Lines = tuple[list[str], list[str]]  # of source and target


@dataclass(frozen=True)
class Row:
    system: str
    seed: int
    dev_perplexity: float  # per word
    bleu: float
    length_ratio: float
    alignment_error: float | None
    repeated: int  # words of the translations
    dropped: int  # words of the references
    minutes: float
    parameters: int


# -- data --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """A parallel corpus and its tokenizers."""

    source: Tokenizer
    target: Tokenizer
    train: ParallelCorpus  # with the alignments of an aligner, if attention is evaluated
    true_alignments: WordAlignments | None  # of the training text
    dev: ParallelCorpus
    train_lines: Lines
    dev_lines: Lines
    test_lines: Lines
    gold: Sequence[GoldAlignment] | None  # of the test text


def read_data(directory: Path, languages: Sequence[str], units: str, *, aligned: bool) -> Data:
    """Read a corpus and train its tokenizers; `aligned` adds alignments of the training and test text."""

    def read_lines(names: Sequence[str]) -> Lines:
        name = next(name for name in names if (directory / f"{name}.{languages[0]}").exists())
        source, target = ((directory / f"{name}.{language}").read_text(encoding="utf-8") for language in languages)
        return source.removesuffix("\n").split("\n"), target.removesuffix("\n").split("\n")

    train, dev, test = read_lines(["train"]), read_lines(DEV_NAMES), read_lines(TEST_NAMES)
    source, target = (Tokenizer.train(units, lines) for lines in train)
    pairs = ParallelCorpus(source.encode(train[0]), target.encode(train[1]))
    dev_pairs = ParallelCorpus(source.encode(dev[0]), target.encode(dev[1]))
    gold, true_alignments = None, None
    if aligned:
        if (directory / "test.align").exists():
            gold = read_gold_alignments(directory / "test.align")
        else:
            aligner = Aligner.train(encode_words(train))
            gold = as_gold(aligner.align(encode_words(test, aligner)))
        if (directory / "train.align").exists():
            true_alignments = token_alignments(directory / "train.align", (source, target), train)
        pairs = replace(pairs, alignments=Aligner.train(pairs).align(pairs))
    return Data(source, target, pairs, true_alignments, dev_pairs, train, dev, test, gold)


def encode_words(lines: Lines, aligner: Aligner | None = None) -> ParallelCorpus:
    """Return a text as words, independent of the tokenizers, with the vocabularies of an aligner if one is given."""
    vocabs = (None, None) if aligner is None else (aligner.forward.lexicon.source, aligner.forward.lexicon.target)
    source, target = (Corpus.from_sentences(side, vocab) for side, vocab in zip(lines, vocabs, strict=True))
    return ParallelCorpus(source, target)


def token_alignments(path: Path, tokenizers: Sequence[Tokenizer], lines: Lines) -> WordAlignments:
    """Read links between words and return them as links between tokens."""
    source_words, target_words = (
        [tokenizer.segmenter.word_indices(tokens) for tokens in tokenizer.segmenter.segment_all(side)]
        for tokenizer, side in zip(tokenizers, lines, strict=True)
    )
    links = [sorted(gold.sure) for gold in read_gold_alignments(path)]
    return word_links_to_tokens(links, list(zip(source_words, target_words, strict=True)), path.name)


def as_gold(alignments: WordAlignments) -> list[GoldAlignment]:
    """Return alignments as gold alignments in which all links are sure."""
    links = (frozenset(alignments[pair]) for pair in range(len(alignments)))
    return [GoldAlignment(sure, sure) for sure in links]


# -- training and evaluation -------------------------------------------------------------------------------------------


def train(
    name: str, changes: dict[str, Any], seed: int, data: Data, directory: Path, training: dict[str, Any]
) -> tuple[Translator, float]:
    """Return a translator and its minutes of training; it is loaded if it has been trained before."""
    preset = size_preset(len(data.train))
    settings = {**preset.model, **changes}
    config = {**preset.training, **training, "seed": seed}
    output = directory / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"
    if settings.get("symmetry"):
        pairs = BidirectionalCorpus(data.train.source, data.train.target, data.train.alignments)
        dev = BidirectionalCorpus(data.dev.source, data.dev.target)
        two_way = TwoWayTranslator.create(pairs, data.source, data.target, seed=seed, **settings)
        result = fit(two_way, pairs, dev, TRANSLATOR, output=output, **config)
        return two_way.source_to_target, result.progress.seconds / 60
    model = Translator.create(data.train, data.source, data.target, seed=seed, **settings)
    result = fit(model, data.train, data.dev, TRANSLATOR, output=output, **config)
    return model, result.progress.seconds / 60


def measure(name: str, seed: int, data: Data, arguments: argparse.Namespace) -> Row:
    """Train and evaluate a system. Systems that differ only in the search share a model."""
    systems = SYSTEMS[arguments.what]
    system = systems[name]
    changes = {key: value for key, value in system.items() if key not in (COVERAGE_PENALTY, TRUE_ALIGNMENT)}
    if system.get(TRUE_ALIGNMENT):
        data = replace(data, train=replace(data.train, alignments=data.true_alignments))
    model_name = name
    if COVERAGE_PENALTY in system:
        model_name = next(other for other, other_system in systems.items() if other_system == changes)
    settings, training = parse_settings(arguments.set), parse_settings(arguments.train)
    model, minutes = train(model_name, {**settings, **changes}, seed, data, arguments.output, training)
    reference_data = ReferenceData(data.test_lines[1], gold_alignments=data.gold, tokenised=data.target.tokenised)
    coverage = system.get(COVERAGE_PENALTY, 0.0)
    result = evaluate_translator(model, data.test_lines[0], reference_data, coverage=coverage)
    return Row(
        system=name,
        seed=seed,
        dev_perplexity=model.likelihood(*data.dev_lines).perplexity,
        bleu=result.scores.bleu,
        length_ratio=result.scores.length_ratio,
        alignment_error=None if result.alignment is None else result.alignment.error_rate,
        repeated=result.edits.repeated,
        dropped=result.edits.dropped,
        minutes=minutes,
        parameters=model.num_parameters,
    )


def print_table(rows: list[Row]) -> None:
    cells = []
    for name in dict.fromkeys(row.system for row in rows):
        runs = [row for row in rows if row.system == name]
        errors = [100 * row.alignment_error for row in runs if row.alignment_error is not None]
        means = (
            f"{statistics.mean(getattr(row, key) for row in runs):.{digits}f}"
            for key, digits in (("dev_perplexity", 3), ("length_ratio", 3), ("repeated", 0), ("dropped", 0))
        )
        minutes = f"{statistics.mean(row.minutes for row in runs):.1f}"
        bleu = mean_and_range([row.bleu for row in runs], 2)
        cells.append([name, len(runs), bleu, mean_and_range(errors, 1), *means, minutes, runs[0].parameters])
    headers = ["system", "seeds", "BLEU", "alignment error, %", "dev perplexity", "length ratio", "repeated", "dropped"]
    print(f"{format_table([*headers, 'minutes', 'parameters'], cells)}\n\nprocessor: {processor()}")


def mean_and_range(values: Sequence[float], digits: int) -> str | None:
    if not values:
        return None
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def parse_settings(assignments: Sequence[str]) -> dict[str, Any]:
    """Parse settings such as `hidden=128`; values are JSON."""
    return {name: json.loads(value) for name, _, value in (text.partition("=") for text in assignments)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=list(SYSTEMS), help="group of systems")
    parser.add_argument("--data", type=Path, required=True, help="directory of the parallel corpus")
    parser.add_argument("--langs", required=True, help="file name extensions, such as de-en")
    parser.add_argument("--output", "-o", type=Path, required=True, help="directory for the models")
    parser.add_argument("--units", default="auto", help="as for dragoman train translator")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="random seeds")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of systems (default: all)")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the models")
    parser.add_argument("--train", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the training")
    parser.add_argument("--rows", type=Path, nargs="+", default=[], metavar="FILE", help="results written by --json")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    systems = SYSTEMS[arguments.what]
    if unknown := set(arguments.only or ()) - set(systems):
        parser.error(f"--only {', '.join(unknown)}: choose from {'; '.join(systems)}")
    data = read_data(arguments.data, arguments.langs.split("-"), arguments.units, aligned=arguments.what == "priors")
    arguments.output.mkdir(parents=True, exist_ok=True)
    rows = [Row(**row) for file in arguments.rows for row in json.loads(file.read_text(encoding="utf-8"))]
    measured = {row.system for row in rows}
    for name in arguments.only or systems:
        if name in measured or (systems[name].get(TRUE_ALIGNMENT) and data.true_alignments is None):
            continue
        for seed in arguments.seeds:
            rows.append(measure(name, seed, data, arguments))
            print(rows[-1], flush=True)
    order = list(systems)
    print_table(sorted(rows, key=lambda row: order.index(row.system)))
    write_json(arguments.json, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
