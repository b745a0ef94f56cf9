"""HTML documents as segments: blocks of text with inline tags; scripts, styles, comments and attributes are kept."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from dragoman.data.inline_markup import CLOSE, OPEN, Mark, Part, PieceDocument, TextSegment, protect

# Elements that are part of a sentence. All others separate segments.
INLINE_NAMES = """
a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark q rb rp rt ruby s small span
strike strong sub sup time tt u
"""
INLINE = frozenset(INLINE_NAMES.split())
SINGLE_INLINE = frozenset(("img", "input", "wbr"))  # inline elements without content
CODE = ("code", "kbd", "samp", "var")  # inline elements whose content is not translated
LITERAL = ("script", "style", "pre", "textarea", "svg", "math", "template")  # kept as a whole

# A tag ends before the next `<` outside of quotes, so that a text with many `<` is read in linear time.
ATTRIBUTES = r"""(?:"[^"]*"|'[^']*'|[^'"<>])*+"""
KEPT = rf"<({'|'.join(LITERAL)}|{'|'.join(CODE)})\b{ATTRIBUTES}(?<!/)>.*?(?:</\1\s*>|\Z)"  # elements copied as a whole
TAG = rf"<(/?)([a-zA-Z][^\s<>/'\"]*+){ATTRIBUTES}>"
COMMENTS = r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[!?][^<>]*>"
MARKUP = re.compile(f"{KEPT}|{COMMENTS}|{TAG}", re.DOTALL | re.IGNORECASE)
NO_TRANSLATION = re.compile(r"""\stranslate\s*=\s*["']?no\b|\bclass\s*=\s*["'][^"']*\bnotranslate\b""", re.IGNORECASE)


def parse_html(text: str) -> PieceDocument:
    """Parse an HTML document or fragment.

    >>> document = parse_html("<p>Guten <b>Tag</b> &amp; so</p><hr>")
    >>> document.pieces[0], document.segments[0].raw, document.pieces[2]
    ('<p>', 'Guten <b>Tag</b> &amp; so', '</p><hr>')
    """
    pieces: list[str | TextSegment] = []
    parts: list[Part] = []  # of the segment that is not finished
    raws: list[str] = []

    def finish() -> None:
        add_segment(pieces, raws, parts)
        raws.clear()
        parts.clear()

    for raw, part in _parts(text):
        if part is None:  # separates segments
            finish()
            add_text(pieces, raw)
        else:
            raws.append(raw)
            parts.append(part)
    finish()
    return PieceDocument(pieces, write_html)


def write_html(segment: TextSegment, parts: Sequence[Part]) -> str:
    return "".join(part.raw if isinstance(part, Mark) else html.escape(part, quote=False) for part in parts)


def add_text(pieces: list[str | TextSegment], text: str) -> None:
    """Add text that is kept to the pieces of a document."""
    if pieces and isinstance(pieces[-1], str):
        pieces[-1] += text
    elif text:
        pieces.append(text)


def add_segment(pieces: list[str | TextSegment], raws: Sequence[str], parts: Sequence[Part]) -> None:
    """Add parts with their raw text to the pieces of a document: as segments, in which all tags are balanced.

    Spaces and marks around the words of a segment are kept. So are tags whose partners are missing: they separate
    segments.
    """
    waiting = [(0, len(parts))]  # ranges of parts, the last one first
    while waiting:
        start, end = waiting.pop()
        unmatched = _unmatched(parts[start:end])
        if not unmatched:
            _add_balanced(pieces, raws[start:end], parts[start:end])
        elif unmatched == [0] and end - start == 1:
            add_text(pieces, raws[start])
        else:
            cuts = sorted({0, *unmatched, *(index + 1 for index in unmatched), end - start})
            ranges = [(start + first, start + last) for first, last in zip(cuts[:-1], cuts[1:], strict=True)]
            waiting += reversed(ranges)


def _unmatched(parts: Sequence[Part]) -> list[int]:
    """Return the indices of tags without a partner."""
    unmatched, opened = list[int](), list[tuple[str, int]]()
    for index, part in enumerate(parts):
        if isinstance(part, Mark) and part.kind == OPEN:
            opened.append((part.name, index))
        elif isinstance(part, Mark) and part.kind == CLOSE:
            if opened and opened[-1][0] == part.name:
                opened.pop()
            else:
                unmatched.append(index)
    return [*unmatched, *(index for _, index in opened)]


def _add_balanced(pieces: list[str | TextSegment], raws: Sequence[str], parts: Sequence[Part]) -> None:
    first, last = 0, len(parts)
    while first < last and isinstance(parts[first], str) and not _has_words(parts[first]):
        first += 1
    while first < last and isinstance(parts[last - 1], str) and not _has_words(parts[last - 1]):
        last -= 1
    add_text(pieces, "".join(raws[:first]))
    raw = "".join(raws[first:last])
    segment = TextSegment(raw, tuple(parts[first:last]))
    if segment.has_words:
        start, end = len(raw) - len(raw.lstrip()), len(raw.rstrip())
        add_text(pieces, raw[:start])
        pieces.append(TextSegment(raw[start:end], segment.parts))
        add_text(pieces, raw[end:])
    else:
        add_text(pieces, raw)
    add_text(pieces, "".join(raws[last:]))


def _has_words(part: Part) -> bool:
    return isinstance(part, str) and bool(part.strip())


def _parts(text: str) -> Iterator[tuple[str, Part | None]]:
    """Yield raw text with what it is: text, a mark, or None for what separates segments."""
    position, skipped, depth = 0, "", 0  # skipped: the element that is not translated, and how deep it is nested
    for match in [*MARKUP.finditer(text), None]:
        begin = len(text) if match is None else match.start()
        if skipped:
            yield text[position:begin], None
        else:
            yield from _text_parts(text[position:begin])
        if match is None:
            return
        position = match.end()
        element, slash, name = (match[1] or "").lower(), match[2], (match[3] or "").lower()
        if skipped:
            depth += name == skipped and (-1 if slash else 1)
            yield match[0], None
            skipped = skipped if depth else ""
        elif element:
            yield match[0], Mark(match[0], shown=_code_text(match[0])) if element in CODE else None
        elif name and not slash and NO_TRANSLATION.search(match[0]) and name not in VOID:
            skipped, depth = name, 1
            yield match[0], None
        elif name in INLINE:
            yield match[0], Mark(match[0], CLOSE if slash else OPEN, name)
        elif name in SINGLE_INLINE or match[0].startswith("<!--"):
            yield match[0], Mark(match[0])
        else:
            yield match[0], None


VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))


def _text_parts(raw: str) -> Iterator[tuple[str, Part]]:
    for part in protect(raw):
        if isinstance(part, str):
            yield part, html.unescape(part)
        else:
            yield part.raw, Mark(part.raw, shown=html.unescape(part.raw))


def _code_text(raw: str) -> str:
    """Return the text of an element whose content is not translated, if it has no tags inside."""
    content = raw[raw.index(">") + 1 :].rpartition("</")[0]
    return "" if "<" in content else " ".join(html.unescape(content).split())
