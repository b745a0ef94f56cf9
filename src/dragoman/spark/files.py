"""Lines of text as DataFrames, from and to Parquet, JSONL and text files.

Rows have a position: the number of the line or row, through all files in the order of their names. They are written in
this order. They also have an id: the column `id` of Parquet files that have one, otherwise the same number. What is
written appears under its name when all of it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql import functions as sf

from dragoman.core.errors import DataError, DragomanError, did_you_mean
from dragoman.data.formats import type_by_name
from dragoman.spark.lines import read_lines
from dragoman.spark.session import plain_path
from dragoman.spark.workers import ID, TEXT, jsonl_fields

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession

FORMATS = ("parquet", "jsonl", "text")
COMPRESSED = ".gz"
POSITION = "dragoman_position"  # the column that rows are ordered by; it is not written
LINE_BREAK = r"\r?\n"


@dataclass(frozen=True)
class Rows:
    """Rows with an id and a position, and how many there are."""

    frame: DataFrame
    total: int


def format_of(path: str, name: str | None = None) -> str:
    """Return the format of a path: the given name, otherwise by its ending.

    >>> format_of("a.parquet"), format_of("b.jsonl.gz"), format_of("c.txt"), format_of("directory")
    ('parquet', 'jsonl', 'text', 'text')
    """
    if name is not None and name not in FORMATS:
        raise DataError(f"--format {name}: {did_you_mean(name, FORMATS)}")
    ending = type_by_name(path.rstrip("/*"))
    return name or (ending if ending in FORMATS else "text")


def read_rows(spark: SparkSession, path: str, columns: Sequence[str] = (TEXT,), format_name: str | None = None) -> Rows:
    """Read rows with an id and their position.

    Args:
        spark: the session.
        path: a file, a directory or a pattern, of any file system that Hadoop knows.
        columns: the columns of Parquet files (which keep the others as well) or the keys of JSONL files to read (the
            others are not kept, also not a key `id`). Text files have one column, `text`.
        format_name: one of `FORMATS`; default: by the ending of the path.
    """
    kind = format_of(path, format_name)
    if kind == "parquet":
        return _read_parquet(spark, path, columns)
    if kind == "jsonl" and ID in columns:
        raise DataError(
            f"--column {ID}: of JSONL files, {ID} is the number of the line; rename the key, or give Parquet"
        )
    lines = read_lines(spark, [path])
    if kind == "text":
        if list(columns) != [TEXT]:
            raise DataError(
                f"--column {', '.join(columns)}: text files have no columns; give Parquet or JSONL, or leave it out"
            )
        return Rows(_with_position(lines.frame.withColumnRenamed("number", ID)), lines.total)
    schema = f"{ID} long, " + ", ".join(f"`{column}` string" for column in columns)
    task = partial(jsonl_fields, fields=list(columns), places=lines.places)
    return Rows(_with_position(lines.frame.mapInArrow(task, schema)), lines.total)


def _with_position(frame: DataFrame) -> DataFrame:
    """Add the position of rows whose id is their number."""
    return frame.withColumn(POSITION, sf.col(ID))


def _read_parquet(spark: SparkSession, path: str, columns: Sequence[str]) -> Rows:
    """Read Parquet. Rows are numbered from 1, through the files in the order of their names."""
    frame = spark.read.parquet(path)
    for column in columns:
        if column not in frame.columns:
            raise DataError(f"{path}: no column {column!r}; {did_you_mean(column, frame.columns)}")
    if POSITION in frame.columns:
        raise DataError(f"{path}: the name of the column {POSITION!r} is used while rows are processed; rename it")
    rows = frame.select("*", sf.col("_metadata.file_path").alias("_file"), sf.col("_metadata.row_index").alias("_row"))
    sizes = sorted(map(tuple, rows.groupBy("_file").count().collect()), key=lambda size: plain_path(size[0]))
    shifts, total = list[tuple[str, int]](), 0
    for file, size in sizes:
        shifts.append((file, total))
        total += size
    if not shifts:
        raise DataError(f"{path}: empty; give rows to process")
    first = sf.broadcast(spark.createDataFrame(shifts, "_file string, _shift long"))
    number = sf.col("_row") + sf.col("_shift") + 1
    new_id = [] if ID in frame.columns else [number.alias(ID)]
    return Rows(rows.join(first, "_file").select(number.alias(POSITION), *new_id, *frame.columns), total)


def write_rows(frame: DataFrame, path: str, column: str, format_name: str | None = None) -> None:
    """Write rows in their order, as a directory of files whose names sort in this order.

    Args:
        frame: the rows. A column with their position is left out.
        path: the directory to write.
        column: the column that text files have. A line break in it becomes a space, so that each row is one line.
        format_name: one of `FORMATS`; default: by the ending of the path.
    """
    kind, frame = format_of(path, format_name), frame.drop(POSITION)
    if kind == "text":
        is_number, value = dict(frame.dtypes)[column] == "double", sf.col(column)
        frame = frame.select(_as_text(value) if is_number else sf.regexp_replace(value, LINE_BREAK, " ").alias(column))
    elif kind == "jsonl":  # JSON has no infinite numbers
        doubles = [name for name, type_name in frame.dtypes if type_name == "double"]
        finite = {name: sf.when(sf.abs(sf.col(name)) < float("inf"), sf.col(name)) for name in doubles}
        frame = frame.withColumns(finite) if finite else frame
    write_frames({"": frame}, path, kind, compressed=path.endswith(COMPRESSED))


def _as_text(number: Column) -> Column:
    """Return a log-probability as `dragoman score` prints it."""
    return sf.when(number == float("-inf"), "-inf").otherwise(sf.format_string("%.6f", number))


def check_output(spark: SparkSession, path: str) -> None:
    """Raise an error if something exists at a path of any file system, before the work for it begins."""
    target = _hadoop(spark).Path(path)
    if target.getFileSystem(_configuration(spark)).exists(target):
        raise DataError(f"{path}: exists already; choose another name, or remove it")


def write_frames(
    frames: Mapping[str, DataFrame], path: str, kind: str = "parquet", *, compressed: bool = False
) -> None:
    """Write DataFrames to subdirectories of a directory, which appears when all are written; "" is the directory."""
    spark = next(iter(frames.values())).sparkSession
    check_output(spark, path)
    target = _hadoop(spark).Path(path)
    system = target.getFileSystem(_configuration(spark))
    parent = target.getParent()
    name = f".{target.getName()}.tmp-{uuid4().hex[:8]}"
    temporary = _hadoop(spark).Path(name) if parent is None else _hadoop(spark).Path(parent, name)
    try:
        for part, frame in frames.items():
            place = temporary.toString() + (f"/{part}" if part else "")
            _save(frame.write.option("compression", "gzip") if compressed else frame.write, place, kind)
        check_output(spark, path)
        is_renamed = system.rename(temporary, target)
        nested = _hadoop(spark).Path(target, temporary.getName())
        if system.exists(nested):  # Hadoop moves a directory into one that exists
            system.delete(nested, True)
            is_renamed = False
        if not is_renamed:
            raise DragomanError(f"{path}: could not be written (another program has created it); nothing was changed")
    finally:
        system.delete(temporary, True)


def _save(writer: DataFrameWriter, place: str, kind: str) -> None:
    if kind == "parquet":
        writer.parquet(place)
    elif kind == "jsonl":
        writer.json(place, ignoreNullFields=False)
    else:
        writer.text(place, lineSep="\n")


def _hadoop(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]


def _configuration(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.hadoopConfiguration()
