"""A small letter model of a language, stored with a translator, to notice text in another language.

The model has the most frequent character n-grams of one to three letters of a text. The probability of a letter after two
others is that of the longest n-gram that the model has, with a penalty for each shorter one (stupid backoff, Brants et al.
2007). A text of any language and script can be described in this way, in about 20 kB.
"""

from __future__ import annotations

import math
import statistics
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dragoman.core.errors import DataError

MAX_ORDER = 3
MAX_NGRAMS = 3_000
MAX_TRAINING_LETTERS = 300_000
MIN_TRAINING_LETTERS = 5_000  # a shorter text says too little about its language
MIN_LETTERS = 16  # shorter lines are not judged: names, single words
BACKOFF = math.log(0.4)
MARGIN = 0.3  # nats per letter by which another language must be better, or a line worse than the training text
MIN_EVIDENCE = 12.0  # nats by which the target language must be better
MAX_SOURCE_LEAD = 0.5  # nats per letter by which the source language may be better than the target's, if both are bad
OTHER_SCRIPT_LEAD = 4.0  # nats per letter by which a line is less like a language of another script
OTHER_SCRIPT_MARGIN = 2.0  # nats per letter by which a line in another script is worse than the training text
UNUSUAL_MARGIN = 1.0  # nats per letter by which a line is worse than most lines of a text
MIN_LINES = 10  # of a text, to say what is usual in it
MAX_FOREIGN_SHARE = 0.2  # of the lines of a text in the source language; quotations and lists of names are below it


class _Letters(dict[int, int]):
    """A table for `str.translate`: letters and the marks that belong to them stay, anything else becomes a space."""

    def __missing__(self, code: int) -> int:
        self[code] = code if unicodedata.category(chr(code))[0] in "LM" else 32
        return self[code]


_LETTERS = _Letters()


def letters_of(line: str) -> str:
    """Return the letters of a line in lower case, words separated by single spaces, with spaces around them.

    >>> letters_of("A cat, 2 dogs.")
    ' a cat dogs '
    """
    words = line.lower().translate(_LETTERS).split()
    return f" {' '.join(words)} " if words else ""


@dataclass(frozen=True)
class LetterProfile:
    """Counts of the most frequent n-grams of letters, and how badly they may describe a line of the same language."""

    counts: dict[str, int]  # n-grams of 1 to 3 letters; the empty one has the number of letters
    limit: float  # log P per letter; nearly all lines of the training text have a higher one

    @classmethod
    def train(cls, lines: Sequence[str]) -> LetterProfile | None:
        """Count the n-grams of a sample of lines; None if there is too little text."""
        sample = lines[:: max(1, sum(map(len, lines)) // MAX_TRAINING_LETTERS)]
        counts: Counter[str] = Counter()
        for text in map(letters_of, sample):
            counts[""] += max(0, len(text) - 1)
            for order in range(1, MAX_ORDER + 1):
                counts.update(text[i : i + order] for i in range(1 if order == 1 else 0, len(text) - order + 1))
        if counts[""] < MIN_TRAINING_LETTERS:
            return None
        profile = cls(dict(counts.most_common(MAX_NGRAMS)), -math.inf)
        values = sorted(profile.mean_log_prob(text) for text in map(letters_of, sample) if len(text) >= MIN_LETTERS)
        return replace(profile, limit=round(values[len(values) // 1000] - MARGIN, 4)) if values else None

    def mean_log_prob(self, letters: str) -> float:
        """Return log P per letter of a line, given as `letters_of` returns it."""
        total = 0.0
        for end in range(2, len(letters) + 1):
            total += self._log_prob(letters[max(0, end - MAX_ORDER) : end])
        return total / max(1, len(letters) - 1)

    def _log_prob(self, ngram: str) -> float:
        """Return the score of the last letter of an n-gram."""
        penalty = 0.0
        while ngram:
            if (count := self.counts.get(ngram)) is not None:
                return penalty + math.log(count / self.counts.get(ngram[:-1], count))
            ngram, penalty = ngram[1:], penalty + BACKOFF
        return penalty - math.log(self.counts[""])

    def to_text(self) -> str:
        """Return the profile as TSV: n-gram and count; the first row has the number of letters and the limit."""
        rows = [f"{ngram}\t{count}" for ngram, count in self.counts.items() if ngram]
        return "\n".join([f"\t{self.counts['']}\t{self.limit}", *rows]) + "\n"

    @classmethod
    def from_text(cls, text: str) -> LetterProfile:
        """Read a profile that `to_text` has written; raise an error if it is damaged."""
        try:
            first, *rows = text.removesuffix("\n").split("\n")
            _, letters, limit = first.split("\t")
            counts = {"": int(letters), **{ngram: int(count) for ngram, count in (row.split("\t") for row in rows)}}
            profile = cls(counts, float(limit))
        except ValueError:
            raise DataError("the letter profile is damaged; train or copy the model again") from None
        if min(counts.values()) < 1 or math.isnan(profile.limit):
            raise DataError("the letter profile is damaged; train or copy the model again")
        return profile


class LineLetters(NamedTuple):
    """What letter profiles say about a line."""

    size: int  # number of letters and spaces
    source: float  # log P per letter by the profile of the source language
    target: float | None  # by that of the target language

    @property
    def target_lead(self) -> float:
        """Nats per letter by which the line is more like the target language than like the source language.

        0 if the target language has another script than the line, and says nothing about it.
        """
        lead = 0.0 if self.target is None else self.target - self.source
        return lead if lead > -OTHER_SCRIPT_LEAD else 0.0

    def may_be_foreign(self, limit: float) -> bool:
        """Whether the line is more like the target language, or like neither."""
        is_unlike = self.source < limit and self.target_lead > -MAX_SOURCE_LEAD
        return self.target_lead > MARGIN or is_unlike or self.source < limit - OTHER_SCRIPT_MARGIN

    def is_foreign(self, limit: float) -> bool:
        """Whether the line is surely in another language; `limit` is for lines that are like neither language."""
        return self.may_be_foreign(limit) and (self.source < limit or self.target_lead * self.size > MIN_EVIDENCE)


def line_letters(line: str, source: LetterProfile, target: LetterProfile | None) -> LineLetters | None:
    """Compare a line with the profiles of two languages; None if it has too few letters."""
    letters = letters_of(line)
    if len(letters) < MIN_LETTERS:
        return None
    return LineLetters(
        len(letters), source.mean_log_prob(letters), None if target is None else target.mean_log_prob(letters)
    )


def foreign_lines(lines: Sequence[LineLetters], limit: float) -> list[bool]:
    """Return which lines of a text are in another language than the source: the target's, or one like neither.

    A text about another subject than the training text is less like it as a whole. So a line that is like neither language
    must also be unlike the other lines, unless many lines may be foreign.

    # limit: that of the profile of the source language
    """
    if len(lines) < MIN_LINES:
        return [line.is_foreign(limit - MARGIN) for line in lines]
    may_be_foreign = [line.may_be_foreign(limit) for line in lines]
    if sum(may_be_foreign) > MAX_FOREIGN_SHARE * len(lines):
        return may_be_foreign
    usual = statistics.median(line.source for line in lines)
    return [line.is_foreign(min(limit, usual - UNUSUAL_MARGIN)) for line in lines]
