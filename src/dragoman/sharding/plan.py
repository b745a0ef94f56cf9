"""The plan of a sharded run: which lines of a text belong to which shard.

The boundaries of shards lie between blocks of lines, the batches in which the whole text would be processed. So every
batch has the same lines in a sharded and in an unsharded run, and so the same results to the last digit. A shard ends with
the first block at or after its share of the bytes: sizes differ from an equal share by less than one block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, zip_longest
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dragoman.core.errors import DataError
from dragoman.data.formats import check_utf8
from dragoman.data.line_blocks import LineText, count_lines, is_packed, iter_blocks, read_chunks

OnProgress = Callable[[int, int], None]  # (bytes read, all bytes)


class Record(BaseModel):
    """A part of a JSON file that dragoman writes and reads."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ByteRange(Record):
    """A part of a file; of a .gz file, of its unpacked bytes."""

    offset: int
    size: int
    sha256: str


class Shard(Record):
    """Consecutive lines of a text, or of parallel texts."""

    first_line: int  # counted from 1, without the header of a table
    lines: int
    ranges: tuple[ByteRange, ...]  # one for each text

    @property
    def size(self) -> int:
        return sum(part.size for part in self.ranges)


def plan_shards(
    texts: Sequence[LineText], shards: int, block_lines: int, on_progress: OnProgress = lambda done, total: None
) -> tuple[Shard, ...]:
    """Divide a text, or parallel texts line by line, into shards of about the same number of bytes.

    The texts are read once (.gz files twice) and checked: bytes that are not UTF-8 are an error. The result depends only
    on the arguments and the contents of the files.
    """
    for text in texts:
        text.check_start()
    total = sum(_data_size(text) for text in texts)
    planned, current = list[_ShardBuilder](), _ShardBuilder([text.header_bytes for text in texts])
    size, first_line = 0, 1
    for blocks in _parallel_blocks(texts, block_lines):
        current.add(texts, blocks, first_line)
        first_line += count_lines(blocks[0])
        size += sum(map(len, blocks))
        on_progress(size, total)
        while len(planned) < shards - 1 and size * shards >= total * (len(planned) + 1):
            planned.append(current)
            current = current.next()
    while len(planned) < shards:  # the last one, and empty ones if there are fewer blocks than shards
        planned.append(current)
        current = current.next()
    firsts = accumulate((builder.lines for builder in planned), initial=1)
    return tuple(builder.shard(first) for builder, first in zip(planned, firsts, strict=False))


class _ShardBuilder:
    """A shard to which blocks are added."""

    def __init__(self, offsets: Sequence[int]):
        self.offsets, self.sizes, self.lines = list(offsets), [0] * len(offsets), 0
        self._digests = [hashlib.sha256() for _ in offsets]

    def next(self) -> _ShardBuilder:
        """Return an empty shard that begins where this one ends."""
        return _ShardBuilder([offset + size for offset, size in zip(self.offsets, self.sizes, strict=True)])

    def add(self, texts: Sequence[LineText], blocks: Sequence[bytes], first_line: int) -> None:
        """Add a block of each text. Raises an error with the line of the file if it is not UTF-8."""
        for number, (text, block) in enumerate(zip(texts, blocks, strict=True)):
            check_utf8(block, text.path, first_line + text.headers)
            self.sizes[number] += len(block)
            self._digests[number].update(block)
        self.lines += count_lines(blocks[0])

    def shard(self, first_line: int) -> Shard:
        digests = [digest.hexdigest() for digest in self._digests]
        ranges = zip(self.offsets, self.sizes, digests, strict=True)
        parts = tuple(ByteRange(offset=offset, size=size, sha256=sha256) for offset, size, sha256 in ranges)
        return Shard(first_line=first_line, lines=self.lines, ranges=parts)


def _data_size(text: LineText) -> int:
    """Return the number of unpacked bytes below the header."""
    if not is_packed(text.path):
        return max(0, Path(text.path).stat().st_size - text.header_bytes)
    return sum(map(len, read_chunks(text.path, text.header_bytes)))


def _parallel_blocks(texts: Sequence[LineText], block_lines: int) -> Iterator[Sequence[bytes]]:
    """Yield blocks of the same lines of all texts, which must have the same number of lines."""
    first_line = 1
    chunks = (read_chunks(text.path, text.header_bytes) for text in texts)
    for blocks in zip_longest(*(iter_blocks(part, block_lines) for part in chunks), fillvalue=b""):
        counts = [count_lines(block) for block in blocks]
        if min(counts) < max(counts):
            shorter, longer = texts[counts.index(min(counts))].path, texts[counts.index(max(counts))].path
            problem = f"{shorter} has {first_line - 1 + min(counts):,} lines and {longer} has more"
            raise DataError(f"{problem}; each line must belong to the same line of the other file")
        first_line += counts[0]
        yield blocks
