"""The length bias, seen: beam sizes by length handlings (tutorial, section "Beam Search").

    python benchmarks/beams.py MODEL --src FILE --ref FILE [--sentences N] [--json FILE]

MODEL is a translator's directory. For each length handling and beam size: BLEU, the translations' length relative to
the references', their mean log-probability, and search errors: references that score higher than what was found. The
longer a beam search looks for the most probable sentence, the shorter that is. Nothing here is random.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman import load
from dragoman.evaluation.translator import ReferenceData, evaluate_translator
from dragoman.report.tables import format_table
from ptb_cache import processor

BEAMS = (1, 2, 5, 10, 30, 100)
HANDLINGS = ("none", "norm", "prior", "penalty:0.5", "penalty:1")


@dataclass(frozen=True)
class Row:
    length: str
    beam: int
    bleu: float
    length_ratio: float
    log_prob: float  # mean over sentences
    search_errors: float  # share of the sentences
    seconds: float


def measure(model: Any, lines: list[str], references: list[str], length: str, beam: int) -> Row:
    answers = ReferenceData(references, tokenised=model.target.tokenised)
    told = evaluate_translator(model, lines, answers, beam, length=length, diagnose=True)
    log_prob = statistics.mean(one.log_prob for one in told.translations)
    errors = told.errors["search"] / len(lines)
    return Row(length, beam, told.scores.bleu, told.scores.length_ratio, log_prob, errors, told.seconds)


def print_table(rows: list[Row]) -> None:
    cells = [
        [
            *(row.length, row.beam, f"{row.bleu:.2f}", f"{row.length_ratio:.3f}", f"{row.log_prob:.2f}"),
            *(f"{100 * row.search_errors:.1f}", f"{row.seconds:.1f}"),
        ]
        for row in rows
    ]
    print(format_table(["length", "beam", "BLEU", "length ratio", "mean log P", "search errors %", "seconds"], cells))
    print(f"\nprocessor: {processor()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=500, help="the first so many")
    parser.add_argument("--beams", type=int, nargs="+", default=BEAMS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    model = load(options.model)
    lines, references = (
        path.read_text(encoding="utf-8").split("\n")[: options.sentences] for path in (options.src, options.ref)
    )
    rows = []
    for length in HANDLINGS:
        for beam in options.beams:
            rows.append(measure(model, lines, references, length, beam))
            print(rows[-1], flush=True)
    print_table(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
