"""Recurrent layers: a cell folded over time, or a fused kernel of torch where there is one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Self

import torch
from torch import Generator, Tensor, nn

from dragoman.nn.cells import CELLS, CellState
from dragoman.nn.int8 import Int8Tensor, to_float
from dragoman.nn.layers import Dropout, TypedModuleList, empty_linear, reset_gate_biases, uniform_
from dragoman.nn.step_products import STEPWISE_PRODUCTS, GatheredGradientProducts, StepProducts, product_dtype

FUSED = ("lstm", "rnn")  # cells whose equations are those of torch.lstm and torch.rnn_tanh
MIN_STEPS_AT_ONCE = 2  # mean number of steps with the same rows, below which rows are read as a packed sequence
STATE = "state"  # the name of the recurrent products of a step


class RecurrentLayer(nn.Module):
    """h_t = RNN(x_t, h_{t-1}) for one layer and one direction."""

    def __init__(
        self,
        cell: str,  # one of `CELLS`
        input_size: int,
        hidden_size: int,  # H, length of the state's vectors
        *,
        learned_state: bool = False,  # learn the initial state; otherwise it is zero
        weight_dropout: float = 0.0,  # of the recurrent weights
    ):
        super().__init__()
        self.cell_name, self.cell, self.hidden_size = cell, CELLS[cell], hidden_size
        gates = len(self.cell.gates) * hidden_size
        self.input = empty_linear(input_size, gates)  # W_x and b
        self.recurrent = empty_linear(hidden_size, gates, bias=False)  # W_h
        names = self.cell.state if learned_state else ()
        self.initial = nn.ParameterDict({name: torch.zeros(hidden_size) for name in names})
        self.weight_dropout = Dropout(weight_dropout)

    def reset_parameters(self, generator: Generator) -> None:
        """Draw matrices between -1/sqrt(H) and 1/sqrt(H), as usual for recurrent networks."""
        for layer in (self.input, self.recurrent):
            uniform_(layer.weight, 1 / math.sqrt(self.hidden_size), generator)
        reset_gate_biases(self.input.bias, self.cell.gates, self.cell.initial_biases)
        for vector in self.initial.values():
            nn.init.zeros_(vector)

    def initial_state(self, rows: int) -> CellState:
        """Return the state before the first word.  # (rows, H) each"""
        if not self.initial:
            return tuple(self.input.weight.new_zeros(rows, self.hidden_size) for _ in self.cell.state)
        return tuple(self.initial[name].expand(rows, -1) for name in self.cell.state)

    def step(
        self, p: Tensor, state: CellState, products: StepProducts = STEPWISE_PRODUCTS, name: str = STATE
    ) -> CellState:
        """Return the state after one more word, given p = W_x x + b.  # p: (rows, gates * H)"""
        matrices = self.recurrent_matrices(name)
        return self.cell.step(p, state, [partial(products.add, part, W) for part, W in matrices.items()])

    def recurrent_matrices(self, name: str = STATE, W_h: Tensor | None = None) -> dict[str, Tensor]:
        """Return one part of W_h for each product of the cell's step, by the names of the products."""
        W_h = self.recurrent.weight if W_h is None else W_h
        if len(self.cell.products) == 1:
            return {name: W_h}
        parts = W_h.split([gates * self.hidden_size for gates in self.cell.products])
        return {f"{name}.{number}": part for number, part in enumerate(parts)}

    def forward(self, x: Tensor, state: CellState, generator: Generator | None = None) -> tuple[Tensor, CellState]:
        """Read rows of equal length.

        # x: (steps, rows, inputs) -> h of all steps (steps, rows, H), state after the last step
        """
        return self._read(x, state, self.weight_dropout(self.recurrent.weight, generator))

    def _read(self, x: Tensor, state: CellState, W_h: Tensor) -> tuple[Tensor, CellState]:
        is_quantized = isinstance(W_h, Int8Tensor)  # whose products are those of a step
        is_fused = self.cell_name in FUSED and product_dtype(x) is None and not is_quantized
        return self._fused(x, state, W_h) if is_fused else self.fold(x, state, W_h)

    def fold(self, x: Tensor, state: CellState, W_h: Tensor | None = None) -> tuple[Tensor, CellState]:
        """Read rows of equal length step by step: the definition of `forward`."""
        steps, rows = x.shape[:2]
        h, state = self._fold(x.flatten(0, 1), [rows] * steps, state, W_h)
        return h.unflatten(0, (steps, rows)), state

    def _fold(
        self, x: Tensor, sizes: Sequence[int], state: CellState, W_h: Tensor | None = None
    ) -> tuple[Tensor, CellState]:
        """Read rows step by step. The numbers of rows of the steps are `sizes`; later steps have the first rows.

        # x: (tokens, inputs) -> h (tokens, H), state of each row after its last token
        """
        p, dtype, full = self.input(x), product_dtype(x), self.input.weight.dtype  # (tokens, gates * H)
        state, ended = tuple(part.to(full) for part in state), list[CellState]()  # ended: the shortest rows first
        h = []
        with torch.autocast(x.device.type, enabled=False):
            products: StepProducts = STEPWISE_PRODUCTS
            if torch.is_grad_enabled():
                products = GatheredGradientProducts(sizes, dtype)
            matrices = self.recurrent_matrices(W_h=W_h)
            if len(matrices) == 1:
                p = products.prepare(p.to(full), matrices)
            add = [partial(products.add, part, W) for part, W in matrices.items()]
            for p_t in p.to(full).split(sizes):  # (rows, gates * H)
                if len(p_t) < len(state[0]):
                    ended.append(tuple(part[len(p_t) :] for part in state))
                    state = tuple(part[: len(p_t)] for part in state)
                state = self.cell.step(p_t, state, add)
                h.append(state[0])
                products.next_step()
            parts = zip(state, *reversed(ended), strict=True)
            return torch.cat(h), tuple(torch.cat(rows) for rows in parts)

    def forward_packed(self, x: Tensor, batch_sizes: Tensor, state: CellState) -> tuple[Tensor, CellState]:
        """Read rows of different lengths, given in the order of a `PackedOrder`, without weight dropout.

        Steps with the same rows are read at once, because torch's fastest kernels need rows of equal length. Where the
        rows change at almost every step, its kernel for packed sequences is faster.

        # x: (tokens, inputs) -> h (tokens, H), state of each row after its last token
        """
        W_h = self.recurrent.weight
        if self.cell_name not in FUSED or product_dtype(x) is not None:
            return self._fold(x, batch_sizes.tolist(), state, W_h)
        sizes, steps = torch.unique_consecutive(batch_sizes, return_counts=True)
        if len(batch_sizes) < MIN_STEPS_AT_ONCE * len(sizes):
            return self._fused(x, state, W_h, batch_sizes)
        outputs: list[Tensor] = []
        ended: list[CellState] = []  # states of rows that have ended, the shortest rows first
        for rows, tokens in zip(sizes.tolist(), x.split((sizes * steps).tolist()), strict=True):
            if rows < len(state[0]):
                ended.append(tuple(part[rows:] for part in state))
                state = tuple(part[:rows] for part in state)
            h, state = self._fused(tokens.unflatten(0, (-1, rows)), state, W_h)
            outputs.append(h.flatten(0, 1))
        parts = zip(state, *reversed(ended), strict=True)
        return torch.cat(outputs), tuple(torch.cat(rows) for rows in parts)

    def _fused(
        self, x: Tensor, state: CellState, W_h: Tensor, batch_sizes: Tensor | None = None
    ) -> tuple[Tensor, CellState]:
        """Run torch's kernel, whose equations are those of the cell, in the precision of the weights."""
        W_x, W_h, b = to_float(self.input.weight), to_float(W_h), self.input.bias
        weights = [W_x, W_h, b, torch.zeros_like(b)]  # torch adds a second bias
        options = (weights, True, 1, 0.0, torch.is_grad_enabled(), False)  # has biases, one layer, no dropout
        first = tuple(part[None].to(W_x.dtype).contiguous() for part in state)  # CUDA requires contiguous states
        hidden = first if self.cell_name == "lstm" else first[0]
        kernel: Callable[..., tuple[Tensor, ...]] = torch.lstm if self.cell_name == "lstm" else torch.rnn_tanh
        with torch.autocast(x.device.type, enabled=False):
            if batch_sizes is None:
                h, *last = kernel(x.to(W_x.dtype), hidden, *options, False)
            else:
                h, *last = kernel(x.to(W_x.dtype), batch_sizes, hidden, *options)
        return h, tuple(part[0] for part in last)

    def extra_repr(self) -> str:
        return self.cell_name


class PackedOrder(NamedTuple):
    """The order of a packed sequence: rows from the longest to the shortest, all first tokens, all second ones, ...

    See torch.nn.utils.rnn.PackedSequence. Kernels compute nothing for padding in this order.
    """

    flat_indices: Tensor  # (tokens,) indices of the tokens in the flat padded batch (longest * rows)
    reversed_indices: Tensor  # (tokens,) the same where each row is read from its last token to its first
    batch_sizes: Tensor  # (longest,) on the CPU: rows that have a token at each step
    restored: Tensor  # (rows,) place of each row in the sorted order

    @classmethod
    def of(cls, lengths: Tensor, device: torch.device) -> Self:
        """Return the order of rows of these lengths.  # lengths: (rows,)"""
        order = torch.argsort(lengths, descending=True, stable=True)
        steps = torch.arange(int(lengths.max()))
        step, row = torch.nonzero(steps[:, None] < lengths[order], as_tuple=True)  # (tokens,) each
        row, rows = order[row], len(lengths)
        flat_indices, reversed_indices = step * rows + row, (lengths[row] - 1 - step) * rows + row
        batch_sizes = (steps[:, None] < lengths).sum(dim=1)
        restored = torch.argsort(order)
        return cls(flat_indices.to(device), reversed_indices.to(device), batch_sizes, restored.to(device))

    def run(self, layer: RecurrentLayer, x: Tensor, *, reverse: bool = False) -> tuple[Tensor, CellState]:
        """Read padded rows with a layer.

        # x: (longest, rows, inputs) -> h (longest, rows, H), zero at padding; state of each row after its last token
        """
        flat_indices = self.reversed_indices if reverse else self.flat_indices
        tokens = x.flatten(0, 1).index_select(0, flat_indices)
        h, last = layer.forward_packed(tokens, self.batch_sizes, layer.initial_state(x.shape[1]))
        flat = h.new_zeros(len(x) * x.shape[1], layer.hidden_size).index_copy(0, flat_indices, h)
        return flat.unflatten(0, x.shape[:2]), tuple(part.index_select(0, self.restored) for part in last)


LayerStates = tuple[CellState, ...]  # of each layer, from the first to the last


class RecurrentStack(nn.Module):
    """Recurrent layers on top of each other; see also `RecurrentLayer`."""

    def __init__(
        self,
        cell: str,
        num_layers: int,
        input_size: int,
        hidden_size: int,
        *,
        residual: bool = False,  # add the input of each layer to its output
        learned_state: bool = False,
        dropout: float = 0.0,  # of the output of each layer
        variational: bool = False,  # drop the same elements at all steps
        weight_dropout: float = 0.0,
    ):
        super().__init__()
        self.residual = residual
        create = partial(RecurrentLayer, learned_state=learned_state, weight_dropout=weight_dropout)
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.layers = TypedModuleList(create(cell, size, hidden_size) for size in sizes)
        self.dropout = Dropout(dropout, shared_dim=0 if variational else None)

    def reset_parameters(self, generator: Generator) -> None:
        for layer in self.layers:
            layer.reset_parameters(generator)

    def initial_states(self, rows: int) -> LayerStates:
        return tuple(layer.initial_state(rows) for layer in self.layers)

    def forward(self, x: Tensor, states: LayerStates, generator: Generator | None = None) -> tuple[Tensor, LayerStates]:
        """Read rows of equal length.

        # x: (steps, rows, inputs) -> output of the last layer (steps, rows, H), states after the last step
        """
        after: list[CellState] = []
        for layer, state in zip(self.layers, states, strict=True):
            h, state = layer(x, state, generator)
            after.append(state)
            x = self.dropout(h + x if self.residual else h, generator)
        return x, tuple(after)

    def step(self, x: Tensor, states: LayerStates) -> tuple[Tensor, LayerStates]:
        """Read one word, without dropout.  # x: (rows, inputs) -> (rows, H)"""
        after: list[CellState] = []
        for layer, state in zip(self.layers, states, strict=True):
            after.append(layer.step(layer.input(x), state))
            x = after[-1][0] + x if self.residual else after[-1][0]
        return x, tuple(after)
