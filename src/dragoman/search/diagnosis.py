"""Whose fault was it? Scores of given sentences, and what they say of those that a search found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dragoman.core.scorer import Scorer
from dragoman.data.batches import Batch
from dragoman.search.coverage import coverage_penalty
from dragoman.search.hypothesis import Hypothesis, attention_weights, attention_widths
from dragoman.search.length import LengthHandling, NoLengthHandling, source_lengths

TOLERANCE = 1e-5  # scores that differ by less, of sentences computed side by side or not, are the same

ErrorKind = Literal["none", "search", "model"]


@dataclass(frozen=True)
class SearchDiagnosis:
    """What was found, against a reference.

    - `none`: the reference itself was found.
    - `search`: by the model and the length handling the reference is better than what was found, so the search passed
      over it, or over something better still.
    - `model`: the model likes what was found as well or better: no search would have chosen the reference.
    """

    hypothesis: Hypothesis
    reference: Hypothesis
    error: ErrorKind


@torch.no_grad()
def force_decode(
    scorer: Scorer, batch: Batch, *, length: LengthHandling = NoLengthHandling(), coverage: float = 0.0
) -> list[Hypothesis]:
    """The given sentences of a batch as hypotheses: what they score, and the attention that predicts their words."""
    state = scorer.start(batch)
    steps, looked = [], []
    for words in batch.ids.T:
        steps.append(scorer.log_probs(state).gather(1, words[:, None])[:, 0])  # (rows,)
        looked.append(attention_weights(scorer, state))
        state = scorer.advance(state, words)
    log_prob = torch.stack(steps, dim=1).double().masked_fill(~batch.mask, 0.0).sum(dim=1)  # (rows,)
    score = length.score(log_prob, batch.lengths - 1, source_lengths(batch))
    if coverage:
        score = score + _coverage_penalties(batch, looked, coverage)
    columns = attention_widths(batch.source, batch.num_rows)
    found = []
    for row, (words, size) in enumerate(zip(batch.ids.tolist(), batch.lengths.tolist(), strict=True)):
        hypothesis = Hypothesis(tuple(words[: size - 1]), float(log_prob[row]), float(score[row]))
        found.append(hypothesis.with_attention([a[row] for a in looked[:size] if a is not None], columns[row]))
    return found


def _coverage_penalties(batch: Batch, looked: Sequence[Tensor | None], strength: float) -> Tensor:
    """The penalty on what each sentence leaves out of its source.  # (rows,)"""
    attention = torch.stack([a for a in looked if a is not None], dim=1)  # (rows, steps, longest source)
    covered = (attention * batch.mask[:, :, None]).sum(dim=1)
    source_words = source_lengths(batch)
    assert source_words is not None, "there is attention, so there is a source"
    return coverage_penalty(covered, source_words, strength)


def diagnose(
    scorer: Scorer,
    references: Batch,
    hypotheses: Sequence[Hypothesis],
    *,
    length: LengthHandling = NoLengthHandling(),
    coverage: float = 0.0,
) -> list[SearchDiagnosis]:
    """Each row's reference against what was found for it, by what the search maximised.

    >>> from dragoman.search.beam import greedy
    >>> from dragoman.search.graph_scorer import FORKED
    >>> [[found]] = greedy(FORKED, Batch.to_generate(1))
    >>> references = [FORKED.vocab.ids(text.split()) for text in ("a", "b", "b a")]
    >>> [diagnosis.error for diagnosis in diagnose(FORKED, Batch.of(references), [found] * 3)]
    ['search', 'search', 'none']
    """
    pairs = zip(hypotheses, force_decode(scorer, references, length=length, coverage=coverage), strict=True)
    return [SearchDiagnosis(best, reference, _error_kind(best, reference)) for best, reference in pairs]


def _error_kind(hypothesis: Hypothesis, reference: Hypothesis) -> ErrorKind:
    if hypothesis.finished and hypothesis.ids == reference.ids:
        return "none"
    best = hypothesis.score if hypothesis.finished else -torch.inf  # one that was cut off is no sentence
    return "search" if reference.score > best + TOLERANCE else "model"
