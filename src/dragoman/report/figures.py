"""Common parts of all figures: files, style, lines with labels, heat maps.

Figures take plain numbers and write one file, completely or not at all; the same numbers give the same bytes. The file
name's extension selects the format, .svg or .png. Lines are labelled at their ends instead of in a legend. The colours
can be distinguished with colour-blind vision (Okabe and Ito's, and one of Tol's). Matplotlib is an optional dependency
(`pip install 'dragoman[plot]'`) and is only imported when a figure is drawn.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dragoman.core.errors import DataError, require_extra, shorten
from dragoman.io.files import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

# Metadata of the files: neither date nor version, so that files can be compared.
METADATA: dict[str, dict[str, None]] = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
COLORS = ("#7F7F7F", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255")
LINE_COLORS = COLORS[1:] + COLORS[:1]  # of lines that are labelled: grey comes last
MARKERS = "osD^vPX*<"
GREY = "#555555"  # axes and notes
WIDTH = 8.0  # inches
DPI = 200  # of .png
FONT_SIZE = 9.5  # points
TITLE_SIZE = FONT_SIZE + 1.5
TITLE_HEIGHT = 0.32  # inches
EDGE = 0.1  # inches
POINTS_PER_INCH = 72
MAX_WORD_LENGTH = 60  # longer ones are not words, and are shortened
LETTER_WIDTH = 0.6 * FONT_SIZE / POINTS_PER_INCH  # inches, approximately
LABEL_SPACING = 1.35  # distance of two labels, in font sizes
LABEL_GAP = 0.2  # inches between the axes and a label
TIE_STEPS = 20  # lines whose ends differ by less than this part of the spacing are labelled in their given order
CHART_LEFT, CHART_BOTTOM, CHART_TOP = 0.65, 0.75, 0.4  # inches around the axes of a line chart
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "dragoman",  # ids are the same every time
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],  # the first is part of Matplotlib
    "font.size": FONT_SIZE,
    "axes.titlesize": TITLE_SIZE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.axisbelow": True,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
}
# Fonts with East Asian characters; installed ones are used in a .png where Matplotlib's own font has no glyph.
EAST_ASIAN_FONTS = (
    *("Noto Sans CJK JP", "Noto Sans JP", "IPAexGothic", "IPAGothic", "TakaoGothic", "Hiragino Sans", "Yu Gothic"),
    *("MS Gothic", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Arial Unicode MS"),
)


@contextmanager
def new_figure(height: float, path: Path, title: str = "", left: float = EDGE) -> Iterator[Figure]:
    """Yield an empty figure of the standard width, and then write it to `path`.

    All warnings about missing glyphs become a single one. There is none for an .svg: its text is set by the program
    that shows it, and it names only usual fonts, so that it is the same on every machine.

    Args:
        height: inches.
        title: written at the top, at `left` inches.
    """
    file_format = image_format(path)
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.font_manager import fontManager

    style = STYLE
    if file_format == "png":
        installed = {font.name for font in fontManager.ttflist}
        fonts = [STYLE["font.sans-serif"][0], *(name for name in EAST_ASIAN_FONTS if name in installed)]
        style = {**STYLE, "font.family": fonts}
    with warnings.catch_warnings(record=True) as caught, matplotlib.rc_context(style):
        warnings.simplefilter("always")
        figure = Figure(figsize=(WIDTH, height))
        yield figure
        figure.text(left / WIDTH, 1 - 0.22 / height, title, fontsize=TITLE_SIZE, parse_math=False)
        with atomic_file(path) as temporary:
            figure.savefig(temporary, format=file_format, dpi=DPI, metadata=METADATA[file_format])
    missing = [warning for warning in caught if "missing from font" in str(warning.message)]
    for warning in caught:
        if warning not in missing:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if missing and file_format != "svg":
        problem = "no installed font has all characters of these words; they are drawn as boxes"
        warnings.warn(f"{path}: {problem}; write an .svg, or install Noto Sans CJK", stacklevel=4)


def image_format(path: Path) -> str:
    """Return the format that the file name asks for, svg or png; raise an error for others, or without Matplotlib."""
    require_extra("matplotlib", "plot")
    extension = path.suffix.lower().removeprefix(".")
    if extension not in METADATA:
        raise DataError(f"{path}: figures cannot be written in this format; end the name in .svg or .png")
    return extension


def check_figure(path: Path, *problems: tuple[object, str]) -> None:
    """Raise an error for a format that cannot be written, or for the first problem: (whether it exists, message)."""
    image_format(path)
    for exists, problem in problems:
        if exists:
            raise DataError(f"{path}: {problem}")


def check_points(lines: Mapping[str, Iterable[float]], path: Path) -> None:
    """Raise an error if there is nothing to draw, or a value that cannot be drawn.

    Args:
        lines: the values of each line by its name.
    """
    check_figure(path, (not lines, "there is nothing to draw; give at least one line"))
    for name, values in lines.items():
        numbers = list(values)
        infinite = not all(map(math.isfinite, numbers))
        check_figure(
            path,
            (not numbers, f"{name} has no points to draw; leave it out"),
            (infinite, f"{name} has a point that is infinite or undefined; leave it out"),
        )


def add_axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes at a place in inches."""
    total = figure.get_figheight()
    return figure.add_axes((left / WIDTH, bottom / total, width / WIDTH, height / total))


def short_label(word: str) -> str:
    """Return a word that is not too long for a figure."""
    return shorten(word, MAX_WORD_LENGTH)


def draw_matrix(
    axes: Axes,
    values: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    colors: str | Colormap = "Blues",
    edges: tuple[str, float] = ("white", 1.0),
    rotation: float = 90,
    font_size: float = FONT_SIZE,
) -> None:
    """Draw a field for each value from 0 to 1, the names of the columns above and those of the rows at the left.

    Args:
        values: (rows, columns)
        edges: colour and width of the lines around the fields.
    """
    axes.pcolormesh(np.ma.asarray(values), cmap=colors, vmin=0, vmax=1, edgecolors=edges[0], linewidth=edges[1])
    axes.set_ylim(len(rows), 0)
    axes.xaxis.tick_top()
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=rotation, parse_math=False)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows, parse_math=False)
    if rotation != 90:
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("left")
    axes.tick_params(length=0, pad=2, labelcolor="black", labelsize=font_size)
    axes.spines[:].set_visible(False)


class LineLabel(NamedTuple):
    """A text beside the end of a line, at (x, y)."""

    text: str
    x: float
    y: float
    color: str


class LineStyle(NamedTuple):
    color: str
    marker: str = ""
    dashes: str | tuple[float, tuple[float, float]] = "-"


def line_styles(names: Iterable[str], path: Path) -> dict[str, LineStyle]:
    """Return a colour and a marker for each line."""
    names = list(names)
    problem = f"{len(names)} lines, and there are {len(COLORS)} colours; leave some out"
    check_figure(path, (len(names) > len(COLORS), problem))
    return dict(zip(names, map(LineStyle, LINE_COLORS, MARKERS), strict=False))


@contextmanager
def line_chart(
    lines: Mapping[str, Mapping[float, float]],
    styles: Mapping[str, LineStyle],
    path: Path,
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    height: float = 4.2,
    constants: Mapping[str, float] | None = None,
) -> Iterator[Axes]:
    """Draw lines, yield their axes for further settings, and label the lines at their ends.

    Args:
        lines: {name: {x: y}}; undefined values (NaN) leave a gap.
        height: of the figure, in inches.
        constants: horizontal lines by their names.
    """
    constants = constants or {}
    with new_figure(height, path) as figure:
        right = LABEL_GAP + 0.2 + LETTER_WIDTH * max(len(short_label(name)) for name in (*lines, *constants))  # inches
        width = WIDTH - CHART_LEFT - right
        axes = add_axes(figure, CHART_LEFT, CHART_BOTTOM, width, height - CHART_BOTTOM - CHART_TOP)
        labels = []
        for name, points in lines.items():
            color, marker, dashes = styles[name]
            axes.plot(list(points), list(points.values()), color=color, marker=marker, linestyle=dashes)
            end = max(x for x, y in points.items() if not math.isnan(y))
            labels.append(LineLabel(short_label(name), end, points[end], color))
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel, parse_math=False)
        axes.set_title(title, loc="left", parse_math=False)
        axes.grid(axis="y")
        yield axes
        for name, value in constants.items():
            axes.axhline(value, color=GREY, linewidth=2.5)
            labels.append(LineLabel(name, axes.get_xlim()[1], value, GREY))
        label_ends(figure, axes, labels)


def label_ends(figure: Figure, axes: Axes, labels: Sequence[LineLabel]) -> None:
    """Write each label to the right of the axes, as close to the end of its line as the other labels allow."""
    inches = axes.get_position().height * figure.get_figheight()
    low, high = axes.get_ylim()
    gap = LABEL_SPACING * FONT_SIZE / POINTS_PER_INCH / inches * (high - low)
    transform = axes.get_yaxis_transform()  # x as a share of the axes' width, y in data coordinates
    edge = 1 + LABEL_GAP / (axes.get_position().width * figure.get_figwidth())
    from_data = axes.transData - axes.transAxes
    upwards = labels[::-1]
    ends = [round(TIE_STEPS * label.y / gap) * gap / TIE_STEPS for label in upwards]
    for label, y in zip(upwards, spread_labels(ends, gap), strict=True):
        end = from_data.transform((label.x, label.y))[0]
        axes.plot([end, edge], [label.y, y], color=label.color, linewidth=0.6, transform=transform, clip_on=False)
        axes.text(edge, y, f" {label.text}", color=label.color, va="center", transform=transform, parse_math=False)


def spread_labels(positions: Sequence[float], gap: float) -> list[float]:
    """Return the nearest positions that keep a gap from each other and the same order.

    >>> spread_labels([1.0, 5.0, 1.0], gap=1.0)
    [0.5, 5.0, 1.5]
    """

    def mean(numbers: Sequence[float]) -> float:
        return math.fsum(numbers) / len(numbers)

    order = sorted(range(len(positions)), key=positions.__getitem__)
    groups: list[list[float]] = []  # positions minus the gaps before them; those of one group share their mean
    for rank, index in enumerate(order):
        groups.append([positions[index] - rank * gap])
        while len(groups) > 1 and mean(groups[-2]) >= mean(groups[-1]):
            last = groups.pop()
            groups[-1] += last
    levels = [mean(group) for group in groups for _ in group]
    spread = {index: levels[rank] + rank * gap for rank, index in enumerate(order)}
    return [spread[index] for index in range(len(positions))]
