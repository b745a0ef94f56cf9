"""Evaluation of a translator on sentence pairs.

BLEU and chrF, or accuracy and error rates of words, the likelihood of the references, kinds of errors; on lab text also
the floor of P(E | F) and the alignment error rate of the attention. See `dragoman.evaluation.floor` for floors and their
standard errors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dragoman.core.defaults import DEFAULT_BEAM_SIZE, DEFAULT_LENGTH
from dragoman.core.errors import DataError, error_at_line
from dragoman.data.alignments import append_end, attention_to_words
from dragoman.data.detokenize import looks_tokenised
from dragoman.data.formats import read_utf8
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.trees import Treebank, TreeBatch
from dragoman.data.vocabulary import SPECIALS, UNK
from dragoman.evaluation.alignment import AlignmentCounts, GoldAlignment, argmax_links, count_all_links
from dragoman.evaluation.edit_distance import EditCounts, WordRecall, count_edits, word_recall
from dragoman.evaluation.floor import PointEstimate
from dragoman.evaluation.likelihood import PairLikelihood, TextLengths
from dragoman.evaluation.results import to_json
from dragoman.evaluation.task_scores import TaskScores, score_task
from dragoman.evaluation.translation_metrics import (
    LengthBucket,
    TranslationScores,
    bleu_by_length,
    scores_from_statistics,
)

if TYPE_CHECKING:
    from dragoman.align.unknown_words import UnknownReplacer
    from dragoman.models.translation import BaseTranslator, Translation
    from dragoman.search.diagnosis import ErrorKind
    from dragoman.search.length import LengthHandling

CONDITIONAL_COLUMN = 2  # the column of log P(E | F) in the lab's .logprob files
ERROR_KINDS: tuple[ErrorKind, ...] = ("none", "search", "model")  # see `dragoman.search.diagnosis`


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
        return PointEstimate.of_ratio(-self.true_log_probs, tokens).exponential


def are_tokenised(references: Sequence[str], target: Tokenizer) -> bool:
    """Return whether BLEU uses words as they are: the translator writes tokenised text, and the references are."""
    return target.tokenised and looks_tokenised(references)


def read_log_probs(path: Path, column: int = CONDITIONAL_COLUMN) -> NDArray[np.float64]:
    """Read a column of a file of log-probabilities that `dragoman lab` wrote: numbers separated by TABs."""
    log_probs = []
    for number, line in enumerate(read_utf8(path).decode().removesuffix("\n").split("\n"), 1):
        try:
            log_probs.append(float(line.split("\t")[column]))
        except (ValueError, IndexError):
            problem = f"no number in column {column + 1}; generate the corpus again with dragoman lab"
            raise error_at_line(str(path), number, problem) from None
    return np.array(log_probs)


@dataclass(frozen=True, eq=False)
class TranslatorEvaluation:
    """Results of a translator on a text."""

    reference_data: ReferenceData
    translations: tuple[Translation, ...]
    seconds: float  # for translating
    task_scores: TaskScores  # the metrics that fit the kind of target, and BLEU and chrF
    reference_likelihood: PairLikelihood
    by_length: tuple[LengthBucket, ...]  # by words of the source
    # of the attention compared with the gold alignment; None without attention or gold alignment
    alignment: AlignmentCounts | None
    # of words of the references that are unknown to the translator; None if it does not write words
    unknown_word_recall: WordRecall | None
    errors: Mapping[str, int]  # counts of `ERROR_KINDS`; empty without diagnosis
    with_shortlist: bool = False  # whether the search was restricted to shortlists

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
        """BLEU and chrF."""
        return scores_from_statistics(self.task_scores.of("BLEU"), self.task_scores.of("chrF"))

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

    def as_dict(self) -> dict[str, object]:
        """Plain values; infinite and undefined ones are None, unknown ones are left out."""
        edits, likelihood = self.edits, self.reference_likelihood
        values: dict[str, object] = {
            **self.task_scores.as_dict(),
            **self.scores.as_dict(),
            "exact_match": edits.exact_match,
            "word_error_rate": edits.word_error_rate,
            "repeated_words": edits.repeated,
            "dropped_words": edits.dropped,
            "tokenised": self.reference_data.tokenised,
            "perplexity": likelihood.perplexity,
            "perplexity_class": likelihood.perplexity_class,
            "perplexity_characters": likelihood.perplexity_characters,
            "log_likelihood": likelihood.log_likelihood,
            "log_likelihood_unknown": likelihood.log_likelihood_unknown,
            "unknown": likelihood.unknown,
            "unfinished": self.unfinished,
            "seconds": self.seconds,
            "sentences_per_second": len(self.translations) / self.seconds,
            "by_length": self.by_length,
        }
        if self.floor is not None:
            values |= self.floor.as_dict("perplexity_floor")
        if self.alignment is not None:
            values |= {"alignment_error_rate": self.alignment.error_rate, "alignment": self.alignment}
        if (recall := self.unknown_word_recall) is not None:
            values |= {"unknown_words": recall.words, "unknown_words_found": recall.recalled}
        if self.errors:
            values["errors"] = self.errors
        return {name: to_json(value) for name, value in values.items()}


def evaluate_translator(
    model: BaseTranslator,
    lines: Sequence[str],
    reference_data: ReferenceData | Sequence[str],
    beam_size: int = DEFAULT_BEAM_SIZE,
    *,
    length: str | LengthHandling = DEFAULT_LENGTH,
    coverage: float = 0.0,
    allow_repetition: bool = False,
    verbatim: bool = False,
    unknown_replacer: UnknownReplacer | None = None,
    use_shortlist: bool = True,
    split_sentences: bool = True,
    diagnose: bool = False,
    metrics: Sequence[str] | None = None,
) -> TranslatorEvaluation:
    """Translate lines and compare the translations with references, one per line.

    For the options of the search, see `BaseTranslator.n_best`; for `split_sentences`, see `BaseTranslator.translate_text`.
    The perplexity of the references is that of whole lines. With `diagnose`, search errors and model errors are counted,
    in lines of one sentence; the search is then without shortlists. `metrics` are names of metrics to put first, see
    `score_task`.
    """
    data = reference_data if isinstance(reference_data, ReferenceData) else ReferenceData(reference_data)
    references, source, target = data.references, model.source, model.target
    use_shortlist = use_shortlist and not diagnose
    start = perf_counter()
    translations = model.translate_text(
        lines,
        beam_size,
        split_sentences=split_sentences,
        length=length,
        coverage=coverage,
        allow_repetition=allow_repetition,
        verbatim=verbatim,
        unknown_replacer=unknown_replacer,
        use_shortlist=use_shortlist,
    )
    seconds = perf_counter() - start
    texts = [translation.text for translation in translations]
    task_scores = score_task(texts, references, lines, target, tokenised=data.tokenised, metrics=metrics)
    source_lengths = [len(line.split()) for line in lines]
    if source.format == TREE:
        source_lengths = [int(size) - 1 for size in source.encode(lines).sizes]  # the leaves
    unknown_word_recall = None
    if target.segmenter.kind == "word":
        unknown_word_recall = word_recall(
            texts, references, lambda word: word not in SPECIALS and target.vocab.id(word) == UNK
        )
    read, expected = (lines, references) if data.tokenised else model.read_pairs(lines, references)
    likelihood = model.likelihood(read, expected)
    errors = Counter(model.diagnose(read, expected, translations, length, coverage) if diagnose else [])
    return TranslatorEvaluation(
        reference_data=data,
        translations=tuple(translations),
        seconds=seconds,
        task_scores=task_scores,
        reference_likelihood=replace(likelihood, lengths=TextLengths.from_lines(references)),
        by_length=bleu_by_length(task_scores.of("BLEU"), source_lengths),
        alignment=attention_alignment_counts(model, lines, references, data.gold_alignments),
        unknown_word_recall=unknown_word_recall,
        errors={kind: errors[kind] for kind in ERROR_KINDS} if diagnose else {},
        with_shortlist=model.has_shortlist and use_shortlist,
    )


def attention_alignment_counts(
    model: BaseTranslator,
    lines: Sequence[str],
    references: Sequence[str],
    gold_alignments: Sequence[GoldAlignment] | None,
) -> AlignmentCounts | None:
    """Compare the attention in forced decoding of the references with gold alignments; None without either.

    Each word of a reference is linked to the source word with the most attention, ignoring `</s>` on both sides.
    """
    if gold_alignments is None:
        return None
    links = []
    for line, translation in zip(lines, model.force_decode(lines, references), strict=True):
        if translation.attention is None:
            return None
        attention = attention_over_source_words(translation.attention, model.source, line)
        rows = append_end(model.target.segmenter.word_indices(translation.tokens))
        columns = list(range(attention.shape[1]))
        links.append(argmax_links(attention_to_words(attention, rows, columns)))  # (target words + 1, source words + 1)
    return count_all_links(links, gold_alignments)


def attention_over_source_words(attention: NDArray[np.float64], source: Tokenizer, line: str) -> NDArray[np.float64]:
    """Sum the attention over the tokens of each source word.  # (target tokens, source words + 1)

    The attention of a node of a tree is divided equally among the words under it; trees have no `</s>`.
    """
    if source.format != TREE:
        columns = append_end(source.segmenter.word_indices(source.segmenter.segment(line)))
        return attention_to_words(attention, list(range(len(attention))), columns)
    shares = TreeBatch.from_trees(Treebank.from_lines([line], source.vocab)).word_shares[0]  # (nodes, words)
    return np.pad(attention @ shares, ((0, 0), (0, 1)))  # (target words, words + 1)
