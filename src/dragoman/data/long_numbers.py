"""Long numbers, which are the same in every language: repair of those that a translator gets wrong.

A number with groups of digits or decimals is one number: `1 250,50`, `1.250,50`, `1,250.50`, `1'250.50`, `1,25,000`.
Equal values are equal, however they are written.

Short numbers are left alone: "14 Uhr" may become "2 p.m.", "14.30" may become "2:30", and "20" may become "twenty".
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

SPACES = " \u00a0\u2007\u2009\u202f"  # also no-break, of the width of a digit, thin, and narrow no-break
_START, _END = r"(?<!\d[.,'’٬])", r"(?![.,'’٬]?\d)"  # not a part of a date or version such as 12.05.2014
NUMBER = re.compile(
    "|".join(
        (
            rf"(?<!\w){_START}\d{{1,3}}([{SPACES}])\d{{3}}(?:\1\d{{3}})*(?!\d)(?:[.,٫]\d+)?{_END}",  # 1 250,50
            rf"{_START}\d{{1,3}}([.,'’٬])\d{{3}}(?:\2\d{{3}})*(?!\d)(?:(?!\2)[.,٫]\d+)?{_END}",  # 1.250,50
            rf"{_START}\d{{1,2}}(?:,\d\d)+,\d{{3}}(?:\.\d+)?{_END}",  # 1,25,000
            rf"{_START}\d+[.,٫]\d+{_END}",  # 1250,50
            r"\d+",
        )
    )
)
DIGITS = re.compile(r"\d+")
THOUSANDS = re.compile(r"(?<=\d)(?=(?:\d{3})+$)")  # where groups of digits meet
# A word or character after a number that multiplies it: 12345万 is 123.45 million. Beginnings of words of many languages.
SCALE = re.compile(
    rf"[{SPACES}]?(?:[十百千万萬億亿兆십백천만억조]|(?:hundred|thousand|tausend|duizend|tusen|mil\b|mill?i|milj|milh|mily|bill?i|bilh"
    r"|trill?i|mrd|mln|mld|mio\b|lakh|crore|ribu|juta|nghìn|ngàn|triệu|tỷ|tys|tisíc|ezer|tuhat|тыс|млн|млрд|милли|мільй|мілья|χιλιάδ"
    r"|εκατομ|δισεκ|लाख|करोड़|हज़ार|हजार|ألف|آلاف|مليون|مليار|هزار|میلی|אלף|מיליון|מיליארד|พัน|หมื่น|แสน|ล้าน))",
    re.IGNORECASE,
)
MIN_DIGITS = 3


class Number(NamedTuple):
    """A number in a text."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def parts(self) -> tuple[str, str]:
        """The digits of the whole part, and of the fraction.

        A point or comma before three digits separates a group.
        """
        groups = ["".join(str(unicodedata.digit(digit)) for digit in group) for group in DIGITS.findall(self.text)]
        marks = DIGITS.sub("", self.text)
        has_fraction = marks and (len(groups[-1]) != 3 or len(set(marks)) > 1 or len(groups[0]) > 3)
        return ("".join(groups[:-1]), groups[-1]) if has_fraction else ("".join(groups), "")

    @property
    def value(self) -> str:
        """The value in one notation.

        >>> {Number(text, 0).value for text in ("1 250,50", "1.250,5", "1,250.50", "1'250.5", "1250.5")}
        {'1250.5'}
        """
        whole, fraction = self.parts
        return f"{whole}.{fraction.rstrip('0')}".rstrip(".")

    @property
    def is_long(self) -> bool:
        return max(map(len, self.parts)) >= MIN_DIGITS

    @property
    def separators(self) -> tuple[str, str]:
        """The mark between groups of digits, and that before the fraction; empty if there is none."""
        marks = DIGITS.sub("", self.text)
        return (marks[:-1][:1], marks[-1]) if self.parts[1] else (marks[:1], "")

    def in_style_of(self, other: Number) -> str:
        """Return the number with the digits and separators of another one; a fraction needs some.

        >>> Number("1.250,50", 0).in_style_of(Number("1,400", 0)), Number("١٩٨٤", 0).in_style_of(Number("1943", 0))
        ('1,250.50', '1984')
        """
        (whole, fraction), (group, decimal) = self.parts, other.separators
        text = THOUSANDS.sub(group, whole)
        if fraction:
            decimal = decimal or ("," if group in (".", *SPACES) else ".")
            text = f"{text}{decimal}{fraction}" if any(other.separators) else self.text
        zero = ord(other.text[0]) - unicodedata.digit(other.text[0])
        return DIGITS.sub(lambda run: "".join(chr(zero + unicodedata.digit(digit)) for digit in run[0]), text)

    def groups(self) -> list[Number]:
        """Return the groups of digits as numbers."""
        return [Number(group[0], self.start + group.start()) for group in DIGITS.finditer(self.text)]


def restore_numbers(source: str, translation: str) -> str:
    """Replace wrong long numbers of a translation by those of the source, if as many are missing.

    Nothing is replaced if a number has another scale in the translation: 12345万 is 123.45 million.

    >>> restore_numbers("Tom hat 1984 Hunde um 14 Uhr", "Tom has 1943 dogs at 2 p.m.")
    'Tom has 1984 dogs at 2 p.m.'
    """
    in_source, in_translation = find_numbers(source), find_numbers(translation)
    if _without(_scaled(source, in_source), in_translation) or _without(
        _scaled(translation, in_translation), in_source
    ):
        return translation
    in_source, in_translation = (
        list(_long_numbers(in_source, in_translation)),
        list(_long_numbers(in_translation, in_source)),
    )
    missing, wrong = _without(in_source, in_translation), _without(in_translation, in_source)
    if len(missing) != len(wrong):
        return translation
    for number, other in reversed(list(zip(missing, wrong, strict=True))):
        translation = translation[: other.start] + number.in_style_of(other) + translation[other.end :]
    return translation


def find_numbers(text: str) -> list[Number]:
    """Return the numbers of a text.

    >>> [number.text for number in find_numbers("1 250,50 euros, 12.05.2014, 3,14, 10 000 000.")]
    ['1 250,50', '12', '05', '2014', '3,14', '10 000 000']
    """
    return [Number(match[0], match.start()) for match in NUMBER.finditer(text)]


def find_long_numbers(text: str) -> list[Number]:
    """Return the numbers with three digits or more before the decimal mark, or after it."""
    return [number for number in find_numbers(text) if number.is_long]


def has_scale(text: str, number: Number) -> bool:
    """Whether the word after a number multiplies it, so that the number may be another one in other languages."""
    return SCALE.match(text, number.end) is not None


def _long_numbers(numbers: Iterable[Number], others: Iterable[Number]) -> Iterator[Number]:
    """Yield the long numbers of a text. What a space separates is several numbers if the other text has each of them.

    "On May 12 250 people" may become "Am 12. Mai 250 Menschen".
    """
    values = {other.value for other in others}
    for number in numbers:
        groups = number.groups()
        is_list = " " in number.text and all(group.value in values for group in groups)
        yield from (part for part in (groups if is_list else [number]) if part.is_long)


def _scaled(text: str, numbers: Iterable[Number]) -> list[Number]:
    return [number for number in numbers if has_scale(text, number)]


def _without(numbers: Sequence[Number], others: Sequence[Number]) -> list[Number]:
    """Return the numbers whose values are not among the others."""
    counts, remaining = Counter(other.value for other in others), list[Number]()
    for number in numbers:
        counts[number.value] -= 1
        remaining += [number] if counts[number.value] < 0 else []
    return remaining
