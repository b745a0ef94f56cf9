"""Counting n-grams by sorting.

All places of the text are sorted by the n words that start there, one word at a time: once the places are in order of
their first k - 1 words, each group of equal beginnings only has to be sorted by the k-th word. The keys of a block
(group, word, place in the block) are packed into 64 bits, which NumPy sorts with vector instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.threads import parallel_map, release_freed_memory
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END, START
from dragoman.ngram.trie import Trie, build_trie

BLOCK_ROWS = 1 << 18  # rows sorted at a time
MAX_NODES = 2**31 - 1  # places and nodes are numbered in 32 bits


@dataclass(frozen=True)
class NgramCounts:
    """How often each n-gram occurs."""

    trie: Trie
    count: NDArray[np.int32]  # (nodes,) c(e_{t-n+1} ... e_t); 0 for strings that are contexts only
    gap: int = 0  # words left out between the context and the word it predicts


@dataclass(frozen=True)
class _SortedRows:
    """Places of the text in order of the string of k - 1 words that starts there."""

    place: NDArray[np.int32]
    node: NDArray[np.int32]  # the trie node of that string


@dataclass(frozen=True)
class _BlockNgrams:
    """What one block of rows adds to the next order: its n-grams, and the places where they start."""

    word: NDArray[np.int32]  # (n-grams,)
    context: NDArray[np.int32]  # (n-grams,) node of the first k - 1 words
    count: NDArray[np.int32]  # (n-grams,)
    first: NDArray[np.int32]  # (n-grams,) a place where it starts
    place: NDArray[np.int32]  # (rows,)
    ngram: NDArray[np.int32]  # (rows,) which n-gram of this piece starts there
    goes_on: NDArray[np.bool_]  # (rows,) whether the text goes on from it


def count_ngrams(corpus: Corpus, order: int, gap: int = 0, anchored: bool = False) -> NgramCounts:
    """Count the n-grams of orders 1 to `order`.

    With a `gap`, contexts end that many words early. `anchored` counts only the strings that begin a sentence, the
    tutorial's c_prefix (above order 1).
    """
    if corpus.num_tokens + (1 + gap) * corpus.num_sentences >= MAX_NODES:
        raise DataError(
            f"{corpus.num_tokens:,} tokens: n-grams are counted in texts of up to {MAX_NODES:,}; divide the text"
        )
    text = corpus.ids_with_boundaries(starts=1 + gap)  # contexts are strings of this
    predicted = _predicted_words(text, gap)  # [i]: the word that a context ending before place i predicts
    size = len(corpus.vocab)
    unigrams = np.bincount(predicted[predicted >= 0], minlength=size).astype(np.int32)
    unigrams[START] = 0  # given, never predicted
    word, count = [np.zeros(1, np.int32), np.arange(size, dtype=np.int32)], [np.zeros(1, np.int32), unigrams]
    begin, levels = [np.ones(1, np.int32)], [0, 1, 1 + size]
    suffix = [np.zeros(1 + size, np.int32)]
    node_at = text + np.int32(1)  # [i]: the node of the string of k - 1 words that starts at place i
    rows = _first_rows(text, anchored)
    for k in range(2, order + 1):
        if not len(rows.place):  # no sentence is as long as that
            break
        pieces = parallel_map(partial(_refine, text=text, predicted=predicted, k=k, vocab_size=size), _blocks(rows))
        contexts, last = slice(*levels[-2:]), levels[-1]
        begin.append(_first_children(pieces, contexts))
        word.extend(piece.word for piece in pieces)
        count.extend(piece.count for piece in pieces)
        suffix.extend(node_at[piece.first + 1] for piece in pieces)
        rows = _next_rows(pieces, last, node_at) if k < order else rows
        levels.append(last + sum(len(piece.word) for piece in pieces))
        if levels[-1] >= MAX_NODES:
            raise DataError(f"more than {MAX_NODES:,} n-grams; lower the order, or train on less text")
        pieces.clear()  # a large text needs the room
    begin.append(np.array(levels[-1:], np.int32))
    del rows, node_at
    release_freed_memory()
    strings = _concatenate(word), _concatenate(begin)
    if gap or anchored:  # a string's suffix need not start one place later
        return NgramCounts(build_trie(levels, *strings), _concatenate(count), gap)
    return NgramCounts(Trie(tuple(levels), *strings, _concatenate(suffix)), _concatenate(count))


def _concatenate(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """All parts in one array; the list is emptied, so that only one array at a time exists twice."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def _predicted_words(text: NDArray[np.int32], gap: int) -> NDArray[np.int32]:
    """The text `gap` places further on, with -1 where that is past the end of the sentence."""
    if gap == 0:
        return text
    sentence = np.cumsum(text == END) - (text == END)
    ahead = np.full(len(text), -1, np.int32)
    inside = sentence[gap:] == sentence[:-gap]
    ahead[:-gap][inside] = text[gap:][inside]
    return np.where(ahead == START, np.int32(-1), ahead)


def _first_rows(text: NDArray[np.int32], anchored: bool) -> _SortedRows:
    keys = (text.astype(np.uint64) << np.uint64(32)) | np.arange(len(text), dtype=np.uint64)
    keys = np.sort(keys[text == START if anchored else text != END])
    return _SortedRows((keys & np.uint64(0xFFFFFFFF)).astype(np.int32), (keys >> np.uint64(32)).astype(np.int32) + 1)


def _blocks(rows: _SortedRows) -> list[_SortedRows]:
    """Cut the rows between groups, every BLOCK rows or so; a larger group is a block of its own."""
    total, cuts = len(rows.node), [0]
    while cuts[-1] < total:
        start = cuts[-1]
        end = start + BLOCK_ROWS
        if end >= total:
            cuts.append(total)
            break
        before = int(np.searchsorted(rows.node, rows.node[end], side="left"))
        cuts.append(before if before > start else int(np.searchsorted(rows.node, rows.node[end], side="right")))
    return [_SortedRows(rows.place[a:b], rows.node[a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


def _refine(
    rows: _SortedRows, *, text: NDArray[np.int32], predicted: NDArray[np.int32], k: int, vocab_size: int
) -> _BlockNgrams:
    """Sort a block by its k-th words and find its k-grams."""
    word = text[rows.place + np.int32(k - 1)]
    walks = counts = None
    if predicted is not text:  # each place both predicts a word past the gap and walks on to the next word
        rows, word, counts = _with_predictions(rows, word, predicted[rows.place + np.int32(k - 1)])
        walks = ~counts
    order, string = _sort(rows.node, word, vocab_size)
    fresh = np.ones(len(string), bool)
    np.not_equal(string[1:], string[:-1], out=fresh[1:])
    starts = np.flatnonzero(fresh)
    ngram = np.cumsum(fresh, dtype=np.int32) - np.int32(1)
    word, place = word[order], rows.place[order]
    count = np.diff(starts, append=len(string)) if counts is None else np.add.reduceat(counts[order], starts, dtype=int)
    goes_on = word != END if walks is None else (word != END) & walks[order]
    context = rows.node[order[starts]]
    return _BlockNgrams(word[starts], context, count.astype(np.int32), place[starts], place, ngram, goes_on)


def _with_predictions(
    rows: _SortedRows, word: NDArray[np.int32], predicted: NDArray[np.int32]
) -> tuple[_SortedRows, NDArray[np.int32], NDArray[np.bool_]]:
    """Each row twice, for the word it predicts, if any, and for the word it walks on to; and which is which."""
    both = np.stack([predicted, word], axis=1).ravel()
    counts = np.tile([True, False], len(word))
    there = both >= 0
    return _SortedRows(np.repeat(rows.place, 2)[there], np.repeat(rows.node, 2)[there]), both[there], counts[there]


def _sort(
    node: NDArray[np.int32], word: NDArray[np.int32], vocab_size: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Where the rows go when sorted by node, then by word; and the number of each row's string, in that order."""
    word_bits, row_bits = np.uint64(vocab_size.bit_length()), np.uint64(len(node).bit_length())
    key = np.zeros(len(node), np.uint64)  # the number of each row's group in this block
    np.cumsum(node[1:] != node[:-1], out=key[1:])
    assert int(key[-1]).bit_length() + word_bits + row_bits <= 64  # a block is small, or one group
    key <<= word_bits
    key |= word.astype(np.uint64)
    key <<= row_bits
    key |= np.arange(len(node), dtype=np.uint64)
    key.sort()
    order = (key & ((np.uint64(1) << row_bits) - np.uint64(1))).astype(np.int64)
    key >>= row_bits
    return order, key


def _first_children(pieces: list[_BlockNgrams], contexts: slice) -> NDArray[np.int32]:
    """The first child of each context."""
    children = np.zeros(contexts.stop - contexts.start, np.int32)
    for piece in pieces:  # the contexts of a piece are neighbours, and no other piece has them
        low, high = int(piece.context[0]), int(piece.context[-1]) + 1
        children[low - contexts.start : high - contexts.start] = np.bincount(piece.context - low)
    return np.cumsum(children, dtype=np.int32) - children + np.int32(contexts.stop)  # none where nothing goes on


def _next_rows(pieces: list[_BlockNgrams], first_node: int, node_at: NDArray[np.int32]) -> _SortedRows:
    """The rows that go on; every place is told, in `node_at`, which string starts there."""
    place, node = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for piece in pieces:
        string = piece.ngram + np.int32(first_node)
        node_at[piece.place] = string
        place.append(piece.place[piece.goes_on])
        node.append(string[piece.goes_on])
        first_node += len(piece.word)
    return _SortedRows(np.concatenate(place), np.concatenate(node))
