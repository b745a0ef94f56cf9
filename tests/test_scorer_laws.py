"""The laws of a scorer, held by every model, mixture and ensemble of the zoo."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dragoman
from dragoman import Corpus
from dragoman.core.scorer import BatchedScorer, Scorer, State, fold, select_rows
from dragoman.data.batches import Batch
from dragoman.data.vocabulary import END, START
from dragoman.evaluation.likelihood import folded_log_probs, token_log_probs
from dragoman.models.language_model import LanguageModel
from zoo import GIVEN, HELD_OUT, MODELS, TRAINING, model

LENGTH = 3  # words of the sequences that are all tried out
CLOSE = {"rtol": 0, "atol": 2e-6}  # tables hold 32-bit numbers, and back-offs multiply
SAME = {"rtol": 0, "atol": 1e-12}

every_model = pytest.mark.parametrize("scorer", [*MODELS, *GIVEN], indirect=True)
every_model_on_disk = pytest.mark.parametrize("scorer", MODELS, indirect=True)  # a source given is given in memory


@pytest.fixture
def scorer(request: pytest.FixtureRequest) -> LanguageModel:
    return model(request.param)


@pytest.fixture
def training(scorer: LanguageModel) -> Corpus:
    """Some of the zoo's training text in the ids of the model."""
    return Corpus.from_sentences(TRAINING[::3], scorer.vocab)


@pytest.fixture
def held_out(scorer: LanguageModel) -> Corpus:
    return Corpus.from_sentences(HELD_OUT, scorer.vocab)


def walk(scorer: Scorer, corpus: Corpus) -> list[State]:
    """The states that sentences of a text lead through, and those at the start of each."""
    carry, states = None, []
    for sentence in corpus:
        state = scorer.start(Batch.from_sentences([sentence]), carry)
        states.append(state)
        for word in [*sentence.tolist(), END]:
            if scorer.log_probs(state)[0, word] == -math.inf:
                break  # what has probability 0 leads nowhere
            state = scorer.advance(state, torch.tensor([word]))
            states.append(state)
        carry = scorer.finish(state)
    return states


def tensors(nest: Any) -> list[torch.Tensor]:
    if isinstance(nest, torch.Tensor):
        return [nest]
    return [tensor for part in nest or () for tensor in tensors(part)]


def assert_same_state(first: State, second: State) -> None:
    for a, b in zip(
        tensors(first.rows) + tensors(first.memory), tensors(second.rows) + tensors(second.memory), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)  # a product of more rows may round differently


@every_model
def test_every_model_is_a_scorer(scorer: LanguageModel) -> None:
    assert isinstance(scorer, Scorer)
    assert isinstance(scorer, BatchedScorer)


@every_model
def test_probabilities_sum_to_one_in_every_state(scorer: LanguageModel, training: Corpus, held_out: Corpus) -> None:
    for state in walk(scorer, training.select(np.arange(4))) + walk(scorer, held_out):
        log_probs = scorer.log_probs(state)
        assert log_probs.shape == (1, len(scorer.vocab))
        np.testing.assert_allclose(log_probs.exp().sum(dim=1), 1.0, **CLOSE)
        assert log_probs[0, START] == -math.inf


@every_model
def test_all_sequences_and_unfinished_prefixes_sum_to_one(scorer: LanguageModel) -> None:
    state = scorer.start(Batch.empty(1))
    prefix = torch.zeros(1, dtype=torch.float64)  # log P of each prefix
    finished = 0.0
    for _ in range(LENGTH):
        joint = prefix[:, None] + scorer.log_probs(state).double()  # (prefixes, |V|)
        finished += float(joint[:, END].exp().sum())
        joint[:, END] = -math.inf
        rows, words = torch.nonzero(joint > -math.inf, as_tuple=True)
        prefix = joint[rows, words]
        if not len(rows):
            break
        state = scorer.advance(select_rows(state, rows), words)
    assert finished + float(prefix.exp().sum()) == pytest.approx(1.0, abs=LENGTH * 2e-6)


@every_model
def test_fold_equals_batched_likelihood(scorer: LanguageModel, training: Corpus, held_out: Corpus) -> None:
    for text in (training, held_out):
        np.testing.assert_allclose(folded_log_probs(scorer, text), token_log_probs(scorer, text), rtol=0, atol=1e-9)


@every_model
def test_padded_row_equals_the_sentence_alone(scorer: LanguageModel, held_out: Corpus) -> None:
    together, _ = fold(scorer, Batch.from_sentences(held_out))
    for row, sentence in zip(together, held_out, strict=True):
        single, _ = fold(scorer, Batch.from_sentences([sentence]))
        np.testing.assert_allclose(row[: len(sentence) + 1], single[0], **SAME)
        assert not row[len(sentence) + 1 :].any()


@every_model
def test_each_row_has_its_own_history(scorer: LanguageModel, training: Corpus) -> None:
    """Two streams of sentences of equal length score the same together as separately."""
    by_length: dict[int, list[np.ndarray]] = {}
    for sentence in training:
        by_length.setdefault(len(sentence), []).append(sentence)
    pairs = [tuple(same[:2]) for same in by_length.values() if len(same) >= 2]
    assert len(pairs) >= 2
    both = streams(scorer, [list(pair) for pair in pairs])
    for row in range(2):
        separate = streams(scorer, [[pair[row]] for pair in pairs])
        np.testing.assert_allclose(both[row], separate[0], **SAME)


def streams(scorer: Scorer, batches: list[list[np.ndarray]]) -> np.ndarray:
    carry, parts = None, []
    for sentences in batches:
        log_probs, state = fold(scorer, Batch.from_sentences(sentences), carry)
        carry = scorer.finish(state)
        parts.append(log_probs.numpy())
    return np.concatenate(parts, axis=1)


@every_model
def test_models_without_a_carry_score_sentences_independently(scorer: LanguageModel, held_out: Corpus) -> None:
    """And who carries hands something on."""
    together = scorer.sentence_log_probs(held_out)
    separate = [scorer.sentence_log_probs(held_out.select(np.array([number])))[0] for number in range(len(held_out))]
    if scorer.carries:
        assert scorer.finish(scorer.start(Batch.empty(1))) is not None
    else:
        np.testing.assert_allclose(together, separate, **SAME)


@every_model
def test_advance_does_not_change_its_argument(scorer: LanguageModel, held_out: Corpus) -> None:
    for state in walk(scorer, held_out)[::3]:
        before, log_probs = copy.deepcopy(state), scorer.log_probs(state).clone()
        scorer.advance(state, torch.tensor([END + 1]))
        scorer.finish(state)
        assert_same_state(state, before)
        assert torch.equal(scorer.log_probs(state), log_probs)
        assert_same_state(state, before)


@every_model
def test_select_commutes_with_advance(scorer: LanguageModel, held_out: Corpus) -> None:
    state = scorer.start(Batch.empty(4))
    rows = torch.tensor([2, 0, 0, 3, 1])
    for words in (torch.tensor([3, 4, 5, 6]), torch.tensor([4, 2, 7, 4]), torch.tensor([5, 5, 2, 3])):
        following = scorer.advance(state, words)
        assert_same_state(select_rows(following, rows), scorer.advance(select_rows(state, rows), words[rows]))
        selected, all_rows = scorer.log_probs(select_rows(following, rows)), scorer.log_probs(following)
        np.testing.assert_allclose(selected, all_rows[rows], **SAME)  # matrices of other sizes add up in another order
        state = following


@every_model
def test_score_is_the_sum_of_its_words(scorer: LanguageModel, held_out: Corpus) -> None:
    words = scorer.score_words(HELD_OUT)
    assert [word.word for word in words[3]] == ["the", "unicorn", "sees", "a", "<unk>", "unicorn", ".", "</s>"]
    for sentence, score in zip(words, scorer.score(HELD_OUT), strict=True):
        assert sum(word.log_prob + word.log_prob_unknown for word in sentence) == pytest.approx(score, abs=1e-9)
    flat = [token.log_prob for sentence in scorer.score_corpus_tokens(held_out) for token in sentence]
    assert flat == token_log_probs(scorer, held_out).tolist()  # the same numbers every time


@every_model
def test_unknown_words_include_the_probability_of_their_spelling(scorer: LanguageModel) -> None:
    corpus = Corpus.from_sentences(["the unicorn sees a <unk> ."], scorer.vocab)
    (tokens,) = scorer.score_corpus_tokens(corpus)
    identity = dict(zip(corpus.spellings, scorer.unknown.log_probs(corpus.spellings), strict=True))
    assert [token.log_prob_unknown for token in tokens] == [identity.get(token.word, 0) for token in tokens]
    if scorer.vocab.segmenter.kind == "word":
        assert corpus.spellings == ("unicorn",)


@every_model
def test_next_words_are_the_distribution(scorer: LanguageModel) -> None:
    following = scorer.next_tokens("the dog", k=None)
    assert sum(word.prob for word in following) == pytest.approx(1.0, abs=2e-6)
    assert [word.prob for word in following] == sorted((word.prob for word in following), reverse=True)
    *before, last = scorer.vocab.segmenter.segment("the dog")
    tokens = scorer.score_corpus_tokens(Corpus.from_sentences(["the dog"], scorer.vocab))[0]
    dog = dict(scorer.next_tokens(before, k=None))[last]
    assert math.exp(tokens[-2].log_prob) == pytest.approx(dog, rel=1e-6)


@every_model_on_disk
def test_saving_and_loading_changes_no_score(scorer: LanguageModel, training: Corpus, tmp_path: Path) -> None:
    scorer.save(tmp_path / "model")
    files = sorted((tmp_path / "model").rglob("*"))
    for path in [*files, tmp_path / "model"]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    loaded = dragoman.load(tmp_path / "model")
    assert type(loaded) is type(scorer)
    assert loaded.vocab == scorer.vocab
    assert np.array_equal(token_log_probs(loaded, training), token_log_probs(scorer, training))
    assert loaded.score(HELD_OUT) == scorer.score(HELD_OUT)
    assert loaded.next_words("the dog") == scorer.next_words("the dog")
    assert sorted((tmp_path / "model").rglob("*")) == files
    for path in [tmp_path / "model", *files]:
        path.chmod(0o755)
