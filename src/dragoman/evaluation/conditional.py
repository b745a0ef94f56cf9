"""Translators held to the truth where it is known: P(E | F) beside its floor, attention beside the true alignment.

The floor of P(E | F) is what the references cost by the distribution that they were drawn from, given their sources;
see `dragoman.evaluation.floor` for what holds of floors, and of their standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DataError, at
from dragoman.evaluation.alignment import Counts, Gold, argmax_links, count_all
from dragoman.evaluation.floor import Estimate, Ratio
from dragoman.evaluation.likelihood import finite
from dragoman.evaluation.translation import Judged, LengthClass, bleu, bleu_by_length, chrf, judge, judged
from dragoman.text.alignment_units import to_words, with_end
from dragoman.text.formats import read_lines
from dragoman.text.sides import TREE, Side
from dragoman.text.trees import TreeBatch

BEAM = 5
GIVEN = 2  # the column of log P(E | F) in the laboratory's .logprob files


class Translating(Protocol):
    """What is asked of a translator here."""

    source: Side
    target: Side

    def translate(self, lines: Sequence[str], beam: int = 5) -> list[Any]: ...

    def score(self, lines: Sequence[str], translations: Sequence[str]) -> list[Any]: ...

    def likelihood(self, lines: Sequence[str], references: Sequence[str]) -> Any: ...


@dataclass(frozen=True, eq=False)
class Answers:
    """What is known about sentences to translate."""

    references: Sequence[str]
    log_probs: NDArray[np.float64]  # (sentences,) the true log P(E | F) of each reference
    gold: Sequence[Gold]  # the true alignment of source and reference

    def __post_init__(self) -> None:
        found = (len(self.references), len(self.log_probs), len(self.gold))
        if len(set(found)) > 1:
            raise DataError("{:,} references, {:,} log-probabilities and {:,} alignments; give as many".format(*found))

    @property
    def floor(self) -> Estimate:
        """The perplexity of the truth: exp(-sum log P(E | F) / (words and sentence ends)), and its standard error."""
        tokens = np.array([len(line.split()) + 1 for line in self.references], np.int64)
        return Ratio.of(-self.log_probs, tokens).exponential


def read_log_probs(path: Path, column: int = GIVEN) -> NDArray[np.float64]:
    """A column of a file of log-probabilities, as the laboratory writes them: numbers with TABs between."""
    lines = read_lines(path).decode().removesuffix("\n").split("\n")
    return np.array([_number(line, column, path, place) for place, line in enumerate(lines, 1)])


def _number(line: str, column: int, path: Path, place: int) -> float:
    try:
        return float(line.split("\t")[column])
    except (ValueError, IndexError):
        raise at(
            str(path), place, f"no number in column {column + 1}; draw the corpus anew with dragoman lab"
        ) from None


# -- what is measured ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeasuredTranslator:
    """How a translator does on sentences of which everything is known."""

    perplexity: float  # of the references given their sources, unknown words paid for in full
    perplexity_class: float  # the same, but an unknown word only costs being unknown: the floor has no such price
    floor: Estimate  # the first by the truth
    beam: Judged  # its translations beside the references
    greedy: Judged  # the same where each word is the most probable one
    by_length: tuple[LengthClass, ...]  # the beam's, by words of the source
    alignment: Counts | None  # where it looks beside the true alignment; none without attention
    translations: tuple[str, ...]  # the beam's

    @property
    def above_floor(self) -> float:
        """Nats a token more than the truth."""
        return math.log(self.perplexity / self.floor.value)

    def as_dict(self) -> dict[str, Any]:
        """Plain values; what is infinite or undefined is None."""
        return {
            "perplexity": finite(self.perplexity),
            "perplexity_class": finite(self.perplexity_class),
            "floor": finite(self.floor.value),
            "floor_error": finite(self.floor.error),
            "beam": self.beam.as_dict(),
            "greedy": self.greedy.as_dict(),
            "by_length": [own.as_dict() for own in self.by_length],
            "alignment": None if self.alignment is None else self.alignment.as_dict(),
        }


def measure_translator(model: Translating, lines: Sequence[str], answers: Answers) -> MeasuredTranslator:
    """Translate tokenised lines, and compare with what is known."""
    references = answers.references
    told = [one.text for one in model.translate(lines, BEAM)]
    cost = model.likelihood(lines, references)
    by_bleu = bleu(tokenised=True).statistics(told, references)
    lengths = (model.source.read(lines).sizes - 1).tolist()
    return MeasuredTranslator(
        perplexity=cost.perplexity,
        perplexity_class=cost.perplexity_class,
        floor=answers.floor,
        beam=judged(by_bleu, chrf().statistics(told, references)),
        greedy=judge([one.text for one in model.translate(lines, 1)], references, tokenised=True),
        by_length=bleu_by_length(by_bleu, lengths),
        alignment=attention_error(model, lines, references, answers.gold),
        translations=tuple(told),
    )


# -- where it looks --------------------------------------------------------------------------------------------------


def attention_error(
    model: Translating, lines: Sequence[str], references: Sequence[str], gold: Sequence[Gold]
) -> Counts | None:
    """How far the attention that predicts the references is from the true alignment; none without attention.

    Each word of a reference is linked to the source word with most attention, `</s>` left out on both sides.
    """
    told = model.score(lines, references)
    if any(one.attention is None for one in told):
        return None
    found = [argmax_links(_between_words(model, one, line)) for one, line in zip(told, lines, strict=True)]
    return count_all(found, gold)


def _between_words(model: Translating, told: Any, line: str) -> NDArray[np.float64]:
    """The attention of a whole reference, whatever the units.  # (target words + 1, source words + 1)"""
    columns = over_words(told.attention, model.source, line)
    return to_words(columns, with_end(model.target.units.word_of_unit(told.words)), list(range(columns.shape[1])))


def over_words(attention: NDArray[np.float64], source: Side, line: str) -> NDArray[np.float64]:
    """Attention with a column for each word of the source and one for `</s>`.  # (target units, source words + 1)

    What the pieces of a word receive is added up. What a node of a tree receives goes in equal parts to the words under
    it; trees have no `</s>` to look at.
    """
    if source.format != TREE:
        numbers = with_end(source.units.word_of_unit(source.units.cut(line)))
        return to_words(attention, list(range(len(attention))), numbers)
    shares = TreeBatch.of(source.read([line])).shares[0]  # (nodes, words)
    return np.pad(attention @ shares, ((0, 0), (0, 1)))  # (target words, words + 1)
