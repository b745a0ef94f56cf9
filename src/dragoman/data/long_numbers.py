"""Long numbers, which are the same in every language: repair of those that a translator gets wrong.

Short numbers are left alone: "14 Uhr" may become "2 p.m.", and "20" may become "twenty".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

NUMBER = re.compile(r"\d{1,3}(?:[.,'’]\d{3})+(?!\d)|\d+")
MIN_DIGITS = 3


def restore_numbers(source: str, translation: str) -> str:
    """Replace wrong long numbers of a translation by those of the source, if as many are missing.

    >>> restore_numbers("Tom hat 1984 Hunde um 14 Uhr", "Tom has 1943 dogs at 2 p.m.")
    'Tom has 1984 dogs at 2 p.m.'
    """
    in_source, in_translation = (long_numbers(text) for text in (source, translation))
    missing, wrong = _without(in_source, in_translation), _without(in_translation, in_source)
    if len(missing) != len(wrong):
        return translation
    for number, other in reversed(list(zip(missing, wrong, strict=True))):
        translation = translation[: other.start()] + number[0] + translation[other.end() :]
    return translation


def long_numbers(text: str) -> list[re.Match[str]]:
    """Return the numbers of at least three digits."""
    return [match for match in NUMBER.finditer(text) if len(_digits(match)) >= MIN_DIGITS]


def _without(numbers: Sequence[re.Match[str]], others: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """Return the numbers whose digits are not among the others."""
    counts, remaining = Counter(map(_digits, others)), list[re.Match[str]]()
    for number in numbers:
        counts[_digits(number)] -= 1
        remaining += [number] if counts[_digits(number)] < 0 else []
    return remaining


def _digits(number: re.Match[str]) -> str:
    return "".join(filter(str.isdigit, number[0]))
