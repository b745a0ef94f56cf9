"""How many words are wrong: edits between translations and references, as phonemes and inflections are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.evaluation.translation import check_lines
from dragoman.text.spacing import words_of


@dataclass(frozen=True)
class Edits:
    """What has to be changed in translations to make them the references."""

    sentences: int
    right: int  # translations that are the reference itself
    edits: int  # words put in, left out or replaced
    words: int  # of the references
    repeated: int = 0  # words that come again and again: more often than in the reference, and than once
    dropped: int = 0  # words of the references that are not in the translations, or not as often

    @property
    def exact_match(self) -> float:
        """Share of the translations that are exactly right."""
        return self.right / self.sentences

    @property
    def word_error_rate(self) -> float:
        """Edits for each word of the references; of phonemes, the phoneme error rate."""
        return self.edits / max(1, self.words)


def count_edits(hypotheses: Sequence[str], references: Sequence[str]) -> Edits:
    """
    >>> count_edits(["AA K AH N", "B AH"], ["AA K AH N", "B IY T"])
    Edits(sentences=2, right=1, edits=2, words=7, repeated=0, dropped=2)
    """
    check_lines(hypotheses, references)
    pairs = [(words_of(one), words_of(other)) for one, other in zip(hypotheses, references, strict=True)]
    edits = [distance(one, other) for one, other in pairs]
    words = sum(len(other) for _, other in pairs)
    again, missing = (sum(count(*pair) for pair in pairs) for count in (repeated, dropped))
    return Edits(len(pairs), edits.count(0), sum(edits), words, again, missing)


def repeated(translation: Sequence[str], reference: Sequence[str]) -> int:
    """Words that come again where the reference does not have them so often.

    >>> repeated("a dog sees a cat a cat cat".split(), "a dog sees a cat".split())
    3
    """
    wanted = Counter(reference)
    return sum(max(0, times - max(1, wanted[word])) for word, times in Counter(translation).items())


def dropped(translation: Sequence[str], reference: Sequence[str]) -> int:
    """Words of the reference that the translation lacks.

    >>> dropped("a dog sees".split(), "a dog sees a cat".split())
    2
    """
    return (Counter(reference) - Counter(translation)).total()


def distance(one: Sequence[str], other: Sequence[str]) -> int:
    """The fewest words to put in, leave out or replace (Levenshtein's distance).

    >>> distance("kitten", "sitting")
    3
    """
    above = list(range(len(other) + 1))
    for number, word in enumerate(one, 1):
        row = [number]
        for place, wanted in enumerate(other, 1):
            row.append(min(above[place] + 1, row[-1] + 1, above[place - 1] + (word != wanted)))
        above = row
    return above[-1]
