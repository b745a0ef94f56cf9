"""Reading text files: plain, gzip, TSV, JSONL and standard input, with checks of the encoding."""

from __future__ import annotations

import codecs
import gzip
import json
import sys
from pathlib import Path

from dragoman.core.errors import DataError, error_at_line, file_errors

BOM = codecs.BOM_UTF8
GZIP_MAGIC = b"\x1f\x8b"  # the first bytes of gzip data
CHECK_BYTES = 1 << 24  # decoded at a time


def read_text(path: str | Path, field: str | None = None) -> bytes:
    """Read a text as valid UTF-8, one sentence per line.

    Args:
        path: the file; `-` is standard input. The type follows from the name: `.gz` is unpacked, `.tsv` and `.jsonl`
            have fields.
        field: TSV: the column, by number (from 1) or by name in the first line; default 1. JSONL: the key; default
            `text`.
    """
    text, source, file_type = read_utf8(path), display_name(path), _file_type(path)
    if file_type == "tsv":
        return _tsv_column(text, field or "1", source)
    if file_type == "jsonl":
        return _jsonl_values(text, field or "text", source)
    if field is not None:
        raise DataError(f"{source}: a field ({field}) can be selected in .tsv and .jsonl files only")
    return text


def _file_type(path: str | Path) -> str:
    return display_name(path).removesuffix(".gz").rsplit(".", 1)[-1].lower()


def has_fields(path: str | Path) -> bool:
    """Return whether a file has columns or keys, by its name."""
    return _file_type(path) in ("tsv", "jsonl")


def display_name(path: str | Path) -> str:
    """Return the name of a file for messages."""
    return "<stdin>" if str(path) == "-" else str(path)


def read_utf8(path: str | Path) -> bytes:
    """Read a whole file as valid UTF-8, unpacked if it is gzip, without selecting a field."""
    source = display_name(path)
    raw = _read_stdin() if str(path) == "-" else _read_bytes(Path(path))
    text = raw.removeprefix(BOM)
    if not text:
        raise DataError(f"{source}: empty; give a file with one sentence per line")
    if text.startswith(GZIP_MAGIC):
        remedy = "pipe it through zcat" if str(path) == "-" else "give it a name that ends in .gz"
        raise DataError(f"{source}: this is gzip data; {remedy}")
    _check_utf8(text, source)
    return text


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise DataError("<stdin>: closed; give a file, or text on standard input")
    return sys.stdin.buffer.read()


def _read_bytes(path: Path) -> bytes:
    with file_errors(path):
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw


def _check_utf8(text: bytes, source: str) -> None:
    """Raise an error with line and column (in bytes, from 1) for NUL bytes and for bytes that are not UTF-8."""
    nul = text.find(b"\0")
    if nul >= 0:
        line, column = _line_and_column(text, nul)
        raise error_at_line(source, line, f"NUL byte at column {column}; this is not a text file, or it is UTF-16")
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(text), CHECK_BYTES):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(text[start : start + CHECK_BYTES], final=start + CHECK_BYTES >= len(text))
        except UnicodeDecodeError as error:
            wrong = start - pending + error.start
            line, column = _line_and_column(text, wrong)
            remedy = "convert it, for example with iconv -f LATIN1 -t UTF-8"
            raise error_at_line(
                source, line, f"not UTF-8 (byte 0x{text[wrong]:02x} at column {column}); {remedy}"
            ) from None


def _line_and_column(text: bytes, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count(b"\n") + 1, offset - before.rfind(b"\n")


def _split_lines(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def _tsv_column(text: bytes, field: str, source: str) -> bytes:
    rows = [line.removesuffix(b"\r").split(b"\t") for line in _split_lines(text)]
    if field.isdecimal():
        column, first = int(field) - 1, 1
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


def _jsonl_values(text: bytes, field: str, source: str) -> bytes:
    return b"".join(
        _jsonl_value(line, field, source, number) + b"\n" for number, line in enumerate(_split_lines(text), 1)
    )


def _jsonl_value(line: bytes, field: str, source: str, number: int) -> bytes:
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
