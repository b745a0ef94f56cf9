"""How many words are wrong: edits between translations and references, as phonemes and inflections are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.data.vocabulary import SPECIALS, UNK
from dragoman.data.words import split_words
from dragoman.evaluation.translation_metrics import check_line_counts


@dataclass(frozen=True)
class EditCounts:
    """What has to be changed in translations to make them the references."""

    sentences: int
    exact_matches: int  # translations that are the reference itself
    edits: int  # words put in, left out or replaced
    words: int  # of the references
    repeated: int  # words that come again and again: more often than in the reference, and than once
    dropped: int  # words of the references in whose place the translations have nothing

    @property
    def exact_match(self) -> float:
        """Share of the translations that are exactly right."""
        return self.exact_matches / self.sentences

    @property
    def word_error_rate(self) -> float:
        """Edits for each word of the references; of phonemes, the phoneme error rate."""
        return self.edits / max(1, self.words)


def count_edits(hypotheses: Sequence[str], references: Sequence[str]) -> EditCounts:
    """
    >>> count_edits(["AA K AH N", "B AH"], ["AA K AH N", "B IY T"])
    Edits(sentences=2, right=1, edits=2, words=7, repeated=0, dropped=1)
    """
    check_line_counts(hypotheses, references)
    pairs = [(split_words(one), split_words(other)) for one, other in zip(hypotheses, references, strict=True)]
    found = [edit_distance(one, other) for one, other in pairs]
    return EditCounts(
        sentences=len(pairs),
        exact_matches=[edits for edits, _ in found].count(0),
        edits=sum(edits for edits, _ in found),
        words=sum(len(other) for _, other in pairs),
        repeated=sum(count_repeated_words(one, other) for one, other in pairs),
        dropped=sum(dropped for _, dropped in found),
    )


def edit_distance(hypothesis: Sequence[str], reference: Sequence[str]) -> tuple[int, int]:
    """The fewest words of one to put in, leave out or replace so that it is the other (Levenshtein's distance), and how
    many of these are put in: as few as may be.

    >>> distance("kitten", "sitting")
    (3, 1)
    """
    whole = len(reference) + 1  # an edit, where a word that is put in counts one more
    above = [place * (whole + 1) for place in range(whole)]
    for number, word in enumerate(hypothesis, 1):
        row = [number * whole]
        for place, wanted in enumerate(reference, 1):
            replaced = above[place - 1] + (whole if word != wanted else 0)
            row.append(min(above[place] + whole, row[-1] + whole + 1, replaced))
        above = row
    return divmod(above[-1], whole)


class WordRecall(NamedTuple):
    """How many of certain words of the references the translations have."""

    words: int
    recalled: int


def word_recall(hypotheses: Sequence[str], references: Sequence[str], is_counted: Callable[[str], bool]) -> WordRecall:
    """Each counts as often as it comes.

    >>> recalled(["meet Ada", "Bob and Bob"], ["meet Ada", "meet Eve and Bob"], str.istitle)
    Recalled(words=3, found=2)
    """
    words = found = 0
    for one, other in zip(hypotheses, references, strict=True):
        there, sought = Counter(split_words(one)), Counter(filter(is_counted, split_words(other)))
        words, found = words + sought.total(), found + (there & sought).total()
    return WordRecall(words, found)


def count_repeated_words(translation: Sequence[str], reference: Sequence[str]) -> int:
    """Words that come again where the reference does not have them so often; unknown words need not be the same.

    >>> repeated("a dog sees a cat a cat cat".split(), "a dog sees a cat".split())
    3
    """
    wanted, found = Counter(reference), Counter(translation)
    return sum(max(0, times - max(1, wanted[word])) for word, times in found.items() if word != SPECIALS[UNK])
