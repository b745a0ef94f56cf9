"""Translators with a fixed source, as language models. test_scorer_laws has the laws of scorers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from dragoman import Corpus, DataError
from dragoman.core.scorer import fold
from dragoman.data.batches import Batch
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.models.base import SavedModel
from dragoman.models.language_model import LanguageModel, SourceConditionedLM
from dragoman.models.loading import MODEL_CLASSES
from dragoman.models.translator import Translator
from zoo import HELD_OUT, LANGUAGE, TRANSLATORS, read_by, translator

SOURCE = "the dog sees a cat ."

every_translator = pytest.mark.parametrize("name", TRANSLATORS)


def pair(name: str, sentence: str = SOURCE) -> tuple[Any, LanguageModel]:
    model = translator(name)
    return model, model.condition_on(read_by(model, sentence))


@every_translator
def test_scores_are_those_of_the_translator(name: str) -> None:
    model, given = pair(name)
    line = read_by(model, SOURCE)
    scored = [translation.log_prob for translation in model.force_decode([line] * len(HELD_OUT), HELD_OUT)]
    corpus = Corpus.from_sentences(HELD_OUT, LANGUAGE)
    by_class = np.add.reduceat(
        [word.log_prob for words in given.score_corpus_words(corpus) for word in words], ends(corpus)
    )
    np.testing.assert_allclose(by_class, scored, rtol=0, atol=1e-10)


def ends(corpus: Corpus) -> np.ndarray:
    return np.asarray(corpus.token_offsets[:-1])


@every_translator
def test_scores_depend_on_the_source(name: str) -> None:
    (_, first), (_, other) = pair(name), pair(name, "yes !")
    assert first.score("the dog sees a cat .") != other.score("the dog sees a cat .")


@every_translator
def test_the_source_may_be_empty(name: str) -> None:
    _, given = pair(name, "")
    assert sum(word.prob for word in given.next_words("the", k=None)) == pytest.approx(1.0, abs=1e-9)


@every_translator
def test_all_rows_share_the_memory_of_one_source(name: str) -> None:
    """The memory has one entry, however many rows there are."""
    _, given = pair(name)
    state = given.start(Batch.empty(7))
    if state.sentence is not None:
        assert state.sentence.tolist() == [0] * 7
    for part in tensors(state.memory):
        assert len(part) == 1
    log_probs = given.log_probs(state)
    assert log_probs.shape == (7, len(given.vocab))
    torch.testing.assert_close(log_probs, log_probs[:1].expand_as(log_probs), rtol=1e-12, atol=1e-12)


def tensors(nest: Any) -> list[torch.Tensor]:
    if isinstance(nest, torch.Tensor):
        return [nest]
    return [tensor for part in nest or () for tensor in tensors(part)]


def test_sample_frequencies_match_probabilities() -> None:
    """Frequencies of first words against their probabilities: 5 standard deviations."""
    _, given = pair("bidirectional, perceptron")
    drawn = [(line.split() or ["</s>"])[0] for line in given.sample(1500, seed=3)]
    assert given.sample(5, seed=4) == given.sample(5, seed=4)
    for word, prob in given.next_words(k=4):
        reach = 5 * math.sqrt(prob * (1 - prob) / len(drawn))
        assert drawn.count(word) / len(drawn) == pytest.approx(prob, abs=reach)


def test_several_sources_are_used_line_by_line() -> None:
    model = translator("bidirectional, perceptron")
    lines = [*HELD_OUT, SOURCE]
    sources = [read_by(model, line) for line in reversed(lines)]
    separate = [model.condition_on(source).score(line)[0] for source, line in zip(sources, lines, strict=True)]
    assert model.condition_on(sources).score(lines) == pytest.approx(separate, abs=1e-9), (
        "whatever their order by length"
    )
    state = model.condition_on(sources).start(Batch.empty(len(sources)))
    np.testing.assert_allclose(
        model.condition_on(sources).log_probs(state)[1],
        model.condition_on(sources[1]).log_probs(model.condition_on(sources[1]).start(Batch.empty(1)))[0],
    )
    with pytest.raises(DataError, match=f"{len(sources)} sources but 1 translations"):
        model.condition_on(sources).score("the dog")


def test_text_is_segmented_like_the_target() -> None:
    pairs = [("ab cd", "xy z"), ("cd ab", "z xy")] * 3
    source, target = (Tokenizer.train("char", [pair[side] for pair in pairs]) for side in (0, 1))
    corpus = ParallelCorpus(
        source.encode([german for german, _ in pairs]), target.encode([english for _, english in pairs])
    )
    model = Translator.create(corpus, source, target, embedding=4, hidden=4)
    given = model.condition_on("ab cd")
    tokens = given.score_corpus_tokens(Corpus.from_sentences(["xy z", "xy"], given.vocab))
    assert [word.word for word in tokens[0]] == ["x", "y", "▁", "z", "</s>"]
    assert [word.word for word in given.score_words("xy z")[0]] == ["xy", "z", "</s>"]
    assert given.score("xy z")[0] == pytest.approx(model.likelihood(["ab cd"], ["xy z"]).log_likelihood)
    after = dict(given.next_words("x", k=None))
    assert after["y"] == pytest.approx(math.exp(tokens[1][1].log_prob))
    assert all(line.startswith("xy") and set(line) <= set("xyz ") for line in given.sample(5, prefix="xy"))


def test_it_cannot_be_saved() -> None:
    model, given = pair("bidirectional, perceptron")
    assert SourceConditionedLM.kind not in MODEL_CLASSES
    with pytest.raises(DataError, match="cannot be saved"):
        SourceConditionedLM.from_saved(SavedModel(__file__, {}, model.vocab, model.unknown, {}))  # type: ignore[arg-type]
    batch = Batch.from_sentences([[3, 4]])
    assert torch.equal(fold(given, batch)[0], fold(given, batch)[0])
