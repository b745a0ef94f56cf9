"""Printed text and the words that models read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.detokenize import Spelling, sentences
from dragoman.lab.laboratory import laboratory
from dragoman.lab.write_corpus import raw

MOSES = Spelling.of(
    ["a", "woman", "&apos;s", "shoulders", "five", "year", "old", "@-@", "&quot;", ".", "do", "n&apos;t"]
)
FRENCH = Spelling.of(["l'", "ami", "est", "là", ".", "Jean"])


@pytest.mark.parametrize(
    ("spelling", "printed", "words"),
    [
        (MOSES, 'A woman\'s "shoulders".', "a woman &apos;s &quot; shoulders &quot; ."),
        (MOSES, "a five-year-old woman", "a five @-@ year @-@ old woman"),
        (MOSES, "Don't.", "do n&apos;t ."),
        (FRENCH, "L'ami est là.", "L'ami est là ."),  # a capital that is not known stays
        (FRENCH, "l'ami Jean est là", "l' ami Jean est là"),
        (Spelling.of(["..."]), "well...", "well ..."),
        (Spelling.of(["."]), "well...", "well . . ."),
        (Spelling.of(["u.s."]), "(U.S.)", "( u.s. )"),
        (Spelling.of(["x"]), "", ""),
        (Spelling.of(["x"]), "-5 (-x)", "-5 ( - x )"),
        (FRENCH, "'" * 200, "'" * 200),  # no word is as long
    ],
)
def test_as_words(spelling: Spelling, printed: str, words: str) -> None:
    assert spelling.words(printed) == words


@pytest.mark.parametrize(
    ("words", "like", "printed"),
    [
        ("a woman &apos;s &quot; shoulders &quot; .", "Eine", 'A woman\'s "shoulders".'),
        ("a woman", "eine", "a woman"),
        ("wait , she said : five @-@ year", "Das", "Wait, she said: five-year"),
        ("", "Das", ""),
        ("the dogs ' food", "das", "the dogs' food"),
        ("' stop ' , he said", "das", "'stop', he said"),
        ("&quot; a", "Ein", '"A'),
    ],
)
def test_as_print(words: str, like: str, printed: str) -> None:
    assert MOSES.printed(words, like) == printed


def test_names_are_spelled_as_they_came() -> None:
    assert MOSES.printed("a schmidt sees a schmidt .", "ein", {1: "Schmidt"}) == "a Schmidt sees a schmidt."


def test_capitals_of_a_cased_text_are_its_own() -> None:
    assert FRENCH.printed("l' ami est là .", "The") == "l'ami est là."


@pytest.mark.parametrize("line", ["l'ami Jean est là.", "I don't know the dog's name.", "It’s so, isn’t it?"])
def test_apostrophes_come_back(line: str) -> None:
    words = "I know the dog name . , ? It so is it do ami est là Jean l' n't 's ’s n’t"
    cut = Spelling.of(words.split())
    assert len(cut.words(line).split()) > len(line.split()) + 1 and cut.printed(cut.words(line)) == line


@pytest.mark.parametrize("language", ["german", "english"])
def test_the_laboratory_both_ways(language: str) -> None:
    """Its texts are known in print and as words."""
    said = [getattr(pair, language) for pair in laboratory().pairs(150, seed=5)]
    words, print_out = [" ".join(one.words) for one in said], [raw(one) for one in said]
    spelling = Spelling.of(word for line in words for word in line.split(" "))
    assert [spelling.words(line) for line in print_out] == words
    found = [spelling.printed(line, "X") for line in words]
    assert [line.lower() for line in found] == [line.lower() for line in print_out]


@given(st.text(alphabet="aB .!?\n\"'(1", max_size=40))
def test_sentences_are_the_whole_text(text: str) -> None:
    assert "".join(one + gap for one, gap in sentences(text)) == text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One. Two.", ["One.", "Two."]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("Dr. Smith, z.B. Ann, left.", ["Dr. Smith, z.B. Ann, left."]),
        ("it costs 3.5 euros. ok", ["it costs 3.5 euros. ok"]),
        ("Ende。次", ["Ende。", "次"]),
        ("one\ntwo", ["one", "two"]),
    ],
)
def test_where_sentences_end(text: str, found: list[str]) -> None:
    assert [one for one, _ in sentences(text)] == found
