"""Gathered gradients of shared matrices equal those of automatic differentiation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from dragoman.nn.attention import SCORES, Attention, MLPScore, RowLayout
from dragoman.nn.cells import CELLS
from dragoman.nn.decoder import Decoder, DecoderOutput, DecoderState
from dragoman.nn.step_products import STEPWISE_PRODUCTS, GatheredGradientProducts, StepProducts

STEPS, ROWS, LONGEST = 4, 3, 5
INPUTS, HIDDEN = 2, 4  # source vectors are as long as the state, for dot attention
MASK = torch.arange(LONGEST) < torch.tensor([5, 2, 1])[:, None]

Product = Callable[[StepProducts, Tensor, Tensor], Tensor]


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# -- single products ---------------------------------------------------------------------------------------------------


def add(products: StepProducts, x: Tensor, W: Tensor) -> Tensor:
    return products.add("sum", W, torch.ones(len(x), len(W), dtype=x.dtype), x)


def linear(products: StepProducts, x: Tensor, W: Tensor) -> Tensor:
    return products.linear("product", W, x)


def per_sentence(products: StepProducts, x: Tensor, W: Tensor) -> Tensor:
    M = W.t().reshape(1, *W.t().shape) * torch.arange(1.0, len(x) + 1, dtype=x.dtype)[:, None, None]
    return products.per_sentence("context", M, x[:, None])[:, 0]


every_product = pytest.mark.parametrize("product", [add, linear, per_sentence])


@every_product
@pytest.mark.parametrize("steps", [1, STEPS])
def test_values_and_gradients_equal_plain_ones(product: Product, steps: int) -> None:
    """The input of a step depends on the step before, so gradients flow back through all steps."""
    results = []
    for products in (STEPWISE_PRODUCTS, GatheredGradientProducts([ROWS] * steps)):
        x = random(ROWS, HIDDEN, seed=1).requires_grad_()
        W = random(HIDDEN, HIDDEN, seed=2).requires_grad_()
        y, outputs = x, []
        for _ in range(steps):
            y = product(products, y, W).tanh()
            outputs.append(y)
            products.next_step()
        loss = (torch.stack(outputs) * random(steps, ROWS, HIDDEN, seed=3)).sum()
        results.append([loss.detach(), *torch.autograd.grad(loss, [x, W])])
    for first, other in zip(*results, strict=True):
        torch.testing.assert_close(first, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("prepared", [(), ("first",), ("first", "second")])
def test_two_products_of_one_sum(prepared: tuple[str, ...]) -> None:
    """Each may be gathered at the prepared terms, or at separate zeros."""
    results = []
    for products in (STEPWISE_PRODUCTS, GatheredGradientProducts([ROWS] * STEPS)):
        p, W, V = (
            random(*shape, seed=seed).requires_grad_() for seed, shape in enumerate([(STEPS, ROWS, 4), (4, 4), (4, 4)])
        )
        matrices = {"first": W, "second": V}
        y, outputs = random(ROWS, 4, seed=4), []
        for p_t in products.prepare(p.flatten(0, 1), {name: matrices[name] for name in prepared}).split(ROWS):
            for name, matrix in matrices.items():
                p_t = products.add(name, matrix, p_t, y)
            y = p_t.tanh()
            outputs.append(y)
            products.next_step()
        loss = (torch.stack(outputs) * random(STEPS, ROWS, 4, seed=5)).sum()
        results.append([loss.detach(), *torch.autograd.grad(loss, [p, W, V])])
    for first, other in zip(*results, strict=True):
        torch.testing.assert_close(first, other, rtol=1e-12, atol=1e-12)


@every_product
def test_second_gradients_are_refused(product: Product) -> None:
    """Inputs are recorded without their gradients, so second gradients would be wrong."""
    x, W = random(ROWS, HIDDEN, seed=1).requires_grad_(), random(HIDDEN, HIDDEN, seed=2).requires_grad_()
    loss = product(GatheredGradientProducts([ROWS]), x, W).square().sum()
    (gradient,) = torch.autograd.grad(loss, [W], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_second_gradients_of_the_mlp_score_are_refused() -> None:
    score = MLPScore(3, 3, 3).double()
    scores = score(random(ROWS, LONGEST, 3), random(ROWS, 1, 3, seed=1))
    (gradient,) = torch.autograd.grad(scores.square().sum(), [score.output], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


# -- the decoder -------------------------------------------------------------------------------------------------------


def create_decoder(cell: str, layers: int, attention: str) -> Decoder:
    score = SCORES[attention](HIDDEN, HIDDEN, 3).double()
    decoder = Decoder(cell, layers, INPUTS, HIDDEN, Attention(score), HIDDEN, dropout=0.5).double()
    with torch.no_grad():
        for seed, parameter in enumerate(decoder.parameters()):
            parameter.copy_(random(*parameter.shape, seed=seed))
    return decoder


def inputs_of(cell: str, layers: int) -> tuple[Tensor, Tensor, DecoderState]:
    """Word vectors, source vectors and the initial state."""
    states = tuple(
        tuple(random(ROWS, HIDDEN, seed=30 + 2 * layer + part) for part, _ in enumerate(CELLS[cell].state))
        for layer in range(layers)
    )
    zeros = random(ROWS, HIDDEN) * 0
    state = DecoderState(states, zeros, torch.zeros(ROWS, LONGEST, dtype=torch.float64))
    return random(STEPS, ROWS, INPUTS, seed=5).requires_grad_(), random(ROWS, LONGEST, HIDDEN).requires_grad_(), state


def plain_steps(decoder: Decoder, m: Tensor, vectors: Tensor, state: DecoderState) -> DecoderOutput:
    """All steps of a decoder, each differentiated automatically."""
    assert decoder.attention is not None
    memory, states = decoder.attention.memory(vectors, MASK), []
    generator, ones = torch.Generator().manual_seed(3), m.new_ones(STEPS, ROWS, HIDDEN)
    masks = [decoder.dropout(ones, generator) for _ in range(len(decoder.layers) - 1)]
    for t, m_t in enumerate(m):
        p = decoder.word_inputs(m_t)
        state = decoder.attention_step(
            p, state, memory, RowLayout(ROWS, 1), STEPWISE_PRODUCTS, [mask[t] for mask in masks]
        )
        states.append(state)
    return DecoderOutput(
        torch.stack([state.layers[-1][0] for state in states]),
        torch.stack([state.context for state in states]),
        torch.stack([state.attention for state in states]),
    )


def gathered_steps(decoder: Decoder, m: Tensor, vectors: Tensor, state: DecoderState) -> DecoderOutput:
    assert decoder.attention is not None
    output: DecoderOutput = decoder(m, state, decoder.attention.memory(vectors, MASK), torch.Generator().manual_seed(3))
    return output


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("attention", SCORES)
@pytest.mark.parametrize("layers", [1, 2])
def test_gradients_of_a_decoder_equal_those_of_its_steps(cell: str, attention: str, layers: int) -> None:
    results = []
    for run in (plain_steps, gathered_steps):
        decoder = create_decoder(cell, layers, attention)
        m, vectors, state = inputs_of(cell, layers)
        output = run(decoder, m, vectors, state)
        assert output.contexts is not None and output.attention is not None
        loss = (output.h * random(STEPS, ROWS, HIDDEN, seed=50)).sum() + output.attention.square().sum()
        loss = loss + (output.contexts * random(STEPS, ROWS, HIDDEN, seed=51)).sum()
        gradients = torch.autograd.grad(loss, [*decoder.parameters(), m, vectors])
        assert all(gradient.abs().max() > 0 for gradient in gradients)
        results.append([loss.detach(), *gradients])
    for first, other in zip(*results, strict=True):
        torch.testing.assert_close(first, other, rtol=1e-10, atol=1e-12)


def test_nothing_is_recorded_without_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = create_decoder("lstm", 1, "mlp")
    created: list[GatheredGradientProducts] = []

    def create(sizes: list[int], dtype: torch.dtype | None) -> GatheredGradientProducts:
        created.append(GatheredGradientProducts(sizes, dtype))
        return created[-1]

    monkeypatch.setattr("dragoman.nn.decoder.GatheredGradientProducts", create)
    with_gradients = gathered_steps(decoder, *inputs_of("lstm", 1))
    assert {"context", "query", "state 1", "context to state"} == set(created.pop()._inputs)
    with torch.no_grad():
        without = gathered_steps(decoder, *inputs_of("lstm", 1))
    assert not created
    for first, other in zip(with_gradients[:3], without[:3], strict=True):
        torch.testing.assert_close(first.detach(), other, rtol=1e-12, atol=1e-12)
