"""Parts of a text that are the same in every language: addresses, placeholders, file names, code."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from dragoman.data.scanner import UNSPACED

Span = tuple[int, int]

PLACEHOLDER = "\ufffc"  # stands for an item; Unicode's object replacement character

_URL_CHARACTER = r"[^\s<>\"'`(){}\[\]|\\^。，、；：！？）」』】]"
_URL_END = rf"(?:(?![.,;:!?*_~]){_URL_CHARACTER}|\([^\s()]*\))"  # punctuation at the end belongs to the sentence
_URL_PATH = rf"(?:{_URL_CHARACTER}|\([^\s()]*\))*{_URL_END}"
URL = (
    rf"(?:https?://|ftp://|www\.){_URL_PATH}"
    r"|(?<![\w.@/-])(?:[a-z0-9][a-z0-9-]*\.)+(?:com|org|net|edu|gov|info|io|eu|de|ch|fr|nl|uk|jp|cn|ru)\b(?![@.]\w)"
    rf"(?:/(?:{_URL_PATH})?)?"
)
EMAIL = r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+"
FLAGS = r"[#0+-]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?"
# %s, %.2f. After a digit it must be a whole word: `20%s`, not `100%sicher`.
CONVERSION = rf"{FLAGS}(?:[sd@](?:(?<!\d%[sd@])|(?![^\W_]))|[iufFeEgGxXocp](?![^\W_]))"
PRINTF = (
    r"%\([^()\s]+\)[#0+-]*\d*(?:\.\d+)?[a-zA-Z]"  # %(name)s
    rf"|%(?:\d+\$)?{CONVERSION}|%%|(?<![\w%])%L?\d{{1,2}}(?!\w)|(?<![\w%])%n(?!\w)"
)
BRACES = (
    r"\{\{[^{}]*\}\}|<%=(?:(?!<%|%>)[^\n])*+%>|[$%#]\{[^{}\s]*\}"  # {{x}}, <%= x %>, ${x}
    r"|\{[\w.\[\]-]*(?:![rsa])?(?:[:|][^{}\s]*)?\}"  # {}, {0}, {name!r:>10}, {name|upper}
    r"|\{\w+, ?(?:number|date|time|spellout|ordinal|duration)\b[^{}]*\}"  # {0, number}
)
VARIABLE = r"\$[A-Za-z_]\w*"
PATH = (
    r"(?<![\w/.])(?:~|\.{1,2})?/(?:[\w.~+-]+/)+(?:[\w~+-]+(?:\.[\w~+-]+)*)?|(?<![\w/.])(?:~|\.{1,2})/[\w.~+-]*\w"
    r"|\b[A-Za-z]:\\[^\s\"]*\w"
    r"|(?<![\w.-])[\w-]+(?:\.[\w-]+)*\.(?:txt|md|pdf|docx?|xlsx?|csv|tsv|jsonl?|xml|ya?ml|toml|html?|css|js|py|sh|exe|zip|gz|png"
    r"|jpe?g|gif|svg|mp[34])\b"
)
CODE = r"`[^`\n]+`|(?<!\S)--[A-Za-z][\w-]*|\b\w+(?:::\w+)+(?:\(\))?|(?<![\w.])[A-Za-z]\w*+(?:\.\w++)*+\(\)|\b[A-Za-z]\w*_\w+\b"
NAME = r"(?<![\w@])@\w+(?:[.-]\w+)*|(?<![\w#&])#\w*[^\W\d]\w*"  # @tom, #tag
PROTECTED = re.compile("|".join((URL, EMAIL, PRINTF, BRACES, VARIABLE)), re.ASCII)  # in documents, which mark code
ITEM = re.compile("|".join((URL, EMAIL, PATH, CODE, PRINTF, BRACES, VARIABLE, NAME)))
ITEM_MARK = re.compile(r"[@%{$/\\`#_]|--|::|\(\)|\w\.\w")  # in every item; most lines have none, which is faster to see

UNIT = re.compile(rf"(?:(?!{UNSPACED.pattern})[^\W_])+|\S")  # a word, or a character of a script without spaces
# Characters that a training text may not have, and how it may write them instead.
SUBSTITUTES = {
    **dict.fromkeys("’‘‚‛`´ʼ", "'"),
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("–—−‐‑‒―", "-"),
    "…": "...",
    "ß": "ss",
}
FIRST_TAG = "\U000e0000"


def find_items(text: str) -> list[Span]:
    """Return the parts of a text that are not words, in order.

    >>> text = "Mail %s to a.b@c.org (see https://x.org/a(b), page 1.5)."
    >>> [text[start:end] for start, end in find_items(text)]
    ['%s', 'a.b@c.org', 'https://x.org/a(b)']
    """
    return [match.span() for match in ITEM.finditer(text)] if ITEM_MARK.search(text) else []


def find_unknown(text: str, alphabet: frozenset[str]) -> list[Span]:
    """Return the words and runs of other characters that an alphabet cannot write, not even with substitutes.

    >>> text = "see Москва😀!"
    >>> [text[start:end] for start, end in find_unknown(text, frozenset("see!"))]
    ['Москва😀']
    """
    if alphabet.issuperset(text):
        return []
    units = (unit for unit in UNIT.finditer(text) if not alphabet.issuperset(substitute_unknown(unit[0], alphabet)))
    return join_spans(text, [unit.span() for unit in units])


def join_spans(text: str, spans: Iterable[Span]) -> list[Span]:
    """Return spans in order; those with nothing visible between them as one."""
    joined = list[Span]()
    for start, end in sorted(spans):
        if joined and all(map(_is_invisible, text[joined[-1][1] : start])):
            start, _ = joined.pop()
        joined.append((start, end))
    return joined


def mask_spans(text: str, spans: Iterable[Span]) -> str:
    """Return a text with spaces instead of spans.

    >>> mask_spans("a %s", [(2, 4)])
    'a   '
    """
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def script(letter: str) -> str:
    """Return the script of a letter by its name in Unicode.

    >>> script("ß"), script("Б")
    ('LATIN', 'CYRILLIC')
    """
    return unicodedata.name(letter, "").partition(" ")[0]


def split_at(text: str, spans: Iterable[Span]) -> tuple[list[str], list[str]]:
    """Return the parts of a text between spans, and the spans' texts: one less.

    >>> split_at("a b c", [(2, 3)])
    (['a ', ' c'], ['b'])
    """
    outside, inside, position = list[str](), list[str](), 0
    for start, end in spans:
        outside.append(text[position:start])
        inside.append(text[start:end])
        position = end
    return [*outside, text[position:]], inside


def lower_except_items(text: str) -> str:
    """Return a text in lower case, without changing items: addresses and code may depend on capitals."""
    outside, items = split_at(text, find_items(text))
    return "".join(part.lower() + item for part, item in zip(outside, [*items, ""], strict=True))


def substitute_unknown(text: str, alphabet: frozenset[str]) -> str:
    """Replace characters outside an alphabet by ones in it that mean the same, where there are some.

    Accents are removed; quotation marks, dashes and wide forms become plain ones; invisible characters disappear.

    >>> substitute_unknown("“Renée” – \\u00adＡ", frozenset("ReneA-\\" "))
    '"Renee" - A'
    """
    if alphabet.issuperset(text):
        return text
    text = unicodedata.normalize("NFC", text)
    return "".join(letter if letter in alphabet else _substitute(letter, alphabet) for letter in text)


def _substitute(letter: str, alphabet: frozenset[str]) -> str:
    if letter.isspace():
        return " "
    if _is_invisible(letter):
        return ""
    plain = "".join(part for part in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(part))
    candidates = (SUBSTITUTES.get(letter), unicodedata.normalize("NFKC", letter), plain, letter.lower(), letter.upper())
    return next((form for form in candidates if form is not None and alphabet.issuperset(form)), letter)


def _is_invisible(character: str) -> bool:
    """Whether a character only says how others are written; tags of emoji, which are also of this category, do not."""
    return unicodedata.category(character) == "Cf" and character < FIRST_TAG
