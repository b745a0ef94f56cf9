"""The interface of all models: a conditional distribution over the next token.

Every language model, translator and mixture is a `Scorer`. The fold over its methods, `fold`, defines
P(E) = prod_t P(e_t | e_1 ... e_{t-1}) (eq. ngramlm:prod) and P(E | F).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # count-based models need torch only for distributions
    from torch import Tensor

    from dragoman.data.batches import Batch
    from dragoman.data.corpus import Corpus
    from dragoman.data.unknown_words import UnknownWordModel
    from dragoman.data.vocabulary import Vocab

Rows = Any  # nested tuples of tensors whose first dimension is the rows
Carry = Any  # the state that a model passes from one sentence to the next, or None


@dataclass(frozen=True)
class State:
    """A scorer's position in its sentences."""

    rows: Rows  # differs between hypotheses
    memory: Rows = None  # belongs to the sentences (first dimension); shared by their rows and never copied for them
    sentence: Tensor | None = None  # (rows,) the sentence of each row, if there is memory


@runtime_checkable
class Scorer(Protocol):
    """P(e_t | e_1 ... e_{t-1}), one token at a time. No method changes anything: states are values."""

    vocab: Vocab
    unknown: UnknownWordModel  # the probability of a word's spelling where `<unk>` is predicted

    def start(self, batch: Batch, carry: Carry = None) -> State:
        """Return the state before the first token of each row."""
        ...

    def log_probs(self, state: State) -> Tensor:
        """Return the distribution of the next token: normalised natural logs, -inf for `<s>`.  # (rows, |V|)"""
        ...

    def advance(self, state: State, words: Tensor) -> State:
        """Return the state after one more token in each row.  # words: (rows,)"""
        ...

    def finish(self, state: State) -> Carry:
        """Return what the next sentence may use of this one."""
        ...


@runtime_checkable
class CarryScorer(Scorer, Protocol):
    """A scorer with a flag for whether it passes state from one sentence to the next."""

    @property
    def carries(self) -> bool: ...


@runtime_checkable
class BatchedScorer(Protocol):
    """A scorer that computes the likelihood of a text faster than the fold. Only what it adds is checked: for each text."""

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]: ...


@runtime_checkable
class PairScorer(Scorer, Protocol):
    """A translator that computes the likelihood of given translations faster than the fold."""

    def pair_log_probs(self, source: Corpus, target: Corpus) -> NDArray[np.float64]: ...


@runtime_checkable
class AttentionScorer(Scorer, Protocol):
    """A scorer that attends to the tokens of a source sentence."""

    def attention(self, state: State) -> Tensor | None:
        """Return alpha_t: the weights of the source tokens, `</s>` last, for predicting the next token.

        # (rows, longest source), 0 where padded; None if no member of an ensemble has attention
        """
        ...


@runtime_checkable
class SubsetScorer(Scorer, Protocol):
    """A scorer that can compare some tokens of each sentence without computing the scores of all."""

    def word_subset(self, state: State, words: Tensor) -> Any:
        """Return the parameters needed to score these tokens of the state's sentences, also in later states.

        # words: (sentences, n); the result has tensors whose first dimension is the sentences
        """
        ...

    def subset_scores(self, state: State, subset: Any) -> Tensor:
        """Return log P of the tokens of each row's sentence up to a constant.  # (rows, n)"""
        ...


@runtime_checkable
class SparseScorer(Scorer, Protocol):
    """A scorer that may assign zero probability to most tokens."""

    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Return log P of the possible tokens, and their ids or None for all.  # (rows, n), (n,) or (rows, n)"""
        ...


def candidate_log_probs(scorer: Scorer, state: State) -> tuple[Tensor, Tensor | None]:
    """Return log P of the next tokens and their ids, or None for all; others are impossible.

    # (rows, n), (n,) or (rows, n)
    """
    return scorer.sparse_log_probs(state) if isinstance(scorer, SparseScorer) else (scorer.log_probs(state), None)


def scatter_to_vocabulary(log_probs: Tensor, words: Tensor | None, vocab_size: int) -> Tensor:
    """Return log P of all tokens, -inf for those not among `words`: of all rows, or of each.

    # (rows, n), (n,) or (rows, n) -> (rows, |V|)
    """
    if words is None:
        return log_probs
    return log_probs.new_full((len(log_probs), vocab_size), -np.inf).scatter_(
        1, words.expand(log_probs.shape), log_probs
    )


def select_rows(state: State, rows: Tensor) -> State:
    """Return the state of these rows, in this order; a row may be repeated."""
    return State(_index_nested(state.rows, rows), state.memory, _index_nested(state.sentence, rows))


def select_sentences(state: State, sentences: Tensor) -> State:
    """Return the state with the memory of these sentences only, numbered in this order.  # sentences: (n,)

    No row may belong to another sentence.
    """
    import torch

    if state.sentence is None:
        return state
    new_index = torch.zeros(int(torch.cat([sentences, state.sentence]).max()) + 1, dtype=torch.int64)
    new_index[sentences] = torch.arange(len(sentences))
    return State(state.rows, _index_nested(state.memory, sentences), new_index[state.sentence])


def _index_nested(nested: Rows, rows: Tensor) -> Rows:
    if nested is None:
        return None
    if isinstance(nested, tuple):
        parts = (_index_nested(part, rows) for part in nested)
        return tuple(parts) if type(nested) is tuple else type(nested)(*parts)  # a named tuple stays one
    return nested.index_select(0, rows.to(nested.device))


def fold(scorer: Scorer, batch: Batch, carry: Carry = None) -> tuple[Tensor, State]:
    """Return log P of each token given those before it, and the last state.  # (rows, longest), 0 where padded

    A row that has ended continues with `</s>`, and the mask removes its predictions. So the last state is meaningful
    only for rows of full length: `finish` needs a batch without padding.
    """
    import torch

    state = scorer.start(batch, carry)
    steps = []
    for words in batch.ids.T:
        steps.append(scorer.log_probs(state).gather(1, words[:, None])[:, 0])  # (rows,)
        state = scorer.advance(state, words)
    return torch.stack(steps, dim=1).masked_fill(~batch.mask, 0.0), state


def log_prob(scorer: Scorer, batch: Batch, carry: Carry = None) -> Tensor:
    """Return log P(E) of each row, by definition.  # (rows,)"""
    return fold(scorer, batch, carry)[0].sum(dim=1)
