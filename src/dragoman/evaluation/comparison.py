"""Where two systems differ, in the spirit of compare-mt (Neubig et al. 2019).

By how frequent words are, by how long sentences are, in which n-grams one system gets right and the other does not, in
what they say twice or leave out, and in single sentences. Words are those that BLEU counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dragoman.evaluation.significance import RESAMPLES, SEED, PairedBootstrapResult, paired_bootstrap
from dragoman.evaluation.translation_metrics import (
    Bucket,
    LengthBucket,
    Metric,
    MetricStatistics,
    TranslationScores,
    bleu,
    bleu_by_length,
    bleu_tokens,
    bucket_indices,
    buckets,
    check_line_counts,
    chrf,
    finite_metric_or_none,
    scores_from_statistics,
    word_counts,
)

Words = Sequence[str]  # of one sentence
Ngram = tuple[str, ...]

FREQUENCY_EDGES = (1, 2, 5, 10, 100, 1000)  # occurrences from which on a new class of words begins
ORDERS = (1, 2, 3, 4)  # of the n-grams that BLEU counts
LOOP_LENGTH = 3  # words in a row that are not said twice in a sentence by chance
SMOOTHING = 1.0  # added to how often an n-gram was right and wrong: what was wanted once says little


# -- words by their frequency ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordMatches:
    """Words said, words wanted and words that are both, sentence by sentence: numbers that add up.

    >>> hits = Hits(right=2, said=4, wanted=2)
    >>> hits.precision, hits.recall, round(hits.f1, 3)
    (0.5, 1.0, 0.667)
    """

    right: int = 0
    said: int = 0  # in the translations
    wanted: int = 0  # in the references

    def __add__(self, other: WordMatches) -> WordMatches:
        return WordMatches(self.right + other.right, self.said + other.said, self.wanted + other.wanted)

    @property
    def precision(self) -> float:
        return self.right / self.said if self.said else math.nan

    @property
    def recall(self) -> float:
        return self.right / self.wanted if self.wanted else math.nan

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.right / (self.said + self.wanted) if self.said + self.wanted else math.nan


@dataclass(frozen=True)
class FrequencyBucket:
    """Words about equally frequent, and how well they are translated."""

    bucket: Bucket  # occurrences of the word
    matches: WordMatches

    def as_dict(self) -> dict[str, Any]:
        shares = {"precision": self.matches.precision, "recall": self.matches.recall, "f1": self.matches.f1}
        about = {"from": self.bucket.minimum, "to": self.bucket.maximum, **asdict(self.matches)}
        return about | {name: finite_metric_or_none(share) for name, share in shares.items()}


def matches_by_frequency(
    hypotheses: Sequence[Words],
    references: Sequence[Words],
    frequencies: Mapping[str, int],
    edges: Sequence[int] = FREQUENCY_EDGES,
) -> tuple[FrequencyBucket, ...]:
    """How many words of each class of frequency are right, rarest first; a word in any order, but of its sentence.

    >>> rare, frequent = by_frequency([["a", "x"]], [["a", "b"]], {"a": 7}, edges=(5,))
    >>> rare.hits, frequent.hits
    (Hits(right=0, said=1, wanted=1), Hits(right=1, said=1, wanted=1))
    """
    by_word: dict[str, WordMatches] = {}
    for said, wanted in _word_count_pairs(hypotheses, references):
        for word in said.keys() | wanted.keys():
            own = WordMatches(min(said[word], wanted[word]), said[word], wanted[word])
            by_word[word] = by_word.get(word, WordMatches()) + own
    total = [WordMatches()] * (len(edges) + 1)
    places = bucket_indices([frequencies.get(word, 0) for word in by_word], edges).tolist()
    for place, hits in zip(places, by_word.values(), strict=True):
        total[place] += hits
    return tuple(FrequencyBucket(span, hits) for span, hits in zip(buckets(edges), total, strict=True))


def _word_count_pairs(
    hypotheses: Sequence[Words], references: Sequence[Words]
) -> Iterator[tuple[Counter[str], Counter[str]]]:
    """Of each sentence how often each word is said, and how often it is wanted."""
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        yield Counter(hypothesis), Counter(reference)


def word_frequencies(sentences: Iterable[Words]) -> Counter[str]:
    """How often each word comes."""
    return Counter(word for words in sentences for word in words)


# -- n-grams gained and lost -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NgramDifference:
    """An n-gram that one system gets right more often than the other."""

    words: Ngram
    wanted: int  # times in the references
    first: int  # times right
    second: int

    @property
    def log_odds(self) -> float:
        """By how much the odds that it is right are higher with the second system than with the first, as a log."""
        return self._log_odds(self.second) - self._log_odds(self.first)

    def _log_odds(self, right: int) -> float:
        return math.log((right + SMOOTHING) / (self.wanted - right + SMOOTHING))

    @property
    def standard_error(self) -> float:
        """The standard error of the log odds: large where there is little to count."""
        cells = (self.first, self.wanted - self.first, self.second, self.wanted - self.second)
        return math.sqrt(sum(1 / (cell + SMOOTHING) for cell in cells))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"words": " ".join(self.words), "log_odds": self.log_odds, "error": self.standard_error}


def ngram_differences(
    first: Sequence[Words], second: Sequence[Words], references: Sequence[Words], orders: Sequence[int] = ORDERS
) -> list[NgramDifference]:
    """All n-grams of the references that one system gets right more often, the surest gains of the second first.

    Sure is what is large beside its standard error: 30 of 40 against none rather than 2 of 2. An n-gram that is part
    of a longer one, wanted and right just as often, says nothing new and is left out.

    >>> one, two = ["a", "c", "b"], ["a", "b", "d"]
    >>> [(change.words, change.log_odds > 0) for change in changes([one], [two], [["a", "b", "c"]])]
    [(('a', 'b'), True), (('c',), False)]
    """
    wanted = Counter(ngram for words in references for ngram in ngrams(words, orders))
    right = [ngram_matches(system, references, orders) for system in (first, second)]
    found = [
        NgramDifference(ngram, wanted[ngram], right[0][ngram], right[1][ngram])
        for ngram in right[0].keys() | right[1].keys()
        if right[0][ngram] != right[1][ngram]
    ]
    parts = _shorter_ngrams(found)
    kept = (change for change in found if (change.words, change.wanted, change.first, change.second) not in parts)
    return sorted(kept, key=lambda change: (-change.log_odds / change.standard_error, -len(change.words), change.words))


def _shorter_ngrams(differences: Iterable[NgramDifference]) -> set[tuple[Ngram, int, int, int]]:
    """What is one word shorter than an n-gram, with the counts of that n-gram."""
    return {
        (part, change.wanted, change.first, change.second)
        for change in differences
        for part in (change.words[:-1], change.words[1:])
    }


def ngram_matches(
    hypotheses: Sequence[Words], references: Sequence[Words], orders: Sequence[int] = ORDERS
) -> Counter[Ngram]:
    """How often each n-gram is right: as often as it is said in a sentence, at most as often as it is wanted there."""
    right: Counter[Ngram] = Counter()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        right.update(Counter(ngrams(hypothesis, orders)) & Counter(ngrams(reference, orders)))
    return right


def ngrams(words: Words, orders: Sequence[int]) -> Iterator[Ngram]:
    """All n-grams of a sentence.

    >>> list(ngrams(["a", "b", "c"], (2, 3)))
    [('a', 'b'), ('b', 'c'), ('a', 'b', 'c')]
    """
    return (tuple(words[start : start + n]) for n in orders for start in range(len(words) - n + 1))


# -- said twice and left out -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordErrorCounts:
    """What is said twice, missing or too much: numbers that add up.

    >>> faults(["a", "a", "b"], ["a", "b", "c"])
    Faults(words=3, doubled=1, looped=0, missing=1, extra=1)
    """

    words: int = 0
    doubled: int = 0  # words right after themselves
    looped: int = 0  # three words in a row that came before in the sentence
    missing: int = 0  # words of the reference that are not in the translation
    extra: int = 0  # words of the translation that are not in the reference

    def __add__(self, other: WordErrorCounts) -> WordErrorCounts:
        return WordErrorCounts(
            self.words + other.words,
            self.doubled + other.doubled,
            self.looped + other.looped,
            self.missing + other.missing,
            self.extra + other.extra,
        )


def count_word_errors(hypothesis: Words, reference: Words) -> WordErrorCounts:
    """Those of one sentence."""
    said, wanted = Counter(hypothesis), Counter(reference)
    in_a_row = list(ngrams(hypothesis, (LOOP_LENGTH,)))
    return WordErrorCounts(
        words=len(hypothesis),
        doubled=sum(word == before for before, word in zip(hypothesis[:-1], hypothesis[1:], strict=True)),
        looped=len(in_a_row) - len(set(in_a_row)),
        missing=(wanted - said).total(),
        extra=(said - wanted).total(),
    )


def count_all_word_errors(hypotheses: Sequence[Words], references: Sequence[Words]) -> WordErrorCounts:
    """The sum over all sentences."""
    pairs = zip(hypotheses, references, strict=True)
    return sum((count_word_errors(hypothesis, reference) for hypothesis, reference in pairs), WordErrorCounts())


# -- single sentences ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SentenceDifference:
    """A sentence that the two systems translate differently well."""

    line: int  # counted from 1
    source: str | None
    reference: str
    first: str
    second: str
    first_bleu: float  # of this sentence alone
    second_bleu: float

    @property
    def difference(self) -> float:
        return self.second_bleu - self.first_bleu


def sentences_by_difference(
    bleu_statistics: tuple[MetricStatistics, MetricStatistics], sentence_metric: Metric
) -> list[tuple[int, float, float]]:
    """(sentence, BLEU of the first, of the second) where these differ, the largest gains of the second first."""
    first, second = (statistics.sentence_scores(sentence_metric) for statistics in bleu_statistics)  # (sentences,) each
    order = np.argsort(first - second, kind="stable")
    return [(int(n), float(first[n]), float(second[n])) for n in order if first[n] != second[n]]


# -- all of it -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SystemReport:
    """What is found about one system."""

    name: str
    scores: TranslationScores
    by_length: tuple[LengthBucket, ...]
    by_frequency: tuple[FrequencyBucket, ...]
    word_errors: WordErrorCounts

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            **self.scores.as_dict(),
            "by_length": [own.as_dict() for own in self.by_length],
            "by_frequency": [own.as_dict() for own in self.by_frequency],
            "faults": asdict(self.word_errors),
        }


@dataclass(frozen=True)
class Comparison:
    """Two systems side by side."""

    first: SystemReport
    second: SystemReport
    bleu: PairedBootstrapResult
    chrf: PairedBootstrapResult
    gained: tuple[NgramDifference, ...]  # n-grams that the second gets right more often
    lost: tuple[NgramDifference, ...]  # and those that the first does
    better: tuple[SentenceDifference, ...]  # sentences of which the second has the better translation
    worse: tuple[SentenceDifference, ...]  # and those of which the first has
    reference_word_errors: WordErrorCounts  # what people say twice
    tokenised: bool
    has_source: bool  # lengths are those of the source; else of the references
    has_training: bool  # frequencies are those in training text; else in the references

    @property
    def systems(self) -> tuple[SystemReport, SystemReport]:
        return self.first, self.second

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        lists = {"gained": self.gained, "lost": self.lost}
        examples = {"better": self.better, "worse": self.worse}
        return {
            "tokenised": self.tokenised,
            "lengths": "source" if self.has_source else "references",
            "frequencies": "training text" if self.has_training else "references",
            "systems": [system.as_dict() for system in self.systems],
            "paired_bootstrap": {"bleu": self.bleu.as_dict(), "chrf": self.chrf.as_dict()},
            "reference_faults": asdict(self.reference_word_errors),
            **{name: [change.as_dict() for change in found] for name, found in lists.items()},
            **{name: [asdict(example) for example in found] for name, found in examples.items()},
        }


@dataclass(frozen=True)
class ComparisonInput:
    """What is compared, line by line: two systems' translations, with their references."""

    references: Sequence[str]
    first: Sequence[str]
    second: Sequence[str]
    names: tuple[str, str] = ("first", "second")
    sources: Sequence[str] | None = None
    training: Sequence[str] | None = None  # text of the target language, for how frequent words are

    def __post_init__(self) -> None:
        for lines in (self.first, self.second):
            check_line_counts(lines, self.references)
        if self.sources is not None:
            check_line_counts(self.sources, self.references)


def compare_systems(
    texts: ComparisonInput,
    *,
    tokenised: bool,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    max_ngrams: int = 10,
    max_examples: int = 3,
) -> Comparison:
    """Everything there is to say about two systems."""
    measures = bleu(tokenised=tokenised), chrf()
    both = (texts.first, texts.second)
    by_bleu, by_chrf = ([measure.statistics(lines, texts.references) for lines in both] for measure in measures)
    words = [bleu_tokens(lines, tokenised=tokenised) for lines in both]
    wanted = bleu_tokens(texts.references, tokenised=tokenised)
    frequencies = word_frequencies(
        wanted if texts.training is None else bleu_tokens(texts.training, tokenised=tokenised)
    )
    lengths = word_counts(texts.references if texts.sources is None else texts.sources)
    first, second = (
        SystemReport(
            name,
            scores_from_statistics(by_bleu[place], by_chrf[place]),
            bleu_by_length(by_bleu[place], lengths),
            matches_by_frequency(words[place], wanted, frequencies),
            count_all_word_errors(words[place], wanted),
        )
        for place, name in enumerate(texts.names)
    )
    found = ngram_differences(words[0], words[1], wanted)
    differing = sentences_by_difference((by_bleu[0], by_bleu[1]), bleu(tokenised=tokenised, sentences=True))
    return Comparison(
        first,
        second,
        bleu=paired_bootstrap(by_bleu[0], by_bleu[1], resamples=resamples, seed=seed),
        chrf=paired_bootstrap(by_chrf[0], by_chrf[1], resamples=resamples, seed=seed),
        gained=tuple(change for change in found[:max_ngrams] if change.log_odds > 0),
        lost=tuple(change for change in found[::-1][:max_ngrams] if change.log_odds < 0),
        better=tuple(_sentence_difference(texts, *one) for one in differing[:max_examples] if one[2] > one[1]),
        worse=tuple(_sentence_difference(texts, *one) for one in differing[::-1][:max_examples] if one[2] < one[1]),
        reference_word_errors=count_all_word_errors(wanted, wanted),
        tokenised=tokenised,
        has_source=texts.sources is not None,
        has_training=texts.training is not None,
    )


def _sentence_difference(
    texts: ComparisonInput, number: int, first_bleu: float, second_bleu: float
) -> SentenceDifference:
    return SentenceDifference(
        number + 1,
        None if texts.sources is None else texts.sources[number],
        texts.references[number],
        texts.first[number],
        texts.second[number],
        first_bleu,
        second_bleu,
    )
