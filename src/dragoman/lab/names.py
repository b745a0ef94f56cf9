"""Words made up as they are needed: names of syllables, and numbers in digits. Translators have to copy them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, product
from typing import TypeVar

from dragoman.lab.weights import falling, shares

CONSONANTS = "mlnrtsbvdwj"
VOWELS = "aoieu"
FEMALE, MALE = "ai", "ou"  # how names end
SYLLABLES = tuple(c + v for v in VOWELS for c in CONSONANTS)

K = TypeVar("K")


@dataclass(frozen=True)
class Names:
    """Names of two or three syllables; the last one tells women's from men's.

    >>> women = Names.ending(FEMALE)
    >>> women.prob("malina") > 0, women.prob("malino"), women.prob("mal")
    (True, 0.0, 0.0)
    """

    first: Mapping[str, float]  # a syllable before the last, and its share
    last: Mapping[str, float]
    lengths: Mapping[int, float]  # syllables before the last
    tags: tuple[str, str] = ("NE", "NNP")
    _cumulative: tuple[Sequence[float], Sequence[float], Sequence[float]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        cumulative = tuple(list(accumulate(part.values())) for part in (self.first, self.last, self.lengths))
        object.__setattr__(self, "_cumulative", cumulative)

    @classmethod
    def ending(cls, vowels: str, syllables: Sequence[str] = SYLLABLES) -> Names:
        first = shares(dict(zip(syllables, falling(len(syllables)), strict=True)))
        last = shares({syllable: share for syllable, share in first.items() if syllable[-1] in vowels})
        return cls(first, last, {1: 0.4, 2: 0.6})

    def draw(self, uniform: Callable[[], float]) -> str:
        first, last, lengths = self._cumulative
        beginning = [_pick(self.first, first, uniform()) for _ in range(_pick(self.lengths, lengths, uniform()))]
        return "".join(beginning) + _pick(self.last, last, uniform())

    def prob(self, word: str) -> float:
        parts = [word[start : start + 2] for start in range(0, len(word), 2)]
        beginning = math.prod(self.first.get(part, 0.0) for part in parts[:-1])
        return self.lengths.get(len(parts) - 1, 0.0) * beginning * self.last.get(parts[-1], 0.0) if parts else 0.0

    def words(self) -> Iterator[str]:
        for length in self.lengths:
            yield from map("".join, product(*[self.first] * length, self.last))

    def entropy(self) -> float:
        """Syllables are of one size, so that a name says how it was made: the parts' entropies add up."""
        syllables = math.fsum(length * share for length, share in self.lengths.items())
        return _entropy(self.lengths) + syllables * _entropy(self.first) + _entropy(self.last)


@dataclass(frozen=True)
class Digits:
    """Numbers written in digits, all alike."""

    smallest: int = 100
    largest: int = 999
    tags: tuple[str, str] = ("CARD", "CD")

    def draw(self, uniform: Callable[[], float]) -> str:
        return str(self.smallest + int(uniform() * self._count()))

    def prob(self, word: str) -> float:
        is_number = word.isascii() and word.isdigit() and len(word) <= len(str(self.largest))
        fits = is_number and self.smallest <= int(word) <= self.largest and word == str(int(word))
        return 1 / self._count() if fits else 0.0

    def words(self) -> Iterator[str]:
        return map(str, range(self.smallest, self.largest + 1))

    def entropy(self) -> float:
        return math.log(self._count())

    def _count(self) -> int:
        return self.largest - self.smallest + 1


def _pick(choices: Mapping[K, float], cumulative: Sequence[float], number: float) -> K:
    place = min(bisect_right(cumulative, number), len(cumulative) - 1)
    return list(choices)[place]


def _entropy(distribution: Mapping[K, float]) -> float:
    return -math.fsum(share * math.log(share) for share in distribution.values())
