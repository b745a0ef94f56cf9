"""Search for sentences with a given beginning."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.core.scorer import AttentionScorer, Carry, Scorer, State, candidate_log_probs, scatter_to_vocabulary
from dragoman.data.batches import Batch


class PrefixConstrainedScorer:
    """A scorer for sentences that begin with given tokens: all other tokens are impossible at these positions.

    The given tokens keep their probabilities, so that a hypothesis has its true log_prob. The first distributions do
    not sum to one: use it for search only.

    >>> from dragoman.search.beam import beam_search
    >>> from dragoman.search.graph_scorer import EXAMPLE_SCORER
    >>> from dragoman.data.batches import Batch
    >>> scorer = PrefixConstrainedScorer(EXAMPLE_SCORER, [EXAMPLE_SCORER.vocab.id("b")])
    >>> [[hypothesis]] = beam_search(scorer, Batch.empty(1), beam_size=2)
    >>> EXAMPLE_SCORER.text(hypothesis.ids), round(hypothesis.log_prob, 2)
    ('b b', -1.74)
    """

    def __init__(self, scorer: Scorer, prefix_ids: Sequence[int]):
        self.scorer, self.prefix_ids = scorer, torch.tensor(list(prefix_ids), dtype=torch.int64)
        self.vocab, self.unknown = scorer.vocab, scorer.unknown

    def start(self, batch: Batch, carry: Carry = None) -> State:
        inner = self.scorer.start(batch, carry)
        position = torch.zeros(batch.num_rows, dtype=torch.int64)
        return State((inner.rows, position), inner.memory, inner.sentence)

    def log_probs(self, state: State) -> Tensor:
        return scatter_to_vocabulary(*self.sparse_log_probs(state), len(self.vocab))

    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Return log P of the given token at this position, after the prefix those of the scorer.  # (rows, n), (n,)

        In a search, all rows are at the same position.
        """
        log_probs, ids = candidate_log_probs(self.scorer, _inner(state))
        position = int(state.rows[1][0])
        if position >= len(self.prefix_ids):
            return log_probs, ids
        token = self.prefix_ids[position : position + 1]
        column = token if ids is None else (ids == token).nonzero()[:, 0]
        if not len(column) or bool((log_probs[:, column] == -torch.inf).any()):
            raise DataError(f"no sentence can begin so: {self.vocab.tokens[int(token)]!r} is impossible there")
        return log_probs[:, column], token

    def advance(self, state: State, words: Tensor) -> State:
        inner = self.scorer.advance(_inner(state), words)
        return State((inner.rows, state.rows[1] + 1), inner.memory, inner.sentence)

    def finish(self, state: State) -> Carry:
        return self.scorer.finish(_inner(state))

    def attention(self, state: State) -> Tensor | None:
        return self.scorer.attention(_inner(state)) if isinstance(self.scorer, AttentionScorer) else None


def _inner(state: State) -> State:
    """The state of the wrapped scorer."""
    return State(state.rows[0], state.memory, state.sentence)
