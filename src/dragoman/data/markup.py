"""Texts to translate inside HTML markup, which stays as it is."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from itertools import chain

# A tag ends before the next `<` outside of quotes, so that a text with many `<` is read in linear time.
ATTRIBUTES = r"""(?:"[^"]*"|'[^']*'|[^'"<>])*"""
UNTRANSLATED = rf"<(script|style|code|pre)\b{ATTRIBUTES}>.*?(?:</\1\s*>|\Z)"  # elements that are copied as a whole
TAG = rf"</?[a-zA-Z]{ATTRIBUTES}>"
COMMENTS = r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[!?][^<>]*>"
MARKUP = re.compile(f"{UNTRANSLATED}|{COMMENTS}|{TAG}", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class MarkedUpText:
    """Texts to translate, and the markup around them, which stays as it is."""

    texts: list[str]
    markup: list[str]  # before each text and after the last one

    def replace_texts(self, translations: list[str]) -> str:
        """Return the markup with other texts, escaped as HTML."""
        escaped = [html.escape(translation, quote=False) for translation in translations]
        return "".join(chain.from_iterable(zip(self.markup, [*escaped, ""], strict=True)))


def parse_markup(text: str) -> MarkedUpText:
    """Separate HTML markup from text.

    >>> parse_markup("<p>Guten <b>Tag</b> &amp; so</p>").texts
    ['Guten ', 'Tag', ' & so']
    """
    texts, markup, start, position = list[str](), list[str](), 0, 0
    for match in [*MARKUP.finditer(text), None]:
        begin, end = (len(text), len(text)) if match is None else match.span()
        words = html.unescape(text[position:begin])
        if any(map(str.isalnum, words)):  # more than spaces and punctuation
            texts.append(words)
            markup.append(text[start:position])
            start = begin
        position = end
    return MarkedUpText(texts, [*markup, text[start:]])
