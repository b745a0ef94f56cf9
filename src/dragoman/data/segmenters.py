"""Segmenters: how lines are split into tokens, and joined again.

Words are separated by spaces. Characters include spaces and punctuation. Subwords are pieces of words, learned from a
text. For every segmenter, `join(segment(line))` is the line up to its whitespace.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dragoman.core.errors import DataError, closest_match
from dragoman.data.scanner import check_lines, split_words
from dragoman.data.subwords import (
    ALGORITHMS,
    MODEL_FILE,
    SPACE_MARK,
    SubwordSegmenter,
    assign_word_indices,
    minimum_size,
    recommended_size,
    train_subwords,
)

ALIASES = {"bpe": "subword"}
KINDS = ("auto", "word", "char", *ALGORITHMS)
MAX_SINGLETON_SHARE = 0.005  # with a larger share of singletons, words are split into subwords
MIN_WORDS_PER_LINE = 1.5  # a text with fewer consists of single words
MAX_SIZE_DIGITS = 7  # of the number of subwords

SAMPLE_LINES = 5_000  # lines examined by `looks_tokenised` and `looks_unsegmented`
MIN_MARKS_PER_LINE = 0.05  # a text with fewer punctuation marks has nothing to split
MAX_MEAN_WORD_LENGTH = 6  # characters: in the scripts below words are shorter, sentences are longer
# Scripts written without spaces: Thai, Lao, Tibetan, Burmese, Khmer, Japanese kana, Chinese characters.
UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
CLOSING = "\"'”’»)]}"  # may stand between a punctuation mark and the following space
MARKS = ",!?،؟۔।"  # always end a word; a full stop may end an abbreviation, so only the last of a line counts
WIDE_MARKS = re.compile("[。、，！？｡､]")  # not followed by a space, so they may stand inside a word


class Segmenter(Protocol):
    """Splits lines into tokens and joins tokens to lines."""

    @property
    def kind(self) -> str:
        """`word`, `char`, `subword` or `unigram`."""
        ...

    @property
    def spec(self) -> str:
        """The specification of this segmenter, such as `subword:8000`."""
        ...

    def segment(self, line: str) -> list[str]:
        """Split a line into tokens. No token contains a space, a TAB or a line break."""
        ...

    def segment_all(self, lines: Iterable[str]) -> list[list[str]]:
        """Split many lines, faster than one by one."""
        ...

    def join(self, tokens: Sequence[str]) -> str:
        """Join tokens to a line."""
        ...

    def word_indices(self, tokens: Sequence[str]) -> list[int]:
        """Return the index (from 0) of the space-separated word that each token belongs to."""
        ...

    def files(self) -> Mapping[str, bytes]:
        """Return the files to be saved in addition to `spec`, by name."""
        ...


@dataclass(frozen=True)
class WordSegmenter:
    """Splits at spaces and TABs.

    >>> segmenter = WordSegmenter()
    >>> segmenter.join(segmenter.segment(" the  cat\\tsat "))
    'the cat sat'
    """

    kind: str = "word"
    spec: str = "word"

    def segment(self, line: str) -> list[str]:
        return self.segment_all([line])[0]

    def segment_all(self, lines: Iterable[str]) -> list[list[str]]:
        checked = list(lines)
        check_lines(checked)
        return [split_words(line) for line in checked]

    def join(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)

    def word_indices(self, tokens: Sequence[str]) -> list[int]:
        return list(range(len(tokens)))

    def files(self) -> Mapping[str, bytes]:
        return {}


@dataclass(frozen=True)
class CharSegmenter:
    """Splits into characters. A space is written ▁ and a ▁ of the text ▁▁, so every line without TABs is restored.

    >>> segmenter = CharSegmenter()
    >>> segmenter.segment("to be▁"), segmenter.join(segmenter.segment("to be▁"))
    (['t', 'o', '▁', 'b', 'e', '▁▁'], 'to be▁')
    """

    kind: str = "char"
    spec: str = "char"

    def segment(self, line: str) -> list[str]:
        return self.segment_all([line])[0]

    def segment_all(self, lines: Iterable[str]) -> list[list[str]]:
        checked = list(lines)
        check_lines(checked)
        escaped = {" ": SPACE_MARK, "\t": SPACE_MARK, SPACE_MARK: SPACE_MARK + SPACE_MARK}
        return [[escaped.get(character, character) for character in line.rstrip("\r")] for line in checked]

    def join(self, tokens: Sequence[str]) -> str:
        plain = {SPACE_MARK: " ", SPACE_MARK + SPACE_MARK: SPACE_MARK}
        return "".join(plain.get(token, token) for token in tokens)

    def word_indices(self, tokens: Sequence[str]) -> list[int]:
        return assign_word_indices((token == SPACE_MARK, token != SPACE_MARK) for token in tokens)

    def files(self) -> Mapping[str, bytes]:
        return {}


# -- creating segmenters ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SegmenterSpec:
    """A kind of segmenter and, for subwords, their number (None: chosen by the text).

    >>> SegmenterSpec.parse("bpe:8000")
    SegmenterSpec(kind='subword', size=8000)
    >>> str(SegmenterSpec.parse("char"))
    'char'
    """

    kind: str
    size: int | None = None

    @classmethod
    def parse(cls, text: str) -> SegmenterSpec:
        name, colon, number = text.partition(":")
        kind = ALIASES.get(name, name)
        if kind not in KINDS:
            match = closest_match(name, [*KINDS, *ALIASES])
            hint = f"did you mean {match!r}?" if match else "choose auto, word, char, subword:N or unigram:N"
            raise DataError(f"unknown units {text!r}; {hint}")
        if not colon:
            return cls(kind)
        if kind not in ALGORITHMS:
            raise DataError(f"units {text!r}: {kind} takes no number; write {kind}")
        if not (number.isascii() and number.isdecimal() and len(number) <= MAX_SIZE_DIGITS and int(number) > 0):
            raise DataError(f"units {text!r}: the number of subwords follows the colon, as in {kind}:8000")
        return cls(kind, int(number))

    def __str__(self) -> str:
        return self.kind if self.size is None else f"{self.kind}:{self.size}"


def train_segmenter(spec: str, *texts: Iterable[str]) -> Segmenter:
    """Train a segmenter on one text or, to be shared between them, on several.

    `auto` chooses the kind by the texts (see `choose_segmenter`). `subword` and `unigram` without a number choose the
    number of subwords by the texts.
    """
    lines = [list(text) for text in texts]
    parsed = SegmenterSpec.parse(spec)
    if parsed.kind == "auto":
        parsed = SegmenterSpec(choose_segmenter(*lines))
    if parsed.kind not in ALGORITHMS:
        return _untrained_segmenter(parsed.kind)
    all_lines = [line for text in lines for line in text]
    return train_subwords(parsed.kind, parsed.size or _default_size(all_lines), all_lines)


def load_segmenter(spec: str, files: Mapping[str, bytes]) -> Segmenter:
    """Create a segmenter from its specification and saved files."""
    parsed = SegmenterSpec.parse(spec)
    if parsed.kind not in ALGORITHMS:
        return _untrained_segmenter(parsed.kind)
    if MODEL_FILE not in files:
        raise DataError(f"units {spec}: {MODEL_FILE} is missing; train the subwords again")
    segmenter = SubwordSegmenter(str(parsed), files[MODEL_FILE])
    segmenter.validate()
    return segmenter


def choose_segmenter(*texts: Iterable[str]) -> str:
    """Choose the kind of segmenter for texts.

    Characters if most lines are single words (to be spelled or inflected). Words if all texts are tokenised and nearly
    all words occur more than once, so that there is little to gain from splitting them. Otherwise subwords.

    >>> lines = ["the cat sat , then ran .", "the cat ran , then sat ."]
    >>> [choose_segmenter(text) for text in (lines, ["The cat sat, then ran."] * 2, ["the cat sat ."], ["cats"])]
    ['word', 'subword', 'subword', 'char']
    """
    all_lines = [list(text) for text in texts]
    if any(looks_unsegmented(lines) for lines in all_lines):
        return "subword"
    lengths = TextLengths.from_lines(line for lines in all_lines for line in lines)
    if lengths.num_words < MIN_WORDS_PER_LINE * lengths.num_sentences:
        return "char"
    mostly_known = all(looks_tokenised(lines) and _singleton_share(lines) < MAX_SINGLETON_SHARE for lines in all_lines)
    return "word" if mostly_known else "subword"


def token_name(segmenter: Segmenter) -> str:
    """Return what the segmenter's tokens are called in messages."""
    return {"word": "word", "char": "character"}.get(segmenter.kind, "piece")


def _singleton_share(lines: Sequence[str]) -> float:
    """Return the share of a text's words that occur only once."""
    counts = Counter(word for line in lines for word in split_words(line))
    return sum(count == 1 for count in counts.values()) / max(1, counts.total())


def _untrained_segmenter(kind: str) -> Segmenter:
    if kind == "auto":
        raise DataError("units auto: there is no text here to choose by; name the units")
    return WordSegmenter() if kind == "word" else CharSegmenter()


def _default_size(lines: Sequence[str]) -> int:
    """Return the recommended number of subwords, at least two per character: Chinese has thousands of characters."""
    types = None if looks_unsegmented(lines) else len({word for line in lines for word in split_words(line)})
    return max(recommended_size(len(lines), types), 2 * minimum_size(lines))


# -- whether a text is tokenised ---------------------------------------------------------------------------------------


def looks_tokenised(lines: Iterable[str]) -> bool:
    """Return whether punctuation is separated from words by spaces.

    A text without punctuation counts as tokenised, because there is nothing to split. A text in a script without
    spaces does not.

    >>> looks_tokenised(["he left , i think ."]), looks_tokenised(["He left, I think."]), looks_tokenised(["AA K AH N"])
    (True, False, True)
    >>> looks_tokenised(["彼 は 去っ た 。"]), looks_tokenised(["彼は去ったと思います。"])
    (True, False)
    """
    sample = _sample_evenly(list(lines), SAMPLE_LINES)
    if looks_unsegmented(sample):
        return False
    separated = [is_separate for line in sample for is_separate in _separated_marks(split_words(line))]
    return len(separated) <= MIN_MARKS_PER_LINE * len(sample) or sum(separated) * 2 > len(separated)


def looks_unsegmented(lines: Iterable[str]) -> bool:
    """Return whether a text is mostly in a script without spaces and has no spaces between its words.

    >>> [looks_unsegmented([line]) for line in ("彼は去ったと思います", "彼 は 去っ た", "he left")]
    [True, False, False]
    """
    words = [word for line in _sample_evenly(list(lines), SAMPLE_LINES) for word in split_words(line)]
    unspaced = [len(word) for word in words if UNSPACED.search(word)]
    mostly_unspaced = sum(unspaced) * 2 > sum(map(len, words))
    return mostly_unspaced and sum(unspaced) > MAX_MEAN_WORD_LENGTH * len(unspaced)


def _sample_evenly(lines: Sequence[str], size: int) -> Sequence[str]:
    """Return about `size` lines from all parts of the text, which may be sorted by length."""
    return lines[:: max(1, len(lines) // size)]


def _separated_marks(words: Sequence[str]) -> list[bool]:
    """For each word that ends in a punctuation mark, return whether the mark is already separate."""
    return [
        not any(map(str.isalnum, word))
        for position, word in enumerate(words, 1)
        if _ends_in_mark(word, last=position == len(words))
    ]


def _ends_in_mark(word: str, last: bool) -> bool:
    """Return whether a word ends in a punctuation mark or contains one that is not followed by a space."""
    bare = word.rstrip(CLOSING)
    return bare.endswith(tuple(MARKS)) or (last and bare.endswith(".")) or WIDE_MARKS.search(word) is not None


# -- lengths that do not depend on the segmenter ----------------------------------------------------------------------


@dataclass(frozen=True)
class TextLengths:
    """The length of a text, independent of how it is segmented.

    log P of a text is a number of nats (natural logarithm), so models with different segmenters can be compared if it
    is divided by the same length. A subword model gives the probability of one segmentation, which is a lower bound of
    the probability of the text.

    >>> TextLengths.from_lines(["the cat", "sat"])
    TextLengths(num_words=3, num_characters=12, num_sentences=2)
    """

    num_words: int  # separated by spaces and TABs
    num_characters: int  # with one space between words and one line break per line
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
        """Perplexity per word or sentence end: exp(-log P / (words + sentences))."""
        return _safe_exp(-log_prob / self.num_tokens) if self.num_tokens else math.nan

    def perplexity_characters(self, log_prob: float) -> float:
        """Perplexity per character: exp(-log P / characters)."""
        return _safe_exp(-log_prob / self.num_characters) if self.num_characters else math.nan


def _safe_exp(nats: float) -> float:
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf
