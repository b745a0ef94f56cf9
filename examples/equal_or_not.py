"""Equal or not: the smallest function that needs a hidden layer (tutorial, "A Brief Overview of Neural Networks").

    python examples/equal_or_not.py [--seeds 20] [--picture hidden-space.svg]

x is one of the four points of {-1, 1}^2, and y is to be 1 if x_1 and x_2 are equal, and -1 if not. A linear model, and
networks of one hidden layer with step, tanh and ReLU, are trained by the loop that trains every model here.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, product
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman import fit
from dragoman.nn.init import glorot, uniform
from dragoman.nn.mlp import ACTIVATIONS, affine, hidden
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
    """Examples to learn from: points x and what y should be there."""

    x: Tensor  # (points, 2)
    y: Tensor  # (points,)

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Each point asks for one prediction."""
        return np.ones(len(self), np.int64)

    def select(self, examples: NDArray[np.integer]) -> Self:
        chosen = torch.from_numpy(examples)
        return type(self)(self.x[chosen], self.y[chosen])


POINTS = Points(
    torch.tensor([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]), torch.tensor([1.0, -1.0, -1.0, 1.0])
)


@dataclass(frozen=True, eq=False)
class Linear:
    """y = W x + b."""

    W: Tensor  # (1, 2)
    b: Tensor  # (1,)

    @classmethod
    def create(cls, seed: int) -> Self:
        chance = Generator().manual_seed(seed)
        return cls(glorot(1, 2, chance, torch.float32), uniform((1,), BIAS_REACH, chance, torch.float32))

    def parameters(self) -> Mapping[str, Tensor]:
        return {"W": self.W, "b": self.b}

    def penalised(self) -> Mapping[str, Tensor]:
        return {"W": self.W}

    def output(self, x: Tensor) -> Tensor:
        return affine(x, self.W, self.b)[:, 0]  # (points,)


@dataclass(frozen=True, eq=False)
class Network:
    """h = step(W_xh x + b_h), y = w_hy h + b_y, or tanh or ReLU in place of step (eq. nnlm:stepmlp, nnlm:forward)."""

    activation: Callable[[Tensor], Tensor]
    W_xh: Tensor  # (hidden, 2)
    b_h: Tensor  # (hidden,)
    w_hy: Tensor  # (1, hidden)
    b_y: Tensor  # (1,)

    @classmethod
    def create(cls, activation: str, size: int, seed: int) -> Self:
        """An untrained network of so many hidden units."""
        chance = Generator().manual_seed(seed)
        W_xh, b_h = glorot(size, 2, chance, torch.float32), uniform((size,), BIAS_REACH, chance, torch.float32)
        w_hy, b_y = glorot(1, size, chance, torch.float32), uniform((1,), BIAS_REACH, chance, torch.float32)
        return cls(ACTIVATIONS[activation], W_xh, b_h, w_hy, b_y)

    def parameters(self) -> Mapping[str, Tensor]:
        return {"W_xh": self.W_xh, "b_h": self.b_h, "w_hy": self.w_hy, "b_y": self.b_y}

    def penalised(self) -> Mapping[str, Tensor]:
        return {"W_xh": self.W_xh, "w_hy": self.w_hy}

    def hidden(self, x: Tensor) -> Tensor:
        return hidden(x, self.W_xh, self.b_h, self.activation)  # (points, hidden)

    def output_of(self, h: Tensor) -> Tensor:
        return affine(h, self.w_hy, self.b_y)[:, 0]  # (points,)

    def output(self, x: Tensor) -> Tensor:
        return self.output_of(self.hidden(x))


Model = Linear | Network


def squared_error(model: Model, points: Points, noise: Generator | None = None) -> Tensor:
    """l = (y* - y)^2 of every point.  # (points,)"""
    return (points.y - model.output(points.x)) ** 2


def by_hand() -> Network:
    """The tutorial's way out: one unit is 1 at (1, 1) alone, the other at (-1, -1) alone, and y = h_1 + h_2 + 1."""
    W_xh, b_h = torch.tensor([[1.0, 1.0], [-1.0, -1.0]]), torch.tensor([-1.0, -1.0])
    return Network(ACTIVATIONS["step"], W_xh, b_h, torch.tensor([[1.0, 1.0]]), torch.tensor([1.0]))


def train(model: Model, seed: int, training: Mapping[str, Any] = ADAM) -> float:
    """Train a model in place; its mean squared error afterwards."""
    fit(model, POINTS, objective=squared_error, seed=seed, threads=1, **training)
    return error_of(model)


def error_of(model: Model) -> float:
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
    yield Row("linear", None, [train(Linear.create(seed), seed) for seed in seeds])
    yield Row("step, weights by hand", 2, [error_of(by_hand())])
    for activation, size in product(ACTIVATIONS, SIZES):
        yield Row(activation, size, [train(Network.create(activation, size, seed), seed) for seed in seeds])
    plain = [train(Network.create("tanh", SIZES[-1], seed), seed, PLAIN) for seed in seeds]
    yield Row("tanh, 20 epochs of SGD", SIZES[-1], plain)


def first_solved(activation: str) -> tuple[Network, int]:
    """The first seed whose network of two hidden units learns the function, and the network."""
    for seed in count(1):
        network = Network.create(activation, 2, seed)
        if train(network, seed) < SOLVED:
            break
    return network, seed


def view(network: Network, name: str) -> HiddenLayerView:
    """A network as the picture wants it: plain arrays."""
    return HiddenLayerView(
        name,
        POINTS.x.double().numpy(),
        POINTS.y.double().numpy(),
        network.hidden(POINTS.x).double().numpy(),
        lambda x: network.output(torch.from_numpy(x).float()).double().numpy(),
        lambda h: network.output_of(torch.from_numpy(h).float()).double().numpy(),
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
