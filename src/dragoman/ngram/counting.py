"""Counting n-grams by sorting.

All positions of the text are sorted by the n words that start there, one word at a time: once the positions are in
order of their first k - 1 words, each group of equal beginnings only needs to be sorted by the k-th word. The keys of a
block (group, word, position in the block) are packed into 64 bits, which NumPy sorts with vector instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.memory import release_freed_memory
from dragoman.core.threads import parallel_map
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END, START
from dragoman.ngram.trie import MAX_NODES, Trie, Words, word_type

T = TypeVar("T", bound=np.generic)
Counts = NDArray[np.integer]  # in 8, 16 or 32 bits, unsigned below 32

BLOCK_ROWS = 1 << 16  # rows sorted at a time


@dataclass(frozen=True)
class NgramCounts:
    """How often each n-gram occurs."""

    trie: Trie
    by_order: tuple[Counts, ...]  # [k - 1]: those of order k, (n-grams,); 0 for strings that are only contexts
    gap: int = 0  # words skipped between the context and the predicted word

    def of_order(self, order: int) -> Counts:
        """Return c(e_{t-n+1} ... e_t) of each n-gram of one order.  # (n-grams,)"""
        return self.by_order[order - 1]


@dataclass(frozen=True)
class _SortedRows:
    """Positions of the text, sorted by the string of k - 1 words that starts there."""

    position: NDArray[np.int32]
    node: NDArray[np.int32]  # the trie node of that string


@dataclass(frozen=True)
class _BlockNgrams:
    """The n-grams of the next order in one block of rows."""

    word: Words  # (n-grams,)
    count: Counts  # (n-grams,)
    suffix: NDArray[np.int32]  # (n-grams,)
    first_context: int
    children: NDArray[np.int32]  # (contexts,) n-grams of each context, which are consecutive and in no other block
    continues: NDArray[np.bool_]  # (rows,) whether the n-gram can be extended


def count_ngrams(corpus: Corpus, order: int, gap: int = 0, anchored: bool = False) -> NgramCounts:
    """Count the n-grams of orders 1 to `order`.

    `gap` words are skipped between a context and the word it predicts. If `anchored`, only strings at the start of a
    sentence are counted, the tutorial's c_prefix (above order 1).
    """
    if corpus.num_tokens + (1 + gap) * corpus.num_sentences >= MAX_NODES:
        raise DataError(
            f"{corpus.num_tokens:,} tokens: the limit in memory is {MAX_NODES:,}; split the text, or count on disk (--memory)"
        )
    text = corpus.ids_with_boundaries(starts=1 + gap)  # contexts are strings of this
    predicted = _predicted_words(text, gap)  # [i]: the word predicted by a context that ends before position i
    size = len(corpus.vocab)
    unigrams = np.bincount(predicted[predicted >= 0], minlength=size).astype(np.int32)
    unigrams[START] = 0  # never predicted
    word: list[Words] = [np.zeros(1, word_type(size)), np.arange(size, dtype=word_type(size))]
    counts, levels = [_narrow(unigrams)], [0, 1, 1 + size]
    begin, suffix = [np.ones(1, np.int32)], [np.zeros(1 + size, np.int32)]
    release_freed_memory()  # of reading the text
    rows, row_blocks = _first_rows(text, anchored), list[_SortedRows]()
    node_at = text + np.int32(1)  # [i]: the node of the string of k - 1 words that starts at position i
    for k in range(2, order + 1):
        if not len(rows.position):  # no sentence is that long
            break
        row_blocks = _blocks(rows)
        blocks = parallel_map(partial(_refine, text, predicted, node_at, k, size), row_blocks)
        begin.append(_first_children(blocks, slice(*levels[-2:])))
        word.extend(block.word for block in blocks)
        counts.append(np.concatenate([block.count for block in blocks]))
        suffix.extend(block.suffix for block in blocks)
        rows = _next_rows(rows, row_blocks, blocks, levels[-1], node_at) if k < order else rows
        levels.append(levels[-1] + len(counts[-1]))
        if levels[-1] >= MAX_NODES:
            raise DataError(
                f"more than {MAX_NODES:,} n-grams; use a lower order or less text, or count on disk (--memory)"
            )
        blocks.clear()
        release_freed_memory()
    begin.append(np.array(levels[-1:], np.int32))
    del rows, row_blocks, node_at, text, predicted
    release_freed_memory()
    strings = _concatenate(word), _concatenate(begin)
    # With a gap or an anchor the suffix of a string need not start one position later.
    known_suffix = None if gap or anchored else _concatenate(suffix)
    suffix.clear()
    release_freed_memory()
    return NgramCounts(Trie(tuple(levels), *strings, known_suffix), tuple(counts), gap)


def _concatenate(parts: list[NDArray[T]]) -> NDArray[T]:
    """Concatenate arrays and clear the list, so that only one array at a time exists twice in memory."""
    result = np.concatenate(parts)
    parts.clear()
    return result


def _narrow(count: NDArray[np.integer]) -> Counts:
    """Return counts in as few bits as the largest needs."""
    largest = int(count.max(initial=0))
    return count.astype(np.min_scalar_type(largest) if largest < 1 << 16 else np.int32)


def _predicted_words(text: NDArray[np.int32], gap: int) -> NDArray[np.int32]:
    """Return the text shifted by `gap` positions, with -1 past the end of a sentence."""
    if gap == 0:
        return text
    sentence = np.cumsum(text == END) - (text == END)
    ahead = np.full(len(text), -1, np.int32)
    inside = sentence[gap:] == sentence[:-gap]
    ahead[:-gap][inside] = text[gap:][inside]
    return np.where(ahead == START, np.int32(-1), ahead)


def _first_rows(text: NDArray[np.int32], anchored: bool) -> _SortedRows:
    positions = np.flatnonzero(text == START if anchored else text != END)
    keys = text[positions].astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= positions.view(np.uint64)
    del positions
    keys.sort()
    position = keys.astype(np.int32)  # the lower half
    keys >>= np.uint64(32)
    return _SortedRows(position, keys.astype(np.int32) + np.int32(1))


def _blocks(rows: _SortedRows) -> list[_SortedRows]:
    """Split the rows between groups, about every BLOCK_ROWS rows; a larger group is one block."""
    ends = [0]
    while ends[-1] + BLOCK_ROWS < len(rows.node):
        group = rows.node[ends[-1] + BLOCK_ROWS]
        before = int(np.searchsorted(rows.node, group, side="left"))
        ends.append(before if before > ends[-1] else int(np.searchsorted(rows.node, group, side="right")))
    if ends[-1] < len(rows.node):
        ends.append(len(rows.node))
    return [_SortedRows(rows.position[a:b], rows.node[a:b]) for a, b in pairwise(ends)]


def _refine(
    text: NDArray[np.int32],
    predicted: NDArray[np.int32],
    node_at: NDArray[np.int32],
    k: int,
    vocab_size: int,
    rows: _SortedRows,
) -> _BlockNgrams:
    """Sort a block by its k-th words and find its k-grams.

    The rows are sorted in place. Their nodes become the numbers of their k-grams in the block.
    """
    position, node, last = rows.position, rows.node, rows.position + np.int32(k - 1)
    word, is_prediction = text[last], None
    if predicted is not text:  # a row for the word after the gap, if any, and one for the word that extends the string
        word = np.stack([predicted[last], word], axis=1).ravel()
        valid = word >= 0
        is_prediction = np.tile([True, False], len(position))[valid]
        position, node, word = np.repeat(position, 2)[valid], np.repeat(node, 2)[valid], word[valid]
    order, string = _sort(node, word, vocab_size)
    is_new = np.ones(len(string), bool)
    np.not_equal(string[1:], string[:-1], out=is_new[1:])
    starts = np.flatnonzero(is_new)
    ngram = np.cumsum(is_new, dtype=np.int32) - np.int32(1)
    word, position = word[order], position[order]
    context, suffix = node[order[starts]], node_at[position[starts] + 1]
    count, continues = np.diff(starts, append=len(string)), word != END
    if is_prediction is not None:
        is_prediction = is_prediction[order]
        count = np.add.reduceat(is_prediction, starts, dtype=int)
        position, ngram, continues = position[~is_prediction], ngram[~is_prediction], continues[~is_prediction]
    rows.position[:], rows.node[:] = position, ngram
    first_context = int(context[0])
    children = np.bincount(context - first_context).astype(np.int32)
    words = word[starts].astype(word_type(vocab_size), copy=False)
    return _BlockNgrams(words, _narrow(count), suffix, first_context, children, continues)


def _sort(
    node: NDArray[np.int32], word: NDArray[np.int32], vocab_size: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Sort rows by node, then by word. Returns the order and, in that order, the number of each row's string."""
    word_bits, row_bits = np.uint64(vocab_size.bit_length()), np.uint64(len(node).bit_length())
    key = np.zeros(len(node), np.uint64)  # the number of each row's group in this block
    np.cumsum(node[1:] != node[:-1], out=key[1:])
    assert int(key[-1]).bit_length() + word_bits + row_bits <= 64  # a block is small, or a single group
    key <<= word_bits
    key |= word.astype(np.uint64)
    key <<= row_bits
    key |= np.arange(len(node), dtype=np.uint64)
    key.sort()
    order = (key & ((np.uint64(1) << row_bits) - np.uint64(1))).astype(np.int64)
    key >>= row_bits
    return order, key


def _first_children(blocks: list[_BlockNgrams], contexts: slice) -> NDArray[np.int32]:
    """Return the first child of each context."""
    children = np.zeros(contexts.stop - contexts.start, np.int32)
    for block in blocks:
        first = block.first_context - contexts.start
        children[first : first + len(block.children)] = block.children
    first_child = np.cumsum(children, dtype=np.int32)
    first_child -= children
    first_child += np.int32(contexts.stop)
    return first_child


def _next_rows(
    rows: _SortedRows,
    row_blocks: list[_SortedRows],
    blocks: list[_BlockNgrams],
    first_node: int,
    node_at: NDArray[np.int32],
) -> _SortedRows:
    """Write the node of the string at each position to `node_at`, and move the rows that continue to the front."""
    kept = 0
    for block_rows, block in zip(row_blocks, blocks, strict=True):
        position, node = block_rows.position, block_rows.node + np.int32(first_node)
        node_at[position] = node
        moved = slice(kept, kept + int(np.count_nonzero(block.continues)))
        rows.position[moved], rows.node[moved] = position[block.continues], node[block.continues]
        kept, first_node = moved.stop, first_node + len(block.word)
    return _SortedRows(rows.position[:kept], rows.node[:kept])
