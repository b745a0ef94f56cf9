"""A small letter model of a language, stored with a translator, to notice text in another language.

The model has the most frequent character n-grams of one to three letters of a text. The probability of a letter after two
others is that of the longest n-gram that the model has, with a penalty for each shorter one (stupid backoff, Brants et al.
2007). A text of any language and script can be described in this way, in about 20 kB.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.core.errors import DataError

MAX_ORDER = 3
MAX_NGRAMS = 3_000
MAX_TRAINING_LETTERS = 300_000
MIN_TRAINING_LETTERS = 5_000  # a shorter text says too little about its language
MIN_LETTERS = 16  # shorter lines are not judged: names, single words
BACKOFF = math.log(0.4)
MARGIN = 0.3  # nats per letter by which another language must be better, or a line worse than the training text


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


def looks_foreign(line: str, source: LetterProfile, target: LetterProfile | None) -> bool | None:
    """Return whether a line is in another language than the source: the target's, or one like neither.

    None if the line has too few letters to say so.
    """
    letters = letters_of(line)
    if len(letters) < MIN_LETTERS:
        return None
    log_prob = source.mean_log_prob(letters)
    is_target = target is not None and target.mean_log_prob(letters) > log_prob + MARGIN
    return is_target or log_prob < source.limit
