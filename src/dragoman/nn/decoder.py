"""The recurrent network that predicts the translation (tutorial, "Encoder-decoder Models" and "Calculating Attention
Scores"): a step that search takes word by word, and training over whole sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from dragoman.nn import recurrent as recurrence
from dragoman.nn.attention import Memory, Places, Score, attend, drawn, likeliest
from dragoman.nn.attention_priors import History, Prior, Seen
from dragoman.nn.cells import CELLS, CellState
from dragoman.nn.recurrent import Layer, unroll
from dragoman.nn.step_products import PLAIN, Gathering, Products

CONTEXT, STATE = "context to state", "state {}"  # names of products of a step


class Decoder(NamedTuple):
    """The parameters of a decoder. Without a score it does not attend to the source at all."""

    cell: str
    layers: tuple[Layer, ...]  # W_x of the first is what multiplies the word's vector
    score: Score | None = None
    W_c: Tensor | None = None  # and this multiplies the context  # (sums * H, D)
    attention: Mapping[str, Tensor] = {}  # the parameters of the score
    priors: tuple[tuple[Prior, Mapping[str, Tensor]], ...] = ()  # what is added to it, with their parameters
    hard: bool = False  # whether one word is looked at, rather than all by their weights


class DecoderRows(NamedTuple):
    """Where a decoder is, one row a hypothesis: h_t of each layer (and c_t of a cell that has it), and what it read."""

    layers: tuple[CellState, ...]
    context: Tensor  # c_t (rows, D)
    alpha: Tensor  # alpha_t (rows, longest source)
    history: tuple[Tensor, ...] | None = None  # what priors go by, if there are any: see `layers.priors`
    chosen: Tensor | None = None  # of hard attention: 1 at the word looked at, or alpha  # (rows, longest source)


def step(
    decoder: Decoder,
    p: Tensor,
    rows: DecoderRows,
    memory: Memory,
    places: Places,
    products: Products,
    masks: Sequence[Tensor] = (),
    chance: Generator | None = None,
) -> DecoderRows:
    """h_t = enc([embed(e_{t-1}); c_{t-1}], h_{t-1}), then alpha_t and c_t by it.

    # p: (rows, sums * H), W_x embed(e_{t-1}) + b of the first layer. In training, masks: dropout between layers, and
    # chance: by which hard attention draws a word; otherwise it takes the likeliest
    """
    assert decoder.score is not None, "it attends"
    assert decoder.W_c is not None, "it attends"
    aside, W_c = products.aside(CONTEXT, p, rows.context, decoder.W_c)
    p = torch.addmm(aside, rows.context, W_c.t())
    states: list[CellState] = []
    for number, (layer, state) in enumerate(zip(decoder.layers, rows.layers, strict=True), 1):
        if number > 1:
            h = states[-1][0] * masks[number - 2] if masks else states[-1][0]
            p = products.linear(f"up to {number}", h, layer.W_x) + layer.b
        states.append(_cell_step(decoder.cell, STATE.format(number), p, state, layer.W_h, products))
    h, history = states[-1][0], None if rows.history is None else History(*rows.history)
    bias = None if history is None else _believed(decoder, memory, h, rows.alpha, history, places)
    choose = None if not decoder.hard else likeliest if chance is None else drawn(chance)
    looked = attend(decoder.score, decoder.attention, memory, h, places, products, bias, choose)
    if history is not None:
        history = History(history.t + 1, history.coverage + looked.alpha)
    return DecoderRows(tuple(states), looked.context, looked.alpha, history, looked.chosen)


def _believed(decoder: Decoder, memory: Memory, h: Tensor, alpha: Tensor, history: History, places: Places) -> Tensor:
    """What all priors together add to the scores.  # (rows, longest)"""
    sizes = places.spread((memory.barred == 0).sum(dim=1)).to(h)  # (rows,)
    biases = []
    for (prior, parameters), own in zip(decoder.priors, memory.believed, strict=True):
        remembered = None if own is None else places.spread(own)
        biases.append(prior.bias(parameters, Seen(h, alpha, history, sizes, remembered)))
    return torch.stack(biases).sum(dim=0)


def _added(decoder: Decoder) -> dict[str, Tensor]:
    """The products that a step adds to the first layer's sums, by name."""
    assert decoder.W_c is not None, "it attends"
    added = {CONTEXT: decoder.W_c}
    return added | {STATE.format(1): decoder.layers[0].W_h} if CELLS[decoder.cell].all_from_h else added


def _cell_step(cell: str, name: str, p: Tensor, state: CellState, W_h: Tensor, products: Products) -> CellState:
    if CELLS[cell].all_from_h:
        p, W_h = products.aside(name, p, state[0], W_h)
    return CELLS[cell].step(p, state, W_h)


class Unrolled(NamedTuple):
    """What a decoder says of all words of some sentences."""

    h: Tensor  # (steps, rows, H) of the last layer
    contexts: Tensor | None  # (steps, rows, D)
    alphas: Tensor | None  # (steps, rows, longest source)
    chosen: Tensor | None = None  # of hard attention (steps, rows, longest source)


def unroll_attending(
    decoder: Decoder,
    m: Tensor,
    rows: DecoderRows,
    memory: Memory,
    masks: Sequence[Tensor] = (),
    chance: Generator | None = None,
) -> Unrolled:
    """All steps of sentences whose words are known, gradients of shared matrices gathered.  # m: (steps, rows, L_m)"""
    first = decoder.layers[0]
    p = torch.addmm(first.b, m.flatten(0, 1), first.W_x.t()).unflatten(0, m.shape[:2])  # (steps, rows, sums * H)
    places = Places(m.shape[1], 1, None)  # one row a sentence
    products: Products = Gathering(len(m)) if torch.is_grad_enabled() else PLAIN
    steps = []
    for t, p_t in enumerate(products.ahead(p, _added(decoder)).unbind()):
        rows = step(decoder, p_t, rows, memory, places, products, [layer[t] for layer in masks], chance)
        steps.append(rows)
        products.step()
    return Unrolled(
        torch.stack([rows.layers[-1][0] for rows in steps]),
        torch.stack([rows.context for rows in steps]),
        torch.stack([rows.alpha for rows in steps]),
        torch.stack([rows.chosen for rows in steps if rows.chosen is not None]) if decoder.hard else None,
    )


def unroll_alone(decoder: Decoder, m: Tensor, states: Sequence[CellState], masks: Sequence[Tensor] = ()) -> Unrolled:
    """The same without attention: layer after layer.  # m: (steps, rows, L_m)"""
    x = m
    for number, (layer, state) in enumerate(zip(decoder.layers, states, strict=True)):
        if number and masks:
            x = x * masks[number - 1]
        x, _ = unroll(decoder.cell, layer, x, state)
    return Unrolled(x, None, None)


def step_alone(decoder: Decoder, x: Tensor, states: Sequence[CellState]) -> tuple[CellState, ...]:
    """One word on, without attention.  # x: (rows, L_m)"""
    after: list[CellState] = []
    for layer, state in zip(decoder.layers, states, strict=True):
        after.append(recurrence.step(decoder.cell, layer, x, state))
        x = after[-1][0]
    return tuple(after)
