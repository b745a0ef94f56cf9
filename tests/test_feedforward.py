"""Feed-forward models against torch's own layers, and what they can learn that sums of single words cannot."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dragoman
from dragoman import Corpus, DataError, FeedForwardModel, fit
from dragoman.data.corpus import context_windows
from dragoman.data.vocabulary import END, START
from dragoman.evaluation.log_probs import token_log_probs
from dragoman.nn.softmax import never_start, target_log_probs, word_log_probs
from zoo import HELD_OUT, LANGUAGE, TRAINING

CORPUS = Corpus.from_sentences(TRAINING, LANGUAGE)
HELD = Corpus.from_sentences(HELD_OUT, LANGUAGE)
# Who eats and grows what: neither the subject nor the verb alone tells the object (tutorial, section "Potential and
# Problems with Combination Features").
CROSSED = ["farmers eat meat", "cows eat hay", "farmers grow hay", "cows grow meat"]


def network(**settings: Any) -> FeedForwardModel:
    return FeedForwardModel.create(CORPUS, **{"order": 4, "embedding": 5, "precision": "float64", **settings})


def by_torch(model: FeedForwardModel, corpus: Corpus) -> np.ndarray:
    """The same network in torch's own layers."""
    p, n = model.parameters(), model.settings.order
    embed = torch.nn.Embedding.from_pretrained(p["M"])
    layers: list[torch.nn.Module] = [torch.nn.Flatten()]
    for number in range(1, len(model.settings.hidden) + 1):
        linear = torch.nn.Linear(*reversed(p[f"W_{number}"].shape), dtype=torch.float64)
        linear.weight.data, linear.bias.data = p[f"W_{number}"], p[f"b_{number}"]
        layers += [linear, {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[model.settings.activation]()]
    hidden = torch.nn.Sequential(*layers)
    rows, targets = [], []
    for sentence in corpus:
        words = [START] * (n - 1) + sentence.tolist() + [END]
        rows += [words[t - n + 1 : t] for t in range(n - 1, len(words))]
        targets += words[n - 1 :]
    m = embed(torch.tensor(rows))
    scores = torch.nn.functional.linear(hidden(m), p["W_hs"], p["b_s"])
    if model.settings.direct:
        scores = scores + m.flatten(1) @ p["W_ms"].T
    scores[:, START] = -math.inf
    return -torch.nn.functional.cross_entropy(scores, torch.tensor(targets), reduction="none").detach().numpy()


@pytest.mark.parametrize(
    "settings", [{"hidden": (6,)}, {"hidden": (6, 7), "activation": "relu"}, {"hidden": (6,), "direct": True}]
)
def test_it_is_the_network_that_torch_would_make(settings: dict[str, Any]) -> None:
    model = network(**settings)
    fit(model, CORPUS, max_updates=5, learning_rate=0.05, threads=1)
    np.testing.assert_allclose(token_log_probs(model, HELD), by_torch(model, HELD), rtol=0, atol=1e-12)


def test_tied_weights_are_one_tensor() -> None:
    tied = network(hidden=(6,), tied=True)
    assert "W_hs" not in tied.parameters()
    assert tied.parameters()["W_out"].shape == (5, 6)
    assert "W_out" not in network(hidden=(5,), tied=True).parameters()
    state = tied.start(dragoman.data.batches.Batch.empty(1))
    before = tied.log_probs(state).clone()
    tied.parameters()["M"][7] += 1.0  # a word that is not in the context
    assert not torch.equal(tied.log_probs(state), before)


def test_it_starts_from_the_frequencies_of_words() -> None:
    model = network(hidden=(6,))
    counts = np.bincount(CORPUS.ids_with_boundaries(starts=0), minlength=len(LANGUAGE)) + 1.0
    probs = np.exp(model.log_probs(model.start(dragoman.data.batches.Batch.empty(1)))[0].numpy())
    expected = np.where(np.arange(len(LANGUAGE)) == START, 0, counts) / counts[END:].sum()
    np.testing.assert_allclose(probs, expected, atol=0.1)


def test_the_same_seed_makes_the_same_network() -> None:
    one, same, other = (network(hidden=(3,)) if seed == 1 else _seeded(seed) for seed in (1, 1, 2))
    assert torch.equal(one.parameters()["M"], same.parameters()["M"])
    assert not torch.equal(one.parameters()["M"], other.parameters()["M"])


def _seeded(seed: int) -> FeedForwardModel:
    return FeedForwardModel.create(CORPUS, order=4, embedding=5, precision="float64", hidden=(3,), seed=seed)


def test_precisions_start_from_the_same_numbers() -> None:
    long, short = network(hidden=(3,)), network(hidden=(3,), precision="float32")
    for name, tensor in long.parameters().items():
        assert torch.equal(tensor.float(), short.parameters()[name])


def test_the_hidden_layer_learns_what_words_together_mean() -> None:
    corpus = Corpus.from_sentences(CROSSED * 5)
    model = FeedForwardModel.create(corpus, order=3, embedding=8, hidden=(16,))
    fit(model, corpus, max_epochs=60, learning_rate=0.03, batch_size=20, threads=1)
    for sentence in CROSSED:
        *context, last = sentence.split()
        assert model.next_words(" ".join(context))[0].word == last


def test_windows_hold_the_words_before() -> None:
    windows = context_windows(HELD, 3)
    assert windows.shape == (HELD.num_tokens, 3)
    for row, (place, sentence) in zip(windows, [(t, s) for s in HELD for t in range(len(s) + 1)], strict=True):
        padded = [START, START, START, *sentence.tolist()]
        assert row.tolist() == padded[place : place + 3]


# -- the output layer -------------------------------------------------------------------------------------------------


def random_layer() -> tuple[torch.Tensor, ...]:
    chance = torch.Generator().manual_seed(3)
    h, W, b = (torch.randn(shape, generator=chance, dtype=torch.float64) for shape in ((6, 4), (9, 4), (9,)))
    return h, W, b, torch.tensor([1, 8, 3, 3, 1, 5])


def test_target_log_probs_are_taken_from_all() -> None:
    h, W, b, targets = random_layer()
    every = word_log_probs(h, W, never_start(b))
    np.testing.assert_allclose(every.exp().sum(dim=1), 1.0)
    assert bool((every[:, START] == -math.inf).all())
    picked = target_log_probs(h, W, never_start(b), targets)
    np.testing.assert_allclose(picked, every.gather(1, targets[:, None])[:, 0], rtol=0, atol=1e-14)


def test_gradients_are_those_of_automatic_differentiation() -> None:
    """Each target's gradient has a weight of its own, as label smoothing or a mask would give it."""
    h, W, b, targets = random_layer()
    weights = torch.arange(1.0, 7.0, dtype=torch.float64)
    ours, theirs = ([x.clone().requires_grad_() for x in (h, W, b)] for _ in range(2))
    (target_log_probs(ours[0], ours[1], never_start(ours[2]), targets) * weights).sum().backward()
    every = word_log_probs(theirs[0], theirs[1], never_start(theirs[2]))
    (every.gather(1, targets[:, None])[:, 0] * weights).sum().backward()
    for one, two in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.grad, two.grad, rtol=0, atol=1e-12)


# -- on disk -------------------------------------------------------------------------------------------------------


def test_broken_directories_are_told(tmp_path: Path) -> None:
    network(hidden=(3,)).save(tmp_path / "model")
    config = tmp_path / "model" / "config.yaml"
    good = config.read_text()
    for bad, told in [
        (good.replace("embedding: 5", "embedding: 6"), "does not fit"),
        (good.replace("embedding: 5", "embeding: 5"), "embeding"),
        (good.replace("order: 4", "order: many"), "order"),
        (good.replace("- 3\n", "- 3\n  - 2\n"), "does not fit"),
    ]:
        config.write_text(bad)
        with pytest.raises(DataError, match=told):
            dragoman.load(tmp_path / "model")


@pytest.mark.parametrize("settings", [{"order": 1}, {"hidden": (0,)}, {"dropout": 1.0}, {"activation": "step"}])
def test_impossible_shapes_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=next(iter(settings))):
        FeedForwardModel.create(CORPUS, **settings)
