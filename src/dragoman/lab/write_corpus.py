"""The laboratory's corpus as files: train, dev and test, in both languages, with all that is known about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

import yaml

from dragoman.io.storage import DirectoryKind, atomic_directory
from dragoman.lab.laboratory import PARTS, Laboratory, Pair
from dragoman.lab.meaning import Said
from dragoman.lab.paths import KIND, SETTINGS, VERSION

CAPITALS = ("NN", "NE", "NNP")  # German nouns, names, and what the lexicon writes with a capital
CLOSING = ",.!?"

# What is known of a pair, one line in the file of this ending.
ENDINGS: dict[str, Callable[[Pair], str]] = {
    "de": lambda pair: " ".join(pair.german.words),
    "en": lambda pair: " ".join(pair.english.words),
    "raw.de": lambda pair: raw(pair.german),
    "raw.en": lambda pair: raw(pair.english),
    "de.trees": lambda pair: pair.german.tree,
    "en.trees": lambda pair: pair.english.tree,
    "align": lambda pair: " ".join(f"{german}-{english}" for german, english in pair.alignment),
    "logprob": lambda pair: "\t".join(f"{log_prob:.9f}" for log_prob in three(pair)),
}

CORPUS = DirectoryKind(
    "a corpus", SETTINGS, frozenset((SETTINGS, *(f"{part}.{end}" for part in PARTS for end in ENDINGS)))
)


def three(pair: Pair) -> tuple[float, float, float]:
    """log P(E), log P(F), log P(E | F)"""
    log_probs = pair.log_probs
    return log_probs.english, log_probs.german, log_probs.english_given_german


def raw(said: Said) -> str:
    """A sentence as it would be printed.

    >>> raw(Said(("der", "hund", ",", "oder", "?"), ("ART", "NN", "$,", "KON", "$."), (None,) * 5, ""))
    'Der Hund, oder?'
    """
    text = ""
    for word, tag in zip(said.words, said.tags, strict=True):
        space = " " if text and word not in CLOSING else ""
        text += space + (word.capitalize() if tag in CAPITALS or not text else word)
    return text


def write(laboratory: Laboratory, path: Path, sizes: Mapping[str, int], seed: int, *, replace: bool = False) -> None:
    """Write the corpus as a new directory: the same files for the same seed.

    Each part is drawn for itself: a longer training text begins with the shorter one, and dev and test stay the same.
    """
    with atomic_directory(path, replace=replace, kind=CORPUS) as directory:
        for part, size in sizes.items():
            _write_part(directory, part, laboratory.pairs(size, seed, part))
        manifest = yaml.safe_dump(_manifest(laboratory, sizes, seed), sort_keys=False)
        (directory / SETTINGS).write_text(manifest, encoding="utf-8")


def _write_part(directory: Path, part: str, pairs: Iterable[Pair]) -> None:
    with ExitStack() as stack:
        files: dict[str, TextIO] = {
            ending: stack.enter_context((directory / f"{part}.{ending}").open("w", encoding="utf-8", newline="\n"))
            for ending in ENDINGS
        }
        for pair in pairs:
            for ending, line in ENDINGS.items():
                files[ending].write(line(pair) + "\n")


def _manifest(laboratory: Laboratory, sizes: Mapping[str, int], seed: int) -> dict[str, object]:
    entropy = laboratory.entropy
    return {
        "kind": KIND,
        "grammar": VERSION,
        "about": "Synthetic sentence pairs drawn from a grammar; see .logprob for the exact log P(E), P(F), P(E | F).",
        "seed": seed,
        "pairs": dict(sizes),
        "expected_words": {"de": round(entropy.german_words, 6), "en": round(entropy.english_words, 6)},
        "entropy_nats_a_sentence": {
            "de": round(entropy.german, 6),
            "en": round(entropy.english, 6),
            "en_given_de": round(entropy.english_given_german, 6),
        },
        "entropy_nats_a_word": {"en_given_de": round(entropy.english_given_german_per_word, 6)},
    }
