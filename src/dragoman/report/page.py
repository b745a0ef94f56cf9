"""Reports as one page: a self-contained HTML file, the same as Markdown, and sections as text for the terminal.

    page = Page("Four translators", [PageSection("Scores", [Paragraphs("..."), PageTable(["system", "BLEU"], rows)])])
    write_html(page, Path("report.html"))

The HTML file needs no network: nothing in it runs or is fetched. All text is escaped, and SVG figures are filtered.
"""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, ClassVar

from numpy.typing import ArrayLike

from dragoman.core.errors import DataError
from dragoman.io.files import write_text
from dragoman.report.attention import attention_text, check_matrix
from dragoman.report.tables import format_cell, format_table, is_numeric, markdown_table

if TYPE_CHECKING:
    from jinja2 import Environment

TEXT_WIDTH = 110  # columns of sections printed in a terminal
HEAT_LEVELS = 20  # shades of a heat map
HOT_LEVEL = 17  # from this shade on the text on it is white
MIN_SHOWN = 0.1  # fields of a heat map with less attention have no number
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


# -- contents of a page ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paragraphs:
    """Paragraphs of text, separated by blank lines."""

    kind: ClassVar[str] = "paragraphs"
    text: str

    @property
    def paragraphs(self) -> list[str]:
        return [paragraph.strip() for paragraph in re.split(r"\n\s*\n", self.text) if paragraph.strip()]


@dataclass(frozen=True)
class PageTable:
    """A table. Values are formatted by `format_cell`; columns of numbers are aligned to the right."""

    kind: ClassVar[str] = "table"
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.headers):
                raise DataError(
                    f"table: a row of {len(row)} values under {len(self.headers)} headers; give one for each"
                )

    @property
    def numeric_columns(self) -> list[bool]:
        return [is_numeric([row[number] for row in self.rows]) for number in range(len(self.headers))]

    def without_empty_columns(self) -> PageTable:
        """Return the table without columns that hold no values.

        >>> PageTable(["a", "b"], [[1, None], [2, None]]).without_empty_columns().headers
        ['a']
        """
        filled = [number for number in range(len(self.headers)) if any(row[number] is not None for row in self.rows)]
        rows = [[row[number] for number in filled] for row in self.rows]
        return replace(self, headers=[self.headers[number] for number in filled], rows=rows)


@dataclass(frozen=True)
class PageFigure:
    """A drawing: the text of an SVG file. Markdown links to the file at `path`."""

    kind: ClassVar[str] = "figure"
    svg: str
    caption: str = ""
    path: str = ""


@dataclass(frozen=True)
class Preformatted:
    """Text whose line breaks and spaces are kept, such as commands and their output."""

    kind: ClassVar[str] = "preformatted"
    text: str


@dataclass(frozen=True)
class Heatmap:
    """An attention matrix as a table of shaded fields."""

    kind: ClassVar[str] = "heatmap"
    target_words: Sequence[str]
    source_words: Sequence[str]
    matrix: ArrayLike = field(compare=False)  # (target words, source words)
    caption: str = ""

    @property
    def weights(self) -> list[list[float]]:
        """The matrix as lists of numbers from 0 to 1; raises an error if it does not fit the words."""
        weights: list[list[float]] = check_matrix(self.target_words, self.source_words, self.matrix).tolist()
        return weights


PagePart = Paragraphs | PageTable | PageFigure | Preformatted | Heatmap


@dataclass(frozen=True)
class PageSection:
    heading: str
    parts: Sequence[PagePart]
    in_summary: bool = False  # also printed in the terminal


@dataclass(frozen=True)
class Page:
    title: str
    sections: Sequence[PageSection]
    language: str = "en"
    note: str = ""  # below the title


# -- HTML ------------------------------------------------------------------------------------------------------------


def write_html(page: Page, path: Path) -> None:
    """Write the page to a file, completely or not at all."""
    write_text(path, to_html(page))


def to_html(page: Page) -> str:
    """Return the page as one HTML document with its figures and style."""
    return _html_templates().get_template("page.html.j2").render(page=page)


@cache
def _html_templates() -> Environment:
    """Templates of HTML: every value is escaped, and characters that HTML must not contain are replaced."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def printable(value: object) -> object:
        is_text = isinstance(value, str) and not isinstance(value, Markup)
        return UNPRINTABLE.sub("\ufffd", str(value)) if is_text else value

    templates = Environment(
        loader=PackageLoader("dragoman.report"), autoescape=True, undefined=StrictUndefined, finalize=printable
    )
    templates.filters["cell"] = format_cell
    templates.filters["inline_svg"] = lambda svg, prefix, label: Markup(inline_svg(svg, prefix, label))
    templates.globals.update(levels=HEAT_LEVELS, hot=HOT_LEVEL, min_shown=MIN_SHOWN)
    return templates


# -- SVG in HTML -----------------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
# What Matplotlib draws with: no scripts, links, foreign content, or styles that would apply to the whole page.
# fmt: off
ELEMENTS = {
    "svg", "g", "defs", "use", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan",
    "clipPath", "title", "desc", "image",
}
ATTRIBUTES = {
    "id", "d", "style", "transform", "viewBox", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry",
    "width", "height", "points", "fill", "stroke", "opacity", "href", "clip-path", "clip-rule", "fill-rule",
    "fill-opacity", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
    "font-size", "font-family", "font-weight", "font-style", "text-anchor", "dominant-baseline", "clipPathUnits",
}
# fmt: on
SIZE = re.compile(r"[\d.]+(pt|px|in|cm|mm|em)?")
LOCAL_URL = re.compile(r"url\(\s*['\"]?#([^)'\"]*)['\"]?\s*\)")  # an id inside the file, as in clip-path
UNSAFE = re.compile(r"url\(\s*['\"]?\s*(?!#)|@import|expression|javascript:|\\", re.IGNORECASE)
EMBEDDED_IMAGE = "data:image/png;base64,"


def inline_svg(svg_text: str, prefix: str, label: str = "") -> str:
    """Return the drawing as an HTML element. Every id in it starts with `prefix`, so that ids are unique in a page.

    >>> inline_svg('<svg xmlns="http://www.w3.org/2000/svg"><script>x</script><g id="a" onclick="x"/></svg>', "p-")
    '<svg role="img" aria-label=""><g id="p-a"></g></svg>'
    """
    try:
        root = ET.fromstring(svg_text)
        problem = "" if root.tag == f"{SVG}svg" else f"its root is {root.tag}"
    except ET.ParseError as error:
        problem = str(error)
    if problem:
        raise DataError(f"{prefix.strip('-')}: not an SVG ({problem}); give the text of an .svg file")
    width = root.attrib.pop("width", "")
    for attribute in ("height", "style"):  # the height follows from the width
        root.attrib.pop(attribute, None)
    if SIZE.fullmatch(width):
        root.set("style", f"max-width: {width if width[-1].isalpha() else f'{width}px'}")
    return _element(root, prefix).replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)


def _element(element: ET.Element, prefix: str) -> str:
    """Return an element with its contents, or nothing if it is not one that draws."""
    name = element.tag.removeprefix(SVG)
    if name not in ELEMENTS:
        return ""
    attributes = "".join(_attribute(key, value, prefix) for key, value in element.attrib.items())
    contents = "".join(_element(child, prefix) + _text(child.tail) for child in element if isinstance(child.tag, str))
    return f"<{name}{attributes}>{_text(element.text)}{contents}</{name}>"


def _text(text: str | None) -> str:
    return html.escape(text) if text and text.strip() else ""


def _attribute(key: str, value: str, prefix: str) -> str:
    """Return an attribute as HTML, or nothing if it is unknown or refers to something outside the file."""
    name = "href" if key == LINK else key
    if name not in ATTRIBUTES or UNSAFE.search(value):
        return ""
    if name == "id":
        value = prefix + value
    elif name == "href":
        if not value.startswith(("#", EMBEDDED_IMAGE)):
            return ""
        value = f"#{prefix}{value[1:]}" if value.startswith("#") else value
    else:
        value = LOCAL_URL.sub(lambda match: f"url(#{prefix}{match[1]})", value)
    return f' {name}="{html.escape(value)}"'


# -- Markdown --------------------------------------------------------------------------------------------------------


def to_markdown(page: Page) -> str:
    """Return the page as Markdown, which links to the files of the figures."""
    blocks = [f"# {escape_markdown(page.title)}", *([escape_markdown_lines(page.note)] if page.note else [])]
    for section in page.sections:
        blocks.append(f"## {escape_markdown(section.heading)}")
        blocks += [block for part in section.parts for block in _markdown_blocks(part)]
    return "\n\n".join(blocks) + "\n"


def _markdown_blocks(part: PagePart) -> Iterator[str]:
    match part:
        case Paragraphs():
            yield from map(escape_markdown_lines, part.paragraphs)
            return
        case Preformatted():
            yield _fenced(part.text)
            return
        case PageTable():
            rows = [[escape_markdown(format_cell(value)) for value in row] for row in part.rows]
            yield markdown_table([escape_markdown(header) for header in part.headers], rows, part.numeric_columns)
        case PageFigure():
            if not part.path:
                raise DataError(f"figure {part.caption!r} has no path for Markdown to link to; give one")
            yield f"![{escape_markdown(part.caption)}](<{Path(part.path).as_posix()}>)"
        case Heatmap():
            yield _fenced(attention_text(part.target_words, part.source_words, part.matrix))
    if part.caption.strip():
        yield f"*{escape_markdown(part.caption)}*"


def _fenced(text: str) -> str:
    """Return a code block whose fence is longer than any fence within it."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}\n{text.rstrip()}\n{fence}"


def escape_markdown(text: str) -> str:
    """Return text as one line without Markdown markup.

    >>> print(escape_markdown("a_b | <i>"))
    a\\_b \\| \\<i\\>
    """
    return re.sub(r"([\\`*_\[\]<>|~&$#])", r"\\\1", " ".join(text.split()))


def escape_markdown_lines(text: str) -> str:
    """Escape each line, also where it would start a list or a rule.

    >>> print(escape_markdown_lines("+ one\\n2. two"))
    \\+ one
    2\\. two
    """
    lines = map(escape_markdown, text.splitlines())
    return "\n".join(re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", line) for line in lines)


# -- text ------------------------------------------------------------------------------------------------------------


def section_text(section: PageSection, *, width: int = TEXT_WIDTH, color: bool = False) -> str:
    """Return a section as text for a terminal, without its figures.

    >>> print(section_text(PageSection("Words", [Paragraphs("Two lines of it."), PageTable(["a"], [[1]])])))
    Words
    =====
    <BLANKLINE>
    Two lines of it.
    <BLANKLINE>
    a
    -
    1
    """
    heading = f"{section.heading}\n{'=' * len(section.heading)}"
    return "\n\n".join([heading, *(text for part in section.parts for text in _text_blocks(part, width, color))])


def _text_blocks(part: PagePart, width: int, color: bool) -> Iterator[str]:
    match part:
        case Paragraphs():
            yield from (fill(paragraph, width) for paragraph in part.paragraphs)
        case Preformatted():
            yield part.text
        case PageTable():
            yield format_table(part.headers, part.rows)
        case Heatmap():
            caption = [part.caption] if part.caption else []
            matrix = attention_text(part.target_words, part.source_words, part.matrix, width, color)
            yield "\n".join([*caption, matrix])
