"""Recall and precision of the doctor on a corpus with known faults.

    python benchmarks/doctor.py --data DIR [--foreign FILE] [--faults N] [--json FILE]

DIR has train.de and train.en (Multi30k, raw), one sentence per line. Faults of several kinds are inserted into a copy,
each at N random lines (with a fixed random seed), at most one per line; FILE has lines of a third language. Recall: the
share of the faulty lines with a finding of a matching kind. Precision: the share of the findings of a kind that are at
lines with a matching fault. Findings in the original text, some of which are real problems, count against precision;
their number is printed as well.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import unicodedata
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from dragoman.doctor.examination import DoctorInput, DoctorReport, examine
from dragoman.doctor.findings import Finding
from dragoman.report.tables import format_table
from texts_and_results import write_json

RUNS = 10  # runs of shifted lines
RUN_LINES = (10, 60)  # range of their lengths
MAX_SHIFT = 3  # lines
MATCHING_KINDS = {  # the kinds of findings expected for each kind of fault
    "shifted run": ("shifted", "misaligned", "length-ratio"),
    "targets exchanged": ("misaligned", "length-ratio"),
    "target cut short": ("length-ratio", "misaligned"),
    "sides swapped": ("swapped",),
    "target copied from source": ("untranslated",),
    "target in source language": ("wrong-language",),
    "target in a third language": ("odd-language", "wrong-language", "misaligned"),
    "Windows-1252 bytes": ("not-utf8",),
    "decoded twice": ("mojibake",),
    "decomposed letters": ("not-nfc",),
    "zero-width space": ("invisible",),
    "control character": ("control",),
    "pair repeated": ("duplicate-pair",),
    "empty target": ("empty-side",),
}
ACCEPTED_KINDS = {  # further kinds that are correct for a fault, but do not count for recall
    "target in source language": ("length-ratio", "misaligned"),
    "target in a third language": ("length-ratio",),
    "decoded twice": ("control",),
}


@dataclass
class FaultyCorpus:
    """A parallel corpus as bytes, and the lines at which faults were inserted."""

    source: list[bytes]
    target: list[bytes]
    generator: np.random.Generator
    faults: dict[str, set[int]] = field(default_factory=dict)  # lines by kind of fault
    free: list[int] = field(default_factory=list)  # lines without a fault, in random order

    def choose_lines(self, fault: str, count: int, suitable: Callable[[int], bool] = lambda line: True) -> list[int]:
        """Choose lines for a kind of fault."""
        lines = [line for line in self.free if suitable(line)][:count]
        self.faults[fault] = set(lines)
        self.free = [line for line in self.free if line not in self.faults[fault]]
        return lines


def insert_faults(
    source: list[bytes], target: list[bytes], foreign: list[bytes], count: int, seed: int
) -> FaultyCorpus:
    """Return a copy of the corpus with `count` faults of each kind."""
    corpus = FaultyCorpus(list(source), list(target), np.random.default_rng(seed))
    corpus.free = list(range(len(source)))
    shift_runs(corpus)
    corpus.free = corpus.generator.permutation(corpus.free).tolist()
    insert_pair_faults(corpus, foreign, count)
    insert_character_faults(corpus, count)
    return corpus


def shift_runs(corpus: FaultyCorpus) -> None:
    """Rotate the target lines of some runs, so that they are next to the wrong source lines."""
    lines: set[int] = set()
    part = len(corpus.source) // RUNS
    for run in range(RUNS):
        length = int(corpus.generator.integers(*RUN_LINES))
        first = run * part + int(corpus.generator.integers(part - length))
        shift = int(corpus.generator.integers(1, MAX_SHIFT + 1)) * (1 if run % 2 else -1)
        block = corpus.target[first : first + length]
        corpus.target[first : first + length] = block[shift:] + block[:shift]
        lines |= set(range(first, first + length))
    corpus.faults["shifted run"] = lines
    corpus.free = [line for line in corpus.free if line not in lines]


def insert_pair_faults(corpus: FaultyCorpus, foreign: list[bytes], count: int) -> None:
    source, target = corpus.source, corpus.target
    lines = corpus.choose_lines("targets exchanged", count)
    moved = [target[line] for line in lines]
    for line, other in zip(lines, moved[1:] + moved[:1], strict=True):
        target[line] = other
    for line in corpus.choose_lines("target cut short", count, lambda line: len(target[line].split()) >= 12):
        target[line] = b" ".join(target[line].split()[:3])
    for line in corpus.choose_lines("sides swapped", count):
        source[line], target[line] = target[line], source[line]
    for line in corpus.choose_lines("target copied from source", count):
        target[line] = source[line]
    for line in corpus.choose_lines("target in source language", count):
        target[line] = source[(line + len(source) // 2) % len(source)]
    if foreign:
        for line in corpus.choose_lines("target in a third language", count):
            target[line] = foreign[line % len(foreign)]
    for line in corpus.choose_lines("pair repeated", count, lambda line: line > 1000):
        source[line], target[line] = source[line - 1000], target[line - 1000]
    for line in corpus.choose_lines("empty target", count):
        target[line] = b""


def insert_character_faults(corpus: FaultyCorpus, count: int) -> None:
    source = corpus.source

    def has_umlaut(line: int) -> bool:
        return any(character in source[line].decode() for character in "äöüß")

    changes: dict[str, Callable[[str], bytes]] = {
        "Windows-1252 bytes": lambda line: line.encode("cp1252", "ignore"),
        "decoded twice": lambda line: line.encode().decode("latin-1").encode(),
        "decomposed letters": lambda line: unicodedata.normalize("NFD", line).encode(),
        "zero-width space": lambda line: line.replace(" ", "\u200b ", 1).encode(),
        "control character": lambda line: line.replace(" ", "\x07 ", 1).encode(),
    }

    def has_umlaut_but_no_eszett(line: int) -> bool:
        return has_umlaut(line) and "ß" not in source[line].decode()

    for fault, change in changes.items():
        suitable = has_umlaut_but_no_eszett if fault == "decomposed letters" else has_umlaut
        for line in corpus.choose_lines(fault, count, suitable):
            source[line] = change(source[line].decode())


# -- measurements ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recall:
    fault: str
    lines: int  # with this fault
    detected: int


@dataclass(frozen=True)
class Precision:
    kind: str
    detected: int  # lines with such a finding
    right: int
    in_original: int  # lines with such a finding in the original text


def lines_with(report: DoctorReport, kinds: Collection[str]) -> set[int]:
    """Return the lines, counted from 0, with findings of these kinds."""
    return {line for finding in report.findings if finding.kind in kinds for line in lines_of(finding)}


def lines_of(finding: Finding) -> range:
    first = (finding.line or 1) - 1
    return range(first, finding.last_line or first + 1)


def measure_recall(faults: dict[str, set[int]], report: DoctorReport) -> list[Recall]:
    return [
        Recall(fault, len(lines), len(lines & lines_with(report, MATCHING_KINDS[fault])))
        for fault, lines in faults.items()
    ]


def measure_precision(faults: dict[str, set[int]], report: DoctorReport, original: DoctorReport) -> list[Precision]:
    results = []
    for kind in dict.fromkeys(kind for kinds in MATCHING_KINDS.values() for kind in kinds):
        detected = lines_with(report, (kind,))
        matching = [fault for fault in faults if kind in (*MATCHING_KINDS[fault], *ACCEPTED_KINDS.get(fault, ()))]
        faulty = set().union(*(faults[fault] for fault in matching))
        results.append(Precision(kind, len(detected), len(detected & faulty), len(lines_with(original, (kind,)))))
    return results


def run_doctor(source: list[bytes], target: list[bytes], directory: Path) -> tuple[DoctorReport, float]:
    """Return the report of the doctor on a corpus, and its seconds."""
    files = DoctorInput((str(directory / "train.de"), str(directory / "train.en")))
    for path, lines in zip(files.train, (source, target), strict=True):
        Path(path).write_bytes(b"".join(line + b"\n" for line in lines))
    start = time.perf_counter()
    report = examine(files, with_cost=False)
    return report, time.perf_counter() - start


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.de and train.en")
    parser.add_argument("--foreign", type=Path, help="lines of a third language")
    parser.add_argument("--faults", type=int, default=100, help="number of faults of each kind (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    source, target = ((arguments.data / f"train.{language}").read_bytes().splitlines() for language in ("de", "en"))
    foreign = arguments.foreign.read_bytes().splitlines() if arguments.foreign else []
    foreign = [line for line in foreign if len(line) > 30]
    corpus = insert_faults(source, target, foreign, arguments.faults, arguments.seed)
    with tempfile.TemporaryDirectory() as directory:
        original, _ = run_doctor(source, target, Path(directory))
        report, seconds = run_doctor(corpus.source, corpus.target, Path(directory))
    recalls = measure_recall(corpus.faults, report)
    precisions = measure_precision(corpus.faults, report, original)
    rows = [[r.fault, r.lines, r.detected, percent(r.detected, r.lines)] for r in recalls]
    print(format_table(["fault", "lines", "detected", "recall"], rows))
    rows = [[p.kind, p.detected, p.right, percent(p.right, p.detected), p.in_original] for p in precisions]
    print("\n" + format_table(["kind", "detected", "right", "precision", "in the original text"], rows))
    print(f"\n{len(source):,} pairs; {seconds:.1f} seconds")
    results = {"recall": [asdict(r) for r in recalls], "precision": [asdict(p) for p in precisions]}
    write_json(arguments.json, {**results, "seconds": seconds})


if __name__ == "__main__":
    main()
