"""XLIFF files as documents, written again by lxml with the same elements, attributes, comments and white space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.data.inline_markup import (
    CLOSE,
    ICU_MESSAGE,
    OPEN,
    UNNUMBERED,
    Mark,
    Part,
    Rendering,
    TextSegment,
    ordered_placeholders,
    protect,
)
from dragoman.data.pair_files import root_element
from dragoman.data.xliff_files import UNTRANSLATED_STATES, child_of, sentence_marks, xliff_segments
from dragoman.data.xml_files import CODE_ELEMENTS, ILLEGAL, inline_text, local_name, parse_xml

if TYPE_CHECKING:
    from lxml.etree import _Element as Element
    from lxml.etree import _ElementTree as ElementTree


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
    skipped: int  # units that cannot be translated
    target_language: str | None = None  # to be named if the file has none

    @property
    def segments(self) -> list[TextSegment]:
        return [unit.segment for unit in self.units]

    def render(self, translated: Sequence[Sequence[Part] | None]) -> Rendering:
        from lxml import etree

        copy = parse_xml(self.raw, self.name)
        in_copy = dict(zip(self.tree.iter(), copy.iter(), strict=True))
        for unit, parts in zip(self.units, translated, strict=True):
            target = None if unit.target is None else in_copy[unit.target]
            before, after = _outer_spaces(unit.source)
            filled = unit.segment.parts if parts is None else [before, *_in_order(unit.segment.parts, parts), after]
            _fill(_empty_target(in_copy[unit.source], target), filled, unit.elements)
        if self.target_language is not None and self.units:
            _name_language(copy.getroot(), self.target_language)
        written = etree.tostring(copy, encoding="UTF-8", xml_declaration=True).decode()
        declaration, _, rest = written.partition("\n")
        text = f"{declaration.replace(chr(39), chr(34))}\n{rest}\n"
        return Rendering(text, sum(parts is None for parts in translated))


def parse_xliff_document(
    raw: bytes, name: str, *, overwrite: bool = False, target_language: str | None = None
) -> XliffDocument:
    """Parse an XLIFF file, version 1.2 or 2. Segments with a translation are kept unless `overwrite`."""
    tree = parse_xml(raw, name)
    units, already_translated, skipped = list[_XliffUnit](), 0, 0
    for segment in xliff_segments(root_element(tree, "xliff", name)):
        if segment.is_translated and not overwrite:
            already_translated += 1
        elif segment.is_translatable and segment.source is not None:
            elements: dict[str, Element] = {}
            parts = TextSegment("", tuple(_xliff_parts(segment.source, elements)))
            if parts.is_translatable:
                units.append(_XliffUnit(segment.source, segment.target, parts, elements))
            else:
                skipped += ICU_MESSAGE.search(inline_text(segment.source)) is not None
    return XliffDocument(raw, name, tree, units, already_translated, skipped, target_language)


def _in_order(source: Sequence[Part], parts: Sequence[Part]) -> list[Part]:
    """Return parts whose placeholders without numbers have the order of the source."""
    expected, actual = ([p.raw for p in side if _is_unnumbered(p) and isinstance(p, Mark)] for side in (source, parts))
    ordered = iter(ordered_placeholders(expected, actual, number=False))
    return [Mark(next(ordered)) if _is_unnumbered(part) else part for part in parts]


def _is_unnumbered(part: Part) -> bool:
    return isinstance(part, Mark) and UNNUMBERED.fullmatch(part.raw) is not None


def _name_language(root: Element, language: str) -> None:
    """Write the language of the translations where a file has none."""
    files = list(root.iter("{*}file"))
    if any("source-language" in file.attrib for file in files):
        for file in files:
            if "target-language" not in file.attrib:
                file.set("target-language", language)
    elif "srcLang" in root.attrib and "trgLang" not in root.attrib:
        root.set("trgLang", language)


def _xliff_parts(element: Element, elements: dict[str, Element]) -> Iterator[Part]:
    """Yield the parts of a source. The raw text of a mark is a key of `elements`, with a slash for an end."""
    yield from protect(element.text or "")
    for child in element:
        key = f"\0{len(elements)}"
        elements[key] = child
        name = local_name(child)
        if not _is_code(child):
            yield Mark(key, OPEN, key)
            yield from _xliff_parts(child, elements)
            yield Mark(f"{key}/", CLOSE, key)
        elif name in ("bpt", "bx", "sc", "ept", "ex", "ec"):  # start and end of a code
            identifier = child.get("rid") or child.get("startRef") or child.get("id")
            yield Mark(key, OPEN if name in ("bpt", "bx", "sc") else CLOSE, f"code {identifier}")
        else:
            yield Mark(key, shown=inline_text(child) if name == "mrk" else "", joins=not name)
        yield from protect(child.tail or "")


def _is_code(element: Element) -> bool:
    """Return whether an inline element is kept as a whole: codes, comments, and text that is not to be translated."""
    is_protected = element.get("translate") == "no" or element.get("mtype") == "protected"
    return not local_name(element) or local_name(element) in CODE_ELEMENTS or is_protected


def _outer_spaces(element: Element) -> tuple[str, str]:
    """Return the white space at the start and at the end of an element."""
    first = element.text or ""
    last = (element[-1].tail or "") if len(element) else first
    return first[: len(first) - len(first.lstrip())], last[len(last.rstrip()) :]


def _empty_target(source: Element, target: Element | None) -> Element:
    """Return an empty target for a source: the one that is there, or a new one."""
    from lxml import etree

    if target is None and local_name(source) == "mrk":
        seg_source = next(parent for parent in source.iterancestors() if local_name(parent) == "seg-source")
        target = _sentence_target(seg_source, source.get("mid") or "")
    elif target is None:
        target = etree.Element(source.tag.replace("source", "target"), nsmap=source.nsmap)
        seg_source = child_of(source.getparent(), "seg-source")
        _add_after(source if seg_source is None else seg_source, target)
    for child in list(target):
        target.remove(child)
    target.text = None
    for element in (target, *target.iterancestors("{*}target", "{*}segment")):
        if element.get("state") in UNTRANSLATED_STATES:
            element.set("state", "translated")
    return target


def _sentence_target(seg_source: Element, identifier: str) -> Element:
    """Return the place of a sentence in the target of its unit, which is divided like the source if it is not yet."""
    target = child_of(seg_source.getparent(), "target")
    if identifier in (marks := sentence_marks(target)):
        return marks[identifier]
    copy = deepcopy(seg_source)
    for mark in sentence_marks(copy).values():
        for child in list(mark):
            mark.remove(child)
        mark.text = None
    if target is None:
        copy.tag, copy.tail = seg_source.tag.replace("seg-source", "target"), None
        _add_after(seg_source, copy)
        return sentence_marks(copy)[identifier]
    new = sentence_marks(copy)[identifier]
    if marks:
        new.tail = None
        target.append(new)
    else:
        target.text = copy.text
        target.extend(list(copy))
    return new


def _add_after(before: Element, new: Element) -> None:
    """Add an element behind another one, indented like it."""
    tail, parent = before.tail, before.getparent()
    is_last = before.getnext() is None
    before.addnext(new)
    before.tail, new.tail = parent.text if is_last else tail, tail


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
        elif not _is_code(elements[key]):
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
