"""Unknown words in translations replaced by the lexicon's word, or by the word looked at most."""

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


def aligner() -> Aligner:
    return Aligner.train(ParallelCorpus(Corpus.from_sentences(GERMAN), Corpus.from_sentences(ENGLISH)), "ibm1")


@pytest.fixture(scope="module")
def speechless(tmp_path_factory: pytest.TempPathFactory) -> tuple[Translator, Path]:
    """A translator that says nothing but `<unk>`."""
    source, target = Tokenizer.train("word", GERMAN), Tokenizer.train("word", ENGLISH)
    model = Translator.create(ParallelCorpus(source.encode(GERMAN), target.encode(ENGLISH)), source, target, **SMALL)
    with torch.no_grad():
        model.parameters()["b_s"][UNK] += 50.0
    path = tmp_path_factory.mktemp("speechless") / "model"
    model.save(path)
    return model, path


# -- rules -------------------------------------------------------------------------------------------------------------


def test_the_word_looked_at_most_is_copied() -> None:
    found = UnknownReplacer().replacements(["<unk>", "a", "<unk>"], ["Meier", "Müller", "sieht"], ATTENTION)
    assert found == (
        Replacement(0, "Müller", "Müller", pytest.approx(0.6), COPIED),
        Replacement(2, "Meier", "Meier", pytest.approx(0.25), COPIED),  # the first of two alike; `</s>` is no word
    )


def test_the_lexicon_comes_first_where_it_knows_the_word() -> None:
    found = UnknownReplacer(aligner().forward.lexicon).replacements(
        ["<unk>", "<unk>"], ["Meier", "katze", "hund"], ATTENTION
    )
    assert [(one.word, one.source, one.rule) for one in found] == [
        ("cat", "katze", TRANSLATED),
        ("dog", "hund", TRANSLATED),
    ]
    copied = UnknownReplacer(aligner().forward.lexicon).replacements(["<unk>"], ["katze", "Meier"], ATTENTION)
    assert [(one.word, one.rule) for one in copied] == [("Meier", COPIED)]


def test_words_that_are_unknown_themselves_come_first() -> None:
    """If they were looked at at all."""
    source = ["Meier", "Müller", "sieht"]
    for strange, copied in (([True, False, False], "Meier"), ([False, False, True], "sieht"), ([False] * 3, "Müller")):
        [found] = UnknownReplacer().replacements(["<unk>"], source, ATTENTION, strange)
        assert found.word == copied
    nothing = np.array([[0.05, 0.9, 0.05, 0.0]])
    assert UnknownReplacer().replacements(["<unk>"], source, nothing, [True, False, True])[0].word == "Müller"


def test_a_lexicon_of_whichever_direction_and_of_this_text(
    run: Any, speechless: tuple[Translator, Path], tmp_path: Path
) -> None:
    (tmp_path / "t.de").write_text("katze\n")
    both = ParallelCorpus(Corpus.from_sentences(GERMAN), Corpus.from_sentences(ENGLISH))
    Aligner.train(ParallelCorpus(both.target, both.source), "ibm1").save(tmp_path / "turned")
    other = ParallelCorpus(Corpus.from_sentences(["x y"] * 3), Corpus.from_sentences(["z z"] * 3))
    Aligner.train(other, "ibm1").save(tmp_path / "other")
    command = ("translate", speechless[1], "--text", tmp_path / "t.de")
    assert set(run(*command, "--lexicon", tmp_path / "turned").out.split()) == {"cat"}
    refused = run(*command, "--lexicon", tmp_path / "other")
    assert refused.code == 2 and "knows 0% of what the translator reads" in refused.err and is_one_line(refused.err)


def test_of_a_tree_single_words_are_looked_at() -> None:
    found = UnknownReplacer().replacements(["<unk>"], ["der", "der hund", "hund"], ATTENTION)
    assert [one.word for one in found] == ["hund"]
    assert UnknownReplacer().replacements(["<unk>"], ["der hund"], ATTENTION) == (), "nothing to take"


# -- translators -------------------------------------------------------------------------------------------------------


def test_the_text_changes_and_the_units_do_not(speechless: tuple[Translator, Path]) -> None:
    model, _ = speechless
    line = "Meier sieht Müller"
    plain, told = model.translate([line])[0], model.translate([line], unknown_replacer=UnknownReplacer())[0]
    assert plain.text == " ".join(plain.tokens) and set(plain.tokens) == {"<unk>"} and plain.replacements == ()
    assert (told.tokens, told.log_prob, told.score) == (plain.tokens, plain.log_prob, plain.score)
    assert told.text.split() == [one.word for one in told.replacements] and set(told.text.split()) <= set(line.split())
    assert told.attention is not None
    for one in told.replacements:
        assert one.source == told.source_tokens[int(told.attention[one.place, :-1].argmax())]
    assert (
        model.translate(["der hund"], unknown_replacer=UnknownReplacer(aligner().forward.lexicon))[0]
        .replacements[0]
        .rule
        == TRANSLATED
    )


def test_of_a_line_in_pieces_all_are_replaced(speechless: tuple[Translator, Path]) -> None:
    model, _ = speechless
    told = model.translate(["Meier Müller Schulze Schmidt"], unknown_replacer=UnknownReplacer(), max_tokens=2)[0]
    assert [one.place for one in told.replacements] == list(range(len(told.tokens)))
    assert told.text.split() == [one.word for one in told.replacements]
    assert {"Meier", "Müller"} & set(told.text.split()) and {"Schulze", "Schmidt"} & set(told.text.split())


def test_known_words_stay_as_they_are() -> None:
    model = translators()["one"]
    assert [one.text for one in model.translate(GERMAN, unknown_replacer=UnknownReplacer())] == ENGLISH


@pytest.mark.parametrize(("name", "told"), [("pieces", "not char"), ("plain", "no attention")])
def test_where_none_can_be_replaced_that_is_said(name: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        translators()[name].translate(GERMAN[:1], unknown_replacer=UnknownReplacer())


def test_blank_lines_stay_blank(speechless: tuple[Translator, Path]) -> None:
    assert speechless[0].translate([" "], unknown_replacer=UnknownReplacer())[0] == Translation("", (), 0.0, 0.0, ())


# -- the command line --------------------------------------------------------------------------------------------------


def test_which_rule_gave_which_word(good: Any, speechless: tuple[Translator, Path], tmp_path: Path) -> None:
    aligner().save(tmp_path / "aligner")
    command = ("translate", speechless[1], "--lexicon", tmp_path / "aligner", "--explain-unknowns")
    shown = good(*command, stdin="Meier\n\nkatze\n")
    copied, blank, cats = shown.lines
    assert set(copied.split()) == {"Meier"} and blank == "" and set(cats.split()) == {"cat"}
    assert "line 1, word 1: Meier, copied from Meier" in shown.err
    assert "line 3, word 1: cat, the lexicon's translation of katze" in shown.err
    one = json.loads(good(*command, "--json", stdin="katze\n").lines[0])
    assert one["replaced"][0]["rule"] == "lexicon" and one["replaced"][0]["word"] == "cat"
    quiet = good("translate", speechless[1], "--replace-unknowns", stdin="katze\n")
    assert set(quiet.out.split()) == {"katze"} and "word 1" not in quiet.err


def test_translations_are_judged_with_their_unknown_words_replaced(
    good: Any, speechless: tuple[Translator, Path], tmp_path: Path
) -> None:
    (tmp_path / "t.de").write_text("katze\n")
    (tmp_path / "t.en").write_text("katze katze katze katze\n")
    command = ("evaluate", speechless[1], "--src", tmp_path / "t.de", "--ref", tmp_path / "t.en", "--json")
    plain, replaced = (json.loads(good(*command, *option).out) for option in ([], ["--replace-unknowns"]))
    assert plain["chrf"] < 5 < 15 < replaced["chrf"] and plain["perplexity"] == replaced["perplexity"]
    assert [one["unknown_words"] for one in (plain, replaced)] == [4, 4]
    assert plain["unknown_words_found"] == 0
    assert "replace_unknowns" not in plain and replaced["replace_unknowns"] is True
    assert replaced["unknown_words_found"] == 1, "one word came through, and not so often"
    told = [" ".join(line.split()) for line in good(*command[:-1], "--replace-unknowns").lines]
    assert "sentences 1 beam size 5, length norm, unknown words replaced" in told
    assert "unknown words found 1 of 4 in the references that it does not know" in told
    (tmp_path / "t.en").write_text(f"{ENGLISH[0]}\n")
    assert not any("unknown words found" in line for line in good(*command[:-1]).lines), "none to be found"


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("one", ["--explain-unknowns"], "none are replaced"),
        ("pieces", ["--replace-unknowns"], "not char"),
        ("plain", ["--replace-unknowns"], "attention"),
        ("one", ["--replace-unknowns", "--sample", "2"], "leave"),
        ("one", ["--lexicon", "nowhere"], "nowhere: there is no aligner"),
    ],
)
def test_what_cannot_be_is_refused(run: Any, place: Path, name: str, options: list[str], told: str) -> None:
    outcome = run("translate", place / name, *options, stdin="der hund\n")
    assert outcome.code == 2 and told in outcome.err and is_one_line(outcome.err)


def test_they_are_for_translators(run: Any, place: Path, tmp_path: Path) -> None:
    (tmp_path / "t.en").write_text("a\n")
    outcome = run("evaluate", place / "one", "--text", tmp_path / "t.en", "--replace-unknowns")
    assert outcome.code == 2 and "--replace-unknowns is for translators" in outcome.err
