"""Products of shared matrices: gathered gradients are those that automatic differentiation adds up by itself."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dragoman.nn.attention import SCORES, Places, remember
from dragoman.nn.cells import CELLS
from dragoman.nn.decoder import Decoder, DecoderRows, Unrolled, step, unroll_attending
from dragoman.nn.recurrent import Layer
from dragoman.nn.step_products import PLAIN, Gathering, Products

STEPS, ROWS, LONGEST = 4, 3, 5
INPUTS, HIDDEN = 2, 4  # the source's vectors are as long as the state, for dot attention


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# -- single products ---------------------------------------------------------------------------------------------------


def by_aside(products: Products, x: Tensor, W: Tensor) -> Tensor:
    p, W = products.aside("sum", torch.ones(len(x), len(W), dtype=x.dtype), x, W)
    return p + x @ W.t()


def by_linear(products: Products, x: Tensor, W: Tensor) -> Tensor:
    return products.linear("product", x, W)


def by_sentence(products: Products, x: Tensor, W: Tensor) -> Tensor:
    M = W.t().reshape(1, *W.t().shape) * torch.arange(1.0, len(x) + 1, dtype=x.dtype)[:, None, None]
    return products.by_sentence("context", x[:, None], M)[:, 0]


@pytest.mark.parametrize("product", [by_aside, by_linear, by_sentence])
@pytest.mark.parametrize("steps", [1, STEPS])
def test_values_and_gradients_are_the_plain_ones(product, steps: int) -> None:  # type: ignore[no-untyped-def]
    """x of a step depends on the step before, so a gradient must find its way back through all of them."""
    found = []
    for products in (PLAIN, Gathering(steps)):
        x = random(ROWS, HIDDEN, seed=1).requires_grad_()
        W = random(HIDDEN, HIDDEN, seed=2).requires_grad_()
        y, seen = x, []
        for _ in range(steps):
            y = product(products, y, W).tanh()
            seen.append(y)
            products.step()
        loss = (torch.stack(seen) * random(steps, ROWS, HIDDEN, seed=3)).sum()
        found.append([loss.detach(), *torch.autograd.grad(loss, [x, W])])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_products_of_several_names_are_kept_apart() -> None:
    x, W, V = random(ROWS, HIDDEN, seed=1), *(random(HIDDEN, HIDDEN, seed=s).requires_grad_() for s in (2, 3))
    found = []
    for products in (PLAIN, Gathering(2)):
        total = torch.zeros((), dtype=torch.float64)
        for t in range(2):
            y = products.linear("first", x + t, W).tanh()
            total = total + products.linear("second", y, V).square().sum()
            products.step()
        found.append(torch.autograd.grad(total, [W, V]))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("named", [(), ("one",), ("one", "two")])
def test_what_all_steps_begin_with_gathers_for_what_is_added(named: tuple[str, ...]) -> None:
    """One sum, two products: each may be gathered past what was computed ahead, or past a zero of its own."""
    found = []
    for products in (PLAIN, Gathering(STEPS)):
        p, W, V = (
            random(*shape, seed=s).requires_grad_() for s, shape in enumerate([(STEPS, ROWS, 4), (4, 4), (4, 4)])
        )
        matrices = {"one": W, "two": V}
        y, seen = random(ROWS, 4, seed=4), []
        for p_t in products.ahead(p, {name: matrices[name] for name in named}).unbind():
            for name, matrix in matrices.items():
                p_t, now = products.aside(name, p_t, y, matrix)
                p_t = p_t + y @ now.t()
            y = p_t.tanh()
            seen.append(y)
            products.step()
        loss = (torch.stack(seen) * random(STEPS, ROWS, 4, seed=5)).sum()
        found.append([loss.detach(), *torch.autograd.grad(loss, [p, W, V])])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


# -- the whole decoder -------------------------------------------------------------------------------------------------


def parameters(cell: str, layers: int, attention: str) -> dict[str, Tensor]:
    sums = len(CELLS[cell].sums) * HIDDEN
    found = {"W_c": random(sums, HIDDEN, seed=4), "m": random(STEPS, ROWS, INPUTS, seed=5)}
    for number in range(layers):
        shapes = {"W_x": (sums, HIDDEN if number else INPUTS), "W_h": (sums, HIDDEN), "b": (sums,)}
        found |= {f"{name}{number}": random(*shape, seed=10 + number) for name, shape in shapes.items()}
        for place, _ in enumerate(CELLS[cell].state):
            found[f"state{number}{place}"] = random(ROWS, HIDDEN, seed=30 + 2 * number + place)
    first = SCORES[attention].first(HIDDEN, HIDDEN, 3, torch.Generator().manual_seed(6), torch.float64)
    found |= {f"attention.{name}": tensor for name, tensor in first.items()}
    return {name: tensor.requires_grad_() for name, tensor in {**found, "H": random(ROWS, LONGEST, HIDDEN)}.items()}


def unrolled_plainly(decoder: Decoder, m: Tensor, rows: DecoderRows, memory, masks) -> Unrolled:  # type: ignore[no-untyped-def]
    """The same steps, each left to automatic differentiation."""
    first, places, seen = decoder.layers[0], Places(ROWS, 1, None), []
    for t, m_t in enumerate(m):
        p = m_t @ first.W_x.t() + first.b
        rows = step(decoder, p, rows, memory, places, PLAIN, [mask[t] for mask in masks])
        seen.append(rows)
    return Unrolled(
        torch.stack([rows.layers[-1][0] for rows in seen]),
        torch.stack([rows.context for rows in seen]),
        torch.stack([rows.alpha for rows in seen]),
    )


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("attention", SCORES)
@pytest.mark.parametrize("layers", [1, 2])
def test_a_decoders_gradients_are_those_of_its_steps(cell: str, attention: str, layers: int) -> None:
    mask = torch.arange(LONGEST) < torch.tensor([5, 2, 1])[:, None]
    masks = [random(STEPS, ROWS, HIDDEN, seed=40)] * (layers - 1)  # as dropout's are, but for their values
    found = []
    for way in (unrolled_plainly, unroll_attending):
        own = parameters(cell, layers, attention)
        score = SCORES[attention]
        named = {name.removeprefix("attention."): one for name, one in own.items() if name.startswith("attention.")}
        made = [Layer(*(own[f"{name}{number}"] for name in Layer._fields)) for number in range(layers)]
        decoder = Decoder(cell, tuple(made), score, own["W_c"], named)
        states = tuple(
            tuple(own[f"state{number}{place}"] for place, _ in enumerate(CELLS[cell].state)) for number in range(layers)
        )
        zeros = torch.zeros(ROWS, HIDDEN, dtype=torch.float64)
        rows = DecoderRows(states, zeros, torch.zeros(ROWS, LONGEST, dtype=torch.float64))
        result = way(decoder, own["m"], rows, remember(score, named, own["H"], mask), masks)
        assert result.contexts is not None and result.alphas is not None
        loss = (result.h * random(STEPS, ROWS, HIDDEN, seed=50)).sum()
        loss = loss + (result.contexts * random(STEPS, ROWS, HIDDEN, seed=51)).sum() + result.alphas.square().sum()
        gradients = torch.autograd.grad(loss, list(own.values()))
        found.append([loss.detach(), *gradients])
        assert all(gradient.abs().max() > 0 for gradient in gradients), "every parameter has a say"
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


# -- what only training needs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("product", [by_aside, by_linear, by_sentence])
def test_gathered_gradients_have_no_gradients_themselves(product) -> None:  # type: ignore[no-untyped-def]
    """Better refused than wrong: what the steps read was noted without its own gradients."""
    x, W = random(ROWS, HIDDEN, seed=1).requires_grad_(), random(HIDDEN, HIDDEN, seed=2).requires_grad_()
    loss = product(Gathering(1), x, W).square().sum()
    (gradient,) = torch.autograd.grad(loss, [W], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_the_perceptron_score_has_no_second_gradients() -> None:
    keys, q, w = random(ROWS, LONGEST, 3), random(ROWS, 1, 3, seed=1), random(3, seed=2).requires_grad_()
    scores = SCORES["mlp"].score({"w_a2": w}, keys, q, PLAIN)
    (gradient,) = torch.autograd.grad(scores.square().sum(), [w], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_nothing_is_noted_where_there_are_no_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    own = parameters("lstm", 1, "mlp")
    named = {name.removeprefix("attention."): one for name, one in own.items() if name.startswith("attention.")}
    layer = Layer(*(own[f"{name}0"] for name in Layer._fields))
    decoder = Decoder("lstm", (layer,), SCORES["mlp"], own["W_c"], named)
    zeros = torch.zeros(ROWS, HIDDEN, dtype=torch.float64)
    rows = DecoderRows(((own["state00"], own["state01"]),), zeros, torch.zeros(ROWS, LONGEST, dtype=torch.float64))
    mask = torch.ones(ROWS, LONGEST, dtype=torch.bool)
    noted: list[str] = []
    original = Gathering._note
    monkeypatch.setattr(Gathering, "_note", lambda self, name, x: noted.append(name) or original(self, name, x))
    learned = unroll_attending(decoder, own["m"], rows, remember(SCORES["mlp"], named, own["H"], mask))
    assert {"context", "query", "state 1", "context to state"} == set(noted)
    noted.clear()
    with torch.no_grad():
        judged = unroll_attending(decoder, own["m"], rows, remember(SCORES["mlp"], named, own["H"], mask))
    assert noted == []
    for one, other in zip(learned[:3], judged[:3], strict=True):
        torch.testing.assert_close(one.detach(), other, rtol=1e-12, atol=1e-12)
