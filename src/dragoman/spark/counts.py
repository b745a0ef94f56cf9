"""Counts of n-grams, as DataFrames of integer ids.

The text becomes windows: for each position the ids of the next n words. Equal windows are counted once, and all counts
follow from them. Counts are 64-bit integers, so sums are exact in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as sf

from dragoman.data.vocabulary import START
from dragoman.spark.lines import NumberedLines
from dragoman.spark.workers import NO_WORD, ngram_windows, window_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame

MAX_STATISTIC = 4  # counts of counts n_1 to n_4 give the discounts


@dataclass(frozen=True)
class NgramCountTables:
    """How often each n-gram occurs.

    The table of order k has the columns w1 to wk, `count`, and `adjusted`: the number of different words before the
    n-gram; n-grams that begin with `<s>`, and those of the highest order, keep their count.
    """

    tables: tuple[DataFrame, ...]  # [k - 1]: order k
    sizes: tuple[int, ...]  # n-grams of each order that occur
    count_of_counts: tuple[NDArray[np.float64], ...]  # n_1 to n_4 of each order's adjusted counts; index 0 is not used

    @property
    def order(self) -> int:
        return len(self.tables)

    def of_order(self, order: int) -> DataFrame:
        """Return the table of one order."""
        return self.tables[order - 1]

    def unpersist(self) -> None:
        """Free the storage of the tables."""
        for table in self.tables:
            table.unpersist()


def count_windows(lines: NumberedLines, vocab: str, order: int, *, is_split: bool = False) -> DataFrame:
    """Count the windows of `order` words of a text.

    Args:
        lines: the text.
        vocab: the name of a shipped vocabulary.
        order: the number of words of a window.
        is_split: the text is split into the tokens of the vocabulary already.
    """
    names = window_columns(order)
    schema = ", ".join(f"{name} int" for name in names)
    task = partial(ngram_windows, vocab=vocab, order=order, is_split=is_split)
    windows = lines.frame.select("text").mapInArrow(task, schema)
    return windows.groupBy(*names).agg(sf.count("*").alias("count"))


def count_ngrams(windows: DataFrame, order: int, *, adjusted: bool) -> NgramCountTables:
    """Count the n-grams of orders 1 to `order`; fewer orders if no sentence is that long.

    Args:
        windows: the counts of windows of `order` words, which are read once per order.
        order: the highest order.
        adjusted: compute adjusted counts; otherwise they are 0 below the highest order.
    """
    order = _longest(windows, order)
    tables: list[DataFrame] = []
    for k in range(order, 0, -1):
        parts = [_raw_counts(windows, k)]
        if adjusted and k < order:
            parts.append(_words_before(tables[-1], k))
        names = window_columns(k)
        total = reduce(lambda a, b: a.unionByName(b), parts).groupBy(*names)
        table = total.agg(sf.sum("count").alias("count"), sf.sum("adjusted").alias("adjusted"))
        keeps_count = sf.lit(True) if k == order else sf.col("w1") == START
        table = table.select(
            *names, "count", sf.when(keeps_count, sf.col("count")).otherwise(sf.col("adjusted")).alias("adjusted")
        )
        tables.append(table.persist())
    tables.reverse()
    adjusted_count = sf.col("adjusted")
    numbers = [sf.count(sf.when(adjusted_count == number, 1)) for number in range(1, MAX_STATISTIC + 1)]
    statistics = [table.agg(sf.count("*"), *numbers).collect()[0] for table in tables]
    sizes = tuple(size for size, *_ in statistics)
    return NgramCountTables(tuple(tables), sizes, tuple(np.array([0.0, *row[1:]]) for row in statistics))


def _longest(windows: DataFrame, order: int) -> int:
    """Return the length of the longest n-grams, at most `order`."""
    filled = [sf.max((sf.col(name) != NO_WORD).cast("int")) for name in window_columns(order)]
    return sum(windows.agg(*filled).collect()[0])


def _raw_counts(windows: DataFrame, order: int) -> DataFrame:
    """Return the counts of the first words of windows. `<s>` is never predicted, so it is no unigram that occurs."""
    is_ngram: Column = sf.col(f"w{order}") != NO_WORD
    if order == 1:
        is_ngram = sf.col("w1") != START
    return windows.where(is_ngram).select(*window_columns(order), "count", sf.lit(0).cast("long").alias("adjusted"))


def _words_before(longer: DataFrame, order: int) -> DataFrame:
    """Return one row for each different word before an n-gram, from the n-grams that are one word longer."""
    shorter = [sf.col(f"w{position + 1}").alias(f"w{position}") for position in range(1, order + 1)]
    count, adjusted = sf.lit(0).cast("long"), sf.lit(1).cast("long")
    return longer.select(*shorter, count.alias("count"), adjusted.alias("adjusted"))


def adjusted_count_of_counts(counts: NgramCountTables) -> list[NDArray[np.float64]]:
    """Return n_1 to n_4 of each order, computed as `dragoman.ngram.adjusted.adjusted_count_of_counts` does.

    The suffixes of the last n-gram, comparing words from right to left, count with their raw counts, as in `lmplz`.
    """
    statistics = [numbers.copy() for numbers in counts.count_of_counts]
    suffix: list[int] = []
    for order in range(1, counts.order):
        table = counts.of_order(order)
        is_longer = [sf.col(f"w{position}") == word for position, word in enumerate(suffix, 2)]
        row = reduce(lambda a, b: a.where(b), is_longer, table).orderBy(sf.desc("w1")).first()
        if row is None:  # the suffix begins with <s>
            break
        suffix.insert(0, row["w1"])
        for column, sign in (("count", 1), ("adjusted", -1)):
            if 0 < row[column] <= MAX_STATISTIC:
                statistics[order - 1][row[column]] += sign
    return statistics
