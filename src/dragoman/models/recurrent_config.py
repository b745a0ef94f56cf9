"""The settings of a recurrent model; apart from it, as telling them must not wait for torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from dragoman.models.network_config import NetworkConfig


class RecurrentConfig(NetworkConfig):
    """The shape of a recurrent language model."""

    cell: Literal["rnn", "lstm-without-forget-gate", "lstm", "gru"] = "lstm"
    """The recurrence: rnn is Elman's, lstm has a forget gate, gru is as the tutorial writes it."""
    layers: int = Field(default=1, ge=1, le=100)
    """Recurrent layers on top of each other."""
    hidden: int = Field(default=200, ge=1)
    """Length of the hidden state of each layer."""
    residual: bool = False
    """Add what comes into each layer to what comes out of it; embedding and hidden have to be of one length."""
    first_state: Literal["zero", "learned"] = "zero"
    """Where a sentence, or with `carries` a text, begins: at zero, or at a state that is learned."""
    carries: bool = False
    """Begin each sentence where the one before ended, for texts whose sentences belong together. Training then reads
    the text as a stream (truncated back-propagation), as published results on the Penn Treebank do."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Share of each layer's output that is left out at random in training."""
    variational: bool = False
    """Let dropout leave out the same elements at every step of a sentence or segment."""
    weight_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of the recurrent weights (from state to state) that is left out at random in training."""

    @model_validator(mode="after")
    def _check_residual(self) -> Self:
        if self.residual and self.embedding != self.hidden:
            sizes = f"embedding {self.embedding}, hidden {self.hidden}"
            raise ValueError(f"residual connections add layers up, which must be of one length ({sizes})")
        return self
