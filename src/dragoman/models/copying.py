"""Parts of a source line that a translator should not read: they are taken out, and put into the translation.

Addresses, code, placeholders and characters that the translator does not know are removed before the search. A
translator that was trained with placeholders reads and writes one for each, except for marks and emoji. Otherwise, and
where it has not written one, an item is inserted where the attention divides the translation best into words that belong
to the left of it and to the right; without attention, at the same relative position. The rest of a line is read as if
the item had never been there. A line that has hardly anything else is its own translation.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import NamedTuple
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from dragoman.data.copied_items import (
    PLACEHOLDER,
    Span,
    find_items,
    find_unknown,
    join_spans,
    mask_spans,
    may_be_word,
    script,
    split_at,
    substitute_unknown,
)
from dragoman.data.detokenize import MARKS, NO_SPACE_BEFORE, WIDE_MARKS
from dragoman.data.long_numbers import find_long_numbers, has_scale
from dragoman.data.scanner import UNSPACED
from dragoman.data.segmenters import SPACE_MARK
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.vocabulary import UNK

TECHNICAL_MARKS = frozenset("_@#/\\%{}$`()")  # of items, not of sentences
MIN_MARK_SHARE = 0.001  # of such a mark among the tokens, for a translator of characters to know its use
MIN_LETTER_SHARE = 0.75  # of the characters; a text with fewer letters is about numbers or signs, and needs all of them

CLOSING_MARKS = NO_SPACE_BEFORE | frozenset(MARKS)
CLOSING_CATEGORIES, OPENING_CATEGORIES = ("Pe", "Pf", "Po"), ("Ps", "Pi")  # of Unicode

Tokens = tuple[str, ...]


class CopiedItem(NamedTuple):
    """A part of a source line that was taken out."""

    text: str
    position: int  # number of tokens before it
    space_before: bool = True
    space_after: bool = True
    has_placeholder: bool = False  # the token at its position stands for it


class PreparedLine(NamedTuple):
    """A source line as a translator reads it."""

    tokens: Tokens
    items: tuple[CopiedItem, ...] = ()
    is_copied: bool = False  # it is its own translation


class _LineWithGaps(NamedTuple):
    """A source line without its items."""

    text: str
    alphabet: frozenset[str]
    is_mostly_unknown: bool
    items: list[CopiedItem]  # their positions are in characters


def prepare_lines(texts: Sequence[str], tokenizer: Tokenizer) -> list[PreparedLine]:
    """Tokenize lines for a translator: take out items, change odd capitals and replace unknown characters."""
    lines = [_take_out_items(text.replace(PLACEHOLDER, " "), tokenizer) for text in texts]
    truecased = tokenizer.truecaser.truecase([line.text for line in lines])
    readable = [substitute_unknown(text, line.alphabet) for text, line in zip(truecased, lines, strict=True)]
    segmented = tokenizer.segmenter.segment_all(readable)
    prepared = []
    for index, (line, tokens) in enumerate(zip(lines, segmented, strict=True)):
        if line.is_mostly_unknown:  # its tokens are counted and shown
            prepared.append(PreparedLine(tuple(tokenizer.segmenter.segment(texts[index])), is_copied=True))
        elif not tokens or (not any(map(str.isalpha, readable[index])) and tokenizer.letter_share >= MIN_LETTER_SHARE):
            prepared.append(PreparedLine((), is_copied=True))
        else:
            items = _to_token_positions(line, truecased[index], tokens, tokenizer) if line.items else []
            prepared.append(PreparedLine(_known_placeholders(tokens, tokenizer), tuple(items)))
    return prepared


def _take_out_items(text: str, tokenizer: Tokenizer) -> _LineWithGaps:
    """Return a line without its items, or with placeholders for them; what is a token of the training text stays."""
    alphabet, spans = _alphabet(text, tokenizer), _find_unknown_items(text, tokenizer)
    outside = mask_spans(text, spans)
    unknown = find_unknown(outside, alphabet)
    all_spans = join_spans(text, [*spans, *unknown])
    kept = set[Span]()
    if knows_placeholders(tokenizer):
        starts = {start for start, _ in spans}
        kept = {
            (start, end)
            for start, end in all_spans
            if any(map(str.isalnum, text[start:end])) or not starts.isdisjoint(range(start, end))
        }
    line, items = _remove_spans(text, all_spans, kept, tokenizer)
    return _LineWithGaps(line, alphabet, _is_mostly_unknown(outside, alphabet), items)


def _find_unknown_items(text: str, tokenizer: Tokenizer) -> list[Span]:
    """Return the items of a line that are not tokens of the training text.

    Long numbers are items if the translator knows placeholders, unless the next word multiplies them. Otherwise it
    translates a line better with its numbers.
    """
    spans = find_items(text)
    if knows_placeholders(tokenizer):
        unscaled = (number for number in find_long_numbers(text) if not has_scale(text, number))
        numbers = [(number.start, number.end) for number in unscaled]
        spans += [(low, high) for low, high in numbers if not any(low < end and start < high for start, end in spans)]
    return sorted(span for span in spans if not _is_known(text, span, tokenizer))


def _remove_spans(
    text: str, spans: Sequence[Span], kept: Collection[Span], tokenizer: Tokenizer
) -> tuple[str, list[CopiedItem]]:
    """Return a line with placeholders for the spans that are kept and without the others, and the items."""
    outside, texts = split_at(text, spans)
    line, items = outside[0], list[CopiedItem]()
    for span, item, part in zip(spans, texts, outside[1:], strict=True):
        before = _has_space(item[0], text[: span[0]][-1:], CLOSING_CATEGORIES)
        after = _has_space(item[-1], part[:1], OPENING_CATEGORIES)
        items.append(CopiedItem(item, len(line.rstrip()), before, after, has_placeholder=span in kept))
        if span not in kept:
            line = _close_gap(line, part, tokenised=tokenizer.tokenised)
        elif tokenizer.segmenter.kind == "word":
            line += f" {PLACEHOLDER} {part}"
        else:
            line += PLACEHOLDER + part
    return line.rstrip() if items else line, items


def _close_gap(line: str, part: str, *, tokenised: bool) -> str:
    """Return what was before and after an item as if the item had never been there; in tokenised text marks are words.

    >>> [_close_gap(*parts, tokenised=False) for parts in [("a ", " b"), ("a", "b"), ("a ", "b"), ("a ", "."), ("(", " a")]]
    ['a b', 'a b', 'a b', 'a.', '(a']
    """
    left, right = line.rstrip(), part.lstrip()
    if not left or not right:
        return right if not left else line if line != left else left + part
    is_closed = part == right and right[0] in CLOSING_MARKS
    is_open = line == left and category(left[-1]) == "Ps"
    is_unspaced = all(UNSPACED.match(side) or WIDE_MARKS.match(side) for side in (left[-1], right))
    if (is_closed or is_open or is_unspaced) and not tokenised:
        return left + right
    is_between_words = _is_in_word(left[-1]) and _is_in_word(right[0])
    has_space = line != left or part != right or (is_between_words and not UNSPACED.search(left[-1] + right[0]))
    return f"{left} {right}" if has_space else left + right


def _is_in_word(character: str) -> bool:
    return category(character)[0] in "LMN"  # letters, vowel signs, digits


def _has_space(mark: str, neighbour: str, attached: Collection[str]) -> bool:
    """Whether there is a space between an item and what is next to it, or would be in a script with spaces.

    Args:
        mark: the first or last character of the item.
        neighbour: the character next to it, if there is one.
        attached: the categories of marks that are not separated from a word there.
    """
    if UNSPACED.match(neighbour):
        return category(mark) not in attached
    return not neighbour or neighbour.isspace()


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


def _is_known(text: str, span: Span, tokenizer: Tokenizer) -> bool:
    """Whether an item is a token of the training text, or a word of it after a dash."""
    item, vocab = text[slice(*span)], tokenizer.vocab
    if tokenizer.segmenter.kind == "char":
        marks = vocab.ids(TECHNICAL_MARKS.intersection(item))
        return bool((vocab.counts[marks[marks != UNK]] > MIN_MARK_SHARE * vocab.counts.sum()).any())
    texts = [item, item.removeprefix("--")] if may_be_word(text, span) else [item]
    return any(vocab.id(form) != UNK for known in texts for form in (known, SPACE_MARK + known))


def knows_placeholders(tokenizer: Tokenizer) -> bool:
    """Whether the training text had placeholders."""
    return any(tokenizer.vocab.id(token) != UNK for token in (PLACEHOLDER, SPACE_MARK + PLACEHOLDER))


def _known_placeholders(tokens: Sequence[str], tokenizer: Tokenizer) -> Tokens:
    """Return tokens with a placeholder that the translator knows, with or without a space before it."""
    forms = (PLACEHOLDER, SPACE_MARK + PLACEHOLDER)
    known = [form for form in forms if tokenizer.vocab.id(form) != UNK]
    return tuple(known[0] if known and token in forms and token not in known else token for token in tokens)


def _to_token_positions(
    line: _LineWithGaps, truecased: str, tokens: Sequence[str], tokenizer: Tokenizer
) -> list[CopiedItem]:
    """Return the items of a line with positions in tokens, by the number of characters before them without spaces."""
    ends = list(accumulate(map(_count_characters, tokenizer.segmenter.token_texts(tokens))))
    items = []
    for item in line.items:
        before = truecased[: _same_place(item.position, line.text, truecased)]
        size = _count_characters(substitute_unknown(before, line.alphabet))
        after_token = bisect_left(ends, size) + 1 if size else 0
        items.append(item._replace(position=bisect_right(ends, size) if item.has_placeholder else after_token))
    return items


def _same_place(position: int, text: str, rewritten: str) -> int:
    """Return where a position of a text is in the text with rewritten words, which may be longer or shorter."""
    place = 0
    for word, other in zip(*(re.findall(r"\s+|\S+", line) for line in (text, rewritten)), strict=True):
        if position <= len(word):
            return place + (len(other) if position == len(word) else min(position, len(other)))
        position, place = position - len(word), place + len(other)
    return place


def _count_characters(text: str) -> int:
    return sum(not character.isspace() for character in text)


def insert_items(
    tokens: Sequence[str],
    items: Sequence[CopiedItem],
    source_tokens: Sequence[str],
    attention: NDArray[np.float64] | None,
    tokenizer: Tokenizer,
) -> str:
    """Return the text of a translation with the items of its source."""
    written = _choose_items(tokens, items, attention)
    others = [item for item in items if not any(item is other for other in written)]
    places = [_find_place(tokens, item.position, source_tokens, attention, tokenizer) for item in others]
    whole, text, position, is_attached = tokenizer.join(tokens), "", 0, False
    for place, item in sorted(zip(places, others, strict=True), key=lambda placed: placed[0]):
        end = max(position, len(tokenizer.join(tokens[:place])))
        text, position = _append(text, whole[position:end], is_attached=is_attached), end
        is_mark = not any(map(str.isalnum, item.text))
        has_space = item.space_before or (_has_letters(text[-1:]) and not is_mark)
        text += f" {item.text}" if text and has_space else item.text
        is_attached = is_mark and not item.space_after
    texts = iter([item.text for item in written])
    text = _append(text, whole[position:], is_attached=is_attached)
    return re.sub(f" ?{PLACEHOLDER}", lambda match: _fill(match[0], next(texts, "")), text).strip()


def _choose_items(
    tokens: Sequence[str], items: Sequence[CopiedItem], attention: NDArray[np.float64] | None
) -> list[CopiedItem]:
    """Return the item that each placeholder of a translation stands for, that with the most attention; none for too many."""
    remaining, chosen = [item for item in items if item.has_placeholder], list[CopiedItem]()
    for index, token in enumerate(tokens):
        for _ in range(min(token.count(PLACEHOLDER), len(remaining))):
            best = 0
            if attention is not None:
                best = max(range(len(remaining)), key=lambda i: float(attention[index, remaining[i].position]))
            chosen.append(remaining.pop(best))
    return chosen


def _fill(placeholder: str, item: str) -> str:
    """Return an item with the space before its placeholder; nothing if there is no item."""
    return placeholder.replace(PLACEHOLDER, item) if item else ""


def _append(text: str, part: str, *, is_attached: bool) -> str:
    """Append a part of a translation to a text that ends with an item; punctuation follows it without a space."""
    needs_space = text and part.strip() and not is_attached and (part[0].isspace() or _has_letters(part[0]))
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
    return PLACEHOLDER in token or any(map(str.isalnum, token))
