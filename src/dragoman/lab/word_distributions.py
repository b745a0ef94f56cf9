"""How probable words are: lexicon entries by topic, register and kind, and generated names and numbers."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, product
from typing import NamedTuple, TypeVar

from dragoman.lab.grammar import symbol
from dragoman.lab.lexicon import GENERAL, NOUN_KINDS, TOPICS, CrossedQuadruple, Entry, Noun, Phrase, Verb, entries

REGISTER_SHARES = {"formal": 0.45, "casual": 0.55}
NUMBERS = ("sg", "pl")
PERSON_SHARES = {"man": 0.55, "woman": 0.45}
CROSSED_SUBJECTS, CROSSED_OBJECTS = ("subject0", "subject1"), ("object0", "object1")
ROLES = {
    "man": "person",
    "woman": "person",
    "animal": "animal",
    "thing": "thing",
    **dict.fromkeys(CROSSED_SUBJECTS, "person"),
    **dict.fromkeys(CROSSED_OBJECTS, "thing"),
}
FRAME_WEIGHTS = {  # relative frequency of verb frames
    "person": 2.0,
    "animal": 1.2,
    "person>thing": 4.5,
    "person>animal": 1.0,
    "person>person": 1.5,
    "animal>thing": 0.7,
    "animal>animal": 0.5,
    "person>self": 1.2,
    "person~": 0.8,
    "quad": 2.0,
}
RARE_WEIGHT = 0.002  # the most frequent word has weight 1

CONSONANTS = "mlnrtsbvdwj"
VOWELS = "aoieu"
FEMALE, MALE = "ai", "ou"  # final vowels of names
SYLLABLES = tuple(c + v for v in VOWELS for c in CONSONANTS)

K = TypeVar("K")
W = TypeVar("W", Noun, Verb, Phrase)


def zipf_weights(count: int) -> list[float]:
    """Return Zipf-like weights, which decrease with the rank.

    >>> zipf_weights(3)
    [1.0, 0.6666666666666666, 0.5]
    """
    return [2 / (rank + 2) for rank in range(count)]


def normalized(weights: Mapping[K, float]) -> dict[K, float]:
    """Return the weights divided by their sum."""
    total = math.fsum(weights.values())
    return {key: weight / total for key, weight in weights.items()}


def synonym_shares(count: int) -> list[float]:
    """Return the probabilities of synonyms in the order of the lexicon."""
    weights = zipf_weights(count)
    return [weight / math.fsum(weights) for weight in weights]


def with_weights(entries: Iterable[W], *, even: bool = False) -> list[tuple[W, float]]:
    """Pair entries with weights: `RARE_WEIGHT` for rare entries, Zipf-like (or 1 if `even`) for the others."""
    ordered = list(entries)
    count = sum(not entry.rare for entry in ordered)
    weights = iter([1.0] * count if even else zipf_weights(count))
    return [(entry, RARE_WEIGHT if entry.rare else next(weights)) for entry in ordered]


# -- the lexicon ------------------------------------------------------------------------------------------------------


class VerbGroup(NamedTuple):
    """Verbs that behave alike in a clause."""

    frame: str
    particle: str  # of separable verbs
    perfect_with_sein: bool
    number: int  # which verb of a crossed quadruple: 0 or 1
    weight: float  # relative frequency of the group

    @property
    def subject(self) -> str:
        """The kind of subject."""
        return self.frame.rstrip("~").partition(">")[0]

    @property
    def object(self) -> str:
        """The kind of object, empty for intransitive verbs."""
        return "crossed" if self.frame == "quad" else self.frame.partition(">")[2]

    @property
    def is_german_reflexive(self) -> bool:
        """Whether the verbs are reflexive in German only."""
        return self.frame.endswith("~")

    @property
    def key(self) -> str:
        frame = f"{self.frame}{self.number}" if self.frame == "quad" else self.frame
        return "+".join(filter(None, (frame, self.particle, "sein" if self.perfect_with_sein else "")))

    def symbol(self, topic: str, register: str, form: str) -> str:
        """Return the symbol of a verb form: finite-sg, finite-pl, joined-sg, joined-pl, infinitive or participle."""
        return symbol("V", topic, register, self.key, form)


@dataclass(frozen=True)
class LabLexicon:
    """The lexicon as distributions over entries, for building the grammar."""

    topics: Sequence[str] = TOPICS
    relative_clause_share: float = 0.1  # of noun phrases
    companion_share: float = 0.07  # of noun phrases: with a prepositional phrase
    registers: Sequence[str] = field(default=tuple(REGISTER_SHARES), init=False)

    def topics_and_registers(self) -> Iterator[tuple[str, str]]:
        return product(self.topics, self.registers)

    def topic_share(self, topic: str) -> float:
        return normalized(dict(zip(self.topics, zipf_weights(len(self.topics)), strict=True)))[topic]

    @cached_property
    def _entries(self) -> dict[str, tuple[Entry, ...]]:
        return {name: entries(name) for name in (*self.topics, GENERAL)}

    def entries_of_type(self, topic: str, register: str, kind: type[W]) -> list[W]:
        """Return the entries of one class that a register uses."""
        return [e for e in self._entries[topic] if isinstance(e, kind) and e.register in (None, register)]

    def nouns(self, topic: str, register: str, kind: str) -> list[tuple[Noun, float]]:
        """Return nouns of a kind with their weights; a role of a crossed quadruple has exactly one noun."""
        nouns = self.entries_of_type(topic, register, Noun)
        if kind in NOUN_KINDS:
            return with_weights(noun for noun in nouns if noun.kind == kind)
        crossed = self._crossed(topic)
        roles = zip((*CROSSED_SUBJECTS, *CROSSED_OBJECTS), (*crossed.subjects, *crossed.objects), strict=True)
        singular = dict(roles)[kind]
        return [(noun, 1.0) for noun in nouns if noun.german[0].singular == singular][:1]

    def _crossed(self, topic: str) -> CrossedQuadruple:
        return next(entry for entry in self._entries[topic] if isinstance(entry, CrossedQuadruple))

    def gender_shares(self, topic: str, register: str, kind: str) -> dict[str, float]:
        """Return the probability of each gender among the nouns of a kind."""
        masses: dict[str, float] = defaultdict(float)
        for noun, weight in self.nouns(topic, register, kind):
            masses[noun.gender] += weight
        return normalized(masses)

    def person_genders(self, topic: str, register: str) -> list[tuple[str, str]]:
        return [(kind, gender) for kind in PERSON_SHARES for gender in self.gender_shares(topic, register, kind)]

    def verb_groups(self, topic: str, register: str, subject: str | None = None) -> list[VerbGroup]:
        """Return the groups of verbs, or only those with this kind of subject."""
        masses: dict[tuple[str, str, bool, int], float] = defaultdict(float)
        for verb, weight in self.verbs(topic, register):
            masses[self.group_key(topic, verb)] += weight
        totals: dict[str, float] = defaultdict(float)
        for (frame, *_), mass in masses.items():
            totals[frame] += mass
        groups = [VerbGroup(*key, FRAME_WEIGHTS[key[0]] * mass / totals[key[0]]) for key, mass in masses.items()]
        return [group for group in groups if subject in (None, group.subject)]

    def verbs(self, topic: str, register: str) -> list[tuple[Verb, float]]:
        by_frame: dict[str, list[Verb]] = defaultdict(list)
        for verb in self.entries_of_type(topic, register, Verb):
            by_frame[verb.kind].append(verb)
        return [pair for frame in FRAME_WEIGHTS for pair in with_weights(by_frame[frame], even=frame == "quad")]

    def group_key(self, topic: str, verb: Verb) -> tuple[str, str, bool, int]:
        number = self._crossed(topic).verbs.index(verb.german[0].plural) if verb.kind == "quad" else 0
        return verb.kind, verb.german[0].particle, verb.sein, number

    def speech_verbs(self, register: str) -> list[tuple[Verb, float]]:
        """Return the verbs that take a clause as their object: say, think, ..."""
        return with_weights(self.entries_of_type(GENERAL, register, Verb))

    def phrases(self, topic: str, register: str, kind: str) -> list[tuple[Phrase, float]]:
        return with_weights(entry for entry in self.entries_of_type(topic, register, Phrase) if entry.kind == kind)


# -- open classes: generated words, which translators have to copy ----------------------------------------------------


@dataclass(frozen=True)
class MadeUpNames:
    """Names of two or three syllables; the last vowel distinguishes women's names from men's.

    >>> women = MadeUpNames.ending_in(FEMALE)
    >>> women.prob("malina") > 0, women.prob("malino"), women.prob("mal")
    (True, 0.0, 0.0)
    """

    first: Mapping[str, float]  # probabilities of syllables before the last
    last: Mapping[str, float]
    lengths: Mapping[int, float]  # probabilities of the number of syllables before the last
    tags: tuple[str, str] = ("NE", "NNP")
    _cumulative: tuple[Sequence[float], Sequence[float], Sequence[float]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        cumulative = tuple(list(accumulate(part.values())) for part in (self.first, self.last, self.lengths))
        object.__setattr__(self, "_cumulative", cumulative)

    @classmethod
    def ending_in(cls, vowels: str, syllables: Sequence[str] = SYLLABLES) -> MadeUpNames:
        first = normalized(dict(zip(syllables, zipf_weights(len(syllables)), strict=True)))
        last = normalized({syllable: share for syllable, share in first.items() if syllable[-1] in vowels})
        return cls(first, last, {1: 0.4, 2: 0.6})

    def sample(self, uniform: Callable[[], float]) -> str:
        first, last, lengths = self._cumulative
        beginning = [_choose(self.first, first, uniform()) for _ in range(_choose(self.lengths, lengths, uniform()))]
        return "".join(beginning) + _choose(self.last, last, uniform())

    def prob(self, word: str) -> float:
        parts = [word[start : start + 2] for start in range(0, len(word), 2)]
        beginning = math.prod(self.first.get(part, 0.0) for part in parts[:-1])
        return self.lengths.get(len(parts) - 1, 0.0) * beginning * self.last.get(parts[-1], 0.0) if parts else 0.0

    def words(self) -> Iterator[str]:
        for length in self.lengths:
            yield from map("".join, product(*[self.first] * length, self.last))

    def entropy(self) -> float:
        """Return the sum of the parts' entropies: all syllables have two letters, so a name determines its parts."""
        syllables = math.fsum(length * share for length, share in self.lengths.items())
        return _entropy(self.lengths) + syllables * _entropy(self.first) + _entropy(self.last)


@dataclass(frozen=True)
class DigitNumbers:
    """Numbers written in digits, uniformly distributed."""

    smallest: int = 100
    largest: int = 999
    tags: tuple[str, str] = ("CARD", "CD")

    def sample(self, uniform: Callable[[], float]) -> str:
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


def _choose(choices: Mapping[K, float], cumulative: Sequence[float], number: float) -> K:
    index = min(bisect_right(cumulative, number), len(cumulative) - 1)
    return list(choices)[index]


def _entropy(distribution: Mapping[K, float]) -> float:
    return -math.fsum(share * math.log(share) for share in distribution.values())
