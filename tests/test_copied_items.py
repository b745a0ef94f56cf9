"""Items are found as people write them, in every script, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.copied_items import ITEM, ITEM_MARK, find_items, may_be_word
from dragoman.data.detokenize import PunctuationTokenizer
from dragoman.data.tokenizer import Tokenizer
from dragoman.models.copying import prepare_lines

PARTS = [
    *(
        "https://",
        "www.",
        "x",
        "-",
        ".",
        "com",
        "org",
        "/",
        "~",
        "@",
        "a1",
        "txt",
        "py",
        "C:\\",
        "`",
        "--",
        "::",
        "()",
        "_",
    ),
    *(
        "%",
        "s",
        "d",
        "(n)",
        "{",
        "}",
        "{{",
        "}}",
        "$",
        "#",
        "<%=",
        "%>",
        "1",
        "查看",
        "으로",
        "é",
        "؟",
        " ",
        "\u00a0",
        "…",
    ),
]


def items_of(text: str) -> list[str]:
    return [text[start:end] for start, end in find_items(text)]


@given(st.lists(st.sampled_from(PARTS), max_size=8).map("".join) | st.text(max_size=20))
def test_every_item_has_a_mark_of_items(text: str) -> None:
    """Lines without such a mark are not searched."""
    assert items_of(text) == [match[0] for match in ITEM.finditer(text)]
    assert all(ITEM_MARK.search(item) for item in items_of(text))


@pytest.mark.parametrize(
    "item", ["info@example.com", "readme.txt", "foo_bar", "https://example.com/a?b=c", "@tom", "ls()"]
)
@pytest.mark.parametrize(
    "line",
    [
        "请打开{}查看",
        "用户{}。谢谢",
        "ファイル{}を開く",
        "เปิด{}ครับ",
        "{}으로 보내세요",
        "«{}» и «x»",
        "هل {}؟",
        "क्या {}। और",
    ],
)
def test_items_have_no_letters_of_the_words_next_to_them(item: str, line: str) -> None:
    assert items_of(line.format(item)) == [item]


@pytest.mark.parametrize("end", [*"“”»…،؟।。，！—–)]>", "...", "查看", "으로", "😀", "\u00a0x", "\u3000x", "?!"])
def test_an_address_ends_before_the_punctuation_of_its_sentence(end: str) -> None:
    for address in (
        "https://x.com",
        "https://x.com/a_(b)",
        "https://müller.de/größe",
        "https://hi.wikipedia.org/wiki/भारत",
    ):
        assert items_of(f"x ({address}{end}") == [address]


@pytest.mark.parametrize(
    "text",
    ["größe.txt", "отчёт.docx", "C:\\文件\\a.txt", "/etc/hosts", "{größe}", "#größe", "#東京", "@müller", "a-.com"],
)
def test_items_of_other_scripts_are_whole(text: str) -> None:
    assert items_of(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "中文/English/日本語",
        "he/she/it",
        "--Bonjour, monsieur",
        "Er sagte --été",
        "--d'accord",
        "Mr.Smith.com",
        "_Er_ sagte",
        "3.5.2",
    ],
)
def test_words_are_not_items(text: str) -> None:
    assert items_of(text) == []


@pytest.mark.parametrize("kind", ["word", "subword:50"])
def test_a_known_word_after_a_dash_is_no_option(kind: str) -> None:
    """Where a command line option would end a sentence, or has another hyphen or a value, it is one."""
    tokenizer = Tokenizer.train(kind, ["der hund sieht das haus", "er sagte das - das haus"] * 5)
    lines = [
        "er sagte --das haus",
        "er sagte --verbose das",
        "er sagte --das-da haus",
        "er sagte --das= haus",
        "er sagte --das",
    ]
    items = [[item.text for item in line.items] for line in prepare_lines(lines, tokenizer)]
    assert items == [[], ["--verbose"], ["--das-da"], ["--das="], ["--das"]]
    assert may_be_word(lines[0], (9, 14)) and not may_be_word(lines[4], (9, 14))
    words = PunctuationTokenizer.from_vocabulary(["er", "sagte", "das", "haus", "--"])
    assert words.tokenize(lines[0]) == "er sagte -- das haus" and words.tokenize(lines[1]) == lines[1]
