"""Translators on disk: saving and loading, errors for damaged directories, and bit-identical resuming."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import dragoman
from dragoman import DataError, fit
from dragoman.core.defaults import SENTENCEPIECE_FILE
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.io.storage import (
    ARRAYS_FILE,
    CHECKPOINT_FILE,
    CONFIG_FILE,
    MODEL_DIRECTORY,
    SOURCE_PREFIX,
    SOURCE_VOCAB_FILE,
    TARGET_PREFIX,
    map_arrays,
    map_arrays_with_metadata,
    write_arrays,
)
from dragoman.models.loading import load_language_model, load_translator
from dragoman.models.translation import BaseTranslator
from dragoman.models.translator import Translator
from model_files import remove_digests
from training_helpers import PowerCut, Recorder, metrics
from zoo import HELD_OUT, SINGLE, TRAINING, bracketed, foreign, model, read_by, translator

RAW = ["The dog, which sees.", "A cat hears!", "Does it?", "The dog sees a cat.", "Yes, yes."] * 4
OTHER = [foreign(line) for line in RAW]
SMALL: dict[str, Any] = {"embedding": 4, "hidden": 6}


def sides(source: str, target: str) -> tuple[Tokenizer, Tokenizer, ParallelCorpus]:
    """Sides of some units, and the training text in them."""
    tree = source == TREE
    lines = [bracketed(line) for line in OTHER] if tree else OTHER
    source_tokenizer = Tokenizer.train("word" if tree else source, lines, min_count=1, format=TREE if tree else "text")
    target_tokenizer = Tokenizer.train(target, RAW, min_count=1)
    return (
        source_tokenizer,
        target_tokenizer,
        ParallelCorpus(source_tokenizer.encode(lines), target_tokenizer.encode(RAW)),
    )


UNITS = [("subword:40", "subword:45"), ("unigram:28", "char"), ("char", "word"), ("word", "subword:45"), (TREE, "word")]


@cache
def untrained(source: str = "subword:40", target: str = "subword:45") -> Translator:
    source_tokenizer, target_tokenizer, pairs = sides(source, target)
    encoder = "tree-lstm" if source == TREE else "bidirectional"
    return Translator.create(pairs, source_tokenizer, target_tokenizer, encoder=encoder, **SMALL)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    untrained().save(tmp_path / "model")
    return tmp_path / "model"


# -- saving and loading ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SINGLE)
def test_a_loaded_translator_gives_the_same_scores(name: str, tmp_path: Path) -> None:
    model: Translator = translator(name)
    model.save(tmp_path / "model")
    files = {path: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    loaded = dragoman.load(tmp_path / "model")
    assert type(loaded) is Translator
    assert loaded.settings == model.settings
    assert (loaded.vocab, loaded.source_vocab) == (model.vocab, model.source_vocab)
    lines = [read_by(model, line) for line in HELD_OUT]
    assert loaded.force_decode(lines, HELD_OUT) == model.force_decode(lines, HELD_OUT)
    assert loaded.translate(lines[0], length="prior") == model.translate(lines[0], length="prior")
    assert loaded.full_config() == model.full_config()
    assert {path: path.read_bytes() for path in (tmp_path / "model").iterdir()} == files


@pytest.mark.parametrize(("source", "target"), UNITS)
def test_units_and_vocabularies_are_saved(source: str, target: str, tmp_path: Path) -> None:
    model = untrained(source, target)
    model.save(tmp_path / "model")
    loaded = dragoman.load(tmp_path / "model")
    for side in ("source", "target"):
        tokenizer, other = getattr(model, side), getattr(loaded, side)
        assert other.config() == tokenizer.config()
        assert other.vocab == tokenizer.vocab
        assert other.segmenter.files() == tokenizer.segmenter.files()
    line = bracketed("YES, CAT. zebra") if source == TREE else "YES, CAT. zebra"
    assert loaded.target.segmenter.segment("Yes, a zebra.") == model.target.segmenter.segment("Yes, a zebra.")
    assert loaded.translate(line, max_words=6) == model.translate(line, max_words=6)
    np.testing.assert_array_equal(loaded.length_prior.pairs, model.length_prior.pairs)
    assert {path.name for path in (tmp_path / "model").iterdir()} <= MODEL_DIRECTORY.files


def test_the_tokenised_flag_is_saved_for_each_side(tmp_path: Path) -> None:
    tokenised = ["the dog , which sees .", "a cat hears !"] * 4
    source, target = Tokenizer.train("word", RAW[:8]), Tokenizer.train("word", tokenised)
    assert (source.tokenised, target.tokenised) == (False, True)
    pairs = ParallelCorpus(source.encode(RAW[:8]), target.encode(tokenised))
    Translator.create(pairs, source, target, **SMALL).save(tmp_path / "model")
    loaded = dragoman.load(tmp_path / "model")
    assert (loaded.source.tokenised, loaded.target.tokenised) == (False, True)


def test_training_is_recorded(tmp_path: Path) -> None:
    source_tokenizer, target_tokenizer, pairs = sides("word", "word")
    model = Translator.create(pairs, source_tokenizer, target_tokenizer, **SMALL)
    fit(model, pairs, output=tmp_path / "model", max_epochs=1, threads=1)
    config = yaml.safe_load((tmp_path / "model" / CONFIG_FILE).read_text())
    assert config["data"]["train"]["source"]["sentences"] == len(RAW)
    assert config["data"]["train"]["target"]["tokens"] == pairs.sizes.sum()
    dragoman.load(tmp_path / "model").save(tmp_path / "again")
    assert yaml.safe_load((tmp_path / "again" / CONFIG_FILE).read_text()) == config


def test_translators_and_language_models_are_loaded_separately(saved: Path, tmp_path: Path) -> None:
    assert isinstance(load_translator(saved), BaseTranslator)
    with pytest.raises(DataError, match=r"is a model of kind translator, not a language model; try dragoman translate"):
        load_language_model(saved)
    model("witten-bell, order 2").save(tmp_path / "ngram")
    with pytest.raises(DataError, match=r"is a model of kind ngram, not a translator; try dragoman score or next"):
        load_translator(tmp_path / "ngram")


# -- replaced ----------------------------------------------------------------------------------------------------------


def test_files_of_tokenizers_belong_to_a_model_directory() -> None:
    assert {
        SOURCE_PREFIX + SENTENCEPIECE_FILE,
        TARGET_PREFIX + SENTENCEPIECE_FILE,
        SOURCE_VOCAB_FILE,
    } <= MODEL_DIRECTORY.files


def test_a_translator_is_replaced_only_with_force(saved: Path) -> None:
    assert {SOURCE_PREFIX + SENTENCEPIECE_FILE, TARGET_PREFIX + SENTENCEPIECE_FILE, SOURCE_VOCAB_FILE} <= {
        path.name for path in saved.iterdir()
    }
    with pytest.raises(DataError, match=r"already contains a model; .*--force"):
        model("witten-bell, order 2").save(saved)
    model("witten-bell, order 2").save(saved, replace=True)
    assert dragoman.load(saved).kind == "ngram"
    assert not (saved / SOURCE_VOCAB_FILE).exists()
    untrained("char", "word").save(saved, replace=True)
    assert not (saved / (SOURCE_PREFIX + SENTENCEPIECE_FILE)).exists()
    assert dragoman.load(saved).source.segmenter.kind == "char"


def test_a_training_replaces_a_translator_with_force(saved: Path) -> None:
    source_tokenizer, target_tokenizer, pairs = sides("word", "word")
    model = Translator.create(pairs, source_tokenizer, target_tokenizer, **SMALL)
    with pytest.raises(DataError, match="--force"):
        fit(model, pairs, output=saved, max_epochs=1, threads=1)
    fit(model, pairs, output=saved, force=True, max_epochs=1, threads=1)
    assert dragoman.load(saved).source.segmenter.kind == "word"


def test_notes_beside_a_translator_are_not_lost(saved: Path) -> None:
    (saved / "source-notes.txt").write_text("years of work")
    with pytest.raises(DataError, match=r"contains other files"):
        untrained().save(saved, replace=True)
    assert (saved / "source-notes.txt").read_text() == "years of work"


# -- damaged -----------------------------------------------------------------------------------------------------------

Damage = Callable[[Path], Any]


def remove_file(name: str) -> Damage:
    return lambda path: (path / name).unlink()


def replace_file(name: str, content: bytes) -> Damage:
    return lambda path: (path / name).write_bytes(content)


def directory_at(name: str) -> Damage:
    def make(path: Path) -> None:
        (path / name).unlink()
        (path / name).mkdir()

    return make


def change_config(*place: str, value: Any = None) -> Damage:
    """config.yaml with another value somewhere, or without it."""

    def change(path: Path) -> None:
        config = yaml.safe_load((path / CONFIG_FILE).read_text())
        part = config
        for key in place[:-1]:
            part = part[key]
        part.pop(place[-1]) if value is None else part.update({place[-1]: value})
        (path / CONFIG_FILE).write_text(yaml.safe_dump(config))

    return change


def change_array(name: str, change: Callable[[np.ndarray], np.ndarray] | None) -> Damage:
    """model.safetensors with another array, or without it."""

    def write(path: Path) -> None:
        arrays = {key: np.array(value) for key, value in map_arrays(path / ARRAYS_FILE).items()}
        if change is None:
            del arrays[name]
        else:
            arrays[name] = change(arrays[name])
        write_arrays(path / ARRAYS_FILE, arrays)

    return write


DAMAGED: list[tuple[str, Damage, str]] = [
    ("no source vocabulary", remove_file(SOURCE_VOCAB_FILE), SOURCE_VOCAB_FILE),
    ("source vocabulary garbage", replace_file(SOURCE_VOCAB_FILE, b"\xff\xfe\x00"), SOURCE_VOCAB_FILE),
    ("source vocabulary empty", replace_file(SOURCE_VOCAB_FILE, b""), SOURCE_VOCAB_FILE),
    (
        "source vocabulary of others",
        replace_file(SOURCE_VOCAB_FILE, b"<s>\t0\n</s>\t0\n<unk>\t0\na\t1\n"),
        "source_embedding.weight does not fit",
    ),
    ("source vocabulary a directory", directory_at(SOURCE_VOCAB_FILE), SOURCE_VOCAB_FILE),
    ("no target vocabulary", remove_file("vocab.tsv"), "vocab.tsv: missing"),
    ("no source pieces", remove_file(SOURCE_PREFIX + SENTENCEPIECE_FILE), "sentencepiece.model is missing"),
    ("no target pieces", remove_file(TARGET_PREFIX + SENTENCEPIECE_FILE), "sentencepiece.model is missing"),
    (
        "source pieces garbage",
        replace_file(SOURCE_PREFIX + SENTENCEPIECE_FILE, b"garbage"),
        "sentencepiece.model: damaged",
    ),
    ("target pieces empty", replace_file(TARGET_PREFIX + SENTENCEPIECE_FILE, b""), "sentencepiece.model: damaged"),
    ("source pieces a directory", directory_at(SOURCE_PREFIX + SENTENCEPIECE_FILE), "sentencepiece.model"),
    ("no arrays", remove_file(ARRAYS_FILE), "missing"),
    ("arrays garbage", replace_file(ARRAYS_FILE, b"garbage"), "model.safetensors: damaged"),
    ("no such units", change_config("source", "units", value="syllable"), "unknown units 'syllable'"),
    ("units a number", change_config("source", "units", value=5), "units"),
    ("units a list", change_config("target", "units", value=["word"]), "units"),
    ("units automatic", change_config("target", "units", value="auto"), "auto"),
    ("no units", change_config("target", "units"), "'units' is missing"),
    ("no such format", change_config("source", "format", value="picture"), "format"),
    ("format of trees", change_config("source", "format", value="tree"), "reads plain text"),
    ("no format", change_config("source", "format"), "'format' is missing"),
    ("no source", change_config("source"), "'source' is missing"),
    ("source a word", change_config("source", value="word"), "broken model directory"),
    ("no model", change_config("model"), "'model' is missing"),
    ("no such encoder", change_config("model", "encoder", value="transformer"), "encoder"),
    ("encoder of trees", change_config("model", "encoder", value="tree-lstm"), "reads bracketed trees"),
    ("another size", change_config("model", "hidden", value=8), "does not fit the settings"),
    ("another attention", change_config("model", "attention", value="bilinear"), "does not fit the settings"),
    ("no unknown", change_config("unknown"), "'unknown' is missing"),
    (
        "matrix of another shape",
        change_array("decoder.context_input.weight", lambda W: W[:, :2]),
        "decoder.context_input.weight does not fit",
    ),
    (
        "no matrix",
        change_array("encoder.layers.0.left_to_right.recurrent.weight", None),
        "recurrent.weight does not fit",
    ),
    (
        "not a number",
        change_array("embedding.weight", lambda M: M * np.nan),
        "embedding.weight has values that are not finite",
    ),
    ("no length prior", change_array("length_prior.pairs", None), "is missing"),
    ("length prior of another shape", change_array("length_prior.pairs", lambda pairs: pairs[:, :2]), "length prior"),
    ("length prior below 0", change_array("length_prior.pairs", lambda pairs: -pairs), "length prior"),
]


@pytest.mark.parametrize(("damage", "message"), [case[1:] for case in DAMAGED], ids=[case[0] for case in DAMAGED])
def test_a_damaged_translator_is_refused_in_one_line(saved: Path, damage: Damage, message: str) -> None:
    remove_digests(saved)
    damage(saved)
    with pytest.raises(DataError) as refusal:
        dragoman.load(saved)
    assert message in str(refusal.value)
    assert str(saved) in str(refusal.value), "which directory it was"
    assert "\n" not in str(refusal.value)


# -- resumed -----------------------------------------------------------------------------------------------------------

DEV = 8  # pairs


@pytest.mark.parametrize("trees", [False, True], ids=["text", "trees"])
def test_a_killed_training_resumes_bit_identically(tmp_path: Path, trees: bool) -> None:
    """With dropout, label smoothing and averaging: everything that uses random numbers or state."""
    lines = [foreign(line) for line in TRAINING[:24]]
    source = Tokenizer.train(
        "word", [bracketed(x) for x in lines] if trees else lines, format=TREE if trees else "text"
    )
    target = Tokenizer.train("word", TRAINING[:24])
    whole_text = ParallelCorpus(
        source.encode([bracketed(x) for x in lines] if trees else lines), target.encode(TRAINING[:24])
    )
    pairs, dev = whole_text.select(np.arange(DEV, 24)), whole_text.select(np.arange(DEV))
    settings: dict[str, Any] = {
        "batch_size": 25,
        "pool": 2,
        "max_epochs": 3,
        "save_every": 2,
        "report_every": 1,
        "check_every": 3,
        "label_smoothing": 0.1,
        "average": 0.5,
        "clip": 1.0,
        "learning_rate": 0.02,
        "patience": 50,
        "threads": 1,
    }
    encoder = {"encoder": "tree-lstm"} if trees else {}

    def create_translator() -> Translator:
        shape = {"embedding": 5, "hidden": 6, "layers": 2, "readout": 4, "dropout": 0.3, "embedding_dropout": 0.2}
        return Translator.create(pairs, source, target, **shape, **encoder)

    def cut() -> None:
        raise PowerCut

    whole = create_translator()
    updates = fit(whole, pairs, dev, output=tmp_path / "whole", **settings).progress.update
    assert updates > 10
    for update in (1, 4, 7, updates - 1):
        with pytest.raises(PowerCut):
            fit(create_translator(), pairs, dev, output=tmp_path / "parts", callback=Recorder(update, cut), **settings)
        assert len(dragoman.load(tmp_path / "parts").vocab) == len(whole.vocab)
    parts = create_translator()
    assert not fit(parts, pairs, dev, output=tmp_path / "parts", **settings).already_finished
    for name, tensor in whole.named_parameters():
        assert torch.equal(tensor, parts.state_dict()[name]), name
    assert (tmp_path / "whole" / ARRAYS_FILE).read_bytes() == (tmp_path / "parts" / ARRAYS_FILE).read_bytes()
    first, second = (map_arrays_with_metadata(tmp_path / name / CHECKPOINT_FILE)[0] for name in ("whole", "parts"))
    assert first.keys() == second.keys()
    assert any(name.startswith("average/") for name in first)
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "parts")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("source", "another training text"),
        ("target", "another training text"),
        ("units", r"source\.units"),
        ("encoder", r"model\.encoder"),
    ],
)
def test_another_training_is_not_resumed(tmp_path: Path, change: str, message: str) -> None:
    source_tokenizer, target_tokenizer, pairs = sides("word", "word")
    fit(
        Translator.create(pairs, source_tokenizer, target_tokenizer, **SMALL),
        pairs,
        output=tmp_path / "model",
        max_epochs=1,
        threads=1,
    )
    settings = dict(SMALL)
    match change:
        case "source":
            pairs = ParallelCorpus(pairs.source.select(np.roll(np.arange(len(pairs)), 1)), pairs.target)
        case "target":
            pairs = ParallelCorpus(pairs.source, pairs.target.select(np.roll(np.arange(len(pairs)), 1)))
        case "units":
            source_tokenizer, target_tokenizer, pairs = sides("char", "word")
        case "encoder":
            settings["encoder"] = "forward"
    with pytest.raises(DataError, match=message):
        fit(
            Translator.create(pairs, source_tokenizer, target_tokenizer, **settings),
            pairs,
            output=tmp_path / "model",
            max_epochs=1,
            threads=1,
        )


@pytest.mark.parametrize("name", [SOURCE_VOCAB_FILE, SOURCE_PREFIX + SENTENCEPIECE_FILE])
def test_a_training_directory_without_a_file_is_not_resumed(tmp_path: Path, name: str) -> None:
    """It would train on, and at its end there would be no model."""
    source_tokenizer, target_tokenizer, pairs = sides("subword:40", "word")

    def cut() -> None:
        raise PowerCut

    settings: dict[str, Any] = {"output": tmp_path / "model", "max_epochs": 2, "batch_size": 40, "threads": 1}
    with pytest.raises(PowerCut):
        fit(
            Translator.create(pairs, source_tokenizer, target_tokenizer, **SMALL),
            pairs,
            callback=Recorder(2, cut),
            **settings,
        )
    (tmp_path / "model" / name).unlink()
    with pytest.raises(DataError, match="broken training directory; start again with --force"):
        fit(Translator.create(pairs, source_tokenizer, target_tokenizer, **SMALL), pairs, **settings)
