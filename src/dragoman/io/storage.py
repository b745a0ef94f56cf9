"""Model directories: atomic writes of files and directories, and arrays in safetensors files.

The safetensors library writes the arrays. They are read by `map_arrays`, which maps the file into memory: the library
copies each array that it reads, and n-gram tables of several gigabytes must open at once and be shared by processes.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from dragoman.core.defaults import LETTERS_FILE, SENTENCEPIECE_FILE
from dragoman.core.errors import DataError, DragomanError

CONFIG_FILE, VOCAB_FILE, ARRAYS_FILE = "config.yaml", "vocab.tsv", "model.safetensors"  # in each model directory
CARD_FILE = "README.md"
CARD_MARKER = "<!-- Written by dragoman, which may overwrite this file; remove this line to keep your own version. -->"
SOURCE_VOCAB_FILE = "source-vocab.tsv"  # of translators
SOURCE_PREFIX, TARGET_PREFIX = "source-", "target-"  # of the names of a translator's files
LEXICON_FILE = "lexicon.tsv"  # a readable lexicon, of an aligner or of a translator that has one
CHECKPOINT_FILE, METRICS_FILE, PACE_FILE = "training.safetensors", "metrics.jsonl", "pace.jsonl"  # written by training
REPORT_FILE = "report.html"  # of a demo or a ladder
TWO_WAY_KIND, FORWARD, BACKWARD = "two-way", "forward", "backward"  # two translators trained together
EXAMPLES_FILE = "examples.json"  # inputs that show what a translator is for
ALIGNER_KIND = "aligner"


class DirectoryKind(NamedTuple):
    """The files of one kind of directory. A directory with other files in it is never replaced."""

    description: str
    marker_file: str  # each directory of this kind has it
    files: frozenset[str]


ALIGNER_FILES = {CONFIG_FILE, VOCAB_FILE, SOURCE_VOCAB_FILE, ARRAYS_FILE, LEXICON_FILE, CARD_FILE}
TOKENIZER_FILES = {
    prefix + name for prefix in (SOURCE_PREFIX, TARGET_PREFIX, "") for name in (SENTENCEPIECE_FILE, LETTERS_FILE)
}
MODEL_FILES = {*ALIGNER_FILES, *TOKENIZER_FILES, CHECKPOINT_FILE, METRICS_FILE, PACE_FILE, EXAMPLES_FILE}
MODEL_DIRECTORY = DirectoryKind("a model", CONFIG_FILE, frozenset(MODEL_FILES))
ALIGNER_DIRECTORY = DirectoryKind("an aligner", CONFIG_FILE, frozenset(ALIGNER_FILES))

DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}  # safetensors to NumPy
# Exceptions raised by reading damaged files.
READ_ERRORS = (ValueError, LookupError, TypeError, AttributeError, OverflowError, MemoryError, OSError, RecursionError)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file to write to. It replaces `path` at the end, if there was no error."""
    path = _without_parent_references(path)
    with _writing_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            temporary.chmod(0o666 & ~_umask())
            _sync(temporary)
            temporary.replace(path)
            _sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a file of text, completely or not at all."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def atomic_directory(path: Path, *, replace: bool = False, kind: DirectoryKind = MODEL_DIRECTORY) -> Iterator[Path]:
    """Yield a temporary directory to fill. It becomes `path` at the end, if there was no error."""
    path = _without_parent_references(path)
    with _writing_errors(path):
        check_output_directory(path, replace=replace, kind=kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            yield temporary
            temporary.chmod(0o777 & ~_umask())
            for file in temporary.rglob("*"):
                if file.is_file():
                    file.chmod(0o666 & ~_umask())  # safetensors writes files that only their owner can read
                _sync(file)
            _move_into_place(temporary, path)
            _sync(path.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _writing_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, SafetensorError) as error:
        # NumPy gives no reason for an OSError
        reason = error.strerror or f"{error}; is the disk full?" if isinstance(error, OSError) else error
        raise DragomanError(f"{path}: could not be written ({reason}); nothing was changed") from error


@contextmanager
def saving_run(path: Path) -> Iterator[None]:
    """If a file of a training run cannot be written, say what to do."""
    try:
        yield
    except (DragomanError, OSError) as error:
        why = str(error) if isinstance(error, DragomanError) else f"{path}: {error.strerror}"
        remedy = "the last checkpoint is intact: free some space and run the same command again"
        raise DragomanError(f"{why}; {remedy}") from error


def _without_parent_references(path: Path) -> Path:
    """Return the path without `..`, so that `missing/../here` is `here` although `missing` does not exist."""
    return path.parent.resolve() / path.name if ".." in path.parts else path


def check_output_directory(path: Path, *, replace: bool, kind: DirectoryKind = MODEL_DIRECTORY) -> None:
    """Raise an error if the path exists, unless it is a directory of this kind and `replace` is set."""
    path = _without_parent_references(path)
    if path.resolve() == Path.cwd():
        raise DataError(f"{path}: is the current directory, which cannot be replaced; name a new one inside it")
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    written = (path / kind.marker_file).is_file() and all(
        file.is_dir() or _is_temporary(file, kind) or (file.name in kind.files and not is_user_written(file))
        for file in path.rglob("*")
    )
    if not written:
        problem = "contains other files" if path.is_dir() else "is a file"
        raise DataError(f"{path}: {problem}, so it is not replaced by {kind.description}; choose another name")
    if not replace:
        raise DataError(f"{path}: already contains {kind.description}; choose another directory or pass --force")


def check_training_directory(path: Path, *, replace: bool) -> None:
    """Raise an error if a model cannot be written to a directory, unless a training run in it can be resumed."""
    if not (path / CHECKPOINT_FILE).is_file():
        check_output_directory(path, replace=replace)


def is_user_written(file: Path) -> bool:
    """Return whether this is a model card that the user has written or taken over."""
    is_card = file.name == CARD_FILE and file.is_file()
    return is_card and CARD_MARKER not in file.read_text(encoding="utf-8", errors="replace")


def _is_temporary(file: Path, kind: DirectoryKind) -> bool:
    """Return whether this file was left behind by a process that was killed while writing."""
    return any(file.name.startswith(f".{name}.") for name in kind.files)


def remove_temporary_files(path: Path, kind: DirectoryKind = MODEL_DIRECTORY) -> None:
    """Remove files that were left behind by processes that were killed while writing."""
    for file in path.iterdir():
        if file.is_file() and _is_temporary(file, kind):
            file.unlink(missing_ok=True)


def _move_into_place(temporary: Path, path: Path) -> None:
    if not path.exists():
        temporary.replace(path)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
    try:
        path.replace(aside / path.name)
        try:
            temporary.replace(path)
        except BaseException:
            (aside / path.name).replace(path)
            raise
    finally:
        if path.exists():  # otherwise the old directory could not be moved back, and is kept here
            shutil.rmtree(aside, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def to_yaml(config: Mapping[str, object]) -> str:
    """Return a configuration as the text of config.yaml."""
    return str(yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True))


def write_arrays(
    path: Path, arrays: Mapping[str, NDArray[np.generic]], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays to a safetensors file. The library orders them by item size, so that mapped arrays are aligned."""
    contiguous = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    save_file(contiguous, path, metadata=dict(metadata) if metadata else None)


def map_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a safetensors file, mapped into memory: they are read when they are used."""
    return map_arrays_with_metadata(path)[0]


def map_arrays_with_metadata(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Return the arrays of a safetensors file, mapped into memory, and its metadata."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        metadata, data, arrays = header.pop("__metadata__", {}), np.memmap(path, np.uint8, "r"), {}
        for name, entry in header.items():
            first, last = (8 + length + offset for offset in entry["data_offsets"])
            if not 8 + length <= first <= last <= len(data):
                raise ValueError("file too short")
            arrays[name] = data[first:last].view(np.ndarray).view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
        return arrays, metadata
    except FileNotFoundError:
        raise DataError(f"{path}: missing; this model directory is broken, train or copy it again") from None
    except READ_ERRORS:
        raise DataError(f"{path}: damaged; this model directory is broken, train or copy it again") from None
