"""The cleaned copy: nothing is left in it that was to be cleaned, and nothing is lost without a word."""

import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doctor_texts import pairs, write
from dragoman.doctor.examine import Files, examine, read, report_on
from dragoman.doctor.findings import LEAVE
from dragoman.doctor.fix import DROPPED, MENDED, fix, output_names
from dragoman.doctor.fix import write as write_fixed
from dragoman.doctor.single import Limits
from dragoman.errors import DataError
from dragoman.text.formats import read_text

WORD = st.sampled_from(
    ["a", "b", "Ma\u0308d", "gr\u00c3\u00bcn", "</s>", "\u200b", "x" * 70, "\x07", "z\u00a0z", "ß", "\ufffd"]
)
LINE = st.lists(WORD, max_size=4).map(" ".join)
RAW_LINE = LINE.map(str.encode) | st.sampled_from(
    [b"\xe4h", b"\xff\xfe\xfd", b"\0", b"a\rb", b"ok\r", "да да".encode()]
)
RAW = st.lists(RAW_LINE, min_size=1, max_size=8).map(
    lambda lines: b"".join([b"first\n", *(line + b"\n" for line in lines)])
)


def clean(files, target, limits=None):
    fixed = fix(read(files), limits or Limits())
    places = write_fixed(fixed, target)
    return fixed, Files(*(tuple(str(places[path]) for path in part) for part in (files.train, files.dev)), files.fields)


def fixable(files):
    report = examine(files, with_cost=False)
    return {finding.kind for finding in report.findings if finding.about.fix != LEAVE}


def dropped_rows(directory):
    return [row.split("\t") for row in (directory / DROPPED).read_text(encoding="utf-8").splitlines()[1:]]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=RAW, dev=RAW)
def test_a_cleaned_text_has_nothing_to_clean(tmp_path_factory, text, dev):
    place = tmp_path_factory.mktemp("fix")
    (place / "t").write_bytes(text)
    (place / "d").write_bytes(dev.replace(b"first", b"held out", 1))
    files = Files((str(place / "t"),), (str(place / "d"),))
    before = len(read(files).train[0])
    fixed, cleaned = clean(files, place / "out")
    assert not fixable(cleaned)
    for path in (*cleaned.train, *cleaned.dev):
        read_text(path)  # training reads it
    again, _ = clean(cleaned, place / "again")
    assert not again.dropped and not again.mended
    train_dropped = [line for line in fixed.dropped if line.finding.part == "train"]
    assert len(fixed.material.train[0]) + len(train_dropped) == before
    assert len(dropped_rows(place / "out")) == len(fixed.dropped)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.tuples(RAW_LINE, RAW_LINE), min_size=1, max_size=6))
def test_cleaned_pairs_stay_in_step(tmp_path_factory, lines):
    place = tmp_path_factory.mktemp("fix")
    for side, name in enumerate(("s", "t")):
        marked = [line[side] + f" {number}".encode() for number, line in enumerate(lines)]
        (place / name).write_bytes(b"".join(line + b"\n" for line in [b"first 99", *marked]))
    fixed, cleaned = clean(Files((str(place / "s"), str(place / "t"))), place / "out")
    source, target = (read_text(path).decode().splitlines() for path in cleaned.train)
    assert [line.split()[-1] for line in source] == [line.split()[-1] for line in target]
    assert len(source) + len(fixed.dropped) == len(lines) + 1
    assert not fixable(cleaned)


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory):
    """Pairs with one fault of each sort that only the text itself can tell."""
    place = tmp_path_factory.mktemp("spoiled")
    source, target = map(list, pairs())
    target[400:420] = target[401:421]
    target[100], target[200] = target[200], target[100]
    target[300] = source[300]
    source[500], target[500] = target[500], source[500]
    target[600] = source[900]
    target[700] = "\u200b"
    dev = [source[10], source[11] + " ba"], [target[10], target[11]]
    names = {"t.s": source, "t.t": target, "d.s": dev[0], "d.t": dev[1]}
    paths = [write(place / name, lines) for name, lines in names.items()]
    return Files((paths[0], paths[1]), (paths[2], paths[3]))


def test_what_the_text_itself_tells_is_dropped_until_nothing_is_left(spoiled, tmp_path):
    fixed, cleaned = clean(spoiled, tmp_path / "out")
    gone = {finding.finding.line: finding.finding.kind for finding in fixed.dropped}
    assert gone.items() >= {(101, "misaligned"), (201, "misaligned"), (301, "untranslated")}
    assert gone.items() >= {(501, "swapped"), (601, "wrong-language"), (701, "empty-side"), (11, "overlap")}
    assert sum(line in gone for line in range(401, 421)) >= 18
    assert not fixable(cleaned)
    assert len(fixed.material.dev[0]) == 2  # overlapping lines are train's to lose
    rows = dropped_rows(tmp_path / "out")
    assert {(int(row[1]), row[2]) for row in rows} == set(gone.items()) and all(len(row) in (5, 6) for row in rows)


def test_sound_lines_are_written_as_they_were(spoiled, tmp_path):
    fixed, cleaned = clean(spoiled, tmp_path / "out")
    original = read_text(spoiled.train[0]).decode().splitlines()
    kept = read_text(cleaned.train[0]).decode().splitlines()
    assert kept == [original[place] for place in fixed.material.train[0].places.tolist()]


def test_duplicates_may_be_kept(tmp_path):
    files = Files((write(tmp_path / "t", ["a b", "a b", "c"]),))
    assert len(clean(files, tmp_path / "one")[0].material.train[0]) == 2
    assert len(clean(files, tmp_path / "all", Limits(keep_duplicates=True))[0].material.train[0]) == 3


def test_formats_are_written_as_they_were_read(tmp_path):
    (tmp_path / "p.tsv").write_bytes("id\tde\ten\n1\tMa\u0308dchen \tgirl\n2\tx\n3\t\u200bFrau\twoman  x\n".encode())
    table = Files((str(tmp_path / "p.tsv"),) * 2, (), ("de", "en"))
    _, cleaned = clean(table, tmp_path / "one")
    assert (tmp_path / "one" / "p.tsv").read_text(
        encoding="utf-8"
    ) == "id\tde\ten\n1\tMädchen\tgirl\n3\tFrau\twoman x\n"
    assert not fixable(cleaned)
    rows = [{"text": "a\x07 b", "n": 1}, {"text": "", "n": 2}]
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    clean(Files((str(tmp_path / "t.jsonl.gz"),)), tmp_path / "two")
    assert json.loads(gzip.decompress((tmp_path / "two" / "t.jsonl.gz").read_bytes())) == {"text": "a b", "n": 1}


def test_what_was_mended_is_counted(tmp_path):
    files = Files((write(tmp_path / "t", ["a  b", " c", "d\x07"]),))
    clean(files, tmp_path / "out")
    counts = [row.split("\t")[1:] for row in (tmp_path / "out" / MENDED).read_text().splitlines()[1:]]
    assert sorted(counts) == [["control", "1"], ["spaces", "2"]]


def test_files_out_of_step_are_refused(tmp_path):
    files = Files((write(tmp_path / "s", ["a", "b"]), write(tmp_path / "t", ["a"])))
    with pytest.raises(DataError, match="not in step"):
        fix(read(files), Limits())


def test_nothing_is_written_where_no_line_would_be_left(tmp_path):
    files = Files((write(tmp_path / "t", ["\u200b", ""]),))
    with pytest.raises(DataError, match="no line would be left"):
        clean(files, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_half_is_written(tmp_path, monkeypatch):
    files = Files((write(tmp_path / "t", ["a"]),))
    fixed = fix(read(files), Limits())
    monkeypatch.setattr("dragoman.doctor.fix._mended_rows", lambda counts: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_fixed(fixed, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t"]


def test_names_in_the_new_directory():
    assert output_names(["a/dropped.tsv"]) == {"a/dropped.tsv": "a/dropped.tsv"}
    assert output_names(["-", "x"]) == {"-": "stdin.txt", "x": "x"}
    with pytest.raises(DataError, match="rename one"):
        output_names(["a/x/t", "b/x/t"])


def test_a_report_can_be_made_of_what_was_read_once(tmp_path):
    files = Files((write(tmp_path / "t", ["a  b", "c"]),))
    assert report_on(read(files), Limits(), with_cost=False) == examine(files, with_cost=False)
