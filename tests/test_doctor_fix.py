"""Cleaned copies: they have no fixable findings, and everything that was dropped is listed."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from command import written
from doctor_texts import pairs, write
from dragoman.core.errors import DataError
from dragoman.data.formats import read_text
from dragoman.doctor.documents import FileLayout
from dragoman.doctor.examination import DoctorInput, examine, examine_documents, read_documents
from dragoman.doctor.findings import LEAVE
from dragoman.doctor.fix import DROPPED_FILE, REWRITTEN_FILE, fix_documents, output_names, write_fixed
from dragoman.doctor.text_checks import DoctorLimits

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
    fixed = fix_documents(read_documents(files), limits or DoctorLimits())
    places = write_fixed(fixed, target)
    return fixed, DoctorInput(
        *(tuple(str(places[path]) for path in part) for part in (files.train, files.dev)), files.fields
    )


def fixable(files):
    report = examine(files, with_cost=False)
    return {finding.kind for finding in report.findings if finding.fix != LEAVE}


def dropped_rows(directory):
    return [row.split("\t") for row in (directory / DROPPED_FILE).read_text(encoding="utf-8").splitlines()[1:]]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=RAW, dev=RAW)
def test_a_cleaned_text_has_no_fixable_findings(tmp_path_factory, text, dev):
    directory = tmp_path_factory.mktemp("fix")
    (directory / "t").write_bytes(text)
    (directory / "d").write_bytes(dev.replace(b"first", b"held out", 1))
    files = DoctorInput((str(directory / "t"),), (str(directory / "d"),))
    before = len(read_documents(files).train[0])
    fixed, cleaned = clean(files, directory / "out")
    assert not fixable(cleaned)
    for path in (*cleaned.train, *cleaned.dev):
        read_text(path)  # training can read it
    again, _ = clean(cleaned, directory / "again")
    assert not again.dropped and not again.rewritten
    train_dropped = [line for line in fixed.dropped if line.finding.part == "train"]
    assert len(fixed.documents.train[0]) + len(train_dropped) == before
    assert len(dropped_rows(directory / "out")) == len(fixed.dropped)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.tuples(RAW_LINE, RAW_LINE), min_size=1, max_size=6))
def test_cleaned_pairs_stay_parallel(tmp_path_factory, lines):
    directory = tmp_path_factory.mktemp("fix")
    for side, name in enumerate(("s", "t")):
        marked = [line[side] + f" {number}".encode() for number, line in enumerate(lines)]
        (directory / name).write_bytes(b"".join(line + b"\n" for line in [b"first 99", *marked]))
    fixed, cleaned = clean(DoctorInput((str(directory / "s"), str(directory / "t"))), directory / "out")
    source, target = (read_text(path).decode().splitlines() for path in cleaned.train)
    assert [line.split()[-1] for line in source] == [line.split()[-1] for line in target]
    assert len(source) + len(fixed.dropped) == len(lines) + 1
    assert not fixable(cleaned)


@pytest.fixture(scope="module")
def faulty_pairs(tmp_path_factory):
    """Pairs with one problem of each kind that is detected statistically."""
    directory = tmp_path_factory.mktemp("spoiled")
    source, target = map(list, pairs())
    target[400:420] = target[401:421]
    target[100], target[200] = target[200], target[100]
    target[300] = source[300]
    source[500], target[500] = target[500], source[500]
    target[600] = source[900]
    target[700] = "\u200b"
    dev = [source[10], source[11] + " ba"], [target[10], target[11]]
    names = {"t.s": source, "t.t": target, "d.s": dev[0], "d.t": dev[1]}
    paths = [write(directory / name, lines) for name, lines in names.items()]
    return DoctorInput((paths[0], paths[1]), (paths[2], paths[3]))


def test_lines_with_statistical_findings_are_dropped(faulty_pairs, tmp_path):
    fixed, cleaned = clean(faulty_pairs, tmp_path / "out")
    dropped = {line.finding.line: line.finding.kind for line in fixed.dropped}
    assert not {101, 201} & set(dropped), "two wrong pairs may be free translations"
    assert dropped[301] == "untranslated"
    assert dropped.items() >= {(501, "swapped"), (601, "wrong-language"), (701, "empty-side"), (11, "overlap")}
    assert sum(line in dropped for line in range(401, 421)) >= 18
    assert not fixable(cleaned)
    assert len(fixed.documents.dev[0]) == 2  # overlapping lines are dropped from train
    rows = dropped_rows(tmp_path / "out")
    assert {(int(row[1]), row[2]) for row in rows} == set(dropped.items()) and all(len(row) in (5, 6) for row in rows)


def test_other_lines_are_unchanged(faulty_pairs, tmp_path):
    fixed, cleaned = clean(faulty_pairs, tmp_path / "out")
    original = read_text(faulty_pairs.train[0]).decode().splitlines()
    remaining = read_text(cleaned.train[0]).decode().splitlines()
    assert remaining == [original[place] for place in fixed.documents.train[0].places.tolist()]


def test_duplicates_are_kept_on_request(tmp_path):
    files = DoctorInput((write(tmp_path / "t", ["a b", "a b", "c"]),))
    assert len(clean(files, tmp_path / "one")[0].documents.train[0]) == 2
    assert len(clean(files, tmp_path / "all", DoctorLimits(keep_duplicates=True))[0].documents.train[0]) == 3


def test_files_keep_their_format(tmp_path):
    (tmp_path / "p.tsv").write_bytes("id\tde\ten\n1\tMa\u0308dchen \tgirl\n2\tx\n3\t\u200bFrau\twoman  x\n".encode())
    table = DoctorInput((str(tmp_path / "p.tsv"),) * 2, (), ("de", "en"))
    _, cleaned = clean(table, tmp_path / "one")
    assert (tmp_path / "one" / "p.tsv").read_text(
        encoding="utf-8"
    ) == "id\tde\ten\n1\tMädchen\tgirl\n3\tFrau\twoman x\n"
    assert not fixable(cleaned)
    rows = [{"text": "a\x07 b", "n": 1}, {"text": "", "n": 2}]
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    clean(DoctorInput((str(tmp_path / "t.jsonl.gz"),)), tmp_path / "two")
    assert json.loads(gzip.decompress((tmp_path / "two" / "t.jsonl.gz").read_bytes())) == {"text": "a b", "n": 1}


def test_rewritten_lines_are_counted(tmp_path):
    files = DoctorInput((write(tmp_path / "t", ["a  b", " c", "d\x07"]),))
    clean(files, tmp_path / "out")
    counts = [row.split("\t")[1:] for row in (tmp_path / "out" / REWRITTEN_FILE).read_text().splitlines()[1:]]
    assert sorted(counts) == [["control", "1"], ["spaces", "2"]]


def test_dropped_lines_are_not_counted_as_rewritten(tmp_path):
    (tmp_path / "t").write_bytes("\ufeffa  b\r\nMa\u0308d  \ufffd\r\nM\u00e4d\r\n".encode())
    fixed, _ = clean(DoctorInput((str(tmp_path / "t"),)), tmp_path / "out")
    assert len(fixed.dropped) == 1
    assert {(m.kind, m.lines) for m in fixed.rewritten} == {("bom", None), ("crlf", None), ("spaces", 1)}
    rows = (tmp_path / "out" / REWRITTEN_FILE).read_text().splitlines()
    assert f"{tmp_path / 't'}\tcrlf\twhole file" in rows


def test_dropped_lines_are_listed_unchanged(tmp_path):
    line = "Ma\u0308d  \ufffd\t\u200bgr\u00c3\u00bcn "
    clean(DoctorInput((write(tmp_path / "t", ["a", line]),)), tmp_path / "one")
    assert dropped_rows(tmp_path / "one")[0][4] == line.replace("\t", r"\t")
    write(tmp_path / "t.jsonl", ['{"text": "a"}', '{"title":  5}'])
    clean(DoctorInput((str(tmp_path / "t.jsonl"),)), tmp_path / "two")
    assert dropped_rows(tmp_path / "two")[0][2:] == ["no-field", "no field 'text' in this row", '{"title":  5}']


def test_many_misaligned_pairs_are_dropped(tmp_path):
    """Of 150 wrong pairs many have lower scores than most random pairs, which free translations have not."""
    source, target = map(list, pairs(3000))
    wrong = np.random.default_rng(1).choice(len(target), 150, replace=False).tolist()
    for line, other in zip(wrong, [*wrong[1:], wrong[0]], strict=True):
        target[line] = pairs(3000)[1][other]
    files = DoctorInput((write(tmp_path / "s", source), write(tmp_path / "t", target)))
    fixed = fix_documents(read_documents(files), DoctorLimits(keep_duplicates=True))
    dropped = {line.finding.index for line in fixed.dropped if line.finding.kind == "misaligned"}
    assert len(dropped & set(wrong)) > 60 and len(dropped - set(wrong)) < 0.1 * len(dropped)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    exchanged=st.sampled_from([10, 60, 150, 300]),
    seed=st.integers(0, 99),
    emptied=st.sets(st.integers(0, 1199), max_size=3),
    run=st.sampled_from([(0, 0), (500, 520)]),
)
def test_cleaning_is_idempotent(tmp_path_factory, exchanged, seed, emptied, run):
    directory = tmp_path_factory.mktemp("twice")
    source, target = map(list, pairs())
    target[slice(*run)] = target[run[0] + 1 : run[1] + 1] if run[1] else []
    chosen = np.random.default_rng(seed).choice(len(target), exchanged, replace=False)  # 150: several rounds are needed
    for line, other in zip(chosen.tolist(), np.roll(chosen, 1).tolist(), strict=True):
        target[line] = pairs()[1][other]
    for line in emptied:
        target[line] = ""
    files = DoctorInput((write(directory / "s", source), write(directory / "t", target)))
    fixed, cleaned = clean(files, directory / "out")
    assert emptied <= {line.finding.index for line in fixed.dropped}
    again, _ = clean(cleaned, directory / "again")
    assert not again.dropped and not again.rewritten


JSON_ROWS = [
    '{"text":"sound",  "n": 1.50, "e": 1e400, "s": "\\ud800 \\u00e4", "d": 1, "d": 2}',
    '{"e":1e400,"n":1.50 , "text" : "two  spaces" ,"s":"\\ud800","d":1,"d":{"text":"a  b"},"l":1234567890123456789.10}',
    '{"text": "first  of two", "text": "second  of two"}',
    '{ "text": "esc\\u0061ped \\" quote" }',
]


def test_the_rest_of_a_json_row_is_unchanged(tmp_path):
    write(tmp_path / "t.jsonl", JSON_ROWS)
    _, cleaned = clean(DoctorInput((str(tmp_path / "t.jsonl"),)), tmp_path / "out")
    rows = (tmp_path / "out" / "t.jsonl").read_text(encoding="utf-8").splitlines()
    assert rows == [
        JSON_ROWS[0],
        JSON_ROWS[1].replace("two  spaces", "two spaces"),
        JSON_ROWS[2].replace("second  of", "second of"),
        JSON_ROWS[3],
    ]
    assert not fixable(cleaned)


@settings(max_examples=80)
@given(
    record=st.dictionaries(
        st.text(max_size=3),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=5,
        ),
    ),
    value=st.text(),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1]),
)
def test_only_the_value_of_a_json_row_is_replaced(record, value, ascii_only, indent):
    before = {"k": 1, **record, "text": "to be replaced", "z": [1.0]}
    row = json.dumps(before, ensure_ascii=ascii_only, indent=indent)
    changed = FileLayout("t.jsonl", "jsonl", "text", [row]).row(row, value)
    assert json.loads(changed) == {**before, "text": value} and list(json.loads(changed)) == list(before)


def test_files_of_different_length_are_rejected(tmp_path):
    files = DoctorInput((write(tmp_path / "s", ["a", "b"]), write(tmp_path / "t", ["a"])))
    with pytest.raises(DataError, match="different line counts"):
        fix_documents(read_documents(files), DoctorLimits())


def test_dropping_all_lines_is_an_error(tmp_path):
    files = DoctorInput((write(tmp_path / "t", ["\u200b", ""]),))
    with pytest.raises(DataError, match="no line would be left"):
        clean(files, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_error_leaves_no_partial_output(tmp_path, monkeypatch):
    files = DoctorInput((write(tmp_path / "t", ["a"]),))
    fixed = fix_documents(read_documents(files), DoctorLimits())
    monkeypatch.setattr("dragoman.doctor.fix._dropped_rows", lambda dropped: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_fixed(fixed, tmp_path / "out")
    assert [path.name for path in written(tmp_path)] == ["t"]


def test_output_names():
    assert output_names(["a/dropped.tsv"]) == {"a/dropped.tsv": "a/dropped.tsv"}
    assert output_names(["-", "x"]) == {"-": "stdin.txt", "x": "x"}
    with pytest.raises(DataError, match="rename one"):
        output_names(["a/x/t", "b/x/t"])


def test_documents_that_were_read_before_can_be_examined(tmp_path):
    files = DoctorInput((write(tmp_path / "t", ["a  b", "c"]),))
    assert examine_documents(read_documents(files), DoctorLimits(), with_cost=False) == examine(files, with_cost=False)
