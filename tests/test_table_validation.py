"""Damaged tables of n-gram models raise an error before a kernel reads them."""

from __future__ import annotations

import numpy as np
import pytest

import dragoman
from dragoman import Corpus, DataError, NgramModel
from dragoman.io.storage import map_arrays, write_arrays
from dragoman.ngram.model import NgramConfig


@pytest.fixture
def saved(tmp_path):
    corpus = Corpus.from_sentences(["a b c", "a c b", "b a c a"])
    NgramModel.train(corpus, order=3, smoothing="witten-bell").save(tmp_path / "m")
    return tmp_path / "m"


def damage(saved, name, change):
    arrays = {key: np.array(array) for key, array in map_arrays(saved / "model.safetensors").items()}
    arrays[name] = change(arrays[name])
    write_arrays(saved / "model.safetensors", arrays)


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    {
        "a word outside the vocabulary": ("word", put(-1, 2**16 - 1)),
        "a word of another word's place": ("word", put(2, 4)),
        "a word in 32 bits outside the vocabulary": ("word", lambda word: put(-1, 2**31 - 1)(word.astype(np.int32))),
        "a word below 0": ("word", lambda word: put(-1, -5)(word.astype(np.int32))),
        "words out of order": ("word", lambda word: word[::-1].copy()),
        "children past the end": ("begin", put(3, 2**30)),
        "children before the beginning": ("begin", put(3, -7)),
        "a table cut short": ("log_prob", lambda table: table[:3]),
        "a table of another kind": ("word", lambda table: table.astype(np.float32)),
        "no number": ("log_prob", put(5, np.nan)),
        "a probability above one": ("log_prob", put(5, 5.0)),
        "a sentence start with a probability": ("log_prob", put(1, -8.0)),
        "a weight without end": ("log_backoff", put(2, np.inf)),
        "a codebook of another shape": ("codebook", lambda book: np.zeros((2, 256), np.float32)),
    }.values(),
)
def test_damaged_tables_raise_an_error(saved, name, change):
    damage(saved, name, change)
    with pytest.raises(DataError, match="broken model directory"):
        dragoman.load(saved)


@pytest.mark.parametrize(
    ("good", "bad"), [("gap: 0", "gap: 1000000000"), ("order: 3", "order: three"), ("- 0\n- 1", "- 0\n- 2")]
)
def test_damaged_settings_raise_an_error(saved, good, bad):
    config = saved / "config.yaml"
    assert good in config.read_text()
    config.write_text(config.read_text().replace(good, bad))
    with pytest.raises(DataError):
        dragoman.load(saved)


def test_undamaged_model_is_loaded(saved):
    assert dragoman.load(saved).score(["a b"]) == [pytest.approx(dragoman.load(saved).score("a b")[0])]


def test_models_of_earlier_versions_are_loaded(saved):
    """They have words in 32 bits, and suffixes, which are computed now: what the file says about them is ignored."""
    before = dragoman.load(saved)
    damage(saved, "word", lambda word: word.astype(np.int32))
    arrays = dict(map_arrays(saved / "model.safetensors"))
    for suffix in (before.table.trie.suffix, np.full(before.table.trie.nodes, 2**30, np.int32)):
        write_arrays(saved / "model.safetensors", {**arrays, "suffix": suffix})
        after = dragoman.load(saved)
        assert after.score(["a b c", "c x a"]) == before.score(["a b c", "c x a"])
        assert after.sample(3, seed=1) == before.sample(3, seed=1)
        assert after.table.trie.word.dtype == np.uint16


# -- words of another vocabulary ------------------------------------------------------------------------------------


def test_text_with_another_vocabulary_raises_an_error(saved):
    model = dragoman.load(saved)
    other = Corpus.from_sentences([" ".join(f"w{number}" for number in range(1000))])
    for ask in (model.token_log_probs, model.matched_orders, model.sentence_log_probs):
        with pytest.raises(DataError, match="another vocabulary"):
            ask(other)
    with pytest.raises(DataError, match="another vocabulary"):
        NgramModel.train(Corpus.from_sentences(["a b"]), smoothing="interpolated-fitted", order=2, heldout=other)


@pytest.mark.parametrize("word", [-1, 6, 50_000_000])
def test_invalid_ids_raise_an_error(saved, word):
    import torch

    from dragoman.data.batches import Batch

    model = dragoman.load(saved)
    with pytest.raises(ValueError, match="ids go from 0 to 5"):
        model.advance(model.start(Batch.empty(1)), torch.tensor([word]))


def test_settings_override_a_config_and_must_exist():
    corpus = Corpus.from_sentences(["a b", "b a"])
    model = NgramModel.train(corpus, NgramConfig(order=2, smoothing="katz"), smoothing="witten-bell")
    assert (model.settings.order, model.settings.smoothing) == (2, "witten-bell")
    with pytest.raises(DataError, match="did you mean 'smoothing'"):
        NgramModel.train(corpus, smothing="katz")
