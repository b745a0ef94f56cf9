"""Units of text: lines cut into what a model reads and writes, and put together again.

Words are what is between spaces; characters are letters, signs and spaces; subwords are pieces of words learned from a
text. Whatever the units, a line that is cut and joined reads as before, up to its spaces.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dragoman.core.errors import DataError
from dragoman.data.subwords import (
    ALGORITHMS,
    MODEL_FILE,
    SubwordUnits,
    characters_in,
    learn_subwords,
    recommended_size,
)
from dragoman.data.tokenization import looks_tokenised, looks_unsegmented
from dragoman.data.whitespace import MARK, check_lines, number_words, words_of

ALIASES = {"bpe": "subword"}
KINDS = ("auto", "word", "char", *ALGORITHMS)
RARE = 0.005  # share of words seen once, from which on words are cut into pieces
SINGLE = 1.5  # words a line, below which a text is of single words
MOST_DIGITS = 7  # of a number of pieces


class Units(Protocol):
    """A way to cut lines into units and to put units together."""

    @property
    def kind(self) -> str:
        """`word`, `char`, `subword` or `unigram`."""
        ...

    @property
    def spec(self) -> str:
        """The text by which these units are asked for, such as `subword:8000`."""
        ...

    def cut(self, line: str) -> list[str]:
        """The units of a line; none holds a space, a TAB or a line break."""
        ...

    def cut_all(self, lines: Iterable[str]) -> list[list[str]]:
        """The units of each line; quicker than line by line."""
        ...

    def join(self, tokens: Sequence[str]) -> str:
        """The line that has these units."""
        ...

    def word_of_unit(self, tokens: Sequence[str]) -> list[int]:
        """The number of the word (from 0) that each unit belongs to, where words are what is between spaces."""
        ...

    def files(self) -> Mapping[str, bytes]:
        """What has to be kept besides `spec`, by file name."""
        ...


@dataclass(frozen=True)
class WordUnits:
    """Words: what is between spaces and TABs.

    >>> units = WordUnits()
    >>> units.join(units.cut(" the  cat\\tsat "))
    'the cat sat'
    """

    kind: str = "word"
    spec: str = "word"

    def cut(self, line: str) -> list[str]:
        return self.cut_all([line])[0]

    def cut_all(self, lines: Iterable[str]) -> list[list[str]]:
        listed = list(lines)
        check_lines(listed)
        return [words_of(line) for line in listed]

    def join(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)

    def word_of_unit(self, tokens: Sequence[str]) -> list[int]:
        return list(range(len(tokens)))

    def files(self) -> Mapping[str, bytes]:
        return {}


@dataclass(frozen=True)
class CharUnits:
    """Characters: a space is ▁, and a ▁ of the text itself is ▁▁, so that every line but one with TABs comes back.

    >>> units = CharUnits()
    >>> units.cut("to be▁"), units.join(units.cut("to be▁"))
    (['t', 'o', '▁', 'b', 'e', '▁▁'], 'to be▁')
    """

    kind: str = "char"
    spec: str = "char"

    def cut(self, line: str) -> list[str]:
        return self.cut_all([line])[0]

    def cut_all(self, lines: Iterable[str]) -> list[list[str]]:
        listed = list(lines)
        check_lines(listed)
        written = {" ": MARK, "\t": MARK, MARK: MARK + MARK}
        return [[written.get(sign, sign) for sign in line.rstrip("\r")] for line in listed]

    def join(self, tokens: Sequence[str]) -> str:
        read = {MARK: " ", MARK + MARK: MARK}
        return "".join(read.get(token, token) for token in tokens)

    def word_of_unit(self, tokens: Sequence[str]) -> list[int]:
        return number_words((token == MARK, token != MARK) for token in tokens)

    def files(self) -> Mapping[str, bytes]:
        return {}


# -- asking for units ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UnitsSpec:
    """What units are asked for: their kind and, of pieces, how many (None: as many as suit the text).

    >>> UnitsSpec.parse("bpe:8000")
    UnitsSpec(kind='subword', size=8000)
    >>> str(UnitsSpec.parse("char"))
    'char'
    """

    kind: str
    size: int | None = None

    @classmethod
    def parse(cls, text: str) -> UnitsSpec:
        name, colon, number = text.partition(":")
        kind = ALIASES.get(name, name)
        if kind not in KINDS:
            near = difflib.get_close_matches(name, [*KINDS, *ALIASES], n=1)
            hint = f"did you mean {near[0]!r}?" if near else "there are auto, word, char, subword:N and unigram:N"
            raise DataError(f"no units {text!r}; {hint}")
        if not colon:
            return cls(kind)
        if kind not in ALGORITHMS:
            raise DataError(f"units {text!r}: {kind} takes no number; ask for {kind}")
        if not (number.isascii() and number.isdecimal() and len(number) <= MOST_DIGITS and int(number) > 0):
            raise DataError(f"units {text!r}: after the colon comes how many pieces; ask for {kind}:8000, say")
        return cls(kind, int(number))

    def __str__(self) -> str:
        return self.kind if self.size is None else f"{self.kind}:{self.size}"


def learn_units(spec: str, *texts: Iterable[str]) -> Units:
    """The units asked for, learned from one text or, to be shared between them, from several.

    `auto` chooses by the texts (see `choose_units`); `subword` and `unigram` without a number choose that.
    """
    lines = [list(text) for text in texts]
    asked = UnitsSpec.parse(spec)
    if asked.kind == "auto":
        asked = UnitsSpec(choose_units(*lines))
    if asked.kind not in ALGORITHMS:
        return _unlearned(asked.kind)
    together = [line for text in lines for line in text]
    return learn_subwords(asked.kind, asked.size or _suitable_size(together), together)


def from_saved(spec: str, files: Mapping[str, bytes]) -> Units:
    """Units that were learned before, from what `files` had kept of them."""
    asked = UnitsSpec.parse(spec)
    if asked.kind not in ALGORITHMS:
        return _unlearned(asked.kind)
    if MODEL_FILE not in files:
        raise DataError(f"units {spec}: {MODEL_FILE} is missing; learn the units again")
    units = SubwordUnits(str(asked), files[MODEL_FILE])
    units.check()
    return units


def choose_units(*texts: Iterable[str]) -> str:
    """The kind of units that suits texts.

    Characters where most lines are single words (to be spelled or inflected); words where all texts are tokenised and
    nearly all words were seen more than once, so that there is little to be gained by cutting them; else subwords.

    >>> lines = ["the cat sat , then ran .", "the cat ran , then sat ."]
    >>> [choose_units(text) for text in (lines, ["The cat sat, then ran."] * 2, ["the cat sat ."], ["cats"])]
    ['word', 'subword', 'subword', 'char']
    """
    listed = [list(text) for text in texts]
    if any(looks_unsegmented(text) for text in listed):
        return "subword"
    lengths = Lengths.of(line for text in listed for line in text)
    if lengths.words < SINGLE * lengths.sentences:
        return "char"
    known = all(looks_tokenised(text) and _seen_once(text) < RARE for text in listed)
    return "word" if known else "subword"


def _seen_once(lines: Sequence[str]) -> float:
    """The share of a text's words that it has once."""
    counts = Counter(word for line in lines for word in words_of(line))
    return sum(count == 1 for count in counts.values()) / max(1, counts.total())


def _unlearned(kind: str) -> Units:
    if kind == "auto":
        raise DataError("units auto: what was chosen is not known here; name the units")
    return WordUnits() if kind == "word" else CharUnits()


def _suitable_size(lines: Sequence[str]) -> int:
    """The recommended number of pieces, and no fewer than two for each character: Chinese has thousands of them."""
    types = None if looks_unsegmented(lines) else len({word for line in lines for word in words_of(line)})
    return max(recommended_size(len(lines), types), 2 * characters_in(lines))


# -- lengths that do not depend on the units -------------------------------------------------------------------------


@dataclass(frozen=True)
class Lengths:
    """How long a text is, whatever units it is cut into.

    log P of a text is one number of nats (natural logarithm), so models of different units can be compared once it is
    divided by the same length. A model of pieces gives the probability of one way to cut the text, the one it uses:
    so much the text has at least.

    >>> Lengths.of(["the cat", "sat"])
    Lengths(words=3, characters=12, sentences=2)
    """

    words: int  # what is between spaces and TABs
    characters: int  # of the lines with one space between words, a line break for each
    sentences: int

    @classmethod
    def of(cls, lines: Iterable[str]) -> Lengths:
        words = [words_of(line) for line in lines]
        return cls(sum(map(len, words)), sum(len(" ".join(line)) + 1 for line in words), len(words))

    @property
    def tokens(self) -> int:
        """Words and sentence ends."""
        return self.words + self.sentences

    def perplexity(self, log_prob: float) -> float:
        """The price of the text, a word or sentence end: exp(-log P / (words + sentences))."""
        return _exp(-log_prob / self.tokens) if self.tokens else math.nan

    def perplexity_characters(self, log_prob: float) -> float:
        """The price of the text, a character: exp(-log P / characters)."""
        return _exp(-log_prob / self.characters) if self.characters else math.nan


def _exp(nats: float) -> float:
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf
