"""How much is read, sorted and computed at a time within a memory budget, and how much disk space training takes."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import dataclass
from pathlib import Path

from dragoman.core.errors import DataError, file_errors
from dragoman.core.memory import format_amount, format_bytes
from dragoman.core.threads import available_cores
from dragoman.io.files import real_path
from dragoman.ngram.disk.bucket import bytes_per_record
from dragoman.ngram.disk.records import RecordFormat
from dragoman.ngram.trie import node_type, word_type

MEGABYTE = 1 << 20
MIN_BUDGET = 64 * MEGABYTE  # without the vocabulary
BYTES_PER_TYPE = 250  # a distinct word of the text, while it is read
BYTES_PER_WORD = 300  # of the vocabulary, and 16 for each order
MAX_BUCKETS = 1 << 14  # more would be written in too small pieces
BYTES_PER_POSITION = 16  # of the text: its id and its bucket; its record is there twice
BYTES_PER_NGRAM = 64  # of a block that is smoothed
LOWER_BYTES = 8  # of an n-gram: its position and the probability of its suffix, in the file that they are sorted by
BYTES_PER_TOKEN_IN_MEMORY = 40  # for counting and smoothing in memory; most texts take more
SAMPLE_BYTES = 1 << 20  # of a text, read to estimate the number of its tokens


@dataclass(frozen=True)
class MemoryPlan:
    """Sizes of what is in memory at a time."""

    chunk_bytes: int = 1 << 24  # of text
    chunk_tokens: int = 1 << 23  # distributed by their first words
    bucket_records: int = 1 << 20  # sorted by one thread
    block_ngrams: int = 1 << 22  # smoothed
    range_ngrams: int = 1 << 24  # whose suffixes' probabilities are in memory

    @classmethod
    def of_budget(cls, budget: int, order: int = 5, row_bytes: int = 16) -> MemoryPlan:
        """Return a plan for a budget in bytes, without Python, its libraries and the vocabulary.

        Args:
            budget: the bytes.
            order: of the n-grams.
            row_bytes: of a record (see `RecordFormat`).
        """
        if budget < MIN_BUDGET:
            raise DataError(f"--memory {format_amount(budget)}: give at least {format_amount(MIN_BUDGET)}")
        return cls(
            chunk_bytes=min(1 << 25, budget // 32),
            chunk_tokens=min(1 << 24, budget // 4 // (BYTES_PER_POSITION + 2 * row_bytes)),
            bucket_records=min(1 << 22, int(budget / (3 * bytes_per_record(order, row_bytes) * available_cores()))),
            block_ngrams=min(1 << 22, budget // 4 // BYTES_PER_NGRAM),
            range_ngrams=min(1 << 24, budget // 32),
        )


def vocabulary_bytes(types: int, vocab_size: int, order: int) -> int:
    """Return the memory that the distinct words of a text and the vocabulary take."""
    return BYTES_PER_TYPE * types + (BYTES_PER_WORD + 16 * order) * vocab_size


def check_vocabulary(budget: int, types: int, vocab_size: int, order: int) -> None:
    """Raise an error if the words of a text do not fit into a memory budget."""
    needed = MIN_BUDGET + vocabulary_bytes(types, vocab_size, order)
    if budget < needed:
        reason = f"the text has {types:,} distinct words, the vocabulary {vocab_size:,}"
        raise DataError(f"--memory {format_amount(budget)}: {reason}; give at least {format_amount(needed)}")


def check_types(budget: int, types: int, vocab_size: int, order: int) -> None:
    """Raise an error if the distinct words of the part of a text that was read do not fit into a memory budget."""
    needed = MIN_BUDGET + vocabulary_bytes(types, vocab_size, order)
    if budget < needed:
        reason = f"the text has more than {types:,} distinct words; give more than {format_amount(needed)}"
        raise DataError(f"--memory {format_amount(budget)}: {reason}, or split it into tokens with --vocab")


@dataclass(frozen=True)
class DiskSpace:
    """An upper bound of the space on disk, in bytes: of temporary files and of the model."""

    temporary: int
    model: int

    @classmethod
    def needed(cls, tokens: int, vocab_size: int, order: int) -> DiskSpace:
        """Return the bound for a text, in which each token begins a new n-gram of every order."""
        word, record = word_type(vocab_size).itemsize, RecordFormat.of(order, vocab_size).row_bytes
        levels = max(0, order - 2) * (2 * word + 3) + (word + 3)
        child = node_type(vocab_size + 2 + (order - 1) * tokens).itemsize
        model = (order - 1) * (word + 4) + max(0, order - 2) * (4 + child)
        temporary = max(4 + record, levels + 2 * LOWER_BYTES)
        return cls(tokens * temporary, tokens * model + 32 * vocab_size)

    def check(self, scratch: Path, output: Path) -> None:
        """Raise an error if there is too little free space for the temporary files, or for the model."""
        scratch, output = _existing(scratch), _existing(output.parent)
        same = scratch.stat().st_dev == output.stat().st_dev
        remedy = "free some space, name another directory with --tmp, or lower --order"
        for place, needed, what in (
            (scratch, self.temporary + self.model * same, "temporary files" + " and the model" * same),
            (output, self.model, "the model"),
        ):
            free = shutil.disk_usage(place).free
            if needed > free:
                sizes = f"up to {format_bytes(needed)} are needed for {what}, {format_bytes(free)} are free"
                raise DataError(f"{place}: {sizes}; {remedy}")


def estimate_tokens(path: str | Path) -> int:
    """Estimate the number of tokens of a text from its first megabyte; 0 if it is not a file."""
    if str(path) == "-" or not Path(path).is_file():
        return 0
    with file_errors(Path(path)), Path(path).open("rb") as raw:
        packed = Path(path).suffix == ".gz"
        sample = (gzip.GzipFile(fileobj=raw) if packed else raw).read(SAMPLE_BYTES)
        tokens = len(sample.split()) + sample.count(b"\n")
        share = Path(path).stat().st_size / max(1, raw.tell() if packed else len(sample))
        return round(tokens * max(1.0, share))


def memory_needed(path: str | Path) -> int:
    """Return a low estimate of the memory that training in memory takes; 0 if the text is not a file."""
    return BYTES_PER_TOKEN_IN_MEMORY * estimate_tokens(path)


def _existing(path: Path) -> Path:
    """Return the nearest directory above a path, or the path itself, that exists."""
    path = real_path(path)
    return next(parent for parent in (path, *path.parents) if parent.is_dir())
