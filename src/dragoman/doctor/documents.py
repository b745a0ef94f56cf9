"""Read files that training would reject, and report what is wrong with them."""

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

BYTE_ORDER_MARKS = {  # longer ones first
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Characters of Western Europe. Without Ã and Â, which are the first half of a UTF-8 character that was cut in two.
WESTERN = set("äöüßÄÖÜéèêëÉÈÊàáâÀÁíîïìÍóôòõÓÔúûùÚçÇñÑåÅæÆøØœŒãÿ¿¡«»“”„‘’‚–—…°§£€·½")
MAX_BYTE_RUN = 2  # longer runs of undecodable bytes are text in another script
INVALID_BYTES = re.compile("[\udc80-\udcff]+")  # surrogates by which Python represents bytes that are not UTF-8


@dataclass(frozen=True)
class FileLayout:
    """How the lines are stored in their file, so that they can be written back."""

    path: str
    kind: str  # "tsv" and "jsonl" have fields; everything else is plain text
    field: str
    rows: Sequence[str]  # the row of the file for each line
    header: str | None = None

    def row(self, row: str, value: str) -> str:
        """Return a row of the file with this value in its field."""
        if self.kind == "tsv":
            cells = row.split("\t")
            cells[self.column] = value
            return "\t".join(cells)
        if self.kind == "jsonl":
            return _replace_json_value(row, self.field, value)
        return value

    @property
    def column(self) -> int:
        names = self.header.split("\t") if self.header is not None else []
        return names.index(self.field) if names else int(self.field) - 1


@dataclass(frozen=True)
class Document:
    """The lines of a file, or some of them."""

    name: str
    part: str  # "train" or "dev"
    lines: Sequence[str]
    places: NDArray[np.int64]  # index of each line among all lines of the file, from 0
    layout: FileLayout
    faults: tuple[Finding, ...] = ()  # findings of the reader
    first: int = 1  # line number in the file of the first line of text

    def __len__(self) -> int:
        return len(self.lines)

    def number(self, line: int) -> int:
        """Return the line number in the file of line `line` (from 0) of the document."""
        return int(self.places[line]) + self.first

    def finding(
        self, kind: str, line: int | None, message: str, column: int | None = None, last: int | None = None
    ) -> Finding:
        """Create a finding for a line (from 0), a run of lines, or the whole file."""
        if line is None:
            return Finding(kind, self.name, None, message, part=self.part)
        last_line = self.number(last) if last is not None else None
        index = int(self.places[line])
        return Finding(kind, self.name, self.number(line), message, column, last_line, self.part, index)

    def fixed(self) -> Document:
        """Return the document with `fix_line` applied to all lines."""
        return replace(self, lines=[fix_line(line) for line in self.lines])

    def select(self, lines: NDArray[np.int64]) -> Document:
        return replace(self, lines=[self.lines[line] for line in lines.tolist()], places=self.places[lines])


@dataclass
class ReadFindings:
    """Findings collected while a file is read."""

    name: str
    part: str
    findings: list[Finding] = field(default_factory=list)

    def add(self, kind: str, line: int | None, message: str, column: int | None = None) -> None:
        index = None if line is None else line - 1
        self.findings.append(Finding(kind, self.name, line, message, column, part=self.part, index=index))


def read_document(path: str, part: str, field_name: str | None = None) -> Document:
    """Read a file in any encoding."""
    name = display_name(path)
    raw = _read_bytes(path)
    if not raw:
        raise DataError(f"{name}: empty; give a file with one sentence per line")
    collected = ReadFindings(name, part)
    text = _decode(raw, collected)
    if not text:
        raise DataError(f"{name}: empty except for a byte order mark; give a file with one sentence per line")
    rows = _split_rows(text, collected)
    if has_fields(path):
        layout, lines = _take_field(path, field_name, rows, collected)
    elif field_name is None:
        layout, lines = FileLayout(path, "text", "", rows), rows
    else:
        raise DataError(f"{name}: fields ({field_name}) exist in .tsv and .jsonl files only")
    first = 2 if layout.header is not None else 1
    findings = tuple(
        replace(finding, index=None if finding.line is None else finding.line - first) for finding in collected.findings
    )
    return Document(name, part, lines, np.arange(len(lines)), layout, findings, first)


def _read_bytes(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read()
    with file_errors(Path(path)):
        raw = Path(path).read_bytes()
        return gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw


def join_lines(lines: Sequence[str]) -> bytes:
    """Encode lines as a file."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


# -- decoding ---------------------------------------------------------------------------------------------------------


def _decode(raw: bytes, collected: ReadFindings) -> str:
    marked = (encoding for mark, encoding in BYTE_ORDER_MARKS.items() if raw.startswith(mark))
    encoding = next(marked, _guess_encoding(raw))
    if encoding == "utf-8-sig":
        collected.add("bom", 1, "the file starts with a byte order mark")
        raw = raw.removeprefix(codecs.BOM_UTF8)
    elif encoding != "utf-8":
        collected.add("utf-16", None, f"the whole file is {encoding.upper()}")
        return raw.decode(encoding, "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_by_line(raw, collected)


def _guess_encoding(raw: bytes) -> str:
    """Detect UTF-16 without a mark: Latin text has a zero in every other byte."""
    sample = np.frombuffer(raw[: 1 << 16], np.uint8)
    even, odd = (float((sample[start::2] == 0).mean()) if len(sample) > 1 else 0.0 for start in (0, 1))
    if max(even, odd) > 0.4 and min(even, odd) < 0.1:
        return "utf-16-be" if even > odd else "utf-16-le"
    return "utf-8"


def _decode_by_line(raw: bytes, collected: ReadFindings) -> str:
    """Decode each line separately; invalid bytes are read as Windows-1252."""
    lines = raw.split(b"\n")
    decoded = [_decode_utf8_line(line) for line in lines]
    familiar = WESTERN.union(*(line for line in decoded if line is not None and not line.isascii()))
    return "\n".join(
        text if text is not None else _decode_invalid_line(line, number, familiar, collected)
        for number, (line, text) in enumerate(zip(lines, decoded, strict=True), 1)
    )


def _decode_utf8_line(line: bytes) -> str | None:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _decode_invalid_line(line: bytes, number: int, familiar: set[str], collected: ReadFindings) -> str:
    text = line.decode("utf-8", "surrogateescape")
    runs = list(INVALID_BYTES.finditer(text))
    decoded = {
        run[0]: "".join(bytes([ord(byte) - 0xDC00]).decode("cp1252", "replace") for byte in run[0]) for run in runs
    }
    is_sure = all(len(run) <= MAX_BYTE_RUN and familiar.issuperset(letters) for run, letters in decoded.items())
    first = runs[0]
    message = f"byte 0x{ord(first[0][0]) - 0xDC00:02x}, which is {decoded[first[0]][0]!r} in Windows-1252"
    collected.add("not-utf8" if is_sure else "undecodable", number, message, first.start() + 1)
    return INVALID_BYTES.sub(lambda run: decoded[run[0]], text)


# -- lines and fields -------------------------------------------------------------------------------------------------


def _split_rows(text: str, collected: ReadFindings) -> list[str]:
    """Split a text into lines as training does: they end at LF, and a CR before it is removed."""
    if "\r" in text:
        if "\n" not in text.rstrip("\n"):
            collected.add("cr-lines", None, f"{text.count(chr(13)):,} CRs and no LF")
            text = text.replace("\r", "\n")
        elif count := text.count("\r\n"):
            collected.add("crlf", text[: text.index("\r\n")].count("\n") + 1, f"{count:,} lines end in CR LF")
            text = text.replace("\r\n", "\n")
    rows = text.split("\n")
    return rows[:-1] if rows[-1] == "" else rows


@dataclass(frozen=True)
class FieldValue:
    """The value of a field in a row, or why there is none."""

    value: str
    finding_kind: str = ""
    message: str = ""


def _take_field(
    path: str, field_name: str | None, rows: list[str], collected: ReadFindings
) -> tuple[FileLayout, list[str]]:
    kind = path.removesuffix(".gz").rsplit(".", 1)[-1].lower()
    name = field_name or ("1" if kind == "tsv" else "text")
    header = None
    if kind == "tsv" and name.isdecimal() and not int(name):
        raise DataError(f"{collected.name}: no column {name}; columns count from 1")
    if kind == "tsv" and not name.isdecimal():
        header, rows = rows[0], rows[1:]
        if name not in header.split("\t"):
            columns = ", ".join(header.split("\t"))
            raise error_at_line(collected.name, 1, f"no column {name!r}; the first line has {columns}")
        if not rows:
            raise DataError(f"{collected.name}: empty below its first line; give one row per sentence")
    layout = FileLayout(path, kind, name, rows, header)
    values = _column_values(layout) if kind == "tsv" else (_json_value(row, name) for row in rows)
    lines = []
    for number, value in enumerate(values, 1 if header is None else 2):
        if value.finding_kind:
            collected.add(value.finding_kind, number, value.message)
        lines.append(value.value)
    return layout, lines


def _column_values(layout: FileLayout) -> Iterator[FieldValue]:
    for row in layout.rows:
        cells = row.split("\t")
        yield FieldValue(cells[layout.column]) if layout.column < len(cells) else _missing_field(layout.field)


def _missing_field(name: str) -> FieldValue:
    return FieldValue("", "no-field", f"no field {name!r} in this row")


def _json_value(row: str, name: str) -> FieldValue:
    """Return what training would read from a row, or why it would reject the row."""
    try:
        record = json.loads(row)
    except json.JSONDecodeError as error:
        return FieldValue("", "not-json", f"{error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:  # too long numbers, too deep nesting
        return FieldValue("", "not-json", str(error).split(":")[0])
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, str):
        return _missing_field(name)
    valid = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")  # replaces unpaired surrogates
    return FieldValue(valid.replace("\r\n", " ").replace("\n", " "))


_JSON = json.JSONDecoder()
_JSON_PUNCTUATION = re.compile(r"[ \t\r\n]*[,:{]?[ \t\r\n]*")  # between the keys and values of an object


def _replace_json_value(row: str, name: str, value: str) -> str:
    """Return a JSON row with another string for a key, and every other character unchanged.

    If a key occurs twice, the last one counts.

    >>> _replace_json_value('{"n": 1.50, "text":"a  b"}', "text", "a b")
    '{"n": 1.50, "text":"a b"}'
    """
    if _json_value(row, name).value == value:
        return row
    start, end = [(start, end) for key, start, end in _json_members(row) if key == name][-1]
    return row[:start] + json.dumps(value, ensure_ascii=False) + row[end:]


def _json_members(row: str) -> Iterator[tuple[str, int, int]]:
    """The keys of an object, and where in the row the value of each starts and ends."""
    position = _skip_json_punctuation(row, 0)
    while row[position] != "}":
        key, position = _JSON.raw_decode(row, position)
        start = _skip_json_punctuation(row, position)
        _, end = _JSON.raw_decode(row, start)
        yield key, start, end
        position = _skip_json_punctuation(row, end)


def _skip_json_punctuation(row: str, position: int) -> int:
    match = _JSON_PUNCTUATION.match(row, position)
    return match.end() if match else position
