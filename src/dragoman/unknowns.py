"""Unknown words in translations replaced (tutorial, section "Unknown Word Replacement"; Luong et al. 2015): by what the
lexicon has for the source word that was looked at most, or else by that word itself, as suits names and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.align.lexicon import Lexicon
from dragoman.text.vocab import SPECIALS, UNK

COPIED, TRANSLATED = "copied", "lexicon"  # rules


@dataclass(frozen=True)
class Replaced:
    """What stands in the place of an unknown word."""

    place: int  # among the words of the translation
    word: str
    source: str  # the source word that was looked at most
    attention: float  # that it received
    rule: str  # copied, or lexicon

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "attention": round(self.attention, 4)}


@dataclass(frozen=True, eq=False)
class Unknowns:
    """The rules: first the lexicon, if there is one and it knows the source word; else the source word itself."""

    lexicon: Lexicon | None = None

    def replaced(
        self, words: Sequence[str], source: Sequence[str], attention: NDArray[np.float64]
    ) -> tuple[Replaced, ...]:
        """What each `<unk>` among the words is replaced by; none if there is nothing to look at.

        # attention: (words and more, source and more). Of a tree's nodes, those of one word are looked at.
        """
        single = [number for number, word in enumerate(source) if word and " " not in word]
        if not single:
            return ()
        places = [place for place, word in enumerate(words) if word == SPECIALS[UNK]]
        most = [single[int(np.argmax(attention[place, single]))] for place in places]
        looked = zip(places, most, strict=True)
        return tuple(self._replaced(place, source[best], float(attention[place, best])) for place, best in looked)

    def _replaced(self, place: int, source: str, attention: float) -> Replaced:
        known = [] if self.lexicon is None else self.lexicon.translations(source, 1)
        if known:
            return Replaced(place, known[0].word, source, attention, TRANSLATED)
        return Replaced(place, source, source, attention, COPIED)
