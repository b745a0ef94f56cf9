"""Capitals: lines in ALL CAPS, Title Case or random case, written as the training text of a tokenizer would write them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

from dragoman.data.segmenters import SPACE_MARK, Segmenter
from dragoman.data.vocabulary import UNK, Vocab

Convention = Literal["lower", "upper", "mixed", "other"]

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
TOKEN = re.compile(r"[^ \t]+")
LETTERS = re.compile(r"[^\W\d_]+")
MIN_MIXED_SHARE, MAX_MIXED_SHARE = 0.002, 0.25  # of capitals among the letters of a text with capitals where usual
# A capital may stand at the start of a sentence, so a word has one elsewhere only if it is this much more probable.
CAPITAL_MARGIN = math.log(4)
MIN_ODD_SHARE = 1 / 2  # of the words of a line, so that its capitals are changed


class _UsualForm(NamedTuple):
    """The most probable capitalisation of a word."""

    inside: str  # a sentence
    at_start: str
    is_clear: bool = True  # whether the form inside a sentence is clearly more probable than the word as it is typed


@dataclass(frozen=True)
class Truecaser:
    """Rewrites the capitals of lines by the frequencies of tokens in the training text.

    >>> from dragoman.data.tokenizer import Tokenizer
    >>> text = ["Der Hund bellt .", "Der Hund sieht die Katze .", "Die Katze sieht Tom .", "Tom sieht und bellt ."]
    >>> tokenizer = Tokenizer.train("word", text, min_count=1)
    >>> truecaser = Truecaser(tokenizer.segmenter, tokenizer.vocab)
    >>> truecaser.truecase(["DIE KATZE BELLT", "die katze bellt", "Der Hund bellt"])
    ['Die Katze bellt', 'Die Katze bellt', 'Der Hund bellt']
    """

    segmenter: Segmenter
    vocab: Vocab

    @cached_property
    def convention(self) -> Convention:
        """How the training text uses capitals; `other`: too many capitals to be those of sentences and names."""
        upper = lower = 0
        for token, count in zip(self.vocab.tokens[UNK + 1 :], self.vocab.counts[UNK + 1 :].tolist(), strict=True):
            upper += count * sum(map(str.isupper, token))
            lower += count * sum(map(str.islower, token))
        share = upper / max(1, upper + lower)
        if share <= MAX_MIXED_SHARE:
            return "lower" if share < MIN_MIXED_SHARE else "mixed"
        return "upper" if not lower else "other"

    def truecase(self, lines: Sequence[str]) -> list[str]:
        """Return lines with usual capitals; lines that do not look odd are returned as they are."""
        match self.convention:
            case "lower":
                return [self._change_known(line, str.lower) for line in lines]
            case "upper":
                return [self._change_known(line, str.upper) for line in lines]
            case "other":
                return list(lines)
        found = [list(WORD.finditer(line)) for line in lines]
        usual = self._usual_forms({word[0] for words in found for word in words})
        return [
            self._truecase_line(line, words, [usual[word[0]] for word in words])
            for line, words in zip(lines, found, strict=True)
        ]

    def _change_known(self, line: str, change: Callable[[str], str]) -> str:
        """Change the capitals of a line; of a line of words, only those of words that are known then, not of names."""
        if self.segmenter.kind != "word":
            return change(line)
        return TOKEN.sub(lambda word: change(word[0]) if change(word[0]) in self._log_probs else word[0], line)

    def _truecase_line(self, line: str, words: list[re.Match[str]], usual: list[_UsualForm]) -> str:
        all_caps, all_lower = is_all_caps(line), line.islower()
        if not words or (self.segmenter.kind == "char" and not all_caps):  # the frequencies of words are not known
            return line
        first, typed = usual[0], [word[0] for word in words]
        all_same = all_caps or all_lower
        forms = [form.inside if all_same or form.is_clear else word for form, word in zip(usual, typed, strict=True)]
        if all_caps or typed[0][:1].isupper():
            forms[0] = _capitalize(forms[0])
        elif all_lower:
            forms[0] = first.at_start if len(words) == 1 else _capitalize(first.inside)
        odd = sum(form != word for form, word in zip(forms, typed, strict=True))
        is_odd = odd >= max(2, MIN_ODD_SHARE * len(words)) or odd == len(words)
        if not odd or not (all_same or is_odd):
            return line
        ends = [0, *(word.end() for word in words)]
        gaps = [line[end : word.start()] for end, word in zip(ends, words, strict=False)]
        return "".join(chain.from_iterable(zip(gaps, forms, strict=True))) + line[ends[-1] :]

    def _usual_forms(self, words: Collection[str]) -> dict[str, _UsualForm]:
        """Return the most probable capitalisation of each word, by the frequencies of its tokens."""
        if self.segmenter.kind == "char":
            return {word: _UsualForm(word.lower(), _capitalize(word.lower())) for word in words}
        forms = {word: self._lower_forms(word) for word in words}
        capitals = {
            word: [capital for form in forms[word] for capital in (_capitalize(form), _capitalize_parts(form))]
            for word in words
        }
        candidates = list({form for word in words for form in (*forms[word], *capitals[word], word)})
        segmented = self.segmenter.segment_all(candidates)
        scores = {form: self._log_prob(tokens) for form, tokens in zip(candidates, segmented, strict=True)}
        result = {}
        for word in words:
            lower = max(forms[word], key=scores.__getitem__)
            best = max([*forms[word], *capitals[word], word], key=scores.__getitem__)
            inside = best if scores[best] > scores[lower] + CAPITAL_MARGIN else lower
            result[word] = _UsualForm(inside, best, scores[inside] > scores[word] + CAPITAL_MARGIN)
        return result

    def _lower_forms(self, word: str) -> list[str]:
        """Return the ways to write a word in lower case: STRASSE may be strasse or straße."""
        lower = word.lower()
        forms = [lower, *(lower.replace(plain, letter) for plain, letter in self._expanded.items() if plain in lower)]
        return [form for form in forms if form.upper() == word.upper()] or [lower]

    def _log_prob(self, tokens: Sequence[str]) -> float:
        return sum(self._log_probs.get(token, self._unknown_log_prob) for token in tokens if token != SPACE_MARK)

    @cached_property
    def _log_probs(self) -> dict[str, float]:
        counts = self.vocab.counts[UNK + 1 :].tolist()
        total = sum(counts) + len(counts)
        return {
            token: math.log((count + 0.5) / total)
            for token, count in zip(self.vocab.tokens[UNK + 1 :], counts, strict=True)
        }

    @cached_property
    def _unknown_log_prob(self) -> float:
        return min(self._log_probs.values(), default=0.0) - 2 * CAPITAL_MARGIN

    @cached_property
    def _expanded(self) -> dict[str, str]:
        """Letters of the vocabulary whose capitals are several letters, such as ß, by the lower case of those."""
        letters = set[str]().union(*self.vocab.tokens[UNK + 1 :])
        return {
            letter.upper().lower(): letter for letter in sorted(letters) if letter.islower() and len(letter.upper()) > 1
        }


def is_all_caps(line: str) -> bool:
    """Whether all letters that can be capitals are, and there are several.

    >>> [is_all_caps(line) for line in ("HALLO WELT!", "Hallo", "A 12", "北京")]
    [True, False, False, False]
    """
    return line.isupper() and sum(map(str.isupper, line)) > 1


def _capitalize(word: str) -> str:
    return word[:1].upper() + word[1:]


def _capitalize_parts(word: str) -> str:
    return LETTERS.sub(lambda part: _capitalize(part[0]), word)
