"""Writing training, development and test data cut from a corpus. Rows of TSV and JSONL files stay whole."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.core.errors import DataError
from dragoman.data.formats import (
    SUBTITLES,
    decode_lines,
    display_name,
    has_fields,
    looks_like_tsv,
    read_lines,
    read_utf8,
    type_by_name,
)
from dragoman.data.held_out import HeldOut
from dragoman.data.languages import language_from_path
from dragoman.data.pair_files import pair_format
from dragoman.data.tables import HEADER, Table
from dragoman.data.tokenizer import LinePairs
from dragoman.io.files import atomic_file


@dataclass(frozen=True)
class SplitInput:
    """A corpus to divide: the rows that are written, and the texts by which they are compared."""

    files: tuple[str, ...]  # read
    names: tuple[str, ...]  # of files such as those written, whose endings they get
    rows: tuple[Sequence[str], ...]  # of each file written
    sides: tuple[Sequence[str], ...]  # one text, or the source and the target
    headers: tuple[str, ...] = ()  # the line that names the columns, for each file written; none: they have no names

    @property
    def unit(self) -> str:
        return "pairs" if len(self.sides) > 1 else "lines"


def has_pairs(file: str, field: str | None = None) -> bool:
    """Return whether a file that is given as a text has both sides of sentence pairs."""
    return file != "-" and field is None and pair_format(file) not in (None, "jsonl")


def text_to_split(file: str, field: str | None = None) -> SplitInput:
    """Read a text, which may be a column or key of a file."""
    if type_by_name(file) in SUBTITLES:
        lines = read_lines(file, field)
        return SplitInput((file,), (f"x.{language_from_path(file) or 'txt'}",), (lines,), (lines,))
    raw = read_utf8(file)
    rows = decode_lines(raw)
    if field is not None and type_by_name(file) != "jsonl" and looks_like_tsv(raw):
        table = Table.parse(raw, display_name(file), [field])
        selected = list(table.select([table.column(field)]))
        lines = ["".join(row.cells) for row in selected if row.reason != HEADER]  # unusable rows count as blank
        headers = (rows[0],) if table.has_header else ()
        return SplitInput((file,), (file,), (rows[len(headers) :],), (lines,), headers)
    lines = read_lines(file, field) if field is not None or has_fields(file) else rows
    return SplitInput((file,), (file,), (rows,), (lines,))


def pairs_to_split(pairs: LinePairs, files: Sequence[str]) -> SplitInput:
    """Return what to write for sentence pairs: whole rows of TSV and JSONL files, otherwise two texts.

    Args:
        files: the file that the pairs are read from, or two files.
    """
    sides = (pairs.source, pairs.target)
    distinct = tuple(dict.fromkeys(files))
    if len(distinct) == 1 and pair_format(distinct[0]) in ("tsv", "jsonl"):
        rows = decode_lines(read_utf8(distinct[0]))
        unused = {unit.line: unit.reason for unit in pairs.rejected}
        headers: tuple[str, ...] = (rows[0],) if unused.get(1) == HEADER else ()
        return SplitInput(
            distinct, distinct, ([row for line, row in enumerate(rows, 1) if line not in unused],), sides, headers
        )
    if all(map(has_fields, distinct)):
        tables = [decode_lines(read_utf8(file)) for file in distinct]
        headers = tuple(rows[0] for rows in tables if len(rows) > len(pairs.source))
        if len(headers) in (0, len(tables)):
            return SplitInput(distinct, distinct, tuple(rows[bool(headers) :] for rows in tables), sides, headers)
    names = distinct
    if len(distinct) == 1 or any(type_by_name(file) in SUBTITLES for file in distinct):
        endings = pairs.languages if all(pairs.languages) else ("src", "tgt")
        names = tuple(f"x.{ending}" for ending in endings)
    return SplitInput(distinct, names, sides, sides)


def part_names(files: Sequence[str], part: str) -> list[str]:
    """Return the names of the files of a part, with the endings of the files it is cut from.

    >>> part_names(["all.de", "all.en"], "dev"), part_names(["de.txt.gz", "en.txt.gz"], "dev")
    (['dev.de', 'dev.en'], ['dev.de.txt.gz', 'dev.en.txt.gz'])
    >>> part_names(["corpus"], "dev"), part_names(["-"], "dev")
    (['dev.corpus'], ['dev.txt'])
    """
    names = ["x.txt" if file == "-" else Path(file).name for file in files]
    gzipped = [".gz" if name.endswith(".gz") else "" for name in names]
    names = [name.removesuffix(".gz") for name in names]
    endings = [Path(name).suffix or f".{name}" for name in names]
    if len(set(endings)) < len(endings):
        endings = [f".{name}" for name in names]
    return [f"{part}{ending}{packed}" for ending, packed in zip(endings, gzipped, strict=True)]


def write_parts(
    data: SplitInput,
    divided: HeldOut,
    parts: Sequence[str],
    directory: Path,
    prefix: str = "",
    *,
    replace: bool = False,
) -> dict[str, list[Path]]:
    """Write the training rows and the rows of each held-out part, in their order. Returns the files of each part.

    Args:
        parts: the names of the held-out parts; parts without rows are not written.
    """
    selected = {"train": divided.train, **dict(zip(parts, divided.parts, strict=True))}
    paths = {
        part: [directory / name for name in part_names(data.names, f"{prefix}{part}")]
        for part, indices in selected.items()
        if len(indices)
    }
    check_new_files(data.files, [path for files in paths.values() for path in files], replace=replace)
    for part, files in paths.items():
        for number, (path, rows) in enumerate(zip(files, data.rows, strict=True)):
            lines = [*data.headers[number : number + 1], *(rows[index] for index in selected[part])]
            text = "".join(f"{line}\n" for line in lines).encode()
            with atomic_file(path) as temporary:
                temporary.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    return paths


def check_new_files(inputs: Sequence[str], outputs: Sequence[Path], *, replace: bool) -> None:
    """Raise an error if a file to write is an input, or exists and may not be replaced."""
    if len(set(outputs)) < len(outputs):
        raise DataError(
            f"{display_name(inputs[0])} and {display_name(inputs[1])} have the same name; rename one of them"
        )
    sources = {Path(file).resolve() for file in inputs}
    for path in outputs:
        if path.resolve() in sources:
            raise DataError(f"{path}: would replace the text that is divided; choose another directory or a --prefix")
        if path.is_dir() or (path.exists() and not replace):
            raise DataError(f"{path}: exists already; choose another directory, a --prefix, or --force to replace it")
