"""New words, characters and pieces for trained models: what stays as it was, and what the new tokens start with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dragoman
from dragoman import Corpus, DataError, FeedForwardModel, RecurrentModel, fit
from dragoman.data.batches import Batch
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.segmenters import SubwordSegmenter
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.vocabulary import UNK
from dragoman.data.vocabulary_extension import extend_tokenizer
from dragoman.models.translator import Translator
from dragoman.ngram.spelling import SpellingModel
from small_translators import ENGLISH, GERMAN, TREES

OLD = ["the dog sees a cat .", "a cat hears the dog !", "the bird sees the cat ."] * 4
NEW = ["the fish sees a horse .", "a horse hears the fish !", "the fish swims ."]
UNKNOWN_BOTH = "the dragon sees a cat ."
QUICK: dict[str, Any] = {"max_updates": 8, "learning_rate": 0.05, "batch_size": 40, "threads": 1}

LANGUAGE_MODELS: dict[str, dict[str, Any]] = {
    "untied": {},
    "tied": {"tied": True},
    "classes": {"softmax": "frequency", "softmax_classes": 3},
    "tied classes": {"softmax": "frequency", "softmax_classes": 3, "tied": True},
}


def language_model(kind: str, corpus: Corpus, **settings: Any) -> Any:
    sizes = {"embedding": 5, "dtype": "float64", **settings}
    if kind == "recurrent":
        model: Any = RecurrentModel.create(corpus, hidden=6, **sizes)
    else:
        model = FeedForwardModel.create(corpus, order=3, hidden=(6,), direct=True, **sizes)
    fit(model, corpus, unknown_rate=0.5, **QUICK)
    return model


@pytest.mark.parametrize("kind", ["recurrent", "feed-forward"])
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_new_words_share_the_probability_of_unk_and_nothing_else_changes(kind: str, name: str) -> None:
    old = language_model(kind, Corpus.from_sentences(OLD), **LANGUAGE_MODELS[name])
    new = old.extend_vocabulary(NEW)  # words seen once stay unknown
    assert new.vocab.tokens == (*old.vocab.tokens, "fish", "horse")
    assert new.score(OLD) == pytest.approx(old.score(OLD), rel=1e-12)
    prefix = ["the", "dog", "fish"]  # a new word is read as <unk> was
    first, second = (torch.from_numpy(log_probs_after(model, prefix)).exp() for model in (old, new))
    known = [index for index in range(len(old.vocab)) if index != UNK]
    np.testing.assert_allclose(first[known], second[known], rtol=1e-11)
    assert float(second[UNK] + second[len(old.vocab) :].sum()) == pytest.approx(float(first[UNK]), rel=1e-9)
    fish, horse = second[len(old.vocab) :].tolist()
    assert fish / horse == pytest.approx(3 / 2)  # their counts in the new text
    assert float(second.sum()) == pytest.approx(1)


def log_probs_after(model: Any, words: list[str]) -> np.ndarray:
    state = model.start(Batch.from_sentences([np.zeros(0, np.int32)]))
    for word in words:
        state = model.advance(state, torch.tensor([model.vocab.id(word)]))
    return np.asarray(model.log_probs(state)[0].numpy())


def test_unknown_words_of_both_vocabularies_have_a_distribution_without_the_new_words() -> None:
    corpus = Corpus.from_sentences(OLD, min_count=2)
    unknown = SpellingModel.train(corpus, order=2)
    old = RecurrentModel.create(corpus, embedding=4, hidden=4, unknown=unknown)
    new = old.extend_vocabulary(NEW)
    assert new.unknown.log_probs(["dragon"])[0] > old.unknown.log_probs(["dragon"])[0]
    plain = RecurrentModel.create(corpus, embedding=4, hidden=4)
    assert plain.extend_vocabulary(NEW).unknown.config() == plain.unknown.config()
    assert plain.extend_vocabulary(NEW).score(UNKNOWN_BOTH) < plain.score(OLD[0])


def test_an_extended_model_is_trained_saved_and_loaded(tmp_path: Path) -> None:
    old = language_model("recurrent", Corpus.from_sentences(OLD), tied=True)
    new = old.extend_vocabulary(NEW)
    corpus = Corpus.from_sentences(NEW, new.vocab)
    before = new.score(NEW)
    fit(new, corpus, corpus, output=tmp_path / "new", **{**QUICK, "max_updates": 20})
    assert sum(new.score(NEW)) > sum(before)
    assert dragoman.load(tmp_path / "new").score(NEW) == new.score(NEW)
    assert new.training_metadata["trained_from"][0]["train"]["sentences"] == len(OLD)


# -- translators -------------------------------------------------------------------------------------------------------

NEW_GERMAN = ["Der Elch bellt nicht .", "der Elch schläft .", "der hund bellt nicht ."] * 3
NEW_ENGLISH = ["The moose does not bark .", "the moose sleeps .", "the dog does not bark ."] * 3


def translator(units: str, **settings: Any) -> Translator:
    source, target = Tokenizer.train(units, GERMAN), Tokenizer.train(units, ENGLISH)
    pairs = ParallelCorpus(source.encode(GERMAN), target.encode(ENGLISH))
    sizes = {"embedding": 6, "hidden": 6, "dtype": "float64", **settings}
    model = Translator.create(pairs, source, target, **sizes)
    fit(model, pairs, **QUICK)
    return model


@pytest.mark.parametrize("units", ["word", "char", "subword:60", "unigram:60"])
@pytest.mark.parametrize("settings", [{"tied": True}, {"lexicon": True}, {"softmax": "brown", "softmax_classes": 3}])
@pytest.mark.filterwarnings("ignore:.*subwords, all are used")
def test_an_extended_translator_translates_old_sentences_as_before(units: str, settings: dict[str, Any]) -> None:
    old = translator(units, **settings)
    new = old.extend_vocabulary(NEW_GERMAN, NEW_ENGLISH)
    for before, after in ((old.source, new.source), (old.target, new.target)):
        assert after.vocab.tokens[: len(before.vocab)] == before.vocab.tokens
        assert len(after.vocab) > len(before.vocab)
    unchanged = [
        number
        for number, (german, english) in enumerate(zip(GERMAN, ENGLISH, strict=True))
        if old.source.segmenter.segment(german) == new.source.segmenter.segment(german)
        and old.target.segmenter.segment(english) == new.target.segmenter.segment(english)
    ]
    assert len(unchanged) > len(GERMAN) / 2
    german, english = ([lines[number] for number in unchanged] for lines in (GERMAN, ENGLISH))
    before, after = (
        model.pair_log_probs(model.source.encode(german), model.target.encode(english)) for model in (old, new)
    )
    np.testing.assert_allclose(before, after, rtol=1e-9)
    first, second = ([found.text for found in model.translate(german)] for model in (old, new))
    assert first == second
    assert not (new.target.encode(NEW_ENGLISH).ids == UNK).any()


def test_trees_are_extended_by_their_words() -> None:
    source, target = Tokenizer.train("word", TREES, format=TREE), Tokenizer.train("word", ENGLISH)
    extended, new = extend_tokenizer(source, ["(S (NP der elch) (VP bellt .))"] * 2)
    assert extended.vocab.tokens[-1] == "elch"
    assert new.counts.tolist() == [2]
    model = Translator.create(
        ParallelCorpus(source.encode(TREES), target.encode(ENGLISH)), source, target, encoder="tree-lstm", embedding=4
    )
    larger = model.extend_vocabulary(["(S (NP der elch) (VP bellt .))"] * 2, ["the moose barks ."] * 2)
    assert len(larger.source_vocab) == len(model.source_vocab) + 1


# -- subwords ----------------------------------------------------------------------------------------------------------

LOWER = [f"{a} {b} the {c} house ." for a in ("we", "they", "people") for b in ("see", "build") for c in ("old", "new")]


@pytest.fixture(scope="module", params=["subword:60", "unigram:60"])
def subwords(request: pytest.FixtureRequest) -> Tokenizer:
    import warnings

    with warnings.catch_warnings(action="ignore"):
        return Tokenizer.train(request.param, LOWER * 5)


def test_new_characters_get_pieces_and_old_words_are_split_as_before(subwords: Tokenizer) -> None:
    new_text = ["We see ÄÖÜ the house .", "We build 東京 ."] * 40
    extended, new = extend_tokenizer(subwords, new_text)
    assert isinstance(extended.segmenter, SubwordSegmenter)
    assert extended.segmenter.segment_all(LOWER) == subwords.segmenter.segment_all(LOWER)
    assert (subwords.encode(new_text).ids == UNK).any()
    assert not (extended.encode(new_text).ids == UNK).any()
    assert extended.decode(extended.encode(new_text[:1])[0].tolist()) == new_text[0]
    assert extended.segmenter.segment("We")[0] == "▁We"  # frequent: a whole word
    assert set(extended.vocab.tokens) >= {"Ä", "東"}
    assert len(new.parts) == len(new.counts) == len(extended.vocab) - len(subwords.vocab)
    part_of = dict(zip(extended.vocab.tokens[len(subwords.vocab) :], new.parts, strict=True))
    assert part_of["東"] == [UNK]
    assert [subwords.vocab.tokens[index] for index in part_of["▁We"]] == [
        token for token in subwords.segmenter.segment("We") if token != "W"
    ]


def test_a_text_that_is_split_well_adds_nothing(subwords: Tokenizer) -> None:
    extended, new = extend_tokenizer(subwords, LOWER)
    assert extended.vocab.tokens == subwords.vocab.tokens
    assert new.parts == []
    assert extended.segmenter == subwords.segmenter


def test_saved_subwords_with_new_pieces_are_loaded(subwords: Tokenizer, tmp_path: Path) -> None:
    extended, _ = extend_tokenizer(subwords, ["We see ÄÖÜ ."] * 40)
    files = extended.segmenter.files()
    loaded = Tokenizer.from_saved(extended.config(), extended.vocab, files)
    assert loaded.segmenter.segment("We see ÄÖÜ .") == extended.segmenter.segment("We see ÄÖÜ .")
    assert extended.segmenter.spec.split(":")[1] == str(loaded.segmenter.size)  # type: ignore[attr-defined]


def test_a_vocabulary_is_extended_by_lines_with_words() -> None:
    model = RecurrentModel.create(Corpus.from_sentences(OLD), embedding=4, hidden=4)
    for lines in ([], ["", " "], "the fish"):
        with pytest.raises(DataError, match="list of lines"):
            model.extend_vocabulary(lines)
