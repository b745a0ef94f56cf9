"""Surprisal of words (-log2 P) by several models: as tab-separated text, as a coloured table, and as a figure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.evaluation.surprisal import SurprisalTable
from dragoman.report.figures import (
    COLORS,
    LETTER_WIDTH,
    TITLE_HEIGHT,
    WIDTH,
    add_axes,
    check_figure,
    new_figure,
    short_label,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

# Colours of a number from this many bits on: the darker, the more surprising.
SURPRISAL_STYLES = (
    (0.0, "black on #ffffcc"),
    (2.0, "black on #fed976"),
    (5.0, "black on #fd8d3c"),
    (9.0, "white on #e31a1c"),
    (14.0, "white on #800026"),
)


def surprisal_tsv(surprisals: SurprisalTable) -> str:
    """Return rows `word TAB bits TAB bits ...` below the names of the models, with a blank line between sentences."""
    sentences = [
        "\n".join(
            "\t".join([word, *(f"{bits:.6f}" for bits in row)])
            for word, row in zip(sentence.words, sentence.bits.tolist(), strict=True)
        )
        for sentence in surprisals.sentences
    ]
    return "\t".join(["word", *surprisals.models]) + "\n" + "\n\n".join(sentences)


def surprisal_grid(surprisals: SurprisalTable) -> Table:
    """Return the same for a terminal, with a background colour for each number."""
    from rich.table import Table
    from rich.text import Text

    grid = Table("word", box=None, pad_edge=False, header_style="")
    for name in surprisals.models:
        grid.add_column(Text(name), justify="right", no_wrap=True)
    for number, sentence in enumerate(surprisals.sentences):
        if number:
            grid.add_row()
        for word, row in zip(sentence.words, sentence.bits.tolist(), strict=True):
            grid.add_row(Text(word), *(Text(f" {bits:.2f} ", style=surprisal_style(bits)) for bits in row))
    return grid


def surprisal_style(bits: float) -> str:
    """Return the colours of a number.

    >>> surprisal_style(0.0) == surprisal_style(1.9) != surprisal_style(2.0), surprisal_style(float("inf"))
    (True, 'white on #800026')
    """
    return max((minimum, style) for minimum, style in SURPRISAL_STYLES if bits >= minimum)[1]


MAX_TOKENS = 60  # words and sentence ends
WORD_SPACE = 0.13  # inches between words
BAR_WIDTH = 0.09  # inches
LEFT, RIGHT = 0.5, 0.1  # inches beside the text
BAR_HEIGHT, WORD_HEIGHT = 1.0, 0.42  # inches: the longest bar, and the words below it
LEGEND_HEIGHT = 0.22  # inches
MAX_LEGEND_COLUMNS = 4
INFINITE = "∞"


class WordLine(NamedTuple):
    """Words that are drawn in one line, with one number per word and model."""

    words: Sequence[str]
    values: NDArray[np.float64]  # (words, models)
    widths: NDArray[np.float64]  # (words,) inches


def wrap_words(words: Sequence[str], values: NDArray[np.float64], width: float) -> Iterator[WordLine]:
    """Split a sentence into lines of at most `width` inches."""
    from rich.cells import cell_len  # East Asian characters are twice as wide

    bars = values.shape[1] * BAR_WIDTH
    widths = np.array([max(cell_len(short_label(word)) * LETTER_WIDTH, bars) + WORD_SPACE for word in words])
    start = 0
    while start < len(widths):
        end = start + max(1, int(np.searchsorted(widths[start:].cumsum(), width, side="right")))
        yield WordLine(words[start:end], values[start:end], widths[start:end])
        start = end


def draw_surprisals(surprisals: SurprisalTable, path: Path, *, title: str = "") -> None:
    """Draw bars of bits over the words of a few sentences, one per model; infinite ones are marked with ∞."""
    models = surprisals.models
    words = len(surprisals.words)
    size = f"the text has {words:,} words and sentence ends, and a figure holds at most {MAX_TOKENS}"
    check_figure(
        path,
        (not words, "there is nothing to draw; give at least one sentence"),
        (words > MAX_TOKENS, f"{size}; give fewer sentences"),
        (len(models) > len(COLORS), f"{len(models)} models, and there are {len(COLORS)} colours; draw fewer"),
        (np.isnan(surprisals.bits).any(), "a word's surprisal is undefined; leave out the model that returns it"),
    )
    lines = [
        line
        for sentence in surprisals.sentences
        for line in wrap_words(sentence.words, sentence.bits, WIDTH - LEFT - RIGHT)
    ]
    highest = max(1.0, surprisals.bits[np.isfinite(surprisals.bits)].max(initial=0.0))
    title_height = TITLE_HEIGHT if title else 0.0
    widest = (max(map(len, models)) + 5) * LETTER_WIDTH  # of the legend, with the patch and the space between
    legend_columns = max(1, min(MAX_LEGEND_COLUMNS, int((WIDTH - LEFT - RIGHT) / widest)))
    above = title_height + LEGEND_HEIGHT * math.ceil(len(models) / legend_columns) + 0.1
    height = above + len(lines) * (BAR_HEIGHT + WORD_HEIGHT)
    with new_figure(height, path, title, LEFT) as figure:
        for number, line in enumerate(lines):
            bottom = height - above - number * (BAR_HEIGHT + WORD_HEIGHT) - BAR_HEIGHT
            _draw_line(add_axes(figure, LEFT, bottom, line.widths.sum(), BAR_HEIGHT), line, highest)
        from matplotlib.patches import Patch

        figure.legend(
            [Patch(color=color) for color in COLORS[: len(models)]],
            models,
            loc="upper left",
            bbox_to_anchor=(LEFT / WIDTH, 1 - title_height / height),
            ncols=legend_columns,
            frameon=False,
            labelcolor=COLORS[: len(models)],
            handlelength=0.8,
            handleheight=0.8,
            borderaxespad=0.2,
            borderpad=0,
        )


def _draw_line(axes: Axes, line: WordLine, highest: float) -> None:
    """Draw words with their bars."""
    centers = line.widths.cumsum() - line.widths / 2
    models = line.values.shape[1]
    for number in range(models):
        color, bits = COLORS[number], line.values[:, number]
        xs = centers + (number - (models - 1) / 2) * BAR_WIDTH
        axes.bar(xs, np.minimum(bits, 1.05 * highest), width=0.85 * BAR_WIDTH, color=color)
        for x in xs[np.isinf(bits)]:
            axes.text(x, 1.06 * highest, INFINITE, color=color, ha="center", va="bottom")
    for center, word in zip(centers, line.words, strict=True):
        label = axes.annotate(
            short_label(word), (center, 0), (0, -4), textcoords="offset points", ha="center", va="top"
        )
        label.set_parse_math(False)  # a $ is a dollar
    axes.set_xlim(0, line.widths.sum())
    axes.set_ylim(0, 1.05 * highest)
    axes.set_xticks([])
    axes.locator_params(axis="y", nbins=4, integer=True)
    axes.grid(axis="y")
    axes.set_ylabel("bits")
