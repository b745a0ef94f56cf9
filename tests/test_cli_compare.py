"""`dragoman compare`: what it prints and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command import is_one_line
from dragoman.evaluation.translation_metrics import score_translations

REFERENCES = ["a cat sat on the mat .", "a dog ran away .", "nobody saw him .", "", "yes , he said ."]
FIRST = ["a cat sat on the mat .", "a dog dog ran .", "no saw .", "", "yes he said ."]
SECOND = ["a cat on a mat .", "a dog ran away .", "nobody saw him .", "well", "yes , he said ."]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    texts = {"ref.en": REFERENCES, "one.en": FIRST, "two.en": SECOND, "src.de": ["ein satz"] * 5}
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    return tmp_path


@pytest.fixture
def both(files: Path) -> tuple[object, ...]:
    return ("--ref", files / "ref.en", "--sys", files / "one.en", "--sys", files / "two.en", "--resamples", 50)


def test_tables_are_printed(good, files: Path, both) -> None:
    shown = good("compare", *both, "--tokenised", "--src", files / "src.de", "--train-tgt", files / "one.en")
    assert shown.lines[0] == "Scores of 5 sentences"
    assert "two.en compared with one.en" in shown.lines
    assert "By sentence length (words of the source)" in shown.lines
    assert "Words by frequency in the training text" in shown.lines
    assert "     source: ein satz" in shown.out
    assert shown.err == ""


def test_json_has_the_scores(good, both) -> None:
    actual = json.loads(good("compare", *both, "--json", "--tokenised", "--names", "old, new").out)
    assert [system["name"] for system in actual["systems"]] == ["old", "new"]
    for system, lines in zip(actual["systems"], (FIRST, SECOND), strict=True):
        assert system["bleu"] == score_translations(lines, REFERENCES, tokenised=True).bleu
    assert actual["paired_bootstrap"]["bleu"]["resamples"] == 50
    assert actual["systems"][0]["signature"].count("tok:none") == 1


def test_markdown_and_how_much_is_shown(good, both) -> None:
    shown = good("compare", *both, "--tokenised", "--markdown", "--examples", 1, "--ngrams", 2).out
    assert shown.startswith("### Scores of 5 sentences\n\n| system |")
    assert shown.count("\nline ") == 2


def test_tokenisation_is_detected(good, both, files: Path) -> None:
    calls = good("compare", *both, "--json")
    assert "look tokenised" in calls.err
    assert json.loads(calls.out)["tokenised"] is True
    for name in ("ref.en", "one.en", "two.en"):
        text = (files / name).read_text()
        (files / name).write_text("\n".join(line.capitalize() for line in text.replace(" .", ".").split("\n")))
    raw = good("compare", *both, "--json")
    assert "raw text" in raw.err
    assert "tok:13a" in json.loads(raw.out)["systems"][0]["signature"]
    assert good("compare", *both, "--raw").err == ""


def test_seed_changes_resamples(good, both) -> None:
    item, again, other = (good("compare", *both, "--raw", "--seed", seed).out for seed in (1, 1, 2))
    assert item == again
    assert item != other


def test_standard_input_and_windows_lines_are_read(good, files: Path) -> None:
    arguments = ("compare", "--ref", files / "ref.en", "--sys", "-", "--sys", files / "two.en", "--tokenised", "--json")
    actual = json.loads(good(*arguments, stdin="".join(line + "\r\n" for line in FIRST)).out)
    assert actual["systems"][0]["name"] == "-"
    assert {example["first"] for example in actual["better"]} <= set(FIRST), "no CR is left"
    assert actual["better"]
    assert actual["systems"][0]["bleu"] == score_translations(FIRST, REFERENCES, tokenised=True).bleu


def test_files_of_the_same_name_are_shown_with_paths(good, files: Path) -> None:
    (files / "other").mkdir()
    (files / "other" / "one.en").write_bytes((files / "two.en").read_bytes())
    systems = ("--sys", files / "one.en", "--sys", files / "other" / "one.en")
    actual = json.loads(good("compare", "--ref", files / "ref.en", *systems, "--json", "--raw").out)
    assert [system["name"] for system in actual["systems"]] == [str(files / "one.en"), str(files / "other" / "one.en")]
    same = good("compare", "--ref", files / "ref.en", *systems[:2], *systems[:2], "--json", "--raw")
    assert "the same file twice" in same.err
    assert json.loads(same.out)["paired_bootstrap"]["bleu"]["p_value"] == 1


def test_unequal_line_counts_raise(run, files: Path, both) -> None:
    (files / "two.en").write_text("a\nb\n")
    refused = run("compare", *both)
    assert refused.code == 2
    assert is_one_line(refused.err)
    assert f"{files / 'two.en'} has 2 lines and {files / 'ref.en'} has 5" in refused.err
    assert refused.out == ""


def test_source_with_other_line_count_raises(run, files: Path, both) -> None:
    (files / "src.de").write_text("a\n")
    refused = run("compare", *both, "--src", files / "src.de")
    assert (refused.code, is_one_line(refused.err)) == (2, True)
    assert "src.de has 1 lines" in refused.err


@pytest.mark.parametrize(
    ("arguments", "stderr"),
    [
        (("--sys", "one.en"), "1 given; two systems are compared"),
        (("--sys", "one.en", "--sys", "two.en", "--sys", "one.en"), "3 given"),
        (("--sys", "one.en", "--sys", "nowhere.en"), "no such file"),
        (("--sys", "one.en", "--sys", "two.en", "--names", "a"), "two different names"),
        (("--sys", "one.en", "--sys", "two.en", "--names", "a,a"), "two different names"),
        (("--sys", "one.en", "--sys", "two.en", "--json", "--markdown"), "choose one"),
        ((), "--sys"),
    ],
)
def test_wrong_arguments_are_one_line(run, files: Path, monkeypatch, arguments, stderr: str) -> None:
    monkeypatch.chdir(files)
    refused = run("compare", "--ref", "ref.en", *arguments)
    assert (refused.code, is_one_line(refused.err)) == (2, True)
    assert stderr in refused.err


def test_help_has_examples(good) -> None:
    result = good("compare", "--help").out
    assert "Example" in result and "--train-tgt" in result and "paired" in result


def test_words_are_those_of_the_language(good, run, tmp_path: Path) -> None:
    """As in `dragoman evaluate`: raw Chinese is split into characters, by the name of a file or --tgt-lang."""
    texts = {"ref": ["我很好。", "他在家。"], "one": ["我很好。", "他不在。"], "two": ["我好。", "他在家。"]}
    for ending in ("zh", "txt"):
        for name, lines in texts.items():
            (tmp_path / f"{name}.{ending}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def compared(ending: str, *options: object) -> dict[str, Any]:
        ref, one, two = (tmp_path / f"{name}.{ending}" for name in texts)
        report: dict[str, Any] = json.loads(
            good("compare", "--ref", ref, "--sys", one, "--sys", two, "--json", *options).out
        )
        return report

    by_name, by_option, unknown = compared("zh"), compared("txt", "--tgt-lang", "zho"), compared("txt")
    assert "tok:zh" in by_name["systems"][0]["signature"] and "tok:13a" in unknown["systems"][0]["signature"]
    expected = score_translations(texts["one"], texts["ref"], tokenised=False, language="zh")
    assert by_name["systems"][0]["bleu"] == by_option["systems"][0]["bleu"] == expected.bleu
    assert (by_name["systems"][0]["words"], unknown["systems"][0]["words"]) == (8, 2)
    assert {ngram["words"] for ngram in by_name["gained"]} == {"他 在 家 。"}
    outcome = run("compare", "--ref", "a", "--sys", "b", "--sys", "c", "--tgt-lang", "xx")
    assert (outcome.code, is_one_line(outcome.err)) == (2, True)
