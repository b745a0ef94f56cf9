"""Blocking of runaway repetition: "the man and the man and the man and ...".

A hypothesis may repeat a segment of tokens immediately as often as the source repeats one, or as lines of the training
text do, and always twice ("room two two two"). A further copy is impossible if the copies have `MIN_LETTERS` letters or
more together, so that "eee" is still possible. Digits and punctuation are limited in the same way, by those of the
source and the training text: 12 zeros or dashes can be copied.
A number may have `MAX_DIGITS` digits, or as many as a number of the source has, or as the source has words ("one two ...").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.core.scorer import Carry, Scorer, State, candidate_log_probs
from dragoman.data.batches import Batch
from dragoman.data.copied_items import UNIT
from dragoman.data.repetitions import USUAL_REPETITIONS, Repetitions, repetitions
from dragoman.data.segmenters import SPACE_MARK
from dragoman.data.vocabulary import SPECIALS, UNK
from dragoman.search.scorers import ConstrainedScorer

MIN_LETTERS = 6  # in all copies: fewer are not a loop
MAX_UNKNOWN = 10  # copies of `<unk>`, which stands for different words
MAX_DIGITS = 12  # of a number
NUMBER = re.compile(r"\d[\d.,'’]*")
END_OF_NUMBER = re.compile(r"[\d.,'’]*$")


class _Rows(NamedTuple):
    """The state of the wrapped scorer, and the tokens so far."""

    inner: object
    tokens: Tensor  # (rows, t) the last one first
    runs: Tensor  # (rows, t) column p - 1: how many tokens at the end are equal to the token p places before them
    max_copies: Tensor  # (rows, 2) of segments with letters, and without


class RepetitionBlockingScorer(ConstrainedScorer):
    """A scorer for sentences without runaway repetition: the token that would complete one more copy is impossible.

    A token that is the only possible one is never blocked.

    >>> from dragoman.search.beam import greedy_search
    >>> from dragoman.search.scorers import GraphScorer
    >>> graph = {" ".join(["go"] * n): {"go": 0.9, "</s>": 0.1} for n in range(9)}
    >>> endless = GraphScorer("go", graph)
    >>> scorer = RepetitionBlockingScorer(endless, count_letters(endless.vocab.tokens, are_words=True))
    >>> [[[plain]], [[blocked]]] = [greedy_search(s, Batch.empty(1)) for s in (endless, scorer)]
    >>> endless.text(plain.ids), endless.text(blocked.ids)
    ('go go go go go go go go go', 'go go go')
    """

    def __init__(self, scorer: Scorer, letters: Tensor, usual: Repetitions = USUAL_REPETITIONS):
        """Block the repetition of a scorer.

        Args:
            scorer: The scorer.
            letters: The number of letters of each token, see `count_letters`.  # (|V|,)
            usual: How often lines of the training text repeat something.
        """
        super().__init__(scorer)
        self.letters = letters
        self.usual = usual

    def start(self, batch: Batch, carry: Carry = None) -> State:
        inner = self.scorer.start(batch, carry)
        copies = [self.usual] * batch.num_rows
        if batch.source is not None:
            copies = list(map(repetitions, batch.source.lines()))
        empty = torch.zeros(batch.num_rows, 0, dtype=torch.int64)
        max_copies = torch.tensor(copies).clamp(min=torch.tensor(self.usual))
        return State(_Rows(inner.rows, empty, empty, max_copies), inner.memory, inner.sentence)

    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Return log P of the scorer, -inf for tokens that are blocked.  # (rows, n), (n,)"""
        log_probs, ids = candidate_log_probs(self.scorer, self.inner_state(state))
        blocked = self._blocked(state.rows)
        if not blocked:
            return log_probs, ids
        columns = (torch.arange(log_probs.shape[1]) if ids is None else ids).expand(log_probs.shape)
        mask = torch.zeros(log_probs.shape, dtype=torch.bool)
        for row, token in blocked:
            mask[row] |= columns[row] == token
        return mask_unless_all(log_probs, mask), ids

    def _blocked(self, rows: _Rows) -> list[tuple[int, int]]:
        """Return the rows that would repeat a segment too often, and the tokens that would complete the last copy."""
        runs, max_copies = rows.runs.numpy(), rows.max_copies.numpy()
        is_copy = runs + 1 >= max_copies.min(1, keepdims=True) * np.arange(1, runs.shape[1] + 1)  # (rows, t)
        blocked = []
        for row, column in np.argwhere(is_copy).tolist():
            period, token = column + 1, int(rows.tokens[row, column])
            segment = rows.tokens[row, :period]
            letters = int(self.letters[segment].sum())
            copies = (int(rows.runs[row, column]) + 1) // period + 1
            max_words, max_marks = rows.max_copies[row].tolist()
            if letters:
                is_loop = copies > max_words and letters * copies >= MIN_LETTERS
            else:
                is_loop = copies > (MAX_UNKNOWN if bool((segment == UNK).any()) else max_marks)
            if is_loop:
                blocked.append((row, token))
        return blocked

    def advance(self, state: State, words: Tensor) -> State:
        inner, rows = self.scorer.advance(self.inner_state(state), words), state.rows
        new, old = words.cpu().numpy()[:, None], rows.tokens.numpy()
        runs = np.pad((old == new) * (rows.runs.numpy() + 1), ((0, 0), (0, 1)))
        tokens = np.concatenate([new, old], axis=1)
        after = _Rows(inner.rows, torch.from_numpy(tokens), torch.from_numpy(runs), rows.max_copies)
        return State(after, inner.memory, inner.sentence)


class _DigitRows(NamedTuple):
    """The state of the wrapped scorer, and how long the number at the end is."""

    inner: object
    digits: Tensor  # (rows,)
    max_digits: Tensor  # (rows,)


class DigitCounts(NamedTuple):
    """Digits of tokens that are parts of words."""

    digits: Tensor  # (|V|,) at the end of each token
    continues: Tensor  # (|V|,) whether a number before the token continues to its end
    most_digits: int

    @classmethod
    def of(cls, tokens: Sequence[str]) -> DigitCounts:
        ends = [END_OF_NUMBER.findall(token)[0] for token in tokens]
        digits = torch.tensor(list(map(_count_digits, ends)))
        continues = torch.tensor([token == end for token, end in zip(tokens, ends, strict=True)])
        return cls(digits, continues, int(digits.max()))


class DigitLimitScorer(ConstrainedScorer):
    """A scorer for sentences without runaway numbers: a token is impossible if its digits make a number too long.

    A token that is the only possible one is never blocked.
    """

    def __init__(self, scorer: Scorer, counts: DigitCounts):
        super().__init__(scorer)
        self.digits, self.continues, self.most_digits = counts

    def start(self, batch: Batch, carry: Carry = None) -> State:
        inner, limits = self.scorer.start(batch, carry), [MAX_DIGITS] * batch.num_rows
        if batch.source is not None:
            limits = list(map(max_digits, batch.source.lines()))
        rows = _DigitRows(inner.rows, torch.zeros(batch.num_rows, dtype=torch.int64), torch.tensor(limits))
        return State(rows, inner.memory, inner.sentence)

    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Return log P of the scorer, -inf for tokens that are blocked.  # (rows, n), (n,)"""
        log_probs, ids = candidate_log_probs(self.scorer, self.inner_state(state))
        room = state.rows.max_digits - state.rows.digits  # (rows,)
        if bool((room >= self.most_digits).all()):
            return log_probs, ids
        digits, continues = (values if ids is None else values[ids] for values in (self.digits, self.continues))
        return mask_unless_all(log_probs, continues & (digits > room[:, None])), ids

    def advance(self, state: State, words: Tensor) -> State:
        inner, rows, new = self.scorer.advance(self.inner_state(state), words), state.rows, words.cpu()
        digits = self.digits[new] + torch.where(self.continues[new], rows.digits, 0)
        return State(_DigitRows(inner.rows, digits, rows.max_digits), inner.memory, inner.sentence)


class RepetitionLimits(NamedTuple):
    """What blocking of repetition needs to know of a vocabulary and of the training text."""

    letters: Tensor  # (|V|,) see `count_letters`
    usual: Repetitions  # how often lines of the training text repeat something
    digits: DigitCounts | None  # None: numbers have no limit

    @classmethod
    def of(
        cls,
        tokens: Sequence[str],
        usual: Repetitions = USUAL_REPETITIONS,
        *,
        are_words: bool,
        limits_digits: bool = True,
    ) -> RepetitionLimits:
        """Return the limits of repetition and, unless tokens are words, of the lengths of numbers."""
        has_numbers = limits_digits and not are_words and any(map(_count_digits, tokens))
        digits = DigitCounts.of(tokens) if has_numbers else None
        return cls(count_letters(tokens, are_words=are_words), usual, digits)


def block_repetition(scorer: Scorer, limits: RepetitionLimits) -> Scorer:
    """Return a scorer without runaway repetition and without runaway numbers."""
    if limits.digits is not None:
        scorer = DigitLimitScorer(scorer, limits.digits)
    return RepetitionBlockingScorer(scorer, limits.letters, limits.usual)


def mask_unless_all(log_probs: Tensor, mask: Tensor) -> Tensor:
    """Return log P with -inf where the mask is true, except in rows without another possible token.  # (rows, n)"""
    remaining = log_probs.masked_fill(mask, -torch.inf)
    has_alternative = (remaining > -torch.inf).any(dim=1, keepdim=True)
    return torch.where(has_alternative, remaining, log_probs)


def max_digits(source: str) -> int:
    """Return how many digits a number may have in the translation of a text.

    >>> max_digits("room 7"), max_digits("1234567890123456"), max_digits("a " * 20)
    (12, 16, 20)
    """
    in_numbers = map(_count_digits, NUMBER.findall(source))
    return max(MAX_DIGITS, len(UNIT.findall(source)), *in_numbers)


def _count_digits(text: str) -> int:
    return sum(map(str.isdecimal, text))


def count_letters(tokens: Sequence[str], *, are_words: bool) -> Tensor:
    """Return the number of letters of each token, and of spaces: one after each word, or as marked.  # (|V|,)

    >>> count_letters(["▁very", "12", "a"], are_words=False).tolist()
    [5, 0, 1]
    """
    counts = []
    for token in tokens:
        letters = 0 if token in SPECIALS else sum(map(str.isalpha, token))  # `<unk>` stands for different words
        counts.append(letters + (are_words or SPACE_MARK in token) if letters else 0)
    return torch.tensor(counts)
