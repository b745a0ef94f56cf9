"""What each document format keeps, and what is translated in it: worked examples by an upper-casing translator."""

from __future__ import annotations

import gzip
import html
import re
from pathlib import Path

import polib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from document_helpers import reverse, translate_file, translated, upper
from dragoman.core.errors import DataError
from dragoman.data.copied_items import PROTECTED
from dragoman.data.document_formats import DocumentFile, document_format, read_document_file
from dragoman.data.file_formats import DOCUMENTS, PAIRS, recognise_format
from dragoman.data.html_documents import parse_html
from dragoman.data.markdown_documents import parse_markdown
from dragoman.data.po_files import escape_po, parse_po
from dragoman.models.document_translation import translate_document

from document_helpers import sentences_of  # isort: skip

# -- PO ----------------------------------------------------------------------------------------------------------------

HEADER = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'


def po(tmp_path: Path, text: str, translate=upper, **options: bool) -> str:  # type: ignore[no-untyped-def]
    result = translate_file(tmp_path / "x.po", HEADER + text, translate, **options)
    assert result.startswith(HEADER)
    return result.removeprefix(HEADER)


@pytest.mark.parametrize("indentation", ["", "  ", "\t"])
def test_an_indented_translation_is_filled_in_and_the_header_stays(tmp_path: Path, indentation: str) -> None:
    text = 'msgid "one"\n{0}msgstr "{1}"\n\n{0}msgid "two\\n"\n{0}"three"\n{0}msgstr {2}\n'
    empty = text.format(indentation, "", f'\n{indentation}""')
    filled = text.format(indentation, "ONE", f'""\n{indentation}"TWO\\n"\n{indentation}"THREE"')
    assert po(tmp_path, empty) == filled


@pytest.mark.parametrize("newline", ["\r\n", "\n", "\r"])
def test_line_breaks_of_a_po_file_stay(tmp_path: Path, newline: str) -> None:
    text = (HEADER + 'msgid "one\\n"\n"two"\nmsgstr ""\n').replace("\n", newline)
    filled = newline.join(['msgstr ""', '"ONE\\n"', '"TWO"', ""])
    assert translate_file(tmp_path / "x.po", text) == text.removesuffix(f'msgstr ""{newline}') + filled


def test_all_empty_plural_forms_are_filled_in(tmp_path: Path) -> None:
    plural = 'msgid "%d file"\nmsgid_plural "%d files"\n'
    result = po(tmp_path, f'{plural}msgstr[0] "%d Datei"\nmsgstr[1] ""\nmsgstr[2] ""\n')
    assert result == f'{plural}msgstr[0] "%d Datei"\nmsgstr[1] "%d FILES"\nmsgstr[2] "%d FILES"\n'
    assert po(tmp_path, f'{plural}msgstr[0] ""\n') == f'{plural}msgstr[0] "%d FILES"\n'  # the only form is the plural


def test_placeholders_keep_their_arguments_if_their_order_changes(tmp_path: Path) -> None:
    message = 'msgid "copied %s to %d files (100%%)"\nmsgstr '
    assert po(tmp_path, f'{message}""\n', upper).endswith('"COPIED %s TO %d FILES (100%%)"\n')
    numbered = po(tmp_path, f'#, c-format\n{message}""\n', lambda text: "FILES %d TO %s COPIED (100%%)")
    assert numbered.endswith('"FILES %2$d TO %1$s COPIED (100%%)"\n')
    python = po(tmp_path, f'#, python-format\n{message}""\n', lambda text: "FILES %d TO %s COPIED (100%%)")
    assert python.endswith('"FILES %s TO %d COPIED (100%%)"\n')
    source = "<source>copied %s to %d files</source>"
    unit = f'<xliff version="1.2"><file><body><trans-unit id="1">{source}</trans-unit></body></file></xliff>'
    assert "<target>files %s to %d copied</target>" in translate_file(tmp_path / "x.xlf", unit, reverse)


def test_numbering_counts_the_placeholders_of_the_whole_message(tmp_path: Path) -> None:
    message = '#, c-format\nmsgid "%s:\\nmoved %d to %x"\nmsgstr ""\n'
    assert po(tmp_path, message, reverse).endswith('msgstr ""\n"%1$s:\\n"\n"%3$x to %2$d moved"\n')


@pytest.mark.parametrize(
    "text",
    [
        'msgid "&Open\\tCtrl+O"',
        'msgid "a\u2028b"',
        'msgid "a &amp; b &nbsp;c &copy; d"',
        'msgid "{x!r:>10} a {name|upper} b {{ x | y }} c {0:.2f}"',
        'msgid "a <%= user.name %> b"',
        'msgid "a {% if x > 1 %} b {% endif %} c"',
        'msgid "20%s a, 100% b, 5 % c %-10s"',
        'msgid "{0, number, integer} a {when, date, short}"',
    ],
)
def test_everything_but_words_stays_in_messages(tmp_path: Path, text: str) -> None:
    kept = rf"{PROTECTED.pattern}|&\w+;|\{{%.*?%\}}|<%.*?%>|\\t|^msgid"
    expected = "".join(
        part if index % 2 else part.upper() for index, part in enumerate(re.split(f"({kept})", text, flags=re.ASCII))
    )
    assert po(tmp_path, f'{text}\nmsgstr ""\n') == f"{text}\n{expected.replace('msgid', 'msgstr', 1)}\n"


def test_rules_for_plurals_are_not_translated(tmp_path: Path) -> None:
    rule = "{n, plural,\\n one {# Hund}\\n other {# Hunde}}"
    text = f'msgid "{rule}"\nmsgstr ""\n'
    assert po(tmp_path, text) == text
    assert read_document_file(str(tmp_path / "x.po"), "po").skipped == 1
    page = "<p>{n, select, a {Hund} other {Hunde}} hier</p>"
    assert translate_file(tmp_path / "x.html", page) == page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('msgid "Hello\nmsgstr ""\n', "x.po:6: a string without its closing quote"),
        ('msgid "a"\nmsgstr "b" c\n', "x.po:7: text after a string"),
        ('msgid "a"\nhello\n', "x.po:7: not a line of a PO file"),
        ('msgid "a"\nmsgid "b"\nmsgstr ""\n', "x.po:7: msgid for the second time"),
        ('msgid "a"\n\nmsgstr ""\nmsgstr ""\n', "x.po:9: msgstr for the second time"),
        ('msgctxt "a"\nmsgstr ""\n', "x.po:6: a message without msgid"),
        ('msgid "a"\n', "x.po:6: a message without msgstr"),
        ('msgid "a"\nmsgstr\n', "x.po:7: no string after the keyword"),
    ],
)
def test_errors_of_po_files_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        po(tmp_path, text)


def test_other_encodings_become_utf8(tmp_path: Path) -> None:
    text = HEADER.replace("UTF-8", "ISO-8859-1") + 'msgid "süß"\nmsgstr ""\n'
    result = translate_file(tmp_path / "x.po", text.encode("latin-1"), lambda text: "甘い")
    assert result == HEADER + 'msgid "süß"\nmsgstr "甘い"\n'
    for charset, raw in (("x-unknown", b"s"), ("cp1252", b"s\x81"), ("UTF-8", b"s\xff")):
        data = text.encode("latin-1").replace(b"ISO-8859-1", charset.encode()).replace("süß".encode("latin-1"), raw)
        with pytest.raises(DataError, match=r"x\.po(:\d+)?: (charset=x-unknown is not known|not (cp1252|UTF-8))"):
            translate_file(tmp_path / "x.po", data)


PO_TEXT = st.text(st.sampled_from('ab"\\\n\t\r{}%ä犬\u2028 '), max_size=12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(PO_TEXT.filter(bool), PO_TEXT, st.booleans(), st.booleans()), min_size=1, max_size=4))
def test_messages_are_read_as_by_polib(entries: list[tuple[str, str, bool, bool]]) -> None:
    catalog = polib.POFile()
    for msgid, msgstr, is_fuzzy, is_obsolete in entries:
        flags = ["fuzzy"] if is_fuzzy else []
        catalog.append(polib.POEntry(msgid=msgid, msgstr=msgstr, flags=flags, obsolete=is_obsolete))
    actual = [
        (entry.msgid, entry.translations[0].text, "fuzzy" in entry.flags, entry.is_obsolete)
        for entry in parse_po(str(catalog).encode(), "x").entries
    ]
    assert sorted(actual) == sorted(entries)
    for msgid, *_ in entries:
        assert polib.unescape(escape_po(msgid)) == msgid


# -- XLIFF -------------------------------------------------------------------------------------------------------------

SEG_SOURCE = (
    '<seg-source><mrk mtype="seg" mid="1">A <g id="1">one</g>.</mrk> <mrk mtype="seg" mid="2"> b!</mrk></seg-source>'
)


def xliff(tmp_path: Path, unit: str, translate=upper, **options: bool) -> str:  # type: ignore[no-untyped-def]
    text = f'<xliff version="1.2"><file source-language="en"><body>{unit}</body></file></xliff>'
    result = translate_file(tmp_path / "x.xlf", text, translate, **options)
    return result.partition("<body>")[2].partition("</body>")[0]


@pytest.mark.parametrize(
    "target", ["", "<target/>", '<target><mrk mtype="seg" mid="1"/> <mrk mtype="seg" mid="2"/></target>']
)
def test_sentences_of_a_unit_are_filled_in(tmp_path: Path, target: str) -> None:
    unit = f'<trans-unit id="1"><source>A <g id="1">one</g>. b!</source>{SEG_SOURCE}{{}}<note>n</note></trans-unit>'
    expected = '<target><mrk mtype="seg" mid="1">A <g id="1">ONE</g>.</mrk> <mrk mtype="seg" mid="2"> B!</mrk></target>'
    assert xliff(tmp_path, unit.format(target)) == unit.format(expected)


def test_only_empty_sentences_are_filled_in(tmp_path: Path) -> None:
    target = '<target state="new"><mrk mtype="seg" mid="1">Eins.</mrk></target>'
    unit = f'<trans-unit id="1"><source>x</source>{SEG_SOURCE}{target}</trans-unit>'
    partial = xliff(tmp_path, unit.replace(' state="new"', ""))
    assert '<mrk mtype="seg" mid="1">Eins.</mrk><mrk mtype="seg" mid="2"> B!</mrk></target>' in partial
    assert '<target state="translated"><mrk mtype="seg" mid="1">A ' in xliff(tmp_path, unit)


def test_the_target_follows_the_source_and_its_state_is_updated(tmp_path: Path) -> None:
    unit = '<trans-unit id="1"><source>  one\n two </source>{}<note>n</note></trans-unit>'
    assert xliff(tmp_path, unit.format("")) == unit.format("<target>  ONE TWO </target>")
    seg_source = "<seg-source>  one\n two </seg-source>"
    assert xliff(tmp_path, unit.format(seg_source)) == unit.format(f"{seg_source}<target>  ONE TWO </target>")
    waiting = '<target state="needs-translation">one two</target>'
    assert '<target state="translated">  ONE TWO </target>' in xliff(tmp_path, unit.format(waiting))
    segment = '<segment state="{}"><source>one</source><target>{}</target></segment>'
    file = f'<xliff version="2.0" srcLang="en"><file id="f"><unit id="u">{segment}</unit></file></xliff>'
    assert segment.format("translated", "ONE") in translate_file(tmp_path / "x.xlf", file.format("initial", "x"))


@pytest.mark.parametrize(
    "source",
    [
        'eins <bpt id="1">b</bpt>zwei drei<ept id="1">/b</ept> vier',
        'eins <sc id="1"/>zwei drei<ec startRef="1"/> vier',
        'eins <bx id="1"/>zwei drei<ex id="1"/> vier',
    ],
)
def test_codes_that_belong_together_stay_around_their_words(tmp_path: Path, source: str) -> None:
    """Also if the words move: here they are turned around."""
    result = xliff(tmp_path, f'<trans-unit id="1"><source>{source}</source></trans-unit>', reverse)
    target = etree.fromstring(result)[1]
    first, second = target
    assert (first.tag, second.tag) == tuple(child.tag for child in etree.fromstring(f"<a>{source}</a>"))
    assert (target.text, first.tail, second.tail) == ("vier ", "drei zwei", " eins")


@pytest.mark.parametrize("attribute", ['translate="no"', 'mtype="protected"'])
def test_protected_marks_of_xliff_are_copied(tmp_path: Path, attribute: str) -> None:
    source = f"buy <mrk {attribute}>acme <g>corp</g></mrk> now"
    result = xliff(tmp_path, f'<trans-unit id="1"><source>{source}</source></trans-unit>')
    assert f"<target>BUY <mrk {attribute}>acme <g>corp</g></mrk> NOW</target>" in result


def test_the_target_language_is_named_if_it_is_missing(tmp_path: Path) -> None:
    for attributes, file in (('version="2.0" srcLang="en"', ""), ('version="1.2"', ' source-language="en"')):
        unit = "<unit><segment><source>one</source></segment></unit>"
        unit = unit if "2.0" in attributes else "<body><trans-unit><source>one</source></trans-unit></body>"
        (tmp_path / "x.xlf").write_text(f"<xliff {attributes}><file{file}>{unit}</file></xliff>")
        document = read_document_file(str(tmp_path / "x.xlf"), "xliff", target_language="de")
        result = etree.fromstring(translated(document, upper).encode())
        assert result.get("trgLang", "de") == result[0].get("target-language", "de") == "de"
        assert [*result.attrib, *result[0].attrib][-1] in ("trgLang", "target-language")
        (tmp_path / "x.xlf").write_text(translated(document, upper).replace('"de"', '"fr"').replace("ONE", ""))
        again = read_document_file(str(tmp_path / "x.xlf"), "xliff", target_language="de")
        assert '"fr"' in translated(again, upper) and '"de"' not in translated(again, upper)


# -- HTML --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('groß<sup><a href="#fn1">1</a></sup>.', 'GROSS<sup><a href="#fn1">1</a></sup>.'),
        ("5 m<sup>2</sup> und H<sub>2</sub>O", "5 M<sup>2</sup> UND H<sub>2</sub>O"),
        ("<b>one</b><i>two</i>", "<b>ONE</b><i>TWO</i>"),
        ("b<b>ol</b>d wordword<i>word</i>", "B<b>OL</b>D WORDWORD<i>WORD</i>"),
        ("<a>Home</a><a>About <i>us</i></a><u>x</u>", "<a>HOME</a><a>ABOUT <i>US</i></a><u>X</u>"),
        ("c<wbr>d one<!-- a -->two", "C<wbr>D ONE<!-- a -->TWO"),
        ("<p>one</p><?php if ($a->b) { ?><p>two</p><?php } ?>", "<p>ONE</p><?php if ($a->b) { ?><p>TWO</p><?php } ?>"),
        ("one <?= $name ?> two", "ONE <?= $name ?> TWO"),
        ("one <%= a > b %> two <% if x %>three<% end %>", "ONE <%= a > b %> TWO <% if x %>THREE<% end %>"),
        ('one <span translate="no">acme</span> two', 'ONE <span translate="no">acme</span> TWO'),
        ('<p class="a notranslate">acme</p> two', '<p class="a notranslate">acme</p> TWO'),
        ('<div translate="no"><div>a</div>b</div>c', '<div translate="no"><div>a</div>b</div>C'),
        ('<b translate="no">a <b>b</b> c</b> d', '<b translate="no">a <b>b</b> c</b> D'),
    ],
)
def test_html(tmp_path: Path, text: str, expected: str) -> None:
    for attention in (True, False):
        assert translate_file(tmp_path / "x.html", text, attention=attention) == expected


def test_an_element_that_is_not_translated_is_part_of_its_sentence() -> None:
    [segment] = parse_html('Das <span class="notranslate">ACME</span> Gerät').segments
    assert segment.raw.startswith("Das <span") and segment.raw.endswith("</span> Gerät")


def test_a_run_of_words_keeps_its_element() -> None:
    """The words of an element are found together, wherever they move."""
    text = "eins <b>zwei drei vier</b> fünf <i>sechs</i>"
    file = DocumentFile("x", "html", parse_html(text))
    moved = translate_document(
        file, lambda texts: sentences_of(texts, lambda _: "SECHS VIER DREI ZWEI FÜNF EINS", attention=False)
    )
    assert moved.text == "<i>SECHS</i> <b>VIER DREI ZWEI</b> FÜNF EINS"


def test_parts_of_a_word_stay_together_where_it_moves(tmp_path: Path) -> None:
    text = "haus<b>haus</b> eins zwei drei"
    assert translate_file(tmp_path / "x.html", text, reverse) == "drei zwei eins haus<b>haus</b>"


def test_an_empty_translation_is_not_written(tmp_path: Path) -> None:
    assert translate_file(tmp_path / "x.html", "<p>one</p>", lambda text: "") == "<p>one</p>"
    text = 'msgid "one\\n"\nmsgstr '
    assert po(tmp_path, f'{text}""\n', lambda text: "<b>") == f'{text}"one\\n"\n'


WORDS = st.sampled_from(["eins", "zwei", "drei", " ", " ", ", ", " %s ", "{x}"])
MARKED = st.recursive(
    WORDS,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["b", "i", "a href='x'", "span"]), st.lists(inner, max_size=3)).map(
            lambda node: f"<{node[0]}>{''.join(node[1])}</{node[0].split()[0]}>"
        ),
        st.sampled_from(["<img src=x>", "<!-- c -->", "<sup>2</sup>"]),
    ),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(MARKED, max_size=5).map("".join))
def test_a_translator_that_keeps_the_order_keeps_the_sequence_of_markup_and_words(text: str) -> None:
    """The result is the text with other words: the same marks in the same order, each around the same words."""
    result = translated(DocumentFile("x", "html", parse_html(text)), upper, attention=True)
    assert sequence(result) == [item if item[0] in "<%{" else item.upper() for item in sequence(text)]


def sequence(text: str) -> list[str]:
    """Return tags, placeholders and words in order, without spaces."""
    return re.findall(rf"<!--.*?-->|<[^<>]*>|{PROTECTED.pattern}|\w+|[^\w\s]", html.unescape(text), re.ASCII)


# -- Markdown ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See [the manual] now.\n\n[the manual]: u\n", "SEE [THE MANUAL][the manual] NOW.\n\n[the manual]: u\n"),
        ("See [a *page*][] now.\n\n[a *page*]: u\n", "SEE [A *PAGE*][a *page*] NOW.\n\n[a *page*]: u\n"),
        ("> See [the\n> manual].\n\n[the manual]: u\n", "> SEE [THE MANUAL][the manual].\n\n[the manual]: u\n"),
        ('!!! note "Title"\n    body *text*\n\n    more\n', '!!! note "TITLE"\n    BODY *TEXT*\n\n    MORE\n'),
        ("::: warning\ntext here\n\nmore\n:::\n", "::: warning\nTEXT HERE\n\nMORE\n:::\n"),
        ("## Title here {#anchor}\n", "## TITLE HERE {#anchor}\n"),
        ("a :smile: b {user_name} c\n", "A :smile: B {user_name} C\n"),
        ("{% raw %} text {% endraw %}\n", "{% raw %} TEXT {% endraw %}\n"),
        ("c<!-- x -->d and `code`\n", "C<!-- x -->D AND `code`\n"),
        ("`x` {string\\[]} is `y`\n", "`x` {string\\[\\]} IS `y`\n"),
        ("`xa` - is (`xb` #7), `xc`.\n", "`xa` - IS (`xb` #7), `xc`.\n"),
    ],
)
def test_markdown(tmp_path: Path, text: str, expected: str) -> None:
    def translate(line: str) -> str:
        return "".join(
            part if index % 2 else part.upper()
            for index, part in enumerate(re.split(r"(:smile:|code|\{[\w\[\]]+\})", line))
        )

    assert translate_file(tmp_path / "x.md", text, translate) == expected


def test_attributes_stay_at_the_end_of_a_heading(tmp_path: Path) -> None:
    assert translate_file(tmp_path / "x.md", "# Title {#a}\n", lambda text: "Titel!") == "# Titel! {#a}\n"


@pytest.mark.parametrize("start", ["2019. x", "1) x", "123456789. x", "# x", "!!! x", "::: x", "??? x", "- x", "+ x"])
def test_a_translation_cannot_start_a_block(tmp_path: Path, start: str) -> None:
    result = translate_file(tmp_path / "x.md", "hello world\n", lambda text: start)
    assert result.replace("\\", "") == f"{start}\n" and result != f"{start}\n"
    [segment] = parse_markdown(result).segments
    assert segment.raw == result.strip()


def test_emphasis_that_would_not_be_read_gets_spaces(tmp_path: Path) -> None:
    """Asterisks between a mark and a letter do not end emphasis; without a space the segment would not be translated."""
    result = translate_file(tmp_path / "x.md", "say **go!** now\n", lambda text: "一去!了", attention=True)
    assert result.count("**") == 2 and "say" not in result


def test_segments_that_stay_as_they_are_are_counted() -> None:
    file = DocumentFile("x", "markdown", parse_markdown("eins\n\nzwei\n\n- drei\n"))
    rendering = translate_document(file, lambda texts: sentences_of(texts, lambda t: t if t == "zwei" else t.upper()))
    assert rendering.text == "EINS\n\nzwei\n\n- DREI\n" and rendering.unchanged == 1


# -- subtitles ---------------------------------------------------------------------------------------------------------

TIMES = [f"00:00:0{n},000 --> 00:00:0{n},900" for n in range(1, 4)]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_cues_of_srt_end_before_the_next_number_and_times(tmp_path: Path, newline: str) -> None:
    text = f"1\n{TIMES[0]}\none\n2\n{TIMES[1]}\n12:30 -> 13:40 two\n\n9:15 -> train\n\n3\n{TIMES[2]}\n42\n\n"
    expected = re.sub("one|two|train", lambda match: match[0].upper(), text)
    assert translate_file(tmp_path / "x.srt", text.replace("\n", newline)) == expected.replace("\n", newline)


def test_empty_cues_stay_empty(tmp_path: Path) -> None:
    text = f"1\n{TIMES[0]}\n2\n{TIMES[1]}\n\n3\n{TIMES[2]}\nx y\n"
    assert translate_file(tmp_path / "x.srt", text) == text.replace("x y", "X Y")


# -- recognition -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<!-- c --><tmx version="1.4">', "tmx"),
        ('<x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:1.2">', "xliff"),
        ("# licence\n" * 1000 + 'msgid "a"\nmsgstr ""\n', "po"),
        ("The element <tmx> is described here.\n", None),
        ("Files start with <xliff>\n", None),
        ('Write msgid "a" in your file.\n', None),
        ("<!doctype HTML>", "html"),
        ('<?xml version="1.0"?><!-- a --><!DOCTYPE html SYSTEM "x"><html>', "html"),
        ("<!-- a --> " * 60 + "text", None),  # in linear time
        ("  # a\n" * 60 + "text", None),
    ],
)
def test_formats_are_recognised_by_how_a_file_starts(tmp_path: Path, content: str, expected: str | None) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        (tmp_path / "x").write_text(content, encoding=encoding)
        assert recognise_format(str(tmp_path / "x"), {*DOCUMENTS, *PAIRS}) == expected


def test_translation_memories_are_not_documents(tmp_path: Path) -> None:
    for name in ("memory.tmx", "memory"):
        (tmp_path / name).write_text("<tmx><body/></tmx>")
        with pytest.raises(DataError, match=r"is TMX, sentence pairs .* dragoman doctor --pairs"):
            document_format(str(tmp_path / name))


def test_packed_documents_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.html.gz").write_bytes(gzip.compress(b"<p>one</p>"))
    file = read_document_file(str(tmp_path / "x.html.gz"), document_format(str(tmp_path / "x.html.gz")))
    assert translated(file, upper) == "<p>ONE</p>"
