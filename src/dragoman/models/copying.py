"""Parts of a source line that a translator should not read: they are taken out, and put into the translation.

Addresses, code, placeholders and characters that the translator does not know are removed before the search. Each is
inserted where the attention divides the translation best into words that belong to the left of it and to the right;
without attention, at the same relative position. A line that has hardly anything else is its own translation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.data.copied_items import find_items, find_unknown, script, split_at, substitute_unknown
from dragoman.data.scanner import UNSPACED
from dragoman.data.segmenters import SPACE_MARK
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.vocabulary import UNK

GAP = "\ufffc"  # stands for an item
TECHNICAL_MARKS = frozenset("_@#/\\%{}$`()")  # of items, not of sentences
MIN_MARK_SHARE = 0.001  # of such a mark among the tokens, for a translator of characters to know its use
MIN_LETTER_SHARE = 0.75  # of the characters; a text with fewer letters is about numbers or signs, and needs all of them
NUMBER = re.compile(r"\d{1,3}(?:[.,'’]\d{3})+(?!\d)|\d+")
MIN_DIGITS = 3  # of numbers that are not written in words, and are the same in every language

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
            lines.append(PreparedLine(*_remove_gaps(tokens, line, taken_out[index][1], tokenizer.segmenter.kind)))
    return lines


def _alphabet(line: str, tokenizer: Tokenizer) -> frozenset[str]:
    """Return the characters that a translator can read, and the gap.

    Letters of its script are among them if copying would not copy words: because its tokens are words, which may be
    unknown, or because the script does not separate words.
    """
    is_word = tokenizer.segmenter.kind == "word"
    letters = (letter for letter in line if letter.isalpha() and (is_word or UNSPACED.match(letter)))
    return tokenizer.alphabet | {GAP, *(letter for letter in letters if script(letter) in tokenizer.scripts)}


def _is_mostly_unknown(line: str, alphabet: frozenset[str]) -> bool:
    letters = [letter for letter in line if letter.isalpha()]
    known = sum(alphabet.issuperset(substitute_unknown(letter, alphabet)) for letter in letters)
    return 2 * known < len(letters)


def _take_out_items(text: str, tokenizer: Tokenizer) -> tuple[str, list[str]]:
    """Return a line with gaps for its items, and the items; what is a token of the training text stays."""
    text = text.replace(GAP, " ")
    spans = [(start, end) for start, end in find_items(text) if not _is_known(text[start:end], tokenizer)]
    outside, items = split_at(text, spans)
    return GAP.join(outside), items


def _is_known(item: str, tokenizer: Tokenizer) -> bool:
    vocab = tokenizer.vocab
    if tokenizer.segmenter.kind == "char":
        marks = vocab.ids(TECHNICAL_MARKS.intersection(item))
        return bool((vocab.counts[marks[marks != UNK]] > MIN_MARK_SHARE * vocab.counts.sum()).any())
    return vocab.id(item) != UNK or vocab.id(SPACE_MARK + item) != UNK


def _take_out_unknown(line: str, items: list[str], alphabet: frozenset[str]) -> tuple[str, list[str]]:
    """Return a line with more gaps, for what the translator cannot read, and the items of all gaps."""
    outside, unknown = split_at(line, find_unknown(line, alphabet))
    all_items, remaining = list[str](), iter(items)
    for part, word in zip(outside, [*unknown, ""], strict=True):
        all_items += [next(remaining) for _ in range(part.count(GAP))]
        all_items += [word] if word else []
    return GAP.join(outside), all_items


def _remove_gaps(
    tokens: Sequence[str], line: str, items: Sequence[str], kind: str
) -> tuple[Tokens, tuple[CopiedItem, ...]]:
    """Return the tokens of a line without its gaps and the spaces before them, and where the items were."""
    if not items:
        return tuple(tokens), ()
    kept, positions = list[str](), list[int]()
    for token in tokens:
        if gaps := token.count(GAP):
            if kept[-1:] == [SPACE_MARK]:
                kept.pop()
            positions += [len(kept)] * gaps
            token = token.replace(GAP, "")
            kept += [token] if token.strip(SPACE_MARK) else []
        elif kept or kind != "char" or token != SPACE_MARK:
            kept.append(token)
    before = [line[match.start() - 1 : match.start()] for match in re.finditer(GAP, line)]
    attached = [character != "" and not character.isspace() for character in before]
    return tuple(kept), tuple(CopiedItem(*item) for item in zip(items, positions, attached, strict=True))


def insert_items(
    tokens: Sequence[str],
    items: Sequence[CopiedItem],
    source_tokens: Sequence[str],
    attention: NDArray[np.float64] | None,
    tokenizer: Tokenizer,
) -> str:
    """Return the text of a translation with the items of its source."""
    places = [_find_place(tokens, item.position, source_tokens, attention, tokenizer) for item in items]
    whole, text, position = tokenizer.join(tokens), "", 0
    for place, item in sorted(zip(places, items, strict=True), key=lambda placed: placed[0]):
        end = max(position, len(tokenizer.join(tokens[:place])))
        text = _append(text, whole[position:end])
        is_attached = not text or (item.is_attached and not text[-1].isalnum())
        text, position = text + item.text if is_attached else f"{text} {item.text}", end
    return _append(text, whole[position:])


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


def restore_numbers(source: str, translation: str) -> str:
    """Replace wrong long numbers of a translation by those of the source, if as many are missing.

    >>> restore_numbers("Tom hat 1984 Hunde um 14 Uhr", "Tom has 1943 dogs at 2 p.m.")
    'Tom has 1984 dogs at 2 p.m.'
    """
    in_source, in_translation = (_long_numbers(text) for text in (source, translation))
    missing, wrong = _without(in_source, in_translation), _without(in_translation, in_source)
    if len(missing) != len(wrong):
        return translation
    for number, other in reversed(list(zip(missing, wrong, strict=True))):
        translation = translation[: other.start()] + number[0] + translation[other.end() :]
    return translation


def _long_numbers(text: str) -> list[re.Match[str]]:
    return [match for match in NUMBER.finditer(text) if len(_digits(match)) >= MIN_DIGITS]


def _without(numbers: Sequence[re.Match[str]], others: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """Return the numbers whose digits are not among the others."""
    counts, remaining = Counter(map(_digits, others)), list[re.Match[str]]()
    for number in numbers:
        counts[_digits(number)] -= 1
        remaining += [number] if counts[_digits(number)] < 0 else []
    return remaining


def _digits(number: re.Match[str]) -> str:
    return "".join(filter(str.isdigit, number[0]))
