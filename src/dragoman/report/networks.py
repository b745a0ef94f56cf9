"""Figures of the inside of networks: cell values, saliency, and gradients over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.report.figures import (
    COLORS,
    GREY,
    LINE_COLORS,
    TITLE_HEIGHT,
    WIDTH,
    LineStyle,
    add_axes,
    check_figure,
    draw_matrix,
    line_chart,
    new_figure,
    short_label,
)
from dragoman.report.surprisal import WordLine, wrap_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]

LETTER = 0.085  # inches, the largest width of a letter


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
    )
    for name, values in cells.items():
        infinite = not all(np.isfinite(sentence_values).all() for sentence_values in values)
        check_figure(path, (infinite, f"{name} has a value that is infinite or undefined; leave it out"))
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
                _draw_colored_words(add_axes(figure, LEFT, top, line.widths.sum(), ROW), line, largest)
            top -= BETWEEN


def _draw_cell_name(figure: Figure, name: str, largest: float, bottom: float) -> None:
    """Write the cell's name, and draw its colour bar at the right."""
    figure.text(LEFT / WIDTH, bottom / figure.get_figheight(), name, color=GREY, parse_math=False)
    end = f"{largest:.2g}"
    axes = add_axes(figure, WIDTH - RIGHT - BAR_WIDTH - LETTER * len(end), bottom, BAR_WIDTH, BAR_HEIGHT)
    axes.pcolormesh(np.linspace(-1, 1, 21)[None], cmap=_diverging_colors(), vmin=-1, vmax=1)
    axes.set_axis_off()
    for x, text, side in ((-0.04, f"−{end}", "right"), (1.04, end, "left")):
        axes.text(x, 0.5, text, ha=side, va="center_baseline", color=GREY, transform=axes.transAxes)


def _draw_colored_words(axes: Axes, line: WordLine, largest: float) -> None:
    edges = np.concatenate([[0.0], line.widths.cumsum()])
    colors = _diverging_colors()
    axes.pcolormesh(edges, [0, 1], line.values.T, cmap=colors, vmin=-largest, vmax=largest, edgecolors="white")
    for center, word in zip((edges[:-1] + edges[1:]) / 2, line.words, strict=True):
        axes.text(center, 0.5, short_label(word), ha="center", va="center_baseline", parse_math=False)
    axes.set_axis_off()


def _diverging_colors() -> LinearSegmentedColormap:
    """Return colours from blue (negative) over white to red (positive), light enough for black letters."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("cell", colormaps["RdBu_r"](np.linspace(0.17, 0.83, 65)))


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
    rows, columns = [short_label(word) for word in predicted], [short_label(word) for word in read]
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
        (len(models) > len(COLORS), f"{len(models)} models, and there are {len(COLORS)} colours; draw fewer"),
    )
    lines: dict[str, dict[float, float]] = {}  # powers of ten by distance
    styles: dict[str, LineStyle] = {}
    for color, (model, gradients) in zip(LINE_COLORS, models.items(), strict=False):
        untrained = f"{short_label(model)}, untrained"
        for name, norms in ((short_label(model), gradients.trained), (untrained, gradients.untrained)):
            if not len(norms) or not np.isfinite(norms).all() or norms[0] <= 0:
                raise DataError(f"{path}: {name} has no gradient to draw, or an infinite one; leave the model out")
            length = int(np.argmin(norms > 0)) if (norms <= 0).any() else len(norms)
            lines[name] = dict(enumerate(np.log10(norms[:length] / norms[0]).tolist()))
            styles[name] = LineStyle(color, dashes=DASHES if name == untrained else "-")
    xlabel = "words back (solid: after training, dashed: before)"
    ylabel = "gradient norm, relative to that at distance 0"
    with line_chart(lines, styles, path, title=title, xlabel=xlabel, ylabel=ylabel, height=4.6) as axes:
        powers = [power for points in lines.values() for power in points.values()]
        top, bottom = math.ceil(max(powers)), min(-1, math.floor(min(powers)))
        ticks = range(top, bottom - 1, -max(1, math.ceil((top - bottom) / 8)))  # a few powers of ten
        axes.set_yticks(list(ticks), [_format_power(tick) for tick in ticks])
        axes.set_ylim(bottom, top + 0.05)
        axes.set_xlim(0, max(map(max, lines.values())) or 1)
        axes.locator_params(axis="x", integer=True)


def _format_power(exponent: int) -> str:
    """
    >>> [_format_power(exponent) for exponent in (2, 0, -2, -12)]
    ['100', '1', '0.01', '10⁻¹²']
    """
    if -3 < exponent < 4:
        return f"{10.0**exponent:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
