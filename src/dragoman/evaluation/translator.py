"""What a translator makes of a text: BLEU and chrF, what the references cost, whose fault errors are; and, where the
truth is known, the floor of P(E | F) and the attention beside the true alignment.

The floor of P(E | F) is what the references cost by the distribution that they were drawn from, given their sources;
see `dragoman.evaluation.floor` for what holds of floors, and of their standard errors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, at
from dragoman.data.formats import read_lines
from dragoman.data.tokenizer import TREE, Side
from dragoman.data.trees import TreeBatch
from dragoman.data.vocabulary import SPECIALS, UNK
from dragoman.data.word_alignment import to_words, with_end
from dragoman.evaluation.alignment import Counts, Gold, argmax_links, count_all
from dragoman.evaluation.edit_distance import Edits, Recalled, count_edits, recalled
from dragoman.evaluation.floor import Estimate, Ratio
from dragoman.evaluation.likelihood import finite
from dragoman.evaluation.translation_metrics import (
    Judged,
    LengthClass,
    Statistics,
    bleu,
    bleu_by_length,
    chrf,
    judged,
    word_counts,
)

BEAM = 5
LENGTH = "norm"
GIVEN = 2  # the column of log P(E | F) in the laboratory's .logprob files
ERRORS = ("none", "search", "model")  # see `dragoman.search.diagnosis`


class Translates(Protocol):
    """What is asked of a translator here; `dragoman.models.translation.Translating` has it."""

    source: Side
    target: Side

    @property
    def exact(self) -> Translates:
        """The same by which no word is impossible."""
        ...

    def translate(self, lines: Sequence[str], beam: int = BEAM, *, length: Any = LENGTH, **how: Any) -> list[Any]: ...

    def score(self, lines: Sequence[str], translations: Sequence[str]) -> list[Any]: ...

    def likelihood(self, lines: Sequence[str], references: Sequence[str]) -> Any: ...

    def diagnose(
        self,
        lines: Sequence[str],
        references: Sequence[str],
        found: Sequence[Any],
        length: Any = LENGTH,
        coverage: float = 0.0,
    ) -> list[Any]: ...


@dataclass(frozen=True, eq=False)
class Answers:
    """What is known about sentences to translate: references and, of laboratory text, the truth."""

    references: Sequence[str]
    log_probs: NDArray[np.float64] | None = None  # (sentences,) the true log P(E | F) of each reference
    gold: Sequence[Gold] | None = None  # the true alignment of source and reference
    tokenised: bool = True  # whether words are taken as they are, or BLEU splits them

    def __post_init__(self) -> None:
        wanted = len(self.references)
        for what, known in (("log-probabilities", self.log_probs), ("alignments", self.gold)):
            if known is not None and len(known) != wanted:
                raise DataError(f"{wanted:,} references but {len(known):,} {what}; give as many")

    @cached_property
    def floor(self) -> Estimate | None:
        """The perplexity of the truth: exp(-sum log P(E | F) / (words and sentence ends)), and its standard error."""
        if self.log_probs is None:
            return None
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


@dataclass(frozen=True, eq=False)
class MeasuredTranslator:
    """How a translator does on a text."""

    answers: Answers
    translations: tuple[Any, ...]  # of `dragoman.models.translation.Translated`
    seconds: float  # that translating took
    by_bleu: Statistics
    by_chrf: Statistics
    cost: Any  # of the references: a `dragoman.models.translation.PairLikelihood`
    by_length: tuple[LengthClass, ...]  # by words of the source
    alignment: Counts | None  # where it looks beside the true alignment; none without attention, or if that is unknown
    strange: Recalled | None  # words of the references that it does not know; none if it writes parts of words
    errors: Mapping[str, int]  # how many of each of `ERRORS`, if that was asked for

    @property
    def perplexity(self) -> float:
        """Of the references given their sources, unknown words paid for in full."""
        return float(self.cost.perplexity)

    @property
    def perplexity_class(self) -> float:
        """The same, but an unknown word only costs being unknown: the floor has no such price."""
        return float(self.cost.perplexity_class)

    @property
    def floor(self) -> Estimate | None:
        """Their perplexity by the truth, where that is known."""
        return self.answers.floor

    @property
    def above_floor(self) -> float | None:
        """Nats a token more than the truth."""
        return None if self.floor is None else math.log(self.perplexity / self.floor.value)

    @cached_property
    def judged(self) -> Judged:
        return judged(self.by_bleu, self.by_chrf)

    @cached_property
    def edits(self) -> Edits:
        """How far the translations are from the references, word by word."""
        return count_edits(self.texts, self.answers.references)

    @property
    def texts(self) -> list[str]:
        return [told.text for told in self.translations]

    @property
    def unfinished(self) -> int:
        """Translations that were cut off."""
        return sum(not told.finished for told in self.translations)

    def as_dict(self) -> dict[str, Any]:
        """Plain values; what is infinite or undefined is None, and what is not known or asked for is left out."""
        return {
            **self.judged.as_dict(),
            "exact_match": self.edits.exact_match,
            "word_error_rate": self.edits.word_error_rate,
            "repeated_words": self.edits.repeated,
            "dropped_words": self.edits.dropped,
            "tokenised": self.answers.tokenised,
            "perplexity": finite(self.perplexity),
            "perplexity_class": finite(self.perplexity_class),
            "perplexity_characters": finite(self.cost.perplexity_characters),
            "log_likelihood": finite(self.cost.log_likelihood),
            "log_likelihood_unknown": finite(self.cost.log_likelihood_unknown),
            "unknown": self.cost.unknown,
            "unfinished": self.unfinished,
            "seconds": self.seconds,
            "sentences_per_second": len(self.translations) / self.seconds,
            "by_length": [own.as_dict() for own in self.by_length],
            **self._known(),
        }

    def _known(self) -> dict[str, Any]:
        """What not every text has, and not everyone asks for."""
        found: dict[str, Any] = {}
        if self.floor is not None:
            found |= {"perplexity_floor": finite(self.floor.value), "perplexity_floor_error": finite(self.floor.error)}
        if self.alignment is not None:
            counted = self.alignment.as_dict()
            found |= {"alignment_error_rate": counted["error_rate"], "alignment": counted}
        if self.strange is not None:
            found |= {"unknown_words": self.strange.words, "unknown_words_found": self.strange.found}
        if self.errors:
            found["errors"] = dict(self.errors)
        return found


def measure_translator(
    model: Translates,
    lines: Sequence[str],
    answers: Answers,
    beam: int = BEAM,
    *,
    length: Any = LENGTH,
    coverage: float = 0.0,
    diagnose: bool = False,
    **how: Any,
) -> MeasuredTranslator:
    """Translate lines, and compare with what is known. How: see `Translating.n_best`."""
    references = answers.references
    began = perf_counter()
    told = model.translate(lines, beam, length=length, coverage=coverage, **how)
    seconds = perf_counter() - began
    texts = [one.text for one in told]
    by_bleu = bleu(tokenised=answers.tokenised).statistics(texts, references)
    return MeasuredTranslator(
        answers=answers,
        translations=tuple(told),
        seconds=seconds,
        by_bleu=by_bleu,
        by_chrf=chrf().statistics(texts, references),
        cost=model.exact.likelihood(lines, references),
        by_length=bleu_by_length(by_bleu, source_words(model.source, lines)),
        alignment=None if answers.gold is None else attention_error(model, lines, references, answers.gold),
        strange=strange_words(model.target, texts, references),
        errors=counted_errors(model.diagnose(lines, references, told, length, coverage)) if diagnose else {},
    )


def strange_words(target: Side, translations: Sequence[str], references: Sequence[str]) -> Recalled | None:
    """Of the words of references that are unknown, how many came through all the same: names that were copied."""
    if target.units.kind != "word":
        return None
    return recalled(translations, references, lambda word: word not in SPECIALS and target.vocab.id(word) == UNK)


def source_words(source: Side, lines: Sequence[str]) -> list[int]:
    """What is between spaces; of trees, their leaves."""
    if source.format == TREE:
        return [int(size) - 1 for size in source.read(lines).sizes]
    return word_counts(lines)


def counted_errors(found: Sequence[str | None]) -> Mapping[str, int]:
    """How many translations are the reference, the search's fault, or the model's."""
    counts = Counter(found)
    return {error: counts[error] for error in ERRORS}


# -- where it looks --------------------------------------------------------------------------------------------------


def attention_error(
    model: Translates, lines: Sequence[str], references: Sequence[str], gold: Sequence[Gold]
) -> Counts | None:
    """How far the attention that predicts the references is from the true alignment; none without attention.

    Each word of a reference is linked to the source word with most attention, `</s>` left out on both sides.
    """
    told = model.score(lines, references)
    if any(one.attention is None for one in told):
        return None
    found = [argmax_links(_between_words(model, one, line)) for one, line in zip(told, lines, strict=True)]
    return count_all(found, gold)


def _between_words(model: Translates, told: Any, line: str) -> NDArray[np.float64]:
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
