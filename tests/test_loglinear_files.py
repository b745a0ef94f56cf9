"""Files of log-linear models: user-defined features, and damaged files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import dragoman
from dragoman import Corpus, DataError, LogLinearModel, fit
from dragoman.io.storage import map_arrays, write_arrays
from dragoman.models.loglinear import features as notation
from zoo import CLASSES

FEATURES = "word1,word1+word2,class1+word3,suffix1,bag"
Arrays = dict[str, np.ndarray[Any, Any]]


@pytest.fixture(scope="module")
def saved(training: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model with pairs and windows."""
    model = LogLinearModel.create(training, features=FEATURES, classes=CLASSES, suffix_types=2)
    fit(model, training, optimizer="adagrad", learning_rate=0.3, max_updates=3)
    path = tmp_path_factory.mktemp("models") / "model"
    model.save(path)
    return path


def damaged(saved: Path, path: Path, damage: Callable[[Arrays], object]) -> Path:
    """Copy the model with changed arrays."""
    path.mkdir()
    for name in ("config.yaml", "vocab.tsv"):
        (path / name).write_bytes((saved / name).read_bytes())
    arrays = {name: np.array(array) for name, array in map_arrays(saved / "model.safetensors").items()}
    damage(arrays)
    write_arrays(path / "model.safetensors", arrays)
    return path


def put(name: str, index: int, value: int) -> Callable[[Arrays], None]:
    def damage(arrays: Arrays) -> None:
        arrays[name][index] = value

    return damage


def change(name: str, function: Callable[[Any], Any]) -> Callable[[Arrays], None]:
    def damage(arrays: Arrays) -> None:
        arrays[name] = function(arrays[name])

    return damage


def remove(name: str) -> Callable[[Arrays], object]:
    return lambda arrays: arrays.pop(name)


DAMAGES = {
    "fewer biases": change("bias", lambda a: a[:-1]),
    "fewer pairs": change("pairs", lambda a: a[:-1]),
    "fewer words": change("word", lambda a: a[:-1]),
    "fewer windows": change("windows", lambda a: a[:-1]),
    "fewer keys": change("keys", lambda a: a[:-1]),
    "fewer window starts": change("window_start", lambda a: a[:-1]),
    "short keys": change("keys", lambda a: a.astype(np.int32)),
    "square keys": change("keys", lambda a: a.reshape(1, -1)),
    "the same key twice": change("keys", lambda a: np.full_like(a, 7)),
    "words of another type": change("word", lambda a: a.astype(np.int64)),
    "a word past the vocabulary": put("word", 0, 99),
    "a pair with <s>": put("word", 0, 0),
    "a negative word": put("word", 0, -5),
    "words out of order": change("word", lambda a: np.ascontiguousarray(a[::-1])),
    "columns that do not start at 0": put("begin", 0, 1),
    "columns out of order": put("begin", 3, 10_000),
    "columns that end early": put("begin", -1, 3),
    "a window past the table": put("window_start", 0, 10_000_000),
    "a window before the table": put("window_start", 0, -2),
    "no windows": remove("windows"),
    "no pairs": remove("pairs"),
    "no keys": remove("keys"),
    "no names": remove("names.class"),
    "no classes": remove("values.class"),
    "names that are not a list": change("names.class", lambda a: np.frombuffer(b"17", np.uint8)),
    "names that are not JSON": change("names.class", lambda a: np.frombuffer(b"{", np.uint8)),
    "a class that does not exist": put("values.class", 4, 99),
    "a negative class": put("values.class", 4, -1),
    "fewer classes": change("values.class", lambda a: a[:-1]),
    "weights that are not finite": change("pairs", lambda a: np.full_like(a, np.nan)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_arrays_are_errors(damage: str, saved: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="model"):
        dragoman.load(damaged(saved, tmp_path / "model", DAMAGES[damage]))


def test_unchanged_copy_can_be_loaded(saved: Path, tmp_path: Path, held_out: Corpus) -> None:
    copy = dragoman.load(damaged(saved, tmp_path / "model", lambda arrays: None))
    np.testing.assert_array_equal(copy.token_log_probs(held_out), dragoman.load(saved).token_log_probs(held_out))


def test_invalid_settings_are_errors(saved: Path, tmp_path: Path) -> None:
    path = damaged(saved, tmp_path / "model", lambda arrays: None)
    config = yaml.safe_load((path / "config.yaml").read_text())
    for key, value in {"features": ["wrod1"], "weights": "some", "min_seen": 0, "colour": "red"}.items():
        broken = {**config, "model": {**config["model"], key: value}}
        (path / "config.yaml").write_text(yaml.safe_dump(broken))
        with pytest.raises(DataError, match="model"):
            dragoman.load(path)


def test_training_settings_are_saved(training: Corpus, tmp_path: Path) -> None:
    model = LogLinearModel.create(training, features="word1")
    fit(model, training, max_updates=2, output=tmp_path / "model")
    again = dragoman.load(tmp_path / "model")
    assert isinstance(again, LogLinearModel)
    assert again.training_metadata["training"]["max_updates"] == 2
    assert again.settings == model.settings


# -- user-defined features ------------------------------------------------------------------------------------

DEFINITIONS = """
from dragoman.models.loglinear.features import atom, feature

@atom("vowels")
def vowels(word):
    return sum(letter in "aeiou" for letter in word) or None

@feature("length")
def length(words):
    return [f"{len(words)} words"]
"""


@pytest.fixture
def feature_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of definitions that has not been loaded; definitions are removed afterwards."""
    monkeypatch.setattr(notation, "CUSTOM_ATOMS", {})
    monkeypatch.setattr(notation, "CUSTOM_FEATURES", {})
    path = tmp_path / "mine.py"
    path.write_text(DEFINITIONS)
    return path


def train_and_save(corpus: Corpus, features: str, path: Path) -> LogLinearModel:
    model = LogLinearModel.create(corpus, features=features)
    fit(model, corpus, optimizer="adagrad", learning_rate=0.3, max_updates=3)
    model.save(path)
    return model


def test_custom_atom_is_saved_as_a_table(
    feature_file: Path, training: Corpus, held_out: Corpus, tmp_path: Path
) -> None:
    notation.load_feature_file(feature_file)
    model = train_and_save(training, "vowels1+word2,vowels2", tmp_path / "model")
    notation.CUSTOM_ATOMS.clear()
    again = dragoman.load(tmp_path / "model")
    np.testing.assert_array_equal(again.token_log_probs(held_out), model.token_log_probs(held_out))
    assert again.explain("the bird sees").features[-1].feature == "vowels2=1"


def test_custom_feature_must_be_defined_again(
    feature_file: Path, training: Corpus, held_out: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notation.load_feature_file(feature_file)
    model = train_and_save(training, "word1,length", tmp_path / "model")
    log_probs = model.token_log_probs(held_out)
    notation.CUSTOM_FEATURES.clear()
    with pytest.raises(DataError, match=r"model: feature 'length': .* DRAGOMAN_FEATURES"):
        dragoman.load(tmp_path / "model")
    monkeypatch.setenv(notation.FEATURES_VARIABLE, str(feature_file))
    np.testing.assert_array_equal(dragoman.load(tmp_path / "model").token_log_probs(held_out), log_probs)


def test_custom_feature_sees_the_whole_sentence_in_states(feature_file: Path, training: Corpus, tmp_path: Path) -> None:
    from dragoman.evaluation.likelihood import folded_log_probs

    notation.load_feature_file(feature_file)
    model = train_and_save(training, "length", tmp_path / "model")
    np.testing.assert_allclose(folded_log_probs(model, training), model.token_log_probs(training), atol=1e-9)
    assert model.explain("the old dog").features[0].feature == "length: 3 words"
