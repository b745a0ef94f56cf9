"""Unknown word replacement in translations (tutorial, section "Unknown Word Replacement"; Luong et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.align.lexicon import Lexicon
from dragoman.data.vocabulary import SPECIALS, UNK

COPIED, TRANSLATED = "copied", "lexicon"  # rules

MIN_COVERAGE = 0.5  # share of the words of a translator's source that a lexicon used with it must know
MIN_ATTENTION = 0.1  # attention that an unknown source word must receive to be preferred to known ones


@dataclass(frozen=True)
class Replacement:
    """The word that replaces an unknown word."""

    place: int  # position among the words of the translation
    word: str
    source: str  # the source word with the most attention
    attention: float  # that it received
    rule: str  # `COPIED` or `TRANSLATED`

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "attention": round(self.attention, 4)}


@dataclass(frozen=True, eq=False)
class UnknownReplacer:
    """Replaces each `<unk>` by a translation of the source word with the most attention, or by that word itself.

    Source words that the translator does not know are preferred, if they received attention: a word that it cannot
    write is mostly one that it could not read. Punctuation is considered last. The translation is the lexicon's, if
    there is a lexicon and it knows the word.
    """

    lexicon: Lexicon | None = None

    def replacements(
        self,
        words: Sequence[str],
        source: Sequence[str],
        attention: NDArray[np.float64],
        is_unknown: Sequence[bool] | None = None,
    ) -> tuple[Replacement, ...]:
        """Return the replacement of each `<unk>` among the words; none if the source has no words.

        # attention: (words or more, source or more); of the nodes of a tree, those of a single word are considered.
        # is_unknown: (source,) whether the translator does not know a source word
        """
        candidates = [position for position, word in enumerate(source) if word and " " not in word]
        candidates = [position for position in candidates if any(map(str.isalnum, source[position]))] or candidates
        if not candidates:
            return ()
        unknown = [position for position in candidates if is_unknown is not None and is_unknown[position]]
        result = []
        for place in (place for place, word in enumerate(words) if word == SPECIALS[UNK]):
            weights = attention[place]
            preferred = [position for position in unknown if weights[position] >= MIN_ATTENTION] or candidates
            best = preferred[int(np.argmax(weights[preferred]))]
            translations = [] if self.lexicon is None else self.lexicon.translations(source[best], 1)
            word, rule = (translations[0].word, TRANSLATED) if translations else (source[best], COPIED)
            result.append(Replacement(place, word, source[best], float(weights[best]), rule))
        return tuple(result)
