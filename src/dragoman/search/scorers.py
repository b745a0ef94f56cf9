"""Scorers for searches: with tokens that are impossible, and one given as a table, for examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.core.scorer import AttentionScorer, Carry, Scorer, State, candidate_log_probs, scatter_to_vocabulary
from dragoman.data.batches import Batch
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.data.vocabulary import END, SPECIALS, Vocab


class ConstrainedScorer(ABC):
    """A scorer for which some tokens of another one are impossible; all others keep their probabilities.

    So a hypothesis has its true log_prob, but distributions may sum to less than one: use it for search and sampling
    only. The first element of a state's rows has the rows of the other scorer.
    """

    def __init__(self, scorer: Scorer):
        self.scorer, self.vocab, self.unknown = scorer, scorer.vocab, scorer.unknown

    @abstractmethod
    def start(self, batch: Batch, carry: Carry = None) -> State: ...

    @abstractmethod
    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Return log P of the tokens that are possible, and their ids.  # (rows, n), (n,)"""

    @abstractmethod
    def advance(self, state: State, words: Tensor) -> State: ...

    @staticmethod
    def inner_state(state: State) -> State:
        """Return the state of the other scorer."""
        return State(state.rows[0], state.memory, state.sentence)

    def log_probs(self, state: State) -> Tensor:
        return scatter_to_vocabulary(*self.sparse_log_probs(state), len(self.vocab))

    def finish(self, state: State) -> Carry:
        return self.scorer.finish(self.inner_state(state))

    def attention(self, state: State) -> Tensor | None:
        return self.scorer.attention(self.inner_state(state)) if isinstance(self.scorer, AttentionScorer) else None


class PrefixConstrainedScorer(ConstrainedScorer):
    """A scorer for sentences that begin with given tokens: all other tokens are impossible at these positions.

    >>> from dragoman.search.beam import beam_search
    >>> scorer = PrefixConstrainedScorer(EXAMPLE_SCORER, [EXAMPLE_SCORER.vocab.id("b")])
    >>> [[hypothesis]] = beam_search(scorer, Batch.empty(1), beam_size=2)
    >>> EXAMPLE_SCORER.text(hypothesis.ids), round(hypothesis.log_prob, 2)
    ('b b', -1.74)
    """

    def __init__(self, scorer: Scorer, prefix_ids: Sequence[int]):
        super().__init__(scorer)
        self.prefix_ids = torch.tensor(list(prefix_ids), dtype=torch.int64)

    def start(self, batch: Batch, carry: Carry = None) -> State:
        inner = self.scorer.start(batch, carry)
        position = torch.zeros(batch.num_rows, dtype=torch.int64)
        return State((inner.rows, position), inner.memory, inner.sentence)

    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Return log P of the given token at this position, after the prefix those of the scorer.  # (rows, n), (n,)

        In a search, all rows are at the same position.
        """
        log_probs, ids = candidate_log_probs(self.scorer, self.inner_state(state))
        position = int(state.rows[1][0])
        if position >= len(self.prefix_ids):
            return log_probs, ids
        if ids is not None and ids.dim() == 2:  # other tokens in each row
            log_probs, ids = scatter_to_vocabulary(log_probs, ids, len(self.vocab)), None
        token = self.prefix_ids[position : position + 1]
        column = token if ids is None else (ids == token).nonzero()[:, 0]
        if not len(column) or bool((log_probs[:, column] == -torch.inf).any()):
            raise DataError(f"prefix: {self.vocab.tokens[int(token)]!r} has probability 0 after the words before it")
        return log_probs[:, column], token

    def advance(self, state: State, words: Tensor) -> State:
        inner = self.scorer.advance(self.inner_state(state), words)
        return State((inner.rows, state.rows[1] + 1), inner.memory, inner.sentence)


class GraphScorer:
    """A distribution for each prefix in a table; after any other prefix the sentence ends.

    >>> coin = GraphScorer("a b", {"": {"a": 0.5, "b": 0.5}})
    >>> coin.log_probs(coin.start(Batch.empty(1))).exp()
    tensor([[0.0000, 0.0000, 0.0000, 0.5000, 0.5000]], dtype=torch.float64)
    """

    def __init__(self, words: str, graph: Mapping[str, Mapping[str, float]]):
        """`graph` maps a prefix (words separated by spaces) to the probability of each next word."""
        self.vocab = Vocab([*SPECIALS, *words.split()])
        self.unknown = ClosedVocabulary(self.vocab.num_known)
        nodes = {tuple(prefix.split()): node for node, prefix in enumerate(graph)}
        end_node = len(graph)  # every sentence ends here
        probs = torch.zeros(end_node + 1, len(self.vocab), dtype=torch.float64)
        self._next = torch.full(probs.shape, end_node)
        probs[end_node, END] = 1.0
        for (prefix, node), following in zip(nodes.items(), graph.values(), strict=True):
            for word, prob in following.items():
                token = self.vocab.tokens.index(word)
                probs[node, token] = prob
                self._next[node, token] = nodes.get((*prefix, word), end_node)
            if abs(sum(following.values()) - 1) > 1e-9:
                raise DataError(f"after {' '.join(prefix)!r}: probabilities add up to {sum(following.values())}")
        self._log_probs = probs.log()  # (nodes, |V|)
        self._first = nodes.get((), end_node)

    def text(self, ids: Sequence[int]) -> str:
        return " ".join(self.vocab.tokens[token] for token in ids)

    def start(self, batch: Batch, carry: Carry = None) -> State:
        return State((torch.full((batch.num_rows,), self._first),))

    def log_probs(self, state: State) -> Tensor:
        return self._log_probs[state.rows[0]]  # (rows, |V|)

    def advance(self, state: State, words: Tensor) -> State:
        return State((self._next[state.rows[0], words],))

    def finish(self, state: State) -> Carry:
        return None


# The most probable first word is b, but every sentence that begins with b is less probable than the sentence "a".
EXAMPLE_SCORER = GraphScorer(
    "a b",
    {
        "": {"a": 0.4, "b": 0.5, "</s>": 0.1},
        "a": {"a": 0.05, "b": 0.05, "</s>": 0.9},
        "b": {"a": 0.4, "b": 0.35, "</s>": 0.25},
        "b a": {"a": 0.2, "b": 0.2, "</s>": 0.6},
    },
)
