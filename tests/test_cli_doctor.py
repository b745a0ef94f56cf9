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
    files = ("--src", "train.s", "--tgt", "train.t")
    fixed = good("doctor", *files, "--no-cost", "--fix", "-o", "cleaned").err.splitlines()[-1]
    assert fixed == "next: dragoman train translator --src cleaned/train.s --tgt cleaned/train.t -o model --minutes 20"


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
    assert outcome.err == "next: dragoman train translator --pairs p.tsv -o model --minutes 20\n"


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
    assert "p.tsv column en:302: " in outcome.out and "p.tsv column de" in outcome.out


def test_standard_input(run, texts):
    outcome = run("doctor", "--text", "-", "--no-cost", stdin=b"caf\xe9 noir\n")
    assert "<stdin>:1:4: byte 0xe9" in outcome.out


def test_fields(good, texts):
    (texts / "p.tsv").write_text("de\ten\neins \tone\n")
    outcome = good("doctor", "--text", "p.tsv", "--field", "de", "--no-cost")
    assert "p.tsv:2:5" in outcome.out
    assert outcome.err.splitlines()[-1] == "next: dragoman doctor --text p.tsv --field de --fix -o cleaned"
    both = good("doctor", "--src", "p.tsv", "--tgt", "p.tsv", "--src-field", "de", "--tgt-field", "en", "--no-cost")
    assert "--src-field de --tgt-field en --fix" in both.err


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
