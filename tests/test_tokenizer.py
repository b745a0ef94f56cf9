"""Tokenizers: encoding, decoding and saving."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Corpus, DataError
from dragoman.data.segmenters import train_segmenter
from dragoman.data.tokenizer import PLAIN_TEXT, TREE, Tokenizer
from dragoman.data.trees import Treebank
from dragoman.data.vocabulary import SPECIALS, UNK

RAW = ["The dog, which sees.", "A cat hears!", "Does it see the dog?", "Yes, yes."] * 3
TOKENISED = ["the dog , which sees .", "a cat hears !", "does it see the dog ?", "yes , yes ."] * 3
KINDS = ["word", "char", "subword:60", "unigram:27"]

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_decode_inverts_encode(kind: str) -> None:
    tokenizer = Tokenizer.train(kind, RAW, min_count=1)
    for line in RAW:
        (ids,) = tokenizer.encode([line])
        assert tokenizer.decode(ids.tolist()) == line


@every_kind
def test_train_and_encode_gives_what_train_and_then_encode_give(kind: str) -> None:
    tokenizer, corpus = Tokenizer.train_and_encode(kind, RAW)
    separate = Tokenizer.train(kind, RAW)
    assert tokenizer.vocab == separate.vocab and tokenizer.config() == separate.config()
    assert corpus.ids.tolist() == separate.encode(RAW).ids.tolist()
    assert corpus.sentences_as_text() == separate.encode(RAW).sentences_as_text()


@every_kind
def test_word_indices_of_a_corpus_are_those_of_its_segmented_lines(kind: str) -> None:
    tokenizer, corpus = Tokenizer.train_and_encode(kind, [*RAW, ""])
    segmented = tokenizer.segmenter.segment_all([*RAW, ""])
    assert tokenizer.word_indices(corpus) == [tokenizer.segmenter.word_indices(tokens) for tokens in segmented]


@every_kind
def test_everything_in_the_training_text_is_known(kind: str) -> None:
    tokenizer = Tokenizer.train(kind, RAW, min_count=1)
    assert not (tokenizer.encode(RAW).ids == UNK).any()
    assert tokenizer.encode(["Ω"]).ids.tolist().count(UNK) == 1


def test_only_words_have_min_count_two_by_default() -> None:
    lines = ["a b", "a c"]
    assert set(Tokenizer.train("word", lines).vocab.tokens) == {*SPECIALS, "a"}
    assert set(Tokenizer.train("word", lines, min_count=1).vocab.tokens) == {*SPECIALS, "a", "b", "c"}
    assert set(Tokenizer.train("char", lines).vocab.tokens) == {*SPECIALS, "a", "b", "c", "▁"}
    trees = ["(S a b)", "(S a c)"]
    assert set(Tokenizer.train("word", trees, format=TREE).vocab.tokens) == {*SPECIALS, "a"}


def test_all_subwords_are_in_the_vocabulary() -> None:
    """New words are cut into them."""
    units = train_segmenter("subword:60", RAW)
    tokenizer = Tokenizer.train(units, RAW)
    assert tokenizer.segmenter is units
    assert set(units.pieces) <= set(tokenizer.vocab.tokens)  # type: ignore[attr-defined]


def test_max_size_limits_the_vocabulary() -> None:
    assert len(Tokenizer.train("word", TOKENISED, max_size=6).vocab) == len(SPECIALS) + 6


@pytest.mark.parametrize("special", SPECIALS[:UNK])
def test_boundary_symbols_in_a_text_are_unknown(special: str) -> None:
    lines = [f"a {special} b"] * 3
    tokenizer = Tokenizer.train("word", lines)
    assert tokenizer.vocab.tokens == (*SPECIALS, "a", "b")
    assert tokenizer.encode(lines[:1]).ids.tolist() == [3, UNK, 4]


def test_tokenizer_detects_tokenised_text() -> None:
    assert Tokenizer.train("word", TOKENISED).tokenised
    assert not Tokenizer.train("word", RAW).tokenised


def test_encode_gives_a_corpus_or_a_treebank() -> None:
    text, trees = Tokenizer.train("word", ["a b"] * 2), Tokenizer.train("word", ["(S a b)"] * 2, format=TREE)
    assert (text.format, trees.format) == (PLAIN_TEXT, TREE)
    assert isinstance(text.encode(["a b"]), Corpus)
    assert isinstance(trees.encode(["(S a b)"]), Treebank)
    assert isinstance(Tokenizer.train_and_encode("word", ["(S a b)"] * 2, format=TREE)[1], Treebank)
    with pytest.raises(DataError, match="needs one bracketed tree per line"):
        trees.encode(["a b"])


@every_kind
def test_saved_tokenizer_is_restored(kind: str) -> None:
    tokenizer = Tokenizer.train(kind, RAW, min_count=1)
    again = Tokenizer.from_saved(tokenizer.config(), tokenizer.vocab, tokenizer.segmenter.files())
    assert again.config() == tokenizer.config()
    assert again.segmenter.segment("The cat, yes? Ω") == tokenizer.segmenter.segment("The cat, yes? Ω")
    assert again.vocab == tokenizer.vocab


@pytest.mark.parametrize("change", [{"units": 5}, {"units": None}, {"format": "picture"}, {"format": ["tree"]}])
def test_damaged_config_raises_an_error(change: dict[str, object]) -> None:
    tokenizer = Tokenizer.train("word", RAW)
    with pytest.raises(DataError, match=r"a tokenizer with units .* does not exist"):
        Tokenizer.from_saved({**tokenizer.config(), **change}, tokenizer.vocab, {})


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=12), max_size=4))
def test_any_line_can_be_encoded(lines: list[str]) -> None:
    for tokenizer in (Tokenizer(Tokenizer.train("char", RAW).vocab), Tokenizer.train("word", RAW)):
        read = tokenizer.encode(lines)
        assert len(read) == len(lines)
        for number, line in enumerate(lines):
            assert len(read[number]) == len(tokenizer.segmenter.segment(line))


@pytest.mark.parametrize("line", ["a b \r ", "a\rb \r", "\r", "a \r\r", "▁ \r b"])
def test_encode_gives_one_id_per_token(line: str) -> None:
    """A carriage return is not a line break here."""
    for units in ("word", "char"):
        tokenizer = Tokenizer.train(units, ["a b", line], min_count=1)
        assert len(tokenizer.encode([line])[0]) == len(tokenizer.segmenter.segment(line))
