"""The settings of a feed-forward model; apart from it, as telling them must not wait for torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt

from dragoman.models.network_config import NetworkConfig


class FeedForwardConfig(NetworkConfig):
    """The shape of a feed-forward language model."""

    order: int = Field(default=5, ge=2, le=100)
    """n: a word is predicted from the n - 1 before it."""
    hidden: tuple[PositiveInt, ...] = (400,)
    """Sizes of the hidden layers, from the first to the last."""
    activation: Literal["tanh", "relu"] = "tanh"
    """What makes a hidden layer more than a matrix."""
    direct: bool = False
    """Connect the words' vectors with the scores directly as well, past the hidden layers."""
