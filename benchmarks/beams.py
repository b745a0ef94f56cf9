"""The length bias of beam search: beam sizes by length handling (tutorial, section "Beam Search").

    python benchmarks/beams.py MODEL --src FILE --ref FILE [--sentences N] [--json FILE]

MODEL is the directory of a translator. For each length handling and beam size, the table has BLEU, the length of the
translations relative to the references, their mean log-probability, and search errors: references with a higher score
than the translation. The larger the beam, the more probable and the shorter are the translations. Nothing is random.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path

from dragoman import load
from dragoman.evaluation.translator import ReferenceData, evaluate_translator
from dragoman.models.translation import BaseTranslator
from dragoman.report.tables import format_table
from texts_and_results import processor, write_json

BEAM_SIZES = (1, 2, 5, 10, 30, 100)
LENGTH_HANDLINGS = ("none", "norm", "prior", "penalty:0.5", "penalty:1")


@dataclass(frozen=True)
class Row:
    length: str
    beam: int
    bleu: float
    length_ratio: float
    log_prob: float  # mean over sentences
    search_errors: float  # share of the sentences
    seconds: float


def measure(model: BaseTranslator, lines: list[str], references: list[str], length: str, beam: int) -> Row:
    data = ReferenceData(references, tokenised=model.target.tokenised)
    result = evaluate_translator(model, lines, data, beam, length=length, diagnose=True)
    log_prob = statistics.mean(translation.log_prob for translation in result.translations)
    search_errors = result.errors["search"] / len(lines)
    return Row(length, beam, result.scores.bleu, result.scores.length_ratio, log_prob, search_errors, result.seconds)


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
    parser.add_argument("model", type=Path, help="directory of a translator")
    parser.add_argument("--src", type=Path, required=True, help="source text, one sentence per line")
    parser.add_argument("--ref", type=Path, required=True, help="references, one per line")
    parser.add_argument("--sentences", type=int, default=500, help="use only the first sentences (default 500)")
    parser.add_argument("--beams", type=int, nargs="+", default=BEAM_SIZES, help="beam sizes")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    model = load(arguments.model)
    lines, references = (
        path.read_text(encoding="utf-8").split("\n")[: arguments.sentences] for path in (arguments.src, arguments.ref)
    )
    rows = []
    for length in LENGTH_HANDLINGS:
        for beam in arguments.beams:
            rows.append(measure(model, lines, references, length, beam))
            print(rows[-1], flush=True)
    print_table(rows)
    write_json(arguments.json, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
