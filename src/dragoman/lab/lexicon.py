"""The entries of the laboratory's word tables, read into forms. How a table is written: see `word_tables`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from dragoman.lab.word_tables import GENERAL, TOPICS

Words = tuple[str, ...]
Register = Literal["formal", "casual"]
Gender = Literal["m", "f", "n"]

NOUN_KINDS: Final = ("man", "woman", "beast", "thing")
VERB_KINDS: Final = (
    "person",
    "beast",
    "person>thing",
    "person>beast",
    "person>person",
    "beast>thing",
    "beast>beast",
    "person>self",
    "person~",
    "quad",
    "say",
)
PHRASE_KINDS: Final = ("place", "time", "adjective", "conjunction", "number")
ADJECTIVE_ENDINGS: Final = ("e", "em", "en", "er", "es")
_GENDERS: Final[dict[str, Gender]] = {"m": "m", "f": "f", "n": "n"}
_REGISTERS: Final[dict[str, Register]] = {"formal": "formal", "casual": "casual"}


@dataclass(frozen=True)
class GermanNoun:
    """The forms of a German noun; `oblique` is the singular of accusative and dative."""

    singular: str
    plural: str
    oblique: str

    @property
    def dative_plural(self) -> str:
        """The plural after a dative article: with an n, unless it ends in n or s.

        >>> GermanNoun("tisch", "tische", "tisch").dative_plural, GermanNoun("test", "tests", "test").dative_plural
        ('tischen', 'tests')
        """
        return self.plural if self.plural.endswith(("n", "s")) else f"{self.plural}n"


@dataclass(frozen=True)
class EnglishNoun:
    """The forms of an English noun, each of one word or more."""

    singular: Words
    plural: Words


@dataclass(frozen=True)
class GermanVerb:
    """The forms of a German verb without its particle, which is empty unless the verb is separable.

    The finite forms are used as they are in a main clause (the particle at its end) and joined to the particle in a
    verb-final one; infinitive and participle are always joined to it.
    """

    particle: str
    singular: str
    plural: str
    participle: str

    def joined(self, form: str) -> str:
        """One of the forms with the particle before it.

        >>> verb = GermanVerb("auf", "macht", "machen", "gemacht")
        >>> verb.joined(verb.singular), verb.joined(verb.participle)
        ('aufmacht', 'aufgemacht')
        """
        return self.particle + form


@dataclass(frozen=True)
class EnglishVerb:
    """The forms of an English verb, each of one word or more: picks up, pick up, picked up."""

    singular: Words
    base: Words
    participle: Words


@dataclass(frozen=True)
class Noun:
    """A meaning expressed by nouns: German and English synonyms, the most usual first."""

    kind: str
    gender: Gender
    register: Register | None
    rare: bool
    german: tuple[GermanNoun, ...]
    english: tuple[EnglishNoun, ...]
    line: int


@dataclass(frozen=True)
class Verb:
    """A meaning expressed by verbs; `kind` is the frame and `sein` says how the German perfect is formed."""

    kind: str
    register: Register | None
    rare: bool
    sein: bool
    german: tuple[GermanVerb, ...]
    english: tuple[EnglishVerb, ...]
    line: int


@dataclass(frozen=True)
class Phrase:
    """A meaning expressed by words that do not change; of an adjective, the German word is the stem."""

    kind: str
    register: Register | None
    rare: bool
    german: tuple[Words, ...]
    english: tuple[Words, ...]
    line: int


@dataclass(frozen=True)
class Crossed:
    """A crossed quadruple, named by German forms: subject i, doing verb j, prefers object i xor j."""

    verbs: tuple[str, str]
    subjects: tuple[str, str]
    objects: tuple[str, str]
    line: int


Entry = Noun | Verb | Phrase | Crossed


@dataclass(frozen=True)
class _Flags:
    """What may stand before the kind of an entry."""

    register: Register | None
    rare: bool
    sein: bool


@cache
def entries(topic: str) -> tuple[Entry, ...]:
    """The entries of a topic's table, in its order; those of every topic under the name `general`."""
    table = GENERAL if topic == "general" else TOPICS[topic]
    return parse(table)


def parse(table: str) -> tuple[Entry, ...]:
    """Read a table; a malformed line raises ValueError with its number and text.

    >>> parse("casual man m typ typen = guy/chap guys/chaps")[0].english[1].plural
    ('chaps',)
    """
    found: list[Entry] = []
    for number, line in enumerate(table.splitlines(), 1):
        content = line.partition("#")[0].strip()
        if content:
            try:
                found.append(_entry(content, number))
            except ValueError as problem:
                raise ValueError(f"lexicon line {number}, {content!r}: {problem}") from problem
    return tuple(found)


def _entry(content: str, line: int) -> Entry:
    """Read one entry, by its kind."""
    left, equals, right = content.partition("=")
    flags, fields = _flags(left.split())
    if not fields:
        raise ValueError("the kind is missing")
    kind, columns, english = fields[0], fields[1:], right.split()
    if kind == "crossed":
        return _crossed(columns, flags, bool(equals), line)
    if not equals:
        raise ValueError("no = between German and English")
    if flags.sein and (kind not in VERB_KINDS or kind == "quad"):
        raise ValueError("the flag sein is for verbs, and not for quad")
    if kind in NOUN_KINDS and columns and columns[0] in _GENDERS:
        return _noun(kind, columns, english, flags, line)
    if kind in VERB_KINDS:
        return _verb(kind, columns, english, flags, line)
    if kind in PHRASE_KINDS:
        sides = [tuple(words for (words,) in _synonyms(side, (1,))) for side in (columns, english)]
        return Phrase(kind, flags.register, flags.rare, sides[0], sides[1], line)
    raise ValueError(f"{kind} is no kind of entry, or the gender of a noun is missing")


def _flags(fields: list[str]) -> tuple[_Flags, list[str]]:
    """The flags at the beginning of an entry, and the fields after them."""
    given: list[str] = []
    while len(given) < len(fields) and fields[len(given)] in (*_REGISTERS, "rare", "sein"):
        given.append(fields[len(given)])
    registers = [_REGISTERS[flag] for flag in given if flag in _REGISTERS]
    if len(registers) > 1 or len(set(given)) < len(given):
        raise ValueError("a flag is given twice, or two registers")
    flags = _Flags(registers[0] if registers else None, "rare" in given, "sein" in given)
    return flags, fields[len(given) :]


def _synonyms(columns: list[str], allowed: tuple[int, ...]) -> list[tuple[Words, ...]]:
    """The columns of one side as a list of synonyms, each the tuple of its forms.

    >>> _synonyms(["goes_out/leaves", "go_out/leave"], (2,))
    [(('goes', 'out'), ('go', 'out')), (('leaves',), ('leave',))]
    """
    if len(columns) not in allowed:
        raise ValueError(f"{len(columns)} columns where {' or '.join(map(str, allowed))} should be")
    by_column = [[tuple(form.split("_")) for form in column.split("/")] for column in columns]
    if len({len(column) for column in by_column}) > 1:
        raise ValueError("columns of one side with different numbers of synonyms")
    if any("" in form for column in by_column for form in column):
        raise ValueError("an empty word")
    synonyms = list(zip(*by_column, strict=True))
    if len(set(synonyms)) < len(synonyms):
        raise ValueError("a synonym is given twice")
    return synonyms


def _single(forms: tuple[Words, ...]) -> Words:
    """German nouns and verbs are single words: the forms of one, without the tuple around each."""
    if any(len(form) > 1 for form in forms):
        raise ValueError("a German noun or verb of several words")
    return tuple(form[0] for form in forms)


def _noun(kind: str, columns: list[str], english: list[str], flags: _Flags, line: int) -> Noun:
    """Read the columns of a noun; one that is not weak has its singular in every case."""
    synonyms = [_single(forms) for forms in _synonyms(columns[1:], (2, 3))]
    return Noun(
        kind,
        _GENDERS[columns[0]],
        flags.register,
        flags.rare,
        tuple(GermanNoun(forms[0], forms[1], forms[-1] if len(forms) == 3 else forms[0]) for forms in synonyms),
        tuple(EnglishNoun(singular, plural) for singular, plural in _synonyms(english, (2,))),
        line,
    )


def _verb(kind: str, columns: list[str], english: list[str], flags: _Flags, line: int) -> Verb:
    """Read the columns of a verb, whose synonyms must have the same particle: the grammar places it once for all."""
    german = tuple(_german_verb(_single(forms)) for forms in _synonyms(columns, (3,)))
    if len({word.particle for word in german}) > 1:
        raise ValueError("synonyms with different particles")
    return Verb(
        kind,
        flags.register,
        flags.rare,
        flags.sein,
        german,
        tuple(EnglishVerb(singular, base, participle) for singular, base, participle in _synonyms(english, (3,))),
        line,
    )


def _german_verb(forms: Words) -> GermanVerb:
    """Part the particle of a separable verb, which must be the same in all columns."""
    particles, _, heads = zip(*(form.rpartition("+") for form in forms), strict=True)
    if len(set(particles)) > 1:
        raise ValueError("the particle of a separable verb must stand in all its columns")
    return GermanVerb(particles[0], *heads)


def _crossed(names: list[str], flags: _Flags, equals: bool, line: int) -> Crossed:
    """Read the six names of a crossed quadruple."""
    if len(names) != 6 or equals or flags != _Flags(None, rare=False, sein=False):
        raise ValueError("a crossed line has six German names, no flags and no English")
    return Crossed((names[0], names[1]), (names[2], names[3]), (names[4], names[5]), line)
