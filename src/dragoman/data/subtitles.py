"""Subtitles: the cues of SRT and VTT files, and pairs of cues that are shown at the same time."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.core.errors import DataError, error_at_line

TIME = r"(?:([0-9]{1,4}):)?([0-9]{1,2}):([0-9]{2})[.,]([0-9]{1,3})"
TIME_LINE = re.compile(rf"^[ \t]*{TIME}[ \t]+-->[ \t]+{TIME}(?=[ \t\r\n]|\Z)[^\n]*(?:\n|\Z)", re.MULTILINE)
NUMBER_LINE = r"[ \t]*[0-9]+[ \t]*\r?\n"
NEXT_NUMBER = re.compile(rf"(?:\A|(?<=\n)){NUMBER_LINE}\Z")  # of the cue that follows
# A line that is meant to be a time line: where one is expected, with times on both sides of an arrow.
ARROW_LINE = re.compile(
    rf"(?:\A|^[ \t]*\r?\n|^{NUMBER_LINE})([ \t]*[0-9]+:[0-9][0-9:.,]*[ \t]*-+>[ \t]*[0-9])", re.MULTILINE
)
BLANK_LINE = re.compile(r"^[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
# The tags of SRT and VTT: <i>, <v Mary>, <c.loud>, <00:19.000>, {\an8}
CUE_TAG = re.compile(r"</?[a-zA-Z][^<>\n]*>|<\d[\d:.]*>|\{\\[^{}\n]*\}")
MIN_OVERLAP = 0.5  # of the shorter cue, from which two cues belong together
MAX_CUES = 3  # on one side of a pair; longer chains of overlapping cues are not used


@dataclass(frozen=True)
class Cue:
    """A cue: its times in milliseconds, and where it is in the file."""

    start: int
    end: int
    text: str  # with tags and line breaks
    line: int  # of its times, from 1
    offset: int  # of its text in the file, in characters
    is_vtt: bool = False

    @property
    def plain_text(self) -> str:
        """The text as one line without tags."""
        text = CUE_TAG.sub("", self.text)
        return " ".join((html.unescape(text) if self.is_vtt else text).split())


def read_cues(text: str, name: str) -> list[Cue]:
    """Return the cues of an SRT or VTT file.

    A blank line ends a cue of VTT. SRT files of many programs have blank lines inside of cues, or none between them: a
    cue ends before the number and the times of the next one.

    >>> [cue] = read_cues("1\\n00:00:01,000 --> 00:00:02,500\\n<i>Good</i>\\nmorning\\n", "a.srt")
    >>> cue.start, cue.end, cue.plain_text
    (1000, 2500, 'Good morning')
    """
    is_vtt = text.removeprefix("\ufeff").startswith("WEBVTT")
    cues: list[Cue] = []
    line, counted = 1, 0
    time_lines = list(TIME_LINE.finditer(text))
    starts = {match.start() for match in time_lines}
    for match in ARROW_LINE.finditer(text):
        if match.start(1) not in starts:
            number = text.count("\n", 0, match.start(1)) + 1
            example = "00:00:01.000 --> 00:00:02.500" if is_vtt else "00:00:01,000 --> 00:00:02,500"
            raise error_at_line(name, number, f"not the times of a cue; write them as {example}")
    if not time_lines:
        raise DataError(f"{name}: no cues; subtitles have lines such as 00:00:01,000 --> 00:00:02,500")
    next_starts = [*(match.start() for match in time_lines[1:]), len(text)]
    for match, next_start in zip(time_lines, next_starts, strict=True):
        cue_text = text[match.end() : next_start]
        if is_vtt:
            blank = BLANK_LINE.search(cue_text)
            cue_text = cue_text if blank is None else cue_text[: blank.start()]
        elif next_start < len(text):
            cue_text = NEXT_NUMBER.sub("", cue_text)
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        first, last = _milliseconds(match.groups()[:4]), _milliseconds(match.groups()[4:])
        cues.append(Cue(first, last, cue_text.rstrip(), line, match.end(), is_vtt))
    return cues


def _milliseconds(parts: Sequence[str | None]) -> int:
    hours, minutes, seconds, fraction = parts
    assert minutes and seconds and fraction, "the pattern requires them"
    return ((int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)) * 1000 + int(fraction.ljust(3, "0"))


@dataclass(frozen=True)
class CuePair:
    """Cues that are shown at the same time; one side may be empty."""

    source: list[Cue]
    target: list[Cue]


def match_cues(source: Sequence[Cue], target: Sequence[Cue]) -> list[CuePair]:
    """Group cues that overlap in time by at least half of the shorter one. Every cue is in one group.

    >>> cues = [Cue(start, end, "", 1, 0) for start, end in ((0, 10), (10, 30), (50, 60))]
    >>> [(len(pair.source), len(pair.target)) for pair in match_cues(cues, [Cue(1, 11, "", 1, 0), Cue(12, 29, "", 1, 0)])]
    [(1, 1), (1, 1), (1, 0)]
    """
    source, target = (sorted(cues, key=lambda cue: (cue.start, cue.end)) for cues in (source, target))
    pairs = [CuePair([cue], []) for cue in source]
    unmatched: list[CuePair] = []
    first = 0
    for cue in target:
        while first < len(pairs) and max(other.end for other in pairs[first].source) <= cue.start:
            first += 1
        matches = []
        for index in range(first, len(pairs)):
            if pairs[index].source[0].start >= cue.end:
                break
            if any(_overlap(other, cue) for other in pairs[index].source):
                matches.append(index)
        if not matches:
            unmatched.append(CuePair([], [cue]))
            continue
        merged = pairs[matches[0] : matches[-1] + 1]
        pairs[matches[0] : matches[-1] + 1] = [
            CuePair([c for pair in merged for c in pair.source], [*(c for pair in merged for c in pair.target), cue])
        ]
    return sorted([*pairs, *unmatched], key=lambda pair: (pair.source or pair.target)[0].start)


def _overlap(first: Cue, second: Cue) -> bool:
    shared = min(first.end, second.end) - max(first.start, second.start)
    shorter = max(1, min(first.end - first.start, second.end - second.start))
    return shared >= MIN_OVERLAP * shorter
