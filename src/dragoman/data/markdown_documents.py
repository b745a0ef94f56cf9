"""Markdown documents as segments: paragraphs, headings, list items and table cells.

markdown-it says where the blocks are and what is in a line; the text is cut at its tokens, so that everything else stays
as it is. After a translation is written, it is read again: what would be read as markup is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from dragoman.core.errors import require_extra
from dragoman.data.copied_items import PROTECTED
from dragoman.data.html_documents import JOINING, VOID, parse_html, write_html
from dragoman.data.inline_markup import (
    CLOSE,
    OPEN,
    STATEMENT,
    DocumentBuilder,
    Mark,
    Part,
    PieceDocument,
    TextSegment,
    protect,
)

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

FRONT_MATTER = re.compile(
    r"(---[ \t]*\r?\n.*?\n(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n.*?\n\+\+\+)[ \t]*\r?(?:\n|\Z)", re.DOTALL
)
ATTRIBUTES = re.compile(r"\{[#.:][^{}\n]*\}")  # {#anchor}, {: .class}
# Placeholders, and of Markdown footnotes, the boxes of tasks, :smile: and attributes.
PLACEHOLDER = re.compile(
    rf"{PROTECTED.pattern}|\[\^[^\]\s]+\]:?|\[[ xX]\]|(?<![\w:]):[a-z0-9_+-]+:(?![\w:])|{ATTRIBUTES.pattern}", re.ASCII
)
BREAK = re.compile(r"(?: *|\\)\n[ \t]*")
# What may be read as markup. An underscore inside of a word is not.
SPECIAL = re.compile(r"[\\`*\[\]<>~|]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
# The start of a heading, a list or a block of MkDocs.
SPECIAL_AT_START = re.compile(r"\A([0-9]{1,9}(?=[.)])|(?=[#+=-]|!!!|\?\?\?|:::))")
LINK_TAIL = re.compile(r"\]\[(?:[^\[\]\\]|\\.)*\]|\]")
HTML = "html"
References = dict[str, object]  # what markdown-it knows of a document


@cache
def _parser() -> MarkdownIt:
    require_extra("markdown_it", "formats")
    require_extra("mdit_py_plugins", "formats")
    from markdown_it import MarkdownIt
    from mdit_py_plugins.admon import admon_plugin
    from mdit_py_plugins.container import container_plugin

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(["text_join"])
    return parser.use(admon_plugin).use(container_plugin, "", validate=lambda info, markup: True)


@dataclass(frozen=True)
class _Line:
    """A line of the content of a block, and where it is in the document."""

    content_start: int
    offset: int


def parse_markdown(text: str) -> PieceDocument:
    """Parse a Markdown document.

    >>> document = parse_markdown("# Guten *Tag*\\n\\n- `code` hier\\n")
    >>> [segment.raw for segment in document.segments]
    ['Guten *Tag*', '`code` hier']
    """
    matter = FRONT_MATTER.match(text)
    position = matter.end() if matter else 0
    builder = DocumentBuilder()
    builder.add_text(text[:position])
    starts = [position, *(match.end() for match in re.compile("\n").finditer(text, position)), len(text)]
    references: References = {}
    for token in _parser().parse(text[position:], references):
        if token.map is None:
            continue
        first, last = (starts[min(line, len(starts) - 1)] for line in token.map)
        if token.type == "html_block" and first >= position:
            builder.add_text(text[position:first])
            for piece in parse_html(text[first:last]).pieces:
                if isinstance(piece, TextSegment):
                    builder.pieces.append(replace(piece, format=HTML))
                else:
                    builder.add_text(piece)
            position = last
        elif token.type == "inline":
            lines = _locate(token.content, text, max(first, position), last)
            inline = _inline_parts(token, references) if lines else None
            if inline is not None:
                builder.add_text(text[position : lines[0].offset])
                _add_block(builder, inline, lines, text)
                position = lines[-1].offset + len(token.content) - lines[-1].content_start
            elif "|" in token.content:  # a cell with an escaped bar, which is not translated
                escaped = token.content.replace("|", "\\|")
                place = text.find(escaped, max(first, position), last)
                builder.add_text(text[position : place + len(escaped)] if place >= 0 else "")
                position = place + len(escaped) if place >= 0 else position
    builder.add_text(text[position:])
    return PieceDocument(builder.pieces, partial(_write, references))


def _locate(content: str, text: str, position: int, end: int) -> list[_Line]:
    """Find the lines of a block in the document, after `position`; an empty list if they are not there as they are."""
    lines, content_start = list[_Line](), 0
    for line in content.split("\n"):
        offset = text.find(line, position, end)
        if offset < 0 or not line:
            return []
        lines.append(_Line(content_start, offset))
        content_start += len(line) + 1
        position = offset + len(line)
        newline = text.find("\n", position, end)
        position = newline + 1 if newline >= 0 else position
    return lines


def _add_block(
    builder: DocumentBuilder, inline: list[tuple[int, int, Part | None]], lines: list[_Line], text: str
) -> None:
    """Add the segments of a block. Hard line breaks separate segments."""

    def offset_of(position: int) -> int:
        line = next(line for line in reversed(lines) if line.content_start <= position)
        return line.offset + position - line.content_start

    parts: list[Part] = []
    raws: list[str] = []
    for start, end, part in inline:
        raw = text[offset_of(start) : offset_of(end)]
        if part is None:
            builder.add_segment(raws, parts)
            raws, parts = [], []
            builder.add_text(raw)
        else:
            raws.append(raw)
            parts.append(part)
    builder.add_segment(raws, parts)


# -- inline ------------------------------------------------------------------------------------------------------------


def _inline_parts(block: Token, references: References) -> list[tuple[int, int, Part | None]] | None:
    """Return the parts of a block with their positions in its content; None for a hard line break.

    The result is None if the tokens cannot be found in the content, which is then not translated.
    """
    content, position = block.content, 0
    nesting, links = list[str](), list[tuple[str, int]]()  # what is open: elements, and addresses and starts of links
    parts: list[tuple[int, int, Part | None]] = []
    tokens = iter(block.children or [])
    for token in tokens:
        if token.type == "link_open" and token.markup == "autolink":
            next(tokens), next(tokens)  # the address and the end
            length: int | None = content.find(">", position) + 1 - position
            raw = content[position : position + (length or 0)]
            parts.append((position, position + len(raw), Mark(raw, shown=raw[1:-1])))
            position += len(raw)
            continue
        if token.type == "link_open":
            links.append((str(token.attrs.get("href", "")), position + 1))
        address, start = links.pop() if token.type == "link_close" else (str(token.attrs.get("src", "")), 0)
        length = _raw_length(token, content, position, address, references)
        if length is None:
            return None
        raw = content[position : position + length]
        if token.type == "link_close" and raw in ("]", "][]"):  # the text, to be translated, is the name of the link
            label = " ".join(content[start:position].split())
            parts.append((position, position + length, Mark(f"][{label}]", CLOSE, nesting.pop())))
            position += length
            continue
        for part_raw, part in _token_parts(token, raw, nesting):
            parts.append((position, position + len(part_raw), part))
            position += len(part_raw)
    return parts if position == len(content) else None


def _token_parts(token: Token, raw: str, nesting: list[str]) -> Iterator[tuple[str, Part | None]]:
    """Yield the parts of a token with their raw text. `nesting` are the elements that are open."""
    kind = token.type
    if kind == "text":
        position = 0
        for match in [*STATEMENT.finditer(raw), None]:
            text = raw[position : len(raw) if match is None else match.start()]
            for part in protect(text, PLACEHOLDER, lambda mark: "" if ATTRIBUTES.fullmatch(mark) else mark):
                yield (part, part) if isinstance(part, str) else (part.raw, part)
            if match is not None:
                yield match[0], None
                position = match.end()
    elif kind == "text_special":
        yield raw, token.content
    elif kind == "softbreak":
        yield raw, " "
    elif kind == "hardbreak":
        yield raw, None
    elif kind == "code_inline":
        yield raw, Mark(raw, shown=" ".join(token.content.split()))
    elif kind.endswith("_open"):
        nesting.append(f"{kind.removesuffix('_open')}{len(nesting)}")
        yield raw, Mark(raw, OPEN, nesting[-1])
    elif kind.endswith("_close"):
        yield raw, Mark(raw, CLOSE, nesting.pop())
    elif kind == "html_inline":
        yield from ((raw, part) for part in _html_mark(raw))
    else:  # an image
        yield raw, Mark(raw)


def _html_mark(raw: str) -> list[Part | None]:
    """Return an HTML tag inside a paragraph as a mark; None for a line break."""
    if re.match(r"<br\b", raw, re.IGNORECASE):
        return [None]
    match = re.match(r"<(/?)([a-zA-Z][\w-]*)[^>]*?(/?)>", raw)
    if match and not match[3] and match[2].lower() not in VOID:
        return [Mark(raw, CLOSE if match[1] else OPEN, f"<{match[2].lower()}>")]
    return [Mark(raw, joins=JOINING.match(raw) is not None)]


def _raw_length(token: Token, content: str, position: int, address: str, references: References) -> int | None:
    """Return how many characters of the content a token stands for; None if it is not there."""
    kind = token.type
    if kind in ("softbreak", "hardbreak"):
        match = BREAK.match(content, position)
        return len(match[0]) if match else None
    if kind == "code_inline":
        ticks = len(token.markup)
        match = re.compile(rf"`{{{ticks}}}(?!`).*?(?<!`)`{{{ticks}}}(?!`)", re.DOTALL).match(content, position)
        return len(match[0]) if match else None
    if kind == "image":
        if not content.startswith(f"![{token.content}]", position):
            return None
        end = 2 + len(token.content)
        return end + _link_tail(address, content, position + end, references)
    if kind == "link_close":
        return _link_tail(address, content, position, references) if content.startswith("]", position) else None
    raw = _raw_text(token)
    return len(raw) if content.startswith(raw, position) else None


def _raw_text(token: Token) -> str:
    if token.type == "link_open":
        return "["
    if token.type == "text_special":
        return token.markup
    return token.content if token.type in ("text", "html_inline") else token.markup


def _link_tail(address: str, content: str, position: int, references: References) -> int:
    """Return the length of the end of a link: `](address "title")`, `][reference]` or `]`."""
    from markdown_it.common.utils import normalizeReference
    from markdown_it.helpers import parseLinkDestination, parseLinkTitle

    if content.startswith("](", position):
        place = _skip_spaces(content, position + 2)
        destination = parseLinkDestination(content, place, len(content))
        if destination.ok and _parser().normalizeLink(destination.str) == address:
            place = _skip_spaces(content, destination.pos)
            title = parseLinkTitle(content, place, len(content))
            if title.ok:
                place = _skip_spaces(content, title.pos)
            if content.startswith(")", place):
                return place + 1 - position
    known = references.get("references")
    match = LINK_TAIL.match(content, position)
    if match and len(match[0]) > 2 and isinstance(known, dict):
        label = normalizeReference(match[0][2:-1])
        if match[0] == "][]" or known.get(label, {}).get("href") == address:
            return len(match[0])
    return 1


def _skip_spaces(content: str, position: int) -> int:
    while position < len(content) and content[position] in " \t\n":
        position += 1
    return position


# -- writing -----------------------------------------------------------------------------------------------------------


def _write(references: References, segment: TextSegment, parts: Sequence[Part]) -> str | None:
    """Return parts as Markdown that reads as they are: with escapes, and with spaces where they are needed.

    None if there is no such text.
    """
    if segment.format == HTML:
        return write_html(segment, parts)
    escaped = [part if isinstance(part, Mark) else SPECIAL.sub(_escape, part) for part in parts]
    if escaped and isinstance(escaped[0], str):
        escaped[0] = SPECIAL_AT_START.sub(r"\1\\", escaped[0])
    for attempt in (escaped, _with_spaces(escaped)):
        written = "".join(part.raw if isinstance(part, Mark) else part for part in attempt)
        if _reads_as(written, parts, references):
            return written
    return None


def _escape(special: re.Match[str]) -> str:
    return "&#124;" if special[0] == "|" else f"\\{special[0]}"  # an escaped bar may still be read as part of a table


def _with_spaces(parts: Sequence[Part]) -> list[Part]:
    """Put spaces outside of emphasis: without them it may be read as text, depending on what is next to it."""
    spaced: list[Part] = []
    for part in parts:
        kind = part.kind if isinstance(part, Mark) else ""
        spaced += [" ", part] if kind == OPEN else [part, " "] if kind == CLOSE else [part]
    return spaced[1:] if spaced[:1] == [" "] else spaced


def _reads_as(written: str, parts: Sequence[Part], references: References) -> bool:
    """Return whether Markdown is read as one paragraph with the same marks and words."""
    tokens = _parser().parse(written, {**references})
    if [token.type for token in tokens] != ["paragraph_open", "inline", "paragraph_close"]:
        return False
    inline = _inline_parts(tokens[1], references)
    return inline is not None and _summary([part for _, _, part in inline]) == _summary(parts)


def _summary(parts: Sequence[Part | None]) -> list[str]:
    """Return the marks and letters of parts in order. Spaces may be added."""
    summary: list[str] = []
    for part in parts:
        summary += [f"mark {part.raw}"] if isinstance(part, Mark) else "".join((part or "").split())
    return summary
