"""Narratives of reports: templates of plain text that refer to tables and figures by name.

A template looks like Markdown. `## Heading` starts a section; `{.summary}` after a heading marks a section that is also
printed in the terminal. A line `@name` stands for the table or figure of that name. All other blocks of text, separated
by blank lines, are paragraphs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from dragoman.report.page import PagePart, PageSection, Paragraphs

if TYPE_CHECKING:
    from jinja2 import Environment

SAME_PERPLEXITY = 0.01  # perplexities that differ by less than this share are called about the same
SAME_BLEU = 0.3  # points of BLEU, below which a difference is not reported
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
    for block in re.split(r"\n\s*\n", _templates().get_template(template).render(**values)):
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
def _templates() -> Environment:
    """Templates of plain text. Values are put on one line, so that none can start a section or refer to a table."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("dragoman.report"),
        autoescape=False,  # plain text: pages escape it when they are rendered
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: " ".join(value.split()) if isinstance(value, str) else value,
    )
    templates.filters |= {
        "number": format_number,
        "percent": format_percent,
        "change_from": describe_change,
        "points_from": describe_difference,
        "than": describe_comparison,
        "listed": join_names,
        "units": describe_units,
    }
    return templates


# -- wording ---------------------------------------------------------------------------------------------------------


def format_number(value: float, digits: int = 0) -> str:
    """
    >>> format_number(12345), format_number(99.55, 1)
    ('12,345', '99.5')
    """
    return f"{value:,.{digits}f}"


def format_percent(share: float, digits: int = 0) -> str:
    """
    >>> format_percent(0.123), format_percent(0.123, 1)
    ('12%', '12.3%')
    """
    return f"{100 * share:.{digits}f}%"


def describe_change(new: float, old: float) -> str:
    """Compare a perplexity with another.

    >>> describe_change(80.0, 100.0), describe_change(100.2, 100.0), describe_change(110.0, 100.0)
    ('20% lower', 'about the same', '10% higher')
    """
    change = new / old - 1 if math.isfinite(new) and math.isfinite(old) and old else 0.0
    if abs(change) < SAME_PERPLEXITY:
        return "about the same"
    return f"{100 * abs(change):.0f}% {'lower' if change < 0 else 'higher'}"


def describe_difference(new: float, old: float) -> str:
    """Compare a BLEU score with another.

    >>> describe_difference(30.0, 20.0), describe_difference(20.0, 20.1), describe_difference(18.0, 20.0)
    ('10.0 points higher', 'about the same', '2.0 points lower')
    """
    if abs(new - old) < SAME_BLEU:
        return "about the same"
    return f"{abs(new - old):.1f} points {'higher' if new > old else 'lower'}"


def describe_comparison(comparison: str, other: str) -> str:
    """Complete a comparison with what is compared to.

    >>> describe_comparison("20% lower", "before"), describe_comparison("about the same", "before")
    ('20% lower than before', 'about the same as before')
    """
    return f"{comparison} {'as' if comparison.startswith('about') else 'than'} {other}"


def join_names(names: Iterable[str]) -> str:
    """
    >>> join_names(["a"]), join_names(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def describe_units(spec: str) -> str:
    """
    >>> describe_units("subword:4000"), describe_units("word"), describe_units("char")
    ('subwords (a vocabulary of 4000)', 'words', 'characters')
    """
    kind, _, number = spec.partition(":")
    return {"word": "words", "char": "characters"}.get(kind, f"subwords (a vocabulary of {number})")
