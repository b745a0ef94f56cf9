"""Greedy search, beam search and n-best lists (tutorial, section "Beam Search"), batched over sentences and hypotheses.

In each step, every active hypothesis of a sentence is continued by every token, and the best continuations by log P are
kept. A continuation by `</s>` is finished: it keeps its place in the beam, leaves the batch, and its score comes from
the length handling; finished hypotheses are ranked by their scores. So the number of active hypotheses is at most the
beam size minus the number of finished ones, and a beam of size one is greedy search.

A sentence is done when its beam is full of finished hypotheses, or when no active one can reach the n best any more:
the length handling bounds their scores.

Greedy search fails if the most probable prefix does not begin the most probable sentence:

>>> import math
>>> from dragoman.search.scorers import EXAMPLE_SCORER
>>> from dragoman.data.batches import Batch
>>> [[hypothesis]] = greedy_search(EXAMPLE_SCORER, Batch.empty(1))
>>> EXAMPLE_SCORER.text(hypothesis.ids), round(math.exp(hypothesis.log_prob), 2)
('b a', 0.12)
>>> [[hypothesis]] = beam_search(EXAMPLE_SCORER, Batch.empty(1), beam_size=2)
>>> EXAMPLE_SCORER.text(hypothesis.ids), round(math.exp(hypothesis.log_prob), 2)
('a', 0.36)
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.core.defaults import DEFAULT_BEAM_SIZE
from dragoman.core.errors import DataError
from dragoman.core.scorer import Scorer, State, candidate_log_probs, select_rows, select_sentences
from dragoman.data.batches import Batch
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END
from dragoman.search.hypothesis import Continuations, Hypothesis, Lattice, attention_weights, attention_widths
from dragoman.search.length import (
    LengthHandling,
    MaxWords,
    NoLengthHandling,
    coverage_penalty,
    source_lengths,
    word_limits,
)

ACTIVE_HYPOTHESES = 320  # in one batch of `beam_search_corpus`
TOP_K_BLOCK = 64  # columns whose maximum is computed first
DROP_MEMORY_SHARE = 1 / 8  # when this share of the sentences in memory is done, their memory is dropped


class BeamSearchKwargs(TypedDict, total=False):
    """The keyword arguments of `beam_search`."""

    length: LengthHandling
    coverage: float
    always_finish: bool
    lattice: Lattice | None
    on_step: Callable[[], None] | None


def greedy_search(
    scorer: Scorer, batch: Batch, *, max_words: MaxWords = None, **options: Unpack[BeamSearchKwargs]
) -> list[list[Hypothesis]]:
    """Take the most probable token in each step: a beam search with a beam of size one."""
    return beam_search(scorer, batch, beam_size=1, max_words=max_words, **options)


@torch.no_grad()
def beam_search(
    scorer: Scorer,
    batch: Batch,
    beam_size: int = DEFAULT_BEAM_SIZE,
    n_best: int = 1,
    *,
    length: LengthHandling = NoLengthHandling(),
    max_words: MaxWords = None,
    coverage: float = 0.0,
    always_finish: bool = False,
    lattice: Lattice | None = None,
    on_step: Callable[[], None] | None = None,
) -> list[list[Hypothesis]]:
    """Return the n best sentences that a beam search finds for each row of an empty batch, best first.

    Args:
        scorer: any model; without a source in the batch, its most probable sentences are searched for.
        batch: see `Batch.empty`.
        length: the length handling, which defines the score.
        max_words: the maximum length, see `length.word_limits`. Hypotheses that reach it are unfinished. They are
            returned only if there are no finished ones, with the score that they would have if they ended there.
        coverage: the strength of the coverage penalty.
        always_finish: instead of unfinished hypotheses, return the best one among those that `</s>` would have finished
            in any step, although it was not in the beam then.
        lattice: records all hypotheses.
        on_step: called before each step; it may raise an exception to stop the search.

    >>> from dragoman import Corpus, NgramModel
    >>> corpus = Corpus.from_sentences(["the cat sat", "the dog sat", "the cat ran"])
    >>> model = NgramModel.train(corpus, order=3, smoothing="witten-bell")
    >>> [[best, second]] = beam_search(model, Batch.empty(1), beam_size=4, n_best=2)
    >>> [corpus.vocab.tokens[token] for token in best.ids]
    ['the', 'cat', 'sat']
    """
    if beam_size < 1 or not 1 <= n_best <= beam_size:
        raise DataError(f"n_best must be between 1 and beam_size (got {n_best}, beam {beam_size})")
    if not batch.num_rows:
        return []
    limits = word_limits(max_words, batch)
    if coverage < 0 or (coverage and batch.source is None):
        raise DataError(f"coverage must be >= 0 and requires a source (got {coverage})")
    search = _BeamSearch(
        scorer=scorer,
        beam_size=beam_size,
        n_best=n_best,
        length=length,
        limits=limits.numpy(),
        source_words=source_lengths(batch),
        coverage=coverage,
        always_finish=always_finish,
        lattice=lattice,
        on_step=on_step,
    )
    backpointers, completed = _search(search, batch)
    return _trace_hypotheses(backpointers, [completed.best(row) for row in range(batch.num_rows)], batch.source)


def beam_search_corpus(
    scorer: Scorer,
    source: Corpus,
    *,
    beam_size: int = DEFAULT_BEAM_SIZE,
    n_best: int = 1,
    max_words: MaxWords = None,
    active_hypotheses: int = ACTIVE_HYPOTHESES,
    **options: Unpack[BeamSearchKwargs],
) -> list[list[Hypothesis]]:
    """Return the n best translations of each sentence of a corpus. For the options, see `beam_search`.

    Sentences of similar lengths are searched in one batch of about `active_hypotheses` rows. Batching does not change
    the result.
    """
    order = np.argsort(-source.sizes, kind="stable")  # longest first, so that a lack of memory shows at once
    results: list[list[Hypothesis]] = [[]] * len(source)
    batch_size = max(1, active_hypotheses // max(1, beam_size))
    for first in range(0, len(order), batch_size):
        numbers = order[first : first + batch_size]
        batch = Batch.empty(len(numbers), source.select(numbers))
        limits = max_words
        if isinstance(max_words, Tensor) and max_words.dim():
            limits = max_words[torch.from_numpy(numbers)]
        hypotheses = beam_search(scorer, batch, beam_size, n_best, max_words=limits, **options)
        for number, best in zip(numbers, hypotheses, strict=True):
            results[number] = best
    return results


class _BeamSearch(NamedTuple):
    """The constants of a search."""

    scorer: Scorer
    beam_size: int
    n_best: int
    length: LengthHandling
    limits: NDArray[np.int64]  # (sentences,) maximum number of words
    source_words: Tensor | None  # (sentences,)
    coverage: float  # strength of the coverage penalty
    always_finish: bool
    lattice: Lattice | None
    on_step: Callable[[], None] | None

    def score(self, continuations: Continuations, words: int, coverage: Tensor | None) -> NDArray[np.float64]:
        """Return the scores of continuations that end with this many words.  # coverage: (rows, longest source)"""
        sentence = continuations.sentence
        source_words = None if self.source_words is None else self.source_words[torch.from_numpy(sentence)]
        length = torch.full((len(sentence),), words)
        score = self.length.score(torch.from_numpy(continuations.log_prob), length, source_words)
        if coverage is not None and source_words is not None:
            rows = coverage[torch.from_numpy(continuations.row)]
            score = score + coverage_penalty(rows, source_words, self.coverage)
        return score.numpy()  # (n,)

    def can_improve(
        self, beam: Continuations, continuing: NDArray[np.bool_], words: int, nth_best_score: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Return whether the n best of each hypothesis' sentence can still change.  # (beam,)"""
        sentence = beam.sentence
        nth_best = nth_best_score[sentence]
        if not (nth_best > -np.inf).any():
            return np.ones_like(continuing)
        source_words = None if self.source_words is None else self.source_words[torch.from_numpy(sentence)]
        length = torch.full((len(sentence),), words)
        longest = torch.from_numpy(self.limits[sentence] - 1)  # a finished one is below the limit
        bound = self.length.bound(torch.from_numpy(beam.log_prob), length, longest, source_words).numpy()
        improvable = np.zeros(len(nth_best_score), bool)
        improvable[sentence[continuing & (bound > nth_best)]] = True
        return improvable[sentence]


class _ActiveHypotheses(NamedTuple):
    """The active hypotheses, grouped by sentence, the best first."""

    state: State
    sentence: NDArray[np.int64]  # (rows,) index in the batch, in ascending order
    log_prob: NDArray[np.float64]  # (rows,) 64 bits, as it is a sum of many
    parent: NDArray[np.int64]  # (rows,) index among the continuations kept in the last step
    num_encoded_sentences: int  # number of sentences in the state's memory
    coverage: Tensor | None = None  # (rows, longest source) sum of the attention so far, if there is a coverage penalty


# What is needed to trace hypotheses back from each step: the beam, and the attention of the rows before the step.
Backpointers = list[tuple[Continuations, Tensor | None]]
Endings = list[tuple[Continuations, NDArray[np.float64]]]  # of each step: all active hypotheses with `</s>`, and scores


class _Completed(NamedTuple):
    """A hypothesis that is finished or has reached the limit."""

    step: int  # counted from 0
    number: int  # among those kept in this step
    log_prob: float
    score: float
    finished: bool


def _search(search: _BeamSearch, batch: Batch) -> tuple[Backpointers, _CompletedHypotheses]:
    sentence = np.arange(batch.num_rows)
    active = _ActiveHypotheses(search.scorer.start(batch), sentence, np.zeros(batch.num_rows), sentence, batch.num_rows)
    if search.lattice is not None:
        search.lattice.start(batch.num_rows)
    backpointers: Backpointers = []
    completed = _CompletedHypotheses(batch.num_rows, search.n_best)
    free_slots = np.full(batch.num_rows, search.beam_size)  # slots of the beam without a finished hypothesis
    endings: Endings = []
    while len(active.sentence):
        if search.on_step is not None:
            search.on_step()
        words = len(backpointers)
        attention, coverage = attention_weights(search.scorer, active.state), None  # (rows, longest source) each
        if search.coverage:
            if attention is None:
                raise DataError("a coverage penalty needs attention, and this translator has none; leave it out")
            coverage = attention if active.coverage is None else active.coverage + attention
        beam, pruned, ended = _expand(active, free_slots, search)
        score = search.score(beam, words, coverage)
        if search.lattice is not None:
            search.lattice.record(beam, score, pruned, search.score(pruned, words, coverage))
        backpointers.append((beam, attention))
        if search.always_finish:
            endings.append((ended, search.score(ended, words, coverage)))
        finished = beam.token == END
        free_slots -= np.bincount(beam.sentence[finished], minlength=len(free_slots))
        completed.add(beam, score, finished, words, finished=True)
        at_limit = ~finished & (search.limits[beam.sentence] <= words + 1)
        if at_limit.any():
            completed.add(beam, search.score(beam, words + 1, coverage), at_limit, words, finished=False)
        continuing = ~(finished | at_limit)
        continuing &= search.can_improve(beam, continuing, words + 1, completed.nth_best_score)
        active = _advance(search.scorer, active._replace(coverage=coverage), beam, continuing)
    if search.always_finish:
        _add_endings(backpointers, completed, endings)
    return backpointers, completed


def _add_endings(backpointers: Backpointers, completed: _CompletedHypotheses, endings: Endings) -> None:
    """Add the best ending of each sentence without a finished hypothesis; the empty sentence is none."""
    for sentence in completed.unfinished_sentences():
        scores = [np.where(ended.sentence == sentence, score, -np.inf) for ended, score in endings]  # (rows,) each
        step = max(range(1, len(scores)), key=lambda step: float(scores[step].max()), default=0)
        number = np.array([int(np.argmax(scores[step]))])
        if scores[step][number] > -np.inf:
            (beam, attention), (ended, score) = backpointers[step], endings[step]
            both = Continuations(*(np.concatenate([kept, end[number]]) for kept, end in zip(beam, ended, strict=True)))
            backpointers[step] = both, attention
            is_ending = np.arange(len(both.token)) == len(beam.token)
            completed.add(both, np.full(len(both.token), score[number]), is_ending, step, finished=True)


def _expand(
    active: _ActiveHypotheses, free_slots: NDArray[np.int64], search: _BeamSearch
) -> tuple[Continuations, Continuations, Continuations]:
    """Return the continuations that fit in the beam, best first in each sentence, the best of the pruned ones, and the
    continuation of each row by `</s>`.

    # free_slots: (sentences,)
    """
    num_pruned = 0 if search.lattice is None else search.lattice.max_pruned
    log_probs, ids = candidate_log_probs(search.scorer, active.state)  # (rows, n), (n,) or (rows, n)
    k = min(search.beam_size + num_pruned, log_probs.shape[1])
    values, columns = top_k_words(log_probs, k)  # (rows, k) each
    chosen_ids = columns if ids is None else ids.expand(log_probs.shape).gather(1, columns)  # (rows, k)
    tokens = chosen_ids.cpu().numpy().reshape(-1)  # (rows * k,)
    total = (values.cpu().numpy() + active.log_prob[:, None]).reshape(-1)  # (rows * k,) in 64 bits
    sentence = np.repeat(active.sentence, k)
    order = np.lexsort((-total, sentence))  # by sentence, the best first; equal ones stay in order
    ranked = total[order]
    _, first, counts = np.unique(sentence, return_index=True, return_counts=True)
    rank, slots = np.arange(len(order)) - np.repeat(first, counts), free_slots[sentence]
    possible = ranked > -np.inf

    def continuations(chosen: NDArray[np.bool_]) -> Continuations:
        index = order[chosen & possible]
        row = index // k
        return Continuations(active.sentence[row], row, active.parent[row], tokens[index], total[index])

    beam, pruned = continuations(rank < slots), continuations((rank >= slots) & (rank < slots + num_pruned))
    if not search.always_finish:
        return beam, pruned, beam
    end_log_prob = log_probs[:, END] if ids is None else log_probs.masked_fill(ids != END, -torch.inf).amax(dim=1)
    rows, end_tokens = np.arange(len(active.sentence)), np.full(len(active.sentence), END)
    ended_log_prob = active.log_prob + end_log_prob.cpu().numpy()
    return beam, pruned, Continuations(active.sentence, rows, active.parent, end_tokens, ended_log_prob)


def top_k_words(log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k highest values of each row and their columns, highest first.  # (rows, |V|) -> (rows, k) each

    A faster `topk`: the k best values are in the k blocks with the highest maxima, found in one fast pass.

    >>> top_k_words(torch.tensor([[0.1, 0.5, 0.4]]).log(), 2)[1]
    tensor([[1, 2]])
    """
    blocks = log_probs.shape[1] // TOP_K_BLOCK
    if blocks < 2 * k:
        return log_probs.topk(k, dim=1)
    grid = log_probs[:, : blocks * TOP_K_BLOCK].unflatten(1, (blocks, TOP_K_BLOCK))  # (rows, blocks, TOP_K_BLOCK)
    best = grid.amax(dim=2).topk(k, dim=1).indices.sort(dim=1).values  # (rows, k)
    inside = grid.gather(1, best[:, :, None].expand(-1, -1, TOP_K_BLOCK)).flatten(1)  # (rows, k * TOP_K_BLOCK)
    rest = log_probs[:, blocks * TOP_K_BLOCK :]  # (rows, fewer than TOP_K_BLOCK)
    values, index = torch.cat([inside, rest], dim=1).topk(k, dim=1)
    last = best.new_full((len(best), 1), blocks * TOP_K_BLOCK)
    starts = torch.cat([best * TOP_K_BLOCK, last], dim=1)  # (rows, k + 1)
    return values, starts.gather(1, index // TOP_K_BLOCK) + index % TOP_K_BLOCK


def _advance(
    scorer: Scorer, active: _ActiveHypotheses, beam: Continuations, continuing: NDArray[np.bool_]
) -> _ActiveHypotheses:
    """Return the continuing hypotheses after one more token."""
    parent = np.flatnonzero(continuing)  # (rows,)
    row, sentence, log_prob = beam.row[parent], beam.sentence[parent], beam.log_prob[parent]
    if not len(parent):
        return active._replace(sentence=sentence, log_prob=log_prob, parent=parent)
    rows, state = torch.from_numpy(row), active.state
    if len(row) != len(active.sentence) or (row != np.arange(len(row))).any():
        state = select_rows(state, rows)
    num_encoded_sentences = active.num_encoded_sentences
    if state.sentence is not None:
        present = 1 + int(np.count_nonzero(np.diff(sentence)))
        if present <= (1 - DROP_MEMORY_SHARE) * num_encoded_sentences:
            state, num_encoded_sentences = select_sentences(state, torch.unique(state.sentence)), present
    state = scorer.advance(state, torch.from_numpy(beam.token[parent]))
    coverage = None if active.coverage is None else active.coverage[rows]
    return _ActiveHypotheses(state, sentence, log_prob, parent, num_encoded_sentences, coverage)


class _CompletedHypotheses:
    """The hypotheses of each sentence that are finished or have reached the limit."""

    def __init__(self, sentences: int, n_best: int):
        self.n_best = n_best
        self.nth_best_score = np.full(sentences, -np.inf)  # of the finished ones
        self._completed: list[list[_Completed]] = [[] for _ in range(sentences)]
        self._scores: list[list[float]] = [[] for _ in range(sentences)]  # of the finished, in ascending order

    def add(
        self,
        beam: Continuations,
        score: NDArray[np.float64],
        mask: NDArray[np.bool_],
        step: int,
        *,
        finished: bool,
    ) -> None:
        """Add the kept hypotheses that end in this step.  # score, mask: (beam,)"""
        numbers = np.flatnonzero(mask)
        columns = (numbers, beam.sentence[numbers], beam.log_prob[numbers], score[numbers])
        for number, sentence, log_prob, value in zip(*(column.tolist() for column in columns), strict=True):
            self._completed[sentence].append(_Completed(step, number, log_prob, value, finished))
            if finished:
                insort(self._scores[sentence], value)
                if len(self._scores[sentence]) >= self.n_best:
                    self.nth_best_score[sentence] = self._scores[sentence][-self.n_best]

    def unfinished_sentences(self) -> list[int]:
        """Return the sentences without a finished hypothesis."""
        return [sentence for sentence, scores in enumerate(self._scores) if not scores]

    def best(self, sentence: int) -> list[_Completed]:
        """Return the n best finished hypotheses or, if there are none, the n best unfinished ones."""
        completed = self._completed[sentence]
        completed = [hypothesis for hypothesis in completed if hypothesis.finished] or completed
        return sorted(completed, key=lambda hypothesis: -hypothesis.score)[: self.n_best]


def _trace_hypotheses(
    backpointers: Backpointers, lists: list[list[_Completed]], source: Corpus | None
) -> list[list[Hypothesis]]:
    """Return the completed hypotheses of each sentence with tokens and attention, traced back all at once."""
    completed = [hypothesis for best in lists for hypothesis in best]
    step = np.array([hypothesis.step for hypothesis in completed])
    index = np.array([hypothesis.number for hypothesis in completed])
    # Positions after the end of a hypothesis are undefined.
    ids = np.full((len(completed), len(backpointers)), END)  # (hypotheses, steps)
    weights = backpointers[0][1]
    attention = None  # (hypotheses, steps, longest source)
    if weights is not None:
        attention = weights.new_zeros(len(completed), len(backpointers), weights.shape[1])
    for t in range(int(step.max()), -1, -1):
        beam, weights = backpointers[t]
        active = np.flatnonzero(step >= t)
        number = index[active]
        ids[active, t] = beam.token[number]
        if attention is not None and weights is not None:
            attention[torch.from_numpy(active), t] = weights[torch.from_numpy(beam.row[number])]
        index[active] = beam.parent[number]
    widths, hypotheses = attention_widths(source, len(lists)), [list[Hypothesis]() for _ in lists]
    sentences = [sentence for sentence, best in enumerate(lists) for _ in best]
    for row, (sentence, end, path) in enumerate(zip(sentences, completed, ids.tolist(), strict=True)):
        predicted = end.step + 1
        words = tuple(path[: predicted - end.finished])
        weights = None if attention is None else attention[row, :predicted, : widths[sentence]].clone()
        hypotheses[sentence].append(Hypothesis(words, end.log_prob, end.score, end.finished, weights))
    return hypotheses
