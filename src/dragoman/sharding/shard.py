"""One shard of a run: reading its lines, and writing its output, completely or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from dragoman.core.errors import DataError, DragomanError
from dragoman.data.formats import LineCheck, NumberedLine, number_lines
from dragoman.data.line_blocks import LineText, read_chunks, split_block
from dragoman.io.files import LockedError, atomic_file, directory_lock, remove_file, write_text
from dragoman.io.storage import FileStamp
from dragoman.sharding.manifest import MANIFEST_FILE, Manifest, read_record
from dragoman.sharding.plan import Record, Shard

HASH_BYTES = 1 << 20  # read at a time


class ShardResult(Record):
    """What is known of the output of a finished shard, in a JSON file beside it."""

    manifest: str  # digest of the manifest
    lines: int  # of the text
    output_lines: int
    size: int  # bytes of the output
    sha256: str


@dataclass(frozen=True)
class ShardTask:
    """One shard of a run, which this process works on."""

    directory: Path
    manifest: Manifest
    number: int  # counted from 1
    texts: Sequence[LineText]

    @property
    def shard(self) -> Shard:
        return self.manifest.shards[self.number - 1]

    @property
    def path(self) -> Path:
        """The output."""
        return self.directory / self.manifest.output_name(self.number)

    @property
    def name(self) -> str:
        """The shard in messages."""
        return f"shard {self.number} of {len(self.manifest.shards)}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let no other process work on this shard."""
        try:
            with directory_lock(self.path):
                yield
        except LockedError as error:
            problem = f"{self.name} is being processed by another program ({error.holder})"
            raise DataError(f"{self.path}: {problem}; wait until it has ended") from None

    def is_finished(self) -> bool:
        """Return whether the output exists, is complete and belongs to this run."""
        file = result_file(self.path)
        if not file.is_file() or not self.path.is_file():
            return False
        result = read_record(file, ShardResult)
        return result.manifest == self.manifest.digest and result.size == self.path.stat().st_size

    def check_texts(self) -> None:
        """Raise an error if the lines of this shard have changed since the manifest was written."""
        for text, part in zip(self.texts, self.shard.ranges, strict=True):
            digest = hashlib.sha256()
            for chunk in read_chunks(text.path, part.offset, part.size):
                digest.update(chunk)
            if digest.hexdigest() != part.sha256:
                raise self._changed(text.path)

    def _changed(self, path: str) -> DataError:
        lines = f"lines {self.shard.first_line:,} to {self.shard.first_line + self.shard.lines - 1:,}"
        remedy = "restore the text, or name another directory with -o and run all shards again"
        return DataError(f"{path}: {lines} have changed since {self.directory / MANIFEST_FILE} was written; {remedy}")

    def read_blocks(self, block_lines: int | None = None) -> Iterator[tuple[bytes, ...]]:
        """Yield the lines of each text in blocks, by default those of the plan; columns and keys are selected."""
        lines, first = block_lines or self.manifest.job.block_lines, self.shard.first_line
        parts = zip(self.texts, self.shard.ranges, strict=True)
        yield from zip(*(text.read_blocks(lines, part.offset, part.size, first) for text, part in parts), strict=True)

    def read_line_batches(
        self, check: LineCheck | None = None, batch_lines: int | None = None
    ) -> Iterator[list[NumberedLine]]:
        """Yield the lines of a single text, numbered as in the whole text; see `number_lines`."""
        blocks = (split_block(block) for (block,) in self.read_blocks(batch_lines))
        yield from number_lines(blocks, self.texts[0].path, check, self.shard.first_line, batch_lines)

    @contextmanager
    def output(self) -> Iterator[TextIO]:
        """Yield the file to write to. It appears at the end, if there was no error, and then what is known of it."""
        stamps = [FileStamp.of(Path(text.path)) for text in self.texts]
        self.check_texts()
        remove_file(result_file(self.path))
        with atomic_file(self.path) as temporary:
            with temporary.open("w", encoding="utf-8", newline="\n") as stream:
                yield stream
            for stamp in stamps:
                if not stamp.is_current():
                    raise DataError(f"{stamp.path}: was changed while {self.name} was processed; run it again")
            result = self._result(temporary)
        write_text(result_file(self.path), f"{result.model_dump_json()}\n")

    def _result(self, path: Path) -> ShardResult:
        """Return what is known of a complete output."""
        digest, output_lines, size = hashlib.sha256(), 0, 0
        with path.open("rb") as file:
            while chunk := file.read(HASH_BYTES):
                digest.update(chunk)
                output_lines += chunk.count(b"\n")
                size += len(chunk)
        lines = self.shard.lines
        if self.manifest.job.one_line_each and output_lines != lines:
            raise DragomanError(
                f"{self.path}: {output_lines:,} lines for {lines:,} lines of the text; nothing is written"
            )
        return ShardResult(
            manifest=self.manifest.digest, lines=lines, output_lines=output_lines, size=size, sha256=digest.hexdigest()
        )


def result_file(output: Path) -> Path:
    """Return the file that says what is known of an output."""
    return output.with_name(f"{output.name}.done.json")
