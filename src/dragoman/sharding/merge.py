"""Merging the outputs of all shards of a run into one file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from dragoman.core.errors import DataError, file_errors
from dragoman.io.files import output_file
from dragoman.sharding.manifest import MANIFEST_FILE, Manifest, read_manifest, read_record
from dragoman.sharding.plan import OnProgress
from dragoman.sharding.shard import ShardResult, result_file

COPY_BYTES = 1 << 20  # at a time


class Merged(NamedTuple):
    """What was merged."""

    shards: int
    lines: int  # of the text
    output_lines: int


def check_shards(path: Path) -> tuple[Manifest, list[tuple[Path, ShardResult]]]:
    """Return the manifest of a run with the outputs of its shards in order, and what is known of them.

    Raises an error if a shard is missing, or if an output belongs to another run: to other texts, models or options.
    """
    manifest = read_manifest(path)
    directory = path if path.is_dir() else path.parent
    outputs = [directory / manifest.output_name(number) for number in range(1, len(manifest.shards) + 1)]
    missing = [
        number for number, output in enumerate(outputs, 1) if not (output.is_file() and result_file(output).is_file())
    ]
    if missing:
        names = f"shard{'s' if len(missing) > 1 else ''} {number_ranges(missing)} of {len(outputs):,}"
        raise DataError(f"{directory}: not finished: {names}; run the same command with --shard for them")
    results = [read_record(result_file(output), ShardResult) for output in outputs]
    next_line = 1
    for output, shard, result in zip(outputs, manifest.shards, results, strict=True):
        if result.manifest != manifest.digest:
            problem = "belongs to a run with another text, model or option than manifest.json"
            raise DataError(f"{output}: {problem}; remove it, and run this shard again")
        if shard.first_line != next_line or result.lines != shard.lines:
            raise DataError(f"{output}: does not continue at line {next_line:,}; run this shard again")
        next_line += shard.lines
    return manifest, list(zip(outputs, results, strict=True))


def merge_shards(path: Path, output: Path, on_progress: OnProgress = lambda done, total: None) -> Merged:
    """Concatenate the outputs of all shards of a run, in order. The file is written completely or not at all.

    Args:
        path: the directory of the shards, or its manifest.
        output: the file to write, compressed if its name ends in .gz.
        on_progress: called with the bytes copied.

    Returns:
        The numbers of shards, lines of the text and lines of the output.
    """
    manifest, parts = check_shards(path)
    directory = parts[0][0].parent
    files = {directory / MANIFEST_FILE, *(file for part, _ in parts for file in (part, result_file(part)))}
    if output.resolve() in {file.resolve() for file in files}:
        raise DataError(f"{output}: is a file of the shards; choose another name")
    done, total = 0, sum(result.size for _, result in parts)
    with output_file(output) as target:
        for part, result in parts:
            for chunk in _checked_chunks(part, result):
                target.write(chunk)
                done += len(chunk)
                on_progress(done, total)
    return Merged(len(parts), manifest.lines, sum(result.output_lines for _, result in parts))


def _checked_chunks(path: Path, result: ShardResult) -> Iterator[bytes]:
    """Yield the contents of an output. At the end, raise an error if they are not what the shard wrote."""
    digest = hashlib.sha256()
    with file_errors(path), path.open("rb") as file:
        while chunk := file.read(COPY_BYTES):
            digest.update(chunk)
            yield chunk
    if digest.hexdigest() != result.sha256:
        raise DataError(f"{path}: changed since it was written; remove it, and run this shard again")


def number_ranges(numbers: Iterable[int]) -> str:
    """Return ascending numbers in the notation of Slurm's arrays.

    >>> number_ranges([1, 2, 3, 7, 9, 10])
    '1-3,7,9-10'
    """
    values = list(numbers)
    starts = [value for before, value in pairwise([-1, *values]) if value != before + 1]
    ends = [value for value, after in pairwise([*values, -1]) if after != value + 1]
    return ",".join(f"{start}-{end}" if start < end else str(start) for start, end in zip(starts, ends, strict=True))
