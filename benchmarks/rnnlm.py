"""Training speed of recurrent models: words a second, against the plain way to write the same and the machine's limit.

    python benchmarks/rnnlm.py --output rnnlm.json

In one run and in turns, so that a busy machine slows all down alike:

- ours: the step of the training loop on a `RecurrentModel` (loss, gradients, their norm, Adam).
- plain: `torch.nn.LSTM`, `nn.Linear`, `cross_entropy` and Adam, as a tutorial would write it; same sizes, same batches.
- limit: the matrix multiplications alone that both need, forth and back, in the largest products that the equations
  allow (recurrent ones are step by step).

Batches are streams of random words: speed does not depend on what they say. The gain of minibatches is measured on
sentences of the laboratory, with batches of one sentence (online) and of many. One epoch of neither is run to its end:
the median of several rounds counts.
"""

from __future__ import annotations

import argparse
import json
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
from dragoman.training.fit import training_mode
from dragoman.training.loop import TrainingTask, TrainState, training_steps
from dragoman.training.objectives import negative_log_likelihood, stateless, stream_objective
from ptb_cache import processor

WORDS = 10_000


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
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)  # sentences


@dataclass(frozen=True)
class Speed:
    """Words a second."""

    size: str
    cell: str
    ours: float
    plain: float
    limit: float
    ours_by_class: float  # ours with a softmax by classes of like frequency


def random_text(tokens: int, seed: int = 1) -> Corpus:
    """Words by Zipf's law, twenty to a sentence."""
    vocab = Vocab.build([f"w{number}" for number in range(WORDS)], list(range(WORDS, 0, -1)))
    chances = 1 / np.arange(1, WORDS + 1)
    ids = np.random.default_rng(seed).choice(WORDS, size=tokens, p=chances / chances.sum())
    names = np.array(vocab.tokens[-WORDS:])
    return Corpus.from_sentences((" ".join(names[ids[at : at + 20]]) for at in range(0, tokens, 20)), vocab)


def ours(size: Size, cell: str, text: Corpus, softmax: str = "full") -> Iterator[int]:
    """Steps of training, each told by the words it learned from."""
    shape = {"cell": cell, "layers": size.layers, "embedding": size.hidden, "hidden": size.hidden}
    model = RecurrentModel.create(text, **shape, carries=True, softmax=softmax, dropout=0.0)
    config = TrainingConfig(batch_size=size.rows * size.steps, steps=size.steps, clip=1.0, max_epochs=1000)
    task = TrainingTask(text, None, stream_objective(), config, perf_counter, STREAM)
    with training_mode(model, "cpu"):
        yield from (moment.predictions for moment in training_steps(TrainState.create(model, config), task))


class PlainModel(torch.nn.Module):
    """What one would write oneself."""

    def __init__(self, size: Size, cell: str, words: int):
        super().__init__()
        self.embed = torch.nn.Embedding(words, size.hidden)
        kind = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[cell]
        self.rnn = kind(size.hidden, size.hidden, size.layers)
        self.out = torch.nn.Linear(size.hidden, words)

    def forward(self, x, state):
        h, state = self.rnn(self.embed(x), state)
        return self.out(h), state


def plain(size: Size, cell: str, text: Corpus) -> Iterator[int]:
    model = PlainModel(size, cell, len(text.vocab))
    optimizer = torch.optim.Adam(model.parameters())
    words = torch.from_numpy(text.ids_with_boundaries(starts=0)).long()
    longest = len(words) // size.rows
    columns = words[: size.rows * longest].view(size.rows, longest).t().contiguous()
    while True:
        state = None
        for at in range(0, longest - 1 - size.steps, size.steps):
            x, y = columns[at : at + size.steps], columns[at + 1 : at + 1 + size.steps]
            optimizer.zero_grad()
            scores, state = model(x, state)
            state = tuple(part.detach() for part in state) if isinstance(state, tuple) else state.detach()
            loss = cross_entropy(scores.flatten(0, 1), y.flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            yield y.numel()


def limit(size: Size, cell: str) -> Iterator[int]:
    """The products of matrices of one step of training, and nothing else."""
    sums = {"lstm": 4, "gru": 3, "rnn": 1}[cell]
    H, tokens = size.hidden, size.rows * size.steps
    x, h_t, d_t = torch.randn(tokens, H), torch.randn(size.rows, H), torch.randn(size.rows, sums * H)
    d = torch.randn(tokens, sums * H)
    W, V = torch.randn(sums * H, H), torch.randn(WORDS, H)
    scores = torch.randn(tokens, WORDS)
    while True:
        for _ in range(size.layers):
            x @ W.t()  # inputs forth
            for _ in range(size.steps):
                h_t @ W.t()  # states forth
                d_t @ W  # and back
            d.t() @ x  # gradients of both matrices
            d.t() @ x
            d @ W  # inputs back
        x @ V.t()  # the softmax forth
        scores @ V  # and back
        scores.t() @ x
        yield tokens


def words_a_second(ways: list[Iterator[int]], seconds: float, rounds: int) -> list[float]:
    """All ways in turns; the median of the rounds."""
    found: list[list[float]] = [[] for _ in ways]
    for way in ways:
        next(way), next(way)
    for _ in range(rounds):
        for way, speeds in zip(ways, found, strict=True):
            words, began = 0, perf_counter()
            while perf_counter() - began < seconds:
                words += next(way)
            speeds.append(words / (perf_counter() - began))
    return [statistics.median(speeds) for speeds in found]


def sentence_steps(batch: int, text: Corpus, cell: str = "lstm") -> Iterator[int]:
    """Steps of training on this many sentences at a time."""
    model = RecurrentModel.create(text, cell=cell, embedding=128, hidden=256, dropout=0.0)
    config = TrainingConfig(batch_size=batch, batch_by="sentences", pool=50, max_epochs=1000)
    task = TrainingTask(text, None, stateless(negative_log_likelihood), config, perf_counter, SENTENCES)
    with training_mode(model, "cpu"):
        yield from (moment.predictions for moment in training_steps(TrainState.create(model, config), task))


def progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="JSON to write")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each way and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cells", default="lstm,gru,rnn")
    options = parser.parse_args(arguments)
    text = random_text(200_000)
    speeds = []
    for cell in options.cells.split(","):
        for size in SIZES if cell == "lstm" else SIZES[:1]:
            ways = [ours(size, cell, text), plain(size, cell, text), limit(size, cell)]
            ways.append(ours(size, cell, text, softmax="frequency"))
            speeds.append(Speed(size.name, cell, *words_a_second(ways, options.seconds, options.rounds)))
            progress(str(speeds[-1]))
    rows = [
        [
            *(speed.cell, speed.size, f"{speed.ours:,.0f}", f"{speed.plain:,.0f}", f"{speed.limit:,.0f}"),
            *(f"{speed.ours / speed.plain:.2f}", f"{speed.limit / speed.ours:.2f}", f"{speed.ours_by_class:,.0f}"),
        ]
        for speed in speeds
    ]
    headers = ["cell", "size", "ours", "plain", "limit", "ours/plain", "limit/ours", "ours, softmax by classes"]
    print(f"words/s in training, {WORDS:,} words, {torch.get_num_threads()} threads, {processor()}\n")
    print(format_table(headers, rows))
    gains = minibatching(options.seconds, options.rounds)
    if options.output:
        report = {"speeds": [asdict(speed) for speed in speeds], "minibatches": gains, "processor": processor()}
        options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def minibatching(seconds: float, rounds: int) -> dict[int, float]:
    """Words a second by sentences a batch, an LSTM of 256 on the laboratory's English."""
    text = Corpus.from_sentences(german_english_lab().sentences("en", 2000, seed=1))
    found = dict(zip(BATCHES, words_a_second([sentence_steps(n, text) for n in BATCHES], seconds, rounds), strict=True))
    rows = [[n, f"{speed:,.0f}", f"{speed / found[1]:.1f}"] for n, speed in found.items()]
    print(f"\n{format_table(['sentences a batch', 'words/s', 'times online'], rows)}")
    return found


if __name__ == "__main__":
    main()
