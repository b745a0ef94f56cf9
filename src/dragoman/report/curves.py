"""Pictures of translators side by side: quality by the length of sentences, and by minutes of training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.core.errors import DataError
from dragoman.report.attention_figure import single_glyph_warning
from dragoman.report.figures import (
    COLOURS,
    GREY,
    LABEL_GAP,
    MARKERS,
    WIDTH,
    LineLabel,
    LineStyle,
    check_points,
    image_format,
    label_ends,
    new_figure,
)
from dragoman.report.surprisal_figure import LETTER, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT = 4.2  # inches
LEFT, BELOW, ABOVE = 0.6, 0.75, 0.4  # inches around the axes
WORDS = "words in the source sentence, and below how many sentences there are"
MINUTES = "minutes of training"


def draw_bleu_by_length(
    classes: Mapping[str, int],
    systems: Mapping[str, Sequence[float]],
    path: Path,
    *,
    title: str = "",
    ylabel: str = "BLEU",
) -> None:
    """A line for each system over classes of length: {class: sentences in it}, {system: a value for each class}.

    Where a value is undefined (NaN), as for a class without sentences, the line has a gap.
    """
    for name, values in systems.items():
        if len(values) != len(classes):
            raise DataError(
                f"{path}: {name} has {len(values)} values for {len(classes)} classes of length; give each one"
            )
    lines = {
        name: {float(place): value for place, value in enumerate(values) if not math.isnan(value)}
        for name, values in systems.items()
    }
    check_points({"": lines}, path)
    looks = _looks(lines, path)
    with single_glyph_warning(path), new_figure(HEIGHT, path) as figure:
        axes = _axes(figure, lines)
        labels = []
        for name, points in lines.items():
            axes.plot(range(len(classes)), systems[name], color=looks[name].colour, marker=looks[name].marker)
            labels.append(_at_end(name, points, looks[name]))
        ticks = [f"{name}\n{sentences:,}" for name, sentences in classes.items()]
        axes.set_xticks(range(len(classes)), ticks, parse_math=False)
        axes.set_xlim(-0.3, len(classes) - 0.7)
        axes.set_ylim(bottom=0)
        _finish(figure, axes, labels, (WORDS, ylabel, title))


def draw_learning_curves(
    curves: Mapping[str, Sequence[tuple[float, float]]], path: Path, ylabel: str, *, title: str = ""
) -> None:
    """A line for each system: {name: [(minutes of training, value), ...]}."""
    lines = {name: dict(sorted(points)) for name, points in curves.items()}
    check_points({"": lines}, path)
    if not all(math.isfinite(minutes) and minutes >= 0 for points in lines.values() for minutes in points):
        raise DataError(f"{path}: a point has no time; give minutes of training, from 0 on")
    looks = _looks(lines, path)
    with single_glyph_warning(path), new_figure(HEIGHT, path) as figure:
        axes = _axes(figure, lines)
        labels = []
        for name, points in lines.items():
            axes.plot(list(points), list(points.values()), color=looks[name].colour, marker=looks[name].marker)
            labels.append(_at_end(name, points, looks[name]))
        axes.set_xlim(0, 1.03 * max(max(points) for points in lines.values()) or 1)
        _finish(figure, axes, labels, (MINUTES, ylabel, title))


# -- parts of a picture ----------------------------------------------------------------------------------------------


def _axes(figure: Figure, names: Mapping[str, object]) -> Axes:
    """Room for the names of the lines at the right, as much as they need."""
    right = LABEL_GAP + 0.2 + LETTER * max(len(shorten(name)) for name in names)  # inches
    wide, tall = WIDTH - LEFT - right, HEIGHT - BELOW - ABOVE
    return figure.add_axes((LEFT / WIDTH, BELOW / HEIGHT, wide / WIDTH, tall / HEIGHT))


def _at_end(name: str, points: Mapping[float, float], look: LineStyle) -> LineLabel:
    last = max(points)
    return LineLabel(shorten(name).replace("$", r"\$"), last, points[last], look.colour)


def _finish(figure: Figure, axes: Axes, labels: Sequence[LineLabel], texts: tuple[str, str, str]) -> None:
    """What stands around the lines: below, at the left and above; and their names."""
    xlabel, ylabel, title = texts
    axes.set_xlabel(xlabel, parse_math=False)
    axes.set_ylabel(ylabel, parse_math=False)
    axes.set_title(title, loc="left", parse_math=False)
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    label_ends(figure, axes, labels)


def _looks(lines: Mapping[str, object], path: Path) -> dict[str, LineStyle]:
    """A colour and a marker for each line; grey comes last."""
    image_format(path)
    if len(lines) > len(COLOURS):
        raise DataError(f"{path}: {len(lines)} lines, and there are {len(COLOURS)} colours; leave some out")
    return dict(zip(lines, map(LineStyle, COLOURS[1:] + COLOURS[:1], MARKERS), strict=False))
