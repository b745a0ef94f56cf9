"""Translations of lines, and their attention between words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dragoman.data.scanner import split_words
from dragoman.data.vocabulary import END, SPECIALS

if TYPE_CHECKING:
    from dragoman.align.unknown_words import Replacement

END_TOKEN = SPECIALS[END]

Tokens = tuple[str, ...]


@dataclass(frozen=True)
class Translation:
    """A translation of a line, with its scores and attention."""

    text: str
    tokens: Tokens
    log_prob: float  # log P(E | F)
    score: float  # what the search maximised
    source_tokens: Tokens
    finished: bool = True  # False: the maximum length was reached before `</s>`
    # (tokens and `</s>`, source tokens and `</s>`); None without attention, or if the line was split
    attention: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    replacements: tuple[Replacement, ...] = ()  # of unknown words in the text
    is_joined: bool = False  # from the translations of several sentences or chunks

    @property
    def words(self) -> list[str]:
        """The tokens, with unknown ones replaced."""
        words = list(self.tokens)
        for replacement in self.replacements:
            words[replacement.place] = replacement.word
        return words

    @property
    def tokens_with_end(self) -> Tokens:
        """The labels of the attention's rows: the tokens, and `</s>` if it was predicted."""
        return (*self.tokens, END_TOKEN) if self.finished else self.tokens


EMPTY_TRANSLATION = Translation("", (), 0.0, 0.0, ())  # of a blank line


def join_translations(parts: Sequence[Translation]) -> Translation:
    """Return the translation of a line from those of its sentences or chunks."""
    offsets = accumulate((len(part.tokens) for part in parts), initial=0)
    replacements = (
        replace(replacement, place=replacement.place + offset)
        for part, offset in zip(parts, offsets, strict=False)
        for replacement in part.replacements
    )
    return Translation(
        " ".join(part.text for part in parts if part.text),
        tuple(token for part in parts for token in part.tokens),
        sum(part.log_prob for part in parts),
        sum(part.score for part in parts),
        tuple(token for part in parts for token in part.source_tokens),
        all(part.finished for part in parts),
        replacements=tuple(replacements),
        is_joined=True,
    )


@dataclass(frozen=True, eq=False)
class AttentionMatrix:
    """Attention weights with the labels of their rows and columns, `</s>` included where it was predicted or read."""

    target: Tokens
    source: Tokens
    matrix: NDArray[np.float64]  # (target, source)

    def links(self, *, finished: bool) -> list[tuple[int, int]]:
        """Return (source, target) links: each target label with the source label of its highest weight.

        # finished: whether the last row is `</s>`
        """
        from dragoman.evaluation.alignment import argmax_links

        end = np.zeros((0 if finished else 1, len(self.source)))  # the missing row of `</s>`
        return argmax_links(np.concatenate([self.matrix, end]))


def words_of_tokens(text: str, word_indices: Sequence[int]) -> Tokens:
    """Return the words of a text, as many as its tokens belong to."""
    count = max(word_indices, default=-1) + 1
    words = split_words(text) or [""] * count  # tokens that are only spaces belong to an empty word
    assert len(words) == count, "the tokens do not match the words of the text"
    return tuple(words)
