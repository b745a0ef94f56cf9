"""Alignment models: seconds on a large corpus, and alignment error rates where gold alignments are known.

    python benchmarks/align.py [--data DIR] [--langs de-en] [--gold NAME=SRC,TGT,GOLD ...] [--lab 500 2000 10000 ...]
        [--systems ibm1 ibm2 hmm before eflomal] [--before SRC] [--repeat 3] [--threads 2] [--seed 1]

DIR has the files train.de and train.en (or of other languages). Each system trains on them, in both directions, and
aligns them; the systems take turns, `--repeat` times. `before` is the HMM of another version of dragoman, whose package is
in the directory SRC. eflomal (pip install eflomal) has its default settings. Texts with gold alignments are aligned by
models that are trained on these sentences only. The same is done for lab corpora of the given numbers of sentence pairs.
Error rates are printed for each system and each method of symmetrisation; eflomal is random, so its rates are means of
`--repeat` runs. The latency is that of a new sentence pair with a saved aligner.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.align.symmetrization import SYMMETRIZATIONS
from dragoman.lab.corpus_files import write_lab_corpus
from dragoman.lab.lab import german_english_lab
from dragoman.report.tables import format_table
from texts_and_results import processor, write_json

SYSTEMS = ("ibm1", "ibm2", "hmm", "before", "eflomal")
ONCE = Path(__file__).with_name("align_once.py")
Text = tuple[str, Path, Path, Path]  # name, source, target, gold alignments


def run(system: str, arguments: argparse.Namespace, *files: str | Path) -> dict[str, Any]:
    """Run a system in its own process; return what it prints."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads)}
    if system == "before":
        environment["PYTHONPATH"] = str(arguments.before)
    name = "hmm" if system == "before" else system
    command = [sys.executable, ONCE, *files, "--system", name]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result


def median_and_spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


def measure_times(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Time all systems in turn."""
    files = [arguments.data / f"train.{language}" for language in arguments.langs.split("-")]
    results: list[dict[str, Any]] = []
    for _ in range(arguments.repeat):
        for system in arguments.systems:
            latency = ["--latency"] if system == "hmm" else []
            results.append({"system": system, **run(system, arguments, *files, *latency)})
    return results


def measure_errors(texts: Sequence[Text], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the error rates of each text, system and method of symmetrisation."""
    results = []
    for name, source, target, gold in texts:
        for system in arguments.systems:
            repeat = arguments.repeat if system == "eflomal" else 1
            rates = [run(system, arguments, source, target, "--gold", gold)["error_rates"] for _ in range(repeat)]
            means = {method: statistics.mean(run_rates[method] for run_rates in rates) for method in SYMMETRIZATIONS}
            pairs = len(source.read_bytes().splitlines())
            results.append({"text": name, "pairs": pairs, "system": system, "error_rates": means})
    return results


def lab_texts(sizes: Sequence[int], seed: int, directory: Path) -> list[Text]:
    """Generate lab corpora."""
    texts = []
    for size in sizes:
        corpus = directory / str(size)
        write_lab_corpus(german_english_lab(), corpus, {"train": size}, seed)
        texts.append(("lab", corpus / "train.de", corpus / "train.en", corpus / "train.align"))
    return texts


def total_ratios(times: list[dict[str, Any]], system: str, systems: Sequence[str]) -> list[str]:
    """Return how many times as fast a system is as each other, by medians of the total seconds."""
    seconds = {
        name: statistics.median(result["seconds"]["total"] for result in times if result["system"] == name)
        for name in systems
    }
    return ["" if other == system else f"{seconds[other] / seconds[system]:.2f}" for other in systems]


def print_tables(times: list[dict[str, Any]], errors: list[dict[str, Any]], systems: Sequence[str]) -> None:
    if times:
        rows = []
        for system in systems:
            results = [result for result in times if result["system"] == system]
            seconds = {
                part: median_and_spread([result["seconds"][part] for result in results if part in result["seconds"]])
                for part in ("training", "aligning", "total")
            }
            latency = median_and_spread([result["latency"] for result in results if "latency" in result])
            rows.append([system, *seconds.values(), latency, *total_ratios(times, system, systems)])
        headers = ["system", "training s", "aligning s", "total s", "latency of a pair, ms"]
        print(format_table([*headers, *(f"times {other}" for other in systems)], rows) + "\n")
    if errors:
        rows = [
            [
                e["text"],
                e["pairs"],
                e["system"],
                *(f"{100 * e['error_rates'][method]:.1f}" for method in SYMMETRIZATIONS),
            ]
            for e in errors
        ]
        print(format_table(["text", "pairs", "system", *(f"{method}, %" for method in SYMMETRIZATIONS)], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="directory of a parallel corpus to time the systems on")
    parser.add_argument("--langs", default="de-en", help="file name extensions of source and target")
    parser.add_argument("--gold", nargs="+", default=[], metavar="NAME=SRC,TGT,GOLD", help="texts with gold alignments")
    parser.add_argument("--lab", type=int, nargs="+", default=[], metavar="PAIRS", help="sizes of lab corpora")
    parser.add_argument("--seed", type=int, default=1, help="random seed of the lab corpora")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=["ibm1", "ibm2", "hmm"])
    parser.add_argument("--before", type=Path, help="directory with another version of the package, for `before`")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    if "before" in arguments.systems and arguments.before is None:
        parser.error("--systems before needs --before SRC")
    times = measure_times(arguments) if arguments.data else []
    texts: list[Text] = []
    for text in arguments.gold:
        name, _, files = text.partition("=")
        source, target, gold = map(Path, files.split(","))
        texts.append((name, source, target, gold))
    with tempfile.TemporaryDirectory() as directory:
        texts += lab_texts(arguments.lab, arguments.seed, Path(directory))
        errors = measure_errors(texts, arguments)
    print_tables(times, errors, arguments.systems)
    print(f"\nboth directions, iterations as in dragoman align; {arguments.threads} threads; processor: {processor()}")
    write_json(arguments.json, {"times": times, "error rates": errors})


if __name__ == "__main__":
    main()
