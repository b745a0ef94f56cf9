"""Word vectors: files, errors, and export on the command line."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from dragoman import Corpus, DataError, FeedForwardModel, Vocab, load
from dragoman.data.word_vectors import WordVectors, nearest_words, read_word_vectors, vectors_for

WORDS = ("</s>", "the", "naïve", "no\u00a0break", "vertical\vtab", "東京")


@pytest.fixture
def vectors() -> WordVectors:
    drawn = np.random.default_rng(1).normal(size=(len(WORDS), 5)) * 10.0 ** np.arange(-2, 3)
    return WordVectors(WORDS, drawn.astype(np.float32))


def written(vectors: WordVectors, path: Path) -> Path:
    text = "".join(vectors.lines()).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


# -- round trips -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
def test_written_vectors_are_read_exactly(vectors: WordVectors, tmp_path: Path, name: str) -> None:
    again = read_word_vectors(written(vectors, tmp_path / name))
    assert again.words == WORDS
    assert again.matrix.dtype == np.float32
    assert np.array_equal(again.matrix, vectors.matrix)


def test_long_numbers_are_written_in_full(vectors: WordVectors) -> None:
    long = WordVectors(WORDS, vectors.matrix.astype(np.float64) / 3)
    _, *lines = long.lines()
    assert np.array_equal([[float(number) for number in line.split(" ")[1:]] for line in lines], long.matrix)


def test_only_requested_words_are_read(vectors: WordVectors, tmp_path: Path) -> None:
    again = read_word_vectors(written(vectors, tmp_path / "vectors.txt"), {"the", "東京", "missing"})
    assert again.words == ("the", "東京")
    assert np.array_equal(again.matrix, vectors.matrix[[1, 5]])


def test_no_requested_word_present(vectors: WordVectors, tmp_path: Path) -> None:
    again = read_word_vectors(written(vectors, tmp_path / "vectors.txt"), {"missing"})
    assert (len(again), again.dimension) == (0, 5)


def test_files_of_other_programs(tmp_path: Path) -> None:
    """word2vec itself ends every line with a space; others with CR and LF, and some begin with a byte order mark."""
    path = tmp_path / "vectors.txt"
    path.write_bytes("\ufeff2 3\r\na 1 -2.5e-3 3 \r\nb 0.1 .5 -0 \n".encode())
    again = read_word_vectors(path)
    assert again.words == ("a", "b")
    assert again.matrix.tolist() == np.array([[1, -0.0025, 3], [0.1, 0.5, 0]], np.float32).tolist()


def test_vectors_for_a_vocabulary(vectors: WordVectors) -> None:
    vocab = Vocab.build(["東京", "cat", "the"], [1, 1, 1])
    matrix, is_known = vectors_for(vocab, vectors)
    assert is_known.tolist() == [False, True, False, True, False, True]  # </s> has a vector
    assert np.array_equal(matrix[is_known], vectors.matrix[[0, 5, 1]])
    assert not matrix[~is_known].any()


def test_nearest_words(vectors: WordVectors) -> None:
    ray = np.array([[1.0, 0.0], [3.0, 0.1], [0.5, 0.5], [-9.0, 0.0], [0.0, 0.0]])
    near = nearest_words(WordVectors(("a", "b", "c", "d", "zero"), ray), "a", k=4)
    assert [neighbor.word for neighbor in near] == ["b", "c", "zero", "d"]
    assert [neighbor.similarity for neighbor in near] == pytest.approx([3 / np.hypot(3, 0.1), np.sqrt(0.5), 0.0, -1.0])
    with pytest.raises(DataError, match="no vector of the word 'cow'"):
        nearest_words(vectors, "cow")


# -- what may be wrong -----------------------------------------------------------------------------------------------

BINARY = b"2 50\n</s> " + struct.pack("<50f", *np.linspace(-0.3, 0.4, 50)) + b"\n"
WRONG = {
    "no header": (b"the 0.1 0.2\n", ":1: word vectors begin with a line `N D`.*GloVe"),
    "a long first line": (b"9" * 30 + b" 2\n", ":1: word vectors begin with a line `N D`"),
    "nothing": (b"", ":1: word vectors begin with"),
    "none announced": (b"0 5\n", ":1: the first line says there are no vectors"),
    "binary": (BINARY, ":2: .*word2vec's binary format; write it as text"),
    "binary with a line break": (b"1 2\nthe \n\x81\x3d\x3f\x3e\x0c\xbd\n", ":2: expected a word and 2 numbers"),
    "too few numbers": (b"2 2\na 1 2\nb 1\n", ":3: expected a word and 2 numbers .*, found 2 parts"),
    "too many numbers": (b"2 2\na 1 2\nb 1 2 3\n", ":3: expected a word and 2 numbers"),
    "an empty line": (b"2 2\na 1 2\n\n", ":3: expected a word and 2 numbers"),
    "two blanks": (b"1 2\na  1 2\n", ":2: expected a word and 2 numbers"),
    "no number": (b"2 2\na 1 2\nb 1 two\n", ":3: expected a number, found 'two'"),
    "a gap": (b"1 3\na 1  2\n", ":2: expected a number, found ''"),
    "undefined": (b"1 2\na 1 nan\n", ":2: a number that is infinite, undefined or too large"),
    "too large": (b"1 2\na 1 1e99\n", ":2: a number that is infinite, undefined or too large"),
    "twice": (b"2 1\na 1\na 2\n", ":3: 'a' is already on line 2"),
    "cut short": (b"3 1\na 1\nb 2\n", ":1: the first line says 3 vectors, but there are 2"),
    "too long": (b"1 1\na 1\nb 2\n", ":1: the first line says 1 vectors, but there are 2"),
    "not UTF-8": (b"1 1\n\xffa 1\n", ":2: a word that is not UTF-8"),
    "packed": (gzip.compress(b"1 1\na 1\n"), ": this is gzip data; give it a name that ends in .gz"),
}


@pytest.mark.parametrize(("content", "message"), WRONG.values(), ids=WRONG)
def test_invalid_files_raise_an_error_with_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"vectors.txt{message}") as caught:
        read_word_vectors(path)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"1 1\na 1\n")[:-9])
    for name, message in [
        ("none.txt", "no such file"),
        (".", "is a directory"),
        ("cut.gz", "not a complete gzip file"),
    ]:
        with pytest.raises(DataError, match=message):
            read_word_vectors(tmp_path / name)


def test_words_with_blanks_are_not_written() -> None:
    for word in ("", "two words", "tab\t"):
        with pytest.raises(DataError, match="cannot be written to a file of vectors"):
            list(WordVectors((word,), np.zeros((1, 2), np.float32)).lines())


def test_number_of_vectors_must_match_words() -> None:
    with pytest.raises(DataError, match="2 words but vectors of shape"):
        WordVectors(("a", "b"), np.zeros((3, 2)))


# -- from a model ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A feed-forward model in its directory."""
    corpus = Corpus.from_sentences(["the cat sat", "the dog ran"])
    path = tmp_path_factory.mktemp("vectors") / "model"
    FeedForwardModel.create(corpus, order=2, embedding=3, hidden=(4,)).save(path)
    return path


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
def test_export_vectors_of_a_model(good, model: Path, tmp_path: Path, name: str) -> None:
    messages = good("export", model, "--word-vectors", tmp_path / name).err
    assert "8 vectors of 3 numbers" in messages
    again, loaded = read_word_vectors(tmp_path / name), load(model)
    assert again.words == loaded.vocab.tokens
    matrix, is_known = vectors_for(loaded.vocab, again)
    assert is_known.all()
    assert np.array_equal(matrix, loaded.arrays()["embedding.weight"])


def test_vectors_on_standard_output(good, model: Path, tmp_path: Path) -> None:
    good("export", model, "--word-vectors", tmp_path / "vectors.txt")
    assert good("export", model, "--word-vectors", "-").out == (tmp_path / "vectors.txt").read_text()


def test_bad_usage_of_export(run, model: Path, shared: Path, tmp_path: Path) -> None:
    existing = tmp_path / "kept.txt"
    existing.write_text("mine")
    for arguments, message in [
        ((model,), "either --arpa FILE"),
        ((model, "--arpa", "a", "--word-vectors", "b"), "either --arpa FILE"),
        ((model, "--word-vectors", tmp_path / "new", "--vocab-pad", 9), "either --arpa FILE"),
        ((shared / "bi", "--word-vectors", tmp_path / "new"), "ngram model has no word vectors"),
        ((model, "--word-vectors", existing), "--force"),
    ]:
        outcome = run("export", *arguments)
        assert (outcome.code, outcome.out) == (2, ""), outcome.err
        assert message in outcome.err
    assert [file.name for file in tmp_path.iterdir()] == ["kept.txt"]
    assert existing.read_text() == "mine"
