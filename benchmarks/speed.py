"""Speed of training and search: before and after a change, against plain PyTorch and against the hardware's limits.

    git worktree add /tmp/before REVISION
    python benchmarks/speed.py --data multi30k/tok --before /tmp/before/src [--tasks training search] [--quick]

Each system is a process of its own (`speed_worker.py`). They run in interleaved rounds, so that other load on the
machine slows all of them down equally. Tables have medians, the spread over rounds, and ratios.

- before: an older source tree, given by --before.
- float32, bfloat16, int8: this source tree with products of this precision.
- plain: the same models in plain PyTorch, see `plain_translator.py` and `rnnlm.py`.
- limit: only the matrix products of training, with operands of this type, by the faster of torch's libraries.

bfloat16 is measured only on processors that have instructions for it.

The translator is that of `translate.py`. For search it is trained for `--train-seconds`, so that translations end.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import torch
from safetensors.torch import save_file

from dragoman import ParallelCorpus
from dragoman.report.tables import format_table
from dragoman.training.precision import has_fast_bfloat16
from plain_translator import Sizes
from texts_and_results import processor
from translate_systems import OurSystem

TRAINING = ("train translator", "train lstm 2x200", "train lstm 2x400", "train lstm 2x650", "train gru 2x200")
SEARCH = ("latency 5", "latency 1", "search 5", "search 1", "calls 5")
SYSTEMS = {  # of each kind of task
    "train": ("before", "float32", "bfloat16", "plain", "limit float32", "limit bfloat16"),
    "search": ("before", "before int8", "float32", "int8"),
}
UNITS = {
    "train": "words/s",
    "latency": "ms per sentence (median)",
    "search": "sentences/s, batches of 64",
    "calls": "torch functions per step, one sentence (median)",
}
LESS_IS_BETTER = ("latency", "calls")
WORKER = Path(__file__).with_name("speed_worker.py")


class Process:
    """A system in a process."""

    def __init__(self, system: str, source: Path, options: list[str]):
        environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
        command = [sys.executable, str(WORKER), system, *options]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, task: str, seconds: float) -> float | None:
        """Return the speed of a task, or None if the process has ended: this source tree cannot do it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps([task, seconds]), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        return float(json.loads(line)) if line else None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def train_for_search(data: Path, path: Path, seconds: float) -> None:
    """Write the parameters of a translator that was trained for a short time."""
    pairs = ParallelCorpus.read(data / "train.de", data / "train.en", min_count=2)
    precision = "bfloat16" if has_fast_bfloat16("cpu") else "float32"
    ours = OurSystem(pairs, Sizes(len(pairs.source.vocab), len(pairs.target.vocab)), precision)
    end = perf_counter() + seconds
    for _ in ours.training():
        if perf_counter() > end:
            break
    save_file(ours.model.state_dict(), path)


def measure(processes: dict[str, Process], task: str, seconds: float, rounds: int) -> dict[str, list[float]]:
    """Return the values of each system that can do the task, one per round."""
    warm = {name: process for name, process in processes.items() if process.run(task, 0.1) is not None}
    for name in processes.keys() - warm.keys():
        print(f"{task}: {name} cannot do this; see the error above", file=sys.stderr)
    values: dict[str, list[float]] = {name: [] for name in warm}
    for number in range(rounds):
        for name, process in warm.items():
            value = process.run(task, seconds)
            if value is None:
                sys.exit(f"{task}: {name} ended in round {number + 1}")
            values[name].append(value)
        print(
            f"{task}, round {number + 1}: { {name: round(row[-1], 1) for name, row in values.items()} }",
            file=sys.stderr,
        )
    return values


def table(task: str, values: dict[str, list[float]]) -> str:
    """Return a table of medians, spreads and ratios: how many times as fast as each other system."""
    medians = {name: statistics.median(row) for name, row in values.items()}
    kind = task.split()[0]
    rows = []
    for name, row in values.items():
        ratios = [medians[name] / medians[other] for other in values]
        ratios = [1 / ratio for ratio in ratios] if kind in LESS_IS_BETTER else ratios
        cells = [f"{medians[name]:,.1f}", f"{min(row):,.1f} to {max(row):,.1f}"]
        rows.append(
            [
                name,
                *cells,
                *("" if other == name else f"{ratio:.2f}" for other, ratio in zip(values, ratios, strict=True)),
            ]
        )
    headers = [task, UNITS[kind], "spread", *(f"/ {name}" for name in values)]
    return format_table(headers, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.de, train.en, val.de and val.en")
    parser.add_argument("--before", type=Path, help="src of an older revision")
    parser.add_argument("--tasks", nargs="+", default=[*TRAINING, *SEARCH], help="default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="per round and system")
    parser.add_argument("--train-seconds", type=float, default=90.0, help="of training before search")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    options = parser.parse_args()
    rounds, seconds = (3, 2.0) if options.quick else (options.rounds, options.seconds)
    torch.set_num_threads(options.threads)
    print(f"{options.threads} threads, {processor()}, torch {torch.__version__}")
    flags = [
        name
        for name, has in torch.cpu.get_capabilities().items()
        if has is True and ("avx512" in name or "amx" in name)
    ]
    print(f"flags: {' '.join(sorted(flags)) or 'neither AVX-512 nor AMX'}\n")
    has_bfloat16 = any("bf16" in flag for flag in flags)
    tasks = [task for task in (*TRAINING, *SEARCH) if any(task.startswith(given) for given in options.tasks)]
    with tempfile.TemporaryDirectory() as directory:
        weights = Path(directory) / "weights.safetensors"
        if any(not task.startswith("train") for task in tasks):
            train_for_search(options.data, weights, options.train_seconds)
        for task in tasks:
            arguments = ["--data", str(options.data), "--threads", str(options.threads)]
            arguments += ["--weights", str(weights)] if weights.exists() else []
            names = SYSTEMS["train" if task.startswith("train") else "search"]
            ours = Path(__file__).parent.parent / "src"
            processes = {
                name: Process(name, options.before if name.startswith("before") else ours, arguments)
                for name in names
                if (not name.startswith("before") or options.before is not None)
                and (has_bfloat16 or "bfloat16" not in name)
            }
            try:
                print(f"{table(task, measure(processes, task, seconds, rounds))}\n", flush=True)
            finally:
                for process in processes.values():
                    process.end()


if __name__ == "__main__":
    main()
