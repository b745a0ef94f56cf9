"""The picture of a ladder: how far each rung is above the floor and, beside it, what it gets right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.report.figures import COLOURS, FONT, GREY, WIDTH, check_points, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 0.27  # inches a rung
ABOVE, BELOW = 1.3, 0.5  # inches over and under the rows, for names of columns and for the axis
ALONE_ABOVE = 0.5  # where there are no columns to name
NAMES, COSTS, GAP = 0.215, 0.27, 0.06  # shares of the width: the rungs' names, their perplexities, what is between
EDGE = 0.965  # the right end of the fields: the last column's name leans over it
SHADES = "Blues"
LIGHT, DARK = 0.04, 0.85  # of the shades: for 0% and for 100%
TURN = 0.75  # a share from which on the letters on it are white
DOT = COLOURS[1]
NOTE = "% right; guessing: 50, on all four 6"
TICKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


def draw_ladder(
    perplexities: Mapping[str, float],
    floor: float | None,
    shares: Mapping[str, Mapping[str, float]],
    path: Path,
    *,
    title: str = "",
    note: str = NOTE,
) -> None:
    """A row for each rung: its perplexity against the floor, and how often it is right, from 0 to 1, by question.

    The note stands below the shares, and says what they are. Of a text whose truth is not known there is no floor, and
    perplexities may stand alone, without shares.
    Perplexities that are infinite have no dot, and shares that are undefined no number.
    """
    finite = {name: perplexity for name, perplexity in perplexities.items() if math.isfinite(perplexity)}
    lowest = {} if floor is None else {"": {"the floor": {0: floor}}}
    check_points({**lowest, "rungs": {name: {0: value} for name, value in finite.items()}}, path)
    names, questions = list(perplexities), list(next(iter(shares.values()), ()))
    height = (ABOVE if questions else ALONE_ABOVE) + ROW * len(names) + BELOW
    low, tall = BELOW / height, ROW * len(names) / height
    with new_figure(height, path) as figure:
        left = figure.add_axes((NAMES, low, COSTS if questions else EDGE - NAMES, tall))
        _draw_perplexities(left, names, finite, floor)
        begin = NAMES + COSTS + GAP
        if questions:
            right = figure.add_axes((begin, low, EDGE - begin, tall))
            _draw_shares(right, [[shares[name][question] for question in questions] for name in names], questions)
            right.text(0, len(names) + 0.4, note, color=GREY, va="top")
        figure.text(0.1 / WIDTH, 1 - 0.24 / height, title, fontsize=FONT + 1.5)


def _draw_perplexities(
    axes: Axes, names: Sequence[str], perplexities: Mapping[str, float], floor: float | None
) -> None:
    """Each rung a dot that hangs on a line from the floor, on a scale of logarithms: as long as its nats above."""
    rows = {name: row for row, name in enumerate(names)}
    begin = floor if floor is not None else min(perplexities.values()) / 1.2
    for name, perplexity in perplexities.items():
        axes.plot([begin, perplexity], [rows[name]] * 2, color=DOT, linewidth=1)
        axes.plot(perplexity, rows[name], color=DOT, marker="o")
        said = f" {perplexity:,.1f}"
        axes.annotate(said, (perplexity, rows[name]), (3, 0), textcoords="offset points", va="center", color=DOT)
    axes.set_xscale("log")
    axes.set_xlim(
        begin / 1.08 if floor is not None else begin, (2.6 if floor is not None else 1.4) * max(perplexities.values())
    )
    shown = [tick for tick in TICKS if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]
    axes.set_xticks(shown, [f"{tick:,}" for tick in shown])
    axes.minorticks_off()
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("perplexity")
    if floor is not None:
        axes.axvline(floor, color=GREY, linewidth=2.5)
        axes.annotate(f"the floor: {floor:.1f}", (floor, -0.5), (0, 4), textcoords="offset points", color=GREY)


def _draw_shares(axes: Axes, shares: Sequence[Sequence[float]], questions: Sequence[str]) -> None:
    """A field for each rung and question, the darker the more often right, with the percentage in it."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    part = LinearSegmentedColormap.from_list("part", colormaps[SHADES]([LIGHT, (LIGHT + DARK) / 2, DARK]))
    axes.pcolormesh(shares, cmap=part, vmin=0, vmax=1, edgecolors="white", linewidth=1.5)
    for row, line in enumerate(shares):
        for column, share in enumerate(line):
            if not math.isnan(share):
                colour = "white" if share > TURN else "black"
                axes.text(column + 0.5, row + 0.5, f"{100 * share:.0f}", ha="center", va="center", color=colour)
    axes.set_ylim(len(shares), 0)
    axes.set_yticks([])
    axes.xaxis.tick_top()
    axes.set_xticks([column + 0.5 for column in range(len(questions))], questions, rotation=40, ha="left")
    axes.tick_params(axis="x", length=0, pad=1)
    axes.spines[:].set_visible(False)
