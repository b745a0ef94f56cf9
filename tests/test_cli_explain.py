"""dragoman explain: which features pushed which next words up and down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dragoman
from command import is_one_line
from dragoman import Corpus, DataError, LogLinearModel, fit

LINES = ["farmers eat meat", "cows eat hay", "farmers grow hay", "cows eat grass"] * 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = Corpus.from_sentences(LINES)
    fitted = LogLinearModel.create(corpus, features="word1,word1+word2,bag", weights="seen", dtype="float64")
    fit(fitted, corpus, optimizer="adagrad", learning_rate=0.5, max_epochs=30)
    path = tmp_path_factory.mktemp("models") / "maxent"
    fitted.save(path)
    return path


def test_the_parts_add_up(model: Path) -> None:
    loaded = dragoman.load(model)
    assert isinstance(loaded, LogLinearModel)
    result = loaded.explain("farmers eat", words=["hay", "meat"], k=3)
    assert [word.word for word in result.words[:3]] == [word.word for word in loaded.next_words("farmers eat", k=3)]
    assert result.words[0].word == "meat" and {word.word for word in result.words} >= {"hay", "meat"}
    assert len({word.word for word in result.words}) == len(result.words)  # meat was among the best already
    probs = dict(loaded.next_words("farmers eat", k=None))
    for word in result.words:
        assert word.prob == pytest.approx(probs[word.word])
        parts = [item.amount for item in word.contributions if item.amount is not None]
        assert word.score == pytest.approx(word.bias + sum(parts))
    names = ["word1=eat", "word1+word2=eat+farmers", "bag: farmers", "bag: eat"]
    assert {feature.feature for feature in result.features} == set(names)
    assert [item.feature for item in result.words[0].contributions] == [item.feature for item in result.features]
    assert result.unseen == ()


def test_what_features_push_most_is_in_order() -> None:
    corpus = Corpus.from_sentences(LINES)
    model = LogLinearModel.create(corpus, features="word1+word2", weights="full")
    fit(model, corpus, optimizer="adagrad", learning_rate=0.5, max_epochs=10)
    result = model.explain("cows eat", k=len(corpus.vocab))
    (pair,) = result.features
    assert {push.word for push in pair.up} == {"hay", "grass"}
    amounts = sorted(word.contributions[0].amount or 0.0 for word in result.words)
    assert [push.amount for push in pair.down] == amounts[:3] and amounts[3] < 0
    assert [push.amount for push in pair.up] == amounts[-1:-3:-1] and amounts[-3] < 0


def test_what_training_never_met_is_said(model: Path) -> None:
    result = dragoman.load(model).explain("hay eat eat")  # type: ignore[attr-defined]
    assert result.unseen == ("word1+word2=eat+eat",)
    assert [feature.value for feature in result.features if feature.feature == "bag: eat"] == [2.0]


def test_a_table_for_people(good, model: Path) -> None:  # type: ignore[no-untyped-def]
    shown = good("explain", model, "farmers eat", "-k", 2, "--words", "hay,</s>").out
    header, _, probability, score, bias, *_ = shown.splitlines()
    assert header.split()[:4] == ["farmers", "eat", "...", "meat"] and header.split()[-2:] == ["hay", "</s>"]
    assert probability.startswith("probability") and score.startswith("score") and bias.startswith("  bias")
    assert "word1+word2=eat+farmers" in shown and "highest weights" in shown and "not in the training text" not in shown
    assert "not in the training text: word1+word2=eat+eat" in good("explain", model, "eat eat").out
    assert good("explain", model, "eat eat eat").out.count("bag: eat × 3") == 1
    assert good("explain", model).out.startswith("...")


def test_json_for_programs(good, model: Path) -> None:  # type: ignore[no-untyped-def]
    result = json.loads(good("explain", model, "farmers eat", "-k", 1, "--json").out)
    assert result["prefix"] == "farmers eat" and result["unseen"] == []
    (word,) = result["words"]
    assert word["word"] == "meat" and word["contributions"][0]["feature"] == "word1=eat"
    assert result["features"][0].keys() == {"feature", "value", "up", "down"}


def test_models_without_features_are_refused_in_one_line(run, shared: Path) -> None:  # type: ignore[no-untyped-def]
    outcome = run("explain", shared / "bi", "the cat")
    assert outcome.code == 2 and is_one_line(outcome.err)
    assert "a ngram model has no features to explain; give a log-linear model" in outcome.err


@pytest.mark.parametrize("word", ["unicorn", "<s>"])
def test_words_outside_the_vocabulary_raise(word: str, model: Path, run) -> None:  # type: ignore[no-untyped-def]
    outcome = run("explain", model, "farmers", "--words", word)
    assert outcome.code == 2 and is_one_line(outcome.err) and f"'{word}'" in outcome.err
    with pytest.raises(DataError, match="does not predict this word"):
        dragoman.load(model).explain("farmers", words=[word])  # type: ignore[attr-defined]
