"""New tokens for the vocabulary of a trained model: what a new text has and the old tokenizer cannot write well.

Old tokens keep their ids. A new word or character is a new token. Subwords get new pieces for words with characters
that the old pieces cannot write, and for words that are split into pieces of less than half the usual length. Old
pieces keep their precedence, so most other words are split as before.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dragoman.data.scanner import split_words
from dragoman.data.segmenters import (
    SPACE_MARK,
    Segmenter,
    SubwordSegmenter,
    minimum_size,
    recommended_size,
    train_segmenter,
)
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.trees import Treebank
from dragoman.data.vocabulary import SPECIALS, UNK, Vocab

MIN_PIECE_LENGTH = 0.5  # of well-split words, as a share of the mean length of pieces in the old training text
OCCURRENCES_PER_PIECE = 20  # badly split words in the new text for each new piece, at least


@dataclass(frozen=True)
class NewTokens:
    """How the new tokens of an extended vocabulary were read before."""

    parts: list[list[int]]  # for each new token the old tokens in its place; `<unk>` if the old tokenizer had none
    counts: NDArray[np.int64]  # (new tokens,) in the new text, at least 1
    still_unknown: int  # tokens of the new text that are unknown to the extended vocabulary too

    def shares(self) -> tuple[NDArray[np.float64], float]:
        """Return the shares of the new tokens and of `<unk>` in what was unknown; they sum to 1."""
        rest = self.still_unknown + 1  # there are always more unknown words
        total = self.counts.sum() + rest
        return self.counts / total, rest / total


def extend_tokenizer(
    tokenizer: Tokenizer, lines: Sequence[str], *, min_count: int | None = None
) -> tuple[Tokenizer, NewTokens]:
    """Add what a new text has to the vocabulary of a tokenizer.

    Args:
        tokenizer: The old tokenizer.
        lines: The new text.
        min_count: Words with a lower count in the new text are not added. Default: 2 for words, otherwise 1.

    >>> tokenizer = Tokenizer.train("word", ["the cat sat ."] * 2)
    >>> extended, new = extend_tokenizer(tokenizer, ["the bird sat .", "a bird", "the bird"])
    >>> extended.vocab.tokens[3:], new.parts, new.counts.tolist(), new.still_unknown
    (('the', 'cat', 'sat', '.', 'bird'), [[2]], [3], 1)
    """
    segmenter, vocab = tokenizer.segmenter, tokenizer.vocab
    if isinstance(segmenter, SubwordSegmenter):
        segmenter = extend_subwords(segmenter, vocab, lines)
    if tokenizer.format == TREE:
        words = Treebank.from_lines(lines).sentences_as_text()
        tokens = Counter(word for line in words for word in split_words(line))
    else:
        tokens = Counter(token for line in segmenter.segment_all(lines) for token in line)
    known = set(vocab.tokens)
    if isinstance(segmenter, SubwordSegmenter):
        new = {piece: max(1, tokens[piece]) for piece in segmenter.pieces if piece not in known}
    else:
        least = min_count or (2 if segmenter.kind == "word" else 1)
        new = {token: count for token, count in tokens.items() if token not in known and count >= least}
    parts = [_old_ids(token, tokenizer) for token in new]
    unknown = sum(count for token, count in tokens.items() if token not in known and token not in new)
    counts = np.array([*new.values()], np.int64)
    extended = Vocab([*vocab.tokens, *new], np.concatenate([vocab.counts, counts]), segmenter)
    return replace(tokenizer, vocab=extended), NewTokens(parts, counts, unknown)


def _old_ids(token: str, tokenizer: Tokenizer) -> list[int]:
    """Return the ids of the known old tokens that stood for a new one; that of `<unk>` if there are none."""
    segmenter, vocab = tokenizer.segmenter, tokenizer.vocab
    if not isinstance(segmenter, SubwordSegmenter):
        return [UNK]
    pieces = segmenter.segment(segmenter.join([token]))
    if pieces and not token.startswith(SPACE_MARK):
        pieces[0] = pieces[0].removeprefix(SPACE_MARK)  # that of the first word of a line
    return [index for index in vocab.ids(pieces).tolist() if index != UNK] or [UNK]


def extend_subwords(segmenter: SubwordSegmenter, vocab: Vocab, lines: Sequence[str]) -> SubwordSegmenter:
    """Return a segmenter with new pieces for the words of a text that are split badly; the same if there are none."""
    counts = Counter(word for line in lines for word in split_words(line))
    badly_split = _badly_split(segmenter, vocab, counts)
    occurrences = sum(counts[word] for word in badly_split)
    if not occurrences:
        return segmenter
    text = [" ".join(word for word in split_words(line) if word in badly_split) for line in lines]
    text = [line for line in text if line]
    share = occurrences / counts.total()
    size = min(recommended_size(round(share * len(lines)), len(badly_split)), occurrences // OCCURRENCES_PER_PIECE)
    with warnings.catch_warnings(action="ignore"):  # fewer pieces than this are as good
        new_segmenter = train_segmenter(f"{segmenter.kind}:{max(size, 2 * minimum_size(text))}", text)
    assert isinstance(new_segmenter, SubwordSegmenter)
    old_scores, scores = segmenter.scores(), new_segmenter.scores()
    new = [piece for piece in scores if piece not in old_scores and piece not in SPECIALS]
    if segmenter.kind == "unigram":  # log-probabilities, which for new pieces are those in a part of the text
        new_scores = [scores[piece] + math.log(share) for piece in new]
    else:  # ranks of merges: those of new pieces are after all old ones
        new_scores = [min(old_scores.values()) - 1 - rank for rank in range(len(new))]
    return segmenter.with_pieces(dict(zip(new, new_scores, strict=True))) if new else segmenter


def _badly_split(segmenter: Segmenter, vocab: Vocab, words: Mapping[str, int]) -> set[str]:
    """Return the words with unknown pieces, or with pieces of less than half the length that is usual."""
    lengths = np.array([len(token) for token in vocab.tokens])
    lengths[: len(SPECIALS)] = 0
    counts = vocab.counts * (lengths > 0)
    usual_length = float(lengths @ counts) / max(1, int(counts.sum()))
    known = set(vocab.tokens)
    badly_split = set()
    for word, pieces in zip(words, segmenter.segment_all(words), strict=True):
        length = (len(word) + 1) / max(1, len(pieces))
        if length < MIN_PIECE_LENGTH * usual_length or not known.issuperset(pieces):
            badly_split.add(word)
    return badly_split
