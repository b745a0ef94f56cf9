"""A scorer given as a table, for examples and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, State
from dragoman.data.batches import Batch
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.data.vocabulary import END, SPECIALS, Vocab


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
