"""Alignment models: seconds on a large corpus, and alignment error rates where gold alignments are known.

    python benchmarks/align.py [--data DIR] [--langs de-en] [--gold NAME=SRC,TGT,GOLD ...] [--lab 500 2000 10000 ...]

DIR has the files train.de and train.en (or of other languages); both directions of each model are trained on them and
timed. Texts with gold alignments are aligned by models that are trained on these sentences only. The same is done for
lab corpora of the given numbers of sentence pairs. Error rates are printed for each model and each method of
symmetrisation. Only the lab text is random (seed 1).
"""

from __future__ import annotations

import argparse
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
from texts_and_results import processor, write_json

WARM_UP_PAIRS = np.arange(10)


@dataclass(frozen=True)
class Timing:
    model: str
    pairs: int
    words: int  # of the source
    training: float  # seconds, both directions
    aligning: float


@dataclass(frozen=True)
class ErrorRates:
    text: str
    pairs: int
    model: str
    error_rates: dict[str, float]  # by method of symmetrisation


def measure_time(pairs: ParallelCorpus, model: str) -> Timing:
    start = perf_counter()
    aligner = Aligner.train(pairs, model)
    trained = perf_counter()
    aligner.align(pairs)
    return Timing(model, len(pairs), pairs.source.num_words, trained - start, perf_counter() - trained)


def measure_errors(name: str, pairs: ParallelCorpus, gold_file: Path, model: str) -> ErrorRates:
    aligner, gold = Aligner.train(pairs, model), read_gold_alignments(gold_file)
    error_rates = {}
    for method in SYMMETRIZATIONS:
        links = aligner.align(pairs, method)
        error_rates[method] = count_all_links([links[pair] for pair in range(len(links))], gold).error_rate
    return ErrorRates(name, len(pairs), model, error_rates)


def lab_texts(sizes: Sequence[int], directory: Path) -> list[tuple[str, ParallelCorpus, Path]]:
    """Generate lab corpora; return their names, sentence pairs and files of gold alignments."""
    texts = []
    for size in sizes:
        corpus = directory / str(size)
        write_lab_corpus(german_english_lab(), corpus, {"train": size}, 1)
        pairs = ParallelCorpus.read(corpus / "train.de", corpus / "train.en")
        texts.append(("lab", pairs, corpus / "train.align"))
    return texts


def print_tables(timings: list[Timing], errors: list[ErrorRates]) -> None:
    if timings:
        rows = [
            [t.model, t.pairs, t.words, f"{t.training:.1f}", f"{t.aligning:.1f}", t.pairs / t.training] for t in timings
        ]
        print(format_table(["model", "pairs", "source words", "training s", "aligning s", "pairs/s"], rows) + "\n")
    if errors:
        rows = [
            [e.text, e.pairs, e.model, *(f"{100 * e.error_rates[method]:.1f}" for method in SYMMETRIZATIONS)]
            for e in errors
        ]
        print(format_table(["text", "pairs", "model", *(f"{method}, %" for method in SYMMETRIZATIONS)], rows))
    print(f"\ntraining: both directions, iterations as in dragoman align; processor: {processor()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="directory of a parallel corpus to time the models on")
    parser.add_argument("--langs", default="de-en", help="file name extensions of source and target")
    parser.add_argument("--gold", nargs="+", default=[], metavar="NAME=SRC,TGT,GOLD", help="texts with gold alignments")
    parser.add_argument("--lab", type=int, nargs="+", default=[], metavar="PAIRS", help="sizes of lab corpora")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    timings = []
    if arguments.data:
        source, target = (arguments.data / f"train.{language}" for language in arguments.langs.split("-"))
        pairs = ParallelCorpus.read(source, target)
        warm_up = pairs.select(WARM_UP_PAIRS)  # compiles the kernels
        Aligner.train(warm_up, "hmm", 1)
        Aligner.train(warm_up, "ibm2", 1).align(warm_up)
        timings = [measure_time(pairs, model) for model in SCHEDULES]
    texts = []
    for text in arguments.gold:
        name, _, files = text.partition("=")
        source, target, gold_file = map(Path, files.split(","))
        texts.append((name, ParallelCorpus.read(source, target), gold_file))
    with tempfile.TemporaryDirectory() as directory:
        texts += lab_texts(arguments.lab, Path(directory))
        errors = [measure_errors(*text, model) for text in texts for model in SCHEDULES]
    print_tables(timings, errors)
    report = {"times": [asdict(timing) for timing in timings], "error rates": [asdict(rates) for rates in errors]}
    write_json(arguments.json, report)


if __name__ == "__main__":
    main()
