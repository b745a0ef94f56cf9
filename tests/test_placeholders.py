"""Placeholders in training pairs: both sides have the same ones, in every script."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data import placeholders
from dragoman.data.copied_items import PLACEHOLDER
from dragoman.data.placeholders import add_placeholders

ITEMS = ["%s", "%d", "{name}", "{0}", "https://example.com/a", "example.com", "@tom", "@tom.smith", "info@example.com"]
WORDS = [
    "Tom",
    "tom",
    "name",
    "example",
    "px",
    "20",
    "打开文件",
    "です",
    "Москва",
    "في",
    "القاهرة",
    "नमस्ते",
    "ราคา",
    "。",
    ",",
    "(",
    "-",
]

parts = st.lists(st.sampled_from([*ITEMS, *WORDS, *ITEMS, PLACEHOLDER, " "]), max_size=8).map("".join)


def add_to_pair(source: str, target: str) -> tuple[str, str]:
    sides = add_placeholders([source], [target], seed=1)
    return sides[0][0].replace(PLACEHOLDER, "_"), sides[1][0].replace(PLACEHOLDER, "_")


@given(st.lists(st.tuples(parts, parts), max_size=4), st.integers(0, 3))
def test_both_sides_have_the_same_placeholders(pairs: list[tuple[str, str]], seed: int) -> None:
    """What a placeholder stands for is missing on both sides, and nothing else is."""
    texts = [first for first, _ in pairs], [second for _, second in pairs]
    for pair, *changed in zip(pairs, *add_placeholders(*texts, seed), strict=True):
        assert changed[0].count(PLACEHOLDER) == changed[1].count(PLACEHOLDER)
        missing = [
            Counter(before.replace(" ", "")) - Counter(after.replace(" ", ""))
            for before, after in zip(pair, changed, strict=True)
        ]
        for counts in missing:
            del counts[PLACEHOLDER]  # of the text itself: removed unless both sides have as many
        assert missing[0] == missing[1]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("打开%s文件", "open %s file", ("打开_文件", "open _ file")),
        ("文件{name}已删除", "File {name} was deleted", ("文件_已删除", "File _ was deleted")),
        ("访问https://example.com/a。", "Visit https://example.com/a.", ("访问_。", "Visit _.")),
        ("{count}개", "{count} items", ("_개", "_ items")),
        ("افتح %s الآن", "open %s now", ("افتح _ الآن", "open _ now")),
        ("%dpx breit", "%d px wide", ("_px breit", "_ px wide")),
        ("20%s teurer", "20 %s more expensive", ("20_ teurer", "20 _ more expensive")),
        ("@tom sieht @tom.smith", "@tom sees @tom.smith", ("_ sieht _", "_ sees _")),
        ("%s und %s", "%s", ("%s und %s", "%s")),
    ],
)
def test_items_next_to_letters(source: str, target: str, expected: tuple[str, str]) -> None:
    assert add_to_pair(source, target) == expected


def test_words_are_found_outside_items_and_between_characters_of_scripts_without_spaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(placeholders, "PLACEHOLDER_SHARE", 1.0)
    assert add_to_pair("我喜欢Tom先生", "I like Mr. Tom") == ("我喜欢_先生", "I like Mr. _")
    assert add_to_pair("tom: tom@example.com", "tom: tom@example.com") == ("_: _", "_: _")
    assert add_to_pair("Tom", "Tom") == ("Tom", "Tom"), "there is nothing else"
    assert add_to_pair("नमस्ते जी", "नमस्ते") == ("नमस्ते जी", "नमस्ते"), "not a part of a word with vowel signs"


def test_characters_like_placeholders_are_removed_unless_both_sides_have_them() -> None:
    assert add_to_pair(f"a{PLACEHOLDER}b %s", "a b %s") == ("a b _", "a b _")
    assert add_to_pair(f"a {PLACEHOLDER}", f"b {PLACEHOLDER}") == ("a _", "b _")
