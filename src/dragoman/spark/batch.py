"""Scoring, translating and deduplicating the rows of a DataFrame.

A model is sent to each executor once, and each Python worker loads it once. Results depend on the row and its batch only,
and stay in the row, so that tasks can be repeated in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, DataType, DoubleType, StringType, StructField, StructType

from dragoman.core.defaults import DEFAULT_BEAM_SIZE
from dragoman.core.errors import DataError, did_you_mean
from dragoman.models.base import Model
from dragoman.models.loading import load_language_model, load_translator
from dragoman.spark.files import POSITION, check_output, read_rows, write_rows
from dragoman.spark.progress import Report, no_report, progress
from dragoman.spark.session import PARTITIONS, spark_setting
from dragoman.spark.shipping import ship_model
from dragoman.spark.workers import (
    EXACT,
    ID,
    KEY,
    SIMPLIFIED,
    TEXT,
    duplicate_keys,
    score_lines,
    score_pairs,
    translate_lines,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG_PROB, TRANSLATION = "log_prob", "translation"  # columns that are added
ROWS_PER_PARTITION, MAX_PARTITIONS = 20_000, 10_000


def score(
    frame: DataFrame,
    model: str | Path | Model,
    column: str = TEXT,
    *,
    source: str | None = None,
    output: str = LOG_PROB,
) -> DataFrame:
    """Add the log-probability of each row's text, as `LanguageModel.score` and `BaseTranslator.score` compute it.

    Args:
        frame: rows with texts.
        model: a model or its directory.
        column: the column of the texts.
        source: for a translator, the column with the sources of the texts.
        output: the name of the new column.

    For example, `score(spark.read.parquet("lines.parquet"), "kn5", "text")`.
    """
    _check_columns(frame, [column, *([] if source is None else [source])], output)
    if source is None:
        loaded = model if isinstance(model, Model) else load_language_model(model)
        if loaded.carries:
            raise DataError(
                f"{model}: a {loaded.kind} model depends on the lines before, which Spark does not keep; score in memory"
            )
        worker = partial(score_lines, column=column)
    else:
        _check_translator(model)
        worker = partial(score_pairs, source=source, column=column)
    task = partial(worker, model=ship_model(frame.sparkSession, model), output=output)
    return frame.mapInArrow(task, _with_field(frame, output, DoubleType()))


def translate(
    frame: DataFrame,
    model: str | Path | Model,
    column: str = TEXT,
    *,
    beam_size: int = DEFAULT_BEAM_SIZE,
    output: str = TRANSLATION,
) -> DataFrame:
    """Add the translation of each row's text, as `BaseTranslator.translate_text` and `dragoman translate` write it.

    Args:
        frame: rows with texts.
        model: a translator or its directory.
        column: the column of the texts.
        beam_size: hypotheses kept in each step.
        output: the name of the new column.
    """
    _check_columns(frame, [column], output)
    _check_translator(model)
    name = ship_model(frame.sparkSession, model)
    task = partial(translate_lines, model=name, column=column, output=output, beam_size=beam_size)
    return frame.mapInArrow(task, _with_field(frame, output, StringType()))


def dedup(
    frame: DataFrame, columns: str | Sequence[str] = TEXT, *, match: str = SIMPLIFIED, id_column: str = ID
) -> DataFrame:
    """Keep the first row of each group of duplicates, ordered by the id. Blank texts have no duplicates.

    Args:
        frame: rows with texts and an id.
        columns: the columns that duplicates have in common; with several, all of them.
        match: `simplified`: texts that differ in case, punctuation, white space or the values of numbers are duplicates,
            as in `dragoman split`; `exact`: only equal texts are.
        id_column: the row with the lowest value is the first.
    """
    names = [columns] if isinstance(columns, str) else list(columns)
    _check_columns(frame, [*names, id_column], KEY)
    if match not in (SIMPLIFIED, EXACT):
        raise DataError(f"--match {match}: choose {SIMPLIFIED} or {EXACT}")
    keys = frame.mapInArrow(partial(duplicate_keys, columns=names, match=match), _with_field(frame, KEY, BinaryType()))
    is_blank = sf.col(KEY).isNull()
    # Blank rows all stay. They would be one large group, so they are also divided by their ids.
    group = Window.partitionBy(KEY, sf.when(is_blank, sf.col(id_column))).orderBy(id_column)
    ranked = keys.withColumn("_rank", sf.row_number().over(group))
    return ranked.where(is_blank | (sf.col("_rank") == 1)).drop("_rank", KEY).orderBy(id_column)


def process_rows(
    spark: SparkSession,
    paths: tuple[str, str],
    columns: Sequence[str],
    task: Callable[[DataFrame], DataFrame],
    result: str,
    *,
    formats: tuple[str | None, str | None] = (None, None),
    partitions: int | None = None,
    report: Report = no_report,
) -> None:
    """Read rows, apply a function such as `translate` to them, and write the result in the order of the rows.

    Args:
        spark: the session.
        paths: what to read and what to write.
        columns: the columns to read.
        task: the function.
        result: the column that text files have.
        formats: those of the two paths; default: by their endings.
        partitions: tasks, and files that are written. Default: one per 20,000 rows, and one per core at least.
        report: receives messages.
    """
    (path, output), (input_format, output_format) = paths, formats
    check_output(spark, output)
    cores = spark.sparkContext.defaultParallelism
    with progress(spark, "reading", report):
        rows = read_rows(spark, path, columns, input_format)
    report(f"{rows.total:,} rows")
    number = partitions or min(max(cores, rows.total // ROWS_PER_PARTITION), MAX_PARTITIONS)
    with spark_setting(spark, PARTITIONS, str(number)), progress(spark, "processing", report):
        ordered = rows.frame.repartitionByRange(number, POSITION).sortWithinPartitions(POSITION)
        write_rows(task(ordered), output, result, output_format)


def _check_columns(frame: DataFrame, columns: Sequence[str], output: str) -> None:
    for column in columns:
        if column not in frame.columns:
            raise DataError(f"no column {column!r}; {did_you_mean(column, frame.columns)}")
    if output in frame.columns:
        raise DataError(f"there is a column {output!r} already; rename it, or choose another name for the new one")


def _check_translator(model: str | Path | Model) -> None:
    """Raise an error if a model is no translator, before any work is done."""
    if not isinstance(model, Model):
        load_translator(model)


def _with_field(frame: DataFrame, name: str, kind: DataType) -> StructType:
    return StructType([*frame.schema.fields, StructField(name, kind)])
