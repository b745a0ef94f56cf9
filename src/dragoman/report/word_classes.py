"""A table of word classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dragoman.data.vocabulary import SPECIALS
from dragoman.report.tables import format_table

if TYPE_CHECKING:
    from dragoman.data.brown import BrownClustering

CLASSES_SHOWN, WORDS_SHOWN = 12, 8


def format_classes(clustering: BrownClustering) -> str:
    """Return a table of the most frequent classes, in the order of the tree.

    The frequency of a class is that of its words without the most frequent one: a class of `the` and a few rare words
    would not be informative.
    """
    classes, counts = clustering.class_of, clustering.counts
    tokens, highest = np.zeros((2, len(clustering.paths)), np.int64)
    np.add.at(tokens, classes, counts)
    np.maximum.at(highest, classes, counts)
    shared = (tokens - highest)[len(SPECIALS) :]
    chosen = np.sort(np.argsort(-shared, kind="stable")[:CLASSES_SHOWN]) + len(SPECIALS)
    members = {clustering.paths[number]: clustering.members[number] for number in chosen}
    # The space after the bits prevents that they are aligned as numbers.
    rows = [[f"{path} ", len(words), " ".join(words[:WORDS_SHOWN])] for path, words in members.items()]
    return format_table(["bits ", "words", "most frequent words"], rows)
