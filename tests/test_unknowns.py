"""Replacement of unknown words in translations, by the lexicon or by copying."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from command import is_one_line
from dragoman import Corpus, DataError
from dragoman.align.aligner import Aligner
from dragoman.align.unknown_words import COPIED, TRANSLATED, Replacement, UnknownReplacer
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.vocabulary import UNK
from dragoman.models.translation import Translation
from dragoman.models.translator import Translator
from small_translators import ENGLISH, GERMAN, SMALL, place, translators

__all__ = ["place"]

ATTENTION = np.array([[0.1, 0.6, 0.2, 0.1], [0.2, 0.1, 0.3, 0.4], [0.25, 0.25, 0.2, 0.3], [0.0, 0.0, 0.0, 1.0]])


def make_aligner() -> Aligner:
    return Aligner.train(ParallelCorpus(Corpus.from_sentences(GERMAN), Corpus.from_sentences(ENGLISH)), "ibm1")


@pytest.fixture(scope="module")
def unknown_only(tmp_path_factory: pytest.TempPathFactory) -> tuple[Translator, Path]:
    """A translator that predicts only `<unk>`."""
    source, target = Tokenizer.train("word", GERMAN), Tokenizer.train("word", ENGLISH)
    model = Translator.create(ParallelCorpus(source.encode(GERMAN), target.encode(ENGLISH)), source, target, **SMALL)
    with torch.no_grad():
        model.state_dict()["output.bias"][UNK] += 50.0
    path = tmp_path_factory.mktemp("unknown_only") / "model"
    model.save(path)
    return model, path


# -- rules -------------------------------------------------------------------------------------------------------------


def test_the_word_with_the_most_attention_is_copied() -> None:
    result = UnknownReplacer().replacements(["<unk>", "a", "<unk>"], ["Meier", "Müller", "sieht"], ATTENTION)
    assert result == (
        Replacement(0, "Müller", "Müller", pytest.approx(0.6), COPIED),
        Replacement(
            2, "Meier", "Meier", pytest.approx(0.25), COPIED
        ),  # the first of two equal ones; `</s>` is not a word
    )


def test_the_lexicon_is_preferred_to_copying() -> None:
    result = UnknownReplacer(make_aligner().forward.lexicon).replacements(
        ["<unk>", "<unk>"], ["Meier", "katze", "hund"], ATTENTION
    )
    assert [(r.word, r.source, r.rule) for r in result] == [
        ("cat", "katze", TRANSLATED),
        ("dog", "hund", TRANSLATED),
    ]
    copied = UnknownReplacer(make_aligner().forward.lexicon).replacements(["<unk>"], ["katze", "Meier"], ATTENTION)
    assert [(r.word, r.rule) for r in copied] == [("Meier", COPIED)]


def test_unknown_source_words_are_preferred() -> None:
    """If they have enough attention."""
    source = ["Meier", "Müller", "sieht"]
    for is_unknown, copied in (
        ([True, False, False], "Meier"),
        ([False, False, True], "sieht"),
        ([False] * 3, "Müller"),
    ):
        [replacement] = UnknownReplacer().replacements(["<unk>"], source, ATTENTION, is_unknown)
        assert replacement.word == copied
    nothing = np.array([[0.05, 0.9, 0.05, 0.0]])
    assert UnknownReplacer().replacements(["<unk>"], source, nothing, [True, False, True])[0].word == "Müller"


def test_the_lexicon_must_know_the_source_words(
    run: Any, unknown_only: tuple[Translator, Path], tmp_path: Path
) -> None:
    (tmp_path / "t.de").write_text("katze\n")
    both = ParallelCorpus(Corpus.from_sentences(GERMAN), Corpus.from_sentences(ENGLISH))
    Aligner.train(ParallelCorpus(both.target, both.source), "ibm1").save(tmp_path / "turned")
    other = ParallelCorpus(Corpus.from_sentences(["x y"] * 3), Corpus.from_sentences(["z z"] * 3))
    Aligner.train(other, "ibm1").save(tmp_path / "other")
    command = ("translate", unknown_only[1], "--text", tmp_path / "t.de")
    assert set(run(*command, "--lexicon", tmp_path / "turned").out.split()) == {"cat"}
    refused = run(*command, "--lexicon", tmp_path / "other")
    assert refused.code == 2 and "knows 0% of the translator's source words" in refused.err and is_one_line(refused.err)


def test_nodes_of_several_words_are_ignored() -> None:
    result = UnknownReplacer().replacements(["<unk>"], ["der", "der hund", "hund"], ATTENTION)
    assert [r.word for r in result] == ["hund"]
    assert UnknownReplacer().replacements(["<unk>"], ["der hund"], ATTENTION) == (), "no single words"


# -- translators -------------------------------------------------------------------------------------------------------


def test_the_text_changes_and_the_tokens_do_not(unknown_only: tuple[Translator, Path]) -> None:
    model, _ = unknown_only
    line = "Meier sieht Müller"
    plain, replaced = model.translate([line])[0], model.translate([line], unknown_replacer=UnknownReplacer())[0]
    assert plain.text == " ".join(plain.tokens) and set(plain.tokens) == {"<unk>"} and plain.replacements == ()
    assert (replaced.tokens, replaced.log_prob, replaced.score) == (plain.tokens, plain.log_prob, plain.score)
    assert replaced.text.split() == [r.word for r in replaced.replacements] and set(replaced.text.split()) <= set(
        line.split()
    )
    assert replaced.attention is not None
    for replacement in replaced.replacements:
        assert replacement.source == replaced.source_tokens[int(replaced.attention[replacement.place, :-1].argmax())]
    assert (
        model.translate(["der hund"], unknown_replacer=UnknownReplacer(make_aligner().forward.lexicon))[0]
        .replacements[0]
        .rule
        == TRANSLATED
    )


def test_long_lines_translated_in_parts(unknown_only: tuple[Translator, Path]) -> None:
    model, _ = unknown_only
    replaced = model.translate(["Meier Müller Schulze Schmidt"], unknown_replacer=UnknownReplacer(), max_tokens=2)[0]
    assert [r.place for r in replaced.replacements] == list(range(len(replaced.tokens)))
    assert replaced.text.split() == [r.word for r in replaced.replacements]
    assert {"Meier", "Müller"} & set(replaced.text.split()) and {"Schulze", "Schmidt"} & set(replaced.text.split())


def test_known_words_are_unchanged() -> None:
    model = translators()["one"]
    assert [translation.text for translation in model.translate(GERMAN, unknown_replacer=UnknownReplacer())] == ENGLISH


@pytest.mark.parametrize(("name", "message"), [("pieces", "it predicts char"), ("plain", "this translator has none")])
def test_translators_without_replacement_are_rejected(name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        translators()[name].translate(GERMAN[:1], unknown_replacer=UnknownReplacer())


def test_blank_lines_stay_blank(unknown_only: tuple[Translator, Path]) -> None:
    assert unknown_only[0].translate([" "], unknown_replacer=UnknownReplacer())[0] == Translation("", (), 0.0, 0.0, ())


# -- the command line --------------------------------------------------------------------------------------------------


def test_replacements_are_explained(good: Any, unknown_only: tuple[Translator, Path], tmp_path: Path) -> None:
    make_aligner().save(tmp_path / "aligner")
    command = ("translate", unknown_only[1], "--lexicon", tmp_path / "aligner", "--explain-unknowns")
    shown = good(*command, stdin="Meier\n\nkatze\n")
    copied, blank, cats = shown.lines
    assert set(copied.split()) == {"Meier"} and blank == "" and set(cats.split()) == {"cat"}
    assert "line 1, word 1: meier, copied from meier" in shown.err, "as the translator reads it"
    assert "line 3, word 1: cat, the lexicon's translation of katze" in shown.err
    report = json.loads(good(*command, "--json", stdin="katze\n").lines[0])
    assert report["replaced"][0]["rule"] == "lexicon" and report["replaced"][0]["word"] == "cat"
    quiet = good("translate", unknown_only[1], "--replace-unknowns", stdin="katze\n")
    assert set(quiet.out.split()) == {"katze"} and "word 1" not in quiet.err


def test_evaluation_with_replaced_unknown_words(
    good: Any, unknown_only: tuple[Translator, Path], tmp_path: Path
) -> None:
    (tmp_path / "t.de").write_text("katze\n")
    (tmp_path / "t.en").write_text("katze katze katze katze\n")
    command = (
        "evaluate",
        unknown_only[1],
        "--src",
        tmp_path / "t.de",
        "--ref",
        tmp_path / "t.en",
        "--allow-repetition",
        "--json",
    )
    plain, replaced = (json.loads(good(*command, *option).out) for option in ([], ["--replace-unknowns"]))
    assert plain["chrf"] < 5 < 15 < replaced["chrf"] and plain["perplexity"] == replaced["perplexity"]
    assert [report["unknown_words"] for report in (plain, replaced)] == [4, 4]
    assert plain["unknown_words_found"] == 0
    assert "replace_unknowns" not in plain and replaced["replace_unknowns"] is True
    assert replaced["unknown_words_found"] == 1, "one of the four"
    lines = [" ".join(line.split()) for line in good(*command[:-1], "--replace-unknowns").lines]
    assert "sentences 1 beam size 5, length norm, unknown words replaced" in lines
    assert "unknown words found 1 of the 4 words of the references that are not in its vocabulary" in lines
    (tmp_path / "t.en").write_text(f"{ENGLISH[0]}\n")
    assert not any("unknown words found" in line for line in good(*command[:-1]).lines), "no unknown words"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("one", ["--explain-unknowns"], "no words are replaced"),
        ("pieces", ["--replace-unknowns"], "it predicts char"),
        ("plain", ["--replace-unknowns"], "attention"),
        ("one", ["--replace-unknowns", "--sample", "2"], "remove"),
        ("one", ["--lexicon", "nowhere"], "nowhere: no aligner here"),
    ],
)
def test_invalid_options_are_rejected(run: Any, place: Path, name: str, options: list[str], message: str) -> None:
    outcome = run("translate", place / name, *options, stdin="der hund\n")
    assert outcome.code == 2 and message in outcome.err and is_one_line(outcome.err)


def test_language_models_have_no_replacement(run: Any, place: Path, tmp_path: Path) -> None:
    (tmp_path / "t.en").write_text("a\n")
    outcome = run("evaluate", place / "one", "--text", tmp_path / "t.en", "--replace-unknowns")
    assert outcome.code == 2 and "--replace-unknowns is for translators" in outcome.err
