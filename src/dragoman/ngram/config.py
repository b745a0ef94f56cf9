"""The settings of an n-gram model."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from dragoman.core.settings import Settings

IMPORTED: Final = "imported"  # the smoothing of a model that was read from an ARPA file
MAX_GAP = 100

Smoothing = Literal[
    "maximum-likelihood",
    "whole-prefix",
    "interpolated",
    "interpolated-fitted",
    "interpolated-bucketed",
    "witten-bell",
    "katz",
    "absolute-discounting",
    "kneser-ney",
    "modified-kneser-ney",
    "stupid-backoff",
    "imported",
]


class NgramConfig(Settings, use_attribute_docstrings=False):
    """How an n-gram model is trained."""

    order: Annotated[int, Field(ge=1)] = 5
    """n: a word is predicted from the n - 1 words before it."""
    smoothing: Smoothing = "modified-kneser-ney"
    """The smoothing method, one of `dragoman.ngram.smoothing.SMOOTHINGS`."""
    coefficients: tuple[float, ...] = ()
    """alpha_1, alpha_2, ... of the smoothing `interpolated`."""
    prune: tuple[int, ...] = ()
    """Drop n-grams that occur this often or less, for orders 1, 2, ...; the last threshold is used for higher orders."""
    entropy_prune: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Drop n-grams whose removal raises the perplexity by less than this share."""
    quantise: bool = False
    """Store probabilities in 8 bits."""
    gap: Annotated[int, Field(ge=0, le=MAX_GAP)] = 0
    """Words skipped between the context and the predicted word (a skip n-gram)."""
    interpolate_unigrams: bool = True
    """Interpolate unigrams with a uniform distribution; otherwise their remaining mass goes to `<unk>`."""

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        prune, coefficients = (",".join(map(str, numbers)) for numbers in (self.prune, self.coefficients))
        if self.prune and (self.prune[0] != 0 or list(self.prune) != sorted(self.prune)):
            raise ValueError(f"prune {prune}: thresholds must start at 0 (all words stay) and never decrease")
        if len(self.prune) > self.order:
            raise ValueError(f"prune {prune}: {len(self.prune)} thresholds, but order {self.order}")
        if not all(0 < alpha < 1 for alpha in self.coefficients):
            raise ValueError(f"coefficients {coefficients}: each must be between 0 and 1")
        if self.coefficients and self.smoothing != "interpolated":
            raise ValueError(f"coefficients {coefficients}: only for interpolated, not for {self.smoothing}")
        if self.coefficients and len(self.coefficients) != self.order:
            raise ValueError(
                f"{len(self.coefficients)} coefficients given, but order {self.order} needs {self.order} "
                "(alpha_1, alpha_2, ...)"
            )
        if self.smoothing == "whole-prefix" and (self.gap or self.prune or self.entropy_prune):
            raise ValueError("whole-prefix takes neither a gap nor pruning")
        return self
