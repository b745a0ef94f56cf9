"""From counts to probabilities and back-off weights, as DataFrame jobs.

The equations are those of `dragoman.ngram.estimate` and `dragoman.ngram.smoothing`, one order after the other. Values are
rounded to 32 bits where they are rounded there, so that both give the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions as sf

from dragoman.core.errors import DataError, DragomanError
from dragoman.data.ranges import sum_ranges
from dragoman.data.vocabulary import END
from dragoman.ngram.counting import NgramCounts
from dragoman.ngram.estimate import BackoffEstimate, Smoothing, SmoothingTask
from dragoman.ngram.smoothing import STUPID_BACKOFF_FACTOR
from dragoman.ngram.trie import MAX_NODES, Trie, word_type
from dragoman.spark.counts import NgramCountTables
from dragoman.spark.workers import window_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

T = TypeVar("T", bound=np.generic)
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Level:
    """The n-grams of one order above 1, and their contexts.

    `ngrams` has the columns w1 to wn, `count` and `prob`; `contexts` has w1 to w(n-1), `count` (of the context),
    `backoff`, `children` (n-grams that are not pruned) and `normalizer`.
    """

    order: int
    ngrams: DataFrame
    contexts: DataFrame
    stored: tuple[DataFrame, ...]  # what Spark keeps for this level

    def unpersist(self) -> None:
        """Free the storage of the tables."""
        for frame in self.stored:
            frame.unpersist()


@dataclass(frozen=True)
class LevelArrays:
    """The n-grams of one order in the order of a trie, and those of their contexts that have n-grams in the text."""

    word: NDArray[np.int32]  # (n-grams,) the last word
    prob: NDArray[np.float32]  # (n-grams,)
    context_word: NDArray[np.int32]  # (contexts,) the last word of each context
    backoff: NDArray[np.float32]  # (contexts,)
    children: NDArray[np.int64]  # (contexts,)
    normalizer: NDArray[np.float64]  # (contexts,) of stupid back-off


@dataclass(frozen=True)
class Unigrams:
    """The lowest order, which is small and computed by the driver."""

    prob: NDArray[np.float32]  # (|V|,)
    backoff: float  # of the empty context
    normalizer: float = 1.0  # of stupid back-off


@dataclass(frozen=True)
class Thresholds:
    """N-grams that occur this often or less are pruned, by order.

    Thresholds do not decrease with the order, so the contexts of n-grams that stay are never pruned.
    """

    prune: tuple[int, ...] = ()

    def of_order(self, order: int) -> int:
        """Return the threshold of an order; words are never pruned."""
        return self.prune[min(order, len(self.prune)) - 1] if self.prune and order > 1 else 0

    def keeps(self, order: int) -> Column:
        """Return whether an n-gram of an order stays."""
        return sf.col("count") > self.of_order(order)


def unigram_task(counts: NDArray[np.int64], zerogram: Floats) -> SmoothingTask:
    """Return the smoothing task of the lowest order alone. `counts` may be adjusted.  # (|V|,)"""
    size = len(counts)
    word = np.concatenate([np.zeros(1, np.int64), np.arange(size)]).astype(word_type(size))
    trie = Trie((0, 1, 1 + size), word, np.array([1, 1 + size], np.int32), np.zeros(1 + size, np.int32))
    return SmoothingTask(NgramCounts(trie, (counts,)), zerogram)


def unigram_counts(counts: NgramCountTables, column: str, size: int) -> NDArray[np.int64]:
    """Return a column of the table of words as an array.  # (|V|,)"""
    table = counts.of_order(1).select("w1", column).toArrow()
    result = np.zeros(size, np.int64)
    result[table.column("w1").to_numpy()] = table.column(column).to_numpy()
    return result


def discounted_unigrams(task: SmoothingTask, discounts: Floats) -> Unigrams:
    """Return P(w) of the lowest order with these discounts."""
    narrow = discounts.astype(np.float32)

    def masses(part: NDArray[np.integer], begin: NDArray[np.integer]) -> tuple[Singles, Floats]:
        mass = (part - narrow[np.minimum(part, 3)].astype(np.float64)).astype(np.float32)
        return mass, sum_ranges(begin, part)

    estimate = task.estimate(Smoothing(lambda order: masses))
    return Unigrams(estimate.prob[1:], float(estimate.backoff[0]))


def discounting_level(
    counts: NgramCountTables, order: int, discounts: Floats, thresholds: Thresholds, shorter: DataFrame
) -> Level:
    """P(w | h) = (c(hw) - D) / c(h) + alpha(h) P(w | h'), with adjusted counts; see `dragoman.ngram.smoothing.discounting`.

    Args:
        counts: the counts.
        order: the order, above 1.
        discounts: D of counts 1, 2 and 3 or more.
        thresholds: n-grams that are pruned give up their mass.
        shorter: `prob` of the n-grams one word shorter.
    """
    D = discounts.astype(np.float32).astype(np.float64).tolist()
    adjusted, names = sf.col("adjusted"), window_columns(order)
    discount = sf.when(adjusted >= 3, D[3]).when(adjusted == 2, D[2]).when(adjusted == 1, D[1]).otherwise(0.0)
    mass = sf.when(thresholds.keeps(order), (adjusted.cast("double") - discount).cast("float")).otherwise(0.0)
    ngrams = counts.of_order(order).withColumn("mass", mass.cast("float"))
    sums = ngrams.groupBy(*names[:-1]).agg(
        sf.sum("adjusted").cast("double").alias("total"),
        sf.sum(sf.col("mass").cast("double")).alias("covered"),
        sf.sum("count").alias("count"),
        sf.sum(thresholds.keeps(order).cast("long")).alias("children"),
    )
    alpha = sf.greatest(sf.lit(0.0), 1.0 - sf.col("covered") / sf.col("total"))
    added = {"alpha": alpha, "backoff": alpha.cast("float"), "normalizer": sf.lit(1.0)}
    contexts = sums.withColumns(added).persist()
    joined = ngrams.join(contexts.select(*names[:-1], "total", "alpha"), names[:-1]).join(
        _as_suffix(shorter, order), names[1:]
    )
    prob = sf.col("mass") / sf.col("total") + sf.col("alpha") * sf.col("lower")
    ngrams = joined.select(*names, "count", prob.cast("float").alias("prob")).persist()
    return Level(order, ngrams, contexts, (ngrams, contexts))


def stupid_unigrams(scores: Singles, counts: NDArray[np.int64], zerogram: Floats) -> tuple[Singles, Unigrams]:
    """Return the scores of words, and their normalised probabilities. `scores` are relative frequencies.  # (|V|,)"""
    scores[:] = np.where(counts > 0, scores, STUPID_BACKOFF_FACTOR * zerogram)
    Z = float(scores.sum(dtype=float))
    return scores, Unigrams((scores.astype(np.float64) / Z).astype(np.float32), 1.0, Z)


def stupid_level(
    counts: NgramCountTables, order: int, thresholds: Thresholds, shorter: DataFrame, normalizers: DataFrame
) -> tuple[Level, DataFrame]:
    """S(w | h) = c(hw) / c(h), else 0.4 S(w | h'), divided by Z(h); see `dragoman.ngram.smoothing.stupid_backoff`.

    Args:
        counts: the counts.
        order: the order, above 1.
        thresholds: n-grams that are pruned back off.
        shorter: the scores of the n-grams one word shorter, in the column `prob`.
        normalizers: Z of the contexts two words shorter than the n-grams.

    Returns:
        The level, and the scores of its n-grams for the next one.
    """
    names, factor = window_columns(order), STUPID_BACKOFF_FACTOR
    totals = counts.of_order(order).groupBy(*names[:-1]).agg(sf.sum("count").cast("double").alias("total"))
    joined = counts.of_order(order).join(totals, names[:-1]).join(_as_suffix(shorter, order), names[1:])
    frequency = (sf.col("count").cast("float") / sf.col("total")).cast("float")
    score = sf.when(thresholds.keeps(order), frequency).otherwise(sf.lit(factor).cast("float") * sf.col("lower"))
    scores = joined.select(*names, "count", "lower", score.alias("prob")).persist()
    kept = sf.when(thresholds.keeps(order), 1.0).otherwise(0.0)
    sums = scores.groupBy(*names[:-1]).agg(
        sf.sum(kept * sf.col("prob")).alias("listed"),
        sf.sum(kept * sf.col("lower")).alias("covered"),
        sf.sum("count").alias("count"),
        sf.sum(kept.cast("long")).alias("children"),
    )
    Z = sf.col("listed") + factor * (sf.col("shorter") - sf.col("covered"))
    contexts = _with_shorter(sums, normalizers, order).withColumn("normalizer", Z)
    backoff = (factor * sf.col("shorter") / sf.col("normalizer")).cast("float")
    contexts = contexts.withColumn("backoff", backoff).persist()
    prob = (sf.col("prob") / sf.col("normalizer")).cast("float").alias("prob")
    normalized = scores.join(contexts.select(*names[:-1], "normalizer"), names[:-1]).select(*names, "count", prob)
    return Level(order, normalized, contexts, (scores, contexts)), scores


def _with_shorter(contexts: DataFrame, normalizers: DataFrame, order: int) -> DataFrame:
    """Add Z of the shorter context to contexts of `order` - 1 words."""
    if order == 2:
        return contexts.crossJoin(sf.broadcast(normalizers.select(sf.col("normalizer").alias("shorter"))))
    names = window_columns(order - 1)
    columns = [sf.col(shorter).alias(name) for shorter, name in zip(window_columns(order - 2), names[1:], strict=True)]
    return contexts.join(normalizers.select(*columns, sf.col("normalizer").alias("shorter")), names[1:])


def _as_suffix(shorter: DataFrame, order: int) -> DataFrame:
    """Return the probabilities of n-grams one word shorter as `lower`, with the names of the last words of longer ones."""
    words = window_columns(order)
    columns = [sf.col(name).alias(longer) for name, longer in zip(words[:-1], words[1:], strict=True)]
    return shorter.select(*columns, sf.col("prob").alias("lower"))


def unigram_frame(spark: SparkSession, prob: Singles) -> DataFrame:
    """Return the probabilities of words as a DataFrame."""
    return spark.createDataFrame(pa.table({"w1": np.arange(len(prob), dtype=np.int32), "prob": prob}))


def collect_level(level: Level, thresholds: Thresholds) -> LevelArrays:
    """Collect what a model stores of an order, without pruned n-grams."""
    names, order = window_columns(level.order), level.order
    ngrams = level.ngrams.where(thresholds.keeps(order)).orderBy(*names).select(names[-1], "prob").toArrow()
    kept = level.contexts.where(thresholds.keeps(order - 1)).orderBy(*names[:-1])
    contexts = kept.select(names[-2], "backoff", "children", "normalizer").toArrow()
    values = [table.column(index).to_numpy() for table in (ngrams, contexts) for index in range(table.num_columns)]
    return LevelArrays(*values)


def assemble(
    unigrams: Unigrams, levels: Sequence[LevelArrays], childless_normalizer: Callable[[int], float] | None = None
) -> tuple[Trie, BackoffEstimate]:
    """Put the orders of a model together.

    Args:
        unigrams: the lowest order.
        levels: the orders above it.
        childless_normalizer: Z of a context of some words that nothing follows, for stupid back-off.
    """
    levels, size = [level for level in levels if len(level.word)], len(unigrams.prob)
    words = [np.arange(size, dtype=np.int32), *(level.word for level in levels)]
    bounds = np.cumsum([0, 1, *map(len, words)]).tolist()
    if bounds[-1] >= MAX_NODES:
        raise DataError(f"more than {MAX_NODES:,} n-grams; use a lower order, --prune, or less text")
    begin = [np.ones(1, np.int64)]
    backoff, normalizer = [np.array([unigrams.backoff], np.float32)], [np.array([unigrams.normalizer])]
    for order, level in enumerate(levels, 1):
        nodes = words[order - 1]
        # Everything but a sentence end is followed by something. Not every word of the vocabulary occurs.
        continued = level.context_word if order == 1 else np.flatnonzero(nodes != END)
        if order > 1 and not np.array_equal(nodes[continued], level.context_word):
            raise DragomanError(
                f"the contexts of order {order + 1} do not fit the n-grams of order {order}; please report it"
            )
        children = _scatter(level.children, continued, np.zeros(len(nodes), np.int64))
        begin.append(bounds[order + 1] + np.cumsum(children) - children)
        backoff.append(_scatter(level.backoff, continued, np.ones(len(nodes), np.float32)))
        default = 1.0 if childless_normalizer is None else childless_normalizer(order)
        normalizer.append(_scatter(level.normalizer, continued, np.full(len(nodes), default)))
    begin.append(np.array(bounds[-1:]))
    word = np.concatenate([np.zeros(1, np.int32), *words]).astype(word_type(size))
    prob = np.concatenate([np.zeros(1, np.float32), unigrams.prob, *(level.prob for level in levels)])
    Z = None if childless_normalizer is None else np.concatenate(normalizer).astype(np.float32)
    trie = Trie(tuple(bounds), word, np.concatenate(begin).astype(np.int32))
    return trie, BackoffEstimate(prob, np.concatenate(backoff), Z)


def _scatter(values: NDArray[T], places: NDArray[np.integer], result: NDArray[T]) -> NDArray[T]:
    result[places] = values
    return result
