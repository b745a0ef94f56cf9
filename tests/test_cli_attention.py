"""`dragoman attention`: the matrix in the terminal and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command import is_one_line
from dragoman.report.attention import attention_text
from small_translators import ENGLISH, GERMAN, TREES, letters, place, translators

__all__ = ["letters", "place"]


def test_attention_is_printed(good: Any, place: Path) -> None:
    shown = good("attention", place / "one", GERMAN[1])
    result = translators()["one"].translate(GERMAN[1])[0]
    drawn = attention_text([*ENGLISH[1].split(), "</s>"], [*GERMAN[1].split(), "</s>"], result.attention)
    assert shown.out.startswith(f"{ENGLISH[1]}\n\n{drawn}\n")
    assert f"log P(E | F) = {result.log_prob:.4f}" in shown.out


def test_a_given_translation(good: Any, place: Path) -> None:
    shown = good("attention", place / "one", GERMAN[1], "--target", "the cat zzz .").out
    result = translators()["one"].force_decode([GERMAN[1]], ["the cat zzz ."])[0]
    assert shown.startswith("the cat zzz .\n") and f"{result.log_prob:.4f}" in shown
    assert "\nzzz " in shown


def test_words_or_units(good: Any, place: Path) -> None:
    arguments = ("attention", place / "pieces", GERMAN[0], "--target", "the dog")
    words, units = good(*arguments).lines, good(*arguments, "--units").lines
    assert [line.split()[0] for line in words[3:6]] == ["the", "dog", "</s>"]
    assert [line.split()[0] for line in units if line][-10:-2] == [*"the▁dog", "</s>"]


def test_characters_are_shown(good: Any, letters: Path) -> None:
    shown = good("attention", letters, "der hund", "--target", "dog")
    assert [line.split() for line in shown.lines[2:3]] == [[*"der▁hund", "</s>"]]
    assert [line.split()[0] for line in shown.lines[3:7]] == ["d", "o", "g", "</s>"]
    assert good("attention", letters, "der hund", "--target", "dog", "--units").out == shown.out


def test_a_picture_is_written(good: Any, place: Path, tmp_path: Path) -> None:
    done = good("attention", place / "one", place / "two", GERMAN[0], "--picture", tmp_path / "a.svg")
    assert f"{tmp_path / 'a.svg'}: the attention of" in done.err
    drawn = (tmp_path / "a.svg").read_text()
    assert all(word in drawn for word in ("hund", "dog"))
    assert f">{ENGLISH[0]}</text>" in drawn, "the title"
    long = " ".join(ENGLISH[:5])
    good("attention", place / "one", GERMAN[0], "--target", long, "--picture", tmp_path / "b.svg")
    assert f">{long[:59]}…</text>" in (tmp_path / "b.svg").read_text()


def test_trees_have_phrases(good: Any, place: Path) -> None:
    shown = good("attention", place / "tree", TREES[0], "--target", ENGLISH[0]).out
    assert "der hund" in shown and GERMAN[0] in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ONE"], "give a translator and a sentence"),
        (["ONE", "der", "hund"], "put the sentence in quotes"),
        (["ONE", " "], "blank"),
        (["ONE", "der\nhund"], "line break"),
        (["PLAIN", "der hund bellt ."], "train one with --attention mlp"),
        (["TREE", "der hund bellt ."], "no brackets"),
        (["ONE", "der hund " * 200], "too long to be translated at once"),
        (["PIECES", "der hund", "--target", "a" * 300], "more than 250 tokens"),
        (["ONE", "der hund", "--picture", "a.txt"], "end the name in .svg or .png"),
        (["NOWHERE", "der hund"], "no such directory; pass a directory written by dragoman train"),
    ],
)
def test_bad_usage(run: Any, place: Path, arguments: list[str], message: str) -> None:
    places = {name.upper(): place / name for name in (*translators(), "nowhere")}
    outcome = run("attention", *[places.get(word, word) for word in arguments])
    assert (outcome.code, outcome.out) == (2, ""), outcome.err
    assert is_one_line(outcome.err) and message in outcome.err, outcome.err
