"""The settings of a log-linear model."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from dragoman.settings import Settings


class LogLinearConfig(Settings):
    """What a log-linear model looks at, and how it keeps its weights."""

    features: tuple[str, ...] = ("5-gram",)
    """What is looked at: word1, class2, suffix1, joined by + up to four at a time; bag; presets 5-gram, words-4."""
    weights: Literal["auto", "seen", "full", "hashed"] = "auto"
    """Which weights a feature has: of the next words seen with it, of all words, or windows of one bounded table."""
    min_seen: int = Field(1, ge=1)
    """Features, and pairs of feature and next word, that were seen less often have no weight."""
    hash_bits: int = Field(24, ge=1, le=32)
    """With hashed weights: the table has 2 to the power of this many."""
    suffix_types: int = Field(20, ge=1)
    """Words of the vocabulary that must share an ending for it to be a suffix."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the active features that is left out in training."""
    precision: Literal["float32", "float64"] = "float32"
    """Bits of a weight. Sums are always taken in 64."""

    @field_validator("features", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        """On a command line, features stand in one word with commas between them."""
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(","))
        return tuple(value) if isinstance(value, list) else value
