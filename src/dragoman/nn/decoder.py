"""The recurrent network that predicts the translation (tutorial, "Encoder-decoder Models" and "Calculating Attention
Scores"): one step for search, and all steps of known sentences for training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from dragoman.nn.activations import tanh
from dragoman.nn.attention import Attention, Memory, RowLayout
from dragoman.nn.attention_priors import AttentionHistory
from dragoman.nn.cells import CELLS, CellState
from dragoman.nn.layers import Dropout, TypedModuleDict, TypedModuleList, empty_linear, reset_linear, uniform_
from dragoman.nn.recurrent import RecurrentLayer
from dragoman.nn.step_products import STEPWISE_PRODUCTS, GatheredGradientProducts, StepProducts, product_dtype

CONTEXT = "context to state"  # the name of a product of a step


class DecoderState(NamedTuple):
    """The state of a decoder, one row per hypothesis."""

    layers: tuple[CellState, ...]  # of each layer
    context: Tensor  # c_t (rows, D)
    attention: Tensor  # alpha_t (rows, longest source)
    history: AttentionHistory | None = None  # if there are attention priors
    choice: Tensor | None = None  # hard attention: see `AttentionOutput`  # (rows, longest source)


class DecoderOutput(NamedTuple):
    """Outputs of a decoder for all words of some sentences."""

    h: Tensor  # (steps, rows, H) of the last layer
    contexts: Tensor | None = None  # (steps, rows, D)
    attention: Tensor | None = None  # (steps, rows, longest source)
    choices: Tensor | None = None  # hard attention (steps, rows, longest source)


class Decoder(nn.Module):
    """h_t = RNN([embed(e_{t-1}); c_{t-1}], h_{t-1}), and alpha_t and c_t from h_t."""

    def __init__(
        self,
        cell: str,  # one of `dragoman.nn.cells.CELLS`
        num_layers: int,
        input_size: int,  # L_m
        hidden_size: int,  # H
        attention: Attention | None = None,
        context_size: int = 0,  # D
        *,
        dropout: float = 0.0,  # between layers
    ):
        super().__init__()
        self.hidden_size = hidden_size
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.layers = TypedModuleList(RecurrentLayer(cell, size, hidden_size) for size in sizes)
        self.attention = attention
        self.context_input: nn.Linear | None = None  # W_c
        if attention is not None:
            gates = self.layers[0].input.out_features
            self.context_input = empty_linear(context_size, gates, bias=False)
        self.dropout = Dropout(dropout)

    def reset_parameters(self, generator: Generator) -> None:
        for layer in self.layers:
            layer.reset_parameters(generator)
        if self.context_input is not None:
            uniform_(self.context_input.weight, self.hidden_size**-0.5, generator)
        if self.attention is not None:
            self.attention.reset_parameters(generator)

    def word_inputs(self, m: Tensor) -> Tensor:
        """W_x embed(e_{t-1}) + b of the first layer.  # (..., L_m) -> (..., gates * H)"""
        return self.layers[0].input(m)

    def initial_state(self, layers: tuple[CellState, ...], vectors: Tensor) -> DecoderState:
        """Return the state before the first word; c_0 = 0.  # vectors: (sentences, longest, D)"""
        (sentences, longest, D), zeros, history = vectors.shape, vectors.new_zeros, None
        if self.attention is not None and len(self.attention.priors):
            history = AttentionHistory(zeros(sentences), zeros(sentences, longest))
        return DecoderState(layers, zeros(sentences, D), zeros(sentences, longest), history)

    def attention_step(
        self,
        p: Tensor,
        state: DecoderState,
        memory: Memory,
        layout: RowLayout,
        products: StepProducts = STEPWISE_PRODUCTS,
        masks: Sequence[Tensor] = (),
        generator: Generator | None = None,
    ) -> DecoderState:
        """Return the state after one more word.

        # p: (rows, gates * H), `word_inputs` of the word; masks: dropout between layers, in training
        """
        assert self.attention is not None and self.context_input is not None
        p = products.add(CONTEXT, self.context_input.weight, p, state.context)
        states: list[CellState] = []
        for number, (layer, previous) in enumerate(zip(self.layers, state.layers, strict=True), 1):
            if number > 1:
                h = states[-1][0] * masks[number - 2] if masks else states[-1][0]
                p = products.linear(f"input {number}", layer.input.weight, h) + layer.input.bias
            states.append(layer.step(p, previous, products, f"state {number}"))
        h, history = states[-1][0], state.history
        attended = self.attention(memory, h, layout, state.attention, history, products, generator)
        if history is not None:
            history = AttentionHistory(history.t + 1, history.coverage + attended.weights)
        return DecoderState(tuple(states), attended.context, attended.weights, history, attended.choice)

    def forward(
        self, m: Tensor, state: DecoderState, memory: Memory | None, generator: Generator | None = None
    ) -> DecoderOutput:
        """Read all words of known sentences, one row per sentence.  # m: (steps, rows, L_m)"""
        masks: list[Tensor] = []  # dropout between layers, for all steps  # (steps, rows, H) each
        if self.training and self.dropout.rate:
            ones = m.new_ones(*m.shape[:2], self.hidden_size)
            masks = [self.dropout(ones, generator) for _ in range(len(self.layers) - 1)]
        if memory is None:
            for number, (layer, layer_state) in enumerate(zip(self.layers, state.layers, strict=True)):
                m, _ = layer(m * masks[number - 1] if number and masks else m, layer_state)  # (steps, rows, H)
            return DecoderOutput(m)
        p, dtype = self.word_inputs(m), product_dtype(m)  # (steps, rows, gates * H)
        with torch.autocast(m.device.type, enabled=False):
            return self._attend_to_each(p, state, memory, masks, generator, dtype)

    def _attend_to_each(
        self,
        p: Tensor,
        state: DecoderState,
        memory: Memory,
        masks: Sequence[Tensor],
        generator: Generator | None,
        dtype: torch.dtype | None,
    ) -> DecoderOutput:
        """Read all words of known sentences with attention.

        # p: (steps, rows, gates * H); dtype: of the inputs of products with matrices, None for that of the parameters
        """
        assert self.context_input is not None
        steps, rows = p.shape[:2]
        layout, full = RowLayout(rows, 1), self.context_input.weight.dtype
        products: StepProducts = STEPWISE_PRODUCTS
        if torch.is_grad_enabled():
            products = GatheredGradientProducts([rows] * steps, dtype)
        added = {CONTEXT: self.context_input.weight}  # matrices whose products are added to all sums of the first layer
        if len(recurrent := self.layers[0].recurrent_matrices("state 1")) == 1:
            added |= recurrent
        layers = tuple(tuple(part.to(full) for part in layer) for layer in state.layers)
        state, states = state._replace(layers=layers), []
        for t, p_t in enumerate(products.prepare(p.to(full).flatten(0, 1), added).split(rows)):  # (rows, gates * H)
            step_masks = [mask[t] for mask in masks]
            state = self.attention_step(p_t, state, memory, layout, products, step_masks, generator)
            states.append(state)
            products.next_step()
        choices = [state.choice for state in states if state.choice is not None]
        return DecoderOutput(
            torch.stack([state.layers[-1][0] for state in states]),
            torch.stack([state.context for state in states]),
            torch.stack([state.attention for state in states]),
            torch.stack(choices) if choices else None,
        )

    def plain_step(
        self, p: Tensor, states: Sequence[CellState], products: StepProducts = STEPWISE_PRODUCTS
    ) -> tuple[CellState, ...]:
        """Return the states of a decoder without attention after one more word.

        # p: (rows, gates * H), `word_inputs` of the word
        """
        after: list[CellState] = []
        for number, (layer, state) in enumerate(zip(self.layers, states, strict=True), 1):
            if number > 1:
                p = products.linear(f"input {number}", layer.input.weight, after[-1][0]) + layer.input.bias
            after.append(layer.step(p, state, products, f"state {number}"))
        return tuple(after)


class Bridge(nn.Module):
    """The initial state of the decoder from the final states of the encoder: h_0 = tanh(W h + b), or h itself.

    The last layers correspond, and so on downwards. If the encoder has fewer layers, its lowest is used several times.
    An encoder without c uses h for both.
    """

    def __init__(
        self,
        cell: str,  # of the decoder, as are the layers
        num_layers: int,
        input_size: int,  # of the encoder's states
        hidden_size: int,  # of the decoder's states
        *,
        copy: bool = False,  # copy the states; they must have the same length
    ):
        super().__init__()
        self.names, self.num_layers, self.copy = CELLS[cell].state, num_layers, copy
        self.layers = TypedModuleList(
            TypedModuleDict({name: empty_linear(input_size, hidden_size) for name in self.names})
            for _ in range(0 if copy else num_layers)
        )

    def reset_parameters(self, generator: Generator) -> None:
        for layer in self.layers:
            for linear in layer.values():
                reset_linear(linear, generator)

    def forward(self, final_states: Sequence[CellState]) -> tuple[CellState, ...]:
        """# (sentences, inputs) each -> (sentences, H) each"""
        below = len(final_states) - self.num_layers
        states = []
        for number in range(self.num_layers):
            final = final_states[max(0, below + number)]
            parts = {name: final[min(place, len(final) - 1)] for place, name in enumerate(self.names)}
            if not self.copy:
                parts = {name: tanh(self.layers[number][name](part)) for name, part in parts.items()}
            states.append(tuple(parts.values()))
        return tuple(states)
