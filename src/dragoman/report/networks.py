"""Figures of the inside of networks: cell values, saliency, gradients over time, and the space of a hidden layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.report.figures import (
    COLOURS,
    FONT_SIZE,
    GREY,
    LINE_COLOURS,
    TITLE_HEIGHT,
    WIDTH,
    LineStyle,
    add_axes,
    check_figure,
    draw_matrix,
    line_chart,
    new_figure,
    shorten,
)
from dragoman.report.surprisal import WordLine, wrap_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]

LETTER = 0.085  # inches, the largest width of a letter


# -- cells -----------------------------------------------------------------------------------------------------------

MAX_WORDS = 60  # of the sentences under one cell
MAX_CELLS = 8  # in one figure
LEFT, RIGHT = 0.15, 0.1  # inches beside the text
ROW, NAME, BETWEEN = 0.25, 0.3, 0.14  # inches: a line of text, the name above a cell's lines, the space below them
BAR_WIDTH, BAR_HEIGHT = 0.9, 0.09  # inches: a colour bar


def draw_cells(
    sentences: Sequence[Sequence[str]], cells: Mapping[str, Sequence[FloatArray]], path: Path, *, title: str = ""
) -> None:
    """Draw the words of a few sentences, coloured by the value of a cell after each word, once for every cell.

    Args:
        sentences: words of each sentence.
        cells: {name of a cell: its values after the words of each sentence}. Each cell has its own symmetric scale.
    """
    words = sum(map(len, sentences))
    check_figure(
        path,
        (not words or not cells, "there is nothing to draw; give at least one word and one cell"),
        (words > MAX_WORDS, f"{words:,} words, and a figure holds at most {MAX_WORDS}; give fewer sentences"),
        (len(cells) > MAX_CELLS, f"{len(cells)} cells, and a figure holds at most {MAX_CELLS}; choose fewer"),
        *(
            (
                not all(np.isfinite(sentence_values).all() for sentence_values in values),
                f"{name} has a value that is infinite or undefined; leave it out",
            )
            for name, values in cells.items()
        ),
    )
    blocks = {
        name: [
            line
            for words, sentence_values in zip(sentences, values, strict=True)
            for line in wrap_words(tuple(words), sentence_values[:, None], WIDTH - LEFT - RIGHT)
        ]
        for name, values in cells.items()
    }
    top = sum(NAME + ROW * len(lines) + BETWEEN for lines in blocks.values())  # inches from below
    with new_figure(top + (TITLE_HEIGHT if title else 0.0), path, title, LEFT) as figure:
        for name, lines in blocks.items():
            largest = max(float(np.abs(line.values).max()) for line in lines) or 1.0
            top -= NAME
            _draw_cell_name(figure, name, largest, top + 0.09)
            for line in lines:
                top -= ROW
                _draw_coloured_words(add_axes(figure, LEFT, top, line.widths.sum(), ROW), line, largest)
            top -= BETWEEN


def _draw_cell_name(figure: Figure, name: str, largest: float, bottom: float) -> None:
    """Write the cell's name, and draw its colour bar at the right."""
    figure.text(LEFT / WIDTH, bottom / figure.get_figheight(), name, color=GREY, parse_math=False)
    end = f"{largest:.2g}"
    axes = add_axes(figure, WIDTH - RIGHT - BAR_WIDTH - LETTER * len(end), bottom, BAR_WIDTH, BAR_HEIGHT)
    axes.pcolormesh(np.linspace(-1, 1, 21)[None], cmap=_diverging_colours(), vmin=-1, vmax=1)
    axes.set_axis_off()
    for x, text, side in ((-0.04, f"−{end}", "right"), (1.04, end, "left")):
        axes.text(x, 0.5, text, ha=side, va="center_baseline", color=GREY, transform=axes.transAxes)


def _draw_coloured_words(axes: Axes, line: WordLine, largest: float) -> None:
    edges = np.concatenate([[0.0], line.widths.cumsum()])
    colours = _diverging_colours()
    axes.pcolormesh(edges, [0, 1], line.values.T, cmap=colours, vmin=-largest, vmax=largest, edgecolors="white")
    for centre, word in zip((edges[:-1] + edges[1:]) / 2, line.words, strict=True):
        axes.text(centre, 0.5, shorten(word), ha="center", va="center_baseline", parse_math=False)
    axes.set_axis_off()


def _diverging_colours() -> LinearSegmentedColormap:
    """Return colours from blue (negative) over white to red (positive), light enough for black letters."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("cell", colormaps["RdBu_r"](np.linspace(0.17, 0.83, 65)))


# -- saliency --------------------------------------------------------------------------------------------------------

MAX_SQUARES = 40  # words along one side
MAX_SQUARE = 0.28  # inches
SALIENCY_NOTE = "each row: |d log P(word) / d embedding of a word read|, as a share of its largest"


def draw_saliency(
    read: Sequence[str], predicted: Sequence[str], norms: FloatArray, path: Path, *, title: str = ""
) -> None:
    """Draw a row for each predicted word: the darker a word read before it, the more the prediction depends on it.

    Args:
        norms: (predicted, read); fields of words that are not read yet are left blank.
    """
    is_square = len(read) == len(predicted) > 0 and norms.shape == (len(predicted), len(read))
    size = f"{len(read) - 1} words, and a heat map holds at most {MAX_SQUARES - 1}"
    check_figure(
        path,
        (not is_square, "a heat map has a row for each word predicted and a column for each word read"),
        (len(read) > MAX_SQUARES, f"{size}; give a shorter sentence"),
        (not np.isfinite(norms).all(), "a gradient is infinite or undefined; use another sentence"),
    )
    rows, columns = [shorten(word) for word in predicted], [shorten(word) for word in read]
    row_width, column_height = (max(map(len, words)) * LETTER + 0.15 for words in (rows, columns))
    left = max(row_width, LETTER * len("predicted") + 0.1)  # inches
    above = column_height + 0.3 + (TITLE_HEIGHT if title else 0.0)  # inches
    side = min(MAX_SQUARE * len(read), WIDTH - left - RIGHT)
    height = above + side + 0.4
    with new_figure(height, path, title) as figure:
        scaled = norms / np.maximum(norms.max(axis=1, keepdims=True), np.finfo(float).tiny)
        masked = np.ma.masked_array(scaled, np.triu(np.ones(norms.shape, bool), 1))
        draw_matrix(add_axes(figure, left, 0.4, side, side), masked, rows, columns)
        figure.text(left / WIDTH, 1 - (above - column_height) / height, "read", color=GREY, va="top")
        figure.text((left - 0.05) / WIDTH, (0.47 + side) / height, "predicted", color=GREY, ha="right")
        figure.text(left / WIDTH, 0.2 / height, SALIENCY_NOTE, color=GREY, parse_math=False)


# -- vanishing gradients ---------------------------------------------------------------------------------------------

DASHES = (0, (4, 2))


class GradientNorms(NamedTuple):
    """|dl / d state| 0, 1, 2, ... words earlier, of one model."""

    trained: FloatArray
    untrained: FloatArray


def draw_gradients(models: Mapping[str, GradientNorms], path: Path, *, title: str = "") -> None:
    """Draw gradient norms by distance, relative to distance 0, after and before training: two lines per model.

    A line ends where the gradient is zero.
    """
    check_figure(
        path,
        (not models, "there is nothing to draw; give at least one model"),
        (len(models) > len(COLOURS), f"{len(models)} models, and there are {len(COLOURS)} colours; draw fewer"),
    )
    lines: dict[str, dict[float, float]] = {}  # powers of ten by distance
    styles: dict[str, LineStyle] = {}
    for colour, (model, gradients) in zip(LINE_COLOURS, models.items(), strict=False):
        untrained = f"{shorten(model)}, untrained"
        for name, norms in ((shorten(model), gradients.trained), (untrained, gradients.untrained)):
            if not len(norms) or not np.isfinite(norms).all() or norms[0] <= 0:
                raise DataError(f"{path}: {name} has no gradient to draw, or an infinite one; leave the model out")
            length = int(np.argmin(norms > 0)) if (norms <= 0).any() else len(norms)
            lines[name] = dict(enumerate(np.log10(norms[:length] / norms[0]).tolist()))
            styles[name] = LineStyle(colour, dashes=DASHES if name == untrained else "-")
    xlabel = "words back (solid: after training, dashed: before)"
    ylabel = "gradient norm, relative to that at distance 0"
    with line_chart(lines, styles, path, title=title, xlabel=xlabel, ylabel=ylabel, height=4.6) as axes:
        powers = [power for points in lines.values() for power in points.values()]
        _set_power_axis(axes, min(powers), max(powers))
        axes.set_xlim(0, max(map(max, lines.values())) or 1)
        axes.locator_params(axis="x", integer=True)


def _set_power_axis(axes: Axes, lowest: float, highest: float) -> None:
    """Set a few ticks at powers of ten."""
    top, bottom = math.ceil(highest), min(-1, math.floor(lowest))
    step = max(1, math.ceil((top - bottom) / 8))
    ticks = range(top, bottom - 1, -step)
    axes.set_yticks(list(ticks), [_format_power(tick) for tick in ticks])
    axes.set_ylim(bottom, top + 0.05)


def _format_power(exponent: int) -> str:
    """
    >>> [_format_power(exponent) for exponent in (2, 0, -2, -12)]
    ['100', '1', '0.01', '10⁻¹²']
    """
    if -3 < exponent < 4:
        return f"{10.0**exponent:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


# -- hidden layer ----------------------------------------------------------------------------------------------------

POSITIVE_COLOUR, NEGATIVE_COLOUR = COLOURS[2], COLOURS[1]  # of points whose y is positive or negative
GRID_SIZE = 51  # points along each side of the grid on which the output is computed
SMALL_FONT = FONT_SIZE - 1
MARGIN = 0.45  # around the points, as a share of their spread
SAME_POINT = 0.04  # points that are closer than this share of the spread have one label
VIEW_LEFT, VIEW_GAP = 0.4, 0.35  # inches
BOUNDARY_TOLERANCE = 1e-6

Plane = Callable[[FloatArray], FloatArray]  # a network's output: (points, 2) -> (points,)


@dataclass(frozen=True, eq=False)
class HiddenLayerView:
    """A network with two hidden units, and the points it was trained on."""

    name: str
    x: FloatArray  # (points, 2)
    y: FloatArray  # (points,) the desired output; its sign is drawn
    h: FloatArray  # (points, 2) the hidden layer's values at x
    output: Plane  # output at x
    output_of_hidden: Plane  # output at h: only the output layer


def draw_hidden_spaces(views: Sequence[HiddenLayerView], path: Path, *, title: str = "") -> None:
    """Draw two panels per network: the points x with the boundary y = 0, and below the same points as h.

    In the space of h the boundary is a straight line. Points are labelled with their x.
    """
    check_figure(path, (not views, "there is nothing to draw; give at least one network"))
    for view in views:
        for letter, points in (("x", view.x), ("h", view.h)):
            plane = f"{letter} of {view.name} is not a set of points in a plane; use two hidden units"
            infinite = f"{view.name} has a point that is infinite or undefined; leave it out"
            check_figure(path, (points.shape != (len(view.y), 2), plane), (not np.isfinite(points).all(), infinite))
    side = (WIDTH - VIEW_LEFT - (len(views) - 1) * VIEW_GAP - 0.1) / max(3, len(views))  # inches
    with new_figure(2 * side + 1.5, path, title, VIEW_LEFT) as figure:
        for number, view in enumerate(views):
            left = VIEW_LEFT + number * (side + VIEW_GAP)
            above, below = (add_axes(figure, left, bottom, side, side) for bottom in (side + 0.95, 0.42))
            _draw_space(above, view.x, view, view.output, "x")
            _draw_space(below, view.h, view, view.output_of_hidden, "h")
            above.set_title(view.name, loc="left", fontsize=FONT_SIZE)


def _draw_space(axes: Axes, points: FloatArray, view: HiddenLayerView, output: Plane, letter: str) -> None:
    """Draw points, and the two sides of the boundary."""
    low, high = points.min(axis=0), points.max(axis=0)
    radius = (0.5 + MARGIN) * (float((high - low).max()) or 1.0)
    edges = [np.linspace(centre - radius, centre + radius, GRID_SIZE) for centre in (low + high) / 2]
    grid_x, grid_y = np.meshgrid(*edges)
    values = output(np.stack([grid_x.ravel(), grid_y.ravel()], axis=1)).reshape(grid_x.shape)
    levels = [min(values.min(), 0) - 1, 0, max(values.max(), 0) + 1]
    axes.contourf(grid_x, grid_y, values, levels, colors=[NEGATIVE_COLOUR, POSITIVE_COLOUR], alpha=0.16)
    if values.min() < -BOUNDARY_TOLERANCE and values.max() > BOUNDARY_TOLERANCE:
        axes.contour(grid_x, grid_y, values, [0.0], colors=[GREY], linewidths=1.4)
    for sign, marker, colour in ((1, "o", POSITIVE_COLOUR), (-1, "s", NEGATIVE_COLOUR)):
        axes.plot(*points[np.sign(view.y) == sign].T, marker, color=colour, markersize=7)
    names = [f"({first:g}, {second:g})".replace("-", "−") for first, second in view.x]
    for point, text in merge_labels(points, names, SAME_POINT * radius).items():
        axes.annotate(text, point, (0, -6), textcoords="offset points", ha="center", va="top", fontsize=SMALL_FONT)
    axes.set_xlim(edges[0][0], edges[0][-1])
    axes.set_ylim(edges[1][0], edges[1][-1])
    axes.set_xlabel(f"{letter}₁", labelpad=1)
    axes.set_ylabel(f"{letter}₂", labelpad=0, rotation=0)
    axes.locator_params(nbins=3)
    axes.tick_params(length=2, pad=1.5, labelsize=SMALL_FONT - 1)


def merge_labels(points: FloatArray, names: Sequence[str], tolerance: float) -> dict[tuple[float, float], str]:
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
