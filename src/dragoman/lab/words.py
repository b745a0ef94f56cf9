"""Which words there are for a topic, a register and a role, and how often each is taken."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import NamedTuple, TypeVar

from dragoman.lab.lexicon import Crossed, Entry, Noun, Phrase, Verb, entries
from dragoman.lab.synchronous import symbol
from dragoman.lab.weights import falling, shares
from dragoman.lab.word_tables import TOPICS

GENERAL = "general"  # words of every topic
REGISTERS = {"formal": 0.45, "casual": 0.55}
NUMBERS = ("sg", "pl")
PEOPLE = {"man": 0.55, "woman": 0.45}
KINDS = ("man", "woman", "beast", "thing")
CROSSED_SUBJECTS, CROSSED_OBJECTS = ("subject0", "subject1"), ("object0", "object1")
ROLES = {
    "man": "person",
    "woman": "person",
    "beast": "beast",
    "thing": "thing",
    **dict.fromkeys(CROSSED_SUBJECTS, "person"),
    **dict.fromkeys(CROSSED_OBJECTS, "thing"),
}
FRAMES = {  # how often clauses are of a kind
    "person": 2.0,
    "beast": 1.2,
    "person>thing": 4.5,
    "person>beast": 1.0,
    "person>person": 1.5,
    "beast>thing": 0.7,
    "beast>beast": 0.5,
    "person>self": 1.2,
    "person~": 0.8,
    "quad": 2.0,
}
RARE = 0.002  # the weight of a rare word, where the most usual one weighs 1

W = TypeVar("W", Noun, Verb, Phrase)


class VerbGroup(NamedTuple):
    """Verbs that a clause treats alike."""

    frame: str
    particle: str  # of separable verbs
    sein: bool  # perfect with "sein"
    number: int  # of a crossed quadruple's verb: 0 or 1
    weight: float  # how often one of them is taken

    @property
    def subject(self) -> str:
        """The kind of subject."""
        return self.frame.rstrip("~").partition(">")[0]

    @property
    def object(self) -> str:
        """The kind of object, or nothing."""
        return "crossed" if self.frame == "quad" else self.frame.partition(">")[2]

    @property
    def sich(self) -> bool:
        """Reflexive in German only."""
        return self.frame.endswith("~")

    @property
    def key(self) -> str:
        kind = f"{self.frame}{self.number}" if self.frame == "quad" else self.frame
        return "+".join(filter(None, (kind, self.particle, "sein" if self.sein else "")))

    def symbol(self, topic: str, register: str, form: str) -> str:
        """Of the verb in a form: finite-sg, finite-pl, joined-sg, joined-pl, infinitive, participle."""
        return symbol("V", topic, register, self.key, form)


@dataclass(frozen=True)
class Words:
    """The lexicon, sorted for the grammar."""

    topics: Sequence[str] = tuple(TOPICS)
    nesting: float = 0.1  # how often a noun phrase has a relative clause
    company: float = 0.07  # how often it has another thing with it
    registers: Sequence[str] = field(default=tuple(REGISTERS), init=False)

    def scenes(self) -> Iterator[tuple[str, str]]:
        """Topics and registers."""
        return product(self.topics, self.registers)

    def topic_share(self, topic: str) -> float:
        return shares(dict(zip(self.topics, falling(len(self.topics)), strict=True)))[topic]

    def register_share(self, register: str) -> float:
        return REGISTERS[register]

    @cached_property
    def _tables(self) -> dict[str, tuple[Entry, ...]]:
        return {name: entries(name) for name in (*self.topics, GENERAL)}

    def taken(self, topic: str, register: str, kind: type[W]) -> list[W]:
        """The entries of one type that a register has."""
        return [e for e in self._tables[topic] if isinstance(e, kind) and e.register in (None, register)]

    # -- nouns --------------------------------------------------------------------------------------------------------

    def nouns(self, topic: str, register: str, kind: str) -> list[tuple[Noun, float]]:
        """Nouns of a kind, the earlier in the lexicon the more often; a crossed one stands for itself alone."""
        nouns = self.taken(topic, register, Noun)
        if kind in KINDS:
            return weighted(noun for noun in nouns if noun.kind == kind)
        crossed = self._crossed(topic)
        names = zip((*CROSSED_SUBJECTS, *CROSSED_OBJECTS), (*crossed.subjects, *crossed.objects), strict=True)
        wanted = dict(names)[kind]
        return [(noun, 1.0) for noun in nouns if noun.german[0].singular == wanted][:1]

    def _crossed(self, topic: str) -> Crossed:
        return next(entry for entry in self._tables[topic] if isinstance(entry, Crossed))

    def noun_masses(self, topic: str, register: str, kind: str) -> dict[str, float]:
        """The share of each gender."""
        masses: dict[str, float] = defaultdict(float)
        for noun, weight in self.nouns(topic, register, kind):
            masses[noun.gender] += weight
        return shares(masses)

    def genders_of_people(self, topic: str, register: str) -> list[tuple[str, str]]:
        return [(kind, gender) for kind in PEOPLE for gender in self.noun_masses(topic, register, kind)]

    # -- verbs --------------------------------------------------------------------------------------------------------

    def verb_groups(self, topic: str, register: str, subject: str | None = None) -> list[VerbGroup]:
        """Groups of verbs with this kind of subject, the crossed ones left out if one is asked for."""
        masses: dict[tuple[str, str, bool, int], float] = defaultdict(float)
        for verb, weight in self.verbs(topic, register):
            masses[self.group_key(topic, verb)] += weight
        totals: dict[str, float] = defaultdict(float)
        for (frame, *_), mass in masses.items():
            totals[frame] += mass
        groups = [VerbGroup(*key, FRAMES[key[0]] * mass / totals[key[0]]) for key, mass in masses.items()]
        return [group for group in groups if subject in (None, group.subject)]

    def verbs(self, topic: str, register: str) -> list[tuple[Verb, float]]:
        by_frame: dict[str, list[Verb]] = defaultdict(list)
        for verb in self.taken(topic, register, Verb):
            by_frame[verb.kind].append(verb)
        return [pair for frame in FRAMES for pair in weighted(by_frame[frame], even=frame == "quad")]

    def group_key(self, topic: str, verb: Verb) -> tuple[str, str, bool, int]:
        number = self._crossed(topic).verbs.index(verb.german[0].plural) if verb.kind == "quad" else 0
        return verb.kind, verb.german[0].particle, verb.sein, number

    # -- words of every topic -----------------------------------------------------------------------------------------

    def sayings(self, register: str) -> list[tuple[Verb, float]]:
        return weighted(self.taken(GENERAL, register, Verb))

    def phrases(self, topic: str, register: str, kind: str) -> list[tuple[Phrase, float]]:
        return weighted(entry for entry in self.taken(topic, register, Phrase) if entry.kind == kind)


def synonym_shares(count: int) -> list[float]:
    """The first is the most usual."""
    weights = falling(count)
    return [weight / math.fsum(weights) for weight in weights]


def weighted(some: Iterable[W], *, even: bool = False) -> list[tuple[W, float]]:
    """Entries with their weights: rare ones hardly ever, the others the more often the earlier they come."""
    every = list(some)
    count = sum(not entry.rare for entry in every)
    weights = iter([1.0] * count if even else falling(count))
    return [(entry, RARE if entry.rare else next(weights)) for entry in every]
