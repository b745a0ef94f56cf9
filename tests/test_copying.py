"""What is copied from the source, and how odd capitals are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dragoman
from command import good, run  # noqa: F401
from dragoman.data import placeholders
from dragoman.data.copied_items import PLACEHOLDER, find_items, lower_except_items
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.document_formats import DocumentFile
from dragoman.data.html_documents import parse_html
from dragoman.data.long_numbers import Number, find_long_numbers, find_numbers, restore_numbers
from dragoman.data.placeholders import add_placeholders
from dragoman.data.tokenizer import Tokenizer
from dragoman.models.copying import CopiedItem, insert_items, knows_placeholders, prepare_lines
from dragoman.models.document_translation import translate_document
from dragoman.models.source_lines import SegmentedLine
from dragoman.models.text_pipeline import TextPipeline
from dragoman.models.translator import Translator

GERMAN = [
    "Der Hund sieht Tom.",
    "Die Katze sieht 20 Hunde.",
    "Der Hund schläft auf der Straße.",
    "Tom sieht die Katze.",
]
ENGLISH = ["The dog sees Tom.", "The cat sees 20 dogs.", "The dog sleeps on the street.", "Tom sees the cat."]
ITEMS = [
    "https://x.org/a?b=C",
    "a.b@c.org",
    "/etc/hosts",
    "`a b`",
    "{name}",
    "%s",
    "@tom",
    "#Tag",
    "😀",
    "👩‍💻",
    "Москва",
]

every_kind = pytest.mark.parametrize("kind", ["word", "char", "subword:60"])


def untrained(kind: str, attention: str = "mlp") -> Translator:
    source, target = Tokenizer.train(kind, GERMAN * 3), Tokenizer.train(kind, ENGLISH * 3)
    pairs = ParallelCorpus(source.encode(GERMAN), target.encode(ENGLISH))
    return Translator.create(pairs, source, target, embedding=4, hidden=6, attention=attention, embedding_reach=2.0)


# -- items -------------------------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("attention", ["mlp", "none"])
def test_every_item_arrives_once(kind: str, attention: str) -> None:
    """Also in an untrained translator."""
    model = untrained(kind, attention)
    lines = [f"Der Hund {item} sieht Tom." for item in ITEMS] + [" ".join(ITEMS[:-1])]
    *single, every = model.translate(lines)
    for item, translation in zip(ITEMS, single, strict=True):
        assert translation.text.count(item) == 1
    assert every.text == " ".join(ITEMS[:-1]) and every.tokens == ()


@every_kind
def test_known_text_is_read_as_it_is(kind: str) -> None:
    tokenizer = Tokenizer.train(kind, GERMAN * 3)
    prepared = prepare_lines(GERMAN, tokenizer)
    assert [list(line.tokens) for line in prepared] == tokenizer.segmenter.segment_all(GERMAN)
    assert not any(line.items or line.is_copied for line in prepared)
    model = untrained(kind)
    assert model.translate(GERMAN[0]) == model.translate(GERMAN[0], verbatim=True)


@every_kind
def test_a_line_with_items_is_read_like_the_line_without_them(kind: str) -> None:
    tokenizer = Tokenizer.train(kind, GERMAN * 3)
    lines = ["{0} Der Hund sieht Tom", "Der Hund https://x.org/a sieht Tom", "Der Hund sieht Tom 😀"]
    for line, position in zip(prepare_lines(lines, tokenizer), ("", "Der Hund", "Der Hund sieht Tom"), strict=True):
        assert list(line.tokens) == tokenizer.segmenter.segment("Der Hund sieht Tom")
        [item] = line.items
        assert tokenizer.join(line.tokens[: item.position]).strip() == position


def test_items_are_found_by_class() -> None:
    text = "Das kostet 12,50 und/oder z.B. 50% der Leute; siehe x.org, ./a.txt, foo_b@c.de und foo_bar (https://x.org/a_(b))."
    assert [text[start:end] for start, end in find_items(text)] == [
        "x.org",
        "./a.txt",
        "foo_b@c.de",
        "foo_bar",
        "https://x.org/a_(b)",
    ]
    assert lower_except_items("SIEHE https://X.org/A JETZT") == "siehe https://X.org/A jetzt"


def test_what_the_training_text_has_is_not_copied() -> None:
    words = Tokenizer.train("word", ["a %s b"] * 2)
    assert prepare_lines(["a %s b"], words)[0].tokens == ("a", "%s", "b")
    letters = Tokenizer.train("char", ["get_name", "set_name"])
    assert not prepare_lines(["get_a"], letters)[0].items


def test_attention_divides_the_translation() -> None:
    """The item stands between the first and the second word, which change places."""
    tokenizer = Tokenizer.train("word", ["a b c"], min_count=1)
    swapped = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    straight = np.eye(3)
    item = CopiedItem("X", 1)
    source = ("A", "B", "C")
    assert insert_items(["a", "b", "c"], [item], source, straight, tokenizer) == "a X b c"
    assert insert_items(["b", "c", "a"], [item], source, swapped, tokenizer) in ("X b c a", "b c a X")
    assert insert_items(["a", "b", "c"], [item], source, None, tokenizer) == "a X b c"


def test_items_have_spaces_as_in_the_source_and_punctuation_follows_them() -> None:
    tokenizer = Tokenizer.train("subword:60", ENGLISH * 3)
    tokens, source = tokenizer.segmenter.segment("The dog sees Tom."), ("▁Der", "▁Hund", "▁sieht", "▁Tom", ".")
    assert insert_items(tokens, [CopiedItem("😀", 4)], source, None, tokenizer) == "The dog sees Tom 😀."
    assert insert_items(tokens, [CopiedItem("😀", 5)], source, None, tokenizer) == "The dog sees Tom. 😀"
    assert insert_items(tokens, [CopiedItem("{0}", 0)], source, None, tokenizer) == "{0} The dog sees Tom."
    pair = [CopiedItem("{0}", 0), CopiedItem("%s", 0, space_before=False)]
    assert insert_items(tokens, pair, source, None, tokenizer) == "{0}%s The dog sees Tom."


def test_words_of_the_same_script_may_be_unknown_words() -> None:
    words = Tokenizer.train("word", GERMAN * 3)
    [line] = prepare_lines(["Der Papagei Qüx sieht Москва"], words)
    assert line.tokens == ("Der", "Papagei", "Qüx", "sieht") and [item.text for item in line.items] == ["Москва"]


def test_unknown_letters_of_a_script_without_spaces_stay_in_their_words() -> None:
    for kind in ("char", "subword:40"):
        tokenizer = Tokenizer.train(kind, ["私は犬を見ました", "犬は水を飲みます"] * 3)
        assert not prepare_lines(["獅は水を飲みます"], tokenizer)[0].items
        assert [item.text for item in prepare_lines(["犬はXを飲みます"], tokenizer)[0].items] == ["X"]


@every_kind
def test_a_line_mostly_in_another_script_is_its_own_translation(kind: str) -> None:
    """Its tokens are those of the text, so that warnings count the unknown ones."""
    model = untrained(kind)
    foreign = "Москва город Der"
    [line] = model.segment(foreign)
    assert line.is_copied and list(line.tokens) == model.source.segmenter.segment(foreign)
    assert model.translate(foreign)[0].text == foreign
    assert [item.text for item in model.segment("Der Hund sieht Москва")[0].items] == ["Москва"]
    assert not model.segment(foreign, verbatim=True)[0].is_copied


def test_items_keep_their_capitals() -> None:
    """Georgian has capitals, but they are hardly used."""
    tokenizer = Tokenizer.train("char", ["AACHEN"])
    assert [item.text for item in prepare_lines(["Aachen Aachen ქართული"], tokenizer)[0].items] == ["ქართული"]


def test_lines_without_letters_are_copied_unless_the_text_is_about_numbers() -> None:
    prose, sums = Tokenizer.train("char", GERMAN), Tokenizer.train("char", ["12+3", "4+56"])
    assert prepare_lines(["1984 !"], prose)[0].is_copied
    assert not prepare_lines(["1+2"], sums)[0].is_copied


def test_unknown_marks_are_replaced_by_known_ones() -> None:
    tokenizer = Tokenizer.train("subword:60", [*GERMAN, '"Der Hund" - Tom\'s'] * 3)
    [line] = prepare_lines(["“Der Hund” – Tom’s"], tokenizer)
    assert tokenizer.join(line.tokens) == '"Der Hund" - Tom\'s' and not line.items


# -- placeholders ------------------------------------------------------------------------------------------------------


def test_placeholders_stand_for_what_both_sides_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """`was` is in both once, but it is no copy."""
    german = ["Tom hat %s Hunde", "Tom sieht %s und %s", "Mary fragt, was er war", "was ist", "was denn"]
    english = ["Tom has %s dogs", "Tom sees %s and %s", "Mary asks what he was", "it is", "what"]
    monkeypatch.setattr(placeholders, "PLACEHOLDER_SHARE", 1.0)
    source, target = (
        [line.replace(PLACEHOLDER, "_") for line in lines] for lines in add_placeholders(german, english, 1)
    )
    assert source[:3] == ["_ hat _ Hunde", "_ sieht %s und %s", "_ fragt, was er war"] and source[3:] == german[3:]
    assert target[:3] == ["_ has _ dogs", "_ sees %s and %s", "_ asks what he was"] and target[3:] == english[3:]
    monkeypatch.setattr(placeholders, "PLACEHOLDER_SHARE", 0.0)
    assert add_placeholders(german, english, 1)[0][0] == f"Tom hat {PLACEHOLDER} Hunde", "items always"


@every_kind
def test_a_translator_that_knows_placeholders_reads_one_for_each_item(kind: str) -> None:
    tokenizer = Tokenizer.train(kind, [*GERMAN, f"Der Hund {PLACEHOLDER} sieht"] * 3)
    [line] = prepare_lines(["Der Hund https://x.org/1234 sieht 1984"], tokenizer)
    assert list(line.tokens) == tokenizer.segmenter.segment(f"Der Hund {PLACEHOLDER} sieht {PLACEHOLDER}")
    assert [item.text for item in line.items] == ["https://x.org/1234", "1984"]
    assert [PLACEHOLDER in line.tokens[item.position] for item in line.items] == [True, True]


def test_items_belong_to_the_part_of_a_long_line_that_has_them() -> None:
    first, second, third = CopiedItem("X", 2), CopiedItem("Y", 2, has_placeholder=True), CopiedItem("Z", 3)
    taken_out = SegmentedLine("", (("a", "b"), ("c",)), (first, third))
    assert taken_out.items_of_chunks == [[first], [CopiedItem("Z", 1)]]
    kept = SegmentedLine("", (("a", "b"), (PLACEHOLDER, "c")), (second,))
    assert kept.items_of_chunks == [[], [CopiedItem("Y", 0, has_placeholder=True)]]


def test_training_with_placeholders(good: Any, run: Any, tmp_path: Path) -> None:  # noqa: F811
    for name, lines in (("a.de", GERMAN), ("a.en", ENGLISH), ("b.de", ["der hund"]), ("b.en", ["the dog"])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines * 10), encoding="utf-8")

    def train(text: str, output: str, *options: object) -> list[object]:
        texts = ("--src", tmp_path / f"{text}.de", "--tgt", tmp_path / f"{text}.en", "-o", tmp_path / output)
        return ["train", "translator", *texts, "--max-updates", 2, "--threads", 1, *options]

    sizes = ("--units", "subword:60", "--embedding", 4, "--hidden", 6)
    good(*train("a", "with", "--placeholders", *sizes))
    good(*train("a", "without", *sizes))
    assert knows_placeholders(dragoman.load(tmp_path / "with").source)
    done = good("translate", tmp_path / "with", stdin="Der Hund https://x.org/a sieht 😀\n")
    assert done.out.count("https://x.org/a") == done.out.count("😀") == 1 and PLACEHOLDER not in done.out
    for command, message in (
        (train("b", "new", "--placeholders"), "no pair has a name"),
        (train("a", "new", "--placeholders", "--from", tmp_path / "without"), "add --extend-vocabulary"),
    ):
        result = run(*command)
        assert result.code == 2 and message in result.err
    good(*train("a", "new", "--placeholders", "--from", tmp_path / "without", "--extend-vocabulary"))


def test_written_placeholders_are_filled_by_attention() -> None:
    tokenizer, source = Tokenizer.train("word", ["a b"], min_count=1), (PLACEHOLDER, "A", PLACEHOLDER)
    items = [CopiedItem("X", 0, has_placeholder=True), CopiedItem("Y", 2, has_placeholder=True)]
    swapped = np.array([[0.0, 0.1, 0.9], [0.0, 1.0, 0.0], [0.8, 0.0, 0.2]])
    tokens = [PLACEHOLDER, "a", PLACEHOLDER]
    assert insert_items(tokens, items, source, swapped, tokenizer) == "Y a X"
    assert insert_items(tokens, items, source, None, tokenizer) == "X a Y"
    assert insert_items(tokens[:2], items, source, swapped[:2], tokenizer) == "X Y a", "the other is inserted"
    assert insert_items([*tokens, PLACEHOLDER], items, source, None, tokenizer) == "X a Y", "one too many is removed"


def test_html_keeps_its_order() -> None:
    html = (
        '<p>Der Hund <a href="y">sieht</a> https://x.org/a?b und <b>Tom</b> 😀.</p>\n<h1>Die Katze {0} sieht Tom.</h1>'
    )
    pipeline = TextPipeline(untrained("subword:60"))
    result = translate_document(DocumentFile("x", "html", parse_html(html)), pipeline.translate_texts).text
    assert re.findall(r"</?[ph]1?>", result) == re.findall(r"</?[ph]1?>", html)
    first, second = result.split("\n")
    for part in ('<a href="y">', "</a>", "<b>", "</b>", "https://x.org/a?b", "😀"):
        assert first.count(part) == 1
    assert second.count("{0}") == 1


def test_only_wrong_long_numbers_are_exchanged() -> None:
    for source, translation, expected in (
        ("Tom hat 1984 Hunde", "Tom has 1943 dogs", "Tom has 1984 dogs"),
        ("Tom hat 1.984 Hunde", "Tom has 1,984 dogs", "Tom has 1,984 dogs"),
        ("um 14 Uhr", "at 2 p.m.", "at 2 p.m."),
        ("um 14:30 Uhr", "at 2:30 p.m.", "at 2:30 p.m."),
        ("1000 Hunde", "a thousand dogs", "a thousand dogs"),
        ("am 12. März 2020", "2020-03-12", "2020-03-12"),
        ("von 1914 bis 1918", "from 1939 to 1945", "from 1914 to 1918"),
        ("um 14.30 Uhr", "at 2.30 p.m.", "at 2.30 p.m."),
    ):
        assert restore_numbers(source, translation) == expected


GROUPED = ["1 250,50", "1\u00a0250,50", "1\u2009250,50", "1\u202f250.50", "1.250,50", "1,250.50", "1'250.50", "1’250,5"]


@pytest.mark.parametrize("number", GROUPED)
def test_a_number_with_groups_and_decimals_is_one_number(number: str) -> None:
    source = f"Il y a {number} euros."
    assert [found.text for found in find_numbers(source)] == [number]
    assert restore_numbers(source, f"There are {'1000' * 10}.") == f"There are {number}.", "never by a part of it"
    assert restore_numbers(source, "There are 250.") == f"There are {number}."
    for other in (*GROUPED, "1250.50", "1250,5"):
        assert restore_numbers(source, f"There are {other}.") == f"There are {other}.", "equal, so not exchanged"


def test_numbers_are_found_as_people_write_them() -> None:
    for text, numbers in (
        ("10 000 000 de chiens, 3,14 et 0.5", ["10 000 000", "3,14", "0.5"]),
        ("1,25,000 and 12,34,567.50", ["1,25,000", "12,34,567.50"]),
        ("12.05.2014, 192.168.1.10, 1,2,3", ["12", "05", "2014", "192", "168", "1", "10", "1", "2", "3"]),
        ("In 2014 250 people, 1914-1918, F1 250", ["2014", "250", "1914", "1918", "1", "250"]),
        ("約1,250人 ١٬٢٥٠٫٥", ["1,250", "١٬٢٥٠٫٥"]),
    ):
        assert [number.text for number in find_numbers(text)] == numbers
        assert all(text[number.start : number.end] == number.text for number in find_numbers(text))
    assert Number("١٬٢٥٠٫٥", 0).value == "1250.5"
    assert [number.text for number in find_long_numbers("14.30, 12,50, 2.125, 250,5")] == ["2.125", "250,5"]


def test_numbers_that_only_a_space_separates_may_be_several() -> None:
    english, german = "On May 12 250 people came", "Am 12. Mai kamen 250 Menschen"
    assert restore_numbers(english, german) == german and restore_numbers(german, english) == english


def test_a_long_number_is_one_item_for_a_translator_of_placeholders() -> None:
    lines = [f"Es sind {PLACEHOLDER} Hunde .", *GERMAN] * 5
    tokenizer = Tokenizer.train("subword:60", lines)
    for number in GROUPED:
        [line] = prepare_lines([f"Der Hund sieht {number} Hunde"], tokenizer)
        assert [item.text for item in line.items] == [number]
    source, target = add_placeholders(["x 1,250.50 a"] * 30, ["y 1,250.50 b"] * 30, seed=1)
    assert set(source) == {"x 1,250.50 a", f"x {PLACEHOLDER} a"} and set(target) == {
        "y 1,250.50 b",
        f"y {PLACEHOLDER} b",
    }


# -- capitals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["word", "subword:60"])
def test_odd_capitals_become_usual_ones(kind: str) -> None:
    truecaser = Tokenizer.train(kind, [line.replace(".", " .") for line in GERMAN * 5]).truecaser
    usual = "Der Hund sieht die Katze ."
    for line in (usual, usual.upper(), usual.lower(), usual.title(), "DeR hUND sIEHT dIE kATZE ."):
        assert truecaser.truecase([line]) == [usual]
    assert truecaser.truecase(["TOM SIEHT STRASSE ."]) == ["Tom sieht Straße ."]


def test_lower_case_of_capitals_is_that_of_the_training_text() -> None:
    truecaser = Tokenizer.train("subword:60", [line.lower() for line in GERMAN * 5]).truecaser
    assert truecaser.truecase(["AUF DER STRASSE", "Auf Der Straße"]) == ["auf der straße"] * 2


@pytest.mark.parametrize("kind", ["word", "subword:60"])
def test_sentences_without_a_capital_at_the_start_stay_so(kind: str) -> None:
    text = ["der Hund sieht Tom .", "die Katze sieht Tom ."] * 5
    truecaser = Tokenizer.train(kind, text).truecaser
    assert truecaser.truecase([text[0].upper(), text[0]]) == [text[0]] * 2


def test_capitals_follow_the_training_text() -> None:
    """A text without capitals is read in lower case, one in capitals in upper case, and tags are left alone."""
    for lines, line, expected in (
        (["the dog sees"], "The DOG", "the dog"),
        (["AACHEN"], "aachen", "AACHEN"),
        (["gehen V IND PST PL SBJV"], "USA N NOM", "USA N NOM"),
        (["北京"], "北京 USA", "北京 USA"),
    ):
        tokenizer = Tokenizer.train("char", lines)
        assert tokenizer.truecaser.truecase([line]) == [expected]


def test_a_line_in_capitals_is_translated_like_the_usual_one() -> None:
    model = untrained("subword:60")
    [usual, capitals] = model.translate([GERMAN[0], GERMAN[0].upper()])
    assert (capitals.tokens, capitals.text) == (usual.tokens, usual.text)
