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
from dragoman.search.hypothesis import Hypothesis, attended_columns, attention_of
from dragoman.search.length import LengthHandling, NoHandling, source_words_of

ROUNDING = 1e-5  # scores that differ by less, of sentences computed side by side or not, are the same

Error = Literal["none", "search", "model"]


@dataclass(frozen=True)
class Diagnosis:
    """What was found, against a reference.

    - `none`: the reference itself was found.
    - `search`: by the model and the length handling the reference is better than what was found, so the search passed
      over it, or over something better still.
    - `model`: the model likes what was found as well or better: no search would have chosen the reference.
    """

    found: Hypothesis
    reference: Hypothesis
    error: Error


@torch.no_grad()
def forced(
    scorer: Scorer, batch: Batch, *, length: LengthHandling = NoHandling(), coverage: float = 0.0
) -> list[Hypothesis]:
    """The given sentences of a batch as hypotheses: what they score, and the attention that predicts their words."""
    state = scorer.start(batch)
    steps, looked = [], []
    for words in batch.words.T:
        steps.append(scorer.log_probs(state).gather(1, words[:, None])[:, 0])  # (rows,)
        looked.append(attention_of(scorer, state))
        state = scorer.advance(state, words)
    log_prob = torch.stack(steps, dim=1).double().masked_fill(~batch.mask, 0.0).sum(dim=1)  # (rows,)
    score = length.score(log_prob, batch.lengths - 1, source_words_of(batch))
    if coverage:
        score = score + _left_out(batch, looked, coverage)
    columns = attended_columns(batch.source, batch.rows)
    found = []
    for row, (words, size) in enumerate(zip(batch.words.tolist(), batch.lengths.tolist(), strict=True)):
        hypothesis = Hypothesis(tuple(words[: size - 1]), float(log_prob[row]), float(score[row]))
        found.append(hypothesis.attending([a[row] for a in looked[:size] if a is not None], columns[row]))
    return found


def _left_out(batch: Batch, looked: Sequence[Tensor | None], strength: float) -> Tensor:
    """The penalty on what each sentence leaves out of its source.  # (rows,)"""
    attention = torch.stack([a for a in looked if a is not None], dim=1)  # (rows, steps, longest source)
    covered = (attention * batch.mask[:, :, None]).sum(dim=1)
    source_words = source_words_of(batch)
    assert source_words is not None, "there is attention, so there is a source"
    return coverage_penalty(covered, source_words, strength)


def diagnose(
    scorer: Scorer,
    references: Batch,
    found: Sequence[Hypothesis],
    *,
    length: LengthHandling = NoHandling(),
    coverage: float = 0.0,
) -> list[Diagnosis]:
    """Each row's reference against what was found for it, by what the search maximised.

    >>> from dragoman.search.beam import greedy
    >>> from dragoman.search.graph_scorer import FORKED
    >>> [[found]] = greedy(FORKED, Batch.to_generate(1))
    >>> references = [FORKED.vocab.ids(text.split()) for text in ("a", "b", "b a")]
    >>> [diagnosis.error for diagnosis in diagnose(FORKED, Batch.of(references), [found] * 3)]
    ['search', 'search', 'none']
    """
    pairs = zip(found, forced(scorer, references, length=length, coverage=coverage), strict=True)
    return [Diagnosis(best, reference, _error(best, reference)) for best, reference in pairs]


def _error(found: Hypothesis, reference: Hypothesis) -> Error:
    if found.finished and found.words == reference.words:
        return "none"
    best = found.score if found.finished else -torch.inf  # one that was cut off is no sentence
    return "search" if reference.score > best + ROUNDING else "model"
