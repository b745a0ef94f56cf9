"""Parts of a text that are the same in every language: addresses, names of files, code, numbers, emoji."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, NamedTuple

from dragoman.data.unspaced import UNSPACED

ItemKind = Literal["url", "email", "path", "code", "placeholder", "name", "emoticon", "number", "unknown"]

DOMAINS = (
    "com|org|net|edu|gov|int|info|biz|io|dev|app|eu|de|at|ch|fr|es|it|nl|be|pl|cz|uk|ie|us|ca|au|nz|jp|cn|kr|in|ru|br"
)
FILE_TYPES = (
    "txt|md|pdf|docx?|xlsx?|pptx?|odt|csv|tsv|jsonl?|xml|ya?ml|toml|ini|cfg|conf|log|html?|css|js|ts|py|ipynb|sh|exe|dll|"
    "java|jar|cpp?|hpp?|rs|go|rb|php|sql|zip|gz|tar|rar|7z|iso|png|jpe?g|gif|svg|webp|bmp|tiff?|mp[34]|wav|ogg|flac|avi|mkv|mov"
)
CODE = r"`[^`\n]+`|(?<!\w)--[a-zA-Z][\w-]*|\b\w+(?:::\w+)+(?:\(\))?|\b[a-zA-Z]\w*(?:\.\w+)*\(\)|\b[a-zA-Z]+\w*_\w+\b"
PATTERNS: dict[ItemKind, str] = {
    "url": (
        r"\b(?:https?|ftp|file|ssh|git)://[^\s<>\"]+|\bwww\.[^\s<>\"]+"
        rf"|\b(?:[a-z0-9-]+\.)+(?:{DOMAINS})\b(?:/[^\s<>\"]*)?(?!@)"
    ),
    "email": r"(?:mailto:)?[\w.+%-]+@[\w-]+(?:\.[\w-]+)+",
    "path": (
        r"(?<![\w/])(?:~|\.{1,2})?/(?:[\w.~+@-]+/)+[\w.~+@-]*|(?<![\w/])(?:~|\.{1,2})/[\w.~+@-]+"
        rf"|\b[A-Za-z]:\\[^\s\"]+|\b[\w-]+(?:\.[\w-]+)*\.(?:{FILE_TYPES})\b"
    ),
    "code": CODE,
    "placeholder": (
        r"\$?\{\{?[^{}\s]*\}\}?|(?<![\w%])%(?:\(\w+\)|\d+\$)?[-+#0]*\d*(?:\.\d+)?[sdifgxXeEcu@]\b|(?<![\w$])\$[A-Za-z_]\w*"
        r"|</?[A-Za-z][^<>\s]*(?:\s[^<>]*)?/?>|<\d+/?>|&(?:#\d+|#x[0-9a-fA-F]+|[a-zA-Z]+);|\[\[[^\[\]\s]+\]\]"
    ),
    "name": r"(?<![\w@])@\w+(?:[.-]\w+)*|(?<![\w#&])#\w*[^\W\d]\w*|(?<![\w:]):[a-z][a-z_+-]+[a-z0-9]:(?!\w)",
    "emoticon": r"(?<!\S)(?:[:;=8]['’]?-?[)(DPpOo|/\\*\]\[]+|<3|\^_*\^|[xX]D+)(?!\S)",
    "number": r"\d+(?:[.,:/'’ʼ·٫٬-]\d+)*",
}
ITEM = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in PATTERNS.items()))
CLOSING = {")": "(", "]": "[", "}": "{"}
TRAILING = ".,;:!?…'\"»”’。，、；：！？）】」』*"  # after a URL, they belong to the sentence
# Characters that a training text may not have, and how it may write them instead.
SUBSTITUTES = {
    **dict.fromkeys("’‘‚‛`´ʼ", "'"),
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("–—−‐‑‒―", "-"),
    "…": "...",
    "ß": "ss",
}
RESERVED = ("<s>", "</s>", "<unk>")  # tokens of a vocabulary
JOINERS = frozenset("\u200d\ufe0e\ufe0f")  # inside emoji


class Item(NamedTuple):
    """A part of a text."""

    start: int
    end: int
    kind: ItemKind


def find_items(text: str) -> list[Item]:
    """Return the parts of a text that are not words, in order.

    >>> text = "Mail %s to a.b@c.org (see https://x.org/a(b), page 1.5)."
    >>> [(text[start:end], kind) for start, end, kind in find_items(text)]
    [('%s', 'placeholder'), ('a.b@c.org', 'email'), ('https://x.org/a(b)', 'url'), ('1.5', 'number')]
    """
    items, position = list[Item](), 0
    while match := ITEM.search(text, position):
        kind: ItemKind = match.lastgroup  # type: ignore[assignment]
        end = match.end()
        if kind in ("url", "path", "email"):
            end = match.start() + len(_without_trailing_marks(match[0]))
        position = max(end, match.start() + 1)
        if end > match.start() and match[0] not in RESERVED:
            items.append(Item(match.start(), end, kind))
    return items


def split_at_items(text: str) -> list[tuple[str, bool]]:
    """Split a text into parts, each with whether it is an item; numbers are not split off.

    >>> split_at_items("See X.org/A now")
    [('See X.org/A now', False)]
    >>> split_at_items("See x.org/A now")
    [('See ', False), ('x.org/A', True), (' now', False)]
    """
    parts, position = list[tuple[str, bool]](), 0
    for start, end, _ in (item for item in find_items(text) if item.kind != "number"):
        parts += [(text[position:start], False), (text[start:end], True)]
        position = end
    return [(part, is_item) for part, is_item in [*parts, (text[position:], False)] if part]


def lower_except_items(text: str) -> str:
    """Return a text in lower case, without changing items: addresses and code may depend on capitals."""
    return "".join(part if is_item else part.lower() for part, is_item in split_at_items(text))


def _without_trailing_marks(text: str) -> str:
    """Remove punctuation at the end that belongs to the sentence, and brackets that were not opened."""
    while text:
        last = text[-1]
        unopened = last in CLOSING and text.count(last) > text.count(CLOSING[last])
        if not (last in TRAILING or unopened):
            break
        text = text[:-1]
    return text


def substitute_unknown(text: str, alphabet: frozenset[str]) -> str:
    """Replace characters outside an alphabet by ones in it that mean the same, where there are some.

    Accents are removed; quotation marks, dashes and wide forms become plain ones; invisible characters disappear.

    >>> substitute_unknown("“Renée” – \\u00adＡ", frozenset("ReneA-\\""))
    '"Renee" - A'
    """
    if alphabet.issuperset(text):
        return text
    text = unicodedata.normalize("NFC", text)
    return "".join(
        character if character in alphabet else _substitute(character, alphabet, index, text)
        for index, character in enumerate(text)
    )


def _substitute(character: str, alphabet: frozenset[str], index: int, text: str) -> str:
    if character.isspace():
        return " "
    decomposed = unicodedata.normalize("NFKD", character)
    base = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    for candidate in (SUBSTITUTES.get(character), unicodedata.normalize("NFKC", character), base):
        if candidate and alphabet.issuperset(candidate.replace(" ", "")):
            return candidate
    is_invisible = unicodedata.category(character) in ("Cf", "Cc") and character not in JOINERS
    return "" if is_invisible else character


def find_unknown(text: str, alphabet: frozenset[str]) -> list[Item]:
    """Return the parts of a text with characters outside an alphabet: whole words, and runs of other characters.

    >>> text = "see Москва😀!"
    >>> [text[start:end] for start, end, _ in find_unknown(text, frozenset("see!"))]
    ['Москва😀']
    """
    if alphabet.issuperset(text):
        return []
    items, position = list[Item](), 0
    while position < len(text):
        character = text[position]
        if character in alphabet or character.isspace():
            position += 1
            continue
        start, end = position, position + 1
        while end < len(text) and text[end] not in alphabet and not text[end].isspace():
            end += 1
        if _is_spaced_letter(text[start]):
            while start and _is_spaced_letter(text[start - 1]):
                start -= 1
        if _is_spaced_letter(text[end - 1]):
            while end < len(text) and _is_spaced_letter(text[end]):
                end += 1
        if items and start <= items[-1].end:
            start = items.pop().start
        items.append(Item(start, end, "unknown"))
        position = end
    return items


def _is_spaced_letter(character: str) -> bool:
    """Whether a character is part of a word in a script that separates words by spaces."""
    is_letter = character.isalpha() or unicodedata.category(character).startswith("M")
    return is_letter and not UNSPACED.match(character)
