"""Training runs that one process or several ones make, for `test_distributed.py`.

    python distributed_runs.py DIR PORT PORT    # in each of three processes, with the variable RANK

Two of them make all runs, then one resumes a run, then all three. Each process writes what it has after a run to
DIR/NAME-RANK.npz or DIR/NAME-RANK.json.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from dragoman import Corpus, DataError, FeedForwardModel, RecurrentModel, TrainingConfig, fit
from dragoman.core.errors import DragomanError
from dragoman.core.processes import process_rank
from dragoman.data.corpus import BidirectionalCorpus, ParallelCorpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.models.loglinear.model import LogLinearModel
from dragoman.models.planning import plan_language_model
from dragoman.models.translator import Translator
from dragoman.models.two_way import TwoWayTranslator
from dragoman.training.distributed import communicator, disconnect
from dragoman.training.fit import StoppedError, TrainingStarted
from dragoman.training.loop import StepReport

NOUNS = {"hund": "dog", "katze": "cat", "vogel": "bird", "fisch": "fish", "pferd": "horse"}
VERBS = {"schläft": "sleeps", "bellt": "barks", "singt": "sings", "schwimmt": "swims", "rennt": "runs"}


def _pair(source: random.Random) -> tuple[str, str]:
    """A sentence of up to three clauses, so that lengths differ, and its translation."""
    clauses = [(source.choice([*NOUNS]), source.choice([*VERBS])) for _ in range(source.randint(1, 3))]
    german = " und ".join(f"der {noun} {verb}" for noun, verb in clauses)
    return german, " and ".join(f"the {NOUNS[noun]} {VERBS[verb]}" for noun, verb in clauses)


def _pairs(first: int, last: int) -> tuple[list[str], list[str]]:
    german, english = zip(*(_pair(random.Random(number)) for number in range(first, last)), strict=True)
    return [*german], [*english]


GERMAN, ENGLISH = _pairs(0, 60)
GERMAN[5], ENGLISH[5] = "das einhorn fliegt", "the unicorn flies"  # words that occur once
SOURCE, TARGET = Tokenizer.train("word", GERMAN), Tokenizer.train("word", ENGLISH)
PAIRS = ParallelCorpus(SOURCE.encode(GERMAN), TARGET.encode(ENGLISH))
CORPUS = PAIRS.target
DEV_PAIRS = ParallelCorpus(*(side.encode(text) for side, text in zip((SOURCE, TARGET), _pairs(60, 75), strict=True)))
DEV = DEV_PAIRS.target
OLD = Corpus.from_sentences(["the dog sings and the cat sleeps", "the bird runs"] * 5, CORPUS.vocab)
SIZES: dict[str, Any] = {"embedding": 6, "hidden": 7, "dtype": "float64"}
COMMON: dict[str, Any] = {"learning_rate": 0.01, "max_epochs": None, "check_every": 25, "patience": 99, "threads": 1}
SMOOTHED: dict[str, Any] = {"label_smoothing": 0.1, "clip": 1.0, "average": 0.2, "schedule": "linear", **COMMON}


def _recurrent(**settings: Any) -> RecurrentModel:
    return RecurrentModel.create(CORPUS, **{**SIZES, "cell": "lstm", "dropout": 0.2, **settings})


class PartlyUsed(nn.Module):
    """Parameters that the loss of only some examples depends on, or of none."""

    def __init__(self) -> None:
        super().__init__()
        self.always, self.sometimes, self.never = (nn.Parameter(torch.ones(2, dtype=torch.float64)) for _ in range(3))

    @staticmethod
    def losses(model: PartlyUsed, batch: Corpus, generator: Any = None) -> torch.Tensor:
        x = torch.arange(float(batch.num_tokens), dtype=torch.float64)
        y = (model.always[0] - x).square()
        return y + model.sometimes.sum() if "unicorn" in " ".join(batch.lines()) else y


def _partly_used(**settings: Any) -> nn.Module:
    model = PartlyUsed()
    fit(model, CORPUS, objective=PartlyUsed.losses, batch_size=40, max_updates=24, **COMMON, **settings)
    return model


def _feedforward(dtype: str, **settings: Any) -> nn.Module:
    model = FeedForwardModel.create(CORPUS, order=3, embedding=5, hidden=(6,), dropout=0.3, dtype=dtype)
    penalties = {"l1": 0.02, "l2": 0.05, "unknown_rate": 0.5, "batch_size": 60}
    return _fitted(model, CORPUS, DEV, max_updates=200, **penalties, **SMOOTHED, **settings)


def _stream(updates: int, **settings: Any) -> nn.Module:
    model = _recurrent(carries=True, first_state="learned")
    stream = {"batch_size": 35, "steps": 5, "save_every": 3, **COMMON}
    return _fitted(model, CORPUS, DEV, max_updates=updates, **stream, **settings)


def _translator(**settings: Any) -> nn.Module:
    model = Translator.create(PAIRS, SOURCE, TARGET, dropout=0.2, embedding_reach=1.0, tied=True, **SIZES)
    return _fitted(model, PAIRS, DEV_PAIRS, max_updates=30, batch_size=40, pool=3, **SMOOTHED, **settings)


def _two_way(**settings: Any) -> nn.Module:
    both, dev = (BidirectionalCorpus(pairs.source, pairs.target) for pairs in (PAIRS, DEV_PAIRS))
    model = TwoWayTranslator.create(both, SOURCE, TARGET, symmetry=1.0, dropout=0.2, **SIZES)
    return _fitted(model, both, dev, max_updates=10, batch_size=80, **COMMON, **settings)


def _loglinear(**settings: Any) -> nn.Module:
    options = {"optimizer": "adagrad", "l1": 0.1, "l2": 0.1, "batch_size": 60}
    return _fitted(LogLinearModel.create(CORPUS), CORPUS, DEV, max_updates=30, **options, **COMMON, **settings)


def _bfloat16(**settings: Any) -> nn.Module:
    model = _recurrent(dtype="float32")
    return _fitted(model, CORPUS, DEV, max_updates=15, precision="bfloat16", batch_size=80, **COMMON, **settings)


def _replay(**settings: Any) -> nn.Module:
    options = {"replay": OLD, "replay_dev": OLD, "freeze": ("embedding",), "batch_size": 60}
    return _fitted(_recurrent(), CORPUS, DEV, max_updates=25, **options, **COMMON, **settings)


def _fitted(model: nn.Module, *texts: Any, **settings: Any) -> nn.Module:
    result = fit(model, *texts, **settings)
    model.dev_loss, model.best_update = result.progress.best_dev_loss, result.progress.best_update
    return model


# Runs that give the same parameters with any number of processes, and the number of pieces of their batches.
EQUAL_RUNS: dict[str, tuple[Callable[..., nn.Module], int]] = {
    "feed-forward": (lambda **settings: _feedforward("float64", **settings), 3),
    "float32": (lambda **settings: _feedforward("float32", **settings), 2),
    "stream": (lambda **settings: _stream(60, **settings), 3),
    "translator": (_translator, 2),
    "two-way": (_two_way, 2),
    "log-linear": (_loglinear, 2),
    "bfloat16": (_bfloat16, 2),
    "replay": (_replay, 4),
    "partly used": (_partly_used, 2),
}


def arrays_of(model: nn.Module) -> dict[str, Any]:
    arrays = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    losses = {name: vars(model)[name] for name in ("dev_loss", "best_update") if name in vars(model)}
    return {**arrays, **losses}


ALL_UPDATES = 15  # of the run that is resumed


# -- decisions of several processes ------------------------------------------------------------------------------------


def _small(**settings: Any) -> FeedForwardModel:
    return FeedForwardModel.create(CORPUS, order=2, embedding=4, hidden=(5,), **settings)


def _diverging(model: FeedForwardModel, batch: Corpus, generator: Any = None) -> torch.Tensor:
    """A loss that is not finite in process 1, once."""
    losses: torch.Tensor = model(batch, generator=generator).losses
    if process_rank() == 1 and model.training and not hasattr(model, "has_diverged"):
        model.has_diverged = True
        return losses * float("nan")
    return losses


def decisions(directory: Path) -> dict[str, Any]:
    """Return what this process has seen where only one process has a reason to decide."""
    rank, seen = process_rank(), dict[str, Any]()
    events: list[Any] = []
    result = fit(_small(), CORPUS, DEV, objective=_diverging, batch_size=40, max_epochs=2, callback=events.append)
    seen["rolled back"] = [result.progress.rolled_back, result.progress.update]
    seen["events"] = [sum(isinstance(event, kind) for event in events) for kind in (TrainingStarted, StepReport)]

    def stop(model: FeedForwardModel, batch: Corpus, generator: Any = None) -> torch.Tensor:
        if rank == 1 and model.training:
            os.kill(os.getpid(), signal.SIGTERM)
        return model(batch, generator=generator).losses

    try:
        fit(_small(), CORPUS, objective=stop, batch_size=40, output=directory / f"stopped-{rank}")
    except StoppedError as error:
        seen["stopped"] = [str(error).replace(str(directory), ""), error.exit_code]
    if not rank:
        (directory / "file").touch()
    for name, text, model, output in (
        ("another text", CORPUS if rank else DEV, {}, directory / "file"),
        ("an existing file", CORPUS, {}, directory / "file"),
        ("another dropout", CORPUS, {"dropout": rank / 10}, None),
        ("another type", CORPUS, {"dtype": ("float32", "float64")[rank]}, None),
        ("no output", CORPUS, {}, None if rank else directory / "one"),
    ):
        try:
            fit(_small(**model), text, max_epochs=1, output=output)
        except DataError as error:
            seen[name] = str(error).replace(str(directory), "")
    result = fit(_small(), CORPUS, max_epochs=1, output=directory / "forced", force=not rank)
    seen["force of one"] = result.progress.update
    given = {"model": [], "training": ["max_epochs"]}
    times = iter([10.0 * rank + number for number in range(10**6)])
    plan = plan_language_model(
        RecurrentModel, CORPUS, DEV, RecurrentModel.config_class(), TrainingConfig(), given, 0.05, lambda: next(times)
    )
    seen["plan"] = [plan.training.model_dump(mode="json"), plan.model.model_dump(mode="json")]
    timed = _small()
    result = fit(timed, CORPUS, DEV, minutes=0.01, max_epochs=None, schedule="linear", output=directory / "timed")
    seen["timed"] = [result.progress.to_json(), sum(float(tensor.sum()) for tensor in timed.parameters())]
    return seen


def failure(directory: Path) -> dict[str, Any]:
    """Return the error of process 0 when the last process is killed while it trains."""
    rank, size = process_rank(), communicator().world_size

    def die(model: FeedForwardModel, batch: Corpus, generator: Any = None) -> torch.Tensor:
        if rank == size - 1 and model.training:
            os.kill(os.getpid(), signal.SIGKILL)
        return model(batch, generator=generator).losses

    try:
        fit(_small(), CORPUS, objective=die, batch_size=40)
    except DragomanError as error:
        return {"error": str(error), "type": type(error).__name__}
    return {}


def _write(directory: Path, name: str, model: nn.Module) -> None:
    np.savez(directory / f"{name}-{os.environ['RANK']}.npz", **arrays_of(model))


def _become(processes: int, port: str) -> None:
    """Set the variables that torchrun sets, for this number of processes."""
    disconnect()
    os.environ |= {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}


def _write_seen(directory: Path, name: str, seen: dict[str, Any]) -> None:
    (directory / f"{name}-{process_rank()}.json").write_text(json.dumps(seen))


def main() -> None:
    directory, first_port, second_port = Path(sys.argv[1]), *sys.argv[2:]
    rank = int(os.environ["RANK"])
    if rank < 2:
        _become(2, first_port)
        for name, (run, pieces) in EQUAL_RUNS.items():
            _write(directory, name, run(pieces=pieces))
        _stream(5, output=directory / "resumed")
        _write_seen(directory, "decisions", decisions(directory))
    if rank == 0:
        _become(1, first_port)
        _stream(10, output=directory / "resumed")
    _become(3, second_port)
    _write(directory, "resumed", _stream(ALL_UPDATES, output=directory / "resumed"))
    _write_seen(directory, "failure", failure(directory))


if __name__ == "__main__":
    main()
