"""One text on its own: its figures, and lines that stand out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dragoman.data.language_id import LetterText
from dragoman.data.scanner import ScannedText, scan
from dragoman.doctor.characters import CHECKS, find_matches
from dragoman.doctor.findings import Finding
from dragoman.doctor.reader import Document, join_lines

SORTED = 0.8  # correlation of a line's place with the rank of its length; about 0 in a text in no order
SORTED_LINES = 100  # fewer lines may be in order by chance
UNSEGMENTED = 14  # letters a word on average; languages that put spaces between words stay well below


@dataclass(frozen=True)
class DoctorLimits:
    """Beyond these a line is reported."""

    max_words: int = 250  # in a line
    max_word_length: int = 60  # characters
    max_ratio: float = 2.5  # how many times longer or shorter than usual a translation may be
    keep_duplicates: bool = False  # repeated lines are wanted: they are neither reported nor dropped


@dataclass(frozen=True)
class TextStatistics:
    """A document with its words counted."""

    document: Document
    scan: ScannedText

    @classmethod
    def from_document(cls, document: Document) -> TextStatistics:
        return cls(document, scan(join_lines(document.lines)))

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """Words in each line."""
        return np.diff(self.scan.offsets)

    @cached_property
    def characters(self) -> NDArray[np.int64]:
        """Characters in each line."""
        return np.fromiter(map(len, self.document.lines), np.int64, len(self.document))

    @cached_property
    def letters(self) -> LetterText:
        return LetterText.from_lines(self.document.lines)


@dataclass(frozen=True)
class FileStatistics:
    """A file in numbers; lengths of lines are in words."""

    file: str
    lines: int
    tokens: int
    types: int
    characters: int
    mean: float
    median: int
    percentile_95: int
    longest: int
    empty: int
    once: int  # types seen once


def file_statistics(measured: TextStatistics) -> FileStatistics:
    words = measured.words
    middle, high = np.percentile(words, [50, 95], method="lower") if len(words) else (0, 0)
    return FileStatistics(
        file=measured.document.name,
        lines=len(words),
        tokens=int(words.sum()),
        types=len(measured.scan.types),
        characters=int(measured.characters.sum()),
        mean=float(words.mean()) if len(words) else 0.0,
        median=int(middle),
        percentile_95=int(high),
        longest=int(words.max(initial=0)),
        empty=int((words == 0).sum()),
        once=int((measured.scan.counts == 1).sum()),
    )


# -- characters ---------------------------------------------------------------------------------------------------


def character_findings(document: Document) -> Iterator[Finding]:
    """Characters that do not belong in a text, each kind once a line."""
    text = "\n".join(document.lines)
    starts = np.cumsum([0, *(len(line) + 1 for line in document.lines)])
    for check in CHECKS:
        seen = -1
        for position, found in find_matches(text, check):
            line = int(np.searchsorted(starts, position, side="right")) - 1
            if line != seen:
                seen = line
                yield document.finding(check.kind, line, check.describe(found), position - int(starts[line]) + 1)
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        yield from _forms(document)


def _forms(document: Document) -> Iterator[Finding]:
    """Lines that are not in normal form C, and the words that occur in that form as well."""
    words: dict[str, int] = {}
    for number, line in enumerate(document.lines):
        if not unicodedata.is_normalized("NFC", line):
            odd = [word for word in line.split() if not unicodedata.is_normalized("NFC", word)]
            words.update({word: number for word in odd if word not in words})
            yield document.finding("not-nfc", number, f"decomposed or other letters in {odd[0] if odd else line!r}")
    present = {word for line in document.lines for word in line.split()} if words else set()
    for word, number in words.items():
        if (composed := unicodedata.normalize("NFC", word)) in present:
            what = f"{composed!r} is written with {len(word)} characters here, with {len(composed)} elsewhere"
            yield document.finding("mixed-forms", number, what)


# -- lines ------------------------------------------------------------------------------------------------------------


def line_findings(measured: TextStatistics, limits: DoctorLimits) -> Iterator[Finding]:
    """Overlong words and lines that are not sentences; the lines must have been mended."""
    yield from _long_words(measured, limits.max_word_length)
    yield from _in_order(measured)


def monolingual_findings(measured: TextStatistics, limits: DoctorLimits) -> Iterator[Finding]:
    """What matters only where lines need not keep in step with those of another text."""
    document = measured.document
    for line in np.flatnonzero(measured.words == 0).tolist():
        yield document.finding("empty", line, "no words")
    for line in np.flatnonzero(measured.words > limits.max_words).tolist():
        yield document.finding("long-line", line, f"{measured.words[line]:,} words")
    if document.part == "train":
        for line, first in repeats(document.lines):
            if document.lines[line]:
                yield document.finding("duplicate", line, f"the same as line {document.number(first)}")


def repeats(lines: Sequence[object]) -> Iterator[tuple[int, int]]:
    """Lines that came before, and where."""
    first: dict[object, int] = {}
    for number, line in enumerate(lines):
        before = first.setdefault(line, number)
        if before != number:
            yield number, before


def _long_words(measured: TextStatistics, limit: int) -> Iterator[Finding]:
    document, scanned = measured.document, measured.scan
    lengths = np.fromiter(map(len, scanned.types), np.int64, len(scanned.types))
    if len(scanned.tokens) and float(np.average(lengths, weights=scanned.counts)) > UNSEGMENTED:
        average = float(np.average(lengths, weights=scanned.counts))
        yield document.finding("unsegmented", None, f"{average:.0f} characters a word on average")
        return
    tokens = np.flatnonzero((lengths > limit)[scanned.tokens]) if len(lengths) else np.zeros(0, np.int64)
    lines = np.searchsorted(scanned.offsets, tokens, side="right") - 1
    for line, token in dict(zip(lines.tolist(), tokens.tolist(), strict=True)).items():
        word = scanned.types[scanned.tokens[token]]
        yield document.finding("long-word", line, f"a word of {len(word):,} characters: {shortened(word)}")


def _in_order(measured: TextStatistics) -> Iterator[Finding]:
    for lengths, unit in ((measured.words, "words"), (measured.characters, "characters")):
        if len(lengths) < SORTED_LINES or lengths.min() == lengths.max():
            continue
        rank = np.searchsorted(np.sort(lengths), lengths)  # lines of one length share a rank
        correlation = float(np.corrcoef(np.arange(len(lengths)), rank)[0, 1])
        if abs(correlation) >= SORTED:
            what = f"a line's place and its length in {unit} go together (rank correlation {correlation:.2f})"
            yield measured.document.finding("sorted", None, what)
            return


def shortened(text: str, width: int = 60) -> str:
    """A text that fits on a line of a report.

    >>> shortened("a long story", 8)
    'a long …'
    """
    return text if len(text) <= width else text[: width - 1] + "…"


# -- conventions --------------------------------------------------------------------------------------------------

STYLES = {  # ways of writing the same thing; of a family only one should be used
    "quotation marks": {'"': '"', "“ ”": "[“”]", "„": "„", "« »": "[«»]", "`` ''": "``|''"},
    "apostrophes": {"'": r"'(?<=\w')(?=\w)", "’": r"’(?<=\w’)(?=\w)"},
    "ellipses": {"...": r"\.\.\.(?<!\.\.\.\.)(?!\.)", "…": "…"},
    "dashes": {"-": " - ", "--": " -- ", "–": "–", "—": "—"},
}
STYLE_SHARE, STYLE_COUNT = 0.02, 5  # used less often than this, a way of writing is an exception, not a second habit
ASKED = 20_000  # lines by which habits are told
PATTERNS = {
    family: {name: re.compile(pattern) for name, pattern in styles.items()} for family, styles in STYLES.items()
}


def style_findings(document: Document) -> Iterator[Finding]:
    """Families of signs of which a text uses several."""
    text = "\n".join(document.lines)
    for family, styles in PATTERNS.items():
        counts = {name: len(pattern.findall(text)) for name, pattern in styles.items() if name[0] in text}
        if "„" in counts:
            counts["„ “"] = counts.pop("„") + counts.pop("“ ”", 0)  # German closes with the English opening sign
        total = sum(counts.values())
        used = {n: c for n, c in counts.items() if c >= max(STYLE_COUNT, STYLE_SHARE * total)}
        if len(used) > 1:
            listed = ", ".join(f"{name} {count:,} times" for name, count in used.items())
            yield document.finding("mixed-style", None, f"{family}: {listed}")
    for name, share in writing_habits(document).items():
        if STYLE_SHARE < share < 1 - STYLE_SHARE:
            yield document.finding("mixed-style", None, f"{100 * share:.0f}% of the lines {name}, the others do not")


def writing_habits(document: Document) -> dict[str, float]:
    """Habits of writing, and the share of the lines (that could have them) which have them."""
    lines = document.lines[:: max(1, len(document) // ASKED)]
    small = {word for line in lines for word in line.split() if word[0].islower()}  # "I" is never one of these
    cased = [
        line[0].isupper()
        for line in lines
        if line and _has_case(line[0]) and (line[0].islower() or line.split()[0].lower() in small)
    ]
    stops = [line[-2] == " " for line in lines if len(line) > 2 and line[-1] in ".?!" and line[-2] != "."]
    found = {"begin with a capital letter": cased, "have a space before the full stop": stops}
    return {name: float(np.mean(have)) for name, have in found.items() if len(have) >= SORTED_LINES}


def _has_case(letter: str) -> bool:
    return letter.lower() != letter.upper()
