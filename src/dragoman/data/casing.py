"""Capitals: lines in ALL CAPS, lower case, Title Case or rAnDoM case, rewritten as the training text would write them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.data.segmenters import SPACE_MARK, Segmenter
from dragoman.data.vocabulary import UNK, Vocab

Convention = Literal["lower", "upper", "mixed", "other"]

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
PART = re.compile(r"[^\W\d_]+")  # of a word with hyphens
MIN_MIXED_SHARE, MAX_MIXED_SHARE = 0.002, 0.25  # of capitals among the letters of a text with capitals where usual
MIN_ODD_SHARE, MIN_TITLE_SHARE = 1 / 2, 1 / 5  # of clearly unusual words, for a line to be odd; if all have capitals
MIN_DOTLESS_SHARE = 0.1  # of ı and İ, in relation to i and I; in other languages they are at most in names
ACUTE = "\u0301"
MARGIN = math.log(4)  # by which a form must be more probable to be clearly so


class _UsualForms(NamedTuple):
    """The most probable capitals of a word."""

    inside: str  # a sentence
    first: str  # at the start of a sentence
    is_odd: bool  # the word as it is typed is clearly less probable


@dataclass(frozen=True)
class Truecaser:
    """Rewrites the capitals of lines by the frequencies of tokens in the training text.

    >>> from dragoman.data.tokenizer import Tokenizer
    >>> text = ["Der Hund bellt .", "Der Hund sieht die Katze .", "Die Katze sieht Tom .", "Tom sieht und bellt ."]
    >>> truecaser = Tokenizer.train("word", text, min_count=1).truecaser
    >>> truecaser.truecase(["DIE KATZE BELLT", "die katze bellt", "Der Hund bellt"])
    ['Die Katze bellt', 'Die Katze bellt', 'Der Hund bellt']
    """

    segmenter: Segmenter
    vocab: Vocab

    @cached_property
    def convention(self) -> Convention:
        """How the training text uses capitals; `other`: too many to be those of sentences and names."""
        upper = lower = 0
        for token, count in zip(self.vocab.tokens[UNK + 1 :], self.vocab.counts[UNK + 1 :].tolist(), strict=True):
            upper += count * sum(map(str.isupper, token))
            lower += count * sum(map(str.islower, token))
        share = upper / max(1, upper + lower)
        if not lower:
            return "upper" if upper else "other"
        if share > MAX_MIXED_SHARE:
            return "other"
        return "mixed" if share >= MIN_MIXED_SHARE else "lower"

    def truecase(self, lines: Sequence[str]) -> list[str]:
        """Return lines with usual capitals; lines that do not look odd are returned as they are."""
        if self.convention == "other":
            return list(lines)
        if self.convention != "mixed":
            return [self._change_known(line) for line in lines]
        if self.segmenter.kind == "char":  # the frequencies of words are not known
            return [self._upper(line[:1]) + self._lower(line[1:]) if is_all_caps(line) else line for line in lines]
        usual = self._usual_forms({word for line in lines for word in WORD.findall(line)})
        return [_rewrite(line, usual) for line in lines]

    def _change_known(self, line: str) -> str:
        """Change the capitals of a line; of a line of words, only those of words that are known then, not of names."""
        is_lower = self.convention == "lower"
        if self.segmenter.kind == "word":
            forms = self._lower_forms if is_lower else lambda word: [self._upper(word)]
            return re.sub(r"[^ \t]+", lambda word: self._known_form(word[0], forms(word[0])), line)
        if is_lower and self.segmenter.kind != "char" and (is_all_caps(line) or self._has_dotless_i):
            return WORD.sub(lambda word: max(self._lower_forms(word[0]), key=self._score), line)
        return self._lower(line) if is_lower else self._upper(line)

    def _known_form(self, word: str, forms: Sequence[str]) -> str:
        known = [form for form in forms if self.vocab.id(form) != UNK]
        return max(known, key=lambda form: self._log_prob([form]), default=word)

    def _usual_forms(self, words: Collection[str]) -> dict[str, _UsualForms]:
        """Return the most probable capitals of each word."""
        forms = {word: self._forms(word) for word in words}
        candidates = list({form for word in words for form in (word, *forms[word])})
        segmented = self.segmenter.segment_all(candidates)
        scores = {form: self._log_prob(tokens) for form, tokens in zip(candidates, segmented, strict=True)}

        def best(word: str, bonus: float) -> str:
            return max(forms[word], key=lambda form: scores[form] + (0 if form.islower() else bonus))

        usual = {}
        for word in words:
            inside, first = best(word, -MARGIN), best(word, MARGIN)
            usual[word] = _UsualForms(inside, first, scores[inside] > scores[word] + MARGIN)
        return usual

    def _forms(self, word: str) -> list[str]:
        """Return the ways to write a word: in lower case, with capitals, and as it is."""
        lower = self._lower_forms(word)
        capitals = [self._capitalize(form) for form in lower]
        parts = [PART.sub(lambda part: self._capitalize(part[0]), form) for form in lower]
        return [*lower, *capitals, *parts, self._upper(word), word]

    def _lower_forms(self, word: str) -> list[str]:
        """Return the ways to write a word in lower case.

        STRASSE may be strasse or straße. In Turkish KIZ is kız, but WINDOWS is windows. Greek capitals have no accents.
        """
        lower = [self._lower(word), word.lower(), *(word.lower().replace(*pair) for pair in self._expanded)]
        if is_all_caps(word):
            places = [(i, self._accented[letter]) for i, letter in enumerate(lower[0]) if letter in self._accented]
            lower += [lower[0][:i] + letter + lower[0][i + 1 :] for i, letter in places]
        return [form for form in dict.fromkeys(lower) if _without_accents(form) == _without_accents(word)] or lower[:1]

    def _capitalize(self, word: str) -> str:
        return self._upper(word[:1]) + word[1:]

    def _lower(self, text: str) -> str:
        return (text.replace("I", "ı").replace("İ", "i") if self._has_dotless_i else text).lower()

    def _upper(self, text: str) -> str:
        return (text.replace("i", "İ") if self._has_dotless_i else text).upper()

    def _score(self, form: str) -> float:
        return self._log_prob(self.segmenter.segment(form))

    def _log_prob(self, tokens: Sequence[str]) -> float:
        return float(self._log_probs[self.vocab.ids(token for token in tokens if token != SPACE_MARK)].sum())

    @cached_property
    def _log_probs(self) -> NDArray[np.float64]:
        """The log-probability of each token by its frequency; an unknown one is clearly less probable than any other."""
        counts = self.vocab.counts + 0.5
        log_probs = np.log(counts / counts.sum())
        log_probs[UNK] = log_probs[UNK + 1 :].min(initial=0.0) - 2 * MARGIN
        return log_probs

    @cached_property
    def _letters(self) -> Counter[str]:
        """How often the training text has each character."""
        letters = Counter[str]()
        for token, count in zip(self.vocab.tokens[UNK + 1 :], self.vocab.counts[UNK + 1 :].tolist(), strict=True):
            for letter in token:
                letters[letter] += count
        return letters

    @cached_property
    def _expanded(self) -> list[tuple[str, str]]:
        """Letters of the vocabulary whose capitals are several letters, after the lower case of those: ss and ß."""
        return [(letter.upper().lower(), letter) for letter in sorted(self._letters) if len(letter.upper()) > 1]

    @cached_property
    def _has_dotless_i(self) -> bool:
        """Whether the language has ı, with the capital I, and i with the capital İ: Turkish, Azerbaijani."""
        letters = self._letters
        return letters["ı"] + letters["İ"] > MIN_DOTLESS_SHARE * (letters["i"] + letters["I"])

    @cached_property
    def _accented(self) -> dict[str, str]:
        """Letters of the vocabulary with accents that capitals do not have, by those without: Greek ά by α."""
        accented = {unicodedata.normalize("NFD", letter): letter for letter in self._letters if "Ͱ" <= letter <= "Ͽ"}
        return {form[0]: letter for form, letter in accented.items() if form[1:] == ACUTE and letter.islower()}


def _rewrite(line: str, usual: dict[str, _UsualForms]) -> str:
    """Return a line with usual capitals, if they are odd: all the same, or many words clearly unusual."""
    words = WORD.findall(line)
    share = MIN_TITLE_SHARE if all(word[0].isupper() for word in words) else MIN_ODD_SHARE
    is_odd = is_all_caps(line) or line.islower() or sum(usual[word].is_odd for word in words) >= share * len(words)
    if not words or not is_odd:
        return line
    forms = iter([usual[words[0]].first, *(usual[word].inside for word in words[1:])])
    return WORD.sub(lambda _: next(forms), line)


def is_all_caps(line: str) -> bool:
    """Whether all letters that can be capitals are, and there are several.

    >>> [is_all_caps(line) for line in ("HALLO WELT!", "Hallo", "A 12", "北京")]
    [True, False, False, False]
    """
    return line.isupper() and sum(map(str.isupper, line)) > 1


def _without_accents(word: str) -> str:
    """Return a word in capitals without accents and dots, to compare forms of it."""
    return "".join(part for part in unicodedata.normalize("NFD", word.upper()) if not unicodedata.combining(part))
