"""Counting n-grams of a text on disk.

The positions of the text are distributed to files, their buckets, by ranges of first words. A bucket fits into memory, is
sorted and counted there, and its n-grams are appended to those of the buckets before it. Positions that begin with a
word too frequent for one bucket are distributed again by their second words, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.core.threads import parallel_pipeline
from dragoman.data.array_files import BucketFiles
from dragoman.data.text_chunks import StoredCorpus
from dragoman.data.vocabulary import END
from dragoman.ngram.disk.bucket import BucketCounts, count_records
from dragoman.ngram.disk.levels import StoredCounts
from dragoman.ngram.disk.plan import MAX_BUCKETS, MemoryPlan
from dragoman.ngram.disk.records import RecordFormat, Records, distribute_records, distribute_text

Report = Callable[[int], None]  # is called with the number of tokens that are done
Load = Callable[[], Records]


def distribute_corpus(corpus: StoredCorpus, order: int, directory: Path, plan: MemoryPlan, report: Report) -> Buckets:
    """Write a record for each position of a text to the bucket of its first word."""
    counts = corpus.unigram_counts()
    format = RecordFormat.of(order, len(corpus.vocab))
    capacity = max(plan.bucket_records, -(-int(counts.sum()) // MAX_BUCKETS))
    bucket_of = cut_ranges(counts, capacity)
    buckets = Buckets(directory, format, plan, len(corpus.vocab))
    done = 0
    for chunk in corpus.chunks(plan.chunk_tokens):
        buckets.append(*distribute_text(chunk.ids_with_boundaries(), bucket_of, int(bucket_of[-1]) + 1, format))
        report(done := done + chunk.num_tokens)
    return buckets


def count_buckets(buckets: Buckets, directory: Path, report: Report) -> StoredCounts:
    """Count the n-grams of all buckets."""
    counts, done = StoredCounts(directory, buckets.format, buckets.vocab_size), 0
    for result, size in parallel_pipeline(partial(_count, format=buckets.format), buckets.parts()):
        counts.add(result)
        report(done := done + size)
    counts.finish()
    buckets.delete()
    return counts


def _count(load: Load, format: RecordFormat) -> tuple[BucketCounts, int]:
    records = load()
    return count_records(records, format), len(records)


class Buckets:
    """Records in files, by ranges of their first words."""

    def __init__(self, directory: Path, format: RecordFormat, plan: MemoryPlan, vocab_size: int):
        self.directory, self.format, self.plan, self.vocab_size = directory, format, plan, vocab_size
        self._files = BucketFiles(directory, "records", np.uint64, format.numbers)
        self._number = 0  # of buckets
        self._divided = 0  # buckets that were divided, for the names of their files

    def append(self, records: Records, ends: NDArray[np.int64]) -> None:
        """Write records that are sorted by bucket; those of bucket b end at `ends[b]`."""
        self._files.append(records, ends)
        self._number = len(ends)

    def delete(self) -> None:
        """Remove files whose records were read in several parts."""
        for bucket in range(self._number):
            self._files.delete(bucket)

    def parts(self) -> Iterator[Load]:
        """Yield functions that read records: all records in the order of their words, as many as fit into memory."""
        for bucket in range(self._number):
            yield from self._divide(self._files, bucket, 0)

    def _divide(self, files: BucketFiles, bucket: int, depth: int) -> Iterator[Load]:
        """Yield the parts of a bucket whose records have the first `depth` words in common."""
        size, limit = files.size(bucket), self.plan.bucket_records
        if size <= limit:
            if size:
                yield partial(_read_and_delete, files, bucket)
            return
        if depth == self.format.order:  # all n-grams are the same
            for start in range(0, size, limit):
                yield partial(files.read, bucket, start, min(size, start + limit))
            return
        tally = self._count_words(files, bucket, depth)
        words = np.flatnonzero(tally).tolist()
        if len(words) == 1:  # all records have this word, and after the end of a sentence the same ones
            yield from self._divide(files, bucket, self.format.order if words[0] == END else depth + 1)
            return
        smaller, number = self._distribute(files, bucket, depth, cut_ranges(tally, limit))
        for part in range(number):
            yield from self._divide(smaller, part, depth)

    def _count_words(self, files: BucketFiles, bucket: int, depth: int) -> NDArray[np.int64]:
        """Count the words at `depth` in the records of a bucket.  # (|V|,)"""
        tally = np.zeros(self.vocab_size, np.int64)
        for start in range(0, files.size(bucket), self.plan.bucket_records):
            tally += np.bincount(self._words(self._chunk(files, bucket, start), depth), minlength=self.vocab_size)
        return tally

    def _distribute(
        self, files: BucketFiles, bucket: int, depth: int, bucket_of: NDArray[np.int32]
    ) -> tuple[BucketFiles, int]:
        """Distribute a bucket by the words at `depth`. Return the smaller buckets and their number."""
        self._divided += 1
        number = int(bucket_of[-1]) + 1
        smaller = BucketFiles(self.directory, f"divided-{self._divided}", np.uint64, self.format.numbers)
        for start in range(0, files.size(bucket), self.plan.bucket_records):
            records = self._chunk(files, bucket, start)
            smaller.append(*distribute_records(records, bucket_of[self._words(records, depth)], number))
        files.delete(bucket)
        return smaller, number

    def _chunk(self, files: BucketFiles, bucket: int, start: int) -> Records:
        return files.read(bucket, start, min(files.size(bucket), start + self.plan.bucket_records))

    def _words(self, records: Records, depth: int) -> NDArray[np.int64]:
        return self.format.fields(records, depth)


def _read_and_delete(files: BucketFiles, bucket: int) -> Records:
    records = files.read(bucket)
    files.delete(bucket)
    return records


def cut_ranges(counts: NDArray[np.int64], capacity: int) -> NDArray[np.int32]:
    """Return the range of each word: ranges of consecutive words that occur at most `capacity` times, or of one word.

    >>> cut_ranges(np.array([2, 1, 9, 1, 1, 1]), 3).tolist()
    [0, 0, 1, 2, 2, 2]
    """
    ends = np.cumsum(counts)
    bounds = [0]
    while bounds[-1] < len(counts):
        before = int(ends[bounds[-1] - 1]) if bounds[-1] else 0
        bounds.append(max(bounds[-1] + 1, int(np.searchsorted(ends, before + capacity, side="right"))))
    return np.repeat(np.arange(len(bounds) - 1, dtype=np.int32), np.diff(bounds))
