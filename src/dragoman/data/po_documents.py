"""PO files as documents: only the lines of the translations that are added change."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from dragoman.data.html_documents import TAG, VOID
from dragoman.data.inline_markup import (
    CLOSE,
    ICU_MESSAGE,
    OPEN,
    STATEMENT,
    UNNUMBERED,
    DocumentBuilder,
    Mark,
    Part,
    PieceDocument,
    Rendering,
    TextSegment,
    ordered_placeholders,
    protect,
)
from dragoman.data.po_files import PoField, escape_po, parse_po

MESSAGE_TAG = re.compile(TAG, re.DOTALL | re.IGNORECASE)
ENTITY = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);")
# Lines and columns of a message, which are translated one by one.
LINE = re.compile("[^\t\n\v\f\r\x85\u2028\u2029]*[\t\n\v\f\r\x85\u2028\u2029]*")
MAX_LINE = 78  # characters of a line of a PO file; longer strings start on the next line
# Flags of messages whose placeholders may be numbered: %2$s
NUMBERED_FORMATS = frozenset(("c-format", "objc-format", "php-format", "sh-format", "awk-format", "boost-format"))


@dataclass(frozen=True)
class _Message:
    """A translation to be added."""

    place: PoField
    keyword: str
    source: str
    document: PieceDocument
    numbers_placeholders: bool


@dataclass(frozen=True)
class PoDocument:
    """A PO file, and the messages that are to be translated."""

    text: str
    messages: list[_Message]
    already_translated: int  # messages whose translation stays
    skipped: int  # messages that cannot be translated

    @property
    def segments(self) -> list[TextSegment]:
        return [segment for message in self.messages for segment in message.document.segments]

    def render(self, translated: Sequence[Sequence[Part] | None]) -> Rendering:
        remaining, written, position, unchanged = iter(translated), list[str](), 0, 0
        for message in self.messages:
            count = len(message.document.segments)
            rendering = message.document.render(list(islice(remaining, count)))
            unchanged += rendering.unchanged
            line_start = max(self.text.rfind(end, 0, message.place.start) for end in "\r\n") + 1
            indentation = self.text[line_start : message.place.start]
            field = _po_field(message, rendering.text, f"{_newline(self.text)}{indentation}")
            written += [self.text[position : message.place.start], field]
            position = message.place.end
        return Rendering("".join([*written, self.text[position:]]), unchanged)


def parse_po_document(raw: bytes, name: str, *, overwrite: bool = False) -> PoDocument:
    """Parse a PO file. Translations that are there, also fuzzy ones, are kept unless `overwrite`."""
    catalog = parse_po(raw, name)
    messages, already_translated, skipped = list[_Message](), 0, 0
    for entry in catalog.entries:
        if entry.is_obsolete:
            continue
        empty = [form for form, place in entry.translations.items() if overwrite or not place.text]
        already_translated += not empty
        if ICU_MESSAGE.search(entry.msgid):
            skipped += bool(empty)
            continue
        for form in empty:
            keyword = "msgstr" if entry.msgid_plural is None else f"msgstr[{form}]"
            source = entry.source(form)
            can_number = not NUMBERED_FORMATS.isdisjoint(entry.flags)
            messages.append(_Message(entry.translations[form], keyword, source, parse_message(source), can_number))
    messages.sort(key=lambda message: message.place.start)
    return PoDocument(catalog.text, messages, already_translated, skipped)


def parse_message(text: str) -> PieceDocument:
    """Parse a message of a program: lines with tags and placeholders.

    >>> parse_message("<b>Delete</b> %s?\\n").segments[0].raw
    '<b>Delete</b> %s?'
    """
    builder = DocumentBuilder()
    for line in LINE.findall(text):
        position = 0
        for match in [*STATEMENT.finditer(line), None]:
            parts = list(_message_parts(line[position : len(line) if match is None else match.start()]))
            builder.add_segment([part if isinstance(part, str) else part.raw for part in parts], parts)
            if match is not None:
                builder.add_text(match[0])
                position = match.end()
    return PieceDocument(builder.pieces, write_message)


def _message_parts(line: str) -> Iterator[Part]:
    position = 0
    for match in [*MESSAGE_TAG.finditer(line), None]:
        for part in protect(line[position : len(line) if match is None else match.start()]):
            if isinstance(part, str):
                yield from protect(part, pattern=ENTITY, show=_entity_text)
            else:
                yield part
        if match is not None:
            is_single = match[0].endswith("/>") or match[2].lower() in VOID
            yield Mark(match[0]) if is_single else Mark(match[0], CLOSE if match[1] else OPEN, match[2])
            position = match.end()


def _entity_text(raw: str) -> str:
    return html.unescape(raw).strip()


def write_message(segment: TextSegment, parts: Sequence[Part]) -> str | None:
    """Return a message; a translation cannot add tags. None if nothing is left."""
    text = "".join(part.raw if isinstance(part, Mark) else MESSAGE_TAG.sub("", part) for part in parts)
    return text if text.strip() else None


def _newline(text: str) -> str:
    match = re.search(r"\r\n|\n|\r", text)
    return match[0] if match else "\n"


def _po_field(message: _Message, text: str, newline: str) -> str:
    expected, actual = (UNNUMBERED.findall(side) for side in (message.source, text))
    placeholders = iter(ordered_placeholders(expected, actual, number=message.numbers_placeholders))
    text = UNNUMBERED.sub(lambda _: next(placeholders), text)
    lines = [f'"{escape_po(line)}"' for line in re.findall(r"[^\n]*\n|[^\n]+", text)] or ['""']
    if len(lines) > 1 or len(message.keyword) + 1 + len(lines[0]) > MAX_LINE:
        lines = ['""', *lines]
    return newline.join([f"{message.keyword} {lines[0]}", *lines[1:]])
