"""Parts of a source line that a translator should not read: they are taken out, and put into the translation.

Addresses, code, placeholders and characters that the translator does not know are removed before the search. A
translator that was trained with placeholders reads and writes one for each. Otherwise, and where it has not written one,
an item is inserted where the attention divides the translation best into words that belong to the left of it and to the
right; without attention, at the same relative position. A line that has hardly anything else is its own translation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.data.copied_items import (
    PLACEHOLDER,
    find_items,
    find_unknown,
    script,
    split_at,
    substitute_unknown,
)
from dragoman.data.long_numbers import find_long_numbers
from dragoman.data.scanner import UNSPACED
from dragoman.data.segmenters import SPACE_MARK
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.vocabulary import UNK

TECHNICAL_MARKS = frozenset("_@#/\\%{}$`()")  # of items, not of sentences
MIN_MARK_SHARE = 0.001  # of such a mark among the tokens, for a translator of characters to know its use
MIN_LETTER_SHARE = 0.75  # of the characters; a text with fewer letters is about numbers or signs, and needs all of them

Tokens = tuple[str, ...]


class CopiedItem(NamedTuple):
    """A part of a source line that was taken out."""

    text: str
    position: int  # number of tokens before it
    is_attached: bool = False  # no space is before it


class PreparedLine(NamedTuple):
    """A source line as a translator reads it."""

    tokens: Tokens
    items: tuple[CopiedItem, ...] = ()
    is_copied: bool = False  # it is its own translation


def prepare_lines(texts: Sequence[str], tokenizer: Tokenizer) -> list[PreparedLine]:
    """Tokenize lines for a translator: take out items, change odd capitals and replace unknown characters."""
    alphabets = [_alphabet(text, tokenizer) for text in texts]
    without_items = [_take_out_items(text, tokenizer) for text in texts]
    taken_out = [_take_out_unknown(*line, alphabet) for line, alphabet in zip(without_items, alphabets, strict=True)]
    truecased = tokenizer.truecaser.truecase([line for line, _ in taken_out])
    readable = [substitute_unknown(line, alphabet) for line, alphabet in zip(truecased, alphabets, strict=True)]
    segmented = tokenizer.segmenter.segment_all(readable)
    lines = []
    for index, (line, tokens) in enumerate(zip(readable, segmented, strict=True)):
        if _is_mostly_unknown(without_items[index][0], alphabets[index]):  # its tokens are counted and shown
            lines.append(PreparedLine(tuple(tokenizer.segmenter.segment(texts[index])), is_copied=True))
        elif not any(map(str.isalpha, line)) and tokenizer.letter_share >= MIN_LETTER_SHARE:
            lines.append(PreparedLine((), is_copied=True))
        else:
            lines.append(_find_gaps(tokens, line, taken_out[index][1], tokenizer))
    return lines


def _alphabet(line: str, tokenizer: Tokenizer) -> frozenset[str]:
    """Return the characters that a translator can read, and the gap.

    Letters of its script are among them if copying would not copy words: because its tokens are words, which may be
    unknown, or because the script does not separate words.
    """
    is_word = tokenizer.segmenter.kind == "word"
    letters = (letter for letter in line if letter.isalpha() and (is_word or UNSPACED.match(letter)))
    return tokenizer.alphabet | {PLACEHOLDER, *(letter for letter in letters if script(letter) in tokenizer.scripts)}


def _is_mostly_unknown(line: str, alphabet: frozenset[str]) -> bool:
    letters = [letter for letter in line if letter.isalpha()]
    known = sum(alphabet.issuperset(substitute_unknown(letter, alphabet)) for letter in letters)
    return 2 * known < len(letters)


def _take_out_items(text: str, tokenizer: Tokenizer) -> tuple[str, list[str]]:
    """Return a line with gaps for its items, and the items; what is a token of the training text stays.

    Long numbers are items if the translator knows placeholders. Otherwise it translates a line better with its numbers.
    """
    text = text.replace(PLACEHOLDER, " ")
    spans = find_items(text)
    if knows_placeholders(tokenizer):
        numbers = ((number.start, number.end) for number in find_long_numbers(text))
        spans += [(low, high) for low, high in numbers if not any(low < end and start < high for start, end in spans)]
    spans = sorted((start, end) for start, end in spans if not _is_known(text[start:end], tokenizer))
    outside, items = split_at(text, spans)
    return PLACEHOLDER.join(outside), items


def _is_known(item: str, tokenizer: Tokenizer) -> bool:
    vocab = tokenizer.vocab
    if tokenizer.segmenter.kind == "char":
        marks = vocab.ids(TECHNICAL_MARKS.intersection(item))
        return bool((vocab.counts[marks[marks != UNK]] > MIN_MARK_SHARE * vocab.counts.sum()).any())
    return vocab.id(item) != UNK or vocab.id(SPACE_MARK + item) != UNK


def knows_placeholders(tokenizer: Tokenizer) -> bool:
    """Whether the training text had placeholders."""
    return any(tokenizer.vocab.id(token) != UNK for token in (PLACEHOLDER, SPACE_MARK + PLACEHOLDER))


def _take_out_unknown(line: str, items: list[str], alphabet: frozenset[str]) -> tuple[str, list[str]]:
    """Return a line with more gaps, for what the translator cannot read, and the items of all gaps."""
    outside, unknown = split_at(line, find_unknown(line, alphabet))
    all_items, remaining = list[str](), iter(items)
    for part, word in zip(outside, [*unknown, ""], strict=True):
        all_items += [next(remaining) for _ in range(part.count(PLACEHOLDER))]
        all_items += [word] if word else []
    return PLACEHOLDER.join(outside), all_items


def _find_gaps(tokens: Sequence[str], line: str, items: Sequence[str], tokenizer: Tokenizer) -> PreparedLine:
    """Return the tokens of a line, and where its items are; gaps stay if the translator knows placeholders."""
    if not items:
        return PreparedLine(tuple(tokens))
    before = [line[match.start() - 1 : match.start()] for match in re.finditer(PLACEHOLDER, line)]
    attached = [character != "" and not character.isspace() for character in before]
    keeps, is_char = knows_placeholders(tokenizer), tokenizer.segmenter.kind == "char"
    kept, positions = list[str](), list[int]()
    for token in tokens:
        gaps = token.count(PLACEHOLDER)
        if gaps and not keeps:
            if kept[-1:] == [SPACE_MARK]:
                kept.pop()
            token = token.replace(PLACEHOLDER, "")
        positions += [len(kept)] * gaps
        is_space = token.strip(SPACE_MARK) == ""
        if not is_space or not (gaps or (is_char and not kept)):
            kept.append(token)
    return PreparedLine(tuple(kept), tuple(CopiedItem(*item) for item in zip(items, positions, attached, strict=True)))


def insert_items(
    tokens: Sequence[str],
    items: Sequence[CopiedItem],
    source_tokens: Sequence[str],
    attention: NDArray[np.float64] | None,
    tokenizer: Tokenizer,
) -> str:
    """Return the text of a translation with the items of its source."""
    tokens, items = _fill_placeholders(tokens, items, attention)
    places = [_find_place(tokens, item.position, source_tokens, attention, tokenizer) for item in items]
    whole, text, position = tokenizer.join(tokens), "", 0
    for place, item in sorted(zip(places, items, strict=True), key=lambda placed: placed[0]):
        end = max(position, len(tokenizer.join(tokens[:place])))
        text = _append(text, whole[position:end])
        is_attached = not text or (item.is_attached and not text[-1].isalnum())
        text, position = text + item.text if is_attached else f"{text} {item.text}", end
    return _append(text, whole[position:])


def _fill_placeholders(
    tokens: Sequence[str], items: Sequence[CopiedItem], attention: NDArray[np.float64] | None
) -> tuple[list[str], list[CopiedItem]]:
    """Return the tokens with an item in place of each placeholder, that with the most attention, and the other items."""
    filled, remaining = list(tokens), list(items)
    for index, token in enumerate(tokens):
        for _ in range(token.count(PLACEHOLDER)):
            if remaining and attention is not None:
                item = max(remaining, key=lambda item: float(attention[index, item.position]))
            else:
                item = remaining[0] if remaining else CopiedItem("", 0)
            filled[index] = filled[index].replace(PLACEHOLDER, item.text, 1)
            remaining = [other for other in remaining if other is not item]
    return filled, remaining


def _append(text: str, part: str) -> str:
    """Append a part of a translation to a text that ends with an item; punctuation follows it without a space."""
    needs_space = text and part.strip() and (part[0].isspace() or part[0].isalnum())
    return f"{text} {part.strip()}" if needs_space else text + part.strip()


def _find_place(
    tokens: Sequence[str],
    position: int,
    source_tokens: Sequence[str],
    attention: NDArray[np.float64] | None,
    tokenizer: Tokenizer,
) -> int:
    """Return before which token an item is inserted that stood before a position of the source."""
    size, source_size = len(tokens), len(source_tokens)
    if not any(map(_has_letters, source_tokens[position:])):  # at the end, before the same punctuation
        trailing = next((index for index, token in enumerate(reversed(tokens)) if _has_letters(token)), size)
        return size - (trailing if position < source_size else 0)
    if not any(map(_has_letters, source_tokens[:position])):
        leading = next((index for index, token in enumerate(tokens) if _has_letters(token)), size)
        return leading if position else 0
    possible = [index for index in range(size + 1) if _is_boundary(tokens, index, tokenizer.segmenter.kind)]
    relative = size * position / source_size
    if attention is None:
        return min(possible, key=lambda index: abs(index - relative))
    weights = attention[:size, :source_size]
    balance = weights[:, :position].sum(axis=1) - weights[:, position:].sum(axis=1)  # (size,)
    gains = np.append(0.0, np.cumsum(balance))  # (size + 1,) of the words before each place
    return max(possible, key=lambda index: (round(float(gains[index]), 6), -abs(index - relative)))


def _is_boundary(tokens: Sequence[str], index: int, kind: str) -> bool:
    """Whether a word ends before a token."""
    if index in (0, len(tokens)) or kind == "word":
        return True
    token, previous = tokens[index], tokens[index - 1]
    if token.startswith(SPACE_MARK) or (UNSPACED.match(token) and UNSPACED.match(previous[-1:])):
        return True
    return not _has_letters(token) and (index + 1 == len(tokens) or tokens[index + 1].startswith(SPACE_MARK))


def _has_letters(token: str) -> bool:
    return any(map(str.isalnum, token))
