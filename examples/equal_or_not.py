"""Equal or not: the smallest function that needs a hidden layer (tutorial, "A Brief Overview of Neural Networks").

    python examples/equal_or_not.py [--seeds 20] [--picture hidden-space.svg]

x is one of the four points of {-1, 1}^2, and y is to be 1 if x_1 and x_2 are equal, and -1 if not. A linear model, and
networks of one hidden layer with step, tanh and ReLU, are trained by the loop that trains every model here.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, product
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from dragoman import fit
from dragoman.nn.init import glorot_, uniform_
from dragoman.nn.mlp import ACTIVATIONS
from dragoman.report.networks import HiddenLayerView, draw_hidden_spaces
from dragoman.report.tables import format_table

SIZES = (2, 20)  # hidden units; the tutorial's program has 20
SOLVED = 0.01  # a mean squared error under this counts as having the function right
HUGE = 100.0  # one above this, as not having settled at all
BIAS_REACH = 1.0  # biases start between minus this and this
# All four points at each step, and steps that become smaller to the end.
ADAM: dict[str, Any] = {
    "optimizer": "adam",
    "learning_rate": 0.1,
    "schedule": "linear",
    "batch_size": 0,
    "max_epochs": 200,
}
# As the tutorial's program does: plain gradient descent, one point at a time, 20 times over all four.
PLAIN: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 0.1, "batch_size": 1, "max_epochs": 20}


@dataclass(frozen=True, eq=False)
class Points:
    """Training examples: points x and the right y."""

    x: Tensor  # (points, 2)
    y: Tensor  # (points,)

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """One prediction per point."""
        return np.ones(len(self), np.int64)

    def select(self, examples: NDArray[np.integer]) -> Self:
        chosen = torch.from_numpy(examples)
        return type(self)(self.x[chosen], self.y[chosen])


POINTS = Points(
    torch.tensor([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]), torch.tensor([1.0, -1.0, -1.0, 1.0])
)


class Linear(nn.Module):
    """y = W x + b."""

    def __init__(self, seed: int):
        super().__init__()
        self.linear = create_linear(2, 1, Generator().manual_seed(seed))

    def forward(self, x: Tensor) -> Tensor:
        """# (points, 2) -> (points,)"""
        return self.linear(x)[:, 0]


class Network(nn.Module):
    """h = step(W_xh x + b_h), y = w_hy h + b_y, or with tanh or ReLU (eqs. nnlm:stepmlp, nnlm:forward)."""

    def __init__(self, activation: str, size: int, seed: int):
        super().__init__()
        generator = Generator().manual_seed(seed)
        self.activation = ACTIVATIONS[activation]
        self.hidden_layer = create_linear(2, size, generator)
        self.output_layer = create_linear(size, 1, generator)

    def hidden(self, x: Tensor) -> Tensor:
        """# (points, 2) -> (points, hidden)"""
        return self.activation(self.hidden_layer(x))

    def output(self, h: Tensor) -> Tensor:
        """# (points, hidden) -> (points,)"""
        return self.output_layer(h)[:, 0]

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.hidden(x))


def create_linear(inputs: int, outputs: int, generator: Generator) -> nn.Linear:
    """Return a linear layer with a Glorot matrix and random biases."""
    layer = nn.Linear(inputs, outputs)
    glorot_(layer.weight, generator)
    uniform_(layer.bias, BIAS_REACH, generator)
    return layer


Model = Linear | Network


def squared_error(model: Model, points: Points, generator: Generator | None = None) -> Tensor:
    """l = (y* - y)^2 of every point.  # (points,)"""
    return (points.y - model(points.x)) ** 2


def by_hand() -> Network:
    """The tutorial's solution: one unit is 1 at (1, 1) only, the other at (-1, -1) only, and y = h_1 + h_2 + 1."""
    network = Network("step", 2, seed=0)
    with torch.no_grad():
        network.hidden_layer.weight.copy_(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]))
        network.hidden_layer.bias.copy_(torch.tensor([-1.0, -1.0]))
        network.output_layer.weight.copy_(torch.tensor([[1.0, 1.0]]))
        network.output_layer.bias.copy_(torch.tensor([1.0]))
    return network


def train(model: Model, seed: int, training: Mapping[str, Any] = ADAM) -> float:
    """Train a model in place; its mean squared error afterwards."""
    fit(model, POINTS, objective=squared_error, seed=seed, threads=1, **training)
    return error_of(model)


def error_of(model: Model) -> float:
    with torch.no_grad():
        return float(squared_error(model, POINTS).mean())


# -- what comes of it ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What came of training one kind of model from several seeds."""

    name: str
    size: int | None  # hidden units
    errors: Sequence[float]  # mean squared error, by seed

    def cells(self) -> list[object]:
        failed = sorted(error for error in self.errors if error >= SOLVED)
        ends = Counter(f"{error:.2f}" if error < HUGE else "diverged" for error in failed)
        solved = f"{len(self.errors) - len(failed)} of {len(self.errors)}"
        return [self.name, self.size, solved, ", ".join(f"{end} ({times})" for end, times in ends.items()) or None]


def rows(seeds: Sequence[int]) -> Iterator[Row]:
    """The table, line by line."""
    yield Row("linear", None, [train(Linear(seed), seed) for seed in seeds])
    yield Row("step, weights by hand", 2, [error_of(by_hand())])
    for activation, size in product(ACTIVATIONS, SIZES):
        yield Row(activation, size, [train(Network(activation, size, seed), seed) for seed in seeds])
    plain = [train(Network("tanh", SIZES[-1], seed), seed, PLAIN) for seed in seeds]
    yield Row("tanh, 20 epochs of SGD", SIZES[-1], plain)


def first_solved(activation: str) -> tuple[Network, int]:
    """The first seed whose network of two hidden units learns the function, and the network."""
    for seed in count(1):
        network = Network(activation, 2, seed)
        if train(network, seed) < SOLVED:
            break
    return network, seed


def view(network: Network, name: str) -> HiddenLayerView:
    """A network as the picture wants it: plain arrays."""
    return HiddenLayerView(
        name,
        POINTS.x.double().numpy(),
        POINTS.y.double().numpy(),
        network.hidden(POINTS.x).detach().double().numpy(),
        lambda x: network(torch.from_numpy(x).float()).detach().double().numpy(),
        lambda h: network.output(torch.from_numpy(h).float()).detach().double().numpy(),
    )


def draw(path: Path) -> None:
    """Three networks of two hidden units: one made by hand, two that learned."""
    views = [view(by_hand(), "step, by hand")]
    for activation in ("tanh", "relu"):
        network, seed = first_solved(activation)
        views.append(view(network, f"{activation}, trained (seed {seed})"))
    draw_hidden_spaces(views, path, title="Equal (circles) or not (squares): the input above, the hidden layer below")


def main() -> None:
    parser = argparse.ArgumentParser(description="Equal or not: the smallest function that needs a hidden layer.")
    parser.add_argument("--seeds", type=int, default=20, help="how often each network is trained (default 20)")
    parser.add_argument(
        "--picture", type=Path, default=Path("hidden-space.svg"), help="the file to write, .svg or .png"
    )
    options = parser.parse_args()
    headers = ["model", "hidden units", "right", "squared error of the others (how many)"]
    print(format_table(headers, [row.cells() for row in rows(range(1, options.seeds + 1))]))
    draw(options.picture)
    print(f"{options.picture}: written")


if __name__ == "__main__":
    main()
