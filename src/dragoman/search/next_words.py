"""The most probable next words by models whose tokens are pieces of words or characters."""

from __future__ import annotations

import heapq
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.core.scorer import Scorer, State
from dragoman.data.detokenize import APOSTROPHES
from dragoman.data.scanner import UNSPACED
from dragoman.data.vocabulary import END, SPECIALS, START, UNK, Vocab

MAX_EXPANSIONS = 500  # beginnings of words that are continued
MAX_BRANCHES = 100  # continuations of each that are considered
CONTINUATION = "…"  # marks a continuation of the last word of the prefix


class Continuation(NamedTuple):
    """A next word, with a space before it unless it continues the text."""

    text: str
    prob: float
    tokens: tuple[str, ...]  # the most probable ones that give this text


@dataclass(frozen=True, eq=False)
class _TokenTexts:
    """The texts of the tokens of a vocabulary. `</s>` and `<unk>` are words, and `<s>` is none."""

    texts: list[str]
    begins_with_letter: NDArray[np.bool_]  # (|V|,) without a space before it: can continue a word
    has_no_space: NDArray[np.bool_]  # (|V|,) and is not empty: can follow a space

    @classmethod
    def from_vocab(cls, vocab: Vocab) -> _TokenTexts:
        texts = [vocab.segmenter.token_texts([token])[0] for token in vocab.tokens]
        texts[START], texts[END], texts[UNK] = "", f" {SPECIALS[END]}", f" {SPECIALS[UNK]}"
        has_no_space = np.array([bool(text) and not text.startswith(" ") for text in texts])
        return cls(texts, np.array([_is_letter(text[:1]) for text in texts]), has_no_space)


def next_words(scorer: Scorer, state: State, k: int, *, show_unknown: bool = True) -> list[Continuation]:
    """Return the k most probable next words, by best-first search.

    A word is a sequence of letters and digits; a punctuation mark and a piece of a script without spaces is one by
    itself. Its probability is that of its tokens and of any token after them that does not continue it. If several
    sequences of tokens give the same word, their probabilities are added up.

    Args:
        scorer: a model.
        state: its state after the prefix, with one row.
        k: the number of words.
        show_unknown: return `<unk>` as a word.
    """
    texts = _TokenTexts.from_vocab(scorer.vocab)
    probs: defaultdict[str, float] = defaultdict(float)  # of complete words
    best_tokens: dict[str, tuple[float, tuple[int, ...]]] = {}  # of complete words, with their probability
    order = count()  # of equal probabilities, the first is continued first
    heap: list[tuple[float, int, str, State, tuple[int, ...]]] = []

    def add_word(text: str, prob: float, tokens: tuple[int, ...]) -> None:
        probs[text] += prob
        best_tokens[text] = max(best_tokens.get(text, (0.0, tokens)), (prob, tokens))

    def extend(text: str, prob: float, state: State, tokens: tuple[int, ...], branches: NDArray[np.bool_]) -> None:
        """Continue a text by single tokens, to words that are complete and to beginnings of words."""
        for token, token_prob in _most_probable(scorer, state, branches):
            if token == UNK and not show_unknown:
                continue
            longer, joint = text + texts.texts[token], prob * token_prob
            if token in (END, UNK) or (longer.strip() and not _is_letter(longer[-1])):
                add_word(longer, joint, (*tokens, token))
            else:
                heapq.heappush(heap, (-joint, next(order), longer, state, (*tokens, token)))

    extend("", 1.0, state, (), np.arange(len(texts.texts)) != START)
    for _ in range(MAX_EXPANSIONS):
        complete = heapq.nlargest(k, probs.values())
        if not heap or (len(complete) == k and complete[-1] >= -heap[0][0]):
            break
        negative, _, text, before, tokens = heapq.heappop(heap)
        following = scorer.advance(before, torch.tensor(tokens[-1:]))
        continues = texts.begins_with_letter if text.strip() else texts.has_no_space
        if text.strip():
            next_probs = scorer.log_probs(following)[0].exp().double().numpy()
            add_word(text, -negative * float(1.0 - next_probs[continues].sum()), tokens)
        extend(text, -negative, following, tokens, continues)
    best = sorted(probs.items(), key=lambda item: -item[1])[:k]
    return [
        Continuation(text, prob, tuple(scorer.vocab.tokens[token] for token in best_tokens[text][1]))
        for text, prob in best
    ]


def describe(continuation: str, prefix: str) -> str:
    """Return a continuation as a word, marked if it continues the last word of the prefix.

    >>> describe(" sat", "the cat"), describe("s", "the cat"), describe(".", "the cat")
    ('sat', '…s', '.')
    """
    continues = _is_letter(prefix[-1:]) and _is_letter(continuation[:1])
    return (CONTINUATION if continues else "") + continuation.strip()


def _most_probable(scorer: Scorer, state: State, mask: NDArray[np.bool_]) -> Iterator[tuple[int, float]]:
    log_probs = scorer.log_probs(state)[0].double().masked_fill(torch.from_numpy(~mask), -torch.inf)
    values, tokens = log_probs.exp().topk(min(MAX_BRANCHES, len(log_probs)))
    return ((token, prob) for token, prob in zip(tokens.tolist(), values.tolist(), strict=True) if prob > 0)


def _is_letter(character: str) -> bool:
    """Return whether this is a letter, digit, mark or apostrophe of a script with spaces between words."""
    if not character or UNSPACED.match(character):
        return False
    return character.isalnum() or character in APOSTROPHES or unicodedata.category(character).startswith("M")
