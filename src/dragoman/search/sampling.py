"""Ancestral sampling of sentences (tutorial, alg. encdec:sample)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.core.scorer import Scorer, State, fold, select_rows
from dragoman.data.batches import Batch
from dragoman.data.corpus import Corpus
from dragoman.search.hypothesis import Hypothesis, attention_weights, attention_widths
from dragoman.search.length import DEFAULT_MAX_WORDS, MaxWords, word_limits

MAX_PROBABILITIES = 1 << 21  # in memory at a time, if no batch size is given
MASS_TOLERANCE = 1e-12  # relative rounding error of a sum of probabilities

Warp = Callable[[Tensor], Tensor]  # from the model's distributions to those that are sampled from.  # (rows, |V|) each


class SamplingOptions(TypedDict, total=False):
    """The keyword arguments that `iter_samples` and `iter_sample_translations` share."""

    temperature: float
    top_k: int | None
    top_p: float
    batch_size: int | None


def sample(
    scorer: Scorer,
    n: int,
    seed: int = 0,
    *,
    prefix: Sequence[int] = (),
    max_words: int = DEFAULT_MAX_WORDS,
    **options: Unpack[SamplingOptions],
) -> list[Hypothesis]:
    """Sample n sentences. For the options, see `iter_samples`.

    >>> from dragoman import Corpus, NgramModel
    >>> model = NgramModel.train(Corpus.from_sentences(["a b"]), order=2, smoothing="maximum-likelihood")
    >>> [(hypothesis.ids, hypothesis.log_prob) for hypothesis in sample(model, 1)]
    [((3, 4), 0.0)]
    """
    return list(iter_samples(scorer, n, seed, prefix=prefix, max_words=max_words, **options))


def iter_samples(
    scorer: Scorer,
    n: int,
    seed: int = 0,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    prefix: Sequence[int] = (),
    max_words: int = DEFAULT_MAX_WORDS,
    batch_size: int | None = None,
) -> Iterator[Hypothesis]:
    """Yield n samples E ~ P(E), token by token (ancestral sampling), all with the same prefix.

    Each token is sampled from the model's distribution after `warp_log_probs`, which by default changes nothing.
    `log_prob` of a hypothesis is that of the whole sentence by the model, `score` that of the sampled tokens by the
    warped distributions. Sample number i depends only on the seed and on i.
    """
    warp = _make_warp(temperature, top_k, top_p, seed)
    if 0 < len(prefix) >= max_words:
        raise DataError(f"a prefix of {len(prefix)} words leaves no room for more; allow more than {max_words} words")
    for numbers in _ranges(n, batch_size or _default_batch_size(scorer)):
        generators = [np.random.default_rng([seed, number]) for number in numbers]
        limits = [max_words] * len(numbers)
        rows = torch.zeros(len(numbers), dtype=torch.int64)
        start = _start_from_prefix(scorer, Batch.empty(1), tuple(prefix), rows)
        yield from _sample_rows(scorer, start, generators, warp, limits)


def sample_translations(
    scorer: Scorer,
    source: Corpus,
    n: int = 1,
    seed: int = 0,
    *,
    max_words: MaxWords = None,
    **options: Unpack[SamplingOptions],
) -> list[list[Hypothesis]]:
    """Sample n translations of each sentence. For the options, see `iter_sample_translations`."""
    return list(iter_sample_translations(scorer, source, n, seed, max_words=max_words, **options))


def iter_sample_translations(
    scorer: Scorer,
    source: Corpus,
    n: int = 1,
    seed: int = 0,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    max_words: MaxWords = None,
    batch_size: int | None = None,
) -> Iterator[list[Hypothesis]]:
    """Yield n samples E ~ P(E | F) for each sentence F. See also `iter_samples`.

    Sample number i of a sentence depends only on the seed, on the number of the sentence and on i. Samples of a
    sentence share its encoding. For `max_words`, see `length.word_limits`.
    """
    warp = _make_warp(temperature, top_k, top_p, seed)
    limits = word_limits(max_words, Batch.empty(len(source), source)).tolist()
    waiting: list[Hypothesis] = []
    for numbers in _ranges(len(source) * n, batch_size or _default_batch_size(scorer)):
        pairs = [divmod(number, n) for number in numbers]  # (sentence, sample)
        first = pairs[0][0]
        sentences = source.select(np.arange(first, pairs[-1][0] + 1))
        rows = torch.tensor([sentence - first for sentence, _ in pairs])
        start = _start_from_prefix(scorer, Batch.empty(len(sentences), sentences), (), rows)
        generators = [np.random.default_rng([seed, *pair]) for pair in pairs]
        waiting += _sample_rows(scorer, start, generators, warp, [limits[sentence] for sentence, _ in pairs])
        while n and len(waiting) >= n:
            yield waiting[:n]
            waiting = waiting[n:]
    if not n:
        yield from ([] for _ in range(len(source)))


def _make_warp(temperature: float, top_k: int | None, top_p: float, seed: int) -> Warp:
    """Check the arguments and return the function that is applied to distributions."""
    if not 0 < temperature < float("inf"):
        raise DataError(f"a temperature of {temperature}: it must be a finite number above 0")
    if top_k is not None and top_k < 1:
        raise DataError(f"the {top_k} best words (top-k): it must be 1 or more")
    if not 0 < top_p <= 1:
        raise DataError(f"a mass of {top_p} (top-p): it must be above 0, and 1 at most")
    if seed < 0:
        raise DataError(f"seed {seed}: it must be 0 or more")
    return partial(warp_log_probs, temperature=temperature, top_k=top_k, top_p=top_p)


def _default_batch_size(scorer: Scorer) -> int:
    return max(1, min(64, MAX_PROBABILITIES // len(scorer.vocab)))


def _ranges(n: int, size: int) -> Iterator[range]:
    return (range(first, min(n, first + size)) for first in range(0, n, size))


@dataclass(frozen=True)
class _PrefixState:
    """Rows that have all read the same prefix."""

    state: State
    prefix: tuple[int, ...]
    log_prob: list[float]  # of the prefix, for each row
    widths: list[int]  # columns of the attention, for each row


def _start_from_prefix(scorer: Scorer, batch: Batch, prefix: tuple[int, ...], rows: Tensor) -> _PrefixState:
    """Return one row for each sentence index in `rows`; each sentence is encoded once.  # rows: (n,)"""
    if prefix:
        ids = torch.tensor([prefix] * batch.num_rows)
        steps, state = fold(scorer, Batch(ids, torch.full((batch.num_rows,), len(prefix)), batch.source))
        log_prob = steps.double().sum(dim=1)
    else:
        state, log_prob = scorer.start(batch), torch.zeros(batch.num_rows, dtype=torch.float64)
    widths = torch.tensor(attention_widths(batch.source, batch.num_rows))
    return _PrefixState(select_rows(state, rows), prefix, log_prob[rows].tolist(), widths[rows].tolist())


def _sample_rows(
    scorer: Scorer, start: _PrefixState, generators: list[np.random.Generator], warp: Warp, limits: list[int]
) -> list[Hypothesis]:
    """Sample a sentence for each row, by the row's generator."""
    state = start.state
    hypotheses = [Hypothesis(start.prefix, log_prob, 0.0, finished=False) for log_prob in start.log_prob]
    attention: list[list[Tensor]] = [[] for _ in hypotheses]
    active = [row for row, limit in enumerate(limits) if len(start.prefix) < limit]
    while active:
        log_probs = scorer.log_probs(state).double()  # (active, |V|)
        warped = warp(log_probs)
        if (step_attention := attention_weights(scorer, state)) is not None:
            for row, weights in zip(active, step_attention, strict=True):
                attention[row].append(weights)
        thresholds = torch.tensor([generators[row].random() for row in active], dtype=torch.float64)
        tokens = _draw(warped, thresholds)
        scores = zip(_gather(log_probs, tokens), _gather(warped, tokens), strict=True)
        for row, token, (log_prob, score) in zip(active, tokens.tolist(), scores, strict=True):
            hypotheses[row] = hypotheses[row].extend(token, log_prob, score)
        continuing = [
            index
            for index, row in enumerate(active)
            if not hypotheses[row].finished and len(hypotheses[row].ids) < limits[row]
        ]
        if continuing:
            indices = torch.tensor(continuing)
            state = scorer.advance(select_rows(state, indices), tokens[indices])
        active = [active[index] for index in continuing]
    rows = zip(hypotheses, attention, start.widths, strict=True)
    return [hypothesis.with_attention(weights, width) for hypothesis, weights, width in rows]


def _draw(log_probs: Tensor, thresholds: Tensor) -> Tensor:
    """Return the token at which the cumulative probability passes the threshold.  # (rows,)"""
    cumulative = log_probs.exp().cumsum(dim=1)
    target = (thresholds * cumulative[:, -1])[:, None]
    return torch.searchsorted(cumulative, target, right=True)[:, 0].clamp(max=log_probs.shape[1] - 1)


def _gather(log_probs: Tensor, tokens: Tensor) -> list[float]:
    """Return the log-probability of one token in each row."""
    return log_probs.gather(1, tokens[:, None])[:, 0].tolist()


# -- temperature, top-k and top-p ------------------------------------------------------------------------------------


def warp_log_probs(log_probs: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0) -> Tensor:
    """Apply temperature, top-k and top-p to distributions, in this order, with renormalisation.  # (rows, |V|) each

    The temperature gives P^(1/temperature), `top_k` keeps the most probable words, and `top_p` keeps the nucleus: the
    fewest words whose mass reaches `top_p`. Of words with equal probability, those with lower ids are kept.

    >>> half = torch.tensor([[0.5, 0.25, 0.25]]).log()
    >>> warp_log_probs(half, top_k=2).exp(), warp_log_probs(half, top_p=0.5).exp()
    (tensor([[0.6667, 0.3333, 0.0000]]), tensor([[1., 0., 0.]]))
    """
    best = log_probs.max(dim=1, keepdim=True).values  # subtracted so that the best stays finite at low temperatures
    result = ((log_probs - best) / temperature).log_softmax(dim=1)
    if top_k is not None and top_k < log_probs.shape[1]:
        result = _renormalize(result, _top_k_mask(result, top_k))
    if top_p < 1:
        result = _renormalize(result, _nucleus_mask(result, top_p))
    return result


def _renormalize(log_probs: Tensor, mask: Tensor) -> Tensor:
    return log_probs.masked_fill(~mask, -torch.inf).log_softmax(dim=1)


def _top_k_mask(log_probs: Tensor, k: int) -> Tensor:
    """Return whether each word is among the k most probable.  # (rows, |V|)"""
    least = log_probs.topk(k, dim=1).values[:, -1:]  # (rows, 1)
    above, tied = log_probs > least, log_probs == least
    room = k - above.sum(dim=1, keepdim=True)
    return above | (tied & (tied.cumsum(dim=1) <= room))


def _nucleus_mask(log_probs: Tensor, p: float) -> Tensor:
    """Return whether each word is among the fewest most probable words whose mass reaches p.  # (rows, |V|)"""
    ordered, words = log_probs.sort(dim=1, descending=True, stable=True)
    probs = ordered.exp()
    before = probs.cumsum(dim=1) - probs  # the mass of more probable words
    return torch.zeros_like(probs, dtype=torch.bool).scatter(1, words, before < p * (1 - MASS_TOLERANCE))
