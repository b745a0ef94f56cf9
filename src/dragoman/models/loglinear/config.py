"""The settings of a log-linear model."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import AliasChoices, Field, field_validator, model_validator

from dragoman.core.settings import Settings

MAX_HASH_BITS = 29  # 2 GiB of float32 weights


class LogLinearConfig(Settings):
    """The features of a log-linear model and the storage of its weights."""

    features: tuple[str, ...] = ("5-gram",)
    """Feature templates: word1, class2, suffix1, up to four of these joined by +; bag; presets 5-gram, words-4."""
    weights: Literal["auto", "seen", "full", "hashed"] = "auto"
    """Weights of a feature: for the next words seen with it, for all words, or in a hash table of bounded size."""
    min_seen: int = Field(1, ge=1)
    """Features, and pairs of feature and next word, that occur less often have no weight."""
    hash_bits: int = Field(24, ge=1, le=MAX_HASH_BITS)
    """Only for hashed weights: the table has 2 to the power of this many weights."""
    suffix_types: int = Field(20, ge=1)
    """An ending is a suffix if at least this many words of the vocabulary share it."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the active features that training leaves out."""
    dtype: Literal["float32", "float64"] = Field(default="float32", validation_alias=AliasChoices("dtype", "precision"))
    """Type of weights and gradients. Scores and probabilities always have 64 bits."""

    @field_validator("features", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """Split the comma-separated features of the command line."""
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(","))
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _check_hash_bits(self) -> Self:
        """Refuse a table size that would have no effect."""
        if self.weights != "hashed" and self.hash_bits != type(self).model_fields["hash_bits"].default:
            remedy = "choose hashed weights, or leave hash_bits out"
            raise ValueError(f"hash_bits {self.hash_bits} has no effect with {self.weights} weights; {remedy}")
        return self
