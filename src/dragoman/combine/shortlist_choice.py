"""The choice of a shortlist: a translator gets one if it translates the dev text no worse with it, and clearly faster.

How much faster is estimated from sizes, not measured, so that the same training always has the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.align.aligner import Aligner
from dragoman.align.shortlist import FREQUENT_WORDS, Shortlist
from dragoman.combine.shortlist import ShortlistScorer
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import TREE, LinePairs
from dragoman.evaluation.task_scores import TaskScores
from dragoman.models.stored_shortlist import ShortlistDecision
from dragoman.models.translator import Translator
from dragoman.models.translator_scorer import step_matrices
from dragoman.models.two_way import TwoWayTranslator
from dragoman.nn.output import FullSoftmax

MIN_SENTENCES = 100  # of the dev text
SIZE_LINES = 500  # of the dev text, by which the mean size of shortlists is known
MIN_SPEEDUP = 1.1
MIN_VOCABULARY = 2_000  # words; nobody expects a shortlist of fewer
# Time of parts of a search per multiplication, relative to that of the softmax over all words. These numbers explain the
# measured speed of translators with 256 and 512 hidden units and 2,000 to 12,000 words within 10 % in batches of 64.
STEP_COST = 3.0  # of the decoder's matrices: a step does more than these products
SHORTLIST_COST = 10.0  # of products with parameters that are copied for each sentence
MAX_CELLS = 20_000_000  # that an aligner for a shortlist learns from
MAX_SHARE = 0.05  # of the time limit, for the aligner
ALIGNER_STARTUP = 2.0  # seconds
CELLS_PER_SECOND = 1e6  # pairs of a source and a target token of a sentence pair that an aligner learns from


class ShortlistChoice(NamedTuple):
    """A shortlist, whether it is used, and the translations of the dev text with this choice."""

    decision: ShortlistDecision
    shortlist: Shortlist
    texts: list[str]


def may_use_shortlist(model: Translator | TwoWayTranslator, dev: LinePairs | None) -> bool:
    """Return whether the shortest shortlists would be fast enough, and there is a dev text to test them."""
    if not isinstance(model, Translator) or model.classes is not None or model.source.format == TREE:
        return False
    has_text = dev is not None and len(dev.source) >= MIN_SENTENCES
    return has_text and expected_speedup(model, FREQUENT_WORDS) >= MIN_SPEEDUP


def describe_missing_shortlist(model: Translator | TwoWayTranslator, dev: LinePairs | None) -> str:
    """Return why no shortlist is tried, if one might be expected; otherwise an empty string."""
    is_possible = isinstance(model, Translator) and model.classes is None and model.source.format != TREE
    if not is_possible or model.vocab.num_known < MIN_VOCABULARY or may_use_shortlist(model, dev):
        return ""
    if dev is None or len(dev.source) < MIN_SENTENCES:
        return f"there is no dev text of {MIN_SENTENCES} sentences or more to test it"
    return "the search would hardly be faster"


def num_learned_pairs(pairs: ParallelCorpus) -> int:
    """Return the number of sentence pairs that a shortlist is learned from: all if there are not too many."""
    return max(1, int(len(pairs) * min(1.0, MAX_CELLS / max(1.0, _num_cells(pairs)))))


def alignment_seconds(pairs: ParallelCorpus) -> float:
    """Return about how long the aligner of a shortlist is trained."""
    return ALIGNER_STARTUP + min(MAX_CELLS, _num_cells(pairs)) / CELLS_PER_SECOND


def _num_cells(pairs: ParallelCorpus) -> float:
    return float(np.dot(pairs.source.sizes, pairs.target.sizes.astype(np.float64)))


def has_time_for_shortlist(pairs: ParallelCorpus, minutes: float | None) -> bool:
    """Return whether the aligner takes only a small part of a time limit."""
    return minutes is None or alignment_seconds(pairs) <= MAX_SHARE * 60 * minutes


def learn_shortlist(model: Translator, pairs: ParallelCorpus) -> Shortlist:
    """Learn a shortlist from the training pairs of a translator, or from some of them, evenly spread."""
    number = num_learned_pairs(pairs)
    if number < len(pairs):
        pairs = pairs.select(np.arange(number) * len(pairs) // number)
    return Shortlist.from_lexicon(Aligner.train(pairs).forward.lexicon, model.source_vocab, model.vocab)


def expected_speedup(model: Translator, list_size: float) -> float:
    """Return about how many times as fast a beam search is with shortlists of this mean size.

    It is estimated from the numbers of multiplications, so that it is the same on every machine.
    """
    assert isinstance(model.output, FullSoftmax)
    words, inputs = model.output.weights(model.tied_weight)[0].shape
    layers = [layer.weight for layer in (model.readout, model.projection) if layer is not None]
    step = STEP_COST * sum(W.numel() for W in (*step_matrices(model).values(), *layers))
    return (step + words * inputs) / (step + SHORTLIST_COST * list_size * inputs)


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
    shortlist = learn_shortlist(model, pairs)
    listed = ShortlistScorer(model, shortlist)
    texts = [translation.text for translation in listed.translate_text(lines)]
    texts_of_all_words = [translation.text for translation in model.translate_text(lines, use_shortlist=False)]
    with_shortlist, without = (score(translated).statistics[0] for translated in (texts, texts_of_all_words))
    is_worse = with_shortlist.score < without.score
    if without.metric.lower_is_better:
        is_worse = with_shortlist.score > without.score
    allowed = shortlist.allowed_words(model.source.encode(lines[:SIZE_LINES]))  # (lines, |V|)
    speedup = expected_speedup(model, float(allowed.sum(dim=1).double().mean()))
    reason = "the dev text is translated worse" if is_worse else "hardly faster" if speedup < MIN_SPEEDUP else None
    decision = ShortlistDecision(
        used=reason is None,
        metric=without.metric.name,
        score=round(with_shortlist.score, 4),
        score_of_all_words=round(without.score, 4),
        speedup=round(speedup, 2),
        reason=reason,
    )
    return ShortlistChoice(decision, shortlist, texts if decision.used else texts_of_all_words)
