"""The scores that fit the kind of target: BLEU and chrF of sentences, accuracy and error rates of words and phones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from dragoman.core.errors import DataError
from dragoman.data.detokenize import looks_unsegmented
from dragoman.data.scanner import UNSPACED, split_words
from dragoman.data.segmenters import token_name
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.vocabulary import SPECIALS
from dragoman.evaluation.error_rates import (
    ACCURACY,
    CHARACTER_ERROR_RATE,
    ENTRY_ERROR_RATE,
    PHONE_ERROR_RATE,
    WORD_ERROR_RATE,
    Entry,
    ErrorRate,
    check_metric_names,
    group_entries,
)
from dragoman.evaluation.results import JsonResult
from dragoman.evaluation.significance import ConfidenceInterval, confidence_interval
from dragoman.evaluation.translation_metrics import Bleu, Chrf, MetricStatistics

MAX_SYMBOLS = 300  # distinct symbols: more than the phones of any language with their lengths, stresses and tones
MAX_SYMBOL_LENGTH = 2.5  # mean number of characters of a symbol
MIN_SYMBOL_COUNT = 2  # mean number of occurrences: a small set of symbols repeats soon, the words of sentences do not
MIN_SYMBOLS_PER_WORD = 2.5  # phones of a word of the source, if it may have several words
HEADLINE_METRICS = 2
METRIC_NAMES = ("accuracy", "WER", "PER", "CER", "BLEU", "chrF")


class TargetKind(StrEnum):
    """What the lines of a target text are."""

    SENTENCES = "sentences"
    WORDS = "words"  # one word per line, such as an inflected form or a transliterated name
    PHONES = "phones"  # the pronunciation of one word per line: symbols of a small set, separated by spaces


DEFAULT_METRICS = {
    TargetKind.SENTENCES: ("BLEU", "chrF"),
    TargetKind.WORDS: ("accuracy", "CER", "WER", "BLEU", "chrF"),
    TargetKind.PHONES: ("WER", "PER", "accuracy", "BLEU", "chrF"),
}


def target_kind(
    references: Sequence[str], sources: Sequence[str] | None = None, target: Tokenizer | None = None
) -> TargetKind:
    """Return the kind of a target text, by the text and, if given, its source and the tokenizer of a translator.

    >>> target_kind(["the cat sat .", "the dog ran ."]).value, target_kind(["gesetzt", "fuhr ab", "lief"]).value
    ('sentences', 'words')
    >>> target_kind(["K AE T", "AE K T", "T AE K", "K AE K", "AE T"], ["cat", "act", "tack", "cack", "at"]).value
    'phones'
    """
    lines = [words for words in map(split_words, references) if words]
    if sum(len(words) == 1 for words in lines) * 2 > len(lines) and not looks_unsegmented(references):
        return TargetKind.WORDS
    counts = Counter(word for words in lines for word in words)
    if target is not None and target.segmenter.kind == "word":
        is_small = len(target.vocab) - len(SPECIALS) <= MAX_SYMBOLS
    else:
        is_small = len(counts) <= MAX_SYMBOLS and counts.total() >= MIN_SYMBOL_COUNT * len(counts)
    if is_small and are_short(counts) and (sources is None or _may_be_spelled(sources, counts.total())):
        return TargetKind.PHONES
    return TargetKind.SENTENCES


def _may_be_spelled(sources: Sequence[str], symbols: int) -> bool:
    """Return whether symbols may be the pronunciation of sources: of single words, or several symbols for each word."""
    words = sum(len(split_words(line)) for line in sources)
    return target_kind(sources) != TargetKind.SENTENCES or symbols >= MIN_SYMBOLS_PER_WORD * words


def are_short(counts: Mapping[str, int]) -> bool:
    """Return whether words with these counts are as short as phones. Words of Chinese characters do not count."""
    total = sum(counts.values())
    length = sum(len(word) * count for word, count in counts.items()) / max(1, total)
    ideographic = sum(count for word, count in counts.items() if UNSPACED.search(word))
    return length <= MAX_SYMBOL_LENGTH and ideographic * 2 < total


def has_phones(tokenizer: Tokenizer) -> bool:
    """Return whether the words that a translator reads or writes are phones or similar symbols: few, and short.

    >>> [has_phones(Tokenizer.train("word", [line] * 2)) for line in ("h ɛ . l oʊ", "the dog barks .")]
    [True, False]
    """
    vocab = tokenizer.vocab
    if vocab.segmenter.kind != "word" or len(vocab) - len(SPECIALS) > MAX_SYMBOLS:
        return False
    return are_short(dict(zip(vocab.tokens[len(SPECIALS) :], vocab.counts[len(SPECIALS) :].tolist(), strict=True)))


def token_kind(tokenizer: Tokenizer) -> str:
    """Return what a token of a translator is called in messages.

    >>> [token_kind(Tokenizer.train(units, ["h ɛ l oʊ"] * 2)) for units in ("word", "char")]
    ['phone', 'character']
    """
    return "phone" if has_phones(tokenizer) else token_name(tokenizer.segmenter)


@dataclass(frozen=True)
class MetricResult(JsonResult):
    """The value of a metric, and the interval that contains 95% of the bootstrap resamples."""

    name: str
    value: float  # from 0 to 100; error rates may be higher
    interval: ConfidenceInterval
    description: str  # what is counted; for BLEU and chrF sacreBLEU's signature
    lower_is_better: bool
    is_percentage: bool

    def __str__(self) -> str:
        """Return the name and the value.

        >>> print(MetricResult("WER", 14.7, ConfidenceInterval(14.7, 12.5, 17.0), "wrong words", True, True))
        WER 14.70%
        """
        return f"{self.name} {self.value_text}"

    @property
    def value_text(self) -> str:
        return f"{self.value:.2f}{'%' if self.is_percentage else ''}"

    @property
    def interval_text(self) -> str:
        return f"95% interval {self.interval.low:.2f} to {self.interval.high:.2f}"


@dataclass(frozen=True, eq=False)
class TaskScores(JsonResult):
    """The scores of a system on a text, the most important metric first."""

    kind: TargetKind
    statistics: tuple[MetricStatistics, ...]  # of each metric
    entries: int  # distinct sources; for sentences, lines
    entries_with_variants: int  # entries with several references, of which the closest counts
    num_shown: int = HEADLINE_METRICS  # number of scores that are printed

    @cached_property
    def results(self) -> tuple[MetricResult, ...]:
        """The values with their intervals, the most important first."""
        return tuple(
            MetricResult(
                statistics.metric.name,
                statistics.score,
                confidence_interval(statistics),
                statistics.metric.signature,
                statistics.metric.lower_is_better,
                statistics.metric.is_percentage,
            )
            for statistics in self.statistics
        )

    def of(self, metric: str) -> MetricStatistics:
        """Return the statistics of the metric with this name."""
        return next(statistics for statistics in self.statistics if statistics.metric.name == metric)

    @property
    def headline(self) -> tuple[MetricResult, ...]:
        """The one or two scores that say most about this kind of target."""
        return self.results[:HEADLINE_METRICS]

    @property
    def shown_results(self) -> tuple[MetricResult, ...]:
        """The scores that are printed: those of the headline, or of `--metrics`."""
        return self.results[: self.num_shown]

    @property
    def headline_text(self) -> str:
        """The headline scores as text, such as `WER 14.70%, PER 3.20%`."""
        return ", ".join(map(str, self.headline))

    @property
    def unit(self) -> str:
        """What an entry is."""
        return "sentence" if self.kind == TargetKind.SENTENCES else "word"

    @property
    def token(self) -> str:
        """What perplexities are per."""
        return "phone" if self.kind == TargetKind.PHONES else "word"

    @property
    def entries_text(self) -> str:
        """What was counted, such as `1,000 words, 12 of them with several references: the closest counts`."""
        several = f", {self.entries_with_variants:,} of them with several references: the closest counts"
        return f"{self.entries:,} {self.unit}s{several if self.entries_with_variants else ''}"

    def as_dict(self) -> dict[str, object]:
        return {
            "target_kind": self.kind.value,
            "entries": self.entries,
            "entries_with_variants": self.entries_with_variants,
            "metrics": {result.name: result.as_dict() for result in self.results},
            "headline": [result.name for result in self.headline],
        }


def score_task(
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    target: Tokenizer | None = None,
    *,
    tokenised: bool,
    language: str | None = None,
    metrics: Sequence[str] | None = None,
) -> TaskScores:
    """Compute the scores that fit the kind of target.

    Args:
        hypotheses: what a system wrote, one line for each reference.
        references: of words and phones, equal sources have several references, and the closest counts.
        sources: the lines that were translated, if they are known.
        target: the tokenizer of the translator, if it is known.
        tokenised: whether BLEU uses words as they are.
        language: the code of the target language, for BLEU of raw text. Default: that of `target`.
        metrics: names of `METRIC_NAMES` to put first. Default: by the kind of target.

    >>> references = ["T AH M EY T OW", "T AH M AA T OW", "M AA T"]
    >>> scores = score_task(["T AH M EY T OW"] * 3, references, ["tomato", "tomato", "mot"], tokenised=True)
    >>> scores.headline_text, scores.entries_text
    ('WER 50.00%, PER 44.44%', '2 words, 1 of them with several references: the closest counts')
    """
    kind = target_kind(references, sources, target)
    chosen = DEFAULT_METRICS[kind] if metrics is None else check_metric_names(metrics, METRIC_NAMES)
    if "PER" in chosen and kind == TargetKind.SENTENCES:
        raise DataError("PER: the phone error rate is for pronunciations; these are sentences, choose WER or CER")
    entries = group_entries(hypotheses, references, None if kind == TargetKind.SENTENCES else sources)
    names = dict.fromkeys([*chosen, *DEFAULT_METRICS[TargetKind.SENTENCES]])
    by_name = _metrics(kind, tokenised, language or (None if target is None else target.language))
    return TaskScores(
        kind,
        tuple(_statistics(by_name[name], entries, hypotheses, references) for name in names),
        entries=len(entries),
        entries_with_variants=sum(len(entry.references) > 1 for entry in entries),
        num_shown=len(names) if kind == TargetKind.SENTENCES else max(HEADLINE_METRICS, len(metrics or ())),
    )


def _metrics(kind: TargetKind, tokenised: bool, language: str | None) -> dict[str, Bleu | Chrf | ErrorRate]:
    """Return all metrics by name. A sentence has many words; otherwise an entry is a word."""
    word_errors = WORD_ERROR_RATE if kind == TargetKind.SENTENCES else ENTRY_ERROR_RATE
    rates = (ACCURACY, word_errors, PHONE_ERROR_RATE, CHARACTER_ERROR_RATE)
    return {metric.name: metric for metric in (*rates, Bleu(tokenised, language=language), Chrf())}


def _statistics(
    metric: Bleu | Chrf | ErrorRate, entries: Sequence[Entry], hypotheses: Sequence[str], references: Sequence[str]
) -> MetricStatistics:
    if isinstance(metric, ErrorRate):
        return metric.statistics(entries)
    return metric.statistics(hypotheses, references)
