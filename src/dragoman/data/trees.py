"""Sentences with their syntax: bracketed trees, made binary, and several of them side by side for a network.

A line holds one tree, such as `(S (NP the cat) (VP sat))`. The first thing in a bracket, if it is a word, is the
constituent's label, which is not kept. Constituents of one child are taken for that child; those of more than two are
made binary branching to the right: (a b c) is (a (b c)). So a sentence of n words has n - 1 inner nodes, whatever its
brackets were. Words end at blanks and brackets; a bracket that is a word is written `-LRB-` or `-RRB-`, and stays so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import error_at_line
from dragoman.core.kernels import kernel
from dragoman.data.corpus import Corpus
from dragoman.data.formats import display_name, read_text
from dragoman.data.vocabulary import END, SPECIALS, UNK, Vocab

TOKEN = re.compile(r"[()]|[^() \t\r\n]+")
PLAIN_TEXT = (
    "no brackets: --src-format tree needs one bracketed tree a line, such as (S (NP the cat) (VP sat)); "
    "for plain text train with another --encoder"
)
WORDS_WITH_BRACKETS = "write brackets that are words as -LRB- and -RRB-"


# -- one tree ----------------------------------------------------------------------------------------------------------


class Tree(NamedTuple):
    """A binary tree. Its nodes are the words in order, then the inner nodes, children before parents, the root last."""

    words: list[str]
    left: list[int]  # of each inner node, the number of its left child
    right: list[int]


def parse_tree(line: str, source: str = "trees", number: int = 1) -> Tree:
    """The tree on a line, made binary. A blank line is a sentence without words.

    >>> read_tree("(S (NP the (ADJ red) cat) (VP (V sat)))")
    Tree(words=['the', 'red', 'cat', 'sat'], left=[1, 0, 5], right=[2, 4, 3])
    """
    words: list[str] = []
    inner: list[tuple[int, int]] = []  # children of each inner node: a word by its place, inner node k as ~k
    roots: list[int] = []
    path: list[list[int]] = []  # of each open constituent, the children so far: no recursion, however deep it goes
    may_be_label = False
    for token in TOKEN.findall(line):
        if token == "(":
            path.append([])
        elif not path:
            raise error_at_line(source, number, _outside_message(token, line))
        elif token == ")":
            node = _binarise(path.pop(), inner)
            if node is None:
                raise error_at_line(source, number, "a constituent without words; give it some, or remove it")
            (path[-1] if path else roots).append(node)
        elif not may_be_label:
            path[-1].append(len(words))
            words.append(token)
        may_be_label = token == "("
    if path:
        raise error_at_line(source, number, f"brackets not closed: {len(path)} `)` too few; {WORDS_WITH_BRACKETS}")
    if len(roots) > 1:
        raise error_at_line(
            source, number, f"{len(roots)} trees; put one bracket around them all, as in (S (NP ...) (VP ...))"
        )
    return Tree(words, *_number_nodes(inner, len(words)))


def _binarise(children: list[int], inner: list[tuple[int, int]]) -> int | None:
    """The node over some children, and those between to make it binary; a single child stands for itself."""
    if not children:
        return None
    node = children.pop()
    while children:
        inner.append((children.pop(), node))
        node = ~(len(inner) - 1)
    return node


def _number_nodes(inner: list[tuple[int, int]], words: int) -> tuple[list[int], list[int]]:
    """The left and the right children, with inner nodes counted on from the words."""
    numbered = [[child if child >= 0 else words + ~child for child in pair] for pair in inner]
    return [left for left, _ in numbered], [right for _, right in numbered]


def _outside_message(token: str, line: str) -> str:
    """What is wrong with a line where this stands outside all brackets."""
    if "(" not in line and ")" not in line:
        return PLAIN_TEXT
    if token == ")":
        return f"a `)` too many; {WORDS_WITH_BRACKETS}"
    return f"{token!r:.40} stands outside the brackets; a line is one tree, such as (S (NP the cat) (VP sat))"


# -- many trees --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Treebank:
    """Binary trees over sentences of a vocabulary. Empty lines are sentences too, and have no inner nodes.

    >>> trees = Treebank.from_lines(["(S (NP the cat) (VP sat))", "", "(S (X the (Y dog)) barked loudly)"])
    >>> trees.sentences_as_text()
    ['the cat sat', '', 'the dog barked loudly']
    >>> trees.left.tolist(), trees.right.tolist(), trees.node_offsets.tolist()
    ([0, 3, 0, 2, 4], [1, 2, 1, 3, 5], [0, 2, 2, 5])
    >>> trees.phrases(0)
    ['the', 'cat', 'sat', 'the cat', 'the cat sat']
    """

    leaves: Corpus
    left: NDArray[np.int32]  # (inner nodes,) left children, by their places among the nodes of their sentence
    right: NDArray[np.int32]  # (inner nodes,)
    node_offsets: NDArray[np.int64]  # (sentences + 1,) first inner node of each sentence

    @classmethod
    def read(
        cls,
        path: str | Path,
        vocab: Vocab | None = None,
        *,
        field: str | None = None,
        min_count: int = 1,
        max_size: int | None = None,
        training: bool | None = None,
    ) -> Treebank:
        """Read one bracketed tree a line from any file that `Corpus.read` takes.

        Without a `vocab` one is built from the words. In training text (by default: whenever the vocabulary is built
        here) `<s>` and `</s>` are errors; elsewhere they are unknown words.
        """
        text = read_text(path, field).decode()
        return cls.from_lines(
            text.removesuffix("\n").split("\n"),
            vocab,
            min_count=min_count,
            max_size=max_size,
            training=training,
            source=display_name(path),
        )

    @classmethod
    def from_lines(
        cls,
        lines: Iterable[str],
        vocab: Vocab | None = None,
        *,
        min_count: int = 1,
        max_size: int | None = None,
        training: bool | None = None,
        source: str = "trees",
    ) -> Treebank:
        """From strings, each with one tree; errors name `source` and the line."""
        trees = [parse_tree(line, source, number) for number, line in enumerate(lines, 1)]
        if vocab is None if training is None else training:
            _check_reserved(trees, source)
        if vocab is None:
            counts = Counter(word for tree in trees for word in tree.words)
            vocab = Vocab.build(counts.keys(), counts.values(), min_count=min_count, max_size=max_size)
        return cls(
            Corpus.from_sentences([tree.words for tree in trees], vocab),
            np.array([child for tree in trees for child in tree.left], np.int32),
            np.array([child for tree in trees for child in tree.right], np.int32),
            _offsets(np.array([len(tree.left) for tree in trees], np.int64)),
        )

    @property
    def vocab(self) -> Vocab:
        return self.leaves.vocab

    def __len__(self) -> int:
        return len(self.leaves)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Words of each sentence, its end counted: |F| + 1.  # (sentences,)"""
        return self.leaves.sizes

    @property
    def attended(self) -> NDArray[np.int64]:
        """Nodes of each sentence: what a decoder can attend to.  # (sentences,)"""
        return np.maximum(2 * self.leaves.sizes - 3, 1)

    def require_vocab(self, vocab: Vocab) -> None:
        """Refuse to be read by the numbers of another vocabulary."""
        self.leaves.require_vocab(vocab)

    def select(self, sentences: NDArray[np.integer]) -> Treebank:
        """These trees, in this order, as a treebank of their own."""
        lengths = np.diff(self.node_offsets)[sentences]
        offsets = _offsets(lengths)
        taken = np.repeat(self.node_offsets[sentences] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Treebank(self.leaves.select(sentences), self.left[taken], self.right[taken], offsets)

    def with_unknown(self, unknown: NDArray[np.bool_]) -> Treebank:
        """The same trees with these words as `<unk>`.  # unknown: (words,)"""
        return replace(self, leaves=self.leaves.with_unknown(unknown))

    def sentences_as_text(self) -> list[str]:
        """The sentences, one space between words, without their trees."""
        return self.leaves.sentences_as_text()

    def phrases(self, number: int) -> list[str]:
        """The words under each node of a sentence, in the order of a network's vectors; `</s>` for an empty one."""
        alone = self.select(np.array([number]))
        words = alone.sentences_as_text()[0].split(" ")
        if words == [""]:
            return [SPECIALS[END]]
        return [" ".join(words[first : last + 1]) for first, last in TreeBatch.from_trees(alone).spans[0].tolist()]


def _check_reserved(trees: list[Tree], source: str) -> None:
    for number, tree in enumerate(trees, 1):
        for word in SPECIALS[:UNK]:
            if word in tree.words:
                raise error_at_line(
                    source, number, f"{word} is reserved in training text: sentences are framed for you; remove it"
                )


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


# -- several trees side by side ----------------------------------------------------------------------------------------


class TreeLevel(NamedTuple):
    """All nodes of one height in a batch, ordered by the height of their parents.

    Each height hands its nodes up in runs: first those whose parents are of the next height, and so on. What arrives at
    a height, from the lowest givers to the highest, is what `taken` counts in.
    """

    inputs: NDArray[np.int64]  # leaves: (nodes,) places in `words`; above: (2 * nodes,) left, right, left, right, ...
    outputs: tuple[tuple[int, int], ...]  # (height of the parents, how many nodes); roots go above the highest


@dataclass(frozen=True, eq=False)
class TreeBatch:
    """Several trees as a network reads them: from the leaves up, all nodes of equal height at once.

    The vectors of the nodes are laid out in a grid (sentences, most nodes): a sentence's words in order, then its inner
    nodes, its root last, then padding. A sentence without words is read as the one leaf `</s>`.

    >>> batch = TreeBatch.of(Treebank.from_lines(["(S (NP the cat) (VP sat))", "(S yes)"]))
    >>> batch.words.tolist(), batch.mask.astype(int).tolist()
    ([3, 4, 5, 6], [[1, 1, 1, 1, 1], [1, 0, 0, 0, 0]])
    >>> batch.spans[0].tolist()
    [[0, 0], [1, 1], [2, 2], [0, 1], [0, 2]]
    >>> [level.handed for level in batch.levels]
    [((1, 2), (2, 1), (3, 1)), ((2, 1),), ((3, 1),)]
    """

    ids: NDArray[np.int64]  # (leaves,) ids, sentence after sentence
    levels: tuple[TreeLevel, ...]  # of height 0, 1, ...
    roots: NDArray[np.int64]  # (sentences,) each one's place among what arrives above the highest level
    grid_positions: NDArray[np.int64]  # (nodes,) level after level, the place of each node in the flat grid
    sizes: NDArray[np.int64]  # (sentences,) nodes of each: |F| words and |F| - 1 inner nodes
    spans: NDArray[np.int64]  # (sentences, most nodes, 2) the first and the last word under each node; 0 in padding

    @classmethod
    def from_trees(cls, trees: Treebank) -> TreeBatch:
        assert len(trees), "a batch has a sentence at least"
        nodes = _NodeTable.from_trees(trees)
        sizes, grid = np.diff(nodes.offsets), nodes.grid
        spans = np.zeros((len(sizes) * int(sizes.max()), 2), np.int64)
        spans[grid] = np.stack([nodes.first, nodes.last], axis=1)  # (nodes, 2)
        order, levels, roots = _group_by_height(nodes)
        return cls(nodes.words, levels, roots, grid[order], sizes, spans.reshape(len(sizes), -1, 2))

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Where a sentence's own nodes stand.  # (sentences, most nodes)"""
        return np.arange(self.spans.shape[1]) < self.sizes[:, None]

    @property
    def root_columns(self) -> NDArray[np.int64]:
        """The column of each sentence's root in the grid.  # (sentences,)"""
        return self.sizes - 1

    @property
    def word_shares(self) -> NDArray[np.float64]:
        """How attention to nodes is attention to words: each node's, in equal parts, to the words under it.

        # (sentences, most nodes, most words): rows of own nodes sum to one; attention to words is alpha @ shares
        """
        first, last = self.spans[..., :1], self.spans[..., 1:]
        words = np.arange(int((self.sizes.max() + 1) // 2))
        under = (first <= words) & (words <= last) & self.mask[..., None]  # (sentences, most nodes, most words)
        return under / (last - first + 1)


@dataclass(frozen=True, eq=False)
class _NodeTable:
    """All nodes of some trees, numbered sentence after sentence, and what each knows."""

    words: NDArray[np.int64]  # (leaves,)
    offsets: NDArray[np.int64]  # (sentences + 1,) first node of each sentence
    left: NDArray[np.int64]  # (nodes,) children; -1 for leaves
    right: NDArray[np.int64]
    height: NDArray[np.int64]  # (nodes,)
    first: NDArray[np.int64]  # (nodes,) first and last word under it, by their places in the sentence
    last: NDArray[np.int64]

    @classmethod
    def from_trees(cls, trees: Treebank) -> _NodeTable:
        lengths, blank = trees.sizes - 1, trees.sizes == 1
        leaves, inner = np.maximum(lengths, 1), np.diff(trees.node_offsets)  # (sentences,) of each
        offsets = _offsets(leaves + inner)
        words = np.full(int(leaves.sum()), END, np.int64)
        words[~np.repeat(blank, leaves)] = trees.leaves.ids
        leaf, first = _ranges(offsets[:-1], leaves), _ranges(np.zeros_like(leaves), leaves)
        parent = _ranges(offsets[:-1] + leaves, inner)
        before = np.repeat(offsets[:-1], inner)
        table = np.full((5, int(offsets[-1])), -1, np.int64)
        table[0, parent], table[1, parent] = trees.left + before, trees.right + before
        table[2:, leaf] = 0
        table[3:, leaf] = first
        _fill_inner_nodes(parent, *table)
        return cls(words, offsets, *table)

    @property
    def grid(self) -> NDArray[np.int64]:
        """The place of each node in the flat grid.  # (nodes,)"""
        sizes = np.diff(self.offsets)
        return _ranges(np.arange(len(sizes)) * int(sizes.max()), sizes)


def _ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers counted up from each start, so many from each.

    >>> _run(np.array([0, 10]), np.array([2, 3])).tolist()
    [0, 1, 10, 11, 12]
    """
    offsets = _offsets(lengths)
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])


@kernel
def _fill_inner_nodes(parents: Any, left: Any, right: Any, height: Any, first: Any, last: Any) -> None:
    """Heights and spans of inner nodes from their children's. Children come before parents."""
    for node in parents:
        height[node] = max(height[left[node]], height[right[node]]) + 1
        first[node] = first[left[node]]
        last[node] = last[right[node]]


def _group_by_height(nodes: _NodeTable) -> tuple[NDArray[np.int64], tuple[TreeLevel, ...], NDArray[np.int64]]:
    """Nodes in order of their heights, the levels this makes, and where the roots arrive."""
    height, inner = nodes.height, nodes.left >= 0
    above = np.full_like(height, height.max() + 1)  # of each node, the height of its parent; roots: above all
    above[nodes.left[inner]] = above[nodes.right[inner]] = height[inner]
    order = np.lexsort((above, height))  # (nodes,) by height, then by that of the parent, then by number
    arrived = _input_positions(order, above)
    children = np.stack([arrived[nodes.left], arrived[nodes.right]], axis=1)[order]  # (nodes, 2); of leaves: nothing
    leaf, ends = np.cumsum(~inner) - 1, _offsets(np.bincount(height)).tolist()
    taken = [leaf[order[: ends[1]]], *(children[first:last].reshape(-1) for first, last in pairwise(ends[1:]))]
    levels = tuple(TreeLevel(*level) for level in zip(taken, _output_counts(height, above), strict=True))
    return order, levels, arrived[nodes.offsets[1:] - 1]


def _input_positions(order: NDArray[np.int64], above: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each node, its place among those that arrive at the height of its parent, in the order given.  # (nodes,)"""
    arriving = order[np.argsort(above[order], kind="stable")]
    counts = np.bincount(above)
    arrived = np.empty_like(order)
    arrived[arriving] = _ranges(np.zeros_like(counts), counts)
    return arrived


def _output_counts(height: NDArray[np.int64], above: NDArray[np.int64]) -> Iterator[tuple[tuple[int, int], ...]]:
    """For each height, to which heights its nodes go and how many to each."""
    highest = int(above.max())
    runs, counts = np.unique(height * (highest + 1) + above, return_counts=True)
    givers, takers = np.divmod(runs, highest + 1)
    pairs = list(zip(takers.tolist(), counts.tolist(), strict=True))
    ends = np.searchsorted(givers, np.arange(highest), side="right").tolist()
    return (tuple(pairs[first:last]) for first, last in pairwise([0, *ends]))
