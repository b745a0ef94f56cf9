"""How far a training is."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields, replace

from dragoman.training.config import TrainingConfig


@dataclass(frozen=True)
class Progress:
    """Where a training is. With the model's parameters and the optimiser's memory, all that it needs to go on."""

    epoch: int = 0  # passes that are complete
    batch: int = 0  # batches done of the next one
    update: int = 0  # steps taken
    seconds: float = 0.0  # spent, in all runs
    best_dev_loss: float | None = None  # dev loss of the model kept
    best_update: int = 0  # when that was
    stale_evaluations: int = 0  # looks at the dev text since
    rate_factor: float = 1.0  # what plateaus and mishaps have left of the learning rate
    rolled_back: bool = False  # after a loss that was not finite
    loss: float = 0.0  # of the training text since the last line of metrics.jsonl, summed
    predictions: int = 0  # predictions that it is the sum over
    averaged_steps: int = 0  # steps whose parameters are in the average
    finished: str = ""  # why it is at its end

    def fraction_done(self, config: TrainingConfig, batches: int) -> float:
        """How much of the training is done, by the bound that is nearest."""
        shares = [(self.epoch + self.batch / batches) / config.max_epochs]
        if config.max_updates is not None:
            shares.append(self.update / config.max_updates)
        if config.minutes is not None:
            shares.append(self.seconds / (60 * config.minutes))
        return max(shares)

    def limit_reached(self, config: TrainingConfig) -> str:
        """Which bound ends the training here, if one does."""
        if self.epoch >= config.max_epochs:
            return _counted(config.max_epochs, "epoch")
        if config.max_updates is not None and self.update >= config.max_updates:
            return _counted(config.max_updates, "update")
        if config.minutes is not None and self.seconds >= 60 * config.minutes:
            return f"{config.minutes:g} minutes"
        return ""

    def with_new_limits(self, config: TrainingConfig) -> Progress:
        """With other bounds: at its end if it has reached one of these, and else no longer."""
        worn = (
            f"no improvement in {self.stale_evaluations} looks at the dev text"
            if self.stale_evaluations >= config.patience
            else ""
        )
        return replace(self, finished=self.limit_reached(config) or worn, averaged_steps=0)

    def after_batch(self, batches: int, loss: float, items: int, seconds: float) -> Progress:
        """One batch on; at the last of an epoch, at the beginning of the next."""
        ended = self.batch + 1 >= batches
        return replace(
            self,
            epoch=self.epoch + ended,
            batch=0 if ended else self.batch + 1,
            update=self.update + 1,
            loss=self.loss + loss,
            predictions=self.predictions + items,
            seconds=self.seconds + seconds,
        )

    def after_evaluation(self, loss: float | None, config: TrainingConfig) -> Progress:
        """The dev text has been looked at: a new best, or one more look without. If there is none, the last is best."""
        if loss is None or self.best_dev_loss is None or loss < self.best_dev_loss:
            return replace(self, best_dev_loss=loss, best_update=self.update, stale_evaluations=0)
        stale = self.stale_evaluations + 1
        finished = f"no improvement in {stale} looks at the dev text" if stale >= config.patience else ""
        return replace(self, stale_evaluations=stale, rate_factor=self.rate_factor * config.decay, finished=finished)

    @property
    def mean_loss(self) -> float:
        return self.loss / self.predictions if self.predictions else math.nan

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Progress:
        values = json.loads(text)
        if set(values) != {field.name for field in fields(cls)}:
            raise ValueError("position with other fields")
        return cls(**values)


def _counted(number: int, what: str) -> str:
    """
    >>> _counted(1, "epoch"), _counted(30, "epoch")
    ('1 epoch', '30 epochs')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
