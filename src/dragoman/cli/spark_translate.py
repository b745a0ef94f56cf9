"""dragoman spark translate"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from dragoman.cli.messages import info
from dragoman.cli.option_groups import argument, with_option_groups
from dragoman.cli.options import BeamSize
from dragoman.cli.spark_options import Column, SparkRowOptions, WorkerThreads
from dragoman.core.defaults import DEFAULT_BEAM_SIZE


@with_option_groups
def spark_translate(
    model: Annotated[Path, argument("DIR", "A translator.")],
    rows: SparkRowOptions,
    column: Column = "text",
    beam_size: BeamSize = DEFAULT_BEAM_SIZE,
    threads: WorkerThreads = 1,
) -> None:
    """Translate each line.

    The translation is that of dragoman translate. The output has the rows of the input in the same order, with the column
    translation; text has only this column. Parquet files keep all columns, and get an id, the number of the row, if they have
    none. Of JSONL, only the column of the texts is kept, and id is the number of the line. Options of the search other than
    the beam size are those of dragoman translate by default.

    \b
    Example:
      dragoman spark translate de-en --text 'news/*.de.gz' -o news.en.txt
      dragoman spark translate de-en --text news.parquet --column de -o news.en.parquet --master spark://host:7077
    """
    from dragoman.spark.session import require_spark

    require_spark()
    from dragoman.spark.batch import TRANSLATION, process_rows, translate

    task = partial(translate, model=model, column=column, beam_size=beam_size)
    with rows.spark.session(threads) as spark:
        process_rows(
            *(spark, rows.paths, [column], task, TRANSLATION),
            formats=rows.formats,
            partitions=rows.spark.partitions,
            report=info,
        )
    info(f"{rows.output}: written")
