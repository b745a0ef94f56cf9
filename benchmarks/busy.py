"""Training and search with two threads while another process uses one of two cores.

    python benchmarks/busy.py --data multi30k/tok [--seconds 15] [--rounds 3]

torch's threads wait for each other at the end of each parallel part in a busy loop. That is fast if all cores are free, and
wastes the core of a waiting thread if another program needs it. The settings of GNU OpenMP for these loops are read
when torch is imported, so each measurement is a process of its own. `chosen` is what the command line and the service do:
they look whether other programs run when they start, see `dragoman.core.busy`; `default` is OpenMP's own setting.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from dragoman.report.tables import format_table
from texts_and_results import processor

BUSY = "while True: pass"
MEASURE = """
import json, os, sys, time
from pathlib import Path
if "CHOOSE" in os.environ:
    from dragoman.core.busy import set_wait_policy
    set_wait_policy()
import torch
from dragoman import ParallelCorpus
from plain_translator import Sizes
from translate_systems import BATCH_SIZE, OurSystem
data, seconds = Path(sys.argv[1]), float(sys.argv[2])
torch.set_num_threads(2)
pairs = ParallelCorpus.read(data / "train.de", data / "train.en", min_count=2)
ours = OurSystem(pairs, Sizes(len(pairs.source.vocab), len(pairs.target.vocab)))
steps, count = ours.training(), 0
next(steps), next(steps)
start = time.perf_counter()
while (passed := time.perf_counter() - start) < seconds:
    next(steps)
    count += 1
batch, sentences = pairs.select(range(BATCH_SIZE)), 0
updates, start = count / passed, time.perf_counter()
while (passed := time.perf_counter() - start) < seconds / 2:
    ours.greedy(batch)
    sentences += BATCH_SIZE
print(json.dumps([updates, sentences / passed]))
"""


def measure(data: Path, seconds: float, setting: dict[str, str], *, busy: bool) -> tuple[float, float]:
    """Return updates and sentences per second."""
    environment = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS",)}
    other = subprocess.Popen([sys.executable, "-c", BUSY]) if busy else None
    try:
        command = [sys.executable, "-c", MEASURE, str(data), str(seconds)]
        done = subprocess.run(
            command,
            env={**environment, **setting, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        if other is not None:
            other.kill()
            other.wait()
    updates, sentences = json.loads(done.stdout)
    return updates, sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.de and train.en")
    parser.add_argument("--seconds", type=float, default=15.0, help="of training per measurement; half of it of search")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--spin-counts", nargs="+", default=["0", "2000", "20000"])
    options = parser.parse_args()
    settings: dict[str, dict[str, str]] = {"chosen": {"CHOOSE": "1"}, "default": {}}
    settings |= {f"GOMP_SPINCOUNT={count}": {"GOMP_SPINCOUNT": count} for count in options.spin_counts}
    results: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    for number in range(options.rounds):
        for name, setting in settings.items():
            for busy in (False, True):
                values = measure(options.data, options.seconds, setting, busy=busy)
                results.setdefault((name, busy), []).append(values)
                print(
                    f"round {number + 1}: {name}, {'busy' if busy else 'idle'}: {values}", file=sys.stderr, flush=True
                )
    medians = {key: [statistics.median(column) for column in zip(*rows, strict=True)] for key, rows in results.items()}
    best = [max(medians[name, False][part] for name in settings) for part in range(2)]
    rows = [
        [name, "busy" if busy else "idle"]
        + [
            cell
            for part in range(2)
            for cell in (f"{medians[name, busy][part]:.2f}", _share(medians, name, busy, part, best))
        ]
        for name in settings
        for busy in (False, True)
    ]
    print(format_table(["setting", "other core", "updates/s", "of best idle", "sentences/s", "of best idle"], rows))
    print(f"\ntwo threads, processor: {processor()}")


def _share(medians: dict[tuple[str, bool], list[float]], name: str, busy: bool, part: int, best: list[float]) -> str:
    return f"{medians[name, busy][part] / best[part]:.0%}"


if __name__ == "__main__":
    main()
