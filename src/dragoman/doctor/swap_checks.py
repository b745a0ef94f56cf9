"""Source and target exchanged: from some line on, in dev against train, or against the names of the files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dragoman.data.language_id import LetterModel, LetterText
from dragoman.data.languages import LANGUAGE_NAMES
from dragoman.doctor.alignment_checks import best_path
from dragoman.doctor.common_words import COMMON_WORDS, language_of_name
from dragoman.doctor.documents import Document
from dragoman.doctor.findings import Finding

MAX_CHANCE = 1e-3  # probability that exchanged sides are reported if either order is equally likely
MAX_SAMPLE_LINES = 2000
CHUNKS, CHUNK_LINES = 24, 100
MIN_LINES = 20
MAX_LINE_GAIN = 10.0  # nats: a single line, perhaps a quotation, decides nothing
CHANGE_COST = 50.0  # nats of evidence required for each end of a run of exchanged pairs
Pair = Sequence[Document]


def is_mostly_positive(gains: NDArray[np.float64]) -> bool:
    """Sign test: whether more gains are above 0 than chance would give, if either sign were equally likely.

    >>> is_mostly_positive(np.ones(30)), is_mostly_positive(np.array([1.0, -1.0] * 15))
    (True, False)
    """
    positive, count = int((gains > 0).sum()), int((gains != 0).sum())
    if count == 0 or 2 * positive <= count:
        return False
    tail = sum(math.comb(count, k) for k in range(positive, count + 1))
    return math.log(tail) - count * math.log(2) < math.log(MAX_CHANCE)


def exchange_gains(
    models: Sequence[LetterModel], letters: Sequence[LetterText], *, leave_one_out: bool = False
) -> NDArray[np.float64]:
    """For each pair, the log of how much more probable its lines are if source and target are exchanged.  # (pairs,)"""
    gain = np.zeros(len(letters[0].sizes))
    for text, model, other in zip(letters, models, reversed(models), strict=True):
        gain += other.log_probs(text, leave_one_out=leave_one_out) - model.log_probs(text, leave_one_out=leave_one_out)
    return gain


def dev_swap_findings(train: Pair, dev: Pair) -> Iterator[Finding]:
    """Report a dev source in the language of the training target, and the other way round."""
    if min(len(train[0]), len(dev[0])) < MIN_LINES:
        return
    models = [LetterModel.train(_sample(document)) for document in train]
    gains = exchange_gains(models, [_sample(document) for document in dev])
    if is_mostly_positive(gains):
        message = (
            f"{int((gains > 0).sum()):,} of {len(gains):,} pairs fit {train[0].name} and {train[1].name} better if "
            f"{dev[0].name} and {dev[1].name} are exchanged"
        )
        yield dev[0].finding("swapped-dev", None, message)


def _sample(document: Document) -> LetterText:
    stride = max(1, len(document) // MAX_SAMPLE_LINES)
    return LetterText.from_lines(document.lines[::stride])


# -- runs of lines ----------------------------------------------------------------------------------------------------


def find_exchanged_runs(pair: Pair) -> list[tuple[int, int]]:
    """Find runs of pairs (first and last line) with source and target exchanged; most pairs are in the right order.

    Some chunks of the text are compared with the first one. Only if one of them is exchanged, all lines are.
    """
    size = len(pair[0])
    if size < 2 * MIN_LINES:
        return []
    chunk_lines = min(CHUNK_LINES, size // 2)
    starts = np.unique(np.linspace(0, size - chunk_lines, CHUNKS).astype(int)).tolist()
    chunks = [[LetterText.from_lines(side.lines[s : s + chunk_lines]) for side in pair] for s in starts]
    models = [LetterModel.train(letters) for letters in chunks[0]]
    is_exchanged = [False, *(is_mostly_positive(exchange_gains(models, letters)) for letters in chunks[1:])]
    if not any(is_exchanged):
        return []
    # Next to a change, a chunk may have lines of both kinds.
    is_sure = [len(set(is_exchanged[max(0, k - 1) : k + 2])) == 1 for k in range(len(starts))]
    texts: list[list[str]] = [[], []]
    for start, swap, sure in zip(starts, is_exchanged, is_sure, strict=True):
        if sure or not any(is_sure):
            for text, side in zip(texts, (pair[swap], pair[not swap]), strict=True):
                text += side.lines[start : start + chunk_lines]
    models = [LetterModel.train(LetterText.from_lines(text)) for text in texts]
    gains = np.clip(exchange_gains(models, [side.letters for side in pair]), -MAX_LINE_GAIN, MAX_LINE_GAIN)
    if 2 * int((gains > 0).sum()) > size:  # the first chunk was exchanged
        gains = -gains
    path = best_path(np.stack([np.zeros(size), np.zeros(size), gains], axis=1), CHANGE_COST)
    ends = np.flatnonzero(np.diff(path == 2, prepend=False, append=False)).tolist()
    return [(first, end - 1) for first, end in list(pairwise(ends))[::2]]


def exchange_lines(pair: Pair, runs: Sequence[tuple[int, int]]) -> tuple[Document, Document]:
    """Return the documents with the lines of some runs exchanged."""
    lines = [list(document.lines) for document in pair]
    for first, last in runs:
        run = slice(first, last + 1)
        lines[0][run], lines[1][run] = lines[1][run], lines[0][run]
    return replace(pair[0], lines=lines[0]), replace(pair[1], lines=lines[1])


def exchanged_run_findings(pair: Pair, runs: Sequence[tuple[int, int]]) -> Iterator[Finding]:
    """Report runs of pairs with source and target exchanged."""
    source, target = pair
    for first, last in runs:
        lines = f"lines {source.number(first)} to {source.number(last)}"
        message = (
            f"{lines} are in the language of {target.name}, and those of {target.name} in the language of this file"
        )
        yield source.finding("swapped-lines", first, message, last=last)


# -- names of files ---------------------------------------------------------------------------------------------------


def name_findings(pair: Pair) -> Iterator[Finding]:
    """Report files whose names give languages (train.de, train.en) that their texts contradict."""
    languages = [language_of_name(document.layout.path, document.layout.field) for document in pair]
    if languages[0] == languages[1]:
        return
    gains = np.zeros(len(pair[0].lines[:: max(1, len(pair[0]) // MAX_SAMPLE_LINES)]))
    for document, language, other in zip(pair, languages, reversed(languages), strict=True):
        words = [line.lower().split() for line in document.lines[:: max(1, len(document) // MAX_SAMPLE_LINES)]]
        for name, sign in ((other, 1), (language, -1)):
            known = COMMON_WORDS.get(name, frozenset())
            gains += sign * np.array([sum(word in known for word in line) for line in words], np.float64)
    if is_mostly_positive(gains):
        given = [f"{d.name} ({LANGUAGE_NAMES[name]})" for d, name in zip(pair, languages, strict=True) if name]
        message = f"the name of {' and of '.join(given)} says another language than the text"
        yield pair[0].finding("swapped-names", None, message)
