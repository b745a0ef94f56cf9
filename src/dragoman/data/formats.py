"""Reading text: plain files, gzip, TSV, JSONL, subtitles and standard input, with checks of the encoding."""

from __future__ import annotations

import codecs
import gzip
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from dragoman.core.errors import DataError, encoding_error, error_at_line, file_errors

BOM = codecs.BOM_UTF8
GZIP_MAGIC = b"\x1f\x8b"  # the first bytes of gzip data
CHECK_BYTES = 1 << 24  # decoded at a time
READ_SIZE = 1 << 20  # bytes read from standard input at once, at most
MAX_BATCH_LINES = 256
SUBTITLES = ("srt", "vtt")  # endings of subtitle files
TSV_SAMPLE_BYTES = 1 << 16  # read to find out whether a file is TSV
TSV_SHARE = 0.95  # of its lines have the same number of tabs
MAX_COLUMN_DIGITS = 9  # of the number of a column


def read_text(path: str | Path, field: str | None = None) -> bytes:
    """Read a text as valid UTF-8, one sentence per line.

    Args:
        path: the file; `-` is standard input. The type follows from the name: `.gz` is unpacked, `.tsv` and `.jsonl`
            have fields, the cues of `.srt` and `.vtt` are lines.
        field: TSV: the column, by number (from 1) or by name in the first line; default 1. JSONL: the key; default
            `text`. A file of another name may be TSV as well.
    """
    text, source, file_type = read_utf8(path), display_name(path), type_by_name(path)
    if file_type == "tsv" or (field is not None and file_type != "jsonl" and looks_like_tsv(text)):
        return _tsv_column(text, field or "1", source)
    if file_type == "jsonl":
        lines = enumerate(_split_lines(text), 1)
        return b"".join(parse_jsonl_value(line, field or "text", source, number) + b"\n" for number, line in lines)
    if field is not None:
        raise DataError(f"{source}: a field ({field}) can be selected in .tsv and .jsonl files only")
    if file_type in SUBTITLES:
        from dragoman.data.subtitles import read_cues

        return b"".join(f"{cue.plain_text}\n".encode() for cue in read_cues(text.decode(), source))
    return text


def read_lines(path: str, field: str | None = None) -> list[str]:
    """Read the lines of a text, whatever line breaks it has."""
    return decode_lines(read_text(path, field_for(path, field)))


def decode_lines(text: bytes) -> list[str]:
    """Return the lines of a text, whatever line breaks it has."""
    lines = text.decode("utf-8").removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines] if text else []


def read_parallel_lines(path: str, expected: int, other: str, field: str | None = None) -> list[str]:
    """Read the lines of a text, which must have as many as another text."""
    lines = read_lines(path, field)
    if len(lines) != expected:
        counts = f"{display_name(path)} has {len(lines):,} lines and {display_name(other)} has {expected:,}"
        raise DataError(f"{counts}; each line must belong to the same line of the other file")
    return lines


def field_for(path: str, field: str | None, *others: str | None) -> str | None:
    """Return the field to read from a file: None for plain text, which is an error if `others` have no fields either."""
    if field is None or has_fields(path) or looks_like_tsv(read_start(path, TSV_SAMPLE_BYTES + 1)):
        return field
    if not any(other is not None and has_fields(other) for other in others):
        raise DataError(f"{display_name(path)}: --field {field} is for .tsv and .jsonl files only")
    return None


def has_fields(path: str | Path) -> bool:
    """Return whether a file has columns or keys, by its name."""
    return type_by_name(path) in ("tsv", "jsonl")


def type_by_name(path: str | Path) -> str:
    """Return the ending of a file's name, which says its type; `.gz` does not count.

    >>> type_by_name("train.TSV.gz")
    'tsv'
    """
    return display_name(path).removesuffix(".gz").rsplit(".", 1)[-1].lower()


def looks_like_tsv(text: bytes) -> bool:
    """Return whether nearly all lines have the same number of tabs, at least one.

    >>> looks_like_tsv(b"eins\\tone\\nzwei\\ttwo\\n"), looks_like_tsv(b"eins\\nzwei\\ttwo\\n")
    (True, False)
    """
    sample = text[:TSV_SAMPLE_BYTES]
    lines = sample.split(b"\n") if len(sample) == len(text) else sample.split(b"\n")[:-1]  # the last is cut
    tabs = Counter(line.count(b"\t") for line in lines if line.strip())
    [(number, frequency)] = tabs.most_common(1) or [(0, 0)]
    return number > 0 and frequency >= TSV_SHARE * tabs.total()


def read_start(path: str, size: int) -> bytes:
    """Return the first bytes of a file, unpacked if its name ends in .gz; nothing of what cannot be read twice."""
    if path == "-" or not Path(path).is_file():
        return b""
    with file_errors(Path(path)), (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return file.read(size)


def display_name(path: str | Path) -> str:
    """Return the name of a file for messages."""
    return "<stdin>" if str(path) == "-" else str(path)


def read_utf8(path: str | Path) -> bytes:
    """Read a whole file as valid UTF-8, unpacked if it is gzip, without selecting a field."""
    source, text = display_name(path), read_bytes(path).removeprefix(BOM)
    if not text:
        raise DataError(f"{source}: empty; give a file with one sentence per line")
    if text.startswith(GZIP_MAGIC):
        remedy = "pipe it through zcat" if str(path) == "-" else "give it a name that ends in .gz"
        raise DataError(f"{source}: this is gzip data; {remedy}")
    check_utf8(text, source)
    return text


def read_bytes(path: str | Path) -> bytes:
    """Read a whole file or standard input, unpacked if its name ends in .gz."""
    if str(path) == "-":
        return _stdin().read()
    with file_errors(Path(path)):
        raw = Path(path).read_bytes()
        return gzip.decompress(raw) if Path(path).suffix == ".gz" else raw


def _stdin() -> BufferedReader:
    if sys.stdin is None:
        raise DataError("<stdin>: closed; give a file, or text on standard input")
    return sys.stdin.buffer  # type: ignore[return-value]


def check_utf8(text: bytes, source: str, first_line: int = 1) -> None:
    """Raise an error with line and column (in bytes, from 1) for NUL bytes and for bytes that are not UTF-8."""
    nul = text.find(b"\0")
    if nul >= 0:
        raise encoding_error(text, nul, source, first_line)
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(text), CHECK_BYTES):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(text[start : start + CHECK_BYTES], final=start + CHECK_BYTES >= len(text))
        except UnicodeDecodeError as error:
            raise encoding_error(text, start - pending + error.start, source, first_line) from None


def _split_lines(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def _tsv_column(text: bytes, field: str, source: str) -> bytes:
    rows = [line.removesuffix(b"\r").split(b"\t") for line in _split_lines(text)]
    if field.isdecimal():
        column, first = column_number(field, source) - 1, 1
    else:
        header = [name.decode() for name in rows[0]]
        if field not in header:
            raise error_at_line(source, 1, f"no column {field!r}; the first line has {', '.join(header)}")
        column, first, rows = header.index(field), 2, rows[1:]
        if not rows:
            raise DataError(f"{source}: no rows below the first line; give one row per sentence")
    for number, row in enumerate(rows, first):
        if not 0 <= column < len(row):
            raise error_at_line(source, number, f"{len(row)} columns, but column {column + 1} is selected")
    return b"".join(row[column] + b"\n" for row in rows)


def column_number(field: str, source: str) -> int:
    """Return the number of a column, counted from 1."""
    number = int(field) if len(field) <= MAX_COLUMN_DIGITS else 0
    if number < 1:
        raise DataError(f"{source}: no column {field:.20}; columns count from 1")
    return number


def parse_jsonl_value(line: bytes, field: str, source: str, number: int) -> bytes:
    """Return the value of a key of a line of JSON, which must be a string, in one line; errors name `source:number`."""
    try:
        record = json.loads(line)
        value = record[field] if isinstance(record, dict) else None
    except json.JSONDecodeError as error:
        raise error_at_line(source, number, f"not JSON ({error.msg} at column {error.colno})") from None
    except (ValueError, RecursionError) as error:  # numbers too long, nesting too deep
        raise error_at_line(source, number, f"JSON that cannot be read ({str(error).split(':')[0]})") from None
    except KeyError:
        raise error_at_line(source, number, f"no key {field!r}; found {', '.join(record)}") from None
    if not isinstance(value, str):
        raise error_at_line(source, number, f"{field!r} should be a string, found {value!r:.40}")
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        problem = f"{field!r} contains an unpaired surrogate; remove or fix the character"
        raise error_at_line(source, number, problem) from None
    if "\0" in value:
        raise error_at_line(source, number, f"{field!r} contains a NUL character; remove it")
    return encoded.replace(b"\r\n", b" ").replace(b"\n", b" ")


class NumberedLine(NamedTuple):
    """A line of a text and its number, counted from 1."""

    number: int
    text: str


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
        chunks = split_stream(_stdin())
    elif Path(path).is_file() and not Path(path).stat().st_size:
        chunks = []  # like empty standard input; a training text may not be empty
    else:
        chunks = [read_text(path, field).removesuffix(b"\n").split(b"\n")]
    return _batches(chunks, display_name(path), check or (lambda *line: None))


def split_stream(stream: BufferedReader) -> Iterator[list[bytes]]:
    """Yield complete lines, as many at a time as have arrived. The last may have no line break."""
    incomplete: list[bytes] = []  # chunks of a line whose end has not arrived
    while chunk := stream.read1(READ_SIZE):  # what is available; waits only if there is nothing
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
            raise DataError(f"{source}: this is gzip data; pipe it through zcat")
    check_utf8(raw, source, number)
    return raw.decode().removesuffix("\r")
