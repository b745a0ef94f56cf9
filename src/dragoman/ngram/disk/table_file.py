"""The arrays of an n-gram table, written to the model's file as they are computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.io.array_writer import ArraySpec, ArrayWriter
from dragoman.ngram.disk.levels import ContextBlock, Pruning, StoredCounts
from dragoman.ngram.table import NO_CODEBOOK
from dragoman.ngram.trie import node_type, word_type


class TableFile:
    """A table of the n-grams of `counts`, or of those that are kept."""

    def __init__(self, path: Path, counts: StoredCounts, pruning: Pruning | None, block_ngrams: int):
        self.counts, self.pruning, self.block_ngrams = counts, pruning, block_ngrams
        sizes = [self._size(order) for order in range(1, counts.order + 1)]
        while len(sizes) > 1 and not sizes[-1]:  # all n-grams of this order are pruned
            sizes.pop()
        self.levels = (0, *np.cumsum([1, *sizes]).tolist())
        nodes, contexts = self.levels[-1], self.levels[-2]
        float32 = np.dtype(np.float32)
        self._writer = ArrayWriter(
            path,
            {
                "word": ArraySpec(word_type(counts.vocab_size), (nodes,)),
                "begin": ArraySpec(node_type(nodes), (contexts + 1,)),
                "log_prob": ArraySpec(float32, (nodes,)),
                "log_backoff": ArraySpec(float32, (contexts,)),
                "codebook": ArraySpec(float32, NO_CODEBOOK.shape),
            },
        )
        self._next_ngram, self._next_context = [0] * len(self.levels), [0] * len(self.levels)
        self._writer.write("log_prob", 0, np.array([-np.inf]))
        self._writer.write("word", 0, np.zeros(1))

    @property
    def order(self) -> int:
        return len(self.levels) - 2

    def write_ngrams(self, report: Callable[[int], None] = lambda done: None) -> None:
        """Write the words and the first child of each context."""
        done = 0
        self._writer.write("begin", 0, np.ones(1))
        for order in range(1, self.order + 1):
            word, start = self.counts[order].word, 0
            written = self.levels[order]
            for start in range(0, len(word), self.block_ngrams):
                stop = min(len(word), start + self.block_ngrams)
                words = self._select(order, slice(start, stop), word.read(start, stop))
                self._writer.write("word", written, words)
                written, done = written + len(words), done + stop - start
                report(done)
            if order > 1:
                self._write_begin(order)
        self._writer.write("begin", self.levels[-2], np.array([self.levels[-1]]))

    def write_estimate(
        self, order: int, block: ContextBlock, prob: NDArray[np.float32], backoff: NDArray[np.float32]
    ) -> None:
        """Write logarithms of the probabilities and back-off weights of a block of contexts of order - 1.

        The blocks of an order are written from first to last.
        """
        with np.errstate(divide="ignore"):
            prob, backoff = np.log(prob), np.log(backoff)
        if order <= self.order:
            values = self._select(order, block.ngrams, prob)
            self._writer.write("log_prob", self.levels[order] + self._next_ngram[order], values)
            self._next_ngram[order] += len(values)
            values = self._select(order - 1, block.contexts, backoff)
            self._writer.write("log_backoff", self.levels[order - 1] + self._next_context[order], values)
            self._next_context[order] += len(values)

    def finish(self, report: Callable[[int, int], None]) -> None:
        """Compute the digest."""
        with self._writer as writer:
            writer.finish(report)

    def _write_begin(self, order: int) -> None:
        child, context = self.levels[order], self.levels[order - 1]
        for block in self.counts.context_blocks(order, self.block_ngrams):
            ends = block.begin
            if self.pruning is not None:
                kept = self.pruning.keeps(order, block.ngrams.start, block.ngrams.stop)
                ends = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])[block.begin]
            begin = self._select(order - 1, block.contexts, child + ends[:-1])
            self._writer.write("begin", context, begin)
            child, context = child + int(ends[-1]), context + len(begin)

    def _select(self, order: int, span: slice, values: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the values of the n-grams that are kept."""
        if self.pruning is None or order < 2:
            return values
        return values[self.pruning.keeps(order, span.start, span.stop)]

    def _size(self, order: int) -> int:
        size = len(self.counts[order])
        if self.pruning is None:
            return size
        starts = range(0, size, self.block_ngrams)
        return sum(
            int(np.count_nonzero(self.pruning.keeps(order, start, min(size, start + self.block_ngrams))))
            for start in starts
        )
