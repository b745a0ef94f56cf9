"""Distributions small enough to draw on paper, as scorers."""

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
    """A distribution after each beginning that is written out; after any other beginning the sentence ends.

    >>> coin = GraphScorer("a b", {"": {"a": 0.5, "b": 0.5}})
    >>> coin.log_probs(coin.start(Batch.to_generate(1))).exp()
    tensor([[0.0000, 0.0000, 0.0000, 0.5000, 0.5000]], dtype=torch.float64)
    """

    def __init__(self, words: str, graph: Mapping[str, Mapping[str, float]]):
        """`graph`: the words so far, with spaces between them -> the probability of each word that may come next."""
        self.vocab = Vocab([*SPECIALS, *words.split()])
        self.unknown = ClosedVocabulary(self.vocab.num_known)
        node = {tuple(beginning.split()): number for number, beginning in enumerate(graph)}
        over = len(graph)  # the node from which every sentence ends
        probs = torch.zeros(over + 1, len(self.vocab), dtype=torch.float64)
        self._next = torch.full(probs.shape, over)
        probs[over, END] = 1.0
        for (beginning, number), following in zip(node.items(), graph.values(), strict=True):
            for word, prob in following.items():
                probs[number, self._number(word)] = prob
                self._next[number, self._number(word)] = node.get((*beginning, word), over)
            if abs(sum(following.values()) - 1) > 1e-9:
                raise DataError(
                    f"after {' '.join(beginning)!r}: probabilities that add up to {sum(following.values())}"
                )
        self._log_probs = probs.log()  # (nodes, |V|)
        self._first = node.get((), over)

    def _number(self, word: str) -> int:
        return self.vocab.tokens.index(word)

    def text(self, words: Sequence[int]) -> str:
        return " ".join(self.vocab.tokens[word] for word in words)

    def start(self, batch: Batch, carry: Carry = None) -> State:
        return State((torch.full((batch.num_rows,), self._first),))

    def log_probs(self, state: State) -> Tensor:
        return self._log_probs[state.rows[0]]  # (rows, |V|)

    def advance(self, state: State, words: Tensor) -> State:
        return State((self._next[state.rows[0], words],))

    def finish(self, state: State) -> Carry:
        return None


# The best first word is b, but every sentence that begins with b is less probable than the sentence a.
EXAMPLE_SCORER = GraphScorer(
    "a b",
    {
        "": {"a": 0.4, "b": 0.5, "</s>": 0.1},
        "a": {"a": 0.05, "b": 0.05, "</s>": 0.9},
        "b": {"a": 0.4, "b": 0.35, "</s>": 0.25},
        "b a": {"a": 0.2, "b": 0.2, "</s>": 0.6},
    },
)
