"""Training of n-gram models by Spark: the same model as `NgramModel.train` on the same text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dragoman.core.errors import DataError, DragomanError
from dragoman.core.types import Json
from dragoman.data.corpus import Corpus, arrays_checksum
from dragoman.data.unknown_words import UnknownWordModel
from dragoman.data.vocabulary import Vocab
from dragoman.ngram.entropy import prune_by_entropy
from dragoman.ngram.estimate import SmoothingTask
from dragoman.ngram.model import NgramConfig, NgramModel, zerogram
from dragoman.ngram.quantization import quantize
from dragoman.ngram.smoothing import (
    STUPID_BACKOFF_FACTOR,
    DiscountError,
    fallback_discounts,
    maximum_likelihood,
    modified_discounts,
)
from dragoman.ngram.table import NgramTable
from dragoman.spark import estimate
from dragoman.spark.counts import NgramCountTables, adjusted_count_of_counts, count_ngrams, count_windows
from dragoman.spark.files import check_output, write_frames
from dragoman.spark.lines import NumberedLines, read_lines
from dragoman.spark.progress import Report, no_report, progress
from dragoman.spark.session import PARTITIONS, spark_errors, spark_setting
from dragoman.spark.shipping import ship_vocab
from dragoman.spark.vocabulary import TextVocabulary, build_vocabulary, is_split_into_tokens, is_tokenised, without_text

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

MODIFIED_KNESER_NEY, STUPID_BACKOFF = "modified-kneser-ney", "stupid-backoff"
SPARK_SMOOTHINGS = (MODIFIED_KNESER_NEY, STUPID_BACKOFF)
LINES_PER_PARTITION, WINDOWS_PER_PARTITION = 1_000_000, 1_000_000  # of a shuffle


@dataclass(frozen=True)
class VocabularySource:
    """Where the vocabulary comes from: a given one, or the words of the text."""

    vocab: Vocab | None = None
    units: str = "auto"
    min_count: int = 1
    max_size: int | None = None
    with_unknown: bool = False  # collect the words outside the vocabulary, for a model of their spelling

    def check(self) -> None:
        """Raise an error if the text must be split into tokens that are learned from it."""
        if self.vocab is None and self.units not in ("auto", "word"):
            remedy = "train a small model with these units in memory, and name it with --vocab"
            raise DataError(f"--units {self.units}: Spark counts words, or the tokens of --vocab; {remedy}")

    def read(self, lines: NumberedLines, names: str) -> TextVocabulary:
        """Return the vocabulary of a text."""
        if self.vocab is not None:
            return TextVocabulary(self.vocab, words=lines.total, is_split=is_split_into_tokens(lines, self.vocab))
        if self.units == "auto" and not is_tokenised(lines):
            remedy = (
                "to split it at spaces only, give --units word; for subwords, name a model that has them with --vocab"
            )
            raise DataError(f"{names}: raw text, and Spark learns no subwords; {remedy}")
        limits = {"min_count": self.min_count, "max_size": self.max_size}
        return build_vocabulary(lines, **limits, with_unknown=self.with_unknown)  # type: ignore[arg-type]


@dataclass(frozen=True)
class SparkTraining:
    """A trained model, and the size of its text."""

    model: NgramModel
    fingerprint: dict[str, Json]
    counts_error: DragomanError | None = None  # why the counts could not be written


def check_config(config: NgramConfig) -> None:
    """Raise an error for settings that only training in memory has."""
    if config.smoothing not in SPARK_SMOOTHINGS:
        remedy = f"choose {' or '.join(SPARK_SMOOTHINGS)}, or --engine memory"
        raise DataError(f"--smoothing {config.smoothing}: not with --engine spark; {remedy}")
    if config.gap:
        raise DataError(f"--gap {config.gap}: not with --engine spark; use --engine memory")


def train_ngram(
    spark: SparkSession,
    paths: Sequence[str],
    config: NgramConfig | None = None,
    source: VocabularySource | None = None,
    *,
    unknown: Callable[[Corpus], UnknownWordModel],
    counts_path: str | None = None,
    partitions: int | None = None,
    report: Report = no_report,
) -> SparkTraining:
    """Train an n-gram model on text from any Hadoop path.

    Args:
        spark: the session.
        paths: files, directories and patterns, one sentence per line.
        config: the settings of the model.
        source: where the vocabulary comes from; default: the words of the text.
        unknown: creates the unknown-word model for a corpus that has the words of the text, but no sentences.
        counts_path: where to write the counts as Parquet. If this fails, the model is trained all the same, and the
            result has the error.
        partitions: tasks of each shuffle. Default: one per million words, and one per core at least.
        report: receives messages.
    """
    config, source, names = config or NgramConfig(), source or VocabularySource(), ", ".join(paths)
    check_config(config)
    source.check()
    if counts_path is not None:
        check_output(spark, counts_path)
    tasks = partitions or spark.sparkContext.defaultParallelism
    with spark_setting(spark, PARTITIONS, str(tasks)), progress(spark, "reading", report):
        lines = read_lines(spark, paths, training=True)
    files = len(lines.places.files)
    report(f"{lines.total:,} line{'s' * (lines.total != 1)} in {files:,} file{'s' * (files != 1)}")
    tasks = partitions or max(tasks, lines.total // LINES_PER_PARTITION)
    with spark_setting(spark, PARTITIONS, str(tasks)), progress(spark, "vocabulary", report):
        vocabulary = source.read(lines, names)
    report(f"{len(vocabulary.vocab):,} entries in the vocabulary")
    model_of_unknown = unknown(without_text(vocabulary))
    tasks = partitions or max(tasks, (vocabulary.words + lines.total) // WINDOWS_PER_PARTITION)
    with spark_setting(spark, PARTITIONS, str(tasks)):
        with progress(spark, "counting", report):
            counts = _count(spark, lines, vocabulary, config)
        try:
            report(", ".join(f"{size:,} {order}-grams" for order, size in enumerate(counts.sizes, 1)))
            error = None if counts_path is None else _try_writing(spark, counts, vocabulary.vocab, counts_path, report)
            model = _estimate(spark, counts, vocabulary.vocab, model_of_unknown, config, report)
            return SparkTraining(model, _fingerprint(lines, counts, vocabulary.vocab), error)
        finally:
            counts.unpersist()


def _count(spark: SparkSession, lines: NumberedLines, text: TextVocabulary, config: NgramConfig) -> NgramCountTables:
    windows = count_windows(lines, ship_vocab(spark, text.vocab), config.order, is_split=text.is_split).persist()
    try:
        return count_ngrams(windows, config.order, adjusted=config.smoothing == MODIFIED_KNESER_NEY)
    finally:
        windows.unpersist()


def _estimate(
    spark: SparkSession,
    counts: NgramCountTables,
    vocab: Vocab,
    unknown: UnknownWordModel,
    config: NgramConfig,
    report: Report,
) -> NgramModel:
    """Smooth the counts, and return the model."""
    distribution = zerogram(vocab, unknown, config.interpolate_unigrams)
    is_discounted = config.smoothing == MODIFIED_KNESER_NEY
    frequency = estimate.unigram_counts(counts, "adjusted" if is_discounted else "count", len(vocab))
    task = estimate.unigram_task(frequency, distribution)
    thresholds = estimate.Thresholds(config.prune)
    smooth = _discounting if is_discounted else _stupid_backoff
    unigrams, levels = smooth(spark, counts, task, thresholds, report)
    normalizer = None if is_discounted else lambda order: STUPID_BACKOFF_FACTOR**order * unigrams.normalizer
    trie, backoff_estimate = estimate.assemble(unigrams, levels, normalizer)
    table = NgramTable.from_estimate(trie, backoff_estimate)
    if config.entropy_prune:
        table = prune_by_entropy(table, config.entropy_prune)
    if config.quantise:
        table = quantize(table)
    return NgramModel(vocab, table, unknown, config, tuple(task.notes))


Smoothed = tuple[estimate.Unigrams, list[estimate.LevelArrays]]


def _discounting(
    spark: SparkSession,
    counts: NgramCountTables,
    task: SmoothingTask,
    thresholds: estimate.Thresholds,
    report: Report,
) -> Smoothed:
    """Modified Kneser-Ney smoothing, from order 1 upwards."""
    with progress(spark, "discounts", report):
        discounts = [
            _discounts(task, order, statistics) for order, statistics in enumerate(adjusted_count_of_counts(counts), 1)
        ]
    unigrams = estimate.discounted_unigrams(task, discounts[0])
    shorter, levels = estimate.unigram_frame(spark, unigrams.prob), list[estimate.LevelArrays]()
    last: estimate.Level | None = None
    for order in range(2, counts.order + 1):
        level = estimate.discounting_level(counts, order, discounts[order - 1], thresholds, shorter)
        with progress(spark, f"{order}-grams", report):
            levels.append(estimate.collect_level(level, thresholds))
        if last is not None:
            last.unpersist()
        shorter, last = level.ngrams, level
    if last is not None:
        last.unpersist()
    return unigrams, levels


def _discounts(task: SmoothingTask, order: int, statistics: NDArray[np.float64]) -> NDArray[np.float64]:
    try:
        return modified_discounts(statistics)
    except DiscountError as error:
        return fallback_discounts(task, order, error, "discounts")


def _stupid_backoff(
    spark: SparkSession,
    counts: NgramCountTables,
    task: SmoothingTask,
    thresholds: estimate.Thresholds,
    report: Report,
) -> Smoothed:
    """Stupid back-off with normalised scores, from order 1 upwards."""
    frequencies = task.estimate(maximum_likelihood(task)).prob[1:]
    scores, unigrams = estimate.stupid_unigrams(frequencies, task.raw(1).astype(np.int64), task.zerogram)
    shorter: DataFrame = estimate.unigram_frame(spark, scores)
    normalizers = spark.createDataFrame(pa.table({"normalizer": [unigrams.normalizer]}))
    levels, stored = list[estimate.LevelArrays](), list[estimate.Level]()
    for order in range(2, counts.order + 1):
        level, shorter = estimate.stupid_level(counts, order, thresholds, shorter, normalizers)
        normalizers = level.contexts
        stored.append(level)
        with progress(spark, f"{order}-grams", report):
            levels.append(estimate.collect_level(level, thresholds))
    for level in stored:
        level.unpersist()
    return unigrams, levels


def _try_writing(
    spark: SparkSession, counts: NgramCountTables, vocab: Vocab, path: str, report: Report
) -> DragomanError | None:
    """Write the counts. Return the error if they cannot be written, so that the model is not lost."""
    try:
        with spark_errors(), progress(spark, "writing counts", report):
            _write_counts(spark, counts, vocab, path)
    except DragomanError as error:
        report(f"{error}; the model is trained without the counts")
        return error
    return None


def _write_counts(spark: SparkSession, counts: NgramCountTables, vocab: Vocab, path: str) -> None:
    """Write the vocabulary and the counts of each order as Parquet: `vocabulary` and `order=1`, `order=2`, ..."""
    words = pa.table({"id": np.arange(len(vocab), dtype=np.int32), "word": list(vocab.tokens), "count": vocab.counts})
    frames = {"vocabulary": spark.createDataFrame(words).coalesce(1)}
    frames |= {f"order={order}": table for order, table in enumerate(counts.tables, 1)}
    write_frames(frames, path)


def _fingerprint(lines: NumberedLines, counts: NgramCountTables, vocab: Vocab) -> dict[str, Json]:
    """Return the size of the text and a checksum of its word counts."""
    frequency = estimate.unigram_counts(counts, "count", len(vocab))
    words = np.frombuffer("\n".join(vocab.tokens).encode(), np.uint8)
    return {"sentences": lines.total, "tokens": int(frequency.sum()), "checksum": arrays_checksum([frequency, words])}
