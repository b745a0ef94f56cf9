"""Words of the grammar: how probable each is, and the rules of every word in the forms that the other rules use."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from typing import NamedTuple, TypeVar

from dragoman.lab.grammar import GrammarBuilder, sample_index, symbol
from dragoman.lab.lexicon import (
    ADJECTIVE_ENDINGS,
    CASES,
    FRAME_WEIGHTS,
    GENDERS,
    GENERAL,
    INDEFINITE,
    MIXED,
    NOUN_KINDS,
    NUMBERS,
    REGISTERS,
    TOPICS,
    CrossedQuadruple,
    Noun,
    Phrase,
    Tokens,
    Verb,
    entries,
)

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
RARE_WEIGHT = 0.002  # the most frequent word has weight 1
PREPOSITIONS: dict[str, list[Tokens]] = {"mit": [("with",)], "neben": [("next", "to"), ("beside",)]}
VERB_FORMS = ("finite-sg", "finite-pl", "joined-sg", "joined-pl", "infinitive", "participle")
DIGIT_SHARE = 0.12  # of numbers: written in digits

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


def zipf_shares(keys: Sequence[K]) -> dict[K, float]:
    """Return Zipf-like probabilities, which decrease in the order of the keys."""
    return normalized(dict(zip(keys, zipf_weights(len(keys)), strict=True)))


def with_weights(entries: Iterable[W], *, even: bool = False) -> list[tuple[W, float]]:
    """Pair entries with weights: `RARE_WEIGHT` for rare entries, Zipf-like (or 1 if `even`) for the others."""
    ordered = list(entries)
    count = sum(not entry.rare for entry in ordered)
    weights = iter([1.0] * count if even else zipf_weights(count))
    return [(entry, RARE_WEIGHT if entry.rare else next(weights)) for entry in ordered]


# -- distributions over entries ---------------------------------------------------------------------------------------


class VerbGroup(NamedTuple):
    """Verbs that behave in the same way in a clause."""

    frame: str
    particle: str  # of separable verbs
    perfect_with_sein: bool
    number: int  # which verb of a crossed quadruple: 0 or 1

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


@dataclass(frozen=True)
class TopicLexicon:
    """The words of sentences of one topic and register, as distributions over the entries of a word list."""

    topic: str  # or GENERAL
    register: str

    def symbol(self, category: str, *features: str) -> str:
        """Return a symbol of this topic and register."""
        return symbol(category, self.topic, self.register, *features)

    def entries_of_type(self, kind: type[W]) -> list[W]:
        """Return the entries of one class that the register uses."""
        return [e for e in entries(self.topic) if isinstance(e, kind) and e.register in (None, self.register)]

    def nouns(self, kind: str) -> list[tuple[Noun, float]]:
        """Return nouns of a kind with their weights; a role of a crossed quadruple has exactly one noun."""
        nouns = self.entries_of_type(Noun)
        if kind in NOUN_KINDS:
            return with_weights(noun for noun in nouns if noun.kind == kind)
        names = (*self._crossed.subjects, *self._crossed.objects)
        singular = names[(*CROSSED_SUBJECTS, *CROSSED_OBJECTS).index(kind)]
        return [(noun, 1.0) for noun in nouns if noun.german[0].singular == singular][:1]

    @cached_property
    def _crossed(self) -> CrossedQuadruple:
        return next(entry for entry in entries(self.topic) if isinstance(entry, CrossedQuadruple))

    def gender_shares(self, kind: str) -> dict[str, float]:
        """Return the probability of each gender among the nouns of a kind."""
        masses: dict[str, float] = defaultdict(float)
        for noun, weight in self.nouns(kind):
            masses[noun.gender] += weight
        return normalized(masses)

    def verbs(self) -> list[tuple[Verb, float]]:
        """Return the verbs with their weights within a frame."""
        by_frame: dict[str, list[Verb]] = defaultdict(list)
        for verb in self.entries_of_type(Verb):
            by_frame[verb.kind].append(verb)
        return [pair for frame in FRAME_WEIGHTS for pair in with_weights(by_frame[frame], even=frame == "quad")]

    def group(self, verb: Verb) -> VerbGroup:
        number = self._crossed.verbs.index(verb.german[0].plural) if verb.kind == "quad" else 0
        return VerbGroup(verb.kind, verb.german[0].particle, verb.sein, number)

    @cached_property
    def verb_groups(self) -> dict[VerbGroup, float]:
        """The groups of verbs with their relative frequency."""
        masses: dict[VerbGroup, float] = defaultdict(float)
        totals: dict[str, float] = defaultdict(float)
        for verb, weight in self.verbs():
            masses[self.group(verb)] += weight
        for group, mass in masses.items():
            totals[group.frame] += mass
        return {group: FRAME_WEIGHTS[group.frame] * mass / totals[group.frame] for group, mass in masses.items()}

    def phrases(self, kind: str) -> list[tuple[Phrase, float]]:
        return with_weights(entry for entry in self.entries_of_type(Phrase) if entry.kind == kind)


def topic_lexicons() -> list[TopicLexicon]:
    """Return the words of every topic and register."""
    return [TopicLexicon(topic, register) for topic, register in product(TOPICS, REGISTERS)]


# -- open classes: generated words, which translators have to copy ----------------------------------------------------

CONSONANTS = "mlnrtsbvdwj"
VOWELS = "aoieu"
FEMALE, MALE = "ai", "ou"  # final vowels of names
SYLLABLES = tuple(c + v for v in VOWELS for c in CONSONANTS)


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

    @classmethod
    def ending_in(cls, vowels: str, syllables: Sequence[str] = SYLLABLES) -> MadeUpNames:
        first = zipf_shares(syllables)
        last = normalized({syllable: share for syllable, share in first.items() if syllable[-1] in vowels})
        return cls(first, last, {1: 0.4, 2: 0.6})

    def sample(self, uniform: Callable[[], float]) -> str:
        beginning = [_sample(self.first, uniform) for _ in range(_sample(self.lengths, uniform))]
        return "".join(beginning) + _sample(self.last, uniform)

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
        lengths, first, last = (
            -math.fsum(share * math.log(share) for share in part.values())
            for part in (self.lengths, self.first, self.last)
        )
        return lengths + syllables * first + last


def _sample(shares: Mapping[K, float], uniform: Callable[[], float]) -> K:
    return list(shares)[sample_index(list(accumulate(shares.values())), uniform)]


@dataclass(frozen=True)
class DigitNumbers:
    """Numbers written in digits, uniformly distributed."""

    numbers: range = range(100, 1000)
    tags: tuple[str, str] = ("CARD", "CD")

    def sample(self, uniform: Callable[[], float]) -> str:
        return str(self.numbers[int(uniform() * len(self.numbers))])

    def prob(self, word: str) -> float:
        is_number = word.isascii() and word.isdigit() and len(word) <= len(str(self.numbers[-1]))
        return 1 / len(self.numbers) if is_number and int(word) in self.numbers and word == str(int(word)) else 0.0

    def words(self) -> Iterator[str]:
        return map(str, self.numbers)

    def entropy(self) -> float:
        return math.log(len(self.numbers))


# -- rules ------------------------------------------------------------------------------------------------------------


def add_lexical_rules(rules: GrammarBuilder) -> None:
    """Add the rules of all words and the open classes."""
    for words in topic_lexicons():
        for kind in ROLES:
            _add_nouns(rules, words, kind)
        for verb, weight in words.verbs():
            for form in VERB_FORMS:
                _add_verb(rules, words.symbol("V", words.group(verb).key, form), weight, verb, form)
        _add_phrases(rules, words, "place", words.symbol("PLACE"))
    for register in REGISTERS:
        words = TopicLexicon(GENERAL, register)
        _add_adjectives(rules, words)
        _add_phrases(rules, words, "time", symbol("TIME", register))
        _add_phrases(rules, words, "conjunction", symbol("CONJ", register))
        for verb, weight in with_weights(words.entries_of_type(Verb)):  # with a clause as object: say, think, ...
            for number in NUMBERS:
                _add_verb(rules, symbol("SAY", register, number), weight, verb, f"finite-{number}")
        for preposition, translations in PREPOSITIONS.items():
            synonyms = Synonyms([(preposition,)], translations, ("APPR", "IN"))
            synonyms.add(rules, symbol("P", register), 1.0, preposition)
    numbers = TopicLexicon(GENERAL, REGISTERS[0]).phrases("number")
    total = math.fsum(weight for _, weight in numbers)
    for phrase, weight in numbers:
        synonyms = Synonyms(phrase.german, phrase.english, ("CARD", "CD"))
        synonyms.add(rules, "NUM", (1 - DIGIT_SHARE) * weight / total, "number", phrase.german[0][0])
    rules.add_sequence("NUM", DIGIT_SHARE, ["DIGITS"], "digits")
    rules.open_classes["NAME[man]"] = MadeUpNames.ending_in(MALE)
    rules.open_classes["NAME[woman]"] = MadeUpNames.ending_in(FEMALE)
    rules.open_classes["DIGITS"] = DigitNumbers()


class Synonyms(NamedTuple):
    """German and English expressions that translate each other, with their parts of speech.

    All words are aligned with all words of the other language; an article only with the other article.
    """

    german: Sequence[Tokens]
    english: Sequence[Tokens]
    tags: tuple[str, str]

    def add(self, rules: GrammarBuilder, parent: str, weight: float, *name: str, article: str = "") -> None:
        """Add a rule, without or with the indefinite article, which is given in German."""
        german, english = (
            {
                " ".join([f"{word.lower()}/{tag if word.islower() else 'NN'}=" for word in expression]): share
                for expression, share in zipf_shares(synonyms).items()
            }
            for synonyms, tag in zip((self.german, self.english), self.tags, strict=True)
        )
        if article:  # the first letter decides between "a" and "an" for all words of the lexicon
            german = {f"{article}/ART=d {words}": share for words, share in german.items()}
            english = {
                f"{'an' if words[0] in 'aeiou' else 'a'}/DT=d {words}": share for words, share in english.items()
            }
        rules.add(parent, weight, {}, german, english, name)


def _add_nouns(rules: GrammarBuilder, words: TopicLexicon, kind: str) -> None:
    """Add every noun in all cases (N) and, in the singular, with the indefinite article (AN)."""
    for noun, weight in words.nouns(kind):
        for number, case in product(NUMBERS, CASES):
            features = (kind, noun.gender, number, case)
            german = [(form.inflected(number, case),) for form in noun.german]
            english = [form.singular if number == "sg" else form.plural for form in noun.english]
            synonyms, name = Synonyms(german, english, ("NN", "N")), _rule_name(noun)
            synonyms.add(rules, words.symbol("N", *features), weight, *name)
            if number == "sg":
                article = INDEFINITE[noun.gender][case]
                synonyms.add(rules, words.symbol("AN", *features), weight, *name, article=article)


def _add_verb(rules: GrammarBuilder, parent: str, weight: float, verb: Verb, form: str) -> None:
    german = [(word.inflected(form),) for word in verb.german]
    english = [word.inflected(form) for word in verb.english]
    Synonyms(german, english, ("V", "V")).add(rules, parent, weight, *_rule_name(verb))


def _rule_name(entry: Noun | Verb) -> tuple[str, str]:
    """Name a rule by both languages: two entries may share the words of one language, but not of both."""
    return " ".join(map(str, entry.german)), " ".join(map(str, entry.english))


def _add_phrases(rules: GrammarBuilder, words: TopicLexicon, kind: str, parent: str) -> None:
    for number, (phrase, weight) in enumerate(words.phrases(kind)):
        Synonyms(phrase.german, phrase.english, ("W", "W")).add(rules, parent, weight, kind, str(number))


def _add_adjectives(rules: GrammarBuilder, words: TopicLexicon) -> None:
    """Add every adjective with every ending (A) and, in the singular, after the indefinite article (AA)."""
    for phrase, weight in words.phrases("adjective"):
        name = ("adjective", phrase.german[0][0])
        inflected = {
            ending: Synonyms([(stem + ending,) for (stem,) in phrase.german], phrase.english, ("ADJ", "ADJ"))
            for ending in ADJECTIVE_ENDINGS
        }
        for ending, synonyms in inflected.items():
            synonyms.add(rules, symbol("A", words.register, ending), weight, *name)
        for gender, case in product(GENDERS, CASES):
            parent, article = symbol("AA", words.register, gender, case), INDEFINITE[gender][case]
            inflected[MIXED[gender][case]].add(rules, parent, weight, *name, article=article)
