"""Repair of numbers never makes a correct number wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.copied_items import PLACEHOLDER
from dragoman.data.long_numbers import Number, restore_numbers
from dragoman.data.tokenizer import Tokenizer
from dragoman.models.copying import prepare_lines


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("في عام ١٩٨٤", "in 1984"),
        ("३०० लोग", "300 people"),
        ("１２３４円", "1234 yen"),
        ("約1億2000万人", "about 120 million people"),
        ("人口为12345万", "the population is 123.45 million"),
        ("인구 5000만 명", "50 million people, 365 days"),
        ("5,678 lakh", "567.8 million"),
        ("2.500.000 Menschen", "2.5 million people, 365 days"),
        ("1.500 Euro", "1,500 euros"),
        ("1 250 000 человек", "1.25 млн человек, 365 дней"),
    ],
)
def test_correct_numbers_stay(source: str, translation: str) -> None:
    assert restore_numbers(source, translation) == translation
    assert restore_numbers(translation, source) == source


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("1.500 Euro", "1,400 euros", "1,500 euros"),
        ("1.984 Hunde", "1943 dogs", "1984 dogs"),
        ("1 250,50 euros", "1,400 euros", "1,250.50 euros"),
        ("1,250.5 euros", "1.400,25 Euro", "1.250,5 Euro"),
        ("1234567 chiens", "1 234 000 собак", "1 234 567 собак"),
        ("عام ١٩٨٤", "in 1943", "in 1984"),
        ("in 1984", "عام ١٩٤٣", "عام ١٩٨٤"),
        ("5 Millionen und 1984 Hunde", "5 million and 1943 dogs", "5 million and 1984 dogs"),
    ],
)
def test_numbers_are_written_like_those_that_they_replace(source: str, translation: str, expected: str) -> None:
    assert restore_numbers(source, translation) == expected


def test_a_number_with_a_scale_is_translated() -> None:
    tokenizer = Tokenizer.train("char", [f"人口为{PLACEHOLDER}人", "约5000万人，1234年"] * 3)
    lines = prepare_lines(["人口为5000万人", "人口为5000人"], tokenizer)
    assert [[item.text for item in line.items] for line in lines] == [[], ["5000"]]


styles = st.sampled_from(["1943", "1,400", "1.400", "1 400", "1'400", "1,400.25", "1.400,25", "١٬٤٠٠", "१,४००"])


@given(st.integers(1000, 10**9), st.sampled_from(["", ".5", ".25"]), styles, styles)
def test_a_number_has_the_same_value_in_every_style(whole: int, fraction: str, style: str, other: str) -> None:
    number = Number(f"{whole:,}{fraction}", 0)
    written = Number(Number(number.in_style_of(Number(style, 0)), 0).in_style_of(Number(other, 0)), 0)
    assert written.value == number.value
