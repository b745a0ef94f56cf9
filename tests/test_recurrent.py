"""Recurrent language models: batches, streams, noise, and what they learn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dragoman
from dragoman import Corpus, DataError, RecurrentModel, fit
from dragoman.core.scorer import fold
from dragoman.data.batches import Batch, TextStream
from dragoman.data.vocabulary import END, UNK
from dragoman.nn.cells import CELLS
from dragoman.training.loop import StepReport

SENTENCES = ["the cat sat on the mat", "a dog ran", "", "the dog that sat ran", "a cat", "the mat ran on a dog"]
CORPUS = Corpus.from_sentences(SENTENCES * 3)
SMALL: dict[str, Any] = {"embedding": 5, "hidden": 5, "precision": "float64", "dropout": 0.0}


def made(corpus: Corpus = CORPUS, **settings: Any) -> RecurrentModel:
    return RecurrentModel.create(corpus, **{**SMALL, **settings})


def gradients(model: RecurrentModel, loss: Callable[[], torch.Tensor]) -> dict[str, torch.Tensor]:
    parameters = model.parameters()
    for tensor in parameters.values():
        tensor.requires_grad_(True)
    try:
        found = torch.autograd.grad(loss(), list(parameters.values()), allow_unused=True)
    finally:
        for tensor in parameters.values():
            tensor.requires_grad_(False)
    return {
        name: torch.zeros_like(parameters[name]) if gradient is None else gradient
        for name, gradient in zip(parameters, found, strict=True)
    }


def assert_alike(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    for name in one:
        torch.testing.assert_close(one[name], other[name], msg=lambda told, name=name: f"{name}: {told}")


WAYS = {
    **{cell: {"cell": cell} for cell in CELLS},
    "deep": {"layers": 3, "residual": True, "first_state": "learned"},
    "tied": {"tied": True, "hidden": 7, "softmax": "frequency", "softmax_classes": 3},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_padded_batch_has_the_loss_and_gradient_of_its_sentences(way: str) -> None:
    model, sentences = made(**WAYS[way]), CORPUS.select(np.arange(6))
    together = model.batch_log_probs(sentences)
    alone = [model.batch_log_probs(sentences.select(np.array([number]))) for number in range(len(sentences))]
    torch.testing.assert_close(together, torch.cat(alone))

    def one_by_one() -> torch.Tensor:
        losses = [model.batch_log_probs(sentences.select(np.array([number]))) for number in range(len(sentences))]
        return torch.cat(losses).sum()

    assert_alike(gradients(model, lambda: model.batch_log_probs(sentences).sum()), gradients(model, one_by_one))


@pytest.mark.parametrize("way", WAYS)
def test_the_fold_over_padded_rows_has_the_same_gradient(way: str) -> None:
    """Rows padded with `</s>`, what is said there masked: the tutorial's way."""
    model, sentences = made(**WAYS[way]), CORPUS.select(np.arange(6))
    batch = Batch.from_sentences(list(sentences))
    assert (batch.ids[~batch.mask] == END).all()
    assert not batch.mask.all()
    folded = gradients(model, lambda: fold(model, batch)[0].sum())
    assert_alike(gradients(model, lambda: model.batch_log_probs(sentences).sum()), folded)


@pytest.mark.parametrize("cell", CELLS)
def test_a_stream_cut_into_segments_is_the_whole(cell: str) -> None:
    model = made(cell=cell, carries=True)
    (whole,) = TextStream.from_corpus(CORPUS, rows=2, steps=1000)
    expected, last = model.segment_log_probs(whole, None)
    parts, carry = [], None
    for segment in TextStream.from_corpus(CORPUS, rows=2, steps=7):
        log_probs, carry = model.segment_log_probs(segment, carry)
        parts.append(log_probs)
    torch.testing.assert_close(torch.cat(parts), expected)
    assert carry is not None
    torch.testing.assert_close(carry[0][0], last[0][0])


def test_the_gradient_stops_between_segments() -> None:
    model = made(carries=True)
    one, two, *_ = TextStream.from_corpus(CORPUS, rows=2, steps=7)
    _, carry = model.segment_log_probs(one, None)
    for tensor in model.parameters().values():
        tensor.requires_grad_(True)
    _, carry = model.segment_log_probs(one, None)
    assert not any(part.requires_grad for state in carry for part in state)
    log_probs, _ = model.segment_log_probs(two, carry)
    assert log_probs.requires_grad


def test_a_stream_remembers_and_sentences_do_not() -> None:
    text = Corpus.from_sentences(["a dog ran", "the cat sat"], CORPUS.vocab)
    other = Corpus.from_sentences(["the mat", "the cat sat"], CORPUS.vocab)
    for carries in (True, False):
        model = made(carries=carries)
        same = np.allclose(model.token_log_probs(text)[-4:], model.token_log_probs(other)[-4:], rtol=1e-12)
        assert same is not carries


def test_segments_hold_every_word_once() -> None:
    words = CORPUS.ids_with_boundaries(starts=0)
    for rows, steps, start in ((1, 4, 0), (3, 5, 0), (4, 100, 11)):
        segments = TextStream.from_corpus(CORPUS, rows, steps, start)
        longest = len(words) // rows
        body = np.concatenate([segment.targets for segment in segments])
        np.testing.assert_array_equal(body.T.reshape(-1), np.roll(words, -start)[: rows * longest])
        read = np.concatenate([segment.inputs for segment in segments])
        np.testing.assert_array_equal(read[1:], body[:-1])
        assert (read[0] == END).all()


def test_words_of_a_segment_can_be_made_unknown() -> None:
    segment = TextStream.from_corpus(CORPUS, rows=2, steps=5)[0]
    lost = np.zeros(segment.ids.shape, bool)
    lost[2, 1] = True
    changed = segment.with_unknown(lost)
    assert changed.targets[1, 1] == changed.inputs[2, 1] == UNK
    assert (changed.ids != segment.ids).sum() == 1


@pytest.mark.parametrize("name", ["dropout", "embedding_dropout", "weight_dropout"])
def test_noise_is_for_training_alone_and_comes_from_its_generator(name: str) -> None:
    model = made(**{name: 0.5})
    plain = made().batch_log_probs(CORPUS)
    torch.testing.assert_close(model.batch_log_probs(CORPUS), plain)
    noisy = [model.batch_log_probs(CORPUS, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    torch.testing.assert_close(noisy[0], noisy[1])
    assert not torch.allclose(noisy[0], noisy[2])
    assert not torch.allclose(noisy[0], plain)


@pytest.mark.parametrize("variational", [True, False])
def test_variational_dropout_leaves_out_the_same_at_every_step(variational: bool) -> None:
    model = made(embedding=50, hidden=50, dropout=0.5, variational=variational)
    h, _ = model.hidden(torch.ones(9, 2, 50, dtype=torch.float64), model.initial_states(2), torch.Generator())
    left_out = h == 0
    assert 0.3 < left_out.double().mean() < 0.7
    assert bool((left_out == left_out[:1]).all()) is variational
    assert not torch.equal(left_out[:, 0], left_out[:, 1])


def test_weights_are_left_out_once_for_all_steps() -> None:
    model = made(hidden=40, weight_dropout=0.5)
    W_h = model.layer(1, torch.Generator().manual_seed(1)).W_h
    kept = W_h != 0
    assert 0.4 < kept.double().mean() < 0.6
    torch.testing.assert_close(W_h[kept], 2 * model.parameters()["W_h1"][kept])


def test_the_forget_gate_starts_open() -> None:
    b = made(cell="lstm").parameters()["b_1"]
    i, f, u, o = b.chunk(4)
    assert (f == 1).all()
    assert not torch.cat([i, u, o]).any()


def test_residual_connections_add_what_comes_in() -> None:
    """With all recurrent matrices 0 and biases 0, a layer's h is 0: what is left is what came in."""
    model = made(cell="rnn", layers=2, residual=True)
    for name, tensor in model.parameters().items():
        if name.startswith(("W_x", "W_h", "b_1", "b_2")) and name != "W_hs":
            tensor.zero_()
    m = torch.randn(4, 2, 5, dtype=torch.float64)
    h, _ = model.hidden(m, model.initial_states(2))
    torch.testing.assert_close(h, m)


def test_residual_connections_need_layers_of_one_length() -> None:
    with pytest.raises(DataError, match="embedding 5, hidden 6"):
        made(residual=True, hidden=6)


def test_a_learned_first_state_is_learned() -> None:
    model = made(first_state="learned")
    fit(model, CORPUS, max_updates=3, learning_rate=0.1, threads=1)
    assert model.parameters()["h_01"].abs().min() > 0
    assert model.parameters()["c_01"].abs().min() > 0


def agreement(cell: str, seed: int) -> float:
    """How sure a small network becomes of the reflexive at the end, many words after what decides it."""
    fillers = [" ".join(pair) for pair in (("said", "that"), ("knew", "why"), ("heard", "how"))]
    rows = [f"{who} {' '.join([filler] * 2)} {who}self" for who in ("he", "she") for filler in fillers]
    corpus = Corpus.from_sentences(rows * 10)
    model = RecurrentModel.create(
        corpus, cell=cell, embedding=8, hidden=16, seed=seed, embedding_reach=1.0, dropout=0.0
    )
    fit(model, corpus, max_epochs=25, learning_rate=0.03, batch_size=60, clip=1.0, threads=1, seed=seed)
    log_probs = model.score_words(rows)
    return float(np.mean([np.exp(sentence[-2].log_prob) for sentence in log_probs]))


@pytest.mark.parametrize("cell", CELLS)
def test_what_was_read_long_ago_is_remembered(cell: str) -> None:
    assert agreement(cell, seed=1) > 0.95


@pytest.mark.parametrize("carries", [True, False])
def test_a_model_comes_back_from_disk(carries: bool, tmp_path: Path) -> None:
    model = made(carries=carries, layers=2, tied=True, softmax="frequency", first_state="learned")
    fit(model, CORPUS, CORPUS, max_epochs=2, batch_size=20, steps=5, output=tmp_path / "model", threads=1)
    back = dragoman.load(tmp_path / "model")
    np.testing.assert_array_equal(back.token_log_probs(CORPUS), model.token_log_probs(CORPUS))


def test_label_smoothing_asks_for_all_words_a_little() -> None:
    for softmax in ("full", "frequency"):
        model, one = made(softmax=softmax), CORPUS.select(np.arange(1))
        plain, smooth = model.batch_log_probs(one), model.batch_log_probs(one, None, 0.2)
        if softmax == "full":
            state = model.start(Batch.from_sentences(list(one)))
            every = []
            for word in [*one[0].tolist(), END]:
                log_probs = model.log_probs(state)[0]
                every.append(log_probs[log_probs.isfinite()].mean())
                state = model.advance(state, torch.tensor([word]))
            torch.testing.assert_close(smooth, 0.8 * plain + 0.2 * torch.stack(every))
        assert not torch.allclose(plain, smooth)


def test_the_mean_of_the_last_parameters_is_what_is_kept() -> None:
    seen: list[dict[str, torch.Tensor]] = []
    model = made()

    def watch(event: Any) -> None:
        if isinstance(event, StepReport):
            seen.append({name: tensor.detach().clone() for name, tensor in model.parameters().items()})

    fit(model, CORPUS, max_epochs=1, max_updates=8, batch_size=12, average=0.5, learning_rate=0.05, callback=watch)
    assert len(seen) == 8
    for name, tensor in model.parameters().items():
        expected = torch.stack([parameters[name] for parameters in seen[4:]]).mean(0)
        torch.testing.assert_close(tensor, expected)
        assert not torch.equal(tensor, seen[-1][name]) or not tensor.any()
