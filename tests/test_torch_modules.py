"""Models as torch modules: other training loops, DistributedDataParallel, autocast, and scoring in training mode."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from dragoman import Corpus, FeedForwardModel, LogLinearModel, ParallelCorpus, RecurrentModel, Translator, fit
from dragoman.core.errors import DataError
from dragoman.core.scorer import fold
from dragoman.data.batches import Batch
from module_outputs import log_probs
from small_translators import ENGLISH, GERMAN

CORPUS = Corpus.from_sentences(ENGLISH)
PAIRS = ParallelCorpus(Corpus.from_sentences(GERMAN), CORPUS)
SMALL: dict[str, Any] = {"embedding": 8, "hidden": 8, "dropout": 0.2}


def create(kind: str) -> tuple[Any, Any]:
    """A model and its training data."""
    match kind:
        case "feed-forward":
            return FeedForwardModel.create(CORPUS, order=3, embedding=8, hidden=(8,), dropout=0.2), CORPUS
        case "recurrent":
            return RecurrentModel.create(CORPUS, tied=True, **SMALL), CORPUS
        case "gru, classes":
            return RecurrentModel.create(CORPUS, cell="gru", softmax="frequency", **SMALL), CORPUS
        case "log-linear":
            return LogLinearModel.create(CORPUS, features="word1", dropout=0.2), CORPUS
        case "translator":
            return Translator.create(PAIRS, readout=8, layers=2, **SMALL), PAIRS
        case _:
            return Translator.create(PAIRS, lexicon=True, position=1.0, fertility=1.0, cell="gru", **SMALL), PAIRS


KINDS = ["feed-forward", "recurrent", "gru, classes", "log-linear", "translator", "lexicon and priors"]
NETWORKS = [kind for kind in KINDS if kind != "log-linear"]


def train(model: torch.nn.Module, data: Any, optimizer: torch.optim.Optimizer) -> None:
    """An ordinary training loop."""
    model.train()
    for _ in range(8):
        for first in range(0, len(data), 10):
            batch = data.select(np.arange(first, min(first + 10, len(data))))
            optimizer.zero_grad()
            loss = -model(batch).log_probs.sum() / batch.sizes.sum()
            loss.backward()
            optimizer.step()
    model.eval()


@pytest.mark.parametrize("kind", KINDS)
def test_an_ordinary_training_loop(kind: str) -> None:
    model, data = create(kind)
    before = float(log_probs(model, data).mean())
    train(model, data, torch.optim.AdamW(model.parameters(), 0.02))
    assert float(log_probs(model, data).mean()) > before + 0.2


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_is_an_equal_model_with_its_own_parameters(kind: str) -> None:
    model, data = create(kind)
    copied = deepcopy(model)
    assert torch.equal(log_probs(copied, data), log_probs(model, data))
    train(copied, data, torch.optim.AdamW(copied.parameters(), 0.02))
    assert not torch.equal(log_probs(copied, data), log_probs(model, data))


@pytest.mark.parametrize(
    ("kind", "needed"), [("recurrent", "a text in one language"), ("translator", "sentence pairs")]
)
def test_the_wrong_kind_of_data_is_refused(kind: str, needed: str) -> None:
    model, data = create(kind)
    with pytest.raises(DataError, match=f"is trained on {needed}, not on a"):
        fit(model, PAIRS if data is CORPUS else CORPUS, max_epochs=1)


@pytest.fixture
def process_group(tmp_path: Path) -> Iterator[None]:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("process_group")
@pytest.mark.parametrize("kind", ["recurrent", "translator"])
def test_distributed_data_parallel(kind: str) -> None:
    model, data = create(kind)
    before = float(log_probs(model, data).mean())
    parallel = DistributedDataParallel(model)
    train(parallel, data, torch.optim.Adam(parallel.parameters(), 0.02))
    assert float(log_probs(model, data).mean()) > before + 0.2


@pytest.mark.parametrize("kind", NETWORKS)
def test_autocast(kind: str) -> None:
    model, data = create(kind)
    expected = float(log_probs(model, data).mean())
    with torch.autocast("cpu", torch.bfloat16):
        loss = -model(data).log_probs.mean()
    loss.backward()
    assert float(-loss.detach()) == pytest.approx(expected, rel=0.05)
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_scorer_methods_use_no_dropout_and_no_gradients_in_training_mode(kind: str) -> None:
    model, data = create(kind)
    pairs = isinstance(data, ParallelCorpus)
    batch = Batch.from_sentences(data.target, data.source) if pairs else Batch.from_sentences(data)
    expected, _ = fold(model, batch)
    model.train()
    result, state = fold(model, batch)
    assert torch.equal(result, expected)
    assert model.training
    assert not result.requires_grad and not model.log_probs(state).requires_grad
    assert not any(part.requires_grad for part in _tensors((state.rows, state.memory)))


def _tensors(nested: Any) -> Iterator[torch.Tensor]:
    if isinstance(nested, torch.Tensor):
        yield nested
    elif nested is not None:
        for part in nested:
            yield from _tensors(part)


def test_preparing_for_search_does_not_change_the_model() -> None:
    model, data = create("translator")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    prepared = model.prepare_for_search()
    assert prepared is not model
    batch = Batch.from_sentences(data.target, data.source)
    torch.testing.assert_close(fold(prepared, batch)[0], fold(model, batch)[0])
    assert before.keys() == model.state_dict().keys()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
