"""Settings of feed-forward models, in a module that does not import torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt

from dragoman.models.network_config import NetworkConfig


class FeedForwardConfig(NetworkConfig):
    """Settings of a feed-forward language model."""

    order: int = Field(default=5, ge=2, le=100)
    """Order n: a word is predicted from the n - 1 words before it."""
    hidden: tuple[PositiveInt, ...] = (400,)
    """Sizes of the hidden layers."""
    activation: Literal["tanh", "relu"] = "tanh"
    """Activation function of hidden layers."""
    direct: bool = False
    """Also connect the embeddings directly with the output layer."""
