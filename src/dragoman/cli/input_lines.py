"""Lines of text as they come: what has arrived is handed on at once, many lines together if there are many."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from dragoman.cli import options
from dragoman.core.errors import DataError, error_at_line

READ_SIZE = 1 << 20  # read from standard input, at most
MAX_BATCH_LINES = 256  # handed on together, at most


class InputLine(NamedTuple):
    """A line and its number, from 1."""

    number: int
    text: str


class ByteStream(Protocol):
    """Bytes that come in time."""

    def read1(self, size: int, /) -> bytes:
        """What there is, waiting only if there is nothing; empty at the end."""
        ...


def read_line_batches(
    text: str, field: str | None = None, check: Callable[[str, str, int], object] | None = None
) -> Iterator[list[InputLine]]:
    """The lines of a file, or, if that is `-`, of standard input as they come. An empty file has none.

    Each is shown to `check` with the text's name and its number. If it, or the text itself, is refused, the lines
    before it have been handed on by then.
    """
    from dragoman.data.formats import display_name, read_text

    named = options.field_for(text, field)
    if text == "-":
        arrived = _standard_input()
    elif Path(text).is_file() and not Path(text).stat().st_size:
        arrived = iter([])  # as empty standard input, and unlike a text to learn from
    else:
        arrived = iter([_split(read_text(text, named))])
    return _batches(arrived, display_name(text), check or (lambda *line: None))


def _split(text: bytes) -> list[bytes]:
    return text.removesuffix(b"\n").split(b"\n")


def _standard_input() -> Iterator[list[bytes]]:
    if sys.stdin is None:
        raise DataError("<stdin>: closed; give a file with --text, or text on standard input")
    return split_stream(sys.stdin.buffer)  # type: ignore[arg-type]  # a BufferedReader, which has read1


def split_stream(stream: ByteStream) -> Iterator[list[bytes]]:
    """Whole lines, as many at a time as have arrived. The last may lack its line break."""
    begun: list[bytes] = []  # of a line whose end has not come yet
    while chunk := stream.read1(READ_SIZE):
        if b"\n" not in chunk:
            begun.append(chunk)
            continue
        *lines, rest = b"".join([*begun, chunk]).split(b"\n")
        begun = [rest] if rest else []
        yield lines
    if begun:
        yield [b"".join(begun)]


def _batches(
    arrived: Iterable[Sequence[bytes]], source: str, check: Callable[[str, str, int], object]
) -> Iterator[list[InputLine]]:
    number = 0
    for lines in arrived:
        for first in range(0, len(lines), MAX_BATCH_LINES):
            read: list[InputLine] = []
            try:
                for raw in lines[first : first + MAX_BATCH_LINES]:
                    number += 1
                    line = _decoded(raw, source, number)
                    check(line, source, number)
                    read.append(InputLine(number, line))
            except DataError:
                if read:
                    yield read
                raise
            yield read


def _decoded(raw: bytes, source: str, number: int) -> str:
    """A line as text, without the CR of a line break CR LF."""
    from dragoman.data.formats import BOM, GZIP_MAGIC

    if number == 1:
        raw = raw.removeprefix(BOM)
        if raw.startswith(GZIP_MAGIC):
            raise DataError(f"{source}: this is gzip; pipe it through zcat")
    if b"\0" in raw:
        column = raw.index(b"\0") + 1
        raise error_at_line(source, number, f"NUL byte at column {column}; this is not a text file, or it is UTF-16")
    try:
        return raw.decode().removesuffix("\r")
    except UnicodeDecodeError as error:
        wrong = f"not UTF-8 (byte 0x{raw[error.start]:02x} at column {error.start + 1})"
        raise error_at_line(source, number, f"{wrong}; convert it, for example with iconv -f LATIN1 -t UTF-8") from None
