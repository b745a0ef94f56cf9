"""Sentences with syntax: bracketed trees, made binary, and batches of trees for a network.

A line holds one tree, such as `(S (NP the cat) (VP sat))`. If a bracket starts with a word, that word is the label of
the constituent and is dropped. A constituent with one child is replaced by the child. One with more than two children
is made binary branching to the right: (a b c) becomes (a (b c)). So a sentence of n words has n - 1 inner nodes,
whatever its brackets were. Words end at blanks and brackets. A bracket that is a word is written `-LRB-` or `-RRB-`
and is not converted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import error_at_line
from dragoman.core.kernels import kernel
from dragoman.core.types import Json
from dragoman.data.corpus import Corpus, EncodeKwargs, arrays_checksum
from dragoman.data.formats import display_name, read_text
from dragoman.data.ranges import concatenate_ranges, offsets_of, select_ranges
from dragoman.data.vocabulary import END, SPECIALS, Vocab

TOKEN = re.compile(r"[()]|[^() \t\r\n]+")
NO_BRACKETS = (
    "no brackets: --src-format tree needs one bracketed tree per line, such as (S (NP the cat) (VP sat)); "
    "for plain text train with another --encoder"
)
BRACKETS_AS_WORDS = "write brackets that are words as -LRB- and -RRB-"


class Tree(NamedTuple):
    """A binary tree. Nodes are numbered: words in order, then inner nodes, children before parents, the root last."""

    words: list[str]
    left: list[int]  # left child of each inner node
    right: list[int]  # right child of each inner node


def parse_tree(line: str, source: str = "trees", number: int = 1) -> Tree:
    """Parse the tree on a line and make it binary. A blank line is a sentence without words.

    >>> parse_tree("(S (NP the (ADJ red) cat) (VP (V sat)))")
    Tree(words=['the', 'red', 'cat', 'sat'], left=[1, 0, 5], right=[2, 4, 3])
    """
    words: list[str] = []
    inner: list[tuple[int, int]] = []  # children of each inner node: a word by its position, inner node k as ~k
    roots: list[int] = []
    open_children: list[list[int]] = []  # children so far of each open constituent (a stack, so depth is not limited)
    may_be_label = False
    for token in TOKEN.findall(line):
        if token == "(":
            open_children.append([])
        elif not open_children:
            problem = f"{token!r:.40} is outside the brackets; a line is one tree, such as (S (NP the cat) (VP sat))"
            if "(" not in line and ")" not in line:
                problem = NO_BRACKETS
            elif token == ")":
                problem = f"a closing bracket too many; {BRACKETS_AS_WORDS}"
            raise error_at_line(source, number, problem)
        elif token == ")":
            children = open_children.pop()
            if not children:
                raise error_at_line(source, number, "a constituent without words; add words or remove it")
            node = children.pop()
            while children:
                inner.append((children.pop(), node))
                node = ~(len(inner) - 1)
            (open_children[-1] if open_children else roots).append(node)
        elif not may_be_label:
            open_children[-1].append(len(words))
            words.append(token)
        may_be_label = token == "("
    if open_children:
        raise error_at_line(source, number, f"{len(open_children)} closing brackets missing; {BRACKETS_AS_WORDS}")
    if len(roots) > 1:
        problem = f"{len(roots)} trees; put one bracket around all of them, as in (S (NP ...) (VP ...))"
        raise error_at_line(source, number, problem)
    pairs = [[child if child >= 0 else len(words) + ~child for child in pair] for pair in inner]
    return Tree(words, [left for left, _ in pairs], [right for _, right in pairs])


@dataclass(frozen=True, eq=False)
class Treebank(Corpus):
    """Sentences with a binary tree each. An empty line is a sentence without inner nodes.

    >>> trees = Treebank.from_lines(["(S (NP the cat) (VP sat))", "", "(S (X the (Y dog)) barked loudly)"])
    >>> trees.sentences_as_text()
    ['the cat sat', '', 'the dog barked loudly']
    >>> trees.left.tolist(), trees.right.tolist(), trees.node_offsets.tolist()
    ([0, 3, 0, 2, 4], [1, 2, 1, 3, 5], [0, 2, 2, 5])
    >>> trees.phrases(0)
    ['the', 'cat', 'sat', 'the cat', 'the cat sat']
    """

    left: NDArray[np.int32]  # (inner nodes,) left children, as node numbers within their sentence
    right: NDArray[np.int32]  # (inner nodes,)
    node_offsets: NDArray[np.int64]  # (sentences + 1,) first inner node of each sentence

    @classmethod
    def read(
        cls, path: str | Path, vocab: Vocab | None = None, *, field: str | None = None, **options: Unpack[EncodeKwargs]
    ) -> Treebank:
        """Read one bracketed tree per line from a file. Arguments are those of `Corpus.read`."""
        lines = read_text(path, field).decode().removesuffix("\n").split("\n")
        return cls.from_lines(lines, vocab, source=display_name(path), **options)

    @classmethod
    def from_lines(
        cls,
        lines: Iterable[str],
        vocab: Vocab | None = None,
        *,
        source: str = "trees",
        **options: Unpack[EncodeKwargs],
    ) -> Treebank:
        """Build from strings with one tree each. Error messages name `source` and the line."""
        trees = [parse_tree(line, source, number) for number, line in enumerate(lines, 1)]
        words = Corpus.from_sentences([tree.words for tree in trees], vocab, source=source, **options)
        return cls(
            **vars(words),
            left=np.array([child for tree in trees for child in tree.left], np.int32),
            right=np.array([child for tree in trees for child in tree.right], np.int32),
            node_offsets=offsets_of(np.array([len(tree.left) for tree in trees], np.int64)),
        )

    @property
    def memory_sizes(self) -> NDArray[np.int64]:
        """Nodes per sentence: the positions that a decoder can attend to.  # (sentences,)"""
        return np.maximum(2 * self.sizes - 3, 1)

    def fingerprint(self) -> dict[str, Json]:
        """Return the size and checksums by which the trees are recognised."""
        return {**super().fingerprint(), "trees": arrays_checksum([self.left, self.right])}

    def select(self, sentences: NDArray[np.integer]) -> Self:
        """Return these trees, in this order."""
        offsets, positions = select_ranges(self.node_offsets, sentences)
        left, right = self.left[positions], self.right[positions]
        return replace(super().select(sentences), left=left, right=right, node_offsets=offsets)

    def phrases(self, index: int) -> list[str]:
        """Return the words below each node of a sentence, in node order; `</s>` for an empty sentence."""
        tree = self.select(np.array([index]))
        words = tree.sentences_as_text()[0].split(" ")
        if words == [""]:
            return [SPECIALS[END]]
        return [" ".join(words[first : last + 1]) for first, last in TreeBatch.from_trees(tree).spans[0].tolist()]


class TreeLevel(NamedTuple):
    """All nodes of one height in a batch, sorted by the height of their parents.

    The output of a level is split into runs by the height of the parents. The inputs of a level are the concatenation
    of the runs from all lower levels, lowest first; `inputs` are positions in this concatenation.
    """

    inputs: NDArray[np.int64]  # leaves: (nodes,) positions in `ids`; above: (2 * nodes,) left, right, left, right, ...
    outputs: tuple[tuple[int, int], ...]  # (height of the parents, number of nodes); roots: above the highest level


@dataclass(frozen=True, eq=False)
class TreeBatch:
    """Trees as a network reads them: from the leaves up, all nodes of equal height at once.

    Node vectors are laid out in a grid (sentences, most nodes): the words of a sentence, its inner nodes with the root
    last, then padding. A sentence without words is read as the single leaf `</s>`.

    >>> batch = TreeBatch.from_trees(Treebank.from_lines(["(S (NP the cat) (VP sat))", "(S yes)"]))
    >>> batch.ids.tolist(), batch.mask.astype(int).tolist()
    ([3, 4, 5, 6], [[1, 1, 1, 1, 1], [1, 0, 0, 0, 0]])
    >>> batch.spans[0].tolist()
    [[0, 0], [1, 1], [2, 2], [0, 1], [0, 2]]
    >>> [level.outputs for level in batch.levels]
    [((1, 2), (2, 1), (3, 1)), ((2, 1),), ((3, 1),)]
    """

    ids: NDArray[np.int64]  # (leaves,) sentence after sentence
    levels: tuple[TreeLevel, ...]  # of height 0, 1, ...
    roots: NDArray[np.int64]  # (sentences,) position of each root among the inputs above the highest level
    grid_positions: NDArray[np.int64]  # (nodes,) level after level, the position of each node in the flat grid
    sizes: NDArray[np.int64]  # (sentences,) nodes per sentence: |F| words and |F| - 1 inner nodes
    spans: NDArray[np.int64]  # (sentences, most nodes, 2) first and last word below each node; 0 in padding

    @classmethod
    def from_trees(cls, trees: Treebank) -> TreeBatch:
        assert len(trees), "a batch needs at least one sentence"
        leaves, inner = np.maximum(trees.sizes - 1, 1), np.diff(trees.node_offsets)  # (sentences,)
        ids = np.full(int(leaves.sum()), END, np.int64)
        ids[np.repeat(trees.sizes > 1, leaves)] = trees.ids
        sizes, offsets = leaves + inner, offsets_of(leaves + inner)  # nodes are numbered sentence after sentence
        leaf_nodes = concatenate_ranges(offsets[:-1], leaves)
        inner_nodes = concatenate_ranges(offsets[:-1] + leaves, inner)
        left, right, height, first, last = np.full((5, int(offsets[-1])), -1, np.int64)  # (nodes,) each
        before = np.repeat(offsets[:-1], inner)
        left[inner_nodes], right[inner_nodes] = trees.left + before, trees.right + before
        height[leaf_nodes] = 0
        first[leaf_nodes] = last[leaf_nodes] = concatenate_ranges(np.zeros_like(leaves), leaves)
        _fill_inner_nodes(inner_nodes, left, right, height, first, last)
        order, levels, positions = _group_by_height(left, right, height)
        grid = concatenate_ranges(np.arange(len(sizes)) * sizes.max(), sizes)  # (nodes,) positions in the flat grid
        spans = np.zeros((len(sizes) * int(sizes.max()), 2), np.int64)
        spans[grid] = np.stack([first, last], axis=1)  # (nodes, 2)
        return cls(ids, levels, positions[offsets[1:] - 1], grid[order], sizes, spans.reshape(len(sizes), -1, 2))

    @property
    def mask(self) -> NDArray[np.bool_]:
        """True at nodes, False at padding.  # (sentences, most nodes)"""
        return np.arange(self.spans.shape[1]) < self.sizes[:, None]

    @property
    def word_shares(self) -> NDArray[np.float64]:
        """Weights that divide the attention to a node equally among the words below it.

        Rows of nodes sum to one. Attention to words is `alpha @ word_shares`.  # (sentences, most nodes, most words)
        """
        first, last = self.spans[..., :1], self.spans[..., 1:]
        words = np.arange(int((self.sizes.max() + 1) // 2))
        below = (first <= words) & (words <= last) & self.mask[..., None]  # (sentences, most nodes, most words)
        return below / (last - first + 1)


@kernel
def _fill_inner_nodes(inner_nodes: Any, left: Any, right: Any, height: Any, first: Any, last: Any) -> None:
    """Compute heights and spans of inner nodes from their children, which come before them."""
    for node in inner_nodes:
        height[node] = max(height[left[node]], height[right[node]]) + 1
        first[node] = first[left[node]]
        last[node] = last[right[node]]


def _group_by_height(
    left: NDArray[np.int64], right: NDArray[np.int64], height: NDArray[np.int64]
) -> tuple[NDArray[np.int64], tuple[TreeLevel, ...], NDArray[np.int64]]:
    """Return the nodes in order of height, the levels, and the position of each node in its parent's inputs."""
    inner = left >= 0
    parent_height = np.full_like(height, height.max() + 1)  # for roots: above all levels
    parent_height[left[inner]] = parent_height[right[inner]] = height[inner]
    order = np.lexsort((parent_height, height))  # (nodes,) by height, then by height of the parent, then by number
    counts, positions = np.bincount(parent_height), np.empty_like(order)
    by_parent = order[np.argsort(parent_height[order], kind="stable")]
    positions[by_parent] = concatenate_ranges(np.zeros_like(counts), counts)
    children = np.stack([positions[left], positions[right]], axis=1)[order]  # (nodes, 2); unused for leaves
    leaf, ends = np.cumsum(~inner) - 1, offsets_of(np.bincount(height)).tolist()
    inputs = [leaf[order[: ends[1]]], *(children[first:last].reshape(-1) for first, last in pairwise(ends[1:]))]
    parents = parent_height[order].tolist()
    outputs = (tuple(Counter(parents[first:last]).items()) for first, last in pairwise(ends))
    return order, tuple(TreeLevel(*level) for level in zip(inputs, outputs, strict=True)), positions
