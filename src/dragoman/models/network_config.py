"""Settings of all neural networks, in a module that does not import torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from dragoman.core.settings import Settings


class NetworkConfig(Settings):
    """Settings of embedding and output layer."""

    embedding: int = Field(default=200, ge=1)
    """Embedding size."""
    embedding_reach: float = Field(default=0.1, gt=0)
    """Embeddings are initialised uniformly in [-X, X]."""
    tied: bool = False
    """Use the embedding as output weights; the last hidden layer is projected to its size."""
    softmax: Literal["full", "frequency", "brown"] = "full"
    """Softmax over all words (full), or over classes and the words of a class, which trains faster: classes by
    frequency, or Brown classes."""
    softmax_classes: int | None = Field(default=None, ge=1)
    """Number of classes of the softmax. Default: the square root of the vocabulary size."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout rate of hidden layers."""
    embedding_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout rate of embeddings."""
    precision: Literal["float32", "float64"] = "float32"
    """Precision of all numbers; float64 needs twice the time and memory."""

    @model_validator(mode="after")
    def _check_softmax(self) -> Self:
        if self.softmax_classes is not None and self.softmax == "full":
            raise ValueError("softmax_classes is for the softmax frequency or brown; set softmax, or leave it out")
        return self
