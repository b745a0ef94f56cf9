"""The progress of a training run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, replace

from dragoman.training.config import TrainingConfig
from dragoman.training.pace import Pace

ADDED_FIELDS = {"pace"}  # that checkpoints of earlier versions do not have


@dataclass(frozen=True)
class Progress:
    """Progress of a training run. With the parameters and the optimizer's state, all that is needed to resume it."""

    epoch: int = 0  # completed epochs
    batch: int = 0  # batches done in the current epoch
    update: int = 0  # updates done
    seconds: float = 0.0  # of training, in all runs
    best_dev_loss: float | None = None
    best_update: int = 0  # update of the best dev loss
    evaluations_without_improvement: int = 0
    rate_factor: float = 1.0  # of the learning rate, after plateaus and roll-backs
    rolled_back: bool = False  # whether a loss was not finite
    loss: float = 0.0  # sum since the last line of metrics.jsonl
    predictions: int = 0  # number of predictions in that sum
    averaged_steps: int = 0  # updates whose parameters are in the average
    stop_reason: str = ""  # once training has ended
    pace: Pace = field(default_factory=Pace)  # how many updates there is time for

    def fraction_done(self, config: TrainingConfig, batches: int) -> float:
        """Return the fraction of the training run that is done, by the nearest limit."""
        fractions = [self.pace.fraction_at(self.update)]
        if config.max_epochs is not None:
            fractions.append((self.epoch + self.batch / batches) / config.max_epochs)
        if config.max_updates is not None:
            fractions.append(self.update / config.max_updates)
        return max(fractions)

    def limit_reached(self, config: TrainingConfig) -> str:
        """Return the limit that ends training here, or an empty string."""
        if config.max_epochs is not None and self.epoch >= config.max_epochs:
            return _count(config.max_epochs, "epoch")
        if config.max_updates is not None and self.update >= config.max_updates:
            return _count(config.max_updates, "update")
        if self.pace.end is not None and self.update >= self.pace.end:
            if self.pace.plateau:
                return "the dev loss stopped improving"
            return f"{config.minutes:g} minute{'' if config.minutes == 1 else 's'}"
        return ""

    def evaluation_due(self, config: TrainingConfig) -> bool:
        """Return whether to evaluate: after each epoch, or after a number of updates, and at the end of training."""
        due = self.update % config.check_every == 0 if config.check_every else self.batch == 0
        if due and config.check_every and self.pace.end is not None:
            due = self.pace.end - self.update > config.check_every // 2  # otherwise the one at the end follows soon
        return due or bool(self.limit_reached(config))

    def _patience_exceeded(self, config: TrainingConfig) -> str:
        evaluations = self.evaluations_without_improvement
        return f"{_count(evaluations, 'evaluation')} without improvement" if evaluations >= config.patience else ""

    def with_new_limits(self, config: TrainingConfig) -> Progress:
        """Return the progress under other limits: finished if one of them is reached.

        With more time, training continues with the learning rate of the fraction of the time that is over.
        """
        pace = Pace()
        if config.minutes is not None:
            fraction = min(1.0, self.seconds / (60 * config.minutes))
            end = self.update if fraction == 1 else None
            pace = Pace(self.update, fraction, end, self.update + 1, self.seconds)
        after = replace(self, pace=pace, averaged_steps=0)
        return replace(after, stop_reason=after.limit_reached(config) or after._patience_exceeded(config))

    def after_batch(self, batches: int, loss: float, predictions: int) -> Progress:
        """Return the progress after one more batch."""
        epoch_ended = self.batch + 1 >= batches
        return replace(
            self,
            epoch=self.epoch + epoch_ended,
            batch=0 if epoch_ended else self.batch + 1,
            update=self.update + 1,
            loss=self.loss + loss,
            predictions=self.predictions + predictions,
        )

    def after_evaluation(self, loss: float | None, config: TrainingConfig) -> Progress:
        """Return the progress after an evaluation; without a dev text (loss None), the last update is the best."""
        if loss is None or self.best_dev_loss is None or loss < self.best_dev_loss:
            return replace(self, best_dev_loss=loss, best_update=self.update, evaluations_without_improvement=0)
        after = replace(
            self,
            evaluations_without_improvement=self.evaluations_without_improvement + 1,
            rate_factor=self.rate_factor * config.decay,
        )
        return replace(after, stop_reason=after._patience_exceeded(config))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Progress:
        values = json.loads(text)
        names = {field.name for field in fields(cls)}
        if not names - ADDED_FIELDS <= values.keys() <= names:
            raise ValueError("progress with other fields")
        return cls(**{**values, "pace": Pace(**values.get("pace", {}))})


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
