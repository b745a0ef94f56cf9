"""Where two systems differ, in the manner of compare-mt (Neubig et al. 2019).

By word frequency, by sentence length, by n-grams that only one system translates correctly, by repeated and missing
words, and by single sentences. Words are those that BLEU counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from dragoman.evaluation.results import FLAT, AdditiveResult, JsonResult, to_json
from dragoman.evaluation.significance import RESAMPLES, SEED, PairedBootstrapResult, paired_bootstrap
from dragoman.evaluation.task_scores import TaskScores, score_task
from dragoman.evaluation.translation_metrics import (
    Bleu,
    Bucket,
    LengthBucket,
    TranslationScores,
    bleu_by_length,
    bleu_tokens,
    bucket_indices,
    buckets,
    check_line_counts,
    scores_from_statistics,
)

Words = Sequence[str]  # of one sentence
Ngram = tuple[str, ...]

FREQUENCY_EDGES = (1, 2, 5, 10, 100, 1000)  # lowest word frequencies of the second and further buckets
ORDERS = (1, 2, 3, 4)  # of the n-grams that BLEU counts
LOOP_LENGTH = 3  # a sequence of this many words that occurs twice in a sentence is counted as a loop
SMOOTHING = 1.0  # added to the correct and incorrect counts of an n-gram, so that rare ones have small log odds


# -- words by frequency ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordMatches(AdditiveResult, JsonResult):
    """Words of the translations that are in the reference of their sentence."""

    correct: int = field(default=0, metadata={"json": "right"})
    predicted: int = field(default=0, metadata={"json": "said"})  # words in the translations
    expected: int = field(default=0, metadata={"json": "wanted"})  # words in the references

    reported = ("precision", "recall", "f1")

    @property
    def precision(self) -> float:
        return self.correct / self.predicted if self.predicted else math.nan

    @property
    def recall(self) -> float:
        return self.correct / self.expected if self.expected else math.nan

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.predicted + self.expected
        return 2 * self.correct / total if total else math.nan


@dataclass(frozen=True)
class FrequencyBucket(JsonResult):
    """Words whose frequency is in one range, and how well they are translated."""

    bucket: Bucket = field(metadata=FLAT)  # occurrences of the word
    matches: WordMatches = field(metadata=FLAT)


def matches_by_frequency(
    hypotheses: Sequence[Words],
    references: Sequence[Words],
    frequencies: Mapping[str, int],
    edges: Sequence[int] = FREQUENCY_EDGES,
) -> tuple[FrequencyBucket, ...]:
    """Count the correct words of each frequency range, rarest first; the order of words in a sentence is ignored."""
    correct = ngram_matches(hypotheses, references, orders=(1,))
    predicted, expected = (Counter(chain.from_iterable(sentences)) for sentences in (hypotheses, references))
    words = list(predicted | expected)
    totals = [WordMatches()] * (len(edges) + 1)
    for word, index in zip(words, bucket_indices([frequencies.get(word, 0) for word in words], edges), strict=True):
        totals[index] += WordMatches(correct[word,], predicted[word], expected[word])
    return tuple(FrequencyBucket(bucket, matches) for bucket, matches in zip(buckets(edges), totals, strict=True))


# -- n-grams ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NgramDifference(JsonResult):
    """An n-gram that one system translates correctly more often than the other."""

    words: Ngram
    expected: int = field(metadata={"json": "wanted"})  # occurrences in the references
    first: int  # correct in the first system
    second: int  # correct in the second system

    @property
    def log_odds(self) -> float:
        """Log odds that it is correct in the second system, minus those in the first."""
        counts = [(correct, self.expected - correct) for correct in (self.first, self.second)]
        first, second = (math.log((right + SMOOTHING) / (wrong + SMOOTHING)) for right, wrong in counts)
        return second - first

    @property
    def standard_error(self) -> float:
        """Standard error of the log odds: large where the counts are small."""
        cells = (self.first, self.expected - self.first, self.second, self.expected - self.second)
        return math.sqrt(sum(1 / (cell + SMOOTHING) for cell in cells))

    def as_dict(self) -> dict[str, object]:
        derived = {"words": " ".join(self.words), "log_odds": self.log_odds, "error": self.standard_error}
        return super().as_dict() | derived


def ngram_differences(
    first: Sequence[Words], second: Sequence[Words], references: Sequence[Words], orders: Sequence[int] = ORDERS
) -> list[NgramDifference]:
    """Return the n-grams of the references that one system has more often, the most certain gains of the second first.

    They are ordered by log odds divided by standard error: 30 of 40 against none comes before 2 of 2. An n-gram that
    is part of a longer one with the same counts is left out.

    >>> first, second = ["a", "c", "b"], ["a", "b", "d"]
    >>> differences = ngram_differences([first], [second], [["a", "b", "c"]])
    >>> [(difference.words, difference.log_odds > 0) for difference in differences]
    [(('a', 'b'), True), (('c',), False)]
    """
    expected = Counter(ngram for words in references for ngram in ngrams(words, orders))
    correct = [ngram_matches(system, references, orders) for system in (first, second)]
    differences = {
        NgramDifference(ngram, expected[ngram], correct[0][ngram], correct[1][ngram])
        for ngram in correct[0].keys() | correct[1].keys()
        if correct[0][ngram] != correct[1][ngram]
    }
    parts = {replace(item, words=words) for item in differences for words in (item.words[:-1], item.words[1:])}
    return sorted(
        differences - parts, key=lambda item: (-item.log_odds / item.standard_error, -len(item.words), item.words)
    )


def ngram_matches(
    hypotheses: Sequence[Words], references: Sequence[Words], orders: Sequence[int] = ORDERS
) -> Counter[Ngram]:
    """Count how often each n-gram is correct; in a sentence at most as often as it is in the reference."""
    correct: Counter[Ngram] = Counter()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        correct.update(Counter(ngrams(hypothesis, orders)) & Counter(ngrams(reference, orders)))
    return correct


def ngrams(words: Words, orders: Sequence[int]) -> Iterator[Ngram]:
    """Return all n-grams of a sentence."""
    return (tuple(words[start : start + n]) for n in orders for start in range(len(words) - n + 1))


# -- repeated and missing words --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordErrorCounts(AdditiveResult):
    """Repeated, missing and extra words."""

    words: int = 0
    doubled: int = 0  # words directly after themselves
    looped: int = 0  # sequences of `LOOP_LENGTH` words that occurred earlier in the sentence
    missing: int = 0  # words of the reference that are not in the translation
    extra: int = 0  # words of the translation that are not in the reference


def count_word_errors(hypothesis: Words, reference: Words) -> WordErrorCounts:
    """Count the errors of one sentence."""
    predicted, expected = Counter(hypothesis), Counter(reference)
    sequences = list(ngrams(hypothesis, (LOOP_LENGTH,)))
    return WordErrorCounts(
        words=len(hypothesis),
        doubled=sum(word == previous for previous, word in zip(hypothesis[:-1], hypothesis[1:], strict=True)),
        looped=len(sequences) - len(set(sequences)),
        missing=(expected - predicted).total(),
        extra=(predicted - expected).total(),
    )


def count_all_word_errors(hypotheses: Sequence[Words], references: Sequence[Words]) -> WordErrorCounts:
    """Return the sum over all sentences."""
    pairs = zip(hypotheses, references, strict=True)
    return sum((count_word_errors(hypothesis, reference) for hypothesis, reference in pairs), WordErrorCounts())


@dataclass(frozen=True)
class SentenceDifference:
    """A sentence for which the two systems have different BLEU."""

    line: int  # counted from 1
    source: str | None
    reference: str
    first: str
    second: str
    first_bleu: float  # of this sentence only
    second_bleu: float

    @property
    def difference(self) -> float:
        return self.second_bleu - self.first_bleu


# -- the whole comparison --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SystemReport(JsonResult):
    """Results of one system."""

    name: str
    task_scores: TaskScores = field(metadata=FLAT)  # the metrics that fit the kind of target, and BLEU and chrF
    scores: TranslationScores = field(metadata=FLAT)
    by_length: tuple[LengthBucket, ...]
    by_frequency: tuple[FrequencyBucket, ...]
    word_errors: WordErrorCounts = field(metadata={"json": "faults"})


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same sentences."""

    first: SystemReport
    second: SystemReport
    tests: tuple[PairedBootstrapResult, ...]  # by each metric, the most important first
    gained: tuple[NgramDifference, ...]  # n-grams that the second has more often
    lost: tuple[NgramDifference, ...]  # n-grams that the first has more often
    better: tuple[SentenceDifference, ...]  # sentences that the second translates better
    worse: tuple[SentenceDifference, ...]  # sentences that the first translates better
    reference_word_errors: WordErrorCounts  # repeated words in the references
    tokenised: bool
    has_source: bool  # lengths are those of the source; else of the references
    has_training: bool  # frequencies are those in training text; else in the references

    @property
    def systems(self) -> tuple[SystemReport, SystemReport]:
        return self.first, self.second

    def test(self, metric: str) -> PairedBootstrapResult:
        """Return the test by the metric with this name."""
        return next(test for test in self.tests if test.metric == metric)

    @property
    def bleu(self) -> PairedBootstrapResult:
        return self.test("BLEU")

    @property
    def chrf(self) -> PairedBootstrapResult:
        return self.test("chrF")

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        values = {
            "tokenised": self.tokenised,
            "lengths": "source" if self.has_source else "references",
            "frequencies": "training text" if self.has_training else "references",
            "systems": self.systems,
            "paired_bootstrap": {test.metric.lower(): test for test in self.tests},
            "reference_faults": self.reference_word_errors,
            "gained": self.gained,
            "lost": self.lost,
            "better": self.better,
            "worse": self.worse,
        }
        return {name: to_json(value) for name, value in values.items()}


@dataclass(frozen=True)
class ComparisonInput:
    """The translations of two systems with their references, line by line."""

    references: Sequence[str]
    first: Sequence[str]
    second: Sequence[str]
    names: tuple[str, str] = ("first", "second")
    sources: Sequence[str] | None = None
    training: Sequence[str] | None = None  # text in the target language, for word frequencies
    language: str | None = None  # code of the target language, for the words of raw text

    def __post_init__(self) -> None:
        for lines in (self.first, self.second, self.sources):
            if lines is not None:
                check_line_counts(lines, self.references)


def compare_systems(
    texts: ComparisonInput,
    *,
    tokenised: bool,
    metrics: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    max_ngrams: int = 10,
    max_examples: int = 3,
) -> Comparison:
    """Compare two systems in all respects. `metrics` are names of metrics to put first, see `score_task`."""
    systems = (texts.first, texts.second)
    language = texts.language
    score = partial(score_task, tokenised=tokenised, language=language, metrics=metrics)
    split = partial(bleu_tokens, tokenised=tokenised, language=language)
    task_scores = [score(lines, texts.references, texts.sources) for lines in systems]
    bleu_statistics = [scores.of("BLEU") for scores in task_scores]
    words, expected = [split(lines) for lines in systems], split(texts.references)
    counted = expected if texts.training is None else split(texts.training)
    frequencies = Counter(chain.from_iterable(counted))
    lengths = [len(line.split()) for line in (texts.references if texts.sources is None else texts.sources)]
    first, second = (
        SystemReport(
            name,
            task_scores[n],
            scores_from_statistics(bleu_statistics[n], task_scores[n].of("chrF")),
            bleu_by_length(bleu_statistics[n], lengths),
            matches_by_frequency(words[n], expected, frequencies),
            count_all_word_errors(words[n], expected),
        )
        for n, name in enumerate(texts.names)
    )
    ngram_list = ngram_differences(words[0], words[1], expected)
    sentence_metric = Bleu(tokenised, sentence_level=True, language=language)
    sentence_bleu = [sentence_metric.scores(statistics.counts) for statistics in bleu_statistics]
    sentence_list = sentence_differences(texts, *sentence_bleu)
    return Comparison(
        first,
        second,
        tests=tuple(
            paired_bootstrap(*statistics, resamples=resamples, seed=seed)
            for statistics in zip(*(scores.statistics for scores in task_scores), strict=True)
        ),
        gained=tuple(ngram for ngram in ngram_list[:max_ngrams] if ngram.log_odds > 0),
        lost=tuple(ngram for ngram in ngram_list[::-1][:max_ngrams] if ngram.log_odds < 0),
        better=tuple(sentence for sentence in sentence_list[:max_examples] if sentence.difference > 0),
        worse=tuple(sentence for sentence in sentence_list[::-1][:max_examples] if sentence.difference < 0),
        reference_word_errors=count_all_word_errors(expected, expected),
        tokenised=tokenised,
        has_source=texts.sources is not None,
        has_training=texts.training is not None,
    )


def sentence_differences(
    texts: ComparisonInput, first_bleu: NDArray[np.float64], second_bleu: NDArray[np.float64]
) -> list[SentenceDifference]:
    """Return the sentences whose BLEU differs, the largest gains of the second first.  # first_bleu: (sentences,)"""
    return [
        SentenceDifference(
            index + 1,
            None if texts.sources is None else texts.sources[index],
            texts.references[index],
            texts.first[index],
            texts.second[index],
            float(first_bleu[index]),
            float(second_bleu[index]),
        )
        for index in np.argsort(first_bleu - second_bleu, kind="stable").tolist()
        if first_bleu[index] != second_bleu[index]
    ]
