"""Recursive networks over trees: batched by height, they equal the equations applied node by node."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.data.trees import Treebank, TreeBatch, parse_tree
from dragoman.data.vocabulary import END, Vocab
from dragoman.nn.encoders import TREE_CELLS, EncodedTrees, TreeLayer
from dragoman.nn.recurrent import RecurrentLayer

INPUTS, HIDDEN = 3, 4
LINES = [
    "(S (NP the (ADJ red) cat) (VP sat (PP on (NP the mat))))",
    "",
    "(S (X (X (X a cat) sat) on) mats)",
    "(S yes)",
    "(S a (S cat (S on (S a mat))))",
    "(S (A (A a cat) (A sat on)) (A (A the red) (A a mat)))",
]
TREES = Treebank.from_lines(LINES)
cells = pytest.mark.parametrize("cell", TREE_CELLS)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def layer_of(cell: str) -> TreeLayer:
    layer = TreeLayer(cell, INPUTS, HIDDEN).double()
    with torch.no_grad():
        for seed, parameter in enumerate(layer.parameters()):
            parameter.copy_(random(*parameter.shape, seed=seed))
    return layer


M = random(len(TREES.vocab), INPUTS, seed=9)  # the vectors of the words


def encoded(cell: str, trees: Treebank, layer: TreeLayer | None = None, M: Tensor = M) -> EncodedTrees:
    batch = TreeBatch.from_trees(trees)
    trees_of_batch: EncodedTrees = (layer or layer_of(cell))(M[torch.from_numpy(batch.ids)], batch)
    return trees_of_batch


class NodeEquations:
    """The equations for one node at a time, with one matrix per sum; missing children contribute zero."""

    def __init__(self, cell: str):
        names = TREE_CELLS[cell].gates
        layer = layer_of(cell)
        self.W_x = dict(zip(names, layer.word.weight.split(HIDDEN), strict=False))
        self.W_l, self.W_r, self.b = (
            dict(zip(names, part.split(HIDDEN), strict=True))
            for part in (layer.left.weight, layer.right.weight, layer.bias)
        )
        self.cell = getattr(self, cell.replace("-", "_"))

    def sum(self, name: str, x: Tensor | None, h: list[Tensor]) -> Tensor:
        total = self.b[name]
        if x is not None:
            total = total + self.W_x[name] @ x
        for W, h_k in zip((self.W_l, self.W_r), h, strict=False):
            total = total + W[name] @ h_k
        return total

    def recursive(self, x: Tensor | None, *children: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (torch.tanh(self.sum("h", x, [h for (h,) in children])),)

    def tree_lstm(self, x: Tensor | None, *children: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        h = [state[0] for state in children]
        i, u, o = (self.sum(name, x, h) for name in "iuo")
        c = torch.sigmoid(i) * torch.tanh(u)
        for name, (_, c_k) in zip(("f_l", "f_r"), children, strict=False):
            c = c + torch.sigmoid(self.sum(name, x, h)) * c_k
        return torch.sigmoid(o) * torch.tanh(c), c

    def nodes(self, line: str, M: Tensor = M) -> list[tuple[Tensor, ...]]:
        """The states of all nodes of a tree, by their numbers."""
        tree = parse_tree(line)
        states = [self.cell(M[TREES.vocab.id(word)]) for word in tree.words] or [self.cell(M[END])]
        for left, right in zip(tree.left, tree.right, strict=True):
            states.append(self.cell(None, states[left], states[right]))
        return states


@cells
def test_nodes_have_the_equations(cell: str) -> None:
    output = encoded(cell, TREES)
    for number, line in enumerate(LINES):
        expected = NodeEquations(cell).nodes(line)
        vectors = output.vectors[number][output.mask[number]]
        torch.testing.assert_close(vectors, torch.stack([state[0] for state in expected]), rtol=1e-12, atol=1e-12)
        for part, right in zip(output.root, expected[-1], strict=True):
            torch.testing.assert_close(part[number], right, rtol=1e-12, atol=1e-12)


@cells
def test_padding_and_order_have_no_effect(cell: str) -> None:
    together = encoded(cell, TREES)
    assert not together.vectors[~together.mask].any()
    shuffled = np.array([3, 0, 5, 2, 1, 4, 0])
    again = encoded(cell, TREES.select(shuffled))
    torch.testing.assert_close(again.vectors, together.vectors[shuffled], rtol=1e-12, atol=1e-12)
    for number in range(len(TREES)):
        single = encoded(cell, TREES.select(np.array([number])))
        size = single.vectors.shape[1]
        assert together.mask[number].sum() == size
        torch.testing.assert_close(together.vectors[number, :size], single.vectors[0], rtol=1e-12, atol=1e-12)
        for first, second in zip(together.root, single.root, strict=True):
            torch.testing.assert_close(first[number], second[0], rtol=1e-12, atol=1e-12)


@cells
def test_the_root_is_the_last_vector_of_a_sentence(cell: str) -> None:
    output = encoded(cell, TREES)
    columns = torch.from_numpy(TreeBatch.from_trees(TREES).sizes - 1)
    torch.testing.assert_close(output.root[0], output.vectors[torch.arange(len(TREES)), columns], rtol=0, atol=0)


@cells
def test_gradients(cell: str) -> None:
    """A leaf that waits for two heights, and a sentence without words."""
    trees = Treebank.from_lines(["(S (X a cat) sat)", ""], Vocab.build(["a", "cat", "sat"], [1, 1, 1]))

    layer = layer_of(cell)

    def outputs(M: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
        output = encoded(cell, trees, layer, M)
        return (output.vectors, *output.root)

    assert torch.autograd.gradcheck(outputs, [M[:6].clone().requires_grad_(), *layer.parameters()])


@cells
def test_gradients_are_those_of_the_equations(cell: str) -> None:
    """Also through nodes handed up past several heights."""
    weights = [random(*part.shape, seed=7) for part in encoded(cell, TREES).root]
    by_hand, batched = M.clone().requires_grad_(), M.clone().requires_grad_()
    loss = sum(
        (part * weight).sum() for part, weight in zip(encoded(cell, TREES, M=batched).root, weights, strict=True)
    )
    assert isinstance(loss, Tensor)
    loss.backward()
    for number, line in enumerate(LINES):
        root = NodeEquations(cell).nodes(line, by_hand)[-1]
        torch.stack(
            [(part * weight[number]).sum() for part, weight in zip(root, weights, strict=True)]
        ).sum().backward()
    assert by_hand.grad is not None
    torch.testing.assert_close(batched.grad, by_hand.grad, rtol=1e-12, atol=1e-12)


def test_a_recursive_network_over_a_chain_equals_an_elman_network() -> None:
    """Branching to the left, h_p = tanh(W_lp h_{t-1} + W_rp h_r + b): a recurrent network that reads the leaves."""
    layer, words = layer_of("recursive"), 6
    trees = Treebank.from_lines(["(S " * (words - 1) + "the" + " cat)" * (words - 1)], TREES.vocab)
    vectors = encoded("recursive", trees, layer).vectors[0]
    leaves = vectors[:words]
    recurrent = RecurrentLayer("rnn", HIDDEN, HIDDEN).double()
    with torch.no_grad():
        recurrent.input.weight.copy_(layer.right.weight)
        recurrent.recurrent.weight.copy_(layer.left.weight)
        recurrent.input.bias.copy_(layer.bias)
    h, _ = recurrent.fold(leaves[1:, None], (leaves[:1],))
    torch.testing.assert_close(vectors[words:], h[:, 0], rtol=1e-12, atol=1e-12)


def test_a_tree_lstm_with_open_gates_sums_its_leaves() -> None:
    """All forget gates 1 and no input from inner nodes: the memory of the root is the sum of those of the leaves."""
    opened = layer_of("tree-lstm")
    with torch.no_grad():
        W_l, W_r, b = opened.left.weight, opened.right.weight, opened.bias
        W_l[3 * HIDDEN :], W_r[3 * HIDDEN :], b[3 * HIDDEN :] = 0.0, 0.0, 50.0
        W_l[:HIDDEN], W_r[:HIDDEN] = 0.0, 0.0
        W_l[HIDDEN : 2 * HIDDEN], W_r[HIDDEN : 2 * HIDDEN], b[HIDDEN : 2 * HIDDEN] = 0.0, 0.0, 0.0  # u = 0
    line = LINES[0]
    _, c = encoded("tree-lstm", Treebank.from_lines([line], TREES.vocab), opened).root
    leaves = Treebank.from_lines([f"(S {word})" for word in parse_tree(line).words], TREES.vocab)
    torch.testing.assert_close(c[0], encoded("tree-lstm", leaves, opened).root[1].sum(dim=0))


@cells
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_initial_parameters(cell: str, dtype: torch.dtype) -> None:
    layer = TreeLayer(cell, INPUTS, HIDDEN).to(dtype)
    layer.reset_parameters(torch.Generator().manual_seed(1))
    assert all(parameter.dtype == dtype for parameter in layer.parameters())
    matrices = (layer.word.weight, layer.left.weight, layer.right.weight)
    assert all(0.3 < float(W.detach().abs().max()) <= 0.5 for W in matrices)  # 1 / sqrt(H) and not much less
    biases = dict(zip(TREE_CELLS[cell].gates, layer.bias.split(HIDDEN), strict=True))
    for name, b in biases.items():
        assert (b == (1.0 if name.startswith("f") else 0.0)).all()
    output = encoded(cell, TREES, layer, M.to(dtype))
    assert output.vectors.dtype == dtype
    assert output.vectors.shape == (len(TREES), 15, HIDDEN)
    assert [part.shape for part in output.root] == [(len(TREES), HIDDEN)] * len(TREE_CELLS[cell].state)
