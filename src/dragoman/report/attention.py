"""Attention as text for a terminal: a row for each target word, a column for each source word, darker for more.

Where all source words fit beside each other they stand above their columns, and every field has its percentage. Where
they do not, columns are narrow and the words stand upright above them, in as many blocks as the width asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dragoman.core.errors import DataError
from dragoman.report.tables import display_width, is_combining, pad

# From so many percent on a field has this shade; on a terminal with colours, these letters on this ground.
SHADES = ((0, " "), (5, "░"), (20, "▒"), (45, "▓"), (70, "█"))
BACKGROUNDS = ((0, ""), (5, "30;48;5;230"), (20, "30;48;5;221"), (45, "30;48;5;208"), (70, "97;48;5;88"))
WIDE_FIELD, NARROW_FIELD = 6, 2  # columns of the terminal that a field takes: `▓▓ 62%`, or `▓▓`
GAP = 1  # columns between fields
MAX_LETTERS = 16  # letters of a word that stands upright; of longer ones the rest is left out
ROUNDING = 1e-4  # by so much a weight may lie outside 0 to 1
UNPRINTABLE = "\ufffd"


class AttentionLayout(NamedTuple):
    """How the columns of a picture look."""

    widths: Sequence[int]  # of each, without the gap
    heads: Callable[[Sequence[str], Sequence[int]], list[str]]  # the lines above some columns
    field: Callable[[int], str]  # one weight, in percent
    field_width: int  # of a field: codes for colours take no room


def attention_text(
    target_words: Sequence[str], source_words: Sequence[str], matrix: ArrayLike, width: int = 100, colour: bool = False
) -> str:
    """The attention of each target word over the source words, in lines of at most `width` columns.

    Both sequences of words end with `</s>`; the matrix has a row for each target word.  # (target words, source words)
    A block is never narrower than one source word. `colour` is for terminals that know 256 colours.

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
    label = min(max(map(display_width, rows)), max(4, width // 3))
    room = width - label - 2  # two blanks between a target word and its fields
    layout = _layout(columns, room, colour)
    blocks = list(column_blocks(layout.widths, room))
    percents = np.rint(100 * weights).astype(int)
    lines: list[str] = []
    for block in blocks:
        if len(blocks) > 1:
            lines.append(f"source words {block.start + 1} to {block.stop} of {len(columns)}")
        lines += _block(
            rows, columns[block], percents[:, block].tolist(), layout._replace(widths=layout.widths[block]), label
        )
        lines.append("")
    return "\n".join([*(line.rstrip() for line in lines), legend(colour)])


def _layout(columns: Sequence[str], room: int, colour: bool) -> AttentionLayout:
    wide = [max(WIDE_FIELD, display_width(word)) for word in columns]
    if sum(wide) + GAP * (len(wide) - 1) <= room:
        return AttentionLayout(
            wide, _horizontal_words, _percent_on_colour if colour else _shade_and_percent, WIDE_FIELD
        )
    return AttentionLayout(
        [NARROW_FIELD] * len(columns), _vertical_words, _digits_on_colour if colour else _shade, NARROW_FIELD
    )


def column_blocks(widths: Sequence[int], room: int) -> Iterator[slice]:
    """Columns by the block: as many as there is room for, and at least one.

    >>> [(block.start, block.stop) for block in blocks_of([2, 2, 2, 9, 2], room=5)]
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    first = taken = 0
    for number, width in enumerate(widths):
        if number > first and taken + width > room:
            yield slice(first, number)
            first, taken = number, 0
        taken += width + GAP
    yield slice(first, len(widths))


def _block(
    rows: Sequence[str], columns: Sequence[str], percents: Sequence[Sequence[int]], layout: AttentionLayout, label: int
) -> Iterator[str]:
    """The lines of a block: the source words, then each target word with its fields."""
    for line in layout.heads(columns, layout.widths):
        yield " " * (label + 2) + line
    blanks = [" " * (width - layout.field_width + GAP) for width in layout.widths]
    for word, row in zip(rows, percents, strict=True):
        fields = "".join(layout.field(percent) + blank for percent, blank in zip(row, blanks, strict=True))
        yield f"{pad(truncate(word, label), label)}  {fields}"


# -- the words above the columns -------------------------------------------------------------------------------------


def _horizontal_words(words: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [(" " * GAP).join(pad(word, width) for word, width in zip(words, widths, strict=True))]


def _vertical_words(words: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Words from top to bottom, a letter with its accents in each line; they end just above their columns."""
    letters = [list(_letters(word)) for word in words]
    letters = [some if len(some) <= MAX_LETTERS else [*some[: MAX_LETTERS - 1], "…"] for some in letters]
    tallest = max(map(len, letters))
    upright = [[""] * (tallest - len(some)) + some for some in letters]
    return [_horizontal_words(line, widths)[0] for line in zip(*upright, strict=True)]


def _letters(word: str) -> Iterator[str]:
    """
    >>> list(_letters("e\u0301te")) == ["e\u0301", "t", "e"]
    True
    """
    first = 0
    for number in range(1, len(word) + 1):
        if number == len(word) or not is_combining(word[number]):
            yield word[first:number]
            first = number


# -- fields ----------------------------------------------------------------------------------------------------------


def _shade(percent: int) -> str:
    return NARROW_FIELD * _shade_for(SHADES, percent)


def _shade_and_percent(percent: int) -> str:
    return _shade(percent) + _format_percent(percent)


def _digits_on_colour(percent: int) -> str:
    """Two digits: 100% is shown as 99."""
    return _with_background(f"{min(99, percent):2d}" if percent else "  ", percent)


def _percent_on_colour(percent: int) -> str:
    return _with_background(f" {_format_percent(percent)} ", percent)


def _format_percent(percent: int) -> str:
    """What rounds to nothing is left blank, so that the rest is seen."""
    return f"{percent:3d}%" if percent else "    "


def _with_background(text: str, percent: int) -> str:
    ground = _shade_for(BACKGROUNDS, percent)
    return f"\x1b[{ground}m{text}\x1b[0m" if ground else text


def _shade_for(steps: Sequence[tuple[int, str]], percent: int) -> str:
    """The last step that is reached.

    >>> [_step(SHADES, percent) for percent in (0, 6, 20, 100)]
    [' ', '░', '▒', '█']
    """
    return max((least, look) for least, look in steps if percent >= least)[1]


def legend(colour: bool = False) -> str:
    """What the shades or the colours stand for."""
    if colour:
        return " ".join(_with_background(f" from {least}% ", least) for least, _ in BACKGROUNDS[1:])
    return ", ".join(f"{shade} from {least}%" for least, shade in SHADES[1:])


# -- what comes in ---------------------------------------------------------------------------------------------------


def check_attention(target_words: Sequence[str], source_words: Sequence[str], matrix: ArrayLike) -> NDArray[np.float64]:
    """The matrix as numbers from 0 to 1, a row for each target word; refuses all else.  # (target, source)"""
    weights = np.asarray(matrix, dtype=np.float64)
    wanted = (len(target_words), len(source_words))
    if not all(wanted):
        raise DataError("attention: no words; give at least one target word and one source word")
    if weights.shape != wanted:
        shape = " x ".join(map(str, weights.shape))
        raise DataError(
            f"attention: {shape} weights for {wanted[0]} target and {wanted[1]} source words; give one each"
        )
    if not ((weights >= -ROUNDING) & (weights <= 1 + ROUNDING)).all():  # nor is what is undefined
        raise DataError("attention: a weight is not between 0 and 1; is this a matrix of scores, before the softmax?")
    return weights.clip(0, 1)


def printable(word: str) -> str:
    """A word without signs that a terminal would obey rather than show.

    >>> printable("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join(sign if sign.isprintable() else UNPRINTABLE for sign in word)


def truncate(word: str, width: int) -> str:
    """A word in at most so many columns of a terminal.

    >>> cut("Hausschuh", 5), cut("猫が好き", 6), cut("kurz", 5)
    ('Haus…', '猫が…', 'kurz')
    """
    if display_width(word) <= width:
        return word
    while display_width(word) > width - 1:
        word = word[:-1]
    return f"{word}…"
