"""The public API: the names of the package, and their examples."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import dragoman

PUBLIC_NAMES = {
    *("Corpus", "ParallelCorpus", "Tokenizer", "Vocab"),
    *("NgramModel", "ClassNgramModel", "CacheModel", "LogLinearModel", "FeedForwardModel", "RecurrentModel"),
    *("Translator", "Mixture", "Ensemble", "Aligner"),
    *("TrainingConfig", "fit", "load", "evaluate", "bleu", "beam_search", "sample", "atom", "feature"),
    *("read_arpa", "write_arpa", "DragomanError", "DataError"),
}


def test_the_package_has_these_names() -> None:
    assert set(dragoman.__all__) == PUBLIC_NAMES == set(dragoman._MODULES)
    assert set(dir(dragoman)) >= PUBLIC_NAMES
    assert not hasattr(dragoman, "no_such_name")


@pytest.mark.parametrize("name", sorted(PUBLIC_NAMES))
def test_each_name_has_a_docstring_with_an_example(name: str) -> None:
    """`test_docstrings.py` runs the examples."""
    public = getattr(dragoman, name)
    assert public is getattr(import_module(dragoman._MODULES[name]), name)
    docstring = inspect.getdoc(public)
    assert docstring and doctest.DocTestParser().get_examples(docstring), f"{name}: add an example to its docstring"


def test_names_are_imported_on_first_use() -> None:
    code = (
        "import sys, dragoman; before = 'numpy' in sys.modules; dragoman.Vocab; print(before, 'numpy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True"]


def test_language_models_and_translators_are_evaluated_by_one_function() -> None:
    german, english = ["ein hund", "ein vogel"] * 2, ["a dog", "a bird"] * 2
    source, target = dragoman.Tokenizer.train("word", german), dragoman.Tokenizer.train("word", english)
    pairs = dragoman.ParallelCorpus(source.encode(german), target.encode(english))
    translator = dragoman.Translator.create(pairs, source, target, embedding=4, hidden=4)
    evaluation = dragoman.evaluate(translator, german, english)
    texts = [translation.text for translation in translator.translate(german)]
    assert evaluation.scores.bleu == dragoman.bleu(texts, english, tokenised=True)
    assert evaluation.perplexity == translator.likelihood(german, english).perplexity
    model = dragoman.NgramModel.train(dragoman.Corpus.from_sentences(english), order=2, smoothing="witten-bell")
    assert dragoman.evaluate(model, english).perplexity > 1
    with pytest.raises(dragoman.DataError, match="give both as text"):
        dragoman.evaluate(translator, german)  # type: ignore[call-overload]
    with pytest.raises(dragoman.DataError, match="references are for translators"):
        dragoman.evaluate(model, english, english)  # type: ignore[call-overload]
