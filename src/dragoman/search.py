"""Finding sentences: for now, by drawing them from the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.errors import DataError
from dragoman.scorer import Scorer, State, fold, select
from dragoman.text.batches import Batch
from dragoman.text.vocab import END

MAX_WORDS = 200
DISTRIBUTIONS = 1 << 21  # probabilities to hold at a time, unless a batch size is given
ROUNDING = 1e-12  # of a mass added up: a set that falls short of p by less reaches it

Narrow = Callable[[Tensor], Tensor]  # the model's distributions -> those that are drawn from.  # (rows, |V|) both


@dataclass(frozen=True)
class Hypothesis:
    """A sentence that a search found."""

    words: tuple[int, ...]  # without `</s>`; what was given to go on from is among them
    log_prob: float  # what rescoring gives
    score: float  # what the search went by
    finished: bool = True  # False: cut off at the longest length allowed, before `</s>`

    def extended(self, word: int, log_prob: float, score: float) -> Hypothesis:
        """One word on; with `</s>` it is finished."""
        words = self.words if word == END else (*self.words, word)
        return Hypothesis(words, self.log_prob + log_prob, self.score + score, finished=word == END)


def sample(scorer: Scorer, n: int, seed: int = 0, **how: Any) -> list[Hypothesis]:
    """Draw n sentences; how: see `samples`.

    >>> from dragoman import Corpus, NgramModel
    >>> model = NgramModel.train(Corpus.from_sentences(["a b"]), order=2, smoothing="maximum-likelihood")
    >>> [(drawn.words, drawn.log_prob) for drawn in sample(model, 1)]
    [((3, 4), 0.0)]
    """
    return list(samples(scorer, n, seed, **how))


def samples(
    scorer: Scorer,
    n: int,
    seed: int = 0,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    prefix: Sequence[int] = (),
    max_words: int = MAX_WORDS,
    batch_size: int | None = None,
) -> Iterator[Hypothesis]:
    """Draw n sentences E ~ P(E), word by word (ancestral sampling), all of them going on from the same prefix.

    Each word is drawn from the model's distribution as `narrowed` leaves it: by default, as it is. A hypothesis'
    `log_prob` is that of the whole sentence by the model, its `score` that of what was drawn, by the distributions
    drawn from. Sample number i depends on the seed and i alone, however many are drawn; some at a time are drawn
    together, and come when they are.
    """
    _require(temperature, top_k, top_p)
    if seed < 0:
        raise DataError(f"seed {seed}: it must be 0 or more")
    if 0 < len(prefix) >= max_words:
        raise DataError(f"a prefix of {len(prefix)} words leaves no room for more; allow more than {max_words} words")
    batch_size = batch_size or max(1, min(64, DISTRIBUTIONS // len(scorer.vocab)))
    narrow = partial(narrowed, temperature=temperature, top_k=top_k, top_p=top_p)
    for first in range(0, n, batch_size):
        numbers = range(first, min(n, first + batch_size))
        yield from _sample_batch(scorer, numbers, seed, narrow, tuple(prefix), max_words)


def _require(temperature: float, top_k: int | None, top_p: float) -> None:
    if not 0 < temperature < float("inf"):
        raise DataError(f"a temperature of {temperature}: it must be a number above 0")
    if top_k is not None and top_k < 1:
        raise DataError(f"the {top_k} best words (top-k): it must be 1 or more")
    if not 0 < top_p <= 1:
        raise DataError(f"a mass of {top_p} (top-p): it must be above 0, and 1 at most")


def _sample_batch(
    scorer: Scorer, numbers: range, seed: int, narrow: Narrow, prefix: tuple[int, ...], max_words: int
) -> list[Hypothesis]:
    random = [np.random.default_rng([seed, number]) for number in numbers]
    state, log_prob = _begun(scorer, prefix, len(numbers))
    found = [Hypothesis(prefix, log_prob, 0.0, finished=False)] * len(numbers)
    active = list(range(len(numbers)))
    for _ in range(len(prefix), max_words):
        log_probs = scorer.log_probs(state).double()  # (active, |V|)
        narrow_log_probs = narrow(log_probs)
        thresholds = torch.tensor([random[row].random() for row in active], dtype=torch.float64)
        drawn = _draw(narrow_log_probs, thresholds)
        costs = zip(_at(log_probs, drawn), _at(narrow_log_probs, drawn), strict=True)
        for row, word, (cost, narrow_cost) in zip(active, drawn.tolist(), costs, strict=True):
            found[row] = found[row].extended(word, cost, narrow_cost)
        going = [place for place, row in enumerate(active) if not found[row].finished]
        if not going:
            break
        state = select(scorer.advance(state, drawn), torch.tensor(going))
        active = [active[place] for place in going]
    return found


def _begun(scorer: Scorer, prefix: tuple[int, ...], rows: int) -> tuple[State, float]:
    """So many rows that have all read the prefix, and log P(prefix)."""
    if not prefix:
        return scorer.start(Batch.to_generate(rows)), 0.0
    steps, state = fold(scorer, Batch(torch.tensor([prefix]), torch.tensor([len(prefix)])))
    return select(state, torch.zeros(rows, dtype=torch.int64)), float(steps.double().sum())


def _draw(log_probs: Tensor, thresholds: Tensor) -> Tensor:
    """The word at which the cumulative probability passes the threshold.  # (rows,)"""
    cumulative = log_probs.exp().cumsum(dim=1)
    target = (thresholds * cumulative[:, -1])[:, None]
    return torch.searchsorted(cumulative, target, right=True)[:, 0].clamp(max=log_probs.shape[1] - 1)


def _at(log_probs: Tensor, words: Tensor) -> list[float]:
    """The log-probability of one word in each row."""
    return log_probs.gather(1, words[:, None])[:, 0].tolist()


# -- which words may be drawn, and how often -------------------------------------------------------------------------


def narrowed(log_probs: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0) -> Tensor:
    """The distributions to draw from.  # (rows, |V|) both

    First each is P^(1/temperature), renormalised. Of that the `top_k` most probable words are kept, renormalised; and
    of those the nucleus, the fewest words whose mass reaches `top_p`, renormalised. Of words that tie, those with the
    lower number are kept.

    >>> half = torch.tensor([[0.5, 0.25, 0.25]]).log()
    >>> narrowed(half, top_k=2).exp(), narrowed(half, top_p=0.5).exp()
    (tensor([[0.6667, 0.3333, 0.0000]]), tensor([[1., 0., 0.]]))
    """
    best = log_probs.max(dim=1, keepdim=True).values  # so that however cold, the best stays finite
    result = ((log_probs - best) / temperature).log_softmax(dim=1)
    if top_k is not None and top_k < log_probs.shape[1]:
        result = _renormalised(result, _best(result, top_k))
    if top_p < 1:
        result = _renormalised(result, _nucleus(result, top_p))
    return result


def _renormalised(log_probs: Tensor, kept: Tensor) -> Tensor:
    return log_probs.masked_fill(~kept, -torch.inf).log_softmax(dim=1)


def _best(log_probs: Tensor, k: int) -> Tensor:
    """Whether a word is one of the k most probable.  # (rows, |V|)"""
    least = log_probs.topk(k, dim=1).values[:, -1:]  # (rows, 1)
    above, tied = log_probs > least, log_probs == least
    room = k - above.sum(dim=1, keepdim=True)
    return above | (tied & (tied.cumsum(dim=1) <= room))


def _nucleus(log_probs: Tensor, p: float) -> Tensor:
    """Whether a word is one of the fewest, the most probable ones, whose mass reaches p.  # (rows, |V|)"""
    ordered, words = log_probs.sort(dim=1, descending=True, stable=True)
    probs = ordered.exp()
    before = probs.cumsum(dim=1) - probs  # the mass of the words that come first
    return torch.zeros_like(probs, dtype=torch.bool).scatter(1, words, before < p * (1 - ROUNDING))
