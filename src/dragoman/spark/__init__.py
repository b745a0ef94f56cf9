"""Counting n-grams and processing lines with Apache Spark, on one machine or a cluster.

- `session`: starting Spark, and its errors as one line; `progress`: messages while jobs run;
- `lines`: text from any Hadoop path as numbered lines, checked; `files`: DataFrames from and to Parquet, JSONL and text;
- `shipping`: sending models to the executors, once each; `workers`: the functions that run in Python workers;
- `vocabulary`, `counts`, `estimate`, `train`: n-gram models as DataFrame jobs over integer ids;
- `batch`: `score`, `translate` and `dedup` of a DataFrame.

The package needs the extra `spark` and Java 17 or later: `pip install 'dragoman[spark]'`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dragoman.spark.batch import dedup, score, translate
    from dragoman.spark.session import spark_session
    from dragoman.spark.train import train_ngram

# Imported on first use: Python workers import this package for every model, and need only a part of it.
_MODULES = {
    "dedup": "dragoman.spark.batch",
    "score": "dragoman.spark.batch",
    "spark_session": "dragoman.spark.session",
    "train_ngram": "dragoman.spark.train",
    "translate": "dragoman.spark.batch",
}

__all__ = ["dedup", "score", "spark_session", "train_ngram", "translate"]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module 'dragoman.spark' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
