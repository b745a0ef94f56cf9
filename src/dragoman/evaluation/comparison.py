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

from dragoman.evaluation.significance import RESAMPLES, SEED, Paired, paired_bootstrap
from dragoman.evaluation.translation_metrics import (
    Judged,
    LengthClass,
    Metric,
    Span,
    Statistics,
    bleu,
    bleu_by_length,
    check_lines,
    chrf,
    finite,
    judged,
    span_numbers,
    spans,
    word_counts,
    words_of,
)

Words = Sequence[str]  # of one sentence
Ngram = tuple[str, ...]

FREQUENCIES = (1, 2, 5, 10, 100, 1000)  # occurrences from which on a new class of words begins
ORDERS = (1, 2, 3, 4)  # of the n-grams that BLEU counts
LOOP = 3  # words in a row that are not said twice in a sentence by chance
SMOOTHING = 1.0  # added to how often an n-gram was right and wrong: what was wanted once says little


# -- words by their frequency ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hits:
    """Words said, words wanted and words that are both, sentence by sentence: numbers that add up.

    >>> hits = Hits(right=2, said=4, wanted=2)
    >>> hits.precision, hits.recall, round(hits.f1, 3)
    (0.5, 1.0, 0.667)
    """

    right: int = 0
    said: int = 0  # in the translations
    wanted: int = 0  # in the references

    def __add__(self, other: Hits) -> Hits:
        return Hits(self.right + other.right, self.said + other.said, self.wanted + other.wanted)

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
class FrequencyClass:
    """Words about equally frequent, and how well they are translated."""

    span: Span  # occurrences of the word
    hits: Hits

    def as_dict(self) -> dict[str, Any]:
        shares = {"precision": self.hits.precision, "recall": self.hits.recall, "f1": self.hits.f1}
        about = {"from": self.span.least, "to": self.span.most, **asdict(self.hits)}
        return about | {name: finite(share) for name, share in shares.items()}


def by_frequency(
    hypotheses: Sequence[Words],
    references: Sequence[Words],
    frequencies: Mapping[str, int],
    edges: Sequence[int] = FREQUENCIES,
) -> tuple[FrequencyClass, ...]:
    """How many words of each class of frequency are right, rarest first; a word in any order, but of its sentence.

    >>> rare, frequent = by_frequency([["a", "x"]], [["a", "b"]], {"a": 7}, edges=(5,))
    >>> rare.hits, frequent.hits
    (Hits(right=0, said=1, wanted=1), Hits(right=1, said=1, wanted=1))
    """
    by_word: dict[str, Hits] = {}
    for said, wanted in _counted(hypotheses, references):
        for word in said.keys() | wanted.keys():
            own = Hits(min(said[word], wanted[word]), said[word], wanted[word])
            by_word[word] = by_word.get(word, Hits()) + own
    total = [Hits()] * (len(edges) + 1)
    places = span_numbers([frequencies.get(word, 0) for word in by_word], edges).tolist()
    for place, hits in zip(places, by_word.values(), strict=True):
        total[place] += hits
    return tuple(FrequencyClass(span, hits) for span, hits in zip(spans(edges), total, strict=True))


def _counted(hypotheses: Sequence[Words], references: Sequence[Words]) -> Iterator[tuple[Counter[str], Counter[str]]]:
    """Of each sentence how often each word is said, and how often it is wanted."""
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        yield Counter(hypothesis), Counter(reference)


def frequencies_in(sentences: Iterable[Words]) -> Counter[str]:
    """How often each word comes."""
    return Counter(word for words in sentences for word in words)


# -- n-grams gained and lost -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """An n-gram that one system gets right more often than the other."""

    words: Ngram
    wanted: int  # times in the references
    first: int  # times right
    second: int

    @property
    def log_odds(self) -> float:
        """By how much the odds that it is right are higher with the second system than with the first, as a log."""
        return self._odds(self.second) - self._odds(self.first)

    def _odds(self, right: int) -> float:
        return math.log((right + SMOOTHING) / (self.wanted - right + SMOOTHING))

    @property
    def error(self) -> float:
        """The standard error of the log odds: large where there is little to count."""
        cells = (self.first, self.wanted - self.first, self.second, self.wanted - self.second)
        return math.sqrt(sum(1 / (cell + SMOOTHING) for cell in cells))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"words": " ".join(self.words), "log_odds": self.log_odds, "error": self.error}


def changes(
    first: Sequence[Words], second: Sequence[Words], references: Sequence[Words], orders: Sequence[int] = ORDERS
) -> list[Change]:
    """All n-grams of the references that one system gets right more often, the surest gains of the second first.

    Sure is what is large beside its standard error: 30 of 40 against none rather than 2 of 2. An n-gram that is part
    of a longer one, wanted and right just as often, says nothing new and is left out.

    >>> one, two = ["a", "c", "b"], ["a", "b", "d"]
    >>> [(change.words, change.log_odds > 0) for change in changes([one], [two], [["a", "b", "c"]])]
    [(('a', 'b'), True), (('c',), False)]
    """
    wanted = Counter(ngram for words in references for ngram in ngrams(words, orders))
    right = [matches(system, references, orders) for system in (first, second)]
    found = [
        Change(ngram, wanted[ngram], right[0][ngram], right[1][ngram])
        for ngram in right[0].keys() | right[1].keys()
        if right[0][ngram] != right[1][ngram]
    ]
    parts = _parts(found)
    kept = (change for change in found if (change.words, change.wanted, change.first, change.second) not in parts)
    return sorted(kept, key=lambda change: (-change.log_odds / change.error, -len(change.words), change.words))


def _parts(found: Iterable[Change]) -> set[tuple[Ngram, int, int, int]]:
    """What is one word shorter than an n-gram, with the counts of that n-gram."""
    return {
        (part, change.wanted, change.first, change.second)
        for change in found
        for part in (change.words[:-1], change.words[1:])
    }


def matches(hypotheses: Sequence[Words], references: Sequence[Words], orders: Sequence[int] = ORDERS) -> Counter[Ngram]:
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
class Faults:
    """What is said twice, missing or too much: numbers that add up.

    >>> faults(["a", "a", "b"], ["a", "b", "c"])
    Faults(words=3, doubled=1, looped=0, missing=1, extra=1)
    """

    words: int = 0
    doubled: int = 0  # words right after themselves
    looped: int = 0  # three words in a row that came before in the sentence
    missing: int = 0  # words of the reference that are not in the translation
    extra: int = 0  # words of the translation that are not in the reference

    def __add__(self, other: Faults) -> Faults:
        return Faults(
            self.words + other.words,
            self.doubled + other.doubled,
            self.looped + other.looped,
            self.missing + other.missing,
            self.extra + other.extra,
        )


def faults(hypothesis: Words, reference: Words) -> Faults:
    """Those of one sentence."""
    said, wanted = Counter(hypothesis), Counter(reference)
    in_a_row = list(ngrams(hypothesis, (LOOP,)))
    return Faults(
        words=len(hypothesis),
        doubled=sum(word == before for before, word in zip(hypothesis[:-1], hypothesis[1:], strict=True)),
        looped=len(in_a_row) - len(set(in_a_row)),
        missing=(wanted - said).total(),
        extra=(said - wanted).total(),
    )


def all_faults(hypotheses: Sequence[Words], references: Sequence[Words]) -> Faults:
    """The sum over all sentences."""
    pairs = zip(hypotheses, references, strict=True)
    return sum((faults(hypothesis, reference) for hypothesis, reference in pairs), Faults())


# -- single sentences ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
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


def order_of_differences(by_bleu: tuple[Statistics, Statistics], sentence: Metric) -> list[tuple[int, float, float]]:
    """(sentence, BLEU of the first, of the second) where these differ, the largest gains of the second first."""
    first, second = (statistics.sentence_scores(sentence) for statistics in by_bleu)  # (sentences,) each
    order = np.argsort(first - second, kind="stable")
    return [(int(n), float(first[n]), float(second[n])) for n in order if first[n] != second[n]]


# -- all of it -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class System:
    """What is found about one system."""

    name: str
    judged: Judged
    by_length: tuple[LengthClass, ...]
    by_frequency: tuple[FrequencyClass, ...]
    faults: Faults

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            **self.judged.as_dict(),
            "by_length": [own.as_dict() for own in self.by_length],
            "by_frequency": [own.as_dict() for own in self.by_frequency],
            "faults": asdict(self.faults),
        }


@dataclass(frozen=True)
class Comparison:
    """Two systems side by side."""

    first: System
    second: System
    bleu: Paired
    chrf: Paired
    gained: tuple[Change, ...]  # n-grams that the second gets right more often
    lost: tuple[Change, ...]  # and those that the first does
    better: tuple[Example, ...]  # sentences of which the second has the better translation
    worse: tuple[Example, ...]  # and those of which the first has
    reference_faults: Faults  # what people say twice
    tokenised: bool
    has_source: bool  # lengths are those of the source; else of the references
    has_training: bool  # frequencies are those in training text; else in the references

    @property
    def systems(self) -> tuple[System, System]:
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
            "reference_faults": asdict(self.reference_faults),
            **{name: [change.as_dict() for change in found] for name, found in lists.items()},
            **{name: [asdict(example) for example in found] for name, found in examples.items()},
        }


@dataclass(frozen=True)
class Texts:
    """What is compared, line by line: two systems' translations, with their references."""

    references: Sequence[str]
    first: Sequence[str]
    second: Sequence[str]
    names: tuple[str, str] = ("first", "second")
    sources: Sequence[str] | None = None
    training: Sequence[str] | None = None  # text of the target language, for how frequent words are

    def __post_init__(self) -> None:
        for lines in (self.first, self.second):
            check_lines(lines, self.references)
        if self.sources is not None:
            check_lines(self.sources, self.references)


def compare(
    texts: Texts,
    *,
    tokenised: bool,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    most_ngrams: int = 10,
    most_examples: int = 3,
) -> Comparison:
    """Everything there is to say about two systems."""
    measures = bleu(tokenised=tokenised), chrf()
    both = (texts.first, texts.second)
    by_bleu, by_chrf = ([measure.statistics(lines, texts.references) for lines in both] for measure in measures)
    words = [words_of(lines, tokenised=tokenised) for lines in both]
    wanted = words_of(texts.references, tokenised=tokenised)
    frequencies = frequencies_in(wanted if texts.training is None else words_of(texts.training, tokenised=tokenised))
    lengths = word_counts(texts.references if texts.sources is None else texts.sources)
    first, second = (
        System(
            name,
            judged(by_bleu[place], by_chrf[place]),
            bleu_by_length(by_bleu[place], lengths),
            by_frequency(words[place], wanted, frequencies),
            all_faults(words[place], wanted),
        )
        for place, name in enumerate(texts.names)
    )
    found = changes(words[0], words[1], wanted)
    differing = order_of_differences((by_bleu[0], by_bleu[1]), bleu(tokenised=tokenised, sentences=True))
    return Comparison(
        first,
        second,
        bleu=paired_bootstrap(by_bleu[0], by_bleu[1], resamples=resamples, seed=seed),
        chrf=paired_bootstrap(by_chrf[0], by_chrf[1], resamples=resamples, seed=seed),
        gained=tuple(change for change in found[:most_ngrams] if change.log_odds > 0),
        lost=tuple(change for change in found[::-1][:most_ngrams] if change.log_odds < 0),
        better=tuple(_example(texts, *one) for one in differing[:most_examples] if one[2] > one[1]),
        worse=tuple(_example(texts, *one) for one in differing[::-1][:most_examples] if one[2] < one[1]),
        reference_faults=all_faults(wanted, wanted),
        tokenised=tokenised,
        has_source=texts.sources is not None,
        has_training=texts.training is not None,
    )


def _example(texts: Texts, number: int, first_bleu: float, second_bleu: float) -> Example:
    return Example(
        number + 1,
        None if texts.sources is None else texts.sources[number],
        texts.references[number],
        texts.first[number],
        texts.second[number],
        first_bleu,
        second_bleu,
    )
