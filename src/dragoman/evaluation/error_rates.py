"""Accuracy and error rates of words, their pronunciations and their spellings.

The metrics of grapheme-to-phoneme conversion, inflection and transliteration. A line is an entry there: one word, its
pronunciation or its inflected form. Like BLEU and chrF, each metric counts sufficient statistics, see
`dragoman.evaluation.translation_metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.scanner import split_words
from dragoman.evaluation.edit_distance import edit_distance
from dragoman.evaluation.translation_metrics import Counts, MetricStatistics, check_line_counts


@dataclass(frozen=True)
class Entry:
    """What a system wrote for a source, and all references of this source."""

    hypothesis: str
    references: tuple[str, ...]  # at least one

    def fewest_edits(self, split: Callable[[str], Sequence[str]]) -> tuple[int, int]:
        """Return the edits to the closest reference, and its length; of equally close ones, the longest counts.

        >>> Entry("T AH M EY T OW", ("T AH M AA T OW", "T AH M EY T OW")).fewest_edits(split_words)
        (0, 6)
        """
        hypothesis = split(self.hypothesis)
        candidates = ((edit_distance(hypothesis, words)[0], -len(words)) for words in map(split, self.references))
        edits, negative_length = min(candidates)
        return edits, -negative_length


def group_entries(
    hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
) -> list[Entry]:
    """Return one entry for each distinct source, in the order of their first lines; without sources, one for each line.

    A dictionary lists a word several times if it has several pronunciations: each of them is correct.

    >>> group_entries(["r iy d", "b"], ["r iy d", "r eh d"], ["read", "read"])
    [Entry(hypothesis='r iy d', references=('r iy d', 'r eh d'))]
    """
    check_line_counts(hypotheses, references)
    keys: Sequence[object] = range(len(references))
    if sources is not None:
        check_line_counts(sources, references)
        keys = [tuple(split_words(source)) for source in sources]
    variants: dict[object, tuple[str, dict[str, None]]] = {}
    for key, hypothesis, reference in zip(keys, hypotheses, references, strict=True):
        variants.setdefault(key, (hypothesis, {}))[1][reference] = None
    return [Entry(hypothesis, tuple(distinct)) for hypothesis, distinct in variants.values()]


def split_characters(line: str) -> str:
    """Return a line as a sequence of characters, with single spaces between words."""
    return " ".join(split_words(line))


@dataclass(frozen=True)
class ErrorRate:
    """A percentage: the statistics of an entry are a count and how much it is divided by."""

    name: str
    description: str
    count: Callable[[Entry], tuple[int, int]]
    lower_is_better: bool = True
    is_percentage: bool = True

    @property
    def signature(self) -> str:
        return self.description

    def statistics(self, entries: Sequence[Entry]) -> MetricStatistics:
        """Count what the metric needs in each entry."""
        return MetricStatistics(self, np.array([self.count(entry) for entry in entries], np.int64))  # (entries, 2)

    def scores(self, counts: Counts) -> NDArray[np.float64]:
        """Compute the percentage of each row of counts.  # counts: (rows, 2); returns (rows,)"""
        numbers = np.asarray(counts, np.float64)
        return 100 * numbers[:, 0] / np.maximum(numbers[:, 1], 1)


def _is_right(entry: Entry) -> tuple[int, int]:
    hypothesis = split_words(entry.hypothesis)
    return int(any(hypothesis == split_words(reference) for reference in entry.references)), 1


def _is_wrong(entry: Entry) -> tuple[int, int]:
    return 1 - _is_right(entry)[0], 1


def _edits_by_word(entry: Entry) -> tuple[int, int]:
    return entry.fewest_edits(split_words)


def _edits_by_character(entry: Entry) -> tuple[int, int]:
    return entry.fewest_edits(split_characters)


_EDITS = "to insert, delete or replace, per"
ACCURACY = ErrorRate("accuracy", "lines that are exactly right", _is_right, lower_is_better=False)
ENTRY_ERROR_RATE = ErrorRate("WER", "words that are not exactly right", _is_wrong)
WORD_ERROR_RATE = ErrorRate("WER", f"words {_EDITS} word of the references", _edits_by_word)
PHONE_ERROR_RATE = ErrorRate("PER", f"phones {_EDITS} phone of the references", _edits_by_word)
CHARACTER_ERROR_RATE = ErrorRate("CER", f"characters {_EDITS} character of the references", _edits_by_character)


def check_metric_names(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the metrics with these names, spelled as in `known`; raise `DataError` for a name that does not exist."""
    by_name = {name.lower(): name for name in known}
    for name in names:
        if name.lower() not in by_name:
            raise DataError(f"metric {name!r}: does not exist; choose from {', '.join(known)}")
    return list(dict.fromkeys(by_name[name.lower()] for name in names))
