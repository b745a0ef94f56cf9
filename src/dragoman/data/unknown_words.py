"""Unknown-word models: distributions over the spellings outside a vocabulary.

A language model gives the probability of the class `<unk>`; an unknown-word model gives the probability of the word
within that class. The model that spells words by characters is in `dragoman.ngram.spelling`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dragoman.core.errors import DataError
from dragoman.core.types import Json

if TYPE_CHECKING:
    from dragoman.data.vocabulary import Vocab

DEFAULT_LANGUAGE_SIZE = 10_000_000  # the tutorial's estimate of the number of words in a language


class DistinctWords(Protocol):
    """The distinct words of a training text: a `Corpus`, for example."""

    @property
    def vocab(self) -> Vocab: ...

    @property
    def spellings(self) -> tuple[str, ...]:
        """The words outside the vocabulary."""
        ...


class WritableMember(Protocol):
    """A model that is saved inside another."""

    def write_into(self, directory: Path) -> None: ...


class UnknownWordModel(Protocol):
    """A distribution over the words outside a vocabulary."""

    @property
    def language_size(self) -> int:
        """|V_all|: the assumed number of words in the language."""
        ...

    def log_probs(self, spellings: Iterable[str]) -> list[float]:
        """Return log P(spelling | unknown) for each spelling."""
        ...

    @property
    def spells(self) -> bool:
        """Whether words can be sampled."""
        ...

    def sample(self, generator: np.random.Generator) -> str | None:
        """Sample an unknown word, or return None if this is not possible."""
        ...

    def config(self) -> dict[str, Json]:
        """Return the entries for `config.yaml`."""
        ...

    def members(self) -> Mapping[str, WritableMember]:
        """Return the models inside this one, saved in subdirectories of these names."""
        ...


@dataclass(frozen=True)
class UniformUnknownWords:
    """P_unk(e) = 1 / (|V_all| - |V|): all unknown words of a language of a given size are equally likely.

    >>> UniformUnknownWords(num_known=2, language_size=102).log_probs(["x"]) == [-math.log(100)]
    True
    """

    num_known: int  # words in the vocabulary, including `</s>`
    language_size: int = DEFAULT_LANGUAGE_SIZE

    def __post_init__(self) -> None:
        if self.language_size <= self.num_known:
            raise DataError(
                f"the vocabulary has {self.num_known} words, so a language of {self.language_size} words has no "
                "unknown ones; give a larger --unknown-words"
            )

    def log_probs(self, spellings: Iterable[str]) -> list[float]:
        log_prob = -math.log(self.language_size - self.num_known)
        return [log_prob for _ in spellings]

    @property
    def spells(self) -> bool:
        return False

    def sample(self, generator: np.random.Generator) -> str | None:
        return None

    def config(self) -> dict[str, Json]:
        return {"kind": "uniform", "total": self.language_size}

    def members(self) -> Mapping[str, WritableMember]:
        return {}


@dataclass(frozen=True)
class ClosedVocabulary:
    """A closed vocabulary: words outside it have probability 0.

    The class `<unk>`, which may appear literally in a text, counts as one more word, as in KenLM.
    """

    num_known: int

    @property
    def language_size(self) -> int:
        return self.num_known + 1

    def log_probs(self, spellings: Iterable[str]) -> list[float]:
        return [-math.inf for _ in spellings]

    @property
    def spells(self) -> bool:
        return False

    def sample(self, generator: np.random.Generator) -> str | None:
        return None

    def config(self) -> dict[str, Json]:
        return {"kind": "none"}

    def members(self) -> Mapping[str, WritableMember]:
        return {}
