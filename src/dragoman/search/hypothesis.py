"""Hypotheses: the results of search and sampling, and the lattice of all that a beam search considered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.core.scorer import AttentionScorer, Scorer, State
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END, START

Fate = Literal["kept", "finished", "pruned"]


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

    sentence: NDArray[np.int64]  # (n,)
    row: NDArray[np.int64]  # (n,) the row of the hypothesis that is continued, among the active ones
    parent: NDArray[np.int64]  # (n,) the same hypothesis by its index among the continuations kept in the last step
    token: NDArray[np.int64]  # (n,)
    log_prob: NDArray[np.float64]  # (n,) of all tokens so far


def attention_weights(scorer: Scorer, state: State) -> Tensor | None:
    """Return alpha_t of each row, or None if the scorer has no attention.  # (rows, longest source)"""
    return scorer.attention(state) if isinstance(scorer, AttentionScorer) else None


def attention_widths(source: Corpus | None, sentences: int) -> list[int]:
    """Return how many columns of the attention belong to each sentence: its tokens and `</s>`, or the nodes of a tree."""
    return [0] * sentences if source is None else source.memory_sizes.tolist()


@dataclass(frozen=True)
class LatticeNode:
    """A hypothesis in a search: its parent and one more token."""

    id: int
    sentence: int
    parent: int | None  # None: the empty hypothesis
    token: int  # `</s>` if it ends here
    log_prob: float  # of all tokens so far; compared in each step
    score: float  # of the sentence if it ends here, else log_prob
    fate: Fate


@dataclass
class Lattice:
    """A recorder for a beam search. After the search, it holds the nodes.

    >>> from dragoman.search.beam import beam_search
    >>> from dragoman.search.scorers import EXAMPLE_SCORER
    >>> from dragoman.data.batches import Batch
    >>> lattice = Lattice(max_pruned=1)
    >>> hypotheses = beam_search(EXAMPLE_SCORER, Batch.empty(1), beam_size=2, lattice=lattice)
    >>> for node in lattice.nodes[1:]:
    ...     print(node.id, node.parent, EXAMPLE_SCORER.text(lattice.path_ids(node)), node.fate, round(node.log_prob, 2))
    1 0 b kept -0.69
    2 0 a kept -0.92
    3 0 </s> pruned -2.3
    4 2 a </s> finished -1.02
    5 1 b a kept -1.61
    6 1 b b pruned -1.74
    """

    max_pruned: int = 5  # pruned hypotheses to record per sentence and step, the best ones
    nodes: list[LatticeNode] = field(default_factory=list)
    _last_beam: list[int] = field(default_factory=list, repr=False)  # ids of the nodes kept in the last step

    def start(self, sentences: int) -> None:
        """Record the empty hypotheses."""
        self.nodes = [LatticeNode(number, number, None, START, 0.0, 0.0, "kept") for number in range(sentences)]
        self._last_beam = list(range(sentences))

    def record(
        self,
        beam: Continuations,
        scores: NDArray[np.float64],
        pruned: Continuations,
        pruned_scores: NDArray[np.float64],
    ) -> None:
        """Record one step, with the scores of hypotheses that end there.  # (beam,), (pruned,)"""
        first, parents = len(self.nodes), self._last_beam
        for continuations, ends, is_pruned in ((beam, scores, False), (pruned, pruned_scores, True)):
            columns = zip(*(column.tolist() for column in (*continuations, ends)), strict=True)
            for sentence, _, parent, token, log_prob, score in columns:
                fate: Fate = "pruned" if is_pruned else "finished" if token == END else "kept"
                shown, number = score if token == END else log_prob, len(self.nodes)
                self.nodes.append(LatticeNode(number, sentence, parents[parent], token, log_prob, shown, fate))
        self._last_beam = list(range(first, first + len(scores)))

    def path_ids(self, node: LatticeNode) -> tuple[int, ...]:
        """Return all token ids up to a node, `</s>` included if it ends there."""
        ids = []
        while node.parent is not None:
            ids.append(node.token)
            node = self.nodes[node.parent]
        return tuple(reversed(ids))
