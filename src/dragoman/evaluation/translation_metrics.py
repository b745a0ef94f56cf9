"""BLEU and chrF of translations, computed with sacreBLEU.

A metric counts sufficient statistics in each sentence: numbers that add up. A score is a function of their sum. So the
scores of a text, of its bootstrap resamples and of its sentences of one length all come from the same statistics.
sacreBLEU is imported inside functions because that takes a while and most commands do not need it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dragoman.core.errors import DataError
from dragoman.evaluation.results import FLAT, JsonResult

if TYPE_CHECKING:
    from sacrebleu import BLEU, CHRF
    from sacrebleu.metrics.bleu import BLEUScore

LENGTH_EDGES = (6, 11, 16, 21, 31, 41)  # lowest source lengths of the second and further buckets
FEW_SENTENCES = 20  # below this number a score says little
BLEU_ORDER = 4  # longest n-grams that BLEU counts

Counts = NDArray[np.int64] | NDArray[np.float64]  # floating-point numbers in bootstraps


class Metric(Protocol):
    """A function of the sums of sufficient statistics."""

    @property
    def name(self) -> str: ...

    @property
    def signature(self) -> str:
        """What is computed, and how: scores with the same signature are comparable."""

    @property
    def lower_is_better(self) -> bool: ...

    @property
    def is_percentage(self) -> bool: ...

    def scores(self, counts: Counts) -> NDArray[np.float64]:
        """Compute the score of each row of counts.  # counts: (rows, numbers); returns (rows,)"""


@dataclass(frozen=True, eq=False)
class MetricStatistics:
    """The sufficient statistics of each sentence.

    >>> statistics = Bleu(tokenised=True).statistics(["a b c d e", "a b"], ["a b c d e", "x y"])
    >>> round(statistics.score, 2), round(statistics.select([0]).score, 2)
    (86.94, 100.0)
    """

    metric: Metric
    counts: NDArray[np.int64]  # (sentences, numbers)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def total(self) -> NDArray[np.int64]:
        return self.counts.sum(0)  # (numbers,)

    @property
    def score(self) -> float:
        return float(self.metric.scores(self.total[None])[0])

    def select(self, sentences: ArrayLike) -> MetricStatistics:
        """Return the statistics of these sentences: indices, or a boolean for each."""
        return MetricStatistics(self.metric, self.counts[np.asarray(sentences)])  # (selected, numbers)


@dataclass(frozen=True)
class Bleu:
    """BLEU. The statistics of a sentence: hypothesis and reference length, matching n-grams, all n-grams by order."""

    tokenised: bool  # take words as they are (`tok:none`) instead of sacreBLEU's default tokenisation (13a)
    sentence_level: bool = False  # leave out the orders for which a sentence is too short
    name: str = "BLEU"
    language: str | None = None  # of the text; sacreBLEU has tokenisations for Chinese, Japanese and Korean
    lower_is_better: ClassVar[bool] = False
    is_percentage: ClassVar[bool] = False

    @property
    def signature(self) -> str:
        """Settings and version of sacreBLEU: scores with the same signature are comparable."""
        return _signature(_sacrebleu_bleu(self.tokenised, self.sentence_level, self.language))

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> MetricStatistics:
        """Count what the metric needs in each sentence."""
        check_line_counts(hypotheses, references)
        metric = _sacrebleu_bleu(self.tokenised, sentence_level=True, language=self.language)
        scores = [metric.sentence_score(line, [ref]) for line, ref in zip(hypotheses, references, strict=True)]
        counts = [[score.sys_len, score.ref_len, *score.counts, *score.totals] for score in scores]
        return MetricStatistics(self, np.array(counts, np.int64))  # (sentences, 2 + 2 * BLEU_ORDER)

    def scores(self, counts: Counts) -> NDArray[np.float64]:
        """Compute the score, from 0 to 100, of each row of counts.  # counts: (rows, numbers); returns (rows,)"""
        return np.array([self.details(row).score for row in counts], np.float64)

    def details(self, counts: Counts) -> BLEUScore:
        """Return sacreBLEU's result: score, precisions, brevity penalty, lengths.  # counts: (numbers,)"""
        from sacrebleu import BLEU

        hypothesis_length, reference_length, *numbers = counts.astype(np.int64).tolist()
        return BLEU.compute_bleu(
            correct=numbers[:BLEU_ORDER],
            total=numbers[BLEU_ORDER:],
            sys_len=hypothesis_length,
            ref_len=reference_length,
            smooth_method="exp",
            effective_order=self.sentence_level,
        )


def _sacrebleu_bleu(tokenised: bool, sentence_level: bool = False, language: str | None = None) -> BLEU:
    from sacrebleu import BLEU

    tokenize = "none" if tokenised else bleu_tokenizer(language)
    return BLEU(tokenize=tokenize, force=True, effective_order=sentence_level)  # force: no warning of tokenised text


def bleu_tokenizer(language: str | None) -> str:
    """Return the name of sacreBLEU's tokenisation for a language. Without MeCab, Japanese and Korean by characters.

    >>> bleu_tokenizer("de"), bleu_tokenizer("zh")
    ('13a', 'zh')
    """
    modules = {"ja": ("MeCab", "ja-mecab"), "ko": ("mecab_ko", "ko-mecab")}
    if language in modules:
        module, name = modules[language]
        return name if find_spec(module) else "char"
    return "zh" if language == "zh" else "13a"


def _signature(metric: BLEU | CHRF) -> str:
    metric.corpus_score([""], [[""]])  # the signature includes the number of references, known after a first score
    return str(metric.get_signature())


def bleu_tokens(lines: Iterable[str], *, tokenised: bool, language: str | None = None) -> list[list[str]]:
    """Split lines into words as BLEU does.

    >>> bleu_tokens(["No, thanks."], tokenised=False), bleu_tokens(["No, thanks."], tokenised=True)
    ([['No', ',', 'thanks', '.']], [['No,', 'thanks.']])
    >>> bleu_tokens(["我很好。"], tokenised=False, language="zh")
    [['我', '很', '好', '。']]
    """
    tokenize = _sacrebleu_bleu(tokenised, language=language).tokenizer
    return [tokenize(line.rstrip()).split() for line in lines]


CHRF_ORDER = 6  # longest character n-grams
CHRF_BETA = 2  # weight of recall


@dataclass(frozen=True)
class Chrf:
    """chrF2 (Popović 2015): F-score of character n-grams without spaces.

    The statistics of a sentence: for each order the n-grams of the hypothesis, of the reference, and the matching ones.
    """

    name: str = "chrF"
    lower_is_better: ClassVar[bool] = False
    is_percentage: ClassVar[bool] = False

    @property
    def signature(self) -> str:
        from sacrebleu import CHRF

        return _signature(CHRF())

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> MetricStatistics:
        check_line_counts(hypotheses, references)
        counts = list(map(_chrf_counts, hypotheses, references))
        return MetricStatistics(self, np.array(counts, np.int64))  # (sentences, 3 * CHRF_ORDER)

    def scores(self, counts: Counts) -> NDArray[np.float64]:
        """Precision and recall are averaged over the orders that both sides have."""
        by_order = np.asarray(counts, np.float64).reshape(len(counts), CHRF_ORDER, 3)
        hypothesis, reference, matching = np.moveaxis(by_order, 2, 0)  # (rows, orders) each
        used = (hypothesis > 0) & (reference > 0)
        orders = np.maximum(used.sum(1), 1)
        precision = np.divide(matching, hypothesis, out=np.zeros_like(matching), where=used).sum(1) / orders  # (rows,)
        recall = np.divide(matching, reference, out=np.zeros_like(matching), where=used).sum(1) / orders
        factor = CHRF_BETA**2
        denominator = factor * precision + recall
        f_score = (1 + factor) * precision * recall
        return 100 * np.divide(f_score, denominator, out=np.zeros_like(f_score), where=denominator > 0)


def _chrf_counts(hypothesis: str, reference: str) -> list[int]:
    from sacrebleu import extract_char_ngrams

    counts = []
    for order in range(1, CHRF_ORDER + 1):
        ngrams, reference_ngrams = (Counter(extract_char_ngrams(line, order)) for line in (hypothesis, reference))
        matching = sum(min(count, reference_ngrams[ngram]) for ngram, count in ngrams.items())
        # as in sacreBLEU, n-grams do not count against a reference that is too short to have any of this order
        counts += [ngrams.total() if reference_ngrams else 0, reference_ngrams.total(), matching]
    return counts


def check_line_counts(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Raise `DataError` unless there are as many hypotheses as references, and at least one."""
    if len(hypotheses) != len(references):
        problem = f"{len(hypotheses):,} translations for {len(references):,} references"
        raise DataError(f"{problem}; each translation must be in the line of its reference")
    if not references:
        raise DataError("no translations to evaluate; give at least one line")


@dataclass(frozen=True)
class TranslationScores(JsonResult):
    """Scores of the translations of a text."""

    sentences: int
    bleu: float  # from 0 to 100
    chrf: float  # from 0 to 100
    signature: str  # of BLEU
    chrf_signature: str
    length_ratio: float  # words of the translations / words of the references; NaN if there are none
    brevity_penalty: float  # factor of BLEU for translations shorter than the references
    precisions: tuple[float, ...]  # of n-grams, n = 1 to 4, in percent
    words: int  # of the translations, as BLEU counts them
    reference_words: int
    empty: int  # translations without any word


def score_translations(
    hypotheses: Sequence[str], references: Sequence[str], tokenised: bool, language: str | None = None
) -> TranslationScores:
    """Compute BLEU and chrF of translations with one reference each; see `Bleu` for `tokenised` and `language`.

    >>> scores = score_translations(["the cat sat on a mat .", ""], ["the cat sat on the mat .", "yes"], tokenised=True)
    >>> round(scores.bleu, 2), scores.words, scores.reference_words, scores.empty
    (42.38, 7, 8, 1)
    """
    bleu_statistics = Bleu(tokenised, language=language).statistics(hypotheses, references)
    return scores_from_statistics(bleu_statistics, Chrf().statistics(hypotheses, references))


def scores_from_statistics(bleu_statistics: MetricStatistics, chrf_statistics: MetricStatistics) -> TranslationScores:
    """Compute the scores of a text from the statistics of its sentences."""
    metric = bleu_statistics.metric
    assert isinstance(metric, Bleu), "the first statistics are those of BLEU"
    details = metric.details(bleu_statistics.total)
    return TranslationScores(
        sentences=len(bleu_statistics),
        bleu=float(details.score),
        chrf=chrf_statistics.score,
        signature=metric.signature,
        chrf_signature=chrf_statistics.metric.signature,
        length_ratio=length_ratio(bleu_statistics),
        brevity_penalty=float(details.bp),
        precisions=tuple(map(float, details.precisions)),
        words=int(details.sys_len),
        reference_words=int(details.ref_len),
        empty=int((bleu_statistics.counts[:, 0] == 0).sum()),
    )


def length_ratio(bleu_statistics: MetricStatistics) -> float:
    """Words of the translations / words of the references, as BLEU counts them."""
    hypothesis_length, reference_length = bleu_statistics.total[:2].tolist()
    return hypothesis_length / reference_length if reference_length else math.nan


@dataclass(frozen=True)
class Bucket(JsonResult):
    """A range of whole numbers.

    >>> [bucket.name for bucket in buckets((6, 7, 10))]
    ['up to 5', '6', '7 to 9', '10 and more']
    """

    minimum: int = field(metadata={"json": "from"})
    maximum: int | None = field(metadata={"json": "to"})  # None: no upper limit

    @property
    def name(self) -> str:
        if self.maximum is None:
            return f"{self.minimum:,} and more"
        if self.maximum == self.minimum:
            return f"{self.minimum:,}"
        return f"{self.minimum:,} to {self.maximum:,}" if self.minimum else f"up to {self.maximum:,}"


def buckets(edges: Sequence[int]) -> list[Bucket]:
    """Return the ranges between edges: the first begins at 0, one more at each edge, the last has no end."""
    starts = [0, *edges]
    if any(start >= following for start, following in zip(starts[:-1], starts[1:], strict=True)):
        listed = ", ".join(map(str, edges))
        raise DataError(f"edges {listed}: give increasing whole numbers above 0, such as 6, 11, 21")
    ends = [*(edge - 1 for edge in edges), None]
    return [Bucket(start, end) for start, end in zip(starts, ends, strict=True)]


def bucket_indices(values: ArrayLike, edges: Sequence[int]) -> NDArray[np.int64]:
    """Return the index of each value's bucket among `buckets(edges)`."""
    return np.searchsorted(np.asarray(edges, np.int64), np.asarray(values, np.int64), side="right")


@dataclass(frozen=True)
class LengthBucket(JsonResult):
    """BLEU of the sentences whose source length is in one range."""

    bucket: Bucket = field(metadata=FLAT)  # words of the source
    sentences: int
    bleu: float
    length_ratio: float

    @property
    def is_small(self) -> bool:
        """Whether there are too few sentences for a reliable score."""
        return self.sentences < FEW_SENTENCES

    def as_dict(self) -> dict[str, object]:
        return super().as_dict() | {"few": self.is_small}


def bleu_by_length(
    bleu_statistics: MetricStatistics, lengths: Sequence[int], edges: Sequence[int] = LENGTH_EDGES
) -> tuple[LengthBucket, ...]:
    """Compute BLEU for each range of source lengths, shortest first; empty ranges are left out."""
    if len(lengths) != len(bleu_statistics):
        raise DataError(f"{len(lengths):,} source lengths for {len(bleu_statistics):,} translations; give one for each")
    indices = bucket_indices(lengths, edges)  # (sentences,)
    parts = [(bucket, bleu_statistics.select(indices == index)) for index, bucket in enumerate(buckets(edges))]
    return tuple(LengthBucket(bucket, len(part), part.score, length_ratio(part)) for bucket, part in parts if len(part))
