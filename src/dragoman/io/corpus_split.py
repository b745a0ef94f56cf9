"""Writing training, development and test data cut from text files. Rows of TSV and JSONL files stay whole."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.core.errors import DataError
from dragoman.data.formats import display_name, read_lines, read_parallel_lines, read_utf8
from dragoman.data.held_out import HeldOut
from dragoman.data.pair_files import pair_format, tsv_fields
from dragoman.io.storage import atomic_file


@dataclass(frozen=True)
class SplitInput:
    """Files to divide: their rows, and the texts by which rows are compared."""

    files: tuple[str, ...]  # one, or two parallel ones
    rows: tuple[list[str], ...]  # of each file
    headers: tuple[str | None, ...]  # the first line of each file, if it names the columns
    sides: tuple[list[str], ...]  # one text, or the source and the target


def read_split_input(files: Sequence[str], fields: Sequence[str | None]) -> SplitInput:
    """Read a text, parallel texts, or a TSV or JSONL file with both.

    Args:
        files: one file or two parallel ones. The same file twice is one file with both sides.
        fields: the column or key of each side. Without them, a TSV file has both sides (see `tsv_fields`).
    """
    if len(files) == 1 and not any(fields) and _has_two_columns(files[0]):
        fields = tsv_fields(files[0])
    if len(files) == 1 and len(fields) > 1 and all(fields):
        files = [files[0], files[0]]
    source = read_lines(files[0], fields[0])
    others = (
        read_parallel_lines(file, len(source), files[0], field)
        for file, field in zip(files[1:], fields[1:], strict=False)
    )
    distinct = tuple(dict.fromkeys(files))
    headers, rows = zip(*(_read_rows(file, len(source)) for file in distinct), strict=True)
    return SplitInput(distinct, rows, headers, (source, *others))


def _has_two_columns(file: str) -> bool:
    """Whether a file is TSV with both sides."""
    return file != "-" and pair_format(file) == "tsv" and b"\t" in read_utf8(file).partition(b"\n")[0]


def _read_rows(file: str, count: int) -> tuple[str | None, list[str]]:
    """Return the header of a file, if it has one, and its rows."""
    rows = [row.removesuffix("\r") for row in read_utf8(file).decode().removesuffix("\n").split("\n")]
    return (rows[0], rows[1:]) if len(rows) > count else (None, rows)


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
        part: [directory / name for name in part_names(data.files, f"{prefix}{part}")]
        for part, indices in selected.items()
        if len(indices)
    }
    check_new_files(data.files, [path for files in paths.values() for path in files], replace=replace)
    for part, files in paths.items():
        for path, rows, header in zip(files, data.rows, data.headers, strict=True):
            lines = [*([] if header is None else [header]), *(rows[index] for index in selected[part])]
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
