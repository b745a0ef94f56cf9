"""Training by two processes with one thread each, and by one process with two threads; then, on paper, eight machines.

    python benchmarks/distributed.py [--rounds 5] [--updates 8] [--precision auto] [--json FILE]

The models are the translator of `translate.py` (11.8 M parameters, 64 sentences per batch) and a language model with two
LSTM layers of 650 (19.8 M parameters, 20 rows of 35 words), on random words, because the speed does not depend on the
text. All processes are started at the beginning and train in turns, so that other load on the machine slows all down
equally. The first table has medians over rounds, and the lowest and highest value. The CPU seconds of an update, of all its
threads and processes, hardly depend on other programs. The bytes that each process sends per update are read from the
counters of the loopback interface.

The second table is computed, from CPU seconds, for machines that have one process with one thread each. Alone it takes
a + c * batch seconds per update, with a and c from two batch sizes. N machines that share a batch take a + c * batch / N,
and those that have a batch each a + c * batch. To this comes the time for summing gradients, which is what two processes
take longer than that, and the time in which 2 (N - 1) / N times the gradients pass through the network; nothing of it is
hidden behind the computation.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

from texts_and_results import processor, write_json

VOCABULARIES = 7_868, 5_920  # of the translator
SENTENCES, MEAN_LENGTH = 6_000, 12  # of its text
STREAM_WORDS = 60_000  # of the language model's text
WARM_UP = 3  # updates
SMALL_SHARE = 4  # the second batch size is the first divided by this
MACHINES = 8
BANDWIDTHS = {"1 Gbit/s": 1e9 / 8, "10 Gbit/s": 1e10 / 8}  # bytes per second
LOOPBACK_SENT = Path("/sys/class/net/lo/statistics/tx_bytes")
TASKS = {"translator": 64, "LSTM 2x650": 20}  # sentences, or rows, of a batch


@dataclass(frozen=True)
class Setup:
    """Processes that train together."""

    processes: int
    threads: int  # of each process
    share: int = 1  # of the batch: one part of so many

    @property
    def name(self) -> str:
        processes = f"{self.processes} process{'es' if self.processes > 1 else ''}"
        part = "" if self.share == 1 else f", 1/{self.share} of the batch"
        return f"{processes}, {self.threads} thread{'s' if self.threads > 1 else ''}{part}"


ONE_THREAD, TWO_THREADS, TWO_PROCESSES = Setup(1, 1), Setup(1, 2), Setup(2, 1)
SMALL_BATCH = Setup(1, 1, SMALL_SHARE)
SETUPS = (ONE_THREAD, TWO_THREADS, SMALL_BATCH, TWO_PROCESSES)


class Measurement(NamedTuple):
    """Of an update."""

    seconds: float
    cpu_seconds: float  # of all processes
    sent: float  # bytes that a process sends
    parameters: int


# -- one of the processes ----------------------------------------------------------------------------------------------


def random_lines(words: int, sentences: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    lengths = 1 + random.poisson(MEAN_LENGTH - 1, sentences)
    known = [f"w{number}" for number in range(words - 3)]
    lines = [" ".join(f"w{number}" for number in random.integers(words - 3, size=length)) for length in lengths]
    return [*lines, " ".join(known)]  # so that the vocabulary has this size


def training(task: str, setup: Setup, precision: str) -> tuple[Iterator[Any], int]:
    """Return the steps of a training and the number of its parameters."""
    from dragoman import Corpus, ParallelCorpus, RecurrentModel, TrainingConfig, Translator
    from dragoman.models.configs import TranslatorConfig
    from dragoman.training.fit import create_task
    from dragoman.training.loop import TrainState, training_steps
    from dragoman.training.precision import choose_precision

    config = TrainingConfig(batch_size=TASKS[task] // setup.share, batch_by="sentences", clip=1.0, max_epochs=10_000)
    data: Corpus | ParallelCorpus
    if task == "translator":
        source, target = (
            Corpus.from_sentences(random_lines(words, SENTENCES, seed)) for seed, words in enumerate(VOCABULARIES)
        )
        data = ParallelCorpus(source, target).select(np.arange(SENTENCES))
        sizes = {"embedding": 256, "hidden": 512, "encoder_hidden": 256, "attention_hidden": 512, "readout": 512}
        settings = TranslatorConfig(attention="mlp", dropout=0.2, embedding_dropout=0.2, **sizes)
        model: Any = Translator.create(data, settings=settings)
        config = config.model_copy(update={"pool": 50})
    else:
        from rnnlm import random_text

        data = random_text(STREAM_WORDS)
        model = RecurrentModel.create(data, cell="lstm", layers=2, embedding=650, hidden=650, carries=True)
    config = config.model_copy(update={"precision": choose_precision(precision, model, "cpu")})
    steps = training_steps(TrainState.create(model, config), create_task(model, data, None, config))
    return steps, sum(parameter.numel() for parameter in model.parameters())


def work(task: str, setup: Setup, precision: str) -> None:
    """Make as many updates as each line of standard input says; process 0 writes a line about each of them."""
    from dragoman.core.busy import set_wait_policy
    from dragoman.core.processes import process_rank
    from dragoman.core.threads import limit_threads

    set_wait_policy()  # before torch is imported, as the command line does
    with limit_threads(setup.threads):
        steps, parameters = training(task, setup, precision)
        for line in sys.stdin:
            updates = int(line)
            start, cpu_start, sent = perf_counter(), process_time(), int(LOOPBACK_SENT.read_text())
            for _ in range(updates):
                next(steps)
            seconds, cpu_seconds = perf_counter() - start, setup.processes * (process_time() - cpu_start)
            sent = (int(LOOPBACK_SENT.read_text()) - sent) / setup.processes
            if not process_rank():
                report = Measurement(seconds / updates, cpu_seconds / updates, sent / updates, parameters)
                print(json.dumps(report), flush=True)


# -- measuring ---------------------------------------------------------------------------------------------------------


class Group:
    """The processes of a setup."""

    def __init__(self, task: str, setup: Setup, precision: str):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        arguments = ["--worker", task, json.dumps(asdict(setup)), "--precision", precision]
        environment = {**os.environ, "OMP_NUM_THREADS": str(setup.threads)}
        if setup.processes > 1:
            environment |= {"WORLD_SIZE": str(setup.processes), "LOCAL_WORLD_SIZE": str(setup.processes)}
            environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        self.processes = [
            subprocess.Popen(
                [sys.executable, __file__, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment | {"RANK": str(rank)},
                text=True,
            )
            for rank in range(setup.processes)
        ]

    def measure(self, updates: int) -> Measurement:
        for process in self.processes:
            assert process.stdin is not None
            print(updates, file=process.stdin, flush=True)
        assert self.processes[0].stdout is not None
        return Measurement(*json.loads(self.processes[0].stdout.readline()))

    def close(self) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self.processes:
            process.wait()


@dataclass(frozen=True)
class Result:
    task: str
    setup: str
    rounds: list[Measurement]

    @property
    def parameters(self) -> int:
        return self.rounds[0].parameters

    @property
    def median(self) -> float:
        return statistics.median(measured.seconds for measured in self.rounds)

    @property
    def cpu_seconds(self) -> float:
        return statistics.median(measured.cpu_seconds for measured in self.rounds)


def measure(task: str, rounds: int, updates: int, precision: str) -> list[Result]:
    groups = {setup: Group(task, setup, precision) for setup in SETUPS}
    measured: dict[Setup, list[Measurement]] = {setup: [] for setup in SETUPS}
    try:
        for group in groups.values():
            group.measure(WARM_UP)
        for number in range(rounds):
            for setup, group in groups.items():
                measured[setup].append(group.measure(updates))
            latest = ", ".join(f"{setup.name}: {values[-1].seconds:.3f} s" for setup, values in measured.items())
            print(f"{task}, round {number + 1}: {latest}", file=sys.stderr, flush=True)
    finally:
        for group in groups.values():
            group.close()
    return [Result(task, setup.name, measured[setup]) for setup in SETUPS]


def on_paper(results: list[Result]) -> list[list[str]]:
    """Return the rows of the second table for one task."""
    cpu_seconds = {result.setup: result.cpu_seconds for result in results}
    whole = cpu_seconds[ONE_THREAD.name]
    variable = (whole - cpu_seconds[SMALL_BATCH.name]) / (1 - 1 / SMALL_SHARE)  # c * batch
    fixed = max(0.0, whole - variable)  # a
    summing = max(0.0, cpu_seconds[TWO_PROCESSES.name] / 2 - fixed - variable / 2)
    sent = 2 * (MACHINES - 1) / MACHINES * 4 * results[0].parameters
    rows = []
    for name, bandwidth in BANDWIDTHS.items():
        for batches, number in (("one batch", 1), ("a batch each", MACHINES)):
            parts = [fixed, variable * number / MACHINES, summing, sent / bandwidth]
            speedup = number * whole / sum(parts)
            cells = [f"{part:.3f}" for part in parts]
            rows.append([results[0].task, batches, name, *cells, f"{1 / sum(parts):.2f}", f"{speedup:.2f}"])
    return rows


def print_tables(results: list[Result]) -> None:
    from dragoman.report.tables import format_table

    rows = []
    for result in results:
        rates = sorted(1 / measured.seconds for measured in result.rounds)
        spread = f"{rates[0]:.2f} to {rates[-1]:.2f}"
        sent, computed = "", ""
        if result.setup == TWO_PROCESSES.name:
            sent = f"{statistics.median(measured.sent for measured in result.rounds) / 1e6:.1f}"
            computed = f"{4 * result.parameters / 1e6:.1f}"
        cells = [f"{1 / result.median:.2f}", spread, f"{result.cpu_seconds:.3f}", sent, computed]
        rows.append([result.task, f"{result.parameters / 1e6:.1f} M", result.setup, *cells])
    header = ["task", "parameters", "", "updates/s", "lowest to highest", "CPU s", "MB sent", "MB of gradients"]
    print(format_table(header, rows))
    parts = ["fixed s", "shared s", "summing s", "network s"]
    header = ["task", f"{MACHINES} machines with", "network", *parts, "updates/s", "speedup"]
    tasks = {result.task: [other for other in results if other.task == result.task] for result in results}
    print(f"\n{format_table(header, [row for same in tasks.values() for row in on_paper(same)])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=8, help="in a round")
    parser.add_argument("--precision", default="auto", help="auto, float32 or bfloat16")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        task, setup = arguments.worker
        work(task, Setup(**json.loads(setup)), arguments.precision)
        return
    results = list[Result]()
    for task in arguments.tasks:
        results += measure(task, arguments.rounds, arguments.updates, arguments.precision)
    print_tables(results)
    print(f"\nprecision {arguments.precision}; processor: {processor()}")
    write_json(arguments.json, [asdict(result) for result in results])


if __name__ == "__main__":
    main()
