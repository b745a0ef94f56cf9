"""Placeholders in a training text, so that a translator learns to copy what it does not know.

A placeholder stands for something that is the same on both sides of a pair: an item such as `%s` or an address, and in
some of the pairs a word such as a name, unless there is nothing else. A translator that knows placeholders reads one for
every item of a line.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np

from dragoman.data.copied_items import PLACEHOLDER, Span, find_items, mask_spans, split_at
from dragoman.data.corpus import Corpus
from dragoman.data.long_numbers import DIGITS, find_long_numbers
from dragoman.data.scanner import UNSPACED

WORD = re.compile(rf"[^\W_{UNSPACED.pattern[1:-1]}]{{3,}}")
MIN_COPIED_SHARE = 0.5  # of the pairs with a word on one side, those with it on both, if the word is a copy
PLACEHOLDER_SHARE = 1 / 3  # of the pairs with copied words that get a placeholder


def add_placeholders(source: Sequence[str], target: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """Return the lines of parallel texts with placeholders, as many on both sides of a pair.

    >>> source, target = add_placeholders(["Zeile %d von a@b.org"], ["line %d of a@b.org"], seed=1)
    >>> source[0].replace(PLACEHOLDER, "_"), target[0].replace(PLACEHOLDER, "_")
    ('Zeile _ von _', 'line _ of _')
    """
    outside = (
        [mask_spans(line, find_items(line)) for line in source],
        [mask_spans(line, find_items(line)) for line in target],
    )
    random, copies = Random(seed), _copied_words(*outside)
    pairs = []
    for first, second, *masked in zip(source, target, *outside, strict=True):
        if first.count(PLACEHOLDER) != second.count(PLACEHOLDER):  # not placeholders, but characters of the text
            first, second = first.replace(PLACEHOLDER, " "), second.replace(PLACEHOLDER, " ")
        spans = _shared((first, second), [find_items(first), find_items(second)]) if first != masked[0] else []
        if not copies.isdisjoint(_words(masked[0])):
            shared = _shared(masked, [_find_words(line) for line in masked])
            words = [pair for pair in shared if first[slice(*pair[0])] in copies and all(map(_is_part, masked, pair))]
            spans += [random.choice(words)] if words and random.random() < PLACEHOLDER_SHARE else []
        pairs.append((_replace(first, [span for span, _ in spans]), _replace(second, [span for _, span in spans])))
    return [first for first, _ in pairs], [second for _, second in pairs]


def has_placeholders(corpus: Corpus) -> bool:
    """Return whether an encoded text has placeholders."""
    ids = [index for index, token in enumerate(corpus.vocab.tokens) if PLACEHOLDER in token]
    return bool(np.isin(corpus.ids, ids).any())


def _copied_words(source: Sequence[str], target: Sequence[str]) -> set[str]:
    """Return the words that are usually the same in the translation: names, not words such as `was`."""
    counts, both = Counter[str](), Counter[str]()
    for first, second in zip(source, target, strict=True):
        sides = set(_words(first)), set(_words(second))
        counts.update(sides[0] | sides[1])
        both.update(sides[0] & sides[1])
    return {word for word, count in both.items() if count >= MIN_COPIED_SHARE * counts[word]}


def _words(line: str) -> list[str]:
    if DIGITS.search(line):
        return [line[start:end] for start, end in _find_words(line)]
    return WORD.findall(line)  # as `_find_words`, but faster


def _find_words(line: str) -> list[Span]:
    """Return the words and long numbers of a line: those that can be copied. `1,250.50` is one number."""
    words = [match.span() for match in WORD.finditer(line) if not match[0].isdecimal()]
    return words + [(number.start, number.end) for number in find_long_numbers(line)]


def _shared(lines: Sequence[str], spans: Sequence[list[Span]]) -> list[tuple[Span, Span]]:
    """Return the spans, in both lines, of what occurs exactly once in each."""
    first, second = ([line[start:end] for start, end in side] for line, side in zip(lines, spans, strict=True))
    counts = Counter(first), Counter(second)
    return [
        (span, spans[1][second.index(text)])
        for text, span in zip(first, spans[0], strict=True)
        if counts[0][text] == 1 == counts[1][text]
    ]


def _is_part(line: str, word: Span) -> bool:
    """Whether a line has more than a word, and the word is not a part of another one, with marks such as vowel signs."""
    start, end = word
    neighbours = line[max(0, start - 1) : start] + line[end : end + 1]
    is_whole = not any(unicodedata.category(character).startswith("M") for character in neighbours)
    return is_whole and line.strip() != line[start:end]


def _replace(line: str, spans: Sequence[Span]) -> str:
    return PLACEHOLDER.join(split_at(line, sorted(spans))[0]) if spans else line
