"""Unknown words in translations replaced (tutorial, section "Unknown Word Replacement"; Luong et al. 2015): by what the
lexicon has for the source word that was looked at most, or else by that word itself, as suits names and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.align.lexicon import Lexicon
from dragoman.data.vocabulary import SPECIALS, UNK

COPIED, TRANSLATED = "copied", "lexicon"  # rules


MIN_COVERAGE = 0.5  # of what a translator reads must be known to a lexicon that is used with it
MIN_ATTENTION = 0.1  # of the attention, that a word which is unknown itself must have to come before others


@dataclass(frozen=True)
class Replacement:
    """What stands in the place of an unknown word."""

    place: int  # among the words of the translation
    word: str
    source: str  # the source word that was looked at most
    attention: float  # that it received
    rule: str  # copied, or lexicon

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "attention": round(self.attention, 4)}


@dataclass(frozen=True, eq=False)
class UnknownReplacer:
    """The rules. The source word is the one that was looked at most, among those that the translator does not know
    itself if one of them was looked at: what it cannot say is mostly what it could not read. Punctuation comes last. In
    its place comes its translation by the lexicon, if there is one and it knows the word; else the word itself."""

    lexicon: Lexicon | None = None

    def replacements(
        self,
        words: Sequence[str],
        source: Sequence[str],
        attention: NDArray[np.float64],
        is_unknown: Sequence[bool] | None = None,
    ) -> tuple[Replacement, ...]:
        """What each `<unk>` among the words is replaced by; none if there is nothing to look at.

        # attention: (words and more, source and more). Of a tree's nodes, those of one word are looked at. strange:
        # (source,) whether the translator does not know a word
        """
        single = [number for number, word in enumerate(source) if word and " " not in word]
        if not single:
            return ()
        single = [number for number in single if any(map(str.isalnum, source[number]))] or single
        unknown = [number for number in single if is_unknown is not None and is_unknown[number]]
        found = []
        for place in (place for place, word in enumerate(words) if word == SPECIALS[UNK]):
            best = _most_attended(attention[place], unknown, MIN_ATTENTION) or _most_attended(
                attention[place], single, 0.0
            )
            assert best is not None, "there are words"
            found.append(self._replacement(place, source[best[0]], best[1]))
        return tuple(found)

    def _replacement(self, place: int, source: str, attention: float) -> Replacement:
        known = [] if self.lexicon is None else self.lexicon.translations(source, 1)
        if known:
            return Replacement(place, known[0].word, source, attention, TRANSLATED)
        return Replacement(place, source, source, attention, COPIED)


def _most_attended(attention: NDArray[np.float64], among: Sequence[int], least: float) -> tuple[int, float] | None:
    """The word that was looked at most among some, and how much; none if that is less than so much."""
    if not among:
        return None
    best = among[int(np.argmax(attention[list(among)]))]
    return (best, float(attention[best])) if attention[best] >= least else None
