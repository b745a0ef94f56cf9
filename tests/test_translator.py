"""Translators: the laws of P(E | F), the tutorial's equations word by word, and learning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Generator, Tensor

from dragoman import Corpus, DataError, fit
from dragoman.layers.attention import SCORES, Memory
from dragoman.layers.cells import CELLS
from dragoman.models.translator import Translator
from dragoman.scorer import AttendingScorer, Scorer, State, fold, keep_sentences, select
from dragoman.search import beam_search, search_all
from dragoman.text.batches import Batch
from dragoman.text.corpus import ParallelCorpus
from dragoman.text.sides import Side
from dragoman.text.vocab import END, START
from zoo import HELD_OUT, LANGUAGE, SINGLE, TRANSLATORS, read_by, translator

SOURCES = ["the dog sees a cat .", "", "yes", "the old unicorn hears the bird !", "a cat", "the dog sees a cat ."]
TARGETS = ["a cat hears the old dog !", "yes", "", "the <unk> sees a bird", "old", "the dog sees the unicorn ."]
SAME = {"rtol": 1e-11, "atol": 1e-12}

every_translator = pytest.mark.parametrize("model", TRANSLATORS, indirect=True)
every_single_translator = pytest.mark.parametrize("model", SINGLE, indirect=True)
attending = [name for name in SINGLE if any(score in name for score in ("dot", "bilinear", "perceptron"))]
every_attending_translator = pytest.mark.parametrize("model", attending, indirect=True)
BELIEVING = ("bidirectional, perceptron, all priors", "tree-LSTM, dot, fertility")  # attention goes by more than scores


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Any:
    return translator(request.param)


def pairs_of(model: Any) -> ParallelCorpus:
    return ParallelCorpus(
        model.source.read([read_by(model, line) for line in SOURCES]), Corpus.from_sentences(TARGETS, LANGUAGE)
    )


def batch_of(pairs: ParallelCorpus) -> Batch:
    return Batch.of(pairs.target, pairs.source)


def reached(model: Any, steps: int = 3) -> State:
    """The state of all sources after some words."""
    pairs = pairs_of(model)
    state = model.start(Batch.to_generate(len(pairs), pairs.source))
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
    assert isinstance(model, AttendingScorer)


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
    batched = model.batch_log_probs(pairs)
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
    together = np.split(model.batch_log_probs(pairs).numpy(), np.cumsum(pairs.sizes)[:-1])
    for number, found in enumerate(together):
        alone = model.batch_log_probs(pairs.select(np.array([number])))
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
    whole = gradients(model, [pairs])
    parts = gradients(model, [pairs.select(np.array([number])) for number in range(len(pairs))])
    for name, gradient in whole.items():
        torch.testing.assert_close(gradient, parts[name], rtol=1e-9, atol=1e-11, msg=name)


def gradients(model: Translator, parts: list[ParallelCorpus]) -> dict[str, Tensor]:
    """Of log P of some pairs; a parameter that has none has no say."""
    named = dict(model.parameters())
    for tensor in named.values():
        tensor.requires_grad_(True)
    try:
        loss = torch.stack([model.batch_log_probs(part).sum() for part in parts]).sum()
        unused = model.settings.hard  # which word is looked at has no gradient, where none is drawn
        found = torch.autograd.grad(loss, list(named.values()), allow_unused=unused, materialize_grads=unused)
        return dict(zip(named, found, strict=True))
    finally:
        for tensor in named.values():
            tensor.requires_grad_(False)


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
    named = dict(model.parameters())

    def loss() -> Tensor:
        return (model.batch_log_probs(lines, None, smoothing) * weights).sum()

    chance, small = Generator().manual_seed(2), 1e-5
    for tensor in named.values():  # far from 0, so that all of them have a say
        tensor.copy_(torch.randn(tensor.shape, generator=chance, dtype=torch.float64)).requires_grad_(True)
    found = dict(zip(named, torch.autograd.grad(loss(), list(named.values())), strict=True))
    for name, tensor in named.items():
        way = torch.randn(tensor.shape, generator=chance, dtype=torch.float64)
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
    state = select(model.start(Batch.to_generate(len(pairs), pairs.source)), owners)
    for column in words:
        state = model.advance(state, column)
    together = model.log_probs(state)
    for row, owner in enumerate(owners.tolist()):
        alone = model.start(Batch.to_generate(1, pairs.source.select(np.array([owner]))))
        for column in words:
            alone = model.advance(alone, column[row : row + 1])
        torch.testing.assert_close(together[row], model.log_probs(alone)[0], **SAME)


@every_translator
def test_select_commutes_with_advance(model: Any) -> None:
    state, rows, words = reached(model), torch.tensor([4, 1, 1, 0, 5, 3, 3]), torch.tensor([3, 4, 5, 6, 7, 8])
    after = model.advance(state, words)
    selected = model.advance(select(state, rows), words[rows])
    assert_same_rows(select(after, rows), selected)
    torch.testing.assert_close(model.log_probs(selected), model.log_probs(after)[rows], **SAME)


@every_translator
@pytest.mark.parametrize("kept", [[0, 3], [3, 0], [5, 1, 2], [2]])
def test_forgetting_sentences_commutes_with_advance(model: Any, kept: list[int]) -> None:
    """Also in another order, and when the longest is gone."""
    rows = torch.tensor([sentence for sentence in kept for _ in range(2)])
    words = torch.arange(len(rows)) % 4 + 3
    state = select(reached(model), rows)
    forgotten = keep_sentences(state, torch.tensor(kept))
    for part in tensors(forgotten.memory):
        assert len(part) == len(kept)
    torch.testing.assert_close(model.log_probs(forgotten), model.log_probs(state), **SAME)
    one, other = model.advance(state, words), model.advance(forgotten, words)
    assert_same_rows(one, other)
    assert_same_rows(keep_sentences(one, torch.tensor(kept)), other)
    torch.testing.assert_close(model.log_probs(one), model.log_probs(other), **SAME)


@every_translator
@pytest.mark.parametrize("beam", [1, 3])
def test_what_is_found_does_not_depend_on_the_company(model: Any, beam: int) -> None:
    source = pairs_of(model).source
    together = beam_search(model, Batch.to_generate(len(source), source), beam, n_best=beam)
    for number, found in enumerate(together):
        alone = source.select(np.array([number]))
        (expected,) = beam_search(model, Batch.to_generate(1, alone), beam, n_best=beam)
        assert [one.words for one in found] == [one.words for one in expected]
        for one, right in zip(found, expected, strict=True):
            assert one.log_prob == pytest.approx(right.log_prob, abs=1e-10)
            if one.attention is not None:
                torch.testing.assert_close(one.attention, right.attention, **SAME)
    few = search_all(model, source, rows=2 * beam, beam_size=beam, n_best=beam)
    assert [[one.words for one in some] for some in few] == [[one.words for one in some] for some in together]


# -- attention ---------------------------------------------------------------------------------------------------------


@every_attending_translator
def test_attention_rows_sum_to_one_and_are_zero_on_padding(model: Translator) -> None:
    source = pairs_of(model).source
    own = torch.from_numpy(getattr(source, "attended", source.sizes))
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
    state, found = reached(model), dict(model.parameters())
    alpha, memory = model.attention(state), Memory(*state.memory)
    h = state.rows[0][-1][0]  # (rows, H) of the last layer
    assert alpha is not None
    for row in range(len(h)):
        scores = naive_scores(model.settings.attention, found, memory.vectors[row], h[row])
        scores[memory.barred[row] < 0] = -torch.inf
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
        state = member.advance(member.start(Batch.to_generate(len(pairs), pairs.source)), words)
        looked.append(member.attention(state))
        said.append(member.log_probs(state).exp())
    assert looked[2] is None, "the second member does not attend"
    torch.testing.assert_close(looked[0], (looked[1] + looked[3]) / 2, **SAME)
    torch.testing.assert_close(said[0], (said[1] + said[2] + said[3]) / 3, **SAME)


# -- the tutorial, word by word ----------------------------------------------------------------------------------------


def naive_scores(kind: str, found: dict[str, Tensor], H: Tensor, h: Tensor) -> Tensor:
    """attn_score(h^(f)_j, h^(e)_t), one j at a time.  # (longest,)"""
    named = {name.removeprefix("attention."): part for name, part in found.items()}
    match kind:
        case "dot":
            scores = [h_j @ h for h_j in H]
        case "bilinear":
            scores = [h_j @ named["W_a"] @ h for h_j in H]
        case _:
            W_a1 = torch.cat([named["W_e"], named["W_f"]], dim=1)
            scores = [named["w_a2"] @ torch.tanh(W_a1 @ torch.cat([h, h_j])) for h_j in H]
    return torch.stack(scores)


def naive_priors(model: Translator, H: Tensor, h: Tensor, alphas: list[Tensor]) -> Tensor:
    """What priors add to the scores, one place at a time, given all attention before.  # (longest,)"""
    found, settings, F, t = dict(model.parameters()), model.settings, len(H), len(alphas)
    bias = torch.zeros(F, dtype=H.dtype)
    for j in range(F):
        coverage = sum((alpha[j] for alpha in alphas), torch.zeros((), dtype=H.dtype))
        if settings.position:
            E = F * found["prior.position.log_ratio"].exp()
            off = ((j + 0.5) / F - (t + 0.5) / E).abs()
            bias[j] -= found["prior.position.log_strength"].exp() * off
        if settings.markov:
            jumps = found["prior.markov.jumps"].softmax(dim=0)
            last = {-1: 1.0} if t == 0 else dict(enumerate(alphas[-1].tolist()))
            arrived = sum(p * float(jumps[j - k + 3]) for k, p in last.items() if abs(j - k) <= 3)
            bias[j] += found["prior.markov.log_strength"].exp() * math.log(arrived + 1e-3)
        if settings.fertility:
            phi = 3 * torch.sigmoid(found["prior.fertility.u"] @ H[j] + found["prior.fertility.b"])
            bias[j] -= found["prior.fertility.log_strength"].exp() * coverage / phi
        if settings.coverage:
            U, u, v = (found[f"prior.coverage.{name}"] for name in ("U", "u", "v"))
            bias[j] += v @ torch.tanh(U @ H[j] + u * coverage)
        if settings.local:
            p_t = F * torch.sigmoid(found["prior.local.v"] @ torch.tanh(found["prior.local.W"] @ h))
            bias[j] -= (j + 0.5 - p_t) ** 2 / (2 * (settings.local / 2) ** 2)
    return bias


def naive_bias(model: Translator, sentence: int, alpha: Tensor) -> Tensor | float:
    """log(p_lex + floor), p_lex(e) = sum_j alpha_j L(e | f_j); nothing without a lexicon.  # (|V|,)"""
    if model.lexicon is None:
        return 0.0
    starts, words, probs = model.lexicon
    p_lex = torch.zeros(len(model.vocab), dtype=alpha.dtype)
    for weight, word in zip(alpha.tolist(), pairs_of(model).source[sentence].tolist(), strict=False):
        for entry in range(int(starts[word]), int(starts[word + 1])):
            p_lex[words[entry]] += weight * probs[entry]
    assert len(probs) and (p_lex > 0).sum() < len(p_lex) - 2
    return (p_lex + model.settings.lexicon_floor).log()


def naive_softmax(model: Translator, h: Tensor, c: Tensor | None, bias: Tensor | float = 0.0) -> Tensor:
    """log softmax(W_hs [h_t; c_t] + b_s), `<s>` impossible.  # (|V|,)"""
    found, x = dict(model.parameters()), h if c is None else torch.cat([h, c])
    if model.settings.readout:
        x = torch.tanh(found["readout.W"] @ x + found["readout.b"])
    if "W_out" in found:
        x = found["W_out"] @ x + found["b_out"]
    W = found["M"] if model.settings.tied else found["W_hs"]
    s = W @ x + found["b_s"] + bias
    s[START] = -math.inf
    if model.classes is None:
        return s.log_softmax(dim=0)
    class_of, by_class = model.classes.class_of, (found["W_c"] @ x + found["b_c"])
    result = torch.empty_like(s)
    words_of = [(class_of == number).nonzero()[:, 0] for number in range(len(model.classes))]
    possible = torch.tensor([bool((s[words] > -math.inf).any()) for words in words_of])
    by_class = by_class.masked_fill(~possible, -math.inf).log_softmax(dim=0)
    for number, words in enumerate(words_of):
        result[words] = by_class[number] + (s[words].log_softmax(dim=0) if possible[number] else -math.inf)
    return result


def naive_steps(model: Translator, encoded: Any, sentence: int, target: list[int]) -> list[Tensor]:
    """log p_t of every word of one translation: one vector at a time, [embed(e_{t-1}); c_{t-1}] as it is written."""
    found, settings = dict(model.parameters()), model.settings
    cell, own = CELLS[settings.cell], encoded.mask[sentence]
    H = encoded.vectors[sentence][own]
    states = [naive_bridge(model, encoded, sentence, layer) for layer in range(settings.layers)]
    c, said = torch.zeros(H.shape[1], dtype=H.dtype), []  # c_0 = 0
    alphas: list[Tensor] = []
    for word in [START, *target]:
        x = found["M"][word]
        for number in range(settings.layers):
            W_x, W_h, b = (found[f"decoder.{name}{number + 1}"] for name in ("W_x", "W_h", "b"))
            if number == 0 and settings.attention != "none":
                W_x, x = torch.cat([W_x, found["decoder.W_c"]], dim=1), torch.cat([x, c])
            after = cell.step((W_x @ x + b)[None], tuple(part[None] for part in states[number]), W_h)
            states[number] = tuple(part[0] for part in after)
            x = states[number][0]
        if settings.attention == "none":
            said.append(naive_softmax(model, x, None))
            continue
        scores = naive_scores(settings.attention, found, H, x) + naive_priors(model, H, x, alphas)
        alpha = scores.softmax(dim=0)
        alphas.append(alpha)
        c = H[int(alpha.argmax())] if settings.hard else H.T @ alpha
        said.append(naive_softmax(model, x, c, naive_bias(model, sentence, alpha)))
    return said


def naive_bridge(model: Translator, encoded: Any, sentence: int, layer: int) -> tuple[Tensor, ...]:
    """h_0 = h^(f)_{|F|}, or tanh(W h + b) of it; the last layers belong together."""
    from_last = min(model.settings.layers - 1 - layer, len(encoded.ends) - 1)
    found, end = dict(model.parameters()), encoded.ends[::-1][from_last]
    begun = []
    for place, name in enumerate(CELLS[model.settings.cell].state):
        part = end[min(place, len(end) - 1)][sentence]
        if model.settings.bridge == "tanh":
            part = torch.tanh(found[f"bridge.W_{name}{layer + 1}"] @ part + found[f"bridge.b_{name}{layer + 1}"])
        begun.append(part)
    return tuple(begun)


@every_single_translator
def test_a_decoder_is_the_tutorials(model: Translator) -> None:
    pairs = pairs_of(model)
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
    found, pairs = {name: part.numpy() for name, part in model.parameters().items()}, pairs_of(model)
    folded, _ = fold(model, batch_of(pairs))
    for number in range(len(pairs)):
        h = np.zeros(8)
        for word in [*pairs.source[number].tolist(), END]:
            W_x, W_h, b = (found[f"encoder.forward.{name}1"] for name in ("W_x", "W_h", "b"))
            h = np.tanh(W_x @ found["M_f"][word] + W_h @ h + b)
        words = [*pairs.target[number].tolist(), END]
        for t, (before, word) in enumerate(zip([START, *words], words, strict=False)):
            W_x, W_h, b = (found[f"decoder.{name}1"] for name in ("W_x", "W_h", "b"))
            h = np.tanh(W_x @ found["M"][before] + W_h @ h + b)
            s = found["W_hs"] @ h + found["b_s"]
            s[START] = -math.inf
            assert float(folded[number, t]) == pytest.approx(s[word] - math.log(np.exp(s).sum()), abs=1e-12)


# -- what is asked for -------------------------------------------------------------------------------------------------

TOY_PAIRS = ParallelCorpus(Corpus.from_sentences(["x y", "y"]), Corpus.from_sentences(["a b", "b"]))


def toy(**settings: Any) -> Translator:
    return Translator.create(TOY_PAIRS, **{"embedding": 4, "hidden": 6, **settings})


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"bridge": "copy", "layers": 2}, "as many layers"),
        ({"bridge": "copy", "encoder_hidden": 5}, "states of one length"),
        ({"bridge": "copy", "encoder": "convolutional", "filters": 5}, "one length"),
        ({"bridge": "copy", "encoder": "convolutional", "filters": 6, "pooling": "k-max", "k_max": 2}, "one length"),
        ({"attention": "dot", "encoder_hidden": 5}, "dot attention multiplies vectors of one length"),
        ({"attention": "dot", "hidden": 7}, "dot attention multiplies vectors of one length"),
        ({"encoder": "tree-lstm"}, "reads bracketed trees, and the source is plain text"),
        ({"attention": "mpl"}, "mlp"),
        ({"encoder": "transformer"}, "encoder"),
    ],
)
def test_what_does_not_fit_together_is_refused(settings: dict[str, Any], told: str) -> None:
    source = Side.learn("word", ["x y", "y"], min_count=1)
    with pytest.raises(DataError, match=told):
        Translator.create(TOY_PAIRS, source, **{"embedding": 4, "hidden": 6, **settings})


def test_a_tree_needs_an_encoder_of_trees() -> None:
    source = Side.learn("word", ["(S x y)", "(S y)"], min_count=1, format="tree")
    with pytest.raises(DataError, match="reads plain text; for trees choose --encoder tree-lstm or recursive"):
        Translator.create(TOY_PAIRS, source, embedding=4, hidden=6)


@pytest.mark.parametrize("encoder", ["recursive", "tree-lstm"])
def test_a_tree_of_another_size_than_the_state_cannot_be_copied(encoder: str) -> None:
    source = Side.learn("word", ["(S x y)", "(S y)"], min_count=1, format="tree")
    pairs = ParallelCorpus(source.read(["(S x y)", "(S y)"]), TOY_PAIRS.target)
    with pytest.raises(DataError, match="one length"):
        Translator.create(pairs, source, encoder=encoder, encoder_hidden=5, hidden=6, bridge="copy")


def test_texts_of_other_numbers_are_refused() -> None:
    model, other = toy(), Corpus.from_sentences(["z z", "z"])
    for pairs in (ParallelCorpus(other, TOY_PAIRS.target), ParallelCorpus(TOY_PAIRS.source, other)):
        with pytest.raises(DataError, match="another vocabulary"):
            fit(model, pairs, max_epochs=1)


def test_no_pairs_have_no_tokens() -> None:
    nothing = np.zeros(0, np.int64)
    assert toy().pair_log_probs(TOY_PAIRS.source.select(nothing), TOY_PAIRS.target.select(nothing)).shape == (0,)


# -- learning ----------------------------------------------------------------------------------------------------------


def numbers(seed: int) -> list[str]:
    """Sequences of three symbols, 1 to 4 of them."""
    chance = np.random.default_rng(seed)
    return [" ".join(chance.choice(list("abc"), size=chance.integers(1, 5))) for _ in range(30)]


@pytest.mark.parametrize(
    "settings",
    [
        {"encoder": "bidirectional", "attention": "mlp"},
        {"encoder": "forward", "attention": "none", "cell": "gru"},
    ],
    ids=lambda settings: settings["encoder"],
)
def test_it_learns_to_turn_sequences_round(settings: dict[str, Any]) -> None:
    lines = numbers(1)
    turned = [" ".join(reversed(line.split())).upper() for line in lines]
    source, target = Side.learn("word", lines), Side.learn("word", turned)
    pairs = ParallelCorpus(source.read(lines), target.read(turned))
    model = Translator.create(
        pairs, source, target, embedding=8, hidden=16, dropout=0.0, embedding_reach=1.0, **settings
    )
    before = -float(model.batch_log_probs(pairs).mean())
    fit(model, pairs, max_epochs=80, batch_size=60, learning_rate=0.02, clip=1.0, pool=4, threads=1)
    after = -float(model.batch_log_probs(pairs).mean())
    assert before > 1.0
    assert after < 0.05
    assert [told.text for told in model.translate(lines)] == turned


def test_label_smoothing_is_the_definition() -> None:
    """(1 - s) log p of the word + s times the mean of log p over all words but `<s>`, which cannot come."""
    for name in (
        "bidirectional, perceptron",
        "bidirectional, perceptron, lexicon",
        "forward, Elman, copied",
        "reverse, perceptron, GRU, readout, tied",
    ):
        model = translator(name)
        pairs = pairs_of(model)
        state, batch = model.start(batch_of(pairs)), batch_of(pairs)
        expected = torch.zeros(batch.words.shape, dtype=torch.float64)
        for t, words in enumerate(batch.words.T):
            log_probs = model.log_probs(state)
            possible = torch.cat([log_probs[:, :START], log_probs[:, START + 1 :]], dim=1)
            right = log_probs.gather(1, words[:, None])[:, 0]
            expected[:, t] = 0.8 * right + 0.2 * possible.mean(dim=1)
            state = model.advance(state, words)
        torch.testing.assert_close(model.batch_log_probs(pairs, None, 0.2), expected[batch.mask], **SAME)


@pytest.mark.parametrize("rates", [{"dropout": 0.5}, {"dropout": 0.0, "embedding_dropout": 0.5}])
@pytest.mark.parametrize("attention", ["none", "mlp"])
def test_what_is_left_out_is_left_out_in_training_alone(rates: dict[str, float], attention: str) -> None:
    model, silent = (toy(attention=attention, layers=2, **own) for own in (rates, {"dropout": 0.0}))
    plain = silent.batch_log_probs(TOY_PAIRS)
    assert torch.equal(model.batch_log_probs(TOY_PAIRS), plain)
    noisy = [model.batch_log_probs(TOY_PAIRS, Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(noisy[0], noisy[1])
    assert not torch.allclose(noisy[0], noisy[2])
    assert not torch.allclose(noisy[0], plain)
    assert torch.equal(silent.batch_log_probs(TOY_PAIRS, Generator().manual_seed(1)), plain)


def test_what_is_left_out_is_made_good_on_average() -> None:
    """So small a share that the mean over many draws is near what is said without noise."""
    model = toy(dropout=0.02, layers=2)
    chance, plain = Generator().manual_seed(1), model.batch_log_probs(TOY_PAIRS)
    drawn = torch.stack([model.batch_log_probs(TOY_PAIRS, chance) for _ in range(100)])
    torch.testing.assert_close(drawn.mean(dim=0), plain, rtol=0, atol=0.01)


def test_the_seed_is_all_that_chance_depends_on() -> None:
    def trained(seed: int) -> dict[str, Tensor]:
        model = toy(seed=seed)
        fit(model, TOY_PAIRS, max_epochs=3, seed=seed, batch_size=2, threads=1)
        return dict(model.parameters())

    one, again, other = trained(1), trained(1), trained(2)
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one if one[name].dim() > 1)


def test_training_changes_every_parameter() -> None:
    """Nothing is cut off from the loss."""
    for settings in ({"attention": "mlp", "layers": 2, "readout": 5}, {"attention": "bilinear", "tied": True}):
        model = toy(**settings)
        before = {name: tensor.clone() for name, tensor in model.parameters().items()}
        fit(model, TOY_PAIRS, max_epochs=2, threads=1)
        assert not [name for name, tensor in model.parameters().items() if torch.equal(tensor, before[name])]


def test_held_out_text_of_the_zoo_has_no_surprises() -> None:
    """Every score of every translator is a log-probability, and none is impossible but by a shortlist."""
    for name in (name for name in TRANSLATORS if "shortlist" not in name):
        model = translator(name)
        scored = model.score([read_by(model, line) for line in HELD_OUT], HELD_OUT)
        assert all(-200 < told.log_prob < 0 for told in scored)


assert set(SCORES) == {"dot", "bilinear", "mlp"}, "another attention needs its line above"
