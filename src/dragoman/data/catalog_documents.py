"""PO and XLIFF files: the units to translate, and the file with their translations.

A PO file changes only in the lines of the translations that are added. An XLIFF file is written again by lxml, with the
same elements, attributes, comments and white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from dragoman.core.errors import DataError
from dragoman.data.html_documents import TAG, VOID
from dragoman.data.inline_markup import CLOSE, OPEN, DocumentBuilder, Mark, Part, PieceDocument, TextSegment, protect
from dragoman.data.pair_files import UNTRANSLATED_STATES, parse_po, root_element, xliff_segments
from dragoman.data.xml_files import CODE_ELEMENTS, ILLEGAL, inline_text, local_name, parse_xml

if TYPE_CHECKING:
    from lxml.etree import _Element as Element
    from lxml.etree import _ElementTree as ElementTree

STRING = r'"(?:[^"\\\n]|\\.)*"[ \t]*(?:\r?\n|\Z)'
TRANSLATION = re.compile(rf"^msgstr(?:\[(\d+)\])?[ \t]*{STRING}(?:[ \t]*{STRING})*", re.MULTILINE)
MESSAGE_TAG = re.compile(TAG, re.DOTALL | re.IGNORECASE)
MAX_LINE = 78  # of a string in a PO file; longer ones start on the next line


# -- PO ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PoDocument:
    """A PO file, and the messages that are to be translated."""

    text: str
    messages: list[tuple[re.Match[str], PieceDocument]]  # the place of each translation, and its source
    already_translated: int  # units whose translation stays

    @property
    def segments(self) -> list[TextSegment]:
        return [segment for _, message in self.messages for segment in message.segments]

    def render(self, translated: Sequence[Sequence[Part] | None]) -> str:
        remaining, written, position = iter(translated), list[str](), 0
        for place, message in self.messages:
            translation = message.render(list(islice(remaining, len(message.segments))))
            written += [self.text[position : place.start()], _po_field(place, translation)]
            position = place.end()
        return "".join([*written, self.text[position:]])


def parse_po_document(text: str, name: str, *, overwrite: bool = False) -> PoDocument:
    """Parse a PO file. Messages with a translation, also a fuzzy one, are kept unless `overwrite`."""
    entries = [entry for entry in parse_po(text, name) if not entry.obsolete]
    places: list[list[re.Match[str]]] = []
    for place in TRANSLATION.finditer(text):
        if place[1] is None or int(place[1]) == 0 or not places:
            places.append([])
        places[-1].append(place)
    if len(places) == len(entries) + 1:
        del places[0]  # the header
    if len(places) != len(entries):
        raise DataError(f"{name}: {len(places):,} translations for {len(entries):,} messages; check it with msgfmt -c")
    messages, already_translated = list[tuple[re.Match[str], PieceDocument]](), 0
    for entry, fields in zip(entries, places, strict=True):
        if not overwrite and (entry.msgstr or any(entry.msgstr_plural.values())):
            already_translated += 1
            continue
        for index, place in enumerate(fields):
            is_plural = bool(entry.msgid_plural) and (index > 0 or len(fields) == 1)
            messages.append((place, parse_message(entry.msgid_plural if is_plural else entry.msgid)))
    return PoDocument(text, messages, already_translated)


def parse_message(text: str) -> PieceDocument:
    """Parse a message of a program: lines with tags and placeholders.

    >>> parse_message("<b>Delete</b> %s?\\n").segments[0].raw
    '<b>Delete</b> %s?'
    """
    builder = DocumentBuilder()
    for line in text.splitlines(keepends=True):
        parts = list(_message_parts(line))
        builder.add_segment([part if isinstance(part, str) else part.raw for part in parts], parts)
    return PieceDocument(builder.pieces, write_message)


def _message_parts(line: str) -> Iterator[Part]:
    position = 0
    for match in [*MESSAGE_TAG.finditer(line), None]:
        yield from protect(line[position : len(line) if match is None else match.start()])
        if match is not None:
            is_single = match[0].endswith("/>") or match[2].lower() in VOID
            yield Mark(match[0]) if is_single else Mark(match[0], CLOSE if match[1] else OPEN, match[2])
            position = match.end()


def write_message(segment: TextSegment, parts: Sequence[Part]) -> str:
    """Return a message; a translation cannot add tags."""
    return "".join(part.raw if isinstance(part, Mark) else MESSAGE_TAG.sub("", part) for part in parts)


def _po_field(place: re.Match[str], text: str) -> str:
    import polib

    keyword = "msgstr" if place[1] is None else f"msgstr[{place[1]}]"
    newline = "\r\n" if "\r\n" in place[0] else "\n"
    lines = [f'"{polib.escape(line)}"' for line in text.splitlines(keepends=True)] or ['""']
    if len(lines) > 1 or len(keyword) + 1 + len(lines[0]) > MAX_LINE:
        lines = ['""', *lines]
    return newline.join([f"{keyword} {lines[0]}", *lines[1:]]) + (newline if place[0].endswith("\n") else "")


# -- XLIFF -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _XliffUnit:
    source: Element
    target: Element | None
    segment: TextSegment
    elements: dict[str, Element]  # the inline elements, by the raw text of their marks


@dataclass(frozen=True)
class XliffDocument:
    """An XLIFF file, and the segments that are to be translated."""

    raw: bytes
    name: str
    tree: ElementTree
    units: list[_XliffUnit]
    already_translated: int  # units whose translation stays

    @property
    def segments(self) -> list[TextSegment]:
        return [unit.segment for unit in self.units]

    def render(self, translated: Sequence[Sequence[Part] | None]) -> str:
        from lxml import etree

        copy = parse_xml(self.raw, self.name)
        in_copy = dict(zip(self.tree.iter(), copy.iter(), strict=True))
        for unit, parts in zip(self.units, translated, strict=True):
            target = None if unit.target is None else in_copy[unit.target]
            before, after = _outer_spaces(unit.source)
            filled = unit.segment.parts if parts is None else [before, *parts, after]
            _fill(_empty_target(in_copy[unit.source], target), filled, unit.elements)
        written = etree.tostring(copy, encoding="UTF-8", xml_declaration=True).decode()
        declaration, _, rest = written.partition("\n")
        return f"{declaration.replace(chr(39), chr(34))}\n{rest}\n"


def parse_xliff_document(raw: bytes, name: str, *, overwrite: bool = False) -> XliffDocument:
    """Parse an XLIFF file, version 1.2 or 2. Segments with a translation are kept unless `overwrite`."""
    tree = parse_xml(raw, name)
    units, already_translated = list[_XliffUnit](), 0
    for segment in xliff_segments(root_element(tree, "xliff", name)):
        target = segment.target
        if target is not None and not overwrite and _is_translated(segment.element, target):
            already_translated += 1
        elif segment.is_translatable:
            elements: dict[str, Element] = {}
            parts = TextSegment("", tuple(_xliff_parts(segment.source, elements)))
            if parts.has_words:
                units.append(_XliffUnit(segment.source, target, parts, elements))
    return XliffDocument(raw, name, tree, units, already_translated)


def _is_translated(unit: Element, target: Element) -> bool:
    has_text = bool(inline_text(target)) or len(target) > 0
    return has_text and (target.get("state") or unit.get("state")) not in UNTRANSLATED_STATES


def _xliff_parts(element: Element, elements: dict[str, Element]) -> Iterator[Part]:
    """Yield the parts of a source. The raw text of a mark is a key of `elements`, with a slash for an end."""
    yield from protect(element.text or "")
    for child in element:
        key = f"\0{len(elements)}"
        elements[key] = child
        name = local_name(child)
        if name and name not in CODE_ELEMENTS:
            yield Mark(key, OPEN, key)
            yield from _xliff_parts(child, elements)
            yield Mark(f"{key}/", CLOSE, key)
        elif name in ("bpt", "bx", "sc", "ept", "ex", "ec"):  # start and end of a code
            identifier = child.get("rid") or child.get("startRef") or child.get("id")
            yield Mark(key, OPEN if name in ("bpt", "bx", "sc") else CLOSE, f"code {identifier}")
        else:
            yield Mark(key)
        yield from protect(child.tail or "")


def _outer_spaces(element: Element) -> tuple[str, str]:
    """Return the white space at the start and at the end of an element."""
    first = element.text or ""
    last = (element[-1].tail or "") if len(element) else first
    return first[: len(first) - len(first.lstrip())], last[len(last.rstrip()) :]


def _empty_target(source: Element, target: Element | None) -> Element:
    """Return an empty target next to a source: the one that is there, or a new one."""
    from lxml import etree

    if target is None:
        target = etree.Element(source.tag.replace("source", "target"), nsmap=source.nsmap)
        before = next((element for element in source.itersiblings() if local_name(element) == "seg-source"), source)
        tail, parent = before.tail, before.getparent()
        is_last = before.getnext() is None
        before.addnext(target)
        before.tail, target.tail = parent.text if is_last else tail, tail
    for child in list(target):
        target.remove(child)
    target.text = None
    if target.get("state") in UNTRANSLATED_STATES:
        target.set("state", "translated")
    return target


def _fill(target: Element, parts: Sequence[Part], elements: dict[str, Element]) -> None:
    """Write parts into an element."""
    from lxml import etree

    stack = [target]
    for part in parts:
        key = part.raw if isinstance(part, Mark) else ""
        if not key.startswith("\0"):
            _append_text(stack[-1], key if isinstance(part, Mark) else part)
        elif key.endswith("/"):
            stack = stack[:-1] or stack
        elif local_name(elements[key]) not in CODE_ELEMENTS and local_name(elements[key]):
            model = elements[key]
            stack.append(etree.SubElement(stack[-1], model.tag, model.attrib, nsmap=model.nsmap))
        else:
            copy = deepcopy(elements[key])
            copy.tail = None
            stack[-1].append(copy)


def _append_text(element: Element, text: str) -> None:
    text = ILLEGAL.sub("", text)
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text
