"""Combinations of scorers: they are scorers, and follow their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman import Corpus, DataError, DragomanError, Mixture, NgramModel
from dragoman.combine.ensemble import Combination
from dragoman.core.scorer import Scorer, State, fold, log_prob, select_rows, select_sentences
from dragoman.data.batches import Batch
from dragoman.data.vocabulary import END, START, UNK, Vocab
from dragoman.search.beam import beam_search, beam_search_corpus, greedy_search
from dragoman.search.scorers import GraphScorer
from toy_translator import SOURCES, ToyTranslator, source_of
from zoo import model

WORDS = "a b c"
ONE, TWO, THREE = (ToyTranslator(WORDS, seed=seed) for seed in (1, 2, 3))
TEXT = Corpus.from_sentences(["a b", "c", "b b c a", "a"], ONE.vocab)
NGRAM = NgramModel.train(TEXT, order=2, smoothing="witten-bell")
BOTH = Mixture([NGRAM, NgramModel.train(TEXT, order=1, smoothing="witten-bell")], [0.3, 0.7])


class WithoutAttention(ToyTranslator):
    """A translator whose attention is hidden."""

    def attention(self, state: State) -> Any:
        return None

    def log_probs(self, state: State) -> Tensor:
        return ToyTranslator.log_probs(_WithAttention(self), state)  # type: ignore[arg-type]


class _WithAttention:
    def __init__(self, quiet: WithoutAttention):
        self.__dict__ = quiet.__dict__

    def attention(self, state: State) -> Tensor:
        return ToyTranslator.attention(self, state)  # type: ignore[arg-type]


QUIET = WithoutAttention(WORDS, seed=4)

COMBINATIONS: dict[str, Combination] = {
    "ensemble": Combination([ONE, TWO, THREE]),
    "linear": Combination([ONE, TWO], [0.9, 0.1]),
    "linear with a language model": Combination([ONE, NGRAM], [0.7, 0.3]),
    "log-linear": Combination([ONE, TWO], [0.5, 1.5], "log-linear"),
    "log-linear with a language model": Combination([NGRAM, ONE], [0.4, 1.0], "log-linear"),
    "with a member that has no say": Combination([ONE, TWO, NGRAM], [0.5, 0, 0.5]),
    "with a mixture": Combination([BOTH, ONE, QUIET]),
    "of combinations": Combination(
        [Combination([ONE, TWO]), Combination([THREE, NGRAM], [1.0, 0.2], "log-linear")], [0.6, 0.4]
    ),
}
every_combination = pytest.mark.parametrize("scorer", COMBINATIONS.values(), ids=COMBINATIONS)


def batch_of(sentences: list[str] = SOURCES) -> Batch:
    return Batch.empty(len(sentences), source_of(sentences))


def states(scorer: Scorer) -> list[State]:
    """The states after random words."""
    state = scorer.start(batch_of())
    visited, rng = [state], np.random.default_rng(1)
    for _ in range(4):
        state = scorer.advance(state, torch.from_numpy(rng.integers(UNK + 1, len(scorer.vocab), len(SOURCES))))
        visited.append(state)
    return visited


@every_combination
def test_distributions_are_normalised(scorer: Combination) -> None:
    assert isinstance(scorer, Scorer)
    for state in states(scorer):
        log_probs = scorer.log_probs(state)
        assert log_probs.shape == (len(SOURCES), len(scorer.vocab))
        np.testing.assert_allclose(log_probs.exp().sum(dim=1), 1.0, atol=1e-6)
        assert log_probs[:, START].isneginf().all()


@every_combination
def test_rows_and_sentences_can_be_selected(scorer: Combination) -> None:
    for state in states(scorer):
        rows = torch.tensor([5, 2, 2, 6])
        selected = select_rows(state, rows)
        fewer = select_sentences(selected, torch.tensor([2, 5, 6]))
        words = torch.tensor([3, 4, 5, 3])
        for part in (selected, fewer):
            torch.testing.assert_close(scorer.log_probs(part), scorer.log_probs(state)[rows], rtol=0, atol=1e-12)
            after = scorer.log_probs(scorer.advance(part, words))
            torch.testing.assert_close(after, scorer.log_probs(scorer.advance(selected, words)), rtol=0, atol=1e-12)


@every_combination
def test_rows_are_independent(scorer: Combination) -> None:
    sentences = [(3, 4), (), (5,), (4, 4, 4), (3,), (5, 3), (4,)]
    together = log_prob(scorer, Batch.from_sentences(sentences, source_of()))
    for row, words, source in zip(together, sentences, SOURCES, strict=True):
        single = log_prob(scorer, Batch.from_sentences([words], source_of([source])))
        assert float(row) == pytest.approx(float(single), abs=1e-9)


@every_combination
def test_beam_search_over_combinations(scorer: Combination) -> None:
    whole = beam_search(scorer, batch_of(), 3, 2)
    for apart, together in zip(
        beam_search_corpus(scorer, source_of(), active_hypotheses=3, beam_size=3, n_best=2), whole, strict=True
    ):
        assert [hypothesis.ids for hypothesis in apart] == [hypothesis.ids for hypothesis in together]
    for best, source in zip(whole, SOURCES, strict=True):
        for hypothesis in best:
            steps = fold(scorer, Batch.from_sentences([hypothesis.ids], source_of([source])))[0]
            assert hypothesis.log_prob == pytest.approx(float(steps.sum()), abs=1e-6)


@pytest.mark.parametrize("mode", ["linear", "log-linear"])
@pytest.mark.parametrize("member", [ONE, NGRAM], ids=["translator", "language model"])
def test_a_combination_of_equal_members_equals_the_member(member: Scorer, mode: Any) -> None:
    weights = [0.2, 0.5, 0.3]
    for together, single in zip(states(Combination([member] * 3, weights, mode)), states(member), strict=True):
        expected = member.log_probs(single)
        actual = Combination([member] * 3, weights, mode).log_probs(together)
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6, check_dtype=False)


@pytest.mark.parametrize("mode", ["linear", "log-linear"])
def test_members_with_weight_zero_are_ignored(mode: Any) -> None:
    """Also if another member gives its words probability zero."""
    strict = GraphScorer(WORDS, {"": {"a": 1.0}})
    for weights, expected in (([1, 0, 0], ONE), ([0, 0, 1], TWO)):
        scorer = Combination([ONE, strict, TWO], weights, mode)
        for together, single in zip(states(scorer), states(expected), strict=True):
            torch.testing.assert_close(scorer.log_probs(together), expected.log_probs(single), rtol=0, atol=1e-12)


def test_linear_is_the_average_and_log_linear_the_product() -> None:
    weights = [0.3, 0.7]
    linear, product = (Combination([ONE, TWO], weights, mode) for mode in ("linear", "log-linear"))
    for l_state, p_state, first, second in zip(*map(states, (linear, product, ONE, TWO)), strict=True):
        a, b = ONE.log_probs(first).exp(), TWO.log_probs(second).exp()
        torch.testing.assert_close(linear.log_probs(l_state).exp(), 0.3 * a + 0.7 * b, rtol=0, atol=1e-12)
        joint = a**0.3 * b**0.7
        expected = joint / joint.sum(dim=1, keepdim=True)
        torch.testing.assert_close(product.log_probs(p_state).exp(), expected, rtol=0, atol=1e-12)


def test_a_linear_combination_of_language_models_equals_their_mixture() -> None:
    names = ["modified-kneser-ney, order 3", "recurrent, LSTM, carries", "cache"]
    members, weights = [model(name) for name in names], [0.5, 0.3, 0.2]
    scorer, mixture = Combination(members, weights), Mixture(members, weights)
    carry, other = None, None
    for text in (["the dog sees a cat ."], ["a cat hears the old dog !"]):
        batch = Batch.from_sentences(Corpus.from_sentences(text, mixture.vocab))
        (actual, state), (expected, after) = fold(scorer, batch, carry), fold(mixture, batch, other)
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6, check_dtype=False)
        carry, other = scorer.finish(state), mixture.finish(after)
    assert scorer.carries and not COMBINATIONS["ensemble"].carries
    assert greedy_search(scorer, Batch.empty(1))[0][0].ids == greedy_search(mixture, Batch.empty(1))[0][0].ids


# -- attention ---------------------------------------------------------------------------------------------------------


def test_attention_is_averaged_over_members_with_attention() -> None:
    cases = [
        ([ONE, TWO], [0.25, 0.75], "linear", {ONE: 0.25, TWO: 0.75}),
        ([ONE, NGRAM, TWO], [0.2, 0.2, 0.6], "linear", {ONE: 0.25, TWO: 0.75}),
        ([QUIET, ONE, TWO], [2.0, 1.0, 3.0], "log-linear", {ONE: 0.25, TWO: 0.75}),
        ([ONE, TWO], [0.0, 1.0], "linear", {TWO: 1.0}),
    ]
    for members, weights, mode, shares in cases:
        scorer = Combination(members, weights, mode)
        for number, state in enumerate(states(scorer)):
            expected = sum(share * member.attention(states(member)[number]) for member, share in shares.items())
            actual = scorer.attention(state)
            assert actual is not None
            torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)
    best = greedy_search(COMBINATIONS["linear with a language model"], batch_of())[0][0]
    assert best.attention is not None
    np.testing.assert_allclose(best.attention.sum(dim=1), 1.0, atol=1e-9)


@pytest.mark.parametrize(
    ("members", "weights"), [([NGRAM, BOTH], [0.5, 0.5]), ([QUIET, NGRAM], [0.5, 0.5]), ([ONE, NGRAM], [0.0, 1.0])]
)
def test_without_attention_there_is_none(members: list[Scorer], weights: list[float]) -> None:
    scorer = Combination(members, weights)
    assert scorer.attention(scorer.start(batch_of())) is None
    assert greedy_search(scorer, batch_of())[0][0].attention is None


def test_attention_of_different_widths_is_not_averaged() -> None:
    class Wider(ToyTranslator):
        def attention(self, state: State) -> Tensor:
            return torch.nn.functional.pad(super().attention(state), (0, 1))

        def log_probs(self, state: State) -> Tensor:
            return ONE.log_probs(state)

    scorer = Combination([ONE, Wider(WORDS)])
    assert scorer.attention(scorer.start(batch_of())) is None


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "options", "message"),
    [
        ([], {}, "at least one model"),
        ([ONE, TWO], {"weights": [1.0]}, "one for each of 2 models"),
        ([ONE, TWO], {"weights": [1.5, -0.5]}, "none below 0"),
        ([ONE, TWO], {"weights": [math.nan, 1.0]}, "none below 0"),
        ([ONE, TWO], {"weights": [0.5, 0.6]}, "add up to 1"),
        ([ONE, TWO], {"weights": [0.0, 0.0], "mode": "log-linear"}, "at least one must be above 0"),
        ([ONE, TWO], {"mode": "loglinear"}, "it is linear or log-linear"),
        ([ONE, ToyTranslator("a b d")], {}, "different target vocabularies .entry 5 is 'c' in one and 'd'"),
        ([ONE, ToyTranslator("a b")], {"names": ["big", "small"]}, "big and small have different target .*6 entries"),
    ],
)
def test_invalid_combinations_are_refused(members: list[Scorer], options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Combination(members, **options)


def test_different_source_vocabularies_are_refused() -> None:
    """A language model in between has none."""
    other = ToyTranslator(WORDS)
    other.source_vocab = Vocab(["<s>", "</s>", "<unk>", "x", "z", "y"])
    with pytest.raises(DataError, match=r"model 2 and model 3 have different source vocabularies \(entry 4"):
        Combination([NGRAM, ONE, other])


def test_a_product_without_possible_words_is_refused() -> None:
    first, second = (GraphScorer("a b", {"": {word: 1.0}}) for word in "ab")
    scorer = Combination([first, second], mode="log-linear")
    with pytest.raises(DragomanError, match="no word has a probability above 0"):
        scorer.log_probs(scorer.start(Batch.empty(1)))
    assert Combination([first, second]).log_probs(scorer.start(Batch.empty(1)))[0, END].isneginf()
