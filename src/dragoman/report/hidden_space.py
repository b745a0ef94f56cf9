"""What a hidden layer does to points on a plane: the same points before it and after it, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.report.figures import COLOURS, FONT, GREY, WIDTH, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Plane = Callable[[NDArray[np.float64]], NDArray[np.float64]]  # y at points.  # (points, 2) -> (points,)

POSITIVE, NEGATIVE = COLOURS[2], COLOURS[1]  # of points where y is to be positive or negative
SHADE = 0.16  # how strongly the side of a boundary is coloured
SIDE = 51  # points of the grid on which the boundary is looked for, along each side
SMALL = FONT - 1  # points
ROOM = 0.45  # around the points, as a share of their spread
ALIKE = 0.04  # points nearer to each other than this share of the spread have one label
LEFT, GAP = 0.4, 0.35  # inches
SAME_SIDE = 1e-6  # what is no farther than this from 0 is on neither side


@dataclass(frozen=True, eq=False)
class HiddenLayerView:
    """A network with two hidden units, and the points it was made for."""

    name: str
    x: NDArray[np.float64]  # (points, 2)
    y: NDArray[np.float64]  # (points,) what it should be; its sign is drawn
    h: NDArray[np.float64]  # (points, 2) where the hidden layer puts the points
    output: Plane  # y as the network has it, of x
    output_of_hidden: Plane  # and of h: the output layer alone


def draw_hidden_spaces(views: Sequence[HiddenLayerView], path: Path, *, title: str = "") -> None:
    """Two pictures a network: its points x with the boundary where y = 0, and below the same points as h, where the
    boundary is a straight line. Points are labelled by what they are as x."""
    _check_views(views, path)
    side = (WIDTH - LEFT - (len(views) - 1) * GAP - 0.1) / max(3, len(views))  # inches
    height = 2 * side + 1.5
    with new_figure(height, path) as figure:
        for number, view in enumerate(views):
            left = (LEFT + number * (side + GAP)) / WIDTH
            place = (side / WIDTH, side / height)
            above = figure.add_axes((left, (side + 0.95) / height, *place))
            below = figure.add_axes((left, 0.42 / height, *place))
            names = [f"({one:g}, {two:g})".replace("-", "−") for one, two in view.x]
            _draw(above, view.x, view, view.output, names, "x")
            _draw(below, view.h, view, view.output_of_hidden, names, "h")
            above.set_title(view.name, loc="left", fontsize=FONT)
        figure.text(LEFT / WIDTH, 1 - 0.25 / height, title, fontsize=FONT + 1.5)


def _draw(
    axes: Axes, points: NDArray[np.float64], view: HiddenLayerView, output: Plane, names: list[str], letter: str
) -> None:
    """Points, and the two sides of the boundary."""
    centre, reach = _frame(points)
    edges = [np.linspace(c - reach, c + reach, SIDE) for c in centre]
    across, up = np.meshgrid(*edges)
    heights = output(np.stack([across.ravel(), up.ravel()], axis=1)).reshape(across.shape)
    levels = [min(heights.min(), 0) - 1, 0, max(heights.max(), 0) + 1]
    axes.contourf(across, up, heights, levels, colors=[NEGATIVE, POSITIVE], alpha=SHADE)
    if heights.min() < -SAME_SIDE and heights.max() > SAME_SIDE:
        axes.contour(across, up, heights, [0.0], colors=[GREY], linewidths=1.4)
    for sign, marker, colour in ((1, "o", POSITIVE), (-1, "s", NEGATIVE)):
        chosen = points[np.sign(view.y) == sign]
        axes.plot(*chosen.T, marker, color=colour, markersize=7)
    for (first, second), text in merge_labels(points, names, ALIKE * reach).items():
        axes.annotate(text, (first, second), (0, -6), textcoords="offset points", ha="center", va="top", fontsize=SMALL)
    axes.set_xlim(edges[0][0], edges[0][-1])
    axes.set_ylim(edges[1][0], edges[1][-1])
    axes.set_xlabel(f"{letter}₁", labelpad=1)
    axes.set_ylabel(f"{letter}₂", labelpad=0, rotation=0)
    axes.locator_params(nbins=3)
    axes.tick_params(length=2, pad=1.5, labelsize=SMALL - 1)


def _frame(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The middle of some points, and how far to the sides a square around it goes."""
    low, high = points.min(axis=0), points.max(axis=0)
    spread = float((high - low).max()) or 1.0
    return (low + high) / 2, (0.5 + ROOM) * spread


def merge_labels(points: NDArray[np.float64], names: Sequence[str], near: float) -> dict[tuple[float, float], str]:
    """Where labels stand: points in the same place share one."""
    found: dict[tuple[float, float], str] = {}
    for (first, second), name in zip(points.tolist(), names, strict=True):
        for place, text in found.items():
            if max(abs(place[0] - first), abs(place[1] - second)) <= near:
                found[place] = f"{text}\n{name}"
                break
        else:
            found[first, second] = name
    return found


def _check_views(views: Sequence[HiddenLayerView], path: Path) -> None:
    """Refuse to draw nothing, and what has no place in a plane."""
    if not views:
        raise DataError(f"{path}: there is nothing to draw; give at least one network")
    for view in views:
        for letter, points in (("x", view.x), ("h", view.h)):
            if points.shape != (len(view.y), 2):
                raise DataError(f"{path}: {letter} of {view.name} is no set of points on a plane; use two hidden units")
            if not np.isfinite(points).all():
                raise DataError(f"{path}: {view.name} has a point that is infinite or undefined; leave it out")
