"""Sending directories to the executors: once to each, however many tasks it runs."""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.core.errors import DataError, DragomanError
from dragoman.data.segmenters import load_segmenter
from dragoman.data.vocabulary import Vocab
from dragoman.io.files import is_temporary
from dragoman.io.storage import CONFIG_FILE, VOCAB_FILE
from dragoman.models.base import Model

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNITS_FILE = "units.txt"  # beside a vocabulary: how texts are split into its tokens
_shipped: dict[tuple[str, str], str] = {}  # (application, fingerprint of a directory) -> name on the executors


def ship_model(spark: SparkSession, model: str | Path | Model) -> str:
    """Send a model, or the directory of one, to the executors. Return its name there."""
    if isinstance(model, Model):
        with tempfile.TemporaryDirectory() as directory:
            model.save(Path(directory, "model"))
            return ship_directory(spark, Path(directory, "model"))
    if not Path(model, CONFIG_FILE).is_file():
        raise DataError(f"{model}: not a model directory (it has no {CONFIG_FILE}); give one that dragoman train wrote")
    return ship_directory(spark, Path(model))


def ship_vocab(spark: SparkSession, vocab: Vocab) -> str:
    """Send a vocabulary with its segmenter to the executors. Return its name there."""
    files: Mapping[str, bytes] = {
        VOCAB_FILE: vocab.to_text().encode(),
        UNITS_FILE: vocab.segmenter.spec.encode(),
        **vocab.segmenter.files(),
    }
    with tempfile.TemporaryDirectory() as name:
        for file, content in files.items():
            Path(name, file).write_bytes(content)
        return ship_directory(spark, Path(name))


def ship_directory(spark: SparkSession, directory: Path) -> str:
    """Send a directory to the executors, unless they have it. Return its name there.

    Spark unpacks it once per executor. Python workers on a machine share its pages in memory.
    """
    files = sorted(path for path in directory.rglob("*") if path.is_file() and not is_temporary(path))
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(directory)}\0".encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    key = spark.sparkContext.applicationId, digest.hexdigest()
    if key not in _shipped:
        name = f"dragoman-{key[1][:24]}"
        packed = Path(_packed_directories().name, f"{name}.tar")
        with tarfile.open(packed, "w", dereference=True) as archive:
            for path in files:
                archive.add(path, str(path.relative_to(directory)))
        spark.sparkContext.addArchive(f"{packed}#{name}")
        _shipped[key] = name
    return _shipped[key]


@cache
def _packed_directories() -> tempfile.TemporaryDirectory[str]:
    """Return the directory from which executors fetch files, also those that start later; it is removed at exit."""
    return tempfile.TemporaryDirectory(prefix="dragoman-spark-")


def shipped_path(name: str) -> Path:
    """Return where a shipped directory is on this executor."""
    from pyspark import SparkFiles

    path = Path(SparkFiles.get(name))
    if not path.is_dir():
        raise DragomanError(f"{path}: the files that were sent to this executor are missing; run the command again")
    return path


@cache
def shipped_model(name: str) -> Any:
    """Return a shipped model. A Python worker loads it once and keeps it."""
    from dragoman.models.loading import load

    return load(shipped_path(name))


@cache
def shipped_vocab(name: str) -> Vocab:
    """Return a shipped vocabulary. A Python worker reads it once and keeps it."""
    path = shipped_path(name)
    files = {file.name: file.read_bytes() for file in path.iterdir() if file.name not in (VOCAB_FILE, UNITS_FILE)}
    segmenter = load_segmenter((path / UNITS_FILE).read_text(encoding="utf-8"), files)
    return Vocab.read(path / VOCAB_FILE).with_segmenter(segmenter)
