"""Training speed of recurrent models in words per second, compared with plain PyTorch and the limit of the machine.

    python benchmarks/rnnlm.py --output rnnlm.json

Rounds are interleaved, so that other load on the machine slows all down equally:

- ours: a step of the training loop with a `RecurrentModel` (loss, gradients, their norm, Adam).
- plain: `torch.nn.LSTM`, `nn.Linear`, `cross_entropy` and Adam, as in a tutorial; same sizes, same batches.
- limit: only the matrix products that both need, forward and backward, as large as the equations allow (the recurrent
  ones step by step), by the faster of torch's libraries.

Batches are streams of random words, because the speed does not depend on the text. The gain from minibatches is
measured on lab sentences, with batches of one sentence (online) and of many. The results are medians over rounds, which
are shorter than an epoch.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from dragoman import Corpus, RecurrentModel, TrainingConfig, Vocab
from dragoman.lab.lab import german_english_lab
from dragoman.report.tables import format_table
from dragoman.training.batch_order import SENTENCES, STREAM
from dragoman.training.fit import on_device
from dragoman.training.loop import TrainingTask, TrainState, training_steps
from dragoman.training.objectives import negative_log_likelihood, stateless_objective, stream_objective
from fastest_products import multiply
from texts_and_results import processor, write_json

VOCABULARY = 10_000  # words
SENTENCE_LENGTH = 20  # of the random text


@dataclass(frozen=True)
class Size:
    layers: int
    hidden: int
    rows: int = 20
    steps: int = 35

    @property
    def name(self) -> str:
        return f"{self.layers}x{self.hidden}, {self.rows} rows of {self.steps}"


SIZES = (Size(2, 200), Size(2, 400), Size(2, 650), Size(2, 650, rows=64))
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)  # sentences


@dataclass(frozen=True)
class Speed:
    """Words per second."""

    size: str
    cell: str
    ours: float
    plain: float
    limit: float
    ours_by_class: float  # ours with a class-factored softmax


def random_text(tokens: int, seed: int = 1) -> Corpus:
    """Sample words by Zipf's law."""
    vocab = Vocab.build([f"w{number}" for number in range(VOCABULARY)], list(range(VOCABULARY, 0, -1)))
    weights = 1 / np.arange(1, VOCABULARY + 1)
    ids = np.random.default_rng(seed).choice(VOCABULARY, size=tokens, p=weights / weights.sum())
    words = np.array(vocab.tokens[-VOCABULARY:])[ids]
    starts = range(0, tokens, SENTENCE_LENGTH)
    return Corpus.from_sentences((" ".join(words[start : start + SENTENCE_LENGTH]) for start in starts), vocab)


# -- systems: each yields the number of words of every training step ---------------------------------------------------


def train_ours(
    size: Size, cell: str, text: Corpus, softmax: str = "full", precision: str | None = None
) -> Iterator[int]:
    """Train our model. `precision` is that of training; None: of code that has no such setting."""
    settings = {"cell": cell, "layers": size.layers, "embedding": size.hidden, "hidden": size.hidden}
    model = RecurrentModel.create(text, **settings, carries=True, softmax=softmax, dropout=0.0)
    config = TrainingConfig(batch_size=size.rows * size.steps, steps=size.steps, clip=1.0, max_epochs=1000)
    if precision is not None:
        config = config.model_copy(update={"precision": precision})
    task = TrainingTask(text, int(text.sizes.sum()), None, stream_objective(model), config, perf_counter, STREAM)
    with on_device(model, "cpu"):
        yield from (report.predictions for report in training_steps(TrainState.create(model, config), task))


def train_on_sentences(batch_size: int, text: Corpus) -> Iterator[int]:
    model = RecurrentModel.create(text, cell="lstm", embedding=128, hidden=256, dropout=0.0)
    config = TrainingConfig(batch_size=batch_size, batch_by="sentences", pool=50, max_epochs=1000)
    task = TrainingTask(
        text,
        int(text.sizes.sum()),
        None,
        stateless_objective(model, negative_log_likelihood),
        config,
        perf_counter,
        SENTENCES,
    )
    with on_device(model, "cpu"):
        yield from (report.predictions for report in training_steps(TrainState.create(model, config), task))


class PlainModel(torch.nn.Module):
    """A recurrent language model in plain PyTorch."""

    def __init__(self, size: Size, cell: str, words: int):
        super().__init__()
        self.embedding = torch.nn.Embedding(words, size.hidden)
        layer = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[cell]
        self.rnn = layer(size.hidden, size.hidden, size.layers)
        self.output = torch.nn.Linear(size.hidden, words)

    def forward(self, x, state):
        h, state = self.rnn(self.embedding(x), state)
        return self.output(h), state


def train_plain(size: Size, cell: str, text: Corpus) -> Iterator[int]:
    model = PlainModel(size, cell, len(text.vocab))
    optimizer = torch.optim.Adam(model.parameters())
    words = torch.from_numpy(text.ids_with_boundaries(starts=0)).long()
    length = len(words) // size.rows
    stream = words[: size.rows * length].view(size.rows, length).t().contiguous()  # (length, rows)
    while True:
        state = None
        for start in range(0, length - 1 - size.steps, size.steps):
            x, y = stream[start : start + size.steps], stream[start + 1 : start + 1 + size.steps]
            optimizer.zero_grad()
            scores, state = model(x, state)
            state = tuple(part.detach() for part in state) if isinstance(state, tuple) else state.detach()
            loss = cross_entropy(scores.flatten(0, 1), y.flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            yield y.numel()


def multiply_matrices(size: Size, cell: str, dtype: torch.dtype = torch.float32) -> Iterator[int]:
    """Compute only the matrix products of a training step.

    A GRU needs two products with its state in each step: the input of the second depends on the result of the first.
    """
    step_products = {"lstm": (4,), "gru": (2, 1), "rnn": (1,)}[cell]  # the number of gates of each
    gates = sum(step_products)
    H, tokens = size.hidden, size.rows * size.steps
    shapes = (tokens, H), (size.rows, H), (size.rows, gates * H), (tokens, gates * H)
    x, h_t, d_t, d = (torch.randn(shape).to(dtype) for shape in shapes)
    widths = [H * number for number in step_products]
    W, V, scores = (torch.randn(shape).to(dtype) for shape in ((gates * H, H), (VOCABULARY, H), (tokens, VOCABULARY)))
    step_operands = list(zip(W.split(widths), [part.contiguous() for part in d_t.split(widths, dim=1)], strict=True))
    while True:
        for _ in range(size.layers):
            multiply(x, W.t())  # inputs, forward
            for _ in range(size.steps):
                for W_t, d_gates in step_operands:
                    multiply(h_t, W_t.t())  # states, forward
                    multiply(d_gates, W_t)  # states, backward
            multiply(d.t(), x)  # gradient of the input matrix
            multiply(d.t(), x)  # gradient of the recurrent matrix
            multiply(d, W)  # inputs, backward
        multiply(x, V.t())  # softmax, forward
        multiply(scores, V)  # softmax, backward
        multiply(scores.t(), x)  # gradient of the softmax matrix
        yield tokens


# -- measurements ------------------------------------------------------------------------------------------------------


def words_per_second(systems: list[Iterator[int]], seconds: float, rounds: int) -> list[float]:
    """Run all systems in interleaved rounds and return the median speed of each."""
    speeds: list[list[float]] = [[] for _ in systems]
    for steps in systems:
        next(steps), next(steps)  # warm up
    for _ in range(rounds):
        for steps, measured in zip(systems, speeds, strict=True):
            words, start = 0, perf_counter()
            while perf_counter() - start < seconds:
                words += next(steps)
            measured.append(words / (perf_counter() - start))
    return [statistics.median(measured) for measured in speeds]


def measure_cells(cells: list[str], seconds: float, rounds: int) -> list[Speed]:
    text = random_text(200_000)
    speeds = []
    for cell in cells:
        for size in SIZES if cell == "lstm" else SIZES[:1]:
            systems = [
                train_ours(size, cell, text),
                train_plain(size, cell, text),
                multiply_matrices(size, cell),
                train_ours(size, cell, text, softmax="frequency"),
            ]
            speeds.append(Speed(size.name, cell, *words_per_second(systems, seconds, rounds)))
            print(speeds[-1], file=sys.stderr, flush=True)
    return speeds


def print_speeds(speeds: list[Speed]) -> None:
    rows = [
        [
            *(speed.cell, speed.size, f"{speed.ours:,.0f}", f"{speed.plain:,.0f}", f"{speed.limit:,.0f}"),
            *(f"{speed.ours / speed.plain:.2f}", f"{speed.limit / speed.ours:.2f}", f"{speed.ours_by_class:,.0f}"),
        ]
        for speed in speeds
    ]
    headers = ["cell", "size", "ours", "plain", "limit", "ours/plain", "limit/ours", "ours, class-factored softmax"]
    print(f"words/s in training, {VOCABULARY:,} words, {torch.get_num_threads()} threads, {processor()}\n")
    print(format_table(headers, rows))


def measure_minibatches(seconds: float, rounds: int) -> dict[int, float]:
    """Return words per second by sentences per batch, for an LSTM of size 256 on the lab's English."""
    text = Corpus.from_sentences(german_english_lab().sentences("en", 2000, seed=1))
    systems = [train_on_sentences(batch_size, text) for batch_size in BATCH_SIZES]
    speeds = dict(zip(BATCH_SIZES, words_per_second(systems, seconds, rounds), strict=True))
    rows = [[batch_size, f"{speed:,.0f}", f"{speed / speeds[1]:.1f}"] for batch_size, speed in speeds.items()]
    print(f"\n{format_table(['sentences per batch', 'words/s', 'speed-up'], rows)}")
    return speeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="also write the results to this JSON file")
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of each round of each system")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cells", default="lstm,gru,rnn", help="recurrent cells")
    arguments = parser.parse_args()
    speeds = measure_cells(arguments.cells.split(","), arguments.seconds, arguments.rounds)
    print_speeds(speeds)
    minibatches = measure_minibatches(arguments.seconds, arguments.rounds)
    report = {"speeds": [asdict(speed) for speed in speeds], "minibatches": minibatches, "processor": processor()}
    write_json(arguments.output, report)


if __name__ == "__main__":
    main()
