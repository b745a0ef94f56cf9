"""Finding sentences: for now, by drawing them from the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from dragoman.errors import DataError
from dragoman.scorer import Scorer, select
from dragoman.text.batches import Batch
from dragoman.text.vocab import END

MAX_WORDS = 200
DISTRIBUTIONS = 1 << 21  # probabilities to hold at a time, unless a batch size is given


@dataclass(frozen=True)
class Hypothesis:
    """A sentence that a search found."""

    words: tuple[int, ...]  # without `</s>`
    log_prob: float  # what rescoring gives
    score: float  # what the search went by
    finished: bool = True  # False: cut off at the longest length allowed, before `</s>`


def sample(
    scorer: Scorer,
    n: int,
    seed: int = 0,
    *,
    temperature: float = 1.0,
    max_words: int = MAX_WORDS,
    batch_size: int | None = None,
) -> list[Hypothesis]:
    """Draw n sentences E ~ P(E), word by word (ancestral sampling).

    A temperature other than 1 draws each word from P^(1/temperature), renormalised. Sample number i depends on the
    seed and i alone, however many are drawn.

    >>> from dragoman import Corpus, NgramModel
    >>> model = NgramModel.train(Corpus.from_sentences(["a b"]), order=2, smoothing="maximum-likelihood")
    >>> [(drawn.words, drawn.log_prob) for drawn in sample(model, 1)]
    [((3, 4), 0.0)]
    """
    if not 0 < temperature < float("inf"):
        raise DataError(f"a temperature of {temperature}: it must be a number above 0")
    if seed < 0:
        raise DataError(f"seed {seed}: it must be 0 or more")
    batch_size = batch_size or max(1, min(64, DISTRIBUTIONS // len(scorer.vocab)))
    return [
        hypothesis
        for first in range(0, n, batch_size)
        for hypothesis in _sample_batch(scorer, range(first, min(n, first + batch_size)), seed, temperature, max_words)
    ]


def _sample_batch(scorer: Scorer, numbers: range, seed: int, temperature: float, max_words: int) -> list[Hypothesis]:
    random = [np.random.default_rng([seed, number]) for number in numbers]
    words: list[list[int]] = [[] for _ in numbers]
    log_prob, score = [0.0] * len(numbers), [0.0] * len(numbers)
    finished = [False] * len(numbers)
    state = scorer.start(Batch.to_generate(len(numbers)))
    active = list(range(len(numbers)))
    for _ in range(max_words):
        log_probs = scorer.log_probs(state).double()  # (active, |V|)
        best = log_probs.max(dim=1, keepdim=True).values  # so that however cold, the best stays finite
        tempered = ((log_probs - best) / temperature).log_softmax(dim=1)
        thresholds = torch.tensor([random[row].random() for row in active], dtype=torch.float64)
        drawn = _draw(tempered, thresholds)
        for place, (row, word) in enumerate(zip(active, drawn.tolist(), strict=True)):
            log_prob[row] += float(log_probs[place, word])
            score[row] += float(tempered[place, word])
            finished[row] = word == END
            if word != END:
                words[row].append(word)
        going = [place for place, row in enumerate(active) if not finished[row]]
        if not going:
            break
        state = select(scorer.advance(state, drawn), torch.tensor(going))
        active = [active[place] for place in going]
    return [Hypothesis(tuple(w), p, s, f) for w, p, s, f in zip(words, log_prob, score, finished, strict=True)]


def _draw(log_probs: torch.Tensor, thresholds: torch.Tensor) -> torch.Tensor:
    """The word at which the cumulative probability passes the threshold.  # (rows,)"""
    cumulative = log_probs.exp().cumsum(dim=1)
    target = (thresholds * cumulative[:, -1])[:, None]
    return torch.searchsorted(cumulative, target, right=True)[:, 0].clamp(max=log_probs.shape[1] - 1)
