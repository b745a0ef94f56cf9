"""Alignment models: seconds on a large corpus, and error rates where the truth is known.

    python benchmarks/align.py [--data DIR] [--langs de-en] [--gold NAME=SRC,TGT,GOLD ...] [--lab 500 2000 10000 ...]

DIR holds train files of two languages; of these, both directions of each model are learned and timed. A set with gold
alignments is learned from these sentences alone, and so is the laboratory's text, of which as many pairs are drawn as
is said; error rates are told for each model and each way to symmetrise. Nothing here is random but the laboratory's
text (seed 1).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from dragoman.align.aligner import Aligner
from dragoman.align.em import SCHEDULES
from dragoman.align.symmetrization import SYMMETRIZATIONS
from dragoman.data.corpus import ParallelCorpus
from dragoman.evaluation.alignment import count_all_links, read_gold_alignments
from dragoman.lab.corpus_files import write_lab_corpus
from dragoman.lab.lab import german_english_lab
from dragoman.report.tables import format_table
from ptb_cache import processor

FEW = np.arange(10)


@dataclass(frozen=True)
class Timed:
    model: str
    pairs: int
    words: int  # of the source
    learning: float  # seconds, both directions
    aligning: float


@dataclass(frozen=True)
class Judged:
    text: str
    pairs: int
    model: str
    error_rates: dict[str, float]  # by the way to symmetrise


def timed(pairs: ParallelCorpus, model: str) -> Timed:
    began = perf_counter()
    aligner = Aligner.train(pairs, model)
    learned = perf_counter()
    aligner.align(pairs)
    return Timed(model, len(pairs), pairs.source.num_words, learned - began, perf_counter() - learned)


def judged(name: str, pairs: ParallelCorpus, gold: str | Path, model: str) -> Judged:
    aligner, true = Aligner.train(pairs, model), read_gold_alignments(gold)
    rates = {}
    for way in SYMMETRIZATIONS:
        links = aligner.align(pairs, way)
        rates[way] = count_all_links([links[pair] for pair in range(len(links))], true).error_rate
    return Judged(name, len(pairs), model, rates)


def laboratory_texts(sizes: Sequence[int], place: Path) -> list[tuple[str, ParallelCorpus, Path]]:
    found = []
    for size in sizes:
        directory = place / str(size)
        write_lab_corpus(german_english_lab(), directory, {"train": size}, 1)
        pairs = ParallelCorpus.read(directory / "train.de", directory / "train.en")
        found.append(("laboratory", pairs, directory / "train.align"))
    return found


def print_tables(times: list[Timed], found: list[Judged]) -> None:
    if times:
        cells = [
            [one.model, one.pairs, one.words, f"{one.learning:.1f}", f"{one.aligning:.1f}", one.pairs / one.learning]
            for one in times
        ]
        print(format_table(["model", "pairs", "source words", "learning s", "aligning s", "pairs/s"], cells) + "\n")
    if found:
        rows = [
            [one.text, one.pairs, one.model, *(f"{100 * one.error_rates[way]:.1f}" for way in SYMMETRIZATIONS)]
            for one in found
        ]
        print(format_table(["text", "pairs", "model", *(f"{way}, %" for way in SYMMETRIZATIONS)], rows))
    print(f"\nlearning: both directions, {len(SCHEDULES)} models as dragoman align has them; processor: {processor()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--langs", default="de-en")
    parser.add_argument("--gold", nargs="+", default=[], metavar="NAME=SRC,TGT,GOLD")
    parser.add_argument("--lab", type=int, nargs="+", default=[])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    times, found = [], []
    if options.data:
        one, two = options.langs.split("-")
        pairs = ParallelCorpus.read(options.data / f"train.{one}", options.data / f"train.{two}")
        Aligner.train(pairs.select(FEW), "hmm", 1)  # to compile, so that the time is the method's own
        Aligner.train(pairs.select(FEW), "ibm2", 1).align(pairs.select(FEW))
        times = [timed(pairs, model) for model in SCHEDULES]
    texts = []
    for given in options.gold:
        name, _, files = given.partition("=")
        source, target, gold = files.split(",")
        texts.append((name, ParallelCorpus.read(source, target), Path(gold)))
    with tempfile.TemporaryDirectory() as place:
        texts += laboratory_texts(options.lab, Path(place))
        found = [judged(*text, model) for text in texts for model in SCHEDULES]
    print_tables(times, found)
    if options.json:
        written = {"times": [asdict(one) for one in times], "error rates": [asdict(one) for one in found]}
        options.json.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
