"""Vectors of words in the text format of word2vec: a line `N D`, then N lines `word v_1 ... v_D`."""

from __future__ import annotations

import gzip
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, error_at_line, file_errors
from dragoman.data.formats import BOM, GZIP_MAGIC
from dragoman.data.vocabulary import Vocab

NUMBER_FORMATS = {4: "%.9g", 8: "%.17g"}  # how a number of so many bytes is written, so that the same one is read again
BLANKS = b" \t\r\n"
PRINTED = bytes(range(32, 127))  # what numbers are written with; in binary they nearly always have other bytes
TEXT_REMEDY = "write it as text, with word2vec's -binary 0 or gensim's save_word2vec_format(FILE, binary=False)"


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words, and a vector of numbers for each.

    >>> vectors = WordVectors(("cat", "dog"), np.array([[1.0, 0.5], [0.25, -2.0]], np.float32))
    >>> print("".join(vectors.lines()), end="")
    2 2
    cat 1 0.5
    dog 0.25 -2
    """

    words: tuple[str, ...]
    matrix: NDArray[Any]  # (words, D) floats

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or len(self.matrix) != len(self.words):
            raise DataError(f"{len(self.words)} words but vectors of shape {self.matrix.shape}")

    def __len__(self) -> int:
        return len(self.words)

    @property
    def dimension(self) -> int:
        return int(self.matrix.shape[1])

    @cached_property
    def index(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    def lines(self) -> Iterator[str]:
        """The file, line by line."""
        write = NUMBER_FORMATS[self.matrix.dtype.itemsize].__mod__
        yield f"{len(self)} {self.dimension}\n"
        for word, vector in zip(self.words, self.matrix, strict=True):
            if not word or set(word) & set(" \t\r\n\0"):
                raise DataError(f"the word {word!r} cannot be written to a file of vectors: it is empty or has a blank")
            yield f"{word} {' '.join(map(write, vector.tolist()))}\n"


class VocabVectors(NamedTuple):
    """The vectors that were there for the words of a vocabulary."""

    matrix: NDArray[np.float32]  # (|V|, D) 0 where there is none
    present: NDArray[np.bool_]  # (|V|,)


class Neighbour(NamedTuple):
    word: str
    similarity: float  # the cosine of the angle between two vectors, from -1 to 1


def vectors_for(vocab: Vocab, vectors: WordVectors) -> VocabVectors:
    """A vocabulary's words with the vectors given; `<s>`, `</s>` and `<unk>` take theirs where there are some.

    >>> vectors = WordVectors(("cat", "dog"), np.array([[1.0, 0.5], [0.25, -2.0]], np.float32))
    >>> matrix, found = vectors_for(Vocab.build(["the", "dog"], [1, 1]), vectors)
    >>> found.tolist(), matrix[4].tolist()
    ([False, False, False, False, True], [0.25, -2.0])
    """
    rows = np.array([vectors.index.get(word, -1) for word in vocab.tokens])
    found = rows >= 0
    matrix = np.zeros((len(vocab), vectors.dimension), np.float32)
    matrix[found] = vectors.matrix[rows[found]]
    return VocabVectors(matrix, found)


def nearest_words(vectors: WordVectors, word: str, k: int = 10) -> list[Neighbour]:
    """The k words whose vectors point most nearly where this word's does.

    >>> vectors = WordVectors(("cat", "dog", "the"), np.array([[2.0, 1.0], [1.0, 1.0], [-1.0, 0.5]], np.float32))
    >>> [(near.word, round(near.similarity, 2)) for near in nearest(vectors, "cat", k=2)]
    [('dog', 0.95), ('the', -0.6)]
    """
    if word not in vectors.index:
        raise DataError(f"there is no vector of the word {word!r}")
    own = vectors.index[word]
    lengths = np.linalg.norm(vectors.matrix, axis=1)
    lengths[lengths == 0] = 1.0  # a vector of zeros is like none
    cosines = vectors.matrix @ (vectors.matrix[own] / lengths[own]) / lengths  # (words,)
    order = np.argsort(-cosines, kind="stable")
    return [Neighbour(vectors.words[row], float(cosines[row])) for row in order.tolist() if row != own][:k]


# -- reading ---------------------------------------------------------------------------------------------------------


def read_word_vectors(path: str | Path, words: Container[str] | None = None) -> WordVectors:
    """Vectors from a file, unpacked if its name ends in `.gz`; all of them, or those of some words.

    Every line is looked at, but only the lines of these words are taken apart and kept: of a large file, and a
    vocabulary, what does not concern it takes no memory.
    """
    path = Path(path)
    with file_errors(path), _open(path) as file:
        count, dimension = _read_header(file.readline(), path)
        kept: dict[str, NDArray[np.float32]] = {}
        line_of: dict[str, int] = {}
        number = 1
        for number, line in enumerate(file, 2):
            word, numbers = _split_line(line, dimension, path, number)
            if words is not None and word not in words:
                continue
            if word in line_of:
                raise error_at_line(
                    str(path), number, f"{word!r} is already on line {line_of[word]}; remove one of the two"
                )
            line_of[word] = number
            kept[word] = _parse_vector(numbers, path, number)
    if number - 1 != count:
        raise error_at_line(
            str(path), 1, f"{count:,} vectors are announced, {number - 1:,} are there; is the file whole?"
        )
    matrix = np.stack(list(kept.values())) if kept else np.zeros((0, dimension), np.float32)
    return WordVectors(tuple(kept), matrix)


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _read_header(line: bytes, path: Path) -> tuple[int, int]:
    """N and D."""
    if line.startswith(GZIP_MAGIC):
        raise DataError(f"{path}: this is gzip; give it a name that ends in .gz")
    fields = line.removeprefix(BOM).split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) <= 18 for field in fields):
        remedy = "GloVe's files lack that line: put it before the others"
        raise error_at_line(
            str(path), 1, f"word vectors begin with a line `N D`, how many there are and of what length; {remedy}"
        )
    count, dimension = map(int, fields)
    if not count or not dimension:
        raise error_at_line(str(path), 1, "no vectors are announced; give a file that has some")
    return count, dimension


def _split_line(line: bytes, dimension: int, path: Path, number: int) -> tuple[str, bytes]:
    """The word and the numbers of a line."""
    raw, _, numbers = line.rstrip(BLANKS).partition(b" ")
    if numbers.translate(None, PRINTED):
        raise error_at_line(
            str(path), number, f"these are no numbers but, it seems, word2vec's binary format; {TEXT_REMEDY}"
        )
    if not raw or numbers.count(b" ") + bool(numbers) != dimension:
        found = len(line.split())
        raise error_at_line(
            str(path), number, f"expected a word and {dimension} numbers, with one space between, found {found} parts"
        )
    try:
        return raw.decode(), numbers
    except UnicodeDecodeError:
        remedy = f"if it is word2vec's binary format, {TEXT_REMEDY}"
        raise error_at_line(
            str(path), number, f"a word that is not UTF-8; convert it with iconv -t UTF-8; {remedy}"
        ) from None


def _parse_vector(numbers: bytes, path: Path, number: int) -> NDArray[np.float32]:
    fields = numbers.split(b" ")
    try:
        with np.errstate(over="ignore"):
            vector = np.array(fields).astype(np.float32)
    except ValueError:
        wrong = next(field for field in fields if not _is_number(field))
        raise error_at_line(
            str(path), number, f"expected a number, found {wrong.decode(errors='replace')!r:.40}"
        ) from None
    if not np.isfinite(vector).all():
        raise error_at_line(
            str(path), number, "a number that is infinite, undefined or too large; remove the line or mend it"
        )
    return vector


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
