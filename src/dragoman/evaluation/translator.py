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

from dragoman.core.errors import DataError, error_at_line
from dragoman.data.alignments import append_end, attention_to_words
from dragoman.data.formats import read_utf8
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.trees import TreeBatch
from dragoman.data.vocabulary import SPECIALS, UNK
from dragoman.evaluation.alignment import AlignmentCounts, GoldAlignment, argmax_links, count_all_links
from dragoman.evaluation.edit_distance import EditCounts, WordRecall, count_edits, word_recall
from dragoman.evaluation.floor import PointEstimate, RatioEstimator
from dragoman.evaluation.likelihood import finite_or_none
from dragoman.evaluation.translation_metrics import (
    LengthBucket,
    MetricStatistics,
    TranslationScores,
    bleu,
    bleu_by_length,
    chrf,
    scores_from_statistics,
    word_counts,
)

DEFAULT_BEAM = 5
DEFAULT_LENGTH = "norm"
CONDITIONAL_COLUMN = 2  # the column of log P(E | F) in the laboratory's .logprob files
ERROR_KINDS = ("none", "search", "model")  # see `dragoman.search.diagnosis`


class EvaluableTranslator(Protocol):
    """What is asked of a translator here; `dragoman.models.translation.Translating` has it."""

    source: Tokenizer
    target: Tokenizer

    @property
    def without_shortlist(self) -> EvaluableTranslator:
        """The same by which no word is impossible."""
        ...

    def translate(
        self,
        lines: Sequence[str],
        beam_size: int = DEFAULT_BEAM,
        *,
        length: Any = DEFAULT_LENGTH,
        coverage: float = 0.0,
        max_tokens: int = ...,
        unknown_replacer: Any = None,
    ) -> list[Any]: ...

    def force_decode(self, sources: Sequence[str], targets: Sequence[str]) -> list[Any]: ...

    def likelihood(self, lines: Sequence[str], references: Sequence[str]) -> Any: ...

    def diagnose(
        self,
        lines: Sequence[str],
        references: Sequence[str],
        translations: Sequence[Any],
        length: Any = DEFAULT_LENGTH,
        coverage: float = 0.0,
    ) -> list[Any]: ...


@dataclass(frozen=True, eq=False)
class ReferenceData:
    """What is known about sentences to translate: references and, of laboratory text, the truth."""

    references: Sequence[str]
    true_log_probs: NDArray[np.float64] | None = None  # (sentences,) the true log P(E | F) of each reference
    gold_alignments: Sequence[GoldAlignment] | None = None  # the true alignment of source and reference
    tokenised: bool = True  # whether words are taken as they are, or BLEU splits them

    def __post_init__(self) -> None:
        wanted = len(self.references)
        for what, known in (("log-probabilities", self.true_log_probs), ("alignments", self.gold_alignments)):
            if known is not None and len(known) != wanted:
                raise DataError(f"{wanted:,} references but {len(known):,} {what}; give as many")

    @cached_property
    def floor(self) -> PointEstimate | None:
        """The perplexity of the truth: exp(-sum log P(E | F) / (words and sentence ends)), and its standard error."""
        if self.true_log_probs is None:
            return None
        tokens = np.array([len(line.split()) + 1 for line in self.references], np.int64)
        return RatioEstimator.from_sentences(-self.true_log_probs, tokens).exponential


def read_log_probs(path: Path, column: int = CONDITIONAL_COLUMN) -> NDArray[np.float64]:
    """A column of a file of log-probabilities, as the laboratory writes them: numbers with TABs between."""
    lines = read_utf8(path).decode().removesuffix("\n").split("\n")
    return np.array([_number(line, column, path, place) for place, line in enumerate(lines, 1)])


def _number(line: str, column: int, path: Path, place: int) -> float:
    try:
        return float(line.split("\t")[column])
    except (ValueError, IndexError):
        raise error_at_line(
            str(path), place, f"no number in column {column + 1}; draw the corpus anew with dragoman lab"
        ) from None


# -- what is measured ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TranslatorEvaluation:
    """How a translator does on a text."""

    reference_data: ReferenceData
    translations: tuple[Any, ...]  # of `dragoman.models.translation.Translated`
    seconds: float  # that translating took
    bleu_statistics: MetricStatistics
    chrf_statistics: MetricStatistics
    reference_likelihood: Any  # of the references: a `dragoman.models.translation.PairLikelihood`
    by_length: tuple[LengthBucket, ...]  # by words of the source
    alignment: (
        AlignmentCounts | None
    )  # where it looks beside the true alignment; none without attention, or if that is unknown
    unknown_word_recall: (
        WordRecall | None
    )  # words of the references that it does not know; none if it writes parts of words
    errors: Mapping[str, int]  # how many of each of `ERRORS`, if that was asked for

    @property
    def perplexity(self) -> float:
        """Of the references given their sources, unknown words paid for in full."""
        return float(self.reference_likelihood.perplexity)

    @property
    def perplexity_class(self) -> float:
        """The same, but an unknown word only costs being unknown: the floor has no such price."""
        return float(self.reference_likelihood.perplexity_class)

    @property
    def floor(self) -> PointEstimate | None:
        """Their perplexity by the truth, where that is known."""
        return self.reference_data.floor

    @property
    def above_floor(self) -> float | None:
        """Nats a token more than the truth."""
        return None if self.floor is None else math.log(self.perplexity / self.floor.value)

    @cached_property
    def scores(self) -> TranslationScores:
        return scores_from_statistics(self.bleu_statistics, self.chrf_statistics)

    @cached_property
    def edits(self) -> EditCounts:
        """How far the translations are from the references, word by word."""
        return count_edits(self.texts, self.reference_data.references)

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
            **self.scores.as_dict(),
            "exact_match": self.edits.exact_match,
            "word_error_rate": self.edits.word_error_rate,
            "repeated_words": self.edits.repeated,
            "dropped_words": self.edits.dropped,
            "tokenised": self.reference_data.tokenised,
            "perplexity": finite_or_none(self.perplexity),
            "perplexity_class": finite_or_none(self.perplexity_class),
            "perplexity_characters": finite_or_none(self.reference_likelihood.perplexity_characters),
            "log_likelihood": finite_or_none(self.reference_likelihood.log_likelihood),
            "log_likelihood_unknown": finite_or_none(self.reference_likelihood.log_likelihood_unknown),
            "unknown": self.reference_likelihood.unknown,
            "unfinished": self.unfinished,
            "seconds": self.seconds,
            "sentences_per_second": len(self.translations) / self.seconds,
            "by_length": [own.as_dict() for own in self.by_length],
            **self._optional_values(),
        }

    def _optional_values(self) -> dict[str, Any]:
        """What not every text has, and not everyone asks for."""
        found: dict[str, Any] = {}
        if self.floor is not None:
            found |= {
                "perplexity_floor": finite_or_none(self.floor.value),
                "perplexity_floor_error": finite_or_none(self.floor.standard_error),
            }
        if self.alignment is not None:
            counted = self.alignment.as_dict()
            found |= {"alignment_error_rate": counted["error_rate"], "alignment": counted}
        if self.unknown_word_recall is not None:
            found |= {
                "unknown_words": self.unknown_word_recall.words,
                "unknown_words_found": self.unknown_word_recall.recalled,
            }
        if self.errors:
            found["errors"] = dict(self.errors)
        return found


def evaluate_translator(
    model: EvaluableTranslator,
    lines: Sequence[str],
    reference_data: ReferenceData,
    beam: int = DEFAULT_BEAM,
    *,
    length: Any = DEFAULT_LENGTH,
    coverage: float = 0.0,
    diagnose: bool = False,
    **how: Any,
) -> TranslatorEvaluation:
    """Translate lines, and compare with what is known. How: see `Translating.n_best`."""
    references = reference_data.references
    began = perf_counter()
    told = model.translate(lines, beam, length=length, coverage=coverage, **how)
    seconds = perf_counter() - began
    texts = [one.text for one in told]
    by_bleu = bleu(tokenised=reference_data.tokenised).statistics(texts, references)
    return TranslatorEvaluation(
        reference_data=reference_data,
        translations=tuple(told),
        seconds=seconds,
        bleu_statistics=by_bleu,
        chrf_statistics=chrf().statistics(texts, references),
        reference_likelihood=model.without_shortlist.likelihood(lines, references),
        by_length=bleu_by_length(by_bleu, source_lengths(model.source, lines)),
        alignment=None
        if reference_data.gold_alignments is None
        else attention_alignment_counts(model, lines, references, reference_data.gold_alignments),
        unknown_word_recall=recall_of_unknown_words(model.target, texts, references),
        errors=count_errors(model.diagnose(lines, references, told, length, coverage)) if diagnose else {},
    )


def recall_of_unknown_words(
    target: Tokenizer, translations: Sequence[str], references: Sequence[str]
) -> WordRecall | None:
    """Of the words of references that are unknown, how many came through all the same: names that were copied."""
    if target.segmenter.kind != "word":
        return None
    return word_recall(translations, references, lambda word: word not in SPECIALS and target.vocab.id(word) == UNK)


def source_lengths(source: Tokenizer, lines: Sequence[str]) -> list[int]:
    """What is between spaces; of trees, their leaves."""
    if source.format == TREE:
        return [int(size) - 1 for size in source.encode(lines).sizes]
    return word_counts(lines)


def count_errors(errors: Sequence[str | None]) -> Mapping[str, int]:
    """How many translations are the reference, the search's fault, or the model's."""
    counts = Counter(errors)
    return {error: counts[error] for error in ERROR_KINDS}


# -- where it looks --------------------------------------------------------------------------------------------------


def attention_alignment_counts(
    model: EvaluableTranslator,
    lines: Sequence[str],
    references: Sequence[str],
    gold_alignments: Sequence[GoldAlignment],
) -> AlignmentCounts | None:
    """How far the attention that predicts the references is from the true alignment; none without attention.

    Each word of a reference is linked to the source word with most attention, `</s>` left out on both sides.
    """
    told = model.force_decode(lines, references)
    if any(one.attention is None for one in told):
        return None
    found = [argmax_links(_word_attention(model, one, line)) for one, line in zip(told, lines, strict=True)]
    return count_all_links(found, gold_alignments)


def _word_attention(model: EvaluableTranslator, told: Any, line: str) -> NDArray[np.float64]:
    """The attention of a whole reference, whatever the units.  # (target words + 1, source words + 1)"""
    columns = attention_over_source_words(told.attention, model.source, line)
    return attention_to_words(
        columns, append_end(model.target.segmenter.word_indices(told.words)), list(range(columns.shape[1]))
    )


def attention_over_source_words(attention: NDArray[np.float64], source: Tokenizer, line: str) -> NDArray[np.float64]:
    """Attention with a column for each word of the source and one for `</s>`.  # (target units, source words + 1)

    What the pieces of a word receive is added up. What a node of a tree receives goes in equal parts to the words under
    it; trees have no `</s>` to look at.
    """
    if source.format != TREE:
        numbers = append_end(source.segmenter.word_indices(source.segmenter.segment(line)))
        return attention_to_words(attention, list(range(len(attention))), numbers)
    shares = TreeBatch.from_trees(source.encode([line])).word_shares[0]  # (nodes, words)
    return np.pad(attention @ shares, ((0, 0), (0, 1)))  # (target words, words + 1)
