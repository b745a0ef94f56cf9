"""Golden tests: numbers and texts that a refactoring must not change.

The expected values are in `tests/golden/`. They cover initial parameters, training losses, translations, language
model scores and ARPA files. All models use float64 and one thread, so results are reproducible within rounding.

After a deliberate change of behavior, regenerate the files and review the difference:

    PYTHONPATH=src python tests/test_golden.py --write
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import math
import sys
import tempfile
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import dragoman
from dragoman import Corpus
from dragoman.align.aligner import Aligner
from dragoman.align.shortlist import Shortlist
from dragoman.combine.shortlist import ShortlistScorer
from dragoman.data.alignments import WordAlignments
from dragoman.data.brown import brown_clusters
from dragoman.data.corpus import BidirectionalCorpus
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.models.two_way import TwoWayTranslator
from dragoman.ngram.smoothing import FITTED_SMOOTHINGS, SMOOTHINGS
from dragoman.ngram.spelling import SpellingModel
from dragoman.training.loop import StepReport
from golden_text import (
    DEV_ENGLISH,
    ENGLISH,
    LINKS,
    TEST_ENGLISH,
    TEST_GERMAN,
    TEST_TREES,
    WORD_CLASSES,
    english,
    parallel,
    sides,
)

GOLDEN = Path(__file__).parent / "golden"
PARAMETERS_RTOL = 1e-9
LOSS_RTOL = 1e-7
SCORE_RTOL = 1e-6
UPDATES = 20


# -- models ------------------------------------------------------------------------------------------------------------

SMALL = {"embedding": 6, "embedding_reach": 0.5, "hidden": 8}


def read_settings(kind: str) -> dict[str, dict[str, Any]]:
    """Return the settings of the models of one kind by their names."""
    settings = yaml.safe_load((GOLDEN / "models.yaml").read_text(encoding="utf-8"))[kind]
    return {
        name: {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
        for name, options in settings.items()
    }


FEED_FORWARD, RECURRENT = read_settings("feed_forward"), read_settings("recurrent")
LOG_LINEAR, TRANSLATORS = read_settings("log_linear"), read_settings("translators")
TWO_WAY, TRAINING = read_settings("two_way"), read_settings("training")
TRAINABLE = [*FEED_FORWARD, *RECURRENT, *LOG_LINEAR, *TRANSLATORS, *TWO_WAY]
# The default precision draws its random numbers differently.
SINGLE_PRECISION = ["feed-forward", "recurrent, gru", "log-linear, words", "bidirectional, mlp, all priors"]


def create(name: str, seed: int = 1, **options: Any) -> tuple[Any, Any]:
    """Create the untrained model of this name. Return it with its training data."""
    options = {"dtype": "float64", **options}
    if name in FEED_FORWARD:
        options = {**SMALL, "dropout": 0.2, "embedding_dropout": 0.1, **FEED_FORWARD[name], **options}
        return dragoman.FeedForwardModel.create(english(), seed=seed, **options), english()
    if name in RECURRENT:
        options = {**SMALL, "dropout": 0.2, "embedding_dropout": 0.1, **RECURRENT[name], **options}
        return dragoman.RecurrentModel.create(english(), seed=seed, **options), english()
    if name in LOG_LINEAR:
        options = {"dropout": 0.2, **LOG_LINEAR[name], **options}
        return dragoman.LogLinearModel.create(english(), classes=WORD_CLASSES, **options), english()
    shape = {**SMALL, "dropout": 0.2, "embedding_dropout": 0.1}
    if name in TWO_WAY:
        source, target = sides()
        pairs = parallel(BidirectionalCorpus, source, target)
        model = TwoWayTranslator.create(pairs, source, target, seed=seed, **{**shape, **TWO_WAY[name], **options})
        return model, pairs
    settings = {**shape, **TRANSLATORS[name], **options}
    if settings["encoder"] == "convolutional":
        settings["filters"] = 7
    source, target = sides(trees=settings["encoder"] in ("recursive", "tree-lstm"))
    links = {"alignments": WordAlignments.from_lists(LINKS)} if settings.get("supervision") else {}
    pairs = parallel(dragoman.ParallelCorpus, source, target, **links)
    return dragoman.Translator.create(pairs, source, target, seed=seed, **settings), pairs


def fit_quietly(model: Any, data: Any, **options: Any) -> list[Any]:
    """Train the model in place and return what the report callback got after each update."""
    events: list[Any] = []
    settings = {"batch_size": 25, "threads": 1, "learning_rate": 0.02, **options}
    dev = settings.pop("dev", None)
    dragoman.fit(model, data, dev, callback=events.append, **settings)
    return [event for event in events if isinstance(event, StepReport)]


# -- measurements ------------------------------------------------------------------------------------------------------


@cache
def initial_parameters() -> dict[str, Any]:
    """Return shape, sum and sum of squares of each initial parameter, in the order of creation."""

    def describe(name: str, **options: Any) -> list[dict[str, Any]]:
        model, _ = create(name, seed=3, **options)
        parameters = []
        for parameter_name, tensor in model.named_parameters():
            values = tensor.detach().double()
            parameters.append(
                {
                    "name": parameter_name,
                    "shape": list(values.shape),
                    "sum": float(values.sum()),
                    "sum_of_squares": float(values.square().sum()),
                }
            )
        return parameters

    doubles = {name: describe(name) for name in TRAINABLE}
    singles = {f"{name}, float32": describe(name, dtype="float32") for name in SINGLE_PRECISION}
    return doubles | singles


def training_losses(name: str) -> dict[str, Any]:
    """Return the losses and learning rates of the first updates, and a checksum of the parameters after them."""
    model, data = create(name)
    settings = {"schedule": "cosine", "warmup": 3, "max_updates": UPDATES, "max_epochs": 100, **TRAINING.get(name, {})}
    if settings.get("dev"):
        settings["dev"] = Corpus.from_sentences(DEV_ENGLISH, english().vocab)
    events = fit_quietly(model, data, **settings)
    trained = sum(float(tensor.detach().double().square().sum()) for tensor in model.parameters())
    return {
        "losses": [event.loss for event in events],
        "rates": [event.learning_rate for event in events],
        "dev_losses": [event.dev_loss for event in events if event.dev_loss is not None],
        "sum_of_squares_after": trained,
    }


SEARCHED = {
    "mlp": "bidirectional, mlp",
    "lexicon": "bidirectional, mlp, lexicon",
    "all priors": "bidirectional, mlp, all priors",
    "no attention": "reverse, none, two layers, copy",
    "class softmax": "forward, dot, Brown classes",
    "tree": "tree-lstm, mlp, two layers",
    "subwords to characters": "",
    "ensemble": "",
    "with language model": "",
    "shortlist": "",
}


@cache
def trained_translator(name: str, seed: int = 1) -> Any:
    """Return a translator that has learned enough to translate, but not perfectly."""
    if name == "subwords to characters":
        source, target = sides("subword:40", "char")
        pairs = parallel(dragoman.ParallelCorpus, source, target)
        options = {**SMALL, "hidden": 12, "dtype": "float64", "dropout": 0.0}
        model = dragoman.Translator.create(pairs, source, target, **options)
        fit_quietly(model, pairs, max_updates=15, batch_size=150, learning_rate=0.03)
        return model
    if name == "ensemble":
        return dragoman.Ensemble([trained_translator("mlp"), trained_translator("mlp", seed=2)])
    if name == "with language model":
        ngram = train_ngram(corpus=Corpus.from_sentences(ENGLISH, sides()[1].vocab), order=2)
        return dragoman.Ensemble([trained_translator("mlp"), ngram], [1.0, 0.3], "log-linear")
    if name == "shortlist":
        pairs = parallel(dragoman.ParallelCorpus, *sides())
        lexicon = Aligner.train(pairs, "ibm1").forward.lexicon
        shortlist = Shortlist.from_lexicon(lexicon, pairs.source.vocab, pairs.target.vocab, 4, 3)
        return ShortlistScorer(trained_translator("lexicon"), shortlist)
    model, pairs = create(SEARCHED[name], seed=seed, hidden=12, embedding=8, embedding_reach=1.0)
    fit_quietly(model, pairs, max_updates=16, max_epochs=100, batch_size=100, learning_rate=0.06)
    return model


FULLY_SEARCHED = ("mlp", "no attention", "ensemble")  # with every option of the search
LENGTH_HANDLINGS = ("none", "norm", "prior", "penalty", "penalty:0.8")


def translations(name: str) -> dict[str, Any]:
    model = trained_translator(name)
    lines = TEST_TREES if name == "tree" else TEST_GERMAN
    plain = {"allow_repetition": True, "verbatim": True}

    def as_dicts(hypotheses: Iterable[Any]) -> list[dict[str, Any]]:
        fields = ("text", "log_prob", "score", "finished")
        return [{field: getattr(hypothesis, field) for field in fields} for hypothesis in hypotheses]

    def translate(lines: list[str] = lines, **options: Any) -> list[dict[str, Any]]:
        return as_dicts(model.translate(lines, **plain, **options))

    def with_attention(hypothesis: Any) -> dict[str, Any]:
        attention = None if hypothesis.attention is None else hypothesis.attention.tolist()
        tokens = {"words": list(hypothesis.tokens), "source": list(hypothesis.source_tokens)}
        return {**as_dicts([hypothesis])[0], **tokens, "attention": attention}

    of_all_words = model.model if isinstance(model, ShortlistScorer) else model
    narrowed = model.sample(lines[:2], 2, seed=6, temperature=0.8, top_k=5, top_p=0.9, max_words=12, verbatim=True)
    results: dict[str, Any] = {
        "greedy": list(map(with_attention, model.translate(lines, beam_size=1, **plain))),
        "3-best": list(map(as_dicts, model.n_best(lines, 3, 5, **plain))),
        "samples": list(map(as_dicts, model.sample(lines, 3, seed=5, max_words=12, verbatim=True))),
        "samples, narrowed": list(map(as_dicts, narrowed)),
        "forced": as_dicts(of_all_words.force_decode(lines, TEST_ENGLISH)),
        "next words": [list(word) for word in model.condition_on(lines[0]).next_words("", k=4)],
    }
    if name not in FULLY_SEARCHED:
        return results
    results["beam 5"] = translate(beam_size=5)
    results |= {f"length {length}": translate(beam_size=4, length=length) for length in LENGTH_HANDLINGS}
    if results["greedy"][0]["attention"] is not None:
        results["coverage penalty"] = translate(beam_size=4, coverage=0.4)
    results["in pieces"] = translate(beam_size=2, max_tokens=4)
    results["prefix"] = translate(lines[:2], beam_size=3, prefix="the bird")
    results["diagnosis"] = model.diagnose(lines, TEST_ENGLISH, model.translate(lines, beam_size=2, **plain))
    return results


def train_ngram(kind: Any = dragoman.NgramModel, corpus: Corpus | None = None, *extra: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small texts lack counts of counts for some discounts
        return kind.train(corpus or english(min_count=2), *extra, **options)


def _held_out() -> Corpus:
    return Corpus.from_sentences(DEV_ENGLISH, english(min_count=2).vocab)


def _trained(name: str) -> Any:
    model, data = create(name)
    fit_quietly(model, data, max_updates=25, max_epochs=100, steps=6)
    return model


@cache
def _ngram(**options: Any) -> Any:
    return train_ngram(**options)


def _smoothed(smoothing: str) -> Any:
    return train_ngram(order=3, smoothing=smoothing, heldout=_held_out() if smoothing in FITTED_SMOOTHINGS else None)


def _cache_model(**options: Any) -> Any:
    return dragoman.CacheModel.train(english(min_count=2), **options)


LANGUAGE_MODELS: dict[str, Any] = {
    **{f"3-gram, {name}": lambda name=name: _smoothed(name) for name in SMOOTHINGS},
    "3-gram, interpolated with coefficients": lambda: train_ngram(
        order=3, smoothing="interpolated", coefficients=(0.1, 0.3, 0.5)
    ),
    "4-gram, pruned": lambda: train_ngram(order=4, prune=(0, 1, 2)),
    "4-gram, entropy pruned": lambda: train_ngram(order=4, entropy_prune=0.01),
    "3-gram, quantised": lambda: train_ngram(order=3, quantise=True),
    "2-gram, gap": lambda: train_ngram(order=2, gap=1),
    "3-gram, unigrams not interpolated": lambda: train_ngram(order=3, interpolate_unigrams=False),
    "2-gram, closed vocabulary": lambda: train_ngram(
        order=2, unknown=ClosedVocabulary(english(min_count=2).vocab.num_known)
    ),
    "2-gram, spelled unknown words": lambda: train_ngram(
        order=2, unknown=SpellingModel.train(english(min_count=2), order=2)
    ),
    "class 3-gram": lambda: train_ngram(dragoman.ClassNgramModel, None, WORD_CLASSES, order=3),
    "cache": lambda: _cache_model(order=3, decay=0.8, prior=0.5),
    "unigram cache": lambda: _cache_model(order=1, decay=0.9, prior=1.0),
    "mixture": lambda: dragoman.Mixture([_ngram(order=3), _cache_model(order=2)], [0.8, 0.2]),
    "mixture, fitted": lambda: dragoman.Mixture.fit([_ngram(order=3), _ngram(order=1)], _held_out()),
    "mixture, fitted by buckets": lambda: dragoman.Mixture.fit(
        [_ngram(order=3), _cache_model(order=2)], _held_out(), buckets="order+position"
    ),
    "ensemble": lambda: dragoman.Mixture.uniform([_ngram(order=3), _ngram(order=2)]),
    **{
        name: lambda name=name: _trained(name)
        for name in (
            "feed-forward",
            "feed-forward, two layers, relu, direct, tied",
            "feed-forward, Brown classes, tied",
            "recurrent, lstm",
            "recurrent, lstm, two layers, tied, Brown classes",
            "recurrent, gru, residual, learned state, variational",
            "recurrent, lstm, stream",
            "log-linear, words",
            "log-linear, all features",
        )
    },
}


def language_model(name: str) -> dict[str, Any]:
    model = LANGUAGE_MODELS[name]()
    return {
        "score": model.score(DEV_ENGLISH),
        "score_words": [[list(word) for word in sentence] for sentence in model.score_words(DEV_ENGLISH[:2])],
        "next_words": {prefix: [list(word) for word in model.next_words(prefix, k=5)] for prefix in ("", "the dog")},
        "sample": model.sample(4, seed=3, max_words=15, show_unknown=True),
        "sample, narrowed": model.sample(
            3, seed=4, temperature=0.7, top_k=6, top_p=0.95, prefix="the", max_words=15, show_unknown=True
        ),
    }


def alignments() -> dict[str, Any]:
    """Return word alignments of the training pairs by each model, and Brown clusters."""
    pairs = parallel(dragoman.ParallelCorpus, *sides())
    results: dict[str, Any] = {}
    for model in ("ibm1", "ibm2", "hmm"):
        aligner = Aligner.train(pairs, model)
        for symmetrization in ("grow-diag-final-and", "intersection", "union", "forward", "backward"):
            links = aligner.align(pairs, symmetrization)
            results[f"{model}, {symmetrization}"] = [[list(link) for link in links[pair]] for pair in range(6)]
    results["brown clusters"] = brown_clusters(english(), classes=5).as_mapping()
    return results


ARPA = {
    "modified-kneser-ney-3.arpa": {"order": 3, "smoothing": "modified-kneser-ney"},
    "katz-2.arpa": {"order": 2, "smoothing": "katz"},
}


def arpa_bytes(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        dragoman.write_arpa(train_ngram(**ARPA[name]), path)
        return path.read_bytes()


# -- comparison --------------------------------------------------------------------------------------------------------


@cache
def read_golden(name: str) -> Any:
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


def write_golden(name: str, values: Any) -> None:
    GOLDEN.mkdir(exist_ok=True)
    (GOLDEN / name).write_text(json.dumps(values, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def is_close(expected: float, actual: float, rtol: float) -> bool:
    if math.isinf(expected) or math.isnan(expected):
        return repr(expected) == repr(actual)
    return math.isclose(expected, actual, rel_tol=rtol, abs_tol=rtol * 1e-3)


def assert_same(expected: Any, actual: Any, rtol: float, where: str = "") -> None:
    """Compare nested values: numbers within the tolerance, everything else exactly."""
    if isinstance(expected, float) and isinstance(actual, int | float):
        assert is_close(expected, actual, rtol), f"{where}: expected {expected!r}, got {actual!r}"
    elif isinstance(expected, dict):
        assert expected.keys() == actual.keys(), where
        for key, value in expected.items():
            assert_same(value, actual[key], rtol, f"{where}/{key}")
    elif isinstance(expected, list):
        assert len(expected) == len(actual), f"{where}: expected {len(expected)} items, got {len(actual)}"
        for number, (first, other) in enumerate(zip(expected, actual, strict=True)):
            assert_same(first, other, rtol, f"{where}[{number}]")
    else:
        assert expected == actual, f"{where}: expected {expected!r}, got {actual!r}"


def without_match(expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the expected parameters that have no equal among the actual ones, whatever their names and order."""
    left, missing = list(actual), []
    for item in expected:
        for number, other in enumerate(left):
            same_sums = all(is_close(item[key], other[key], PARAMETERS_RTOL) for key in ("sum", "sum_of_squares"))
            if item["shape"] == other["shape"] and same_sums:
                del left[number]
                break
        else:
            missing.append(item)
    return missing


# -- tests -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*TRAINABLE, *(f"{name}, float32" for name in SINGLE_PRECISION)])
def test_initial_parameters(name: str) -> None:
    expected, actual = read_golden("parameters.json")[name], initial_parameters()[name]
    assert len(expected) == len(actual), [parameter["name"] for parameter in actual]
    assert not without_match(expected, actual)


@pytest.mark.parametrize("name", TRAINABLE)
def test_training_losses(name: str) -> None:
    actual = training_losses(name)
    assert len(actual["losses"]) == UPDATES
    assert_same(read_golden("losses.json")[name], actual, LOSS_RTOL, name)


@pytest.mark.parametrize("name", SEARCHED)
def test_translations(name: str) -> None:
    assert_same(read_golden("translations.json")[name], translations(name), SCORE_RTOL, name)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_language_models(name: str) -> None:
    assert_same(read_golden("language_models.json")[name], language_model(name), SCORE_RTOL, name)


def test_alignments() -> None:
    assert_same(read_golden("alignments.json"), alignments(), SCORE_RTOL)


@pytest.mark.parametrize("name", ARPA)
def test_arpa(name: str) -> None:
    assert arpa_bytes(name) == (GOLDEN / name).read_bytes()


def write_all() -> None:
    write_golden("parameters.json", initial_parameters())
    write_golden("losses.json", {name: training_losses(name) for name in TRAINABLE})
    write_golden("translations.json", {name: translations(name) for name in SEARCHED})
    write_golden("language_models.json", {name: language_model(name) for name in LANGUAGE_MODELS})
    write_golden("alignments.json", alignments())
    for name in ARPA:
        (GOLDEN / name).write_bytes(arpa_bytes(name))


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/test_golden.py --write")
    write_all()
