"""Recurrent language models: batches, streams, dropout, and what they learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import dragoman
from dragoman import Corpus, DataError, RecurrentModel, fit
from dragoman.data.batches import Batch, TextStream
from dragoman.data.vocabulary import END, START, UNK
from dragoman.nn.cells import CELLS
from dragoman.training.loop import StepReport
from module_outputs import gradients

SENTENCES = ["the cat sat on the mat", "a dog ran", "", "the dog that sat ran", "a cat", "the mat ran on a dog"]
CORPUS = Corpus.from_sentences(SENTENCES * 3)
SMALL: dict[str, Any] = {"embedding": 5, "hidden": 5, "dtype": "float64", "dropout": 0.0}


def create(corpus: Corpus = CORPUS, **settings: Any) -> RecurrentModel:
    return RecurrentModel.create(corpus, **{**SMALL, **settings})


def assert_same(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    for name in first:
        torch.testing.assert_close(first[name], second[name], msg=lambda message, name=name: f"{name}: {message}")


SETTINGS = {
    **{cell: {"cell": cell} for cell in CELLS},
    "deep": {"layers": 3, "residual": True, "first_state": "learned"},
    "tied": {"tied": True, "hidden": 7, "softmax": "frequency", "softmax_classes": 3},
}


def step_log_probs(model: RecurrentModel, sentences: Corpus) -> Tensor:
    """log P of the tokens by single steps, with gradients: rows padded with `</s>`, and padding masked."""
    batch = Batch.from_sentences(list(sentences))
    states, words, steps = model.rnn.initial_states(batch.num_rows), torch.full((batch.num_rows,), START), []
    for targets in batch.ids.T:
        h, states = model.rnn.step(model.embedding(words), states)
        steps.append(model.target_log_probs(h, targets.numpy()))
        words = targets
    return torch.stack(steps, dim=1)[batch.mask]


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_padded_batch_has_the_values_and_gradients_of_its_sentences(settings: dict[str, Any]) -> None:
    model, sentences = create(**settings), CORPUS.select(np.arange(6))
    together = model(sentences).log_probs
    single = torch.cat([model(sentences.select(np.array([number]))).log_probs for number in range(len(sentences))])
    torch.testing.assert_close(together, single)
    assert_same(gradients(model, together.sum()), gradients(model, single.sum()))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_batch_has_the_values_and_gradients_of_single_steps(settings: dict[str, Any]) -> None:
    model, sentences = create(**settings), CORPUS.select(np.arange(6))
    together, steps = model(sentences).log_probs, step_log_probs(model, sentences)
    torch.testing.assert_close(together, steps)
    assert_same(gradients(model, together.sum()), gradients(model, steps.sum()))


# -- streams -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
def test_segments_of_a_stream_equal_the_whole(cell: str) -> None:
    model = create(cell=cell, carries=True)
    (whole,) = TextStream.from_corpus(CORPUS, rows=2, steps=1000)
    expected = model(whole)
    parts, carry = [], None
    for segment in TextStream.from_corpus(CORPUS, rows=2, steps=7):
        output = model(segment, carry=carry)
        carry = output.carry
        parts.append(output.log_probs)
    torch.testing.assert_close(torch.cat(parts), expected.log_probs)
    assert carry is not None
    torch.testing.assert_close(carry[0][0], expected.carry[0][0])


def test_gradients_stop_between_segments() -> None:
    model = create(carries=True)
    first, second, *_ = TextStream.from_corpus(CORPUS, rows=2, steps=7)
    carry = model(first).carry
    assert not any(part.requires_grad for state in carry for part in state)
    assert model(second, carry=carry).log_probs.requires_grad


def test_a_stream_depends_on_the_sentence_before() -> None:
    text = Corpus.from_sentences(["a dog ran", "the cat sat"], CORPUS.vocab)
    other = Corpus.from_sentences(["the mat", "the cat sat"], CORPUS.vocab)
    for carries in (True, False):
        model = create(carries=carries)
        same = np.allclose(model.token_log_probs(text)[-4:], model.token_log_probs(other)[-4:], rtol=1e-12)
        assert same is not carries


def test_segments_have_every_word_once() -> None:
    words = CORPUS.ids_with_boundaries(starts=0)
    for rows, steps, start in ((1, 4, 0), (3, 5, 0), (4, 100, 11)):
        segments = TextStream.from_corpus(CORPUS, rows, steps, start)
        longest = len(words) // rows
        body = np.concatenate([segment.targets for segment in segments])
        np.testing.assert_array_equal(body.T.reshape(-1), np.roll(words, -start)[: rows * longest])
        read = np.concatenate([segment.inputs for segment in segments])
        np.testing.assert_array_equal(read[1:], body[:-1])
        assert (read[0] == END).all()


def test_words_of_a_segment_can_be_replaced_by_unknown_words() -> None:
    segment = TextStream.from_corpus(CORPUS, rows=2, steps=5)[0]
    replaced = np.zeros(segment.ids.shape, bool)
    replaced[2, 1] = True
    changed = segment.with_unknown(replaced)
    assert changed.targets[1, 1] == changed.inputs[2, 1] == UNK
    assert (changed.ids != segment.ids).sum() == 1


# -- dropout -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dropout", "embedding_dropout", "weight_dropout"])
def test_dropout_applies_in_training_only_and_uses_the_generator(name: str) -> None:
    model = create(**{name: 0.5})
    plain = create()(CORPUS).log_probs
    torch.testing.assert_close(model(CORPUS).log_probs, plain)
    model.train()
    dropped = [model(CORPUS, generator=torch.Generator().manual_seed(seed)).log_probs for seed in (1, 1, 2)]
    torch.testing.assert_close(dropped[0], dropped[1])
    assert not torch.allclose(dropped[0], dropped[2])
    assert not torch.allclose(dropped[0], plain)


def test_dropout_uses_the_global_generator_by_default() -> None:
    model = create(dropout=0.5).train()
    torch.manual_seed(1)
    first = model(CORPUS).log_probs
    torch.manual_seed(1)
    assert torch.equal(first, model(CORPUS).log_probs)


@pytest.mark.parametrize("variational", [True, False])
def test_variational_dropout_drops_the_same_elements_at_all_steps(variational: bool) -> None:
    model = create(embedding=50, hidden=50, dropout=0.5, variational=variational).train()
    h, _ = model.rnn(torch.ones(9, 2, 50, dtype=torch.float64), model.rnn.initial_states(2), torch.Generator())
    dropped = h == 0
    assert 0.3 < dropped.double().mean() < 0.7
    assert bool((dropped == dropped[:1]).all()) is variational
    assert not torch.equal(dropped[:, 0], dropped[:, 1])


def test_weight_dropout_drops_recurrent_weights_and_scales_the_others() -> None:
    layer = create(hidden=40, weight_dropout=0.5).train().rnn.layers[0]
    dropped = layer.weight_dropout(layer.recurrent.weight, torch.Generator().manual_seed(1))
    retained = dropped != 0
    assert 0.4 < retained.double().mean() < 0.6
    torch.testing.assert_close(dropped[retained], 2 * layer.recurrent.weight[retained])


# -- parameters --------------------------------------------------------------------------------------------------------


def test_the_forget_gate_starts_open() -> None:
    i, f, u, o = create(cell="lstm").rnn.layers[0].input.bias.chunk(4)
    assert (f == 1).all()
    assert not torch.cat([i, u, o]).any()


def test_residual_connections_add_the_input() -> None:
    """A layer of zeros has output 0, so the input is left."""
    model = create(cell="rnn", layers=2, residual=True)
    with torch.no_grad():
        for parameter in model.rnn.parameters():
            parameter.zero_()
    m = torch.randn(4, 2, 5, dtype=torch.float64)
    h, _ = model.rnn(m, model.rnn.initial_states(2))
    torch.testing.assert_close(h, m)


def test_residual_connections_need_layers_of_equal_length() -> None:
    with pytest.raises(DataError, match="embedding 5, hidden 6"):
        create(residual=True, hidden=6)


def test_a_learned_initial_state_is_learned() -> None:
    model = create(first_state="learned")
    fit(model, CORPUS, max_updates=3, learning_rate=0.1, threads=1)
    for name in ("h", "c"):
        assert model.state_dict()[f"rnn.layers.0.initial.{name}"].abs().min() > 0


# -- learning ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
def test_distant_words_are_remembered(cell: str) -> None:
    """The reflexive at the end depends on the first word."""
    fillers = [" ".join(pair) for pair in (("said", "that"), ("knew", "why"), ("heard", "how"))]
    lines = [f"{who} {' '.join([filler] * 2)} {who}self" for who in ("he", "she") for filler in fillers]
    corpus = Corpus.from_sentences(lines * 10)
    model = RecurrentModel.create(corpus, cell=cell, embedding=8, hidden=16, embedding_reach=1.0, dropout=0.0)
    fit(model, corpus, max_epochs=25, learning_rate=0.03, batch_size=60, clip=1.0, threads=1)
    log_probs = [sentence[-2].log_prob for sentence in model.score_words(lines)]
    assert float(np.mean(np.exp(log_probs))) > 0.95


@pytest.mark.parametrize("carries", [True, False])
def test_a_loaded_model_equals_the_saved_one(carries: bool, tmp_path: Path) -> None:
    model = create(carries=carries, layers=2, tied=True, softmax="frequency", first_state="learned")
    fit(model, CORPUS, CORPUS, max_epochs=2, batch_size=20, steps=5, output=tmp_path / "model", threads=1)
    loaded = dragoman.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.token_log_probs(CORPUS), model.token_log_probs(CORPUS))


def test_label_smoothing_adds_the_mean_over_all_words() -> None:
    for softmax in ("full", "frequency"):
        model, sentence = create(softmax=softmax), CORPUS.select(np.arange(1))
        plain = model(sentence).log_probs
        smoothed = model(sentence, label_smoothing=0.2).log_probs
        if softmax == "full":
            state = model.start(Batch.from_sentences(list(sentence)))
            means = []
            for word in [*sentence[0].tolist(), END]:
                log_probs = model.log_probs(state)[0]
                means.append(log_probs[log_probs.isfinite()].mean())
                state = model.advance(state, torch.tensor([word]))
            torch.testing.assert_close(smoothed, 0.8 * plain + 0.2 * torch.stack(means))
        assert not torch.allclose(plain, smoothed)


def test_averaged_parameters_are_the_mean_of_the_last_updates() -> None:
    history: list[dict[str, Tensor]] = []
    model = create()

    def record(event: Any) -> None:
        if isinstance(event, StepReport):
            history.append({name: tensor.detach().clone() for name, tensor in model.named_parameters()})

    fit(model, CORPUS, max_epochs=1, max_updates=8, batch_size=12, average=0.5, learning_rate=0.05, callback=record)
    assert len(history) == 8
    for name, tensor in model.named_parameters():
        expected = torch.stack([parameters[name] for parameters in history[4:]]).mean(0)
        torch.testing.assert_close(tensor.detach(), expected)
        assert not torch.equal(tensor, history[-1][name]) or not tensor.any()
