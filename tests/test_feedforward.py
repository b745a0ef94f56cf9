"""Feed-forward models against torch's layers, and what they learn that sums of single words cannot express."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dragoman
from dragoman import Corpus, DataError, FeedForwardModel, fit
from dragoman.data.batches import Batch
from dragoman.data.corpus import context_windows
from dragoman.data.vocabulary import END, START
from dragoman.evaluation.likelihood import token_log_probs
from dragoman.io.storage import map_arrays, write_arrays
from model_files import remove_digests
from zoo import HELD_OUT, LANGUAGE, TRAINING

CORPUS = Corpus.from_sentences(TRAINING, LANGUAGE)
DEV = Corpus.from_sentences(HELD_OUT, LANGUAGE)
# Who eats and grows what: neither the subject nor the verb determines the object (tutorial, section "Potential and
# Problems with Combination Features").
CROSSED = ["farmers eat meat", "cows eat hay", "farmers grow hay", "cows grow meat"]


def create(**settings: Any) -> FeedForwardModel:
    return FeedForwardModel.create(CORPUS, **{"order": 4, "embedding": 5, "dtype": "float64", **settings})


def torch_log_probs(model: FeedForwardModel, corpus: Corpus) -> np.ndarray:
    """The same network with torch's layers."""
    state, n = model.state_dict(), model.settings.order
    layers: list[torch.nn.Module] = [torch.nn.Flatten()]
    for number in range(len(model.settings.hidden)):
        W, b = state[f"mlp.layers.{number}.weight"], state[f"mlp.layers.{number}.bias"]
        linear = torch.nn.Linear(*reversed(W.shape), dtype=torch.float64)
        linear.weight.data, linear.bias.data = W, b
        layers += [linear, {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[model.settings.activation]()]
    rows, targets = [], []
    for sentence in corpus:
        words = [START] * (n - 1) + sentence.tolist() + [END]
        rows += [words[t - n + 1 : t] for t in range(n - 1, len(words))]
        targets += words[n - 1 :]
    m = state["embedding.weight"][torch.tensor(rows)]
    hidden = torch.nn.Sequential(*layers)(m)
    scores = torch.nn.functional.linear(hidden, state["output.weight.weight"], state["output.bias"])
    if model.settings.direct:
        scores = scores + m.flatten(1) @ state["output.direct.weight"].T
    scores[:, START] = -math.inf
    return -torch.nn.functional.cross_entropy(scores, torch.tensor(targets), reduction="none").detach().numpy()


@pytest.mark.parametrize(
    "settings", [{"hidden": (6,)}, {"hidden": (6, 7), "activation": "relu"}, {"hidden": (6,), "direct": True}]
)
def test_log_probs_equal_those_of_torch(settings: dict[str, Any]) -> None:
    model = create(**settings)
    fit(model, CORPUS, max_updates=5, learning_rate=0.05, threads=1)
    np.testing.assert_allclose(token_log_probs(model, DEV), torch_log_probs(model, DEV), rtol=0, atol=1e-12)


def test_tied_output_weights_are_the_embedding() -> None:
    tied = create(hidden=(6,), tied=True)
    assert "output.weight.weight" not in tied.state_dict()
    assert tied.state_dict()["projection.weight"].shape == (5, 6)
    assert "projection.weight" not in create(hidden=(5,), tied=True).state_dict()
    state = tied.start(Batch.empty(1))
    before = tied.log_probs(state).clone()
    with torch.no_grad():
        tied.embedding.weight[7] += 1.0  # a word that is not in the context
    assert not torch.equal(tied.log_probs(state), before)


def test_an_untrained_model_predicts_word_frequencies() -> None:
    model = create(hidden=(6,))
    counts = np.bincount(CORPUS.ids_with_boundaries(starts=0), minlength=len(LANGUAGE)) + 1.0
    probs = np.exp(model.log_probs(model.start(Batch.empty(1)))[0].numpy())
    expected = np.where(np.arange(len(LANGUAGE)) == START, 0, counts) / counts[END:].sum()
    np.testing.assert_allclose(probs, expected, atol=0.1)


def test_initial_parameters_depend_on_the_seed() -> None:
    first, same, other = (create(hidden=(3,), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.embedding.weight, same.embedding.weight)
    assert not torch.equal(first.embedding.weight, other.embedding.weight)


def test_initial_parameters_do_not_use_the_global_generator() -> None:
    state = torch.get_rng_state()
    create(hidden=(3,))
    assert torch.equal(torch.get_rng_state(), state)


def test_both_precisions_start_from_the_same_values() -> None:
    double, single = create(hidden=(3,)), create(hidden=(3,), dtype="float32")
    for name, parameter in double.named_parameters():
        assert torch.equal(parameter.float(), single.state_dict()[name])


def test_the_hidden_layer_learns_combinations_of_words() -> None:
    corpus = Corpus.from_sentences(CROSSED * 5)
    model = FeedForwardModel.create(corpus, order=3, embedding=8, hidden=(16,))
    fit(model, corpus, max_epochs=60, learning_rate=0.03, batch_size=20, threads=1)
    for sentence in CROSSED:
        *context, last = sentence.split()
        assert model.next_words(" ".join(context))[0].word == last


def test_context_windows_have_the_words_before() -> None:
    windows = context_windows(DEV, 3)
    assert windows.shape == (DEV.num_tokens, 3)
    for row, (place, sentence) in zip(windows, [(t, s) for s in DEV for t in range(len(s) + 1)], strict=True):
        padded = [START, START, START, *sentence.tolist()]
        assert row.tolist() == padded[place : place + 3]


def test_the_repr_has_sizes_parameters_and_vocabulary() -> None:
    model = create(hidden=(3,))
    assert repr(model) == (
        f"FeedForwardModel(order=4, embedding=5, hidden=(3,), parameters={model.num_parameters:,}, "
        f"vocabulary={len(LANGUAGE):,})"
    )


# -- saving and loading ------------------------------------------------------------------------------------------------


def test_broken_directories_are_reported(tmp_path: Path) -> None:
    create(hidden=(3,)).save(tmp_path / "model")
    remove_digests(tmp_path / "model")
    config = tmp_path / "model" / "config.yaml"
    good = config.read_text()
    for bad, message in [
        (good.replace("embedding: 5", "embedding: 6"), "does not fit"),
        (good.replace("embedding: 5", "embeding: 5"), "embeding"),
        (good.replace("order: 4", "order: many"), "order"),
        (good.replace("- 3\n", "- 3\n  - 2\n"), "does not fit"),
    ]:
        config.write_text(bad)
        with pytest.raises(DataError, match=message):
            dragoman.load(tmp_path / "model")


def test_weights_that_would_overflow_are_refused(tmp_path: Path) -> None:
    create(hidden=(3, 3, 3, 3, 3), activation="relu").save(tmp_path / "model")
    file = tmp_path / "model" / "model.safetensors"
    arrays = map_arrays(file)
    large = {name: np.full_like(array, 9e5) for name, array in arrays.items() if name.startswith(("mlp", "embedding"))}
    write_arrays(file, {**arrays, **large})
    with pytest.raises(DataError, match="would overflow"):
        dragoman.load(tmp_path / "model")


@pytest.mark.parametrize("settings", [{"order": 1}, {"hidden": (0,)}, {"dropout": 1.0}, {"activation": "step"}])
def test_invalid_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=next(iter(settings))):
        FeedForwardModel.create(CORPUS, **settings)
