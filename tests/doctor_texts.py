"""Two invented languages and sentences in them, for the doctor to look at."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

LINES, WORDS = 1200, 250
SOURCE, TARGET = ("bdgklmz", "aou"), ("cfnprstw", "eiy")  # consonants and vowels: no word is one of both


@cache
def vocabulary(letters: tuple[str, str], seed: int) -> tuple[str, ...]:
    random = np.random.default_rng(seed)
    consonants, vowels = map(list, letters)
    words: dict[str, None] = {}
    while len(words) < WORDS:
        syllables = int(random.integers(1, 4))
        word = "".join(str(random.choice(consonants)) + str(random.choice(vowels)) for _ in range(syllables))
        words[word] = None
    return tuple(words)


@cache
def pairs(lines: int = LINES, seed: int = 1) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sentences of 6 to 12 words, common ones more often, and their translations word by word, backwards."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(3, WORDS + 3)
    one, two = vocabulary(SOURCE, 1), vocabulary(TARGET, 2)
    source, target = [], []
    for _ in range(lines):
        words = random.choice(WORDS, int(random.integers(6, 13)), p=share / share.sum())
        source.append(" ".join(one[word] for word in words))
        target.append(" ".join(two[word] for word in reversed(words)))
    return tuple(source), tuple(target)


def write(path: Path, lines: list[str] | tuple[str, ...]) -> str:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return str(path)
