"""Attention matrices, as text for a terminal and as a figure: one row per target word, one column per source word.

In the terminal, source words stand above their columns and each field shows its percentage if all columns fit. If not,
columns are narrow, the words are written vertically, and wide matrices are split into blocks of columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dragoman.core.errors import DataError
from dragoman.report.figures import (
    COLORS,
    EDGE,
    FONT_SIZE,
    GREY,
    MAX_WORD_LENGTH,
    POINTS_PER_INCH,
    TITLE_HEIGHT,
    WIDTH,
    add_axes,
    check_figure,
    draw_matrix,
    new_figure,
)
from dragoman.report.tables import display_width, is_combining, pad, printable, truncate

# The shade of a field from this percentage on; in terminals with colours, the text and background colours (ANSI).
SHADES = ((0, " "), (5, "░"), (20, "▒"), (45, "▓"), (70, "█"))
BACKGROUNDS = ((0, ""), (5, "30;48;5;230"), (20, "30;48;5;221"), (45, "30;48;5;208"), (70, "97;48;5;88"))
WIDE_FIELD, NARROW_FIELD = 6, 2  # terminal columns: `▓▓ 62%`, or `▓▓`
GAP = 1  # terminal columns between fields
MAX_LETTERS = 16  # of a word written vertically
ROUNDING_ERROR = 1e-4  # weights may be outside 0 to 1 by this much


def check_matrix(target_words: Sequence[str], source_words: Sequence[str], matrix: ArrayLike) -> NDArray[np.float64]:
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


class AttentionLayout(NamedTuple):
    """How the columns of a text matrix are written."""

    widths: Sequence[int]  # of each column, without the gap
    is_wide: bool  # whether words are written horizontally, with percentages in the fields below them

    def header(self, words: Sequence[str]) -> list[str]:
        """Return the lines above the columns."""
        lines = [words] if self.is_wide else vertical_words(words)
        return [
            (" " * GAP).join(pad(word, width) for word, width in zip(line, self.widths, strict=True)) for line in lines
        ]

    def row(self, percents: Sequence[int], *, color: bool) -> str:
        field_width = WIDE_FIELD if self.is_wide else NARROW_FIELD
        return "".join(
            _format_field(percent, self.is_wide, color) + " " * (width - field_width + GAP)
            for percent, width in zip(percents, self.widths, strict=True)
        )


def attention_text(
    target_words: Sequence[str], source_words: Sequence[str], matrix: ArrayLike, width: int = 100, color: bool = False
) -> str:
    """Return an attention matrix as text.

    Args:
        target_words: words of the rows, ending with `</s>`.
        source_words: words of the columns, ending with `</s>`.
        matrix: (target words, source words)
        width: columns of the terminal; a block has at least one source word, even if it is wider.
        color: use 256 terminal colours.

    >>> print(attention_text(["a", "</s>"], ["ein", "</s>"], [[0.9, 0.1], [0.25, 0.75]]))
          ein    </s>
    a     ██ 90% ░░ 10%
    </s>  ▒▒ 25% ██ 75%
    <BLANKLINE>
    ░ from 5%, ▒ from 20%, ▓ from 45%, █ from 70%
    """
    weights = check_matrix(target_words, source_words, matrix)
    rows = [printable(word) for word in target_words]
    columns = [printable(word) for word in source_words]
    label_width = min(max(map(display_width, rows)), max(4, width // 3))
    room = width - label_width - 2  # two spaces between a target word and its fields
    widths = [max(WIDE_FIELD, display_width(word)) for word in columns]
    is_wide = sum(widths) + GAP * (len(widths) - 1) <= room
    layout = AttentionLayout(widths if is_wide else [NARROW_FIELD] * len(columns), is_wide)
    blocks = list(column_blocks(layout.widths, room))
    percents = np.rint(100 * weights).astype(int)
    lines: list[str] = []
    for block in blocks:
        if len(blocks) > 1:
            lines.append(f"source words {block.start + 1} to {block.stop} of {len(columns)}")
        block_layout = layout._replace(widths=layout.widths[block])
        lines += [" " * (label_width + 2) + line for line in block_layout.header(columns[block])]
        for word, row in zip(rows, percents[:, block].tolist(), strict=True):
            label = pad(truncate(word, label_width), label_width)
            lines.append(f"{label}  {block_layout.row(row, color=color)}")
        lines.append("")
    if color:
        legend = " ".join(_with_background(f" from {minimum}% ", minimum) for minimum, _ in BACKGROUNDS[1:])
    else:
        legend = ", ".join(f"{shade} from {minimum}%" for minimum, shade in SHADES[1:])
    return "\n".join([*(line.rstrip() for line in lines), legend])


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


def vertical_words(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return lines with one letter of each word, from top to bottom; the words end just above their columns."""
    letters = [list(_letters(word)) for word in words]
    letters = [word if len(word) <= MAX_LETTERS else [*word[: MAX_LETTERS - 1], "…"] for word in letters]
    height = max(map(len, letters))
    return list(zip(*([""] * (height - len(word)) + word for word in letters), strict=True))


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


def _format_field(percent: int, is_wide: bool, color: bool) -> str:
    """Return the text of a field. Narrow fields on colour have two digits; 100% is shown as 99."""
    number = (f"{percent:3d}%" if percent else "    ") if is_wide else ""
    if not color:
        return NARROW_FIELD * _highest_step(SHADES, percent) + number
    digits = f"{min(99, percent):2d}" if percent else "  "
    return _with_background(f" {number} " if is_wide else digits, percent)


def _with_background(text: str, percent: int) -> str:
    code = _highest_step(BACKGROUNDS, percent)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def _highest_step(steps: Sequence[tuple[int, str]], percent: int) -> str:
    """Return the last step that the percentage reaches.

    >>> [_highest_step(SHADES, percent) for percent in (0, 6, 20, 100)]
    [' ', '░', '▒', '█']
    """
    return max((minimum, value) for minimum, value in steps if percent >= minimum)[1]


MAX_WORDS = 100  # along one side
MAX_SQUARE = 0.36  # inches
FILL = 0.85  # largest height of letters, as a share of a square
LETTER_RATIO = 0.65  # largest width of a letter, as a share of its height
NOTE_HEIGHT = 0.4  # inches below the squares
GOLD_COLOR = COLORS[1]
SUM_NOTE = "each row sums to 1: white is 0, darkest is 1"
GOLD_NOTE = "; boxes: the true alignment"


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
    weights = check_matrix(target_words, source_words, matrix)
    targets, sources = weights.shape
    size = f"{targets} target and {sources} source words"
    problem = f"{size}, and a figure holds at most {MAX_WORDS} of each; give a shorter sentence"
    check_figure(path, (max(targets, sources) > MAX_WORDS, problem))
    for source, target in gold:
        problem = f"link {source}-{target} of the true alignment, but {size}; count from 0"
        check_figure(path, (not (0 <= source < sources and 0 <= target < targets), problem))
    rows, columns = (
        [truncate(printable(word), MAX_WORD_LENGTH) for word in words] for words in (target_words, source_words)
    )
    row_letters, column_letters = (max(map(display_width, words)) for words in (rows, columns))
    font_size, square, left = FONT_SIZE, MAX_SQUARE, 0.0  # points and inches
    for _ in range(3):  # smaller letters leave more room for squares; this converges quickly
        left = row_letters * LETTER_RATIO * font_size / POINTS_PER_INCH + 2 * EDGE
        square = min(MAX_SQUARE, (WIDTH - left - EDGE) / len(columns))
        font_size = min(FONT_SIZE, FILL * square * POINTS_PER_INCH)
    above = column_letters * LETTER_RATIO * font_size / POINTS_PER_INCH + 2 * EDGE + (TITLE_HEIGHT if title else 0.0)
    total = above + square * len(rows) + NOTE_HEIGHT
    with new_figure(total, path, title) as figure:
        from matplotlib.patches import Rectangle

        axes = add_axes(figure, left, NOTE_HEIGHT, square * len(columns), square * len(rows))
        draw_matrix(axes, weights, rows, columns, edges=("#dddddd", 0.4), font_size=font_size)
        for source, target in gold:
            corner = (source + 0.08, target + 0.08)
            axes.add_patch(Rectangle(corner, 0.84, 0.84, fill=False, edgecolor=GOLD_COLOR, linewidth=1.4))
        note = SUM_NOTE + (GOLD_NOTE if gold else "")
        figure.text(EDGE / WIDTH, 0.17 / total, note, color=GREY, parse_math=False)
