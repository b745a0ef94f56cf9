"""The lab's German-English word lists, and German inflection.

Each topic has a word list `word_lists/TOPIC.txt`, and `word_lists/general.txt` holds the words of all topics. A line is one
entry: flags, kind, German columns, `=`, English columns. Columns are separated by spaces, the words of an expression
by `_`, and synonyms by `/`, the most frequent first; all columns of one language have the same number of synonyms.
`#` starts a comment. Within a kind, earlier entries are more frequent.

- Flags: `formal` or `casual` (used in that register only), `rare`, `sein` (a verb whose perfect tense takes "sein").
- Nouns: `man`, `woman`, `animal` or `thing`; German gender m, f or n, singular, plural and, for weak nouns, the
  singular of the other cases; English singular and plural.
- Verbs: the frame (`person>thing`: a person does it to a thing); German third person singular, third person plural and
  participle; English third person singular, base form and participle. `+` separates the particle of a separable verb
  from the rest; all synonyms have the same particle.
- `crossed`: two verbs, two subjects and two objects from the same list. The first subject prefers the first object
  with the first verb and the second object with the second verb; the second subject prefers the opposite.
- Phrases: `place`, `time`, `adjective`, `conjunction`, `number`.

The grammar relies on four properties, which the tests check. No form is shared between topics or kinds, so the words
determine the topic. Number is visible on every English noun, and the participle of every verb differs from its other
forms, so a sentence determines its tense. No English noun or adjective begins with u or a silent h, so the first letter
decides between "a" and "an". No word can be confused with the generated names. Words of phrases that are always
capitalised are capitalised here; German nouns are capitalised only in detokenized text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, Literal

Tokens = tuple[str, ...]
Register = Literal["formal", "casual"]
Gender = Literal["m", "f", "n"]

TOPICS: Final = ("farm", "kitchen", "sea", "school", "town", "hospital")
GENERAL: Final = "general"  # the list of words used with every topic
NOUN_KINDS: Final = ("man", "woman", "animal", "thing")
VERB_KINDS: Final = (
    "person",
    "animal",
    "person>thing",
    "person>animal",
    "person>person",
    "animal>thing",
    "animal>animal",
    "person>self",
    "person~",
    "quad",
    "say",
)
PHRASE_KINDS: Final = ("place", "time", "adjective", "conjunction", "number")
ADJECTIVE_ENDINGS: Final = ("e", "em", "en", "er", "es")
_GENDERS: Final[dict[str, Gender]] = {"m": "m", "f": "f", "n": "n"}
_REGISTERS: Final[dict[str, Register]] = {"formal": "formal", "casual": "casual"}


# -- entries ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GermanNoun:
    """The forms of a German noun; `oblique` is the singular of accusative and dative."""

    singular: str
    plural: str
    oblique: str

    @property
    def dative_plural(self) -> str:
        """The plural in the dative: with a final n, unless the plural ends in n or s.

        >>> GermanNoun("tisch", "tische", "tisch").dative_plural, GermanNoun("test", "tests", "test").dative_plural
        ('tischen', 'tests')
        """
        return self.plural if self.plural.endswith(("n", "s")) else f"{self.plural}n"


@dataclass(frozen=True)
class EnglishNoun:
    """The forms of an English noun, each of one or more words."""

    singular: Tokens
    plural: Tokens


@dataclass(frozen=True)
class GermanVerb:
    """The forms of a German verb without its particle, which is empty for inseparable verbs.

    In main clauses the particle of a finite form stands at the end of the clause. In verb-final clauses, infinitives
    and participles it is joined to the verb.
    """

    particle: str
    singular: str
    plural: str
    participle: str

    def joined(self, form: str) -> str:
        """Return a form with the particle attached.

        >>> verb = GermanVerb("auf", "macht", "machen", "gemacht")
        >>> verb.joined(verb.singular), verb.joined(verb.participle)
        ('aufmacht', 'aufgemacht')
        """
        return self.particle + form


@dataclass(frozen=True)
class EnglishVerb:
    """The forms of an English verb, each of one or more words: picks up, pick up, picked up."""

    singular: Tokens
    base: Tokens
    participle: Tokens


@dataclass(frozen=True)
class Noun:
    """German and English synonyms that translate each other, the most frequent first."""

    kind: str
    gender: Gender
    register: Register | None
    rare: bool
    german: tuple[GermanNoun, ...]
    english: tuple[EnglishNoun, ...]
    line: int


@dataclass(frozen=True)
class Verb:
    """German and English verbs; `kind` is the frame, `sein` the auxiliary of the German perfect."""

    kind: str
    register: Register | None
    rare: bool
    sein: bool
    german: tuple[GermanVerb, ...]
    english: tuple[EnglishVerb, ...]
    line: int


@dataclass(frozen=True)
class Phrase:
    """Uninflected expressions; for adjectives the German word is the stem."""

    kind: str
    register: Register | None
    rare: bool
    german: tuple[Tokens, ...]
    english: tuple[Tokens, ...]
    line: int


@dataclass(frozen=True)
class CrossedQuadruple:
    """Two verbs, subjects and objects by their German forms: subject i with verb j prefers object i xor j."""

    verbs: tuple[str, str]
    subjects: tuple[str, str]
    objects: tuple[str, str]
    line: int


Entry = Noun | Verb | Phrase | CrossedQuadruple


# -- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Flags:
    """The flags before the kind of an entry."""

    register: Register | None
    rare: bool
    sein: bool


@cache
def entries(topic: str) -> tuple[Entry, ...]:
    """Return the entries of a topic's word list, or of `GENERAL`, in the order of the file."""
    return parse((files("dragoman.lab") / "word_lists" / f"{topic}.txt").read_text(encoding="utf-8"))


def parse(table: str) -> tuple[Entry, ...]:
    """Parse a word list; a malformed line raises ValueError with its number and text.

    >>> parse("casual man m typ typen = guy/chap guys/chaps")[0].english[1].plural
    ('chaps',)
    """
    parsed: list[Entry] = []
    for number, line in enumerate(table.splitlines(), 1):
        content = line.partition("#")[0].strip()
        if content:
            try:
                parsed.append(_entry(content, number))
            except ValueError as problem:
                raise ValueError(f"lexicon line {number}, {content!r}: {problem}") from problem
    return tuple(parsed)


def _entry(content: str, line: int) -> Entry:
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
        raise ValueError("the flag sein is only for verbs other than quad")
    if kind in NOUN_KINDS and columns and columns[0] in _GENDERS:
        return _noun(kind, columns, english, flags, line)
    if kind in VERB_KINDS:
        return _verb(kind, columns, english, flags, line)
    if kind in PHRASE_KINDS:
        german_phrases, english_phrases = (
            tuple(words for (words,) in _synonyms(side, (1,))) for side in (columns, english)
        )
        return Phrase(kind, flags.register, flags.rare, german_phrases, english_phrases, line)
    raise ValueError(f"{kind} is not a kind of entry, or the gender of a noun is missing")


def _flags(fields: list[str]) -> tuple[_Flags, list[str]]:
    """Split an entry into its flags and the other fields."""
    names: list[str] = []
    while len(names) < len(fields) and fields[len(names)] in (*_REGISTERS, "rare", "sein"):
        names.append(fields[len(names)])
    registers = [_REGISTERS[name] for name in names if name in _REGISTERS]
    if len(registers) > 1 or len(set(names)) < len(names):
        raise ValueError("a flag is given twice, or two registers are given")
    flags = _Flags(registers[0] if registers else None, "rare" in names, "sein" in names)
    return flags, fields[len(names) :]


def _synonyms(columns: list[str], allowed: tuple[int, ...]) -> list[tuple[Tokens, ...]]:
    """Split the columns of one language into synonyms, each a tuple of forms.

    >>> _synonyms(["goes_out/leaves", "go_out/leave"], (2,))
    [(('goes', 'out'), ('go', 'out')), (('leaves',), ('leave',))]
    """
    if len(columns) not in allowed:
        raise ValueError(f"{len(columns)} columns instead of {' or '.join(map(str, allowed))}")
    by_column = [[tuple(form.split("_")) for form in column.split("/")] for column in columns]
    if len({len(column) for column in by_column}) > 1:
        raise ValueError("columns of one language have different numbers of synonyms")
    if any("" in form for column in by_column for form in column):
        raise ValueError("an empty word")
    synonyms = list(zip(*by_column, strict=True))
    if len(set(synonyms)) < len(synonyms):
        raise ValueError("a synonym is given twice")
    return synonyms


def _single_words(forms: tuple[Tokens, ...]) -> Tokens:
    """Return German forms, each of which is a single word."""
    if any(len(form) > 1 for form in forms):
        raise ValueError("a German noun or verb has several words")
    return tuple(form[0] for form in forms)


def _noun(kind: str, columns: list[str], english: list[str], flags: _Flags, line: int) -> Noun:
    synonyms = [_single_words(forms) for forms in _synonyms(columns[1:], (2, 3))]
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
    """Parse a verb; synonyms must have the same particle because a rule places it once for all of them."""
    german = tuple(_german_verb(_single_words(forms)) for forms in _synonyms(columns, (3,)))
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


def _german_verb(forms: Tokens) -> GermanVerb:
    particles, _, heads = zip(*(form.rpartition("+") for form in forms), strict=True)
    if len(set(particles)) > 1:
        raise ValueError("the particle of a separable verb must be in all columns")
    return GermanVerb(particles[0], *heads)


def _crossed(names: list[str], flags: _Flags, equals: bool, line: int) -> CrossedQuadruple:
    if len(names) != 6 or equals or flags != _Flags(None, rare=False, sein=False):
        raise ValueError("a crossed line has six German names, no flags and no English")
    return CrossedQuadruple((names[0], names[1]), (names[2], names[3]), (names[4], names[5]), line)


# -- German articles and endings, by gender (or plural) and case -----------------------------------------------------

CASES = ("nom", "acc", "dat")
GENDERS = ("m", "f", "n")

DEFINITE = {
    "m": {"nom": "der", "acc": "den", "dat": "dem"},
    "f": {"nom": "die", "acc": "die", "dat": "der"},
    "n": {"nom": "das", "acc": "das", "dat": "dem"},
    "pl": {"nom": "die", "acc": "die", "dat": "den"},
}
STRONG = {  # the endings of "dieser"
    "m": {"nom": "er", "acc": "en", "dat": "em"},
    "f": {"nom": "e", "acc": "e", "dat": "er"},
    "n": {"nom": "es", "acc": "es", "dat": "em"},
    "pl": {"nom": "e", "acc": "e", "dat": "en"},
}
INDEFINITE = {
    "m": {"nom": "ein", "acc": "einen", "dat": "einem"},
    "f": {"nom": "eine", "acc": "eine", "dat": "einer"},
    "n": {"nom": "ein", "acc": "ein", "dat": "einem"},
}
WEAK_E_ENDINGS = {("m", "nom"), ("f", "nom"), ("n", "nom"), ("f", "acc"), ("n", "acc")}  # "der alte", "die alte", ...


def agreement_class(gender: str, number: str) -> str:
    """Return what articles and adjectives agree with: the gender in the singular, "pl" in the plural."""
    return "pl" if number == "pl" else gender


def weak_ending(gender: str, number: str, case: str) -> str:
    """Return the ending of an adjective after "der", "dieser" or "jeder".

    >>> weak_ending("m", "sg", "nom"), weak_ending("m", "sg", "acc"), weak_ending("f", "pl", "nom")
    ('e', 'en', 'en')
    """
    return "e" if number == "sg" and (gender, case) in WEAK_E_ENDINGS else "en"


def mixed_ending(gender: str, number: str, case: str) -> str:
    """Return the ending of an adjective after "ein": strong where "ein" has no ending.

    >>> mixed_ending("m", "sg", "nom"), mixed_ending("n", "sg", "acc"), mixed_ending("f", "sg", "dat")
    ('er', 'es', 'en')
    """
    if INDEFINITE[gender][case] == "ein":
        return STRONG[gender][case]
    return weak_ending(gender, number, case)


def strong_ending(gender: str, number: str, case: str) -> str:
    """Return the ending of an adjective that no article precedes, as in bare plurals and after numbers."""
    return STRONG[agreement_class(gender, number)][case]
