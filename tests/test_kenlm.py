"""Modified Kneser-Ney compared with KenLM: n-grams, back-off weights and held-out sentences."""

from __future__ import annotations

import gzip
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman import Corpus, Vocab
from dragoman.data.unknown_words import ClosedVocabulary, UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import END, START, UNK
from dragoman.evaluation.likelihood import unknown_log_probs
from dragoman.ngram.arpa import read_arpa
from dragoman.ngram.model import NgramModel
from zoo import ngram_words

ORACLES = Path(__file__).parent / "oracles" / "kenlm"
LOG_10 = math.log(10)
PAD = 10_000_000

Numbers = dict[tuple[str, ...], tuple[float, float]]  # n-gram: log10 probability, log10 back-off weight


def closed(vocab: Vocab) -> UnknownWordModel:
    return ClosedVocabulary(vocab.num_known)


def padded(vocab: Vocab) -> UnknownWordModel:
    return UniformUnknownWords(vocab.num_known, PAD)


@dataclass(frozen=True)
class Oracle:
    """A file of `lmplz`, and how we train the same model."""

    file: str
    text: str
    order: int
    settings: dict[str, Any] = field(default_factory=dict)
    unknown: Callable[[Vocab], UnknownWordModel] = closed

    @property
    def query(self) -> Path:
        return ORACLES / f"{self.file.partition('.arpa')[0]}.heldout.query"


MODELS = [
    Oracle("artificial.o3.fallback.arpa", "artificial.txt", 3),
    Oracle("tiny.o3.arpa", "tiny.txt", 3),
    Oracle("medium.o1.arpa", "medium.txt", 1),
    Oracle("medium.o2.arpa.gz", "medium.txt", 2),
    Oracle("medium.o3.arpa.gz", "medium.txt", 3),
    Oracle("medium.o5.arpa.gz", "medium.txt", 5),
    Oracle("medium.o3.nointerp_unigrams.arpa.gz", "medium.txt", 3, {"interpolate_unigrams": False}),
    Oracle("medium.o4.prune012.arpa.gz", "medium.txt", 4, {"prune": (0, 1, 2)}),
    Oracle("medium.o3.vocabpad10M.arpa.gz", "medium.txt", 3, unknown=padded),
]
SCORED = [oracle for oracle in MODELS if oracle.query.exists()]


def names(oracle: Oracle) -> str:
    return oracle.file.partition(".arpa")[0]


@cache
def train(file: str) -> NgramModel:
    oracle = next(oracle for oracle in MODELS if oracle.file == file)
    corpus = Corpus.read(ORACLES / oracle.text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small texts fall back on fixed discounts
        return NgramModel.train(corpus, order=oracle.order, unknown=oracle.unknown(corpus.vocab), **oracle.settings)


def read_plainly(path: Path) -> Numbers:
    """An ARPA file in the simplest way."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    rows = [line.split("\t") for line in text.split("\n") if "\t" in line]
    ngrams = {tuple(row[1].split(" ")): (float(row[0]), float(row[2]) if len(row) > 2 else 0.0) for row in rows}
    return without_start(ngrams)


def without_start(numbers: Numbers) -> Numbers:
    """`<s>` is given, never predicted, so its probability means nothing; its weight does."""
    return {**numbers, ("<s>",): (0.0, numbers[("<s>",)][1])}


def numbers_of(model: NgramModel) -> Numbers:
    """Our tables in the form of the file: `<unk>` as one word's share where it is a class of many."""
    table, words, numbers = model.table, model.vocab.tokens, Numbers()
    for order in range(1, table.trie.order + 1):
        log_prob = table.values(order).astype(float)
        rows = ngram_words(table.trie, order)
        if not isinstance(model.unknown, ClosedVocabulary):
            log_prob[rows[:, -1] == UNK] += model.unknown.log_probs(["any"])[0]
        for node, row, value in zip(range(table.trie.levels[order], table.trie.nodes), rows, log_prob, strict=False):
            backoff = float(table.log_backoff[node]) if order < table.trie.order else 0.0
            numbers[tuple(words[w] for w in row)] = (value / LOG_10, backoff / LOG_10)
    return without_start(numbers)


def totals(model: NgramModel, heldout: Corpus) -> np.ndarray:
    """log10 P of each sentence as KenLM has it: without `padded`, an unknown word is scored by its class only."""
    log_prob = model.token_log_probs(heldout)
    if not isinstance(model.unknown, ClosedVocabulary):
        log_prob[heldout.unknown_token_positions] += unknown_log_probs(model, heldout)
    return np.add.reduceat(log_prob, heldout.token_offsets[:-1]) / LOG_10


def read_query(path: Path) -> tuple[list[float], list[int]]:
    rows = [line.split() for line in path.read_text().splitlines()]
    return [float(row[1]) for row in rows], [int(row[3]) for row in rows]


def test_every_file_has_a_model() -> None:
    assert {oracle.file for oracle in MODELS} == {path.name for path in ORACLES.glob("*.arpa*")}
    assert {oracle.query for oracle in SCORED} == set(ORACLES.glob("*.query"))


@pytest.mark.parametrize("oracle", MODELS, ids=names)
def test_probabilities_and_weights(oracle: Oracle) -> None:
    theirs, ours = read_plainly(ORACLES / oracle.file), numbers_of(train(oracle.file))
    assert ours.keys() == theirs.keys()
    np.testing.assert_allclose([ours[ngram] for ngram in theirs], list(theirs.values()), rtol=0, atol=2e-5)


def imported(oracle: Oracle) -> NgramModel:
    if oracle.unknown is padded:
        return read_arpa(ORACLES / oracle.file, vocab_pad=PAD)
    return read_arpa(ORACLES / oracle.file, closed=True)


@pytest.mark.parametrize("make", [lambda oracle: train(oracle.file), imported], ids=["trained", "imported"])
@pytest.mark.parametrize("oracle", SCORED, ids=names)
def test_heldout_sentences(oracle: Oracle, make: Callable[[Oracle], NgramModel]) -> None:
    model = make(oracle)
    heldout = Corpus.read(ORACLES / "heldout.txt", model.vocab)
    scores, unknown = read_query(oracle.query)
    np.testing.assert_allclose(totals(model, heldout), scores, rtol=0, atol=1e-4)
    sentence = np.searchsorted(heldout.offsets, heldout.unknown_positions, side="right") - 1
    assert np.bincount(sentence, minlength=len(heldout)).tolist() == unknown


@pytest.mark.parametrize("oracle", MODELS, ids=names)
def test_imported_numbers(oracle: Oracle) -> None:
    """The values are those of the file, and every distribution sums to one."""
    model = imported(oracle)
    theirs, ours = read_plainly(ORACLES / oracle.file), numbers_of(model)
    assert list(model.vocab.tokens[UNK + 1 :]) == [word for word, *more in theirs if not more][3:]
    assert ours.keys() == theirs.keys()
    np.testing.assert_allclose([ours[ngram] for ngram in theirs], list(theirs.values()), rtol=0, atol=1e-6)
    contexts = np.arange(model.table.trie.contexts)[:: max(1, model.table.trie.contexts // 200)]
    distributions = np.exp(model.table.distributions(contexts))
    np.testing.assert_allclose(distributions.sum(axis=1), 1, atol=1e-4)
    assert (distributions[:, START] == 0).all() and (distributions[:, END] > 0).all()
