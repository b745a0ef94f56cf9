"""Precision, recall and alignment error rate of word alignments (Och and Ney 2003).

A link (source, target) connects two words, both counted from 0. Gold links are sure or possible; sure links are
possible as well. Those of the lab are all sure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dragoman.core.errors import DataError, error_at_line
from dragoman.data.formats import display_name, read_utf8
from dragoman.evaluation.results import AdditiveResult, JsonResult

Link = tuple[int, int]  # source word, target word
LINK_PATTERN = re.compile(r"([0-9]{1,9})([-?])([0-9]{1,9})")


@dataclass(frozen=True)
class GoldAlignment:
    """The manual alignment of a sentence pair."""

    sure: frozenset[Link]
    possible: frozenset[Link]  # including the sure ones

    @property
    def reversed(self) -> GoldAlignment:
        """The alignment of the pair with source and target exchanged."""
        sure, possible = (
            frozenset((target, source) for source, target in links) for links in (self.sure, self.possible)
        )
        return GoldAlignment(sure, possible)


@dataclass(frozen=True)
class AlignmentCounts(AdditiveResult, JsonResult):
    """Numbers of links, from which the rates are computed."""

    predicted: int = field(default=0, metadata={"json": "found"})  # |A|
    sure: int = 0  # |S|
    possible: int = 0  # |P|
    predicted_sure: int = field(default=0, metadata={"json": "found_sure"})  # |A and S|
    predicted_possible: int = field(default=0, metadata={"json": "found_possible"})  # |A and P|

    reported = ("precision", "recall", "error_rate")

    @property
    def precision(self) -> float:
        """The share of the predicted links that are possible."""
        return self.predicted_possible / self.predicted if self.predicted else math.nan

    @property
    def recall(self) -> float:
        """The share of the sure links that are predicted."""
        return self.predicted_sure / self.sure if self.sure else math.nan

    @property
    def error_rate(self) -> float:
        """AER = 1 - (|A and S| + |A and P|) / (|A| + |S|): 0 is perfect. Undefined without links."""
        links = self.predicted + self.sure
        return 1 - (self.predicted_sure + self.predicted_possible) / links if links else math.nan


def count_links(predicted: Iterable[Link], gold: GoldAlignment) -> AlignmentCounts:
    """Compare the predicted links of a sentence pair with the gold ones."""
    links = frozenset(predicted)
    return AlignmentCounts(
        len(links), len(gold.sure), len(gold.possible), len(links & gold.sure), len(links & gold.possible)
    )


def count_all_links(predicted: Sequence[Iterable[Link]], gold: Sequence[GoldAlignment]) -> AlignmentCounts:
    """Return the sum over all sentence pairs of a text."""
    if len(predicted) != len(gold):
        raise DataError(f"{len(predicted):,} alignments but {len(gold):,} gold alignments; give one for each pair")
    pairs = zip(predicted, gold, strict=True)
    return sum((count_links(links, alignment) for links, alignment in pairs), AlignmentCounts())


def read_gold_alignments(path: str | Path) -> list[GoldAlignment]:
    """Read a file with one sentence pair per line: `0-0 1-2` are sure links, `1?2` is a possible one."""
    lines = read_utf8(path).decode().removesuffix("\n").split("\n")
    return [parse_gold_alignment(line, display_name(path), number) for number, line in enumerate(lines, 1)]


def parse_gold_alignment(text: str, source: str = "alignment", line: int = 1) -> GoldAlignment:
    """Parse the links of one line.

    >>> gold = parse_gold_alignment("0-0 2?1")
    >>> sorted(gold.sure), sorted(gold.possible)
    ([(0, 0)], [(0, 0), (2, 1)])
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    for word in text.split():
        match = LINK_PATTERN.fullmatch(word)
        if match is None:
            remedy = "write source-target, both counted from 0, such as 0-0 1-2, or 1?2 for a possible link"
            raise error_at_line(source, line, f"{word!r:.40} is not a link; {remedy}")
        (sure if match[2] == "-" else possible).add((int(match[1]), int(match[3])))
    return GoldAlignment(frozenset(sure), frozenset(sure | possible))


def to_pharaoh(links: Iterable[Link]) -> str:
    """Format links as a line, sorted.

    >>> to_pharaoh([(1, 2), (0, 0), (1, 1)])
    '0-0 1-1 1-2'
    """
    return " ".join(f"{source}-{target}" for source, target in sorted(set(links)))


def argmax_links(attention: ArrayLike) -> list[Link]:
    """Link each target word to the source word with the most attention (the first, if several), in target order.

    `attention` has one row per target word and one for `</s>`, one column per source word and one for `</s>`, both
    last. The row of `</s>` is ignored; a word whose maximum is the column of `</s>` has no link.

    >>> argmax_links([[0.1, 0.7, 0.2], [0.2, 0.1, 0.7], [0.6, 0.3, 0.1], [0.0, 0.0, 1.0]])
    [(1, 0), (0, 2)]
    """
    matrix = np.asarray(attention, np.float64)
    if matrix.ndim != 2 or not matrix.size:
        raise ValueError(f"attention of shape {matrix.shape}: expected a row and a column per word and for </s>")
    best = matrix[:-1].argmax(1).tolist()  # (target words,)
    return [(source, target) for target, source in enumerate(best) if source < matrix.shape[1] - 1]
