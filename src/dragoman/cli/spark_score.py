"""dragoman spark score"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from dragoman.cli.messages import info
from dragoman.cli.option_groups import option, with_option_groups
from dragoman.cli.options import Model
from dragoman.cli.spark_options import Column, SparkRowOptions, WorkerThreads


@with_option_groups
def spark_score(
    model: Model,
    rows: SparkRowOptions,
    column: Column = "text",
    src_column: Annotated[
        str | None, option("--src-column NAME", "For translators: the column with the sources of the texts.")
    ] = None,
    threads: WorkerThreads = 1,
) -> None:
    """Compute the log-probability of each line.

    It is that of dragoman score. The output has the rows of the input in the same order, with the column log_prob; text has
    only this column. Parquet files keep all columns, and get an id, the number of the row, if they have none. Of JSONL, only
    the columns of the texts are kept, and id is the number of the line.

    \b
    Example:
      dragoman spark score kn5 --text 'text/*.gz' -o scores.txt
      dragoman spark score kn5 --text lines.parquet -o scores.parquet --master spark://host:7077
      dragoman spark score de-en --text pairs.jsonl --column en --src-column de -o scores.jsonl
    """
    from dragoman.spark.session import require_spark

    require_spark()
    from dragoman.spark.batch import LOG_PROB, process_rows, score

    columns = [column] if src_column is None else [src_column, column]
    task = partial(score, model=model, column=column, source=src_column)
    with rows.spark.session(threads) as spark:
        process_rows(
            *(spark, rows.paths, columns, task, LOG_PROB),
            formats=rows.formats,
            partitions=rows.spark.partitions,
            report=info,
        )
    info(f"{rows.output}: written")
