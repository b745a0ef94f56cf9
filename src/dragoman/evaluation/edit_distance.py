"""Edits between translations and references, the usual measure for phonemes and inflected forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.data.scanner import split_words
from dragoman.data.vocabulary import SPECIALS, UNK
from dragoman.evaluation.translation_metrics import check_line_counts


@dataclass(frozen=True)
class EditCounts:
    """What has to be changed in translations to obtain the references."""

    sentences: int
    exact_matches: int  # translations that equal the reference
    edits: int  # words to insert, delete or replace
    words: int  # of the references
    repeated: int  # words that occur more often than in the reference, and more than once
    dropped: int  # words of the references to insert

    @property
    def exact_match(self) -> float:
        """Share of the translations that equal the reference."""
        return self.exact_matches / self.sentences

    @property
    def word_error_rate(self) -> float:
        """Edits per word of the references; for phonemes, the phoneme error rate."""
        return self.edits / max(1, self.words)


def count_edits(hypotheses: Sequence[str], references: Sequence[str]) -> EditCounts:
    """Count the edits of all sentences.

    >>> count_edits(["AA K AH N", "B AH"], ["AA K AH N", "B IY T"])
    EditCounts(sentences=2, exact_matches=1, edits=2, words=7, repeated=0, dropped=1)
    """
    check_line_counts(hypotheses, references)
    lines = zip(hypotheses, references, strict=True)
    pairs = [(split_words(hypothesis), split_words(reference)) for hypothesis, reference in lines]
    distances = [edit_distance(hypothesis, reference) for hypothesis, reference in pairs]
    return EditCounts(
        sentences=len(pairs),
        exact_matches=sum(edits == 0 for edits, _ in distances),
        edits=sum(edits for edits, _ in distances),
        words=sum(len(reference) for _, reference in pairs),
        repeated=sum(count_repeated_words(hypothesis, reference) for hypothesis, reference in pairs),
        dropped=sum(insertions for _, insertions in distances),
    )


def edit_distance(hypothesis: Sequence[str], reference: Sequence[str]) -> tuple[int, int]:
    """Return the Levenshtein distance, and the smallest number of insertions among that many edits.

    >>> edit_distance("kitten", "sitting")
    (3, 1)
    """
    edit_cost = len(reference) + 1  # so large that the insertions, which cost one more, never matter more than an edit
    row = [n * (edit_cost + 1) for n in range(len(reference) + 1)]
    for number, word in enumerate(hypothesis, 1):
        previous, row = row, [number * edit_cost]
        for n, reference_word in enumerate(reference, 1):
            replaced = previous[n - 1] + (edit_cost if word != reference_word else 0)
            row.append(min(previous[n] + edit_cost, row[-1] + edit_cost + 1, replaced))
    return divmod(row[-1], edit_cost)


class WordRecall(NamedTuple):
    """How many words of a kind in the references are also in the translations."""

    words: int
    recalled: int


def word_recall(hypotheses: Sequence[str], references: Sequence[str], is_counted: Callable[[str], bool]) -> WordRecall:
    """Compute the recall of the words for which `is_counted` is true; each counts as often as it occurs.

    >>> word_recall(["meet Ada", "Bob and Bob"], ["meet Ada", "meet Eve and Bob"], str.istitle)
    WordRecall(words=3, recalled=2)
    """
    words = recalled = 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        expected = Counter(filter(is_counted, split_words(reference)))
        words += expected.total()
        recalled += (Counter(split_words(hypothesis)) & expected).total()
    return WordRecall(words, recalled)


def count_repeated_words(translation: Sequence[str], reference: Sequence[str]) -> int:
    """Count words that occur more often than in the reference, and more than once; `<unk>` is not counted."""
    expected, counts = Counter(reference), Counter(translation)
    return sum(max(0, count - max(1, expected[word])) for word, count in counts.items() if word != SPECIALS[UNK])
