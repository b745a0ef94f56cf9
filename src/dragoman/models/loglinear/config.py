"""The settings of a log-linear model."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from dragoman.core.settings import Settings

MAX_HASH_BITS = 29  # of a number of weights that can be asked for: 2 GiB of float32


class LogLinearConfig(Settings):
    """What a log-linear model looks at, and how it keeps its weights."""

    features: tuple[str, ...] = ("5-gram",)
    """What is looked at: word1, class2, suffix1, joined by + up to four at a time; bag; presets 5-gram, words-4."""
    weights: Literal["auto", "seen", "full", "hashed"] = "auto"
    """Which weights a feature has: of the next words seen with it, of all words, or windows of one bounded table."""
    min_seen: int = Field(1, ge=1)
    """Features, and pairs of feature and next word, that were seen less often have no weight."""
    hash_bits: int = Field(24, ge=1, le=MAX_HASH_BITS)
    """With hashed weights alone: the table has 2 to the power of this many."""
    suffix_types: int = Field(20, ge=1)
    """Words of the vocabulary that must share an ending for it to be a suffix."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the active features that is left out in training."""
    precision: Literal["float32", "float64"] = "float32"
    """Bits of a weight and of its gradient. Scores and probabilities are always computed in 64."""

    @field_validator("features", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        """On a command line, features stand in one word with commas between them."""
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(","))
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _only_hashed_weights_have_a_table(self) -> Self:
        """The size of a table that there is not would be silently without effect."""
        if self.weights != "hashed" and self.hash_bits != type(self).model_fields["hash_bits"].default:
            remedy = "choose hashed weights, or leave hash_bits out"
            raise ValueError(f"hash_bits {self.hash_bits} has no meaning with {self.weights} weights; {remedy}")
        return self
