"""How much of what is wrong does the doctor find, and how much of what it finds is wrong?

    python benchmarks/doctor.py --data DIR [--foreign FILE] [--faults N] [--json FILE]

DIR holds train.de and train.en (Multi30k, raw), one sentence a line. A copy is spoiled in known ways, each at N places
drawn with a fixed seed, no line twice; FILE has lines of a third language. Recall: of the spoiled lines, those with a
finding of a kind that fits. Precision: of a kind's findings, those at lines spoiled in a way that fits. What the
doctor finds in the text as it is (some of it is truly wrong there) counts against precision, and is listed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from dragoman.doctor.examination import DoctorInput, DoctorReport, examine
from dragoman.doctor.findings import Finding
from dragoman.report.tables import format_table

RUNS, RUN_LINES, FARTHEST = 10, (10, 60), 3  # shifted runs: how many, how long, by how many lines at most
EXPECTED = {  # each way of spoiling, and the kinds of findings that fit it
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
ALSO = {  # kinds that are right at such lines, though not what tells them best
    "target in source language": ("length-ratio", "misaligned"),
    "target in a third language": ("length-ratio",),
    "decoded twice": ("control",),
}


@dataclass
class Spoiled:
    """A parallel text, as bytes, that is being spoiled, and where it was in which way."""

    source: list[bytes]
    target: list[bytes]
    random: np.random.Generator
    faults: dict[str, set[int]] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)  # lines not yet spoiled, in random order

    def take(self, fault: str, count: int, fits: Callable[[int], bool] = lambda line: True) -> list[int]:
        chosen = [line for line in self.free if fits(line)][:count]
        gone = set(chosen)
        self.free = [line for line in self.free if line not in gone]
        self.faults[fault] = gone
        return chosen


def spoil(source: list[bytes], target: list[bytes], foreign: list[bytes], count: int, seed: int) -> Spoiled:
    spoiled = Spoiled(list(source), list(target), np.random.default_rng(seed))
    spoiled.free = list(range(len(source)))
    shift_runs(spoiled)
    spoiled.free = spoiled.random.permutation(spoiled.free).tolist()
    spoil_pairs(spoiled, foreign, count)
    spoil_letters(spoiled, count)
    return spoiled


def shift_runs(spoiled: Spoiled) -> None:
    lines: set[int] = set()
    part = len(spoiled.source) // RUNS
    for run in range(RUNS):
        length = int(spoiled.random.integers(*RUN_LINES))
        first = run * part + int(spoiled.random.integers(part - length))
        step = int(spoiled.random.integers(1, FARTHEST + 1)) * (1 if run % 2 else -1)
        block = spoiled.target[first : first + length]
        spoiled.target[first : first + length] = block[step:] + block[:step]
        lines |= set(range(first, first + length))
    spoiled.faults["shifted run"] = lines
    spoiled.free = [line for line in spoiled.free if line not in lines]


def spoil_pairs(spoiled: Spoiled, foreign: list[bytes], count: int) -> None:
    source, target = spoiled.source, spoiled.target
    lines = spoiled.take("targets exchanged", count)
    moved = [target[line] for line in lines]
    for line, other in zip(lines, moved[1:] + moved[:1], strict=True):
        target[line] = other
    for line in spoiled.take("target cut short", count, lambda line: len(target[line].split()) >= 12):
        target[line] = b" ".join(target[line].split()[:3])
    for line in spoiled.take("sides swapped", count):
        source[line], target[line] = target[line], source[line]
    for line in spoiled.take("target copied from source", count):
        target[line] = source[line]
    for line in spoiled.take("target in source language", count):
        target[line] = source[(line + len(source) // 2) % len(source)]
    if foreign:
        for line in spoiled.take("target in a third language", count):
            target[line] = foreign[line % len(foreign)]
    for line in spoiled.take("pair repeated", count, lambda line: line > 1000):
        source[line], target[line] = source[line - 1000], target[line - 1000]
    for line in spoiled.take("empty target", count):
        target[line] = b""


def spoil_letters(spoiled: Spoiled, count: int) -> None:
    source = spoiled.source

    def has_umlaut(line: int) -> bool:
        return any(letter in source[line].decode() for letter in "äöüß")

    ways: dict[str, Callable[[str], bytes]] = {
        "Windows-1252 bytes": lambda line: line.encode("cp1252", "ignore"),
        "decoded twice": lambda line: line.encode().decode("latin-1").encode(),
        "decomposed letters": lambda line: unicodedata.normalize("NFD", line).encode(),
        "zero-width space": lambda line: line.replace(" ", "\u200b ", 1).encode(),
        "control character": lambda line: line.replace(" ", "\x07 ", 1).encode(),
    }
    for fault, way in ways.items():
        fits = (
            has_umlaut
            if fault != "decomposed letters"
            else lambda line: has_umlaut(line) and b"\xc3\x9f" not in source[line]
        )
        for line in spoiled.take(fault, count, fits):
            source[line] = way(source[line].decode())


def lines_of(finding: Finding) -> range:
    first = (finding.line or 1) - 1
    return range(first, finding.last_line or first + 1)


@dataclass(frozen=True)
class Recall:
    fault: str
    spoiled: int
    found: int


@dataclass(frozen=True)
class Precision:
    kind: str
    found: int  # lines
    right: int
    in_the_clean_text: int


def recalls(faults: dict[str, set[int]], report: DoctorReport) -> list[Recall]:
    results = []
    for fault, lines in faults.items():
        found = {line for f in report.findings if f.kind in EXPECTED[fault] for line in lines_of(f)}
        results.append(Recall(fault, len(lines), len(lines & found)))
    return results


def precisions(faults: dict[str, set[int]], report: DoctorReport, clean: DoctorReport) -> list[Precision]:
    results = []
    for kind in dict.fromkeys(kind for kinds in EXPECTED.values() for kind in kinds):
        found, before = (
            {line for f in each.findings if f.kind == kind for line in lines_of(f)} for each in (report, clean)
        )
        fits = [fault for fault in faults if kind in (*EXPECTED[fault], *ALSO.get(fault, ()))]
        fitting = set().union(*(faults[fault] for fault in fits))
        results.append(Precision(kind, len(found), len(found & fitting), len(before)))
    return results


def look(source: list[bytes], target: list[bytes], place: Path) -> tuple[DoctorReport, float]:
    files = DoctorInput((str(place / "train.de"), str(place / "train.en")))
    for path, lines in zip(files.train, (source, target), strict=True):
        Path(path).write_bytes(b"".join(line + b"\n" for line in lines))
    began = time.perf_counter()
    report = examine(files, with_cost=False)
    return report, time.perf_counter() - began


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.de and train.en")
    parser.add_argument("--foreign", type=Path, help="lines of a third language")
    parser.add_argument("--faults", type=int, default=100, help="of each sort")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    options = parser.parse_args()
    source, target = ((options.data / f"train.{side}").read_bytes().splitlines() for side in ("de", "en"))
    foreign = [line for line in options.foreign.read_bytes().splitlines() if len(line) > 30] if options.foreign else []
    spoiled = spoil(source, target, foreign, options.faults, options.seed)
    with tempfile.TemporaryDirectory() as place:
        clean, _ = look(source, target, Path(place))
        report, seconds = look(spoiled.source, spoiled.target, Path(place))
    found, right = recalls(spoiled.faults, report), precisions(spoiled.faults, report, clean)
    print(
        format_table(
            ["spoiled", "lines", "found", "recall"],
            [[r.fault, r.spoiled, r.found, percent(r.found, r.spoiled)] for r in found],
        )
    )
    rows = [[p.kind, p.found, p.right, percent(p.right, p.found), p.in_the_clean_text] for p in right]
    print("\n" + format_table(["kind", "found", "right", "precision", "in the text as it was"], rows))
    print(f"\n{len(source):,} pairs; {seconds:.1f} seconds")
    if options.json:
        figures = {"recall": [asdict(r) for r in found], "precision": [asdict(p) for p in right], "seconds": seconds}
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
