"""Word vectors in the text format of word2vec: a line `N D`, then N lines `word v_1 ... v_D`."""

from __future__ import annotations

import gzip
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, error_at_line, file_errors
from dragoman.data.formats import BOM, GZIP_MAGIC
from dragoman.data.vocabulary import Vocab

NUMBER_FORMATS = {4: "%.9g", 8: "%.17g"}  # by the bytes of a number: enough digits to read the same number again
BLANKS = b" \t\r\n"
PRINTABLE = bytes(range(32, 127))  # numbers are written with these; binary numbers nearly always have other bytes
TEXT_REMEDY = "write it as text, with word2vec's -binary 0 or gensim's save_word2vec_format(FILE, binary=False)"


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words with one vector each.

    >>> vectors = WordVectors(("cat", "dog"), np.array([[1.0, 0.5], [0.25, -2.0]], np.float32))
    >>> print("".join(vectors.lines()), end="")
    2 2
    cat 1 0.5
    dog 0.25 -2
    """

    words: tuple[str, ...]
    matrix: NDArray[np.floating]  # (words, D)

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
        """Yield the lines of the file."""
        format_number = NUMBER_FORMATS[self.matrix.dtype.itemsize].__mod__
        yield f"{len(self)} {self.dimension}\n"
        for word, vector in zip(self.words, self.matrix, strict=True):
            if not word or set(word) & set(" \t\r\n\0"):
                raise DataError(f"the word {word!r} cannot be written to a file of vectors: it is empty or has a blank")
            yield f"{word} {' '.join(map(format_number, vector.tolist()))}\n"


class VocabVectors(NamedTuple):
    """The vectors that are available for the tokens of a vocabulary."""

    matrix: NDArray[np.float32]  # (|V|, D) 0 where there is none
    present: NDArray[np.bool_]  # (|V|,)


class Neighbour(NamedTuple):
    word: str
    similarity: float  # the cosine of the angle between two vectors, from -1 to 1


def vectors_for(vocab: Vocab, vectors: WordVectors) -> VocabVectors:
    """Look up the vectors of a vocabulary's tokens; those of `<s>`, `</s>` and `<unk>` are used if given.

    >>> vectors = WordVectors(("cat", "dog"), np.array([[1.0, 0.5], [0.25, -2.0]], np.float32))
    >>> matrix, present = vectors_for(Vocab.build(["the", "dog"], [1, 1]), vectors)
    >>> present.tolist(), matrix[4].tolist()
    ([False, False, False, False, True], [0.25, -2.0])
    """
    rows = np.array([vectors.index.get(token, -1) for token in vocab.tokens])
    present = rows >= 0
    matrix = np.zeros((len(vocab), vectors.dimension), np.float32)
    matrix[present] = vectors.matrix[rows[present]]
    return VocabVectors(matrix, present)


def nearest_words(vectors: WordVectors, word: str, k: int = 10) -> list[Neighbour]:
    """Return the k words with the most similar vectors by cosine.

    >>> vectors = WordVectors(("cat", "dog", "the"), np.array([[2.0, 1.0], [1.0, 1.0], [-1.0, 0.5]], np.float32))
    >>> [(near.word, round(near.similarity, 2)) for near in nearest_words(vectors, "cat", k=2)]
    [('dog', 0.95), ('the', -0.6)]
    """
    if word not in vectors.index:
        raise DataError(f"there is no vector of the word {word!r}")
    query = vectors.index[word]
    lengths = np.linalg.norm(vectors.matrix, axis=1)
    lengths[lengths == 0] = 1.0  # a zero vector has similarity 0 to all
    cosines = vectors.matrix @ (vectors.matrix[query] / lengths[query]) / lengths  # (words,)
    order = np.argsort(-cosines, kind="stable")
    return [Neighbour(vectors.words[row], float(cosines[row])) for row in order.tolist() if row != query][:k]


def read_word_vectors(path: str | Path, words: Container[str] | None = None) -> WordVectors:
    """Read vectors from a file (gzip if its name ends in `.gz`), all of them or only those of `words`.

    The vectors of other words are skipped and take no memory.
    """
    path = Path(path)
    vectors: dict[str, NDArray[np.float32]] = {}
    line_of: dict[str, int] = {}
    number = 1
    with file_errors(path), _open(path) as file:
        count, dimension = _read_header(file.readline(), path)
        for number, line in enumerate(file, 2):
            word, numbers = _split_line(line, dimension, path, number)
            if words is not None and word not in words:
                continue
            if word in line_of:
                problem = f"{word!r} is already on line {line_of[word]}; remove one of the two"
                raise error_at_line(path, number, problem)
            line_of[word], vectors[word] = number, _parse_vector(numbers.split(b" "), path, number)
    if number - 1 != count:
        problem = f"the first line says {count:,} vectors, but there are {number - 1:,}; is the file complete?"
        raise error_at_line(path, 1, problem)
    matrix = np.stack(list(vectors.values())) if vectors else np.zeros((0, dimension), np.float32)
    return WordVectors(tuple(vectors), matrix)


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _read_header(line: bytes, path: Path) -> tuple[int, int]:
    """Parse the number of vectors and their dimension."""
    if line.startswith(GZIP_MAGIC):
        raise DataError(f"{path}: this is gzip data; give it a name that ends in .gz")
    fields = line.removeprefix(BOM).split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) <= 18 for field in fields):
        problem = "word vectors begin with a line `N D`, their number and dimension"
        raise error_at_line(path, 1, f"{problem}; files of GloVe lack that line: insert it")
    count, dimension = map(int, fields)
    if not count or not dimension:
        raise error_at_line(path, 1, "the first line says there are no vectors; give a file that has some")
    return count, dimension


def _split_line(line: bytes, dimension: int, path: Path, number: int) -> tuple[str, bytes]:
    """Return the word and the numbers of a line."""
    raw, _, numbers = line.rstrip(BLANKS).partition(b" ")
    if numbers.translate(None, PRINTABLE):
        problem = f"no numbers; the file seems to be in word2vec's binary format; {TEXT_REMEDY}"
    elif not raw or numbers.count(b" ") + bool(numbers) != dimension:
        problem = f"expected a word and {dimension} numbers separated by single spaces, found {len(line.split())} parts"
    else:
        try:
            return raw.decode(), numbers
        except UnicodeDecodeError:
            remedy = f"if it is word2vec's binary format, {TEXT_REMEDY}"
            problem = f"a word that is not UTF-8; convert it with iconv -t UTF-8; {remedy}"
    raise error_at_line(path, number, problem)


def _parse_vector(fields: Sequence[bytes], path: Path, number: int) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            vector = np.array(fields).astype(np.float32)
    except ValueError:
        wrong = next(field for field in fields if not _is_number(field))
        problem = f"expected a number, found {wrong.decode(errors='replace')!r:.40}"
        raise error_at_line(path, number, problem) from None
    if not np.isfinite(vector).all():
        raise error_at_line(path, number, "a number that is infinite, undefined or too large; remove or fix the line")
    return vector


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
