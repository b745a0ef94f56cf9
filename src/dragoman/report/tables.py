"""Tables as plain, aligned text."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

NUMBER = re.compile(r"-?[\d,]*\.?\d+%?( ± [\d,]*\.?\d+)?")  # a number that came already written


def format_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns side by side, numbers to the right.

    >>> print(table(["model", "words", "perplexity"], [["one", 12345, 99.5], ["two", 7, math.inf]]))
    model   words  perplexity
    -----  ------  ----------
    one    12,345       99.50
    two         7    infinite
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


def format_cell(value: object) -> str:
    """How one value is written: 12,345 and 99.50; what is unknown is a dash."""
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
    """A number with its standard error, ready for a table; without it where there is none.

    >>> plus_minus(13.604, 0.312), plus_minus(1.0, math.nan), plus_minus(math.inf, math.nan)
    ('13.60 ± 0.31', '1.00', inf)
    """
    if not math.isfinite(value):
        return value
    return f"{value:,.{digits}f} ± {error:,.{digits}f}" if math.isfinite(error) else f"{value:,.{digits}f}"


def is_numeric(column: Sequence[object]) -> bool:
    """Whether a column holds numbers alone, so that it stands to the right."""
    return all(
        bool(NUMBER.fullmatch(value)) if isinstance(value, str) else value is None or isinstance(value, int | float)
        for value in column
    )


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Blanks after a text, or before it, until it takes so many columns."""
    blanks = " " * (width - display_width(text))
    return blanks + text if right else text + blanks


def display_width(text: str) -> int:
    """Columns a text takes on a terminal: East Asian signs take two, accents that combine none.

    >>> [display_width(text) for text in ("cafe", "cafe\u0301", "猫が", "ก\u0e34")]
    [4, 4, 4, 1]
    """
    return sum(0 if is_combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def is_combining(sign: str) -> bool:
    """Whether a sign stands on the one before it."""
    return bool(unicodedata.combining(sign)) or unicodedata.category(sign) in ("Mn", "Me")
