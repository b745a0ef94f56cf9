"""Variants of a translator compared on one corpus, over several seeds: encoders and attention, or priors on attention.

    python benchmarks/variants.py encoders --data DIR --langs es-en -o MODELS [--seeds 1 2 3] [--only NAME ...]
    python benchmarks/variants.py priors --data LAB --langs de-en -o MODELS

DIR holds train, dev (or val) and test files in both languages; of a laboratory, also the true alignments (train.align
and test.align).
Every system has the sizes and the training that `dragoman train translator` chooses for the corpus, and differs in what
its name says alone; `--set name=value` and `--train name=value` change settings of all of them. A model that is
finished already is not trained again; `--rows FILE ...` takes systems from what `--json` wrote in other runs, which may
have gone side by side.

Test BLEU is at a beam of 5, `tok:none` for tokenised text; the spread is over seeds. The alignment error is that of
attention (argmax for each target word, `</s>` left out) beside the true alignment or, where there is none, beside that
of an aligner which learned from the training text: by that one, what was taught by the aligner (supervision, lexicon)
is favoured. Of symmetry, minutes are those of both translators.
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
from dragoman.models.translator_config import size_preset
from dragoman.models.two_way import TwoWayTranslator
from dragoman.report.tables import format_table
from dragoman.training.presets import TRANSLATOR, translator_preset
from ptb_cache import processor

SEARCH = ("coverage_penalty",)  # settings of the search rather than of the model, which is then that of "none"
GIVEN = "given"  # whether attention is taught by the true alignment of the training text
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
        "fertility, paid for": {"fertility": 1.0, "fertility_penalty": 0.1},
        "coverage": {"coverage": 16},
        "coverage penalty": {"coverage_penalty": 0.2},
        "coverage penalty, weaker": {"coverage_penalty": 0.05},
        "coverage, and the penalty": {"coverage": 16, "coverage_penalty": 0.2},
        "local": {"local": 8.0},
        "supervision": {"supervision": 1.0},
        "supervision, true alignment": {"supervision": 1.0, "given": True},
        "symmetry": {"symmetry": 1.0},
        "symmetry, stronger": {"symmetry": 4.0},
        "hard": {"hard": True},
        "lexicon": {"lexicon": True},
        "lexicon and supervision": {"lexicon": True, "supervision": 1.0},
    },
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
    alignment_error: float | None
    repeated: int  # words of the translations
    dropped: int  # words of the references
    minutes: float
    parameters: int


@dataclass(frozen=True)
class Data:
    """A corpus with its units."""

    source: Tokenizer
    target: Tokenizer
    train: ParallelCorpus  # with links as an aligner finds them, if attention is looked at
    given: WordAlignments | None  # the true ones
    dev: ParallelCorpus
    train_lines: tuple[list[str], list[str]]
    dev_lines: tuple[list[str], list[str]]
    test_lines: tuple[list[str], list[str]]
    gold: Sequence[GoldAlignment] | None  # of the test text


def read(directory: Path, languages: Sequence[str], units: str, *, aligned: bool) -> Data:
    def lines(names: Sequence[str]) -> tuple[list[str], list[str]]:
        name = next(name for name in names if (directory / f"{name}.{languages[0]}").exists())
        one, two = ((directory / f"{name}.{language}").read_text(encoding="utf-8") for language in languages)
        return one.removesuffix("\n").split("\n"), two.removesuffix("\n").split("\n")

    train, dev, test = lines(["train"]), lines(DEV), lines(TEST)
    source, target = (Tokenizer.train(units, side) for side in train)

    def numbers(pair: tuple[list[str], list[str]]) -> ParallelCorpus:
        return ParallelCorpus(source.encode(pair[0]), target.encode(pair[1]))

    pairs, gold, given = numbers(train), None, None
    if aligned:
        learned = Aligner.train(words_of(train))
        gold = gold_of(directory / "test.align") or as_gold(learned.align(words_of(test, learned)))
        given = links_of(gold_of(directory / "train.align"), (source, target), train)
        pairs = replace(pairs, links=Aligner.train(pairs).align(pairs))
    return Data(source, target, pairs, given, numbers(dev), train, dev, test, gold)


def words_of(lines: tuple[list[str], list[str]], aligner: Aligner | None = None) -> ParallelCorpus:
    """A text as words, whatever the units of the translators are."""
    vocabs = (None, None) if aligner is None else (aligner.forward.lexicon.source, aligner.forward.lexicon.target)
    return ParallelCorpus(*(Corpus.from_sentences(side, vocab) for side, vocab in zip(lines, vocabs, strict=True)))


def gold_of(path: Path) -> list[GoldAlignment] | None:
    return read_gold_alignments(path) if path.exists() else None


def links_of(
    gold: list[GoldAlignment] | None, sides: Sequence[Tokenizer], lines: tuple[list[str], list[str]]
) -> WordAlignments | None:
    """Links between words as links between units."""
    if gold is None:
        return None
    one, two = (
        [side.segmenter.word_indices(cut) for cut in side.segmenter.segment_all(own)]
        for side, own in zip(sides, lines, strict=True)
    )
    return word_links_to_tokens([sorted(own.sure) for own in gold], list(zip(one, two, strict=True)), "train.align")


def as_gold(links: WordAlignments) -> list[GoldAlignment]:
    """Links that are taken for the truth."""
    return [GoldAlignment(own, own) for own in (frozenset(links[pair]) for pair in range(len(links)))]


def trained(name: str, settings: dict[str, Any], seed: int, data: Data, place: Path, training: dict[str, Any]) -> Any:
    """The translator of a system, and the minutes that it took; taken from its directory if it was trained before."""
    shape = {**size_preset(len(data.train)), **settings}
    advised = {**translator_preset(len(data.train)), **training, "seed": seed}
    output = place / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"
    kind: Any = TwoWayTranslator if shape.get("symmetry") else Translator
    pairs = (
        BidirectionalCorpus(data.train.source, data.train.target, data.train.alignments)
        if kind is TwoWayTranslator
        else data.train
    )
    dev = BidirectionalCorpus(data.dev.source, data.dev.target) if kind is TwoWayTranslator else data.dev
    model = kind.create(pairs, data.source, data.target, seed=seed, **shape)
    fitted = fit(model, pairs, dev, TRANSLATOR, output=output, **advised)
    return (model.source_to_target if kind is TwoWayTranslator else model), fitted.progress.seconds / 60


def measure(name: str, own: dict[str, Any], seed: int, data: Data, place: Path, options: argparse.Namespace) -> Row:
    settings = {key: value for key, value in own.items() if key not in (*SEARCH, GIVEN)}
    if own.get(GIVEN):
        data = replace(data, train=replace(data.train, links=data.given))
    same = (other for other, its in SYSTEMS[options.what].items() if its == settings)
    trained_as = next(same) if any(key in own for key in SEARCH) else name
    model, minutes = trained(
        trained_as, {**assigned(options.set), **settings}, seed, data, place, assigned(options.train)
    )
    answers = ReferenceData(data.test_lines[1], gold_alignments=data.gold, tokenised=data.target.tokenised)
    measured = evaluate_translator(model, data.test_lines[0], answers, coverage=own.get("coverage_penalty", 0.0))
    return Row(
        name,
        seed,
        model.likelihood(*data.dev_lines).perplexity,
        measured.scores.bleu,
        measured.scores.length_ratio,
        None if measured.alignment is None else measured.alignment.error_rate,
        measured.edits.repeated,
        measured.edits.dropped,
        minutes,
        model.num_parameters,
    )


def print_table(rows: list[Row]) -> None:
    cells = []
    for name in dict.fromkeys(row.system for row in rows):
        own = [row for row in rows if row.system == name]
        errors = [100 * row.alignment_error for row in own if row.alignment_error is not None]
        others = (
            f"{statistics.mean(getattr(row, key) for row in own):.{digits}f}"
            for key, digits in (("dev_perplexity", 3), ("length_ratio", 3), ("repeated", 0), ("dropped", 0))
        )
        minutes = f"{statistics.mean(row.minutes for row in own):.1f}"
        of_bleu = spread([row.bleu for row in own], 2)
        cells.append([name, len(own), of_bleu, spread(errors, 1), *others, minutes, own[0].parameters])
    headers = ["system", "seeds", "BLEU", "alignment error, %", "dev perplexity", "length ratio", "repeated", "dropped"]
    print(f"{format_table([*headers, 'minutes', 'parameters'], cells)}\n\nprocessor: {processor()}")


def spread(values: Sequence[float], digits: int) -> str | None:
    """The mean and, of several, from where to where."""
    if not values:
        return None
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def assigned(given: Sequence[str]) -> dict[str, Any]:
    """`hidden=128` as a setting."""
    return {name: json.loads(value) for name, _, value in (one.partition("=") for one in given)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=list(SYSTEMS))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--langs", required=True, help="such as de-en: endings of the files")
    parser.add_argument("--output", "-o", type=Path, required=True)
    parser.add_argument("--units", default="auto")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the model")
    parser.add_argument("--train", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the training")
    parser.add_argument("--rows", type=Path, nargs="+", default=[], metavar="FILE", help="of --json, measured before")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if unknown := set(options.only or ()) - set(SYSTEMS[options.what]):
        parser.error(f"--only {', '.join(unknown)}: there are {'; '.join(SYSTEMS[options.what])}")
    data = read(options.data, options.langs.split("-"), options.units, aligned=options.what == "priors")
    options.output.mkdir(parents=True, exist_ok=True)
    rows = [Row(**row) for file in options.rows for row in json.loads(file.read_text(encoding="utf-8"))]
    known = {row.system for row in rows}
    for name in options.only or SYSTEMS[options.what]:
        if name in known or (SYSTEMS[options.what][name].get(GIVEN) and data.given is None):
            continue  # measured before; or nobody knows the truth
        for seed in options.seeds:
            rows.append(measure(name, SYSTEMS[options.what][name], seed, data, options.output, options))
            print(rows[-1], flush=True)
    order = list(SYSTEMS[options.what])
    print_table(sorted(rows, key=lambda row: order.index(row.system)))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
