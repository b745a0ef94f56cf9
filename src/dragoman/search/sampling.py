"""Drawing sentences from a model (tutorial, alg. encdec:sample)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.core.scorer import Scorer, State, fold, select_rows
from dragoman.data.batches import Batch
from dragoman.data.corpus import SourceCorpus
from dragoman.search.hypothesis import Hypothesis, attention_weights, attention_widths
from dragoman.search.length import DEFAULT_MAX_WORDS, MaxWords, word_limits

MAX_PROBABILITIES = 1 << 21  # probabilities to hold at a time, unless a batch size is given
MASS_TOLERANCE = 1e-12  # of a mass added up: a set that falls short of p by less reaches it

Warp = Callable[[Tensor], Tensor]  # the model's distributions -> those that are drawn from.  # (rows, |V|) both


def sample(scorer: Scorer, n: int, seed: int = 0, **how: Any) -> list[Hypothesis]:
    """Draw n sentences; how: see `samples`.

    >>> from dragoman import Corpus, NgramModel
    >>> model = NgramModel.train(Corpus.from_sentences(["a b"]), order=2, smoothing="maximum-likelihood")
    >>> [(drawn.words, drawn.log_prob) for drawn in sample(model, 1)]
    [((3, 4), 0.0)]
    """
    return list(iter_samples(scorer, n, seed, **how))


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
    """Draw n sentences E ~ P(E), word by word (ancestral sampling), all of them going on from the same prefix.

    Each word is drawn from the model's distribution as `narrowed` leaves it: by default, as it is. A hypothesis'
    `log_prob` is that of the whole sentence by the model, its `score` that of what was drawn, by the distributions
    drawn from. Sample number i depends on the seed and i alone, however many are drawn; some at a time are drawn
    together, and come when they are.
    """
    narrow = _make_warp(temperature, top_k, top_p, seed)
    if 0 < len(prefix) >= max_words:
        raise DataError(f"a prefix of {len(prefix)} words leaves no room for more; allow more than {max_words} words")
    for numbers in _ranges(n, batch_size or _default_batch_size(scorer)):
        random = [np.random.default_rng([seed, number]) for number in numbers]
        limits = [max_words] * len(numbers)
        batch, one = Batch.empty(1), torch.zeros(len(numbers), dtype=torch.int64)
        yield from _sample_rows(scorer, _start_from_prefix(scorer, batch, tuple(prefix), one), random, narrow, limits)


def sample_translations(
    scorer: Scorer, source: SourceCorpus, n: int = 1, seed: int = 0, **how: Any
) -> list[list[Hypothesis]]:
    """Draw n translations of each sentence; how: see `samples_given`."""
    return list(iter_sample_translations(scorer, source, n, seed, **how))


def iter_sample_translations(
    scorer: Scorer,
    source: SourceCorpus,
    n: int = 1,
    seed: int = 0,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    max_words: MaxWords = None,
    batch_size: int | None = None,
) -> Iterator[list[Hypothesis]]:
    """Draw n translations E ~ P(E | F) of each sentence F, as `samples` draws sentences.

    Sample number i of a sentence depends on the seed, the sentence's number and i alone. All samples of a sentence that
    are drawn together share what was read of it. `max_words`: see `length.word_limits`.
    """
    narrow = _make_warp(temperature, top_k, top_p, seed)
    limits = word_limits(max_words, Batch.empty(len(source), source)).tolist()
    drawn: list[Hypothesis] = []
    for numbers in _ranges(len(source) * n, batch_size or _default_batch_size(scorer)):
        pairs = [divmod(number, n) for number in numbers]  # the sentence, and which of its samples
        first = pairs[0][0]
        part = source.select(np.arange(first, pairs[-1][0] + 1))
        owners = torch.tensor([sentence - first for sentence, _ in pairs])
        begun = _start_from_prefix(scorer, Batch.empty(len(part), part), (), owners)
        random = [np.random.default_rng([seed, *pair]) for pair in pairs]
        drawn += _sample_rows(scorer, begun, random, narrow, [limits[sentence] for sentence, _ in pairs])
        while n and len(drawn) >= n:
            yield drawn[:n]
            drawn = drawn[n:]
    if not n:
        yield from ([] for _ in range(len(source)))


def _make_warp(temperature: float, top_k: int | None, top_p: float, seed: int) -> Warp:
    """The cuts asked for, if there are such cuts."""
    if not 0 < temperature < float("inf"):
        raise DataError(f"a temperature of {temperature}: it must be a number above 0")
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
    """The numbers below n, so many at a time."""
    return (range(first, min(n, first + size)) for first in range(0, n, size))


@dataclass(frozen=True)
class _PrefixState:
    """Rows that have all read the same prefix."""

    state: State
    prefix: tuple[int, ...]
    log_prob: list[float]  # of the prefix, in each row
    columns: list[int]  # of the attention that belong to each row


def _start_from_prefix(scorer: Scorer, batch: Batch, prefix: tuple[int, ...], owners: Tensor) -> _PrefixState:
    """Rows, each for the sentence of the batch that `owners` says; every sentence is read once.  # owners: (rows,)"""
    state, log_prob = _read_prefix(scorer, batch, prefix)
    columns = torch.tensor(attention_widths(batch.source, batch.num_rows))
    return _PrefixState(select_rows(state, owners), prefix, log_prob[owners].tolist(), columns[owners].tolist())


def _read_prefix(scorer: Scorer, batch: Batch, prefix: tuple[int, ...]) -> tuple[State, Tensor]:
    """The state of each sentence after the prefix, and log P(prefix).  # (sentences,)"""
    if not prefix:
        return scorer.start(batch), torch.zeros(batch.num_rows, dtype=torch.float64)
    words = torch.tensor([prefix] * batch.num_rows)
    steps, state = fold(scorer, Batch(words, torch.full((batch.num_rows,), len(prefix)), batch.source))
    return state, steps.double().sum(dim=1)


def _sample_rows(
    scorer: Scorer, begun: _PrefixState, random: list[np.random.Generator], narrow: Warp, limits: list[int]
) -> list[Hypothesis]:
    """A sentence for each row, by the row's own random numbers."""
    state = begun.state
    found = [Hypothesis(begun.prefix, log_prob, 0.0, finished=False) for log_prob in begun.log_prob]
    attended: list[list[Tensor]] = [[] for _ in found]
    active = [row for row, limit in enumerate(limits) if len(begun.prefix) < limit]
    while active:
        log_probs = scorer.log_probs(state).double()  # (active, |V|)
        narrow_log_probs = narrow(log_probs)
        if (attention := attention_weights(scorer, state)) is not None:
            for row, weights in zip(active, attention, strict=True):
                attended[row].append(weights)
        thresholds = torch.tensor([random[row].random() for row in active], dtype=torch.float64)
        drawn = _draw(narrow_log_probs, thresholds)
        costs = zip(_gather(log_probs, drawn), _gather(narrow_log_probs, drawn), strict=True)
        for row, word, (cost, narrow_cost) in zip(active, drawn.tolist(), costs, strict=True):
            found[row] = found[row].extend(word, cost, narrow_cost)
        places = enumerate(active)
        going = [place for place, row in places if not found[row].finished and len(found[row].ids) < limits[row]]
        if going:
            rows = torch.tensor(going)
            state = scorer.advance(select_rows(state, rows), drawn[rows])
        active = [active[place] for place in going]
    each = zip(found, attended, begun.columns, strict=True)
    return [hypothesis.with_attention(rows, columns) for hypothesis, rows, columns in each]


def _draw(log_probs: Tensor, thresholds: Tensor) -> Tensor:
    """The word at which the cumulative probability passes the threshold.  # (rows,)"""
    cumulative = log_probs.exp().cumsum(dim=1)
    target = (thresholds * cumulative[:, -1])[:, None]
    return torch.searchsorted(cumulative, target, right=True)[:, 0].clamp(max=log_probs.shape[1] - 1)


def _gather(log_probs: Tensor, words: Tensor) -> list[float]:
    """The log-probability of one word in each row."""
    return log_probs.gather(1, words[:, None])[:, 0].tolist()


# -- which words may be drawn, and how often -------------------------------------------------------------------------


def warp_log_probs(log_probs: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0) -> Tensor:
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
        result = _renormalize(result, _top_k_mask(result, top_k))
    if top_p < 1:
        result = _renormalize(result, _nucleus_mask(result, top_p))
    return result


def _renormalize(log_probs: Tensor, kept: Tensor) -> Tensor:
    return log_probs.masked_fill(~kept, -torch.inf).log_softmax(dim=1)


def _top_k_mask(log_probs: Tensor, k: int) -> Tensor:
    """Whether a word is one of the k most probable.  # (rows, |V|)"""
    least = log_probs.topk(k, dim=1).values[:, -1:]  # (rows, 1)
    above, tied = log_probs > least, log_probs == least
    room = k - above.sum(dim=1, keepdim=True)
    return above | (tied & (tied.cumsum(dim=1) <= room))


def _nucleus_mask(log_probs: Tensor, p: float) -> Tensor:
    """Whether a word is one of the fewest, the most probable ones, whose mass reaches p.  # (rows, |V|)"""
    ordered, words = log_probs.sort(dim=1, descending=True, stable=True)
    probs = ordered.exp()
    before = probs.cumsum(dim=1) - probs  # the mass of the words that come first
    return torch.zeros_like(probs, dtype=torch.bool).scatter(1, words, before < p * (1 - MASS_TOLERANCE))
