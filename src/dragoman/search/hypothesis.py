"""What a search finds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from dragoman.core.scorer import AttentionScorer, Scorer, State
from dragoman.data.corpus import SourceCorpus
from dragoman.data.vocabulary import END


@dataclass(frozen=True)
class Hypothesis:
    """A sentence that a search found."""

    ids: tuple[int, ...]  # without `</s>`; what was given to go on from is among them
    log_prob: float  # what rescoring gives
    score: float  # what the search went by
    finished: bool = True  # False: cut off at the longest length allowed, before `</s>`
    attention: Tensor | None = field(default=None, compare=False, repr=False)  # (predicted words, source with `</s>`)

    def extend(self, word: int, log_prob: float, score: float) -> Hypothesis:
        """One word on; with `</s>` it is finished."""
        words = self.ids if word == END else (*self.ids, word)
        return Hypothesis(words, self.log_prob + log_prob, self.score + score, finished=word == END)

    def with_attention(self, rows: list[Tensor], columns: int) -> Hypothesis:
        """With the attention that each of its words was predicted with, `</s>` too if it got there.

        # rows: (longest source of the batch,) each, of which the first `columns` are this sentence's
        """
        return replace(self, attention=torch.stack(rows)[:, :columns].clone()) if rows else self


def attention_weights(scorer: Scorer, state: State) -> Tensor | None:
    """alpha_t of each row, if the scorer attends to anything.  # (rows, longest source)"""
    return scorer.attention(state) if isinstance(scorer, AttentionScorer) else None


def attention_widths(source: SourceCorpus | None, sentences: int) -> list[int]:
    """How many columns of the attention belong to each sentence: its words and `</s>`.

    A source that is attended to otherwise, as a tree is by its nodes, says how many they are in `attended`.
    """
    return [0] * sentences if source is None else source.memory_sizes.tolist()
