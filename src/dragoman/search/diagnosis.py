"""Forced decoding of given sentences, and the diagnosis of search errors and model errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dragoman.core.scorer import Scorer
from dragoman.data.batches import Batch
from dragoman.search.hypothesis import Hypothesis, attention_weights, attention_widths
from dragoman.search.length import LengthHandling, NoLengthHandling, coverage_penalty, source_lengths

TOLERANCE = 1e-5  # scores that differ by less are equal: batching changes the rounding

ErrorKind = Literal["none", "search", "model"]


@dataclass(frozen=True)
class SearchDiagnosis:
    """A hypothesis compared with a reference.

    - `none`: the hypothesis is the reference.
    - `search`: the reference has a higher score than the hypothesis, so that the search missed it, or something better.
    - `model`: the hypothesis has the same or a higher score: no search would have chosen the reference.
    """

    hypothesis: Hypothesis
    reference: Hypothesis
    error: ErrorKind


@torch.no_grad()
def force_decode(
    scorer: Scorer, batch: Batch, *, length: LengthHandling = NoLengthHandling(), coverage: float = 0.0
) -> list[Hypothesis]:
    """Return the given sentences of a batch as hypotheses with their scores and attention.

    `length` and `coverage` are those of `beam_search`.
    """
    state, source_words = scorer.start(batch), source_lengths(batch)
    steps, attention = list[Tensor](), list[Tensor]()
    for words in batch.ids.T:
        steps.append(scorer.log_probs(state).gather(1, words[:, None])[:, 0])  # (rows,)
        if (weights := attention_weights(scorer, state)) is not None:
            attention.append(weights)  # (rows, longest source)
        state = scorer.advance(state, words)
    log_prob = torch.stack(steps, dim=1).double().masked_fill(~batch.mask, 0.0).sum(dim=1)  # (rows,)
    score = length.score(log_prob, batch.lengths - 1, source_words)
    if coverage:
        assert attention and source_words is not None, "a coverage penalty needs attention"
        covered = (torch.stack(attention, dim=1) * batch.mask[:, :, None]).sum(dim=1)
        score = score + coverage_penalty(covered, source_words, coverage)
    widths = attention_widths(batch.source, batch.num_rows)
    hypotheses = []
    for row, (ids, size) in enumerate(zip(batch.ids.tolist(), batch.lengths.tolist(), strict=True)):
        hypothesis = Hypothesis(tuple(ids[: size - 1]), float(log_prob[row]), float(score[row]))
        hypotheses.append(hypothesis.with_attention([step[row] for step in attention[:size]], widths[row]))
    return hypotheses


def diagnose(
    scorer: Scorer,
    references: Batch,
    hypotheses: Sequence[Hypothesis],
    *,
    length: LengthHandling = NoLengthHandling(),
    coverage: float = 0.0,
) -> list[SearchDiagnosis]:
    """Compare the hypothesis for each row with its reference, by the score that the search maximised.

    >>> from dragoman.search.beam import greedy_search
    >>> from dragoman.search.scorers import EXAMPLE_SCORER
    >>> [[hypothesis]] = greedy_search(EXAMPLE_SCORER, Batch.empty(1))
    >>> references = [EXAMPLE_SCORER.vocab.ids(text.split()) for text in ("a", "b", "b a")]
    >>> diagnoses = diagnose(EXAMPLE_SCORER, Batch.from_sentences(references), [hypothesis] * 3)
    >>> [diagnosis.error for diagnosis in diagnoses]
    ['search', 'search', 'none']
    """
    decoded = force_decode(scorer, references, length=length, coverage=coverage)
    diagnoses = []
    for hypothesis, reference in zip(hypotheses, decoded, strict=True):
        best = hypothesis.score if hypothesis.finished else -torch.inf  # an unfinished hypothesis is no sentence
        error: ErrorKind = "search" if reference.score > best + TOLERANCE else "model"
        if hypothesis.finished and hypothesis.ids == reference.ids:
            error = "none"
        diagnoses.append(SearchDiagnosis(hypothesis, reference, error))
    return diagnoses
