"""Reading a long text in blocks of lines, from any place, without holding all of it in memory.

A block has a fixed number of complete lines; only the last of a text has fewer. Blocks of the same text are the same for
every process that reads it, from whatever place.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np

from dragoman.core.errors import DataError, file_errors
from dragoman.data.formats import (
    BOM,
    GZIP_MAGIC,
    SUBTITLES,
    display_name,
    field_for,
    jsonl_value,
    read_start,
    tsv_cell,
    tsv_column,
    type_by_name,
)
from dragoman.data.scanner import NEWLINE

CHUNK_BYTES = 1 << 22  # read at a time
MAX_HEADER_BYTES = 1 << 20  # of the first line of a table


def read_chunks(path: str, offset: int = 0, size: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file from an offset, all or `size`. The offset of a .gz file counts unpacked bytes."""
    with file_errors(Path(path)), _open(path) as file:
        file.seek(offset)
        while size is None or size > 0:
            chunk = file.read(CHUNK_BYTES if size is None else min(CHUNK_BYTES, size))
            if not chunk:
                return
            size = None if size is None else size - len(chunk)
            yield chunk


def _open(path: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if is_packed(path) else Path(path).open("rb")


def is_packed(path: str) -> bool:
    """Return whether a file is read as gzip data."""
    return Path(path).suffix == ".gz"


def iter_blocks(chunks: Iterable[bytes], block_lines: int) -> Iterator[bytes]:
    """Yield blocks of `block_lines` lines with their line breaks. The last may have fewer, and no line break at its end.

    >>> list(iter_blocks([b"a\\nb", b"\\nc\\nd"], 2))
    [b'a\\nb\\n', b'c\\nd']
    """
    parts, missing = list[bytes](), block_lines  # of the block that is read, and the lines that it still needs
    for chunk in chunks:
        ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == NEWLINE) + 1
        start = 0
        for end in ends[missing - 1 :: block_lines].tolist():
            yield b"".join([*parts, chunk[start:end]])
            parts, start = [], end
        missing = block_lines - (len(ends) - missing) % block_lines if len(ends) >= missing else missing - len(ends)
        if start < len(chunk):
            parts.append(chunk[start:])
    if parts:
        yield b"".join(parts)


def count_lines(block: bytes) -> int:
    """Return the number of lines of a text, the last of which may have no line break.

    >>> [count_lines(text) for text in (b"", b"\\n", b"a", b"a\\nb", b"a\\nb\\n")]
    [0, 1, 1, 2, 2]
    """
    return block.count(b"\n") + (not block.endswith(b"\n") and bool(block))


def split_block(block: bytes) -> list[bytes]:
    """Return the lines of a block, without their line breaks.

    >>> split_block(b"a\\n\\n"), split_block(b"a")
    ([b'a', b''], [b'a'])
    """
    return block.removesuffix(b"\n").split(b"\n")


@dataclass(frozen=True)
class LineText:
    """A file whose lines are sentences, or have them in a column or under a key.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "pairs.tsv"
    ...     _ = path.write_text("de\\ten\\nja\\tyes\\nnein\\tno\\n")
    ...     LineText.of(str(path), "en").select(b"nein\\tno\\n", first_line=2)
    b'no\\n'
    """

    path: str
    kind: str  # "plain", "tsv" or "jsonl"
    field: str  # the column or key; "" for plain text
    column: int = 0  # the index of a column
    headers: int = 0  # lines before the first sentence
    header_bytes: int = 0  # of these lines

    @classmethod
    def of(cls, path: str, field: str | None = None) -> LineText:
        """Find out how the lines of a file are read; `field` is that of `dragoman.data.formats.read_text`."""
        name, file_type = display_name(path), type_by_name(path)
        if path == "-" or not Path(path).is_file():
            problem = "no such file" if path != "-" and not Path(path).exists() else "not a file"
            raise DataError(f"{name}: {problem}; a text that is divided is read from a file, several times")
        if file_type in SUBTITLES:
            raise DataError(f"{name}: subtitles are not divided; give a text with one sentence per line")
        field = field_for(path, field)
        if file_type == "jsonl":
            return cls(path, "jsonl", field or "text")
        if file_type != "tsv" and field is None:
            return cls(path, "plain", "")
        first_line = read_start(path, MAX_HEADER_BYTES).partition(b"\n")[0]
        column, headers = tsv_column(first_line.removeprefix(BOM), field or "1", name)
        return cls(path, "tsv", field or "1", column, headers, (len(first_line) + 1) * headers)

    def check_start(self) -> None:
        """Raise an error if the file is gzip data under another name."""
        if read_start(self.path, len(GZIP_MAGIC)) == GZIP_MAGIC:
            raise DataError(f"{self.path}: this is gzip data; give it a name that ends in .gz")

    def select(self, block: bytes, first_line: int) -> bytes:
        """Return the sentences of a block, one per line; its first one is sentence `first_line` of the text."""
        if first_line == 1 and not self.headers:
            block = block.removeprefix(BOM)
        if self.kind == "plain":
            return block
        name, lines = display_name(self.path), split_block(block)
        numbered = enumerate(lines, first_line + self.headers)
        if self.kind == "jsonl":
            values = (jsonl_value(line, self.field, name, number) for number, line in numbered)
        else:
            values = (tsv_cell(line, self.column, name, number) for number, line in numbered)
        return b"".join(value + b"\n" for value in values)

    def read_blocks(self, block_lines: int, offset: int, size: int, first_line: int) -> Iterator[bytes]:
        """Yield the sentences of a part of the file, one per line, in blocks."""
        for block in iter_blocks(read_chunks(self.path, offset, size), block_lines):
            yield self.select(block, first_line)
            first_line += count_lines(block)
