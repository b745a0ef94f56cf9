"""Hypotheses: the results of search and sampling."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.core.scorer import AttentionScorer, Scorer, State
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END


@dataclass(frozen=True)
class Hypothesis:
    """A sentence as token ids, with its scores."""

    ids: tuple[int, ...]  # without `</s>`; includes a given prefix
    log_prob: float  # log P of the sentence
    score: float  # what the search maximised
    finished: bool = True  # False: the maximum length was reached before `</s>`
    attention: Tensor | None = field(default=None, compare=False, repr=False)  # (predicted tokens, source with `</s>`)

    def extend(self, token: int, log_prob: float, score: float) -> Hypothesis:
        """Return the hypothesis with one more token; `</s>` finishes it."""
        ids = self.ids if token == END else (*self.ids, token)
        return Hypothesis(ids, self.log_prob + log_prob, self.score + score, finished=token == END)

    def with_attention(self, rows: list[Tensor], width: int) -> Hypothesis:
        """Return the hypothesis with the attention of each predicted token, `</s>` included if it was predicted.

        # rows: (longest source of the batch,) each, of which the first `width` belong to this sentence
        """
        return replace(self, attention=torch.stack(rows)[:, :width].clone()) if rows else self


class Continuations(NamedTuple):
    """Hypotheses of one step: each is an active hypothesis of the last step and a token; grouped by sentence."""

    sentence: Tensor  # (n,)
    row: Tensor  # (n,) the row of the hypothesis that is continued, among the active ones
    parent: Tensor  # (n,) the same hypothesis by its index among the continuations kept in the last step
    token: Tensor  # (n,)
    log_prob: Tensor  # (n,) of all tokens so far


def attention_weights(scorer: Scorer, state: State) -> Tensor | None:
    """Return alpha_t of each row, or None if the scorer has no attention.  # (rows, longest source)"""
    return scorer.attention(state) if isinstance(scorer, AttentionScorer) else None


def attention_widths(source: Corpus | None, sentences: int) -> list[int]:
    """Return how many columns of the attention belong to each sentence: its tokens and `</s>`, or the nodes of a tree."""
    if source is None:
        return [0] * sentences
    return [int(width) for width in source.memory_sizes]
