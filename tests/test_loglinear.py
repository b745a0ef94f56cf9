"""Log-linear models: scores, gradients, storage of weights, and what they can and cannot learn."""

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
from dragoman.evaluation.likelihood import folded_log_probs
from dragoman.models.loglinear import scoring, weights
from dragoman.models.loglinear.config import LogLinearConfig
from dragoman.models.loglinear.features import WordHistories
from module_outputs import log_probs, training_output
from zoo import CLASSES

NOTATION = "word1,word1+word2,word2+class1,word3,suffix1,bag"
STORAGES = {
    "auto": {},
    "seen": {"weights": "seen"},
    "full": {"weights": "full"},
    "hashed": {"weights": "hashed", "hash_bits": 7},
    "frequent pairs": {"weights": "seen", "min_seen": 3},
    "conjunctions": {"features": "4-gram", "weights": "seen"},
}
every_storage = pytest.mark.parametrize("storage", STORAGES)


def random_model(corpus: Corpus, scale: float = 1.0, **settings: object) -> LogLinearModel:
    """Return a model with random float64 weights."""
    chosen = {"features": NOTATION, "suffix_types": 2, "dtype": "float64", **settings}
    model = LogLinearModel.create(corpus, classes=CLASSES, **chosen)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_(scale * torch.randn(tensor.shape, generator=generator, dtype=torch.float64))
    return model


def gradients(model: LogLinearModel, function: Callable[[], Tensor], upstream: Tensor) -> dict[str, Tensor]:
    """Return the gradients of the parameters."""
    parameters = dict(model.named_parameters())
    grads = torch.autograd.grad((function() * upstream).sum(), list(parameters.values()))
    return dict(zip(parameters, grads, strict=True))


def random_upstream(corpus: Corpus) -> Tensor:
    return torch.randn(corpus.num_tokens, generator=torch.Generator().manual_seed(6), dtype=torch.float64)


# -- reference: W x + b with a dense matrix -----------------------------------------------------------------------


def dense_log_probs(model: LogLinearModel, corpus: Corpus) -> Tensor:
    """s = W x + b (eq. lllm:fullequation) with dense W and x, and torch's softmax."""
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
        model.windows[start : start + size] if start >= 0 else torch.zeros(size, dtype=torch.float64)
        for start in model.layout.window_start.tolist()
    ]
    s = x @ (W + torch.stack(windows, dim=1)).T + model.bias  # (tokens, |V|)
    s = s.masked_fill(torch.arange(size) == START, -torch.inf)
    targets = torch.from_numpy(corpus.ids_with_boundaries(starts=0)).long()
    return torch.log_softmax(s, dim=1).gather(1, targets[:, None])[:, 0]


@every_storage
@pytest.mark.parametrize("scale", [0.1, 1.0, 40.0])
def test_scores_and_gradients_equal_those_of_the_dense_matrix(storage: str, scale: float, training: Corpus) -> None:
    """The closed form of section 4.3 against automatic differentiation. With large weights, corrected sums lose their
    digits and have to be computed again."""
    model, upstream = random_model(training, scale, **STORAGES[storage]), random_upstream(training)
    np.testing.assert_allclose(
        log_probs(model, training), dense_log_probs(model, training).detach(), rtol=1e-10, atol=1e-9
    )
    closed = gradients(model, lambda: model(training).log_probs, upstream)
    automatic = gradients(model, lambda: dense_log_probs(model, training), upstream)
    for name in closed:
        np.testing.assert_allclose(closed[name], automatic[name], rtol=0, atol=1e-8, err_msg=name)
        assert closed[name].abs().max() > 0


def test_gradient_equals_the_equation_of_the_tutorial(training: Corpus) -> None:
    """d log p / db = onehot(e_t) - p and d log p / dW_j = x_j (onehot(e_t) - p), for one token with one active feature."""
    model = random_model(training, features="word1", weights="full")
    sentence = Corpus.from_sentences(["the"], training.vocab)
    only_first = torch.tensor([1.0, 0.0], dtype=torch.float64)
    grads = gradients(model, lambda: model(sentence).log_probs, only_first)
    p = np.array([dict(model.next_words("", k=None))[word] for word in training.vocab.tokens])
    residual = np.eye(len(p))[training.vocab.id("the")] - p
    np.testing.assert_allclose(grads["bias"], residual, atol=1e-12)
    columns = grads["windows"].reshape(-1, len(p)).numpy()
    (active,) = [column for column in columns if column.any()]
    np.testing.assert_allclose(active, residual, atol=1e-12)


# -- reference: dictionaries ------------------------------------------------------------------------------------------


SUFFIXES = {"sees": "-es", "yes": "-es", "hears": "-s", "bird": "-d", "old": "-d"}  # shared by at least two words


def naive_features(words: list[str]) -> dict[str, float]:
    """Return the active features of NOTATION after some words."""
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
    """Return all weights by feature and next word, read from `explain`."""
    prefixes = {" ".join(line.split()[:n]) for line in corpus.sentences_as_text() for n in range(len(line.split()) + 1)}
    weights = {}
    for prefix in prefixes:
        explanation = model.explain(prefix, k=len(model.vocab))
        value = {feature.feature: feature.value for feature in explanation.features}
        for word in explanation.words:
            for part in word.contributions:
                if part.amount is not None:
                    weights[part.feature, word.word] = part.amount / value[part.feature]
    return weights


@pytest.mark.parametrize("storage", ["auto", "seen", "full", "hashed"])
def test_log_probs_equal_those_of_dictionaries(storage: str, training: Corpus, held_out: Corpus) -> None:
    model = random_model(training, **STORAGES[storage])
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


# -- storage of weights --------------------------------------------------------------------------------------------


def test_seen_weights_are_those_of_pairs_in_the_corpus() -> None:
    corpus = Corpus.from_sentences(["a b", "a b", "a c"])
    model = LogLinearModel.create(corpus, features="word1", weights="seen")
    after_a = model.explain("a", k=9)
    assert {word.word for word in after_a.words if word.contributions[0].amount is not None} == {"b", "c"}
    frequent = LogLinearModel.create(corpus, features="word1", weights="seen", min_seen=2)
    after_a = frequent.explain("a", k=9)
    assert {word.word for word in after_a.words if word.contributions[0].amount is not None} == {"b"}
    assert frequent.explain("a c").unseen == ("word1=c",)


def test_unigram_features_have_full_columns_unless_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch, training: Corpus
) -> None:
    size = len(training.vocab)
    model = LogLinearModel.create(training, features="word1,word1+word2")
    assert len(model.windows) and len(model.pairs) and not model.notes
    assert len(model.windows) % size == 0
    monkeypatch.setattr(weights, "MAX_AUTO_WEIGHTS", len(model.windows) - 1)
    sparse = LogLinearModel.create(training, features="word1,word1+word2")
    assert not len(sparse.windows) and len(sparse.pairs) > len(model.pairs)
    assert f"{len(model.windows):,} weights" in sparse.notes[0]
    monkeypatch.setattr(weights, "MAX_WEIGHTS", 100)
    with pytest.raises(DataError, match="too many; choose seen or hashed"):
        LogLinearModel.create(training, features="word1,word1+word2", weights="full")


def trained(corpus: Corpus, **settings: object) -> LogLinearModel:
    model = LogLinearModel.create(corpus, dtype="float64", **settings)
    fit(model, corpus, optimizer="adagrad", learning_rate=0.5, batch_size=50, max_updates=20, l2=0.1)
    return model


def test_hashed_columns_without_overlap_equal_full_columns(training: Corpus) -> None:
    hashed = trained(training, features="3-gram", weights="hashed", hash_bits=22)
    assert np.diff(np.sort(hashed.layout.window_start)).min() >= len(training.vocab)
    full = trained(training, features="3-gram", weights="full")
    np.testing.assert_allclose(hashed.token_log_probs(training), full.token_log_probs(training), atol=1e-12)


def test_hashed_table_has_the_given_size(training: Corpus) -> None:
    model = trained(training, features="4-gram", weights="hashed", hash_bits=5)
    assert len(model.windows) == 32 and not len(model.pairs)
    with pytest.raises(DataError, match="hash_bits 3: a column of 14 weights does not fit; choose 4 or more"):
        LogLinearModel.create(training, weights="hashed", hash_bits=3)


# -- training ----------------------------------------------------------------------------------------------


def test_initial_model_is_the_unigram_model(training: Corpus) -> None:
    model = LogLinearModel.create(training, features=NOTATION, classes=CLASSES)
    counts = np.bincount(training.ids_with_boundaries(starts=0), minlength=len(training.vocab)) + 1.0
    expected = np.log(counts / (counts.sum() - counts[START]))[training.ids_with_boundaries(starts=0)]
    np.testing.assert_allclose(model.token_log_probs(training), expected, atol=1e-6)


def test_unseen_words_have_positive_probability() -> None:
    vocab = Vocab([*SPECIALS, "a", "b", "never"])
    corpus = Corpus.from_sentences(["a b", "b a"] * 5, vocab)
    model = trained(corpus, features="3-gram")
    probs = dict(model.next_words("a", k=None))
    assert probs["<s>"] == 0.0
    assert all(prob > 0 for word, prob in probs.items() if word != "<s>")


@every_storage
def test_float32_weights_are_summed_in_float64(storage: str, training: Corpus, held_out: Corpus) -> None:
    """Batched and stepwise log-probabilities agree because sums have 64 bits in both."""
    model = random_model(training, dtype="float32", **STORAGES[storage])
    np.testing.assert_allclose(model.token_log_probs(held_out), folded_log_probs(model, held_out), rtol=0, atol=1e-9)


def test_bias_is_not_regularized(training: Corpus) -> None:
    assert set(random_model(training).regularized_parameters()) == {"pairs", "windows"}
    assert set(random_model(training, weights="seen").regularized_parameters()) == {"pairs"}
    assert set(random_model(training, weights="full").state_dict()) == {"bias", "windows"}


def test_threads_do_not_change_results(monkeypatch: pytest.MonkeyPatch, training: Corpus) -> None:
    monkeypatch.setattr(scoring, "MIN_THREAD_COST", 1)
    model, upstream = random_model(training, weights="seen"), random_upstream(training)
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


def test_dropout_is_applied_only_in_training(training: Corpus) -> None:
    model, plain = random_model(training, dropout=0.5), random_model(training)
    np.testing.assert_array_equal(log_probs(model, training), log_probs(plain, training))
    noisy = [-training_output(model, training, seed).losses for seed in (1, 1, 2)]
    assert torch.equal(noisy[0], noisy[1])
    assert not torch.equal(noisy[0], noisy[2])
    # Scores are the same on average: here those of a word with one feature on, over many draws.
    model = random_model(training, features="word1", weights="full", dropout=0.25)
    many = Corpus.from_sentences([""] * 4000, training.vocab)
    bare, with_feature = (
        (model.bias[END] - model.bias[1:].logsumexp(0)).detach(),
        dense_log_probs(model, many.select(np.arange(1))),
    )
    sampled = -training_output(model, many, 1).losses.detach()
    assert float((sampled - bare).abs().lt(1e-9).double().mean()) == pytest.approx(0.25, abs=0.03)
    assert not bool((sampled - with_feature).abs().lt(1e-9).any())  # the remaining elements are scaled up


def test_other_devices_are_an_error(training: Corpus) -> None:
    model = random_model(training)
    model.to("meta")
    with pytest.raises(DataError, match="device meta: a log-linear model needs --device cpu"):
        log_probs(model, training)


def test_empty_corpus_has_no_log_probs(training: Corpus) -> None:
    nothing = training.select(np.arange(0))
    for storage in STORAGES.values():
        assert log_probs(random_model(training, **storage), nothing).shape == (0,)


def test_features_of_classes_need_classes(training: Corpus) -> None:
    with pytest.raises(DataError, match="class2: needs the class of each word"):
        LogLinearModel.create(training, features="word1+class2")


# -- learning -----------------------------------------------------------------------------------------------

CROSSED = ["farmers eat meat", "cows eat hay", "farmers grow hay", "cows grow meat"]


def crossed(features: str) -> list[bool]:
    """Return, for each of the four sentences, whether a trained model prefers the right last word."""
    corpus = Corpus.from_sentences(CROSSED * 5)
    model = LogLinearModel.create(corpus, features=features)
    fit(model, corpus, optimizer="adagrad", learning_rate=0.5, batch_size=20, max_epochs=30)
    right = []
    for line in CROSSED:
        who, verb, what = line.split()
        probs = dict(model.next_words(f"{who} {verb}", k=None))
        right.append(probs[what] > 0.8 and probs["hay" if what == "meat" else "meat"] < 0.2)
    return right


def test_conjunctions_learn_what_single_words_cannot() -> None:
    """No sum of scores of single words fits all four sentences (section 5.1)."""
    assert not any(crossed("words-4"))
    assert all(crossed("3-gram"))
    assert all(crossed("word1,word2,word1+word2"))


# -- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [30, 64])
def test_too_many_hash_bits_are_an_error(bits: int) -> None:
    with pytest.raises(DataError, match=f"hash_bits {bits}: must be at most 29"):
        validate(LogLinearConfig, {"weights": "hashed", "hash_bits": bits}, "settings")
    largest = validate(LogLinearConfig, {"weights": "hashed", "hash_bits": 29}, "settings")
    assert 1 << largest.hash_bits == weights.MAX_WEIGHTS


@pytest.mark.parametrize("weights", ["auto", "seen", "full"])
def test_hash_bits_without_hashed_weights_are_an_error(weights: str) -> None:
    with pytest.raises(DataError) as raised:
        validate(LogLinearConfig, {"weights": weights, "hash_bits": 20}, "exp.yaml:3", "model")
    problem = f"hash_bits 20 has no effect with {weights} weights"
    assert str(raised.value) == f"exp.yaml:3: model: {problem}; choose hashed weights, or leave hash_bits out"
    assert validate(LogLinearConfig, {"weights": weights, "hash_bits": 24}, "saved").weights == weights


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_weights_and_gradients_have_the_given_precision(training: Corpus, precision: str) -> None:
    model = random_model(training, dtype=precision)
    assert log_probs(model, training).dtype == torch.float64
    flowed = gradients(model, lambda: model(training).log_probs, random_upstream(training))
    assert {tensor.dtype for tensor in flowed.values()} == {getattr(torch, precision)}


def test_empty_training_corpus_is_an_error() -> None:
    with pytest.raises(DataError, match="empty"):
        LogLinearModel.create(Corpus.from_sentences(["a b"]).select(np.zeros(0, np.int64)))
