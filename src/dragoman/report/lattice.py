"""A beam search as a tree in plain text: every hypothesis under the one it continues, the best ones first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from dragoman.core.errors import DataError
from dragoman.report.attention import printable, truncate
from dragoman.report.tables import display_width

KEPT, FINISHED, PRUNED = "kept", "finished", "pruned"
MARKS = {KEPT: " ", FINISHED: "*", PRUNED: "x"}
BEST = "<- best"
HEAD = f"{'step':>4}    {'log P(word)':>11}  {'log P':>9}  {'score':>9}   hypotheses"
LEGEND = "* finished, x pruned, best first; log P(word): what the last word adds to log P of all words so far"
DIM, BOLD, PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"  # codes of a terminal
NARROWEST = 12  # columns for the tree, whatever the width


class HypothesisNode(Protocol):
    """A hypothesis of a search: one word more than that of its parent."""

    @property
    def id(self) -> int: ...
    @property
    def parent(self) -> int | None: ...  # None before the first word, or where that has no node
    @property
    def word(self) -> int | str: ...  # its number in a vocabulary, or the word itself
    @property
    def log_prob(self) -> float: ...  # of all words so far
    @property
    def score(self) -> float: ...  # what the search compares
    @property
    def fate(self) -> str: ...  # kept, finished or pruned


class LatticeBranch(NamedTuple):
    """A node where it stands in the tree; or, without a node, so many that are not shown."""

    node: HypothesisNode | None
    parent: HypothesisNode | None
    lines: str  # what leads to it from the left
    step: int  # the number of words so far
    omitted: int = 0


def lattice_text(
    nodes: Sequence[HypothesisNode],
    width: int = 100,
    colour: bool = False,
    max_pruned: int = 3,
    spell: Callable[[Any], str] = str,
) -> str:
    """The search for one sentence, a line for each hypothesis; under each at most so many of those that were pruned.

    Where nodes have the numbers of words, `spell` gives the words: `vocab.tokens.__getitem__`.

    `log P(word)` and `log P` are the numbers of the tutorial's figure of a beam search: beside the arrows, and above
    the nodes. Whatever is deeper in the tree than the width allows is cut at its left. `colour` dims what was pruned.
    """
    finished = [node for node in nodes if node.fate == FINISHED]
    best = max(finished, key=lambda node: node.score, default=None)
    room = max(NARROWEST, width - HEAD.index("hypotheses"))
    lines = [HEAD.rstrip()]
    for branch in walk(nodes, max_pruned):
        line = _line(branch, room, spell, best=branch.node is not None and branch.node is best)
        lines.append(_on_terminal(line, branch) if colour else line)
    return "\n".join([*lines, "", LEGEND])


# -- the tree --------------------------------------------------------------------------------------------------------


def walk(nodes: Sequence[HypothesisNode], max_pruned: int) -> Iterator[LatticeBranch]:
    """Every node after its parent and before its parent's next child; a stack, for sentences of any length."""
    children = _children(nodes)
    shown = 0
    waiting = _branches(children, None, max_pruned)[::-1]
    while waiting:
        branch = waiting.pop()
        yield branch
        shown += branch.omitted
        if branch.node is not None:
            shown += 1
            waiting += _branches(children, branch, max_pruned)[::-1]
    if shown < len(nodes):
        raise DataError("lattice: some hypotheses continue each other in a circle; every one must begin somewhere")


def _children(nodes: Sequence[HypothesisNode]) -> dict[int | None, list[HypothesisNode]]:
    """The children of each node by its id, those pruned last and the best first; refuses what is no tree."""
    known = {node.id for node in nodes}
    if len(known) < len(nodes):
        raise DataError("lattice: two hypotheses have the same id; number them apart")
    children: dict[int | None, list[HypothesisNode]] = {}
    for node in nodes:
        if node.parent is not None and node.parent not in known:
            raise DataError(f"lattice: hypothesis {node.id} continues {node.parent}, which is not there; add it")
        if node.fate not in MARKS:
            raise DataError(f"lattice: hypothesis {node.id} is {node.fate!r}; say one of {', '.join(MARKS)}")
        children.setdefault(node.parent, []).append(node)
    for some in children.values():
        some.sort(key=lambda node: (node.fate == PRUNED, -node.score))
    return children


def _branches(
    children: Mapping[int | None, Sequence[HypothesisNode]], above: LatticeBranch | None, most_pruned: int
) -> list[LatticeBranch]:
    """What continues a hypothesis; the worst of those pruned are only counted, unless something continues them."""
    parent = above.node if above else None
    below = children.get(parent.id if parent else None, [])
    pruned = [node for node in below if node.fate == PRUNED]
    left_out = {node.id for node in pruned[most_pruned:] if node.id not in children}
    shown: list[HypothesisNode | None] = [node for node in below if node.id not in left_out]
    if above is None and len(below) == 1 and below[0].log_prob == 0:
        return [LatticeBranch(below[0], None, "", 0)]  # that of no words
    shown += [None] * bool(left_out)
    indent = above.lines.replace("├", "│").replace("└", " ") if above else ""
    step = above.step + 1 if above else 1
    return [
        LatticeBranch(
            node, parent, indent + ("├ " if number < len(shown) else "└ "), step, 0 if node else len(left_out)
        )
        for number, node in enumerate(shown, 1)
    ]


# -- a line ----------------------------------------------------------------------------------------------------------


def _line(branch: LatticeBranch, room: int, spell: Callable[[Any], str], *, best: bool) -> str:
    node = branch.node
    if node is None:
        return f"{branch.step:4d} {MARKS[PRUNED]}  {'':33}   {_fit(branch.lines, f'({branch.omitted:,} more)', room)}"
    before = branch.parent.log_prob if branch.parent else 0.0
    numbers = f"{node.log_prob - before:11.3f}  {node.log_prob:9.3f}  {node.score:9.3f}".replace("-0.000", " 0.000")
    end = f" {BEST}" if best else ""
    text = _fit(branch.lines, printable(spell(node.word)), room - len(end))
    return f"{branch.step:4d} {MARKS[node.fate]}  {numbers}   {text}{end}"


def _fit(lines: str, word: str, room: int) -> str:
    """A word behind the lines that lead to it; where they are too long, their beginning is left out."""
    word = truncate(word, room - 3)
    over = len(lines) + display_width(word) - room
    return f"{lines}{word}" if over <= 0 else f"…{lines[over + 1 :]}{word}"


def _on_terminal(line: str, branch: LatticeBranch) -> str:
    if branch.node is None or branch.node.fate == PRUNED:
        return f"{DIM}{line}{PLAIN}"
    return f"{BOLD}{line}{PLAIN}" if branch.node.fate == FINISHED else line
