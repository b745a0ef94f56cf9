"""Training a saved model further: its architecture stays, settings of training may change."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TypeVar

from dragoman.core.errors import DataError
from dragoman.core.settings import Settings, format_value, validate
from dragoman.models.loading import load
from dragoman.models.neural import NeuralModel
from dragoman.models.quantized import check_is_trainable

N = TypeVar("N", bound=NeuralModel)

# Settings of models that change training only, not which parameters there are or what they mean.
TRAINING_SETTINGS = frozenset(
    {"dropout", "embedding_dropout", "weight_dropout", "variational", "supervision", "fertility_penalty"}
)


def load_for_training(path: str | Path, model_class: type[N], settings: Settings, given: Collection[str]) -> N:
    """Load a model to train it further.

    Args:
        path: The model directory.
        model_class: The class that the model must have.
        settings: Settings for the new training.
        given: The names of those of them that replace the model's. Only those of training may differ from the model's.
    """
    model = load(path)
    check_is_trainable(model, f"--from {path}")
    if not isinstance(model, model_class):
        raise DataError(
            f"--from {path}: is a model of kind {model.kind}, not {model_class.kind}; name one of this kind"
        )
    changed = {name: getattr(settings, name) for name in given}
    for name, value in changed.items():
        old = getattr(model.settings, name)
        if value != old and name not in TRAINING_SETTINGS:
            flag, values = f"--{name.replace('_', '-')}", f"{format_value(old)}, not {format_value(value)}"
            raise DataError(
                f"{flag}: the model of --from {path} has {values}, and its architecture stays; remove {flag}"
            )
    if all(value == getattr(model.settings, name) for name, value in changed.items()):
        return model
    return model.with_settings(validate(model.settings, changed, "settings"))
