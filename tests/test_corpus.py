"""Scanning, vocabularies, corpora and file formats."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman import Corpus, DataError, ParallelCorpus, Vocab
from dragoman.data.formats import read_text
from dragoman.data.scanner import scan
from dragoman.data.vocabulary import END, START, UNK

CHUNK = 1 << 24  # bytes that are decoded at a time

# -- lines and words ----------------------------------------------------------------------------------

# Everything that some other program takes for a line break or a blank.
ODD = "\r\n\t \v\f\x1c\x1d\x1e\x85\xa0\u2028\u2029\u3000\ufeff"
TEXTS = st.text(st.sampled_from(ODD + "abß語😀"), max_size=40) | st.text(max_size=20)


def split(text: str) -> list[list[str]]:
    """The rule in plain Python: lines end at \\n, one \\r before it is removed, words end at blank and TAB."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [[word for word in re.split("[ \t]+", line.removesuffix("\r")) if word] for line in lines]


def spelled(text: bytes, compiled: bool | None = None) -> list[list[str]]:
    """The words of each line by `scan`."""
    scanned = scan(text, compiled)
    return [
        [scanned.types[number] for number in scanned.tokens[a:b]]
        for a, b in zip(scanned.offsets[:-1], scanned.offsets[1:], strict=True)
    ]


@given(TEXTS)
@example("a\r\r\nb")
@example("a\rb\r")
@example("\r")
@example("\r\n\r\n")
@example("a\u2028b\x85c\xa0d\ve\ff\n")
@example(" \t a \t\n\n b")
def test_scan_splits_like_a_simple_splitter(text: str) -> None:
    assert spelled(text.encode(), compiled=False) == split(text)
    assert spelled(text.encode(), compiled=True) == split(text)


@given(TEXTS)
def test_scan_counts_types_in_order_of_first_use(text: str) -> None:
    words = [word for line in split(text) for word in line]
    for compiled in (False, True):
        scanned = scan(text.encode(), compiled)
        assert scanned.types == list(dict.fromkeys(words))
        assert scanned.counts.tolist() == [words.count(word) for word in scanned.types]


@given(TEXTS.filter(lambda text: text.strip("\ufeff") and "\0" not in text))
@example("\ufeffa b\n")
@example("a\n\ufeffb\n")
def test_files_are_split_like_strings(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "text.txt"
    path.write_bytes(text.encode())
    assert spelled(read_text(path)) == split(text.removeprefix("\ufeff"))


def test_unusual_whitespace_does_not_shift_lines(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("eins\u2028eins\nzwei\x85\x0bzwei\n\ndrei\r\n".encode())
    (tmp_path / "b").write_bytes(b"one one\ntwo two\n\nthree\n")
    both = ParallelCorpus.read(tmp_path / "a", tmp_path / "b")
    assert len(both) == 4
    assert both.source.vocab.tokens[3:] == ("eins\u2028eins", "zwei\x85\x0bzwei", "drei")


@pytest.mark.parametrize("types", [16_384, 70_000])
def test_more_types_than_the_first_hash_table_holds(types: int) -> None:
    words = [f"w{number}" for number in range(types)]
    lines = [" ".join(words[first : first + 10]) for first in range(0, types, 10)]
    scanned = scan("\n".join([*lines, *reversed(lines)]).encode(), compiled=True)
    assert scanned.types == words
    assert (scanned.counts == 2).all()
    assert scanned.tokens[:types].tolist() == list(range(types))
    assert len(scanned.offsets) == 2 * len(lines) + 1


def test_long_text_is_split_in_chunks() -> None:
    """Long enough to be cut into pieces; empty lines, long lines, and words that come late."""
    lines = [f"{'x' * (number % 50)} y{number % 1000} z" if number % 7 else "" for number in range(60_000)]
    lines[30_000] = "long " * 100_000
    text = "\n".join(lines)
    assert spelled(text.encode(), compiled=False) == split(text)
    assert spelled(text.encode(), compiled=True) == split(text)


def test_long_words() -> None:
    long = "ß" * 100_000
    assert spelled(f"{long} a {long}b\n{long}".encode(), compiled=True) == [[long, "a", long + "b"], [long]]


def test_first_line_with_a_word() -> None:
    scanned = scan(b"a\n\nb a\nb\n")
    assert (scanned.first_line_with("a"), scanned.first_line_with("b")) == (1, 3)


# -- vocabulary ------------------------------------------------------------------------------------------------------


def test_min_count_and_singletons() -> None:
    vocab = Vocab.build(["a", "b", "c"], [3, 1, 2], min_count=2)
    assert vocab.tokens == ("<s>", "</s>", "<unk>", "a", "c")
    assert vocab.counts.tolist() == [0, 0, 1, 3, 2]
    replaced = Corpus.from_sentences(["a b a c c"], min_count=2)
    assert replaced.ids.tolist() == [3, UNK, 3, 4, 4]
    assert replaced.unknown_words == ["b"]


def test_max_size_keeps_the_most_frequent_tokens() -> None:
    vocab = Vocab.build(["a", "b", "c", "d", "e"], [1, 2, 5, 2, 2], max_size=3)
    assert vocab.tokens[3:] == ("b", "c", "d")  # in order of first use
    assert vocab.counts.tolist() == [0, 0, 1 + 2, 2, 5, 2]
    assert Vocab.build(["a", "b"], [1, 1], max_size=9).tokens[3:] == ("a", "b")


def test_literal_unknown_is_always_kept_and_counted() -> None:
    vocab = Vocab.build(["<unk>", "a", "b"], [1, 5, 1], min_count=2, max_size=1)
    assert vocab.tokens == ("<s>", "</s>", "<unk>", "a")
    assert vocab.counts.tolist() == [0, 0, 2, 5]


def test_reserved_symbols_in_a_text_are_unknown_words() -> None:
    vocab = Vocab.build(["a"], [1])
    assert [vocab.id(word) for word in ("<s>", "</s>", "<unk>", "a", "b")] == [UNK, UNK, UNK, 3, UNK]
    corpus = Corpus.from_sentences(["<s> a </s>"], vocab)
    assert corpus.unknown_words == ["<s>", "</s>"]


def test_vocabularies_are_compared_by_their_tokens() -> None:
    first, second, third = (Vocab.build(words, [1] * len(words)) for words in (["a", "b"], ["a", "b"], ["b", "a"]))
    assert first == second
    assert hash(first) == hash(second)
    assert first != third
    assert first.describe_difference(third) == "entry 3 is 'a' in one and 'b' in the other"
    assert first.num_known == 3  # a, b and </s>


def test_a_pickled_vocabulary_is_small_and_equal() -> None:
    vocab = Corpus.from_sentences([" ".join(f"word{number}" for number in range(1000))]).vocab
    size = len(pickle.dumps(vocab))
    assert vocab.spellings.data.size  # the hash table is computed when it is needed, and not part of the pickle
    restored = pickle.loads(pickle.dumps(vocab))
    assert len(pickle.dumps(vocab)) == size
    assert restored == vocab
    assert restored.counts.tolist() == vocab.counts.tolist()


def test_saved_vocabulary_is_restored(tmp_path: Path) -> None:
    vocab = Corpus.from_sentences(["a\u2028b c\rd e\x85 <unk> \ufefff", "ß 語 ' \" # :"]).vocab
    (tmp_path / "vocab.tsv").write_bytes(vocab.to_text().encode())
    back = Vocab.read(tmp_path / "vocab.tsv")
    assert back == vocab
    assert back.counts.tolist() == vocab.counts.tolist()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"<s>\t0\n</s>\t0\n<unk>\t0\na\t1\nb\t1\na\t2\n", r"v:6: 'a' is already on line 4; remove one"),
        (b"<s>\t0\n</s>\t0\n<unk>\t0\na 1\n", r"v:4: expected `token TAB count`, found 'a 1'"),
        (b"<s>\t0\n</s>\t0\n<unk>\t0\na\t-1\n", r"v:4: expected"),
        (b"<s>\t0\n<unk>\t0\n</s>\t0\n", r"v:1: a vocabulary begins with <s>"),
        (b"<s>\t0\n</s>\t0\n<unk>\t0\n\xff\t1\n", r"v:4: not UTF-8 \(byte 0xff at column 1\)"),
    ],
)
def test_invalid_vocabulary_files_raise_an_error(tmp_path: Path, text: bytes, complaint: str) -> None:
    (tmp_path / "v").write_bytes(text)
    with pytest.raises(DataError, match=complaint):
        Vocab.read(tmp_path / "v")


def test_invalid_vocabularies_raise_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'a' twice"):
        Vocab(["<s>", "</s>", "<unk>", "a", "a"])
    with pytest.raises(DataError, match="begins with"):
        Vocab(["a", "b", "c"])
    with pytest.raises(DataError, match="3 tokens but 1 counts"):
        Vocab(["<s>", "</s>", "<unk>"], [1])
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(DataError, match=re.escape(str(path))):
            Vocab.read(path)


# -- corpus ----------------------------------------------------------------------------------------------------------

LINES = ["the cat sat", "", "the unicorn <unk> sat", "phoenix cat unicorn"]


@pytest.fixture
def corpus() -> Corpus:
    return Corpus.from_sentences(LINES, Corpus.from_sentences(["the cat sat"]).vocab)


def test_flat_ids_and_offsets(corpus: Corpus) -> None:
    assert corpus.ids.tolist() == [3, 4, 5, 3, UNK, UNK, 5, UNK, 4, UNK]
    assert corpus.offsets.tolist() == [0, 3, 3, 7, 10]
    assert (corpus.ids.dtype, corpus.offsets.dtype) == (np.int32, np.int64)
    assert (corpus.num_sentences, corpus.num_words, corpus.num_tokens, len(corpus)) == (4, 10, 14, 4)
    assert [sentence.tolist() for sentence in corpus] == [[3, 4, 5], [], [3, UNK, UNK, 5], [UNK, 4, UNK]]
    assert corpus[2].tolist() == [3, UNK, UNK, 5]


def test_unigram_entropy() -> None:
    corpus = Corpus.from_sentences(["a b", "b", ""])  # a once, b twice, three sentence ends
    expected = -sum(p * np.log(p) for p in (1 / 6, 2 / 6, 3 / 6))
    assert corpus.unigram_entropy == pytest.approx(expected)
    assert Corpus.from_sentences([""]).unigram_entropy == 0


def test_spellings_of_unknown_words_are_kept(corpus: Corpus) -> None:
    assert corpus.spellings == ("unicorn", "phoenix")
    assert corpus.unknown_words == ["unicorn", "phoenix", "unicorn"]
    assert corpus.unknown_positions.tolist() == [4, 7, 9]  # the literal <unk> at 5 has no spelling


def test_token_positions(corpus: Corpus) -> None:
    assert corpus.token_offsets.tolist() == [0, 4, 5, 10, 14]
    tokens = corpus.ids_with_boundaries(starts=0)
    assert len(tokens) == corpus.num_tokens
    assert corpus.unknown_token_positions.tolist() == [6, 10, 12]
    assert (tokens[corpus.unknown_token_positions] == UNK).all()
    assert (tokens[corpus.token_offsets[1:] - 1] == END).all()


def test_ids_with_boundaries(corpus: Corpus) -> None:
    for starts in (0, 1, 3):
        rows = [[START] * starts + sentence.tolist() + [END] for sentence in corpus]
        assert corpus.ids_with_boundaries(starts).tolist() == [word for row in rows for word in row]


def test_num_characters_counts_the_written_text(corpus: Corpus) -> None:
    assert corpus.num_characters == sum(len(line) + 1 for line in LINES)
    wide = Corpus.from_sentences(["ß  語 \t 😀😀 "])
    assert wide.num_characters == len("ß 語 😀😀\n")


def test_sentences_as_text(corpus: Corpus) -> None:
    assert corpus.sentences_as_text() == LINES
    assert corpus.select(np.array([3, 1])).sentences_as_text() == [LINES[3], LINES[1]]
    spaced = Corpus.from_sentences(["  ß  語 \t 😀😀 ", " "], corpus.vocab)
    assert spaced.sentences_as_text() == ["ß 語 😀😀", ""]
    assert Corpus.from_sentences([], corpus.vocab).sentences_as_text() == []


def test_select_takes_sentences_with_their_spellings(corpus: Corpus) -> None:
    taken = corpus.select(np.array([3, 1, 2, 3]))
    again = Corpus.from_sentences([LINES[3], LINES[1], LINES[2], LINES[3]], corpus.vocab)
    assert taken.ids.tolist() == again.ids.tolist()
    assert taken.offsets.tolist() == again.offsets.tolist()
    assert taken.unknown_words == again.unknown_words
    assert taken.unknown_positions.tolist() == again.unknown_positions.tolist()
    assert taken.num_characters == again.num_characters
    assert len(corpus.select(np.zeros(0, np.int64))) == 0


def test_sentences_as_lists_of_words() -> None:
    listed = Corpus.from_sentences([["the", "cat"], [], ["sat"]])
    assert [sentence.tolist() for sentence in listed] == [[3, 4], [], [5]]


def test_text_without_words() -> None:
    blank = Corpus.from_sentences(["", " \t", ""])
    assert (blank.num_sentences, blank.num_words, blank.num_characters) == (3, 0, 3)
    assert len(Corpus.from_sentences([])) == 0


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["a", "b\nc"], "sentences:2: contains a line break"),
        (["a", "", "b <s> c"], r"sentences:3: <s> is reserved in training text: .*remove it"),
        (["a </s>"], r"sentences:1: </s> is reserved"),
        (["a", "b \ud800"], r"sentences:2: .*surrogate"),
    ],
)
def test_invalid_sentences_raise_an_error(lines: list[str], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        Corpus.from_sentences(lines)


def test_reserved_symbols_in_training_files_raise_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b\nc </s> d\n")
    with pytest.raises(DataError, match=r"text:2: </s> is reserved"):
        Corpus.read(tmp_path / "text")
    vocab = Vocab.build(["a"], [1])
    assert Corpus.read(tmp_path / "text", vocab).unknown_words == ["b", "c", "</s>", "d"]
    with pytest.raises(DataError, match="reserved"):
        Corpus.read(tmp_path / "text", vocab, training=True)


def test_read_applies_min_count_and_max_size(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b a\nc b a\n")
    assert Corpus.read(tmp_path / "text").vocab.tokens[3:] == ("a", "b", "c")
    assert Corpus.read(tmp_path / "text", min_count=2).vocab.tokens[3:] == ("a", "b")
    assert Corpus.read(tmp_path / "text", max_size=1).unknown_words == ["b", "c", "b"]


def test_mismatched_parallel_texts_raise_an_error_with_both_counts(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("eins\nzwei\ndrei\n")
    (tmp_path / "b").write_text("one\ntwo\n")
    with pytest.raises(DataError, match=r"/a has 3 lines but .*/b has 2"):
        ParallelCorpus.read(tmp_path / "a", tmp_path / "b")
    first, second = Corpus.read(tmp_path / "a"), Corpus.read(tmp_path / "b")
    with pytest.raises(DataError, match="3 source lines but 2 target lines"):
        ParallelCorpus(first, second)


# -- kinds of files ----------------------------------------------------------------------------------------------------


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "text.gz").write_bytes(gzip.compress(codecs.BOM_UTF8 + b"a b\n") + gzip.compress(b"c\n"))
    assert read_text(tmp_path / "text.gz") == b"a b\nc\n"


def test_tsv_columns_by_number_and_by_name(tmp_path: Path) -> None:
    text = b"de\ten\r\neins\tone\r\n\tnothing\r\n"
    (tmp_path / "t.tsv").write_bytes(text)
    (tmp_path / "t.TSV.gz").write_bytes(gzip.compress(text))
    for path in (tmp_path / "t.tsv", tmp_path / "t.TSV.gz"):
        assert read_text(path) == b"de\neins\n\n"
        assert read_text(path, "2") == b"en\none\nnothing\n"
        assert read_text(path, "en") == b"one\nnothing\n"
        assert read_text(path, "de") == b"eins\n\n"
    both = ParallelCorpus.read(path, path, source_field="de", target_field="en")
    assert both.target.vocab.tokens[3:] == ("one", "nothing")


@pytest.mark.parametrize(
    ("field", "complaint"),
    [
        ("3", r"t.tsv:1: 2 columns, but column 3 is selected"),
        ("0", r"t.tsv: no column 0; columns count from 1"),
        ("9" * 5000, r"t.tsv: no column 9{20}; columns count from 1"),
        ("2", r"t.tsv:2: 1 columns, but column 2 is selected"),
        ("fr", r"t.tsv:1: no column 'fr'; the first line has de, en"),
        ("en", r"t.tsv:2: 1 columns"),
    ],
)
def test_missing_tsv_columns_raise_an_error(tmp_path: Path, field: str, complaint: str) -> None:
    (tmp_path / "t.tsv").write_bytes(b"de\ten\neins\n")
    with pytest.raises(DataError, match=complaint):
        read_text(tmp_path / "t.tsv", field)


def test_jsonl_values(tmp_path: Path) -> None:
    records = [{"text": "a b", "en": "x"}, {"text": "", "en": "ß\u2028"}, {"text": "c\nd\r\ne", "en": "z"}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert read_text(tmp_path / "t.jsonl") == b"a b\n\nc d e\n"
    assert read_text(tmp_path / "t.jsonl", "en").decode() == "x\nß\u2028\nz\n"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "t.jsonl:2: not JSON"),
        ("", "t.jsonl:2: not JSON"),
        ('{"other": 1, "more": 2}', "t.jsonl:2: no key 'text'; found other, more"),
        ('{"text": 5}', "t.jsonl:2: 'text' should be a string, found 5"),
        ('["text"]', "t.jsonl:2: 'text' should be a string"),
        (r'{"text": "\ud800"}', "t.jsonl:2: .*surrogate"),
        (r'{"text": "a\u0000"}', "t.jsonl:2: .*NUL"),
        ("[" * 100_000, "t.jsonl:2: JSON that cannot be read"),
        ('{"text": ' + "1" * 5000 + "}", "t.jsonl:2: "),
    ],
)
def test_invalid_jsonl_raises_an_error(tmp_path: Path, line: str, complaint: str) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "fine"}\n' + line + "\n")
    with pytest.raises(DataError, match=complaint):
        read_text(tmp_path / "t.jsonl")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("a b\u2028\n".encode())))
    assert Corpus.read("-").vocab.tokens[3:] == ("a", "b\u2028")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\n\xff")))
    with pytest.raises(DataError, match="<stdin>:2: not UTF-8"):
        Corpus.read("-")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(DataError, match="<stdin>: empty"):
        Corpus.read("-")


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", r"t: empty; give a file"),
        (codecs.BOM_UTF8, r"t: empty"),
        (b"a\nb\0c\n", r"t:2: NUL byte at column 2; .*UTF-16"),
        ("hello\n".encode("utf-16-le"), r"t:1: NUL byte at column 2"),
        (b"fine\nna\xefve\n", r"t:2: not UTF-8 \(byte 0xef at column 3\); .*iconv"),
        (b"\xff", r"t:1: not UTF-8 \(byte 0xff at column 1\)"),
        (b"a\n\n\xe8\xaa", r"t:3: not UTF-8 \(byte 0xe8 at column 1\)"),
        (b"a\nb\xc0\x80", r"t:2: not UTF-8 \(byte 0xc0 at column 2\)"),
        (b"a\n\xed\xa0\x80", r"t:2: not UTF-8 \(byte 0xed at column 1\)"),
    ],
)
def test_invalid_bytes_raise_an_error_with_line_and_column(tmp_path: Path, content: bytes, complaint: str) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(DataError, match=complaint):
        read_text(tmp_path / "t")


@pytest.mark.parametrize("vocab", [None, Corpus.from_sentences(["a"]).vocab])
def test_text_in_memory_that_is_not_utf8_raises_an_error_with_its_line(vocab: Vocab | None) -> None:
    with pytest.raises(DataError, match=r"letter:2: not UTF-8 \(byte 0xe9 at column 4\)"):
        Corpus.from_text(b"a\ncaf\xe9\n", vocab, source="letter")


@pytest.mark.parametrize(
    ("shift", "tail", "column"),
    [
        (-2, b"\xe8\xaa\xff", 1),  # the third byte, beyond the border, is wrong: the character starts before it
        (-1, b"\xe8aa", 1),
        (-1, b"\xff", 1),
        (0, b"\xff", 1),
        (-3, "語".encode() + b"\xff", 4),
        (-1, "語".encode() + b"\xff", 4),
        (-1, b"\xe8\xaa", 1),  # cut off at the end of the file
        (-2, b"\xe8\xaa", 1),
    ],
)
def test_invalid_bytes_are_detected_across_chunks(tmp_path: Path, shift: int, tail: bytes, column: int) -> None:
    (tmp_path / "t").write_bytes(b"x" * (CHUNK + shift - 1) + b"\n" + tail)
    with pytest.raises(DataError, match=rf"t:2: not UTF-8 \(byte 0x(e8|ff) at column {column}\)"):
        read_text(tmp_path / "t")


def test_valid_characters_may_cross_chunks(tmp_path: Path) -> None:
    text = b"x" * (CHUNK - 2) + "語😀\n".encode()
    (tmp_path / "t").write_bytes(text)
    assert read_text(tmp_path / "t") == text


def test_unreadable_files_raise_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none: no such file"):
        read_text(tmp_path / "none")
    with pytest.raises(DataError, match=r"is a directory"):
        read_text(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"file/below: cannot be read"):
        read_text(tmp_path / "file" / "below")


def test_damaged_gzip_files_raise_an_error(tmp_path: Path) -> None:
    whole = gzip.compress(b"some text that is long enough to be cut\n" * 20)
    crooked = bytearray(whole)
    crooked[20] ^= 0xFF
    for content in (whole[:-9], whole[:15], whole[:3], b"plain text", bytes(crooked), whole + b"tail"):
        (tmp_path / "t.gz").write_bytes(content)
        with pytest.raises(DataError, match=r"t.gz: not a complete gzip file"):
            read_text(tmp_path / "t.gz")


def test_field_of_a_plain_file_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a\n")
    with pytest.raises(DataError, match=r"a field \(2\) can be selected in .tsv and .jsonl files only"):
        read_text(tmp_path / "t.txt", "2")
