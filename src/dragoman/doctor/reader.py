"""Reading whatever is there: files that training would refuse are read too, and what is wrong with them is noted."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, error_at_line, file_errors
from dragoman.data.formats import GZIP_MAGIC, display_name, has_fields
from dragoman.doctor.characters import fix_line
from dragoman.doctor.findings import Finding

MARKS = {  # byte order marks, the longer ones first
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Letters of Western Europe. Ã and Â are left out: alone they are the first half of a letter that was cut in two.
WESTERN = set("äöüßÄÖÜéèêëÉÈÊàáâÀÁíîïìÍóôòõÓÔúûùÚçÇñÑåÅæÆøØœŒãÿ¿¡«»“”„‘’‚–—…°§£€·½")
LONGEST_RUN = 2  # bytes in a row; more are letters of another script


@dataclass(frozen=True)
class FileLayout:
    """How the lines stood in their file, so that they can be written back."""

    path: str
    kind: str  # "tsv" and "jsonl" have fields; everything else is plain
    field: str
    rows: Sequence[str]  # what the file has for each line
    header: str | None = None

    def row(self, row: str, value: str) -> str:
        """A row of the file with this value in its field."""
        if self.kind == "tsv":
            cells = row.split("\t")
            cells[self.column] = value
            return "\t".join(cells)
        if self.kind == "jsonl":
            return _with_value(row, self.field, value)
        return value

    @property
    def column(self) -> int:
        names = self.header.split("\t") if self.header is not None else []
        return names.index(self.field) if names else int(self.field) - 1


@dataclass(frozen=True)
class FieldValue:
    """What a row holds in its field; if nothing, what kind of fault that is."""

    value: str
    fault: str = ""  # a kind of finding
    what: str = ""


@dataclass(frozen=True)
class Document:
    """The lines of a file, or some of them."""

    name: str
    part: str  # "train" or "dev"
    lines: Sequence[str]
    places: NDArray[np.int64]  # where each line stands among all lines of the file, counted from 0
    layout: FileLayout
    faults: tuple[Finding, ...] = ()  # noted while reading
    first: int = 1  # the number of the file's first line of text

    def __len__(self) -> int:
        return len(self.lines)

    def number(self, line: int) -> int:
        """The number in the file of the document's line `line` (from 0)."""
        return int(self.places[line]) + self.first

    def finding(
        self, kind: str, line: int | None, what: str, column: int | None = None, last: int | None = None
    ) -> Finding:
        if line is None:
            return Finding(kind, self.name, None, what, part=self.part)
        last_line = self.number(last) if last is not None else None
        return Finding(kind, self.name, self.number(line), what, column, last_line, self.part, int(self.places[line]))

    def fixed(self) -> Document:
        """The same lines, set right where that is certain."""
        return replace(self, lines=[fix_line(line) for line in self.lines])

    def select(self, kept: NDArray[np.int64]) -> Document:
        return replace(self, lines=[self.lines[line] for line in kept.tolist()], places=self.places[kept])


@dataclass
class ReadFindings:
    """What is noted while one file is read."""

    name: str
    part: str
    findings: list[Finding] = field(default_factory=list)

    def add(self, kind: str, line: int | None, what: str, column: int | None = None) -> None:
        index = None if line is None else line - 1
        self.findings.append(Finding(kind, self.name, line, what, column, part=self.part, index=index))


def read_document(path: str, part: str, field_name: str | None = None) -> Document:
    """Read a file, however badly it is written."""
    name = display_name(path)
    raw = _read_bytes(path)
    if not raw:
        raise DataError(f"{name}: empty; give a file with one sentence a line")
    notes = ReadFindings(name, part)
    text = _decode(raw, notes)
    if not text:
        raise DataError(f"{name}: empty but for a byte order mark; give a file with one sentence a line")
    rows = _rows(text, notes)
    if has_fields(path):
        layout, lines = _take_field(path, field_name, rows, notes)
    elif field_name is None:
        layout, lines = FileLayout(path, "text", "", rows), rows
    else:
        raise DataError(f"{name}: a field ({field_name}) can be taken from .tsv and .jsonl files only")
    first = 2 if layout.header is not None else 1
    found = tuple(replace(f, index=None if f.line is None else f.line - first) for f in notes.findings)
    return Document(name, part, lines, np.arange(len(lines)), layout, found, first)


def _read_bytes(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read()
    with file_errors(Path(path)):
        raw = Path(path).read_bytes()
        return gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw


# -- bytes to letters -------------------------------------------------------------------------------------------------


def _decode(raw: bytes, notes: ReadFindings) -> str:
    encoding = next((encoding for mark, encoding in MARKS.items() if raw.startswith(mark)), _guess(raw))
    if encoding == "utf-8-sig":
        notes.add("bom", 1, "the file begins with a byte order mark")
        raw = raw.removeprefix(codecs.BOM_UTF8)
    elif encoding != "utf-8":
        notes.add("utf-16", None, f"the whole file is {encoding.upper()}")
        return raw.decode(encoding, "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_lines(raw, notes)


def _guess(raw: bytes) -> str:
    """UTF-16 without a mark has a zero in every other byte, as long as the letters are Latin."""
    sample = np.frombuffer(raw[: 1 << 16], np.uint8)
    even, odd = (float((sample[start::2] == 0).mean()) if len(sample) > 1 else 0.0 for start in (0, 1))
    if max(even, odd) > 0.4 and min(even, odd) < 0.1:
        return "utf-16-be" if even > odd else "utf-16-le"
    return "utf-8"


def _decode_lines(raw: bytes, notes: ReadFindings) -> str:
    """Line by line, so that a bad one does not spoil the others; its bytes are taken for Windows-1252."""
    lines = raw.split(b"\n")
    decoded = [_utf8_or_none(line) for line in lines]
    familiar = WESTERN.union(*(line for line in decoded if line is not None and not line.isascii()))
    for number, line in enumerate(lines):
        if decoded[number] is None:
            decoded[number] = _decode_bad_line(line, number + 1, familiar, notes)
    return "\n".join(line for line in decoded if line is not None)


def _utf8_or_none(line: bytes) -> str | None:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


BAD = re.compile("[\udc80-\udcff]+")  # how Python writes bytes that are not UTF-8


def _decode_bad_line(line: bytes, number: int, familiar: set[str], notes: ReadFindings) -> str:
    text = line.decode("utf-8", "surrogateescape")
    runs = list(BAD.finditer(text))
    signs = {run[0]: _cp1252(run[0]) for run in runs}
    sure = all(len(run) <= LONGEST_RUN and familiar.issuperset(sign) for run, sign in signs.items())
    first = runs[0]
    byte = ord(first[0][0]) - 0xDC00
    found = f"byte 0x{byte:02x}, which Windows-1252 reads as {signs[first[0]][0]!r}"
    notes.add("not-utf8" if sure else "undecodable", number, found, first.start() + 1)
    return BAD.sub(lambda run: signs[run[0]], text)


def _cp1252(run: str) -> str:
    return "".join(bytes([ord(sign) - 0xDC00]).decode("cp1252", "replace") for sign in run)


# -- letters to lines -------------------------------------------------------------------------------------------------


def _rows(text: str, notes: ReadFindings) -> list[str]:
    """Lines as training would see them: they end at LF, and a CR before it is left out."""
    if "\r" in text:
        if "\n" not in text.rstrip("\n"):
            notes.add("cr-lines", None, f"{text.count(chr(13)):,} CRs and no LF")
            text = text.replace("\r", "\n")
        elif ends := text.count("\r\n"):
            notes.add("crlf", text[: text.index("\r\n")].count("\n") + 1, f"{ends:,} lines end in CR LF")
            text = text.replace("\r\n", "\n")
    rows = text.split("\n")
    return rows[:-1] if rows[-1] == "" else rows


def _take_field(path: str, wanted: str | None, rows: list[str], notes: ReadFindings) -> tuple[FileLayout, list[str]]:
    kind = path.removesuffix(".gz").rsplit(".", 1)[-1].lower()
    name = wanted or ("1" if kind == "tsv" else "text")
    header = None
    if kind == "tsv" and name.isdecimal() and not int(name):
        raise DataError(f"{notes.name}: no column {name}; columns count from 1")
    if kind == "tsv" and not name.isdecimal():
        header, rows = rows[0], rows[1:]
        if name not in header.split("\t"):
            raise error_at_line(
                notes.name, 1, f"no column {name!r}; the first line has {', '.join(header.split(chr(9)))}"
            )
        if not rows:
            raise DataError(f"{notes.name}: empty below its first line; give a row a sentence")
    layout = FileLayout(path, kind, name, rows, header)
    lines = []
    for number, cell in enumerate(_columns(layout) if kind == "tsv" else _values(layout), 1 if header is None else 2):
        if cell.fault:
            notes.add(cell.fault, number, cell.what)
        lines.append(cell.value)
    return layout, lines


def _columns(layout: FileLayout) -> Iterator[FieldValue]:
    for row in layout.rows:
        cells = row.split("\t")
        yield FieldValue(cells[layout.column]) if layout.column < len(cells) else _no_field(layout.field)


def _no_field(name: str) -> FieldValue:
    return FieldValue("", "no-field", f"no field {name!r} in this row")


def _values(layout: FileLayout) -> Iterator[FieldValue]:
    return (_json_value(row, layout.field) for row in layout.rows)


def _json_value(row: str, name: str) -> FieldValue:
    """What training would read from a row, or why it would refuse the row."""
    try:
        record = json.loads(row)
    except json.JSONDecodeError as error:
        return FieldValue("", "not-json", f"{error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:  # numbers too long, nests too deep
        return FieldValue("", "not-json", str(error).split(":")[0])
    value = record.get(name) if isinstance(record, dict) else None
    return FieldValue(_one_line(value)) if isinstance(value, str) else _no_field(name)


JSON = json.JSONDecoder()
BLANK = re.compile(r"[ \t\r\n]*[,:{]?[ \t\r\n]*")  # what stands between the keys and values of an object


def _with_value(row: str, name: str, value: str) -> str:
    """A row of JSON with another string for this key. All else keeps its very letters: numbers as they were written,
    escapes, spaces, and keys that stand there twice, of which the last one counts.

    >>> _with_value('{"n": 1.50, "text":"a  b"}', "text", "a b")
    '{"n": 1.50, "text":"a b"}'
    """
    if _json_value(row, name).value == value:
        return row
    first, last = [(first, last) for key, first, last in _json_members(row) if key == name][-1]
    return row[:first] + json.dumps(value, ensure_ascii=False) + row[last:]


def _json_members(row: str) -> Iterator[tuple[str, int, int]]:
    """The keys of an object, and where in the row the value of each begins and ends."""
    place = _after_blank(row, 0)
    while row[place] != "}":
        key, place = JSON.raw_decode(row, place)
        first = _after_blank(row, place)
        _, last = JSON.raw_decode(row, first)
        yield key, first, last
        place = _after_blank(row, last)


def _after_blank(row: str, place: int) -> int:
    blank = BLANK.match(row, place)
    return blank.end() if blank else place


def _one_line(value: str) -> str:
    """A JSON string may hold line breaks and half surrogate pairs, which no line of text can."""
    whole = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return whole.replace("\r\n", " ").replace("\n", " ")


def join_lines(lines: Sequence[str]) -> bytes:
    """Lines as a file has them."""
    if not lines:
        return b""
    text = "\n".join(lines)
    return (text + "\n").encode("utf-8", "replace")
