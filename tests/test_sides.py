"""The two sides of a translator: text as numbers and back, and what is kept of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Corpus, DataError
from dragoman.data.segmenters import CharSegmenter, train_segmenter
from dragoman.data.tokenizer import PLAIN, TREE, Tokenizer
from dragoman.data.trees import Treebank
from dragoman.data.vocabulary import SPECIALS, UNK

RAW = ["The dog, which sees.", "A cat hears!", "Does it see the dog?", "Yes, yes."] * 3
TOKENISED = ["the dog , which sees .", "a cat hears !", "does it see the dog ?", "yes , yes ."] * 3
KINDS = ["word", "char", "subword:60", "unigram:27"]

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_a_line_comes_back_from_its_numbers(kind: str) -> None:
    side = Tokenizer.train(kind, RAW, min_count=1)
    for line in RAW:
        (ids,) = side.encode([line])
        assert side.join(side.tokens_of(ids.tolist())) == line


@every_kind
def test_everything_in_the_training_text_is_known(kind: str) -> None:
    side = Tokenizer.train(kind, RAW, min_count=1)
    assert not (side.encode(RAW).ids == UNK).any()
    assert side.encode(["Ω"]).ids.tolist().count(UNK) == 1


def test_words_seen_once_are_not_known_and_other_units_are() -> None:
    lines = ["a b", "a c"]
    assert set(Tokenizer.train("word", lines).vocab.tokens) == {*SPECIALS, "a"}
    assert set(Tokenizer.train("word", lines, min_count=1).vocab.tokens) == {*SPECIALS, "a", "b", "c"}
    assert set(Tokenizer.train("char", lines).vocab.tokens) == {*SPECIALS, "a", "b", "c", "▁"}
    trees = ["(S a b)", "(S a c)"]
    assert set(Tokenizer.train("word", trees, format=TREE).vocab.tokens) == {*SPECIALS, "a"}


def test_pieces_that_the_text_has_only_inside_others_are_known() -> None:
    """New words are cut into them."""
    units = train_segmenter("subword:60", RAW)
    side = Tokenizer.train(units, RAW)
    assert side.segmenter is units
    assert set(units.pieces) <= set(side.vocab.tokens)  # type: ignore[attr-defined]


def test_a_vocabulary_has_no_more_words_than_asked_for() -> None:
    assert len(Tokenizer.train("word", TOKENISED, max_size=6).vocab) == len(SPECIALS) + 6


@pytest.mark.parametrize("special", SPECIALS[:UNK])
def test_frames_in_a_text_are_words_that_are_never_known(special: str) -> None:
    lines = [f"a {special} b"] * 3
    side = Tokenizer.train("word", lines)
    assert side.vocab.tokens == (*SPECIALS, "a", "b")
    assert side.encode(lines[:1]).ids.tolist() == [3, UNK, 4]


def test_a_side_knows_whether_its_text_is_tokenised() -> None:
    assert Tokenizer.train("word", TOKENISED).tokenised
    assert not Tokenizer.train("word", RAW).tokenised


def test_a_side_reads_text_or_trees() -> None:
    text, trees = Tokenizer.train("word", ["a b"] * 2), Tokenizer.train("word", ["(S a b)"] * 2, format=TREE)
    assert (text.format, trees.format) == (PLAIN, TREE)
    assert isinstance(text.encode(["a b"]), Corpus)
    assert isinstance(trees.encode(["(S a b)"]), Treebank)
    with pytest.raises(DataError, match="needs one bracketed tree per line"):
        trees.encode(["a b"])


@every_kind
def test_saved_and_loaded_it_is_the_same(kind: str) -> None:
    side = Tokenizer.train(kind, RAW, min_count=1)
    again = Tokenizer.from_saved(side.config(), side.vocab, side.segmenter.files())
    assert again.config() == side.config()
    assert again.segmenter.segment("The cat, yes? Ω") == side.segmenter.segment("The cat, yes? Ω")
    assert again.vocab == side.vocab


@pytest.mark.parametrize("change", [{"units": 5}, {"units": None}, {"format": "picture"}, {"format": ["tree"]}])
def test_a_damaged_side_is_refused(change: dict[str, object]) -> None:
    side = Tokenizer.train("word", RAW)
    with pytest.raises(DataError, match=r"a tokenizer with units .* does not exist"):
        Tokenizer.from_saved({**side.config(), **change}, side.vocab, {})


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=12), max_size=4))
def test_any_line_can_be_read(lines: list[str]) -> None:
    for side in (Tokenizer(CharSegmenter(), Tokenizer.train("char", RAW).vocab), Tokenizer.train("word", RAW)):
        read = side.encode(lines)
        assert len(read) == len(lines)
        for number, line in enumerate(lines):
            assert len(read[number]) == len(side.segmenter.segment(line))


@pytest.mark.parametrize("line", ["a b \r ", "a\rb \r", "\r", "a \r\r", "▁ \r b"])
def test_as_many_numbers_as_units_whatever_the_blanks(line: str) -> None:
    """A carriage return is no line break here."""
    for units in ("word", "char"):
        side = Tokenizer.train(units, ["a b", line], min_count=1)
        assert len(side.encode([line])[0]) == len(side.segmenter.segment(line))
