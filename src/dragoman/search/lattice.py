"""A record of a beam search: all hypotheses that it kept, finished or pruned, with their scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from dragoman.data.vocabulary import END, START
from dragoman.search.hypothesis import Continuations

Fate = Literal["kept", "finished", "pruned"]


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
    >>> from dragoman.search.graph_scorer import EXAMPLE_SCORER
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

    def record(self, beam: Continuations, scores: Tensor, pruned: Continuations, pruned_scores: Tensor) -> None:
        """Record one step, with the scores of hypotheses that end there.  # (beam,), (pruned,)"""
        new = self._add(beam, scores, pruned=False)
        self._add(pruned, pruned_scores, pruned=True)
        self._last_beam = new

    def _add(self, continuations: Continuations, scores: Tensor, *, pruned: bool) -> list[int]:
        first = len(self.nodes)
        columns = zip(*(column.tolist() for column in (*continuations, scores)), strict=True)
        for number, (sentence, _, parent, token, log_prob, score) in enumerate(columns, first):
            fate: Fate = "pruned" if pruned else "finished" if token == END else "kept"
            shown = score if token == END else log_prob
            self.nodes.append(LatticeNode(number, sentence, self._last_beam[parent], token, log_prob, shown, fate))
        return list(range(first, len(self.nodes)))

    def nodes_of(self, sentence: int) -> list[LatticeNode]:
        return [node for node in self.nodes if node.sentence == sentence]

    def path_ids(self, node: LatticeNode) -> tuple[int, ...]:
        """Return all token ids up to a node, `</s>` included if it ends there."""
        ids = []
        while node.parent is not None:
            ids.append(node.token)
            node = self.nodes[node.parent]
        return tuple(reversed(ids))
