"""Segments of a document: text to translate with inline markup in it, and their plain text.

Markup is never given to a translator. A tag covers words, so it is taken out and put back around the words that
translate them (see `markup_projection`). A placeholder, a URL or a code span is shown to the translator, which should
copy it; where it does not, it is taken out and put back like a tag.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from dragoman.data.copied_items import CONVERSION, PROTECTED
from dragoman.data.scanner import UNSPACED

OPEN, CLOSE, SINGLE = "open", "close", "single"
MAX_DEPTH = 100  # of elements; deeper ones are put back one by one
OPENING = "([{<«„“‚‘¿¡\"'"  # punctuation that is not followed by a space

# Placeholders that stand for arguments by their order: %s, {}.
UNNUMBERED = re.compile(rf"%%|%{CONVERSION}|\{{(?:![rsa])?(?::[^{{}}\s]*)?\}}", re.ASCII)
# Statements of templates, which separate segments: {% if x %}, <% end %>.
STATEMENT = re.compile(r"\{%(?:(?!\{%|%\}).)*+%\}|<%(?!=)(?:(?!<%|%>).)*+%>", re.DOTALL)
# Messages with rules for plurals and the like, which cannot be translated as text.
ICU_MESSAGE = re.compile(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal|choice)\s*,")


@dataclass(frozen=True)
class Mark:
    """Inline markup: raw text of the document that is kept as it is, once."""

    raw: str
    kind: str = SINGLE
    name: str = ""  # of an element: an opening and a closing tag of the same name belong together
    shown: str = ""  # what the translator reads instead of a single mark, and should copy; empty: nothing
    joins: bool = False  # whether letters before and after it are one word

    @property
    def is_visible(self) -> bool:
        """Whether the mark stands for text, with spaces around it."""
        return self.kind == SINGLE


Part = str | Mark


@dataclass(frozen=True)
class TextSegment:
    """Text to translate as a whole, with its markup."""

    raw: str  # as it is in the document
    parts: tuple[Part, ...]
    format: str = ""  # of a segment inside a document of another format

    @property
    def is_translatable(self) -> bool:
        """Whether there is something to translate: letters outside of marks, and no rules for plurals."""
        has_letters = any(isinstance(part, str) and any(map(str.isalpha, part)) for part in self.parts)
        text = "".join(part if isinstance(part, str) else part.raw for part in self.parts)
        return has_letters and ICU_MESSAGE.search(text) is None


class Rendering(NamedTuple):
    """A document with its translations."""

    text: str
    unchanged: int  # segments that are as in the source


class ParsedDocument(Protocol):
    """A parsed document."""

    @property
    def segments(self) -> Sequence[TextSegment]: ...

    def render(self, translated: Sequence[Sequence[Part] | None]) -> Rendering:
        """Return the document with other parts for each segment; None: as it was."""
        ...


@dataclass(frozen=True)
class PieceDocument:
    """A document as text that is kept, and segments in between."""

    pieces: Sequence[str | TextSegment]
    # Returns the raw text of other parts of a segment; None if they cannot be written.
    write: Callable[[TextSegment, Sequence[Part]], str | None]

    @property
    def segments(self) -> list[TextSegment]:
        return [piece for piece in self.pieces if isinstance(piece, TextSegment)]

    def render(self, translated: Sequence[Sequence[Part] | None]) -> Rendering:
        remaining, written, unchanged = iter(translated), list[str](), 0
        for piece in self.pieces:
            if isinstance(piece, str):
                written.append(piece)
                continue
            parts = next(remaining)
            text = None if parts is None else self.write(piece, parts)
            written.append(piece.raw if text is None else text)
            unchanged += text is None
        return Rendering("".join(written), unchanged)


def ordered_placeholders(expected: Sequence[str], actual: Sequence[str], *, number: bool) -> list[str]:
    """Return what to write for placeholders that stand for arguments by their order, where a translation has `actual`.

    If their order differs from that of the source, they are numbered or else put back in the order of the source.

    >>> ordered_placeholders(["%s", "%d"], ["%d", "%s"], number=True)
    ['%2$d', '%1$s']
    >>> ordered_placeholders(["%s", "%d"], ["%d", "%s"], number=False)
    ['%s', '%d']
    """
    if list(expected) == list(actual) or Counter(expected) != Counter(actual):
        return list(actual)
    arguments = [placeholder for placeholder in expected if placeholder != "%%"]
    if not number or any("*" in placeholder for placeholder in arguments):
        remaining = iter(arguments)
        return [placeholder if placeholder == "%%" else next(remaining) for placeholder in actual]
    places: dict[str, list[int]] = {}
    for place, placeholder in enumerate(arguments, 1):
        places.setdefault(placeholder, []).append(place)
    numbered = {placeholder: iter(numbers) for placeholder, numbers in places.items()}
    return [
        placeholder
        if placeholder[0] != "%" or placeholder == "%%"
        else f"%{next(numbered[placeholder])}${placeholder[1:]}"
        for placeholder in actual
    ]


def protect(raw: str, pattern: re.Pattern[str] = PROTECTED, show: Callable[[str], str] = str) -> Iterator[Part]:
    """Separate placeholders, URLs and e-mail addresses from text.

    Args:
        show: returns what the translator reads instead of a placeholder.

    >>> [part if isinstance(part, str) else part.raw for part in protect("Hello {name}, 5 %d files in $HOME")]
    ['Hello ', '{name}', ', 5 ', '%d', ' files in ', '$HOME']
    >>> list(protect("100%ig, 20 % sicher, 5$"))
    ['100%ig, 20 % sicher, 5$']
    """
    position = 0
    for match in pattern.finditer(raw):
        if match.start() > position:
            yield raw[position : match.start()]
        yield Mark(match[0], shown=show(match[0]))
        position = match.end()
    if position < len(raw):
        yield raw[position:]


class DocumentBuilder:
    """Collects the pieces of a document."""

    def __init__(self) -> None:
        self.pieces: list[str | TextSegment] = []

    def add_text(self, text: str) -> None:
        """Add text that is not translated."""
        if self.pieces and isinstance(self.pieces[-1], str):
            self.pieces[-1] += text
        elif text:
            self.pieces.append(text)

    def add_segment(self, raws: Sequence[str], parts: Sequence[Part]) -> None:
        """Add parts, given with their raw text, as segments in which all tags are balanced.

        Spaces and marks without text around the words of a segment are not part of it. Nor are tags whose partners are
        missing: these separate segments.
        """
        waiting = [(0, len(parts))]  # ranges of parts, the last one first
        while waiting:
            start, end = waiting.pop()
            unmatched = _unmatched(parts[start:end])
            if not unmatched:
                self._add_balanced(raws[start:end], parts[start:end])
            elif unmatched == [0] and end - start == 1:
                self.add_text(raws[start])
            else:
                cuts = sorted({0, *unmatched, *(index + 1 for index in unmatched), end - start})
                ranges = [(start + first, start + last) for first, last in zip(cuts[:-1], cuts[1:], strict=True)]
                waiting += reversed(ranges)

    def _add_balanced(self, raws: Sequence[str], parts: Sequence[Part]) -> None:
        first, last = 0, len(parts)
        while first < last and _is_blank(parts[first]):
            first += 1
        while first < last and _is_blank(parts[last - 1]):
            last -= 1
        self.add_text("".join(raws[:first]))
        raw = "".join(raws[first:last])
        segment = TextSegment(raw, tuple(parts[first:last]))
        if segment.is_translatable:
            start, end = len(raw) - len(raw.lstrip()), len(raw.rstrip())
            self.add_text(raw[:start])
            self.pieces.append(TextSegment(raw[start:end], segment.parts))
            self.add_text(raw[end:])
        else:
            self.add_text(raw)
        self.add_text("".join(raws[last:]))


def _is_blank(part: Part) -> bool:
    """Return whether a part has nothing that a translator reads, and can stay where it is."""
    return not part.strip() if isinstance(part, str) else part.kind == SINGLE and not part.shown


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


# -- the plain text of a segment ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class Node:
    """A mark in the plain text, or an element with those inside it. Positions are offsets of characters."""

    start: int
    end: int
    open: Mark
    close: Mark | None = None
    children: list[Node] = field(default_factory=list)
    space_before: bool = False  # of a mark that was taken out of the text
    space_after: bool = False
    is_adjacent: bool = False  # to the element before it: the text has a space between them that the document has not

    def all_nodes(self) -> Iterator[Node]:
        """Yield the node and those inside it."""
        yield self
        for child in self.children:
            yield from child.all_nodes()

    def leaves(self) -> Iterator[Node]:
        """Yield the nodes without children, in order."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(frozen=True)
class PlainText:
    """A segment as one line of plain text."""

    text: str
    nodes: list[Node]  # what was taken out
    shown: list[tuple[int, Mark]]  # offsets of the marks that the text shows

    @property
    def shown_counts(self) -> Counter[str]:
        return Counter(mark.shown for _, mark in self.shown)

    def is_complete(self, translation: str) -> bool:
        """Return whether a translation has everything that the text shows exactly as often, and no other placeholders."""
        counts = self.shown_counts
        if count_shown(self.text, counts) != counts:
            return False  # the same words are elsewhere in the text: which are which?
        return count_shown(translation, counts) == counts and self.without_new_placeholders(translation) == translation

    def without_new_placeholders(self, translation: str) -> str:
        """Return a translation without placeholders that the text does not have, or not as often."""
        available = Counter(match[0] for match in PROTECTED.finditer(self.text)) + self.shown_counts

        def keep(match: re.Match[str]) -> str:
            available[match[0]] -= 1
            return match[0] if available[match[0]] >= 0 else " "

        return PROTECTED.sub(keep, translation)


def shown_pattern(shown: Counter[str]) -> re.Pattern[str]:
    """Return a pattern that finds the texts of marks, as whole words."""
    longest_first = sorted(shown, key=len, reverse=True)
    texts = (rf"(?<!\w){re.escape(text)}(?!\w)" if text[0].isalnum() else re.escape(text) for text in longest_first)
    return re.compile("|".join(texts) or r"(?!)")


def count_shown(text: str, shown: Counter[str]) -> Counter[str]:
    return Counter(match[0] for match in shown_pattern(shown).finditer(text))


def plain_text(parts: Sequence[Part], *, show: bool) -> PlainText:
    """Return the plain text of parts; with `show`, marks that can be shown stay in the text.

    >>> plain = plain_text([Mark("<b>", OPEN, "b"), "two \\n words", Mark("</b>", CLOSE, "b"), " ", Mark("%s")], show=False)
    >>> plain.text, [(node.start, node.end) for node in plain.nodes]
    ('two words', [(0, 9), (9, 9)])
    """
    return _Builder(show).build(parts)


class _Builder:
    def __init__(self, show: bool):
        self.show, self.text = show, ""
        self.has_gap = False  # a space that is not written yet
        self.shown: list[tuple[int, Mark]] = []
        self.root = Node(0, 0, Mark(""))
        self.stack = [self.root]
        self.taken_out: list[Node] = []  # since the last word
        self.gap_before = False  # whether there is a space before them
        self.opened: list[Node] = []  # elements that start with the next word
        self.is_closed = False  # whether an element ended since the last word
        self.next_element: Node | None = None  # the first element that started after that

    def build(self, parts: Sequence[Part]) -> PlainText:
        for part in parts:
            if isinstance(part, str):
                self._add_text(part)
            elif part.kind == OPEN:
                node = Node(self._next_position(), self._next_position(), part)
                self.stack[-1].children.append(node)
                self.opened.append(node)
                self.next_element = self.next_element or (node if self.is_closed else None)
                if len(self.stack) < MAX_DEPTH:
                    self.stack.append(node)
            elif part.kind == CLOSE:
                self._close(part)
            elif self.show and part.shown.strip():
                self._write(part.shown, part)
            else:
                self._take_out(part)
        for node in self.stack:
            node.end = max(node.start, len(self.text))
        self._clamp_opened()
        return PlainText(self.text, self.root.children, self.shown)

    def _add_text(self, text: str) -> None:
        self.has_gap |= text[:1].isspace()
        for number, word in enumerate(text.split()):
            self.has_gap |= number > 0
            self._write(word)
        self.has_gap |= text[-1:].isspace()

    def _write(self, word: str, mark: Mark | None = None) -> None:
        if self.text and self._needs_gap(word):
            self.text += " "
        elif self.text and self.next_element is not None and _is_spaced(self.text[-1]) and _is_spaced(word[0]):
            self.text += " "  # two elements side by side are two words
            self.next_element.is_adjacent = True
        self._clamp_opened()
        for node in self.taken_out[-1:]:
            node.space_after = self.has_gap
        self.taken_out, self.opened, self.has_gap, self.gap_before = [], [], False, False
        self.is_closed, self.next_element = False, None
        if mark is not None:
            self.shown.append((len(self.text), mark))
        self.text += word

    def _clamp_opened(self) -> None:
        """Correct the positions of elements before which a space was expected and not written."""
        for node in self.opened:
            node.start, node.end = min(node.start, len(self.text)), min(node.end, len(self.text))

    def _needs_gap(self, word: str) -> bool:
        """Return whether there is a space between the text and the next word."""
        if not self.taken_out:
            return self.has_gap
        if all(node.open.joins for node in self.taken_out):
            return self.has_gap or self.gap_before
        last, first = self.text[-1], word[0]
        if not self.has_gap and not self.gap_before:
            return last.isalnum() and first.isalnum()
        if self.has_gap and not self.gap_before:
            return last not in OPENING
        return self.has_gap or first.isalnum()

    def _next_position(self) -> int:
        return len(self.text) + (1 if self.has_gap and self.text else 0)

    def _close(self, mark: Mark) -> None:
        self.is_closed, self.next_element = True, None
        if mark.name not in [node.open.name for node in self.stack[1:]]:  # it was opened before this segment
            self.stack[-1].children.append(Node(len(self.text), len(self.text), mark))
            return
        while self.stack[-1].close is None:
            node = self.stack.pop()
            node.end = max(node.start, len(self.text))
            if node.open.name == mark.name:
                node.close = mark
                return

    def _take_out(self, mark: Mark) -> None:
        for node in self.taken_out[-1:]:
            node.space_after = self.has_gap
        node = Node(len(self.text), len(self.text), mark, space_before=self.has_gap)
        self.gap_before, self.has_gap = self.gap_before or self.has_gap, False
        self.stack[-1].children.append(node)
        self.taken_out.append(node)


def _is_spaced(character: str) -> bool:
    """Return whether a character is part of a word, in a script that has spaces between words."""
    return character.isalnum() and not UNSPACED.match(character)
