"""Pictures: plain numbers in, one file out, written whole or not at all; the same bytes for the same numbers.

The file's ending says the format, .svg or .png. Lines are labelled where they end, so that nobody has to match colours
with a legend. Colours are those that colour-blind eyes tell apart (Okabe and Ito's, and one of Tol's), or shades from
dark to light where the lines have an order. Matplotlib is imported only when something is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.core.errors import DataError
from dragoman.io.storage import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What is written into a file beside the picture: neither date nor version.
METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
COLOURS = ("#7F7F7F", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255")
SHADES = "viridis"
LIGHTEST = 0.85  # of the shades: lighter ones are hard to see on white
MARKERS = "osD^vPX*<"
GREY = "#555555"  # what is not data
WIDTH = 8.0  # inches
DPI = 200  # of .png
FONT = 9.5  # points
POINTS = 72  # an inch
TIES = 20  # lines that end within this part of the spacing are taken to end together
SPACING = 1.35  # of labels, in sizes of their letters
LABEL_GAP = 0.2  # inches from the edge of the axes to a label
SHIFT = 0.07  # of a distance, between lines that would hide each other
FLOOR = "the floor: the truth itself"
GUESSING = "guessing"
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "dragoman",  # names inside the file are the same every time
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],  # the first one comes with Matplotlib
    "font.size": FONT,
    "axes.titlesize": FONT + 1.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
}


class Proportion(NamedTuple):
    """A share of so many trials."""

    value: float
    trials: int

    @property
    def error(self) -> float:
        """The standard error, of independent trials."""
        return math.sqrt(self.value * (1 - self.value) / self.trials)


class LineLabel(NamedTuple):
    """What stands beside the end of a line."""

    text: str
    x: float
    y: float
    colour: str


class LineStyle(NamedTuple):
    """How a line is told from others."""

    colour: str
    marker: str


def draw_curves_by_size(
    curves: Mapping[str, Mapping[int, float]], path: Path, *, title: str = "", ordered: bool = False
) -> None:
    """Nats above the floor by sentences of training text: {model: {sentences: nats}}, one line a model.

    Where the models have an order (`ordered`), so have their colours.
    """
    check_points({"": curves}, path)
    with new_figure(4.6, path) as figure:
        axes = figure.add_axes((0.07, 0.12, 0.66, 0.79))
        labels = []
        for look, (name, points) in zip(_looks(len(curves), ordered=ordered), curves.items(), strict=True):
            sizes = sorted(points)
            axes.plot(sizes, [points[size] for size in sizes], color=look.colour, marker=look.marker)
            labels.append(LineLabel(name, sizes[-1], points[sizes[-1]], look.colour))
        _axis_of_sizes(axes, {size for points in curves.values() for size in points})
        axes.set_ylim(0, 1.05 * max(max(points.values()) for points in curves.values()))
        axes.axhline(0, color=GREY, linewidth=2.5)
        axes.set_ylabel("nats a token above the floor")
        axes.set_title(title, loc="left")
        label_ends(figure, axes, [*labels, LineLabel(FLOOR, axes.get_xlim()[1], 0.0, GREY)])


def draw_accuracy_by_distance(
    panels: Mapping[str, Mapping[str, Mapping[str, Proportion]]], path: Path, *, title: str = "", guessing: float = 0.5
) -> None:
    """How often models are right, side by side for each phenomenon: {phenomenon: {model: {distance: share}}}.

    Models and distances have an order, that in which they come. Bars are standard errors, as of independent trials.
    """
    check_points(panels, path)
    distances = list(dict.fromkeys(d for models in panels.values() for points in models.values() for d in points))
    shares = [share for models in panels.values() for points in models.values() for share in points.values()]
    lowest = math.floor(4 * min(guessing, *(share.value - share.error for share in shares))) / 4
    names = list(dict.fromkeys(name for models in panels.values() for name in models))
    looks = dict(zip(names, _looks(len(names), ordered=True), strict=True))
    with new_figure(3.6, path) as figure:
        width = 0.785 / len(panels)
        for number, (phenomenon, models) in enumerate(panels.items()):
            axes = figure.add_axes((0.1 + number * width, 0.145, 0.92 * width, 0.67))
            labels = [_accuracies(axes, distances, name, points, looks) for name, points in models.items()]
            _axis_of_shares(axes, distances, lowest, guessing, outer=number == 0)
            axes.set_title(phenomenon, loc="left", fontsize=FONT)
        label_ends(figure, axes, labels)  # those of the last one: the others have the same colours
        figure.text(0.1, 0.925, title, fontsize=FONT + 1.5)


# -- parts of a picture ----------------------------------------------------------------------------------------------


def _accuracies(
    axes: Axes, distances: Sequence[str], name: str, points: Mapping[str, Proportion], looks: Mapping[str, LineStyle]
) -> LineLabel:
    look, shift = looks[name], SHIFT * (list(looks).index(name) - (len(looks) - 1) / 2)
    places = [distances.index(distance) + shift for distance in points]
    values, errors = [share.value for share in points.values()], [share.error for share in points.values()]
    axes.errorbar(places, values, errors, color=look.colour, marker=look.marker, elinewidth=0.7, clip_on=False)
    return LineLabel(name, places[-1], values[-1], look.colour)


def _axis_of_sizes(axes: Axes, sizes: Iterable[int]) -> None:
    every = sorted(sizes)
    axes.set_xscale("log")
    axes.set_xticks(every, [f"{size:,}" for size in every])
    axes.minorticks_off()
    axes.set_xlim(every[0] / 1.15, every[-1] * 1.05)
    axes.set_xlabel("sentences of training text")


def _axis_of_shares(axes: Axes, distances: Sequence[str], lowest: float, chance: float, *, outer: bool) -> None:
    """The outermost one has numbers, and says what the line of chance is."""
    ticks = sorted({chance, *(quarter / 4 for quarter in range(round(4 * lowest), 5))})
    names = [f"{GUESSING}\n{tick:.0%}" if tick == chance else f"{tick:.0%}" for tick in ticks]
    axes.set_xticks(range(len(distances)), distances)
    axes.set_xlim(-0.4, len(distances) - 0.6)
    axes.set_ylim(lowest, 1)
    axes.set_yticks(ticks, names if outer else [""] * len(ticks))
    axes.set_xlabel("words between")
    axes.axhline(chance, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=0)


def label_ends(figure: Figure, axes: Axes, labels: Sequence[LineLabel]) -> None:
    """Write each label to the right of the axes, as near to the end of its line as the others leave room."""
    inches = axes.get_position().height * figure.get_figheight()
    low, high = axes.get_ylim()
    gap = SPACING * FONT / POINTS / inches * (high - low)
    across = axes.get_yaxis_transform()  # x as a share of the axes' width, y as it is
    edge = 1 + LABEL_GAP / (axes.get_position().width * figure.get_figwidth())
    from_data = axes.transData - axes.transAxes
    upwards = labels[::-1]
    wanted = [round(TIES * label.y / gap) * gap / TIES for label in upwards]  # nearly alike: in the order they came
    for label, y in zip(upwards, spread_labels(wanted, gap), strict=True):
        end = from_data.transform((label.x, label.y))[0]
        axes.plot([end, edge], [label.y, y], color=label.colour, linewidth=0.6, transform=across, clip_on=False)
        axes.text(edge, y, f" {label.text}", color=label.colour, va="center", transform=across)


def spread_labels(places: Sequence[float], gap: float) -> list[float]:
    """The nearest places that keep a gap from each other and the same order: those that crowd share their mean.

    >>> spread_out([1.0, 5.0, 1.0], gap=1.0)
    [0.5, 5.0, 1.5]
    """
    order = sorted(range(len(places)), key=lambda number: places[number])
    crowds: list[list[float]] = []  # each place less the gaps before it: within a crowd all are to be alike
    for rank, number in enumerate(order):
        crowds.append([places[number] - rank * gap])
        while len(crowds) > 1 and _mean(crowds[-2]) >= _mean(crowds[-1]):
            last = crowds.pop()
            crowds[-1] += last
    level = [_mean(crowd) for crowd in crowds for _ in crowd]
    spread = {number: level[rank] + rank * gap for rank, number in enumerate(order)}
    return [spread[number] for number in range(len(places))]


def _mean(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def _looks(count: int, *, ordered: bool) -> list[LineStyle]:
    """A colour and a marker for each of several lines."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    if ordered:
        shades = colormaps[SHADES]
        colours = [to_hex(shades(LIGHTEST * number / max(1, count - 1))) for number in range(count)]
    else:
        colours = [COLOURS[number % len(COLOURS)] for number in range(count)]
    return [LineStyle(colour, MARKERS[number % len(MARKERS)]) for number, colour in enumerate(colours)]


# -- the file --------------------------------------------------------------------------------------------------------


@contextmanager
def new_figure(height: float, path: Path) -> Iterator[Figure]:
    """An empty picture to draw in; it is written when all is drawn."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height))
        yield figure
        kind = image_format(path)
        with atomic_file(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=DPI, metadata=METADATA[kind])


def image_format(path: Path) -> str:
    """The format that the file's ending asks for; others than those known are refused."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in METADATA:
        raise DataError(f"{path}: no picture can be written in this format; end the name in .svg or .png")
    return kind


def check_points(panels: Mapping[str, Mapping[str, Mapping[Any, Any]]], path: Path) -> None:
    """Refuse to draw nothing, and what has no place in a picture."""
    image_format(path)
    lines = [(name, points) for models in panels.values() for name, points in models.items()]
    if not lines or not all(panels.values()):
        raise DataError(f"{path}: there is nothing to draw; give at least one line")
    for name, points in lines:
        if not points:
            raise DataError(f"{path}: {name} has no points to draw; leave it out")
        values = (point.value if isinstance(point, Proportion) else point for point in points.values())
        if not all(map(math.isfinite, values)):
            raise DataError(f"{path}: {name} has a point that is infinite or undefined; leave it out")
