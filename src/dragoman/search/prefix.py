"""Searching for sentences that begin as somebody wants them to."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.core.scorer import AttentionScorer, Carry, Scorer, State, candidate_log_probs, scatter_to_vocabulary
from dragoman.data.batches import Batch


class PrefixConstrainedScorer:
    """A scorer that says of the first words what another says of those given, and that all others are impossible.

    So what is found begins with them, and its log_prob is what rescoring gives. It is for searching alone: the first
    distributions do not add up to one.

    >>> from dragoman.search.beam import beam_search
    >>> from dragoman.search.graph_scorer import FORKED
    >>> from dragoman.data.batches import Batch
    >>> [[found]] = beam_search(Begun(FORKED, [FORKED.vocab.id("b")]), Batch.to_generate(1), beam_size=2)
    >>> FORKED.spelled(found.words), round(found.log_prob, 2)
    ('b b', -1.74)
    """

    def __init__(self, scorer: Scorer, words: Sequence[int]):
        self.scorer, self.prefix_ids = scorer, torch.tensor(list(words), dtype=torch.int64)
        self.vocab, self.unknown = scorer.vocab, scorer.unknown

    def start(self, batch: Batch, carry: Carry = None) -> State:
        inner = self.scorer.start(batch, carry)
        said = torch.zeros(batch.num_rows, dtype=torch.int64)
        return State((inner.rows, said), inner.memory, inner.sentence)

    def log_probs(self, state: State) -> Tensor:
        return scatter_to_vocabulary(*self.sparse_log_probs(state), len(self.vocab))

    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Of the word given for this place alone; after them, what the scorer says. A search says all rows' words
        together, so they are all at the same place.  # (rows, n), (n,)"""
        log_probs, words = candidate_log_probs(self.scorer, _inner(state))
        said = int(state.rows[1][0])
        if said >= len(self.prefix_ids):
            return log_probs, words
        wanted = self.prefix_ids[said : said + 1]
        at = wanted if words is None else (words == wanted).nonzero()[:, 0]
        if not len(at) or bool((log_probs[:, at] == -torch.inf).any()):
            raise DataError(f"no sentence can begin so: {self.vocab.tokens[int(wanted)]!r} is impossible there")
        return log_probs[:, at], wanted

    def advance(self, state: State, words: Tensor) -> State:
        inner = self.scorer.advance(_inner(state), words)
        return State((inner.rows, state.rows[1] + 1), inner.memory, inner.sentence)

    def finish(self, state: State) -> Carry:
        return self.scorer.finish(_inner(state))

    def attention(self, state: State) -> Tensor | None:
        return self.scorer.attention(_inner(state)) if isinstance(self.scorer, AttentionScorer) else None


def _inner(state: State) -> State:
    """Where the scorer itself is."""
    return State(state.rows[0], state.memory, state.sentence)
