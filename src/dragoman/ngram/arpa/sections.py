"""An ARPA file cut into its sections, their lines taken apart; and what is said of lines that are wrong."""

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

BLOCK = 1 << 22  # bytes read at a time
DATA, ENDING = b"data\\", b"end\\"
CUT_SHORT = "the file is cut short; copy it or make it again"


@dataclass(frozen=True)
class Piece:
    """Some whole lines of one section."""

    source: Path
    section: bytes  # the line that opened it, without its first backslash
    text: bytes
    line: int  # number of the first line

    def wrong(self, place: int, problem: str) -> DataError:
        """What is wrong with the line that holds byte `place`."""
        first = self.text.rfind(b"\n", 0, place) + 1
        line = self.text[first:].partition(b"\n")[0]
        number = self.line + self.text.count(b"\n", 0, first)
        bad = replace(self, text=line, line=number).bad_bytes()
        return bad or error_at_line(str(self.source), number, f"{problem}; mend or remove {_shown(line)}")

    def bad_bytes(self) -> DataError | None:
        """The error of text that is no text."""
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

    def _at(self, place: int, problem: str) -> DataError:
        return error_at_line(str(self.source), self.line + self.text.count(b"\n", 0, place), problem)


def section_name(order: int) -> bytes:
    return b"%d-grams:" % order


def _shown(line: bytes) -> str:
    return repr(line.decode(errors="replace").strip())[:80]


# -- the sections --------------------------------------------------------------------------------------------------


Sections = Iterator[tuple[bytes, Iterator[Piece]]]


def read_sections(source: Path) -> Sections:
    """The sections in order of the file, each by its name and in pieces."""
    sections = groupby(_pieces(source), key=lambda piece: piece.section)
    next(sections)  # what comes before \data\ is comment
    return sections


def next_section(sections: Sections, name: bytes, source: Path) -> Iterator[Piece]:
    """The next section, which must have this name."""
    found, pieces = next(sections, (None, iter(())))
    if found is None and name == DATA:
        raise DataError(f"{source}: not an ARPA file (it has no line \\data\\); give one that begins with its counts")
    if found is None:
        raise DataError(f"{source}: ends before \\{name.decode()}: {CUT_SHORT}")
    if found != name:
        opening = f"\\{found.decode(errors='replace'):.40}"
        problem = f"{opening} stands where \\{name.decode()} should; mend the file"
        raise error_at_line(str(source), next(pieces).line - 1, problem)
    return pieces


def _pieces(source: Path) -> Iterator[Piece]:
    """The file, a few megabytes at a time."""
    section, line = b"", 1
    with file_errors(source), _opened(source) as file:
        rest = file.read(len(BOM)).removeprefix(BOM)
        while block := file.read(BLOCK):
            text = rest + block
            cut = text.rfind(b"\n") + 1
            rest = text[cut:]
            for piece in _cut(Piece(source, section, text[:cut], line)):
                yield piece
                section = piece.section
            line += text.count(b"\n", 0, cut)
        yield from _cut(Piece(source, section, rest, line))


def _opened(source: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(source, "rb")) if source.suffix == ".gz" else source.open("rb")


def _cut(piece: Piece) -> Iterator[Piece]:
    """Cut before each line that begins with a backslash, the opening of a section."""
    before, *openings = (b"\n" + piece.text).split(b"\n\\")
    yield replace(piece, text=before[1:])
    line = piece.line + before.count(b"\n")
    for opening in openings:
        name, _, text = opening.partition(b"\n")
        yield Piece(piece.source, name.strip(), text, line + 1)
        line += opening.count(b"\n") + 1


def _numbered(pieces: Iterable[Piece]) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    for piece in pieces:
        for number, line in enumerate(piece.text.split(b"\n"), piece.line):
            if line.strip():
                yield number, line


# -- the header ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Declared:
    """What the header says of one order."""

    order: int
    size: int
    line: int

    def check(self, size: int, source: Path) -> None:
        """Refuse a section of another size."""
        if size != self.size:
            problem = f"{self.size} {self.order}-grams are declared, but {size} follow; {CUT_SHORT}, or mend the count"
            raise error_at_line(str(source), self.line, problem)


def read_header(pieces: Iterator[Piece], source: Path) -> list[Declared]:
    declared: list[Declared] = []
    for order, (number, line) in enumerate(_numbered(pieces), 1):
        found = re.fullmatch(rb"ngram\s+(\d{1,9})\s*=\s*(\d{1,18})\s*", line)
        if found is None or int(found[1]) != order:
            raise error_at_line(str(source), number, f"expected `ngram {order}=COUNT`, found {_shown(line)}")
        declared.append(Declared(order, int(found[2]), number))
    if not declared:
        raise DataError(f"{source}: \\data\\ declares no n-grams: {CUT_SHORT}")
    return declared


# -- the lines -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """The lines of a piece, taken apart."""

    starts: NDArray[np.int32]  # (n-grams, order) the first byte of each word
    ends: NDArray[np.int32]
    log_prob: NDArray[np.float32]  # (n-grams,) natural logs from here on
    log_backoff: NDArray[np.float32]


def split(piece: Piece, order: int) -> Split:
    most = piece.text.count(b"\n") + 2
    places = np.empty((most, order), np.int32), np.empty((most, order), np.int32)
    numbers = np.empty(most, np.float32), np.empty(most, np.float32)
    rows, wrong, kind = split_lines(np.frombuffer(piece.text, np.uint8), order, *places, *numbers)
    if wrong >= 0:
        words = f"{order} words" if order > 1 else "one word"
        problem = {
            WRONG_FIELDS: f"expected log10 probability, {words} and perhaps a log10 back-off weight",
            BAD_NUMBER: f"what stands before or after {words} is not a base-10 logarithm",
            POSITIVE: "a log10 probability above 0",
        }[kind]
        raise piece.wrong(wrong, problem)
    return Split(places[0][:rows], places[1][:rows], numbers[0][:rows], numbers[1][:rows])


def repeated(source: Path, order: int, row: int) -> DataError:
    """The error of an n-gram that was there already; the file is read again to say on which line."""
    pieces = (piece for piece in _pieces(source) if piece.section == section_name(order))
    number, line = next(islice(_numbered(pieces), row, None))
    return error_at_line(str(source), number, f"this n-gram was there already; remove {_shown(line)}")
