"""Parts of a source line that a translator should not read: they are taken out, and put into the translation.

Addresses, code, placeholders and characters that the translator does not know are removed before the search. Each is
inserted where the attention divides the translation best into words that belong to the left of it and to the right;
without attention, at the same relative position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.data.casing import is_all_caps
from dragoman.data.copied_items import Item, find_items, find_unknown, substitute_unknown
from dragoman.data.segmenters import SPACE_MARK
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.unspaced import UNSPACED
from dragoman.data.vocabulary import UNK

GAP = "\ufffc"  # stands for an item while capitals are changed
MIN_MARK_SHARE = 0.001  # of a character of punctuation among the tokens, for a translator of characters to know its use
MIN_DIGIT_RATIO = 0.1  # digits of the target text per digit of the source text; with fewer, numbers become words
MAX_KNOWN_DIGITS = 2  # of a number that a translator of characters may write in words


class CopiedItem(NamedTuple):
    """A part of a source line that was taken out."""

    text: str
    position: int  # number of tokens before it
    left: str  # the character before it, "" at the start of the line
    right: str


class PreparedLine(NamedTuple):
    """A source line as a translator reads it."""

    tokens: tuple[str, ...]
    items: tuple[CopiedItem, ...] = ()
    all_caps: bool = False  # the line is in capitals, which its tokens are not


class SourceReader:
    """Prepares lines for a translator: removes items, replaces unknown characters and changes odd capitals."""

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer, self.kind = tokenizer, tokenizer.segmenter.kind

    @cached_property
    def _alphabet(self) -> frozenset[str]:
        letters = frozenset("".join(self.tokenizer.vocab.tokens[UNK + 1 :])) | {" ", "\t", "\r"}
        if self.tokenizer.truecaser.convention != "other":  # capitals are changed where they are odd
            letters |= frozenset("".join(letters).upper()) | frozenset("".join(letters).lower())
        return letters

    @cached_property
    def _counts(self) -> dict[str, int]:
        return dict(zip(self.tokenizer.vocab.tokens, self.tokenizer.vocab.counts.tolist(), strict=True))

    def read(self, texts: Sequence[str]) -> list[PreparedLine]:
        """Return lines as tokens, without the items that are to be copied."""
        cut = [self._cut(text) for text in texts]
        skeletons = [GAP.join(gaps) for gaps, _ in cut]
        truecased = self.tokenizer.truecaser.truecase(skeletons)
        gaps = [line.split(GAP) for line in truecased]
        stripped = [parts if len(parts) == 1 else [part.strip() for part in parts] for parts in gaps]
        segmented = iter(self.tokenizer.segmenter.segment_all([part for parts in stripped for part in parts]))
        lines = []
        for (_, items), parts, skeleton, line in zip(cut, gaps, skeletons, truecased, strict=True):
            all_caps = is_all_caps(skeleton) and line != skeleton
            lines.append(self._assemble(parts, [next(segmented) for _ in parts], items, all_caps=all_caps))
        return lines

    def _cut(self, text: str) -> tuple[list[str], list[str]]:
        """Return the parts of a line between its items, and the items."""
        alphabet = self._alphabet
        if self.kind == "word":  # words with unknown letters are unknown words
            alphabet |= frozenset(filter(str.isalnum, text))
        if GAP in alphabet:
            return [text], []
        items = [
            item for item in find_items(text) if item.kind != "number" and not self._knows(text[item.start : item.end])
        ]
        gaps, copied, position = list[str](), list[str](), 0
        for start, end, _ in [*items, Item(len(text), len(text), "unknown")]:
            gap = substitute_unknown(text[position:start], alphabet)
            inner = 0
            for unknown in find_unknown(gap, alphabet):
                gaps.append(gap[inner : unknown.start])
                copied.append(gap[unknown.start : unknown.end])
                inner = unknown.end
            gaps.append(gap[inner:])
            if start < end:
                copied.append(text[start:end])
            position = end
        return gaps, copied

    def _knows(self, item: str) -> bool:
        """Whether an item is a token of the training text."""
        if self.kind == "char":
            total = max(1, sum(self._counts.values()))
            return all(
                character.isalnum() or self._counts.get(character, 0) >= MIN_MARK_SHARE * total for character in item
            )
        return item in self._counts or SPACE_MARK + item in self._counts

    def _assemble(
        self, gaps: Sequence[str], segmented: Sequence[list[str]], texts: Sequence[str], *, all_caps: bool
    ) -> PreparedLine:
        tokens, items = list(segmented[0]), list[CopiedItem]()
        for index, text in enumerate(texts):
            before, after, following = gaps[index], gaps[index + 1], segmented[index + 1]
            items.append(CopiedItem(text, len(tokens), before[-1:], after[:1]))
            if following and self.kind == "char" and tokens and (before[-1:] == " " or after[:1] == " "):
                tokens.append(SPACE_MARK)
            elif following and not after[:1].isspace() and following[0][1:] in self._counts:
                following = [following[0].removeprefix(SPACE_MARK), *following[1:]]
            tokens += following
        return PreparedLine(tuple(tokens), tuple(items), all_caps)

    def is_known_number(self, number: str) -> bool:
        """Whether the translator may write a number in words: it has seen it as a token."""
        return self._knows(number) if self.kind != "char" else len(number) <= MAX_KNOWN_DIGITS


def insert_items(
    tokens: Sequence[str],
    tokenizer: Tokenizer,
    items: Sequence[CopiedItem],
    source_tokens: Sequence[str],
    attention: NDArray[np.float64] | None,
    *,
    all_caps: bool = False,
) -> str:
    """Return the text of a translation with copied items, in capitals if the source line is."""
    places = [_boundary(tokens, tokenizer, item.position, source_tokens, attention) for item in items]
    order = sorted(range(len(items)), key=lambda index: (places[index], index))
    whole, text, position = tokenizer.join(tokens), "", 0
    for index in order:
        end = len(tokenizer.join(tokens[: places[index]]))
        end = max(position, min(end, len(whole)))
        part = whole[position:end]
        text = _append(text, part.upper() if all_caps else part, items[index])
        position = end
    rest = whole[position:]
    rest = rest.upper() if all_caps else rest
    if not order:
        return rest
    last = items[order[-1]]
    rest = rest.lstrip()
    is_attached = rest and not rest[0].isalnum() and not last.right.isspace()
    return (text + rest if is_attached or not rest else f"{text} {rest}").strip()


def _append(text: str, part: str, item: CopiedItem) -> str:
    """Return a text with one more part and an item after it, separated as in the source."""
    if text and part.strip() and (part[0].isalnum() or part[0].isspace()):
        text = f"{text} {part.strip()}"
    else:
        text += part.strip()
    separated = not text or text[-1].isspace()
    is_attached = item.left != "" and not item.left.isspace()
    if is_attached and item.left.isalnum() != text[-1:].isalnum():
        is_attached = not text[-1:].isalnum()
    return text + item.text if separated or is_attached else f"{text} {item.text}"


def _boundary(
    tokens: Sequence[str],
    tokenizer: Tokenizer,
    position: int,
    source_tokens: Sequence[str],
    attention: NDArray[np.float64] | None,
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
    relative = size * position / max(1, source_size)
    if attention is None or attention.shape[0] < size or attention.shape[1] < source_size:
        return min(possible, key=lambda index: abs(index - relative))
    weights = attention[:size, :source_size]
    balance = weights[:, :position].sum(axis=1) - weights[:, position:].sum(axis=1)  # (size,)
    gains = np.append(0.0, np.cumsum(balance))  # (size + 1,)
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


def repair_numbers(source: str, translation: str, reader: SourceReader) -> tuple[str, list[Item]]:
    """Replace wrong numbers of a translation by the numbers of the source that it lacks.

    Also returns the numbers of the source that have no place in the translation, unless they may be written in words.
    """
    in_source, in_target = (
        [item for item in find_items(text) if item.kind == "number"] for text in (source, translation)
    )
    missing = _without(in_source, source, Counter(_digits(translation[i.start : i.end]) for i in in_target))
    wrong = _without(in_target, translation, Counter(_digits(source[i.start : i.end]) for i in in_source))
    wrong = _merge_adjacent(wrong, translation)
    missing.sort(key=lambda item: reader.is_known_number(source[item.start : item.end]))  # those may be in words
    paired = sorted(missing[: len(wrong)])
    for number, other in reversed(list(zip(paired, wrong, strict=False))):
        translation = translation[: other.start] + source[number.start : number.end] + translation[other.end :]
    lost = [item for item in missing[len(wrong) :] if not reader.is_known_number(source[item.start : item.end])]
    return translation, lost


def _merge_adjacent(items: Sequence[Item], text: str) -> list[Item]:
    """Return items with those put together that only a space separates."""
    merged = list[Item]()
    for item in items:
        if merged and text[merged[-1].end : item.start] == " ":
            merged[-1] = merged[-1]._replace(end=item.end)
        else:
            merged.append(item)
    return merged


def _without(items: Sequence[Item], text: str, others: Counter[str]) -> list[Item]:
    """Return the numbers whose digits are not among the others."""
    others, remaining = others.copy(), list[Item]()
    for item in items:
        digits = _digits(text[item.start : item.end])
        if others[digits]:
            others[digits] -= 1
        else:
            remaining.append(item)
    return remaining


def _digits(number: str) -> str:
    return "".join(filter(str.isdigit, number))


def writes_digits(source: Tokenizer, target: Tokenizer) -> bool:
    """Whether numbers of the source have digits in the target too; not if the task is to write them in words."""
    in_source, in_target = (
        sum(
            count * sum(map(str.isdigit, token))
            for token, count in zip(tokenizer.vocab.tokens, tokenizer.vocab.counts.tolist(), strict=True)
        )
        for tokenizer in (source, target)
    )
    return in_target >= MIN_DIGIT_RATIO * in_source
