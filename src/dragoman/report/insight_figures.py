"""Pictures of the inside of recurrent models: what cells hold, which words a prediction hangs on, how far gradients
reach. Plain numbers come in, as everywhere in `report`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.evaluation.surprisal import SentenceSurprisals
from dragoman.report.figures import (
    COLOURS,
    FONT,
    GREY,
    LABEL_GAP,
    WIDTH,
    LineLabel,
    image_format,
    label_ends,
    new_figure,
)
from dragoman.report.surprisal_figure import WordLine, ignore_missing_glyphs, shorten, wrap_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_WORDS = 60  # of the sentences under one cell
MAX_CELLS = 8  # in one picture
MAX_SQUARES = 40  # words read, or predicted, along one side of a heat map
LEFT, RIGHT = 0.15, 0.1  # inches beside the text
ROW, NAME, BETWEEN = 0.25, 0.3, 0.14  # inches: a line of text, the name above a cell's lines, and space below them
TITLE = 0.32  # inches
DIVERGING = "RdBu_r"  # blue for negative, white for 0, red for positive
PALEST = 0.17  # of these shades at either end is left out: letters have to be read on them
BAR, THICK = 0.9, 0.09  # inches: a colour bar
SQUARE = 0.28  # inches a word in a heat map, at most
LETTER = 0.085  # inches that a letter takes at most
SHADES = "Blues"
READ, PREDICTED = "read", "predicted"  # what stands at the sides of a heat map
NOTE = "each row: |d log P(word) / d vector of a word read|, as a share of its largest"
AFTER, BEFORE = "solid: after training", "dashed: before"
DASHES = (0, (4, 2))


# -- cells -----------------------------------------------------------------------------------------------------------


def draw_cells(
    sentences: Sequence[Sequence[str]],
    cells: Mapping[str, Sequence[NDArray[np.float64]]],
    path: Path,
    *,
    title: str = "",
) -> None:
    """The words of a few sentences on the colour of what a cell holds after each, once for every cell.

    {name of a cell: what it holds after the words of each sentence}. Each cell has a scale of its own, as far up as
    down, which stands beside its name.
    """
    _check_cells(sentences, cells, path)
    room = WIDTH - LEFT - RIGHT
    blocks = {name: _lines(sentences, values, room) for name, values in cells.items()}
    height = TITLE * bool(title) + sum(NAME + ROW * len(lines) + BETWEEN for lines in blocks.values())
    with ignore_missing_glyphs(path), new_figure(height, path) as figure:
        top = height - TITLE * bool(title)  # inches from below
        for name, lines in blocks.items():
            reach = max(float(np.abs(line.bits).max()) for line in lines) or 1.0
            top -= NAME
            _name_cell(figure, name, reach, top / height)
            for line in lines:
                top -= ROW
                place = (LEFT / WIDTH, top / height, line.widths.sum() / WIDTH, ROW / height)
                _draw_words(figure.add_axes(place), line, reach)
            top -= BETWEEN
        figure.text(LEFT / WIDTH, 1 - 0.2 / height, title, fontsize=FONT + 1.5, parse_math=False)


def _lines(sentences: Sequence[Sequence[str]], values: Sequence[NDArray[np.float64]], room: float) -> list[WordLine]:
    """The text in lines as words with their bits are set; here each word has one number, whatever its unit."""
    found: list[WordLine] = []
    for words, held in zip(sentences, values, strict=True):
        found += wrap_words(SentenceSurprisals(tuple(words), held[:, None]), room)
    return found


def _name_cell(figure: Figure, name: str, reach: float, low: float) -> None:
    """The cell's name, and at the right its colour bar with what the ends of it stand for."""
    above = low + 0.09 / figure.get_figheight()
    figure.text(LEFT / WIDTH, above, name, color=GREY, parse_math=False)
    end = f"{reach:.2g}"
    left = 1 - (RIGHT + BAR + LETTER * len(end)) / WIDTH
    axes = figure.add_axes((left, above, BAR / WIDTH, THICK / figure.get_figheight()))
    axes.pcolormesh(np.linspace(-1, 1, 21)[None], cmap=_diverging_colours(), vmin=-1, vmax=1)
    axes.set_axis_off()
    for x, text, side in ((-0.04, f"−{end}", "right"), (1.04, end, "left")):
        axes.text(x, 0.5, text, ha=side, va="center_baseline", color=GREY, transform=axes.transAxes)


def _draw_words(axes: Axes, line: WordLine, reach: float) -> None:
    """A line of words, each on its colour."""
    edges = np.concatenate([[0.0], line.widths.cumsum()])
    axes.pcolormesh(edges, [0, 1], line.bits.T, cmap=_diverging_colours(), vmin=-reach, vmax=reach, edgecolors="white")
    for centre, word in zip((edges[:-1] + edges[1:]) / 2, line.words, strict=True):
        axes.text(centre, 0.5, shorten(word), ha="center", va="center_baseline", parse_math=False)
    axes.set_axis_off()


def _diverging_colours() -> Any:
    """Colours for numbers on both sides of 0, light enough for black letters."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("held", colormaps[DIVERGING](np.linspace(PALEST, 1 - PALEST, 65)))


def _check_cells(
    sentences: Sequence[Sequence[str]], cells: Mapping[str, Sequence[NDArray[np.float64]]], path: Path
) -> None:
    """Refuse what no picture can hold."""
    image_format(path)
    words = sum(map(len, sentences))
    if not words or not cells:
        raise DataError(f"{path}: there is nothing to draw; give at least one word and one cell")
    if words > MAX_WORDS:
        raise DataError(f"{path}: {words:,} words, and a picture holds {MAX_WORDS} at most; give fewer sentences")
    if len(cells) > MAX_CELLS:
        raise DataError(f"{path}: {len(cells)} cells, and a picture holds {MAX_CELLS} at most; choose fewer")
    for name, values in cells.items():
        if not all(np.isfinite(held).all() for held in values):
            raise DataError(f"{path}: {name} holds a number that is infinite or undefined; leave it out")


# -- saliency --------------------------------------------------------------------------------------------------------


def draw_saliency(
    read: Sequence[str], predicted: Sequence[str], norms: NDArray[np.float64], path: Path, *, title: str = ""
) -> None:
    """A row for each word predicted: the darker a word read before it, the more the prediction hangs on it.

    # norms: (predicted, read); in each row, those of words not yet read are left blank
    """
    _check_saliency(read, predicted, norms, path)
    words = [max(len(shorten(word)) for word in some) * LETTER + 0.15 for some in (predicted, read)]
    left, above = max(words[0], LETTER * len(PREDICTED) + 0.1), words[1] + 0.3 + TITLE * bool(title)  # inches
    side = min(SQUARE * len(read), WIDTH - left - RIGHT)
    height = above + side + 0.4
    with ignore_missing_glyphs(path), new_figure(height, path) as figure:
        axes = figure.add_axes((left / WIDTH, 0.4 / height, side / WIDTH, side / height))
        scaled = norms / np.maximum(norms.max(axis=1, keepdims=True), np.finfo(float).tiny)
        blank = np.triu(np.ones(norms.shape, bool), 1)
        axes.pcolormesh(np.ma.masked_array(scaled, blank), cmap=SHADES, vmin=0, vmax=1, edgecolors="white", linewidth=1)
        axes.set_ylim(len(predicted), 0)
        axes.xaxis.tick_top()
        places = [place + 0.5 for place in range(len(read))]
        axes.set_xticks(places, list(map(shorten, read)), rotation=90, parse_math=False)
        axes.set_yticks(places, list(map(shorten, predicted)), parse_math=False)
        axes.tick_params(length=0, pad=2, labelcolor="black")
        axes.spines[:].set_visible(False)
        figure.text(left / WIDTH, 1 - (above - words[1]) / height, READ, color=GREY, va="top")
        figure.text((left - 0.05) / WIDTH, (0.47 + side) / height, PREDICTED, color=GREY, ha="right")
        figure.text(left / WIDTH, 0.2 / height, NOTE, color=GREY, parse_math=False)
        figure.text(0.1 / WIDTH, 1 - 0.22 / height, title, fontsize=FONT + 1.5, parse_math=False)


def _check_saliency(read: Sequence[str], predicted: Sequence[str], norms: NDArray[np.float64], path: Path) -> None:
    image_format(path)
    if not len(read) or norms.shape != (len(predicted), len(read)) or len(read) != len(predicted):
        raise DataError(f"{path}: a heat map has a row for each word predicted and a column for each word read")
    if len(read) > MAX_SQUARES:
        size = f"{len(read) - 1} words"
        raise DataError(f"{path}: {size}, and a heat map holds {MAX_SQUARES - 1} at most; give a shorter sentence")
    if not np.isfinite(norms).all():
        raise DataError(f"{path}: a gradient is infinite or undefined; look for another sentence")


# -- the vanishing gradient ------------------------------------------------------------------------------------------


class GradientNorms(NamedTuple):
    """|dl / d state| 0, 1, 2, ... words earlier, of one model."""

    trained: NDArray[np.float64]
    untrained: NDArray[np.float64]


def draw_gradients(models: Mapping[str, GradientNorms], path: Path, *, title: str = "") -> None:
    """How much of the gradient arrives so many words back, as a share of that at distance 0: two lines a model.

    Where nothing arrives at all, a line ends.
    """
    lines = list(_lines_of(models, path))
    with new_figure(4.6, path) as figure:
        room = LABEL_GAP + 0.1 + LETTER * max(len(line.label.text) for line in lines)  # inches for the names
        axes = figure.add_axes((0.09, 0.12, 0.91 - room / WIDTH, 0.79))
        for line in lines:
            axes.plot(line.distances, line.powers, color=line.label.colour, linestyle=line.style)
        powers = np.concatenate([line.powers for line in lines])
        _axis_of_powers(axes, powers.min(), powers.max())
        axes.set_xlim(0, max(line.distances[-1] for line in lines) or 1)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel(f"words back ({AFTER}, {BEFORE})")
        axes.set_ylabel("gradient norm, as a share of that at 0")
        axes.set_title(title, loc="left", parse_math=False)
        label_ends(figure, axes, [line.label for line in lines])


class GradientLine(NamedTuple):
    """A line on a scale of powers of ten."""

    distances: NDArray[np.int64]
    powers: NDArray[np.float64]
    style: Any
    label: LineLabel


def _lines_of(models: Mapping[str, GradientNorms], path: Path) -> Iterator[GradientLine]:
    """The lines, each model's in its colour; refuses what cannot be drawn."""
    image_format(path)
    if not models:
        raise DataError(f"{path}: there is nothing to draw; give at least one model")
    if len(models) > len(COLOURS):
        raise DataError(f"{path}: {len(models)} models, and there are {len(COLOURS)} colours; draw fewer")
    for colour, (name, reach) in zip(COLOURS[1:] + COLOURS[:1], models.items(), strict=False):
        for norms, style, when in ((reach.trained, "-", ""), (reach.untrained, DASHES, ", untrained")):
            told = f"{shorten(name)}{when}"
            if not len(norms) or not np.isfinite(norms).all() or norms[0] <= 0:
                raise DataError(f"{path}: {told} has no gradient to draw, or an infinite one; leave the model out")
            arrives = int(np.argmin(norms > 0)) if (norms <= 0).any() else len(norms)
            powers = np.log10(norms[:arrives] / norms[0])
            label = LineLabel(told, arrives - 1, float(powers[-1]), colour)
            yield GradientLine(np.arange(arrives), powers, style, label)


def _axis_of_powers(axes: Axes, lowest: float, highest: float) -> None:
    """Ticks at powers of ten, a handful of them: 1, 0.1, 0.01, then 10⁻³ and so on."""
    top, bottom = math.ceil(highest), min(-1, math.floor(lowest))
    every = max(1, math.ceil((top - bottom) / 8))
    ticks = range(top, bottom - 1, -every)
    axes.set_yticks(list(ticks), [_power(tick) for tick in ticks])
    axes.set_ylim(bottom, top + 0.05)
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)


def _power(exponent: int) -> str:
    """
    >>> [_power(exponent) for exponent in (2, 0, -2, -12)]
    ['100', '1', '0.01', '10⁻¹²']
    """
    if -3 < exponent < 4:
        return f"{10.0**exponent:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
