"""Checks and fixes of characters and encodings."""

import gzip
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.errors import DataError
from dragoman.data.formats import read_text
from dragoman.doctor.characters import CHECKS, demojibake, find_matches, fix_line
from dragoman.doctor.documents import read_document
from dragoman.doctor.findings import FINDING_KINDS, REWRITE, SEVERITIES, Finding, group_by_kind
from dragoman.doctor.text_checks import character_findings

SUSPICIOUS = "aÄß Ã¤¼â€“”‘\u0308\u0303\u200b\u200d\u2028\x85\x93\0\x07\r\t\v\u00a0\u3000\ufeff\ufffd<s>/\u1e9b\u0958"
LINES = st.text(st.sampled_from(SUSPICIOUS), max_size=12) | st.text(max_size=8).map(lambda text: text.replace("\n", ""))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  das  ist\tes ", "das ist es"),
        ("Ma\u0308dchen", "Mädchen"),
        ("MÃ¤dchen â€“ grÃ¼n", "Mädchen – grün"),
        ("M\u00c3\u0083\u00c2\u00a4dchen", "Mädchen"),  # decoded twice
        ("wei\u00c3\u009f", "weiß"),
        ("\u0093so\u0094", "“so”"),  # Windows-1252 decoded as Latin-1
        ("eins\u2028zwei\vdrei", "eins zwei drei"),
        ("ze\u200bro \ufeffwi\u00addth", "zero width"),
        ("no\u00a0break", "no break"),
        ("bell\x07 and\0nul", "bell andnul"),
        ("<s> das </s>", "das"),
        ("MA\u0303\u00a4dchen", "Mädchen"),  # composed first, then decoded
    ],
)
def test_fixed_lines(line, expected):
    assert fix_line(line) == expected


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
def test_correct_lines_are_unchanged(line):
    assert fix_line(line) == line


@given(LINES)
def test_a_fixed_line_needs_no_fix(line):
    fixed = fix_line(line)
    assert fix_line(fixed) == fixed
    assert unicodedata.is_normalized("NFC", fixed)
    kinds = {
        check.kind for check in CHECKS if FINDING_KINDS[check.kind].fix == REWRITE and list(find_matches(fixed, check))
    }
    assert not kinds


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
def test_mojibake_is_reverted(line):
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
def test_encodings_are_detected(tmp_path, raw, kinds):
    document = read(tmp_path, raw)
    assert list(document.lines) == TEXT.splitlines()
    assert {finding.kind for finding in document.faults} == kinds


def test_an_invalid_line_does_not_affect_the_others(tmp_path):
    lines = [b"gut", "schön".encode("cp1252"), "schön".encode(), b"\x81\x8d\xff\xfe\xfd", b"cut \xc3"]
    document = read(tmp_path, b"\n".join(lines))
    assert list(document.lines[:3]) == ["gut", "schön", "schön"]
    findings = [(finding.kind, finding.line, finding.column) for finding in document.faults]
    assert findings == [("not-utf8", 2, 4), ("undecodable", 4, 1), ("undecodable", 5, 5)]


def test_findings_have_line_and_column(tmp_path):
    document = read(tmp_path, "ok\nan\u200bd \0 so\n  x\n".encode())
    findings = {(finding.kind, finding.line, finding.column) for finding in character_findings(document)}
    assert findings == {("invisible", 2, 3), ("nul", 2, 6), ("spaces", 3, 1)}
    assert all(finding.location.startswith(str(tmp_path)) for finding in character_findings(document))


def test_words_in_two_normal_forms(tmp_path):
    document = read(tmp_path, "Mädchen hier\nMa\u0308dchen da\nO\u0308l\n".encode())
    findings = [(finding.kind, finding.line) for finding in character_findings(document)]
    assert sorted(findings) == [("mixed-forms", 2), ("not-nfc", 2), ("not-nfc", 3)]


def test_missing_fields_are_reported(tmp_path):
    table = read(tmp_path, b"de\ten\neins\tone\nzwei\ndrei\tthree\n", "t.tsv", "en")
    assert list(table.lines) == ["one", "", "three"] and table.number(0) == 2
    assert [(finding.kind, finding.line, finding.index) for finding in table.faults] == [("no-field", 3, 1)]
    records = read(tmp_path, b'{"text": "a\\nb"}\n[1]\nnonsense\n{"text": 3}\n', "t.jsonl")
    assert list(records.lines) == ["a b", "", "", ""]
    assert [finding.line for finding in records.faults] == [2, 3, 4]
    packed = read(tmp_path, gzip.compress(TEXT.encode()), "t.txt.gz")
    assert list(packed.lines) == TEXT.splitlines()


def test_valid_files_are_read_as_in_training(tmp_path):
    rows = b'{"text": "eins zwei", "n": 1}\n{"text": "drei"}\n'
    document = read(tmp_path, rows, "t.jsonl")
    assert read_text(tmp_path / "t.jsonl").decode().splitlines() == list(document.lines)
    back = [document.layout.row(row, line) for row, line in zip(document.layout.rows, document.lines, strict=True)]
    assert [json.loads(row) for row in back] == [json.loads(row) for row in rows.splitlines()]


@pytest.mark.parametrize(("raw", "field"), [(b"", None), (b"a\n", "2")])
def test_unreadable_input_is_rejected(tmp_path, raw, field):
    with pytest.raises(DataError):
        read(tmp_path, raw, field=field)


def test_a_missing_column_is_rejected(tmp_path):
    with pytest.raises(DataError, match="no column 'fr'"):
        read(tmp_path, b"de\ten\na\tb\n", "t.tsv", "fr")
