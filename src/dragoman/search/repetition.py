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
        columns = torch.arange(log_probs.shape[1]) if ids is None else ids
        mask = torch.zeros(log_probs.shape, dtype=torch.bool)
        for row, token in blocked:
            mask[row] |= columns == token
        return mask_unless_all(log_probs, mask), ids

    def _blocked(self, rows: _Rows) -> list[tuple[int, int]]:
        """Return the rows that would repeat a segment too often, and the tokens that would complete the last copy."""
        periods = torch.arange(1, rows.runs.shape[1] + 1)
        is_copy = rows.runs + 1 >= rows.max_copies.amin(1, keepdim=True) * periods  # (rows, t)
        if not bool(is_copy.any()):
            return []
        blocked = []
        for row, column in is_copy.nonzero().tolist():
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
        new = words.cpu()[:, None]
        runs = torch.where(rows.tokens == new, rows.runs + 1, 0)
        runs = torch.cat([runs, torch.zeros_like(new)], dim=1)
        tokens = torch.cat([new, rows.tokens], dim=1)
        return State(_Rows(inner.rows, tokens, runs, rows.max_copies), inner.memory, inner.sentence)


class _DigitRows(NamedTuple):
    """The state of the wrapped scorer, and how long the number at the end is."""

    inner: object
    digits: Tensor  # (rows,)
    max_digits: Tensor  # (rows,)


class DigitLimitScorer(ConstrainedScorer):
    """A scorer for sentences without runaway numbers: a token is impossible if its digits make a number too long.

    A token that is the only possible one is never blocked.
    """

    def __init__(self, scorer: Scorer, tokens: Sequence[str]):
        """`tokens` are those of the vocabulary, parts of words."""
        super().__init__(scorer)
        ends = [END_OF_NUMBER.findall(token)[0] for token in tokens]
        self.continues = torch.tensor([token == end for token, end in zip(tokens, ends, strict=True)])  # (|V|,)
        self.digits = torch.tensor(list(map(_count_digits, ends)))  # (|V|,)
        self.most_digits = int(self.digits.max())

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


def block_repetition(
    scorer: Scorer,
    tokens: Sequence[str],
    usual: Repetitions = USUAL_REPETITIONS,
    *,
    are_words: bool,
    limits_digits: bool = True,
) -> Scorer:
    """Return a scorer without runaway repetition and, unless tokens are words, without runaway numbers."""
    if limits_digits and not are_words and any(map(_count_digits, tokens)):
        scorer = DigitLimitScorer(scorer, tokens)
    return RepetitionBlockingScorer(scorer, count_letters(tokens, are_words=are_words), usual)


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
