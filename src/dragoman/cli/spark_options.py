"""Options of commands that run on Spark."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.option_groups import OptionGroup, option
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY, SPARK = "memory", "spark"
Master = Annotated[
    str | None,
    option(
        "--master URL",
        "Where Spark runs: local[N] is N cores of this machine; spark://HOST:PORT, yarn or k8s://URL is a cluster. "
        "Default: local[*], all cores of this machine.",
    ),
]
Partitions = Annotated[
    int | None, option("--partitions N", "Number of tasks of each stage. Default: by the size.", min=1)
]
SparkConf = Annotated[
    list[str] | None,
    option("--spark-conf KEY=VALUE", "A setting of Spark, such as spark.driver.memory=8g. Can be repeated."),
]


@dataclass(frozen=True)
class SparkOptions(OptionGroup):
    """Where and how Spark runs."""

    panel = "Spark"

    master: Master = None
    partitions: Partitions = None
    spark_conf: SparkConf = None

    def settings(self) -> dict[str, str]:
        """Return the settings of --spark-conf."""
        pairs = [setting.partition("=") for setting in self.spark_conf or ()]
        for name, sign, _ in pairs:
            if not (name and sign):
                raise DataError(f"--spark-conf {name}: give a name and a value, such as spark.driver.memory=8g")
        return {name: value for name, _, value in pairs}

    def session(self, threads: int = 1) -> AbstractContextManager[SparkSession]:
        """Return a context with a Spark session."""
        from dragoman.spark.session import spark_session

        return spark_session(self.master, self.settings(), threads)


@dataclass(frozen=True)
class SparkTrainingOptions(OptionGroup):
    """Training by Spark instead of in memory."""

    panel = "Spark"

    engine: Annotated[
        str,
        option(
            "--engine NAME",
            "memory, or spark: count with Spark, for text of many machines. --text is then any path that Hadoop knows, with "
            "patterns such as 'hdfs://host/text/*.gz'. The model is the same.",
        ),
    ] = MEMORY
    spark: SparkOptions = SparkOptions()
    arpa: Annotated[
        Path | None, option("--arpa FILE", "With Spark: write an ARPA file as well (.gz is compressed).")
    ] = None
    counts: Annotated[
        str | None, option("--counts PATH", "With Spark: write the counts of all orders and the vocabulary as Parquet.")
    ] = None

    @property
    def is_chosen(self) -> bool:
        """Whether Spark trains the model; raise an error for options that do not fit."""
        if self.engine not in (MEMORY, SPARK):
            raise DataError(f"--engine {self.engine}: choose {MEMORY} or {SPARK}")
        if self.engine == MEMORY and self != SparkTrainingOptions():
            names = "--master, --partitions, --spark-conf, --arpa and --counts"
            raise DataError(
                f"{names} are for --engine {SPARK}; without it, remove them (dragoman export writes ARPA files)"
            )
        return self.engine == SPARK

    def check_no_disk(self, memory: str | None, tmp: Path | None) -> None:
        """Raise an error for the options of counting on disk, which Spark does not have."""
        for option_name, value, remedy in (
            ("--memory", memory, "set Spark's memory with --spark-conf spark.driver.memory=8g"),
            ("--tmp", tmp, "set Spark's directory with the environment variable SPARK_LOCAL_DIRS"),
        ):
            if value is not None:
                raise DataError(f"{option_name} {value}: not with --engine {SPARK}; remove it, and {remedy}")


@dataclass(frozen=True)
class SparkRowOptions(OptionGroup):
    """What `dragoman spark` reads and writes."""

    text: Annotated[
        str,
        option(
            "--text PATH",
            "Lines of text, .jsonl or .parquet: a file, a directory or a pattern, on any file system that Hadoop knows.",
        ),
    ]
    output: Annotated[
        str,
        option(
            "--output, -o PATH", "Directory to write: .jsonl or .parquet, otherwise lines of text; files sort in order."
        ),
    ]
    input_format: Annotated[
        str | None, option("--input-format NAME", "Format of --text: text, jsonl or parquet. Default: by its name.")
    ] = None
    output_format: Annotated[
        str | None, option("--format NAME", "Format of the output: text, jsonl or parquet. Default: by its name.")
    ] = None
    spark: SparkOptions = SparkOptions()

    @property
    def paths(self) -> tuple[str, str]:
        return self.text, self.output

    @property
    def formats(self) -> tuple[str | None, str | None]:
        return self.input_format, self.output_format


Column = Annotated[str, option("--column NAME", "Column of the texts in .jsonl and .parquet.")]
WorkerThreads = Annotated[
    int, option("--threads N", "Threads of each Python worker; Spark starts one worker per core.", min=1)
]
