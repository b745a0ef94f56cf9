"""Two artificial languages and sentence pairs in them, for tests of the doctor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

LINES, WORDS = 1200, 250
SOURCE, TARGET = ("bdgklmz", "aou"), ("cfnprstw", "eiy")  # consonants and vowels: the languages share no word


@cache
def vocabulary(letters: tuple[str, str], seed: int) -> tuple[str, ...]:
    """Different words of one to three syllables."""
    generator = np.random.default_rng(seed)
    consonants, vowels = map(list, letters)
    words: dict[str, None] = {}
    while len(words) < WORDS:
        syllables = int(generator.integers(1, 4))
        word = "".join(str(generator.choice(consonants)) + str(generator.choice(vowels)) for _ in range(syllables))
        words[word] = None
    return tuple(words)


@cache
def pairs(lines: int = LINES, seed: int = 1) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sentences of 6 to 12 words with a Zipf distribution, and their translations word by word in reverse order."""
    generator = np.random.default_rng(seed)
    weights = 1 / np.arange(3, WORDS + 3)
    source_words, target_words = vocabulary(SOURCE, 1), vocabulary(TARGET, 2)
    source, target = [], []
    for _ in range(lines):
        words = generator.choice(WORDS, int(generator.integers(6, 13)), p=weights / weights.sum())
        source.append(" ".join(source_words[word] for word in words))
        target.append(" ".join(target_words[word] for word in reversed(words)))
    return tuple(source), tuple(target)


def write(path: Path, lines: Sequence[str]) -> str:
    """Write lines to a file and return its path."""
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return str(path)
