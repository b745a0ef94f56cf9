"""What is copied from the source, and how odd capitals are read."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.data.casing import Truecaser
from dragoman.data.copied_items import find_items, lower_except_items
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.models.copying import CopiedItem, SourceReader, insert_items, repair_numbers, writes_digits
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


def reader(kind: str) -> SourceReader:
    return SourceReader(Tokenizer.train(kind, GERMAN * 3))


def untrained(kind: str, attention: str) -> Translator:
    source, target = Tokenizer.train(kind, GERMAN * 3), Tokenizer.train(kind, ENGLISH * 3)
    pairs = ParallelCorpus(source.encode(GERMAN), target.encode(ENGLISH))
    return Translator.create(pairs, source, target, embedding=4, hidden=6, attention=attention, embedding_reach=2.0)


@every_kind
@pytest.mark.parametrize("attention", ["mlp", "none"])
def test_every_item_arrives_once(kind: str, attention: str) -> None:
    """Also in an untrained translator. A word of another script is an unknown word for a translator of words."""
    model = untrained(kind, attention)
    items = ITEMS[:-1] if kind == "word" else ITEMS
    lines = [f"Der Hund {item} sieht Tom." for item in items] + [" ".join(items)]
    *single, every = model.translate(lines)
    for item, translation in zip(items, single, strict=True):
        assert translation.text.count(item) == 1
    assert every.text == " ".join(items) and every.tokens == ()


@every_kind
def test_known_text_is_read_as_it_is(kind: str) -> None:
    prepared = reader(kind).read(GERMAN)
    segmenter = reader(kind).tokenizer.segmenter
    assert [list(line.tokens) for line in prepared] == segmenter.segment_all(GERMAN)
    assert not any(line.items or line.all_caps for line in prepared)
    model = untrained(kind, "mlp")
    assert model.translate(GERMAN[0]) == model.translate(GERMAN[0], verbatim=True)


def test_items_are_found_by_class() -> None:
    text = "Das kostet 12,50 im August 2021 und/oder z.B. 50% der Leute; siehe x.org, ./a.txt und foo_bar."
    found = [text[start:end] for start, end, _ in find_items(text)]
    assert found == ["12,50", "2021", "50", "x.org", "./a.txt", "foo_bar"]
    assert lower_except_items("SIEHE https://X.org/A JETZT") == "siehe https://X.org/A jetzt"


def test_attention_divides_the_translation() -> None:
    """The item stands between the first and the second word, which change places."""
    tokenizer = Tokenizer.train("word", ["a b c"], min_count=1)
    swapped = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    straight = np.eye(3)
    item = CopiedItem("X", 1, " ", " ")
    source = ("A", "B", "C")
    assert insert_items(["a", "b", "c"], tokenizer, [item], source, straight) == "a X b c"
    assert insert_items(["b", "c", "a"], tokenizer, [item], source, swapped) in ("X b c a", "b c a X")
    assert insert_items(["a", "b", "c"], tokenizer, [item], source, None) == "a X b c"
    assert insert_items(["a", "b", "c"], tokenizer, [item], source, straight, all_caps=True) == "A X B C"


def test_wrong_numbers_are_corrected_and_words_are_allowed() -> None:
    words = reader("subword:60")
    assert repair_numbers("Tom hat 1984 Hunde", "Tom has 33 dogs", words)[0] == "Tom has 1984 dogs"
    assert repair_numbers("Tom hat 1.984 Hunde", "Tom has 1,984 dogs", words)[0] == "Tom has 1,984 dogs"
    text, lost = repair_numbers("Tom hat 1984 Hunde", "Tom has dogs", words)
    assert text == "Tom has dogs" and [(item.start, item.end) for item in lost] == [(8, 12)]
    known = SourceReader(Tokenizer.train("word", GERMAN * 3))
    assert repair_numbers("die 20 Hunde", "the twenty dogs", known) == ("the twenty dogs", [])
    spelled = Tokenizer.train("word", ["twenty dogs"] * 2)
    assert not writes_digits(known.tokenizer, spelled) and writes_digits(known.tokenizer, known.tokenizer)


@pytest.mark.parametrize("kind", ["word", "subword:60"])
def test_odd_capitals_become_usual_ones(kind: str) -> None:
    tokenizer = Tokenizer.train(kind, [line.replace(".", " .") for line in GERMAN * 5])
    truecaser = Truecaser(tokenizer.segmenter, tokenizer.vocab)
    usual = "Der Hund sieht die Katze ."
    for line in (usual, usual.upper(), usual.lower(), "DeR hUND sIEHT dIE kATZE ."):
        assert truecaser.truecase([line]) == [usual]
    assert truecaser.truecase(["TOM SIEHT STRASSE ."]) == ["Tom sieht Straße ."]


def test_capitals_follow_the_training_text() -> None:
    """A text without capitals is read in lower case, one in capitals in upper case, and tags are left alone."""
    for lines, line, expected in (
        (["the dog sees"], "The DOG", "the dog"),
        (["AACHEN"], "aachen", "AACHEN"),
        (["gehen V IND PST PL SBJV"], "USA N NOM", "USA N NOM"),
    ):
        tokenizer = Tokenizer.train("char", lines)
        assert tokenizer.truecaser.truecase([line]) == [expected]


def test_lines_in_capitals_have_translations_in_capitals() -> None:
    model = untrained("subword:60", "mlp")
    [plain, capitals] = model.translate([GERMAN[0], GERMAN[0].upper()])
    assert capitals.text == plain.text.upper() and capitals.log_prob == pytest.approx(plain.log_prob)
