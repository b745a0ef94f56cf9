"""The functions that run in Python workers: each takes and returns batches of Arrow columns.

A function gets batches of a partition one after the other, and its result depends on their rows only, so that a task that
is repeated gives the same rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dragoman.core.defaults import DEFAULT_BEAM_SIZE
from dragoman.core.errors import DataError, encoding_error
from dragoman.data.corpus import Corpus
from dragoman.data.formats import jsonl_value
from dragoman.data.near_duplicates import simplify
from dragoman.data.scanner import split_words
from dragoman.data.vocabulary import UNK
from dragoman.spark.shipping import shipped_model, shipped_vocab

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dragoman.spark.lines import Places

Batches = Iterable[pa.RecordBatch]
ID, TEXT = "id", "text"  # the columns of lines
NO_WORD = -1  # in a window that is cut off by the end of its sentence
LINES_AT_ONCE = 256  # translated together
DIGEST_BYTES = 16
KEY = "dragoman_key"  # the column of what duplicates have in common
EXACT, SIMPLIFIED = "exact", "simplified"  # what duplicates have in common: the text, or its letters


def window_columns(order: int) -> list[str]:
    """Return the names of the columns of n-grams of an order: w1, w2, ..."""
    return [f"w{position}" for position in range(1, order + 1)]


def known_words(batches: Batches, *, vocab: str) -> Iterator[pa.RecordBatch]:
    """Yield for each batch how many words it has, split at spaces, and how many of them are in a vocabulary."""
    vocabulary = shipped_vocab(vocab)
    for batch in batches:
        words = [word for line in column_texts(batch, TEXT) for word in split_words(line)]
        known = sum(vocabulary.id(word) != UNK for word in words)
        yield pa.RecordBatch.from_pydict({"words": [len(words)], "known": [known]})


def ngram_windows(batches: Batches, *, vocab: str, order: int, is_split: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield for each position of the text the ids of the `order` words from there, as far as the sentence goes.

    The text is split at spaces if `is_split`, otherwise by the segmenter of the vocabulary.
    """
    vocabulary, names = shipped_vocab(vocab), window_columns(order)
    for batch in batches:
        lines = column_texts(batch, TEXT)
        if vocabulary.segmenter.kind == "word":
            # A space after a final carriage return keeps it from being read as part of the line break.
            corpus = Corpus.from_text("".join(f"{line} \n" for line in lines).encode(), vocabulary)
        elif is_split:
            corpus = Corpus.from_sentences([split_words(line) for line in lines], vocabulary)
        else:
            corpus = Corpus.from_sentences(lines, vocabulary)
        windows = sentence_windows(corpus, order)
        yield pa.RecordBatch.from_arrays([pa.array(column) for column in windows], names=names)


def sentence_windows(corpus: Corpus, order: int) -> list[NDArray[np.int32]]:
    """Return the words at distance 0, 1, ... from each position; NO_WORD past the end of the sentence.

    >>> [column.tolist() for column in sentence_windows(Corpus.from_sentences(["a b", ""]), 2)]
    [[0, 3, 4, 1, 0, 1], [3, 4, 1, -1, 1, -1]]
    """
    text = corpus.ids_with_boundaries()
    lengths = np.diff(corpus.offsets) + 2
    remaining = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(text))  # words up to the end, this one included
    columns = []
    for distance in range(order):
        column = np.full(len(text), NO_WORD, np.int32)
        inside = np.flatnonzero(remaining > distance)
        column[inside] = text[inside + distance]
        columns.append(column)
    return columns


def score_lines(batches: Batches, *, model: str, column: str, output: str) -> Iterator[pa.RecordBatch]:
    """Add log P(E) of each line."""
    for batch in batches:
        scores = shipped_model(model).score(column_texts(batch, column))
        yield with_column(batch, output, pa.array(scores, pa.float64()))


def score_pairs(batches: Batches, *, model: str, source: str, column: str, output: str) -> Iterator[pa.RecordBatch]:
    """Add log P(E | F) of each line given its source."""
    for batch in batches:
        scores = shipped_model(model).score(column_texts(batch, source), column_texts(batch, column))
        yield with_column(batch, output, pa.array(scores, pa.float64()))


def translate_lines(
    batches: Batches, *, model: str, column: str, output: str, beam_size: int = DEFAULT_BEAM_SIZE
) -> Iterator[pa.RecordBatch]:
    """Add the translation of each line."""
    for batch in batches:
        lines, translations = column_texts(batch, column), list[str]()
        for first in range(0, len(lines), LINES_AT_ONCE):
            part = shipped_model(model).translate_text(lines[first : first + LINES_AT_ONCE], beam_size)
            translations += [line.text for line in part]
        yield with_column(batch, output, pa.array(translations, pa.string()))


def duplicate_keys(batches: Batches, *, columns: Sequence[str], match: str) -> Iterator[pa.RecordBatch]:
    """Add a digest of what duplicates have in common; blank lines have none, because they have no duplicates."""
    normalize: Callable[[str], str] = simplify if match == SIMPLIFIED else str
    for batch in batches:
        texts = zip(*(column_texts(batch, column) for column in columns), strict=True)
        keys = [_digest([normalize(text) for text in row]) for row in texts]
        yield with_column(batch, KEY, pa.array(keys, pa.binary()))


def _digest(texts: Sequence[str]) -> bytes | None:
    if not any(text.strip() for text in texts):
        return None
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for text in texts:
        content = text.encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.digest()


def jsonl_fields(batches: Batches, *, fields: Sequence[str], places: Places) -> Iterator[pa.RecordBatch]:
    """Yield the id of each line of JSON and the values of some keys. An id is the number of the line."""
    for batch in batches:
        numbers, lines = batch.column("number").to_pylist(), column_texts(batch, TEXT)
        columns: list[list[str]] = [[] for _ in fields]
        for number, line in zip(numbers, lines, strict=True):
            file, line_number = places.find(number)
            for field, values in zip(fields, columns, strict=True):
                values.append(jsonl_value(line.encode(), field, file, line_number).decode())
        arrays = [pa.array(numbers, pa.int64()), *(pa.array(values, pa.string()) for values in columns)]
        yield pa.RecordBatch.from_arrays(arrays, names=[ID, *fields])


def column_texts(batch: pa.RecordBatch, name: str) -> list[str]:
    """Return the values of a column as strings; raise an error for a row without a value, or that is not UTF-8."""
    texts = []
    for row, value in enumerate(batch.column(name).cast(pa.binary()).to_pylist()):
        if value is None:
            raise DataError(f"{_place(batch, row)}column {name!r} has no value; fill it or remove the row")
        try:
            texts.append(value.decode())
        except UnicodeDecodeError as error:
            raise encoding_error(value, error.start, f"{_place(batch, row)}column {name!r}") from None
    return texts


def _place(batch: pa.RecordBatch, row: int) -> str:
    """Return the id of a row, if there is a column of this name."""
    return f"{ID} {batch.column(ID)[row].as_py()}: " if ID in batch.schema.names else ""


def with_column(batch: pa.RecordBatch, name: str, values: Any) -> pa.RecordBatch:
    """Return a batch with one more column."""
    return pa.RecordBatch.from_arrays([*batch.columns, values], names=[*batch.schema.names, name])
