"""How far alignments are from those that people drew: precision, recall and alignment error rate (Och and Ney 2003).

A link says that a word of the source and a word of the target belong together: (source, target), both counted from 0.
Gold links are sure or only possible; sure ones are possible too. The laboratory's are all sure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dragoman.core.errors import DataError, error_at_line
from dragoman.data.formats import display_name, read_utf8

Link = tuple[int, int]  # source word, target word
LINK_PATTERN = re.compile(r"([0-9]{1,9})([-?])([0-9]{1,9})")


@dataclass(frozen=True)
class GoldAlignment:
    """The links of a sentence pair as people drew them."""

    sure: frozenset[Link]
    possible: frozenset[Link]  # the sure ones among them


@dataclass(frozen=True)
class AlignmentCounts:
    """Numbers that add up: the error on two sets of sentences comes from the sum of theirs.

    >>> gold = parse_gold("0-0 1-1 1?2")
    >>> counts = count({(0, 0), (1, 2), (2, 2)}, gold)
    >>> counts.precision, counts.recall, counts.error_rate
    (0.6666666666666666, 0.5, 0.4)
    """

    found: int = 0  # |A|
    sure: int = 0  # |S|
    possible: int = 0  # |P|
    found_sure: int = 0  # |A and S|
    found_possible: int = 0  # |A and P|

    def __add__(self, other: AlignmentCounts) -> AlignmentCounts:
        return AlignmentCounts(
            self.found + other.found,
            self.sure + other.sure,
            self.possible + other.possible,
            self.found_sure + other.found_sure,
            self.found_possible + other.found_possible,
        )

    @property
    def precision(self) -> float:
        """The share of the links found that are at least possible."""
        return self.found_possible / self.found if self.found else math.nan

    @property
    def recall(self) -> float:
        """The share of the sure links that were found."""
        return self.found_sure / self.sure if self.sure else math.nan

    @property
    def error_rate(self) -> float:
        """AER = 1 - (|A and S| + |A and P|) / (|A| + |S|): 0 is perfect. Undefined if there is nothing to count."""
        links = self.found + self.sure
        return 1 - (self.found_sure + self.found_possible) / links if links else math.nan

    def as_dict(self) -> dict[str, Any]:
        """Plain values; what is undefined is None."""
        shares = {"precision": self.precision, "recall": self.recall, "error_rate": self.error_rate}
        return asdict(self) | {name: None if math.isnan(share) else share for name, share in shares.items()}


def count_links(predicted: Iterable[Link], gold: GoldAlignment) -> AlignmentCounts:
    """What the links found in one sentence pair have in common with the gold ones."""
    links = frozenset(predicted)
    return AlignmentCounts(
        len(links), len(gold.sure), len(gold.possible), len(links & gold.sure), len(links & gold.possible)
    )


def count_all_links(predicted: Sequence[Iterable[Link]], gold: Sequence[GoldAlignment]) -> AlignmentCounts:
    """The sum over all sentence pairs of a text."""
    if len(predicted) != len(gold):
        raise DataError(f"{len(predicted):,} alignments for {len(gold):,} gold ones; line i must be of the same pair")
    return sum((count_links(links, own) for links, own in zip(predicted, gold, strict=True)), AlignmentCounts())


# -- files -----------------------------------------------------------------------------------------------------------


def read_gold_alignments(path: str | Path) -> list[GoldAlignment]:
    """The alignments of a file, one sentence pair a line: `0-0 1-2` are sure links, `1?2` is a possible one."""
    lines = read_utf8(path).decode().removesuffix("\n").split("\n")
    return [parse_gold_alignment(line, display_name(path), number) for number, line in enumerate(lines, 1)]


def parse_gold_alignment(text: str, source: str = "alignment", line: int = 1) -> GoldAlignment:
    """The links of one line.

    >>> gold = parse_gold("0-0 2?1")
    >>> sorted(gold.sure), sorted(gold.possible)
    ([(0, 0)], [(0, 0), (2, 1)])
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    for word in text.split():
        link = LINK_PATTERN.fullmatch(word)
        if link is None:
            remedy = "write source-target, both counted from 0, such as 0-0 1-2, or 1?2 if it is only possible"
            raise error_at_line(source, line, f"{word!r:.40} is not a link; {remedy}")
        (sure if link[2] == "-" else possible).add((int(link[1]), int(link[3])))
    return GoldAlignment(frozenset(sure), frozenset(sure | possible))


def to_pharaoh(links: Iterable[Link]) -> str:
    """Links as a line, sorted.

    >>> to_pharaoh([(1, 2), (0, 0), (1, 1)])
    '0-0 1-1 1-2'
    """
    return " ".join(f"{source}-{target}" for source, target in sorted(set(links)))


# -- attention -------------------------------------------------------------------------------------------------------


def argmax_links(attention: ArrayLike, source_words: int | None = None, target_words: int | None = None) -> list[Link]:
    """Each target word with the source word that it attends to most (the first, if several), in order of the target.

    `attention` has a row for each target word and one for `</s>`, a column for each source word and one for `</s>`,
    the last of both; if there is padding behind them, say how many words there are. The row of `</s>` is left out; a
    word that attends to the source's `</s>` most is aligned to nothing.

    >>> argmax_links([[0.1, 0.7, 0.2], [0.2, 0.1, 0.7], [0.6, 0.3, 0.1], [0.0, 0.0, 1.0]])
    [(1, 0), (0, 2)]
    """
    matrix = np.asarray(attention, np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"attention of shape {matrix.shape}: a row for each target word is wanted")
    sources = matrix.shape[1] - 1 if source_words is None else source_words
    targets = matrix.shape[0] - 1 if target_words is None else target_words
    if not (0 <= sources < matrix.shape[1] and 0 <= targets < matrix.shape[0]):
        raise ValueError(f"attention of shape {matrix.shape} for {targets} target and {sources} source words and </s>")
    best = matrix[:targets, : sources + 1].argmax(1).tolist()  # (target words,)
    return [(source, target) for target, source in enumerate(best) if source < sources]
