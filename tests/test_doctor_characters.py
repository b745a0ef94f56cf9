"""Letters and bytes: what is seen, what is mended, and that mending leaves nothing to mend."""

import gzip
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.errors import DataError
from dragoman.data.formats import read_text
from dragoman.doctor.characters import CHECKS, demojibake, find_matches, fix_line
from dragoman.doctor.findings import FINDING_KINDS, REWRITE, SEVERITIES, Finding, group_by_kind
from dragoman.doctor.reader import read_document
from dragoman.doctor.single_text import character_findings

ROUGH = "aÄß Ã¤¼â€“”‘\u0308\u0303\u200b\u200d\u2028\x85\x93\0\x07\r\t\v\u00a0\u3000\ufeff\ufffd<s>/\u1e9b\u0958"
LINES = st.text(st.sampled_from(ROUGH), max_size=12) | st.text(max_size=8).map(lambda text: text.replace("\n", ""))


@pytest.mark.parametrize(
    ("line", "better"),
    [
        ("  das  ist\tes ", "das ist es"),
        ("Ma\u0308dchen", "Mädchen"),
        ("MÃ¤dchen â€“ grÃ¼n", "Mädchen – grün"),
        ("M\u00c3\u0083\u00c2\u00a4dchen", "Mädchen"),  # suffered twice
        ("wei\u00c3\u009f", "weiß"),
        ("\u0093so\u0094", "“so”"),  # Windows-1252 taken for Latin-1
        ("eins\u2028zwei\vdrei", "eins zwei drei"),
        ("ze\u200bro \ufeffwi\u00addth", "zero width"),
        ("no\u00a0break", "no break"),
        ("bell\x07 and\0nul", "bell andnul"),
        ("<s> das </s>", "das"),
        ("MA\u0303\u00a4dchen", "Mädchen"),  # composed first, then decoded
    ],
)
def test_what_is_mended(line, better):
    assert fix_line(line) == better


@pytest.mark.parametrize(
    "line",
    [
        "Spaß“, sagte er",
        "„ÄÖÜ“",
        "À la carte : « Âge »",
        "ÅÄÖ",
        "می\u200cخواهم",
        "👩\u200d🚀",
        "10 °C – 3 £",
        "<st> s> <unk>",
    ],
)
def test_what_is_left_alone(line):
    assert fix_line(line) == line


@given(LINES)
def test_mending_leaves_nothing_to_mend(line):
    sound = fix_line(line)
    assert fix_line(sound) == sound
    assert unicodedata.is_normalized("NFC", sound)
    found = {
        check.kind for check in CHECKS if FINDING_KINDS[check.kind].fix == REWRITE and list(find_matches(sound, check))
    }
    assert not found


WORDS = (
    "Mädchen",
    "für",
    "Straße",
    "é",
    "ñandú",
    "so“",
    "–",
    "don’t",
    "…",
    "5 €",
    "Ä",
    "Öl",
    "plain",
    "ça",
    "Łódź",
    "š",
)


@given(st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_what_was_decoded_twice_comes_back(line):
    once = line.encode().decode("cp1252", "ignore")
    if once.encode("cp1252", "ignore") == line.encode():
        assert demojibake(once) == line


def test_every_kind_is_described():
    assert all(kind.severity in SEVERITIES and kind.title and kind.remedy for kind in FINDING_KINDS.values())
    findings = [Finding(kind, "f", 1, "") for kind in reversed(FINDING_KINDS)]
    severities = [FINDING_KINDS[kind].severity for kind in group_by_kind(findings)]
    assert severities == sorted(severities, key=SEVERITIES.index) and len(severities) == len(FINDING_KINDS)


# -- reading ----------------------------------------------------------------------------------------------------------

TEXT = "Ein Mädchen läuft.\nZwei Männer\ngehen über die Straße.\n"


def read(tmp_path, raw, name="t.txt", field=None):
    (tmp_path / name).write_bytes(raw)
    return read_document(str(tmp_path / name), "train", field)


@pytest.mark.parametrize(
    ("raw", "kinds"),
    [
        (TEXT.encode(), set()),
        (b"\xef\xbb\xbf" + TEXT.encode(), {"bom"}),
        (TEXT.encode("utf-16"), {"utf-16"}),
        (TEXT.encode("utf-16-le"), {"utf-16"}),
        (TEXT.encode("utf-16-be"), {"utf-16"}),
        (TEXT.encode("utf-32"), {"utf-16"}),
        (TEXT.replace("\n", "\r\n").encode(), {"crlf"}),
        (TEXT.replace("\n", "\r").encode(), {"cr-lines"}),
        (TEXT.encode("cp1252"), {"not-utf8"}),
    ],
)
def test_any_encoding_is_read_and_named(tmp_path, raw, kinds):
    document = read(tmp_path, raw)
    assert list(document.lines) == TEXT.splitlines()
    assert {finding.kind for finding in document.faults} == kinds


def test_a_bad_line_does_not_spoil_the_others(tmp_path):
    lines = [b"gut", "schön".encode("cp1252"), "schön".encode(), b"\x81\x8d\xff\xfe\xfd", b"cut \xc3"]
    document = read(tmp_path, b"\n".join(lines))
    assert list(document.lines[:3]) == ["gut", "schön", "schön"]
    found = [(finding.kind, finding.line, finding.column) for finding in document.faults]
    assert found == [("not-utf8", 2, 4), ("undecodable", 4, 1), ("undecodable", 5, 5)]


def test_places_are_named(tmp_path):
    document = read(tmp_path, "ok\nan\u200bd \0 so\n  x\n".encode())
    found = {(finding.kind, finding.line, finding.column) for finding in character_findings(document)}
    assert found == {("invisible", 2, 3), ("nul", 2, 6), ("spaces", 3, 1)}
    assert all(finding.location.startswith(str(tmp_path)) for finding in character_findings(document))


def test_words_in_two_normal_forms_are_named(tmp_path):
    document = read(tmp_path, "Mädchen hier\nMa\u0308dchen da\nO\u0308l\n".encode())
    found = [(finding.kind, finding.line) for finding in character_findings(document)]
    assert sorted(found) == [("mixed-forms", 2), ("not-nfc", 2), ("not-nfc", 3)]


def test_fields_are_taken_and_missing_ones_named(tmp_path):
    table = read(tmp_path, b"de\ten\neins\tone\nzwei\ndrei\tthree\n", "t.tsv", "en")
    assert list(table.lines) == ["one", "", "three"] and table.number(0) == 2
    assert [(finding.kind, finding.line, finding.index) for finding in table.faults] == [("no-field", 3, 1)]
    records = read(tmp_path, b'{"text": "a\\nb"}\n[1]\nnonsense\n{"text": 3}\n', "t.jsonl")
    assert list(records.lines) == ["a b", "", "", ""]
    assert [finding.line for finding in records.faults] == [2, 3, 4]
    packed = read(tmp_path, gzip.compress(TEXT.encode()), "t.txt.gz")
    assert list(packed.lines) == TEXT.splitlines()


def test_sound_files_are_read_as_training_reads_them(tmp_path):
    rows = b'{"text": "eins zwei", "n": 1}\n{"text": "drei"}\n'
    document = read(tmp_path, rows, "t.jsonl")
    assert read_text(tmp_path / "t.jsonl").decode().splitlines() == list(document.lines)
    back = [document.layout.row(row, line) for row, line in zip(document.layout.rows, document.lines, strict=True)]
    assert [json.loads(row) for row in back] == [json.loads(row) for row in rows.splitlines()]


@pytest.mark.parametrize(("raw", "field"), [(b"", None), (b"a\n", "2")])
def test_what_cannot_be_read_at_all(tmp_path, raw, field):
    with pytest.raises(DataError):
        read(tmp_path, raw, field=field)


def test_a_column_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="no column 'fr'"):
        read(tmp_path, b"de\ten\na\tb\n", "t.tsv", "fr")
