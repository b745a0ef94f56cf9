"""Time training in memory against Spark on this machine, and compare their ARPA files entry by entry.

Run `dragoman lab --pairs 450000 -o lab`, then `python benchmarks/spark.py --text lab/train.en --output runs/spark`.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from time import perf_counter

COMMAND = [sys.executable, "-m", "dragoman"]
BECOME_SUBREAPER = 36  # of prctl: processes whose parent has ended become children of this one
CORES = len(os.sched_getaffinity(0))


def run(*arguments: object) -> tuple[float, float]:
    """Run a command; return its seconds and the processor time of all its processes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    subprocess.run([*COMMAND, *map(str, arguments)], check=True)
    with suppress(ChildProcessError):  # Spark's process and its workers
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return perf_counter() - start, used


def entries(path: Path) -> Iterator[tuple[str, float, float]]:
    """Yield words, log10 P and log10 of the back-off weight of each n-gram; other lines as words."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            parts = line.rstrip("\n").split("\t")
            if len(parts) == 1:
                yield parts[0], 0.0, 0.0
            else:
                yield parts[1], float(parts[0]), float(parts[2]) if len(parts) > 2 else 0.0


def compare(first: Path, second: Path) -> tuple[int, int, float]:
    """Return the number of lines, of differing lines, and the largest difference of numbers; check the words."""
    lines = different = 0
    largest = 0.0
    for a, b in zip_longest(entries(first), entries(second)):
        if a is None or b is None or a[0] != b[0]:
            raise SystemExit(f"line {lines + 1}: {a} in {first}, {b} in {second}")
        difference = max(abs(a[1] - b[1]), abs(a[2] - b[2]))
        lines, different, largest = lines + 1, different + (difference > 0), max(largest, difference)
    return lines, different, largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--masters", nargs="+", default=[f"local[{CORES}]"])
    parser.add_argument("--spark-conf", nargs="*", default=[])
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(BECOME_SUBREAPER, 1)
    options.output.mkdir(parents=True, exist_ok=True)
    shared = ("--text", options.text, "--units", "word", "--order", options.order, "--force")
    memory = options.output / "memory"
    rows = [("in memory", *run("train", "ngram", *shared, "-o", memory))]
    run("export", memory, "--arpa", f"{memory}.arpa", "--force")
    conf = [part for setting in options.spark_conf for part in ("--spark-conf", setting)]
    for number, master in enumerate(options.masters, 1):
        place = options.output / f"spark-{number}"
        spark = ("--engine", "spark", "--master", master, *conf, "-o", place, "--arpa", f"{place}.arpa")
        rows.append((f"Spark, {master}", *run("train", "ngram", *shared, *spark)))
        lines, different, largest = compare(Path(f"{memory}.arpa"), Path(f"{place}.arpa"))
        print(f"{master}: {lines:,} lines of ARPA, {different:,} differ; largest difference {largest:.2g}")
    words = sum(line.count(b" ") + 1 for line in options.text.open("rb"))
    print(f"\n| {words:,} words, order {options.order} | seconds | processor seconds |\n| --- | --- | --- |")
    for name, seconds, used in rows:
        print(f"| {name} | {seconds:.1f} | {used:.1f} |")


if __name__ == "__main__":
    main()
