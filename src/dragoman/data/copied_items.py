"""Parts of a text that are the same in every language: addresses, placeholders, file names, code."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from dragoman.data.scanner import UNSPACED

Span = tuple[int, int]

PLACEHOLDER = "\ufffc"  # stands for an item; Unicode's object replacement character

# Letters that may stand next to an item without a space: of scripts without spaces, and of Korean, whose particles do.
_ATTACHED = (
    UNSPACED.pattern[1:-1] + "\u1100-\u11ff\u3005-\u3007\u3130-\u318f\uac00-\ud7a3\uff00-\uffef\U00020000-\U0003ffff"
)
_W, _LETTER = rf"[^\W{_ATTACHED}]", rf"[^\W_{_ATTACHED}]"  # as \w, and without _, of other scripts
# Spaces, punctuation and symbols outside ASCII: of Latin scripts, Armenian, Arabic, Hindi, Ethiopic, Chinese, and emoji.
_MARKS = (
    "\u0085-\u00bf\u0589\u060c\u061b\u061f\u06d4\u0964\u0965\u1361-\u1368\u1680\u2000-\u2bff\u3000-\u303f"
    "\U0001f000-\U0001ffff"
)
_URL_CHARACTER = rf"[^\s<>\"'`(){{}}\[\]|\\^{_MARKS}{_ATTACHED}]"
_URL_END = (
    rf"(?:(?![.,;:!?*_~]){_URL_CHARACTER}|\({_URL_CHARACTER}*\))"  # punctuation at the end belongs to the sentence
)
_URL_PATH = rf"(?:{_URL_CHARACTER}|\({_URL_CHARACTER}*\))*{_URL_END}"
URL = (
    rf"(?:https?://|ftp://|www\.){_URL_PATH}"
    rf"|(?<!{_W})(?<![.@/-])(?:[a-z0-9][a-z0-9-]*\.)+(?:com|org|net|edu|gov|info|io|eu|de|ch|fr|nl|uk|jp|cn|ru)"
    rf"(?!{_W})(?![@.]{_W})(?:/(?:{_URL_PATH})?)?"
)
EMAIL = rf"(?<!{_W})(?<![.+-])(?:{_W}|[.+-])++@(?:{_W}|-)++(?:\.(?:{_W}|-)++)+"
FLAGS = r"[#0+-]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?"
# %s, %.2f. After a digit it must be a whole word: `20%s`, not `100%sicher`.
CONVERSION = rf"{FLAGS}(?:[sd@](?:(?<!\d%[sd@])|(?!{_LETTER}))|[iufFeEgGxXocp](?!{_LETTER}))"
PRINTF = (
    r"%\([^()\s]+\)[#0+-]*\d*(?:\.\d+)?[a-zA-Z]"  # %(name)s
    rf"|%(?:\d+\$)?{CONVERSION}|%%|(?<!{_W})(?<!%)%(?:L?\d{{1,2}}|n)(?!{_W})"
)
BRACES = (
    r"\{\{[^{}]*\}\}|<%=(?:(?!<%|%>)[^\n])*+%>|[$%#]\{[^{}\s]*\}"  # {{x}}, <%= x %>, ${x}
    r"|\{[\w.\[\]-]*(?:![rsa])?(?:[:|][^{}\s]*)?\}"  # {}, {0}, {name!r:>10}, {name|upper}
    r"|\{\w+, ?(?:number|date|time|spellout|ordinal|duration)\b[^{}]*\}"  # {0, number}
)
VARIABLE = rf"\$[A-Za-z_]{_W}*"
_FILE_PART, _NAME_PART = rf"(?:{_W}|[.~+-])+", rf"(?:{_W}|-)+"
PATH = (
    rf"(?<!{_W})(?<![/.])(?:~|\.{{1,2}})?/(?:{_FILE_PART}/)+(?:(?:{_W}|[~+-])+(?:\.(?:{_W}|[~+-])+)*|(?![{_ATTACHED}]))"
    rf"|(?<!{_W})(?<![/.])(?:~|\.{{1,2}})/(?:{_W}|[.~+-])*{_W}"
    rf"|(?<!{_W})[A-Za-z]:\\(?:[^\s\"\\]+\\)*[^\s\"\\{_ATTACHED}]*{_W}"
    rf"|(?<!{_W})(?<![.-]){_NAME_PART}(?:\.{_NAME_PART})*\.(?:txt|md|pdf|docx?|xlsx?|csv|tsv|jsonl?|xml|ya?ml|toml|html?|css|js|py"
    rf"|sh|exe|zip|gz|png|jpe?g|gif|svg|mp[34])(?!{_W})"
)
CODE = (
    rf"`[^`\n]+`|(?<!\S)--[a-z][a-z0-9-]*(?!{_W}|['’])|(?<!{_W}){_W}+(?:::{_W}+)+(?:\(\))?"
    rf"|(?<!{_W})(?<!\.)[A-Za-z]{_W}*+(?:\.{_W}++)*+\(\)|(?<!{_W})[A-Za-z]{_W}*_{_W}+"
)
NAME = rf"(?<!{_W})(?<!@)@{_W}+(?:[.-]{_W}+)*|(?<![\w#&])#\w*[^\W\d]\w*"  # @tom, #tag
PROTECTED = re.compile("|".join((URL, EMAIL, PRINTF, BRACES, VARIABLE)), re.ASCII)  # in documents, which mark code
ITEM = re.compile("|".join((URL, EMAIL, PATH, CODE, PRINTF, BRACES, VARIABLE, NAME)))
# In every item; most lines have none, which is faster to see.
ITEM_MARK = re.compile(r"[@%{$/\\`#_]|--|::|\(\)|www\.|[\w-]\.[\w-]")

UNIT = re.compile(rf"(?:(?!{UNSPACED.pattern})[^\W_])+|\S")  # a word, or a character of a script without spaces
JOINT = re.compile("[-.,:'’/]")  # may stand inside a word or number
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


def may_be_word(text: str, item: Span) -> bool:
    """Whether an item looks like a command line option, but may also be a word after a dash.

    >>> [may_be_word(text, (0, 6)) for text in ("--help me", "--help=me", "--help.", "--a-b", "x_help")]
    [True, False, False, False, False]
    """
    start, end = item
    is_option = text[start:end].startswith("--") and "-" not in text[start + 2 : end]
    return is_option and text[end : end + 1] != "=" and any(map(str.isalnum, text[end:]))


def find_unknown(text: str, alphabet: frozenset[str]) -> list[Span]:
    """Return the words and runs of other characters that an alphabet cannot write, not even with substitutes.

    >>> text = "see Москва😀!"
    >>> [text[start:end] for start, end in find_unknown(text, frozenset("see!"))]
    ['Москва😀']
    """
    if alphabet.issuperset(text):
        return []
    units = [(start, end) for start, end in _find_units(text) if not _can_write(text[start:end], alphabet)]
    return join_spans(text, units)


def _find_units(text: str) -> list[Span]:
    """Return the words and other characters of a text; vowel signs and other marks belong to their words."""
    units = list[Span]()
    for start, end in (unit.span() for unit in UNIT.finditer(text)):
        if units and units[-1][1] == start and not UNSPACED.match(text[start]):
            is_inside = _is_mark(text[start - 1]) and text[units[-1][0]].isalpha() and text[start].isalpha()
            start = units.pop()[0] if is_inside or _is_mark(text[start]) else start
        units.append((start, end))
    return units


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


def _can_write(text: str, alphabet: frozenset[str]) -> bool:
    return alphabet.issuperset(substitute_unknown(text, alphabet))


def join_spans(text: str, spans: Iterable[Span]) -> list[Span]:
    """Return spans in order; those with nothing visible between them, or with a mark inside a word, as one.

    >>> join_spans("1.250 1, 2", [(0, 1), (2, 5), (6, 7), (9, 10)])
    [(0, 5), (6, 7), (9, 10)]
    """
    joined = list[Span]()
    for start, end in sorted(spans):
        if joined and _is_joint(text, joined[-1][1], start):
            start, _ = joined.pop()
        joined.append((start, end))
    return joined


def _is_joint(text: str, start: int, end: int) -> bool:
    between = text[start:end]
    is_inside_word = JOINT.fullmatch(between) and text[start - 1].isalnum() and text[end].isalnum()
    return bool(is_inside_word) or all(map(_is_invisible, between))


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
    """Whether a character only says how others are written. Tags of flags are of this category, but are visible."""
    is_format = unicodedata.category(character) == "Cf" and character < FIRST_TAG
    return is_format or "\ufe00" <= character <= "\ufe0f"  # variation selectors
