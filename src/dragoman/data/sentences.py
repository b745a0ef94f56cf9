"""Splitting a text into sentences."""

from __future__ import annotations

import re
from itertools import pairwise

from dragoman.data.scanner import split_words

# A sentence ends at a mark and closing brackets or quotes, followed by a space and something that can start a sentence.
END_OF_SENTENCE = re.compile(r"(?<=[.!?…])([\"'”’»)\]]*)(\s+)(?=[\"'“„«(¿¡]*[^\W_a-zß-öø-ÿ])|(?<=[。！？])(\s*)(?=\S)")
LINE_ENDS = re.compile(r"()(?<!\s)(\s*\n\s*)()")  # starts at the first space, so that long gaps are scanned once
FINAL_MARK = re.compile(r"[.!?…。！？।؟۔]+")  # as a word of tokenised text
CLOSING_WORDS = frozenset([*")]}”’»", "''", "&apos;&apos;"])
STRAIGHT_QUOTES = frozenset(['"', "&quot;"])  # the same word opens and closes
ABBREVIATION = re.compile(
    r"(?:^|\s)(?:\w|\w\.\w|[Mm]rs?|[Mm]s|[DdPp]r|[Pp]rof|[Ss]t|[Nn]r|[Nn]o|[Vv]gl|bzw|usw|etc|vs|ca)\.$"
)


def split_sentences(text: str) -> list[tuple[str, str]]:
    """Split a text into sentences, each with the whitespace after it: joined, they are the text.

    >>> split_sentences("Mr. X left. Why? It's late.\\n\\nGood night")
    [('Mr. X left.', ' '), ('Why?', ' '), ("It's late.", '\\n\\n'), ('Good night', '')]
    """
    body = text.strip()
    if not body:
        return [("", text)] if text else []
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    sentences: list[tuple[str, str]] = [("", before)] if before else []
    for paragraph, gap in _split_at(body, LINE_ENDS):
        pending = ""
        for part, space in _split_at(paragraph, END_OF_SENTENCE):
            if ABBREVIATION.search(part) and space:
                pending += part + space
            else:
                sentences.append((pending + part, space))
                pending = ""
        if pending:
            sentences.append((pending.rstrip(), pending[len(pending.rstrip()) :]))
        sentences[-1] = (sentences[-1][0], sentences[-1][1] + gap)
    sentences[-1] = (sentences[-1][0], sentences[-1][1] + after)
    return sentences


def split_tokenised_sentences(line: str, *, lowercase: bool = False) -> list[tuple[str, str]]:
    """Split a tokenised line into sentences, each with the space after it: after marks that are words.

    Args:
        lowercase: the text has no capitals. Otherwise, no sentence begins with a lower-case letter.

    >>> split_tokenised_sentences('he said " go . " then mr. x left . ok', lowercase=True)
    [('he said " go . "', ' '), ('then mr. x left .', ' '), ('ok', '')]
    """
    words, starts, quotes = split_words(line), [0], 0
    for position, word in enumerate(words[:-1]):
        quotes += word in STRAIGHT_QUOTES
        after = words[position + 1]
        is_closing = word in CLOSING_WORDS or (word in STRAIGHT_QUOTES and quotes % 2 == 0)
        mark = words[position - 1] if is_closing and position > starts[-1] else word
        closes = after in CLOSING_WORDS or (after in STRAIGHT_QUOTES and quotes % 2 == 1)
        if not FINAL_MARK.fullmatch(mark) or FINAL_MARK.fullmatch(after) or closes:
            continue
        continues = is_closing and mark[0] in "!?" if lowercase else after[0].islower()  # as in: " stop ! " he said
        if not continues and any(map(_is_word, words[starts[-1] : position])):  # not as in z . b .
            starts.append(position + 1)
            quotes = 0
    bounds = pairwise([*starts, len(words)])
    sentences = [(" ".join(words[start:stop]), " ") for start, stop in bounds]
    return [*sentences[:-1], (sentences[-1][0], "")]


def _is_word(token: str) -> bool:
    """Return whether a token consists of letters, and is more than an initial."""
    return token.isalpha() and (len(token) > 1 or token.lower() == token.upper())


def _split_at(text: str, boundary: re.Pattern[str]) -> list[tuple[str, str]]:
    """Split a text at matches of a pattern, each part with the whitespace after it."""
    parts, start = [], 0
    for match in boundary.finditer(text):
        closing, space = match[1] or "", match[2] or match[3] or ""
        parts.append((text[start : match.start()] + closing, space))
        start = match.end()
    return [*parts, (text[start:], "")] if start < len(text) or not parts else parts
