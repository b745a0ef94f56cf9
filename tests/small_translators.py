"""Small translators in directories, for tests of the command line; one has memorised its training text."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from dragoman import fit
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.models.translator import Translator

NOUNS = {"hund": "dog", "katze": "cat", "vogel": "bird", "fisch": "fish"}
VERBS = {"schläft": "sleeps", "bellt": "barks", "singt": "sings", "schwimmt": "swims", "rennt": "runs"}
GERMAN = [f"der {noun} {verb} ." for noun in NOUNS for verb in VERBS]
ENGLISH = [f"the {NOUNS[noun]} {VERBS[verb]} ." for noun in NOUNS for verb in VERBS]
TREES = [f"(S (NP {a} {b}) (VP {c} {d}))" for a, b, c, d in map(str.split, GERMAN)]
SMALL = {"embedding": 16, "embedding_reach": 1.0, "hidden": 16, "dropout": 0.0}


@cache
def translators() -> dict[str, Translator]:
    """`one` has memorised its text, `two` has the same vocabulary and less training; the others are untrained.

    `other` has other words, `plain` no attention, `pieces` reads subwords and writes characters, `tree` reads trees.
    """
    source, target = Tokenizer.train("word", GERMAN), Tokenizer.train("word", ENGLISH)
    pairs = ParallelCorpus(source.encode(GERMAN), target.encode(ENGLISH))
    models = {
        name: Translator.create(pairs, source, target, seed=seed, **SMALL) for name, seed in (("one", 1), ("two", 2))
    }
    for name, epochs in (("one", 30), ("two", 12)):
        fit(models[name], pairs, max_epochs=epochs, learning_rate=0.02, batch_size=20)
    models["plain"] = Translator.create(pairs, source, target, attention="none", **SMALL)
    models["other"] = _untrained(Tokenizer.train("word", GERMAN[:10]), Tokenizer.train("word", ENGLISH[:10]))
    models["pieces"] = _untrained(Tokenizer.train("subword:40", GERMAN), Tokenizer.train("char", ENGLISH))
    trees = Tokenizer.train("word", TREES, format=TREE)
    tree_pairs = ParallelCorpus(trees.encode(TREES), target.encode(ENGLISH))
    models["tree"] = Translator.create(tree_pairs, trees, target, encoder="tree-lstm", **SMALL)
    return models


def _untrained(source: Tokenizer, target: Tokenizer) -> Translator:
    pairs = ParallelCorpus(source.encode(GERMAN), target.encode(ENGLISH))
    return Translator.create(pairs, source, target, **SMALL)


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained translator between characters."""
    path = tmp_path_factory.mktemp("letters") / "letters"
    _untrained(Tokenizer.train("char", GERMAN), Tokenizer.train("char", ENGLISH)).save(path)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with all translators and their texts."""
    directory = tmp_path_factory.mktemp("translators")
    for name, model in translators().items():
        model.save(directory / name)
    for name, lines in (("test.de", GERMAN), ("test.en", ENGLISH), ("test.tree", TREES)):
        (directory / name).write_text("".join(f"{line}\n" for line in lines))
    return directory
