"""Checks of a single text: statistics, characters, unusual lines and conventions of writing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dragoman.core.errors import shorten
from dragoman.doctor.characters import CHECKS, find_matches
from dragoman.doctor.documents import Document
from dragoman.doctor.findings import Finding

MIN_SORTED_CORRELATION = 0.8  # of the position of a line with the rank of its length; about 0 in unsorted text
MIN_ORDERED_SHARE = 0.99  # of neighbouring lines of a text in alphabetical order
MIN_LINES = 100  # needed for statements about the text as a whole
MAX_MEAN_WORD_LENGTH = 14  # letters; languages with spaces between words are far below


@dataclass(frozen=True)
class DoctorLimits:
    """Lines beyond these limits are reported."""

    max_words: int = 250  # per line
    max_word_length: int = 60  # characters
    max_ratio: float = 2.5  # factor by which the length of a translation may differ from the usual
    keep_duplicates: bool = False  # neither report nor drop repeated lines


@dataclass(frozen=True)
class FileStatistics:
    """Statistics of a file; line lengths are in words."""

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
    once: int  # types that occur once


def file_statistics(document: Document) -> FileStatistics:
    """Summarise a text."""
    words, scanned = document.words, document.scanned
    median, percentile_95 = np.percentile(words, [50, 95], method="lower") if len(words) else (0, 0)
    return FileStatistics(
        file=document.name,
        lines=len(words),
        tokens=int(words.sum()),
        types=len(scanned.types),
        characters=int(document.characters.sum()),
        mean=float(words.mean()) if len(words) else 0.0,
        median=int(median),
        percentile_95=int(percentile_95),
        longest=int(words.max(initial=0)),
        empty=int((words == 0).sum()),
        once=int((scanned.counts == 1).sum()),
    )


def character_findings(document: Document) -> Iterator[Finding]:
    """Find characters that do not belong in a text; each kind is reported once per line."""
    text = "\n".join(document.lines)
    starts = np.cumsum([0, *(len(line) + 1 for line in document.lines)])
    for check in CHECKS:
        last_line = -1
        for position, match in find_matches(text, check):
            line = int(np.searchsorted(starts, position, side="right")) - 1
            if line != last_line:
                last_line = line
                yield document.finding(check.kind, line, check.describe(match), position - int(starts[line]) + 1)
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        yield from _normal_form_findings(document)


def _normal_form_findings(document: Document) -> Iterator[Finding]:
    """Find lines that are not in normal form C, and words that occur in this form as well."""
    first_lines: dict[str, int] = {}
    for number, line in enumerate(document.lines):
        if not unicodedata.is_normalized("NFC", line):
            words = [word for word in line.split() if not unicodedata.is_normalized("NFC", word)]
            for word in words:
                first_lines.setdefault(word, number)
            yield document.finding("not-nfc", number, f"decomposed or other letters in {words[0] if words else line!r}")
    present = {word for line in document.lines for word in line.split()}
    for word, number in first_lines.items():
        composed = unicodedata.normalize("NFC", word)
        if composed in present:
            message = f"{composed!r} is written with {len(word)} characters here, with {len(composed)} elsewhere"
            yield document.finding("mixed-forms", number, message)


def monolingual_findings(document: Document, limits: DoctorLimits) -> Iterator[Finding]:
    """Find empty, long and repeated lines of a text that is not part of a pair."""
    yield from document.findings("empty", document.words == 0, lambda line: "no words")
    yield from long_line_findings("long-line", document, limits)
    yield from repeat_findings("duplicate", "the same as", document)


def long_line_findings(kind: str, document: Document, limits: DoctorLimits) -> Iterator[Finding]:
    """Find lines with too many words."""
    words = document.words
    return document.findings(kind, words > limits.max_words, lambda line: f"{words[line]:,} words")


def repeat_findings(kind: str, relation: str, *documents: Document) -> Iterator[Finding]:
    """Find lines, or pairs without an empty side, of a training text that occurred before."""
    if documents[0].part != "train":
        return
    first_lines: dict[tuple[str, ...], int] = {}
    for line, row in enumerate(zip(*(document.lines for document in documents), strict=True)):
        first = first_lines.setdefault(row, line)
        if first != line and all(row):
            yield documents[0].finding(kind, line, f"{relation} line {documents[0].number(first)}")


def word_length_findings(document: Document, limit: int) -> Iterator[Finding]:
    """Find very long words, or a text without spaces. The lines must have been fixed."""
    scanned = document.scanned
    if not len(scanned.tokens):
        return
    lengths = np.fromiter(map(len, scanned.types), np.int64, len(scanned.types))
    mean = float(np.average(lengths, weights=scanned.counts))
    if mean > MAX_MEAN_WORD_LENGTH:
        yield document.finding("unsegmented", None, f"{mean:.0f} characters per word on average")
        return
    tokens = np.flatnonzero((lengths > limit)[scanned.tokens])
    lines = np.searchsorted(scanned.offsets, tokens, side="right") - 1
    for line, token in dict(zip(lines.tolist(), tokens.tolist(), strict=True)).items():
        word = scanned.types[scanned.tokens[token]]
        yield document.finding("long-word", line, f"a word of {len(word):,} characters: {shorten(word)}")


def sorted_findings(document: Document) -> Iterator[Finding]:
    """Report lines that are sorted by length."""
    for lengths, unit in ((document.words, "words"), (document.characters, "characters")):
        if len(lengths) < MIN_LINES or lengths.min() == lengths.max():
            continue
        rank = np.searchsorted(np.sort(lengths), lengths)  # lines of equal length have the same rank
        correlation = float(np.corrcoef(np.arange(len(lengths)), rank)[0, 1])
        if abs(correlation) >= MIN_SORTED_CORRELATION:
            message = f"position and length in {unit} of the lines are correlated (rank correlation {correlation:.2f})"
            yield document.finding("sorted", None, message)
            return


def alphabetical_findings(source: Document, target: Document) -> Iterator[Finding]:
    """Report two sides of which each is in alphabetical order: translations of sorted lines are not sorted."""
    if len(source) >= MIN_LINES and all(map(_is_alphabetical, (source, target))):
        message = f"the lines of {source.name} are in alphabetical order, and those of {target.name} as well"
        yield source.finding("sorted-sides", None, message)


def _is_alphabetical(document: Document) -> bool:
    for key in (str, str.casefold):
        lines = [key(line) for line in document.lines]
        neighbours = [(one, other) for one, other in pairwise(lines) if one != other]
        ordered = sum(one < other for one, other in neighbours)
        if len(neighbours) >= MIN_LINES and ordered >= MIN_ORDERED_SHARE * len(neighbours):
            return True
    return False


STYLES = {  # ways of writing the same thing
    "quotation marks": {'"': '"', "“ ”": "[“”]", "„": "„", "« »": "[«»]", "`` ''": "``|''"},
    "apostrophes": {"'": r"'(?<=\w')(?=\w)", "’": r"’(?<=\w’)(?=\w)"},
    "ellipses": {"...": r"\.\.\.(?<!\.\.\.\.)(?!\.)", "…": "…"},
    "dashes": {"-": " - ", "--": " -- ", "–": "–", "—": "—"},
}
MIN_STYLE_SHARE, MIN_STYLE_COUNT = 0.02, 5  # rarer styles are exceptions, not a second convention
MAX_HABIT_LINES = 20_000  # larger texts are sampled


def style_findings(document: Document) -> Iterator[Finding]:
    """Find conventions of writing of which a text uses several."""
    text = "\n".join(document.lines)
    for family, styles in STYLES.items():
        counts = {name: len(re.findall(pattern, text)) for name, pattern in styles.items() if name[0] in text}
        if "„" in counts:
            counts["„ “"] = counts.pop("„") + counts.pop("“ ”", 0)  # German closes with the English opening mark
        min_count = max(MIN_STYLE_COUNT, MIN_STYLE_SHARE * sum(counts.values()))
        used = {name: count for name, count in counts.items() if count >= min_count}
        if len(used) > 1:
            listed = ", ".join(f"{name} {count:,} times" for name, count in used.items())
            yield document.finding("mixed-style", None, f"{family}: {listed}")
    for habit, share in writing_habits(document).items():
        if MIN_STYLE_SHARE < share < 1 - MIN_STYLE_SHARE:
            yield document.finding("mixed-style", None, f"{100 * share:.0f}% of the lines {habit}, the others do not")


def writing_habits(document: Document) -> dict[str, float]:
    """Return the share of the lines that follow each convention, among those to which it applies."""
    lines = document.lines[:: max(1, len(document) // MAX_HABIT_LINES)]
    lower_words = {word for line in lines for word in line.split() if word[0].islower()}  # "I" is never among them
    starts_upper = [
        line[0].isupper()
        for line in lines
        if line and line[0].lower() != line[0].upper() and (line[0].islower() or line.split()[0].lower() in lower_words)
    ]
    spaced_stop = [line[-2] == " " for line in lines if len(line) > 2 and line[-1] in ".?!" and line[-2] != "."]
    habits = {"begin with a capital letter": starts_upper, "have a space before the full stop": spaced_stop}
    return {name: float(np.mean(values)) for name, values in habits.items() if len(values) >= MIN_LINES}
