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

ALL_WORDS = 10_000_000  # the tutorial's guess at the number of words in a language


class UnknownWords(Protocol):
    """A distribution over the words outside a vocabulary."""

    @property
    def total(self) -> int:
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
class Uniform:
    """P_unk(e) = 1 / (|V_all| - |V|): a language of `total` words, all unknown ones alike.

    >>> Uniform(known=2, total=102).log_probs(["x"]) == [-math.log(100)]
    True
    """

    known: int  # words the vocabulary has, `</s>` among them
    total: int = ALL_WORDS

    def __post_init__(self) -> None:
        if self.total <= self.known:
            raise DataError(
                f"the vocabulary alone has {self.known} words: a language of {self.total} leaves no unknown ones; "
                "say a larger --unknown-words"
            )

    def log_probs(self, spellings: Iterable[str]) -> list[float]:
        share = -math.log(self.total - self.known)
        return [share for _ in spellings]

    def config(self) -> dict[str, Any]:
        return {"kind": "uniform", "total": self.total}

    def members(self) -> Mapping[str, Any]:
        return {}


@dataclass(frozen=True)
class Closed:
    """A closed vocabulary: every word outside it is impossible.

    The class `<unk>` itself, which a text may spell out literally, counts as one more word, as it does for KenLM.
    """

    known: int

    @property
    def total(self) -> int:
        return self.known + 1

    def log_probs(self, spellings: Iterable[str]) -> list[float]:
        return [-math.inf for _ in spellings]

    def config(self) -> dict[str, Any]:
        return {"kind": "none"}

    def members(self) -> Mapping[str, Any]:
        return {}
