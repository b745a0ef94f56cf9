"""Checks of two texts line by line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dragoman.doctor.characters import SCRIPTS_WITHOUT_SPACES
from dragoman.doctor.documents import Document
from dragoman.doctor.findings import Finding
from dragoman.doctor.text_checks import DoctorLimits, long_line_findings, repeat_findings

OUTLIER_DEVIATIONS = 5.0  # robust standard deviations from the usual length
DROP_FACTOR = 1.5  # pairs are dropped if their lengths differ by so many times the limit
MIN_SENTENCE_WORDS = 4  # shorter lines, such as names and titles, may be the same in two languages
MAX_COPIED_SHARE, MIN_PAIRS = (
    0.2,
    20,
)  # with more copied sentences than this, of at least so many pairs, the file is wrong
# Two characters of scripts without spaces are about a word.
WORD = re.compile(rf"[{SCRIPTS_WITHOUT_SPACES}]{{1,2}}|[^\W\d_]+")
WITHOUT_SPACES = re.compile(f"[{SCRIPTS_WITHOUT_SPACES}]")
WORD_OR_MARK = re.compile(rf"[{SCRIPTS_WITHOUT_SPACES}]{{1,2}}|[^\s{SCRIPTS_WITHOUT_SPACES}]+")
MAX_IDENTICAL_SHARE = 0.9  # of all pairs, also of single words, whose forms are often the same


@dataclass(frozen=True)
class PairStatistics:
    """Statistics of a parallel text."""

    pairs: int  # with words on both sides
    word_ratio: float  # target words per source word
    character_ratio: float
    identical: int  # pairs with two equal sides
    repeated: int  # pairs that occurred before
    other_target: int  # pairs whose source occurred before with another target


def pair_statistics(source: Document, target: Document) -> PairStatistics:
    """Summarise a parallel text."""
    pairs = list(zip(source.lines, target.lines, strict=True))
    targets_per_source = Counter(line for line, _ in set(pairs))
    return PairStatistics(
        pairs=int(((source.words > 0) & (target.words > 0)).sum()),
        word_ratio=float(target.words.sum()) / max(1, int(source.words.sum())),
        character_ratio=float(target.characters.sum()) / max(1, int(source.characters.sum())),
        identical=int(_is_identical(source, target).sum()),
        repeated=len(pairs) - len(set(pairs)),
        other_target=targets_per_source.total() - len(targets_per_source),
    )


def is_copied_sentence(source: Document, target: Document) -> NDArray[np.bool_]:
    """Whether each line is a sentence that is the same on both sides.  # (lines,)"""
    is_copied = _is_identical(source, target)
    for line in np.flatnonzero(is_copied).tolist():
        is_copied[line] = len(WORD.findall(source.lines[line])) >= MIN_SENTENCE_WORDS
    return is_copied


def _is_identical(source: Document, target: Document) -> NDArray[np.bool_]:
    pairs = zip(source.lines, target.lines, strict=True)
    return np.fromiter((first == second != "" for first, second in pairs), np.bool_, len(source))


def pair_findings(source: Document, target: Document, limits: DoctorLimits) -> Iterator[Finding]:
    """Find pairs with empty, very long or copied sides, unusual lengths, and repeated pairs."""
    for line in np.flatnonzero((source.words == 0) | (target.words == 0)).tolist():
        both = source.words[line] == 0 and target.words[line] == 0
        document = source if source.words[line] == 0 else target
        yield document.finding("empty-side", line, "both sides are empty" if both else "no words here")
    for document in (source, target):
        yield from long_line_findings("long-pair", document, limits)
    size, is_copied = len(source), is_copied_sentence(source, target)
    # In a list of words, abbreviations have long pronunciations, and a form may be the same as its lemma.
    is_word_list = min(float(np.median(_words(document))) for document in (source, target)) <= 1
    if not is_word_list:
        yield from _length_findings(source, target, limits)
    identical = int(_is_identical(source, target).sum())
    is_same = is_copied.sum() > MAX_COPIED_SHARE * size or identical > MAX_IDENTICAL_SHARE * size
    if size >= MIN_PAIRS and is_same:
        message = f"{identical:,} of {size:,} pairs are the same in {source.name} and {target.name}"
        yield target.finding("same-text", None, message)
    if not is_word_list or is_same:
        yield from target.findings("untranslated", is_copied, target.quoted)
    yield from repeat_findings("duplicate-pair", "the same pair as in", source, target)


def _words(document: Document) -> NDArray[np.int64]:
    """The number of words of each line, also in scripts without spaces between words.  # (lines,)"""
    words = document.words.copy()
    for line, text in enumerate(document.lines):
        if not text.isascii() and WITHOUT_SPACES.search(text):
            words[line] = len(WORD_OR_MARK.findall(text))
    return words


def _length_findings(source: Document, target: Document, limits: DoctorLimits) -> Iterator[Finding]:
    """Find pairs whose lengths, in characters or words, are far from the usual ratio.

    The standard deviation of the length of a translation grows with the square root of the length (Gale and Church),
    so short lines may differ by large factors. Its scale is estimated from the middle half of the text.
    """
    has_words = (source.words > 0) & (target.words > 0)
    messages: dict[int, str] = {}
    is_extreme = np.zeros(len(source), np.bool_)
    for unit, sizes, target_sizes in (
        ("characters", source.characters, target.characters),
        ("words", _words(source), _words(target)),
    ):
        length, target_length = (values[has_words].astype(np.float64) for values in (sizes, target_sizes))
        if len(length) < 2:
            return
        ratio = float(np.median(target_length / length))
        deviations = (target_length - ratio * length) / np.sqrt((target_length + ratio * length) / 2)
        low, high = np.percentile(deviations, [25, 75])
        scale = max((high - low) / 1.349, 0.3)  # of a normal distribution with these quartiles
        factor = target_length / (ratio * length)
        factor = np.maximum(factor, 1 / factor)
        is_outlier = np.abs(deviations - np.median(deviations)) > OUTLIER_DEVIATIONS * scale
        is_outlier &= factor > limits.max_ratio
        is_extreme[has_words] |= is_outlier & (factor > DROP_FACTOR * limits.max_ratio)
        for line in np.flatnonzero(has_words)[is_outlier].tolist():
            lengths = f"{sizes[line]:,} and {target_sizes[line]:,} {unit}"
            messages.setdefault(line, f"{lengths}: {source.quoted(line, 30)}")
    for line, message in sorted(messages.items()):
        yield replace(source.finding("length-ratio", line, message), is_kept=not is_extreme[line])
