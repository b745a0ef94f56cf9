"""Reading the lines of a text in batches, from standard input as soon as they arrive."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from dragoman.core.errors import DataError, error_at_line
from dragoman.data.formats import BOM, GZIP_MAGIC, display_name, read_text
from dragoman.data.line_pairs import field_for

READ_SIZE = 1 << 20  # bytes read from standard input at once, at most
MAX_BATCH_LINES = 256


class NumberedLine(NamedTuple):
    """A line of a text and its number, counted from 1."""

    number: int
    text: str


class ByteStream(Protocol):
    def read1(self, size: int, /) -> bytes:
        """Return the bytes that are available; wait only if there are none. Empty at the end."""
        ...


LineCheck = Callable[[str, str, int], object]  # (line, name of the text, number of the line); may raise DataError


def read_line_batches(
    path: str, field: str | None = None, check: LineCheck | None = None
) -> Iterator[list[NumberedLine]]:
    """Yield the lines of a file, or of standard input if `path` is `-`. An empty file has no lines.

    If the text, or a line according to `check`, is wrong, the lines before are yielded before the error is raised.
    """
    field = field_for(path, field)
    chunks: Iterable[list[bytes]]
    if path == "-":
        if sys.stdin is None:
            raise DataError("<stdin>: closed; give a file with --text, or text on standard input")
        chunks = split_stream(sys.stdin.buffer)  # type: ignore[arg-type]  # a BufferedReader, which has read1
    elif Path(path).is_file() and not Path(path).stat().st_size:
        chunks = []  # like empty standard input, and unlike a training text
    else:
        chunks = [read_text(path, field).removesuffix(b"\n").split(b"\n")]
    return _batches(chunks, display_name(path), check or (lambda *line: None))


def split_stream(stream: ByteStream) -> Iterator[list[bytes]]:
    """Yield complete lines, as many at a time as have arrived. The last may have no line break."""
    incomplete: list[bytes] = []  # chunks of a line whose end has not arrived
    while chunk := stream.read1(READ_SIZE):
        if b"\n" not in chunk:
            incomplete.append(chunk)
            continue
        *lines, rest = b"".join([*incomplete, chunk]).split(b"\n")
        incomplete = [rest] if rest else []
        yield lines
    if incomplete:
        yield [b"".join(incomplete)]


def _batches(chunks: Iterable[Sequence[bytes]], source: str, check: LineCheck) -> Iterator[list[NumberedLine]]:
    number = 0
    for lines in chunks:
        for first in range(0, len(lines), MAX_BATCH_LINES):
            batch: list[NumberedLine] = []
            try:
                for raw in lines[first : first + MAX_BATCH_LINES]:
                    number += 1
                    line = _decode(raw, source, number)
                    check(line, source, number)
                    batch.append(NumberedLine(number, line))
            except DataError:
                if batch:
                    yield batch
                raise
            yield batch


def _decode(raw: bytes, source: str, number: int) -> str:
    """Decode a line, without the CR of a line break CR LF."""
    if number == 1:
        raw = raw.removeprefix(BOM)
        if raw.startswith(GZIP_MAGIC):
            raise DataError(f"{source}: this is gzip; pipe it through zcat")
    if b"\0" in raw:
        problem = f"NUL byte at column {raw.index(0) + 1}; this is not a text file, or it is UTF-16"
        raise error_at_line(source, number, problem)
    try:
        return raw.decode().removesuffix("\r")
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 (byte 0x{raw[error.start]:02x} at column {error.start + 1})"
        raise error_at_line(
            source, number, f"{problem}; convert it, for example with iconv -f LATIN1 -t UTF-8"
        ) from None
