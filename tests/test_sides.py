"""The two sides of a translator: text as numbers and back, and what is kept of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Corpus, DataError
from dragoman.data.segmenters import CharUnits, learn_units
from dragoman.data.tokenizer import PLAIN, TREE, Side
from dragoman.data.trees import Treebank
from dragoman.data.vocabulary import SPECIALS, UNK

RAW = ["The dog, which sees.", "A cat hears!", "Does it see the dog?", "Yes, yes."] * 3
TOKENISED = ["the dog , which sees .", "a cat hears !", "does it see the dog ?", "yes , yes ."] * 3
KINDS = ["word", "char", "subword:60", "unigram:27"]

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_a_line_comes_back_from_its_numbers(kind: str) -> None:
    side = Side.learn(kind, RAW, min_count=1)
    for line in RAW:
        (ids,) = side.read([line])
        assert side.join(side.spelled(ids.tolist())) == line


@every_kind
def test_everything_in_the_training_text_is_known(kind: str) -> None:
    side = Side.learn(kind, RAW, min_count=1)
    assert not (side.read(RAW).ids == UNK).any()
    assert side.read(["Ω"]).ids.tolist().count(UNK) == 1


def test_words_seen_once_are_not_known_and_other_units_are() -> None:
    lines = ["a b", "a c"]
    assert set(Side.learn("word", lines).vocab.words) == {*SPECIALS, "a"}
    assert set(Side.learn("word", lines, min_count=1).vocab.words) == {*SPECIALS, "a", "b", "c"}
    assert set(Side.learn("char", lines).vocab.words) == {*SPECIALS, "a", "b", "c", "▁"}
    trees = ["(S a b)", "(S a c)"]
    assert set(Side.learn("word", trees, format=TREE).vocab.words) == {*SPECIALS, "a"}


def test_pieces_that_the_text_has_only_inside_others_are_known() -> None:
    """New words are cut into them."""
    units = learn_units("subword:60", RAW)
    side = Side.learn(units, RAW)
    assert side.units is units
    assert set(units.pieces) <= set(side.vocab.words)  # type: ignore[attr-defined]


def test_a_vocabulary_has_no_more_words_than_asked_for() -> None:
    assert len(Side.learn("word", TOKENISED, max_size=6).vocab) == len(SPECIALS) + 6


@pytest.mark.parametrize("special", SPECIALS[:UNK])
def test_frames_in_a_text_are_words_that_are_never_known(special: str) -> None:
    lines = [f"a {special} b"] * 3
    side = Side.learn("word", lines)
    assert side.vocab.words == (*SPECIALS, "a", "b")
    assert side.read(lines[:1]).ids.tolist() == [3, UNK, 4]


def test_a_side_knows_whether_its_text_is_tokenised() -> None:
    assert Side.learn("word", TOKENISED).tokenised
    assert not Side.learn("word", RAW).tokenised


def test_a_side_reads_text_or_trees() -> None:
    text, trees = Side.learn("word", ["a b"] * 2), Side.learn("word", ["(S a b)"] * 2, format=TREE)
    assert (text.format, trees.format) == (PLAIN, TREE)
    assert isinstance(text.read(["a b"]), Corpus)
    assert isinstance(trees.read(["(S a b)"]), Treebank)
    with pytest.raises(DataError, match="needs one bracketed tree a line"):
        trees.read(["a b"])


@every_kind
def test_saved_and_loaded_it_is_the_same(kind: str) -> None:
    side = Side.learn(kind, RAW, min_count=1)
    again = Side.from_saved(side.config(), side.vocab, side.units.files())
    assert again.config() == side.config()
    assert again.units.cut("The cat, yes? Ω") == side.units.cut("The cat, yes? Ω")
    assert again.vocab == side.vocab


@pytest.mark.parametrize("change", [{"units": 5}, {"units": None}, {"format": "picture"}, {"format": ["tree"]}])
def test_a_damaged_side_is_refused(change: dict[str, object]) -> None:
    side = Side.learn("word", RAW)
    with pytest.raises(DataError, match="no side has units"):
        Side.from_saved({**side.config(), **change}, side.vocab, {})


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=12), max_size=4))
def test_any_line_can_be_read(lines: list[str]) -> None:
    for side in (Side(CharUnits(), Side.learn("char", RAW).vocab), Side.learn("word", RAW)):
        read = side.read(lines)
        assert len(read) == len(lines)
        for number, line in enumerate(lines):
            assert len(read[number]) == len(side.units.cut(line))


@pytest.mark.parametrize("line", ["a b \r ", "a\rb \r", "\r", "a \r\r", "▁ \r b"])
def test_as_many_numbers_as_units_whatever_the_blanks(line: str) -> None:
    """A carriage return is no line break here."""
    for units in ("word", "char"):
        side = Side.learn(units, ["a b", line], min_count=1)
        assert len(side.read([line])[0]) == len(side.units.cut(line))
