"""Narratives of reports: templates of plain text that refer to tables and figures by name.

A template looks like Markdown. `## Heading` starts a section; `{.summary}` after a heading marks a section that is also
printed in the terminal. A line `@name` stands for the table or figure of that name. All other blocks of text, separated
by blank lines, are paragraphs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from dragoman.report.page import PagePart, PageSection, Paragraphs

if TYPE_CHECKING:
    from jinja2 import Environment

SUMMARY = "{.summary}"

NamedParts = dict[str, PagePart | Sequence[PagePart] | None]


def render_document(template: str, parts: NamedParts, **values: object) -> list[PageSection]:
    """Render a template to the sections of a page.

    Args:
        template: name of the template.
        parts: tables and figures by name; None, for example for a figure that could not be drawn, is left out.
        values: what the text of the template refers to.
    """
    sections: list[PageSection] = []
    contents: list[PagePart] = []
    for block in re.split(r"\n\s*\n", templates().get_template(template).render(**values)):
        text = " ".join(block.split())
        if text.startswith("## "):
            heading, contents = text.removeprefix("## "), []
            in_summary = heading.endswith(SUMMARY)
            sections.append(PageSection(heading.removesuffix(SUMMARY).strip(), contents, in_summary))
        elif text.startswith("@"):
            part = parts[text[1:]]
            contents += [] if part is None else part if isinstance(part, Sequence) else [part]
        elif text:
            contents.append(Paragraphs(text))
    return sections


@cache
def templates() -> Environment:
    """Templates of plain text. Values are put on one line, so that none can start a section or refer to a table."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dragoman.report"),
        autoescape=False,  # plain text: pages escape it when they are rendered
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: " ".join(value.split()) if isinstance(value, str) else value,
    )
    environment.filters |= {
        "number": lambda value, digits=0: f"{value:,.{digits}f}",
        "percent": lambda share, digits=0: f"{100 * share:.{digits}f}%",
    }
    environment.tests["finite"] = math.isfinite
    return environment
