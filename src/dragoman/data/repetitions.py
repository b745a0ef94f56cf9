"""How often lines of text repeat something in a row: "ha ha ha", "1000000"."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from dragoman.core.errors import DataError

MAX_SAMPLE_LINES, MAX_SAMPLE_CHARACTERS = 1_000, 300
USUAL_SHARE = 0.01  # of the lines of a text: what at least so many repeat is usual
WITHOUT_LETTERS = re.compile(r"[\W\d_]+")

Items = TypeVar("Items", str, list[str])


class Repetitions(NamedTuple):
    """How often a text repeats something in a row."""

    words: int  # words, or characters with a letter among them
    marks: int  # digits and punctuation

    @classmethod
    def from_saved(cls, config: object) -> Repetitions:
        """Return the repetitions of a config file, or the usual ones if it has none."""
        match config:
            case None:
                return USUAL_REPETITIONS
            case {"words": int(words), "marks": int(marks)} if min(words, marks) >= 1:
                return cls(words, marks)
        raise DataError(f"repetitions {config!r}: must be numbers from 1; train or copy the model again")


USUAL_REPETITIONS = Repetitions(3, 3)  # at least, of any text


def usual_repetitions(lines: Sequence[str]) -> Repetitions:
    """Return how often in a row lines of a text repeat something: as often as one line in a hundred of a sample does.

    >>> usual_repetitions(["NOUN NOUN NOUN NOUN NOUN", "the price is 1000000"]), usual_repetitions(["a man", "a dog"])
    (Repetitions(words=5, marks=6), Repetitions(words=3, marks=3))
    """
    size = min(MAX_SAMPLE_LINES, len(lines))
    sample = [lines[i * len(lines) // size][:MAX_SAMPLE_CHARACTERS] for i in range(size)]
    copies = np.array([USUAL_REPETITIONS, *map(repetitions, sample)])  # (lines + 1, 2)
    words, marks = np.quantile(copies, 1 - USUAL_SHARE, axis=0, method="higher").tolist()
    return Repetitions(max(USUAL_REPETITIONS.words, words), max(USUAL_REPETITIONS.marks, marks))


def repetitions(text: str) -> Repetitions:
    """Return how often in a row a text has the same words or letters, and the same digits or punctuation.

    Words and letters are compared without case, spaces and punctuation. Numbers are words between spaces.

    >>> [repetitions(text).words for text in ("Ha, ha, ha!", "Hahaha", "very nice", "1000", "1 1 1")]
    [3, 3, 1, 1, 3]
    >>> [repetitions(text).marks for text in ("a 77 77 77 77", "1000", "- - -", "no no")]
    [4, 3, 3, 1]
    """
    words = "".join(character if _is_in_word(character) else " " for character in text.lower()).split()
    stretches = WITHOUT_LETTERS.findall(f"{text} ")
    return Repetitions(
        max(_longest_run("".join(words), _has_letter), _longest_run(words, lambda segment: not _has_letter(segment))),
        max((_longest_run(stretch, lambda segment: not segment.isspace()) for stretch in stretches), default=1),
    )


def _is_in_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"  # letters, vowel signs, digits


def _has_letter(segment: Sequence[str]) -> bool:
    return any(map(str.isalpha, "".join(segment)))


def _longest_run(items: Items, counts: Callable[[Items], bool]) -> int:
    """Return how often in a row there is the same segment of words or characters, of those that count."""
    numbers = {item: number for number, item in enumerate(dict.fromkeys(items))}
    codes = np.array([numbers[item] for item in items], np.int64)
    most = 1
    for period in range(1, len(codes) // 2 + 1):
        if period * (most + 1) > len(codes):
            break  # there is no room for more copies
        ends = np.flatnonzero(np.append(codes[period:] != codes[:-period], True))  # first inequality after each run
        starts = np.append(0, ends[:-1] + 1)
        for run in np.flatnonzero((ends - starts) // period + 1 > most):
            if counts(items[starts[run] : starts[run] + period]):
                most = max(most, int(ends[run] - starts[run]) // period + 1)
    return most
