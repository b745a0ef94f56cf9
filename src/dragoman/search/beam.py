"""Greedy search, beam search and n-best lists (tutorial, section "Beam Search"), batched over sentences and hypotheses.

In every step each active hypothesis of a sentence is continued by every word, `</s>` among them, and of all these
continuations the best stay. What is compared in a step is always log P of all the words so far, `</s>` too where there
is one. A continuation that ends with `</s>` is finished: it keeps its place in the beam, leaves the batch, and has its
score from the length handling; finished hypotheses of a sentence compare by their scores. So there are as many places
for those that are still active as the beam has, less the finished ones, and a beam of one is greedy search.

A sentence is done when its beam is full of finished hypotheses, or when no active one can be among the n best any more:
the length handling gives a bound on what can become of them.

Greedy search fails where the best beginning is not the best sentence's:

>>> import math
>>> from dragoman.search.graph_scorer import FORKED
>>> from dragoman.data.batches import Batch
>>> [[found]] = greedy(FORKED, Batch.to_generate(1))
>>> FORKED.spelled(found.words), round(math.exp(found.log_prob), 2)
('b a', 0.12)
>>> [[found]] = beam_search(FORKED, Batch.to_generate(1), beam_size=2)
>>> FORKED.spelled(found.words), round(math.exp(found.log_prob), 2)
('a', 0.36)
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.core.scorer import Scorer, State, candidate_log_probs, select_rows, select_sentences
from dragoman.data.batches import Batch
from dragoman.data.corpus import SourceCorpus
from dragoman.data.vocabulary import END
from dragoman.search.coverage import coverage_penalty
from dragoman.search.hypothesis import Hypothesis, attention_weights, attention_widths
from dragoman.search.lattice import Continuations, Lattice
from dragoman.search.length import LengthHandling, MaxWords, NoLengthHandling, source_lengths, word_limits

ACTIVE_HYPOTHESES = 320  # hypotheses that `search_all` has active at a time
TOP_K_BLOCK = 64  # words among which the best is found at once
DROP_MEMORY_SHARE = 1 / 8  # of the sentences in memory: when so many are done, what is remembered of them is dropped


def greedy_search(scorer: Scorer, batch: Batch, **how: Any) -> list[list[Hypothesis]]:
    """The best word at every step: a beam of one. How: see `beam_search`."""
    return beam_search(scorer, batch, beam_size=1, **how)


@torch.no_grad()
def beam_search(
    scorer: Scorer,
    batch: Batch,
    beam_size: int = 5,
    n_best: int = 1,
    *,
    length: LengthHandling = NoLengthHandling(),
    max_words: MaxWords = None,
    coverage: float = 0.0,
    lattice: Lattice | None = None,
    on_step: Callable[[], None] | None = None,
) -> list[list[Hypothesis]]:
    """The n best sentences that a beam finds for each row of a batch that was made `to_generate`, best first.

    With `coverage`, what a translation leaves out of its source is penalised, by so much. A hypothesis that has
    `max_words` words (see `length.word_limits`) before its `</s>` is cut off; those are returned where nothing else was
    found, with the score that they would have if they ended there. A `lattice` is told of all that happens. What is
    called before `each_step` may raise an exception to give the search up.
    """
    if beam_size < 1 or not 1 <= n_best <= beam_size:
        raise DataError(f"the {n_best} best of a beam of {beam_size}: ask for one or more, and for no more than it has")
    if not batch.num_rows:
        return []
    limits = word_limits(max_words, batch)
    if coverage < 0 or (coverage and batch.source is None):
        raise DataError(f"a coverage penalty of {coverage}: give 0 or more, and a source to cover")
    task = _SearchTask(scorer, beam_size, n_best, length, limits, source_lengths(batch), coverage, lattice, on_step)
    trail, ends = _search(task, batch)
    return _trace_hypotheses(trail, [ends.best(sentence, n_best) for sentence in range(batch.num_rows)], batch.source)


def beam_search_corpus(
    scorer: Scorer, source: SourceCorpus, *, rows: int = ACTIVE_HYPOTHESES, **how: Any
) -> list[list[Hypothesis]]:
    """The n best translations of each sentence of a text, in its order. How: see `beam_search`.

    Sentences of like lengths are searched together, so many that there are about `rows` hypotheses; that changes
    nothing in what is found.
    """
    order = np.argsort(-source.sizes, kind="stable")  # the longest first: if memory is short, it is known at once
    found: list[list[Hypothesis]] = [[]] * len(source)
    beam_size, limits = how.pop("beam_size", 5), how.pop("max_words", None)
    together = max(1, rows // max(1, beam_size))
    for first in range(0, len(order), together):
        numbers = order[first : first + together]
        batch = Batch.empty(len(numbers), source.select(numbers))
        part = limits[torch.from_numpy(numbers)] if isinstance(limits, Tensor) and limits.dim() else limits
        for number, best in zip(numbers, beam_search(scorer, batch, beam_size, max_words=part, **how), strict=True):
            found[number] = best
    return found


# -- the search --------------------------------------------------------------------------------------------------------


class _SearchTask(NamedTuple):
    """What does not change in a search."""

    scorer: Scorer
    beam_size: int
    n_best: int
    length: LengthHandling
    limits: Tensor  # (sentences,) words at which a hypothesis is cut off
    source_words: Tensor | None  # (sentences,)
    coverage: float  # strength of the penalty on what is left out
    lattice: Lattice | None
    each_step: Callable[[], None] | None

    def score(self, log_prob: Tensor, words: int, sentence: Tensor) -> Tensor:
        """Of hypotheses that end with so many words.  # (n,)"""
        return self.length.score(log_prob, torch.full_like(sentence, words), self._source_words(sentence))

    def bound(self, log_prob: Tensor, words: int, sentence: Tensor) -> Tensor:
        """The highest score that these can come to. One that ends has fewer words than the limit.  # (n,)"""
        now, longest = torch.full_like(sentence, words), self.limits[sentence] - 1
        return self.length.bound(log_prob, now, longest, self._source_words(sentence))

    def coverage_penalty(self, covered: Tensor | None, some: Continuations) -> Tensor | float:
        """The penalty on what continuations leave out so far.  # covered: (rows, longest source) -> (n,)"""
        if not self.coverage or covered is None or self.source_words is None:
            return 0.0
        return coverage_penalty(covered[some.row], self.source_words[some.sentence], self.coverage)

    def _source_words(self, sentence: Tensor) -> Tensor | None:
        return None if self.source_words is None else self.source_words[sentence]


class _ActiveHypotheses(NamedTuple):
    """The active hypotheses, those of a sentence together, the best of them first."""

    state: State
    sentence: Tensor  # (rows,) its number in the batch
    log_prob: Tensor  # (rows,) 64 bits: it is a sum of many
    origin: Tensor  # (rows,) which of the continuations kept in the step before it is
    remembered: int  # sentences in the state's memory
    covered: Tensor | None = None  # (rows, longest source) the sum of its attention so far, if that has a say


class _TrailStep(NamedTuple):
    """What is needed to find the way back."""

    kept: Continuations
    attention: Tensor | None  # (rows before the step, longest source)


class _Ending(NamedTuple):
    """A hypothesis that is finished, or cut off."""

    step: int  # of the step, from 0
    number: int  # among those that were kept in it
    log_prob: float
    score: float
    finished: bool


def _search(task: _SearchTask, batch: Batch) -> tuple[list[_TrailStep], _Endings]:
    """Take steps until every sentence is done."""
    front = _start(task, batch)
    trail, ends = list[_TrailStep](), _Endings(batch.num_rows, task.n_best)
    room = torch.full((batch.num_rows,), task.beam_size)  # places in the beam that no finished hypothesis has
    while len(front.sentence):
        if task.each_step is not None:
            task.each_step()
        words = len(trail)
        attention = attention_weights(task.scorer, front.state)
        kept, pruned = _expand(front, room, task)
        ended = kept.token == END
        covered = _add_attention(task, front, attention)
        score = task.score(kept.log_prob, words, kept.sentence) + task.coverage_penalty(covered, kept)
        if task.lattice is not None:
            told = task.score(pruned.log_prob, words, pruned.sentence) + task.coverage_penalty(covered, pruned)
            task.lattice.record(kept, score, pruned, told)
        trail.append(_TrailStep(kept, attention))
        room -= torch.bincount(kept.sentence[ended], minlength=len(room))
        ends.add(kept, score, ended, words, finished=True)
        cut = ~ended & (task.limits[kept.sentence] <= words + 1)
        if bool(cut.any()):
            there = task.score(kept.log_prob, words + 1, kept.sentence) + task.coverage_penalty(covered, kept)
            ends.add(kept, there, cut, words, finished=False)
        going = ~(ended | cut)
        going &= _can_improve(task, kept, going, words + 1, ends.worst)
        front = _advance(task.scorer, front._replace(covered=covered), kept, going)
    return trail, ends


def _add_attention(task: _SearchTask, front: _ActiveHypotheses, attention: Tensor | None) -> Tensor | None:
    """The attention of each row so far, that for the next word among it.  # (rows, longest source)"""
    if not task.coverage:
        return None
    if attention is None:
        raise DataError("a coverage penalty goes by attention, and this translator has none; leave it out")
    return attention if front.covered is None else front.covered + attention


def _start(task: _SearchTask, batch: Batch) -> _ActiveHypotheses:
    sentence = torch.arange(batch.num_rows)
    if task.lattice is not None:
        task.lattice.start(batch.num_rows)
    log_prob = torch.zeros(batch.num_rows, dtype=torch.float64)
    return _ActiveHypotheses(task.scorer.start(batch), sentence, log_prob, sentence, batch.num_rows)


def _expand(front: _ActiveHypotheses, room: Tensor, task: _SearchTask) -> tuple[Continuations, Continuations]:
    """The continuations for which there is room, best first within each sentence, and the best of the others.

    # room: (sentences,)
    """
    spare = 0 if task.lattice is None else task.lattice.max_pruned
    values, words = (best.cpu() for best in _best_next_words(task.scorer, front.state, task.beam_size + spare))
    k = values.shape[1]
    sentences, group, counts = torch.unique_consecutive(front.sentence, return_inverse=True, return_counts=True)
    first = counts.cumsum(0) - counts  # (sentences active,) the first row of each
    place = torch.arange(len(group)) - first[group]
    grid = torch.full((len(sentences), int(counts.max()), k), -torch.inf, dtype=torch.float64)
    grid[group, place] = values.double() + front.log_prob[:, None]
    ranked, at = grid.flatten(1).sort(dim=1, descending=True, stable=True)  # (sentences active, rows of each * k)
    rank, places = torch.arange(ranked.shape[1]), room[sentences][:, None]
    possible = ranked > -torch.inf

    def those(chosen: Tensor) -> Continuations:
        which, ranks = (chosen & possible).nonzero(as_tuple=True)
        taken = at[which, ranks]
        row = first[which] + taken // k
        return Continuations(sentences[which], row, front.origin[row], words[row, taken % k], ranked[which, ranks])

    return those(rank < places), those((rank >= places) & (rank < places + spare))


def _best_next_words(scorer: Scorer, state: State, k: int) -> tuple[Tensor, Tensor]:
    """The k best next words of each row, or all that can come, and their log-probabilities.  # (rows, k) twice"""
    log_probs, words = candidate_log_probs(scorer, state)
    values, places = top_k_words(log_probs, min(k, log_probs.shape[1]))
    return values, places if words is None else words[places]


def top_k_words(log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best words of each row and their log-probabilities, best first.  # (rows, |V|) -> (rows, k) twice

    The k best are in the k blocks that have the best words; looking for those first takes one fast pass.

    >>> best_words(torch.tensor([[0.1, 0.5, 0.4]]).log(), 2)[1]
    tensor([[1, 2]])
    """
    blocks = log_probs.shape[1] // TOP_K_BLOCK
    if blocks < 2 * k:
        return log_probs.topk(k, dim=1)
    grid = log_probs[:, : blocks * TOP_K_BLOCK].unflatten(1, (blocks, TOP_K_BLOCK))  # (rows, blocks, BLOCK)
    best = grid.amax(dim=2).topk(k, dim=1).indices.sort(dim=1).values  # (rows, k)
    inside = grid.gather(1, best[:, :, None].expand(-1, -1, TOP_K_BLOCK)).flatten(1)  # (rows, k * BLOCK)
    rest = log_probs[:, blocks * TOP_K_BLOCK :]  # (rows, fewer than BLOCK)
    values, at = torch.cat([inside, rest], dim=1).topk(k, dim=1)
    starts = torch.cat(
        [best * TOP_K_BLOCK, best.new_full((len(best), 1), blocks * TOP_K_BLOCK)], dim=1
    )  # (rows, k + 1)
    return values, starts.gather(1, at // TOP_K_BLOCK) + at % TOP_K_BLOCK


def _can_improve(task: _SearchTask, kept: Continuations, going: Tensor, words: int, worst: Tensor) -> Tensor:
    """Whether the n best of a sentence can still change: one that goes on may pass the worst of them.  # (kept,)"""
    if not bool((worst[kept.sentence] > -torch.inf).any()):
        return torch.ones_like(going)
    bound = task.bound(kept.log_prob, words, kept.sentence)
    hopeful = torch.zeros(len(worst), dtype=torch.bool)
    hopeful[kept.sentence[going & (bound > worst[kept.sentence])]] = True
    return hopeful[kept.sentence]


def _advance(scorer: Scorer, front: _ActiveHypotheses, kept: Continuations, going: Tensor) -> _ActiveHypotheses:
    """The hypotheses that go on, one word later."""
    origin = going.nonzero()[:, 0]  # (rows,)
    sentence, log_prob = kept.sentence[origin], kept.log_prob[origin]
    if not len(origin):
        return _ActiveHypotheses(front.state, sentence, log_prob, origin, front.remembered)
    state, remembered = select_rows(front.state, kept.row[origin]), front.remembered
    covered = None if front.covered is None else front.covered[kept.row[origin]]
    if state.sentence is not None:
        present = torch.unique(state.sentence)
        if len(present) <= (1 - DROP_MEMORY_SHARE) * remembered:
            state, remembered = select_sentences(state, present), len(present)
    return _ActiveHypotheses(scorer.advance(state, kept.token[origin]), sentence, log_prob, origin, remembered, covered)


# -- what was found ----------------------------------------------------------------------------------------------------


class _Endings:
    """The hypotheses of each sentence that are finished or cut off."""

    def __init__(self, sentences: int, n_best: int):
        self.n_best = n_best
        self.worst = torch.full((sentences,), -torch.inf, dtype=torch.float64)  # score of the n-th best finished one
        self._of: list[list[_Ending]] = [[] for _ in range(sentences)]
        self._scores: list[list[float]] = [[] for _ in range(sentences)]  # of the finished, the highest last

    def add(self, kept: Continuations, score: Tensor, which: Tensor, step: int, *, finished: bool) -> None:
        """Those of the kept ones that ended in this step.  # score, which: (kept,)"""
        numbers = which.nonzero()[:, 0]
        each = (numbers, kept.sentence[numbers], kept.log_prob[numbers], score[numbers])
        for number, sentence, log_prob, value in zip(*(part.tolist() for part in each), strict=True):
            self._of[sentence].append(_Ending(step, number, log_prob, value, finished))
            if finished:
                insort(self._scores[sentence], value)
                if len(self._scores[sentence]) >= self.n_best:
                    self.worst[sentence] = self._scores[sentence][-self.n_best]

    def best(self, sentence: int, n: int) -> list[_Ending]:
        """The n best finished ones, or if there are none, the n best that were cut off."""
        ends = self._of[sentence]
        ends = [end for end in ends if end.finished] or ends
        return sorted(ends, key=lambda end: -end.score)[:n]


def _trace_hypotheses(
    trail: list[_TrailStep], lists: list[list[_Ending]], source: SourceCorpus | None
) -> list[list[Hypothesis]]:
    """The hypotheses that led to these ends, for each sentence."""
    ends = [(sentence, end) for sentence, best in enumerate(lists) for end in best]
    words, attention = _trace_back(trail, [end for _, end in ends])
    columns = attention_widths(source, len(lists))
    found: list[list[Hypothesis]] = [[] for _ in lists]
    for row, ((sentence, end), way) in enumerate(zip(ends, words.tolist(), strict=True)):
        predicted = end.step + 1
        looked = None if attention is None else attention[row, :predicted, : columns[sentence]].clone()
        spelled = tuple(way[: predicted - 1 if end.finished else predicted])
        found[sentence].append(Hypothesis(spelled, end.log_prob, end.score, end.finished, looked))
    return found


def _trace_back(trail: list[_TrailStep], ends: list[_Ending]) -> tuple[Tensor, Tensor | None]:
    """The words of each end, and the attention with which each was predicted, all ends at once, from the last step.

    # (ends, steps), (ends, steps, longest source); what is after an end means nothing
    """
    step, at = torch.tensor([(end.step, end.number) for end in ends]).T.contiguous().unbind()  # (ends,) both
    words = torch.full((len(ends), len(trail)), END)
    looked = trail[0].attention
    attention = None if looked is None else looked.new_zeros(len(ends), len(trail), looked.shape[1])
    for t in range(int(step.max()), -1, -1):
        kept, looked = trail[t]
        which = (step >= t).nonzero()[:, 0]
        number = at[which]
        words[which, t] = kept.token[number]
        if attention is not None and looked is not None:
            attention[which, t] = looked[kept.row[number]]
        at[which] = kept.parent[number]
    return words, attention
