"""The figure of a search for settings: the objective over the trials, and its dependence on each option."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.errors import shorten
from dragoman.report.figures import COLORS, FONT_SIZE, GREY, WIDTH, add_axes, check_points, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRIAL_COLOR, BEST_COLOR = COLORS[2], COLORS[1]
COLUMNS = 3  # panels of options in a row
TOP_HEIGHT, PANEL_HEIGHT = 2.7, 1.3  # inches; panels are without their margins
LEFT, RIGHT, GAP = 0.72, 0.12, 0.32  # inches beside and between panels
MARGIN_TOP, MARGIN_BOTTOM = 0.4, 0.6  # inches of each panel, for its title and its axis
SLANTED_BOTTOM = 0.95  # inches for an axis with long names
LOG_RATIO = 3.0  # of the worst and the best value, from which on the objective has a logarithmic axis
MAX_TICK_LABEL, MAX_TICK_LABELS = 16, 24  # characters of a choice, and of all choices side by side


class OptionPanel(NamedTuple):
    """The values of an option in each trial."""

    name: str
    values: Mapping[int, float | str]  # by the numbers of the trials; texts if there are choices
    choices: Sequence[str]  # in the order of the axis; none if the values are numbers
    is_log: bool
    influence: float | None  # from 0 to 1; None: not known

    @property
    def labels(self) -> list[str]:
        """The choices at the axis."""
        return [shorten(choice or "none", MAX_TICK_LABEL) for choice in self.choices]

    @property
    def is_slanted(self) -> bool:
        """Whether the choices are too long to stand side by side."""
        return sum(map(len, self.labels)) > MAX_TICK_LABELS


def draw_trials(
    values: Mapping[int, float],
    others: Mapping[int, str],
    panels: Sequence[OptionPanel],
    path: Path,
    *,
    objective: str,
    is_maximized: bool,
    title: str = "",
) -> None:
    """Draw the objective of each trial with the best so far, and below it against the values of each option.

    Args:
        values: the objective of each finished trial by its number.
        others: what became of the other trials: stopped or failed.
        panels: the options, in the order of the panels.
    """
    check_points({objective: values.values()}, path)
    below = SLANTED_BOTTOM if any(panel.is_slanted for panel in panels) else MARGIN_BOTTOM
    row_height = MARGIN_TOP + PANEL_HEIGHT + below
    height = TOP_HEIGHT + row_height * math.ceil(len(panels) / COLUMNS)
    sign = -1 if is_maximized else 1
    best = min(values, key=lambda number: (sign * values[number], number))
    with new_figure(height, path, title) as figure:
        top_height = TOP_HEIGHT - MARGIN_TOP - MARGIN_BOTTOM
        top = add_axes(figure, LEFT, height - TOP_HEIGHT + MARGIN_BOTTOM, WIDTH - LEFT - RIGHT, top_height)
        _draw_history(top, values, others, best, is_maximized=is_maximized)
        limits = _set_scale(top, list(values.values()), objective)
        width = (WIDTH - LEFT - RIGHT - GAP * (COLUMNS - 1)) / COLUMNS
        for place, panel in enumerate(panels):
            row, column = divmod(place, COLUMNS)
            bottom = height - TOP_HEIGHT - row_height * (row + 1) + below
            axes = add_axes(figure, LEFT + column * (width + GAP), bottom, width, PANEL_HEIGHT)
            _draw_option(axes, panel, values, best)
            _set_scale(axes, list(values.values()), objective if column == 0 else "")
            axes.set_ylim(limits)
            if column:
                axes.tick_params(axis="y", which="both", labelleft=False)


def _draw_history(
    axes: Axes, values: Mapping[int, float], others: Mapping[int, str], best: int, *, is_maximized: bool
) -> None:
    """Draw the trials in their order, and the best value so far."""
    from matplotlib.ticker import MaxNLocator

    numbers = sorted(values)
    choose, reached = max if is_maximized else min, list[float]()
    for number in numbers:
        reached.append(choose([*reached[-1:], values[number]]))
    last = max([*numbers, *others])
    axes.step([*numbers, last], [*reached, reached[-1]], where="post", color=BEST_COLOR, linewidth=1.2)
    axes.plot(numbers, [values[number] for number in numbers], "o", color=TRIAL_COLOR, alpha=0.8)
    axes.plot([best], [values[best]], "o", color=BEST_COLOR)
    text = f"best: {values[best]:,.5g} in trial {best}"
    axes.annotate(text, (1, 1), (0, 4), "axes fraction", "offset points", ha="right", color=BEST_COLOR)
    for status, marker in (("stopped", "x"), ("failed", "+")):
        places = [number for number, other in others.items() if other == status]
        if places:
            at_top = axes.get_xaxis_transform()
            axes.plot(places, [0.97] * len(places), marker, color=GREY, transform=at_top, clip_on=False)
            axes.annotate(f" {status}", (places[-1], 0.97), xycoords=at_top, va="center", color=GREY)
    axes.set_xlabel("trial")
    axes.set_xlim(-0.6, last + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_option(axes: Axes, panel: OptionPanel, values: Mapping[int, float], best: int) -> None:
    """Draw the objective against the values of an option."""
    numbers = [number for number in values if number in panel.values]
    xs: list[float] = []
    chosen = [panel.values[number] for number in numbers]
    if panel.choices:
        choices, labels, is_slanted = list(panel.choices), panel.labels, panel.is_slanted
        xs = [float(choices.index(str(value))) for value in chosen]
        axes.set_xticks(range(len(choices)), labels, parse_math=False, rotation=25 if is_slanted else 0)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right" if is_slanted else "center")
            label.set_rotation_mode("anchor")
        axes.set_xlim(-0.5, len(choices) - 0.5)
    else:
        xs = [float(value) for value in chosen]
        if panel.is_log:
            axes.set_xscale("log")
    for x, number in sorted(zip(xs, numbers, strict=True), key=lambda point: point[1] == best):
        color = BEST_COLOR if number == best else TRIAL_COLOR
        axes.plot(x, values[number], "o", color=color, alpha=1.0 if number == best else 0.7)
    share = "" if panel.influence is None else f": influence {panel.influence:.0%}"
    axes.set_title(f"{panel.name}{share}", loc="left", fontsize=FONT_SIZE, parse_math=False)


def _set_scale(axes: Axes, values: Sequence[float], objective: str) -> tuple[float, float]:
    """Set the scale of the objective; return its limits."""
    low, high = min(values), max(values)
    if low > 0 and high / low > LOG_RATIO:
        axes.set_yscale("log")
        limits = (low / (high / low) ** 0.06, high * (high / low) ** 0.12)
    else:
        margin = (high - low) or abs(high) or 1.0
        limits = (low - 0.08 * margin, high + 0.15 * margin)
    axes.set_ylim(limits)
    axes.set_ylabel(objective, parse_math=False)
    axes.grid(axis="y")
    return limits
