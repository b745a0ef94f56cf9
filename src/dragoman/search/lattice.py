"""What a beam search did: every hypothesis that it kept, finished or pruned, with its scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from torch import Tensor

from dragoman.data.vocabulary import END, START

Fate = Literal["kept", "finished", "pruned"]


class Continuations(NamedTuple):
    """Hypotheses of one step, each an active one of the step before and a word; those of a sentence together."""

    sentence: Tensor  # (n,)
    row: Tensor  # (n,) of the hypothesis that it continues, among the active ones
    parent: Tensor  # (n,) of the same, among the continuations kept in the step before
    token: Tensor  # (n,)
    log_prob: Tensor  # (n,) of all words so far


@dataclass(frozen=True)
class LatticeNode:
    """A hypothesis in a search: the one it continues, and a word."""

    id: int
    sentence: int
    parent: int | None  # None: the empty beginning
    token: int  # `</s>` for one that ends here
    log_prob: float  # of all its words: what is compared in a step
    score: float  # for one that ends here, what it is worth as a translation; for others, log_prob
    fate: Fate


@dataclass
class Lattice:
    """A recorder to give to a beam search; afterwards it holds what happened.

    >>> from dragoman.search.beam import beam_search
    >>> from dragoman.search.graph_scorer import FORKED
    >>> from dragoman.data.batches import Batch
    >>> lattice = Lattice(pruned=1)
    >>> found = beam_search(FORKED, Batch.to_generate(1), beam_size=2, lattice=lattice)
    >>> for node in lattice.nodes[1:]:
    ...     print(node.id, node.parent, FORKED.spelled(lattice.words(node)), node.fate, round(node.log_prob, 2))
    1 0 b kept -0.69
    2 0 a kept -0.92
    3 0 </s> pruned -2.3
    4 2 a </s> finished -1.02
    5 1 b a kept -1.61
    6 1 b b pruned -1.74
    """

    max_pruned: int = 5  # how many of those that were pruned are told of, for each sentence and step, the best ones
    nodes: list[LatticeNode] = field(default_factory=list)
    _before: list[int] = field(default_factory=list, repr=False)  # the nodes kept in the step before

    def start(self, sentences: int) -> None:
        """The empty beginnings."""
        self.nodes = [LatticeNode(number, number, None, START, 0.0, 0.0, "kept") for number in range(sentences)]
        self._before = list(range(sentences))

    def record(self, kept: Continuations, scores: Tensor, pruned: Continuations, pruned_scores: Tensor) -> None:
        """One step. Scores are what those that end are worth.  # (kept,), (pruned,)"""
        after = self._add(kept, scores, pruned=False)
        self._add(pruned, pruned_scores, pruned=True)
        self._before = after

    def _add(self, some: Continuations, scores: Tensor, *, pruned: bool) -> list[int]:
        first = len(self.nodes)
        each = zip(*(part.tolist() for part in (*some, scores)), strict=True)
        for number, (sentence, _, parent, word, log_prob, score) in enumerate(each, first):
            fate: Fate = "pruned" if pruned else "finished" if word == END else "kept"
            worth = score if word == END else log_prob
            self.nodes.append(LatticeNode(number, sentence, self._before[parent], word, log_prob, worth, fate))
        return list(range(first, len(self.nodes)))

    def nodes_of(self, sentence: int) -> list[LatticeNode]:
        """The nodes of one sentence."""
        return [node for node in self.nodes if node.sentence == sentence]

    def path_ids(self, node: LatticeNode) -> tuple[int, ...]:
        """All words up to a node, `</s>` too if it ends there."""
        words = []
        while node.parent is not None:
            words.append(node.token)
            node = self.nodes[node.parent]
        return tuple(reversed(words))
