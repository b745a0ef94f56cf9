"""Which unknown word was it? The second half of what an unknown word costs.

A model pays for the class `<unk>`; the models here say which word of that class it was. Each is a distribution over
the spellings outside the vocabulary. (One that spells words out by characters is in `dragoman.ngram.spelling`.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dragoman.core.errors import DataError

DEFAULT_LANGUAGE_SIZE = 10_000_000  # the tutorial's guess at the number of words in a language


class UnknownWordModel(Protocol):
    """A distribution over the words outside a vocabulary."""

    @property
    def language_size(self) -> int:
        """|V_all|: how many words the language is taken to have."""
        ...

    def log_probs(self, spellings: Iterable[str]) -> list[float]:
        """log P(spelling | it is unknown), for each."""
        ...

    def config(self) -> dict[str, Any]:
        """What `config.yaml` keeps of it."""
        ...

    def members(self) -> Mapping[str, Any]:
        """Models inside it, kept in directories of their own."""
        ...


@dataclass(frozen=True)
class UniformUnknownWords:
    """P_unk(e) = 1 / (|V_all| - |V|): a language of `total` words, all unknown ones alike.

    >>> Uniform(known=2, total=102).log_probs(["x"]) == [-math.log(100)]
    True
    """

    num_known: int  # words the vocabulary has, `</s>` among them
    language_size: int = DEFAULT_LANGUAGE_SIZE

    def __post_init__(self) -> None:
        if self.language_size <= self.num_known:
            raise DataError(
                f"the vocabulary alone has {self.num_known} words: a language of {self.language_size} leaves no unknown ones; "
                "say a larger --unknown-words"
            )

    def log_probs(self, spellings: Iterable[str]) -> list[float]:
        share = -math.log(self.language_size - self.num_known)
        return [share for _ in spellings]

    def config(self) -> dict[str, Any]:
        return {"kind": "uniform", "total": self.language_size}

    def members(self) -> Mapping[str, Any]:
        return {}


@dataclass(frozen=True)
class ClosedVocabulary:
    """A closed vocabulary: every word outside it is impossible.

    The class `<unk>` itself, which a text may spell out literally, counts as one more word, as it does for KenLM.
    """

    num_known: int

    @property
    def language_size(self) -> int:
        return self.num_known + 1

    def log_probs(self, spellings: Iterable[str]) -> list[float]:
        return [-math.inf for _ in spellings]

    def config(self) -> dict[str, Any]:
        return {"kind": "none"}

    def members(self) -> Mapping[str, Any]:
        return {}
