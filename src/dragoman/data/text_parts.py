"""The parts of a text that models with different tokens can be compared on: words or, in scripts without spaces, pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.data.detokenize import looks_unsegmented
from dragoman.data.scanner import split_words
from dragoman.data.segmenters import Segmenter
from dragoman.data.vocabulary import END, SPECIALS


@dataclass(frozen=True, eq=False)
class TextParts:
    """The parts of each sentence of a text, `</s>` included, and the part that each token belongs to."""

    words: tuple[str, ...]  # (parts,) as they are spelled
    offsets: NDArray[np.int64]  # (sentences + 1,) first part of each sentence
    part_of_token: tuple[NDArray[np.int64], ...]  # for each corpus: (tokens,)

    def sums(self, values: NDArray[np.float64], corpus: int = 0) -> NDArray[np.float64]:
        """Return the sum of the values of each part's tokens.  # (tokens,) -> (parts,)"""
        sums = np.zeros(len(self.words))
        np.add.at(sums, self.part_of_token[corpus], values)
        return sums


def common_parts(corpora: Sequence[Corpus]) -> TextParts:
    """Return the words of one text that several models have encoded, which must be the same for all.

    In a script without spaces, the parts are the smallest ones that are not divided by a token of any model.

    >>> corpus = Corpus.from_sentences(["the cat"])
    >>> common_parts([corpus]).words
    ('the', 'cat', '</s>')
    """
    lines = [split_words(line) for line in corpora[0].lines()]
    if any([split_words(line) for line in corpus.lines()] != lines for corpus in corpora[1:]):
        raise DataError("the models have different texts; give all the same one")
    spaced = not looks_unsegmented(" ".join(line) for line in lines)
    tokens = [corpus.tokenized_sentences() for corpus in corpora]
    words: list[str] = []
    offsets, parts = [0], [list[int]() for _ in corpora]
    for number, line in enumerate(lines):
        ends = [_ends(corpus.vocab.segmenter, rows[number]) for corpus, rows in zip(corpora, tokens, strict=True)]
        text = "".join(line)
        word_ends = np.cumsum([len(word) for word in line]).tolist()
        boundaries = word_ends if spaced else sorted(set[int]().union(word_ends).union(*ends[:1]).intersection(*ends))
        boundaries = [boundary for boundary in boundaries if 0 < boundary < len(text)] + [len(text)] * bool(text)
        for part_of_token, token_ends in zip(parts, ends, strict=True):
            starts = [0, *token_ends[:-1]] if token_ends else []
            inside = np.searchsorted(boundaries, starts, side="right").clip(max=max(0, len(boundaries) - 1))
            part_of_token += [*(inside + offsets[-1]).tolist(), offsets[-1] + len(boundaries)]
        words += [*(text[first:last] for first, last in pairwise([0, *boundaries])), SPECIALS[END]]
        offsets.append(len(words))
    return TextParts(tuple(words), np.array(offsets), tuple(np.array(part, np.int64) for part in parts))


def token_parts(corpora: Sequence[Corpus]) -> TextParts:
    """Return the tokens of a text as its parts, which must be the same for all models."""
    sentences = corpora[0].tokenized_sentences()
    if any(corpus.tokenized_sentences() != sentences for corpus in corpora[1:] if corpus is not corpora[0]):
        raise DataError("the models have different texts; give all the same one")
    words = tuple(token for sentence in sentences for token in (*sentence, SPECIALS[END]))
    return TextParts(words, corpora[0].token_offsets, (np.arange(len(words)),) * len(corpora))


def _ends(segmenter: Segmenter, tokens: Sequence[str]) -> list[int]:
    """Return where each token ends, in characters of the line without its spaces."""
    return np.cumsum([len(text.replace(" ", "")) for text in segmenter.token_texts(tokens)]).tolist()
