"""Laws of copying: an item changes nothing in how the rest of a line is read, and is in the translation once."""

from __future__ import annotations

import re
from functools import cache

import hypothesis
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.copied_items import PLACEHOLDER, find_items, find_unknown
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.scanner import UNSPACED
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.vocabulary import UNK
from dragoman.models.copying import insert_items, prepare_lines
from dragoman.models.translator import Translator

TEXTS = {
    "German": ["Der Hund sieht Tom.", "Die Katze sieht viele Hunde.", "Der Hund, der schläft, sieht sie.", "DIE KATZE"],
    "Chinese": ["请打开我们的文件", "谢谢你的邮件。", "请看看文件，谢谢"],
    "Arabic": ["الكلب يرى القط.", "القطة ترى الكلب، والكلب نائم"],
    "Hindi": ["नमस्ते जी।", "कुत्ता बिल्ली को देखता है"],
    "Thai": ["ผมเปิดไฟล์ของเรา", "ขอบคุณมากครับ"],
}
ENGLISH = ["The dog sees Tom.", "Open our file, please."]
MARKS = ["😀", "👩‍💻", "❤️", "(", ")", '"', "«", "¿", "•", "§", "🇩🇪"]
ITEMS = ["%s", "{name}", "https://x.org/a", "a.b@c.org", "`a  b`"]

languages, kinds = st.sampled_from(list(TEXTS)), st.sampled_from(["word", "char", "subword:54"])
places = st.tuples(st.integers(0, 100), st.booleans(), st.booleans())


@cache
def tokenizer_of(language: str, kind: str, *, placeholders: bool = False) -> Tokenizer:
    lines = TEXTS[language]
    with_placeholders = [f"{lines[0]} {PLACEHOLDER}", PLACEHOLDER + lines[0]] if placeholders else []
    return Tokenizer.train(kind, [*lines, *with_placeholders] * 3)


@cache
def untrained(language: str, kind: str, *, placeholders: bool) -> Translator:
    source = tokenizer_of(language, kind, placeholders=placeholders)
    target = Tokenizer.train(kind, [*ENGLISH, f"The dog sees {PLACEHOLDER}."] if placeholders else ENGLISH, min_count=1)
    pairs = ParallelCorpus(source.encode(TEXTS[language][:2]), target.encode(ENGLISH))
    return Translator.create(pairs, source, target, embedding=4, hidden=6, embedding_reach=2.0)


def put(item: str, line: str, place: tuple[int, bool, bool]) -> tuple[str, str]:
    """Return a line with an item that is not inside a word, perhaps with spaces around it; and what is before it."""
    index, space_before, space_after = place
    is_inside = [bool(re.search(r"[^\W_]|[\u0900-\u0963]", side)) and not UNSPACED.match(side) for side in line]
    positions = [i for i in range(len(line) + 1) if not (0 < i < len(line) and is_inside[i - 1] and is_inside[i])]
    before, after = line[: positions[index % len(positions)]], line[positions[index % len(positions)] :]
    space_after = space_after and after[:1] not in (".", ",", "،", "।")
    return f"{before}{' ' * space_before}{item}{' ' * space_after}{after}", before


def without_spaces(text: str) -> str:
    return "".join(text.split())


@given(languages, st.integers(0, 3), kinds, st.booleans(), st.sampled_from(MARKS), places)
def test_a_mark_anywhere_leaves_the_tokens_of_a_line(
    language: str, number: int, kind: str, placeholders: bool, mark: str, place: tuple[int, bool, bool]
) -> None:
    tokenizer = tokenizer_of(language, kind, placeholders=placeholders)
    plain = TEXTS[language][number % len(TEXTS[language])]
    line, before = put(mark, plain, place)
    expected, prepared = prepare_lines([plain, line], tokenizer)
    assert prepared.tokens == expected.tokens
    [item] = prepared.items
    assert item.text == mark and not item.has_placeholder
    sizes = [len(without_spaces(tokenizer.join(prepared.tokens[:end]))) for end in range(len(prepared.tokens) + 1)]
    size = len(without_spaces(before))
    assert sizes[item.position] >= size, "its position is after what was before it,"
    assert item.position == 0 or sizes[item.position - 1] < size, "and not later"


@given(languages, st.integers(0, 3), kinds, st.booleans(), st.sampled_from(ITEMS), places)
def test_an_item_anywhere_leaves_the_tokens_of_a_line_or_is_a_placeholder(
    language: str, number: int, kind: str, placeholders: bool, text: str, place: tuple[int, bool, bool]
) -> None:
    tokenizer = tokenizer_of(language, kind, placeholders=placeholders)
    plain = TEXTS[language][number % len(TEXTS[language])]
    line, _ = put(text, plain, place)
    hypothesis.assume([line[start:end] for start, end in find_items(line)] == [text])  # not a longer one: `Der/%s`
    expected, prepared = prepare_lines([plain, line], tokenizer)
    [item] = prepared.items
    assert item.text == text and item.has_placeholder == placeholders
    if not placeholders:
        assert prepared.tokens == expected.tokens
        return
    token = prepared.tokens[item.position]
    assert PLACEHOLDER in token and tokenizer.vocab.id(token) != UNK
    rest = tokenizer.join(prepared.tokens).replace(PLACEHOLDER, "")
    assert without_spaces(rest) == without_spaces(tokenizer.join(expected.tokens))


@hypothesis.settings(max_examples=30)
@given(languages, kinds, st.booleans(), st.lists(st.tuples(st.sampled_from([*MARKS, *ITEMS]), places), max_size=3))
def test_every_item_is_in_the_translation_once(
    language: str, kind: str, placeholders: bool, items: list[tuple[str, tuple[int, bool, bool]]]
) -> None:
    line = TEXTS[language][0]
    for item, place in items:
        line, _ = put(item, line, place)
    [segmented] = untrained(language, kind, placeholders=placeholders).segment(line)
    [translation] = untrained(language, kind, placeholders=placeholders).translate([line])
    assert PLACEHOLDER not in translation.text
    rest = translation.text
    for copied in sorted(segmented.items, key=lambda copied: -len(copied.text)):
        assert copied.text in rest
        rest = rest.replace(copied.text, " ", 1)
    assert not any(mark in rest for mark in [*MARKS, *ITEMS])


def test_words_after_unknown_marks_are_read_as_words() -> None:
    tokenizer = tokenizer_of("German", "subword:54")
    expected = prepare_lines(["Der Hund sieht Tom."], tokenizer)[0].tokens
    for line in (
        '"Der Hund sieht Tom."',
        "Der Hund (sieht) Tom.",
        "Der Hund ¿sieht Tom?.",
        "•Der *Hund* sieht: Tom😀.",
    ):
        assert prepare_lines([line], tokenizer)[0].tokens == expected
    assert prepare_lines(["Der Hund/Tom"], tokenizer)[0].tokens == prepare_lines(["Der Hund Tom"], tokenizer)[0].tokens


def test_marks_of_tokenised_text_stay_words() -> None:
    tokenizer = Tokenizer.train("subword:40", ["der hund sieht ( das haus ) .", "er sieht das haus ."] * 5)
    for line in ("er sieht das haus ⟦.⟧", "er sieht das haus 😀.", "er sieht das haus 😀 ."):
        assert prepare_lines([line], tokenizer)[0].tokens == prepare_lines(["er sieht das haus ."], tokenizer)[0].tokens


def test_unknown_numbers_and_words_with_marks_inside_are_one_item() -> None:
    for kind in ("word", "char", "subword:54"):
        for item in ("1.250,50", "12:30", "Москва-река", "Москва‘!"):
            [line] = prepare_lines([f"Der Hund sieht {item} Tom."], tokenizer_of("German", kind))
            assert [copied.text for copied in line.items] == [item]


def test_a_word_with_vowel_signs_and_an_unknown_letter_is_one_item() -> None:
    for kind in ("char", "subword:54"):
        [line] = prepare_lines(["कुत्ता बिल्ऴी को देखता है"], tokenizer_of("Hindi", kind))
        assert [item.text for item in line.items] == ["बिल्ऴी"]
        assert line.tokens == prepare_lines(["कुत्ता को देखता है"], tokenizer_of("Hindi", kind))[0].tokens


def test_marks_stand_in_the_translation_as_in_the_source() -> None:
    source = tokenizer_of("German", "subword:54")
    target = Tokenizer.train("word", ENGLISH, min_count=1)
    tokens = ["the", "dog", "sees", "tom"]
    for line, expected in (
        ("Der Hund (sieht) Tom", "the dog (sees) tom"),
        ('"Der Hund" sieht Tom', '"the dog" sees tom'),
        ("Der Hund sieht *Tom*!", "the dog sees *tom*!"),
        ("Der Hund 😀 sieht Tom", "the dog 😀 sees tom"),
        ("Der Hund-sieht Tom", "the dog-sees tom"),
    ):
        [prepared] = prepare_lines([line], source)
        words = source.segmenter.word_indices(prepared.tokens)
        attention = np.zeros((len(tokens), len(prepared.tokens)))
        for column, word in enumerate(words):
            attention[word, column] = 1.0
        assert insert_items(tokens, prepared.items, prepared.tokens, attention, target) == expected


def test_brackets_of_a_script_without_spaces_belong_to_the_words_inside() -> None:
    [prepared] = prepare_lines(["请打开《我们》的😀文件"], tokenizer_of("Chinese", "char"))
    assert [(item.text, item.space_before, item.space_after) for item in prepared.items] == [
        ("《", True, False),
        ("》", False, True),
        ("😀", True, True),
    ]


def test_invisible_characters_are_not_copied() -> None:
    """Marks of the writing direction, joiners and soft hyphens; but they are a part of emoji."""
    for language, kind in (("German", "subword:54"), ("Arabic", "subword:54"), ("Hindi", "char"), ("German", "word")):
        tokenizer, plain = tokenizer_of(language, kind), TEXTS[language][0]
        for (
            character
        ) in "\u00ad\u061c\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202e\u2060\u2066\u2069\ufe0f\ufeff":
            first, *rest = plain.split(" ")
            line = " ".join([first[:1] + character + first[1:] + character, *rest])
            assert prepare_lines([line], tokenizer) == prepare_lines([plain], tokenizer)
    england = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    text = f"a 👩‍💻 ❤️ {england}"
    assert [text[start:end] for start, end in find_unknown(text, frozenset("a "))] == ["👩‍💻", "❤️", england]
