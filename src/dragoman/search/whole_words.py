"""The most probable next words of a scorer whose tokens are pieces of words or characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from dragoman.core.scorer import Scorer, State, select_rows
from dragoman.data.segmenters import SPACE_MARK
from dragoman.data.vocabulary import END

MAX_TOKENS = 40  # of a word


class WholeWord(NamedTuple):
    """A word as tokens. `</s>` is one, too."""

    tokens: tuple[str, ...]
    log_prob: float  # of these tokens, followed by the start of another word or by the end of the sentence


def next_whole_words(scorer: Scorer, state: State, k: int) -> list[WholeWord]:
    """Return the k most probable next words, found by beam search over their tokens.

    Args:
        scorer: tokens that begin with `▁` start a word.
        state: one row, in which a word starts.
        k: number of words; twice as many beginnings of words are kept in each step.
    """
    starts_word = torch.tensor([token.startswith(SPACE_MARK) for token in scorer.vocab.tokens])  # (|V|,)
    starts_word[END] = True
    beginnings: list[WholeWord] = [WholeWord((), 0.0)]
    words: list[WholeWord] = []
    for _ in range(MAX_TOKENS):
        log_probs = scorer.log_probs(state).double()  # (rows, |V|)
        has_text = torch.tensor([_has_text(word.tokens) for word in beginnings])  # (rows,)
        ends = log_probs[:, starts_word].logsumexp(dim=1).tolist()
        words += [
            word._replace(log_prob=word.log_prob + end)
            for word, end, is_word in zip(beginnings, ends, has_text.tolist(), strict=True)
            if is_word
        ]
        log_probs = log_probs.masked_fill(has_text[:, None] & starts_word, -math.inf)
        joint = log_probs + torch.tensor([word.log_prob for word in beginnings])[:, None]
        best = joint.flatten().topk(min(2 * k, joint.numel()))
        rows, tokens = best.indices // joint.shape[1], best.indices % joint.shape[1]
        longer = [
            WholeWord((*beginnings[row].tokens, scorer.vocab.tokens[token]), log_prob)
            for row, token, log_prob in zip(rows.tolist(), tokens.tolist(), best.values.tolist(), strict=True)
        ]
        words = _best([*words, *(word for word, token in zip(longer, tokens.tolist(), strict=True) if token == END)], k)
        threshold = words[-1].log_prob if len(words) == k else -math.inf
        kept = [n for n, word in enumerate(longer) if word.log_prob > threshold and int(tokens[n]) != END]
        if not kept:
            break
        beginnings = [longer[n] for n in kept]
        state = scorer.advance(select_rows(state, rows[kept]), tokens[kept])
    return words


def _has_text(tokens: Sequence[str]) -> bool:
    return any(token != SPACE_MARK for token in tokens)


def _best(words: Sequence[WholeWord], k: int) -> list[WholeWord]:
    return sorted(words, key=lambda word: -word.log_prob)[:k]
