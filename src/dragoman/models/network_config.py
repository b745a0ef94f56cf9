"""Settings that all neural networks share; apart from the networks, as telling them must not wait for torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from dragoman.core.settings import Settings


class NetworkConfig(Settings):
    """Words as vectors on the way in, and a softmax on the way out."""

    embedding: int = Field(default=200, ge=1)
    """Length of the vector that stands for a word."""
    embedding_reach: float = Field(default=0.1, gt=0)
    """First vectors of words have numbers between minus this and this: small ones start nearly linear,
    large ones let combinations of words be found sooner."""
    tied: bool = False
    """Use the words' vectors as the output weights too; the last hidden layer is brought to their length."""
    softmax: Literal["full", "frequency", "brown"] = "full"
    """full: over all words; else over classes and then the words of one, which trains faster: classes of like
    frequency, or Brown classes."""
    softmax_classes: int | None = Field(default=None, ge=1)
    """How many classes such a softmax has. Default: the square root of the number of words."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of each hidden layer that is left out at random in training."""
    embedding_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of the words' vectors' elements that is left out at random in training."""
    precision: Literal["float32", "float64"] = "float32"
    """Of all numbers; the longer ones take twice the time and memory."""

    @model_validator(mode="after")
    def _check_softmax(self) -> Self:
        if self.softmax_classes is not None and self.softmax == "full":
            raise ValueError("softmax_classes are for a softmax by frequency or brown; set softmax, or leave them out")
        return self
