"""A small function that needs a hidden layer (tutorial, "A Brief Overview of Neural Networks").

    python examples/equal_or_not.py [--seeds 20] [--picture hidden-space.svg]

x is one of the four points of {-1, 1}^2; y should be 1 if x_1 and x_2 are equal, and -1 otherwise. A linear model and
networks with one hidden layer (step, tanh or ReLU) are trained with `dragoman.fit`, which trains all neural models.
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
from dragoman.nn.layers import ACTIVATIONS, glorot_, uniform_
from dragoman.report.networks import HiddenLayerView, draw_hidden_spaces
from dragoman.report.tables import format_table

SIZES = (2, 20)  # hidden units; the tutorial's program has 20
SOLVED = 0.01  # mean squared errors below this count as solved
DIVERGED = 100.0  # mean squared errors above this count as diverged
BIAS_REACH = 1.0  # initial biases are uniform between minus this and this
# All four points in each batch, with a decreasing learning rate.
ADAM: dict[str, Any] = {
    "optimizer": "adam",
    "learning_rate": 0.1,
    "schedule": "linear",
    "batch_size": 0,
    "max_epochs": 200,
}
# As in the tutorial's program: stochastic gradient descent with one point per batch, for 20 epochs.
SGD: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 0.1, "batch_size": 1, "max_epochs": 20}


@dataclass(frozen=True, eq=False)
class Points:
    """Training examples: points x and the desired outputs y."""

    x: Tensor  # (points, 2)
    y: Tensor  # (points,)

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """One prediction per point."""
        return np.ones(len(self), np.int64)

    def select(self, examples: NDArray[np.integer]) -> Self:
        indices = torch.from_numpy(examples)
        return type(self)(self.x[indices], self.y[indices])


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
    """Return l = (y* - y)^2 of every point.  # (points,)"""
    return (points.y - model(points.x)) ** 2


def by_hand() -> Network:
    """Return the tutorial's solution: a unit for (1, 1), a unit for (-1, -1), and y = h_1 + h_2 + 1."""
    network = Network("step", 2, seed=0)
    with torch.no_grad():
        network.hidden_layer.weight.copy_(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]))
        network.hidden_layer.bias.copy_(torch.tensor([-1.0, -1.0]))
        network.output_layer.weight.copy_(torch.tensor([[1.0, 1.0]]))
        network.output_layer.bias.copy_(torch.tensor([1.0]))
    return network


def train(model: Model, seed: int, training: Mapping[str, Any] = ADAM) -> float:
    """Train a model in place and return its mean squared error."""
    fit(model, POINTS, objective=squared_error, seed=seed, threads=1, **training)
    return error_of(model)


def error_of(model: Model) -> float:
    with torch.no_grad():
        return float(squared_error(model, POINTS).mean())


# -- results ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """Results of one kind of model for several seeds."""

    name: str
    size: int | None  # hidden units
    errors: Sequence[float]  # mean squared error, by seed

    def cells(self) -> list[object]:
        failed = sorted(error for error in self.errors if error >= SOLVED)
        counts = Counter(f"{error:.2f}" if error < DIVERGED else "diverged" for error in failed)
        solved = f"{len(self.errors) - len(failed)} of {len(self.errors)}"
        return [
            self.name,
            self.size,
            solved,
            ", ".join(f"{error} ({count})" for error, count in counts.items()) or None,
        ]


def rows(seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the rows of the table."""
    yield Row("linear", None, [train(Linear(seed), seed) for seed in seeds])
    yield Row("step, weights by hand", 2, [error_of(by_hand())])
    for activation, size in product(ACTIVATIONS, SIZES):
        yield Row(activation, size, [train(Network(activation, size, seed), seed) for seed in seeds])
    errors = [train(Network("tanh", SIZES[-1], seed), seed, SGD) for seed in seeds]
    yield Row("tanh, 20 epochs of SGD", SIZES[-1], errors)


def first_solved(activation: str) -> tuple[Network, int]:
    """Return the first network with two hidden units that learns the function, and its seed."""
    for seed in count(1):
        network = Network(activation, 2, seed)
        if train(network, seed) < SOLVED:
            break
    return network, seed


def view(network: Network, name: str) -> HiddenLayerView:
    """Return a network as arrays, for drawing."""
    return HiddenLayerView(
        name,
        POINTS.x.double().numpy(),
        POINTS.y.double().numpy(),
        network.hidden(POINTS.x).detach().double().numpy(),
        lambda x: network(torch.from_numpy(x).float()).detach().double().numpy(),
        lambda h: network.output(torch.from_numpy(h).float()).detach().double().numpy(),
    )


def draw(path: Path) -> None:
    """Draw three networks with two hidden units: one set by hand, two trained."""
    views = [view(by_hand(), "step, by hand")]
    for activation in ("tanh", "relu"):
        network, seed = first_solved(activation)
        views.append(view(network, f"{activation}, trained (seed {seed})"))
    draw_hidden_spaces(views, path, title="Equal (circles) or not (squares): input space above, hidden space below")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="number of random seeds per network (default 20)")
    parser.add_argument("--picture", type=Path, default=Path("hidden-space.svg"), help="output file, .svg or .png")
    arguments = parser.parse_args()
    headers = ["model", "hidden units", "solved", "squared error of the others (count)"]
    print(format_table(headers, [row.cells() for row in rows(range(1, arguments.seeds + 1))]))
    draw(arguments.picture)
    print(f"{arguments.picture}: written")


if __name__ == "__main__":
    main()
