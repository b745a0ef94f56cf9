"""Sentence pairs from TSV, TMX, PO, XLIFF and subtitles; what is not used is reported; damage is an error."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from command import good, run  # noqa: F401
from damage import damaged
from dragoman.core.errors import DataError
from dragoman.data.formats import read_lines, read_text
from dragoman.data.languages import Languages
from dragoman.data.pair_files import pair_format, read_pair_file, read_pairs, tsv_fields
from dragoman.data.subtitles import Cue, match_cues

FILES = Path(__file__).parent / "formats"
NAMES = ["memory.tmx", "app.po", "app-1.2.xlf", "app-2.0.xlf"]


def rows_of(path: Path | str, **options: object) -> list[tuple[str, str]]:
    pairs = read_pair_file(str(path), **options)  # type: ignore[arg-type]
    return list(zip(pairs.source, pairs.target, strict=True))


def rejected(path: Path | str, **options: object) -> list[tuple[int, str]]:
    return [(unit.line, unit.reason) for unit in read_pair_file(str(path), **options).rejected]  # type: ignore[arg-type]


# -- TSV ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.txt", "pairs"])
def test_tsv_is_recognised_by_its_tabs(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    lines = "".join(f"{n}\tlinks {n}\trechts {n}\r\n" for n in range(40))
    (tmp_path / name).write_text(f"{lines}41\t\tempty\none column\n")
    assert rows_of(path, src_field="2", tgt_field="3") == [(f"links {n}", f"rechts {n}") for n in range(40)]
    assert rejected(path, src_field="2", tgt_field="3") == [(41, "empty"), (42, "too few columns")]
    both = read_pairs(path, path)
    assert (both.source[0], both.target[0]) == ("links 0", "rechts 0"), "numbers are not text"


def test_a_column_can_be_chosen_in_a_file_of_any_name(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a\tb\nc\td\n")
    assert read_text(tmp_path / "t.txt", "2") == b"b\nd\n"
    assert read_text(tmp_path / "t.txt") == b"a\tb\nc\td\n"  # no field is chosen: tabs are spaces


def test_header_of_tsv(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("English\tde\none\teins\n")
    assert rows_of(path) == [("one", "eins")] and rejected(path) == [(1, "header")]
    assert rows_of(path, src_field="de", tgt_field="1") == [("eins", "one")]
    path.write_text("id\tsatz\tsentence\n1\teins\tone\n")
    assert rows_of(path, src_field="satz", tgt_field="sentence") == [("eins", "one")]
    with pytest.raises(DataError, match=r"t.tsv:1: no column 'fr'; the first line has id, satz, sentence"):
        rows_of(path, src_field="fr")


def test_columns_with_text_are_chosen_by_the_header(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("id\tde\tEnglish\tscore\tfr\n1\teins\tone\t0.5\tun\n")
    assert rows_of(path, languages=Languages("fr", "de")) == [("un", "eins")]
    assert rows_of(path, languages=Languages("en-US", "deu")) == [("one", "eins")]
    for languages in (Languages(), Languages("ja", "de")):
        with pytest.raises(DataError, match=r"t.tsv:1: has the columns id, de, English, score, fr; choose two"):
            rows_of(path, languages=languages)
    assert rows_of(path, src_field="5", tgt_field="English") == [("un", "one")]
    path.write_text("id\tlang\n1\tde\n")
    assert rows_of(path) == [("1", "de")]


def test_one_text_for_both_sides_is_not_a_table(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a b\nc\td\ne\n")
    with pytest.raises(DataError, match=r"t.txt: source and target are the same text; give two files"):
        read_pairs(*[str(tmp_path / "t.txt")] * 2)
    with pytest.raises(DataError, match=r"t.txt: not TSV, JSONL, TMX, PO or XLIFF; for two texts, use --src"):
        rows_of(tmp_path / "t.txt")


def test_jsonl_needs_two_keys(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"de": "eins", "en": "one"}\n')
    assert rows_of(tmp_path / "t.jsonl", src_field="de", tgt_field="en") == [("eins", "one")]
    with pytest.raises(DataError, match="name the keys of both sides"):
        rows_of(tmp_path / "t.jsonl")


def test_blank_sides_of_jsonl_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"de": " ", "en": "one"}\n{"de": "zwei", "en": "two"}\n')
    assert rows_of(tmp_path / "t.jsonl", src_field="de", tgt_field="en") == [("zwei", "two")]
    assert rejected(tmp_path / "t.jsonl", src_field="de", tgt_field="en") == [(1, "empty")]


# -- TMX, PO, XLIFF ----------------------------------------------------------------------------------------------------


def test_tmx() -> None:
    path = FILES / "memory.tmx"
    assert rows_of(path) == [
        ("Drücken Sie OK.", "Press OK."),
        ("Die Farbe & das Licht", "The color & the light"),
        ("Zwei Zeilen", "Two lines"),
    ]
    assert rejected(path) == [(11, "another translation of the same language"), (16, "no translation"), (19, "empty")]
    assert rows_of(path, languages=Languages("en-GB", "de")) == [("The colour & the light", "Die Farbe & das Licht")]
    assert rows_of(path, languages=Languages(None, "de"))[0] == ("Press OK.", "Drücken Sie OK.")
    with pytest.raises(DataError, match=r"--tgt-lang fr: not a language of this file, which has de-DE, en-GB, en-US"):
        rows_of(path, languages=Languages("de", "fr"))


def test_tmx_with_three_languages_needs_a_choice(tmp_path: Path) -> None:
    unit = "".join(f'<tuv xml:lang="{code}"><seg>{code}</seg></tuv>' for code in ("de", "en", "fr"))
    (tmp_path / "m.tmx").write_text(f'<tmx><header srclang="*all*"/><body><tu>{unit}</tu></body></tmx>')
    with pytest.raises(DataError, match=r"has de, en, fr; choose two languages with --src-lang and --tgt-lang"):
        rows_of(tmp_path / "m.tmx")
    assert rows_of(tmp_path / "m.tmx", languages=Languages("fr", "de")) == [("fr", "de")]


def test_po() -> None:
    path = FILES / "app.po"
    assert rows_of(path) == [("Welcome", "Willkommen"), ("%d day", "%d Tag"), ("%d days", "%d Tage")]
    reasons = [reason for _, reason in rejected(path)]
    assert reasons == ["no translation", "fuzzy or not approved", *["no translation"] * 3, "obsolete"]
    assert rows_of(path, languages=Languages("de", "en"))[0] == ("Willkommen", "Welcome")
    with pytest.raises(DataError, match=r"no sentence pairs \(.*other language"):
        rows_of(path, languages=Languages("en", "fr"))


def test_xliff() -> None:
    assert rows_of(FILES / "app-1.2.xlf") == [("Save", "Speichern")]
    assert rejected(FILES / "app-1.2.xlf") == [
        (7, "no translation"),
        (15, "fuzzy or not approved"),
        (22, "not to be translated"),
        (23, "no translation"),
    ]
    assert rows_of(FILES / "app-2.0.xlf") == [("It is ready.", "Es ist bereit.")]
    assert rows_of(FILES / "app-2.0.xlf", languages=Languages("de", "en")) == [("Es ist bereit.", "It is ready.")]


@pytest.mark.parametrize("language", ["de", "German", "de_AT"])
def test_the_header_of_a_po_file_names_its_language(tmp_path: Path, language: str) -> None:
    header = f'msgid ""\nmsgstr "Language: {language}\\n"\n\n'
    (tmp_path / "x.po").write_text(f'{header}msgid "one"\nmsgstr "eins"\n')
    assert rows_of(tmp_path / "x.po", languages=Languages("de", "en")) == [("eins", "one")]
    assert rows_of(tmp_path / "x.po", languages=Languages("en", "de")) == [("one", "eins")]


@pytest.mark.parametrize("state", ["needs-review-translation", "needs-work", "rejected", "unreviewed"])
def test_translations_of_xliff_that_need_review_are_not_used(tmp_path: Path, state: str) -> None:
    units = f"""<trans-unit id="1"><source>one</source><target state="{state}">eins</target></trans-unit>
        <trans-unit id="2"><source>two</source><target state="final">zwei</target></trans-unit>"""
    (tmp_path / "x.xlf").write_text(f'<xliff version="1.2"><file><body>{units}</body></file></xliff>')
    assert rows_of(tmp_path / "x.xlf") == [("two", "zwei")]
    assert rejected(tmp_path / "x.xlf") == [(1, "fuzzy or not approved")]


def test_units_of_xliff_that_are_not_used_are_listed(tmp_path: Path) -> None:
    units = """<trans-unit id="1" approved="no"><source>one</source><target>eins</target></trans-unit>
        <trans-unit id="2"><target>zwei</target></trans-unit>
        <trans-unit id="3"><source>three</source><target><mrk mtype="seg" mid="1"/></target></trans-unit>
        <trans-unit id="4" approved="yes"><source>four</source><target>vier</target></trans-unit>
        <trans-unit id="5"><source>a. b.</source>
            <seg-source><mrk mtype="seg" mid="1">a.</mrk> <mrk mtype="seg" mid="2">b.</mrk></seg-source>
            <target><mrk mtype="seg" mid="1">A.</mrk> <mrk mtype="seg" mid="2"/></target></trans-unit>"""
    (tmp_path / "x.xlf").write_text(f'<xliff version="1.2"><file><body>{units}</body></file></xliff>')
    assert rows_of(tmp_path / "x.xlf") == [("four", "vier"), ("a.", "A.")]
    assert rejected(tmp_path / "x.xlf") == [
        (1, "fuzzy or not approved"),
        (2, "no source"),
        (3, "no translation"),
        (5, "no translation"),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_files_of_other_names_are_recognised(tmp_path: Path, name: str) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes((FILES / name).read_bytes())
    assert rows_of(copy) == rows_of(FILES / name)
    if name.endswith(("tmx", "xlf")):
        text = (FILES / name).read_text(encoding="utf-8").replace("UTF-8", "UTF-16")
        copy.write_bytes(text.encode("utf-16"))
        assert rows_of(copy) == rows_of(FILES / name)


BOMB = """<?xml version="1.0"?>
<!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa">{}]>
<tmx><body><tu><tuv xml:lang="de"><seg>&z;</seg></tuv></tu></body></tmx>
"""


@pytest.mark.parametrize(
    "declarations",
    [
        "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghz", strict=True)),
        '<!ENTITY z SYSTEM "file:///etc/hostname">',
        '<!ENTITY % p SYSTEM "http://localhost/x.dtd"> %p; <!ENTITY z "x">',
    ],
)
def test_entities_are_refused(tmp_path: Path, declarations: str) -> None:
    (tmp_path / "bomb.tmx").write_text(BOMB.format(declarations))
    with pytest.raises(DataError, match=r"bomb\.tmx"):
        rows_of(tmp_path / "bomb.tmx")


def test_entities_are_not_read_before_they_are_refused(tmp_path: Path) -> None:
    """Another file would be read as part of this one: here it is not XML, which would be the error."""
    (tmp_path / "other").write_text("<broken")
    (tmp_path / "x.tmx").write_text(BOMB.format(f'<!ENTITY z SYSTEM "file://{tmp_path}/other">'))
    with pytest.raises(DataError, match="declares XML entities"):
        rows_of(tmp_path / "x.tmx")


# -- languages of pair files -------------------------------------------------------------------------------------------


def tmx(path: Path, *pairs: tuple[str, str], source: str = "de") -> Path:
    """A file with one unit, whose text in each language is its tag."""
    unit = "".join(f'<tuv xml:lang="{tag}"><seg>{text}</seg></tuv>' for tag, text in pairs)
    path.write_text(f'<tmx><header srclang="{source}"/><body><tu>{unit}</tu></body></tmx>')
    return path


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("memory.tmx", {}, ("de", "en")),
        ("memory.tmx", {"languages": Languages("eng")}, ("en", "de")),
        ("app.po", {}, (None, "de")),
        ("app.po", {"languages": Languages("deu")}, ("de", None)),
        ("app-1.2.xlf", {}, ("en", "de")),
        ("app-2.0.xlf", {"languages": Languages("de")}, ("de", "en")),
    ],
)
def test_languages_of_files(name: str, options: dict[str, Any], expected: tuple[str | None, str | None]) -> None:
    assert read_pair_file(str(FILES / name), **options).languages == expected


def test_the_content_of_a_file_counts_more_than_its_name(tmp_path: Path) -> None:
    path = tmx(tmp_path / "news.de-en.tmx", ("de", "Haus"), ("en", "house"), source="en")
    pairs = read_pair_file(str(path))
    assert (pairs.source, pairs.languages) == (["house"], ("en", "de"))
    assert pairs.reversed.languages == ("de", "en") == pairs.reversed.select([0]).languages


@pytest.mark.parametrize(
    ("name", "header", "fields", "expected"),
    [
        ("pairs.de-en.tsv", "", (None, None), ("de", "en")),
        ("pairs.de-en.tsv", "", ("2", "1"), ("en", "de")),
        ("pairs.tsv", "German\teng\n", (None, None), ("de", "en")),
        ("pairs.de-en.tsv", "fr\tit\n", ("2", "1"), ("it", "fr")),
        ("pairs.tsv", "source\ten-US\n", (None, None), (None, "en")),
        ("my_so_file.tsv", "", (None, None), (None, None)),
    ],
)
def test_languages_of_tables(
    tmp_path: Path, name: str, header: str, fields: tuple[str | None, str | None], expected: tuple[str | None, ...]
) -> None:
    (tmp_path / name).write_text(f"{header}eins\tone\nzwei\ttwo\n")
    assert read_pair_file(str(tmp_path / name), *fields).languages == expected


def test_languages_of_texts(tmp_path: Path) -> None:
    film = read_pairs(str(FILES / "film.en.srt"), str(FILES / "film.de.srt"))
    assert film.languages == ("en", "de")
    path = tmp_path / "pairs.de-en.jsonl"
    path.write_text('{"en": "one", "de": "eins"}\n')
    assert read_pair_file(str(path), "en", "de").languages == ("en", "de")
    (tmp_path / "pairs.de-en.txt").write_text("eins\tone\n" * 3)
    assert read_pairs(*[str(tmp_path / "pairs.de-en.txt")] * 2, "2", "1").languages == ("en", "de")


@pytest.mark.parametrize("given", ["de", "deu", "ger", "de-AT", "de_CH"])
def test_languages_are_compared_by_their_codes(tmp_path: Path, given: str) -> None:
    path = tmx(tmp_path / "m.tmx", ("de", "Haus"), ("en-GB", "house"), source="en")
    assert rows_of(path, languages=Languages(given)) == [("Haus", "house")]
    assert rows_of(FILES / "app.po", languages=Languages(given, "eng"))[0] == ("Willkommen", "Welcome")


def test_regions_are_languages_of_their_own_where_a_file_has_both(tmp_path: Path) -> None:
    path = tmx(tmp_path / "m.tmx", ("pt-BR", "trem"), ("pt-PT", "comboio"), source="pt-BR")
    for source, target, row in (("pt-BR", "pt-PT", ("trem", "comboio")), ("pt-PT", None, ("comboio", "trem"))):
        assert rows_of(path, languages=Languages(source, target)) == [row]


# -- columns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("id\tde\ten", ("eins", "one")),
        ("id\ttarget\tsource", ("one", "eins")),
        ("id\tsentence\ten", ("eins", "one")),
        ("nr\tde\ten", ("eins", "one")),
    ],
)
def test_columns_follow_the_header(tmp_path: Path, header: str, expected: tuple[str, str]) -> None:
    (tmp_path / "t.tsv").write_text(f"{header}\n7\teins\tone\n")
    assert rows_of(tmp_path / "t.tsv") == [expected] and rejected(tmp_path / "t.tsv") == [(1, "header")]
    fields = tsv_fields(str(tmp_path / "t.tsv"))
    assert rows_of(tmp_path / "t.tsv", src_field=fields[0], tgt_field=fields[1]) == [expected]


def test_columns_of_numbers_are_not_text(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("1\teins\t77\tone\n2\tzwei\t78\ttwo\n\nragged\tx\n")
    assert rows_of(tmp_path / "t.tsv") == [("eins", "one"), ("zwei", "two")]
    (tmp_path / "t.tsv").write_text("1\tone\n2\ttwo\n")
    assert rows_of(tmp_path / "t.tsv") == [("1", "one"), ("2", "two")], "there are only two columns"


@pytest.mark.parametrize(
    ("header", "fields", "message"),
    [
        ("de\ten\tfr", (None, None), r"t.tsv:1: has the columns de, en, fr; choose two with --src-field and --tgt"),
        ("a\tb\tc", ("1", "1"), "t.tsv: column 1 is both source and target; choose two columns with --src-field"),
        ("a\tde\tc", ("de", "2"), "t.tsv: column 2 is both source and target"),
        ("a\tb\tc", ("2", None), "t.tsv: column 2 is both source and target"),
        ("a\tb\tc", ("9" * 5000, "1"), "t.tsv: no column 9{20}; columns count from 1"),
        ("a\tb\tc", ("1", "0"), "t.tsv: no column 0; columns count from 1"),
    ],
)
def test_columns_that_cannot_be_read(
    tmp_path: Path, header: str, fields: tuple[str | None, str | None], message: str
) -> None:
    (tmp_path / "t.tsv").write_text(f"{header}\nx\ty\tz\n")
    with pytest.raises(DataError, match=message) as error:
        read_pair_file(str(tmp_path / "t.tsv"), *fields)
    assert len(str(error.value)) < 400


# -- subtitles ---------------------------------------------------------------------------------------------------------


def test_subtitles_are_matched_by_time() -> None:
    pairs = read_pairs(str(FILES / "film.en.srt"), str(FILES / "film.de.srt"))
    assert list(zip(pairs.source, pairs.target, strict=True)) == [
        ("Good morning, how are you?", "Guten Morgen, wie geht es Ihnen?"),
        ("- Fine. - Really?", "- Gut. - Wirklich?"),
        ("A long sentence. And the end.", "Ein langer Satz und das Ende."),
    ]
    assert [(unit.line, unit.reason) for unit in pairs.rejected] == [(20, "no cue at the same time")]


def test_subtitles_as_text() -> None:
    assert read_lines(str(FILES / "film.vtt")) == [
        "Never drink liquid nitrogen.",
        "It will perforate & hurt your stomach.",
    ]


@pytest.mark.parametrize(("share", "groups"), [(0.4, 2), (0.6, 1)])
def test_cues_belong_together_from_half_of_the_shorter_one(share: float, groups: int) -> None:
    start = round(1000 * (1 - share))
    assert len(match_cues([Cue(0, 1000, "", 1, 0)], [Cue(start, start + 2000, "", 1, 0)])) == groups


@pytest.mark.parametrize(("count", "is_used"), [(3, True), (4, False)])
def test_long_chains_of_cues_are_not_used(tmp_path: Path, count: int, is_used: bool) -> None:
    def cue(start: int, end: int, text: str) -> str:
        return f"1\n00:00:{start:02},000 --> 00:00:{end:02},000\n{text}\n\n"

    last = cue(40, 50, "end")
    (tmp_path / "a.srt").write_text("".join(cue(n, n + 1, f"w{n}") for n in range(count)) + last)
    (tmp_path / "b.srt").write_text(cue(0, count, "all") + last)
    pairs = read_pairs(str(tmp_path / "a.srt"), str(tmp_path / "b.srt"))
    assert pairs.target == (["all", "end"] if is_used else ["end"])
    assert [unit.reason for unit in pairs.rejected] == ([] if is_used else ["too many overlapping cues"])


def test_every_cue_is_in_one_group() -> None:
    """Also if cues overlap those before and after them."""
    generator = random.Random(1)
    for _ in range(200):
        sides = []
        for _side in range(2):
            starts = sorted(generator.randrange(100) for _ in range(generator.randrange(8)))
            sides.append([Cue(start, start + generator.randrange(1, 30), "", n, 0) for n, start in enumerate(starts)])
        groups = match_cues(*sides)
        for number, cues in enumerate(sides):
            grouped = [cue.line for group in groups for cue in (group.source, group.target)[number]]
            assert sorted(grouped) == [cue.line for cue in cues]


@pytest.mark.parametrize("text", ["no cues\n", "1\n00:00:01,000 -> 00:00:02,000\nx\n", "1\n0:0:1 --> 2\nx\n"])
def test_damaged_times_are_errors(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.srt").write_text(text)
    with pytest.raises(DataError, match=r"x.srt(:2)?: (no cues|not the times of a cue)"):
        read_lines(str(tmp_path / "x.srt"))


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*NAMES, "film.en.srt", "film.vtt"])
def test_damaged_files_raise_only_data_errors(tmp_path: Path, name: str) -> None:
    whole = (FILES / name).read_bytes()
    generator = random.Random(name)
    for _ in range(60):
        raw = damaged(whole, generator, b"<>&\"'\\#:-{}\n\r\x00\xff m", 4)
        path = tmp_path / name
        path.write_bytes(raw)
        try:
            read_lines(str(path)) if name.startswith("film") else read_pair_file(str(path))
            assert name.startswith("film") or pair_format(str(path)) is not None
        except DataError as error:
            assert name in str(error) and "\n" not in str(error)


# -- commands ----------------------------------------------------------------------------------------------------------


def test_align_and_doctor_read_pair_files(good, run, tmp_path: Path) -> None:  # noqa: F811
    outcome = good("align", "--pairs", FILES / "memory.tmx", "--rejected", tmp_path / "rejected.tsv")
    assert len(outcome.lines) == 3
    assert "3 of 6 entries are not used: 1 another translation of the same language (line 11)" in outcome.err
    rows = (tmp_path / "rejected.tsv").read_text().splitlines()
    assert rows[0] == "file\tline\treason" and rows[2] == f"{FILES / 'memory.tmx'}\t16\tno translation"
    report = good("doctor", "--pairs", FILES / "memory.tmx", "--no-cost")
    assert "not used: 1 empty (line 19)" in report.out
    (tmp_path / "pairs.txt").write_text("de\ten\neins\tone\nzwei\ttwo\n")
    assert "pairs.txt" in good("doctor", "--pairs", tmp_path / "pairs.txt", "--no-cost").out
    good("doctor", "--pairs", FILES / "memory.tmx", "--no-cost", "--fix", "-o", tmp_path / "fixed")
    assert (tmp_path / "fixed" / "memory.tmx.src").read_text().splitlines()[0] == "Drücken Sie OK."
    for arguments in (
        ["align", "--pairs", FILES / "memory.tmx", "--src", "x", "--tgt", "y"],
        ["align", "--src", "x"],
        ["doctor", "--pairs", "x", "--text", "y"],
        ["ladder", "--pairs", "missing.tmx", "-o", tmp_path / "ladder"],
    ):
        outcome = run(*arguments)
        assert outcome.code == 2 and outcome.err.count("\n") == 1 and "Traceback" not in outcome.err


def test_training_on_pairs_suggests_to_evaluate_on_pairs(good, tmp_path):  # noqa: F811
    """With the same options, so that the command works."""
    (tmp_path / "pairs.tsv").write_text("".join(f"a {word} b\tA {word.upper()} B\n" for word in "cdefghijklmnopqrstuv"))
    sizes = ("--units", "word", "--embedding", 4, "--hidden", 4, "--max-epochs", 1)
    outcome = good("train", "translator", "--pairs", tmp_path / "pairs.tsv", "-o", tmp_path / "model", *sizes)
    command = outcome.err.splitlines()[-1]
    assert command == f"next: dragoman evaluate {tmp_path / 'model'} --pairs FILE"
    assert "perplexity" in good(*command.replace("FILE", str(tmp_path / "pairs.tsv")).split()[2:]).out
