"""One system whose speed `speed.py` measures, in a process of its own: its first argument is the source tree.

It reads lines with a task and a number of seconds, and answers each with the number of units that it has done per second:
words in training, sentences in search; for `latency` with the median milliseconds of one sentence, and for `calls` with
the median number of torch's functions that are called per step of the search for one sentence.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from safetensors.torch import load_file
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman import ParallelCorpus
from dragoman.data.batches import Batch
from dragoman.search.beam import beam_search
from plain_translator import Sizes
from rnnlm import Size, multiply_matrices, random_text, train_ours, train_plain
from translate_systems import BATCH_SIZE, MatrixProducts, OurSystem, PlainSystem

BEAM_SIZE = 5
SYSTEMS = ("before", "before int8", "float32", "bfloat16", "int8", "plain", "limit float32", "limit bfloat16")


class Translators:
    """The translator of a system."""

    def __init__(self, system: str, data: Path, weights: Path | None):
        pairs = ParallelCorpus.read(data / "train.de", data / "train.en", min_count=2)
        vocabs = pairs.source.vocab, pairs.target.vocab
        test = ParallelCorpus.read(data / "val.de", data / "val.en", *vocabs).source
        self.single = cycle([test.select(np.array([number])) for number in range(0, len(test), 5)])
        order = np.argsort(-test.sizes, kind="stable")
        groups = [order[first : first + BATCH_SIZE] for first in range(0, len(order) - BATCH_SIZE, BATCH_SIZE)]
        self.batches = cycle([test.select(group) for group in groups[::3]])
        sizes = Sizes(*map(len, vocabs))
        self.system: PlainSystem | OurSystem | MatrixProducts
        if system == "plain":
            self.system = PlainSystem(pairs, sizes)
        elif system.startswith("limit"):
            self.system = MatrixProducts(pairs, sizes, dtype=getattr(torch, system.split()[1]))
        else:
            self.system = OurSystem(
                pairs, sizes, {"before": None}.get(system, "float32" if system.endswith("int8") else system)
            )
            if weights is not None:
                self.system.model.load_state_dict(load_file(weights))
        self.name, self._steps = system, None

    def training(self) -> Iterator[int]:
        return self.system.training()

    def search(self, source, beam_size: int) -> None:
        """Search as `Translator.translate` does."""
        assert isinstance(self.system, OurSystem)
        beam_search(self._scorer(), Batch.empty(len(source), source), beam_size)

    def _scorer(self):
        model = self.system.model
        if self.name == "before":
            return model
        if self.name.endswith("int8"):
            if not hasattr(self, "_quantized"):
                from dragoman.models.quantized_translator import QuantizedTranslator

                self._quantized = QuantizedTranslator.quantize(model)
            return self._quantized
        return model.prepare_for_search()


def language_model(system: str, cell: str, layers: int, hidden: int) -> Iterator[int]:
    size, text = Size(layers, hidden), random_text(200_000)
    if system == "plain":
        return train_plain(size, cell, text)
    if system.startswith("limit"):
        return multiply_matrices(size, cell, getattr(torch, system.split()[1]))
    return train_ours(size, cell, text, precision=None if system == "before" else system)


class Worker:
    """Runs tasks for a number of seconds; what a task needs is created when it is first run."""

    def __init__(self, system: str, data: Path, weights: Path | None):
        self.system, self.data, self.weights = system, data, weights
        self._translators: Translators | None = None
        self._trainings: dict[str, Iterator[int]] = {}

    @property
    def translators(self) -> Translators:
        self._translators = self._translators or Translators(self.system, self.data, self.weights)
        return self._translators

    def run(self, task: str, seconds: float) -> float:
        kind, _, rest = task.partition(" ")
        if kind == "train":
            return self._train(task, seconds)
        beam_size = int(rest)
        if kind == "latency":
            return self._latency(beam_size, seconds)
        if kind == "calls":
            return self._calls_per_step(beam_size, seconds)
        done, start = 0, perf_counter()
        while perf_counter() - start < seconds:
            batch = next(self.translators.batches)
            self.translators.search(batch, beam_size)
            done += len(batch)
        return done / (perf_counter() - start)

    def _train(self, task: str, seconds: float) -> float:
        if task not in self._trainings:
            _, kind, *shape = task.split()
            if kind == "translator":
                self._trainings[task] = self.translators.training()
            else:
                layers, hidden = map(int, shape[0].split("x"))
                self._trainings[task] = language_model(self.system, kind, layers, hidden)
            next(self._trainings[task]), next(self._trainings[task])  # warm up
        done, start = 0, perf_counter()
        while perf_counter() - start < seconds:
            done += next(self._trainings[task])
        return done / (perf_counter() - start)

    def _latency(self, beam_size: int, seconds: float) -> float:
        times, end = list[float](), perf_counter() + seconds
        while perf_counter() < end:
            source, start = next(self.translators.single), perf_counter()
            self.translators.search(source, beam_size)
            times.append(perf_counter() - start)
        return 1000 * statistics.median(times)

    def _calls_per_step(self, beam_size: int, seconds: float) -> float:
        ratios, end = list[float](), perf_counter() + seconds
        while perf_counter() < end or not ratios:
            with CallCounter() as counter:
                self.translators.search(next(self.translators.single), beam_size)
            ratios.append(counter.calls / counter.steps)
        return statistics.median(ratios)


class CallCounter(TorchDispatchMode):
    """Counts the functions of torch that are called, and the steps of a search: each has one softmax over the words."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = self.steps = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls += 1
        self.steps += "_log_softmax" in function.name()
        return function(*args, **(kwargs or {}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path, help="parameters of the translator, for search")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    worker = Worker(options.system, options.data, options.weights)
    answer: Callable[[object], None] = lambda value: print(json.dumps(value), flush=True)  # noqa: E731
    for line in sys.stdin:
        task, seconds = json.loads(line)
        answer(worker.run(task, seconds))


if __name__ == "__main__":
    main()
