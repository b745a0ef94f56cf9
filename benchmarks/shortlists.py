"""Shortlists: the decision that training makes on the dev text, and the test text with a shortlist and without one.

    python benchmarks/shortlists.py MODEL... --train SRC TGT --dev SRC TGT --test SRC TGT [--rounds N] [--json FILE]

MODEL is the directory of a translator. Its shortlist is made again from the training text, so that there are figures
also where training has not kept one. The first table is the choice on the dev text (`choose_shortlist`), the second has
the test text by greedy search and with a beam of 5. Rounds with and without the shortlist alternate. On a machine with
other work, compare the CPU time. Nothing is random.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import torch

from dragoman.align.aligner import Aligner
from dragoman.align.shortlist import Shortlist
from dragoman.combine.shortlist import ShortlistScorer
from dragoman.combine.shortlist_choice import choose_shortlist
from dragoman.data.tokenizer import LinePairs
from dragoman.models.dev_report import task_scores
from dragoman.models.loading import load_trained_translator
from dragoman.models.stored_shortlist import ShortlistDecision
from dragoman.models.translation import BaseTranslator
from dragoman.models.translator import Translator
from dragoman.report.tables import format_table
from texts_and_results import processor, write_json

BEAM_SIZES = (1, 5)


@dataclass(frozen=True)
class Choice:
    """A shortlist, and the decision on the dev text."""

    model: str
    words: int  # in the target vocabulary
    mean_size: float  # of the shortlists of the dev sentences
    covered: float  # share of the tokens of the dev references that are in them
    aligner_seconds: float  # of CPU time
    decision: ShortlistDecision

    def cells(self) -> list[str]:
        decision = self.decision
        scores = f"{decision.score_of_all_words:.2f}", f"{decision.score:.2f}", f"{decision.speedup:.2f}"
        figures = f"{self.words:,}", f"{self.mean_size:.0f}", f"{self.covered:.1%}", f"{self.aligner_seconds:.1f}"
        return [self.model, *figures, *scores, "yes" if decision.used else "no"]


@dataclass(frozen=True)
class Row:
    """The test text by one search."""

    model: str
    beam: int
    bleu_of_all_words: float
    bleu: float
    speed_of_all_words: float  # sentences per second
    speed: float
    cpu_speedup: float  # CPU time over all words, relative to that with the shortlist

    def cells(self) -> list[str]:
        scores = f"{self.bleu_of_all_words:.2f}", f"{self.bleu:.2f}"
        return [
            *(self.model, str(self.beam), *scores, f"{self.speed_of_all_words:.0f}", f"{self.speed:.0f}"),
            f"{self.cpu_speedup:.2f}",
        ]


def measure_choice(path: Path, model: Translator, train: LinePairs, dev: LinePairs) -> tuple[Choice, Shortlist]:
    pairs, dev_pairs = train.encode(model.source, model.target), dev.encode(model.source, model.target)
    Aligner.train(pairs.select(np.arange(10)))  # loads compiled code
    start = process_time()
    Aligner.train(pairs)
    seconds = process_time() - start
    decision, shortlist, _ = choose_shortlist(model, pairs, dev.source, lambda texts: task_scores(model, texts, dev))
    allowed, target = shortlist.allowed_words(dev_pairs.source).numpy(), dev_pairs.target
    sentence = np.repeat(np.arange(len(target)), np.diff(target.offsets))  # (words,)
    covered, size = float(allowed[sentence, target.ids].mean()), float(allowed.sum(axis=1).mean())
    return Choice(path.name, len(model.vocab), size, covered, seconds, decision), shortlist


def measure_test(path: Path, model: Translator, shortlist: Shortlist, test: LinePairs, beam: int, rounds: int) -> Row:
    translators: tuple[BaseTranslator, ...] = (model, ShortlistScorer(model, shortlist))
    bleus = [
        task_scores(model, [best.text for best in translator.translate_text(test.source, beam)], test).of("BLEU").score
        for translator in translators
    ]
    seconds: list[list[float]] = [[], []]
    cpu_seconds: list[list[float]] = [[], []]
    for _ in range(rounds):
        for which, translator in enumerate(translators):
            start, cpu_start = perf_counter(), process_time()
            translator.translate_text(test.source, beam)
            seconds[which].append(perf_counter() - start)
            cpu_seconds[which].append(process_time() - cpu_start)
    speeds = [len(test.source) / statistics.median(times) for times in seconds]
    slow, fast = map(statistics.median, cpu_seconds)
    return Row(path.name, beam, *bleus, *speeds, slow / fast)


def read_pairs(paths: list[Path]) -> LinePairs:
    source, target = (path.read_text(encoding="utf-8").splitlines() for path in paths)
    return LinePairs(source, target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+", help="directories of translators")
    for name in ("train", "dev", "test"):
        parser.add_argument(f"--{name}", type=Path, nargs=2, required=True, metavar=("SRC", "TGT"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    train, dev, test = map(read_pairs, (arguments.train, arguments.dev, arguments.test))
    choices, rows = list[Choice](), list[Row]()
    for path in arguments.models:
        model = load_trained_translator(path)
        model.shortlist = None
        choice, shortlist = measure_choice(path, model, train, dev)
        choices.append(choice)
        rows += [measure_test(path, model, shortlist, test, beam, arguments.rounds) for beam in BEAM_SIZES]
    dev_headers = ["BLEU, all words", "shortlists", "times as fast", "used"]
    headers = ["model", "words", "list", "covered", "aligner, s", *dev_headers]
    print(format_table(headers, [choice.cells() for choice in choices]) + "\n")
    headers = ["model", "beam", "BLEU, all words", "shortlists", "sentences/s, all words", "shortlists", "CPU speedup"]
    print(format_table(headers, [row.cells() for row in rows]))
    print(f"\n{torch.get_num_threads()} threads, {processor()}")
    results = [{**asdict(choice), "decision": choice.decision.model_dump()} for choice in choices]
    write_json(arguments.json, {"dev": results, "test": [asdict(row) for row in rows]})


if __name__ == "__main__":
    main()
