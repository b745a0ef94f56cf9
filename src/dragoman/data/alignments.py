"""Word alignments of sentence pairs, and conversion between tokens and words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import error_at_line
from dragoman.data.ranges import offsets_of, select_ranges


@dataclass(frozen=True, eq=False)
class WordAlignments:
    """The alignment links of all sentence pairs, sorted by source and then target position.

    >>> alignments = WordAlignments.from_lists([[(0, 0), (1, 2)], [], [(0, 1)]])
    >>> alignments[0], alignments.select(np.array([2, 0]))[0]
    ([(0, 0), (1, 2)], [(0, 1)])
    """

    offsets: NDArray[np.int64]  # (pairs + 1,) first link of each pair
    source: NDArray[np.int32]  # (links,) positions in the source sentence, from 0
    target: NDArray[np.int32]  # (links,) positions in the target sentence

    @classmethod
    def from_lists(cls, lists: Sequence[Iterable[tuple[int, int]]]) -> WordAlignments:
        """Build from one list of (source position, target position) per pair."""
        ordered = [sorted(links) for links in lists]
        flat = np.array([link for links in ordered for link in links], np.int32).reshape(-1, 2)
        return cls(offsets_of(np.array([len(links) for links in ordered])), flat[:, 0].copy(), flat[:, 1].copy())

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, pair: int) -> list[tuple[int, int]]:
        links = slice(*self.offsets[pair : pair + 2].tolist())
        return list(zip(self.source[links].tolist(), self.target[links].tolist(), strict=True))

    @property
    def pair_indices(self) -> NDArray[np.int64]:
        """The pair of each link.  # (links,)"""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def reversed(self) -> WordAlignments:
        """The same links from target to source."""
        order = np.lexsort((self.source, self.target, self.pair_indices))
        return WordAlignments(self.offsets, self.target[order], self.source[order])

    def select(self, pairs: NDArray[np.integer]) -> WordAlignments:
        """Return the alignments of these pairs, in this order."""
        offsets, positions = select_ranges(self.offsets, pairs)
        return WordAlignments(offsets, self.source[positions], self.target[positions])


def append_end(word_indices: Sequence[int]) -> list[int]:
    """Append the index of `</s>`, which counts as a word.

    >>> append_end([0, 0, 1]), append_end([])
    ([0, 0, 1, 2], [0])
    """
    return [*word_indices, max(word_indices, default=-1) + 1]


def attention_to_words(
    matrix: NDArray[np.floating], target_words: Sequence[int], source_words: Sequence[int]
) -> NDArray[np.float64]:
    """Convert attention between tokens to attention between words.  # (target words, source words)

    Weights are summed over the tokens of a source word and averaged over the tokens of a target word, so rows still
    sum to one.

    Args:
        matrix: (target tokens, source tokens) attention weights.
        target_words: the word index of each target token, as from `Segmenter.word_indices`.
        source_words: the word index of each source token.

    >>> attention_to_words(np.array([[0.5, 0.5, 0.0], [0.1, 0.1, 0.8]]), [0, 0], [0, 0, 1]).round(3).tolist()
    [[0.6, 0.4]]
    """
    assert matrix.shape == (len(target_words), len(source_words)), "matrix must be (target tokens, source tokens)"
    target, source = _membership(target_words), _membership(source_words)  # (tokens, words)
    averaged = target / np.maximum(target.sum(axis=0), 1)  # (target tokens, target words)
    return averaged.T @ matrix @ source  # (target words, source words)


def _membership(words: Sequence[int]) -> NDArray[np.float64]:
    """1 where a token belongs to a word.  # (tokens, words)"""
    return np.eye(max(words, default=-1) + 1)[list(words)] if words else np.zeros((0, 0))


def word_links_to_tokens(
    links: Sequence[Iterable[tuple[int, int]]],
    words: Sequence[tuple[Sequence[int], Sequence[int]]],
    name: str = "alignment",
    indices: Sequence[int] | None = None,
) -> WordAlignments:
    """Convert links between words to links between all of their tokens.

    Args:
        links: for each pair, (source word, target word) links.
        words: for each pair, the word index of each source token and of each target token.
        name: the alignment file, for error messages about words that do not exist.
        indices: of the pairs in this file. Default: all pairs of the file, in order.

    >>> word_links_to_tokens([[(0, 0), (1, 1)]], [([0, 0, 1], [0, 1])])[0]
    [(0, 0), (1, 0), (2, 1)]
    """
    lists = []
    for index, pair_links, (source, target) in zip(indices or range(len(links)), links, words, strict=True):
        source_tokens, target_tokens = _tokens_of_words(source), _tokens_of_words(target)
        token_links = []
        for i, j in pair_links:
            if i not in source_tokens or j not in target_tokens:
                sizes = f"{len(source_tokens)} and {len(target_tokens)} words"
                problem = f"{i}-{j} links words that do not exist (the sentences have {sizes}); align the pairs again"
                raise error_at_line(name, index + 1, problem)
            token_links += [(s, t) for s in source_tokens[i] for t in target_tokens[j]]
        lists.append(token_links)
    return WordAlignments.from_lists(lists)


def _tokens_of_words(word_indices: Sequence[int]) -> dict[int, list[int]]:
    """Return the token positions of each word."""
    positions: dict[int, list[int]] = {}
    for token, word in enumerate(word_indices):
        positions.setdefault(word, []).append(token)
    return positions
