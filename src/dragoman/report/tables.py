"""Tables as aligned text and as Markdown, and the width of text in a terminal."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

FORMATTED_NUMBER = re.compile(r"-?[\d,]*\.?\d+%?( ± [\d,]*\.?\d+)?")
REPLACEMENT = "\ufffd"


def format_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return an aligned table, numbers to the right.

    >>> print(format_table(["model", "words", "perplexity"], [["kn", 12345, 99.5], ["lstm", 7, math.inf]]))
    model   words  perplexity
    -----  ------  ----------
    kn     12,345       99.50
    lstm        7    infinite
    """
    columns = [[row[number] for row in rows] for number in range(len(headers))]
    texts = [[header, *map(format_cell, column)] for header, column in zip(headers, columns, strict=True)]
    widths = [max(map(display_width, text)) for text in texts]
    padded = [
        [pad(entry, width, right=is_numeric(column)) for entry in text]
        for text, column, width in zip(texts, columns, widths, strict=True)
    ]
    lines = ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> str:
    """Return a table in Markdown; headers and cells must be escaped already.

    >>> print(markdown_table(["model", "BLEU"], [["kn", "12"]], [False, True]))
    | model | BLEU |
    | --- | ---: |
    | kn | 12 |
    """
    rule = ["---:" if is_number else "---" for is_number in numeric]
    return "\n".join(f"| {' | '.join(line)} |" for line in (headers, rule, *rows))


def format_cell(value: object) -> str:
    """Format a value of a table: 12,345 and 99.50; unknown values are a dash."""
    match value:
        case None:
            return "-"
        case float() if not math.isfinite(value):
            return "infinite" if value > 0 else "-infinite" if value < 0 else "-"
        case float():
            return f"{value:,.2f}"
        case bool():
            return str(value)
        case int():
            return f"{value:,}"
    return str(value)


def format_with_error(value: float, error: float, digits: int = 2) -> str | float:
    """Format a number with its standard error, or without it if that is not known.

    >>> format_with_error(13.604, 0.312), format_with_error(1.0, math.nan), format_with_error(math.inf, math.nan)
    ('13.60 ± 0.31', '1.00', inf)
    """
    if not math.isfinite(value):
        return value
    return f"{value:,.{digits}f} ± {error:,.{digits}f}" if math.isfinite(error) else f"{value:,.{digits}f}"


def percent_cell(share: float) -> str | None:
    """Format a share in percent without the sign; undefined shares are None.

    >>> percent_cell(0.1234), percent_cell(math.nan)
    ('12.3', None)
    """
    return None if math.isnan(share) else f"{100 * share:.1f}"


def is_numeric(column: Sequence[object]) -> bool:
    """Return whether a column holds only numbers."""
    return all(
        bool(FORMATTED_NUMBER.fullmatch(value))
        if isinstance(value, str)
        else value is None or isinstance(value, int | float)
        for value in column
    )


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Add spaces until the text takes `width` columns; `right` aligns it to the right."""
    spaces = " " * (width - display_width(text))
    return spaces + text if right else text + spaces


def display_width(text: str) -> int:
    """Return the columns that a text takes in a terminal: East Asian characters take two, combining accents none.

    >>> [display_width(text) for text in ("cafe", "cafe\u0301", "猫が", "ก\u0e34")]
    [4, 4, 4, 1]
    """
    return sum(0 if is_combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def is_combining(character: str) -> bool:
    """Return whether a character is drawn on top of the one before it."""
    return bool(unicodedata.combining(character)) or unicodedata.category(character) in ("Mn", "Me")


def printable(text: str) -> str:
    """Replace characters that would control a terminal.

    >>> printable("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join(character if character.isprintable() else REPLACEMENT for character in text)


def truncate(text: str, width: int) -> str:
    """Shorten a text to at most `width` columns of a terminal.

    >>> truncate("Hausschuh", 5), truncate("猫が好き", 6), truncate("kurz", 5)
    ('Haus…', '猫が…', 'kurz')
    """
    if display_width(text) <= width:
        return text
    while display_width(text) > width - 1:
        text = text[:-1]
    return f"{text}…"
