"""The settings of a feed-forward model; apart from it, as telling them must not wait for torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from dragoman.settings import Settings


class FeedForwardConfig(Settings):
    """The shape of a feed-forward language model."""

    order: int = Field(default=5, ge=2, le=100)
    """n: a word is predicted from the n - 1 before it."""
    embedding: int = Field(default=200, ge=1)
    """Length of the vector that stands for a word."""
    embedding_reach: float = Field(default=0.1, gt=0)
    """First vectors of words have numbers between minus this and this: small ones start nearly linear,
    large ones let combinations of words be found sooner."""
    hidden: tuple[PositiveInt, ...] = (400,)
    """Sizes of the hidden layers, from the first to the last."""
    activation: Literal["tanh", "relu"] = "tanh"
    """What makes a hidden layer more than a matrix."""
    direct: bool = False
    """Connect the words' vectors with the scores directly as well, past the hidden layers."""
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
    def _check(self) -> Self:
        if self.softmax_classes is not None and self.softmax == "full":
            raise ValueError("softmax_classes are for a softmax by frequency or brown; set softmax, or leave them out")
        return self
