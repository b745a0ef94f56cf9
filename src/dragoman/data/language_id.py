"""Language identification with letter n-gram models.

A `LetterModel` predicts each letter of a line from the three letters before it. The doctor compares models of the two
sides of a parallel text; the service compares models of the vocabularies of its translators (`LanguageIdentifier`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.ranges import select_ranges
from dragoman.data.scanner import ScannedText, scan
from dragoman.data.vocabulary import SPECIALS, Vocab

ORDER = 4  # each letter is predicted from the three before it
TABLE_SIZE = 1 << 20  # counts are stored by hash; the few collisions do little harm
PRIOR_STRENGTH = 4.0  # weight of the lower order in the interpolation, in pseudo-counts (Dirichlet prior)
MAX_TRAINING_LETTERS = 20_000_000  # longer texts are sampled
MAX_VOCABULARY_WORDS = 20_000  # most frequent words of a vocabulary to train on

_SPACE, _NEWLINE = 32, 10
_OTHER, _LINE_END, _LETTER = 0, 1, 2  # kinds of characters


@dataclass(frozen=True)
class LetterText:
    """The letters of a text as lower-case code points, words separated by single spaces, without digits and signs.

    Each line starts with a space, and ends with one if it has letters.
    """

    codes: NDArray[np.uint32]  # (letters,)
    offsets: NDArray[np.int64]  # (lines + 1,)

    @classmethod
    def from_lines(cls, lines: Sequence[str]) -> LetterText:
        """Extract the letters of lines without line breaks.

        >>> text = LetterText.from_lines(["A cat, 2 dogs."])
        >>> "".join(map(chr, text.codes))
        ' a cat dogs '
        """
        joined = "".join(f"{line}\n" for line in lines).lower().encode("utf-32-le", "replace")
        codes = np.frombuffer(joined, np.uint32)
        return cls(*_separate_words(codes, _character_kinds(codes), len(lines)))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Letters and spaces of each line.  # (lines,)"""
        return np.diff(self.offsets)

    def select(self, lines: NDArray[np.int64]) -> LetterText:
        """Return the given lines, in this order."""
        offsets, positions = select_ranges(self.offsets, lines)
        return LetterText(self.codes[positions], offsets)

    def words(self) -> ScannedText:
        """Return the words of each line."""
        codes = self.codes.copy()
        codes[self.offsets[:-1]] = _NEWLINE  # replace the space at the start of each line
        return scan(codes[1:].tobytes().decode("utf-32-le").encode() + b"\n")


def _character_kinds(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Classify each character: a letter (or a mark that belongs to one), the end of a line, or anything else."""
    present = np.zeros(int(codes.max(initial=_NEWLINE)) + 1, np.bool_)
    present[codes] = True
    kinds = np.full(len(present), _OTHER, np.uint8)
    for code in np.flatnonzero(present).tolist():
        character = chr(code)
        is_mark = code > 127 and not character.isspace() and character.isidentifier()
        if character.isalpha() or is_mark:
            kinds[code] = _LETTER
    kinds[_NEWLINE] = _LINE_END
    return kinds[codes]


@kernel
def _separate_words(codes: Any, kinds: Any, lines: int) -> tuple[Any, Any]:
    """Keep letters only, with one space before, between and after the words of each line."""
    result = np.empty(codes.size + 2 * lines + 1, np.uint32)
    offsets = np.zeros(lines + 1, np.int64)
    result[0] = _SPACE
    size, line = 1, 0
    for k in range(codes.size):
        if kinds[k] == _LETTER:
            result[size] = codes[k]
            size += 1
        elif result[size - 1] != _SPACE:
            result[size] = _SPACE
            size += 1
        if kinds[k] == _LINE_END:
            line += 1
            offsets[line] = size
            result[size] = _SPACE
            size += 1
    return result[: offsets[lines]], offsets


@dataclass(frozen=True)
class LetterModel:
    """Letter n-gram counts, with every order interpolated with the next lower one."""

    counts: NDArray[np.int32]  # (TABLE_SIZE,) of n-grams of 1 to ORDER letters
    context_counts: NDArray[np.int32]  # (TABLE_SIZE,) of the same n-grams without their last letter
    alphabet: int  # different letters
    stride: int  # one line in this many was used for training

    @classmethod
    def train(cls, text: LetterText, repetitions: NDArray[np.int32] | None = None) -> LetterModel:
        """Count the n-grams of a text.  # repetitions: (lines,) how often to count each line; by default once"""
        stride = max(1, len(text.codes) // MAX_TRAINING_LETTERS)
        counts, context_counts = np.zeros((2, TABLE_SIZE), np.int32)
        repetitions = np.ones(len(text.sizes), np.int32) if repetitions is None else repetitions
        _count(text.codes, text.offsets, repetitions, stride, counts, context_counts)
        return cls(counts, context_counts, int(np.bincount(text.codes).astype(bool).sum()), stride)

    def log_probs(self, text: LetterText, *, leave_one_out: bool = False) -> NDArray[np.float64]:
        """Compute log P of each line.  # (lines,)

        With `leave_one_out`, the text is the one that the model was trained on (or its translation, line by line),
        and each line is removed from the counts before it is scored.
        """
        tables = self.counts, self.context_counts, self.alphabet, self.stride if leave_one_out else 0
        spans = split_range(0, len(text.sizes))
        parts = parallel_map(lambda span: _log_probs(text.codes, text.offsets, *span, *tables), spans)
        return np.concatenate([np.zeros(0), *parts])


@kernel
def _extend(key: Any, code: Any) -> Any:
    return (key ^ np.uint64(code)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)


@kernel
def _slot(key: Any) -> Any:
    return (key ^ (key >> np.uint64(29))) & np.uint64(TABLE_SIZE - 1)


@kernel
def _count(codes: Any, offsets: Any, repetitions: Any, stride: int, counts: Any, context_counts: Any) -> None:
    for line in range(0, offsets.size - 1, stride):
        for k in range(offsets[line] + 1, offsets[line + 1]):
            for n in range(min(ORDER, k - offsets[line] + 1)):
                key = np.uint64(n + 1)
                for i in range(k - n, k):
                    key = _extend(key, codes[i])
                context_counts[_slot(key)] += repetitions[line]
                counts[_slot(_extend(key, codes[k]))] += repetitions[line]


@kernel
def _log_probs(
    codes: Any, offsets: Any, first: int, last: int, counts: Any, context_counts: Any, alphabet: int, stride: int
) -> Any:
    """Score lines first..last; a stride above 0 removes the lines that were used for training from the counts."""
    result = np.zeros(last - first)
    for line in range(first, last):
        removed = 1.0 if stride > 0 and line % stride == 0 else 0.0
        for k in range(offsets[line] + 1, offsets[line + 1]):
            p = 1.0 / (alphabet + 1)
            for n in range(min(ORDER, k - offsets[line] + 1)):
                key = np.uint64(n + 1)
                for i in range(k - n, k):
                    key = _extend(key, codes[i])
                context_count = max(0.0, context_counts[_slot(key)] - removed)
                count = max(0.0, counts[_slot(_extend(key, codes[k]))] - removed)
                p = (count + PRIOR_STRENGTH * p) / (max(context_count, count) + PRIOR_STRENGTH)
            result[line - first] += np.log(p)
    return result


class LanguageGuess(NamedTuple):
    language: str
    confidence: float  # posterior probability in percent


class LanguageIdentifier:
    """Finds the language of a text among languages known from word lists.

    >>> german = Vocab.build(["der", "hund", "schläft"], [9, 4, 2])
    >>> english = Vocab.build(["the", "dog", "sleeps"], [9, 4, 2])
    >>> identifier = LanguageIdentifier.from_vocabularies({"de": [german], "en": [english]})
    >>> identifier.identify("The dog")[0].language
    'en'
    """

    def __init__(self, models: Mapping[str, LetterModel]):
        alphabet = max((model.alphabet for model in models.values()), default=0)  # one for all, so that they compare
        self.models = {language: replace(model, alphabet=alphabet) for language, model in models.items()}

    @classmethod
    def from_vocabularies(cls, vocabularies: Mapping[str, Iterable[Vocab]]) -> LanguageIdentifier:
        """Train a model on the words of each language, weighted by the square root of their counts.

        By their counts, a few very frequent words would dominate. Subwords are treated like words.
        """
        models = {}
        for language, vocabs in vocabularies.items():
            entries = []
            for vocab in vocabs:
                words = list(zip(vocab.tokens, vocab.counts.tolist(), strict=True))[len(SPECIALS) :]
                entries += sorted(words, key=lambda entry: -entry[1])[:MAX_VOCABULARY_WORDS]
            repetitions = np.array([round(math.sqrt(max(1, count))) for _, count in entries], np.int32)
            models[language] = LetterModel.train(LetterText.from_lines([word for word, _ in entries]), repetitions)
        return cls(models)

    def identify(self, text: str) -> list[LanguageGuess]:
        """Return all languages, most probable first; nothing if the text has no letters or no language is known."""
        if not self.models or not any(map(str.isalpha, text)):
            return []
        letters = LetterText.from_lines([text.replace("\n", " ")])
        scores = np.array([model.log_probs(letters)[0] for model in self.models.values()])  # (languages,)
        posteriors = np.exp(scores - scores.max())
        posteriors /= posteriors.sum()
        guesses = [
            LanguageGuess(language, round(100 * posterior, 1))
            for language, posterior in zip(self.models, posteriors.tolist(), strict=True)
        ]
        return sorted(guesses, key=lambda guess: -guess.confidence)
