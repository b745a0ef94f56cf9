"""The text of ARPA files: sections, and lines `log10 P  w1 ... wn  [log10 back-off]`, parsed and written."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, error_at_line, file_errors
from dragoman.core.kernels import inline_kernel, kernel
from dragoman.data.formats import BOM
from dragoman.data.scanner import NEWLINE, RETURN, SPACE, TAB
from dragoman.data.spellings import find_slot, hash_word
from dragoman.data.vocabulary import UNK
from dragoman.ngram.table import stored_log_prob
from dragoman.ngram.trie import find_child

BLOCK_BYTES = 1 << 22  # bytes read at a time
DATA, ENDING = b"data\\", b"end\\"
TRUNCATED = "the file is truncated; copy or write it again"
LOG_10 = float(np.log(10.0))
ZERO = -99.0  # written instead of minus infinity
DECIMALS = 7
SCALE = 10**DECIMALS
NUMBER_BYTES = 12  # maximum size of a written number, with the blank before it
ROUNDING = 1e-6  # a log-probability up to this far above 0 is a rounding error
MAX_POWER = 22  # of ten that a float represents exactly
POWERS = 10.0 ** np.arange(MAX_POWER + 1)
GOOD, WRONG_FIELDS, BAD_NUMBER, POSITIVE = 0, 1, 2, 3  # results of parsing a line
MINUS, PLUS, POINT, DIGIT_0, LETTER_E = (ord(sign) for sign in "-+.0e")
LETTERS_INF = (ord("i"), ord("n"), ord("f"))


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
        position, problem = self.text.find(b"\0"), "NUL byte; this is not a text file, or it is UTF-16"
        if position < 0:
            try:
                self.text.decode()
                return None
            except UnicodeDecodeError as error:
                position, byte = error.start, self.text[error.start]
                problem = f"not UTF-8 (byte 0x{byte:02x}); convert it, for example with iconv -f LATIN1 -t UTF-8"
        return error_at_line(str(self.source), self.line + self.text.count(b"\n", 0, position), problem)


def _quote(line: bytes) -> str:
    return repr(line.decode(errors="replace").strip())[:80]


# -- sections ------------------------------------------------------------------------------------------------------

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
    with file_errors(source), gzip.open(source) if source.suffix == ".gz" else source.open("rb") as file:
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


# -- lines ---------------------------------------------------------------------------------------------------------


class ParsedLines(NamedTuple):
    """The parsed lines of a chunk."""

    starts: NDArray[np.int32]  # (n-grams, order) the first byte of each word
    ends: NDArray[np.int32]
    log_prob: NDArray[np.float32]  # (n-grams,) natural logarithm
    log_backoff: NDArray[np.float32]


def parse_lines(chunk: Chunk, order: int) -> ParsedLines:
    max_rows = chunk.text.count(b"\n") + 2
    positions = np.empty((2, max_rows, order), np.int32)
    numbers = np.empty((2, max_rows), np.float32)
    text = np.frombuffer(chunk.text, np.uint8)
    rows, error_position, kind = _split_lines(text, ParsedLines(*positions, *numbers))
    if error_position >= 0:
        words = f"{order} words" if order > 1 else "one word"
        problem = {
            WRONG_FIELDS: f"expected log10 probability, {words} and optionally a log10 back-off weight",
            BAD_NUMBER: f"the field before or after {words} is not a base-10 logarithm",
            POSITIVE: "a log10 probability above 0",
        }[kind]
        raise chunk.line_error(error_position, problem)
    return ParsedLines(*positions[:, :rows], *numbers[:, :rows])


def repeated_ngram_error(source: Path, order: int, row: int) -> DataError:
    """Return an error about a repeated n-gram; the file is read again to find its line."""
    chunks = (chunk for chunk in _read_chunks(source) if chunk.section == b"%d-grams:" % order)
    number, line = next(islice(_numbered(chunks), row, None))
    return error_at_line(str(source), number, f"this n-gram is repeated; remove {_quote(line)}")


# -- kernels: reading ----------------------------------------------------------------------------------------------


@kernel
def _split_lines(data: Any, lines: Any) -> tuple[int, int, int]:
    """Parse lines of n-grams: the positions of their words, and their two numbers as natural logarithms.

    Returns the number of n-grams, and the position and kind of the first error.
    """
    n = lines.starts.shape[1]
    row = i = 0
    while i < data.size:
        line, fields, lines.log_backoff[row] = i, 0, 0.0
        while True:
            while i < data.size and _is_blank(data[i]) and data[i] != NEWLINE:
                i += 1
            if i == data.size or data[i] == NEWLINE:
                break
            start = i
            while i < data.size and not _is_blank(data[i]):
                i += 1
            if 1 <= fields <= n:
                lines.starts[row, fields - 1], lines.ends[row, fields - 1] = start, i
            elif fields == 0 or fields == n + 1:
                value = _parse_number(data, start, i)
                if not value <= -ZERO:
                    return row, line, BAD_NUMBER
                if fields == 0 and value > ROUNDING:
                    return row, line, POSITIVE
                natural = -np.inf if value <= ZERO else value * LOG_10
                if fields == 0:
                    lines.log_prob[row] = min(natural, 0.0)
                else:
                    lines.log_backoff[row] = natural
            fields += 1
        i += 1
        if fields == n + 1 or fields == n + 2:
            row += 1
        elif fields > 0:
            return row, line, WRONG_FIELDS
    return row, -1, GOOD


@inline_kernel
def _is_blank(byte: int) -> bool:
    """Return whether a byte separates fields; a `\\r` can only be at the end of a line."""
    return bool(byte <= SPACE and (byte == SPACE or byte == TAB or byte == NEWLINE or byte == RETURN))  # noqa: SIM109 - faster


@kernel
def _parse_number(data: Any, first: int, last: int) -> float:
    """Return the decimal number in these bytes, or NaN if it is not valid."""
    negative = data[first] == MINUS
    i = first + 1 if negative or data[first] == PLUS else first
    if negative and last - i == 3 and (data[i] | SPACE, data[i + 1] | SPACE, data[i + 2] | SPACE) == LETTERS_INF:
        return -np.inf
    digits = point = exponent = 0
    mantissa = np.int64(0)
    while i < last and (0 <= np.int64(data[i]) - DIGIT_0 <= 9 or (data[i] == POINT and point == 0)):
        if data[i] == POINT:
            point = 1
        else:
            digits += 1
            if mantissa < 10**17:
                mantissa = mantissa * 10 + (np.int64(data[i]) - DIGIT_0)
                exponent -= point
            else:  # more digits than a float can represent: only the exponent changes
                exponent += 1 - point
        i += 1
    if digits > 0 and i + 1 < last and data[i] | SPACE == LETTER_E:
        sign, written = -1 if data[i + 1] == MINUS else 1, 0
        first_digit = i + 2 if data[i + 1] == MINUS or data[i + 1] == PLUS else i + 1
        if first_digit < last:  # otherwise the number stays invalid
            i = first_digit
        while i < last and 0 <= np.int64(data[i]) - DIGIT_0 <= 9:
            written = min(10 * written + int(data[i]) - DIGIT_0, 1000)
            i += 1
        exponent += sign * written
    if digits == 0 or i < last:
        return np.nan
    size = float(mantissa)
    exact = max(-MAX_POWER, min(exponent, MAX_POWER))
    size = size / POWERS[-exact] if exact < 0 else size * POWERS[exact]
    if exponent != exact:
        size *= 10.0 ** (exponent - exact)
    return -size if negative else size


@kernel
def find_words(text: Any, lines: Any, spellings: Any, words: Any) -> int:
    """Write the ids of the words of these lines to `words`; return the first row with an unknown word, or -1.

    The text and the spellings are given by `eight_bytes`.
    """
    data, begin, slots = spellings
    for row in range(words.shape[0]):
        for k in range(words.shape[1]):
            first, last = lines.starts[row, k], lines.ends[row, k]
            word = slots[find_slot(text, first, last, hash_word(text, first, last), data, begin, slots), 0]
            if word < 0:
                return row
            words[row, k] = word
    return -1


@kernel
def find_contexts(word: Any, begin: Any, first: int, words: Any) -> Any:
    """Return the context of each row as its index among the strings of that length, from node `first` on; or -1."""
    contexts = np.empty(words.shape[0], np.int32)
    for row in range(words.shape[0]):
        node = 1 + words[row, 0]
        for k in range(1, words.shape[1] - 1):
            node = find_child(word, begin, node, words[row, k])
            if node < 0:
                break
        contexts[row] = node - first if node >= 0 else -1
    return contexts


# -- kernels: writing ----------------------------------------------------------------------------------------------


@kernel
def write_lines(
    table: Any, spellings: Any, log_members: float, max_line_bytes: int, path: Any, last: int, out: Any
) -> int:
    """Write n-grams from the end of `path` up to `last`, as many as fit into `out`; return the number of bytes.

    `path` has the prefixes of the next n-gram, itself the last, and is updated.  # (order,)
    `log_members` is the log of the number of words in the class `<unk>`, of which one is written.
    """
    n, used = path.size, 0
    while path[n - 1] < last and used + max_line_bytes <= out.size:
        node = path[n - 1]
        for k in range(n - 2, -1, -1):  # an n-gram after the children of its context belongs to a later context
            while table.begin[path[k] + 1] <= path[k + 1]:
                path[k] += 1
        value = stored_log_prob(table, node) - (log_members if table.word[node] == UNK else 0.0)
        used = _write_number(out, used, min(value, 0.0))
        for k in range(n):
            out[used] = TAB if k == 0 else SPACE
            w = table.word[path[k]]
            start, end = spellings.begin[w], spellings.begin[w + 1]
            for i in range(end - start):
                out[used + 1 + i] = spellings.data[start + i]
            used += 1 + end - start
        if node < table.log_backoff.size and table.log_backoff[node] != 0.0:
            out[used] = TAB
            used = _write_number(out, used + 1, table.log_backoff[node])
        out[used] = NEWLINE
        used += 1
        path[n - 1] += 1
    return used


@kernel
def _write_number(out: Any, used: int, natural: float) -> int:
    """Write a natural logarithm as log10 with seven decimals, in unsigned arithmetic, which divides fastest."""
    value = min(max(natural / LOG_10, ZERO), -ZERO)
    units = np.uint64(abs(value) * SCALE + 0.5)
    if units == 0:
        out[used] = DIGIT_0
        return used + 1
    if value < 0.0:
        out[used] = MINUS
        used += 1
    whole = np.uint32(units // np.uint64(SCALE))
    part = np.uint32(units - np.uint64(whole) * np.uint64(SCALE))
    used = _write_digits(out, used, whole, 1 if whole < 10 else 2)
    if part == 0:
        return used
    out[used] = POINT
    return _write_digits(out, used + 1, part, DECIMALS)


@kernel
def _write_digits(out: Any, used: int, value: Any, digits: int) -> int:
    for k in range(used + digits - 1, used - 1, -1):
        tenth = value // np.uint32(10)
        out[k] = np.uint8(DIGIT_0) + np.uint8(value - tenth * np.uint32(10))
        value = tenth
    return used + digits
