"""What the verbs that train by gradients have in common: going on where an earlier run stopped, and telling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.cli.messages import say
from dragoman.cli.training import Material, Outcome, UnknownChoice, VocabChoice, read_material, suggest_after, tell
from dragoman.cli.watching import watching

if TYPE_CHECKING:
    from dragoman.models.neural import NeuralModel
    from dragoman.training.config import TrainingConfig
    from dragoman.training.fit import Fitted


@dataclass(frozen=True)
class Job:
    """What was asked for on the command line."""

    text: str
    dev_text: str | None
    field: str | None
    vocab: VocabChoice
    unknown: UnknownChoice
    output: Path
    force: bool


def train_by_gradients(job: Job, create: Callable[[Material], NeuralModel], training: TrainingConfig) -> None:
    """Read, train, tell. A training that was stopped goes on; one that is finished is left as it is."""
    from dragoman.storage import CHECKPOINT, check_free
    from dragoman.training.fit import fit

    began = perf_counter()
    if not (job.output / CHECKPOINT).is_file():
        check_free(job.output, replace=job.force)
    material = read_material(job.text, job.dev_text, job.field, job.vocab, job.unknown)
    model = create(material)
    with watching() as report:
        fitted = fit(model, material.corpus, material.dev, training, output=job.output, force=job.force, report=report)
    if fitted.was_finished:
        say(f"{job.output}: finished already, after {_ended(fitted)}; --force trains anew")
    else:
        say(f"finished after {_ended(fitted)}")
        size = f"{sum(tensor.numel() for tensor in model.parameters().values()):,} parameters"
        tell(Outcome(model, size, began), job.output, dev_text=job.dev_text, material=material)
    suggest_after(job.output, job.dev_text, job.field)


def _ended(fitted: Fitted) -> str:
    position = fitted.position
    kept = f"; the model kept is that of update {position.best_update:,}" if position.best is not None else ""
    return f"{position.update:,} updates ({fitted.why}){kept}"
