"""A beam search as a tree in plain text: every hypothesis below the one it continues, the best ones first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dragoman.core.errors import DataError
from dragoman.report.tables import display_width, printable, truncate
from dragoman.search.hypothesis import LatticeNode

KEPT, FINISHED, PRUNED = "kept", "finished", "pruned"
MARKS = {KEPT: " ", FINISHED: "*", PRUNED: "x"}
BEST = "<- best"
HEADER = f"{'step':>4}    {'log P(word)':>11}  {'log P':>9}  {'score':>9}   hypotheses"
LEGEND = "* finished, x pruned, best first; log P(word): log-probability of the last word; log P: of all words so far"
DIM, BOLD, RESET = "\x1b[2m", "\x1b[1m", "\x1b[0m"  # terminal codes
CODES = {KEPT: "", FINISHED: BOLD, PRUNED: DIM}
MIN_TREE_WIDTH = 12  # columns


class LatticeBranch(NamedTuple):
    """A node at its place in the tree; or, without a node, a number of nodes that are not shown."""

    node: LatticeNode | None
    parent: LatticeNode | None
    lines: str  # that connect it to its parent
    step: int  # the number of tokens so far
    omitted: int = 0


def lattice_text(
    nodes: Sequence[LatticeNode],
    width: int = 100,
    color: bool = False,
    max_pruned: int = 3,
    spell: Callable[[int], str] = str,
) -> str:
    """Return the search for one sentence as text, one line per hypothesis.

    `log P(word)` and `log P` are the numbers in the tutorial's figure of a beam search: beside the arrows, and above
    the nodes. Lines that are too long for the width are cut at the left.

    Args:
        width: columns of the terminal.
        color: dim pruned hypotheses.
        max_pruned: pruned hypotheses that are shown below each hypothesis; the others are counted.
        spell: returns the text of a token, such as `vocab.tokens.__getitem__`.
    """
    finished = [node for node in nodes if node.fate == FINISHED]
    best = max(finished, key=lambda node: node.score, default=None)
    room = max(MIN_TREE_WIDTH, width - HEADER.index("hypotheses"))
    lines = [HEADER.rstrip()]
    for branch in walk(nodes, max_pruned):
        line = _format_branch(branch, room, spell, is_best=branch.node is not None and branch.node is best)
        code = DIM if branch.node is None else CODES[branch.node.fate]
        lines.append(f"{code}{line}{RESET}" if color and code else line)
    return "\n".join([*lines, "", LEGEND])


def walk(nodes: Sequence[LatticeNode], max_pruned: int) -> Iterator[LatticeBranch]:
    """Yield every node after its parent and before its parent's next child, without recursion."""
    children = _children(nodes)
    count = 0
    stack = _branches(children, None, max_pruned)[::-1]
    while stack:
        branch = stack.pop()
        yield branch
        count += branch.omitted
        if branch.node is not None:
            count += 1
            stack += _branches(children, branch, max_pruned)[::-1]
    if count < len(nodes):
        raise DataError("lattice: some hypotheses continue each other in a circle; every one must have a start")


def _children(nodes: Sequence[LatticeNode]) -> dict[int | None, list[LatticeNode]]:
    """Return the children of each node by its id, the best first and pruned ones last; raise an error if not a tree."""
    ids = {node.id for node in nodes}
    if len(ids) < len(nodes):
        raise DataError("lattice: two hypotheses have the same id; give each its own")
    children: dict[int | None, list[LatticeNode]] = {}
    for node in nodes:
        if node.parent is not None and node.parent not in ids:
            raise DataError(f"lattice: hypothesis {node.id} continues {node.parent}, which is not there; add it")
        if node.fate not in MARKS:
            raise DataError(f"lattice: hypothesis {node.id} is {node.fate!r}; use one of {', '.join(MARKS)}")
        children.setdefault(node.parent, []).append(node)
    for siblings in children.values():
        siblings.sort(key=lambda node: (node.fate == PRUNED, -node.score))
    return children


def _branches(
    children: Mapping[int | None, Sequence[LatticeNode]], above: LatticeBranch | None, max_pruned: int
) -> list[LatticeBranch]:
    """Return the continuations of a hypothesis. The worst pruned ones are only counted, unless they are continued."""
    parent = above.node if above else None
    siblings = children.get(parent.id if parent else None, [])
    if above is None and len(siblings) == 1 and siblings[0].log_prob == 0:
        return [LatticeBranch(siblings[0], None, "", 0)]  # the empty hypothesis
    pruned = [node for node in siblings if node.fate == PRUNED]
    omitted = {node.id for node in pruned[max_pruned:] if node.id not in children}
    entries: list[LatticeNode | None] = [node for node in siblings if node.id not in omitted]
    entries += [None] if omitted else []
    indent = above.lines.replace("├", "│").replace("└", " ") if above else ""
    step = above.step + 1 if above else 1
    return [
        LatticeBranch(
            node, parent, indent + ("├ " if number < len(entries) else "└ "), step, 0 if node else len(omitted)
        )
        for number, node in enumerate(entries, 1)
    ]


def _format_branch(branch: LatticeBranch, room: int, spell: Callable[[int], str], *, is_best: bool) -> str:
    node = branch.node
    if node is None:
        return f"{branch.step:4d} {MARKS[PRUNED]}  {'':33}   {_fit(branch.lines, f'({branch.omitted:,} more)', room)}"
    parent_log_prob = branch.parent.log_prob if branch.parent else 0.0
    numbers = f"{node.log_prob - parent_log_prob:11.3f}  {node.log_prob:9.3f}  {node.score:9.3f}".replace(
        "-0.000", " 0.000"
    )
    end = f" {BEST}" if is_best else ""
    text = _fit(branch.lines, printable(spell(node.token)), room - len(end))
    return f"{branch.step:4d} {MARKS[node.fate]}  {numbers}   {text}{end}"


def _fit(lines: str, word: str, room: int) -> str:
    """Return a word after its connecting lines, cut at the left if they are too long."""
    word = truncate(word, room - 3)
    excess = len(lines) + display_width(word) - room
    return f"{lines}{word}" if excess <= 0 else f"…{lines[excess + 1 :]}{word}"
