"""Lines per second of a translator: one process, one process with two threads, and shards by GNU parallel; and `--dedup`.

    python benchmarks/shards.py DE-EN TEXT [--runs 3]

The kinds are run in turns; the table has the fastest run of each, with the loading of the model and, for shards, the
division of the text and the merging. The outputs of all kinds are compared. For `--dedup`, each line of the text is
there twice, in random order.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

from dragoman.report.tables import format_table

SCRIPT = Path(__file__).parent.parent / "examples" / "parallel" / "run_shards.sh"
SHARDS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    if shutil.which("parallel") is None:
        sys.exit("GNU parallel is not installed; install the package parallel")
    with tempfile.TemporaryDirectory() as directory:
        measure(arguments.model, arguments.text, Path(directory), arguments.runs)


def measure(model: Path, text: Path, directory: Path, runs: int) -> None:
    """Print the table."""
    lines = text.read_text().splitlines()
    twice = directory / "twice"
    twice.write_text("".join(f"{line}\n" for line in random.Random(1).sample(lines * 2, 2 * len(lines))))
    program = directory / "bin" / "dragoman"
    program.parent.mkdir()
    program.write_text(f'#!/bin/bash\nexec "{sys.executable}" -m dragoman "$@"\n')
    program.chmod(0o755)
    single = ["dragoman", "translate", model, "--text"]
    shards = [SCRIPT, "OUT", SHARDS, 2, "translate", model, "--text"]
    kinds = {
        "1 process, 1 thread": (1, lines, [*single, text, "-o", "OUT", "--threads", 1]),
        "1 process, 2 threads": (2, lines, [*single, text, "-o", "OUT", "--threads", 2]),
        f"2 processes, 1 thread each, {SHARDS} shards": (1, lines, [*shards, text]),
        "each line twice, 1 process, 1 thread": (1, 2 * lines, [*single, twice, "-o", "OUT", "--threads", 1]),
        "the same with --dedup": (1, 2 * lines, [*single, twice, "-o", "OUT", "--threads", 1, "--dedup"]),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    outputs: dict[str, str] = {}
    for run in range(runs):
        for name, (threads, _, command) in kinds.items():
            output = directory / f"{run}-{name}"
            words = [str(output) if word == "OUT" else str(word) for word in command]
            environment = {
                **os.environ,
                "PATH": f"{program.parent}:{os.environ['PATH']}",
                "OMP_NUM_THREADS": str(threads),
            }
            times[name].append(seconds_of(words, environment))
            outputs[name] = output.read_text()
    rows = []
    for name, (_, read, _) in kinds.items():
        seconds, cpu_seconds = (min(column) for column in zip(*times[name], strict=True))
        rows.append([name, f"{seconds:.1f}", f"{len(read) / seconds:,.0f}", f"{cpu_seconds:.1f}"])
    print(format_table([f"{len(lines):,} lines", "seconds", "lines/s", "CPU seconds"], rows))
    names = list(kinds)
    print(f"shards as the whole text: {outputs[names[0]] == outputs[names[2]]}")
    print(f"--dedup as without: {outputs[names[3]] == outputs[names[4]]}")


def seconds_of(command: list[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Return the time of a command, and that of the processor in it."""
    start, before = perf_counter(), cpu_seconds_of_children()
    subprocess.run(command, check=True, env=environment, stderr=subprocess.DEVNULL)
    return perf_counter() - start, cpu_seconds_of_children() - before


def cpu_seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
