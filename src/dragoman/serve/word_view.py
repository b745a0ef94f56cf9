"""Translations as words: which tokens belong to each word, and the attention between words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.data.alignments import append_end, attention_to_words
from dragoman.data.detokenize import looks_unsegmented
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.models.translation import BaseTranslator, Translation


class TokenSpan(NamedTuple):
    """A word, and the tokens `first` to `end - 1` that it consists of."""

    text: str
    first: int
    end: int


@dataclass(frozen=True, eq=False)
class WordView:
    """The words of a translation and of its source."""

    words: list[TokenSpan]
    source_words: list[TokenSpan]
    attention: NDArray[np.float64] | None  # (words and `</s>`, source words and `</s>`)

    @classmethod
    def of(cls, model: BaseTranslator, translation: Translation) -> WordView:
        target, source = model.target, model.source
        rows = word_indices(target, translation.tokens)
        columns = word_indices(source, translation.source_tokens)
        weights = translation.attention
        if weights is not None:
            all_rows = append_end(rows) if translation.finished else rows
            all_columns = columns if source.format == TREE else append_end(columns)
            weights = attention_to_words(weights, all_rows, all_columns)
        words = word_spans(target, translation.tokens, rows)
        for replacement in translation.replacements:  # only of translators of words
            words[replacement.place] = words[replacement.place]._replace(text=replacement.word)
        return cls(words, word_spans(source, translation.source_tokens, columns), weights)


def word_indices(tokenizer: Tokenizer, tokens: Sequence[str]) -> list[int]:
    """Return the index of the word of each token. A single word is not joined, nor is a text without spaces."""
    indices = tokenizer.segmenter.word_indices(tokens)
    is_text = (
        tokenizer.format != TREE and max(indices, default=0) > 0 and not looks_unsegmented([tokenizer.join(tokens)])
    )
    return indices if is_text else list(range(len(tokens)))


def word_spans(tokenizer: Tokenizer, tokens: Sequence[str], indices: Sequence[int]) -> list[TokenSpan]:
    """Return the words with these indices, which increase from token to token.

    >>> word_spans(Tokenizer.train("char", ["go on"]), ["g", "o", "▁", "o", "n"], [0, 0, 1, 1, 1])
    [TokenSpan(text='go', first=0, end=2), TokenSpan(text='on', first=2, end=5)]
    """
    starts = [place for place, index in enumerate(indices) if not place or index != indices[place - 1]]
    ends = [*starts[1:], len(tokens)] if starts else []
    joined = (tokenizer.join(tokens[first:end]).strip() for first, end in zip(starts, ends, strict=True))
    return [TokenSpan(*span) for span in zip(joined, starts, ends, strict=True)]
