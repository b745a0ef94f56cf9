"""Encoders: against torch's own where it has them, against loops where not, and untouched by their neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Generator, Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dragoman import Corpus
from dragoman.data.trees import Treebank
from dragoman.data.vocabulary import END
from dragoman.nn.cells import CELLS
from dragoman.nn.encoders import (
    BACKWARD,
    FORWARD,
    ConvolutionalEncoder,
    Encoder,
    EncoderOutput,
    Noise,
    RecurrentEncoder,
    TreeEncoder,
)
from dragoman.nn.recurrent import Layer, step
from dragoman.nn.tree import TREE_CELLS

LINES = ["a b c d e", "", "c", "b b a", "e d", "a b c d"]
TREES = ["(S (X a b) (X (Y c d) e))", "", "(S c)", "(S b (X b a))", "(S e d)", "(S (X (X a b) c) d)"]
CORPUS = Corpus.from_sentences(LINES)
WORDS, INPUTS, HIDDEN = len(CORPUS.vocab), 4, 3
SILENCE = Noise(0.0, 0.0, None)

ENCODERS: dict[str, Encoder] = {
    **{f"forward {cell}": RecurrentEncoder((FORWARD,), cell, 1, INPUTS, HIDDEN) for cell in CELLS},
    **{f"reverse {cell}": RecurrentEncoder((BACKWARD,), cell, 2, INPUTS, HIDDEN) for cell in CELLS},
    **{f"bidirectional {cell}": RecurrentEncoder((BACKWARD, FORWARD), cell, 2, INPUTS, HIDDEN) for cell in CELLS},
    **{
        f"convolutional {pooling} {width}": ConvolutionalEncoder(HIDDEN, width, pooling, 2, INPUTS)
        for pooling in ("average", "max", "k-max")
        for width in (1, 2, 5)
    },
    **{cell: TreeEncoder(cell, INPUTS, HIDDEN) for cell in TREE_CELLS},
}

every_encoder = pytest.mark.parametrize("name", ENCODERS)


def source_of(name: str) -> Any:
    return Treebank.from_lines(TREES, CORPUS.vocab) if name in TREE_CELLS else CORPUS


def parameters_of(encoder: Encoder) -> dict[str, Tensor]:
    """Far from 0, biases too, so that everything shows."""
    chance = Generator().manual_seed(1)
    first = encoder.first(chance, torch.float64)
    return {name: torch.randn(part.shape, generator=chance, dtype=torch.float64) for name, part in first.items()}


M = torch.randn((WORDS, INPUTS), generator=Generator().manual_seed(2), dtype=torch.float64)


def encoded(name: str, source: Any, noise: Noise = SILENCE) -> EncoderOutput:
    return ENCODERS[name].encode(parameters_of(ENCODERS[name]), M, source, noise)


# -- laws of all encoders ----------------------------------------------------------------------------------------------


@every_encoder
def test_sizes_are_as_told(name: str) -> None:
    source, sizes = source_of(name), ENCODERS[name].sizes()
    found = encoded(name, source)
    attended = source.memory_sizes
    assert found.vectors.shape == (len(LINES), attended.max(), sizes.vectors)
    assert found.mask.sum(dim=1).tolist() == attended.tolist()
    assert len(found.ends) == sizes.layers
    for end in found.ends:
        assert [part.shape for part in end] == [(len(LINES), sizes.ends)] * len(sizes.state)


@every_encoder
def test_a_padded_sentence_is_the_sentence_alone(name: str) -> None:
    source = source_of(name)
    together = encoded(name, source)
    for number in range(len(source)):
        alone = encoded(name, source.select(np.array([number])))
        own = together.mask[number]
        assert int(own.sum()) == alone.vectors.shape[1]
        torch.testing.assert_close(together.vectors[number, own], alone.vectors[0], rtol=1e-12, atol=1e-14)
        for ends, only in zip(together.ends, alone.ends, strict=True):
            for end, one in zip(ends, only, strict=True):
                torch.testing.assert_close(end[number], one[0], rtol=1e-12, atol=1e-14)


@every_encoder
def test_the_order_of_sentences_does_not_matter(name: str) -> None:
    source, order = source_of(name), np.array([3, 0, 5, 1, 4, 2])
    one, other = encoded(name, source), encoded(name, source.select(order))
    assert torch.equal(one.mask[order], other.mask)
    torch.testing.assert_close(one.vectors[order][other.mask], other.vectors[other.mask], rtol=1e-12, atol=1e-14)
    for ends, others in zip(one.ends, other.ends, strict=True):
        for end, another in zip(ends, others, strict=True):
            torch.testing.assert_close(end[order], another, rtol=1e-12, atol=1e-14)


@every_encoder
def test_every_word_of_a_sentence_has_a_say_and_no_other(name: str) -> None:
    """By gradients: the end of a sentence depends on its own words (those that pooling takes) and on no neighbour's."""
    source, encoder = source_of(name), ENCODERS[name]
    vectors = M.clone().requires_grad_()
    pair = source.select(np.array([5, 4]))  # `a b c d` and `e d`
    found = encoder.encode(parameters_of(encoder), vectors, pair, SILENCE)
    (gradient,) = torch.autograd.grad(found.ends[-1][0][1].sum() + found.vectors[1][found.mask[1]].sum(), vectors)
    touched = {CORPUS.vocab.tokens[row] for row in gradient.abs().sum(dim=1).nonzero()[:, 0].tolist()}
    assert touched == ({"e", "d"} if name in TREE_CELLS else {"e", "d", "</s>"})


@every_encoder
def test_what_is_left_out_is_left_out_in_training_alone(name: str) -> None:
    source, loud = source_of(name), Noise(0.5, 0.5, Generator().manual_seed(3))
    silent, noisy = encoded(name, source), encoded(name, source, loud)
    assert not torch.allclose(silent.vectors, noisy.vectors)
    again = encoded(name, source, Noise(0.5, 0.5, None))
    assert torch.equal(silent.vectors, again.vectors)
    dropped = noisy.vectors[noisy.mask] == 0
    assert 0.25 < dropped.double().mean() < 0.75


# -- recurrent encoders ------------------------------------------------------------------------------------------------


def torchs(module: torch.nn.RNNBase, found: dict[str, Tensor], layers: int) -> torch.nn.RNNBase:
    """Our parameters in torch's network of both directions."""
    own, suffixes = dict(module.named_parameters()), {FORWARD: "", BACKWARD: "_reverse"}
    with torch.no_grad():
        for number in range(1, layers + 1):
            for direction, suffix in suffixes.items():
                place = f"l{number - 1}{suffix}"
                for theirs, ours in (("weight_ih", "W_x"), ("weight_hh", "W_h"), ("bias_ih", "b")):
                    own[f"{theirs}_{place}"].copy_(found[f"{direction}.{ours}{number}"])
                own[f"bias_hh_{place}"].zero_()
    return module


def forward_first(part: Tensor) -> Tensor:
    """torch has the forward direction first, we the backward one."""
    backward, forward = part.chunk(2, dim=-1)
    return torch.cat([forward, backward], dim=-1)


@pytest.mark.parametrize(("cell", "module"), [("lstm", torch.nn.LSTM), ("rnn", torch.nn.RNN)])
def test_one_bidirectional_layer_is_torchs(cell: str, module: type[torch.nn.RNNBase]) -> None:
    encoder = RecurrentEncoder((BACKWARD, FORWARD), cell, 1, INPUTS, HIDDEN)
    found = parameters_of(encoder)
    theirs = torchs(module(INPUTS, HIDDEN, bidirectional=True, dtype=torch.float64), found, 1)
    ours = encoder.encode(found, M, CORPUS, SILENCE)
    closed = [torch.tensor([*sentence.tolist(), END]) for sentence in CORPUS]
    padded = torch.nn.utils.rnn.pad_sequence([M[words] for words in closed])  # (longest, sentences, L_m)
    packed = pack_padded_sequence(padded, torch.from_numpy(CORPUS.sizes), enforce_sorted=False)
    with torch.no_grad():
        out, last = theirs(packed)
    expected, _ = pad_packed_sequence(out, batch_first=True)
    torch.testing.assert_close(forward_first(ours.vectors)[ours.mask], expected[ours.mask])
    ends = last if isinstance(last, tuple) else (last,)  # (directions, sentences, H) each
    for found_end, right in zip(ours.ends[0], ends, strict=True):
        torch.testing.assert_close(forward_first(found_end), torch.cat(list(right), dim=1))


def test_two_bidirectional_layers_are_torchs() -> None:
    """The second reads both directions of the first: the columns of its matrices stand the other way round."""
    encoder = RecurrentEncoder((BACKWARD, FORWARD), "lstm", 2, INPUTS, HIDDEN)
    found = parameters_of(encoder)
    turned = {n: forward_first(part) if n.endswith("W_x2") else part for n, part in found.items()}
    theirs = torchs(torch.nn.LSTM(INPUTS, HIDDEN, 2, bidirectional=True, dtype=torch.float64), turned, 2)
    ours = encoder.encode(found, M, CORPUS, SILENCE)
    for number, sentence in enumerate(CORPUS):
        words = torch.tensor([*sentence.tolist(), END])
        with torch.no_grad():
            expected, (h, c) = theirs(M[words])  # (|F| + 1, 2 H), (2 layers * directions, H) twice
        torch.testing.assert_close(forward_first(ours.vectors[number, : len(words)]), expected)
        for layer in range(2):
            for place, right in enumerate((h, c)):
                both = torch.cat([right[2 * layer], right[2 * layer + 1]])
                torch.testing.assert_close(forward_first(ours.ends[layer][place][number]), both)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
def test_a_direction_is_the_step_along_the_sentence(cell: str, direction: str) -> None:
    """h_t = RNN(m_t, h_{t-1}) with h_0 = 0, or from the end, RNN(m_t, h_{t+1}); `</s>` is read where it stands."""
    encoder = RecurrentEncoder((direction,), cell, 1, INPUTS, HIDDEN)
    found = parameters_of(encoder)
    layer = Layer(*(found[f"{direction}.{name}1"] for name in Layer._fields))
    ours = encoder.encode(found, M, CORPUS, SILENCE)
    for number, sentence in enumerate(CORPUS):
        words = [*sentence.tolist(), END]
        state = tuple(torch.zeros(1, HIDDEN, dtype=torch.float64) for _ in CELLS[cell].state)
        places = range(len(words)) if direction == FORWARD else reversed(range(len(words)))
        for place in places:
            state = step(cell, layer, M[words[place]][None], state)
            torch.testing.assert_close(ours.vectors[number, place], state[0][0], rtol=1e-12, atol=1e-14)
        for end, right in zip(ours.ends[0], state, strict=True):
            torch.testing.assert_close(end[number], right[0], rtol=1e-12, atol=1e-14)


# -- convolutional encoders --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("pooling", ["average", "max", "k-max"])
def test_filters_see_the_words_around(width: int, pooling: str) -> None:
    """h_t = tanh(W [m_{t-a}; ...; m_{t+b}] + b), a + b = w - 1, zeros outside, and of all h_t the pooling."""
    encoder = ConvolutionalEncoder(HIDDEN, width, pooling, 2, INPUTS)
    found = parameters_of(encoder)
    ours = encoder.encode(found, M, CORPUS, SILENCE)
    W, b, nothing = found["W"].numpy(), found["b"].numpy(), np.zeros(INPUTS)
    for number, sentence in enumerate(CORPUS):
        m = [M[word].numpy() for word in [*sentence.tolist(), END]]
        before, h = (width - 1) // 2, []
        for t in range(len(m)):
            seen = [m[at] if 0 <= at < len(m) else nothing for at in range(t - before, t - before + width)]
            h.append(np.tanh(W @ np.concatenate(seen) + b))
        np.testing.assert_allclose(ours.vectors[number, : len(m)], h, rtol=1e-12)
        np.testing.assert_allclose(ours.ends[0][0][number], pooled(np.array(h), pooling), rtol=1e-12, atol=1e-14)


def pooled(h: np.ndarray, pooling: str) -> np.ndarray:
    """# h: (columns, n)"""
    if pooling == "average":
        return np.asarray(h.mean(axis=0))
    if pooling == "max":
        return np.asarray(h.max(axis=0))
    kept = np.zeros((2, h.shape[1]))
    for feature, values in enumerate(h.T):
        places = sorted(sorted(range(len(values)), key=lambda at: -values[at])[:2])
        kept[: len(places), feature] = values[places]
    return kept.reshape(-1)


# -- trees -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", TREE_CELLS)
def test_a_tree_begins_the_decoder_with_its_root(cell: str) -> None:
    found = encoded(cell, source_of(cell))
    roots = found.mask.sum(dim=1) - 1  # the last of a sentence's own nodes
    torch.testing.assert_close(found.vectors[torch.arange(len(TREES)), roots], found.ends[0][0])


@pytest.mark.parametrize("cell", TREE_CELLS)
def test_a_tree_is_read_along_its_brackets(cell: str) -> None:
    one = encoded(cell, Treebank.from_lines(["(S (X a b) c)"], CORPUS.vocab))
    other = encoded(cell, Treebank.from_lines(["(S a (X b c))"], CORPUS.vocab))
    torch.testing.assert_close(one.vectors[:, :3], other.vectors[:, :3])
    assert not torch.allclose(one.ends[0][0], other.ends[0][0])
