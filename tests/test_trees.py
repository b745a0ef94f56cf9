"""Bracketed trees: parsing, errors, binarisation and batches."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Corpus, DataError, Vocab
from dragoman.data.trees import Treebank, TreeBatch, parse_tree
from dragoman.data.vocabulary import END, UNK

LINES = [
    "(ROOT (S (NP (ART ein) (ADJ kurzer) (NN hirte)) (V spürt)) ($. !))",
    "",
    "(3 (2 It) (4 (4 (2 's) (4 lovely)) (2 .)))",
    "(S ja)",
    "(S (NP the cat) sat (PP on (NP the red mat)))",
]

# Nested lists of words: a constituent is a list of one or more.
NESTS = st.recursive(
    st.lists(st.sampled_from(["a", "b", "-LRB-", "<unk>", "ß"]), min_size=1, max_size=3),
    lambda inner: st.lists(inner | st.sampled_from(["a", "c"]), min_size=1, max_size=4),
    max_leaves=12,
)


def bracketed(nest: Any) -> str:
    return nest if isinstance(nest, str) else f"(X {' '.join(bracketed(part) for part in nest)})"


def binary(nest: Any) -> Any:
    """The rule in its simplest words, by recursion: one child stands for itself, more branch to the right."""
    if isinstance(nest, str):
        return nest
    if len(nest) == 1:
        return binary(nest[0])
    return binary(nest[0]), binary(nest[1:])


def spelled(words: list[str], left: list[int], right: list[int]) -> Any:
    """A tree of numbered nodes as nested pairs."""
    nodes: list[Any] = list(words)
    for first, second in zip(left, right, strict=True):
        nodes.append((nodes[first], nodes[second]))  # fails where a child comes after its parent
    return nodes[-1]


# -- one tree ----------------------------------------------------------------------------------------------------------


@given(NESTS)
def test_a_tree_is_made_binary_branching_to_the_right(nest: Any) -> None:
    tree = parse_tree(bracketed(nest))
    assert len(tree.left) == len(tree.right) == len(tree.words) - 1
    assert spelled(*tree) == binary(nest)


@pytest.mark.parametrize(
    ("line", "pairs"),
    [
        ("(S a b)", ("a", "b")),
        ("(S a b c d)", ("a", ("b", ("c", "d")))),
        ("(S (A (B (C a))))", "a"),
        ("( (S a) b)", ("a", "b")),  # the Penn Treebank's outermost bracket has no label
        ("(S(NP the cat)(VP sat))", (("the", "cat"), "sat")),
        ("  (S\t(-LRB- -LRB-) (X b))\r", ("-LRB-", "b")),
        ("(-LRB- (X -LRB- ) -RRB-)", ("-LRB-", "-RRB-")),
        ("(S a\u00a0b \u2028)", ("a\u00a0b", "\u2028")),  # words end only at spaces, TABs and brackets
    ],
)
def test_labels_are_dropped_and_words_are_kept(line: str, pairs: Any) -> None:
    assert spelled(*parse_tree(line)) == pairs


@pytest.mark.parametrize(
    ("line", "problem", "remedy"),
    [
        ("(S (NP the cat) (VP sat)", "1 closing brackets missing", "-LRB-"),
        ("(S (NP the cat", "2 closing brackets missing", "-LRB-"),
        ("(S a))", "a closing bracket too many", "-RRB-"),
        (") (S a", "a closing bracket too many", "-RRB-"),
        ("()", "a constituent without words", "add words or remove it"),
        ("(S (NP) (VP sat))", "a constituent without words", "add words or remove it"),
        ("(S a) b", "'b' is outside the brackets", "a line is one tree"),
        ("b (S a)", "'b' is outside the brackets", "a line is one tree"),
        ("(S a) (S b) (S c)", "3 trees", "one bracket around all of them"),
        ("the cat sat", "no brackets: --src-format tree needs one bracketed tree per line", "with another --encoder"),
    ],
)
def test_invalid_trees_raise_an_error_with_the_line(tmp_path: Path, line: str, problem: str, remedy: str) -> None:
    file = tmp_path / "source.trees"
    file.write_text(f"(S fine)\n\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError) as error:
        Treebank.read(file)
    assert str(error.value).startswith(f"{file}:3: ")
    assert problem in str(error.value)
    assert remedy in str(error.value)
    assert "\n" not in str(error.value)


DEEP = 20_000  # far beyond what Python would recurse


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("(X " * DEEP + "a" + ")" * DEEP, 1),
        ("(X " * (DEEP // 2) + "a" + " b)" * (DEEP // 2), DEEP // 2 + 1),
    ],
    ids=["a chain", "branching to the left"],
)
def test_deep_brackets_are_read(line: str, words: int) -> None:
    tree = parse_tree(line)
    assert len(tree.words) == words
    assert tree.left[1:] == list(range(words, 2 * words - 2))  # each holds the one before


@pytest.mark.parametrize("line", ["(" * DEEP, "(" * DEEP + ")" * DEEP, ")" * DEEP], ids=["open", "empty", "closed"])
def test_deep_invalid_brackets_raise_an_error(line: str) -> None:
    with pytest.raises(DataError) as error:
        parse_tree(line)
    assert len(str(error.value)) < 200


# -- many trees --------------------------------------------------------------------------------------------------------


def test_the_words_of_trees_are_a_corpus() -> None:
    trees = Treebank.from_lines(LINES)
    text = ["ein kurzer hirte spürt !", "", "It 's lovely .", "ja", "the cat sat on the red mat"]
    expected = Corpus.from_sentences(text)
    assert trees.sentences_as_text() == text
    assert trees.vocab == expected.vocab
    assert trees.vocab.counts.tolist() == expected.vocab.counts.tolist()
    assert trees.ids.tolist() == expected.ids.tolist()
    assert trees.sizes.tolist() == expected.sizes.tolist() == [6, 1, 5, 2, 8]
    assert np.diff(trees.node_offsets).tolist() == [4, 0, 3, 0, 6]


def test_given_and_limited_vocabularies() -> None:
    trees = Treebank.from_lines(LINES, min_count=2)
    assert trees.vocab.tokens[3:] == ("the",)
    assert trees.unknown_words[:2] == ["ein", "kurzer"]
    known = Treebank.from_lines(["(S the <s> cat)"], Vocab.build(["the", "cat"], [1, 1]))
    assert known.ids.tolist() == [3, UNK, 4]
    assert Treebank.from_lines(["(S a b b)", "(S c b a)"], max_size=2).vocab.tokens[3:] == ("a", "b")
    with pytest.raises(DataError, match="another vocabulary"):
        known.require_vocab(trees.vocab)


@pytest.mark.parametrize("word", ["<s>", "</s>"])
def test_boundary_symbols_in_training_text_raise_an_error(word: str) -> None:
    lines = ["(S a)", f"(S b {word})"]
    with pytest.raises(DataError, match=f"^trees:2: {word} is reserved"):
        Treebank.from_lines(lines)
    with pytest.raises(DataError, match="reserved"):
        Treebank.from_lines(lines, Vocab.build(["a"], [1]), training=True)


def test_reading_files(tmp_path: Path) -> None:
    text = "\r\n".join(LINES) + "\r\n"
    (tmp_path / "plain").write_text(text, encoding="utf-8", newline="")
    (tmp_path / "packed.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "columns.tsv").write_text("".join(f"x\t{line}\n" for line in LINES), encoding="utf-8")
    expected = Treebank.from_lines(LINES)
    for name, field in (("plain", None), ("packed.gz", None), ("columns.tsv", "2")):
        trees = Treebank.read(tmp_path / name, field=field)
        assert trees.sentences_as_text() == expected.sentences_as_text()
        assert (trees.left.tolist(), trees.right.tolist()) == (expected.left.tolist(), expected.right.tolist())


@given(st.lists(st.integers(0, len(LINES) - 1), max_size=8))
def test_select_gives_the_same_trees_as_reading_them(numbers: list[int]) -> None:
    trees = Treebank.from_lines(LINES)
    chosen = trees.select(np.array(numbers, np.int64))
    expected = Treebank.from_lines([LINES[number] for number in numbers], trees.vocab)
    assert chosen.sentences_as_text() == expected.sentences_as_text()
    for part in ("left", "right", "node_offsets"):
        assert getattr(chosen, part).tolist() == getattr(expected, part).tolist()


def test_with_unknown_does_not_change_the_trees() -> None:
    trees = Treebank.from_lines(LINES)
    mask = np.zeros(trees.num_words, bool)
    mask[1] = True
    hidden = trees.with_unknown(mask)
    assert hidden.ids[:3].tolist() == [3, UNK, 5]
    assert hidden.left is trees.left
    assert trees.ids[1] == 4


def test_phrases_are_the_words_under_each_node() -> None:
    trees = Treebank.from_lines(LINES)
    assert trees.phrases(2) == ["It", "'s", "lovely", ".", "'s lovely", "'s lovely .", "It 's lovely ."]
    assert trees.phrases(1) == ["</s>"]
    assert trees.phrases(3) == ["ja"]


# -- side by side ------------------------------------------------------------------------------------------------------


def grown(batch: TreeBatch, vocab: Vocab) -> tuple[list[list[Any]], list[Any]]:
    """Nested pairs of all nodes, and the roots, put together as a network does it: height after height."""
    waiting: list[list[Any]] = [[] for _ in range(len(batch.levels) + 1)]
    nodes = []
    for height, level in enumerate(batch.levels):
        if height == 0:
            subtrees = [vocab.tokens[batch.ids[place]] for place in level.inputs]
        else:
            children = [waiting[height][place] for place in level.inputs]
            subtrees = list(zip(children[::2], children[1::2], strict=True))
        nodes += subtrees
        for above, count in level.outputs:
            waiting[above] += subtrees[:count]
            subtrees = subtrees[count:]
        assert not subtrees
    grid: list[list[Any]] = [[None] * batch.mask.shape[1] for _ in batch.sizes]
    for place, node in zip(batch.grid_positions.tolist(), nodes, strict=True):
        grid[place // batch.mask.shape[1]][place % batch.mask.shape[1]] = node
    return grid, [waiting[-1][place] for place in batch.roots]


def words_under(node: Any) -> list[str]:
    return [node] if isinstance(node, str) else [word for part in node for word in words_under(part)]


@given(st.lists(NESTS.map(bracketed) | st.just(""), min_size=1, max_size=6))
def test_batch_builds_each_tree_from_its_leaves(lines: list[str]) -> None:
    trees = Treebank.from_lines(lines)
    batch = TreeBatch.from_trees(trees)
    grid, roots = grown(batch, trees.vocab)
    for number, line in enumerate(lines):
        tree = parse_tree(line)
        words = tree.words or ["</s>"]
        size = 2 * len(words) - 1
        assert batch.sizes[number] == size
        assert batch.mask[number].tolist() == [column < size for column in range(batch.mask.shape[1])]
        assert [node is not None for node in grid[number]] == batch.mask[number].tolist()
        assert grid[number][: len(words)] == words
        assert roots[number] == grid[number][batch.sizes[number] - 1] == spelled(words, tree.left, tree.right)
        for node, (first, last) in zip(grid[number][:size], batch.spans[number].tolist(), strict=False):
            assert words[first : last + 1] == words_under(node)


def test_nodes_of_a_level_are_of_equal_height() -> None:
    batch = TreeBatch.from_trees(Treebank.from_lines(["(S (A a b) (B c d))", "(S a b c)", "(S a)"]))
    heights = [len(level.inputs) // (1 if height == 0 else 2) for height, level in enumerate(batch.levels)]
    assert heights == [8, 3, 2]


def test_an_empty_line_is_one_end_of_sentence() -> None:
    batch = TreeBatch.from_trees(Treebank.from_lines(["", "(S a)", ""]))
    assert batch.ids.tolist() == [END, 3, END]
    assert batch.sizes.tolist() == [1, 1, 1]
    assert len(batch.levels) == 1


def test_attention_to_nodes_is_shared_among_their_words() -> None:
    batch = TreeBatch.from_trees(Treebank.from_lines(["(S (NP the cat) sat)", "(S yes)", ""]))
    third = 1 / 3
    expected = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0], [third, third, third]]
    np.testing.assert_allclose(batch.word_shares[0], expected)
    np.testing.assert_array_equal(batch.word_shares.sum(axis=2).round(12), batch.mask)


def test_deep_trees_can_be_batched() -> None:
    deep = 20_000
    batch = TreeBatch.from_trees(Treebank.from_lines(["(X " * deep + "a" + " b)" * deep]))
    assert len(batch.levels) == deep + 1
    assert batch.spans[0, -1].tolist() == [0, deep]
