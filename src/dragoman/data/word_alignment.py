"""From units to words: attention and alignments between pieces or characters, as between the words of two lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import error_at_line
from dragoman.data.alignments import WordAlignments


def append_end(word_indices: Sequence[int]) -> list[int]:
    """The word of each unit and of the closing `</s>`, which is a word of its own.

    >>> with_end([0, 0, 1]), with_end([])
    ([0, 0, 1, 2], [0])
    """
    return [*word_indices, max(word_indices, default=-1) + 1]


def attention_to_words(
    matrix: NDArray[np.floating], target_words: Sequence[int], source_words: Sequence[int]
) -> NDArray[np.float64]:
    """Attention of units to units as that of words to words.  # (target words, source words)

    What the units of a source word receive is added up; the units of a target word are averaged. So a row that sums to
    one still does. `matrix` is (target units, source units); the numbers say which word each unit belongs to, as
    `Units.word_of_unit` gives them.

    >>> to_words(np.array([[0.5, 0.5, 0.0], [0.1, 0.1, 0.8]]), [0, 0], [0, 0, 1]).round(3).tolist()
    [[0.6, 0.4]]
    """
    assert matrix.shape == (len(target_words), len(source_words)), (
        "a row for each target unit, a column for each source"
    )
    target, source = _membership(target_words), _membership(source_words)  # (units, words)
    share = target / np.maximum(target.sum(axis=0), 1)  # (target units, target words)
    return share.T @ matrix @ source  # (target words, source words)


def token_links_to_words(
    links: Iterable[tuple[int, int]], source_words: Sequence[int], target_words: Sequence[int]
) -> list[tuple[int, int]]:
    """Pairs (source unit, target unit) as pairs of words, each once, in order.

    >>> pairs_of_words([(0, 0), (1, 0), (2, 1)], [0, 0, 1], [0, 1])
    [(0, 0), (1, 1)]
    """
    return sorted({(source_words[source], target_words[target]) for source, target in links})


def _membership(words: Sequence[int]) -> NDArray[np.float64]:
    """1 where a unit belongs to a word.  # (units, words)"""
    return np.eye(max(words, default=-1) + 1)[list(words)] if words else np.zeros((0, 0))


def word_links_to_tokens(
    links: Sequence[Iterable[tuple[int, int]]],
    words: Sequence[tuple[Sequence[int], Sequence[int]]],
    name: str = "alignment",
) -> WordAlignments:
    """Links between words as links between all their units; links of words that there are not are refused by line.

    # words: for each pair, the word of each source unit and of each target unit

    >>> links_of_units([[(0, 0), (1, 1)]], [([0, 0, 1], [0, 1])])[0]
    [(0, 0), (1, 0), (2, 1)]
    """
    found = []
    for line, (own, (source, target)) in enumerate(zip(links, words, strict=True), 1):
        for one, other in own:
            if one > max(source, default=-1) or other > max(target, default=-1):
                sizes = f"{max(source, default=-1) + 1} and {max(target, default=-1) + 1} words"
                raise error_at_line(
                    name, line, f"{one}-{other} links words that are not there (of {sizes}); align the pairs again"
                )
        places = [_tokens_of_words(numbers) for numbers in (source, target)]
        found.append([(i, j) for one, other in own for i in places[0][one] for j in places[1][other]])
    return WordAlignments.from_lists(found)


def _tokens_of_words(numbers: Sequence[int]) -> dict[int, list[int]]:
    """The units of each word."""
    found: dict[int, list[int]] = {}
    for unit, word in enumerate(numbers):
        found.setdefault(word, []).append(unit)
    return found
