"""The one interface: a conditional distribution over the next word.

Every language model, translator and mixture of them is a `Scorer`. The fold over its methods, `token_log_probs`,
defines P(E) = prod_t P(e_t | e_1 ... e_{t-1}) (eq. ngramlm:prod) and P(E | F).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # counting models do without torch until a distribution is asked for
    from torch import Tensor

    from dragoman.data.batches import Batch
    from dragoman.data.corpus import Corpus
    from dragoman.data.unknown_words import UnknownWordModel
    from dragoman.data.vocabulary import Vocab

Rows = Any  # a nest of tuples of tensors, rows first
Carry = Any  # what a model remembers of the sentences before, or None


@dataclass(frozen=True)
class State:
    """Where a scorer is in its sentences."""

    rows: Rows  # what differs from hypothesis to hypothesis
    memory: Rows = None  # what belongs to the sentence, sentences first; shared by its rows, never copied for them
    sentence: Tensor | None = None  # (rows,) the sentence that each row belongs to, where there is memory


@runtime_checkable
class Scorer(Protocol):
    """P(e_t | e_1 ... e_{t-1}), one word at a time. No method changes anything; states are values."""

    vocab: Vocab
    unknown: UnknownWordModel  # which word it was, where `<unk>` is predicted

    def start(self, batch: Batch, carry: Carry = None) -> State:
        """Before the first word of each row."""
        ...

    def log_probs(self, state: State) -> Tensor:
        """The next word's distribution: normalised natural logs; `<s>` is impossible.  # (rows, |V|)"""
        ...

    def advance(self, state: State, words: Tensor) -> State:
        """The state after one more word in each row.  # words: (rows,)"""
        ...

    def finish(self, state: State) -> Carry:
        """What the next sentence may know of this one."""
        ...


@runtime_checkable
class BatchedScorer(Scorer, Protocol):
    """A scorer with a faster way to the likelihood of a whole text than the fold."""

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]: ...


@runtime_checkable
class PairScorer(Scorer, Protocol):
    """A translator with a faster way to the likelihood of given translations than the fold."""

    def pair_log_probs(self, source: Any, target: Corpus) -> NDArray[np.float64]: ...


@runtime_checkable
class AttentionScorer(Scorer, Protocol):
    """A scorer that looks at a source sentence word by word, and tells where."""

    def attention(self, state: State) -> Tensor | None:
        """alpha_t: the weights of the source's words, its `</s>` the last, when the next word is predicted.

        # (rows, longest source), 0 where padded; None if no member of an ensemble attends to anything
        """
        ...


@runtime_checkable
class SubsetScorer(Scorer, Protocol):
    """A scorer that need not look at all words to compare some."""

    def prepare_for_search(self) -> SubsetScorer:
        """The same for whoever is going to search, and not to change it."""
        ...

    def word_subset(self, words: Tensor) -> Any:
        """What it takes to compare these, for as many states as one likes.  # words: (n,)"""
        ...

    def subset_scores(self, state: State, subset: Any) -> Tensor:
        """log P of these words, each row's up to a number of its own.  # (rows, n)"""
        ...


@runtime_checkable
class SparseScorer(Scorer, Protocol):
    """A scorer by which most words may be impossible."""

    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor | None]:
        """log P of the words that may come in some row, and which these are, or None for all.  # (rows, n), (n,)"""
        ...


def candidate_log_probs(scorer: Scorer, state: State) -> tuple[Tensor, Tensor | None]:
    """log P of the next words and which these are, or None for all: others are impossible.  # (rows, n), (n,)"""
    return scorer.sparse_log_probs(state) if isinstance(scorer, SparseScorer) else (scorer.log_probs(state), None)


def scatter_to_vocabulary(log_probs: Tensor, words: Tensor | None, vocab_size: int) -> Tensor:
    """The same of all words, those that are not among these impossible.  # (rows, n), (n,) -> (rows, |V|)"""
    if words is None:
        return log_probs
    return log_probs.new_full((len(log_probs), vocab_size), -np.inf).index_copy_(1, words, log_probs)


def select_rows(state: State, rows: Tensor) -> State:
    """The state of these rows, in this order; a row may be taken more than once."""
    return State(_index_nested(state.rows, rows), state.memory, _index_nested(state.sentence, rows))


def select_sentences(state: State, sentences: Tensor) -> State:
    """The state without the memory of other sentences than these; no row may belong to another.  # kept: (sentences,)

    Sentences are numbered anew, in the order given.
    """
    import torch

    if state.sentence is None:
        return state
    number = torch.zeros(int(torch.cat([sentences, state.sentence]).max()) + 1, dtype=torch.int64)
    number[sentences] = torch.arange(len(sentences))
    return State(state.rows, _index_nested(state.memory, sentences), number[state.sentence])


def _index_nested(nested: Rows, rows: Tensor) -> Rows:
    if nested is None:
        return None
    if isinstance(nested, tuple):
        return tuple(_index_nested(part, rows) for part in nested)
    return nested.index_select(0, rows.to(nested.device))


def fold(scorer: Scorer, batch: Batch, carry: Carry = None) -> tuple[Tensor, State]:
    """log P of every token given those before it, and the last state.  # (rows, longest), 0 where padded

    A row that has ended keeps predicting `</s>` after `</s>`; the mask drops what it says there. Only the state of
    full-length rows is meaningful, so `finish` needs a batch without padding.
    """
    import torch

    state = scorer.start(batch, carry)
    steps = []
    for words in batch.ids.T:
        steps.append(scorer.log_probs(state).gather(1, words[:, None])[:, 0])  # (rows,)
        state = scorer.advance(state, words)
    return torch.stack(steps, dim=1).masked_fill(~batch.mask, 0.0), state


def log_prob(scorer: Scorer, batch: Batch, carry: Carry = None) -> Tensor:
    """log P(E) of each row: the definition.  # (rows,)"""
    return fold(scorer, batch, carry)[0].sum(dim=1)
