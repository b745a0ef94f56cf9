"""Training presets for each kind of model, tuned on the Penn Treebank and the synthetic corpus."""

from __future__ import annotations

from typing import Any

from dragoman.training.config import TrainingConfig

FEED_FORWARD = TrainingConfig(
    optimizer="adam",
    learning_rate=0.001,
    schedule="linear",
    decay=1.0,
    batch_size=500,
    clip=1.0,
    max_epochs=10,
)
LOG_LINEAR = TrainingConfig(
    optimizer="adagrad",
    learning_rate=2.0,
    schedule="linear",
    decay=1.0,
    batch_size=2000,
    l1=0.6,
    l2=0.08,
    max_epochs=12,
)
RECURRENT = TrainingConfig(
    optimizer="adam",
    learning_rate=0.002,
    schedule="linear",
    decay=1.0,
    batch_size=1000,
    pool=50,
    clip=1.0,
    max_epochs=10,
)
TRANSLATOR = TrainingConfig(
    optimizer="adam",
    learning_rate=0.002,
    schedule="linear",
    decay=1.0,
    warmup=200,
    batch_size=900,
    pool=50,
    clip=1.0,
    label_smoothing=0.1,
    max_epochs=10,
    patience=5,
)


def translator_preset(pairs: int) -> dict[str, Any]:
    """Return the settings that depend on the number of training pairs: fewer pairs need more epochs."""
    if pairs < 3_000:
        return {"max_epochs": 30, "batch_size": 200, "warmup": 50}
    if pairs < 20_000:
        return {"max_epochs": 12, "batch_size": 400}
    if pairs < 100_000:
        return {"max_epochs": 10}
    return {"max_epochs": 10, "batch_size": 1500}
