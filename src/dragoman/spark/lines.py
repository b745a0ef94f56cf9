"""Text from any path that Hadoop knows, as numbered lines.

Spark's reader splits lines at a lone carriage return as well, and replaces bytes that are not UTF-8 when Python sees them.
Here lines end at line feeds only, and a first pass checks the bytes, so that an error names file and line. The same pass
counts the lines of each part of a file that one task reads. Each line then has a number that depends on the files only:
files are in the order of their names, and neither the number of tasks nor a repeated task changes it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as sf

from dragoman.core.errors import DataError, error_at_line
from dragoman.data.formats import GZIP_MAGIC, check_utf8
from dragoman.data.scanner import split_words
from dragoman.data.vocabulary import SPECIALS, UNK
from dragoman.spark.session import plain_path

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MAX_LINE_BYTES = 1 << 25  # so that the position of a word in a line fits into POSITION_BITS
RESERVED = r"(^|[ \t])</?s>([ \t]|\r?\z)"  # `<s>` or `</s>` as a word
PARTITION_SETTING = "spark.sql.files.minPartitionNum"


class Split(NamedTuple):
    """A part of a file that one task reads from its beginning to its end."""

    file: str  # as Spark names it
    start: int  # the first byte, or a byte of the line before
    first_row: int  # Spark's number of its first line
    lines: int
    wrong_row: int | None  # Spark's number of its first line with an error


@dataclass(frozen=True)
class Places:
    """Where lines come from: the number of the first line of each file, from 1."""

    first_numbers: tuple[int, ...]
    files: tuple[str, ...]

    def find(self, number: int) -> tuple[str, int]:
        """Return the file of a line and its number there.

        >>> Places((1, 4), ("a.txt", "b.txt")).find(5)
        ('b.txt', 2)
        """
        index = bisect_right(self.first_numbers, number) - 1
        return self.files[index], number - self.first_numbers[index] + 1


@dataclass(frozen=True)
class NumberedLines:
    """Lines of text in a DataFrame with the columns `number`, from 1, and `text`."""

    frame: DataFrame
    total: int
    places: Places


def read_lines(spark: SparkSession, paths: Sequence[str], *, training: bool = False) -> NumberedLines:
    """Read text files, plain or compressed; lines are numbered through all files in the order of their names.

    Args:
        spark: the session.
        paths: files, directories and patterns such as `hdfs://host/text/*.gz`.
        training: `<s>` and `</s>` as words are errors.
    """
    names = ", ".join(paths)
    if spark.conf.get(PARTITION_SETTING, None) is None:
        # Spark divides files by the number of cores. Executors that join later must not change that.
        spark.conf.set(PARTITION_SETTING, str(spark.sparkContext.defaultParallelism))
    raw = spark.read.option("lineSep", "\n").text(list(paths))
    raw = raw.select(
        sf.col("value"),
        sf.col("_metadata.file_path").alias("file"),
        sf.col("_metadata.file_block_start").alias("start"),
        sf.monotonically_increasing_id().alias("row"),
    )
    splits = _scan(raw, training=training)
    if not splits:
        hidden = "files whose names begin with _ or . are not read"
        raise DataError(f"{names}: empty; give files with one sentence per line ({hidden})")
    firsts, total = _first_numbers(splits)
    if wrong := next((split for split in splits if split.wrong_row is not None), None):
        raise _describe_error(raw, splits, wrong)
    rows = [(split.file, split.start, first - split.first_row) for split, first in zip(splits, firsts, strict=True)]
    shifts = sf.broadcast(spark.createDataFrame(rows, "file string, start long, shift long"))
    changed = sf.raise_error(
        sf.lit(f"dragoman.core.errors.DragomanError: {names}: changed while it was read; run again")
    )
    numbered = raw.join(shifts, ["file", "start"], "left").select(
        sf.when(sf.col("shift").isNull(), changed.cast("long"))
        .otherwise(sf.col("row") + sf.col("shift"))
        .alias("number"),
        _without_return(sf.col("value")).alias("text"),
    )
    by_file = {split.file: first for split, first in zip(reversed(splits), reversed(firsts), strict=True)}
    files = sorted(by_file, key=lambda file: by_file[file])
    places = Places(tuple(by_file[file] for file in files), tuple(map(plain_path, files)))
    return NumberedLines(numbered, total, places)


def _scan(raw: DataFrame, *, training: bool) -> list[Split]:
    """Read everything once: count the lines of each split, and find the first with an error."""
    value = sf.col("value")
    wrong = ~sf.is_valid_utf8(value) | value.contains("\0") | (sf.octet_length(value) > MAX_LINE_BYTES)
    if training:
        wrong = wrong | value.rlike(RESERVED)
    statistics = raw.groupBy("file", "start").agg(sf.min("row"), sf.count("*"), sf.min(sf.when(wrong, sf.col("row"))))
    splits = [Split(*row) for row in statistics.collect()]
    return sorted(splits, key=lambda split: (plain_path(split.file), split.start))


def _first_numbers(splits: Sequence[Split]) -> tuple[list[int], int]:
    """Return the number of the first line of each split, and the number of all lines."""
    firsts, total = [], 0
    for split in splits:
        firsts.append(total + 1)
        total += split.lines
    return firsts, total


def _without_return(value: Column) -> Column:
    """Return a line without the CR of a line break CR LF."""
    return sf.when(value.endswith("\r"), sf.expr("left(value, length(value) - 1)")).otherwise(value)


def _describe_error(raw: DataFrame, splits: Sequence[Split], split: Split) -> DataError:
    """Return the error of the first wrong line of a split."""
    assert split.wrong_row is not None
    before = sum(other.lines for other in splits if other.file == split.file and other.start < split.start)
    number, file = before + split.wrong_row - split.first_row + 1, plain_path(split.file)
    is_line = (sf.col("file") == split.file) & (sf.col("start") == split.start) & (sf.col("row") == split.wrong_row)
    [row] = raw.where(is_line).select(sf.col("value").cast("binary")).collect()
    line = bytes(row[0])
    if number == 1 and line.startswith(GZIP_MAGIC):
        return DataError(f"{file}: this is gzip data; give it a name that ends in .gz")
    if len(line) > MAX_LINE_BYTES:
        return error_at_line(
            file, number, f"{len(line):,} bytes in one line, and at most {MAX_LINE_BYTES:,} are allowed; split it"
        )
    try:
        check_utf8(line, file, number)
    except DataError as error:
        return error
    reserved = [word for word in split_words(line.decode()) if word in SPECIALS[:UNK]]
    problem = "is reserved in training text: sentence boundaries are added automatically; remove it"
    return error_at_line(file, number, f"{', '.join(reserved[:1])} {problem}")
