"""Placeholders in a training text, so that a translator learns to copy what it does not know.

A placeholder stands for something that is the same on both sides of a pair: an item such as `%s` or an address, and in
some of the pairs a word such as a name, unless there is nothing else. A translator that knows placeholders reads one for
every item of a line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from random import Random

from dragoman.data.copied_items import PLACEHOLDER, find_items
from dragoman.data.long_numbers import find_long_numbers

WORD = re.compile(r"[^\W_]{3,}")
MIN_COPIED_SHARE = 0.5  # of the pairs with a word on one side, those with it on both, if the word is a copy
PLACEHOLDER_SHARE = 1 / 3  # of the pairs with copied words that get a placeholder


def add_placeholders(source: Sequence[str], target: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """Return the lines of parallel texts with placeholders.

    >>> source, target = add_placeholders(["Zeile %d von a@b.org"], ["line %d of a@b.org"], seed=1)
    >>> source[0].replace(PLACEHOLDER, "_"), target[0].replace(PLACEHOLDER, "_")
    ('Zeile _ von _', 'line _ of _')
    """
    random, copies = Random(seed), _copied_words(source, target)
    pairs = []
    for first, second in zip(source, target, strict=True):
        items = _in_both(*([text[start:end] for start, end in find_items(text)] for text in (first, second)))
        shared = _in_both(_words(first), _words(second))
        words = [word for word in shared if word in copies and word not in (first.strip(), second.strip())]
        if words and random.random() < PLACEHOLDER_SHARE:
            items.append(random.choice(words))
        pairs.append((_replace(first, items), _replace(second, items)))
    return [first for first, _ in pairs], [second for _, second in pairs]


def _copied_words(source: Sequence[str], target: Sequence[str]) -> set[str]:
    """Return the words that are usually the same in the translation: names, not words such as `was`."""
    counts, both = Counter[str](), Counter[str]()
    for first, second in zip(source, target, strict=True):
        sides = set(_words(first)), set(_words(second))
        counts.update(sides[0] | sides[1])
        both.update(sides[0] & sides[1])
    return {word for word, count in both.items() if count >= MIN_COPIED_SHARE * counts[word]}


def _words(line: str) -> list[str]:
    """Return the words and long numbers of a line: those that can be copied. `1,250.50` is one number."""
    numbers = [number.text for number in find_long_numbers(line)] if any(map(str.isdecimal, line)) else []
    return [*(word for word in WORD.findall(line) if not word.isdecimal()), *numbers]


def _in_both(first: list[str], second: list[str]) -> list[str]:
    """Return what occurs exactly once on each side."""
    counts = Counter(first), Counter(second)
    return [text for text in first if counts[0][text] == 1 == counts[1][text]]


def _replace(line: str, items: Sequence[str]) -> str:
    for item in items:
        line = re.sub(rf"(?<!\w){re.escape(item)}(?!\w)", PLACEHOLDER, line)
    return line
