"""Texts with HTML markup: what is between the tags is translated, the tags stay."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from html.parser import HTMLParser

LEFT_ALONE = ("script", "style", "code", "pre")


@dataclass
class Marked:
    """A text in parts: markup as it is, and texts to be translated."""

    parts: list[str] = field(default_factory=list)
    texts: list[int] = field(default_factory=list)  # which parts are texts

    @property
    def to_translate(self) -> list[str]:
        return [self.parts[place] for place in self.texts]

    def with_texts(self, translations: list[str]) -> str:
        """The same with other texts."""
        told = dict(zip(self.texts, translations, strict=True))
        return "".join(
            html.escape(told[place], quote=False) if place in told else part for place, part in enumerate(self.parts)
        )


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.marked = Marked()
        self._alone = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._alone += tag in LEFT_ALONE
        self.marked.parts.append(self.get_starttag_text() or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.marked.parts.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self._alone = max(0, self._alone - (tag in LEFT_ALONE))
        self.marked.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if data.strip() and not self._alone:
            self.marked.texts.append(len(self.marked.parts))
            self.marked.parts.append(data)
        else:
            self.marked.parts.append(data if self._alone else html.escape(data, quote=False))

    def handle_comment(self, data: str) -> None:
        self.marked.parts.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.marked.parts.append(f"<!{decl}>")


def read_markup(text: str) -> Marked:
    """
    >>> read_markup("<p>Guten <b>Tag</b> &amp; so</p>").to_translate
    ['Guten ', 'Tag', ' & so']
    """
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.marked
