"""A step of a search on a GPU, with tensors that have a device and a shape but no values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from dragoman.combine.shortlist import ShortlistMemory, ShortlistScorer
from dragoman.core.scorer import State
from dragoman.data.batches import Batch
from dragoman.models.translator import Translator
from dragoman.models.translator_scorer import TranslatorScorer
from dragoman.nn import output
from dragoman.nn.attention import RowLayout
from dragoman.nn.packed import pack_float32
from small_translators import SMALL, translators
from test_stored_shortlist import pairs_of, small_shortlist


def on_cuda(mode: FakeTensorMode, value: Any) -> Any:
    """Return a tensor without values like this one, in nested tuples as well."""
    if isinstance(value, tuple):
        parts = [on_cuda(mode, part) for part in value]
        return tuple(parts) if type(value) is tuple else type(value)(*parts)
    return mode.from_tensor(value).detach().to("cuda:0") if isinstance(value, torch.Tensor) else value


def move_to_cuda(mode: FakeTensorMode, model: nn.Module) -> None:
    for module in model.modules():
        for name, parameter in module._parameters.items():
            module._parameters[name] = None if parameter is None else nn.Parameter(on_cuda(mode, parameter))
        for name, buffer in module._buffers.items():
            module._buffers[name] = on_cuda(mode, buffer)


def get_item(x: torch.Tensor, index: Any) -> torch.Tensor:
    """Add dimensions. torch without CUDA cannot index such tensors, even for this."""
    for place, part in enumerate(index):
        assert part in (None, slice(None))
        x = x.unsqueeze(place) if part is None else x
    return x


@pytest.mark.parametrize("copies", [0, 1000])
def test_a_step_with_a_shortlist_and_a_lexicon(copies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_COPIES", copies)
    one = translators()["one"]
    pairs = pairs_of(one)
    model = Translator.create(pairs, one.source, one.target, lexicon=True, **SMALL)
    shortlist, batch = small_shortlist(model), Batch.empty(3, pairs.source.select(np.arange(3)))
    state = TranslatorScorer(model).start(batch)
    words, layout = shortlist.word_lists(batch.source), RowLayout.of(state.sentence, 3)
    monkeypatch.setattr(RowLayout, "of", lambda sentence, sentences: layout)  # it depends on values
    with FakeTensorMode() as mode:
        move_to_cuda(mode, model)
        monkeypatch.setattr(torch.Tensor, "__getitem__", get_item)
        scorer = TranslatorScorer(model, pack_float32)
        listed = ShortlistScorer(model, shortlist, scorer)
        sentence = mode.from_tensor(state.sentence)
        inner = State(on_cuda(mode, state.rows), on_cuda(mode, state.memory), sentence)
        subset = scorer.word_subset(inner, mode.from_tensor(words))
        assert subset.words.device.type == "cpu" and subset.lexicon_probs.device.type == "cuda"
        start = State(inner.rows, ShortlistMemory(inner.memory, subset), sentence)
        for scored in (scorer.subset_scores(inner, subset), scorer.log_probs(inner)):
            assert scored.device.type == "cpu"
        after = listed.advance(start, torch.zeros(3, dtype=torch.int64))
        log_probs, ids = listed.sparse_log_probs(after)
    assert log_probs.device.type == ids.device.type == "cpu" and log_probs.shape == ids.shape == words.shape
