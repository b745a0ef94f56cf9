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
from dragoman.data.vocabulary import UNK
from dragoman.search.hypothesis import Hypothesis, attention_weights, attention_widths
from dragoman.search.length import DEFAULT_MAX_WORDS, MaxWords, word_limits

MAX_PROBABILITIES = 1 << 21  # in memory at a time, if no batch size is given
MASS_TOLERANCE = 1e-12  # relative rounding error of a sum of probabilities

Warp = Callable[[Tensor], Tensor]  # from the model's distributions to those that are sampled from.  # (rows, |V|) each


class SamplingKwargs(TypedDict, total=False):
    """Options of sampling. Each token is sampled from the model's distribution after `warp_log_probs`."""

    temperature: float
    top_k: int | None
    top_p: float
    batch_size: int | None  # sentences that are sampled together
    redraw_unknown: bool  # whether a token is sampled again without `<unk>` if it is `<unk>`


def sample(
    scorer: Scorer,
    n: int,
    seed: int = 0,
    *,
    prefix: Sequence[int] = (),
    max_words: int = DEFAULT_MAX_WORDS,
    **options: Unpack[SamplingKwargs],
) -> list[Hypothesis]:
    """Sample n sentences, see `iter_samples`.

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
    prefix: Sequence[int] = (),
    max_words: int = DEFAULT_MAX_WORDS,
    **options: Unpack[SamplingKwargs],
) -> Iterator[Hypothesis]:
    """Yield n samples E ~ P(E), token by token (ancestral sampling), all with the same prefix.

    `log_prob` of a hypothesis is that of the whole sentence by the model, `score` that of the sampled tokens by the
    warped distributions. Sample number i depends only on the seed and on i.
    """
    draw, batch_size = _check_options(scorer, seed, **options)
    if 0 < len(prefix) >= max_words:
        raise DataError(f"a prefix of {len(prefix)} words leaves no room for more; allow more than {max_words} words")
    state, log_prob = scorer.start(Batch.empty(1)), 0.0
    if prefix:
        steps, state = fold(scorer, Batch(torch.tensor([prefix]), torch.tensor([len(prefix)])))
        log_prob = float(steps.double().sum())
    start = Hypothesis(tuple(prefix), log_prob, 0.0, finished=False)
    for first in range(0, n, batch_size):
        generators = [np.random.default_rng([seed, number]) for number in range(first, min(n, first + batch_size))]
        rows = torch.zeros(len(generators), dtype=torch.int64)
        limits = [max_words] * len(rows)
        yield from _sample_rows(scorer, select_rows(state, rows), [start] * len(rows), generators, draw, limits)


def sample_translations(
    scorer: Scorer,
    source: Corpus,
    n: int = 1,
    seed: int = 0,
    *,
    max_words: MaxWords = None,
    **options: Unpack[SamplingKwargs],
) -> list[list[Hypothesis]]:
    """Sample n translations E ~ P(E | F) of each sentence F. See also `iter_samples`.

    Sample number i of a sentence depends only on the seed, on the number of the sentence and on i. Samples of a
    sentence share its encoding. For `max_words`, see `length.word_limits`.
    """
    draw, batch_size = _check_options(scorer, seed, **options)
    limits = word_limits(max_words, Batch.empty(len(source), source)).tolist()
    widths = attention_widths(source, len(source))
    pairs = [(sentence, number) for sentence in range(len(source)) for number in range(n)]
    hypotheses: list[Hypothesis] = []
    for first in range(0, len(pairs), batch_size):
        batch = pairs[first : first + batch_size]
        numbers = np.arange(batch[0][0], batch[-1][0] + 1)  # of the sentences
        state = scorer.start(Batch.empty(len(numbers), source.select(numbers)))
        state = select_rows(state, torch.tensor([sentence - batch[0][0] for sentence, _ in batch]))
        start = [Hypothesis((), 0.0, 0.0, finished=False)] * len(batch)
        generators = [np.random.default_rng([seed, *pair]) for pair in batch]
        batch_limits, batch_widths = ([values[sentence] for sentence, _ in batch] for values in (limits, widths))
        hypotheses += _sample_rows(scorer, state, start, generators, draw, batch_limits, batch_widths)
    return [hypotheses[n * sentence : n * (sentence + 1)] for sentence in range(len(source))]


def _check_options(
    scorer: Scorer,
    seed: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    batch_size: int | None = None,
    redraw_unknown: bool = False,
) -> tuple[_Draw, int]:
    """Return how tokens are drawn, and the batch size."""
    if not 0 < temperature < float("inf"):
        raise DataError(f"temperature {temperature}: must be a finite number above 0")
    if top_k is not None and top_k < 1:
        raise DataError(f"top_k {top_k}: must be at least 1")
    if not 0 < top_p <= 1:
        raise DataError(f"top_p {top_p}: must be above 0 and at most 1")
    if seed < 0:
        raise DataError(f"seed {seed}: must be at least 0")
    warp = partial(warp_log_probs, temperature=temperature, top_k=top_k, top_p=top_p)
    return _Draw(warp, redraw_unknown), batch_size or max(1, min(64, MAX_PROBABILITIES // len(scorer.vocab)))


def _sample_rows(
    scorer: Scorer,
    state: State,
    hypotheses: list[Hypothesis],
    generators: list[np.random.Generator],
    draw: _Draw,
    limits: list[int],
    widths: list[int] | None = None,
) -> list[Hypothesis]:
    """Continue each row's hypothesis to a sentence, by the row's generator. `widths` are those of the attention."""
    hypotheses = list(hypotheses)
    attention: list[list[Tensor]] = [[] for _ in hypotheses]
    active = [row for row, limit in enumerate(limits) if len(hypotheses[row].ids) < limit]
    while active:
        log_probs = scorer.log_probs(state).double()  # (active, |V|)
        if (step_attention := attention_weights(scorer, state)) is not None:
            for row, weights in zip(active, step_attention, strict=True):
                attention[row].append(weights)
        tokens, warped = draw(log_probs, [generators[row] for row in active])  # (active, 1), (active, |V|)
        columns = (tokens, log_probs.gather(1, tokens), warped.gather(1, tokens))
        for row, *extension in zip(active, *(column[:, 0].tolist() for column in columns), strict=True):
            hypotheses[row] = hypotheses[row].extend(*extension)
        continuing = [
            index
            for index, row in enumerate(active)
            if not hypotheses[row].finished and len(hypotheses[row].ids) < limits[row]
        ]
        if continuing:
            indices = torch.tensor(continuing)
            state = scorer.advance(select_rows(state, indices), tokens[indices, 0])
        active = [active[index] for index in continuing]
    rows = zip(hypotheses, attention, widths or [0] * len(hypotheses), strict=True)
    return [hypothesis.with_attention(weights, width) for hypothesis, weights, width in rows]


@dataclass(frozen=True)
class _Draw:
    """How tokens are drawn from a model's distributions."""

    warp: Warp
    redraw_unknown: bool

    def __call__(self, log_probs: Tensor, generators: Sequence[np.random.Generator]) -> tuple[Tensor, Tensor]:
        """Draw one token per row by its generator, and return the distributions drawn from.  # (rows, 1), (rows, |V|)"""
        warped = self.warp(log_probs)
        tokens = _draw_tokens(warped, generators)
        for row in torch.nonzero(tokens[:, 0] == UNK)[:, 0].tolist() if self.redraw_unknown else ():
            known = log_probs[row : row + 1].clone()
            known[:, UNK] = -torch.inf
            if bool(known.isfinite().any()):
                warped[row] = self.warp(known)[0]
                tokens[row] = _draw_tokens(warped[row : row + 1], generators[row : row + 1])[0]
        return tokens, warped


def _draw_tokens(log_probs: Tensor, generators: Sequence[np.random.Generator]) -> Tensor:
    cumulative = log_probs.exp().cumsum(dim=1)
    thresholds = torch.tensor([generator.random() for generator in generators], dtype=torch.float64)
    targets = (thresholds * cumulative[:, -1])[:, None]
    return torch.searchsorted(cumulative, targets, right=True).clamp(max=log_probs.shape[1] - 1)


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
        least = result.topk(top_k, dim=1).values[:, -1:]  # (rows, 1)
        above, tied = result > least, result == least
        mask = above | (tied & (tied.cumsum(dim=1) <= top_k - above.sum(dim=1, keepdim=True)))
        result = result.masked_fill(~mask, -torch.inf).log_softmax(dim=1)
    if top_p < 1:
        ordered, words = result.sort(dim=1, descending=True, stable=True)
        probs = ordered.exp()
        mass_before = probs.cumsum(dim=1) - probs  # the mass of more probable words
        mask = torch.zeros_like(probs, dtype=torch.bool).scatter(1, words, mass_before < top_p * (1 - MASS_TOLERANCE))
        result = result.masked_fill(~mask, -torch.inf).log_softmax(dim=1)
    return result
