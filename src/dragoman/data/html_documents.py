"""HTML documents as segments: blocks of text with inline tags; scripts, styles, comments and attributes are kept."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from dragoman.data.inline_markup import (
    CLOSE,
    OPEN,
    STATEMENT,
    DocumentBuilder,
    Mark,
    Part,
    PieceDocument,
    TextSegment,
    protect,
)
from dragoman.data.languages import language_of_tag

# Elements that are part of a sentence. All others separate segments.
INLINE_NAMES = """
a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark q rb rp rt ruby s small span
strike strong sub sup time tt u
"""
INLINE = frozenset(INLINE_NAMES.split())
SINGLE_INLINE = frozenset(("img", "input", "wbr"))  # inline elements without content
CODE = ("code", "kbd", "samp", "var")  # inline elements whose content is not translated
LITERAL = ("script", "style", "pre", "textarea", "svg", "math", "template")  # kept as a whole

# A tag ends before the next `<` outside of quotes, so that a text with many `<` is read in linear time.
ATTRIBUTES = r"""(?:"[^"]*"|'[^']*'|[^'"<>])*+"""
KEPT = rf"<({'|'.join(LITERAL)}|{'|'.join(CODE)})\b{ATTRIBUTES}(?<!/)>.*?(?:</\1\s*>|\Z)"  # elements copied as a whole
TAG = rf"<(/?)([a-zA-Z][^\s<>/'\"]*+){ATTRIBUTES}>"
COMMENTS = r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?(?:php|xml|=|\s).*?(?:\?>|\Z)|<[!?][^<>]*>"
# Exponents, indices and numbers of footnotes: without letters.
SCRIPT = rf"<(su[bp])\b{ATTRIBUTES}>(?:[^<\w]|[\d_]|</?(?!su[bp]\b)[a-z]{ATTRIBUTES}>)*+</\2\s*>"
MARKUP = re.compile(f"{KEPT}|{SCRIPT}|{COMMENTS}|{STATEMENT.pattern}|{TAG}", re.DOTALL | re.IGNORECASE)
JOINING = re.compile(r"<(?:!--|wbr\b|su[bp]\b)", re.IGNORECASE)  # markup inside of words
LANGUAGE = re.compile(r"""(\s(?:xml:)?lang\s*=\s*["']?)([\w-]+)""", re.IGNORECASE)
NO_TRANSLATION = re.compile(r"""\stranslate\s*=\s*["']?no\b|\bclass\s*=\s*["'][^"']*\bnotranslate\b""", re.IGNORECASE)


def parse_html(text: str) -> PieceDocument:
    """Parse an HTML document or fragment.

    >>> document = parse_html("<p>Guten <b>Tag</b> &amp; so</p><hr>")
    >>> document.pieces[0], document.segments[0].raw, document.pieces[2]
    ('<p>', 'Guten <b>Tag</b> &amp; so', '</p><hr>')
    """
    builder = DocumentBuilder()
    parts: list[Part] = []  # of the segment that is not finished
    raws: list[str] = []

    def finish() -> None:
        builder.add_segment(raws, parts)
        raws.clear()
        parts.clear()

    for raw, part in _parts(text):
        if part is None:  # separates segments
            finish()
            builder.add_text(raw)
        else:
            raws.append(raw)
            parts.append(part)
    finish()
    return PieceDocument(builder.pieces, write_html)


def replace_language(text: str, source: str, target: str) -> str:
    """Replace the language of the `html` element of a document, if it is the source language.

    >>> replace_language('<html lang="fr-CA"><p lang="fr">', "fr", "en")
    '<html lang="en"><p lang="fr">'
    """
    tag = next((match for match in MARKUP.finditer(text) if (match[4] or "").lower() == "html" and not match[3]), None)
    if tag is None:
        return text

    def replace(attribute: re.Match[str]) -> str:
        return attribute[1] + target if language_of_tag(attribute[2]) == source else attribute[0]

    return text[: tag.start()] + LANGUAGE.sub(replace, tag[0]) + text[tag.end() :]


def write_html(segment: TextSegment, parts: Sequence[Part]) -> str:
    return "".join(part.raw if isinstance(part, Mark) else html.escape(part, quote=False) for part in parts)


def _parts(text: str) -> Iterator[tuple[str, Part | None]]:
    """Yield raw text with what it is: text, a mark, or None for what separates segments."""
    position = 0
    matches = iter([*MARKUP.finditer(text), None])
    for match in matches:
        yield from _text_parts(text[position : len(text) if match is None else match.start()])
        if match is None:
            return
        position = match.end()
        element, is_script, slash, name = (match[1] or "").lower(), match[2], match[3], (match[4] or "").lower()
        if element:
            yield match[0], Mark(match[0], shown=_code_text(match[0])) if element in CODE else None
        elif name and not slash and NO_TRANSLATION.search(match[0]) and name not in VOID:
            end = _end_of_element(matches, name, text)
            raw, position = text[match.start() : end], end
            yield raw, Mark(raw, shown=_code_text(raw)) if name in INLINE else None
        elif name in INLINE:
            yield match[0], Mark(match[0], CLOSE if slash else OPEN, name)
        elif is_script or name in SINGLE_INLINE or match[0].startswith(("<!--", "<?=")):
            yield match[0], Mark(match[0], joins=JOINING.match(match[0]) is not None)
        else:
            yield match[0], None


def _end_of_element(matches: Iterator[re.Match[str] | None], name: str, text: str) -> int:
    """Return where an element ends that has just started; the rest of the document if it is not closed."""
    depth = 1
    for match in matches:
        if match is None:
            break
        if (match[4] or "").lower() == name:
            depth += -1 if match[3] else 1
        if depth == 0:
            return match.end()
    return len(text)


VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))


def _text_parts(raw: str) -> Iterator[tuple[str, Part]]:
    for part in protect(raw):
        if isinstance(part, str):
            yield part, html.unescape(part)
        else:
            yield part.raw, Mark(part.raw, shown=html.unescape(part.raw))


def _code_text(raw: str) -> str:
    """Return the text of an element whose content is not translated, if it has no tags inside."""
    content = raw[raw.index(">") + 1 :].rpartition("</")[0]
    return "" if "<" in content else " ".join(html.unescape(content).split())
