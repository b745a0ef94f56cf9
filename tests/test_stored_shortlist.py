"""Shortlists in model directories: made at the end of training, stored, used by searches, and removed by training."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.numpy import load_file, save_file

from dragoman import Ensemble, Translator, fit, load
from dragoman.align.aligner import Aligner
from dragoman.align.shortlist import Shortlist
from dragoman.combine import shortlist_choice
from dragoman.combine.load_translators import load_with_shortlists
from dragoman.combine.shortlist import ShortlistScorer
from dragoman.combine.shortlist_choice import (
    SHORTLIST_COST,
    alignment_seconds,
    choose_shortlist,
    describe_missing_shortlist,
    expected_speedup,
    has_time_for_shortlist,
    learn_shortlist,
    may_use_shortlist,
    num_learned_pairs,
)
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import LinePairs
from dragoman.data.vocabulary import UNK
from dragoman.evaluation.task_scores import TaskScores, score_task
from dragoman.evaluation.translator import evaluate_translator
from dragoman.io.storage import CONFIG_FILE, SHORTLIST, SHORTLIST_FILE
from dragoman.models.planning import reserve_for_search
from dragoman.models.quantized_translator import QuantizedTranslator
from dragoman.models.stored_shortlist import ShortlistDecision, store_decision
from dragoman.models.verification import verify
from small_translators import ENGLISH, GERMAN, SMALL, translators

DEV = LinePairs(GERMAN, ENGLISH)
FIGURES = {"metric": "BLEU", "score": 30.0, "score_of_all_words": 29.5, "speedup": 1.4}


def pairs_of(model: Translator) -> ParallelCorpus:
    return DEV.encode(model.source, model.target)


def small_shortlist(model: Translator) -> Shortlist:
    """Few words, so that probabilities differ from those over all words."""
    lexicon = Aligner.train(pairs_of(model), "ibm1").forward.lexicon
    return Shortlist.from_lexicon(lexicon, model.source_vocab, model.vocab, 0, 1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A translator with a shortlist."""
    model = translators()["two"]
    model.save(tmp_path / "two")
    store_decision(tmp_path / "two", ShortlistDecision(used=True, **FIGURES), small_shortlist(model))
    return tmp_path / "two"


def found(model: Any, **options: Any) -> list[tuple[str, float]]:
    """Translations and their log-probabilities, which are higher with a shortlist."""
    return [(translation.text, round(translation.log_prob, 3)) for translation in model.translate(GERMAN, **options)]


# -- stored and used ---------------------------------------------------------------------------------------------------


def test_a_stored_shortlist_is_used_by_searches_and_not_by_likelihoods(directory: Path) -> None:
    model, plain = load(directory), translators()["two"]
    listed = ShortlistScorer(plain, small_shortlist(plain))
    for name in ("starts", "translations", "always_allowed"):
        assert torch.equal(getattr(model.shortlist, name), getattr(listed.shortlist, name))
    assert found(model) == found(listed) != found(plain) == found(model, use_shortlist=False)
    assert model.score(GERMAN, ENGLISH) == plain.score(GERMAN, ENGLISH)
    assert model.likelihood(GERMAN, ENGLISH) == plain.likelihood(GERMAN, ENGLISH)
    sampled, exact = (one.sample(GERMAN[:3], 2, seed=3) for one in (model, plain))
    assert [[t.text for t in row] for row in sampled] == [[t.text for t in row] for row in exact]
    diagnosed, expected = (evaluate_translator(one, GERMAN, ENGLISH, diagnose=True) for one in (model, plain))
    assert diagnosed.errors == expected.errors and not diagnosed.with_shortlist
    [without] = load_with_shortlists([directory], "none")
    assert found(without) == found(plain)


def test_copies_and_quantized_models_keep_it(directory: Path, tmp_path: Path) -> None:
    model = load(directory)
    model.save(tmp_path / "copy")
    quantized = QuantizedTranslator.quantize(model)
    quantized.save(tmp_path / "quantized")
    assert found(load(tmp_path / "copy")) == found(model)
    again = load(tmp_path / "quantized")
    assert again.has_shortlist and found(again) == found(quantized) != found(again, use_shortlist=False)
    for name in ("copy", "quantized"):
        assert (tmp_path / name / SHORTLIST_FILE).read_bytes() == (directory / SHORTLIST_FILE).read_bytes()
        assert verify(tmp_path / name).problems == []
        assert "search uses a shortlist: dev BLEU 30.00" in (tmp_path / name / "README.md").read_text()
    again.shortlist = model.shortlist = None
    assert not again.has_shortlist and again.search_scorer() is again.search_scorer(use_shortlist=False)
    model.save(tmp_path / "plain")
    assert not (tmp_path / "plain" / SHORTLIST_FILE).exists() and not load(tmp_path / "plain").has_shortlist


@pytest.mark.parametrize("decision", [None, ShortlistDecision(used=False, **FIGURES)])
def test_one_that_was_set_is_saved(tmp_path: Path, decision: ShortlistDecision | None) -> None:
    model = deepcopy(translators()["two"])
    if decision is not None:
        model.training_metadata[SHORTLIST] = decision.model_dump(mode="json")
    model.shortlist = small_shortlist(model)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert found(loaded) == found(model) != found(translators()["two"])
    assert verify(tmp_path / "model").problems == []
    assert "The search uses a shortlist.\n" in (tmp_path / "model" / "README.md").read_text()
    loaded.save(tmp_path / "again")
    assert load(tmp_path / "again").has_shortlist


def test_training_removes_it(directory: Path, tmp_path: Path) -> None:
    model = load(directory)
    fit(model, pairs_of(model), max_updates=1, output=tmp_path / "more", threads=1)
    assert not model.has_shortlist and not load(tmp_path / "more").has_shortlist
    assert SHORTLIST not in yaml.safe_load((tmp_path / "more" / CONFIG_FILE).read_text())
    extended = load(directory).extend_vocabulary(["neu neu"], ["new new"])
    assert not extended.has_shortlist


def test_an_ensemble_uses_shortlists_only_if_all_members_have_one(directory: Path) -> None:
    model, plain = load(directory), translators()["one"]
    exact = Ensemble([translators()["two"], plain])
    mixed, restricted = Ensemble([model, plain]), Ensemble([model, model])
    assert not mixed.has_shortlist and found(mixed) == found(exact)
    assert restricted.has_shortlist and found(restricted) == found(model)
    assert Ensemble([model, plain], mode="log-linear").has_shortlist


# -- damage ------------------------------------------------------------------------------------------------------------


def changed(directory: Path, name: str, change: Callable[[np.ndarray[Any, Any]], object]) -> None:
    """Change an array, without a digest."""
    arrays = load_file(directory / SHORTLIST_FILE)
    change(arrays[name])
    save_file(arrays, directory / SHORTLIST_FILE)


def assign(index: Any, value: object) -> Callable[[np.ndarray[Any, Any]], object]:
    return lambda array: array.__setitem__(index, value)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("starts", assign(1, 9), "words without translations"),
        ("starts", assign(-1, 1), "words without translations"),
        ("translations", assign(0, 10**6), "outside the vocabulary"),
        ("translations", assign(0, 0), "outside the vocabulary"),
        ("always_allowed", assign(1, False), "does not allow the end"),
    ],
)
def test_a_shortlist_that_does_not_fit_is_refused(
    directory: Path, run: Callable[..., Any], name: str, change: Any, message: str
) -> None:
    changed(directory, name, change)
    outcome = run("translate", directory, stdin="ein hund\n")
    assert outcome.code == 2 and outcome.err.count("\n") == 1 and message in outcome.err
    assert any(message in problem for problem in verify(directory).problems)


def test_a_damaged_or_missing_file_is_one_line(directory: Path, run: Callable[..., Any]) -> None:
    raw = bytearray((directory / SHORTLIST_FILE).read_bytes())
    raw[-1] ^= 1
    (directory / SHORTLIST_FILE).write_bytes(raw)
    for message in ("shortlist.safetensors: damaged", "shortlist.safetensors: missing"):
        outcome = run("translate", directory, stdin="ein hund\n")
        assert outcome.code == 2 and outcome.err.count("\n") == 1 and message in outcome.err
        (directory / SHORTLIST_FILE).unlink(missing_ok=True)


def test_a_decision_that_is_none_is_refused(directory: Path, run: Callable[..., Any]) -> None:
    config = yaml.safe_load((directory / CONFIG_FILE).read_text())
    for section in ({"used": "yes", **FIGURES}, {"score": 30.0}, [1]):
        (directory / CONFIG_FILE).write_text(yaml.safe_dump({**config, SHORTLIST: section}))
        outcome = run("translate", directory, stdin="ein hund\n")
        assert outcome.code == 2 and outcome.err.count("\n") == 1


# -- the choice --------------------------------------------------------------------------------------------------------


def score(translated: Sequence[str]) -> TaskScores:
    return score_task(translated, ENGLISH, GERMAN, translators()["two"].target, tokenised=True)


@pytest.mark.parametrize(("speedup", "used"), [(1.2, True), (1.05, False)])
def test_it_is_used_only_if_it_is_faster(monkeypatch: pytest.MonkeyPatch, speedup: float, used: bool) -> None:
    model = translators()["one"]
    monkeypatch.setattr(shortlist_choice, "expected_speedup", lambda model, size: speedup if size > 5 else 0)
    choice = choose_shortlist(model, pairs_of(model), GERMAN, score)
    assert choice.decision.used == used and choice.decision.speedup == speedup
    assert choice.decision.reason == (None if used else "hardly faster")
    assert choice.decision.score == choice.decision.score_of_all_words and len(choice.texts) == len(GERMAN)
    assert not model.has_shortlist


def test_the_speed_is_estimated_from_sizes() -> None:
    """The same training has the same result on every machine, however busy it is."""
    one = translators()["one"]
    wide = Translator.create(pairs_of(one), one.source, one.target, **{**SMALL, "hidden": 32})
    for model in (one, wide):
        words = len(model.vocab)
        assert expected_speedup(model, words / SHORTLIST_COST) == pytest.approx(1.0)
        assert expected_speedup(model, words) < 1 < expected_speedup(model, 1)
    assert expected_speedup(one, 1) > expected_speedup(wide, 1)  # whose steps take longer


def test_it_is_learned_from_a_sample_of_a_large_text(monkeypatch: pytest.MonkeyPatch) -> None:
    model = translators()["one"]
    pairs, trained = pairs_of(model), list[ParallelCorpus]()
    train = Aligner.train
    monkeypatch.setattr(Aligner, "train", lambda text: trained.append(text) or train(text, "ibm1"))
    assert num_learned_pairs(pairs) == len(pairs)
    monkeypatch.setattr(shortlist_choice, "MAX_CELLS", 25 * 5)
    assert num_learned_pairs(pairs) == 5 and alignment_seconds(pairs) < 3
    learn_shortlist(model, pairs)
    assert [list(text.source[0]) for text in trained] == [list(pairs.source[0])] and len(trained[0]) == 5


def test_it_is_used_only_if_translations_are_no_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    model = translators()["one"]
    monkeypatch.setattr(shortlist_choice, "expected_speedup", lambda model, size: 2.0)
    narrow, sleeps = small_shortlist(model), model.vocab.id("sleeps")
    without_a_verb = torch.where(narrow.translations == sleeps, UNK + 1, narrow.translations)
    bad = replace(narrow, translations=without_a_verb, always_allowed=narrow.always_allowed.clone())
    bad.always_allowed[sleeps] = False
    monkeypatch.setattr(Shortlist, "from_lexicon", lambda *arguments: bad)
    choice = choose_shortlist(model, pairs_of(model), GERMAN, score)
    assert choice.decision.score < choice.decision.score_of_all_words and not choice.decision.used
    assert choice.decision.reason == "the dev text is translated worse"
    assert choice.texts == [text for text, _ in found(model)]


def test_it_is_not_made_where_it_cannot_help(monkeypatch: pytest.MonkeyPatch) -> None:
    models = translators()
    assert not may_use_shortlist(models["one"], DEV)
    assert not describe_missing_shortlist(models["one"], DEV), "nobody expects one of a few words"
    monkeypatch.setattr(shortlist_choice, "MIN_VOCABULARY", 1)
    assert "there is no dev text" in describe_missing_shortlist(models["one"], DEV)
    monkeypatch.setattr(shortlist_choice, "MIN_SENTENCES", len(GERMAN))
    assert "hardly be faster" in describe_missing_shortlist(models["one"], DEV)
    monkeypatch.setattr(shortlist_choice, "MIN_SPEEDUP", 0.0)
    monkeypatch.setattr(shortlist_choice, "MIN_SENTENCES", len(GERMAN))
    assert may_use_shortlist(models["one"], DEV)
    assert not may_use_shortlist(models["tree"], DEV) and not may_use_shortlist(models["one"], None)
    pairs = pairs_of(models["one"])
    classes = Translator.create(pairs, models["one"].source, models["one"].target, softmax="brown", **SMALL)
    assert not may_use_shortlist(classes, DEV)
    assert has_time_for_shortlist(pairs, None) and has_time_for_shortlist(pairs, 5)
    assert not has_time_for_shortlist(pairs, 0.1)


def test_its_time_is_reserved() -> None:
    plain, more = reserve_for_search(1000), reserve_for_search(1000, 1000, 7.0)
    assert more.within(1e6, 0.01) == pytest.approx(plain.within(1e6, 0.01) + 25 + 7)
    assert more.within(100, 0.01) == pytest.approx(2 * plain.within(100, 0.01) + 7)
    assert more.share_within(1e6, 0.01) == plain.share_within(1e6, 0.01) == 1


# -- training ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, good: Callable[..., Any]) -> Callable[..., Any]:
    """Train on a small text for which a shortlist is always faster; return what was printed."""
    for name, lines in (("a.de", GERMAN), ("a.en", ENGLISH)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    for name, value in (("MIN_SENTENCES", 5), ("MIN_SPEEDUP", 0.0)):
        monkeypatch.setattr(shortlist_choice, name, value)
    source, target = tmp_path / "a.de", tmp_path / "a.en"
    data = ("--src", source, "--tgt", target, "--dev-src", source, "--dev-tgt", target)
    sizes = ("--embedding", 8, "--hidden", 8, "--units", "word", "--threads", 1)

    def train(output: str, *options: object, start: bool = False) -> Any:
        return good("train", "translator", *data, *(() if start else sizes), "-o", tmp_path / output, *options)

    return train


def contents(directory: Path) -> dict[str, object]:
    """The contents of the files that do not depend on time."""
    timed = {"README.md", "metrics.jsonl", "training.safetensors"}
    return {file.name: file.read_bytes() for file in directory.iterdir() if file.name not in timed}


def test_training_makes_a_shortlist(training: Callable[..., Any], tmp_path: Path, good: Callable[..., Any]) -> None:
    report = training("model", "--max-updates", 3).err
    model, path = load(tmp_path / "model"), tmp_path / "model"
    assert model.has_shortlist and "search uses a shortlist: dev BLEU" in report
    assert "The search uses a shortlist: dev BLEU" in (path / "README.md").read_text()
    assert verify(path).problems == []
    decision = yaml.safe_load((path / CONFIG_FILE).read_text())[SHORTLIST]
    data = ("--src", tmp_path / "a.de", "--ref", tmp_path / "a.en", "--json")
    stored = json.loads(good("evaluate", path, *data).out)
    assert stored["shortlist"] == "stored" and stored["bleu"] == pytest.approx(decision["score"], abs=1e-3)
    without = json.loads(good("evaluate", path, *data, "--shortlist", "none").out)
    assert without["shortlist"] == "none" and without["perplexity"] == stored["perplexity"]
    diagnosed = json.loads(good("evaluate", path, *data, "--diagnose").out)
    assert "shortlist" not in diagnosed and diagnosed["bleu"] == without["bleu"]
    assert "shortlist" not in training("plain", "--max-updates", 3, "--shortlist", "none").err
    assert not load(tmp_path / "plain").has_shortlist


def test_a_run_that_was_stopped_has_the_same_result(training: Callable[..., Any], tmp_path: Path) -> None:
    training("whole", "--max-updates", 3)
    shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    config = yaml.safe_load((tmp_path / "stopped" / CONFIG_FILE).read_text())
    del config[SHORTLIST]  # stopped after the shortlist was written, before the decision
    (tmp_path / "stopped" / CONFIG_FILE).write_text(yaml.safe_dump(config, sort_keys=False))
    card = (tmp_path / "stopped" / "README.md").read_text()
    no_scores = "None were measured when the model was trained; see below for how to measure them."
    (tmp_path / "stopped" / "README.md").write_text(card.replace("## Scores", no_scores))
    assert not load(tmp_path / "stopped").has_shortlist
    training("stopped", "--max-updates", 3)
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")
    before = (tmp_path / "stopped" / CONFIG_FILE).read_bytes()
    (tmp_path / "stopped" / "README.md").write_text(card.replace("## Scores", no_scores))
    training("stopped", "--max-updates", 3)  # stopped after the decision, which is kept
    assert (tmp_path / "stopped" / CONFIG_FILE).read_bytes() == before
    training("stopped", "--max-updates", 2)  # still finished, by another limit
    assert load(tmp_path / "stopped").has_shortlist


def test_longer_training_and_fine_tuning_choose_again(training: Callable[..., Any], tmp_path: Path) -> None:
    training("model", "--max-updates", 2)
    store_decision(
        tmp_path / "model", ShortlistDecision(used=False, **FIGURES), small_shortlist(load(tmp_path / "model"))
    )
    assert not load(tmp_path / "model").has_shortlist
    assert "search uses a shortlist" in training("model", "--max-updates", 4).err
    start = ("--from", tmp_path / "model", "--max-updates", 1)
    assert "search uses a shortlist" in training("tuned", *start, start=True).err
    training("tuned-plain", *start, "--shortlist", "none", start=True)
    assert not load(tmp_path / "tuned-plain").has_shortlist


def test_the_option_is_checked(run: Callable[..., Any], tmp_path: Path) -> None:
    outcome = run("train", "translator", "--src", "a", "--tgt", "b", "-o", tmp_path / "m", "--shortlist", "always")
    assert outcome.code == 2 and "--shortlist always: choose auto or none" in outcome.err
