"""Settings of training to begin with, for each kind of model: what served on the Penn Treebank and the laboratory."""

from __future__ import annotations

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
