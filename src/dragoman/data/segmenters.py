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
    SubwordSegmenter,
    minimum_size,
    recommended_size,
    train_subwords,
)
from dragoman.data.tokenization import looks_tokenised, looks_unsegmented
from dragoman.data.whitespace import SPACE_MARK, assign_word_indices, check_lines, split_words

ALIASES = {"bpe": "subword"}
KINDS = ("auto", "word", "char", *ALGORITHMS)
MAX_SINGLETON_SHARE = 0.005  # share of words seen once, from which on words are cut into pieces
MIN_WORDS_PER_LINE = 1.5  # words a line, below which a text is of single words
MAX_SIZE_DIGITS = 7  # of a number of pieces


class Segmenter(Protocol):
    """A way to cut lines into units and to put units together."""

    @property
    def kind(self) -> str:
        """`word`, `char`, `subword` or `unigram`."""
        ...

    @property
    def spec(self) -> str:
        """The text by which these units are asked for, such as `subword:8000`."""
        ...

    def segment(self, line: str) -> list[str]:
        """The units of a line; none holds a space, a TAB or a line break."""
        ...

    def segment_all(self, lines: Iterable[str]) -> list[list[str]]:
        """The units of each line; quicker than line by line."""
        ...

    def join(self, tokens: Sequence[str]) -> str:
        """The line that has these units."""
        ...

    def word_indices(self, tokens: Sequence[str]) -> list[int]:
        """The number of the word (from 0) that each unit belongs to, where words are what is between spaces."""
        ...

    def files(self) -> Mapping[str, bytes]:
        """What has to be kept besides `spec`, by file name."""
        ...


@dataclass(frozen=True)
class WordSegmenter:
    """Words: what is between spaces and TABs.

    >>> units = WordUnits()
    >>> units.join(units.cut(" the  cat\\tsat "))
    'the cat sat'
    """

    kind: str = "word"
    spec: str = "word"

    def segment(self, line: str) -> list[str]:
        return self.segment_all([line])[0]

    def segment_all(self, lines: Iterable[str]) -> list[list[str]]:
        listed = list(lines)
        check_lines(listed)
        return [split_words(line) for line in listed]

    def join(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)

    def word_indices(self, tokens: Sequence[str]) -> list[int]:
        return list(range(len(tokens)))

    def files(self) -> Mapping[str, bytes]:
        return {}


@dataclass(frozen=True)
class CharSegmenter:
    """Characters: a space is ▁, and a ▁ of the text itself is ▁▁, so that every line but one with TABs comes back.

    >>> units = CharUnits()
    >>> units.cut("to be▁"), units.join(units.cut("to be▁"))
    (['t', 'o', '▁', 'b', 'e', '▁▁'], 'to be▁')
    """

    kind: str = "char"
    spec: str = "char"

    def segment(self, line: str) -> list[str]:
        return self.segment_all([line])[0]

    def segment_all(self, lines: Iterable[str]) -> list[list[str]]:
        listed = list(lines)
        check_lines(listed)
        written = {" ": SPACE_MARK, "\t": SPACE_MARK, SPACE_MARK: SPACE_MARK + SPACE_MARK}
        return [[written.get(sign, sign) for sign in line.rstrip("\r")] for line in listed]

    def join(self, tokens: Sequence[str]) -> str:
        read = {SPACE_MARK: " ", SPACE_MARK + SPACE_MARK: SPACE_MARK}
        return "".join(read.get(token, token) for token in tokens)

    def word_indices(self, tokens: Sequence[str]) -> list[int]:
        return assign_word_indices((token == SPACE_MARK, token != SPACE_MARK) for token in tokens)

    def files(self) -> Mapping[str, bytes]:
        return {}


# -- asking for units ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SegmenterSpec:
    """What units are asked for: their kind and, of pieces, how many (None: as many as suit the text).

    >>> UnitsSpec.parse("bpe:8000")
    UnitsSpec(kind='subword', size=8000)
    >>> str(UnitsSpec.parse("char"))
    'char'
    """

    kind: str
    size: int | None = None

    @classmethod
    def parse(cls, text: str) -> SegmenterSpec:
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
        if not (number.isascii() and number.isdecimal() and len(number) <= MAX_SIZE_DIGITS and int(number) > 0):
            raise DataError(f"units {text!r}: after the colon comes how many pieces; ask for {kind}:8000, say")
        return cls(kind, int(number))

    def __str__(self) -> str:
        return self.kind if self.size is None else f"{self.kind}:{self.size}"


def train_segmenter(spec: str, *texts: Iterable[str]) -> Segmenter:
    """The units asked for, learned from one text or, to be shared between them, from several.

    `auto` chooses by the texts (see `choose_units`); `subword` and `unigram` without a number choose that.
    """
    lines = [list(text) for text in texts]
    asked = SegmenterSpec.parse(spec)
    if asked.kind == "auto":
        asked = SegmenterSpec(choose_segmenter(*lines))
    if asked.kind not in ALGORITHMS:
        return _untrained_segmenter(asked.kind)
    together = [line for text in lines for line in text]
    return train_subwords(asked.kind, asked.size or _default_size(together), together)


def load_segmenter(spec: str, files: Mapping[str, bytes]) -> Segmenter:
    """Units that were learned before, from what `files` had kept of them."""
    asked = SegmenterSpec.parse(spec)
    if asked.kind not in ALGORITHMS:
        return _untrained_segmenter(asked.kind)
    if MODEL_FILE not in files:
        raise DataError(f"units {spec}: {MODEL_FILE} is missing; learn the units again")
    units = SubwordSegmenter(str(asked), files[MODEL_FILE])
    units.validate()
    return units


def choose_segmenter(*texts: Iterable[str]) -> str:
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
    lengths = TextLengths.from_lines(line for text in listed for line in text)
    if lengths.num_words < MIN_WORDS_PER_LINE * lengths.num_sentences:
        return "char"
    known = all(looks_tokenised(text) and _singleton_share(text) < MAX_SINGLETON_SHARE for text in listed)
    return "word" if known else "subword"


def _singleton_share(lines: Sequence[str]) -> float:
    """The share of a text's words that it has once."""
    counts = Counter(word for line in lines for word in split_words(line))
    return sum(count == 1 for count in counts.values()) / max(1, counts.total())


def _untrained_segmenter(kind: str) -> Segmenter:
    if kind == "auto":
        raise DataError("units auto: what was chosen is not known here; name the units")
    return WordSegmenter() if kind == "word" else CharSegmenter()


def _default_size(lines: Sequence[str]) -> int:
    """The recommended number of pieces, and no fewer than two for each character: Chinese has thousands of them."""
    types = None if looks_unsegmented(lines) else len({word for line in lines for word in split_words(line)})
    return max(recommended_size(len(lines), types), 2 * minimum_size(lines))


# -- lengths that do not depend on the units -------------------------------------------------------------------------


@dataclass(frozen=True)
class TextLengths:
    """How long a text is, whatever units it is cut into.

    log P of a text is one number of nats (natural logarithm), so models of different units can be compared once it is
    divided by the same length. A model of pieces gives the probability of one way to cut the text, the one it uses:
    so much the text has at least.

    >>> Lengths.of(["the cat", "sat"])
    Lengths(words=3, characters=12, sentences=2)
    """

    num_words: int  # what is between spaces and TABs
    num_characters: int  # of the lines with one space between words, a line break for each
    num_sentences: int

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> TextLengths:
        words = [split_words(line) for line in lines]
        return cls(sum(map(len, words)), sum(len(" ".join(line)) + 1 for line in words), len(words))

    @property
    def num_tokens(self) -> int:
        """Words and sentence ends."""
        return self.num_words + self.num_sentences

    def perplexity(self, log_prob: float) -> float:
        """The price of the text, a word or sentence end: exp(-log P / (words + sentences))."""
        return _safe_exp(-log_prob / self.num_tokens) if self.num_tokens else math.nan

    def perplexity_characters(self, log_prob: float) -> float:
        """The price of the text, a character: exp(-log P / characters)."""
        return _safe_exp(-log_prob / self.num_characters) if self.num_characters else math.nan


def _safe_exp(nats: float) -> float:
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf
