"""Train one aligner on two files and align them; print seconds and, with gold alignments, error rates as JSON.

    python benchmarks/align_once.py SRC TGT [--system ibm1|ibm2|hmm|eflomal] [--gold FILE] [--latency]

`benchmarks/align.py` runs it, also with older versions of dragoman. Kernels are compiled before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from dragoman.align.aligner import Aligner
from dragoman.align.pair_grid import PairGrid
from dragoman.align.symmetrization import SYMMETRIZATIONS, symmetrize
from dragoman.data.alignments import WordAlignments
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.evaluation.alignment import count_all_links, read_gold_alignments

WARM_UP_PAIRS = np.arange(10)
LATENCY_PAIRS = 200


def run_dragoman(source: Path, target: Path, model: str) -> tuple[dict[str, float], dict[str, WordAlignments], Aligner]:
    warm_up = ParallelCorpus.read(source, target).select(WARM_UP_PAIRS)
    Aligner.train(warm_up, model, 1).align(warm_up)
    start = perf_counter()
    pairs = ParallelCorpus.read(source, target)
    read = perf_counter()
    aligner = Aligner.train(pairs, model)
    trained = perf_counter()
    links = {SYMMETRIZATIONS[0]: aligner.align(pairs)}
    end = perf_counter()
    links |= {method: aligner.align(pairs, method) for method in SYMMETRIZATIONS[1:]}
    return {"training": trained - read, "aligning": end - trained, "total": end - start}, links, aligner


def run_eflomal(source: Path, target: Path) -> tuple[dict[str, float], dict[str, WordAlignments]]:
    """Run eflomal with its default settings; it writes the links of both directions, which are then symmetrised."""
    import eflomal

    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory, "forward"), Path(directory, "backward")
        start = perf_counter()
        with source.open(encoding="utf-8") as source_file, target.open(encoding="utf-8") as target_file:
            eflomal.Aligner().align(source_file, target_file, str(files[0]), str(files[1]))
        seconds = perf_counter() - start
        grid = PairGrid.from_pairs(ParallelCorpus.read(source, target))
        links = np.full(len(grid.target.ids), -1, np.int32), np.full(len(grid.source.ids), -1, np.int32)
        for direction, side in enumerate((grid.target, grid.source)):
            for line, first in zip(files[direction].read_text().splitlines(), side.offsets.tolist(), strict=False):
                for link in line.split():
                    positions = [int(position) for position in link.split("-")]
                    links[direction][first + positions[1 - direction]] = positions[direction]
    return {"total": seconds}, {method: symmetrize(grid, *links, method) for method in SYMMETRIZATIONS}


def measure_latency(aligner: Aligner, source: Path, target: Path) -> float:
    """Save and load the aligner; return the median of the milliseconds that a new sentence pair takes, as text."""
    with tempfile.TemporaryDirectory() as directory:
        aligner.save(Path(directory, "aligner"))
        loaded = Aligner.load(Path(directory, "aligner"))
        lexicon, times = loaded.forward.lexicon, []
        lines = [path.read_text(encoding="utf-8").splitlines()[-LATENCY_PAIRS:] for path in (source, target)]
        for sentence, translation in zip(*lines, strict=True):
            start = perf_counter()
            pair = (
                Corpus.from_sentences([sentence], lexicon.source),
                Corpus.from_sentences([translation], lexicon.target),
            )
            loaded.align(ParallelCorpus(*pair))[0]
            times.append(1000 * (perf_counter() - start))
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--system", default="hmm")
    parser.add_argument("--gold", type=Path)
    parser.add_argument("--latency", action="store_true")
    arguments = parser.parse_args()
    report: dict[str, object] = {}
    if arguments.system == "eflomal":
        seconds, links = run_eflomal(arguments.source, arguments.target)
    else:
        seconds, links, aligner = run_dragoman(arguments.source, arguments.target, arguments.system)
        if arguments.latency:
            report["latency"] = measure_latency(aligner, arguments.source, arguments.target)
    if arguments.gold:
        gold = read_gold_alignments(arguments.gold)
        report["error_rates"] = {
            method: count_all_links([alignments[pair] for pair in range(len(alignments))], gold).error_rate
            for method, alignments in links.items()
        }
    print(json.dumps({**report, "seconds": seconds}))


if __name__ == "__main__":
    main()
