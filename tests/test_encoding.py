"""Vocabularies and texts without Python strings: the same tokens and ids as with them, and the same errors."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman import Corpus, DataError, Vocab
from dragoman.data import vocabulary
from dragoman.data.encoding import encode
from dragoman.data.scanner import scan
from dragoman.data.spellings import Spellings
from dragoman.data.vocabulary import SPECIALS

WORDS = ["a", "b", "ab", "abcdefg", "abcdefgh", "abcdefghi", "abcdefghijklmnop", "ä", "\u2028", "x\x01y", "<unk>", "\r"]
TEXTS = st.lists(st.sampled_from([*WORDS, "<s>", "</s>", " ", "\t", "\n", "\r\n", "\0", "\v", "c", "\U0001f600"])).map(
    "".join
)


def by_strings(text: str, vocab: Vocab) -> Corpus:
    return Corpus.from_scan(scan(text.encode(), compiled=False), vocab)


@given(TEXTS)
@example("a\r\r\nb")
@example("abcdefgh abcdefg\x01 abcdefgh\x01\n")
@example("\0 a\0 \0\0\n")
@example("<s> </s> <unk> c <unk> c\n")
def test_encoding_gives_the_ids_of_the_strings(text: str) -> None:
    vocab = Vocab([*SPECIALS, "a", "ab", "abcdefg", "abcdefgh", "abcdefghi", "abcdefghijklmnop", "ä", "x\x01y", "a\0"])
    expected, encoded = by_strings(text, vocab), Corpus(vocab, *encode(text.encode(), vocab.spellings))
    assert encoded.ids.tolist() == expected.ids.tolist()
    assert encoded.offsets.tolist() == expected.offsets.tolist()
    assert encoded.unknown_positions.tolist() == expected.unknown_positions.tolist()
    assert encoded.unknown_words == expected.unknown_words
    assert encoded.spellings == expected.spellings


def test_parts_of_a_long_text_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.data.encoding.MIN_CHUNK_BYTES", 50)
    monkeypatch.setattr("dragoman.core.threads.available_cores", lambda: 3)
    vocab = Vocab([*SPECIALS, *(f"w{number}" for number in range(0, 3000, 2))])
    text = "".join(f"w{number} w{number + 1}\n" for number in range(2000))
    encoded, expected = Corpus(vocab, *encode(text.encode(), vocab.spellings)), by_strings(text, vocab)
    assert encoded.sentences_as_text() == expected.sentences_as_text() == text.splitlines()
    assert encoded.spellings == expected.spellings


# -- vocabularies ------------------------------------------------------------------------------------------------------


@pytest.fixture
def without_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "COMPILED_BYTES", 0)


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), newline="\n")
    return path


@pytest.mark.usefixtures("without_strings")
def test_strings_are_made_when_they_are_needed(tmp_path: Path) -> None:
    eager = Vocab([*SPECIALS, "a", "ß", "\U0001f600x", "abcdefghi"], [0, 0, 2, 5, 10**17, 3, 0])
    (tmp_path / "vocab.tsv").write_text(eager.to_text(), newline="\n")
    lazy = Vocab.read(tmp_path / "vocab.tsv")
    assert not lazy.has_strings
    assert len(lazy) == len(eager) and lazy.counts.tolist() == eager.counts.tolist()
    assert lazy == eager and lazy != Vocab(eager.tokens[:-1]) and lazy != Vocab([*eager.tokens[:-1], "abcdefghj"])
    corpus = Corpus.from_sentences(["a ß b", "abcdefghi <unk>"], lazy)
    assert corpus.ids.tolist() == [3, 4, 2, 6, 2] and corpus.unknown_words == ["b"]
    assert corpus.num_characters == 22
    assert lazy.with_segmenter(lazy.segmenter) is lazy
    assert not lazy.has_strings
    assert lazy.tokens == eager.tokens and lazy.lengths.tolist() == eager.lengths.tolist()
    assert lazy.to_text() == eager.to_text() and hash(lazy) == hash(eager) and lazy == eager


HEAD = [f"{special}\t0" for special in SPECIALS]


@pytest.mark.usefixtures("without_strings")
@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([*HEAD, "a\t1", "b\t1", "a\t2"], ":6: 'a' is already on line 4"),
        ([*HEAD, "abcdefghi\t1", "b\t1", "abcdefghi\t2"], ":6: 'abcdefghi' is already on line 4"),
        ([*HEAD, "a"], ":4: expected `token TAB count`"),
        ([*HEAD, "a\t"], ":4: expected `token TAB count`"),
        ([*HEAD, "a\t1\t2"], ":4: expected `token TAB count`"),
        ([*HEAD, "a\t-1"], ":4: expected `token TAB count`"),
        ([*HEAD, "a\t1234567890123456789"], ":4: expected `token TAB count`"),
        ([*HEAD, "a\t1", ""], ":5: expected `token TAB count`"),
        ([*HEAD[:2], "a\t1"], ":1: a vocabulary begins with"),
        (["<s></s><unk>\t0", "a\t1", "b\t1"], ":1: a vocabulary begins with"),
        ([HEAD[0]], ":1: a vocabulary begins with"),
    ],
)
def test_damaged_vocabularies_are_refused(tmp_path: Path, lines: list[str], problem: str) -> None:
    with pytest.raises(DataError, match=re.escape(problem)):
        Vocab.read(write(tmp_path / "vocab.tsv", lines))


@pytest.mark.usefixtures("without_strings")
def test_invalid_characters_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "vocab.tsv", [*HEAD, "a\t1"])
    for content in (b"\xe9", b"a\xc3"):
        path = tmp_path / "damaged.tsv"
        path.write_bytes((tmp_path / "vocab.tsv").read_bytes() + content + b"\t1\n")
        with pytest.raises(DataError, match="not UTF-8"):
            Vocab.read(path)


def test_words_with_the_same_stored_half_of_the_hash_are_told_apart() -> None:
    spellings = Spellings.from_words([b"<s>", b"</s>", b"<unk>", b"a", b"b"])
    slots = spellings.slots
    before = int(np.flatnonzero(slots[:, 0] == 4)[0])
    after = (before + 1) % len(slots)
    slots[after] = slots[before]
    slots[before, 0] = 3  # as if the hash of "a" had the upper half of that of "b"
    assert encode(b"b c", spellings).ids.tolist() == [4, 2]
