"""Attention matrices, as text for a terminal and as a figure: one row per target word, one column per source word.

In the terminal, source words stand above their columns and each field shows its percentage if all columns fit. If not,
columns are narrow, the words are written vertically, and wide matrices are split into blocks of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dragoman.core.errors import DataError
from dragoman.report.figures import (
    COLOURS,
    FONT_SIZE,
    GREY,
    MAX_WORD_LENGTH,
    POINTS_PER_INCH,
    TITLE_SIZE,
    WIDTH,
    image_format,
    new_figure,
    single_glyph_warning,
)
from dragoman.report.tables import display_width, is_combining, pad, printable, truncate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The shade of a field from this percentage on; in terminals with colours, the text and background colours (ANSI).
SHADES = ((0, " "), (5, "░"), (20, "▒"), (45, "▓"), (70, "█"))
BACKGROUNDS = ((0, ""), (5, "30;48;5;230"), (20, "30;48;5;221"), (45, "30;48;5;208"), (70, "97;48;5;88"))
WIDE_FIELD, NARROW_FIELD = 6, 2  # terminal columns: `▓▓ 62%`, or `▓▓`
GAP = 1  # terminal columns between fields
MAX_LETTERS = 16  # of a word written vertically
ROUNDING_ERROR = 1e-4  # weights may be outside 0 to 1 by this much


def check_attention(target_words: Sequence[str], source_words: Sequence[str], matrix: ArrayLike) -> NDArray[np.float64]:
    """Return the matrix as numbers from 0 to 1; raise an error if it is not an attention matrix of these words.

    Args:
        matrix: (target words, source words)
    """
    weights = np.asarray(matrix, dtype=np.float64)
    targets, sources = len(target_words), len(source_words)
    if not targets or not sources:
        raise DataError("attention: no words; give at least one target word and one source word")
    if weights.shape != (targets, sources):
        shape = " x ".join(map(str, weights.shape))
        raise DataError(f"attention: {shape} weights for {targets} target and {sources} source words; give one each")
    if not ((weights >= -ROUNDING_ERROR) & (weights <= 1 + ROUNDING_ERROR)).all():  # False for NaN as well
        raise DataError("attention: a weight is not between 0 and 1; is this a matrix of scores, before the softmax?")
    return weights.clip(0, 1)


# -- text ------------------------------------------------------------------------------------------------------------


class AttentionLayout(NamedTuple):
    """How the columns of a text matrix are written."""

    widths: Sequence[int]  # of each column, without the gap
    header: Callable[[Sequence[str], Sequence[int]], list[str]]  # lines above the columns, from words and widths
    field: Callable[[int], str]  # text of a field, from a percentage
    field_width: int  # without colour codes


def attention_text(
    target_words: Sequence[str], source_words: Sequence[str], matrix: ArrayLike, width: int = 100, colour: bool = False
) -> str:
    """Return an attention matrix as text.

    Args:
        target_words: words of the rows, ending with `</s>`.
        source_words: words of the columns, ending with `</s>`.
        matrix: (target words, source words)
        width: columns of the terminal; a block has at least one source word, even if it is wider.
        colour: use 256 terminal colours.

    >>> print(attention_text(["a", "</s>"], ["ein", "</s>"], [[0.9, 0.1], [0.25, 0.75]]))
          ein    </s>
    a     ██ 90% ░░ 10%
    </s>  ▒▒ 25% ██ 75%
    <BLANKLINE>
    ░ from 5%, ▒ from 20%, ▓ from 45%, █ from 70%
    """
    weights = check_attention(target_words, source_words, matrix)
    rows = [printable(word) for word in target_words]
    columns = [printable(word) for word in source_words]
    label_width = min(max(map(display_width, rows)), max(4, width // 3))
    room = width - label_width - 2  # two spaces between a target word and its fields
    layout = _choose_layout(columns, room, colour)
    blocks = list(column_blocks(layout.widths, room))
    percents = np.rint(100 * weights).astype(int)
    lines: list[str] = []
    for block in blocks:
        if len(blocks) > 1:
            lines.append(f"source words {block.start + 1} to {block.stop} of {len(columns)}")
        block_layout = layout._replace(widths=layout.widths[block])
        lines += _block_lines(rows, columns[block], percents[:, block].tolist(), block_layout, label_width)
        lines.append("")
    return "\n".join([*(line.rstrip() for line in lines), _legend(colour)])


def _choose_layout(columns: Sequence[str], room: int, colour: bool) -> AttentionLayout:
    widths = [max(WIDE_FIELD, display_width(word)) for word in columns]
    if sum(widths) + GAP * (len(widths) - 1) <= room:
        field = _percent_on_colour if colour else _shade_and_percent
        return AttentionLayout(widths, _horizontal_words, field, WIDE_FIELD)
    field = _digits_on_colour if colour else _shade
    return AttentionLayout([NARROW_FIELD] * len(columns), _vertical_words, field, NARROW_FIELD)


def column_blocks(widths: Sequence[int], room: int) -> Iterator[slice]:
    """Split columns into blocks that fit, each with at least one column.

    >>> [(block.start, block.stop) for block in column_blocks([2, 2, 2, 9, 2], room=5)]
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    start = used = 0
    for number, width in enumerate(widths):
        if number > start and used + width > room:
            yield slice(start, number)
            start, used = number, 0
        used += width + GAP
    yield slice(start, len(widths))


def _block_lines(
    rows: Sequence[str], columns: Sequence[str], percents: Sequence[Sequence[int]], layout: AttentionLayout, label: int
) -> Iterator[str]:
    """Yield the lines of a block: the source words, then each target word with its fields."""
    for line in layout.header(columns, layout.widths):
        yield " " * (label + 2) + line
    spaces = [" " * (width - layout.field_width + GAP) for width in layout.widths]
    for word, row in zip(rows, percents, strict=True):
        fields = "".join(layout.field(percent) + space for percent, space in zip(row, spaces, strict=True))
        yield f"{pad(truncate(word, label), label)}  {fields}"


def _horizontal_words(words: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [(" " * GAP).join(pad(word, width) for word, width in zip(words, widths, strict=True))]


def _vertical_words(words: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return lines with one letter of each word, from top to bottom; the words end just above their columns."""
    letters = [list(_letters(word)) for word in words]
    letters = [word if len(word) <= MAX_LETTERS else [*word[: MAX_LETTERS - 1], "…"] for word in letters]
    height = max(map(len, letters))
    columns = [[""] * (height - len(word)) + word for word in letters]
    return [_horizontal_words(line, widths)[0] for line in zip(*columns, strict=True)]


def _letters(word: str) -> Iterator[str]:
    """Yield each letter with its combining accents.

    >>> list(_letters("e\u0301te")) == ["e\u0301", "t", "e"]
    True
    """
    start = 0
    for end in range(1, len(word) + 1):
        if end == len(word) or not is_combining(word[end]):
            yield word[start:end]
            start = end


def _shade(percent: int) -> str:
    return NARROW_FIELD * _highest_step(SHADES, percent)


def _shade_and_percent(percent: int) -> str:
    return _shade(percent) + _format_percent(percent)


def _digits_on_colour(percent: int) -> str:
    """Return two digits; 100% is shown as 99."""
    return _with_background(f"{min(99, percent):2d}" if percent else "  ", percent)


def _percent_on_colour(percent: int) -> str:
    return _with_background(f" {_format_percent(percent)} ", percent)


def _format_percent(percent: int) -> str:
    """Return four characters, blank for 0%."""
    return f"{percent:3d}%" if percent else "    "


def _with_background(text: str, percent: int) -> str:
    code = _highest_step(BACKGROUNDS, percent)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def _highest_step(steps: Sequence[tuple[int, str]], percent: int) -> str:
    """Return the last step that the percentage reaches.

    >>> [_highest_step(SHADES, percent) for percent in (0, 6, 20, 100)]
    [' ', '░', '▒', '█']
    """
    return max((minimum, value) for minimum, value in steps if percent >= minimum)[1]


def _legend(colour: bool) -> str:
    if colour:
        return " ".join(_with_background(f" from {minimum}% ", minimum) for minimum, _ in BACKGROUNDS[1:])
    return ", ".join(f"{shade} from {minimum}%" for minimum, shade in SHADES[1:])


# -- figure ----------------------------------------------------------------------------------------------------------

MAX_WORDS = 100  # along one side
MAX_SQUARE = 0.36  # inches
FILL = 0.85  # largest height of letters, as a share of a square
LETTER_RATIO = 0.65  # largest width of a letter, as a share of its height
EDGE = 0.1  # inches
TITLE_HEIGHT, NOTE_HEIGHT = 0.32, 0.4  # inches above the words and below the squares
GOLD_COLOUR = COLOURS[1]
SUM_NOTE = "each row sums to 1: white is 0, darkest is 1"
GOLD_NOTE = "; boxes: the true alignment"
# Fonts with East Asian characters; installed ones are used in a .png where Matplotlib's own font has no glyph.
EAST_ASIAN_FONTS = (
    *("Noto Sans CJK JP", "Noto Sans JP", "IPAexGothic", "IPAGothic", "TakaoGothic", "Hiragino Sans", "Yu Gothic"),
    *("MS Gothic", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Arial Unicode MS"),
)


class FigureSizes(NamedTuple):
    left: float  # inches for the target words
    above: float  # inches for the source words and the title
    square: float  # inches
    font_size: float  # points


def draw_attention(
    target_words: Sequence[str],
    source_words: Sequence[str],
    matrix: ArrayLike,
    path: Path,
    title: str = "",
    gold: Collection[tuple[int, int]] = (),
) -> None:
    """Draw an attention matrix as a heat map.

    Args:
        target_words: words of the rows.
        source_words: words of the columns.
        matrix: (target words, source words)
        path: the file, .svg or .png. In a .png, characters that no installed font has are boxes, with one warning.
        gold: true alignment as pairs of source and target positions, from 0; each gets a box.
    """
    weights = check_attention(target_words, source_words, matrix)
    _check_drawable(weights, gold, path)
    rows, columns = (
        [truncate(printable(word), MAX_WORD_LENGTH) for word in words] for words in (target_words, source_words)
    )
    sizes = _figure_sizes(rows, columns, has_title=bool(title))
    width, height = sizes.square * len(columns), sizes.square * len(rows)
    total = sizes.above + height + NOTE_HEIGHT
    with single_glyph_warning(path), new_figure(total, path) as figure:
        axes = figure.add_axes((sizes.left / WIDTH, NOTE_HEIGHT / total, width / WIDTH, height / total))
        fonts = _font_arguments(path)
        _draw_matrix(axes, weights, gold)
        _draw_words(axes, rows, columns, {"fontsize": sizes.font_size, **fonts})
        note = SUM_NOTE + (GOLD_NOTE if gold else "")
        figure.text(EDGE / WIDTH, 0.17 / total, note, color=GREY, parse_math=False)
        figure.text(EDGE / WIDTH, 1 - 0.22 / total, title, fontsize=TITLE_SIZE, parse_math=False, **fonts)


def _figure_sizes(rows: Sequence[str], columns: Sequence[str], *, has_title: bool) -> FigureSizes:
    """Return the largest squares that fit, with letters that are not higher than a square."""
    row_letters, column_letters = (max(map(display_width, words)) for words in (rows, columns))
    font_size, square, left = FONT_SIZE, MAX_SQUARE, 0.0
    for _ in range(3):  # smaller letters leave more room for squares; this converges quickly
        left = row_letters * LETTER_RATIO * font_size / POINTS_PER_INCH + 2 * EDGE
        square = min(MAX_SQUARE, (WIDTH - left - EDGE) / len(columns))
        font_size = min(FONT_SIZE, FILL * square * POINTS_PER_INCH)
    above = column_letters * LETTER_RATIO * font_size / POINTS_PER_INCH + 2 * EDGE
    return FigureSizes(left, above + (TITLE_HEIGHT if has_title else 0.0), square, font_size)


def _draw_matrix(axes: Axes, weights: NDArray[np.float64], gold: Collection[tuple[int, int]]) -> None:
    from matplotlib.patches import Rectangle

    axes.pcolormesh(weights, cmap="Blues", vmin=0, vmax=1, edgecolors="#dddddd", linewidth=0.4)
    axes.set_ylim(len(weights), 0)
    axes.spines[:].set_visible(False)
    for source, target in gold:
        corner = (source + 0.08, target + 0.08)
        axes.add_patch(Rectangle(corner, 0.84, 0.84, fill=False, edgecolor=GOLD_COLOUR, linewidth=1.4))


def _draw_words(axes: Axes, rows: Sequence[str], columns: Sequence[str], font: dict[str, Any]) -> None:
    """Write the source words above the matrix and the target words at its left."""
    axes.xaxis.tick_top()
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=90, parse_math=False, **font)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows, parse_math=False, **font)
    axes.tick_params(length=0, pad=2, labelcolor="black")


def _font_arguments(path: Path) -> dict[str, Any]:
    """Return the fonts for a .png; an .svg names only the usual ones, so that it is the same on every machine."""
    if image_format(path) == "svg":
        return {}
    from matplotlib import font_manager, rcParams

    installed = {font.name for font in font_manager.fontManager.ttflist}
    usual = rcParams["font.sans-serif"][:1]
    return {"fontfamily": [*usual, *(name for name in EAST_ASIAN_FONTS if name in installed)]}


def _check_drawable(weights: NDArray[np.float64], gold: Collection[tuple[int, int]], path: Path) -> None:
    image_format(path)
    targets, sources = weights.shape
    if max(targets, sources) > MAX_WORDS:
        size = f"{targets} target and {sources} source words"
        raise DataError(f"{path}: {size}, and a figure holds at most {MAX_WORDS} of each; give a shorter sentence")
    for source, target in gold:
        if not (0 <= source < sources and 0 <= target < targets):
            words = f"{sources} source and {targets} target words"
            raise DataError(f"{path}: link {source}-{target} of the true alignment, but {words}; count from 0")
