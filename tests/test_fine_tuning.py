"""Training of a model that was trained before: frozen parts, replay of old text, what the new model records."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import dragoman
from dragoman import Corpus, DataError, LogLinearModel, RecurrentModel, fit
from dragoman.data.concatenation import concatenate, concatenate_pairs
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.trees import Treebank
from dragoman.io.storage import CHECKPOINT_FILE, CONFIG_FILE, map_arrays_with_metadata
from dragoman.models.translator import Translator
from dragoman.training.batch_order import SENTENCES, STREAM
from dragoman.training.config import TrainingConfig
from dragoman.training.fine_tuning import module_names, replay_indices, with_replay
from small_translators import ENGLISH, GERMAN, translators
from training_helpers import CORPUS, DEV, ONE_THREAD, PowerCut, Recorder, assert_same, metrics, network, parameters
from zoo import HELD_OUT, LANGUAGE

NEW = Corpus.from_sentences(["a bird hears the dog !", "the cat sees a bird .", "yes the bird !"] * 5, LANGUAGE)
QUICK: dict[str, Any] = {"batch_size": 30, "max_epochs": 2, "learning_rate": 0.02, **ONE_THREAD}


def trained(**settings: Any) -> Any:
    model = network(**settings)
    fit(model, CORPUS, DEV, **QUICK)
    return model


def pairs_for(model: Translator) -> ParallelCorpus:
    return ParallelCorpus(model.source.encode(GERMAN), model.target.encode(ENGLISH))


# -- frozen parts ------------------------------------------------------------------------------------------------------


def translator_and_pairs() -> tuple[Translator, ParallelCorpus]:
    translator = copy.deepcopy(translators()["one"])
    return translator, pairs_for(translator)


FROZEN: dict[str, tuple[Callable[[], tuple[torch.nn.Module, Any]], tuple[str, ...]]] = {
    "feed-forward": (lambda: (network(dropout=0.2), CORPUS), ("embedding",)),
    "recurrent": (
        lambda: (RecurrentModel.create(CORPUS, embedding=4, hidden=5, carries=True), CORPUS),
        ("rnn", "output.bias"),
    ),
    "log-linear": (
        lambda: (LogLinearModel.create(CORPUS, features="word1,word1+word2", weights="seen"), CORPUS),
        ("bias",),
    ),
    "translator": (translator_and_pairs, ("encoder", "source_embedding", "decoder.attention")),
    "decoder": (translator_and_pairs, ("decoder", "embedding", "output")),
}  # functions that create a model and its data, and the parts that are frozen


@pytest.mark.parametrize("name", FROZEN)
@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_frozen_parameters_are_unchanged_and_all_others_are_trained(name: str, optimizer: str) -> None:
    create, freeze = FROZEN[name]
    model, data = create()
    before = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}
    settings: dict[str, Any] = {**QUICK, "optimizer": optimizer, "l2": 0.1, "average": 0.5, "steps": 5}
    if optimizer == "adam":
        settings["l1"] = 0.1
    recorder = Recorder()
    fit(model, data, freeze=freeze, callback=recorder, **settings)
    sizes = {True: 0, False: 0}
    for path, tensor in model.named_parameters():
        is_frozen = any(path == part or path.startswith(f"{part}.") for part in freeze)
        sizes[is_frozen] += tensor.numel()
        assert torch.equal(tensor, before[path]) == is_frozen, path
        assert tensor.requires_grad
    assert recorder.started is not None
    assert (recorder.started.frozen_parameters, recorder.started.parameters) == (sizes[True], sizes[False])


def test_a_frozen_part_changes_nothing_in_the_computation_of_the_others() -> None:
    """One step of gradient descent is the same for the parts that are trained."""
    settings = {"optimizer": "sgd", "batch_size": 0, "max_epochs": 1, "unknown_rate": 0.0, **ONE_THREAD}
    whole, part = network(), network()
    fit(whole, CORPUS, **settings)
    fit(part, CORPUS, freeze=("mlp",), **settings)
    for name, tensor in parameters(part).items():
        assert np.array_equal(tensor, parameters(whole)[name]) == (not name.startswith("mlp")), name


def test_a_wrong_name_lists_the_names(tmp_path: Path) -> None:
    assert module_names(network()) == ["embedding", "mlp", "output"]
    with pytest.raises(DataError, match=r"'encoder'.* no such part; it has embedding, mlp, output$"):
        fit(network(), CORPUS, freeze=("embedding", "encoder"), output=tmp_path / "model", **QUICK)
    assert not (tmp_path / "model").exists()
    with pytest.raises(DataError, match="nothing is left to train"):
        fit(network(), CORPUS, freeze=("embedding", "mlp", "output"), **QUICK)


# -- replay ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("old", [7, 1000])
@pytest.mark.parametrize("contiguous", [False, True])
def test_the_share_of_old_examples_is_as_promised(share: float, old: int, contiguous: bool) -> None:
    epochs = [replay_indices(200, old, share, 1, epoch, contiguous=contiguous) for epoch in range(3)]
    for indices in epochs:
        assert indices[:200].tolist() == list(range(200))  # every new example once
        drawn = indices[200:] - 200
        assert abs(len(drawn) / len(indices) - share) < 0.005
        counts = np.bincount(drawn, minlength=old)
        assert len(counts) == old
        assert counts.max() - counts.min() <= 1  # none is repeated before all were drawn
        if contiguous:
            assert set(np.diff(drawn) % old) == {1}
    assert old == 7 or not np.array_equal(epochs[0], epochs[1])
    assert np.array_equal(epochs[1], replay_indices(200, old, share, 1, 1, contiguous=contiguous))


@pytest.mark.parametrize("order", [SENTENCES, STREAM])
def test_an_epoch_has_all_new_sentences_and_a_sample_of_the_old_ones(order: Any) -> None:
    old = Corpus.from_sentences([f"the dog {'sees ' * number}." for number in range(1, 100)], LANGUAGE)
    both, mixed = with_replay(NEW, old, order)
    assert isinstance(both, Corpus)
    assert both.sentences_as_text() == NEW.sentences_as_text() + old.sentences_as_text()
    batches = mixed.epoch_batches(both, TrainingConfig(replay_share=0.25, batch_size=40), 3)
    if order is SENTENCES:
        read = [line for number in range(len(batches)) for line in batches[number].sentences_as_text()]  # type: ignore[attr-defined]
        assert len(read) == 20
        assert sorted(read)[:15] != sorted(NEW.sentences_as_text())
        assert sum(line in set(NEW.sentences_as_text()) for line in read) == 15
    else:
        assert sum(int(batches[number].sizes.sum()) for number in range(len(batches))) > NEW.num_tokens


def test_concatenated_texts_keep_spellings_trees_and_alignments() -> None:
    vocab = Corpus.from_sentences(["the cat"]).vocab
    first, second = (Corpus.from_sentences(lines, vocab) for lines in (["a cat", "bird a"], ["the bird", "", "fish a"]))
    both = concatenate(first, second)
    assert both.sentences_as_text() == ["a cat", "bird a", "the bird", "", "fish a"]
    assert sorted(both.spellings) == ["a", "bird", "fish"]
    trees = [Treebank.from_lines(lines, vocab) for lines in (["(S the cat)"], ["(S (NP the cat) sat)", ""])]
    joined = concatenate(*trees)
    assert isinstance(joined, Treebank)
    assert [joined.phrases(number) for number in range(3)] == [
        trees[0].phrases(0),
        trees[1].phrases(0),
        trees[1].phrases(1),
    ]
    with pytest.raises(DataError, match="trees"):
        concatenate(trees[0], first)
    pairs = concatenate_pairs(ParallelCorpus(first, first), ParallelCorpus(second, second))
    assert len(pairs) == 5
    assert pairs.alignments is None


def test_both_dev_texts_are_reported_and_the_new_one_selects(tmp_path: Path) -> None:
    model, recorder = trained(), Recorder()
    old_loss = -float(np.mean(model.token_log_probs(DEV)))
    settings = {**QUICK, "max_epochs": 4, "learning_rate": 0.05}
    result = fit(
        model, NEW, NEW, replay=CORPUS, replay_dev=DEV, callback=recorder, output=tmp_path / "model", **settings
    )
    assert recorder.started is not None
    assert recorder.started.replay_dev_loss == pytest.approx(old_loss, rel=1e-5)
    evaluated = [report for report in recorder.reports if report.evaluated]
    assert len(evaluated) == 4
    assert all(report.replay_dev_loss is not None for report in evaluated)
    best = min(evaluated, key=lambda report: report.dev_loss or 0.0)
    assert result.progress.best_update == best.progress.update
    assert -float(np.mean(model.token_log_probs(DEV))) == pytest.approx(best.replay_dev_loss, rel=1e-5)
    recorded = [line["replay_dev_loss"] for line in metrics(tmp_path / "model") if "dev_loss" in line]
    assert recorded == [report.replay_dev_loss for report in evaluated]


def test_replay_needs_data_of_the_same_kind_and_vocabulary() -> None:
    with pytest.raises(DataError, match="another vocabulary"):
        fit(network(), NEW, replay=Corpus.from_sentences(["other words"]), **QUICK)
    with pytest.raises(DataError, match="text is empty"):
        fit(network(), NEW, replay=Corpus.from_sentences([], LANGUAGE), **QUICK)


# -- training further --------------------------------------------------------------------------------------------------


def test_a_training_that_does_not_improve_leaves_the_model_as_it_was() -> None:
    model = trained()
    before = parameters(model)
    result = fit(model, NEW, DEV, optimizer="sgd", learning_rate=5.0, patience=2, clip=1.0, **ONE_THREAD)
    assert result.progress.best_update == 0
    assert_same(parameters(model), before)


def test_a_training_further_resumes_to_the_bit_and_knows_its_initial_model(tmp_path: Path) -> None:
    trained(dropout=0.3).save(tmp_path / "old")
    settings: dict[str, Any] = {**QUICK, "max_epochs": 4, "save_every": 3, "freeze": ("embedding",)}

    def run(name: str, callback: Recorder | None = None, **changes: Any) -> Any:
        model = dragoman.load(tmp_path / changes.pop("base", "old"))
        texts = {"replay": CORPUS, "replay_dev": DEV, **changes}
        fit(model, NEW, NEW, output=tmp_path / name, callback=callback, **texts, **settings)
        return model

    def stop() -> None:
        raise PowerCut

    whole = run("whole")
    for update in (1, 2, 4, 5):
        with pytest.raises(PowerCut):
            run("parts", Recorder(update, stop))
    assert_same(parameters(run("parts")), parameters(whole))
    first, second = (map_arrays_with_metadata(tmp_path / name / CHECKPOINT_FILE)[0] for name in ("whole", "parts"))
    assert_same(first, second)
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "parts")
    with pytest.raises(DataError, match="another old text to replay"):
        run("parts", replay=NEW)
    other = network(dropout=0.3)
    fit(other, CORPUS, **QUICK)
    other.save(tmp_path / "other")
    with pytest.raises(DataError, match="another initial model"):
        run("parts", base="other")


def test_config_and_card_name_the_texts_of_all_trainings(tmp_path: Path) -> None:
    model = trained()
    fit(model, NEW, **QUICK)
    fit(model, CORPUS, output=tmp_path / "model", **QUICK)
    config = yaml.safe_load((tmp_path / "model" / CONFIG_FILE).read_text())
    texts = [entry["train"]["sentences"] for entry in config["trained_from"]]
    assert texts == [len(CORPUS), len(NEW)]
    card = (tmp_path / "model" / "README.md").read_text()
    assert "## Trained from" in card
    assert card.index("training 1, train") < card.index("training 2, train")
    reloaded = dragoman.load(tmp_path / "model")
    assert reloaded.score(HELD_OUT) == model.score(HELD_OUT)
    assert reloaded.training_metadata["trained_from"] == config["trained_from"]


def test_the_example_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[1] / "docs" / "guides" / "training.md").read_text(encoding="utf-8")
    section = guide.partition("## Fine-tune a model")[2].partition("\n## ")[0]
    code = section.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    for name, corpus in (("train", CORPUS), ("dev", DEV), ("new", NEW), ("new-dev", NEW)):
        Path(f"{name}.txt").write_text("".join(f"{line} zebra\n" for line in corpus.sentences_as_text()))
    fit(RecurrentModel.create(CORPUS, embedding=4, hidden=5), CORPUS, output="lstm", **QUICK)
    exec(compile(code, "training.md", "exec"), {})
    old, new = dragoman.load("lstm"), dragoman.load("lstm-new")
    assert new.vocab.tokens == (*old.vocab.tokens, "zebra")
    assert torch.equal(new.embedding.weight[: len(old.vocab)], old.embedding.weight)
    assert len(new.training_metadata["trained_from"]) == 1
