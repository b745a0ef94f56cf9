"""How good translations are beside their references: BLEU and chrF, both by sacreBLEU.

A metric maps each sentence to numbers that add up, and a score is a function of their sum. So the score of a text, of
its resamples and of its sentences of one length all come from the same statistics, which are extracted once.
sacreBLEU is imported inside functions: that takes a while, and most commands do without.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from sacrebleu import BLEU
    from sacrebleu.metrics.base import Metric as Rule

LENGTH_EDGES = (6, 11, 16, 21, 31, 41)  # words from which on a new class of lengths begins
FEW_SENTENCES = 20  # sentences, below which a score says little


@dataclass(frozen=True)
class Metric:
    """A way to judge translations: one of sacreBLEU's, with the settings that its signature tells."""

    name: str  # BLEU or chrF
    rule: Rule

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> MetricStatistics:
        """What the metric counts in each sentence."""
        check_line_counts(hypotheses, references)
        counts = self.rule._extract_corpus_statistics(hypotheses, [references])
        return MetricStatistics(self, np.array(counts, np.int64))  # (sentences, numbers)

    def score(self, counts: NDArray[Any]) -> float:
        """The score, from 0 to 100, of all that was counted together.  # counts: (numbers,)"""
        return float(self.details(counts).score)

    def details(self, counts: NDArray[Any]) -> Any:
        """sacreBLEU's own result: of BLEU with precisions, brevity penalty and lengths.  # counts: (numbers,)"""
        return self.rule._compute_score_from_stats(counts.tolist())

    @property
    def signature(self) -> str:
        """The settings and sacreBLEU's version: scores may be compared if these are the same."""
        return str(self.rule.get_signature())


@dataclass(frozen=True, eq=False)
class MetricStatistics:
    """What a metric counted in each sentence: numbers that add up.

    >>> some = bleu(tokenised=True).statistics(["a b c d e", "a b"], ["a b c d e", "x y"])
    >>> round(some.score, 2), round(some.select([0]).score, 2)
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
        return self.metric.score(self.total)

    def select(self, sentences: ArrayLike) -> MetricStatistics:
        """Those of these sentences alone: their numbers, or True and False for each."""
        return MetricStatistics(self.metric, self.counts[np.asarray(sentences)])  # (selected, numbers)

    def sentence_scores(self, metric: Metric | None = None) -> NDArray[np.float64]:
        """The score of each sentence by itself, if wanted by another metric that counts the same."""
        return np.array([(metric or self.metric).score(row) for row in self.counts])  # (sentences,)


def bleu(*, tokenised: bool, sentences: bool = False) -> Metric:
    """BLEU: of tokenised text the words as they are (`tok:none`), of raw text those of sacreBLEU's default (13a).

    `sentences`: for single sentences, where the orders for which a sentence is too short are left out of the mean.
    """
    return _ready("BLEU", _bleu(tokenised=tokenised, sentences=sentences))


def _bleu(*, tokenised: bool, sentences: bool = False) -> BLEU:
    from sacrebleu import BLEU

    tokenize = "none" if tokenised else BLEU.TOKENIZER_DEFAULT
    # force: tokenised text is not a mistake here, so that sacreBLEU need not warn of it
    return BLEU(tokenize=tokenize, force=True, effective_order=sentences)


def bleu_tokens(lines: Iterable[str], *, tokenised: bool) -> list[list[str]]:
    """The words of each line, as BLEU counts them.

    >>> words_of(["No, thanks."], tokenised=False), words_of(["No, thanks."], tokenised=True)
    ([['No', ',', 'thanks', '.']], [['No,', 'thanks.']])
    """
    tokenise = _bleu(tokenised=tokenised).tokenizer
    return [tokenise(line.rstrip()).split() for line in lines]


def chrf() -> Metric:
    """chrF2: the F-score of character n-grams up to six, spaces left out, recall counting twice."""
    from sacrebleu import CHRF

    return _ready("chrF", CHRF())


def _ready(name: str, rule: Rule) -> Metric:
    """sacreBLEU can give its signature only after it has seen how many references there are: here always one."""
    rule.corpus_score([""], [[""]])
    return Metric(name, rule)


def check_line_counts(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Refuse nothing at all, and texts that cannot be paired line by line."""
    if len(hypotheses) != len(references):
        problem = f"{len(hypotheses):,} translations for {len(references):,} references"
        raise DataError(f"{problem}; line i of one must translate what line i of the other does")
    if not references:
        raise DataError("no translations to judge; give at least one line")


# -- a whole text ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TranslationScores:
    """How good the translations of a text are."""

    sentences: int
    bleu: float  # from 0 to 100
    chrf: float  # from 0 to 100
    signature: str  # of BLEU
    chrf_signature: str
    length_ratio: float  # words of the translations by words of the references; not a number if there are none
    brevity_penalty: float  # what BLEU is multiplied by for being shorter than the references
    precisions: tuple[float, ...]  # of n-grams, n = 1 to 4, in percent
    words: int  # of the translations, as BLEU counts them
    reference_words: int
    empty: int  # translations without any word

    def as_dict(self) -> dict[str, Any]:
        """Plain values; what is undefined is None."""
        return asdict(self) | {
            "precisions": list(self.precisions),
            "length_ratio": finite_metric_or_none(self.length_ratio),
        }


def score_translations(hypotheses: Sequence[str], references: Sequence[str], tokenised: bool) -> TranslationScores:
    """BLEU and chrF of translations, one reference each.

    >>> judged = judge(["the cat sat on a mat .", ""], ["the cat sat on the mat .", "yes"], tokenised=True)
    >>> round(judged.bleu, 2), judged.words, judged.reference_words, judged.empty
    (42.38, 7, 8, 1)
    >>> judged.signature.split("|")[3]
    'tok:none'
    """
    by_bleu = bleu(tokenised=tokenised).statistics(hypotheses, references)
    return scores_from_statistics(by_bleu, chrf().statistics(hypotheses, references))


def scores_from_statistics(bleu_statistics: MetricStatistics, chrf_statistics: MetricStatistics) -> TranslationScores:
    """The same from statistics that were extracted before."""
    details = bleu_statistics.metric.details(bleu_statistics.total)
    return TranslationScores(
        sentences=len(bleu_statistics),
        bleu=float(details.score),
        chrf=chrf_statistics.score,
        signature=bleu_statistics.metric.signature,
        chrf_signature=chrf_statistics.metric.signature,
        length_ratio=length_ratio(bleu_statistics),
        brevity_penalty=float(details.bp),
        precisions=tuple(map(float, details.precisions)),
        words=int(details.sys_len),
        reference_words=int(details.ref_len),
        empty=int((_lengths(bleu_statistics)[:, 0] == 0).sum()),
    )


def length_ratio(bleu_statistics: MetricStatistics) -> float:
    """Words of the translations by words of the references, as BLEU counts them."""
    said, wanted = _lengths(bleu_statistics).sum(0).tolist()
    return said / wanted if wanted else math.nan


def _lengths(bleu_statistics: MetricStatistics) -> NDArray[np.int64]:
    """What sacreBLEU counts first: the words of the translation, and of the reference.  # (sentences, 2)"""
    return bleu_statistics.counts[:, :2]


def finite_metric_or_none(number: float) -> float | None:
    """For JSON, which has no sign for what is undefined."""
    return number if math.isfinite(number) else None


# -- by sentence length ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bucket:
    """A class of whole numbers.

    >>> [span.name for span in spans((1, 2, 10))]
    ['0', '1', '2 to 9', '10 and more']
    >>> spans((6,))[0].name
    'up to 5'
    """

    minimum: int
    maximum: int | None  # None: without end

    @property
    def name(self) -> str:
        if self.maximum is None:
            return f"{self.minimum:,} and more"
        if self.maximum == self.minimum:
            return f"{self.minimum:,}"
        return f"{self.minimum:,} to {self.maximum:,}" if self.minimum else f"up to {self.maximum:,}"


def buckets(edges: Sequence[int]) -> list[Bucket]:
    """The classes of which a new one begins at each edge; the first begins at 0, the last has no end."""
    starts = [0, *edges]
    if any(start >= following for start, following in zip(starts[:-1], starts[1:], strict=True)):
        raise DataError(f"edges {', '.join(map(str, edges))}: give whole numbers above 0 that grow, such as 6, 11, 21")
    return [Bucket(start, below - 1) for start, below in zip(starts[:-1], starts[1:], strict=True)] + [
        Bucket(starts[-1], None)
    ]


def bucket_indices(values: ArrayLike, edges: Sequence[int]) -> NDArray[np.int64]:
    """Of each value the number of its class among `spans(edges)`."""
    return np.searchsorted(np.asarray(edges, np.int64), np.asarray(values, np.int64), side="right")


@dataclass(frozen=True)
class LengthBucket:
    """The translations of sentences of about one length."""

    bucket: Bucket  # words of the source
    sentences: int
    bleu: float
    length_ratio: float

    @property
    def is_small(self) -> bool:
        """Whether there are so few sentences that the score says little."""
        return self.sentences < FEW_SENTENCES

    def as_dict(self) -> dict[str, Any]:
        about = {
            "from": self.bucket.minimum,
            "to": self.bucket.maximum,
            "sentences": self.sentences,
            "few": self.is_small,
        }
        return {**about, "bleu": self.bleu, "length_ratio": finite_metric_or_none(self.length_ratio)}


def by_length(
    hypotheses: Sequence[str],
    references: Sequence[str],
    source_lengths: Sequence[int],
    edges: Sequence[int] = LENGTH_EDGES,
    *,
    tokenised: bool,
) -> tuple[LengthBucket, ...]:
    """BLEU for each class of source length (`word_counts` of the source), shortest first; empty classes left out."""
    by_bleu = bleu(tokenised=tokenised).statistics(hypotheses, references)
    return bleu_by_length(by_bleu, source_lengths, edges)


def bleu_by_length(
    bleu_statistics: MetricStatistics, lengths: Sequence[int], edges: Sequence[int] = LENGTH_EDGES
) -> tuple[LengthBucket, ...]:
    """The same from statistics that were extracted before."""
    if len(lengths) != len(bleu_statistics):
        raise DataError(f"{len(lengths):,} source lengths for {len(bleu_statistics):,} translations; give one for each")
    classes = buckets(edges)
    number = bucket_indices(lengths, edges)  # (sentences,)
    own = [(span, bleu_statistics.select(number == place)) for place, span in enumerate(classes)]
    return tuple(LengthBucket(span, len(part), part.score, length_ratio(part)) for span, part in own if len(part))


def word_counts(lines: Sequence[str]) -> list[int]:
    """Words between spaces in each line.

    >>> word_counts(["the cat", "", "no"])
    [2, 0, 1]
    """
    return [len(line.split()) for line in lines]
