"""The sections of an ARPA file, parsed into arrays, and error messages for wrong lines."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, error_at_line, file_errors
from dragoman.data.formats import BOM
from dragoman.ngram.arpa.lines import BAD_NUMBER, POSITIVE, WRONG_FIELDS, split_lines

BLOCK_BYTES = 1 << 22  # bytes read at a time
DATA, ENDING = b"data\\", b"end\\"
TRUNCATED = "the file is truncated; copy or write it again"


@dataclass(frozen=True)
class Chunk:
    """Complete lines of one section."""

    source: Path
    section: bytes  # the line that opened it, without its first backslash
    text: bytes
    line: int  # number of the first line

    def line_error(self, position: int, problem: str) -> DataError:
        """Return an error about the line at byte `position`."""
        first = self.text.rfind(b"\n", 0, position) + 1
        line = self.text[first:].partition(b"\n")[0]
        number = self.line + self.text.count(b"\n", 0, first)
        encoding_error = replace(self, text=line, line=number).encoding_error()
        return encoding_error or error_at_line(str(self.source), number, f"{problem}; fix or remove {_quote(line)}")

    def encoding_error(self) -> DataError | None:
        """Return an error if the text is not valid UTF-8 or has NUL bytes."""
        nul = self.text.find(b"\0")
        if nul >= 0:
            return self._at(nul, "NUL byte; this is not a text file, or it is UTF-16")
        try:
            self.text.decode()
        except UnicodeDecodeError as error:
            byte = self.text[error.start]
            return self._at(
                error.start, f"not UTF-8 (byte 0x{byte:02x}); convert it, for example with iconv -f LATIN1 -t UTF-8"
            )
        return None

    def _at(self, position: int, problem: str) -> DataError:
        return error_at_line(str(self.source), self.line + self.text.count(b"\n", 0, position), problem)


def section_name(order: int) -> bytes:
    return b"%d-grams:" % order


def _quote(line: bytes) -> str:
    return repr(line.decode(errors="replace").strip())[:80]


# -- the sections --------------------------------------------------------------------------------------------------


Sections = Iterator[tuple[bytes, Iterator[Chunk]]]


def read_sections(source: Path) -> Sections:
    """Return the sections in the order of the file, each with its name and chunks."""
    sections = groupby(_read_chunks(source), key=lambda chunk: chunk.section)
    next(sections)  # anything before \data\ is a comment
    return sections


def next_section(sections: Sections, name: bytes, source: Path) -> Iterator[Chunk]:
    """Return the next section, which must have this name."""
    actual_name, chunks = next(sections, (None, iter(())))
    if actual_name is None and name == DATA:
        raise DataError(f"{source}: not an ARPA file (no line \\data\\); give a file that begins with its counts")
    if actual_name is None:
        raise DataError(f"{source}: ends before \\{name.decode()}: {TRUNCATED}")
    if actual_name != name:
        opening = f"\\{actual_name.decode(errors='replace'):.40}"
        problem = f"{opening} found instead of \\{name.decode()}; fix the file"
        raise error_at_line(str(source), next(chunks).line - 1, problem)
    return chunks


def _read_chunks(source: Path) -> Iterator[Chunk]:
    """Read the file, a few megabytes at a time."""
    section, line = b"", 1
    with file_errors(source), _open(source) as file:
        rest = file.read(len(BOM)).removeprefix(BOM)
        while block := file.read(BLOCK_BYTES):
            text = rest + block
            end = text.rfind(b"\n") + 1
            rest = text[end:]
            for chunk in _split_sections(Chunk(source, section, text[:end], line)):
                yield chunk
                section = chunk.section
            line += text.count(b"\n", 0, end)
        yield from _split_sections(Chunk(source, section, rest, line))


def _open(source: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(source, "rb")) if source.suffix == ".gz" else source.open("rb")


def _split_sections(chunk: Chunk) -> Iterator[Chunk]:
    """Split before each line that begins with a backslash, which opens a section."""
    before, *openings = (b"\n" + chunk.text).split(b"\n\\")
    yield replace(chunk, text=before[1:])
    line = chunk.line + before.count(b"\n")
    for opening in openings:
        name, _, text = opening.partition(b"\n")
        yield Chunk(chunk.source, name.strip(), text, line + 1)
        line += opening.count(b"\n") + 1


def _numbered(chunks: Iterable[Chunk]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers."""
    for chunk in chunks:
        for number, line in enumerate(chunk.text.split(b"\n"), chunk.line):
            if line.strip():
                yield number, line


# -- the header ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OrderHeader:
    """The entry of one order in the header."""

    order: int
    size: int
    line: int

    def check(self, size: int, source: Path) -> None:
        """Raise an error if a section has another size."""
        if size != self.size:
            problem = f"{self.size} {self.order}-grams are declared, but {size} follow; {TRUNCATED}, or fix the count"
            raise error_at_line(str(source), self.line, problem)


def read_header(chunks: Iterator[Chunk], source: Path) -> list[OrderHeader]:
    headers: list[OrderHeader] = []
    for order, (number, line) in enumerate(_numbered(chunks), 1):
        match = re.fullmatch(rb"ngram\s+(\d{1,9})\s*=\s*(\d{1,18})\s*", line)
        if match is None or int(match[1]) != order:
            raise error_at_line(str(source), number, f"expected `ngram {order}=COUNT`, found {_quote(line)}")
        headers.append(OrderHeader(order, int(match[2]), number))
    if not headers:
        raise DataError(f"{source}: \\data\\ declares no n-grams: {TRUNCATED}")
    return headers


# -- the lines -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParsedLines:
    """The parsed lines of a chunk."""

    starts: NDArray[np.int32]  # (n-grams, order) the first byte of each word
    ends: NDArray[np.int32]
    log_prob: NDArray[np.float32]  # (n-grams,) natural logarithm
    log_backoff: NDArray[np.float32]


def parse_lines(chunk: Chunk, order: int) -> ParsedLines:
    max_rows = chunk.text.count(b"\n") + 2
    positions = np.empty((max_rows, order), np.int32), np.empty((max_rows, order), np.int32)
    numbers = np.empty(max_rows, np.float32), np.empty(max_rows, np.float32)
    rows, error_position, kind = split_lines(np.frombuffer(chunk.text, np.uint8), order, *positions, *numbers)
    if error_position >= 0:
        words = f"{order} words" if order > 1 else "one word"
        problem = {
            WRONG_FIELDS: f"expected log10 probability, {words} and optionally a log10 back-off weight",
            BAD_NUMBER: f"the field before or after {words} is not a base-10 logarithm",
            POSITIVE: "a log10 probability above 0",
        }[kind]
        raise chunk.line_error(error_position, problem)
    return ParsedLines(positions[0][:rows], positions[1][:rows], numbers[0][:rows], numbers[1][:rows])


def repeated_ngram_error(source: Path, order: int, row: int) -> DataError:
    """Return an error about a repeated n-gram; the file is read again to find its line."""
    chunks = (chunk for chunk in _read_chunks(source) if chunk.section == section_name(order))
    number, line = next(islice(_numbered(chunks), row, None))
    return error_at_line(str(source), number, f"this n-gram is repeated; remove {_quote(line)}")
