"""How the learning rate changes, as a function of how far training is."""

from __future__ import annotations

import math
from collections.abc import Callable

from dragoman.training.config import TrainingConfig

# By the share of the training that is done (0 to 1) and the number of the step.
SCHEDULES: dict[str, Callable[[float, int, TrainingConfig], float]] = {
    "constant": lambda share, update, config: 1.0,
    "linear": lambda share, update, config: 1.0 - share,
    "cosine": lambda share, update, config: 0.5 * (1.0 + math.cos(math.pi * share)),
    "inverse-sqrt": lambda share, update, config: math.sqrt(max(config.warmup, 1) / max(config.warmup, update, 1)),
}


def scheduled_learning_rate(config: TrainingConfig, update: int, share: float) -> float:
    """The learning rate of a step, before decay on plateaus: warmed up, then by the schedule.

    >>> config = TrainingConfig(learning_rate=0.1, warmup=4, schedule="linear")
    >>> [round(scheduled_rate(config, update, update / 8), 3) for update in range(8)]
    [0.025, 0.044, 0.056, 0.062, 0.05, 0.038, 0.025, 0.013]
    """
    warm = min(1.0, (update + 1) / config.warmup) if config.warmup else 1.0
    return config.learning_rate * warm * SCHEDULES[config.schedule](min(max(share, 0.0), 1.0), update, config)
