"""Read files that training would reject, and report what is wrong with them."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, error_at_line, file_errors, shorten
from dragoman.data.formats import GZIP_MAGIC, column_number, display_name, has_fields, looks_like_tsv, type_by_name
from dragoman.data.language_id import LetterText
from dragoman.data.scanner import ScannedText, scan
from dragoman.data.tokenizer import LinePairs
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
        return int(self.field) - 1 if self.header is None else self.header.split("\t").index(self.field)


@dataclass(frozen=True)
class Document:
    """The lines of a file, or some of them."""

    file: str
    part: str  # "train" or "dev"
    lines: Sequence[str]
    places: NDArray[np.int64]  # index of each line among all lines of the file, from 0
    layout: FileLayout
    faults: tuple[Finding, ...] = ()  # findings of the reader
    first: int = 1  # line number in the file of the first line of text
    pair_indices: NDArray[np.int64] | None = None  # of each line among all pairs; by default as in the file
    language: str | None = None  # its code, if it was given
    side: str = ""  # column or field of a file with both sides

    @property
    def name(self) -> str:
        """The file, and which side of it: `pairs.tsv column 2`"""
        return f"{self.file} {self.side}".rstrip()

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def indices(self) -> NDArray[np.int64]:
        """The index of each line in the original document, by which its pair is known.  # (lines,)"""
        return self.places if self.pair_indices is None else self.pair_indices

    @cached_property
    def scanned(self) -> ScannedText:
        return scan(join_lines(self.lines))

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """The number of words of each line."""
        return np.diff(self.scanned.offsets)

    @cached_property
    def characters(self) -> NDArray[np.int64]:
        """The number of characters of each line."""
        return np.fromiter(map(len, self.lines), np.int64, len(self))

    @cached_property
    def letters(self) -> LetterText:
        return LetterText.from_lines(self.lines)

    def number(self, line: int) -> int:
        """Return the line number in the file of line `line` (from 0) of the document."""
        return int(self.places[line]) + self.first

    def finding(
        self, kind: str, line: int | None, message: str, column: int | None = None, last: int | None = None
    ) -> Finding:
        """Create a finding for a line (from 0), a run of lines, or the whole file."""
        if line is None:
            return Finding(kind, self.file, None, message, part=self.part, side=self.side)
        last_line = self.number(last) if last is not None else None
        index = int(self.indices[line])
        number = self.number(line)
        return Finding(kind, self.file, number, message, column, last_line, self.part, index, self.side)

    def findings(self, kind: str, is_found: NDArray[np.bool_], message: Callable[[int], str]) -> Iterator[Finding]:
        """Create a finding, with a message about the line, for each line with a true value.  # is_found: (lines,)"""
        return (self.finding(kind, line, message(line)) for line in np.flatnonzero(is_found).tolist())

    def quoted(self, line: int, width: int = 60) -> str:
        """Return a line in quotation marks, shortened to a width."""
        return repr(shorten(self.lines[line], width))

    def fixed(self) -> Document:
        """Return the document with `fix_line` applied to all lines."""
        return replace(self, lines=[fix_line(line) for line in self.lines])

    def select(self, lines: NDArray[np.int64]) -> Document:
        """Return the given lines, in this order."""
        indices = None if self.pair_indices is None else self.pair_indices[lines]
        chosen = [self.lines[line] for line in lines.tolist()]
        return replace(self, lines=chosen, places=self.places[lines], pair_indices=indices)


@dataclass
class ReadFindings:
    """Findings collected while a file is read."""

    name: str
    part: str
    findings: list[Finding] = field(default_factory=list)

    def add(self, kind: str, line: int | None, message: str, column: int | None = None) -> None:
        self.findings.append(Finding(kind, self.name, line, message, column, part=self.part))


def read_document(path: str, part: str, field_name: str | None = None) -> Document:
    """Read a file in any encoding."""
    name = display_name(path)
    if path == "-":
        raw = sys.stdin.buffer.read()
    else:
        with file_errors(Path(path)):
            raw = Path(path).read_bytes()
            raw = gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw
    if not raw:
        raise DataError(f"{name}: empty; give a file with one sentence per line")
    collected = ReadFindings(name, part)
    text = _decode(raw, collected)
    if not text:
        raise DataError(f"{name}: empty except for a byte order mark; give a file with one sentence per line")
    rows = _split_rows(text, collected)
    if has_fields(path) or (field_name is not None and looks_like_tsv(text.encode("utf-8", "replace"))):
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


def documents_of_pairs(pairs: LinePairs, part: str) -> tuple[Document, ...]:
    """Return the two sides of a TMX, PO or XLIFF file. Their lines are numbered by units; `--fix` writes two texts."""
    return tuple(
        Document(
            f"{pairs.name}.{side}",
            part,
            lines,
            np.arange(len(lines)),
            FileLayout(f"{pairs.name}.{side}", "text", "", lines),
        )
        for side, lines in (("src", pairs.source), ("tgt", pairs.target))
    )


def name_columns(documents: tuple[Document, ...]) -> tuple[Document, ...]:
    """Name the column, or the field, of each side of one file. What is wrong with a row is reported once."""
    named, reported = [], set[tuple[str, int | None]]()
    for document in documents:
        unit = "column" if document.layout.kind == "tsv" else "field"
        side = f"{unit} {document.layout.field}" if document.layout.field else ""
        faults = tuple(finding for finding in document.faults if (finding.kind, finding.line) not in reported)
        reported.update((finding.kind, finding.line) for finding in faults)
        named.append(replace(document, side=side, faults=faults))
    return tuple(named)


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
    lines = raw.decode("utf-8", "surrogateescape").split("\n")
    invalid = {number: runs for number, line in enumerate(lines) if (runs := list(INVALID_BYTES.finditer(line)))}
    valid_lines = (line for number, line in enumerate(lines) if number not in invalid and not line.isascii())
    familiar = WESTERN.union(*valid_lines)
    for number, runs in invalid.items():
        decoded = [_decode_cp1252(run) for run in runs]
        is_sure = all(len(letters) <= MAX_BYTE_RUN and familiar.issuperset(letters) for letters in decoded)
        message = f"byte 0x{ord(runs[0][0][0]) - 0xDC00:02x}, which is {decoded[0][0]!r} in Windows-1252"
        collected.add("not-utf8" if is_sure else "undecodable", number + 1, message, runs[0].start() + 1)
        lines[number] = INVALID_BYTES.sub(_decode_cp1252, lines[number])
    return "\n".join(lines)


def _decode_cp1252(invalid: re.Match[str]) -> str:
    return "".join(bytes([ord(byte) - 0xDC00]).decode("cp1252", "replace") for byte in invalid[0])


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


class FieldValue(NamedTuple):
    """The value of a field in a row, or why there is none."""

    text: str | None
    finding_kind: str = "no-field"
    message: str = ""


def _take_field(
    path: str, field_name: str | None, rows: list[str], collected: ReadFindings
) -> tuple[FileLayout, list[str]]:
    kind = "jsonl" if type_by_name(path) == "jsonl" else "tsv"
    name = field_name or ("1" if kind == "tsv" else "text")
    header = None
    if kind == "tsv" and name.isdecimal():
        column_number(name, collected.name)
    elif kind == "tsv":
        header, rows = rows[0], rows[1:]
        if name not in header.split("\t"):
            columns = ", ".join(header.split("\t"))
            raise error_at_line(collected.name, 1, f"no column {name!r}; the first line has {columns}")
        if not rows:
            raise DataError(f"{collected.name}: empty below its first line; give one row per sentence")
    layout = FileLayout(path, kind, name, rows, header)
    lines = []
    for number, row in enumerate(rows, 1 if header is None else 2):
        if kind == "tsv":
            cells = row.split("\t")
            value = FieldValue(cells[layout.column] if layout.column < len(cells) else None)
        else:
            value = _json_value(row, name)
        if value.text is None:
            missing = f"no {'column' if kind == 'tsv' else 'field'} {name!r} in this row"
            collected.add(value.finding_kind, number, value.message or missing)
        lines.append(value.text or "")
    return layout, lines


def _json_value(row: str, name: str) -> FieldValue:
    """Return what training would read from a row, or why it would reject the row."""
    try:
        record = json.loads(row)
    except json.JSONDecodeError as error:
        return FieldValue(None, "not-json", f"{error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:  # too long numbers, too deep nesting
        return FieldValue(None, "not-json", str(error).split(":")[0])
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, str):
        return FieldValue(None)
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
    if _json_value(row, name).text == value:
        return row

    def skip_punctuation(position: int) -> int:
        match = _JSON_PUNCTUATION.match(row, position)
        return match.end() if match else position

    start = end = 0  # of the old value
    position = skip_punctuation(0)
    while row[position] != "}":
        key, position = _JSON.raw_decode(row, position)
        value_start = skip_punctuation(position)
        _, position = _JSON.raw_decode(row, value_start)
        if key == name:
            start, end = value_start, position
        position = skip_punctuation(position)
    return row[:start] + json.dumps(value, ensure_ascii=False) + row[end:]
