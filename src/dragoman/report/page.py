"""A report as one page: HTML in a single file that opens anywhere, without a network, and the same as Markdown.

    page = Page("Four translators", [Section("Scores", [Text("..."), Table(["system", "BLEU"], rows)])])
    write_html(page, Path("report.html"))

Nothing in the page runs or is fetched. All that comes from outside is escaped; of a picture only what draws is kept.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from numpy.typing import ArrayLike

from dragoman.core.errors import DataError
from dragoman.io.storage import atomic_file
from dragoman.report.attention import attention_text, check_attention
from dragoman.report.inline_svg import inline_svg
from dragoman.report.page_style import HOT, LEVELS, STYLE
from dragoman.report.tables import format_cell, is_numeric

MIN_SHOWN = 0.1  # from so much attention on a field has its percentage in it
CONTENTS = "Contents"
# Nothing may be loaded from anywhere, nor may anything run.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Paragraphs:
    """Paragraphs, with an empty line between them."""

    text: str


@dataclass(frozen=True)
class PageTable:
    """Columns with names; numbers are written as everywhere in reports, and stand to the right."""

    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""


def without_empty_columns(table: PageTable) -> PageTable:
    """The table without columns that have nothing in them.

    >>> without_empty(Table(["a", "b"], [[1, None], [2, None]])).headers
    ['a']
    """
    kept = [number for number in range(len(table.headers)) if any(row[number] is not None for row in table.rows)]
    rows = [[row[number] for number in kept] for row in table.rows]
    return replace(table, headers=[table.headers[number] for number in kept], rows=rows)


@dataclass(frozen=True)
class PageFigure:
    """A drawing: the text of an .svg file."""

    svg_text: str
    caption: str = ""


@dataclass(frozen=True)
class Preformatted:
    """Text whose lines and blanks stay as they are: commands, and what they print."""

    text: str


@dataclass(frozen=True)
class Heatmap:
    """An attention matrix as a table of shaded fields.  # (target words, source words)"""

    target_words: Sequence[str]
    source_words: Sequence[str]
    matrix: ArrayLike = field(compare=False)
    caption: str = ""


PagePart = Paragraphs | PageTable | PageFigure | Preformatted | Heatmap


@dataclass(frozen=True)
class PageSection:
    heading: str
    parts: Sequence[PagePart]


@dataclass(frozen=True)
class Page:
    title: str
    sections: Sequence[PageSection]
    language: str = "en"


def write_html(page: Page, path: Path) -> None:
    """The page as a file, whole or not at all."""
    text = to_html(page)
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


# -- HTML ------------------------------------------------------------------------------------------------------------


def to_html(page: Page) -> str:
    """The whole page, pictures and style within it."""
    title = escape(page.title)
    body = "\n".join(_section(number, section) for number, section in enumerate(page.sections, 1))
    return f"""<!DOCTYPE html>
<html lang="{escape(page.language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{STYLE}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{_contents(page.sections)}</header>
<main>
{body}
</main>
</body>
</html>
"""


def _contents(sections: Sequence[PageSection]) -> str:
    links = "".join(
        f'<li><a href="#section-{number}">{escape(section.heading)}</a></li>\n'
        for number, section in enumerate(sections, 1)
    )
    return f'<nav aria-label="{CONTENTS}">\n<h2>{CONTENTS}</h2>\n<ol>\n{links}</ol>\n</nav>\n' if links else ""


def _section(number: int, section: PageSection) -> str:
    """Every part has a number of its own, so that the names inside two pictures never meet."""
    parts = "\n".join(_part(part, f"picture-{number}-{place}-") for place, part in enumerate(section.parts, 1))
    return f'<section id="section-{number}">\n<h2>{escape(section.heading)}</h2>\n{parts}\n</section>'


def _part(part: PagePart, prefix: str) -> str:
    match part:
        case Paragraphs():
            return "\n".join(f"<p>{escape(paragraph)}</p>" for paragraph in _paragraphs(part.text))
        case Preformatted():
            return f'<pre tabindex="0">{escape(part.text)}</pre>'
        case PageTable():
            return _figure(_table(part), part.caption)
        case PageFigure():
            return _figure(inline_svg(part.svg_text, prefix, part.caption), part.caption)
        case Heatmap():
            return _figure(_heatmap(part), part.caption)


def _figure(inside: str, caption: str) -> str:
    """What may be wider than the page scrolls in a box of its own, which the keyboard reaches too."""
    below = f"\n<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure>\n<div class="scroll" tabindex="0">\n{inside}\n</div>{below}\n</figure>'


def _table(part: PageTable) -> str:
    columns = list(_columns(part))
    kinds = [' class="number"' if is_numeric(column) else "" for column in columns]
    heads = "".join(
        f'<th scope="col"{kind}>{escape(header)}</th>' for kind, header in zip(kinds, part.headers, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(format_cell(value))}</td>" for kind, value in zip(kinds, row, strict=True))
        + "</tr>\n"
        for row in part.rows
    )
    return f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>"


def _columns(part: PageTable) -> Iterator[list[object]]:
    for row in part.rows:
        if len(row) != len(part.headers):
            raise DataError(f"table: a row of {len(row)} values under {len(part.headers)} headers; give one for each")
    for number in range(len(part.headers)):
        yield [row[number] for row in part.rows]


def _heatmap(part: Heatmap) -> str:
    """A field says its number when pointed at, and shows it where it is not small."""
    weights = check_attention(part.target_words, part.source_words, part.matrix).tolist()
    heads = "".join(f'<th scope="col"><span>{escape(word)}</span></th>' for word in part.source_words)
    rows = "".join(
        f'<tr><th scope="row"><span>{escape(target)}</span></th>'
        + "".join(_field(weight, target, source) for weight, source in zip(row, part.source_words, strict=True))
        + "</tr>\n"
        for target, row in zip(part.target_words, weights, strict=True)
    )
    return f'<table class="heat">\n<thead><tr><td></td>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>'


def _field(weight: float, target: str, source: str) -> str:
    level = round(LEVELS * weight)
    look = f"a{level} hot" if level >= HOT else f"a{level}"
    title = escape(f"{target} ← {source}: {weight:.3f}")
    number = f"{100 * weight:.0f}" if weight >= MIN_SHOWN else ""
    return f'<td class="{look}" title="{title}">{number}</td>'


def escape(text: str) -> str:
    """Text as it stands in HTML, also within quotes; signs that no HTML file may hold become �.

    >>> escape('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "\ufffd", text), quote=True)


def _paragraphs(text: str) -> list[str]:
    return [paragraph.strip() for paragraph in re.split(r"\n\s*\n", text) if paragraph.strip()]


# -- Markdown --------------------------------------------------------------------------------------------------------


def to_markdown(page: Page, picture_paths: Sequence[str | Path] = ()) -> str:
    """The same page; pictures are linked, not held: one path for each of them, in their order."""
    pictures = sum(isinstance(part, PageFigure) for section in page.sections for part in section.parts)
    if pictures != len(picture_paths):
        raise DataError(f"{page.title}: {pictures} pictures and {len(picture_paths)} paths; give one for each")
    paths = iter(picture_paths)
    blocks = [f"# {escape_markdown(page.title)}"]
    for section in page.sections:
        blocks.append(f"## {escape_markdown(section.heading)}")
        for part in section.parts:
            blocks += _markdown(part, paths)
    return "\n\n".join(blocks) + "\n"


def _markdown(part: PagePart, paths: Iterator[str | Path]) -> list[str]:
    match part:
        case Paragraphs():
            return [escape_markdown_lines(paragraph) for paragraph in _paragraphs(part.text)]
        case Preformatted():
            return [_fenced(part.text)]
        case PageTable():
            return [_markdown_table(part), *_captions(part.caption)]
        case PageFigure():
            return [f"![{escape_markdown(part.caption)}](<{Path(next(paths)).as_posix()}>)", *_captions(part.caption)]
        case Heatmap():
            return [
                _fenced(attention_text(part.target_words, part.source_words, part.matrix)),
                *_captions(part.caption),
            ]


def _captions(caption: str) -> list[str]:
    return [f"*{escape_markdown(caption)}*"] if caption.strip() else []


def _markdown_table(part: PageTable) -> str:
    columns = list(_columns(part))
    lines = [list(part.headers), *([format_cell(value) for value in row] for row in part.rows)]
    rows = [f"| {' | '.join(map(escape_markdown, line))} |" for line in lines]
    rule = " | ".join("---:" if is_numeric(column) else "---" for column in columns)
    return "\n".join([rows[0], f"| {rule} |", *rows[1:]])


def _fenced(text: str) -> str:
    """A block of text as it is, behind a fence longer than any within it."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}\n{text.rstrip()}\n{fence}"


def escape_markdown(text: str) -> str:
    """Text in one line, of which Markdown takes nothing for a mark.

    >>> print(plain("a_b | <i>"))
    a\\_b \\| \\<i\\>
    """
    return re.sub(r"([\\`*_\[\]<>|~&$#])", r"\\\1", " ".join(text.split()))


def escape_markdown_lines(text: str) -> str:
    """The same, line by line: nor is a line taken for the item of a list or for a rule.

    >>> print(plain_lines("+ one\\n2. two"))
    \\+ one
    2\\. two
    """
    lines = map(escape_markdown, text.splitlines())
    return "\n".join(re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", line) for line in lines)
