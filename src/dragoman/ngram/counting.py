"""Counting n-grams by sorting.

All places of the text are sorted by the n words that start there, one word at a time: once the places are in order of
their first k - 1 words, each group of equal beginnings only has to be sorted by the k-th word. The keys of a block
(group, word, place in the block) are packed into 64 bits, which NumPy sorts with vector instructions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.ngram.trie import Trie, make_trie
from dragoman.text.corpus import Corpus
from dragoman.text.vocab import END, START
from dragoman.threads import share

BLOCK = 1 << 19  # rows sorted at a time


@dataclass(frozen=True)
class Counts:
    """How often each n-gram occurs."""

    trie: Trie
    count: NDArray[np.int32]  # (nodes,) c(e_{t-n+1} ... e_t); 0 for strings that are contexts only
    gap: int = 0  # words left out between the context and the word it predicts


@dataclass(frozen=True)
class _Rows:
    """Places of the text in order of the string of k - 1 words that starts there."""

    place: NDArray[np.int32]
    node: NDArray[np.int32]  # the trie node of that string


@dataclass(frozen=True)
class _Piece:
    """What one block of rows adds to the next order: its n-grams, and the rows that go on from them."""

    word: NDArray[np.int32]  # (n-grams,)
    context: NDArray[np.int32]  # (n-grams,) node of the first k - 1 words
    count: NDArray[np.int32]  # (n-grams,)
    place: NDArray[np.int32]  # (rows,)
    ngram: NDArray[np.int32]  # (rows,) which n-gram of this piece starts there


def count_ngrams(corpus: Corpus, order: int, gap: int = 0, anchored: bool = False) -> Counts:
    """Count the n-grams of orders 1 to `order`.

    With a `gap`, contexts end that many words early. `anchored` counts only the strings that begin a sentence, the
    tutorial's c_prefix (above order 1).
    """
    text = corpus.framed(starts=1 + gap)  # contexts are strings of this
    predicted = _look_ahead(text, gap)  # [i]: the word that a context ending before place i predicts
    size = len(corpus.vocab)
    unigrams = np.bincount(predicted[predicted >= 0], minlength=size).astype(np.int32)
    unigrams[START] = 0  # given, never predicted
    word, count = [np.zeros(1, np.int32), np.arange(size, dtype=np.int32)], [np.zeros(1, np.int32), unigrams]
    begin, levels = [np.ones(1, np.int32)], [0, 1, 1 + size]
    rows = _first_rows(text, anchored)
    for k in range(2, order + 1):
        pieces = share(lambda block, k=k: _refine(block, text, predicted, k, size), _blocks(rows))  # type: ignore[misc]
        first, last = levels[-2:]
        children = sum((np.bincount(p.context - first, minlength=last - first) for p in pieces), np.zeros(last - first))
        begin.append((last + np.concatenate([[0], np.cumsum(children)[:-1]])).astype(np.int32))
        word.extend(piece.word for piece in pieces)
        count.extend(piece.count for piece in pieces)
        rows = _join(pieces, last)
        levels.append(last + sum(len(piece.word) for piece in pieces))
    begin.append(np.array(levels[-1:], np.int32))
    trie = make_trie(levels, np.concatenate(word), np.concatenate(begin))
    return Counts(trie, np.concatenate(count), gap)


def _look_ahead(text: NDArray[np.int32], gap: int) -> NDArray[np.int32]:
    """The text `gap` places further on, with -1 where that is past the end of the sentence."""
    if gap == 0:
        return text
    sentence = np.cumsum(text == END) - (text == END)
    ahead = np.full(len(text), -1, np.int32)
    inside = sentence[gap:] == sentence[:-gap]
    ahead[:-gap][inside] = text[gap:][inside]
    return np.where(ahead == START, np.int32(-1), ahead)


def _first_rows(text: NDArray[np.int32], anchored: bool) -> _Rows:
    keys = (text.astype(np.uint64) << np.uint64(32)) | np.arange(len(text), dtype=np.uint64)
    keys = np.sort(keys[text == START if anchored else text != END])
    return _Rows((keys & np.uint64(0xFFFFFFFF)).astype(np.int32), (keys >> np.uint64(32)).astype(np.int32) + 1)


def _blocks(rows: _Rows) -> list[_Rows]:
    """Cut the rows between groups, every BLOCK rows or so; a larger group is a block of its own."""
    total, cuts = len(rows.node), [0]
    while cuts[-1] < total:
        start = cuts[-1]
        end = start + BLOCK
        if end >= total:
            cuts.append(total)
            break
        before = int(np.searchsorted(rows.node, rows.node[end], side="left"))
        cuts.append(before if before > start else int(np.searchsorted(rows.node, rows.node[end], side="right")))
    return [_Rows(rows.place[a:b], rows.node[a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


def _refine(rows: _Rows, text: NDArray[np.int32], predicted: NDArray[np.int32], k: int, vocab_size: int) -> _Piece:
    """Sort a block by its k-th words and find its k-grams."""
    next_place = rows.place + np.int32(k - 1)
    if predicted is text:
        row, word, counts = np.arange(len(next_place)), text[next_place], np.ones(len(next_place), bool)
        walks = counts
    else:  # each place both predicts a word past the gap and walks on to the next word
        row = np.repeat(np.arange(len(next_place)), 2)
        word = np.stack([predicted[next_place], text[next_place]], axis=1).ravel()
        counts = np.tile([True, False], len(next_place))
        walks = ~counts
        row, counts, walks, word = row[word >= 0], counts[word >= 0], walks[word >= 0], word[word >= 0]
    order = _sorted_order(rows.node[row], word, vocab_size)
    row, word, counts, walks = row[order], word[order], counts[order], walks[order]
    node = rows.node[row]
    fresh = np.ones(len(row), bool)
    fresh[1:] = (node[1:] != node[:-1]) | (word[1:] != word[:-1])
    starts = np.flatnonzero(fresh)
    ngram = np.cumsum(fresh, dtype=np.int32) - np.int32(1)
    count = np.diff(starts, append=len(row)) if predicted is text else np.add.reduceat(counts, starts, dtype=np.int32)
    goes_on = walks & (word != END)
    return _Piece(word[starts], node[starts], count.astype(np.int32), rows.place[row[goes_on]], ngram[goes_on])


def _sorted_order(node: NDArray[np.int32], word: NDArray[np.int32], vocab_size: int) -> NDArray[np.int64]:
    """Where the rows go when sorted by node, then by word."""
    word_bits, row_bits = vocab_size.bit_length(), len(node).bit_length()
    key = (node - node[0]).astype(np.uint64)
    key <<= np.uint64(word_bits)
    key |= word.astype(np.uint64)
    key <<= np.uint64(row_bits)
    key |= np.arange(len(node), dtype=np.uint64)
    key.sort()
    return (key & np.uint64((1 << row_bits) - 1)).astype(np.int64)


def _join(pieces: list[_Piece], first_node: int) -> _Rows:
    shifts = first_node + np.cumsum([0, *(len(piece.word) for piece in pieces)])
    nodes = [piece.ngram + np.int32(shift) for piece, shift in zip(pieces, shifts[:-1], strict=True)]
    empty = np.zeros(0, np.int32)
    return _Rows(np.concatenate([empty, *(piece.place for piece in pieces)]), np.concatenate([empty, *nodes]))
