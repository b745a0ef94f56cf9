"""The choice of a shortlist: a translator gets one if it translates the dev text no worse with it, and clearly faster."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

from dragoman.align.aligner import Aligner
from dragoman.align.shortlist import Shortlist
from dragoman.combine.shortlist import ShortlistScorer
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import TREE, LinePairs
from dragoman.evaluation.task_scores import TaskScores
from dragoman.models.stored_shortlist import ShortlistDecision
from dragoman.models.translator import Translator
from dragoman.models.two_way import TwoWayTranslator

MIN_WORDS = 1_000  # in the target vocabulary: with fewer, there is little to save
MIN_SENTENCES = 100  # of the dev text
MIN_SPEEDUP = 1.1
GROUP_SIZE = 64  # sentences that are translated at once, with the shortlist and without it in turn
MIN_GROUPS = 4
MAX_SHARE = 0.05  # of the time limit, for the aligner
ALIGNER_STARTUP = 2.0  # seconds
CELLS_PER_SECOND = 1e6  # pairs of a source and a target token of a sentence pair that an aligner learns from


class ShortlistChoice(NamedTuple):
    """A shortlist, whether it is used, and the translations of the dev text with this choice."""

    decision: ShortlistDecision
    shortlist: Shortlist
    texts: list[str]


def may_use_shortlist(model: Translator | TwoWayTranslator, dev: LinePairs | None) -> bool:
    """Return whether a shortlist may be of use, and there is a dev text to measure it."""
    if not isinstance(model, Translator) or model.classes is not None or model.source.format == TREE:
        return False
    return len(model.vocab) >= MIN_WORDS and dev is not None and len(dev.source) >= MIN_SENTENCES


def alignment_seconds(pairs: ParallelCorpus) -> float:
    """Return about how long an aligner is trained on sentence pairs."""
    return ALIGNER_STARTUP + float(np.dot(pairs.source.sizes, pairs.target.sizes.astype(np.float64))) / CELLS_PER_SECOND


def has_time_for_shortlist(pairs: ParallelCorpus, minutes: float | None) -> bool:
    """Return whether the aligner takes only a small part of a time limit."""
    return minutes is None or alignment_seconds(pairs) <= MAX_SHARE * 60 * minutes


def choose_shortlist(
    model: Translator, pairs: ParallelCorpus, lines: Sequence[str], score: Callable[[Sequence[str]], TaskScores]
) -> ShortlistChoice:
    """Translate lines with a shortlist and without one, and choose.

    Args:
        model: The translator.
        pairs: Its training pairs, from which the shortlist is learned.
        lines: The source of the dev text.
        score: Returns the scores of translations of the lines.
    """
    aligner = Aligner.train(pairs)
    shortlist = Shortlist.from_lexicon(aligner.forward.lexicon, model.source_vocab, model.vocab)
    all_words = model.without_shortlist
    translators = (ShortlistScorer(all_words, shortlist), all_words)
    texts: tuple[list[str], list[str]] = ([], [])
    speedups = []
    for translator in translators:
        translator.translate_text(lines[:1])  # which prepares it
    groups = np.array_split(np.arange(len(lines)), max(MIN_GROUPS, len(lines) // GROUP_SIZE))
    for number, group in enumerate(groups):
        seconds = [0.0, 0.0]
        for which in (0, 1) if number % 2 else (1, 0):
            start = perf_counter()
            translations = translators[which].translate_text([lines[index] for index in group])
            seconds[which] = perf_counter() - start
            texts[which].extend(translation.text for translation in translations)
        speedups.append(seconds[1] / max(seconds[0], 1e-9))
    with_shortlist, without = (score(translated).statistics[0] for translated in texts)
    is_worse = with_shortlist.score < without.score
    if without.metric.lower_is_better:
        is_worse = with_shortlist.score > without.score
    speedup = statistics.median(speedups)
    decision = ShortlistDecision(
        used=not is_worse and speedup >= MIN_SPEEDUP,
        metric=without.metric.name,
        score=round(with_shortlist.score, 4),
        score_of_all_words=round(without.score, 4),
        speedup=round(speedup, 2),
    )
    return ShortlistChoice(decision, shortlist, texts[0] if decision.used else texts[1])
