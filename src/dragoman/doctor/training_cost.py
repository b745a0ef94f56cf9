"""Estimates of the cost of training on a text, on this machine.

Of a pair of texts: the translators that are planned for some numbers of minutes. Of one text: the default n-gram model.
A small text is trained on. For a larger text, samples are trained on, each twice as large as the one before. The
number of n-grams is extrapolated as a power of the length, with an exponent that decreases with every doubling as it
does between the samples.
"""

from __future__ import annotations

import tempfile
import tracemalloc
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.scanner import ScannedText, scan
from dragoman.data.segmenters import choose_units
from dragoman.data.tokenizer import LinePairs, Tokenizer
from dragoman.data.vocabulary import Vocab
from dragoman.doctor.documents import Document, join_lines
from dragoman.models.configs import TranslatorConfig
from dragoman.models.planning import EncodedPairs, TranslatorPlanner
from dragoman.ngram.model import NgramModel
from dragoman.training.config import TRANSLATOR

MAX_TRIAL_TOKENS = 400_000  # texts up to this size are trained on completely
SAMPLE_DIVISORS = (4, 2, 1)  # of larger texts, samples of a quarter, a half and the whole of this size
PLANNED_MINUTES = (3, 10, 30, 90)  # for which a translator is planned
MIN_PLANNED_PAIRS, MAX_SAMPLE_PAIRS = 100, 10_000
TRIAL_SECONDS = 0.5  # for measuring the speed of one size
PROGRAM_BYTES, TOKEN_BYTES = 175e6, 40  # memory of the program, and per token while the text is read
STARTUP_SECONDS = 0.6  # to load compiled kernels


@dataclass(frozen=True)
class TrainingCost:
    """An estimate for `dragoman train ngram` with its default settings."""

    file: str
    ngrams: int  # parameters of the model: a probability and a back-off weight each
    memory: float  # maximum bytes in use during training
    disk: float  # bytes of the model directory
    seconds: float
    tokens_tried: int  # size of the largest training trial
    tokens: int

    @property
    def basis(self) -> str:
        """How the estimate was obtained."""
        if self.tokens_tried == self.tokens:
            return "trained on the whole text"
        return f"extrapolated from training on samples of up to {self.tokens_tried:,} tokens"


@dataclass(frozen=True)
class TranslatorCost:
    """The translator that is planned for a number of minutes."""

    minutes: float
    plan: str  # in a few words


def translator_costs(source: Document, target: Document) -> tuple[TranslatorCost, ...]:
    """Return what `dragoman train translator --minutes` would train, by the speed on a sample of the pairs."""
    lines = LinePairs(list(source.lines), list(target.lines))
    if len(lines.source) < MIN_PLANNED_PAIRS:
        return ()
    sample = lines.spread(MAX_SAMPLE_PAIRS)

    def encode(max_subwords: int | None) -> EncodedPairs:
        (source, source_corpus), (target, target_corpus) = (
            Tokenizer.train_and_encode(
                choose_units("auto", text, sentences=len(lines.source), max_subwords=max_subwords), text
            )
            for text in (sample.source, sample.target)
        )
        return EncodedPairs(ParallelCorpus(source_corpus, target_corpus), source, target)

    planner = TranslatorPlanner(
        cache(encode),
        None,
        TranslatorConfig(),
        TRANSLATOR,
        {"model": (), "training": ()},
        scale=len(lines.source) / len(sample.source),
        trial_seconds=TRIAL_SECONDS,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a small text; the training itself will warn
        plans = {minutes: planner.plan(minutes) for minutes in PLANNED_MINUTES}
    return tuple(TranslatorCost(minutes, plan.describe(with_time=False)) for minutes, plan in plans.items())


def training_costs(train: Sequence[Document]) -> tuple[TrainingCost, ...]:
    """Estimate the cost of training a language model on a text."""
    if len(train) == 2:
        return ()
    return tuple(cost for cost in map(estimate_training_cost, train) if cost)


def estimate_training_cost(document: Document) -> TrainingCost | None:
    """Estimate the cost of training on a text; None if it has no words."""
    start = perf_counter()
    scanned = scan(join_lines(document.lines))
    reading_seconds = perf_counter() - start
    corpus = Corpus.from_scan(scanned, Vocab.build(scanned.types, scanned.counts.tolist()))
    if not corpus.num_words:
        return None
    _train(corpus.select(np.arange(min(20, len(corpus)))))  # so that compilation is not measured
    samples = [corpus]
    if corpus.num_tokens > MAX_TRIAL_TOKENS:
        order = np.random.default_rng(0).permutation(len(corpus))  # the text may be sorted
        samples = [_sample(corpus, order, MAX_TRIAL_TOKENS // divisor) for divisor in SAMPLE_DIVISORS]
    factor = corpus.num_tokens / samples[-1].num_tokens
    memory, disk, seconds, *ngrams = _extrapolate([_run_trial(sample) for sample in samples], factor).tolist()
    return TrainingCost(
        file=document.name,
        ngrams=round(sum(ngrams)),
        memory=memory + PROGRAM_BYTES + TOKEN_BYTES * corpus.num_tokens,
        disk=disk,
        seconds=seconds + reading_seconds + STARTUP_SECONDS,
        tokens_tried=samples[-1].num_tokens,
        tokens=corpus.num_tokens,
    )


def _extrapolate(values: Sequence[NDArray[np.float64]], factor: float) -> NDArray[np.float64]:
    """Extrapolate to a text that is larger than the last sample by a factor; each sample doubles the one before.

    >>> _extrapolate([np.array([10.0]), np.array([20.0]), np.array([40.0])], 4).round(6).tolist()
    [160.0]
    """
    if len(values) == 1:
        return values[0]
    first, second, last = (np.log2(np.maximum(value, 1e-9)) for value in values)
    exponent = np.clip(last - second, 0.05, 1.1)
    decrease = np.clip(exponent / np.clip(second - first, 0.05, 1.1), 0.8, 1.0)
    doublings = np.log2(factor)
    complete = np.arange(int(doublings))[:, None]  # (doublings, 1)
    growth = (exponent * decrease ** (complete + 1)).sum(axis=0)
    growth += (doublings - int(doublings)) * exponent * decrease ** (int(doublings) + 1)
    return np.asarray(2 ** (last + growth))


def _sample(corpus: Corpus, order: NDArray[np.int64], tokens: int) -> Corpus:
    """Random lines of this many tokens, with a vocabulary of the words in them."""
    sizes = np.diff(corpus.token_offsets)[order]
    lines = np.sort(order[: max(1, int(np.searchsorted(np.cumsum(sizes), tokens)))])
    selected = corpus.select(lines)
    used, ids = np.unique(selected.ids, return_inverse=True)
    counts = np.bincount(ids, minlength=len(used))
    words = [corpus.vocab.tokens[word] for word in used.tolist()]
    scanned = ScannedText(words, counts, ids.astype(np.int32), selected.offsets)
    return Corpus.from_scan(scanned, Vocab.build(words, counts.tolist()))


def _run_trial(corpus: Corpus) -> NDArray[np.float64]:
    """Train, and return memory, disk, seconds and the number of n-grams of each order.

    Memory is the maximum in use during training, without the text and without arrays inside compiled kernels.
    """
    with tempfile.TemporaryDirectory() as directory:
        start = perf_counter()
        model = _train(corpus)
        model.save(Path(directory) / "model")
        seconds = perf_counter() - start
        disk = sum(file.stat().st_size for file in Path(directory).rglob("*") if file.is_file())
    tracemalloc.start()
    try:
        _train(corpus)
        memory = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return np.array([memory, disk, seconds, *model.table.trie.sizes()], np.float64)


def _train(corpus: Corpus) -> NgramModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about small samples; the training itself will warn
        return NgramModel.train(corpus)
