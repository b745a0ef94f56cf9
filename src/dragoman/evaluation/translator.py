"""Evaluation of a translator on sentence pairs.

BLEU and chrF, the likelihood of the references, kinds of errors; on lab text also the floor of P(E | F) and the
alignment error rate of the attention. See `dragoman.evaluation.floor` for floors and their standard errors.
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

from dragoman.core.defaults import DEFAULT_LENGTH
from dragoman.core.errors import DataError, error_at_line
from dragoman.data.alignments import append_end, attention_to_words
from dragoman.data.formats import read_utf8
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.trees import Treebank, TreeBatch
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
CONDITIONAL_COLUMN = 2  # the column of log P(E | F) in the lab's .logprob files
ERROR_KINDS = ("none", "search", "model")  # see `dragoman.search.diagnosis`


class TranslationLike(Protocol):
    """A translation of a line, such as `dragoman.models.translation.Translation`."""

    @property
    def text(self) -> str: ...

    @property
    def tokens(self) -> tuple[str, ...]: ...

    @property
    def finished(self) -> bool:
        """False if it was cut off at the maximum length."""
        ...

    @property
    def attention(self) -> NDArray[np.float64] | None:
        """Attention weights, if the translator has attention.  # (tokens and `</s>`, source tokens and `</s>`)"""
        ...


class ReferenceLikelihood(Protocol):
    """The likelihood of references given their sources."""

    @property
    def log_likelihood(self) -> float: ...

    @property
    def log_likelihood_unknown(self) -> float: ...

    @property
    def unknown(self) -> int: ...

    @property
    def perplexity(self) -> float: ...

    @property
    def perplexity_class(self) -> float: ...

    @property
    def perplexity_characters(self) -> float: ...


class EvaluableTranslator(Protocol):
    """The methods of a translator that are needed for its evaluation."""

    source: Tokenizer
    target: Tokenizer

    @property
    def without_shortlist(self) -> EvaluableTranslator:
        """The translator with all words allowed."""
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

    def likelihood(self, lines: Sequence[str], references: Sequence[str]) -> ReferenceLikelihood: ...

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
    """The references of a text; of lab text also their true probabilities and alignments."""

    references: Sequence[str]
    true_log_probs: NDArray[np.float64] | None = None  # (sentences,) the true log P(E | F) of each reference
    gold_alignments: Sequence[GoldAlignment] | None = None  # the true alignments of source and reference
    tokenised: bool = True  # whether words are those between spaces, or BLEU tokenises the text

    def __post_init__(self) -> None:
        sentences = len(self.references)
        for name, values in (("log-probabilities", self.true_log_probs), ("alignments", self.gold_alignments)):
            if values is not None and len(values) != sentences:
                raise DataError(f"{sentences:,} references but {len(values):,} {name}; give one for each reference")

    @cached_property
    def floor(self) -> PointEstimate | None:
        """The true perplexity exp(-sum log P(E | F) / (words and sentence ends)), and its standard error."""
        if self.true_log_probs is None:
            return None
        tokens = np.array([len(line.split()) + 1 for line in self.references], np.int64)
        return RatioEstimator.from_sentences(-self.true_log_probs, tokens).exponential


def read_log_probs(path: Path, column: int = CONDITIONAL_COLUMN) -> NDArray[np.float64]:
    """Read a column of a file of log-probabilities that `dragoman lab` wrote: numbers separated by TABs."""
    lines = read_utf8(path).decode().removesuffix("\n").split("\n")
    return np.array([_parse_number(line, column, path, number) for number, line in enumerate(lines, 1)])


def _parse_number(line: str, column: int, path: Path, number: int) -> float:
    try:
        return float(line.split("\t")[column])
    except (ValueError, IndexError):
        problem = f"no number in column {column + 1}; generate the corpus again with dragoman lab"
        raise error_at_line(str(path), number, problem) from None


# -- results ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TranslatorEvaluation:
    """Results of a translator on a text."""

    reference_data: ReferenceData
    translations: tuple[TranslationLike, ...]
    seconds: float  # for translating
    bleu_statistics: MetricStatistics
    chrf_statistics: MetricStatistics
    reference_likelihood: ReferenceLikelihood
    by_length: tuple[LengthBucket, ...]  # by words of the source
    # of the attention compared with the gold alignment; None without attention or gold alignment
    alignment: AlignmentCounts | None
    # of words of the references that are unknown to the translator; None if it does not write words
    unknown_word_recall: WordRecall | None
    errors: Mapping[str, int]  # counts of `ERROR_KINDS`; empty without diagnosis

    @property
    def perplexity(self) -> float:
        """Of the references given their sources, including the spellings of unknown words."""
        return self.reference_likelihood.perplexity

    @property
    def perplexity_class(self) -> float:
        """The same, counting only the class of unknown words; there is no floor for it."""
        return self.reference_likelihood.perplexity_class

    @property
    def floor(self) -> PointEstimate | None:
        """The perplexity of the references by the true distribution, if it is known."""
        return self.reference_data.floor

    @property
    def above_floor(self) -> float | None:
        """Nats per token above the floor."""
        return None if self.floor is None else math.log(self.perplexity / self.floor.value)

    @cached_property
    def scores(self) -> TranslationScores:
        return scores_from_statistics(self.bleu_statistics, self.chrf_statistics)

    @cached_property
    def edits(self) -> EditCounts:
        """Edits between translations and references."""
        return count_edits(self.texts, self.reference_data.references)

    @property
    def texts(self) -> list[str]:
        return [translation.text for translation in self.translations]

    @property
    def unfinished(self) -> int:
        """Translations that were cut off at the maximum length."""
        return sum(not translation.finished for translation in self.translations)

    def as_dict(self) -> dict[str, Any]:
        """Plain values; infinite and undefined ones are None, unknown ones are left out."""
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
            "by_length": [bucket.as_dict() for bucket in self.by_length],
            **self._optional_values(),
        }

    def _optional_values(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        if self.floor is not None:
            values["perplexity_floor"] = finite_or_none(self.floor.value)
            values["perplexity_floor_error"] = finite_or_none(self.floor.standard_error)
        if self.alignment is not None:
            values["alignment_error_rate"] = finite_or_none(self.alignment.error_rate)
            values["alignment"] = self.alignment.as_dict()
        if self.unknown_word_recall is not None:
            values["unknown_words"] = self.unknown_word_recall.words
            values["unknown_words_found"] = self.unknown_word_recall.recalled
        if self.errors:
            values["errors"] = dict(self.errors)
        return values


def evaluate_translator(
    model: EvaluableTranslator,
    lines: Sequence[str],
    reference_data: ReferenceData | Sequence[str],
    beam_size: int = DEFAULT_BEAM,
    *,
    length: Any = DEFAULT_LENGTH,
    coverage: float = 0.0,
    diagnose: bool = False,
    **how: Any,
) -> TranslatorEvaluation:
    """Translate lines and compare the translations with references, one per line.

    `length` is a length handling or its name, `coverage` the weight of the coverage penalty. With `diagnose`, search
    errors and model errors are counted. Further arguments are those of the model's `n_best`.
    """
    data = reference_data if isinstance(reference_data, ReferenceData) else ReferenceData(reference_data)
    references, gold_alignments = data.references, data.gold_alignments
    start = perf_counter()
    translations = model.translate(lines, beam_size, length=length, coverage=coverage, **how)
    seconds = perf_counter() - start
    texts = [translation.text for translation in translations]
    bleu_statistics = bleu(tokenised=data.tokenised).statistics(texts, references)
    errors = model.diagnose(lines, references, translations, length, coverage) if diagnose else []
    return TranslatorEvaluation(
        reference_data=data,
        translations=tuple(translations),
        seconds=seconds,
        bleu_statistics=bleu_statistics,
        chrf_statistics=chrf().statistics(texts, references),
        reference_likelihood=model.without_shortlist.likelihood(lines, references),
        by_length=bleu_by_length(bleu_statistics, source_lengths(model.source, lines)),
        alignment=(
            None if gold_alignments is None else attention_alignment_counts(model, lines, references, gold_alignments)
        ),
        unknown_word_recall=recall_of_unknown_words(model.target, texts, references),
        errors={kind: Counter(errors)[kind] for kind in ERROR_KINDS} if diagnose else {},
    )


def recall_of_unknown_words(
    target: Tokenizer, translations: Sequence[str], references: Sequence[str]
) -> WordRecall | None:
    """Compute the recall of words that are outside the vocabulary, such as copied names."""
    if target.segmenter.kind != "word":
        return None
    return word_recall(translations, references, lambda word: word not in SPECIALS and target.vocab.id(word) == UNK)


def source_lengths(source: Tokenizer, lines: Sequence[str]) -> list[int]:
    """Count the words between spaces in each line; of trees, the leaves."""
    if source.format == TREE:
        return [int(size) - 1 for size in source.encode(lines).sizes]
    return word_counts(lines)


# -- attention -------------------------------------------------------------------------------------------------------


def attention_alignment_counts(
    model: EvaluableTranslator,
    lines: Sequence[str],
    references: Sequence[str],
    gold_alignments: Sequence[GoldAlignment],
) -> AlignmentCounts | None:
    """Compare the attention in forced decoding of the references with gold alignments; None without attention.

    Each word of a reference is linked to the source word with the most attention, ignoring `</s>` on both sides.
    """
    links = []
    for line, translation in zip(lines, model.force_decode(lines, references), strict=True):
        if translation.attention is None:
            return None
        links.append(argmax_links(_word_attention(model, translation, translation.attention, line)))
    return count_all_links(links, gold_alignments)


def _word_attention(
    model: EvaluableTranslator, translation: TranslationLike, attention: NDArray[np.float64], line: str
) -> NDArray[np.float64]:
    """The attention between words, for any segmentation.  # (target words + 1, source words + 1)"""
    by_source_word = attention_over_source_words(attention, model.source, line)
    rows = append_end(model.target.segmenter.word_indices(translation.tokens))
    return attention_to_words(by_source_word, rows, list(range(by_source_word.shape[1])))


def attention_over_source_words(attention: NDArray[np.float64], source: Tokenizer, line: str) -> NDArray[np.float64]:
    """Sum the attention over the tokens of each source word.  # (target tokens, source words + 1)

    The attention of a node of a tree is divided equally among the words under it; trees have no `</s>`.
    """
    if source.format != TREE:
        columns = append_end(source.segmenter.word_indices(source.segmenter.segment(line)))
        return attention_to_words(attention, list(range(len(attention))), columns)
    shares = TreeBatch.from_trees(Treebank.from_lines([line], source.vocab)).word_shares[0]  # (nodes, words)
    return np.pad(attention @ shares, ((0, 0), (0, 1)))  # (target words, words + 1)
