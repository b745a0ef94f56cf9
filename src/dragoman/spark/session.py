"""Starting Spark, and turning its errors into messages of one line."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dragoman.core.errors import DataError, DragomanError, is_installed, shorten

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*]"
DEFAULTS = {
    "spark.app.name": "dragoman",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.maxResultSize": "0",  # a model is collected on the driver
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2048",  # lines that a Python worker holds at a time
}
LOCAL_DEFAULTS = {
    "spark.driver.memory": "4g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
RAISED_IN_WORKER = re.compile(r"dragoman\.core\.errors\.(DataError|DragomanError): (.+)")
MISSING_PATH = re.compile(r"PATH_NOT_FOUND\]?.*?Path does not exist: (\S+?)\.? ")
TRUNCATED = (
    "Unexpected end of input stream",
    "EOFException",
    "not a gzip file",
    "incorrect header check",
    "ZlibDecompressor",
)
READ_FILE = re.compile(r"(?:FAILED_READ_FILE|while reading file)[^\n]*?((?:[a-z0-9]+:/|/)[^\s,]+)")
PARTITIONS = "spark.sql.shuffle.partitions"
MAX_ERROR = 300  # characters of a message of Spark


def require_spark() -> None:
    """Raise an error that says how to install what is missing: the Python packages or Java."""
    for package in ("pyspark", "pyarrow"):
        if not is_installed(package):
            raise DataError(f"{package} is not installed; run: pip install 'dragoman[spark]'")
    home = os.environ.get("JAVA_HOME")
    if not (Path(home, "bin", "java").is_file() if home else shutil.which("java")):
        place = f"JAVA_HOME ({home}) has no bin/java" if home else "there is no java command"
        raise DataError(
            f"Spark needs Java 17 or later, and {place}; run: apt install default-jre-headless, or set JAVA_HOME"
        )


@contextmanager
def spark_session(
    master: str | None = None, conf: Mapping[str, str] | None = None, threads: int = 1
) -> Iterator[SparkSession]:
    """Yield a Spark session, and stop it at the end; an active session is used as it is, and not stopped.

    Args:
        master: where the executors are: `local[N]`, `spark://HOST:PORT`, `yarn` or `k8s://URL`. Default: what
            `spark-submit` says, otherwise `local[*]`.
        conf: settings of Spark, which override dragoman's.
        threads: threads of each Python worker. Spark starts one worker per core.
    """
    require_spark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    with spark_errors():
        spark = active or _start({**_defaults(master, threads), **(conf or {})})
        try:
            yield spark
        finally:
            if active is None:
                spark.stop()


def _defaults(master: str | None, threads: int) -> dict[str, str]:
    """Return the settings of Spark that dragoman chooses."""
    settings = {**DEFAULTS, "spark.executorEnv.OMP_NUM_THREADS": str(threads)}
    if "PYSPARK_GATEWAY_PORT" in os.environ and master is None:  # started by spark-submit, which knows the master
        return settings
    settings["spark.master"] = master or DEFAULT_MASTER
    return settings | (LOCAL_DEFAULTS if settings["spark.master"].startswith("local") else {})


def _start(settings: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python has dragoman installed as well
    conf = SparkConf().setAll(list(settings.items()))
    if (
        SparkContext._gateway is None
        and "PYSPARK_GATEWAY_PORT" not in os.environ
        and not os.environ.get("DRAGOMAN_DEBUG")
    ):
        with tempfile.TemporaryFile() as log:
            # Spark's process writes its messages to a file, which is read only if it does not start. In a session of its
            # own it gets no signals of the terminal or the process group; it ends when its standard input is closed.
            place = {"stdout": log, "stderr": log, "start_new_session": True}
            try:
                SparkContext._gateway = launch_gateway(conf, place)
            except (PySparkException, OSError) as error:
                raise DragomanError(f"Spark could not be started ({_last_line(log) or error})") from error
            SparkContext._jvm = SparkContext._gateway.jvm
    spark = SparkSession.builder.config(map=dict(settings)).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if PARTITIONS not in settings and settings.get("spark.master", "").startswith("local"):
        spark.conf.set(
            PARTITIONS, str(spark.sparkContext.defaultParallelism)
        )  # 200 tasks would take longer than the work
    return spark


def _last_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = [line.strip() for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line or "xception" in line]
    return shorten((errors or lines or [""])[0 if errors else -1], MAX_ERROR)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turn errors of Spark into errors of dragoman: those that workers raised, and others with Spark's first line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    ended = "Spark's process has ended; it may need more memory, such as --spark-conf spark.driver.memory=8g"
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if (interruption := _interruption(error)) is not None:
            raise interruption from None
        try:
            text = str(error)
        except (ConnectionRefusedError, ConnectionResetError, Py4JError):  # the text would come from that process
            text = ""
        raise describe_spark_error(text) if text else DragomanError(ended) from error
    except (ConnectionRefusedError, ConnectionResetError) as error:
        if (interruption := _interruption(error)) is not None:
            raise interruption from None
        raise DragomanError(ended) from error


def _interruption(error: BaseException) -> BaseException | None:
    """Return the signal, such as SIGTERM or Ctrl-C, after which an error was raised: Spark's process gets it as well."""
    earlier = error.__context__
    while earlier is not None and isinstance(earlier, Exception):
        earlier = earlier.__context__
    return earlier


def describe_spark_error(text: str) -> DragomanError:
    """Return the error that a message of Spark stands for.

    >>> describe_spark_error("org.apache.spark.SparkException ... dragoman.core.errors.DataError: a.txt:3: not JSON\\n ...")
    DataError('a.txt:3: not JSON')
    """
    if match := RAISED_IN_WORKER.search(text):
        return (DataError if match[1] == "DataError" else DragomanError)(match[2].strip())
    if match := MISSING_PATH.search(f"{text} "):
        return DataError(f"{plain_path(match[1])}: no such file")
    if any(sign in text for sign in TRUNCATED):
        match = READ_FILE.search(text)
        return DataError(f"{plain_path(match[1].rstrip('.')) if match else 'an input file'}: not a complete gzip file")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    message = shorten((causes or lines or ["no message"])[-1 if causes else 0], MAX_ERROR)
    return DragomanError(f"Spark failed: {message} (DRAGOMAN_DEBUG=1 shows its log)")


@contextmanager
def spark_setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Change a setting of a session during a `with` block."""
    previous = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name) if previous is None else spark.conf.set(name, previous)


def plain_path(uri: str) -> str:
    """Return a local path without `file:`, other URIs unchanged.

    >>> plain_path("file:///data/a%20b.txt"), plain_path("hdfs://host/a.txt")
    ('/data/a b.txt', 'hdfs://host/a.txt')
    """
    from urllib.parse import unquote

    if not uri.startswith("file:"):
        return uri
    return "/" + unquote(uri.removeprefix("file:")).lstrip("/")
