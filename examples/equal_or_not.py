"""A small function that needs a hidden layer (tutorial, "A Brief Overview of Neural Networks").

    python examples/equal_or_not.py [--seeds 20] [--picture hidden-space.svg]

x is one of the four points of {-1, 1}^2; y should be 1 if x_1 and x_2 are equal, and -1 otherwise. A linear model and
networks with one hidden layer (step, tanh or ReLU) are trained with `dragoman.fit`, which trains all neural models.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from dragoman import fit
from dragoman.nn.layers import ACTIVATIONS, glorot_, uniform_
from dragoman.report.figures import COLORS, FONT_SIZE, GREY, WIDTH, add_axes, new_figure
from dragoman.report.tables import format_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


# -- the picture -----------------------------------------------------------------------------------------------------

POSITIVE_COLOR, NEGATIVE_COLOR = COLORS[2], COLORS[1]  # of points whose y is positive or negative
GRID_SIZE = 51  # points along each side of the grid on which the output is computed
SMALL_FONT = FONT_SIZE - 1
MARGIN = 0.45  # around the points, as a share of their spread
SAME_POINT = 0.04  # points that are closer than this share of the spread have one label
LEFT, GAP = 0.4, 0.35  # inches
BOUNDARY_TOLERANCE = 1e-6


def draw(path: Path) -> None:
    """Draw three networks with two hidden units: one set by hand, two trained."""
    networks = {"step, by hand": by_hand()}
    for activation in ("tanh", "relu"):
        network, seed = first_solved(activation)
        networks[f"{activation}, trained (seed {seed})"] = network
    draw_hidden_spaces(networks, path, title="Equal (circles) or not (squares): input space above, hidden space below")


@torch.no_grad()
def draw_hidden_spaces(networks: Mapping[str, Network], path: Path, *, title: str = "") -> None:
    """Draw two panels per network: the points x with the boundary y = 0, and below the same points as h.

    In the space of h the boundary is a straight line. Points are labelled with their x.
    """
    side = (WIDTH - LEFT - (len(networks) - 1) * GAP - 0.1) / max(3, len(networks))  # inches
    with new_figure(2 * side + 1.5, path, title, LEFT) as figure:
        for number, (name, network) in enumerate(networks.items()):
            left = LEFT + number * (side + GAP)
            above, below = (add_axes(figure, left, bottom, side, side) for bottom in (side + 0.95, 0.42))
            draw_space(above, POINTS.x, network, "x")
            draw_space(below, network.hidden(POINTS.x), network.output, "h")
            above.set_title(name, loc="left", fontsize=FONT_SIZE)


def draw_space(axes: Axes, points: Tensor, output: Callable[[Tensor], Tensor], letter: str) -> None:
    """Draw points, and the two sides of the boundary of a network's output in their space."""
    places = points.double().numpy()
    low, high = places.min(axis=0), places.max(axis=0)
    radius = (0.5 + MARGIN) * (float((high - low).max()) or 1.0)
    edges = [np.linspace(center - radius, center + radius, GRID_SIZE) for center in (low + high) / 2]
    grid_x, grid_y = np.meshgrid(*edges)
    grid = torch.from_numpy(np.stack([grid_x.ravel(), grid_y.ravel()], axis=1)).float()
    values = output(grid).double().numpy().reshape(grid_x.shape)
    levels = [min(values.min(), 0) - 1, 0, max(values.max(), 0) + 1]
    axes.contourf(grid_x, grid_y, values, levels, colors=[NEGATIVE_COLOR, POSITIVE_COLOR], alpha=0.16)
    if values.min() < -BOUNDARY_TOLERANCE and values.max() > BOUNDARY_TOLERANCE:
        axes.contour(grid_x, grid_y, values, [0.0], colors=[GREY], linewidths=1.4)
    for sign, marker, color in ((1, "o", POSITIVE_COLOR), (-1, "s", NEGATIVE_COLOR)):
        axes.plot(*places[POINTS.y.sign().numpy() == sign].T, marker, color=color, markersize=7)
    names = [f"({first:g}, {second:g})".replace("-", "−") for first, second in POINTS.x.tolist()]
    for point, text in merge_labels(places, names, SAME_POINT * radius).items():
        axes.annotate(text, point, (0, -6), textcoords="offset points", ha="center", va="top", fontsize=SMALL_FONT)
    axes.set_xlim(edges[0][0], edges[0][-1])
    axes.set_ylim(edges[1][0], edges[1][-1])
    axes.set_xlabel(f"{letter}₁", labelpad=1)
    axes.set_ylabel(f"{letter}₂", labelpad=0, rotation=0)
    axes.locator_params(nbins=3)
    axes.tick_params(length=2, pad=1.5, labelsize=SMALL_FONT - 1)


def merge_labels(points: NDArray[np.float64], names: Sequence[str], tolerance: float) -> dict[tuple[float, float], str]:
    """Return labels by position; points at the same position share one."""
    labels: dict[tuple[float, float], str] = {}
    for (x, y), name in zip(points.tolist(), names, strict=True):
        for position, text in labels.items():
            if max(abs(position[0] - x), abs(position[1] - y)) <= tolerance:
                labels[position] = f"{text}\n{name}"
                break
        else:
            labels[x, y] = name
    return labels


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
