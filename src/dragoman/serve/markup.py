"""Texts with HTML markup: what is between the tags is translated, the tags stay as they are, letter by letter."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

# No tag goes on beyond another `<` outside of quotes, so that a text full of them is not read to its end for each.
WITHIN = r"""(?:"[^"]*"|'[^']*'|[^'"<>])*"""
LEFT_ALONE = rf"<(script|style|code|pre)\b{WITHIN}>.*?(?:</\1\s*>|\Z)"  # with all that is in them
TAG = rf"</?[a-zA-Z]{WITHIN}>"
OTHERS = r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[!?][^<>]*>"
MARKUP = re.compile(f"{LEFT_ALONE}|{OTHERS}|{TAG}", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class MarkedUpText:
    """A text in parts: markup as it is, and texts to be translated."""

    parts: list[str]
    text_indices: list[int]  # which parts are texts

    @property
    def texts(self) -> list[str]:
        return [self.parts[place] for place in self.text_indices]

    def replace_texts(self, translations: list[str]) -> str:
        """The same with other texts, in which nothing is markup."""
        told = dict(zip(self.text_indices, translations, strict=True))
        return "".join(
            html.escape(told[place], quote=False) if place in told else part for place, part in enumerate(self.parts)
        )


def parse_markup(text: str) -> MarkedUpText:
    """
    >>> read_markup("<p>Guten <b>Tag</b> &amp; so</p>").to_translate
    ['Guten ', 'Tag', ' & so']
    """
    parts, texts, start = list[str](), list[int](), 0
    for match in [*MARKUP.finditer(text), None]:
        between = text[start : len(text) if match is None else match.start()]
        words = html.unescape(between)
        if any(map(str.isalnum, words)):  # not spaces or punctuation alone
            texts.append(len(parts))
        parts.append(words if texts and texts[-1] == len(parts) else between)
        if match is not None:
            parts.append(match[0])
            start = match.end()
    return MarkedUpText(parts, texts)
