"""Capitals of languages whose lower case is not that of English."""

from __future__ import annotations

import pytest

from dragoman.data.tokenizer import Tokenizer

TURKISH = [
    "İstanbul güzel bir şehir .",
    "Işık evde yandı .",
    "Ali İstanbul'a gitti .",
    "Bu ışık çok güzel .",
    "Kız kapıyı açtı .",
    "Irmak derin .",
    "Bu kız windows ister .",
]
GREEK = ["Ο Γιώργος είναι εδώ .", "Εδώ ο άνθρωπος τρώει .", "Ένας σκύλος και ο άνθρωπος .", "Και ο σκύλος τρώει εδώ ."]

words_and_subwords = pytest.mark.parametrize("kind", ["word", "subword:70"])


@words_and_subwords
def test_turkish_capitals_have_their_own_lower_case(kind: str) -> None:
    truecaser = Tokenizer.train(kind, TURKISH * 20).truecaser
    for usual, capitals in (
        ("Kız kapıyı açtı .", "KIZ KAPIYI AÇTI ."),
        ("Bu ışık çok güzel .", "BU IŞIK ÇOK GÜZEL ."),
        ("İstanbul güzel bir şehir .", "İSTANBUL GÜZEL BİR ŞEHİR ."),
        ("Bu kız windows ister .", "BU KIZ WINDOWS İSTER ."),
    ):
        assert truecaser.truecase([capitals]) == [usual]
    assert truecaser.truecase(["istanbul güzel bir şehir ."]) == ["İstanbul güzel bir şehir ."]


@pytest.mark.parametrize("kind", ["word", "subword:70", "char"])
def test_turkish_lower_case_has_no_extra_dots(kind: str) -> None:
    lines = [line.replace("I", "ı").replace("İ", "i").lower() for line in TURKISH]
    truecaser = Tokenizer.train(kind, lines * 20).truecaser
    assert truecaser.truecase(["KIZ KAPIYI AÇTI .", "İstanbul Güzel bir şehir ."]) == [lines[4], lines[0]]


def test_turkish_characters() -> None:
    truecaser = Tokenizer.train("char", TURKISH * 20).truecaser
    assert truecaser.truecase(["IŞIK EVDE YANDI .", "İSTANBUL GÜZEL BİR ŞEHİR ."]) == [TURKISH[1], TURKISH[0]]


def test_a_text_in_turkish_capitals() -> None:
    truecaser = Tokenizer.train("char", ["İSTANBUL IŞIK KIZ"]).truecaser
    assert truecaser.truecase(["istanbul"]) == ["İSTANBUL"]


def test_the_letter_in_names_changes_nothing() -> None:
    text = ["Yıldız lives in this big city .", "I think it is nice .", "In winter it is cold ."] * 20
    assert Tokenizer.train("word", text).truecaser.truecase(["I THINK IT IS NICE ."]) == ["I think it is nice ."]


@words_and_subwords
def test_greek_capitals_get_their_accents_back(kind: str) -> None:
    truecaser = Tokenizer.train(kind, GREEK * 20).truecaser
    capitals = ["Ο ΓΙΩΡΓΟΣ ΕΙΝΑΙ ΕΔΩ .", "ΕΔΩ Ο ΑΝΘΡΩΠΟΣ ΤΡΩΕΙ .", "ΚΑΙ Ο ΣΚΥΛΟΣ ΤΡΩΕΙ ΕΔΩ ."]
    assert truecaser.truecase(capitals) == [GREEK[0], GREEK[1], GREEK[3]]
