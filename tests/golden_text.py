"""The texts of the golden tests: German sentences with translations, trees and alignments."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from dragoman import Corpus, Tokenizer

NOUNS = {"hund": "dog", "mann": "man", "vogel": "bird", "fisch": "fish", "baum": "tree"}
VERBS = {"sieht": "sees", "hört": "hears", "kennt": "knows"}


def _make_pair(rng: random.Random) -> tuple[str, str, str, list[tuple[int, int]]]:
    """Return a German sentence, its English translation, a tree over the German words and the word alignment."""
    subject, other = rng.choice(list(NOUNS)), rng.choice(list(NOUNS))
    verb = rng.choice(list(VERBS))
    if rng.random() < 0.3:
        source, target = f"der {subject} schläft .", f"the {NOUNS[subject]} is asleep ."
        tree = f"(S (NP der {subject}) (VP schläft .))"
        return source, target, tree, [(0, 0), (1, 1), (2, 2), (2, 3), (3, 4)]
    if rng.random() < 0.3:
        source, target = (
            f"den {other} {verb} der {subject} .",
            f"the {NOUNS[subject]} {VERBS[verb]} the {NOUNS[other]} .",
        )
        tree = f"(S (NP den {other}) (VP {verb} (X (NP der {subject}) .)))"
        return source, target, tree, [(0, 3), (1, 4), (2, 2), (3, 0), (4, 1), (5, 5)]
    source, target = f"der {subject} {verb} den {other} .", f"the {NOUNS[subject]} {VERBS[verb]} the {NOUNS[other]} ."
    tree = f"(S (NP der {subject}) (VP {verb} (X (NP den {other}) .)))"
    return source, target, tree, [(i, i) for i in range(6)]


_PAIRS = [_make_pair(random.Random(number)) for number in range(36)]
# Some words occur once, so that training with unknown words replaces them at random.
_PAIRS += [
    ("der igel schläft .", "the hedgehog is asleep .", "(S (NP der igel) (VP schläft .))", [(0, 0), (1, 1), (2, 2)]),
    (
        "der dachs sieht den hund .",
        "the badger sees the dog .",
        "(S (NP der dachs) (VP sieht (X (NP den hund) .)))",
        [],
    ),
    ("ja !", "yes !", "(S ja !)", [(0, 0), (1, 1)]),
]
GERMAN, ENGLISH, TREES, LINKS = (list(column) for column in zip(*_PAIRS, strict=True))
DEV_ENGLISH = ["the man hears the bird .", "the wolf is asleep .", "", "the tree the tree yes"]
TEST_GERMAN = ["der mann hört den vogel .", "den baum sieht der fisch .", "der wolf schläft .", "", "ja"]
TEST_ENGLISH = ["the man hears the bird .", "the fish sees the tree .", "the wolf is asleep .", "", "yes"]
TEST_TREES = [
    "(S (NP der mann) (VP hört (X (NP den vogel) .)))",
    "(S (NP den baum) (VP sieht (X (NP der fisch) .)))",
    "(S (NP der wolf) (VP schläft .))",
    "",
    "(S ja)",
]
WORD_CLASSES = dict.fromkeys(NOUNS.values(), "NOUN") | dict.fromkeys(VERBS.values(), "VERB")


@cache
def english(min_count: int = 1) -> Corpus:
    return Corpus.from_sentences(ENGLISH, min_count=min_count)


@cache
def sides(source_units: str = "word", target_units: str = "word", trees: bool = False) -> tuple[Tokenizer, Tokenizer]:
    """Return the source and target sides; a vocabulary of words has all words, also those seen once."""
    if trees:
        source = Tokenizer.train("word", TREES, min_count=1, format="tree")
    else:
        source = Tokenizer.train(source_units, GERMAN, min_count=1)
    return source, Tokenizer.train(target_units, ENGLISH, min_count=1)


def parallel(kind: type, source: Tokenizer, target: Tokenizer, **options: Any) -> Any:
    lines = TREES if source.format == "tree" else GERMAN
    return kind(source.encode(lines), target.encode(ENGLISH), **options)
