"""Charts of several models: learning curves, BLEU by sentence length, accuracy by distance, and the ladder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.errors import DataError
from dragoman.report.figures import (
    COLORS,
    FONT_SIZE,
    GREY,
    MARKERS,
    LineLabel,
    LineStyle,
    check_points,
    draw_matrix,
    label_ends,
    line_chart,
    line_styles,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FLOOR_LABEL = "the floor (true distribution)"
GUESSING_LABEL = "guessing"
ORDERED_COLORS, LIGHTEST = "viridis", 0.85  # a colour map for ordered lines, and the lightest part of it that is used


def _ordered_styles(count: int) -> list[LineStyle]:
    """Return colours from dark to light, for lines that have an order."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    colors = [to_hex(colormaps[ORDERED_COLORS](LIGHTEST * number / max(1, count - 1))) for number in range(count)]
    return [LineStyle(color, MARKERS[number % len(MARKERS)]) for number, color in enumerate(colors)]


def draw_curves_by_size(
    curves: Mapping[str, Mapping[int, float]], path: Path, *, title: str = "", ordered: bool = False
) -> None:
    """Draw nats above the floor by sentences of training text, one line per model.

    Args:
        curves: {model: {sentences: nats}}.
        ordered: whether the models have an order, which their colours then show.
    """
    check_points({name: points.values() for name, points in curves.items()}, path)
    count = len(curves)
    cycle = [LineStyle(COLORS[n % len(COLORS)], MARKERS[n % len(MARKERS)]) for n in range(count)]
    styles = dict(zip(curves, _ordered_styles(count) if ordered else cycle, strict=True))
    lines = {name: {float(size): points[size] for size in sorted(points)} for name, points in curves.items()}
    names = {"xlabel": "sentences of training text", "ylabel": "nats per token above the floor"}
    with line_chart(lines, styles, path, title=title, height=4.6, constants={FLOOR_LABEL: 0.0}, **names) as axes:
        sizes = sorted({size for points in curves.values() for size in points})
        axes.set_xscale("log")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        axes.set_xlim(sizes[0] / 1.15, sizes[-1] * 1.05)
        axes.set_ylim(0, 1.05 * max(max(points.values()) for points in curves.values()))


class Proportion(NamedTuple):
    """A share of a number of trials."""

    value: float
    trials: int

    @property
    def standard_error(self) -> float:
        return math.sqrt(self.value * (1 - self.value) / self.trials)


AccuracyLines = Mapping[str, Mapping[str, Proportion]]  # {model: {distance: accuracy}}


def draw_accuracy_by_distance(
    panels: Mapping[str, AccuracyLines], path: Path, *, title: str = "", guessing: float = 0.5
) -> None:
    """Draw accuracies by distance with standard errors, one panel per phenomenon: {phenomenon: {model: ...}}."""
    check_points({name: [0.0] for name in panels}, path)
    for lines in panels.values():
        check_points({name: [point.value for point in points.values()] for name, points in lines.items()}, path)
    distances = list(dict.fromkeys(d for lines in panels.values() for points in lines.values() for d in points))
    accuracies = [point for lines in panels.values() for points in lines.values() for point in points.values()]
    lowest = math.floor(4 * min(guessing, *(point.value - point.standard_error for point in accuracies))) / 4
    with new_figure(3.6, path, title, left=0.8) as figure:
        names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
        styles = dict(zip(names, _ordered_styles(len(names)), strict=True))
        width = 0.785 / len(panels)
        ticks = sorted({guessing, *(quarter / 4 for quarter in range(round(4 * lowest), 5))})
        percents = [f"{GUESSING_LABEL}\n{tick:.0%}" if tick == guessing else f"{tick:.0%}" for tick in ticks]
        for number, (phenomenon, lines) in enumerate(panels.items()):
            axes = figure.add_axes((0.1 + number * width, 0.145, 0.92 * width, 0.67))
            labels = []
            for name, points in lines.items():
                color, marker, _ = styles[name]
                shift = 0.07 * (names.index(name) - (len(names) - 1) / 2)  # so that lines do not hide each other
                xs = [distances.index(distance) + shift for distance in points]
                values, errors = zip(*((point.value, point.standard_error) for point in points.values()), strict=True)
                axes.errorbar(xs, values, errors, color=color, marker=marker, elinewidth=0.7, clip_on=False)
                labels.append(LineLabel(name, xs[-1], values[-1], color))
            axes.set_xticks(range(len(distances)), distances)
            axes.set_xlim(-0.4, len(distances) - 0.6)
            axes.set_ylim(lowest, 1)
            axes.set_yticks(ticks, [""] * len(ticks) if number else percents)
            axes.set_xlabel("words between")
            axes.axhline(guessing, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
            axes.set_title(phenomenon, loc="left", fontsize=FONT_SIZE)
        label_ends(figure, axes, labels)  # of the last panel: the others have the same colours


def draw_bleu_by_length(
    classes: Mapping[str, int], systems: Mapping[str, Sequence[float]], path: Path, *, title: str = ""
) -> None:
    """Draw one line per system over classes of sentence length. Undefined values (NaN) leave a gap.

    Args:
        classes: number of sentences of each class by its name.
        systems: a value for each class, by the system's name.
    """
    for name, values in systems.items():
        if len(values) != len(classes):
            raise DataError(f"{path}: {name} has {len(values)} values for {len(classes)} classes; give one for each")
    check_points({name: [bleu for bleu in values if not math.isnan(bleu)] for name, values in systems.items()}, path)
    lines = {name: {float(place): bleu for place, bleu in enumerate(values)} for name, values in systems.items()}
    xlabel = "words in the source sentence, and the number of sentences"
    with line_chart(lines, line_styles(lines, path), path, title=title, xlabel=xlabel, ylabel="BLEU") as axes:
        ticks = [f"{name}\n{sentences:,}" for name, sentences in classes.items()]
        axes.set_xticks(range(len(classes)), ticks, parse_math=False)
        axes.set_xlim(-0.3, len(classes) - 0.7)
        axes.set_ylim(bottom=0)


def draw_learning_curves(
    curves: Mapping[str, Sequence[tuple[float, float]]], path: Path, ylabel: str, *, title: str = ""
) -> None:
    """Draw one line per system: {name: [(minutes of training, value), ...]}."""
    lines = {name: dict(sorted(points)) for name, points in curves.items()}
    check_points({name: points.values() for name, points in lines.items()}, path)
    if not all(math.isfinite(minutes) and minutes >= 0 for points in lines.values() for minutes in points):
        raise DataError(f"{path}: a point has no time; give minutes of training, from 0 on")
    xlabel = "minutes of training"
    with line_chart(lines, line_styles(lines, path), path, title=title, xlabel=xlabel, ylabel=ylabel) as axes:
        axes.set_xlim(0, 1.03 * max(max(points) for points in lines.values()) or 1)


ROW_HEIGHT = 0.27  # inches per rung
ABOVE_ROWS, ABOVE_PLAIN_ROWS, BELOW_ROWS = 1.3, 0.5, 0.5  # inches: for column names, for no columns, for the axis
NAMES_WIDTH, PERPLEXITY_WIDTH, COLUMN_GAP = 0.215, 0.27, 0.06  # as shares of the figure's width
RIGHT_EDGE = 0.965  # the last column's name reaches beyond it
DOT_COLOR = COLORS[1]
ACCURACY_NOTE = "% correct; guessing: 50, all four: 6"
PERPLEXITY_TICKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


def draw_ladder(
    perplexities: Mapping[str, float],
    floor: float | None,
    shares: Mapping[str, Mapping[str, float]],
    path: Path,
    *,
    title: str = "",
    note: str = ACCURACY_NOTE,
) -> None:
    """Draw one row per rung: its perplexity, and shares (from 0 to 1) as a heat map.

    Args:
        perplexities: by rung; infinite ones have no dot.
        floor: perplexity of the true distribution, if it is known.
        shares: {rung: {column: share}}; may be empty. Undefined shares have no number.
        note: what the shares are; written below them.
    """
    finite = {name: perplexity for name, perplexity in perplexities.items() if math.isfinite(perplexity)}
    check_points({"perplexities": finite.values(), **({} if floor is None else {"floor": [floor]})}, path)
    names, columns = list(perplexities), list(next(iter(shares.values()), ()))
    height = (ABOVE_ROWS if columns else ABOVE_PLAIN_ROWS) + ROW_HEIGHT * len(names) + BELOW_ROWS
    bottom, rows_height = BELOW_ROWS / height, ROW_HEIGHT * len(names) / height
    with new_figure(height, path, title) as figure:
        width = PERPLEXITY_WIDTH if columns else RIGHT_EDGE - NAMES_WIDTH
        _draw_perplexities(figure.add_axes((NAMES_WIDTH, bottom, width, rows_height)), names, finite, floor)
        if columns:
            left = NAMES_WIDTH + PERPLEXITY_WIDTH + COLUMN_GAP
            axes = figure.add_axes((left, bottom, RIGHT_EDGE - left, rows_height))
            _draw_shares(axes, [[shares[name][column] for column in columns] for name in names], columns)
            axes.text(0, len(names) + 0.4, note, color=GREY, va="top")


def _draw_perplexities(
    axes: Axes, names: Sequence[str], perplexities: Mapping[str, float], floor: float | None
) -> None:
    """Draw a dot per rung on a logarithmic scale; the line from the floor to it is as long as its nats above."""
    start = floor if floor is not None else min(perplexities.values()) / 1.2
    for row, name in enumerate(names):
        if (perplexity := perplexities.get(name)) is not None:
            axes.plot([start, perplexity], [row, row], color=DOT_COLOR, linewidth=1)
            axes.plot(perplexity, row, color=DOT_COLOR, marker="o")
            text, offset = f" {perplexity:,.1f}", "offset points"
            axes.annotate(text, (perplexity, row), (3, 0), textcoords=offset, va="center", color=DOT_COLOR)
    axes.set_xscale("log")
    largest = max(perplexities.values())
    axes.set_xlim(*((start / 1.08, 2.6 * largest) if floor is not None else (start, 1.4 * largest)))
    ticks = [tick for tick in PERPLEXITY_TICKS if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("perplexity")
    if floor is not None:
        axes.axvline(floor, color=GREY, linewidth=2.5)
        axes.annotate(f"the floor: {floor:.1f}", (floor, -0.5), (0, 4), textcoords="offset points", color=GREY)


def _draw_shares(axes: Axes, shares: Sequence[Sequence[float]], columns: Sequence[str]) -> None:
    """Draw a field per rung and column: darker for larger shares, with the percentage in it."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("shares", colormaps["Blues"]([0.04, 0.445, 0.85]))
    draw_matrix(axes, shares, [""] * len(shares), columns, colors=shades, edges=("white", 1.5), rotation=40)
    for row, line in enumerate(shares):
        for column, share in enumerate(line):
            if not math.isnan(share):
                color = "white" if share > 0.75 else "black"
                axes.text(column + 0.5, row + 0.5, f"{100 * share:.0f}", ha="center", va="center", color=color)
