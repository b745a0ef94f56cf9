"""Training on streams and in sorted batches: the order, the carry, and bit-identical resuming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dragoman import (
    Corpus,
    DataError,
    FeedForwardModel,
    LogLinearModel,
    NgramModel,
    RecurrentModel,
    TrainingConfig,
    fit,
)
from dragoman.data.batches import Segment
from dragoman.data.vocabulary import UNK
from dragoman.evaluation.dynamic_evaluation import DynamicEvaluation, dynamic_log_probs, dynamic_token_scores
from dragoman.evaluation.likelihood import token_log_probs
from dragoman.io.storage import map_arrays_with_metadata
from dragoman.training import loop
from dragoman.training.batch_order import STREAM, epoch_batches
from dragoman.training.fit import TrainingStarted
from dragoman.training.loop import StepReport, TrainState
from dragoman.training.progress import Progress
from dragoman.training.run_directory import load_checkpoint, write_checkpoint
from module_outputs import log_probs

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "then", "that", "dog", "ran", "off", "to", "it"]
RANDOM = np.random.default_rng(3)
CORPUS = Corpus.from_sentences([" ".join(RANDOM.choice(WORDS, size=RANDOM.integers(0, 12))) for _ in range(60)])
DEV = Corpus.from_sentences([" ".join(RANDOM.choice(WORDS, size=8)) for _ in range(15)], CORPUS.vocab)
SETTINGS: dict[str, Any] = {"batch_size": 40, "steps": 7, "max_epochs": 3, "learning_rate": 0.01, "threads": 1}


def create_model(**settings: Any) -> RecurrentModel:
    return RecurrentModel.create(CORPUS, **{"embedding": 6, "hidden": 6, "dropout": 0.2, **settings})


class StopError(Exception):
    """A training run that is killed."""


def stopped_at(update: int) -> Any:
    def report(event: TrainingStarted | StepReport) -> None:
        if isinstance(event, StepReport) and event.progress.update == update:
            raise StopError

    return report


def files(directory: Path) -> dict[str, bytes]:
    names = ("model.safetensors", "config.yaml", "training.safetensors")
    contents = {name: (directory / name).read_bytes() for name in names}
    position = b'"seconds"'
    assert position in contents["training.safetensors"].replace(b"\\", b"")
    return {name: contents[name] for name in names[:2]}


# -- resuming --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{"carries": True}, {"carries": True, "cell": "gru", "layers": 2, "weight_dropout": 0.3}, {"variational": True}],
    ids=["stream", "deep stream", "sentences"],
)
def test_a_killed_training_ends_as_if_it_had_not_been(settings: Any, tmp_path: Path) -> None:
    """Checkpoints are between evaluations, within an epoch, while parameters are being averaged."""
    training = {**SETTINGS, "average": 0.5, "save_every": 2, "pool": 2}
    whole, again = create_model(**settings), create_model(**settings)
    fit(whole, CORPUS, DEV, output=tmp_path / "whole", **training)
    for update in (4, 11, 16):
        with pytest.raises(StopError):
            fit(create_model(**settings), CORPUS, DEV, output=tmp_path / "cut", callback=stopped_at(update), **training)
    fitted = fit(again, CORPUS, DEV, output=tmp_path / "cut", **training)
    assert fitted.progress.update > 16
    for name, tensor in whole.named_parameters():
        assert torch.equal(tensor, again.state_dict()[name]), name
    assert files(tmp_path / "whole") == files(tmp_path / "cut")


def test_the_carry_is_part_of_the_checkpoint(tmp_path: Path) -> None:
    """Without it the next step would start from zeros and give other parameters."""
    with pytest.raises(StopError):
        fit(
            create_model(carries=True),
            CORPUS,
            output=tmp_path / "model",
            save_every=1,
            callback=stopped_at(3),
            **SETTINGS,
        )
    arrays = map_arrays_with_metadata(tmp_path / "model" / "training.safetensors")[0]
    carried = {name for name in arrays if name.startswith("carry/")}
    assert carried == {"carry/0.0", "carry/0.1"}
    assert all(arrays[name].shape == (40 // 7, 6) and arrays[name].any() for name in carried)


def test_a_loaded_carry_is_on_the_device_of_the_parameters(tmp_path: Path) -> None:
    def state(device: str, carry: Any = None) -> TrainState:
        model = torch.nn.Linear(2, 1, device=device)
        optimizer = torch.optim.SGD(model.parameters())
        return TrainState(model, optimizer, loop.copy_parameters(model), Progress(), [carry])

    write_checkpoint(tmp_path / "training", state("cpu", ((torch.ones(3),),)))
    load_checkpoint(loaded := state("meta"), tmp_path / "training")
    assert loaded.carries[0][0][0].device.type == "meta"


# -- order ------------------------------------------------------------------------------------------------------------


def test_each_epoch_of_a_stream_begins_elsewhere_and_repeats_by_its_seed() -> None:
    config = TrainingConfig(batch_size=20, steps=5, seed=2)
    first, again, second = (STREAM.epoch_batches(CORPUS, config, epoch)[0] for epoch in (0, 0, 1))
    np.testing.assert_array_equal(first.ids, again.ids)
    assert (first.ids != second.ids).any()
    assert first.targets.shape == (5, 4)


def test_rows_of_a_stream_can_be_given_as_such() -> None:
    config = TrainingConfig(batch_size=7, batch_by="sentences", steps=5)
    assert STREAM.epoch_batches(CORPUS, config, 0)[0].targets.shape == (5, 7)


def test_a_text_shorter_than_its_rows_is_one_word_a_row() -> None:
    config = TrainingConfig(batch_size=10**6, steps=5)
    (only,) = STREAM.epoch_batches(CORPUS, config, 0)
    assert only.targets.shape == (1, CORPUS.num_tokens)


def test_a_stream_is_never_read_at_once() -> None:
    with pytest.raises(DataError, match="batch_size 0"):
        fit(create_model(carries=True), CORPUS, batch_size=0)


@pytest.mark.parametrize("way", [{"carries": True}, {"label_smoothing": 0.1}])
def test_a_custom_objective_is_refused(way: dict[str, Any]) -> None:
    smoothing = way.get("label_smoothing", 0.0)
    with pytest.raises(DataError, match="a custom objective"):
        fit(
            create_model(carries="carries" in way),
            CORPUS,
            objective=lambda *_: torch.zeros(1),
            label_smoothing=smoothing,
        )


def padding(batches: list[np.ndarray], sizes: np.ndarray) -> float:
    """Share of padded places."""
    return 1 - sizes.sum() / sum(len(batch) * sizes[batch].max() for batch in batches)


@pytest.mark.parametrize("by_sentences", [True, False])
def test_pools_make_batches_of_like_length(by_sentences: bool) -> None:
    sizes = np.random.default_rng(1).integers(1, 40, size=1000)
    size = 10 if by_sentences else 200
    plain = epoch_batches(sizes, size, 1, 0, by_sentences=by_sentences)
    pooled = epoch_batches(sizes, size, 1, 0, by_sentences=by_sentences, pool=20)
    for batches in (plain, pooled):
        np.testing.assert_array_equal(np.sort(np.concatenate(batches)), np.arange(1000))
        counts = [len(batch) if by_sentences else sizes[batch].sum() for batch in batches]
        assert max(counts) <= size
    assert padding(pooled, sizes) < 0.1 < padding(plain, sizes)
    lengths = [sizes[batch].mean() for batch in pooled]
    assert lengths != sorted(lengths), "short and long batches are mixed"


def test_singletons_are_replaced_in_streams() -> None:
    rare = Corpus.from_sentences(["once upon a time", "the cat sat", "the cat sat"] * 1)
    model = RecurrentModel.create(rare, embedding=4, hidden=4, carries=True)
    read: list[Segment] = []
    model.register_forward_pre_hook(lambda module, arguments: read.append(arguments[0]))
    fit(model, rare, batch_size=40, max_epochs=30, threads=1)
    ids = np.concatenate([segment.ids.reshape(-1) for segment in read])
    once = [rare.vocab.id(word) for word in ("once", "upon", "a", "time")]
    forgotten, known = (ids == UNK).sum(), np.isin(ids, once).sum()
    assert 0.3 < forgotten / (forgotten + known) < 0.7
    assert (ids == rare.vocab.id("cat")).sum() == 60


# -- label smoothing is for networks -----------------------------------------------------------------------------------


def test_labels_of_other_models_are_not_smoothed() -> None:
    with pytest.raises(DataError, match="label smoothing is for neural networks"):
        fit(LogLinearModel.create(CORPUS, features="words-1"), CORPUS, label_smoothing=0.1)
    model = FeedForwardModel.create(CORPUS, order=2, embedding=4, hidden=(4,), seed=1)
    plain, smooth = (create_model(seed=1, cell="rnn"), create_model(seed=1, cell="rnn"))
    fit(model, CORPUS, label_smoothing=0.1, max_updates=1, threads=1)
    fit(plain, CORPUS, **SETTINGS)
    fit(smooth, CORPUS, label_smoothing=0.5, **SETTINGS)
    surest = [float(np.max([best.prob for best in network.next_words("the cat", k=1)])) for network in (plain, smooth)]
    assert surest[1] < surest[0]


# -- dynamic evaluation ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("carries", [True, False])
def test_dynamic_evaluation_does_not_change_the_model(carries: bool) -> None:
    model = create_model(carries=carries, dtype="float64")
    before = {name: tensor.clone() for name, tensor in model.named_parameters()}
    text = Corpus.from_sentences(["the cat sat on a mat"] * 40, CORPUS.vocab)
    still = token_log_probs(model, text)
    moving = dynamic_log_probs(model, text, DynamicEvaluation(rate=0.5))
    for name, tensor in model.named_parameters():
        assert torch.equal(tensor, before[name])
    assert moving.shape == still.shape
    np.testing.assert_allclose(moving[:7], still[:7], rtol=1e-9)  # before the first update
    assert moving[-70:].mean() > still[-70:].mean() + 0.1


def test_a_step_of_dynamic_evaluation_is_the_gradients() -> None:
    """After the first sentence the parameters are theta - rate * gradient, a little of the way back."""
    model = create_model(cell="rnn", dtype="float64", dropout=0.0)
    text = Corpus.from_sentences(["the cat sat", "a dog ran"], CORPUS.vocab)
    settings = DynamicEvaluation(rate=0.05, words=4, decay=0.1, clip=1e9)
    actual = dynamic_log_probs(model, text, settings)[4:]
    parameters = dict(model.named_parameters())
    trained = {name: tensor.detach().clone() for name, tensor in parameters.items()}
    loss = -model(text.select(np.array([0]))).log_probs.mean()
    gradients = torch.autograd.grad(loss, list(parameters.values()))
    with torch.no_grad():
        for (name, tensor), gradient in zip(parameters.items(), gradients, strict=True):
            tensor.copy_(0.9 * (trained[name] - 0.05 * gradient) + 0.1 * trained[name])
        expected = log_probs(model, text.select(np.array([1])))
    np.testing.assert_allclose(actual, expected, rtol=1e-10)


def test_dynamic_evaluation_needs_gradients_and_a_rate() -> None:
    ngram = NgramModel.train(CORPUS, order=2, smoothing="witten-bell")
    with pytest.raises(DataError, match="ngram models do not"):
        dynamic_log_probs(ngram, CORPUS, DynamicEvaluation(0.1))
    for rate in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(DataError, match="rate"):
            DynamicEvaluation(rate)


def test_unknown_words_include_their_spelling() -> None:
    model = create_model()
    text = Corpus.from_sentences(["the zebra sat"], CORPUS.vocab)
    scores = dynamic_token_scores(model, text, DynamicEvaluation(1e-6))
    assert scores.likelihood().unknown_words == 1
    assert scores.likelihood().log_likelihood_total == pytest.approx(model.score("the zebra sat")[0], rel=1e-5)


# -- errors that results would not show -------------------------------------------------------------------------------


@pytest.mark.parametrize("carries", [True, False])
def test_evaluation_uses_the_average_without_label_smoothing(carries: bool) -> None:
    """The reported best dev loss is that of the returned model on the dev text, which is one stream here."""
    assert DEV.num_tokens < 200, "a longer one would be read as several streams"
    model = create_model(carries=carries, dtype="float64")
    fitted = fit(model, CORPUS, DEV, average=0.6, label_smoothing=0.3, **SETTINGS)
    assert fitted.progress.averaged_steps > 3
    assert fitted.progress.best_update > 0.4 * fitted.progress.update, "the best model is one of the averages"
    assert fitted.progress.best_dev_loss == pytest.approx(-token_log_probs(model, DEV).mean(), rel=1e-12)


def test_every_epoch_begins_with_nothing_carried_over() -> None:
    model, carried = create_model(carries=True), []
    model.register_forward_pre_hook(
        lambda module, arguments, options: carried.append(options["carry"] is None), with_kwargs=True
    )
    fit(model, CORPUS, **SETTINGS)
    batches = len(STREAM.epoch_batches(CORPUS, TrainingConfig(batch_size=40, steps=7), 0))
    assert carried == [number % batches == 0 for number in range(3 * batches)]


def test_rolling_back_resets_the_average_and_the_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[Any] = []
    original = loop._compute_gradients

    def failing(learner: Any, *others: Any) -> Any:
        loss, norm, held = original(learner, *others)
        recorded[:] = [learner]
        return (float("inf") if learner.progress.update == 9 and not learner.progress.rolled_back else loss), norm, held

    def watch(event: Any) -> None:
        if isinstance(event, StepReport) and event.rolled_back:
            (learner,) = recorded
            states.append((learner.average, learner.carries, learner.progress.averaged_steps))
        elif isinstance(event, StepReport) and event.progress.update == 9:
            (learner,) = recorded
            before.append((len(learner.average), not learner.carries, learner.progress.averaged_steps))

    states: list[Any] = []
    before: list[Any] = []
    monkeypatch.setattr(loop, "_compute_gradients", failing)
    model = create_model(carries=True)
    fit(model, CORPUS, DEV, average=0.9, callback=watch, **SETTINGS)
    assert states == [({}, [], 0)]
    ((size, nothing, averaged),) = before
    assert size == len(list(model.parameters())) and not nothing and averaged > 3
