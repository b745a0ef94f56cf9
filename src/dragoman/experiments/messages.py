"""What is to be told of a ladder, and the files that it goes to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dragoman.report.page import PageSection

MARKDOWN, VALUES = "ladder.md", "ladder.json"


class SuggestedCommand(NamedTuple):
    """A command to try, and the line that it is given to read, if any."""

    words: list[str]
    line: str | None = None


@dataclass(frozen=True)
class ReportContents:
    """A ladder, or a part of it: as text, as Markdown, as sections of a page, as plain values; and what was drawn."""

    text: str
    markdown: str
    sections: Sequence[PageSection]
    values: dict[str, Any]
    drawn: Sequence[str] = ()  # names of pictures, in the same directory

    @property
    def files(self) -> list[str]:
        """All that is written."""
        from dragoman.io.storage import REPORT_FILE

        return [MARKDOWN, VALUES, REPORT_FILE, *self.drawn]


def write_report(output: Path, title: str, told: ReportContents) -> None:
    """As Markdown, as plain values and as a page, in the directory."""
    from dragoman.io.storage import REPORT_FILE, atomic_file
    from dragoman.report.page import Page, write_html

    for name, text in {MARKDOWN: told.markdown, VALUES: json.dumps(told.values, indent=1)}.items():
        with atomic_file(output / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    write_html(Page(title, told.sections), output / REPORT_FILE)
