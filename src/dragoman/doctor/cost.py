"""What it would cost to train the default n-gram model on a text, on this machine.

A small text is simply trained on. Of a larger one samples are, each twice the one before: n-grams are then taken to
grow on with the length of the text, by a power of it that sinks with every doubling as it did between the samples.
"""

from __future__ import annotations

import tempfile
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dragoman.data.corpus import Corpus
from dragoman.data.scanner import ScannedText, scan
from dragoman.data.vocabulary import Vocab
from dragoman.doctor.reader import join_lines
from dragoman.doctor.single_text import TextStatistics
from dragoman.ngram.model import NgramModel

T = TypeVar("T")
WHOLE = 400_000  # tokens, up to which a text is trained on as it is
PARTS = (4, 2, 1)  # of a longer text, samples of a quarter, a half and the whole of that are
PROGRAM, TOKEN = 175e6, 40  # bytes: of the program itself, and of each token while the text is read and numbered
LOADING = 0.6  # seconds to load the program's compiled loops


@dataclass(frozen=True)
class TrainingCost:
    """An estimate for `dragoman train ngram` with its defaults."""

    file: str
    ngrams: int  # the model's parameters: a probability each, and a back-off weight
    memory: float  # bytes in use at most while training
    disk: float  # bytes of the model directory
    seconds: float
    tokens_tried: int  # by training on so many
    tokens: int

    @property
    def basis(self) -> str:
        """What the figures rest on."""
        if self.tokens_tried == self.tokens:
            return "trained on the whole text"
        return f"extrapolated from training on samples of up to {self.tokens_tried:,} tokens"


@dataclass(frozen=True)
class TrainingTrial:
    """What training on a sample took."""

    tokens: int
    sizes: NDArray[np.float64]  # (orders,) n-grams
    takes: NDArray[np.float64]  # memory, disk, seconds


def estimate_training_cost(text: TextStatistics) -> TrainingCost | None:
    """The cost of training on a text; None if it has no words."""
    scanned, read = _timed(lambda: scan(join_lines(text.document.lines)))
    corpus = Corpus.from_scan(scanned, Vocab.build(scanned.types, scanned.counts.tolist()))
    if not corpus.num_words:
        return None
    _train(corpus.select(np.arange(min(20, len(corpus)))))  # so that compiling is not measured
    if corpus.num_tokens <= WHOLE:
        trials = [_try(corpus)]
    else:
        order = np.random.default_rng(0).permutation(len(corpus))  # a text may be sorted
        trials = [_try(_sample(corpus, order, WHOLE // part)) for part in PARTS]
    memory, disk, seconds = _extrapolated(
        [trial.takes for trial in trials], corpus.num_tokens / trials[-1].tokens
    ).tolist()
    return TrainingCost(
        file=text.document.name,
        ngrams=round(
            float(_extrapolated([trial.sizes for trial in trials], corpus.num_tokens / trials[-1].tokens).sum())
        ),
        memory=memory + PROGRAM + TOKEN * corpus.num_tokens,
        disk=disk,
        seconds=seconds + read + LOADING,
        tokens_tried=trials[-1].tokens,
        tokens=corpus.num_tokens,
    )


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = perf_counter()
    return work(), perf_counter() - began


def _extrapolated(values: Sequence[NDArray[np.float64]], times: float) -> NDArray[np.float64]:
    """What a text so many times longer than the last sample would have; each sample is twice the one before.

    >>> _extrapolated([np.array([10.0]), np.array([20.0]), np.array([40.0])], 4).round(6).tolist()
    [160.0]
    """
    if len(values) == 1:
        return values[0]
    first, second, last = (np.log2(np.maximum(value, 1e-9)) for value in values)
    power = np.clip(last - second, 0.05, 1.1)
    sinking = np.clip(power / np.clip(second - first, 0.05, 1.1), 0.8, 1.0)
    doublings = np.log2(times)
    whole = np.arange(int(doublings))[:, None]  # (doublings, 1)
    growth = (power * sinking ** (whole + 1)).sum(axis=0)
    growth += (doublings - int(doublings)) * power * sinking ** (int(doublings) + 1)
    return np.asarray(2 ** (last + growth))


def _sample(corpus: Corpus, order: NDArray[np.int64], tokens: int) -> Corpus:
    """Random lines of so many tokens, over the words that occur in them."""
    sizes = np.diff(corpus.token_offsets)[order]
    lines = np.sort(order[: max(1, int(np.searchsorted(np.cumsum(sizes), tokens)))])
    picked = corpus.select(lines)
    used, ids = np.unique(picked.ids, return_inverse=True)
    counts = np.bincount(ids, minlength=len(used))
    words = [corpus.vocab.tokens[word] for word in used.tolist()]
    renumbered = ScannedText(words, counts, ids.astype(np.int32), picked.offsets)
    return Corpus.from_scan(renumbered, Vocab.build(words, counts.tolist()))


def _try(corpus: Corpus) -> TrainingTrial:
    with tempfile.TemporaryDirectory() as place:
        began = perf_counter()
        model = _train(corpus)
        model.save(Path(place) / "model")
        seconds = perf_counter() - began
        disk = sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())
    takes = np.array([_peak(corpus), disk, seconds], np.float64)
    return TrainingTrial(corpus.num_tokens, np.array(model.table.trie.sizes(), np.float64), takes)


def _peak(corpus: Corpus) -> float:
    """Bytes in use at most while training, beside the text; arrays inside compiled loops are not seen."""
    tracemalloc.start()
    try:
        _train(corpus)
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def _train(corpus: Corpus) -> NgramModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of samples with too few counts; the training itself will say so
        return NgramModel.train(corpus)
