"""Translators: the laws of P(E | F), the tutorial's equations word by word, and learning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Generator, Tensor

from dragoman import Corpus
from dragoman.core.scorer import AttentionScorer, Scorer, State, fold, select_rows, select_sentences
from dragoman.data.batches import Batch
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.vocabulary import END, START
from dragoman.models.translator import Translator
from dragoman.nn.attention import Memory
from dragoman.search.beam import beam_search, beam_search_corpus
from module_outputs import gradients, log_probs
from naive_translator import naive_bias, naive_scores, naive_softmax, naive_steps
from zoo import SAME, SINGLE, TRANSLATORS, batch_of, pairs_of, translator

every_translator = pytest.mark.parametrize("model", TRANSLATORS, indirect=True)
every_single_translator = pytest.mark.parametrize("model", SINGLE, indirect=True)
attending = [name for name in SINGLE if any(score in name for score in ("dot", "bilinear", "perceptron"))]
every_attending_translator = pytest.mark.parametrize("model", attending, indirect=True)
BELIEVING = ("bidirectional, perceptron, all priors", "tree-LSTM, dot, fertility")  # attention with priors


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Any:
    return translator(request.param)


def state_after(model: Any, steps: int = 3) -> State:
    """The state of all sources after some words."""
    pairs = pairs_of(model)
    state = model.start(Batch.empty(len(pairs), pairs.source))
    for t in range(steps):
        state = model.advance(state, torch.arange(len(pairs)) % 5 + 3 + t)
    return state


def tensors(nest: Any) -> list[Tensor]:
    if isinstance(nest, Tensor):
        return [nest]
    return [tensor for part in nest or () for tensor in tensors(part)]


def assert_same_rows(first: State, other: State) -> None:
    for a, b in zip(tensors(first.rows), tensors(other.rows), strict=True):
        torch.testing.assert_close(a, b, **SAME)


# -- laws of P(E | F) --------------------------------------------------------------------------------------------------


@every_translator
def test_it_is_a_scorer_with_attention(model: Any) -> None:
    assert isinstance(model, Scorer)
    assert isinstance(model, AttentionScorer)


@every_translator
def test_scores_depend_on_the_source(model: Any) -> None:
    """Otherwise the other laws would hold of a language model."""
    log_probs = model.log_probs(state_after(model, 0))
    assert (log_probs[0] - log_probs[3])[END:].abs().max() > 1e-3
    torch.testing.assert_close(log_probs[0], log_probs[5], **SAME)  # the same sentence twice


@every_single_translator
def test_the_fold_is_the_batched_likelihood(model: Translator) -> None:
    """Of a batch of different sources and targets, some of them empty."""
    pairs = pairs_of(model)
    batch = batch_of(pairs)
    folded, _ = fold(model, batch)
    batched = log_probs(model, pairs)
    torch.testing.assert_close(folded[batch.mask], batched, **SAME)
    np.testing.assert_array_equal(model.pair_log_probs(pairs.source, pairs.target), batched.numpy())


@every_translator
def test_padding_does_not_change_a_source(model: Any) -> None:
    pairs = pairs_of(model)
    together, _ = fold(model, batch_of(pairs))
    for number in range(len(pairs)):
        single, _ = fold(model, batch_of(pairs.select(np.array([number]))))
        torch.testing.assert_close(together[number, : single.shape[1]], single[0], **SAME)
        assert not together[number, single.shape[1] :].any()


@every_single_translator
def test_padding_does_not_change_the_training_output(model: Translator) -> None:
    pairs = pairs_of(model)
    together = np.split(log_probs(model, pairs).numpy(), np.cumsum(pairs.sizes)[:-1])
    for number, row in enumerate(together):
        single = log_probs(model, pairs.select(np.array([number])))
        np.testing.assert_allclose(row, single, rtol=1e-11, atol=1e-12)


@every_translator
def test_the_order_of_sentences_does_not_matter(model: Any) -> None:
    pairs, order = pairs_of(model), np.array([4, 2, 0, 5, 3, 1])
    first, _ = fold(model, batch_of(pairs))
    other, _ = fold(model, batch_of(pairs.select(order)))
    torch.testing.assert_close(first[order], other, **SAME)


@every_single_translator
def test_gradients_do_not_depend_on_other_sentences(model: Translator) -> None:
    """The gradient of a batch is the sum of those of its pairs: nothing leaks through padding."""
    pairs = pairs_of(model)
    single = [model(pairs.select(np.array([number]))).log_probs.sum() for number in range(len(pairs))]
    whole, parts = gradients(model, model(pairs).log_probs.sum()), gradients(model, torch.stack(single).sum())
    for name, gradient in whole.items():
        torch.testing.assert_close(gradient, parts[name], rtol=1e-9, atol=1e-11, msg=name)


@pytest.mark.parametrize(
    "settings",
    [
        {"encoder": "bidirectional", "attention": "mlp", "cell": "lstm", "layers": 2},
        {"encoder": "reverse", "attention": "bilinear", "cell": "gru"},
        {"encoder": "forward", "attention": "dot", "cell": "rnn", "bridge": "copy", "readout": 2, "tied": True},
        {"encoder": "convolutional", "attention": "none", "filters": 3, "pooling": "average", "softmax": "frequency"},
        {"encoder": "reverse", "attention": "mlp", "lexicon": True, "lexicon_floor": 0.1, "tied": True},
        {
            "encoder": "forward",
            "attention": "dot",
            "position": 1,
            "markov": 1,
            "fertility": 1,
            "coverage": 2,
            "local": 3,
        },
    ],
    ids=["two LSTMs", "GRU", "Elman", "convolutional", "lexicon", "priors"],
)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_gradients_are_those_of_small_differences(settings: dict[str, Any], smoothing: float) -> None:
    lines = ParallelCorpus(Corpus.from_sentences(["x y", "", "y"]), Corpus.from_sentences(["a b", "b", ""]))
    model = Translator.create(lines, embedding=2, hidden=2, dtype="float64", embedding_reach=1.0, **settings)
    weights = torch.randn(int(lines.sizes.sum()), generator=Generator().manual_seed(1), dtype=torch.float64)

    def loss() -> Tensor:
        return (model(lines, label_smoothing=smoothing).log_probs * weights).sum()

    generator, small = Generator().manual_seed(2), 1e-5
    with torch.no_grad():
        for tensor in model.parameters():  # far from 0, so that all of them have an effect
            tensor.copy_(torch.randn(tensor.shape, generator=generator, dtype=torch.float64))
    actual = gradients(model, loss())
    for name, tensor in model.named_parameters():
        way = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            tensor += small * way
            above = loss()
            tensor -= 2 * small * way
            below = loss()
            tensor += small * way
        expected = pytest.approx(float((actual[name] * way).sum()), rel=1e-5, abs=1e-8)
        assert float((above - below) / (2 * small)) == expected, name


# -- states ------------------------------------------------------------------------------------------------------------


@every_translator
def test_several_rows_of_a_sentence_equal_single_rows(model: Any) -> None:
    """In any order: hypotheses of different sentences may stand mixed."""
    pairs = pairs_of(model)
    owners, words = torch.tensor([3, 0, 3, 1, 0, 0, 5]), torch.tensor([[3, 4, 5, 6, 7, 3, 4], [4, 4, 2, 5, 3, 6, 8]])
    state = select_rows(model.start(Batch.empty(len(pairs), pairs.source)), owners)
    for column in words:
        state = model.advance(state, column)
    together = model.log_probs(state)
    for row, owner in enumerate(owners.tolist()):
        single = model.start(Batch.empty(1, pairs.source.select(np.array([owner]))))
        for column in words:
            single = model.advance(single, column[row : row + 1])
        torch.testing.assert_close(together[row], model.log_probs(single)[0], **SAME)


@every_translator
def test_select_commutes_with_advance(model: Any) -> None:
    state, rows, words = state_after(model), torch.tensor([4, 1, 1, 0, 5, 3, 3]), torch.tensor([3, 4, 5, 6, 7, 8])
    after = model.advance(state, words)
    selected = model.advance(select_rows(state, rows), words[rows])
    assert_same_rows(select_rows(after, rows), selected)
    torch.testing.assert_close(model.log_probs(selected), model.log_probs(after)[rows], **SAME)


@every_translator
@pytest.mark.parametrize("selected", [[3, 0], [5, 1, 2]])
def test_selecting_sentences_commutes_with_advance(model: Any, selected: list[int]) -> None:
    """Also in another order, and without the longest one."""
    rows = torch.tensor([sentence for sentence in selected for _ in range(2)])
    words = torch.arange(len(rows)) % 4 + 3
    state = select_rows(state_after(model), rows)
    forgotten = select_sentences(state, torch.tensor(selected))
    for part in tensors(forgotten.memory):
        assert len(part) == len(selected)
    torch.testing.assert_close(model.log_probs(forgotten), model.log_probs(state), **SAME)
    first, other = model.advance(state, words), model.advance(forgotten, words)
    assert_same_rows(first, other)
    assert_same_rows(select_sentences(first, torch.tensor(selected)), other)
    torch.testing.assert_close(model.log_probs(first), model.log_probs(other), **SAME)


@every_translator
def test_hypotheses_do_not_depend_on_the_batch(model: Any) -> None:
    source, beam = pairs_of(model).source, 3
    together = beam_search(model, Batch.empty(len(source), source), beam, n_best=beam)
    for number, hypotheses in enumerate(together):
        single = source.select(np.array([number]))
        (expected,) = beam_search(model, Batch.empty(1, single), beam, n_best=beam)
        assert [hypothesis.ids for hypothesis in hypotheses] == [hypothesis.ids for hypothesis in expected]
        for hypothesis, right in zip(hypotheses, expected, strict=True):
            assert hypothesis.log_prob == pytest.approx(right.log_prob, abs=1e-10)
            if hypothesis.attention is not None:
                torch.testing.assert_close(hypothesis.attention, right.attention, **SAME)
    few = beam_search_corpus(model, source, active_hypotheses=2 * beam, beam_size=beam, n_best=beam)
    assert [[hypothesis.ids for hypothesis in n_best] for n_best in few] == [
        [hypothesis.ids for hypothesis in n_best] for n_best in together
    ]


# -- attention ---------------------------------------------------------------------------------------------------------


@every_attending_translator
def test_attention_rows_sum_to_one_and_are_zero_on_padding(model: Translator) -> None:
    source = pairs_of(model).source
    sizes = torch.from_numpy(source.memory_sizes)
    for steps in range(3):
        alpha = model.attention(state_after(model, steps))
        assert alpha is not None
        assert alpha.shape == (len(source), int(sizes.max()))
        torch.testing.assert_close(alpha.sum(dim=1), torch.ones(len(source), dtype=torch.float64))
        outside = torch.arange(alpha.shape[1]) >= sizes[:, None]
        assert outside.any()
        assert not alpha[outside].any()
        assert (alpha[~outside] > 0).all()


@pytest.mark.parametrize("model", [name for name in attending if name not in BELIEVING], indirect=True)
def test_reported_attention_is_the_attention_used(model: Translator) -> None:
    """alpha_t computed again from the state and the memory, and p_t from the context that it gives."""
    state, weights = state_after(model), dict(model.state_dict())
    alpha, memory = model.attention(state), Memory(*state.memory)
    h = state.rows[0][-1][0]  # (rows, H) of the last layer
    assert alpha is not None
    for row in range(len(h)):
        scores = naive_scores(model.settings.attention, weights, memory.vectors[row], h[row])
        scores[memory.padding_mask[row] < 0] = -torch.inf
        torch.testing.assert_close(alpha[row], scores.softmax(dim=0), **SAME)
        context = memory.vectors[row].T @ alpha[row]
        if model.settings.hard:
            context = memory.vectors[row, int(alpha[row].argmax())]
        bias = naive_bias(model, row, alpha[row])
        torch.testing.assert_close(model.log_probs(state)[row], naive_softmax(model, h[row], context, bias), **SAME)


@pytest.mark.parametrize("model", [name for name in SINGLE if name not in attending], indirect=True)
def test_without_attention_there_is_none(model: Translator) -> None:
    state = state_after(model)
    assert model.attention(state) is None
    assert state.memory is None
    assert state.sentence is None


def test_attention_of_an_ensemble_is_the_average() -> None:
    model = translator("ensemble of translators")
    pairs, words = pairs_of(model), torch.tensor([3, 4, 5, 6, 7, 8])
    attention, probs = [], []
    for member in (model, *model.members):
        state = member.advance(member.start(Batch.empty(len(pairs), pairs.source)), words)
        attention.append(member.attention(state))
        probs.append(member.log_probs(state).exp())
    assert attention[2] is None, "the second member does not attend"
    torch.testing.assert_close(attention[0], (attention[1] + attention[3]) / 2, **SAME)
    torch.testing.assert_close(probs[0], (probs[1] + probs[2] + probs[3]) / 3, **SAME)


# -- the tutorial, word by word ----------------------------------------------------------------------------------------


@every_single_translator
def test_a_decoder_equals_the_tutorials_equations(model: Translator) -> None:
    pairs = pairs_of(model)
    with torch.no_grad():
        encoded = model.encode(pairs.source)
    folded, _ = fold(model, batch_of(pairs))
    for number, target in enumerate(pairs.target):
        words = [*target.tolist(), END]
        naive = naive_steps(model, encoded, number, target.tolist())
        expected = torch.stack([step[word] for step, word in zip(naive, words, strict=True)])
        torch.testing.assert_close(folded[number, : len(words)], expected, rtol=0, atol=1e-12)


def test_an_encoder_decoder_without_attention() -> None:
    """h^(e)_0 = h^(f)_{|F|} (eq. encdec:encdec): Elman's network over F and `</s>`, and then over E, by hand."""
    model = translator("forward, Elman, copied")
    weights, pairs = {name: part.numpy() for name, part in model.state_dict().items()}, pairs_of(model)
    folded, _ = fold(model, batch_of(pairs))
    names = ("input.weight", "recurrent.weight", "input.bias")
    for number in range(len(pairs)):
        h = np.zeros(8)
        for word in [*pairs.source[number].tolist(), END]:
            W_x, W_h, b = (weights[f"encoder.layers.0.left_to_right.{name}"] for name in names)
            h = np.tanh(W_x @ weights["source_embedding.weight"][word] + W_h @ h + b)
        words = [*pairs.target[number].tolist(), END]
        for t, (before, word) in enumerate(zip([START, *words], words, strict=False)):
            W_x, W_h, b = (weights[f"decoder.layers.0.{name}"] for name in names)
            h = np.tanh(W_x @ weights["embedding.weight"][before] + W_h @ h + b)
            s = weights["output.weight.weight"] @ h + weights["output.bias"]
            s[START] = -math.inf
            assert float(folded[number, t]) == pytest.approx(s[word] - math.log(np.exp(s).sum()), abs=1e-12)
