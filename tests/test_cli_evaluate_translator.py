"""`dragoman evaluate` of translators: what it reports and refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from command import is_one_line
from dragoman.combine.ensemble import Ensemble
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.sentences import split_tokenised_sentences
from dragoman.data.tokenizer import Tokenizer
from dragoman.evaluation.alignment import argmax_links, count_all_links, parse_gold_alignment
from dragoman.evaluation.significance import paired_bootstrap
from dragoman.evaluation.translation_metrics import Bleu, score_translations
from dragoman.lab.corpus_files import GRAMMAR_VERSION, MANIFEST_KIND
from dragoman.models.translator import Translator
from small_translators import ENGLISH, GERMAN, TREES, place, translators

__all__ = ["place"]

LINKS = "0-0 1-1 2-2 3-3"


@pytest.fixture
def text(place: Path) -> tuple[Any, ...]:
    return ("--src", place / "test.de", "--ref", place / "test.en")


def report(good: Any, *arguments: Any) -> dict[str, Any]:
    actual: dict[str, Any] = json.loads(good("evaluate", *arguments, "--json").out)
    return actual


def test_scores_and_perplexities(good: Any, place: Path, text: tuple[Any, ...]) -> None:
    actual = report(good, place / "two", *text, "--beam-size", 2, "--length", "none")
    model = translators()["two"]
    result = [item.text for item in model.translate(GERMAN, 2, length="none")]
    expected = score_translations(result, ENGLISH, tokenised=True)
    assert (actual["bleu"], actual["chrf"], actual["signature"]) == (expected.bleu, expected.chrf, expected.signature)
    assert actual["length_ratio"] == expected.length_ratio and "tok:none" in actual["signature"]
    paid = model.likelihood(GERMAN, ENGLISH)
    assert actual["perplexity"] == pytest.approx(paid.perplexity)
    assert actual["perplexity_characters"] == pytest.approx(paid.perplexity_characters)
    assert actual["perplexity_characters"] == pytest.approx(
        math.exp(-paid.log_likelihood / sum(len(line) + 1 for line in ENGLISH)), rel=1e-6
    )
    assert (actual["sentences"], actual["beam_size"], actual["length"]) == (20, 2, "none")
    assert actual["sentences_per_second"] == pytest.approx(20 / actual["seconds"])
    assert "perplexity_floor" not in actual and "errors" not in actual and "by_length" not in actual


def test_report_as_text(good: Any, place: Path, text: tuple[Any, ...], tmp_path: Path) -> None:
    shown = good("evaluate", place / "one", *text, "--by-length", "--diagnose", "--output", tmp_path / "out.en")
    assert (tmp_path / "out.en").read_text().splitlines() == ENGLISH
    assert str(tmp_path / "out.en") in shown.err
    rows = {line.split("  ")[0]: line for line in shown.lines}
    assert "100.00" in rows["BLEU"] and "tok:none" in rows["BLEU"]
    assert "20 are the same as the reference" in rows["model errors"]
    assert "By sentence length (words of the source)" in shown.lines


def test_several_are_compared_with_the_first(good: Any, place: Path, text: tuple[Any, ...]) -> None:
    actual = report(good, place / "two", place / "one", *text)
    assert [model["model"] for model in actual["models"]] == [str(place / "two"), str(place / "one")]
    statistics = [
        Bleu(tokenised=True).statistics([item.text for item in translators()[name].translate(GERMAN)], ENGLISH)
        for name in ("two", "one")
    ]
    [pair] = actual["paired_bootstrap"]
    assert pair["bleu"]["p_value"] == paired_bootstrap(*statistics).p_value
    shown = good("evaluate", place / "two", place / "one", *text, "--by-length").out
    assert f"{place / 'one'} compared with {place / 'two'}" in shown and "Paired bootstrap" in shown
    assert f"BLEU {place / 'one'}" in shown


def test_ensemble(good: Any, place: Path, text: tuple[Any, ...]) -> None:
    actual = report(good, place / "one", place / "two", *text, "--ensemble")
    both = Ensemble([translators()["one"], translators()["two"]])
    assert actual["model"] == f"{place / 'one'} + {place / 'two'}"
    assert actual["perplexity"] == pytest.approx(both.likelihood(GERMAN, ENGLISH).perplexity, rel=1e-5)
    alone = [translators()[name].likelihood(GERMAN, ENGLISH).perplexity for name in ("one", "two")]
    assert min(alone) < actual["perplexity"] < max(alone)


def test_tokenisation_of_bleu(good: Any, place: Path, text: tuple[Any, ...]) -> None:
    assert "tok:13a" in report(good, place / "one", *text, "--raw")["signature"]
    assert "tok:none" in report(good, place / "one", *text, "--tokenised")["signature"]


def test_search_and_model_errors_are_counted(good: Any, place: Path, tmp_path: Path) -> None:
    """The model has memorised its text: wrong references are model errors, what greedy search misses are search errors."""
    (tmp_path / "a.de").write_text(f"{GERMAN[0]}\n{GERMAN[1]}\n\n")
    (tmp_path / "a.en").write_text(f"{ENGLISH[0]}\n{ENGLISH[2]}\n\n")
    actual = report(good, place / "one", "--src", tmp_path / "a.de", "--ref", tmp_path / "a.en", "--diagnose")
    assert actual["errors"] == {"none": 1, "search": 0, "model": 1}
    (tmp_path / "a.en").write_text(f"{ENGLISH[0]}\nthe\n\n")
    short = ("--src", tmp_path / "a.de", "--ref", tmp_path / "a.en", "--diagnose", "--length", "penalty:-100")
    assert report(good, place / "one", *short, "--beam-size", 1)["errors"]["search"] == 1


def test_lines_are_translated_as_by_translate(good: Any, place: Path, tmp_path: Path) -> None:
    lines = [f"{GERMAN[0]} {GERMAN[7]}", "", GERMAN[3], "Der Hund schläft. Der Vogel singt!"]
    references = [f"{ENGLISH[0]} {ENGLISH[7]}", "", ENGLISH[3], "The dog sleeps. The bird sings!"]
    for name, text in (("a.de", lines), ("a.en", references)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in text))
    files = ("--src", tmp_path / "a.de", "--ref", tmp_path / "a.en", "--output", tmp_path / "out")
    for model in (place / "one", place / "pieces"):
        for options in ((), ("--no-split",)):
            good("evaluate", model, *files, *options)
            translated = good("translate", model, "--text", tmp_path / "a.de", *options)
            assert (tmp_path / "out").read_text() == translated.out
    good("evaluate", place / "one", *files)
    assert (tmp_path / "out").read_text().splitlines()[:3] == references[:3]
    split = report(good, place / "one", *files, "--diagnose")
    assert "no_split" not in split and sum(split["errors"].values()) == 1  # of the only line with one sentence
    whole = report(good, place / "one", *files, "--diagnose", "--no-split")
    assert whole["no_split"] is True and sum(whole["errors"].values()) == 3
    assert whole["perplexity"] == split["perplexity"]


def test_pronunciations_are_not_sentences() -> None:
    """A full stop between phones ends a syllable, and an apostrophe belongs to its word."""
    phones, words = ["HH EH . L OW . W ER L D", "B AW . T ER S"] * 2, ["hello-world", "'bouters"] * 2
    assert len(split_tokenised_sentences(phones[0])) > 1, "by its form alone, the line would be split"
    for lines, references, units in ((phones, words, ("word", "char")), (words, phones, ("subword:20", "word"))):
        source, target = Tokenizer.train(units[0], lines), Tokenizer.train(units[1], references)
        pairs = ParallelCorpus(source.encode(lines), target.encode(references))
        model = Translator.create(pairs, source, target, embedding=4, hidden=4)
        assert model.translate_text(lines) == model.translate(lines)


def test_plain_references_are_tokenised_by_bleu(good: Any, place: Path, tmp_path: Path) -> None:
    """The translation of plain text is plain text, also if the translator was trained on tokenised text."""
    (tmp_path / "a.de").write_text("Der Hund schläft.\nDer Vogel singt.\n")
    (tmp_path / "a.en").write_text("The dog sleeps.\nThe bird sings.\n")
    actual = report(good, place / "one", "--src", tmp_path / "a.de", "--ref", tmp_path / "a.en")
    assert actual["bleu"] == pytest.approx(100) and "tok:13a" in actual["signature"]
    paid = translators()["one"].likelihood(["der hund schläft .", "der vogel singt ."], [ENGLISH[0], ENGLISH[12]])
    assert actual["log_likelihood"] == pytest.approx(paid.log_likelihood), "it is read as in translation"
    assert actual["perplexity"] == pytest.approx(math.exp(-paid.log_likelihood / 8)), "per word of the plain text"


def test_lengths_are_those_of_the_source(good: Any, place: Path, text: tuple[Any, ...]) -> None:
    [only] = report(good, place / "one", *text, "--by-length")["by_length"]
    assert (only["from"], only["to"], only["sentences"], round(only["bleu"])) == (0, 5, 20, 100)
    trees = ("--src", place / "test.tree", "--ref", place / "test.en")
    [only] = report(good, place / "tree", *trees, "--by-length")["by_length"]
    assert only["to"] == 5


@pytest.fixture
def laboratory(tmp_path: Path) -> Path:
    """Text that looks as the laboratory writes it."""
    (tmp_path / "lab.yaml").write_text(yaml.safe_dump({"kind": MANIFEST_KIND, "grammar": GRAMMAR_VERSION}))
    files = {"de": GERMAN, "en": ENGLISH, "align": [LINKS] * 20, "logprob": ["-9.0\t-8.0\t-2.5"] * 20}
    for ending, lines in files.items():
        (tmp_path / f"test.{ending}").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def test_lab_text_has_floor_and_alignments(good: Any, place: Path, laboratory: Path) -> None:
    text = ("--src", laboratory / "test.de", "--ref", laboratory / "test.en")
    actual = report(good, place / "one", *text)
    assert actual["perplexity_floor"] == pytest.approx(math.exp(2.5 / 5))
    result = translators()["one"].force_decode(GERMAN, ENGLISH)
    expected = count_all_links([argmax_links(item.attention) for item in result], [parse_gold_alignment(LINKS)] * 20)
    assert actual["alignment_error_rate"] == pytest.approx(expected.error_rate)
    assert 0 < actual["alignment_error_rate"] < 1
    shown = good("evaluate", place / "one", place / "plain", *text).out
    assert "alignment error, %" in shown and "perplexity of the true distribution: 1.65" in shown
    assert "alignment error " in good("evaluate", place / "one", *text).out
    assert "perplexity_floor" not in report(good, place / "one", *text, "--no-floor")


def test_reversed_lab_text_has_alignments_but_no_floor(good: Any, place: Path, laboratory: Path) -> None:
    (laboratory / "test.align").write_text("0-3\n" * 20)
    actual = report(good, place / "one", "--src", laboratory / "test.en", "--ref", laboratory / "test.de")
    assert "perplexity_floor" not in actual
    assert actual["alignment"]["sure"] == 20
    result = translators()["one"].force_decode(ENGLISH, GERMAN)
    expected = count_all_links([argmax_links(item.attention) for item in result], [parse_gold_alignment("3-0")] * 20)
    assert actual["alignment"]["found_sure"] == expected.predicted_sure
    (laboratory / "test.align").write_text("0-3\n")
    cut = good("evaluate", place / "one", "--src", laboratory / "test.de", "--ref", laboratory / "test.en", "--json")
    assert "another number of lines" in cut.err and "alignment" not in json.loads(cut.out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ONE"], "--src FILE --ref FILE"),
        (["ONE", "--src", "DE"], "must be given together"),
        (["ONE", "--text", "DE"], "evaluate it with --src FILE --ref FILE"),
        (["BI", "--src", "DE", "--ref", "EN"], "evaluate it with --text"),
        (["ONE", "--src", "DE", "--ref", "EN", "--text", "DE"], "use one of them"),
        (["BI", "--text", "DE", "--by-length"], "--by-length is for translators"),
        (["BI", "--text", "DE", "--beam-size", "3"], "--beam-size is for translators"),
        (["ONE", "--src", "DE", "--ref", "EN", "--dynamic", "1"], "--dynamic is for language models"),
        (["ONE", "--src", "DE", "--ref", "EN", "--field", "1"], "--field is for language models"),
        (["ONE", "TWO", "--src", "DE", "--ref", "EN", "--output", "OUT"], "one system"),
        (["ONE", "--src", "DE", "--ref", "EN", "--output", "DEEP"], "there is no directory"),
        (["ONE", "--src", "DE", "--ref", "EN", "--output", "INSIDE"], "there is no directory"),
        (["ONE", "--src", "DE", "--ref", "EN", "--output", "ONE"], "is a directory; name a file"),
        (["ONE", "ONE", "--src", "DE", "--ref", "EN"], "named twice"),
        (["ONE", "OTHER", "--src", "DE", "--ref", "EN", "--ensemble"], "different target vocabularies"),
        (["TREE", "--src", "DE", "--ref", "EN"], "test.de:1: no brackets"),
        (["ONE", "--src", "DE", "--ref", "NOWHERE"], "no such file"),
        (["ONE", "--src", "DE", "--ref", "EN", "--length", "x"], "length handling 'x'"),
    ],
)
def test_bad_usage(run: Any, place: Path, shared: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    places = {name.upper(): place / name for name in translators()}
    places |= {"DE": place / "test.de", "EN": place / "test.en", "BI": shared / "bi"}
    places |= {"OUT": tmp_path / "out", "NOWHERE": tmp_path / "nowhere"}
    places |= {"DEEP": tmp_path / "nowhere" / "out", "INSIDE": place / "test.de" / "out"}
    outcome = run("evaluate", *[places.get(word, word) for word in arguments])
    assert (outcome.code, outcome.out) == (2, ""), outcome.err
    assert is_one_line(outcome.err) and message in outcome.err, outcome.err
    assert list(tmp_path.iterdir()) == []


def test_scores_are_printed_even_if_the_file_cannot_be_written(
    run: Any, place: Path, text: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*anything: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dragoman.io.files.write_text", full)
    outcome = run("evaluate", place / "one", *text, "--output", tmp_path / "out")
    assert outcome.code == 1 and "BLEU" in outcome.out


def test_tgt_is_an_alias_of_ref(good: Any, place: Path, text: tuple[Any, ...]) -> None:
    named = report(good, place / "two", "--src", place / "test.de", "--tgt", place / "test.en")
    assert named["bleu"] == report(good, place / "two", *text)["bleu"]


def test_large_trees_raise(run: Any, place: Path, tmp_path: Path) -> None:
    (tmp_path / "a.tree").write_text(f"{TREES[0]}\n(S {'hund ' * 251})\n")
    (tmp_path / "a.en").write_text("the dog\n" * 2)
    outcome = run("evaluate", place / "tree", "--src", tmp_path / "a.tree", "--ref", tmp_path / "a.en")
    assert outcome.code == 2 and is_one_line(outcome.err) and "a.tree:2: a tree of 25" in outcome.err


def test_unequal_line_counts_raise(run: Any, place: Path, tmp_path: Path) -> None:
    (tmp_path / "short.en").write_text("the dog\n")
    outcome = run("evaluate", place / "one", "--src", place / "test.de", "--ref", tmp_path / "short.en")
    assert outcome.code == 2 and is_one_line(outcome.err) and "has 20; each line must belong to" in outcome.err


def test_score_of_given_translations(good: Any, run: Any, place: Path, text: tuple[Any, ...], tmp_path: Path) -> None:
    """`dragoman score --src`: log P(E | F) of each line, and what each word of it costs."""
    source, reference = text[1], text[3]
    model = translators()["two"]
    shown = good("score", place / "two", "--src", source, "--text", reference)
    expected = [result.log_prob for result in model.force_decode(GERMAN, ENGLISH)]
    assert [float(line) for line in shown.lines] == pytest.approx(expected, abs=1e-5)
    both = good("score", place / "two", place / "one", "--src", source, "--text", reference)
    assert both.lines[0].split("\t") == [str(place / "two"), str(place / "one")]
    assert [float(line.split("\t")[0]) for line in both.lines[1:]] == pytest.approx(expected, abs=1e-5)
    words = good("score", place / "two", "--src", source, "--text", reference, "--words")
    first = words.out.split("\n\n")[0].splitlines()
    assert [row.split("\t")[0] for row in first] == [*ENGLISH[0].split(), "</s>"]
    assert sum(float(row.split("\t")[1]) for row in first) == pytest.approx(expected[0], abs=1e-4)
    (tmp_path / "short.de").write_text(GERMAN[0] + "\n")
    refused = run("score", place / "two", "--src", tmp_path / "short.de", "--text", reference)
    assert refused.code == 2 and "has 1" in refused.err
    refused = run("score", place / "two", "--text", reference)
    assert refused.code == 2 and "score with --src" in refused.err
    refused = run("score", place / "two", "--src", source, "--text", reference, "--raw")
    assert refused.code == 2 and "remove one of them" in refused.err
