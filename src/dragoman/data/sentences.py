"""Splitting a text into sentences, by the library sentencex, which knows the abbreviations of many languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, pairwise

from dragoman.data.scanner import split_words

LINE_ENDS = re.compile(r"(?<!\s)\s*\n\s*")  # starts at the first space, so that long gaps are scanned once
FINAL_MARK = re.compile(r"[.!?…。！？।؟۔]+")  # as a word of tokenised text
CLOSING_WORDS = frozenset([*")]}”’»", "''", "&apos;&apos;"])
STRAIGHT_QUOTES = frozenset(['"', "&quot;"])  # the same word opens and closes
CONTINUING_WORDS = frozenset(",;:，、；：،؛")  # no sentence begins with them, as in: ¿ un taxi ? , por favor .
ANY_SPACE = re.compile(r"\s")
FIRST_LETTER = re.compile(r"[^\W\d_]")
FIRST_CHARACTER = re.compile(r"[^\W_]")  # a letter or a digit
LISTED_NUMBER = re.compile(r"\s*\d+(?:[,;:)\]]|\s*$)")  # as in: pag. 3, cap. 2
INITIAL = re.compile(r"(?:^|[\s-])[^\W\d_]\.$")  # as in J. Smith, not in p.m. or U.S.
QUOTED_END = re.compile(r"[。！？][」』”’）]+$")  # the sentence around the quote continues, as in 「はい。」と
DEFAULT_LANGUAGE = "en"  # its rules are the most general ones


def split_sentences(text: str, language: str | None = None) -> list[tuple[str, str]]:
    """Split a text into sentences, each with the whitespace after it: joined, they are the text.

    Sentences end at the end of a line as well. In a text with capitals, none begins with a lower-case letter.

    Args:
        language: the code of the language, for its abbreviations.

    >>> split_sentences("Mr. X left. Why? It's late.\\n\\nGood night")
    [('Mr. X left.', ' '), ('Why?', ' '), ("It's late.", '\\n\\n'), ('Good night', '')]
    >>> [sentence for sentence, _ in split_sentences("Am 3. Mai z. B. kam Dr. Ott. Gut!", "de")]
    ['Am 3. Mai z. B. kam Dr. Ott.', 'Gut!']
    """
    body = text.strip()
    if not body:
        return [("", text)] if text else []
    start = text.index(body)
    sentences = [("", text[:start])] if start else []
    is_cased = any(map(str.isupper, body))
    position = 0
    for end in (*(match.end() for match in LINE_ENDS.finditer(body)), len(body)):
        for piece in _split_line(body[position:end], language or DEFAULT_LANGUAGE, is_cased=is_cased):
            sentence = piece.rstrip()
            sentences.append((sentence, piece[len(sentence) :]))
        position = end
    return [*sentences[:-1], (sentences[-1][0], sentences[-1][1] + text[start + len(body) :])]


def _split_line(line: str, language: str, *, is_cased: bool) -> Iterator[str]:
    """Yield the sentences of a line, with the spaces after them. Pieces that are no sentences are joined to others."""
    pending = ""
    for piece in _segment(line, language):
        if pending and not _continues(pending, piece, is_cased=is_cased):
            yield pending
            pending = ""
        pending += piece
    yield pending


def _segment(line: str, language: str) -> list[str]:
    """Return the pieces of a line that sentencex finds."""
    import sentencex

    try:
        pieces = sentencex.segment(language, ANY_SPACE.sub(" ", line))  # it fails at spaces of several bytes
    except BaseException as error:  # a panic of the library is no Exception
        if type(error).__name__ != "PanicException":
            raise
        return [line]
    ends = accumulate(map(len, pieces), initial=0)
    return [line[start:end] for start, end in pairwise(ends)]


def _continues(before: str, piece: str, *, is_cased: bool) -> bool:
    """Return whether a piece of a line belongs to the sentence before it."""
    sentence, first = before.rstrip(), FIRST_CHARACTER.search(piece)
    if piece.lstrip()[:1] in CONTINUING_WORDS or LISTED_NUMBER.match(piece):
        return True
    if not FIRST_LETTER.search(sentence) or not piece.strip() or (first and is_cased and first[0].islower()):
        return True  # a number of a list, or the rest of a sentence after an abbreviation or a quote
    if sentence == before and sentence[-1].isascii():
        return True  # no space, as in example.com
    return bool(QUOTED_END.search(sentence) if sentence == before else INITIAL.search(sentence))


def split_tokenised_sentences(line: str, *, lowercase: bool = False) -> list[tuple[str, str]]:
    """Split a tokenised line into sentences, each with the space after it: after marks that are words, outside quotes.

    Args:
        lowercase: the text has no capitals. Otherwise, no sentence begins with a lower-case letter.

    >>> split_tokenised_sentences('he said " go . " then mr. x left . ok', lowercase=True)
    [('he said " go . "', ' '), ('then mr. x left .', ' '), ('ok', '')]
    """
    words, starts, quotes = split_words(line), [0], 0
    last_quote = max((position for position, word in enumerate(words) if word in STRAIGHT_QUOTES), default=0)
    for position, word in enumerate(words[:-1]):
        quotes += word in STRAIGHT_QUOTES
        after = words[position + 1]
        is_closing = word in CLOSING_WORDS or (word in STRAIGHT_QUOTES and quotes % 2 == 0)
        mark = words[position - 1] if is_closing and position > starts[-1] else word
        is_quoted = quotes % 2 == 1 and position < last_quote
        if not FINAL_MARK.fullmatch(mark) or FINAL_MARK.fullmatch(after) or is_quoted:
            continue
        if after in CLOSING_WORDS or after in CONTINUING_WORDS:
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
