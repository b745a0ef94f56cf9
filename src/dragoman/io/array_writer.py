"""Writing a safetensors file a part at a time, for arrays larger than memory.

The file is the one that `dragoman.io.storage.write_arrays` writes, to the byte.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from dragoman.data.array_files import write_all
from dragoman.io.digests import DIGEST

BLOCK_BYTES = 1 << 24  # read at a time for the digest
EMPTY_DIGEST = "0" * 64


class ArraySpec(NamedTuple):
    """The type and the shape of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class ArrayWriter:
    """A safetensors file whose arrays are written in any order. `finish` adds the digest.

    >>> import tempfile
    >>> from dragoman.io.storage import map_arrays
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "arrays"
    ...     with ArrayWriter(path, {"a": ArraySpec(np.dtype(np.int32), (3,))}) as writer:
    ...         writer.write("a", 1, np.array([5, 6]))
    ...         writer.write("a", 0, np.array([4]))
    ...         writer.finish()
    ...     map_arrays(path)["a"].tolist()
    [4, 5, 6]
    """

    def __init__(self, path: Path, specs: Mapping[str, ArraySpec]):
        self.specs = dict(specs)
        self._offsets = dict[str, int]()
        self._first_byte = len(self._header(EMPTY_DIGEST))
        self._file = path.open("w+b", buffering=0)
        self._file.truncate(self._first_byte + sum(spec.nbytes for spec in self.specs.values()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def write(self, name: str, start: int, values: NDArray[Any]) -> None:
        """Write values of a one-dimensional array from position `start` on, converted to its type."""
        dtype, shape = self.specs[name]
        if not 0 <= start <= start + len(values) <= shape[0]:
            raise ValueError(f"{name}: values {start} to {start + len(values)} of {shape[0]}")
        position = self._first_byte + self._offsets[name] + start * dtype.itemsize
        write_all(self._file.fileno(), np.ascontiguousarray(values, dtype), position)

    def finish(self, report: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Read the arrays to compute their digest, and write the header. `report` is called with bytes."""
        digest = hashlib.sha256(json.dumps([]).encode())
        done, total = 0, sum(spec.nbytes for spec in self.specs.values())
        buffer = memoryview(bytearray(BLOCK_BYTES))
        for name, (dtype, shape) in sorted(self.specs.items()):
            digest.update(json.dumps([name, dtype.str, shape]).encode())
            self._file.seek(self._first_byte + self._offsets[name])
            left = self.specs[name].nbytes
            while left:
                size = self._file.readinto(buffer[: min(left, BLOCK_BYTES)])
                if not size:
                    raise OSError(None, "the file is shorter than what was written to it")
                digest.update(buffer[:size])
                left, done = left - size, done + size
                report(done, total)
        write_all(self._file.fileno(), np.frombuffer(self._header(digest.hexdigest()), np.uint8), 0)

    def _header(self, digest: str) -> bytes:
        """Return the header, and set the offsets of the arrays. The library decides about their order."""
        empty = save({name: np.zeros(0, spec.dtype) for name, spec in self.specs.items()}, {DIGEST: digest})
        header = json.loads(empty[8:])
        end = 0
        for name, entry in header.items():
            if name in self.specs:
                self._offsets[name], start = end, end
                end += self.specs[name].nbytes
                entry |= {"shape": list(self.specs[name].shape), "data_offsets": [start, end]}
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text
