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
from itertools import takewhile
from typing import NamedTuple

Tokens = tuple[str, ...]

TOPICS = ("farm", "kitchen", "sea", "school", "town", "hospital")
GENERAL = "general"  # the list of words used with every topic
REGISTERS = ("formal", "casual")
FLAGS = (*REGISTERS, "rare", "sein")
NOUN_KINDS = ("man", "woman", "animal", "thing")
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
VERB_KINDS = (*FRAME_WEIGHTS, "say")
PHRASE_KINDS = ("place", "time", "adjective", "conjunction", "number")
NUMBERS = ("sg", "pl")

CASES = ("nom", "acc", "dat")
GENDERS = ("m", "f", "n")
ADJECTIVE_ENDINGS = ("e", "em", "en", "er", "es")


def _by_case(**forms: str) -> dict[str, dict[str, str]]:
    return {gender: dict(zip(CASES, by_case.split(), strict=True)) for gender, by_case in forms.items()}


DEFINITE = _by_case(m="der den dem", f="die die der", n="das das dem", pl="die die den")
INDEFINITE = _by_case(m="ein einen einem", f="eine eine einer", n="ein ein einem")
STRONG = _by_case(m="er en em", f="e e er", n="es es em", pl="e e en")  # of "dieser", and of adjectives without article
WEAK = _by_case(m="e en en", f="e e en", n="e e en", pl="en en en")  # of adjectives after "der", "dieser", "jeder"
MIXED = _by_case(m="er en en", f="e e en", n="es es en")  # of adjectives after "ein"


def agreement_class(gender: str, number: str) -> str:
    """Return what articles and adjectives agree with: the gender in the singular, "pl" in the plural."""
    return "pl" if number == "pl" else gender


class GermanNoun(NamedTuple):
    """The forms of a German noun; `oblique` is the singular of accusative and dative."""

    singular: str
    plural: str
    oblique: str

    def inflected(self, number: str, case: str) -> str:
        """Return a form; the dative plural has a final n, unless the plural ends in n or s.

        >>> GermanNoun("tisch", "tische", "tisch").inflected("pl", "dat")
        'tischen'
        """
        if number == "sg":
            return self.singular if case == "nom" else self.oblique
        return f"{self.plural}n" if case == "dat" and not self.plural.endswith(("n", "s")) else self.plural


class EnglishNoun(NamedTuple):
    """The forms of an English noun, each of one or more words."""

    singular: Tokens
    plural: Tokens


class GermanVerb(NamedTuple):
    """The forms of a German verb without its particle, which is empty for inseparable verbs."""

    particle: str
    singular: str
    plural: str
    participle: str

    def inflected(self, form: str) -> str:
        """Return finite-sg, finite-pl, joined-sg, joined-pl, infinitive or participle.

        The particle of a finite form stands at the end of the main clause. In verb-final clauses (`joined`),
        infinitives and participles it is part of the word.

        >>> verb = GermanVerb("auf", "macht", "machen", "gemacht")
        >>> verb.inflected("finite-sg"), verb.inflected("joined-sg"), verb.inflected("participle")
        ('macht', 'aufmacht', 'aufgemacht')
        """
        head = {"sg": self.singular, "participle": self.participle}.get(form.rpartition("-")[2], self.plural)
        return head if form.startswith("finite") else self.particle + head


class EnglishVerb(NamedTuple):
    """The forms of an English verb, each of one or more words: picks up, pick up, picked up."""

    singular: Tokens
    base: Tokens
    participle: Tokens

    def inflected(self, form: str) -> Tokens:
        """Return the form that translates a form of a German verb."""
        return {"sg": self.singular, "participle": self.participle}.get(form.rpartition("-")[2], self.base)


@dataclass(frozen=True)
class WordListEntry:
    """What nouns, verbs and phrases have in common. Synonyms are in the order of their frequency."""

    kind: str
    register: str | None
    rare: bool
    line: int


@dataclass(frozen=True)
class Noun(WordListEntry):
    """German and English synonyms that translate each other."""

    gender: str
    german: tuple[GermanNoun, ...]
    english: tuple[EnglishNoun, ...]


@dataclass(frozen=True)
class Verb(WordListEntry):
    """German and English verbs; `kind` is the frame, `sein` the auxiliary of the German perfect."""

    sein: bool
    german: tuple[GermanVerb, ...]
    english: tuple[EnglishVerb, ...]


@dataclass(frozen=True)
class Phrase(WordListEntry):
    """Uninflected expressions; for adjectives the German word is the stem."""

    german: tuple[Tokens, ...]
    english: tuple[Tokens, ...]


@dataclass(frozen=True)
class CrossedQuadruple:
    """Two verbs, subjects and objects by their German forms: subject i with verb j prefers object i xor j."""

    verbs: tuple[str, str]
    subjects: tuple[str, str]
    objects: tuple[str, str]
    line: int


Entry = Noun | Verb | Phrase | CrossedQuadruple


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
    fields, english = left.split(), right.split()
    flags = list(takewhile(FLAGS.__contains__, fields))
    registers = [flag for flag in flags if flag in REGISTERS]
    if len(registers) > 1 or len(set(flags)) < len(flags):
        raise ValueError("a flag is given twice, or two registers are given")
    if len(flags) == len(fields):
        raise ValueError("the kind is missing")
    kind, *columns = fields[len(flags) :]
    if kind == "crossed":
        if len(columns) != 6 or equals or flags:
            raise ValueError("a crossed line has six German names, no flags and no English")
        return CrossedQuadruple((columns[0], columns[1]), (columns[2], columns[3]), (columns[4], columns[5]), line)
    if not equals:
        raise ValueError("no = between German and English")
    if "sein" in flags and (kind not in VERB_KINDS or kind == "quad"):
        raise ValueError("the flag sein is only for verbs other than quad")
    common = (kind, registers[0] if registers else None, "rare" in flags, line)
    if kind in NOUN_KINDS and columns and columns[0] in GENDERS:
        german_nouns = [_single_words(forms) for forms in _synonyms(columns[1:], (2, 3))]
        return Noun(
            *common,
            columns[0],
            tuple(GermanNoun(forms[0], forms[1], forms[2] if len(forms) == 3 else forms[0]) for forms in german_nouns),
            tuple(EnglishNoun(*forms) for forms in _synonyms(english, (2,))),
        )
    if kind in VERB_KINDS:
        german_verbs = tuple(_german_verb(_single_words(forms)) for forms in _synonyms(columns, (3,)))
        if len({verb.particle for verb in german_verbs}) > 1:  # a rule places the particle once for all synonyms
            raise ValueError("synonyms with different particles")
        english_verbs = tuple(EnglishVerb(*forms) for forms in _synonyms(english, (3,)))
        return Verb(*common, "sein" in flags, german_verbs, english_verbs)
    if kind in PHRASE_KINDS:
        german, translations = (tuple(words for (words,) in _synonyms(side, (1,))) for side in (columns, english))
        return Phrase(*common, german, translations)
    raise ValueError(f"{kind} is not a kind of entry, or the gender of a noun is missing")


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


def _german_verb(forms: Tokens) -> GermanVerb:
    particles, _, heads = zip(*(form.rpartition("+") for form in forms), strict=True)
    if len(set(particles)) > 1:
        raise ValueError("the particle of a separable verb must be in all columns")
    return GermanVerb(particles[0], *heads)
