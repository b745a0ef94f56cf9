"""Files written whole or not at all, and arrays that are mapped rather than read."""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray

from dragoman.core.errors import DataError, DragomanError

CONFIG_FILE, VOCAB_FILE, ARRAYS_FILE = "config.yaml", "vocab.tsv", "model.safetensors"  # the files of a model directory
SOURCE_VOCAB_FILE, SOURCE_PREFIX, TARGET_PREFIX = (
    "source-vocab.tsv",
    "source-",
    "target-",
)  # a translator's; prefixes of files
CARD_FILE = "README.md"  # for people, in every model directory
CARD_MARKER = "<!-- Written by dragoman, which may write it anew; without this line it is yours. -->"
SENTENCEPIECE_FILE = "sentencepiece.model"  # SentencePiece's
TWO_WAY_KIND, FORWARD, BACKWARD = "two-way", "forward", "backward"  # two translators trained together, and their places
CHECKPOINT_FILE, METRICS_FILE = "training.safetensors", "metrics.jsonl"  # and those that training leaves there
REPORT_FILE = "report.html"  # what a demo or a ladder found, as a page


class DirectoryKind(NamedTuple):
    """What a directory of some kind holds, and nothing else: so much may be replaced without losing anything else."""

    description: str
    marker_file: str  # the file by which it is known
    files: frozenset[str]


LEXICON_FILE = "lexicon.tsv"  # an aligner's, or a translator's that has one, for people to read
TRANSLATOR_FILES = (
    SOURCE_VOCAB_FILE,
    SOURCE_PREFIX + SENTENCEPIECE_FILE,
    TARGET_PREFIX + SENTENCEPIECE_FILE,
    LEXICON_FILE,
)
MODEL_DIRECTORY = DirectoryKind(
    "a model",
    CONFIG_FILE,
    frozenset((CONFIG_FILE, VOCAB_FILE, ARRAYS_FILE, CARD_FILE, CHECKPOINT_FILE, METRICS_FILE, *TRANSLATOR_FILES)),
)
ALIGNER_KIND = "aligner"  # its name in config.yaml
ALIGNER_DIRECTORY = DirectoryKind(
    "an aligner",
    CONFIG_FILE,
    frozenset((CONFIG_FILE, VOCAB_FILE, SOURCE_VOCAB_FILE, ARRAYS_FILE, LEXICON_FILE, CARD_FILE)),
)

# The names that safetensors gives to NumPy's types.
DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}
DTYPE_NAMES = {np.dtype(code): name for name, code in DTYPES.items()}
# What comes of reading a file that is not what it should be.
READ_ERRORS = (
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    OSError,
    RecursionError,
)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary name to write to; it becomes `path` only when all went well."""
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


@contextmanager
def atomic_directory(path: Path, *, replace: bool = False, kind: DirectoryKind = MODEL_DIRECTORY) -> Iterator[Path]:
    """A temporary directory that becomes `path` only when all went well."""
    path = _without_parent_references(path)
    with _writing_errors(path):
        check_output_directory(path, replace=replace, kind=kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            yield temporary
            temporary.chmod(0o777 & ~_umask())
            for file in temporary.rglob("*"):
                _sync(file)
            _move_into_place(temporary, path)
            _sync(path.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _writing_errors(path: Path) -> Iterator[None]:
    """What may fail while something is written, said in one line."""
    try:
        yield
    except OSError as error:
        why = error.strerror or f"{error}; is the disk full?"  # NumPy does not say why
        raise DragomanError(f"{path}: could not be written ({why}); nothing was changed") from error


def _without_parent_references(path: Path) -> Path:
    """The path without `..`: what `nowhere/../there` names is there before `nowhere` is made."""
    return path.parent.resolve() / path.name if ".." in path.parts else path


def check_output_directory(path: Path, *, replace: bool, kind: DirectoryKind = MODEL_DIRECTORY) -> None:
    """Refuse to write over what is there, unless it is of the kind that may be replaced."""
    path = _without_parent_references(path)
    if path.resolve() == Path.cwd():
        raise DataError(f"{path}: is the directory you are in, which cannot be replaced; name a new one inside it")
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not path.is_dir() or not _contains_only(path, kind):
        raise DataError(f"{path}: exists and is not (only) {kind.description} directory; choose another name")
    if not replace:
        raise DataError(f"{path}: holds {kind.description} already; choose another name, or --force to replace it")


def _contains_only(path: Path, kind: DirectoryKind) -> bool:
    files = (file for file in path.rglob("*") if not file.is_dir())
    known = all((file.name in kind.files and not is_user_written(file)) or _is_temporary(file, kind) for file in files)
    return (path / kind.marker_file).is_file() and known


def is_user_written(file: Path) -> bool:
    """Whether this is a card that somebody has written, or made their own."""
    return (
        file.name == CARD_FILE
        and file.is_file()
        and CARD_MARKER not in file.read_text(encoding="utf-8", errors="replace")
    )


def _is_temporary(file: Path, kind: DirectoryKind) -> bool:
    """Whether this is what a kill left of a file that was being written."""
    return any(file.name.startswith(f".{name}.") for name in kind.files)


def remove_temporary_files(path: Path, kind: DirectoryKind = MODEL_DIRECTORY) -> None:
    """Remove what kills have left of files that were being written."""
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
        if path.exists():  # if not even the old one could be put back, it stays aside
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


def to_yaml(config: Mapping[str, Any]) -> str:
    """What config.yaml says, as it says it."""
    return str(yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True))


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays in the safetensors format, one after the other, without a copy in memory.

    Those of the widest numbers come first, so that mapped ones are aligned. Notes are what the format calls metadata.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    position = 0
    ordered = dict(sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize))
    for name, array in ordered.items():
        header[name] = {
            "dtype": DTYPE_NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)))
        file.write(encoded)
        for array in ordered.values():
            np.ascontiguousarray(array).tofile(file)


def map_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file, mapped into memory: read when touched."""
    return map_arrays_with_metadata(path)[0]


def map_arrays_with_metadata(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays of a safetensors file, mapped into memory, and its notes."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
        notes = header.pop("__metadata__", {})
        data = np.memmap(path, np.uint8, "r")
        return {name: _view(data, 8 + length, entry) for name, entry in header.items()}, notes
    except FileNotFoundError:
        raise DataError(f"{path}: missing; this model directory is broken, train or copy it again") from None
    except READ_ERRORS:
        raise DataError(f"{path}: damaged; this model directory is broken, train or copy it again") from None


def _view(data: NDArray[np.uint8], start: int, entry: dict[str, Any]) -> NDArray[Any]:
    first, last = entry["data_offsets"]
    if not 0 <= first <= last <= len(data) - start:
        raise ValueError("file too short")
    return data[start + first : start + last].view(DTYPES[entry["dtype"]]).reshape(entry["shape"]).view(np.ndarray)
