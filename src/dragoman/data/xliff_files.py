"""XLIFF files, versions 1.2 and 2: their segments, with source, target and state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.data.xml_files import inline_text, local_name

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

# Besides those that start with "needs-", which programs add to.
FUZZY_STATES = frozenset(("rejected", "unreviewed"))
UNTRANSLATED_STATES = frozenset(("new", "needs-translation", "initial"))


@dataclass(frozen=True)
class XliffSegment:
    """A segment: a `trans-unit` of version 1.2 or one of its sentences, a `segment` of version 2."""

    element: Element  # the `trans-unit` or the `segment`
    source: Element | None
    target: Element | None
    state: str  # of the target; empty if the file has none
    is_translatable: bool
    source_language: str | None
    target_language: str | None

    @property
    def is_translated(self) -> bool:
        """Whether the target has text or codes, and is not marked as untranslated. Empty sentences are nothing."""
        if self.target is None or self.state in UNTRANSLATED_STATES:
            return False
        has_codes = any(local_name(child) != "mrk" for child in self.target.iterdescendants())
        return has_codes or bool(inline_text(self.target))

    @property
    def needs_review(self) -> bool:
        is_fuzzy = self.state in FUZZY_STATES or self.state.startswith("needs-")
        return is_fuzzy or self.element.get("approved") == "no"


def xliff_segments(root: Element) -> Iterator[XliffSegment]:
    """Yield the segments of an XLIFF document in order. A unit without `source` is one as well."""
    for element in root.iter("{*}trans-unit", "{*}segment"):
        target = child_of(element, "target")
        around = [element, *element.iterancestors()]
        file = next((parent for parent in around if local_name(parent) == "file"), root)
        is_translatable = next((p.get("translate") for p in around if p.get("translate")), "yes") != "no"
        state = (target.get("state") if target is not None else None) or element.get("state") or ""
        languages = (
            file.get("source-language") or root.get("srcLang"),
            file.get("target-language") or root.get("trgLang"),
        )
        for source, part in _sentences(element, target):
            yield XliffSegment(element, source, part, state, is_translatable, *languages)


def _sentences(element: Element, target: Element | None) -> list[tuple[Element | None, Element | None]]:
    """Return the sides of a unit, or of each sentence if both sides are divided into sentences."""
    sentences = sentence_marks(child_of(element, "seg-source"))
    targets = sentence_marks(target)
    is_divided = bool(targets) or target is None or not inline_text(target)
    if not sentences or not is_divided:
        return [(child_of(element, "source"), target)]
    return [(source, targets.get(identifier)) for identifier, source in sentences.items()]


def child_of(element: Element, name: str) -> Element | None:
    return next(element.iterchildren(f"{{*}}{name}"), None)


def sentence_marks(element: Element | None) -> dict[str, Element]:
    """Return the sentences of a `seg-source` or a `target` of version 1.2, by their identifiers."""
    marks = [] if element is None else element.iter("{*}mrk")
    return {mark.get("mid") or "": mark for mark in marks if mark.get("mtype") == "seg"}
