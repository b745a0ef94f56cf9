"""The picture of what words cost: the text set in lines, and over every word a bar for each model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.evaluation.surprisal import SentenceSurprisals, SurprisalTable
from dragoman.report.figures import COLOURS, FONT, GREY, POINTS, WIDTH, image_format, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_TOKENS = 60  # words and sentence ends: what can still be taken in
MAX_WORD_LENGTH = 24  # letters of a word; of longer ones the rest is left out
LETTER = 0.6 * FONT / POINTS  # inches, about what one takes
SPACE = 0.13  # inches between words
BAR = 0.09  # inches
LEFT, RIGHT = 0.5, 0.1  # inches beside the lines
TALL, BELOW = 1.0, 0.42  # inches: the longest bar, and the words under the bars
TITLE, LEGEND = 0.3, 0.22  # inches: above the bars, if there is a title; and a row of the models' names
ABREAST = 4  # models' names in a row, if they are short
INFINITE = "∞"


class WordLine(NamedTuple):
    """As much of a sentence as stands beside each other."""

    words: Sequence[str]
    bits: NDArray[np.float64]  # (words, models)
    widths: NDArray[np.float64]  # (words,) inches


def draw_surprisals(surprisals: SurprisalTable, path: Path, *, title: str = "") -> None:
    """Bars of bits over the words of a few sentences; a bar that cannot end has ∞ on it."""
    _check_drawable(surprisals, path)
    lines = [line for sentence in surprisals.sentences for line in wrap_words(sentence, WIDTH - LEFT - RIGHT)]
    highest = max(1.0, surprisals.bits[np.isfinite(surprisals.bits)].max(initial=0.0))
    above = TITLE * bool(title) + LEGEND * math.ceil(len(surprisals.models) / _abreast(surprisals.models)) + 0.1
    height = above + len(lines) * (TALL + BELOW)
    with ignore_missing_glyphs(path), new_figure(height, path) as figure:
        for number, line in enumerate(lines):
            low = height - above - number * (TALL + BELOW) - TALL
            width = line.widths.sum()
            axes = figure.add_axes((LEFT / WIDTH, low / height, width / WIDTH, TALL / height))
            _draw(axes, line, highest)
        _name(figure, surprisals.models, 1 - TITLE * bool(title) / height)
        figure.text(LEFT / WIDTH, 1 - 0.22 / height, title, fontsize=FONT + 1.5, parse_math=False)


def wrap_words(sentence: SentenceSurprisals, width: float) -> Iterator[WordLine]:
    """The words of a sentence, as many in a line as there is room for."""
    from rich.cells import cell_len  # East Asian letters are twice as wide

    bars = sentence.bits.shape[1] * BAR
    widths = np.array([max(cell_len(shorten(word)) * LETTER, bars) + SPACE for word in sentence.words])
    first = 0
    while first < len(widths):
        last = first + max(1, int(np.searchsorted(widths[first:].cumsum(), width, side="right")))
        yield WordLine(sentence.words[first:last], sentence.bits[first:last], widths[first:last])
        first = last


def _draw(axes: Axes, line: WordLine, highest: float) -> None:
    """Words with their bars, in inches from the left."""
    centres = line.widths.cumsum() - line.widths / 2
    models = line.bits.shape[1]
    for number in range(models):
        colour, bits = COLOURS[number], line.bits[:, number]
        places = centres + (number - (models - 1) / 2) * BAR
        axes.bar(places, np.minimum(bits, 1.05 * highest), width=0.85 * BAR, color=colour)
        for place in places[np.isinf(bits)]:
            axes.text(place, 1.06 * highest, INFINITE, color=colour, ha="center", va="bottom")
    for centre, word in zip(centres, line.words, strict=True):
        label = axes.annotate(shorten(word), (centre, 0), (0, -4), textcoords="offset points", ha="center", va="top")
        label.set_parse_math(False)  # a $ is a dollar
    axes.set_xlim(0, line.widths.sum())
    axes.set_ylim(0, 1.05 * highest)
    axes.set_xticks([])
    axes.locator_params(axis="y", nbins=4, integer=True)
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_ylabel("bits")


def _name(figure: Figure, models: Sequence[str], top: float) -> None:
    """The names of the models, in their colours."""
    from matplotlib.patches import Patch

    patches = [Patch(color=colour) for colour in COLOURS[: len(models)]]
    figure.legend(
        patches,
        models,
        loc="upper left",
        bbox_to_anchor=(LEFT / WIDTH, top),
        ncols=_abreast(models),
        frameon=False,
        labelcolor=COLOURS[: len(models)],
        handlelength=0.8,
        handleheight=0.8,
        borderaxespad=0.2,
        borderpad=0,
    )


def _abreast(models: Sequence[str]) -> int:
    """How many names of models stand in a row."""
    widest = max(map(len, models)) * LETTER + 5 * LETTER  # with the patch and what is between
    return max(1, min(ABREAST, int((WIDTH - LEFT - RIGHT) / widest)))


@contextmanager
def ignore_missing_glyphs(path: Path) -> Iterator[None]:
    """Whoever shows an .svg has letters for its words that Matplotlib's own font may not have: not worth a warning."""
    with warnings.catch_warnings():
        if image_format(path) == "svg":
            warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        yield


def shorten(word: str) -> str:
    return word if len(word) <= MAX_WORD_LENGTH else word[: MAX_WORD_LENGTH - 1] + "…"


def _check_drawable(surprisals: SurprisalTable, path: Path) -> None:
    """Refuse what no picture can hold."""
    image_format(path)
    if not surprisals.words:
        raise DataError(f"{path}: there is nothing to draw; give at least one sentence")
    if len(surprisals.words) > MAX_TOKENS:
        size = f"the text has {len(surprisals.words):,} words and sentence ends"
        raise DataError(f"{path}: {size}, and a picture holds {MAX_TOKENS} at most; give fewer sentences")
    if len(surprisals.models) > len(COLOURS):
        raise DataError(f"{path}: {len(surprisals.models)} models, and there are {len(COLOURS)} colours; draw fewer")
    if np.isnan(surprisals.bits).any():
        raise DataError(f"{path}: a word's surprisal is undefined; look for the model that says so and leave it out")
