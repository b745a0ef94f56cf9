"""Model directories: their files, which of them may be replaced, and arrays in safetensors files.

The safetensors library writes the arrays. They are read by `map_arrays`, which maps the file into memory: the library
copies each array that it reads, and n-gram tables of several gigabytes must open at once and be shared by processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray
from safetensors.numpy import save_file

from dragoman.core.defaults import LETTERS_FILE, SENTENCEPIECE_FILE
from dragoman.core.errors import DataError, DragomanError
from dragoman.io.files import atomic_directory, directory_lock, is_temporary, real_path

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
def new_directory(path: Path, *, replace: bool = False, kind: DirectoryKind = MODEL_DIRECTORY) -> Iterator[Path]:
    """Yield a temporary directory to fill. It becomes `path` at the end, if there was no error.

    With `replace`, a directory of the same kind is replaced.
    """
    with directory_lock(path):
        check_output_directory(path, replace=replace, kind=kind)
        with atomic_directory(path) as temporary:
            yield temporary


@contextmanager
def saving_run(path: Path) -> Iterator[None]:
    """If a file of a training run cannot be written, say what to do."""
    try:
        yield
    except (DragomanError, OSError) as error:
        why = str(error) if isinstance(error, DragomanError) else f"{path}: {error.strerror}"
        remedy = "the last checkpoint is intact: free some space and run the same command again"
        if not (path / CHECKPOINT_FILE).exists():
            remedy = "the directory or its files were removed during training: start again"
        raise DragomanError(f"{why}; {remedy}") from error


def check_output_directory(path: Path, *, replace: bool, kind: DirectoryKind = MODEL_DIRECTORY) -> None:
    """Raise an error if the path exists, unless it is a directory of this kind and `replace` is set."""
    target = real_path(path)
    if target == Path.cwd():
        raise DataError(f"{path}: is the current directory, which cannot be replaced; name a new one inside it")
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    written = (target / kind.marker_file).is_file() and all(_is_written(file, kind) for file in target.rglob("*"))
    if not written:
        problem = "contains other files" if target.is_dir() else "is a file"
        raise DataError(f"{path}: {problem}, so it is not replaced by {kind.description}; choose another name")
    if not replace:
        raise DataError(f"{path}: already contains {kind.description}; choose another directory or pass --force")


def _is_written(file: Path, kind: DirectoryKind) -> bool:
    """Return whether a file was written by dragoman, so that it may be replaced."""
    if file.is_dir():
        return not file.is_symlink()
    return is_temporary(file) or (file.name in kind.files and not is_user_written(file))


def check_training_directory(path: Path, *, replace: bool) -> None:
    """Raise an error if a model cannot be written to a directory, unless a training run in it can be resumed."""
    if not (path / CHECKPOINT_FILE).is_file():
        check_output_directory(path, replace=replace)


def is_user_written(file: Path) -> bool:
    """Return whether this is a model card that the user has written or taken over."""
    is_card = file.name == CARD_FILE and file.is_file()
    return is_card and CARD_MARKER not in file.read_text(encoding="utf-8", errors="replace")


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
