"""Documents keep their format: laws of parsing and writing for any translator, and worked examples."""

from __future__ import annotations

import html
import random
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from markdown_it import MarkdownIt

from damage import damaged
from document_helpers import (
    FILES,
    hostile_translator,
    open_document,
    translated,
    upper,
)
from dragoman.core.errors import DataError
from dragoman.data.copied_items import PROTECTED
from dragoman.data.document_formats import DocumentFile, document_format, read_document_file
from dragoman.data.html_documents import parse_html, replace_language, write_html
from dragoman.data.inline_markup import plain_text
from dragoman.data.markdown_documents import parse_markdown
from dragoman.data.markup_projection import UnitAlignment, diagonal_weights, project, split_units
from dragoman.data.subtitles import CUE_TAG, read_cues
from dragoman.models.document_translation import unit_weights
from dragoman.models.translation import Translation

NAMES = ["page.html", "guide.md", "app.po", "app-1.2.xlf", "app-2.0.xlf", "film.en.srt", "film.vtt"]
# -- what must stay ----------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Everything in an HTML page except its text."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[object, ...]] = []
        self.kept = ""  # the element whose content is kept
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(("start", tag, *attrs))
        self.kept = self.kept or (tag if tag in ("script", "style", "pre", "code") else "")

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("end", tag))
        self.kept = "" if tag == self.kept else self.kept

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", data))

    def handle_decl(self, decl: str) -> None:
        self.found.append(("declaration", decl))

    def handle_data(self, data: str) -> None:
        self.found += [("kept", data)] if self.kept else [("placeholder", p) for p in PROTECTED.findall(data)]


def html_marks(text: str) -> Counter[object]:
    return Counter(Tags(text).found)


def markdown_marks(text: str) -> Counter[object]:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text.partition("\n---\n")[2])
    marks: Counter[object] = Counter()
    for token in (child for block in tokens for child in [block, *(block.children or [])]):
        if token.type in ("inline", "softbreak"):
            continue
        if token.type == "html_block":
            marks.update(html_marks(token.content))
        elif token.type in ("text", "text_special"):
            marks.update(PROTECTED.findall(token.content))
        else:
            attributes = tuple(token.attrs.items())
            marks[token.type, token.markup, token.info, attributes, token.content] += 1
    return marks


def subtitle_marks(text: str) -> Counter[object]:
    cues = read_cues(text, "x")
    return Counter((cue.start, cue.end, *sorted(CUE_TAG.findall(cue.text))) for cue in cues)


def po_marks(text: str) -> Counter[object]:
    """Everything except new translations, and their placeholders, which must be those of the message."""
    marks: Counter[object] = Counter(re.findall(r"^#.*|^msg(?:id|ctxt).*", text, re.MULTILINE))
    for entry in polib.pofile(text):
        forms = entry.msgstr_plural or {0: entry.msgstr}
        for index, form in forms.items():
            source = entry.msgid_plural if index else entry.msgid
            if not entry.fuzzy and form and not entry.obsolete:
                assert Counter(PROTECTED.findall(form)) == Counter(PROTECTED.findall(source))
                tags = [Counter(re.findall(r"</?\w+>", side)) for side in (form, source)]
                assert tags[0] == tags[1]
                assert form.endswith("\n") == source.endswith("\n")
    return marks


def xliff_marks(text: str) -> Counter[object]:
    root = etree.fromstring(text.encode())
    for source in root.iter("{*}source"):
        target = next(source.itersiblings("{*}target"), None)
        is_new = target is not None and target.get("state") is None and source.getparent().get("state") is None
        if is_new and (len(target) or target.text):
            assert inline_codes(target) == inline_codes(source)
            for code in root.iter("{*}ph", "{*}bpt"):
                assert code.text is None or code.text in ("%s", "<b>")
    for target in list(root.iter("{*}target")):
        target.getparent().remove(target)
    return Counter((element.tag, *element.attrib.items()) for element in root.iter())


def inline_codes(element: etree._Element) -> Counter[object]:
    return Counter((child.tag, *child.attrib.items()) for child in element.iterdescendants())


MARKS = {"html": html_marks, "markdown": markdown_marks, "po": po_marks, "xliff": xliff_marks}


def marks_of(file_format: str, text: str) -> Counter[object]:
    return MARKS.get(file_format, subtitle_marks)(text)


# -- laws --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["page.html", "guide.md", "film.en.srt", "film.vtt"])
def test_identity_returns_the_same_bytes(name: str) -> None:
    assert translated(open_document(name), str).encode() == (FILES / name).read_bytes()


@pytest.mark.parametrize("name", ["app.po", "app-1.2.xlf", "app-2.0.xlf"])
def test_identity_fills_in_the_source_and_a_complete_file_stays(tmp_path: Path, name: str) -> None:
    """PO files stay byte for byte, XLIFF files as canonical XML."""
    text = translated(open_document(name), str)
    (tmp_path / name).write_bytes(text.encode())
    again = read_document_file(str(tmp_path / name), document_format(name))
    assert not again.document.segments and again.already_translated > open_document(name).already_translated
    assert translated(again, str.upper) == text
    if name.endswith(".po"):
        entries = {entry.msgid: entry for entry in polib.pofile(text)}
        assert entries["Delete %s?"].msgstr == "Delete %s?"
        assert entries["%d file"].msgstr_plural == {0: "%d file", 1: "%d files"}
        assert next(e for e in entries.values() if e.msgid.startswith("A long")).msgstr.endswith("a?b=c\n")
    else:
        root = etree.fromstring(text.encode())
        for source in root.iter("{*}source"):
            target = next(source.itersiblings("{*}target"), None)
            if target is not None and target.get("state") is None and source.getparent().get("state") is None:
                assert "".join(target.itertext()) == "".join(source.itertext())
                assert [child.tag for child in target.iter()][1:] == [child.tag for child in source.iter()][1:]


@pytest.mark.parametrize("attention", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_no_translator_can_change_the_markup(name: str, attention: bool) -> None:
    file, raw = open_document(name), (FILES / name).read_bytes().decode("utf-8-sig")
    expected = marks_of(file.format, raw)
    for translate in (str.upper, lambda text: "", lambda text: text[::-1], *map(hostile_translator, range(40))):
        text = translated(file, translate, attention=attention)
        assert marks_of(file.format, text.removeprefix("\ufeff")) == expected


@pytest.mark.parametrize("attention", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_translator_that_keeps_the_order_changes_only_letters(name: str, attention: bool) -> None:
    """Every mark stays at its place between the words, and every element around its words."""
    texts = [translated(open_document(name), translate, attention=attention) for translate in (str, upper)]
    if name == "guide.md":  # lines are joined, and links by name keep their names
        texts = [
            re.sub(r"\n> ?|\]\[(?:collapsed|shortcut)?\]", lambda match: "]" if match[0][0] == "]" else " ", text)
            for text in texts
        ]
    source, result = (" ".join(html.unescape(text).replace("\\", "").split()) for text in texts)
    assert source != result and source.casefold() == result.casefold()


TEXTS = st.sampled_from(["Wort", " ", "zwei Wörter", ", ", ".", " %s ", "{x}", "&amp;", "犬が", "\n  "])
FRAGMENTS = st.recursive(
    TEXTS,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["b", "i", "a href='x'", "p", "span"]), st.lists(inner, max_size=4)).map(
            lambda node: f"<{node[0]}>{''.join(node[1])}</{node[0].split()[0]}>"
        ),
        st.sampled_from(["<br>", "<img src=x>", "<code>a b</code>", "<!-- c -->"]),
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(FRAGMENTS, max_size=5).map("".join), st.integers(0, 10**6), st.booleans())
def test_laws_of_html(text: str, seed: int, attention: bool) -> None:
    file = DocumentFile("x", "html", parse_html(text))
    assert translated(file, str) == text
    result = translated(file, hostile_translator(seed), attention=attention)
    assert html_marks(result) == html_marks(text)
    assert_well_nested(result)


def assert_well_nested(text: str) -> None:
    stack = []
    for kind, *rest in Tags(text).found:
        if kind == "start" and rest[0] not in ("br", "img"):
            stack.append(rest[0])
        elif kind == "end":
            assert stack.pop() == rest[0]


BLOCKS = st.sampled_from(
    [
        *(
            "# Kopf *schräg*",
            "Ein **fetter _Text_** hier",
            "- eins\n- zwei `code x`",
            "> Zitat\n> geht *weiter*",
            "a  \nb\\\nc",
        ),
        *(
            "[Ziel **da**](http://x.y/z_1 'T')",
            "![Bild](b.png) und",
            "```\n# kein Text\n```",
            "    eingerückt",
            "***",
            "1. a\n\n   b",
        ),
        *(
            "| a | b *c* |\n| - | - |\n| x \\| y | `|` z |",
            "<div>\nEin <b>Block</b>\n</div>",
            "x <i>y</i> z <br> w",
            "2 * 3 * 4",
        ),
        *(
            "[a]: http://a.b\n\n[a] und [b][a]",
            "snake_case *b*c \\* &copy;",
            "*a **b* c**",
            "Setext\n===",
            "- [ ] Aufgabe %s",
            "`` ` `` `a",
        ),
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(BLOCKS, max_size=5).map("\n\n".join), st.integers(0, 10**6))
def test_laws_of_markdown(text: str, seed: int) -> None:
    file = DocumentFile("x", "markdown", parse_markdown(text))
    assert translated(file, str) == text
    front = "---\na: b\n---\n"
    assert markdown_marks(front + translated(file, hostile_translator(seed))) == markdown_marks(front + text)


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("ab*_`[]()<>!#->|\\&;:~\n 1.\t/"), max_size=40), st.integers(0, 99))
def test_any_text_is_markdown(text: str, seed: int) -> None:
    file = DocumentFile("x", "markdown", parse_markdown(text))
    assert translated(file, str) == text
    translated(file, hostile_translator(seed))


# -- examples ----------------------------------------------------------------------------------------------------------


def test_tags_follow_their_words() -> None:
    """The noun comes before the adjective, and the tag goes with the adjective."""
    [segment] = parse_html("the <b>red</b> house").segments
    plain, target = plain_text(segment.parts, show=True), "la casa roja"
    attention = np.array([[0.8, 0.1, 0.1, 0.0], [0.1, 0.2, 0.7, 0.0], [0.0, 0.9, 0.1, 0.0], [0.0, 0.0, 0.0, 1.0]])
    translation = Translation(target, ("la", "casa", "roja"), 0.0, 0.0, ("the", "red", "house"), attention=attention)
    units = split_units(plain.text), split_units(target)
    weights = unit_weights(plain.text, units[0], target, units[1], [translation])
    assert write_html(segment, project(plain, target, UnitAlignment(*units, weights))) == "la casa <b>roja</b>"


def test_subwords_and_tokenised_text_are_aligned_with_plain_text() -> None:
    source, target = "Don't go!", "Geh nicht!"
    tokens = ("▁geh", "▁ni", "cht", "▁!")
    attention = np.zeros((5, 5))
    for row, column in enumerate((2, 1, 1, 3, 4)):
        attention[row, column] = 1.0
    translation = Translation("geh nicht !", tokens, 0.0, 0.0, ("do", "n't", "go", "!"), attention=attention)
    weights = unit_weights(source, split_units(source), target, split_units(target), [translation])
    assert weights.argmax(axis=1).tolist() == [1, 0, 2]


def test_a_very_long_word_is_aligned_in_short_time() -> None:
    """Comparing its characters one by one with those of its tokens would take hours."""
    source, target = f"{'x' * 70_000} go", "los geh"
    attention = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])
    translation = Translation(target, ("los", "geh"), 0.0, 0.0, ("x" * 69_000, "go"), attention=attention)
    weights = unit_weights(source, split_units(source), target, split_units(target), [translation])
    assert weights.argmax(axis=1).tolist() == [0, 1]


def test_placeholders_that_the_model_loses_are_put_back() -> None:
    file = DocumentFile("x", "html", parse_html("Delete %d files in <i>{name}</i>?"))
    words = {"delete": "lösche", "files": "dateien", "in": "in"}
    lossy = translated(file, lambda text: " ".join(words.get(w.lower().strip("?"), "") for w in text.split()) + "?")
    assert lossy == "lösche %d dateien in <i>{name}</i>?"
    copying = translated(file, lambda text: text.replace("Delete %d files", "%d Dateien löschen").replace("in", "aus"))
    assert copying == "%d Dateien löschen aus <i>{name}</i>?"


def test_subtitles_keep_their_lines(tmp_path: Path) -> None:
    text = translated(open_document("film.en.srt"), lambda text: f"{text} x y z {text}")
    assert "\r\n\r\n2\r\n" in text and text.startswith("\ufeff1\r\n")
    first = text.split("\r\n")[2:5]
    assert first[2] == "" and all(first[:2]) and abs(len(first[0]) - len(first[1])) < 15
    assert "\r\n- Fine. x y z Fine.\r\n- " in text


def test_overwrite_translates_everything_again() -> None:
    text = translated(open_document("app.po", overwrite=True), str.upper)
    assert 'msgstr "WELCOME"' in text and 'msgstr[1] "%d DAYS"' in text and '#~ msgstr "Alt"' in text
    assert '<target state="translated">SAVE</target>' in translated(
        open_document("app-1.2.xlf", overwrite=True), str.upper
    )


def test_formats_are_recognised_by_content(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / "x").write_bytes((FILES / name).read_bytes())
        expected = "text" if name == "guide.md" else document_format(name)
        assert document_format(str(tmp_path / "x")) == expected
    with pytest.raises(DataError, match="--format docx: choose from html, markdown, po"):
        document_format("x", "docx")


def test_diagonal_weights_connect_every_word() -> None:
    for targets, sources in ((1, 1), (3, 7), (7, 3), (4, 4)):
        weights = diagonal_weights(targets, sources)
        assert weights.shape == (targets, sources) and (weights.max(axis=1) > 0).all()
    assert (diagonal_weights(4, 4).argmax(axis=1) == np.arange(4)).all()


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_damaged_documents_raise_only_data_errors(tmp_path: Path, name: str) -> None:
    whole = (FILES / name).read_bytes()
    generator = random.Random(name)
    for _ in range(50):
        raw = damaged(whole, generator, b"<>&\"'\\#:-{}\n\r\x00\xff m*`[]|", 5)
        (tmp_path / name).write_bytes(raw)
        try:
            file = read_document_file(str(tmp_path / name), document_format(name))
            result = translated(file, str)
            if file.format in ("html", "markdown", "srt", "vtt"):
                assert result.encode() == raw
            translated(file, hostile_translator(1))
        except DataError as error:
            assert name in str(error) and "\n" not in str(error)


def test_xliff_with_entities_is_refused(tmp_path: Path) -> None:
    text = '<!DOCTYPE xliff [<!ENTITY x SYSTEM "file:///etc/passwd">]><xliff version="1.2"><source>&x;</source></xliff>'
    (tmp_path / "x.xlf").write_text(text)
    with pytest.raises(DataError, match="declares XML entities"):
        read_document_file(str(tmp_path / "x.xlf"), "xliff")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!DOCTYPE html>\n<HTML class=\"a\" lang='fr-FR'>", "<!DOCTYPE html>\n<HTML class=\"a\" lang='en'>"),
        ("<html lang=fr>", "<html lang=en>"),
        ('<html xmlns="x" xml:lang="fr" lang="fr">', '<html xmlns="x" xml:lang="en" lang="en">'),
        ('<html lang="de"><p lang="fr">', None),
        ('<!-- <html lang="fr"> --><html><p hreflang="fr" lang="fr">', None),
        ('<p lang="fr">', None),
    ],
)
def test_the_language_of_a_page_becomes_that_of_the_translation(
    tmp_path: Path, text: str, expected: str | None
) -> None:
    assert replace_language(text, "fr", "en") == (text if expected is None else expected)
    (tmp_path / "x.html").write_text(text)
    options: dict[str, Any] = {"source_language": "fr", "target_language": "en"}
    for languages, result in (({}, text), (options, text if expected is None else expected)):
        document = read_document_file(str(tmp_path / "x.html"), "html", **languages).document
        assert document.render([None] * len(document.segments)).text == result


def test_deep_nesting() -> None:
    text = "<b>" * 5000 + "tief" + "</b>" * 5000
    file = DocumentFile("x", "html", parse_html(text))
    result = translated(file, str.upper)
    assert result.count("<b>") == result.count("</b>") == 5000 and "TIEF" in result
