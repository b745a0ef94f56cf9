"""Common parts of all figures: style, labels, files.

Figures take plain numbers and write one file, completely or not at all; the same numbers give the same bytes. The file
name's extension selects the format, .svg or .png. Lines are labelled at their ends instead of in a legend. The colours
can be distinguished with colour-blind vision (Okabe and Ito's, and one of Tol's). Matplotlib is an optional dependency
(`pip install 'dragoman[plot]'`) and is only imported when a figure is drawn.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.core.errors import DataError, require_extra
from dragoman.io.storage import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Metadata of the files: neither date nor version, so that files can be compared.
METADATA: dict[str, dict[str, None]] = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
COLOURS = ("#7F7F7F", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255")
MARKERS = "osD^vPX*<"
GREY = "#555555"  # axes and notes
WIDTH = 8.0  # inches
DPI = 200  # of .png
FONT_SIZE = 9.5  # points
TITLE_SIZE = FONT_SIZE + 1.5
POINTS_PER_INCH = 72
MAX_WORD_LENGTH = 24  # longer words are shortened
LETTER_WIDTH = 0.6 * FONT_SIZE / POINTS_PER_INCH  # inches, approximately
LABEL_SPACING = 1.35  # distance of two labels, in font sizes
LABEL_GAP = 0.2  # inches between the axes and a label
TIE_STEPS = 20  # lines whose ends differ by less than this part of the spacing are labelled in their given order
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
    "xtick.color": GREY,
    "ytick.color": GREY,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
}


# -- files -----------------------------------------------------------------------------------------------------------


@contextmanager
def new_figure(height: float, path: Path) -> Iterator[Figure]:
    """Yield an empty figure of the standard width and the given height (inches), and then write it to `path`."""
    file_format = image_format(path)
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height))
        yield figure
        with atomic_file(path) as temporary:
            figure.savefig(temporary, format=file_format, dpi=DPI, metadata=METADATA[file_format])


def image_format(path: Path) -> str:
    """Return the format that the file name asks for, svg or png; raise an error for others, or without Matplotlib."""
    require_extra("matplotlib", "plot")
    extension = path.suffix.lower().removeprefix(".")
    if extension not in METADATA:
        raise DataError(f"{path}: figures cannot be written in this format; end the name in .svg or .png")
    return extension


def check_points(lines: Mapping[str, Mapping[Any, float]], path: Path) -> None:
    """Raise an error if there is nothing to draw, or a value that cannot be drawn.

    Args:
        lines: the points of each line by its name.
    """
    image_format(path)
    if not lines:
        raise DataError(f"{path}: there is nothing to draw; give at least one line")
    for name, points in lines.items():
        if not points:
            raise DataError(f"{path}: {name} has no points to draw; leave it out")
        if not all(map(math.isfinite, points.values())):
            raise DataError(f"{path}: {name} has a point that is infinite or undefined; leave it out")


@contextmanager
def single_glyph_warning(path: Path) -> Iterator[None]:
    """Replace warnings about missing glyphs by a single one.

    There is none for an .svg: its text is set by the program that shows it.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    missing = [warning for warning in caught if "missing from font" in str(warning.message)]
    for warning in caught:
        if warning not in missing:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if missing and image_format(path) != "svg":
        problem = "no installed font has all characters of these words; they are drawn as boxes"
        warnings.warn(f"{path}: {problem}; write an .svg, or install Noto Sans CJK", stacklevel=4)


def shorten(word: str) -> str:
    """Return a word that is not too long for a figure."""
    return word if len(word) <= MAX_WORD_LENGTH else word[: MAX_WORD_LENGTH - 1] + "…"


# -- lines and their labels ------------------------------------------------------------------------------------------


class LineLabel(NamedTuple):
    """A text beside the end of a line, at (x, y)."""

    text: str
    x: float
    y: float
    colour: str


class LineStyle(NamedTuple):
    colour: str
    marker: str


def line_styles(names: Mapping[str, object], path: Path) -> dict[str, LineStyle]:
    """Return a colour and a marker for each line; grey comes last."""
    if len(names) > len(COLOURS):
        raise DataError(f"{path}: {len(names)} lines, and there are {len(COLOURS)} colours; leave some out")
    return dict(zip(names, map(LineStyle, COLOURS[1:] + COLOURS[:1], MARKERS), strict=False))


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
        axes.plot([end, edge], [label.y, y], color=label.colour, linewidth=0.6, transform=transform, clip_on=False)
        axes.text(edge, y, f" {label.text}", color=label.colour, va="center", transform=transform)


def spread_labels(positions: Sequence[float], gap: float) -> list[float]:
    """Return the nearest positions that keep a gap from each other and the same order.

    >>> spread_labels([1.0, 5.0, 1.0], gap=1.0)
    [0.5, 5.0, 1.5]
    """
    order = sorted(range(len(positions)), key=positions.__getitem__)
    groups: list[list[float]] = []  # positions minus the gaps before them; those of one group share their mean
    for rank, index in enumerate(order):
        groups.append([positions[index] - rank * gap])
        while len(groups) > 1 and _mean(groups[-2]) >= _mean(groups[-1]):
            last = groups.pop()
            groups[-1] += last
    levels = [_mean(group) for group in groups for _ in group]
    spread = {index: levels[rank] + rank * gap for rank, index in enumerate(order)}
    return [spread[index] for index in range(len(positions))]


def _mean(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers)
