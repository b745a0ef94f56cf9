"""Settings of recurrent models, in a module that does not import torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from dragoman.models.network_config import NetworkConfig


class RecurrentConfig(NetworkConfig):
    """Settings of a recurrent language model."""

    cell: Literal["rnn", "lstm-without-forget-gate", "lstm", "gru"] = "lstm"
    """Recurrent cell: rnn is an Elman network, lstm has a forget gate, gru has the tutorial's equations."""
    layers: int = Field(default=1, ge=1, le=100)
    """Number of recurrent layers."""
    hidden: int = Field(default=200, ge=1)
    """Hidden size of each layer."""
    residual: bool = False
    """Add the input of each layer to its output; embedding and hidden must be equal."""
    first_state: Literal["zero", "learned"] = "zero"
    """Initial state of a sentence, or with carries of a text: zero or learned."""
    carries: bool = False
    """Start each sentence from the state after the one before. Training then reads the text as a stream with truncated
    back-propagation, as published results on the Penn Treebank do."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Dropout rate of each layer's output."""
    variational: bool = False
    """Variational dropout: drop the same elements at every step of a sentence or segment."""
    weight_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout rate of the recurrent weights."""

    @model_validator(mode="after")
    def _check_residual(self) -> Self:
        if self.residual and self.embedding != self.hidden:
            sizes = f"embedding {self.embedding}, hidden {self.hidden}"
            raise ValueError(f"residual connections need layers of the same size ({sizes})")
        return self
