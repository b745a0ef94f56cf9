"""dragoman doctor, as it is called."""

import json

import pytest

from command import is_one_line
from doctor_texts import pairs, write

SOUND = [f"the {what} sat on the mat" for what in ("cat", "dog", "bird", "mouse")]


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """Files in the working directory, so that messages are short."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "sound.txt", SOUND)
    write(tmp_path / "rough.txt", [*SOUND, "a\0b", "the  cat", *(f"line {n} \u200b" for n in range(9))])
    write(tmp_path / "dev.txt", [SOUND[0], "a new line"])
    for side, lines in zip("st", pairs(), strict=True):
        write(tmp_path / f"train.{side}", lines[:400])
    return tmp_path


def test_a_sound_text_goes_on_to_training(good, texts):
    outcome = good("doctor", "--text", "sound.txt")
    assert outcome.out.endswith("\nno problems\n") and "n-grams" in outcome.out and "whole text" in outcome.out
    assert outcome.err.splitlines()[-1] == "next: dragoman train ngram --text sound.txt -o model"


def test_findings_are_shown_by_kind_the_worst_first(run, texts):
    outcome = run("doctor", "--text", "rough.txt", "--no-cost", "--show", 2)
    lines = outcome.lines
    error, warning = (next(n for n, line in enumerate(lines) if line.startswith(word)) for word in ("error", "warning"))
    assert lines[error : error + 3] == [
        "error: NUL characters (1) [nul]",
        "  rough.txt:5:2: U+0000 control character",
        "  -> training rejects them; --fix removes them",
    ]
    assert error < warning and lines[warning].endswith("(9) [invisible]") and lines[warning + 3] == "  and 7 more"
    assert lines[-1] == "1 error, 9 warnings, 1 note"
    assert outcome.err.splitlines()[-1] == "next: dragoman doctor --text rough.txt --fix -o cleaned"
    assert outcome.code == 1 and "more" not in run("doctor", "--text", "rough.txt", "--no-cost", "--all").out


def test_the_suggested_commands_work(run, good, texts):
    outcome = run("doctor", "--text", "rough.txt", "--dev-text", "dev.txt", "--no-cost")
    words = outcome.err.splitlines()[-1].split()[2:]
    fixed = good(*words, "--no-cost")
    assert "dropped" in fixed.err
    trained = good(*fixed.err.splitlines()[-1].split()[2:], "--order", 2, "--smoothing", "witten-bell")
    assert "2-grams" in trained.err
    again = good("doctor", "--text", "cleaned/rough.txt", "--dev-text", "cleaned/dev.txt", "--no-cost")
    assert "next: dragoman train ngram" in again.err


def test_pairs_go_on_to_a_translator(good, texts):
    """By way of `split`, which is run here, unless there is a dev text."""
    files = ("--src", "train.s", "--tgt", "train.t")
    checked = good("doctor", *files, "--no-cost", "--keep-duplicates").err
    assert checked == "next: dragoman split --src train.s --tgt train.t -o data\n"
    fixed = good("doctor", *files, "--no-cost", "--fix", "-o", "cleaned").err.splitlines()[-1]
    assert fixed == "next: dragoman split --src cleaned/train.s --tgt cleaned/train.t -o data"
    training = good(*fixed.split()[2:]).err.splitlines()[-1]
    names = "--src data/train.s --tgt data/train.t --dev-src data/dev.s --dev-tgt data/dev.t"
    assert training == f"next: dragoman train translator {names} -o model --minutes 20"
    held_out = ("--dev-src", "data/dev.s", "--dev-tgt", "data/dev.t")
    with_dev = good("doctor", "--src", "data/train.s", "--tgt", "data/train.t", *held_out, "--no-cost").err
    assert with_dev.splitlines()[-1] == training


def test_a_text_goes_on_to_a_language_model(good, texts):
    write(texts / "t.txt", dict.fromkeys(pairs()[0][:300]))
    checked = good("doctor", "--text", "t.txt", "--no-cost").err.splitlines()[-1]
    assert checked == "next: dragoman split --text t.txt -o data"
    training = good(*checked.split()[2:]).err.splitlines()[-1]
    assert training == "next: dragoman train ngram --text data/train.txt --dev-text data/dev.txt -o model"


def test_cleaning_is_suggested_for_substantial_changes(run, texts):
    """Not for single repeated lines, nor for spaces, which are ignored; but for every warning that is fixed."""
    lines = [f"{line} ." for line in dict.fromkeys(pairs()[0][:300])]

    def suggested(changed):
        write(texts / "t.txt", changed)
        return run("doctor", "--text", "t.txt", "--no-cost").err.splitlines()[-1].split()[2]

    assert suggested([*lines, lines[0], *(f" {line}  x" for line in lines)]) == "split"
    assert suggested([*lines, *lines[:20]]) == "doctor"
    assert suggested([*lines, "a \u200b line"]) == "doctor"


def test_json_has_every_finding_with_place_and_advice(run, good, texts):
    report = json.loads(run("doctor", "--text", "rough.txt", "--json").out)
    assert report["counts"]["invisible"] == 9
    assert len(report["findings"]) == sum(report["counts"].values())
    for finding in report["findings"]:
        assert finding["file"] == "rough.txt" and finding["line"] and finding["advice"] and finding["kind"]
    assert report["files"][0]["lines"] == 15 and report["costs"][0]["ngrams"] > 0 and report["fix"] is None
    fixed = json.loads(good("doctor", "--text", "rough.txt", "--json", "--no-cost", "--fix", "-o", "out").out)["fix"]
    assert fixed["kept"] == {"rough.txt": 15} and {"file": "rough.txt", "kind": "nul", "lines": 1} in fixed["mended"]


def test_pairs(run, texts):
    for side, lines in zip("st", pairs(), strict=True):
        write(texts / f"dev.{side}", lines[300:420])
    outcome = run("doctor", "--src", "train.s", "--tgt", "train.t", "--dev-src", "dev.s", "--dev-tgt", "dev.t")
    assert outcome.code == 1 and "100 of 120 lines are in train.s: 100 the same" in outcome.out
    assert "400 pairs" in outcome.out and "in train" in outcome.out and "[overlap]" in outcome.out
    command = "next: dragoman doctor --src train.s --tgt train.t --dev-src dev.s --dev-tgt dev.t --fix -o cleaned"
    assert outcome.err.splitlines()[-1] == command
    assert "--minutes  translator that is trained in this time" in outcome.out and "n-gram" not in outcome.out


def test_exchanged_files_are_suggested_in_the_right_order(run, texts):
    for side, lines in zip("ts", pairs(), strict=True):
        write(texts / f"dev.{side}", lines[500:600])
    outcome = run(
        "doctor", "--src", "train.s", "--tgt", "train.t", "--dev-src", "dev.s", "--dev-tgt", "dev.t", "--no-cost"
    )
    command = "next: dragoman doctor --src train.s --tgt train.t --dev-src dev.t --dev-tgt dev.s"
    assert outcome.code == 1 and "[swapped-dev]" in outcome.out and outcome.err.splitlines()[-1] == command
    write(texts / "a", ["das ist nicht der hund , und ich bin es auch"] * 30)
    write(texts / "b", ["this is not the dog , and i am in it"] * 30)
    outcome = run("doctor", "--src", "a", "--tgt", "b", "--src-lang", "en", "--tgt-lang", "de", "--no-cost")
    assert outcome.err == "next: dragoman doctor --src b --tgt a --src-lang en --tgt-lang de\n"


def test_pairs_in_one_file(good, texts):
    """The columns with text are chosen by the header, and named."""
    rows = (f"{number}\t{source}\t{target}" for number, (source, target) in enumerate(zip(*pairs(), strict=True)))
    write(texts / "p.tsv", ["id\tsource\ttarget", *(row for row in list(rows)[:200])])
    outcome = good("doctor", "--pairs", "p.tsv", "--no-cost")
    assert "p.tsv column source" in outcome.out and "p.tsv column target" in outcome.out
    assert outcome.err == "next: dragoman split --pairs p.tsv -o data\n"


def test_one_file_given_twice(run, texts):
    outcome = run("doctor", "--src", "train.s", "--tgt", "train.s", "--strict", "--no-cost")
    assert outcome.code == 1 and "error: source and target are the same text (1) [same-text]" in outcome.out
    assert "400 the same on both sides; 400 untranslated" in outcome.out
    assert "(400) [untranslated]" in outcome.out and "whether one file was given twice" in outcome.out
    assert outcome.err == ""  # neither cleaning nor training would help
    write(texts / "names", [SOUND[0], *(f"Bo Ek {letter}" for letter in "abcdefghijklmnopqrstuvwxyz")])
    names = run("doctor", "--src", "names", "--tgt", "names", "--strict", "--no-cost")
    assert names.code == 1 and "27 the same on both sides; 1 untranslated" in names.out
    assert names.err == ""


def test_nothing_is_suggested_that_cannot_work(run, texts):
    def suggested(*arguments, **options):
        return [line for line in run("doctor", *arguments, "--no-cost", **options).err.splitlines() if "next" in line]

    assert suggested("--text", "-", stdin="a sound line\n") == []
    (texts / "empty.txt").write_text("\n \n")
    assert suggested("--text", "empty.txt") == []
    write(texts / "short.t", pairs()[1][:20])
    assert suggested("--src", "train.s", "--tgt", "short.t") == []
    cleaned = suggested("--text", "-", "--fix", "-o", "out", stdin="a  line\n")
    assert cleaned == ["next: dragoman train ngram --text out/stdin.txt -o model"]


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        (("--text", "p.tsv", "--src-field", "de"), "are for --src and --tgt"),
        (("--text", "p.tsv", "--field", "0"), "columns count from 1"),
        (("--src", "-", "--tgt", "-"), "standard input (-) can be given once"),
        (("--text", "-", "--dev-text", "-"), "standard input (-) can be given once"),
        (("--text", "sound.txt", "--fix", "-o", "."), "exists already and is not empty"),
        (("--text", "sound.txt", "--fix", "-o", "dev.txt"), "dev.txt: exists already; choose"),
        (("--text", "bom.tsv", "--field", "de"), "bom.tsv: empty"),
        (("--text", "bom.txt"), "bom.txt: empty"),
        (("--text", "bom16.txt"), "bom16.txt: empty"),
        (("--text", "header.tsv", "--field", "de"), "header.tsv: empty below"),
    ],
)
def test_the_refusal_says_what_is_wrong(run, texts, arguments, result):
    (texts / "p.tsv").write_text("de\ten\neins\tone\n")
    (texts / "header.tsv").write_text("de\ten\n")
    for name, mark in (("bom.tsv", b"\xef\xbb\xbf"), ("bom.txt", b"\xef\xbb\xbf"), ("bom16.txt", b"\xff\xfe")):
        (texts / name).write_bytes(mark)
    outcome = run("doctor", *arguments, stdin="a line\n")
    assert outcome.code == 2 and is_one_line(outcome.err) and result in outcome.err


def test_rows_that_are_not_json(run, texts):
    write(texts / "t.jsonl", ['{"text": "a b"}', '{"text": "c d", "n": ' + "9" * 5000 + "}", '{"text": ', '{"n": 1}'])
    outcome = run("doctor", "--text", "t.jsonl", "--no-cost")
    assert "t.jsonl:2: Exceeds the limit" in outcome.out and "t.jsonl:3: Expecting value at column 10" in outcome.out
    assert "(2) [not-json]" in outcome.out and "(1) [no-field]" in outcome.out


def test_exit_codes(run, texts):
    write(texts / "warning.txt", [*SOUND, "a \u200b line"])
    for name, code, strict_code in (("rough.txt", 1, 1), ("warning.txt", 0, 1), ("sound.txt", 0, 0)):
        assert run("doctor", "--text", name, "--no-cost").code == code
        assert run("doctor", "--text", name, "--no-cost", "--strict").code == strict_code
    assert run("doctor", "--text", "rough.txt", "--no-cost", "--strict", "--fix", "-o", "fixed").code == 0


def test_shuffled_sides_are_an_error_and_nothing_is_suggested(run, texts):
    write(texts / "shuffled.t", sorted(pairs()[1][:400], key=lambda line: line[::-1]))
    outcome = run("doctor", "--src", "train.s", "--tgt", "shuffled.t", "--no-cost")
    assert outcome.code == 1 and "[unpaired]" in outcome.out and "next:" not in outcome.err


def test_files_out_of_step_are_paired_again(run, good, texts):
    write(texts / "short.t", pairs()[1][:100] + pairs()[1][101:400])
    outcome = run("doctor", "--src", "train.s", "--tgt", "short.t", "--no-cost")
    assert outcome.code == 1 and "[line-counts]" in outcome.out and "train.s:10" in outcome.out
    good(*outcome.err.splitlines()[-1].split()[2:], "--no-cost")
    source, target = ((texts / "cleaned" / name).read_text().splitlines() for name in ("train.s", "short.t"))
    translation = dict(zip(*pairs(), strict=True))
    assert len(source) > 380 and all(translation[one] == other for one, other in zip(source, target, strict=True))


def test_columns_of_one_file_are_named(run, texts):
    rows = [f"{source}\t{target}" for source, target in zip(*pairs(), strict=True)]
    write(texts / "p.tsv", ["de\ten", *rows[:300], "x\t\u200b"])
    outcome = run("doctor", "--src", "p.tsv", "--tgt", "p.tsv", "--src-field", "de", "--tgt-field", "en", "--no-cost")
    assert "\n  p.tsv:302: column en: no words here\n" in outcome.out and "p.tsv column de" in outcome.out


def test_rows_without_a_column_are_reported_once(run, texts):
    rows = [f"{source}\t{target}" for source, target in zip(*pairs(), strict=True)][:200]
    write(texts / "bad.tsv", [*rows[:9], "one column", *rows[10:], "x\t"])
    outcome = run("doctor", "--pairs", "bad.tsv", "--no-cost", "--keep-duplicates")
    assert "error: rows without the column or field (1) [no-field]\n  bad.tsv:10: no column '2'" in outcome.out
    assert "pairs with an empty side (1) [empty-side]\n  bad.tsv:201: column 2: no words here" in outcome.out
    assert "\n199 pairs; " in outcome.out and outcome.code == 1
    record = json.loads(run("doctor", "--pairs", "bad.tsv", "--no-cost", "--json").out)
    assert record["pairs"]["pairs"] == 199 and record["counts"]["no-field"] == record["counts"]["empty-side"] == 1
    assert {finding["file"] for finding in record["findings"]} == {"bad.tsv"}
    both = run("doctor", "--src", "bad.tsv", "--tgt", "bad.tsv", "--src-field", 3, "--tgt-field", 4, "--no-cost")
    assert "(201) [no-field]" in both.out, "once per row, although both columns are missing"


def test_faults_of_one_file_with_both_sides_are_reported_once(run, texts):
    rows = [f"{source}\t{target}" for source, target in zip(*pairs(), strict=True)][:200]
    (texts / "crlf.tsv").write_bytes("\ufeff".encode() + "".join(f"{row}\r\n" for row in rows).encode())
    outcome = run("doctor", "--pairs", "crlf.tsv", "--no-cost")
    assert "(1) [crlf]\n  crlf.tsv:1: 200 lines end in CR LF" in outcome.out and "(1) [bom]" in outcome.out
    good = run("doctor", "--pairs", "crlf.tsv", "--no-cost", "--fix", "-o", "out")
    assert "crlf of crlf.tsv" in good.err and b"\r" not in (texts / "out" / "crlf.tsv").read_bytes()


def test_standard_input(run, texts):
    outcome = run("doctor", "--text", "-", "--no-cost", stdin=b"caf\xe9 noir\n")
    assert "<stdin>:1:4: byte 0xe9" in outcome.out


def test_fields(good, texts):
    (texts / "p.tsv").write_text("de\ten\neins \tone\n")
    outcome = good("doctor", "--text", "p.tsv", "--field", "de", "--no-cost")
    assert "p.tsv:2:5" in outcome.out
    assert outcome.err.splitlines()[-1] == "next: dragoman train ngram --text p.tsv --field de -o model"
    both = good("doctor", "--src", "p.tsv", "--tgt", "p.tsv", "--src-field", "de", "--tgt-field", "en", "--no-cost")
    assert "--src-field de --tgt-field en -o model" in both.err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--text", "sound.txt", "--src", "train.s", "--tgt", "train.t"),
        ("--src", "train.s"),
        ("--text", "sound.txt", "--dev-src", "train.s"),
        ("--src", "train.s", "--tgt", "train.t", "--dev-text", "dev.txt"),
        ("--src", "train.s", "--tgt", "train.t", "--dev-src", "dev.txt"),
        ("--text", "sound.txt", "--fix"),
        ("--text", "sound.txt", "-o", "out"),
        ("--text", "rough.txt", "--fix", "-o", "."),
        ("--text", "missing.txt"),
        ("--text", "sound.txt", "--field", "2"),
    ],
)
def test_misuse_is_one_line(run, texts, arguments):
    outcome = run("doctor", *arguments)
    assert outcome.code == 2 and is_one_line(outcome.err) and outcome.out == ""
