"""Model directories: their files, which of them may be replaced, and arrays in safetensors files.

The safetensors library writes the arrays. They are read by `map_arrays`, which maps the file into memory: the library
copies each array that it reads, and n-gram tables of several gigabytes must open at once and be shared by processes.

Each file that is replaced on its own carries its SHA-256 digest; see `dragoman.io.digests` for the other files.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dragoman.core.defaults import LETTERS_FILE, SENTENCEPIECE_FILE
from dragoman.core.errors import DataError, DragomanError
from dragoman.io import digests
from dragoman.io.digests import DIGEST, FILES, MAX_COPIED_SIZE, arrays_digest, check_files, file_digest
from dragoman.io.files import atomic_directory, directory_lock, is_temporary, real_path

CONFIG_FILE, VOCAB_FILE, ARRAYS_FILE = "config.yaml", "vocab.tsv", "model.safetensors"  # in each model directory
SHORTLIST_FILE = "shortlist.safetensors"  # of a translator that searches with one,
SHORTLIST = "shortlist"  # and the key in its config.yaml
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
TRAINING_FILES = {CHECKPOINT_FILE, METRICS_FILE, PACE_FILE}
MODEL_FILES = {*ALIGNER_FILES, *TOKENIZER_FILES, *TRAINING_FILES, SHORTLIST_FILE, EXAMPLES_FILE}
# Files of a model that change none of its results.
UNUSED_FILES = {CARD_FILE, CHECKPOINT_FILE, EXAMPLES_FILE, METRICS_FILE, PACE_FILE}
DIGESTED_FILES = {VOCAB_FILE, SOURCE_VOCAB_FILE, LEXICON_FILE, *TOKENIZER_FILES}  # in config.yaml
MODEL_DIRECTORY = DirectoryKind("a model", CONFIG_FILE, frozenset(MODEL_FILES))
ALIGNER_DIRECTORY = DirectoryKind("an aligner", CONFIG_FILE, frozenset(ALIGNER_FILES))

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "I64": "<i8",
    "I32": "<i4",
    "I8": "|i1",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}  # safetensors to NumPy
MAX_HEADER_SIZE = 8 << 20  # of a safetensors file; headers have some hundred bytes per array
BROKEN_DIRECTORY = "this model directory is broken, train or copy it again"
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


def model_megabytes(path: Path) -> float:
    """Return the size of a model on disk, without the files that are only needed to resume training."""
    files = (CONFIG_FILE, VOCAB_FILE, ARRAYS_FILE)
    return sum(file.stat().st_size for file in path.rglob("*") if file.name in files) / 1e6


def check_training_directory(path: Path, *, replace: bool) -> None:
    """Raise an error if a model cannot be written to a directory, unless a training run in it can be resumed."""
    if not (path / CHECKPOINT_FILE).is_file():
        check_output_directory(path, replace=replace)


def is_user_written(file: Path) -> bool:
    """Return whether this is a model card that the user has written or taken over."""
    is_card = file.name == CARD_FILE and file.is_file()
    return is_card and CARD_MARKER not in file.read_text(encoding="utf-8", errors="replace")


def config_text(directory: Path, config: Mapping[str, object]) -> str:
    """Return the contents of config.yaml, with the digests of the files that the directory has."""
    return digests.config_text(config, directory, DIGESTED_FILES)


def read_config(directory: Path) -> dict[str, Any]:
    """Return the contents of config.yaml; raise an error if it is damaged."""
    return digests.read_config(directory / CONFIG_FILE, "train the model or copy its directory again")


def check_digests(directory: Path, config: Mapping[str, object], *, check_all: bool = False) -> None:
    """Raise an error if a file that config.yaml lists differs from its digest.

    With `check_all`, files of any size are checked, and those that are only for people to read.
    """
    listed = config.get(FILES)
    if isinstance(listed, dict) and not check_all:
        listed = {name: digest for name, digest in listed.items() if name != LEXICON_FILE}
    if listed is not None:
        check_files(directory, listed, BROKEN_DIRECTORY, max_size=None if check_all else MAX_COPIED_SIZE)


def write_arrays(
    path: Path, arrays: Mapping[str, NDArray[np.generic]], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays to a safetensors file, with their digest and other metadata.

    The library orders arrays by item size, so that mapped arrays are aligned. It writes metadata in any order, so only
    without further metadata the same arrays give the same file.
    """
    contiguous = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    save_file(contiguous, path, metadata={**(metadata or {}), DIGEST: arrays_digest(contiguous, metadata or {})})


def map_arrays(path: Path, *, check_digest: bool = False) -> dict[str, NDArray[Any]]:
    """Return the arrays of a safetensors file. See `map_arrays_with_metadata`."""
    return map_arrays_with_metadata(path, check_digest=check_digest)[0]


def map_arrays_with_metadata(
    path: Path, *, check_digest: bool = False
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Return the arrays of a safetensors file, and its metadata.

    A file of at most `MAX_COPIED_SIZE` bytes is read at once, and its digest is checked if it has one. What happens to
    the file afterwards changes nothing. A larger file is mapped into memory: arrays are read when they are used. If the
    file is truncated in place before that, the system ends the process (SIGBUS). Nothing in dragoman does this: files
    are replaced, and a mapping keeps the replaced file. `FileStamp` notices it before use, but not during use.

    Args:
        path: The file.
        check_digest: Check the digest of a large file as well, which reads all of it.
    """
    try:
        data = _read_or_map(path)
        length = int.from_bytes(data[:8].tobytes(), "little")
        if len(data) < 8 or not length <= min(len(data) - 8, MAX_HEADER_SIZE):
            raise ValueError("file too short")
        header = json.loads(data[8 : 8 + length].tobytes())
        metadata = header.pop("__metadata__", {})
        if not all(isinstance(value, str) for value in metadata.values()):
            raise ValueError("metadata that are not text")
        arrays = {name: _array(data[8 + length :], **entry) for name, entry in header.items()}
        checked = check_digest or len(data) <= MAX_COPIED_SIZE
        intact = not checked or metadata.get(DIGEST) in (None, arrays_digest(arrays, metadata))
    except FileNotFoundError:
        raise DataError(f"{path}: missing; {BROKEN_DIRECTORY}") from None
    except READ_ERRORS:
        raise DataError(f"{path}: damaged; {BROKEN_DIRECTORY}") from None
    if not intact:
        raise DataError(f"{path}: damaged (its contents differ from its digest); {BROKEN_DIRECTORY}")
    return arrays, metadata


def read_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of a safetensors file, without reading its arrays."""
    try:
        with safe_open(path, "numpy") as file:
            return dict(file.metadata() or {})
    except (OSError, SafetensorError):
        raise DataError(f"{path}: damaged; {BROKEN_DIRECTORY}") from None


def model_digest(directory: Path) -> str:
    """Return a digest of the files of a model directory that its results depend on."""
    if not directory.is_dir():
        raise DataError(f"{directory}: no such directory; pass a directory written by dragoman train")
    digest = hashlib.sha256()
    for file in sorted(directory.rglob("*")):
        if file.is_file() and file.name not in UNUSED_FILES and not file.name.startswith("."):
            recorded = read_metadata(file).get(DIGEST) if file.suffix == ".safetensors" else None
            digest.update(f"{file.relative_to(directory).as_posix()} {recorded or file_digest(file)}\n".encode())
    return digest.hexdigest()


def _read_or_map(path: Path) -> NDArray[np.uint8]:
    """Return the bytes of a file: a small one is read, a large one mapped."""
    if path.exists() and not path.is_file():  # reading a pipe would not end
        raise ValueError("not a file")
    if path.stat().st_size > MAX_COPIED_SIZE:
        return np.memmap(path, np.uint8, "r").view(np.ndarray)
    data = np.fromfile(path, np.uint8)
    data.flags.writeable = False
    return data


def _array(data: NDArray[np.uint8], dtype: str, shape: list[int], data_offsets: list[int]) -> NDArray[Any]:
    """Return one array of a safetensors file, whose header has these entries for it."""
    first, last = data_offsets
    numbers = [*shape, first, last]
    if not all(type(number) is int and number >= 0 for number in numbers) or not first <= last <= len(data):
        raise ValueError("an array outside the file")
    array = data[first:last].view(DTYPES[dtype])
    if math.prod(shape) != len(array) or (dtype == "BOOL" and (data[first:last] > 1).any()):
        raise ValueError("an array of another size")
    array = np.require(array, requirements="A").reshape(shape)
    array.flags.writeable = False
    return array


class FileStamp(NamedTuple):
    """What shows that a file is still the same, without reading it."""

    path: Path
    inode: int
    size: int
    modified: int  # nanoseconds

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        """Return the stamp of a file; its inode is 0 if there is no such file."""
        try:
            stat = path.stat()
        except OSError:
            return cls(path, 0, 0, 0)
        return cls(path, stat.st_ino, stat.st_size, stat.st_mtime_ns)

    def is_current(self) -> bool:
        """Return whether the file has not been replaced, truncated or changed since."""
        return FileStamp.of(self.path) == self
