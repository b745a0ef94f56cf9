"""dragoman spark dedup"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from dragoman.cli.messages import info
from dragoman.cli.option_groups import option, with_option_groups
from dragoman.cli.spark_options import SparkRowOptions


@with_option_groups
def spark_dedup(
    rows: SparkRowOptions,
    column: Annotated[
        list[str] | None,
        option(
            "--column NAME",
            "Column of the texts in .jsonl and .parquet; repeated, rows are duplicates if all these columns are. "
            "Default: text.",
        ),
    ] = None,
    match: Annotated[
        str,
        option(
            "--match NAME",
            "simplified: texts that differ in case, punctuation, white space or the values of numbers are duplicates, as "
            "in dragoman split. exact: only equal texts are.",
        ),
    ] = "simplified",
) -> None:
    """Remove duplicate lines.

    The first of each group of duplicates stays. Blank lines have no duplicates. The rows that stay are in the order of the
    input. Parquet files keep all columns. Of JSONL, only the columns of the texts are kept, and id is the number of the line.

    \b
    Example:
      dragoman spark dedup --text 'text/*.gz' -o distinct.txt
      dragoman spark dedup --text pairs.parquet --column de --column en -o distinct.parquet
    """
    from dragoman.spark.session import require_spark

    require_spark()
    from dragoman.spark.batch import dedup, process_rows
    from dragoman.spark.files import POSITION

    columns = column or ["text"]
    task = partial(dedup, columns=columns, match=match, id_column=POSITION)
    with rows.spark.session() as spark:
        process_rows(
            *(spark, rows.paths, columns, task, columns[0]),
            formats=rows.formats,
            partitions=rows.spark.partitions,
            report=info,
        )
    info(f"{rows.output}: written")
