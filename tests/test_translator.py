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
from dragoman.search import beam_search, beam_search_corpus
from module_outputs import gradients, log_probs
from naive_translator import naive_bias, naive_scores, naive_softmax, naive_steps
from zoo import SAME, SINGLE, TRANSLATORS, batch_of, pairs_of, translator

every_translator = pytest.mark.parametrize("model", TRANSLATORS, indirect=True)
every_single_translator = pytest.mark.parametrize("model", SINGLE, indirect=True)
attending = [name for name in SINGLE if any(score in name for score in ("dot", "bilinear", "perceptron"))]
every_attending_translator = pytest.mark.parametrize("model", attending, indirect=True)
BELIEVING = ("bidirectional, perceptron, all priors", "tree-LSTM, dot, fertility")  # attention goes by more than scores


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Any:
    return translator(request.param)


def reached(model: Any, steps: int = 3) -> State:
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


def assert_same_rows(one: State, other: State) -> None:
    for a, b in zip(tensors(one.rows), tensors(other.rows), strict=True):
        torch.testing.assert_close(a, b, **SAME)


# -- laws of P(E | F) --------------------------------------------------------------------------------------------------


@every_translator
def test_it_is_a_scorer_that_says_where_it_looks(model: Any) -> None:
    assert isinstance(model, Scorer)
    assert isinstance(model, AttentionScorer)


@every_translator
def test_the_source_has_a_say(model: Any) -> None:
    """Otherwise the other laws would hold of a language model."""
    says = model.log_probs(reached(model, 0))
    assert (says[0] - says[3])[END:].abs().max() > 1e-3
    torch.testing.assert_close(says[0], says[5], **SAME)  # the same sentence twice


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
def test_a_padded_source_is_the_sentence_alone(model: Any) -> None:
    pairs = pairs_of(model)
    together, _ = fold(model, batch_of(pairs))
    for number in range(len(pairs)):
        alone, _ = fold(model, batch_of(pairs.select(np.array([number]))))
        torch.testing.assert_close(together[number, : alone.shape[1]], alone[0], **SAME)
        assert not together[number, alone.shape[1] :].any()


@every_single_translator
def test_training_does_not_see_the_padding_either(model: Translator) -> None:
    pairs = pairs_of(model)
    together = np.split(log_probs(model, pairs).numpy(), np.cumsum(pairs.sizes)[:-1])
    for number, found in enumerate(together):
        alone = log_probs(model, pairs.select(np.array([number])))
        np.testing.assert_allclose(found, alone, rtol=1e-11, atol=1e-12)


@every_translator
def test_the_order_of_sentences_does_not_matter(model: Any) -> None:
    pairs, order = pairs_of(model), np.array([4, 2, 0, 5, 3, 1])
    one, _ = fold(model, batch_of(pairs))
    other, _ = fold(model, batch_of(pairs.select(order)))
    torch.testing.assert_close(one[order], other, **SAME)


@every_single_translator
def test_gradients_do_not_know_of_neighbours(model: Translator) -> None:
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
    model = Translator.create(lines, embedding=2, hidden=2, precision="float64", embedding_reach=1.0, **settings)
    weights = torch.randn(int(lines.sizes.sum()), generator=Generator().manual_seed(1), dtype=torch.float64)

    def loss() -> Tensor:
        return (model(lines, label_smoothing=smoothing).log_probs * weights).sum()

    generator, small = Generator().manual_seed(2), 1e-5
    with torch.no_grad():
        for tensor in model.parameters():  # far from 0, so that all of them have an effect
            tensor.copy_(torch.randn(tensor.shape, generator=generator, dtype=torch.float64))
    found = gradients(model, loss())
    for name, tensor in model.named_parameters():
        way = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            tensor += small * way
            above = loss()
            tensor -= 2 * small * way
            below = loss()
            tensor += small * way
        expected = pytest.approx(float((found[name] * way).sum()), rel=1e-5, abs=1e-8)
        assert float((above - below) / (2 * small)) == expected, name


# -- states ------------------------------------------------------------------------------------------------------------


@every_translator
def test_several_rows_of_a_sentence_are_single_ones(model: Any) -> None:
    """In any order: hypotheses of different sentences may stand mixed."""
    pairs = pairs_of(model)
    owners, words = torch.tensor([3, 0, 3, 1, 0, 0, 5]), torch.tensor([[3, 4, 5, 6, 7, 3, 4], [4, 4, 2, 5, 3, 6, 8]])
    state = select_rows(model.start(Batch.empty(len(pairs), pairs.source)), owners)
    for column in words:
        state = model.advance(state, column)
    together = model.log_probs(state)
    for row, owner in enumerate(owners.tolist()):
        alone = model.start(Batch.empty(1, pairs.source.select(np.array([owner]))))
        for column in words:
            alone = model.advance(alone, column[row : row + 1])
        torch.testing.assert_close(together[row], model.log_probs(alone)[0], **SAME)


@every_translator
def test_select_commutes_with_advance(model: Any) -> None:
    state, rows, words = reached(model), torch.tensor([4, 1, 1, 0, 5, 3, 3]), torch.tensor([3, 4, 5, 6, 7, 8])
    after = model.advance(state, words)
    selected = model.advance(select_rows(state, rows), words[rows])
    assert_same_rows(select_rows(after, rows), selected)
    torch.testing.assert_close(model.log_probs(selected), model.log_probs(after)[rows], **SAME)


@every_translator
@pytest.mark.parametrize("kept", [[0, 3], [3, 0], [5, 1, 2], [2]])
def test_forgetting_sentences_commutes_with_advance(model: Any, kept: list[int]) -> None:
    """Also in another order, and when the longest is gone."""
    rows = torch.tensor([sentence for sentence in kept for _ in range(2)])
    words = torch.arange(len(rows)) % 4 + 3
    state = select_rows(reached(model), rows)
    forgotten = select_sentences(state, torch.tensor(kept))
    for part in tensors(forgotten.memory):
        assert len(part) == len(kept)
    torch.testing.assert_close(model.log_probs(forgotten), model.log_probs(state), **SAME)
    one, other = model.advance(state, words), model.advance(forgotten, words)
    assert_same_rows(one, other)
    assert_same_rows(select_sentences(one, torch.tensor(kept)), other)
    torch.testing.assert_close(model.log_probs(one), model.log_probs(other), **SAME)


@every_translator
@pytest.mark.parametrize("beam", [1, 3])
def test_what_is_found_does_not_depend_on_the_company(model: Any, beam: int) -> None:
    source = pairs_of(model).source
    together = beam_search(model, Batch.empty(len(source), source), beam, n_best=beam)
    for number, found in enumerate(together):
        alone = source.select(np.array([number]))
        (expected,) = beam_search(model, Batch.empty(1, alone), beam, n_best=beam)
        assert [one.ids for one in found] == [one.ids for one in expected]
        for one, right in zip(found, expected, strict=True):
            assert one.log_prob == pytest.approx(right.log_prob, abs=1e-10)
            if one.attention is not None:
                torch.testing.assert_close(one.attention, right.attention, **SAME)
    few = beam_search_corpus(model, source, active_hypotheses=2 * beam, beam_size=beam, n_best=beam)
    assert [[one.ids for one in some] for some in few] == [[one.ids for one in some] for some in together]


# -- attention ---------------------------------------------------------------------------------------------------------


@every_attending_translator
def test_attention_rows_sum_to_one_and_are_zero_on_padding(model: Translator) -> None:
    source = pairs_of(model).source
    own = torch.from_numpy(source.memory_sizes)
    for steps in range(3):
        alpha = model.attention(reached(model, steps))
        assert alpha is not None
        assert alpha.shape == (len(source), int(own.max()))
        torch.testing.assert_close(alpha.sum(dim=1), torch.ones(len(source), dtype=torch.float64))
        outside = torch.arange(alpha.shape[1]) >= own[:, None]
        assert outside.any()
        assert not alpha[outside].any()
        assert (alpha[~outside] > 0).all()


@pytest.mark.parametrize("model", [name for name in attending if name not in BELIEVING], indirect=True)
def test_the_attention_told_is_the_one_used(model: Translator) -> None:
    """alpha_t computed anew from the state and the memory, and p_t from the context that it gives."""
    state, found = reached(model), dict(model.state_dict())
    alpha, memory = model.attention(state), Memory(*state.memory)
    h = state.rows[0][-1][0]  # (rows, H) of the last layer
    assert alpha is not None
    for row in range(len(h)):
        scores = naive_scores(model.settings.attention, found, memory.vectors[row], h[row])
        scores[memory.padding_mask[row] < 0] = -torch.inf
        torch.testing.assert_close(alpha[row], scores.softmax(dim=0), **SAME)
        context = memory.vectors[row].T @ alpha[row]
        if model.settings.hard:
            context = memory.vectors[row, int(alpha[row].argmax())]
        bias = naive_bias(model, row, alpha[row])
        torch.testing.assert_close(model.log_probs(state)[row], naive_softmax(model, h[row], context, bias), **SAME)


@pytest.mark.parametrize("model", [name for name in SINGLE if name not in attending], indirect=True)
def test_without_attention_there_is_none(model: Translator) -> None:
    state = reached(model)
    assert model.attention(state) is None
    assert state.memory is None
    assert state.sentence is None


def test_an_ensemble_looks_where_its_members_do_on_average() -> None:
    model = translator("ensemble of translators")
    pairs, words = pairs_of(model), torch.tensor([3, 4, 5, 6, 7, 8])
    looked, said = [], []
    for member in (model, *model.members):
        state = member.advance(member.start(Batch.empty(len(pairs), pairs.source)), words)
        looked.append(member.attention(state))
        said.append(member.log_probs(state).exp())
    assert looked[2] is None, "the second member does not attend"
    torch.testing.assert_close(looked[0], (looked[1] + looked[3]) / 2, **SAME)
    torch.testing.assert_close(said[0], (said[1] + said[2] + said[3]) / 3, **SAME)


# -- the tutorial, word by word ----------------------------------------------------------------------------------------


@every_single_translator
def test_a_decoder_is_the_tutorials(model: Translator) -> None:
    pairs = pairs_of(model)
    with torch.no_grad():
        encoded = model.encode(pairs.source)
    folded, _ = fold(model, batch_of(pairs))
    for number, target in enumerate(pairs.target):
        words = [*target.tolist(), END]
        said = naive_steps(model, encoded, number, target.tolist())
        expected = torch.stack([step[word] for step, word in zip(said, words, strict=True)])
        torch.testing.assert_close(folded[number, : len(words)], expected, rtol=0, atol=1e-12)


def test_a_plain_encoder_decoder_is_one_network_after_the_other() -> None:
    """h^(e)_0 = h^(f)_{|F|} (eq. encdec:encdec): Elman's network over F and `</s>`, and then over E, by hand."""
    model = translator("forward, Elman, copied")
    found, pairs = {name: part.numpy() for name, part in model.state_dict().items()}, pairs_of(model)
    folded, _ = fold(model, batch_of(pairs))
    names = ("input.weight", "recurrent.weight", "input.bias")
    for number in range(len(pairs)):
        h = np.zeros(8)
        for word in [*pairs.source[number].tolist(), END]:
            W_x, W_h, b = (found[f"encoder.layers.0.left_to_right.{name}"] for name in names)
            h = np.tanh(W_x @ found["source_embedding.weight"][word] + W_h @ h + b)
        words = [*pairs.target[number].tolist(), END]
        for t, (before, word) in enumerate(zip([START, *words], words, strict=False)):
            W_x, W_h, b = (found[f"decoder.layers.0.{name}"] for name in names)
            h = np.tanh(W_x @ found["embedding.weight"][before] + W_h @ h + b)
            s = found["output.weight.weight"] @ h + found["output.bias"]
            s[START] = -math.inf
            assert float(folded[number, t]) == pytest.approx(s[word] - math.log(np.exp(s).sum()), abs=1e-12)
