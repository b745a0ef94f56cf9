"""Tokenisation and detokenisation of punctuation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.detokenize import PunctuationTokenizer
from dragoman.data.sentences import split_sentences, split_tokenised_sentences
from dragoman.lab.corpus_files import detokenized
from dragoman.lab.lab import german_english_lab

MOSES = PunctuationTokenizer.from_vocabulary(
    ["a", "woman", "&apos;s", "shoulders", "five", "year", "old", "@-@", "&quot;", ".", "do", "n&apos;t"]
)
FRENCH = PunctuationTokenizer.from_vocabulary(["l'", "ami", "est", "là", ".", "Jean"])


@pytest.mark.parametrize(
    ("spelling", "printed", "words"),
    [
        (MOSES, 'A woman\'s "shoulders".', "a woman &apos;s &quot; shoulders &quot; ."),
        (MOSES, "a five-year-old woman", "a five @-@ year @-@ old woman"),
        (MOSES, "Don't.", "do n&apos;t ."),
        (FRENCH, "L'ami est là.", "L'ami est là ."),  # a capital that is not known stays
        (FRENCH, "l'ami Jean est là", "l' ami Jean est là"),
        (PunctuationTokenizer.from_vocabulary(["..."]), "well...", "well ..."),
        (PunctuationTokenizer.from_vocabulary(["."]), "well...", "well . . ."),
        (PunctuationTokenizer.from_vocabulary(["u.s."]), "(U.S.)", "( u.s. )"),
        (PunctuationTokenizer.from_vocabulary(["x"]), "", ""),
        (PunctuationTokenizer.from_vocabulary(["x"]), "-5 (-x)", "-5 ( - x )"),
        (FRENCH, "'" * 200, "'" * 200),  # no word is as long
    ],
)
def test_tokenize(spelling: PunctuationTokenizer, printed: str, words: str) -> None:
    assert spelling.tokenize(printed) == words


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
def test_detokenize(words: str, like: str, printed: str) -> None:
    assert MOSES.detokenize(words, like) == printed


def test_names_keep_their_spelling() -> None:
    assert MOSES.detokenize("a schmidt sees a schmidt .", "ein", {1: "Schmidt"}) == "a Schmidt sees a schmidt."


def test_cased_vocabulary_keeps_capitals() -> None:
    assert FRENCH.detokenize("l' ami est là .", "The") == "l'ami est là."


@pytest.mark.parametrize("line", ["l'ami Jean est là.", "I don't know the dog's name.", "It’s so, isn’t it?"])
def test_apostrophes_come_back(line: str) -> None:
    words = "I know the dog name . , ? It so is it do ami est là Jean l' n't 's ’s n’t"
    cut = PunctuationTokenizer.from_vocabulary(words.split())
    assert len(cut.tokenize(line).split()) > len(line.split()) + 1 and cut.detokenize(cut.tokenize(line)) == line


@pytest.mark.parametrize("language", ["german", "english"])
def test_lab_text_round_trip(language: str) -> None:
    """Its texts are known in print and as words."""
    sentences = [getattr(pair, language) for pair in german_english_lab().pairs(150, seed=5)]
    words, print_out = (
        [" ".join(sentence.words) for sentence in sentences],
        [detokenized(sentence) for sentence in sentences],
    )
    spelling = PunctuationTokenizer.from_vocabulary(word for line in words for word in line.split(" "))
    assert [spelling.tokenize(line) for line in print_out] == words
    actual = [spelling.detokenize(line, "X") for line in words]
    assert [line.lower() for line in actual] == [line.lower() for line in print_out]


@given(st.text(alphabet="aB .!?\n\"'(1", max_size=40))
def test_split_sentences_join_to_the_text(text: str) -> None:
    assert "".join(sentence + gap for sentence, gap in split_sentences(text)) == text


@given(st.lists(st.sampled_from(["a", "bc", ".", "!", '"', ")", "3", "。"]), min_size=1, max_size=12))
def test_split_tokenised_sentences_join_to_the_line(words: list[str]) -> None:
    line = " ".join(words)
    assert "".join(sentence + gap for sentence, gap in split_tokenised_sentences(line)) == line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("he left . she came .", ["he left .", "she came ."]),
        ('" go ! " he said . " no . "', ['" go ! " he said .', '" no . "']),
        ('he said " go . " then he left .', ['he said " go . "', "then he left ."]),
        ("( he left . ) then ?", ["( he left . )", "then ?"]),
        ("z . b . ein hund .", ["z . b . ein hund ."]),
        ("what ? ! no", ["what ? !", "no"]),
        ("彼 は 去っ た 。 次", ["彼 は 去っ た 。", "次"]),
        (".", ["."]),
    ],
)
def test_sentences_of_tokenised_text(line: str, expected: list[str]) -> None:
    assert [sentence for sentence, _ in split_tokenised_sentences(line, lowercase=True)] == expected


@pytest.mark.parametrize(
    "line",
    [
        "¿ podrían pedir un taxi ? , por favor .",
        '" kann ich helfen ? " - " nein , danke ! ich sehe mich nur um " .',
        "auf dem schild steht : &quot; komm jetzt ... was ist &quot; .",
    ],
)
def test_tokenised_sentences_do_not_end_before_commas_and_inside_quotes(line: str) -> None:
    assert [sentence for sentence, _ in split_tokenised_sentences(line, lowercase=True)] == [line]


def test_an_open_quote_does_not_join_sentences() -> None:
    line = 'sie sagte : " geh . er ging . sie blieb .'
    assert len(split_tokenised_sentences(line, lowercase=True)) == 3


def test_tokenised_sentences_begin_with_capitals() -> None:
    assert [sentence for sentence, _ in split_tokenised_sentences("Nein ! rief er . Dann schlief er .")] == [
        "Nein ! rief er .",
        "Dann schlief er .",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two.", ["One.", "Two."]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("Dr. Smith, z.B. Ann, left.", ["Dr. Smith, z.B. Ann, left."]),
        ("It costs 3.5 euros. ok", ["It costs 3.5 euros. ok"]),
        ("Ende。次", ["Ende。", "次"]),
        ("one\ntwo", ["one", "two"]),
    ],
)
def test_sentence_boundaries(text: str, expected: list[str]) -> None:
    assert [sentence for sentence, _ in split_sentences(text)] == expected
