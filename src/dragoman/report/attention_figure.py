"""The picture of attention: a heat map, the source words above it and the target words at its left."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dragoman.core.errors import DataError
from dragoman.report.attention import check_attention, printable, truncate
from dragoman.report.figures import COLOURS, FONT, GREY, POINTS, WIDTH, image_format, new_figure
from dragoman.report.surprisal_figure import MAX_WORD_LENGTH
from dragoman.report.tables import display_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_WORDS = 100  # along one side: more would be too small to read
MAX_SQUARE = 0.36  # inches a word, at most
FILLED = 0.85  # of a square: as high as letters may be
LETTER = 0.65  # of the letters' height: as wide as one is at most
EDGE = 0.1  # inches to the right
TITLE, NOTE = 0.32, 0.4  # inches above the words and below the squares
SHADES = "Blues"
GOLD = COLOURS[1]
SUM_NOTE = "each row sums to 1: white is 0, darkest is 1"
GOLD_NOTE = "; boxes: the true alignment"
# Fonts with East Asian letters, which Matplotlib's own has not: those that are installed help out in a .png.
EAST_ASIAN = (
    *("Noto Sans CJK JP", "Noto Sans JP", "IPAexGothic", "IPAGothic", "TakaoGothic", "Hiragino Sans", "Yu Gothic"),
    *("MS Gothic", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Arial Unicode MS"),
)


class FigureSizes(NamedTuple):
    """Inches, and points of letters."""

    left: float  # for the target words
    above: float  # for the source words and the title
    square: float
    font: float


def draw_attention(
    target_words: Sequence[str],
    source_words: Sequence[str],
    matrix: ArrayLike,
    path: Path,
    title: str = "",
    gold: Collection[tuple[int, int]] = (),
) -> None:
    """A row for each target word: the darker a source word, the more attention it has.  # (target, source)

    `gold` is the true alignment where it is known: places in source and target, from 0, which get a box each. Letters
    that no installed font has are boxes in a .png, with one warning; an .svg leaves them to whoever shows it.
    """
    weights = check_attention(target_words, source_words, matrix)
    _check_drawable(weights, gold, path)
    rows, columns = (
        [truncate(printable(word), MAX_WORD_LENGTH) for word in words] for words in (target_words, source_words)
    )
    sizes = _sizes(rows, columns, titled=bool(title))
    wide, tall = sizes.square * len(columns), sizes.square * len(rows)
    height = sizes.above + tall + NOTE
    with single_glyph_warning(path), new_figure(height, path) as figure:
        axes = figure.add_axes((sizes.left / WIDTH, NOTE / height, wide / WIDTH, tall / height))
        _draw_squares(axes, weights)
        for source, target in gold:
            axes.add_patch(_box(source, target))
        _draw_words(axes, rows, columns, {"fontsize": sizes.font, **_font_arguments(path)})
        note = SUM_NOTE + GOLD_NOTE * bool(gold)
        figure.text(EDGE / WIDTH, 0.17 / height, note, color=GREY, parse_math=False)
        figure.text(
            EDGE / WIDTH, 1 - 0.22 / height, title, fontsize=FONT + 1.5, parse_math=False, **_font_arguments(path)
        )


def _sizes(rows: Sequence[str], columns: Sequence[str], *, titled: bool) -> FigureSizes:
    """Squares as large as fit, and letters never higher than a square."""
    letters = [max(map(display_width, words)) for words in (rows, columns)]
    font, square = FONT, MAX_SQUARE
    for _ in range(3):  # smaller letters leave more room for squares, by less and less
        left = letters[0] * LETTER * font / POINTS + 2 * EDGE
        square = min(MAX_SQUARE, (WIDTH - left - EDGE) / len(columns))
        font = min(FONT, FILLED * square * POINTS)
    return FigureSizes(left, letters[1] * LETTER * font / POINTS + 2 * EDGE + TITLE * titled, square, font)


def _draw_squares(axes: Axes, weights: NDArray[np.float64]) -> None:
    axes.pcolormesh(weights, cmap=SHADES, vmin=0, vmax=1, edgecolors="#dddddd", linewidth=0.4)
    axes.set_ylim(len(weights), 0)
    axes.spines[:].set_visible(False)


def _box(source: int, target: int) -> Any:
    """The outline of a square, just inside it."""
    from matplotlib.patches import Rectangle

    return Rectangle((source + 0.08, target + 0.08), 0.84, 0.84, fill=False, edgecolor=GOLD, linewidth=1.4)


def _draw_words(axes: Axes, rows: Sequence[str], columns: Sequence[str], look: dict[str, Any]) -> None:
    """The words, source above and target at the left."""
    axes.xaxis.tick_top()
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=90, parse_math=False, **look)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows, parse_math=False, **look)
    axes.tick_params(length=0, pad=2, labelcolor="black")


# -- letters ---------------------------------------------------------------------------------------------------------


def _font_arguments(path: Path) -> dict[str, Any]:
    """For a .png, the fonts to look into for letters that the usual one has not.

    An .svg names the usual ones alone, so that it is the same file on every machine.
    """
    if image_format(path) == "svg":
        return {}
    from matplotlib import font_manager, rcParams

    installed = {font.name for font in font_manager.fontManager.ttflist}
    usual = rcParams["font.sans-serif"][:1]
    return {"fontfamily": [*usual, *(name for name in EAST_ASIAN if name in installed)]}


@contextmanager
def single_glyph_warning(path: Path) -> Iterator[None]:
    """One warning for all letters that no font has, and none for an .svg, whose letters are set where it is shown."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    missing = [warning for warning in heard if "missing from font" in str(warning.message)]
    for warning in heard:
        if warning not in missing:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if missing and image_format(path) != "svg":
        problem = "no installed font has all letters of these words, so boxes stand for some"
        warnings.warn(f"{path}: {problem}; write an .svg, or install Noto Sans CJK", stacklevel=4)


# -- what no picture holds -------------------------------------------------------------------------------------------


def _check_drawable(weights: NDArray[np.float64], gold: Collection[tuple[int, int]], path: Path) -> None:
    image_format(path)
    targets, sources = weights.shape
    if max(targets, sources) > MAX_WORDS:
        size = f"{targets} target and {sources} source words"
        raise DataError(f"{path}: {size}, and a picture holds {MAX_WORDS} of each at most; give a shorter sentence")
    for source, target in gold:
        if not (0 <= source < sources and 0 <= target < targets):
            words = f"{sources} source and {targets} target words"
            raise DataError(f"{path}: link {source}-{target} of the true alignment, but {words}; count from 0")
