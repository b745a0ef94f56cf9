"""Log-linear models: scores, gradients, the three ways to keep weights, and what they can and cannot learn."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman import Corpus, DataError, LogLinearModel, Vocab, fit
from dragoman.core.settings import validate
from dragoman.core.threads import limit_threads
from dragoman.data.vocabulary import END, SPECIALS, START
from dragoman.evaluation.log_probs import folded_log_probs
from dragoman.models.loglinear import scoring, weights
from dragoman.models.loglinear.config import LogLinearConfig
from dragoman.models.loglinear.features import WordHistories
from module_outputs import log_probs, training_output
from zoo import CLASSES

NOTATION = "word1,word1+word2,word2+class1,word3,suffix1,bag"
EVERY_WAY = {
    "auto": {},
    "seen": {"weights": "seen"},
    "full": {"weights": "full"},
    "hashed": {"weights": "hashed", "hash_bits": 7},
    "only often seen": {"weights": "seen", "min_seen": 3},
    "conjunctions": {"features": "4-gram", "weights": "seen"},
}
every_way = pytest.mark.parametrize("way", EVERY_WAY)


def made(corpus: Corpus, scale: float = 1.0, **settings: object) -> LogLinearModel:
    """A model with random weights, in 64 bits."""
    chosen = {"features": NOTATION, "suffix_types": 2, "precision": "float64", **settings}
    model = LogLinearModel.create(corpus, classes=CLASSES, **chosen)
    chance = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_(scale * torch.randn(tensor.shape, generator=chance, dtype=torch.float64))
    return model


def gradients(model: LogLinearModel, function: Callable[[], Tensor], upstream: Tensor) -> dict[str, Tensor]:
    """The gradients of the parameters."""
    parameters = dict(model.named_parameters())
    found = torch.autograd.grad((function() * upstream).sum(), list(parameters.values()))
    return dict(zip(parameters, found, strict=True))


def random_upstream(corpus: Corpus) -> Tensor:
    return torch.randn(corpus.num_tokens, generator=torch.Generator().manual_seed(6), dtype=torch.float64)


# -- the plain model: W x + b with a matrix -----------------------------------------------------------------------


def plain_log_probs(model: LogLinearModel, corpus: Corpus) -> Tensor:
    """s = W x + b (eq. lllm:fullequation) with all of W and x written out, and torch's own softmax."""
    active = model.extractor.extract(WordHistories.from_corpus(corpus))
    size, features = len(model.vocab), len(model.layout.window_start)
    x = torch.zeros(corpus.num_tokens, features, dtype=torch.float64)
    row = np.repeat(np.arange(corpus.num_tokens), np.diff(active.begin))
    x[row, active.feature.astype(np.int64)] = torch.from_numpy(active.value)
    column = torch.from_numpy(np.repeat(np.arange(features), np.diff(model.layout.begin)))
    W = torch.zeros(size, features, dtype=torch.float64).index_put(
        (torch.from_numpy(model.layout.word).long(), column), model.pairs
    )
    windows = [
        model.windows[place : place + size] if place >= 0 else torch.zeros(size, dtype=torch.float64)
        for place in model.layout.window_start.tolist()
    ]
    s = x @ (W + torch.stack(windows, dim=1)).T + model.bias  # (tokens, |V|)
    s = s.masked_fill(torch.arange(size) == START, -torch.inf)
    targets = torch.from_numpy(corpus.ids_with_boundaries(starts=0)).long()
    return torch.log_softmax(s, dim=1).gather(1, targets[:, None])[:, 0]


@every_way
@pytest.mark.parametrize("scale", [0.1, 1.0, 40.0])
def test_scores_and_gradients_are_those_of_the_matrix(way: str, scale: float, training: Corpus) -> None:
    """The closed form of section 4.3 against automatic differentiation; with large weights, sums lose their digits
    unless they are taken anew."""
    model, upstream = made(training, scale, **EVERY_WAY[way]), random_upstream(training)
    np.testing.assert_allclose(
        log_probs(model, training), plain_log_probs(model, training).detach(), rtol=1e-10, atol=1e-9
    )
    closed = gradients(model, lambda: model(training).log_probs, upstream)
    automatic = gradients(model, lambda: plain_log_probs(model, training), upstream)
    for name in closed:
        np.testing.assert_allclose(closed[name], automatic[name], rtol=0, atol=1e-8, err_msg=name)
        assert closed[name].abs().max() > 0


def test_the_gradient_is_what_the_tutorial_says(training: Corpus) -> None:
    """d log p / db = onehot(e_t) - p and d log p / dW_j = x_j (onehot(e_t) - p), of one token with one feature on."""
    model = made(training, features="word1", weights="full")
    sentence = Corpus.from_sentences(["the"], training.vocab)
    only_first = torch.tensor([1.0, 0.0], dtype=torch.float64)
    found = gradients(model, lambda: model(sentence).log_probs, only_first)
    p = np.array([dict(model.next_words("", k=None))[word] for word in training.vocab.tokens])
    residual = np.eye(len(p))[training.vocab.id("the")] - p
    np.testing.assert_allclose(found["bias"], residual, atol=1e-12)
    columns = found["windows"].reshape(-1, len(p)).numpy()
    (on,) = [column for column in columns if column.any()]
    np.testing.assert_allclose(on, residual, atol=1e-12)


# -- a model of dictionaries ------------------------------------------------------------------------------------------


SUFFIXES = {"sees": "-es", "yes": "-es", "hears": "-s", "bird": "-d", "old": "-d"}  # that two words of the text share


def naive_features(words: list[str]) -> dict[str, float]:
    """What NOTATION has on after some words, by hand."""
    back = [*reversed(words), "<s>"]
    class_of = lambda word: CLASSES.get(word, word)  # noqa: E731
    on = {f"word1={back[0]}": 1.0}
    if len(back) > 1:
        on[f"word1+word2={back[0]}+{back[1]}"] = 1.0
        on[f"word2+class1={back[1]}+{class_of(back[0])}"] = 1.0
    if len(back) > 2:
        on[f"word3={back[2]}"] = 1.0
    if back[0] in SUFFIXES:
        on[f"suffix1={SUFFIXES[back[0]]}"] = 1.0
    for word in words:
        on[f"bag: {word}"] = on.get(f"bag: {word}", 0.0) + 1.0
    return on


def naive_weights(model: LogLinearModel, corpus: Corpus) -> dict[tuple[str, str], float]:
    """All weights by the names of feature and next word, as `explain` gives them."""
    prefixes = {" ".join(line.split()[:n]) for line in corpus.sentences_as_text() for n in range(len(line.split()) + 1)}
    weights = {}
    for prefix in prefixes:
        told = model.explain(prefix, k=len(model.vocab))
        strength = {feature.feature: feature.value for feature in told.features}
        for word in told.words:
            for one in word.contributions:
                if one.amount is not None:
                    weights[one.feature, word.word] = one.amount / strength[one.feature]
    return weights


@pytest.mark.parametrize("way", ["auto", "seen", "full", "hashed"])
def test_a_model_of_dictionaries_and_loops_says_the_same(way: str, training: Corpus, held_out: Corpus) -> None:
    model = made(training, **EVERY_WAY[way])
    weights = naive_weights(model, training)
    bias = dict(zip(model.vocab.tokens, model.bias.tolist(), strict=True))
    expected = []
    for line in held_out.sentences_as_text():
        words = [word if word in bias else "<unk>" for word in line.split()]
        for t, target in enumerate([*words, "</s>"]):
            scores = dict(bias)
            del scores["<s>"]
            for feature, value in naive_features(words[:t]).items():
                for word in scores:
                    scores[word] += value * weights.get((feature, word), 0.0)
            expected.append(scores[target] - math.log(sum(map(math.exp, scores.values()))))
    np.testing.assert_allclose(model.token_log_probs(held_out), expected, atol=1e-9)


# -- ways to keep weights --------------------------------------------------------------------------------------------


def test_seen_weights_are_those_of_pairs_in_the_text() -> None:
    corpus = Corpus.from_sentences(["a b", "a b", "a c"])
    model = LogLinearModel.create(corpus, features="word1", weights="seen")
    after_a = model.explain("a", k=9)
    assert {word.word for word in after_a.words if word.contributions[0].amount is not None} == {"b", "c"}
    often = LogLinearModel.create(corpus, features="word1", weights="seen", min_seen=2)
    after_a = often.explain("a", k=9)
    assert {word.word for word in after_a.words if word.contributions[0].amount is not None} == {"b"}
    assert often.explain("a c").unseen == ("word1=c",)


def test_single_features_have_full_columns_while_they_are_few(
    monkeypatch: pytest.MonkeyPatch, training: Corpus
) -> None:
    size = len(training.vocab)
    model = LogLinearModel.create(training, features="word1,word1+word2")
    assert len(model.windows) and len(model.pairs) and not model.notes
    assert len(model.windows) % size == 0
    monkeypatch.setattr(weights, "MAX_AUTO_WEIGHTS", len(model.windows) - 1)
    frugal = LogLinearModel.create(training, features="word1,word1+word2")
    assert not len(frugal.windows) and len(frugal.pairs) > len(model.pairs)
    assert f"{len(model.windows):,} weights" in frugal.notes[0]
    monkeypatch.setattr(weights, "MAX_WEIGHTS", 100)
    with pytest.raises(DataError, match="too many; choose seen or hashed"):
        LogLinearModel.create(training, features="word1,word1+word2", weights="full")


def trained(corpus: Corpus, **settings: object) -> LogLinearModel:
    model = LogLinearModel.create(corpus, precision="float64", **settings)
    fit(model, corpus, optimizer="adagrad", learning_rate=0.5, batch_size=50, max_updates=20, l2=0.1)
    return model


def test_hashed_columns_that_do_not_meet_are_full_columns(training: Corpus) -> None:
    hashed = trained(training, features="3-gram", weights="hashed", hash_bits=22)
    assert np.diff(np.sort(hashed.layout.window_start)).min() >= len(training.vocab)
    full = trained(training, features="3-gram", weights="full")
    np.testing.assert_allclose(hashed.token_log_probs(training), full.token_log_probs(training), atol=1e-12)


def test_a_hashed_table_has_the_size_asked_for(training: Corpus) -> None:
    model = trained(training, features="4-gram", weights="hashed", hash_bits=5)
    assert len(model.windows) == 32 and not len(model.pairs)
    with pytest.raises(DataError, match="hash_bits 3: a column of 14 weights does not fit; choose 4 or more"):
        LogLinearModel.create(training, weights="hashed", hash_bits=3)


# -- what training needs ----------------------------------------------------------------------------------------------


def test_it_starts_as_the_unigram_model(training: Corpus) -> None:
    model = LogLinearModel.create(training, features=NOTATION, classes=CLASSES)
    counts = np.bincount(training.ids_with_boundaries(starts=0), minlength=len(training.vocab)) + 1.0
    expected = np.log(counts / (counts.sum() - counts[START]))[training.ids_with_boundaries(starts=0)]
    np.testing.assert_allclose(model.token_log_probs(training), expected, atol=1e-6)


def test_words_never_seen_in_training_are_possible() -> None:
    vocab = Vocab([*SPECIALS, "a", "b", "never"])
    corpus = Corpus.from_sentences(["a b", "b a"] * 5, vocab)
    model = trained(corpus, features="3-gram")
    probs = dict(model.next_words("a", k=None))
    assert probs["<s>"] == 0.0
    assert all(prob > 0 for word, prob in probs.items() if word != "<s>")


@every_way
def test_32_bits_are_as_good_as_their_weights(way: str, training: Corpus, held_out: Corpus) -> None:
    """Sums are taken in 64 bits whatever the weights have, so that the fold and the batched way agree."""
    model = made(training, precision="float32", **EVERY_WAY[way])
    np.testing.assert_allclose(model.token_log_probs(held_out), folded_log_probs(model, held_out), rtol=0, atol=1e-9)


def test_penalties_spare_the_bias(training: Corpus) -> None:
    assert set(made(training).regularized_parameters()) == {"pairs", "windows"}
    assert set(made(training, weights="seen").regularized_parameters()) == {"pairs"}
    assert set(made(training, weights="full").state_dict()) == {"bias", "windows"}


def test_threads_share_the_work_and_change_nothing(monkeypatch: pytest.MonkeyPatch, training: Corpus) -> None:
    monkeypatch.setattr(scoring, "MIN_THREAD_COST", 1)
    model, upstream = made(training, weights="seen"), random_upstream(training)
    results = {}
    for threads in (1, 2, 5):
        with limit_threads(threads):
            twice = [gradients(model, lambda: model(training).log_probs, upstream) for _ in range(2)]
        for name in twice[0]:
            assert torch.equal(twice[0][name], twice[1][name])
        results[threads] = twice[0]
    for name in results[1]:
        np.testing.assert_allclose(results[2][name], results[1][name], atol=1e-12)
        np.testing.assert_allclose(results[5][name], results[1][name], atol=1e-12)


def test_dropout_leaves_features_out_in_training_alone(training: Corpus) -> None:
    model, plain = made(training, dropout=0.5), made(training)
    np.testing.assert_array_equal(log_probs(model, training), log_probs(plain, training))
    noisy = [-training_output(model, training, seed).losses for seed in (1, 1, 2)]
    assert torch.equal(noisy[0], noisy[1])
    assert not torch.equal(noisy[0], noisy[2])
    # Scores are the same on average: here those of a word with one feature on, over many draws.
    one = made(training, features="word1", weights="full", dropout=0.25)
    many = Corpus.from_sentences([""] * 4000, training.vocab)
    bare, with_feature = (
        (one.bias[END] - one.bias[1:].logsumexp(0)).detach(),
        plain_log_probs(one, many.select(np.arange(1))),
    )
    drawn = -training_output(one, many, 1).losses.detach()
    assert float((drawn - bare).abs().lt(1e-9).double().mean()) == pytest.approx(0.25, abs=0.03)
    assert not bool((drawn - with_feature).abs().lt(1e-9).any())  # what is kept is stronger


def test_it_computes_on_the_processor_alone(training: Corpus) -> None:
    model = made(training)
    model.to("meta")
    with pytest.raises(DataError, match="device meta: a log-linear model needs --device cpu"):
        log_probs(model, training)


def test_an_empty_text_has_no_log_probs(training: Corpus) -> None:
    nothing = training.select(np.arange(0))
    for way in EVERY_WAY.values():
        assert log_probs(made(training, **way), nothing).shape == (0,)


def test_classes_must_be_given(training: Corpus) -> None:
    with pytest.raises(DataError, match="class2: needs the class of each word"):
        LogLinearModel.create(training, features="word1+class2")


# -- what it can learn -----------------------------------------------------------------------------------------------

CROSSED = ["farmers eat meat", "cows eat hay", "farmers grow hay", "cows grow meat"]


def crossed(features: str) -> list[bool]:
    """Whether a model trained on the four sentences prefers the right last word, in each of them."""
    corpus = Corpus.from_sentences(CROSSED * 5)
    model = LogLinearModel.create(corpus, features=features)
    fit(model, corpus, optimizer="adagrad", learning_rate=0.5, batch_size=20, max_epochs=30)
    right = []
    for line in CROSSED:
        who, verb, what = line.split()
        probs = dict(model.next_words(f"{who} {verb}", k=None))
        right.append(probs[what] > 0.8 and probs["hay" if what == "meat" else "meat"] < 0.2)
    return right


def test_conjunctions_get_what_single_words_cannot() -> None:
    """Of "farmers eat" and "cows grow" meat, of the others hay: no sum of what two words say alone (section 5.1)."""
    assert not any(crossed("words-4"))
    assert all(crossed("3-gram"))
    assert all(crossed("word1,word2,word1+word2"))


# -- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [30, 64])
def test_a_table_beyond_what_can_be_asked_for_is_refused(bits: int) -> None:
    with pytest.raises(DataError, match=f"hash_bits {bits}: must be at most 29"):
        validate(LogLinearConfig, {"weights": "hashed", "hash_bits": bits}, "settings")
    largest = validate(LogLinearConfig, {"weights": "hashed", "hash_bits": 29}, "settings")
    assert 1 << largest.hash_bits == weights.MAX_WEIGHTS


@pytest.mark.parametrize("weights", ["auto", "seen", "full"])
def test_the_size_of_a_table_without_a_table_is_refused(weights: str) -> None:
    with pytest.raises(DataError) as told:
        validate(LogLinearConfig, {"weights": weights, "hash_bits": 20}, "exp.yaml:3", "model")
    problem = f"hash_bits 20 has no meaning with {weights} weights"
    assert str(told.value) == f"exp.yaml:3: model: {problem}; choose hashed weights, or leave hash_bits out"
    assert validate(LogLinearConfig, {"weights": weights, "hash_bits": 24}, "saved").weights == weights


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_each_weight_and_its_gradient_have_the_precision_asked_for(training: Corpus, precision: str) -> None:
    model = made(training, precision=precision)
    assert log_probs(model, training).dtype == torch.float64
    flowed = gradients(model, lambda: model(training).log_probs, random_upstream(training))
    assert {tensor.dtype for tensor in flowed.values()} == {getattr(torch, precision)}


def test_an_empty_text_has_no_features() -> None:
    with pytest.raises(DataError, match="empty"):
        LogLinearModel.create(Corpus.from_sentences(["a b"]).select(np.zeros(0, np.int64)))
