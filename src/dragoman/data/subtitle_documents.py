"""SRT and VTT files as segments: the text of a cue, or each line of a dialogue."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from dragoman.data.inline_markup import CLOSE, OPEN, DocumentBuilder, Mark, Part, PieceDocument, TextSegment, protect
from dragoman.data.subtitles import CUE_TAG, read_cues

DIALOGUE = re.compile(r"^(?=[ \t]*(?:<[^<>]*>|\{[^{}]*\})*[-–—‐>])", re.MULTILINE)
BLANK_LINES = re.compile(r"\n(?:[ \t]*\r?\n)+")
DASH = re.compile(r"[ \t]*[-–—‐][ \t]*")
BRACE_TAG = "{\\"  # the start of a tag that has no escape
PAIRED_TAG = re.compile(r"<(/?)([a-zA-Z]+)")


def parse_subtitles(text: str, name: str) -> PieceDocument:
    """Parse an SRT or VTT file. Lines of a cue are one segment; lines that start with a dash are one each.

    >>> document = parse_subtitles("1\\n00:01,000 --> 00:02,000\\nTo be\\nor <i>not</i>\\n", "a.srt")
    >>> document.segments[0].raw
    'To be\\nor <i>not</i>'
    """
    builder = DocumentBuilder()
    position = 0
    for cue in read_cues(text, name):
        builder.add_text(text[position : cue.offset])
        position = cue.offset + len(cue.text)
        speakers = [match.start() for match in DIALOGUE.finditer(cue.text)]
        blocks = [match.end() for match in BLANK_LINES.finditer(cue.text)]
        bounds = sorted({0, *(speakers if len(speakers) > 1 else ()), *blocks, len(cue.text)})
        for start, end in pairwise(bounds):
            if dash := DASH.match(cue.text, start, end):
                builder.add_text(dash[0])
                start = dash.end()
            parts = list(_parts(cue.text[start:end], is_vtt=cue.is_vtt))
            builder.add_segment([raw for raw, _ in parts], [part for _, part in parts])
    builder.add_text(text[position:])
    is_vtt = text.startswith("WEBVTT")
    return PieceDocument(builder.pieces, _write_vtt if is_vtt else _write_srt)


def _parts(text: str, *, is_vtt: bool) -> Iterator[tuple[str, Part]]:
    position = 0
    for match in [*CUE_TAG.finditer(text), None]:
        for part in protect(text[position : len(text) if match is None else match.start()]):
            if isinstance(part, str):
                yield part, html.unescape(part) if is_vtt else part
            else:
                yield part.raw, part
        if match is not None:
            tag = PAIRED_TAG.match(match[0])
            yield match[0], Mark(match[0], CLOSE if tag[1] else OPEN, tag[2]) if tag else Mark(match[0])
            position = match.end()


def _write_vtt(segment: TextSegment, parts: Sequence[Part]) -> str:
    texts = [
        part if isinstance(part, Mark) else html.escape(part.replace(BRACE_TAG, "{"), quote=False) for part in parts
    ]
    return _write(segment, texts)


def _write_srt(segment: TextSegment, parts: Sequence[Part]) -> str:
    """Return a cue of SRT, which has no escapes: a translation cannot add tags or times."""
    return _write(
        segment,
        [
            part if isinstance(part, Mark) else CUE_TAG.sub("", part).replace(BRACE_TAG, "{").replace("-->", "→")
            for part in parts
        ],
    )


def _write(segment: TextSegment, parts: Sequence[Part]) -> str:
    """Return parts on as many lines as the segment had, of about the same length."""
    newline = "\r\n" if "\r\n" in segment.raw else "\n"
    text = "".join(part for part in parts if isinstance(part, str))
    breaks = line_breaks(text, segment.raw.count("\n") + 1)
    written, position = list[str](), 0
    for part in parts:
        if isinstance(part, Mark):
            written.append(part.raw)
            continue
        characters = (newline if position + index in breaks else letter for index, letter in enumerate(part))
        written.append("".join(characters))
        position += len(part)
    return "".join(written) if "".join(written).strip() else segment.raw  # a blank line would end the cue


def line_breaks(text: str, lines: int) -> set[int]:
    """Return the spaces at which a text is best broken into lines of about the same length.

    >>> line_breaks("to be or not to be", 2)
    {8}
    """
    spaces = [
        index for index, letter in enumerate(text) if letter == " " and text[:index].strip() and text[index:].strip()
    ]
    breaks = set[int]()
    for line in range(1, lines):
        later = [space for space in spaces if space > max(breaks, default=-1)]
        if later:
            breaks.add(min(later, key=lambda space: abs(space - line * len(text) / lines)))
    return breaks
