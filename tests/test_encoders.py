"""Encoders: against torch, against loops, and independent of other sentences in the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dragoman import Corpus
from dragoman.data.trees import Treebank
from dragoman.data.vocabulary import END
from dragoman.nn.cells import CELLS
from dragoman.nn.encoders import (
    LEFT_TO_RIGHT,
    RIGHT_TO_LEFT,
    TREE_CELLS,
    ConvolutionalEncoder,
    Encoder,
    EncoderOutput,
    RecurrentEncoder,
    TreeEncoder,
)

LINES = ["a b c d e", "", "c", "b b a", "e d", "a b c d"]
TREES = ["(S (X a b) (X (Y c d) e))", "", "(S c)", "(S b (X b a))", "(S e d)", "(S (X (X a b) c) d)"]
CORPUS = Corpus.from_sentences(LINES)
WORDS, INPUTS, HIDDEN = len(CORPUS.vocab), 4, 3
BOTH = (RIGHT_TO_LEFT, LEFT_TO_RIGHT)


def recurrent(directions: tuple[str, ...], cell: str, layers: int) -> RecurrentEncoder:
    encoder = RecurrentEncoder(directions, cell, layers, INPUTS, HIDDEN, embedding_dropout=0.5, dropout=0.5).double()
    randomise(encoder)
    return encoder


def convolutional(pooling: str, width: int) -> ConvolutionalEncoder:
    encoder = ConvolutionalEncoder(HIDDEN, width, pooling, 2, INPUTS, embedding_dropout=0.5, dropout=0.5).double()
    randomise(encoder)
    return encoder


def tree(cell: str) -> TreeEncoder:
    encoder = TreeEncoder(cell, INPUTS, HIDDEN, embedding_dropout=0.5, dropout=0.5).double()
    randomise(encoder)
    return encoder


def randomise(encoder: nn.Module) -> None:
    """Set large parameters, also biases, and evaluation mode."""
    generator = Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    encoder.eval()


ENCODERS: dict[str, Callable[[], Any]] = {
    **{f"forward {cell}": lambda cell=cell: recurrent((LEFT_TO_RIGHT,), cell, 1) for cell in CELLS},
    **{f"reverse {cell}": lambda cell=cell: recurrent((RIGHT_TO_LEFT,), cell, 2) for cell in CELLS},
    **{f"bidirectional {cell}": lambda cell=cell: recurrent(BOTH, cell, 2) for cell in CELLS},
    **{
        f"convolutional {pooling} {width}": lambda pooling=pooling, width=width: convolutional(pooling, width)
        for pooling in ("average", "max", "k-max")
        for width in (1, 2, 5)
    },
    **{cell: lambda cell=cell: tree(cell) for cell in TREE_CELLS},
}

every_encoder = pytest.mark.parametrize("name", ENCODERS)
M = torch.randn((WORDS, INPUTS), generator=Generator().manual_seed(2), dtype=torch.float64)


def source_of(name: str) -> Any:
    return Treebank.from_lines(TREES, CORPUS.vocab) if name in TREE_CELLS else CORPUS


def encode(encoder: Encoder, source: Any, generator: Generator | None = None) -> EncoderOutput:
    with torch.no_grad():
        return encoder(source, nn.Embedding.from_pretrained(M), generator)


def encoded(name: str, source: Any) -> EncoderOutput:
    return encode(ENCODERS[name](), source)


# -- all encoders ------------------------------------------------------------------------------------------------------


@every_encoder
def test_sizes_of_the_output(name: str) -> None:
    source, encoder = source_of(name), ENCODERS[name]()
    output = encode(encoder, source)
    attended = source.memory_sizes
    assert output.vectors.shape == (len(LINES), attended.max(), encoder.output_size)
    assert output.mask.sum(dim=1).tolist() == attended.tolist()
    assert len(output.final_states) == encoder.num_layers
    for state in output.final_states:
        assert all(part.shape == (len(LINES), encoder.state_size) for part in state)


@every_encoder
def test_padding_has_no_effect(name: str) -> None:
    source = source_of(name)
    together = encoded(name, source)
    for number in range(len(source)):
        single = encoded(name, source.select(np.array([number])))
        mask = together.mask[number]
        assert int(mask.sum()) == single.vectors.shape[1]
        torch.testing.assert_close(together.vectors[number, mask], single.vectors[0], rtol=1e-12, atol=1e-14)
        for ends, only in zip(together.final_states, single.final_states, strict=True):
            for end, other in zip(ends, only, strict=True):
                torch.testing.assert_close(end[number], other[0], rtol=1e-12, atol=1e-14)


@every_encoder
def test_the_order_of_sentences_does_not_matter(name: str) -> None:
    source, order = source_of(name), np.array([3, 0, 5, 1, 4, 2])
    first, other = encoded(name, source), encoded(name, source.select(order))
    assert torch.equal(first.mask[order], other.mask)
    torch.testing.assert_close(first.vectors[order][other.mask], other.vectors[other.mask], rtol=1e-12, atol=1e-14)
    for ends, others in zip(first.final_states, other.final_states, strict=True):
        for end, another in zip(ends, others, strict=True):
            torch.testing.assert_close(end[order], another, rtol=1e-12, atol=1e-14)


@every_encoder
def test_a_sentence_depends_on_its_words_only(name: str) -> None:
    """By gradients: final state and vectors depend on the sentence's words and not on another sentence's."""
    source, encoder = source_of(name), ENCODERS[name]()
    embedding = nn.Embedding.from_pretrained(M.clone(), freeze=False)
    pair = source.select(np.array([5, 4]))  # `a b c d` and `e d`
    actual = encoder(pair, embedding)
    loss = actual.final_states[-1][0][1].sum() + actual.vectors[1][actual.mask[1]].sum()
    (gradient,) = torch.autograd.grad(loss, embedding.weight)
    words = {CORPUS.vocab.tokens[row] for row in gradient.abs().sum(dim=1).nonzero()[:, 0].tolist()}
    assert words == ({"e", "d"} if name in TREE_CELLS else {"e", "d", "</s>"})


@every_encoder
def test_dropout_applies_in_training_only(name: str) -> None:
    source, encoder = source_of(name), ENCODERS[name]()
    plain = encode(encoder, source)
    encoder.train()
    dropped = encode(encoder, source, Generator().manual_seed(3))
    assert not torch.allclose(plain.vectors, dropped.vectors)
    assert 0.25 < (dropped.vectors[dropped.mask] == 0).double().mean() < 0.75
    encoder.eval()
    assert torch.equal(plain.vectors, encode(encoder, source, Generator().manual_seed(3)).vectors)


# -- recurrent encoders ------------------------------------------------------------------------------------------------


def torch_module(module: torch.nn.RNNBase, encoder: RecurrentEncoder) -> torch.nn.RNNBase:
    """Copy the parameters into torch's bidirectional network."""
    parameters, suffixes = dict(module.named_parameters()), {LEFT_TO_RIGHT: "", RIGHT_TO_LEFT: "_reverse"}
    with torch.no_grad():
        for number, directions in enumerate(encoder.layers):
            for direction, layer in directions.items():
                place = f"l{number}{suffixes[direction]}"
                W_x = layer.input.weight if number == 0 else forward_first(layer.input.weight)
                parameters[f"weight_ih_{place}"].copy_(W_x)
                parameters[f"weight_hh_{place}"].copy_(layer.recurrent.weight)
                parameters[f"bias_ih_{place}"].copy_(layer.input.bias)
                parameters[f"bias_hh_{place}"].zero_()
    return module


def forward_first(part: Tensor) -> Tensor:
    """Swap the directions: torch has left to right first."""
    backward, forward = part.chunk(2, dim=-1)
    return torch.cat([forward, backward], dim=-1)


@pytest.mark.parametrize(("cell", "module"), [("lstm", torch.nn.LSTM), ("rnn", torch.nn.RNN)])
def test_one_bidirectional_layer_equals_torch(cell: str, module: type[torch.nn.RNNBase]) -> None:
    encoder = recurrent(BOTH, cell, 1)
    theirs = torch_module(module(INPUTS, HIDDEN, bidirectional=True, dtype=torch.float64), encoder)
    ours = encode(encoder, CORPUS)
    closed = [torch.tensor([*sentence.tolist(), END]) for sentence in CORPUS]
    padded = torch.nn.utils.rnn.pad_sequence([M[words] for words in closed])  # (longest, sentences, L_m)
    packed = pack_padded_sequence(padded, torch.from_numpy(CORPUS.sizes), enforce_sorted=False)
    with torch.no_grad():
        out, last = theirs(packed)
    expected, _ = pad_packed_sequence(out, batch_first=True)
    torch.testing.assert_close(forward_first(ours.vectors)[ours.mask], expected[ours.mask])
    ends = last if isinstance(last, tuple) else (last,)  # (directions, sentences, H) each
    for found_end, right in zip(ours.final_states[0], ends, strict=True):
        torch.testing.assert_close(forward_first(found_end), torch.cat(list(right), dim=1))


def test_two_bidirectional_layers_equal_torch() -> None:
    encoder = recurrent(BOTH, "lstm", 2)
    theirs = torch_module(torch.nn.LSTM(INPUTS, HIDDEN, 2, bidirectional=True, dtype=torch.float64), encoder)
    ours = encode(encoder, CORPUS)
    for number, sentence in enumerate(CORPUS):
        words = torch.tensor([*sentence.tolist(), END])
        with torch.no_grad():
            expected, (h, c) = theirs(M[words])  # (|F| + 1, 2 H), (2 layers * directions, H) twice
        torch.testing.assert_close(forward_first(ours.vectors[number, : len(words)]), expected)
        for layer in range(2):
            for place, right in enumerate((h, c)):
                both = torch.cat([right[2 * layer], right[2 * layer + 1]])
                torch.testing.assert_close(forward_first(ours.final_states[layer][place][number]), both)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("direction", [LEFT_TO_RIGHT, RIGHT_TO_LEFT])
def test_a_direction_is_the_step_along_the_sentence(cell: str, direction: str) -> None:
    """h_t = RNN(m_t, h_{t-1}) with h_0 = 0, or from the end, RNN(m_t, h_{t+1}), including `</s>`."""
    encoder = recurrent((direction,), cell, 1)
    layer = encoder.layers[0][direction]
    output = encode(encoder, CORPUS)
    for number, sentence in enumerate(CORPUS):
        words = [*sentence.tolist(), END]
        state = layer.initial_state(1)
        places = range(len(words)) if direction == LEFT_TO_RIGHT else reversed(range(len(words)))
        with torch.no_grad():
            for place in places:
                state = layer.step(layer.input(M[words[place]][None]), state)
                torch.testing.assert_close(output.vectors[number, place], state[0][0], rtol=1e-12, atol=1e-14)
        for part, right in zip(output.final_states[0], state, strict=True):
            torch.testing.assert_close(part[number], right[0], rtol=1e-12, atol=1e-14)


# -- convolutional encoders --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("pooling", ["average", "max", "k-max"])
def test_filters_read_the_words_around(width: int, pooling: str) -> None:
    """h_t = tanh(W [m_{t-a}; ...; m_{t+b}] + b), a + b = w - 1, zeros outside, and of all h_t the pooling."""
    encoder = convolutional(pooling, width)
    ours = encode(encoder, CORPUS)
    W, b = (part.detach().numpy() for part in (encoder.filters.weight, encoder.filters.bias))
    nothing = np.zeros(INPUTS)
    for number, sentence in enumerate(CORPUS):
        m = [M[word].numpy() for word in [*sentence.tolist(), END]]
        before, h = (width - 1) // 2, []
        for t in range(len(m)):
            window = [m[at] if 0 <= at < len(m) else nothing for at in range(t - before, t - before + width)]
            h.append(np.tanh(W @ np.concatenate(window) + b))
        np.testing.assert_allclose(ours.vectors[number, : len(m)], h, rtol=1e-12)
        np.testing.assert_allclose(
            ours.final_states[0][0][number], pooled(np.array(h), pooling), rtol=1e-12, atol=1e-14
        )


def pooled(h: np.ndarray, pooling: str) -> np.ndarray:
    """# h: (columns, n)"""
    if pooling == "average":
        return np.asarray(h.mean(axis=0))
    if pooling == "max":
        return np.asarray(h.max(axis=0))
    largest = np.zeros((2, h.shape[1]))
    for feature, values in enumerate(h.T):
        places = sorted(sorted(range(len(values)), key=lambda at: -values[at])[:2])
        largest[: len(places), feature] = values[places]
    return largest.reshape(-1)


# -- trees -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", TREE_CELLS)
def test_the_final_state_of_a_tree_is_its_root(cell: str) -> None:
    output = encoded(cell, source_of(cell))
    roots = output.mask.sum(dim=1) - 1  # the last of a sentence's own nodes
    torch.testing.assert_close(output.vectors[torch.arange(len(TREES)), roots], output.final_states[0][0])


@pytest.mark.parametrize("cell", TREE_CELLS)
def test_brackets_change_the_root_but_not_the_words(cell: str) -> None:
    first = encoded(cell, Treebank.from_lines(["(S (X a b) c)"], CORPUS.vocab))
    other = encoded(cell, Treebank.from_lines(["(S a (X b c))"], CORPUS.vocab))
    torch.testing.assert_close(first.vectors[:, :3], other.vectors[:, :3])
    assert not torch.allclose(first.final_states[0][0], other.final_states[0][0])
