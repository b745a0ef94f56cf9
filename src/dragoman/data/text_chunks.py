"""Texts larger than memory: read once, a chunk of whole lines at a time.

The words of each chunk are numbered in order of first use, over all chunks. These numbers and the lengths of the lines
go to files, so that a text need not be read again when its vocabulary is known.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, error_at_line, file_errors
from dragoman.core.types import Json
from dragoman.data.array_files import ArrayFile
from dragoman.data.corpus import Corpus
from dragoman.data.detokenize import SAMPLE_LINES, looks_tokenised
from dragoman.data.formats import (
    BOM,
    GZIP_MAGIC,
    SUBTITLES,
    check_utf8,
    decode_lines,
    display_name,
    has_fields,
    open_stdin,
    type_by_name,
)
from dragoman.data.ranges import offsets_of
from dragoman.data.scanner import scan
from dragoman.data.segmenters import ALGORITHMS, CharSegmenter, Segmenter, WordSegmenter, parse_spec
from dragoman.data.vocabulary import END, SPECIALS, START, UNK, Vocab

MOSTLY_KNOWN = 0.9  # share of known words in a text that is already split into tokens
LENGTHS_READ = 1 << 20  # lines whose lengths are in memory
Report = Callable[[int], None]  # is called with the number of bytes read so far
CheckTypes = Callable[[int], None]  # is called with the number of distinct words so far, to stop if they are too many


class TextChunk(NamedTuple):
    """Whole lines of a text."""

    text: bytes
    first_line: int  # counted from 1


def read_chunks(path: str | Path, chunk_bytes: int, report: Report = lambda done: None) -> Iterator[TextChunk]:
    """Yield a text as valid UTF-8: a file, unpacked if its name ends in .gz, or `-` for standard input.

    Args:
        path: the file. It must be plain text: a column or key cannot be selected.
        chunk_bytes: size of a chunk, up to the next line break.
        report: is called with the number of bytes that were read from the file, before unpacking.
    """
    source = display_name(path)
    if has_fields(path) or type_by_name(path) in SUBTITLES:
        raise DataError(f"{source}: only plain text and .gz can be read in parts; convert it to one sentence per line")
    line, is_first = 1, True
    with ExitStack() as files:
        with file_errors(Path(path)):
            raw: IO[bytes] = open_stdin() if str(path) == "-" else files.enter_context(Path(path).open("rb"))
            file = gzip.GzipFile(fileobj=raw) if Path(path).suffix == ".gz" else raw
        while True:
            with file_errors(Path(path)):
                text = file.read(chunk_bytes)
                text += file.readline() if text[-1:] not in (b"", b"\n") else b""
                report(raw.tell() if raw.seekable() else 0)
            if is_first:
                text, is_first = text.removeprefix(BOM), False
                _check_start(text, source, is_stdin=str(path) == "-")
            if not text:
                return
            check_utf8(text, source, line)
            yield TextChunk(text, line)
            line += text.count(b"\n")


def _check_start(text: bytes, source: str, *, is_stdin: bool) -> None:
    if not text:
        raise DataError(f"{source}: empty; give a file with one sentence per line")
    if text.startswith(GZIP_MAGIC):
        remedy = "pipe it through zcat" if is_stdin else "give it a name that ends in .gz"
        raise DataError(f"{source}: this is gzip data; {remedy}")


@dataclass
class NumberedText:
    """A text on disk: each token as the index of its type, a distinct word.

    `scan_text` makes it. It becomes a `StoredCorpus` with a vocabulary.
    """

    tokens: ArrayFile  # (tokens,) index of the type
    lengths: ArrayFile  # (lines,) tokens per line
    types: list[str] = field(default_factory=list)  # in order of first use
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # (types,)

    def delete(self) -> None:
        """Remove the files."""
        self.tokens.delete()
        self.lengths.delete()


def choose_segmenter(path: str | Path, units: str, chunk_bytes: int) -> Segmenter:
    """Return the segmenter of these units, with `auto` chosen by the text as `Corpus.read` does.

    Subwords are not learned here, because all of the text would have to be in memory.
    """
    kind, _ = parse_spec(units)
    remedy = "--vocab with a model of subwords that was trained on a part of the text"
    if kind in ALGORITHMS:
        raise DataError(f"--units {units}: subwords cannot be learned in parts of a text; give {remedy}")
    if kind == "auto":
        if not _can_be_read_again(path):
            problem = "can be read only once, so units cannot be chosen by the text; give --units word"
            raise DataError(f"{display_name(path)}: {problem}")
        lines = sum(chunk.text.count(b"\n") for chunk in read_chunks(path, chunk_bytes))
        step = max(1, (lines + 1) // SAMPLE_LINES)
        sample, number = list[str](), 0
        for chunk in read_chunks(path, chunk_bytes):
            raw = chunk.text.removesuffix(b"\n").split(b"\n")
            sample += [line.decode() for line in raw[-number % step :: step]]
            number += len(raw)
            ends_with_break = chunk.text.endswith(b"\n")
        if ends_with_break and number % step == 0:
            sample.append("")  # what is after the last line break
        if not looks_tokenised(sample):
            raise DataError(f"{display_name(path)}: not split into words; give --units word or char, or {remedy}")
    return CharSegmenter() if kind == "char" else WordSegmenter()


def scan_text(
    path: str | Path,
    directory: Path,
    chunk_bytes: int,
    segmenter: Segmenter,
    report: Report = lambda done: None,
    *,
    reserved: tuple[str, ...] = (),
    check_types: CheckTypes = lambda types: None,
) -> NumberedText:
    """Number the tokens of a text. A line with one of the `reserved` words is an error."""
    text = NumberedText(ArrayFile(directory / "tokens", np.int32), ArrayFile(directory / "lengths", np.int32))
    index: dict[str, int] = {}
    first_lines: dict[str, int] = {}  # of words that a training text must not have
    for chunk in read_chunks(path, chunk_bytes, report):
        scanned = scan(_tokens_as_text(chunk.text, segmenter))
        for word in reserved:
            if word not in first_lines and word in scanned.types:
                first_lines[word] = chunk.first_line + scanned.first_line_with(word) - 1
        new_index = np.array([index.setdefault(word, len(index)) for word in scanned.types], np.int32)
        check_types(len(index))
        text.counts = np.concatenate([text.counts, np.zeros(len(index) - len(text.counts), np.int64)])
        text.counts[new_index] += scanned.counts
        text.tokens.append(new_index[scanned.tokens])
        text.lengths.append(np.diff(scanned.offsets))
    for word in reserved:
        if word in first_lines:
            problem = "is reserved in training text: sentence boundaries are added automatically; remove it"
            raise error_at_line(display_name(path), first_lines[word], f"{word} {problem}")
    if not len(text.tokens):
        raise DataError(f"{display_name(path)}: the text has no words")
    text.types = list(index)
    return text


def scan_with_vocab(
    path: str | Path,
    directory: Path,
    chunk_bytes: int,
    vocab: Vocab,
    report: Report = lambda done: None,
    *,
    check_types: CheckTypes = lambda types: None,
) -> NumberedText:
    """Number the tokens of a text that is split as a vocabulary says, unless it is already split into its tokens."""
    segmenter, reserved = vocab.segmenter, SPECIALS[:UNK]
    if segmenter.kind != "word":
        if not _can_be_read_again(path):
            raise DataError(f"{display_name(path)}: can be read only once; give a file, or a vocabulary of words")
        segmenter = WordSegmenter() if _is_split_into_tokens(path, chunk_bytes, vocab, report) else segmenter
        reserved = ()
    return scan_text(path, directory, chunk_bytes, segmenter, report, reserved=reserved, check_types=check_types)


def _is_split_into_tokens(path: str | Path, chunk_bytes: int, vocab: Vocab, report: Report) -> bool:
    """Return whether most words of a text are tokens of a vocabulary. Its distinct words are not kept."""
    words = known = 0
    for chunk in read_chunks(path, chunk_bytes, report):
        scanned = scan(chunk.text)
        words += int(scanned.counts.sum())
        known += int(scanned.counts[vocab.ids(scanned.types) != UNK].sum())
    return known > MOSTLY_KNOWN * words


def _can_be_read_again(path: str | Path) -> bool:
    """Return whether this is not standard input or a pipe."""
    return str(path) != "-" and (Path(path).is_file() or not Path(path).exists() or Path(path).is_dir())


def _tokens_as_text(text: bytes, segmenter: Segmenter) -> bytes:
    """Return lines with spaces between tokens."""
    if segmenter.kind == "word":
        return text
    # A space after a final carriage return keeps it from being read as part of the line break.
    lines = (" ".join(tokens) + " " for tokens in segmenter.segment_all(decode_lines(text)))
    return "\n".join([*lines, ""]).encode()


def build_vocab(text: NumberedText, segmenter: Segmenter, *, min_count: int = 1, max_size: int | None = None) -> Vocab:
    """Return the vocabulary of a text, as `Corpus.read` builds it."""
    count_of = dict(zip(text.types, text.counts.tolist(), strict=True))
    if not isinstance(segmenter, WordSegmenter):
        for special in SPECIALS[:UNK]:
            count_of.pop(special, None)  # in a text these are ordinary words, and always unknown
    return Vocab.build(count_of.keys(), count_of.values(), min_count=min_count, max_size=max_size, segmenter=segmenter)


class StoredCorpus:
    """A text on disk as ids of a vocabulary: what a `Corpus` is in memory."""

    def __init__(self, vocab: Vocab, text: NumberedText):
        self.vocab, self.text = vocab, text
        self.id_of_type = vocab.ids(text.types)
        is_unknown = self.id_of_type == UNK
        self.spellings = tuple(
            word
            for word, unknown in zip(text.types, is_unknown.tolist(), strict=True)
            if unknown and word != SPECIALS[UNK]
        )
        known = int(text.counts[~is_unknown].sum())
        literal = dict(zip(text.types, text.counts.tolist(), strict=True)).get(SPECIALS[UNK], 0)
        self.num_unknown = self.num_words - known - literal
        self._ids_checksum = 0

    @property
    def num_words(self) -> int:
        return len(self.text.tokens)

    @property
    def num_sentences(self) -> int:
        return len(self.text.lengths)

    @property
    def num_tokens(self) -> int:
        """Words and sentence ends."""
        return self.num_words + self.num_sentences

    def unigram_counts(self) -> NDArray[np.int64]:
        """Return how often each id occurs, with `<s>` and `</s>` once per sentence.  # (|V|,)"""
        counts = np.zeros(len(self.vocab), np.int64)
        np.add.at(counts, self.id_of_type, self.text.counts)
        counts[[START, END]] = self.num_sentences
        return counts

    def chunks(self, max_tokens: int) -> Iterator[Corpus]:
        """Yield the sentences in parts of about `max_tokens` tokens. To be read to the end once before `fingerprint`."""
        self._ids_checksum, first_word, nothing = 0, 0, np.zeros(0, np.int64)
        lengths = np.zeros(0, np.int64)
        read = 0
        while read < self.num_sentences or len(lengths):
            more = self.text.lengths.read(read, min(self.num_sentences, read + max(1, max_tokens // 4)))
            read += len(more)
            lengths = np.concatenate([lengths, more])
            ends = np.cumsum(lengths + 1)
            number = max(1, int(np.searchsorted(ends, max_tokens, side="right")))
            offsets, lengths = offsets_of(lengths[:number]), lengths[number:]
            ids = self.id_of_type[self.text.tokens.read(first_word, first_word + int(offsets[-1]))]
            first_word += len(ids)
            self._ids_checksum = zlib.crc32(ids.data, self._ids_checksum)
            yield Corpus(self.vocab, ids, offsets, nothing, nothing.astype(np.int32), ())

    def delete(self) -> None:
        """Remove the ids and the words of the text. What they add up to is still known."""
        self.text.tokens.delete()
        self.text.types.clear()

    def fingerprint(self) -> dict[str, Json]:
        """Return the size and the checksum of the text, those of the same `Corpus`."""
        checksum, end = zlib.crc32(bytes(8), self._ids_checksum), 0
        for first in range(0, self.num_sentences, LENGTHS_READ):
            lengths = self.text.lengths.read(first, min(self.num_sentences, first + LENGTHS_READ))
            ends = end + np.cumsum(lengths, dtype=np.int64)
            checksum, end = zlib.crc32(ends.data, checksum), int(ends[-1])
        checksum = zlib.crc32("\n".join(self.vocab.tokens).encode(), checksum)
        return {"sentences": self.num_sentences, "tokens": self.num_tokens, "checksum": f"{checksum:08x}"}
