"""Several scorers as one: ensembles of translators, and translators with a language model.

(`Mixture` is for language models alone: it is fitted, its weights may depend on the context, and it is kept on disk.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from dragoman.core.errors import DataError, DragomanError
from dragoman.core.scorer import AttentionScorer, Carry, Scorer, State, candidate_log_probs, scatter_to_vocabulary
from dragoman.data.vocabulary import Vocab

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch

CombinationMode = Literal["linear", "log-linear"]


class Combination:
    """A distribution over the next word made from those of its members, which share the target's vocabulary.

    - Linear: P(e_t) = sum_i w_i P_i(e_t), weights that add up to one; equal ones are an ensemble (tutorial, section
      "Ensembling Multiple Models").
    - Log-linear: P(e_t) proportional to prod_i P_i(e_t)^{w_i}, weights of 0 or more.

    A language model among translators ignores the source. Which word an unknown one was is paid as the first member
    says.

    >>> from dragoman import Corpus, NgramModel
    >>> corpus = Corpus.from_sentences(["the cat sat", "the dog sat"])
    >>> members = [NgramModel.train(corpus, order=n, smoothing="witten-bell") for n in (1, 2)]
    >>> Combination(members).weights, Combination(members, how="log-linear").weights
    ((0.5, 0.5), (1.0, 1.0))
    """

    def __init__(
        self,
        members: Sequence[Scorer],
        weights: Sequence[float] | None = None,
        mode: CombinationMode = "linear",
        *,
        names: Sequence[str] | None = None,
    ):
        """Without weights, members of a linear combination share alike and those of a log-linear one count in full.

        Names are for messages.
        """
        if not members:
            raise DataError("a combination needs at least one model")
        if mode not in ("linear", "log-linear"):
            raise DataError(f"no combination {mode!r}: it is linear or log-linear")
        equal = 1 / len(members) if mode == "linear" else 1.0
        self.members, self.mode = tuple(members), mode
        self.weights = tuple([equal] * len(members) if weights is None else weights)
        _check_weights(self.weights, len(members), mode)
        _check_same_vocabularies(members, names or [f"model {number}" for number in range(1, len(members) + 1)])
        self.vocab, self.unknown = members[0].vocab, members[0].unknown

    # -- the scorer --------------------------------------------------------------------------------------------------

    def start(self, batch: Batch, carry: Carry = None) -> State:
        carries = carry or [None] * len(self.members)
        states = [member.start(batch, own) for member, own in zip(self.members, carries, strict=True)]
        sentences = [state.sentence for state in states if state.sentence is not None]
        return _join_states(states, sentences[0] if sentences else None)

    def log_probs(self, state: State) -> Tensor:
        return scatter_to_vocabulary(*self.sparse_log_probs(state), len(self.vocab))  # (rows, |V|)

    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Of the words that are possible by some member (linear) or by all (log-linear).  # (rows, n), (n,)"""
        told = [
            (*candidate_log_probs(member, own), weight) for member, own, weight in self._weighted_member_states(state)
        ]
        words = (
            _union([own for _, own, _ in told]) if self.mode == "linear" else _intersection([own for _, own, _ in told])
        )
        parts = [(_log_probs_of(log_probs, own, words, len(self.vocab)), weight) for log_probs, own, weight in told]
        return (_linear_mean(parts) if self.mode == "linear" else _log_linear_product(parts)), words

    def advance(self, state: State, words: Tensor) -> State:
        states = [member.advance(own, words) for member, own in self._member_states(state)]
        return _join_states(states, state.sentence)

    def finish(self, state: State) -> Carry:
        return [member.finish(own) for member, own in self._member_states(state)]

    def attention(self, state: State) -> Tensor | None:
        """The average of the members that attend to the source, by their weights.  # (rows, longest source)

        None if none does, or if they attend to different things.
        """
        looked, total = None, 0.0
        for member, own, weight in self._weighted_member_states(state):
            weights = member.attention(own) if isinstance(member, AttentionScorer) else None
            if weights is None:
                continue
            if looked is not None and looked.shape != weights.shape:
                return None
            looked = weight * weights if looked is None else looked + weight * weights
            total += weight
        return None if looked is None else looked / total

    @property
    def carries(self) -> bool:
        return any(getattr(member, "carries", False) for member in self.members)

    def _member_states(self, state: State) -> Iterable[tuple[Scorer, State]]:
        for member, rows, memory in zip(self.members, state.rows, state.memory, strict=True):
            yield member, State(rows, memory, None if memory is None else state.sentence)

    def _weighted_member_states(self, state: State) -> Iterable[tuple[Scorer, State, float]]:
        """The members whose weight is not 0."""
        for (member, own), weight in zip(self._member_states(state), self.weights, strict=True):
            if weight:
                yield member, own, weight


def _join_states(states: Sequence[State], sentence: Tensor | None) -> State:
    """The states of the members side by side; a row belongs to one sentence, whoever asks."""
    return State(tuple(state.rows for state in states), tuple(state.memory for state in states), sentence)


def _union(lists: Sequence[Tensor | None]) -> Tensor | None:
    """The words of any list; None stands for all words.  # (n,)"""
    import torch

    known = [words for words in lists if words is not None]
    if len(known) < len(lists):
        return None
    return known[0] if _equal(known) else torch.cat(known).unique()


def _intersection(lists: Sequence[Tensor | None]) -> Tensor | None:
    """The words of every list; None stands for all words.  # (n,)"""
    import torch

    known = [words for words in lists if words is not None]
    if not known or _equal(known):
        return known[0] if known else None
    words, times = torch.cat(known).unique(return_counts=True)
    return words[times == len(known)]


def _equal(lists: Sequence[Tensor]) -> bool:
    return all(words.equal(lists[0]) for words in lists[1:])


def _log_probs_of(log_probs: Tensor, own: Tensor | None, words: Tensor | None, vocabulary: int) -> Tensor:
    """log P of some words, given those of its own words.  # (rows, n)"""
    if words is None:
        return scatter_to_vocabulary(log_probs, own, vocabulary)
    if own is not None and own.equal(words):
        return log_probs
    return scatter_to_vocabulary(log_probs, own, vocabulary).index_select(1, words)


def _linear_mean(parts: Sequence[tuple[Tensor, float]]) -> Tensor:
    """log sum_i w_i P_i.  # (rows, n)"""
    import torch

    (first, weight), *others = parts
    total = first + math.log(weight)
    for log_probs, weight in others:
        total = torch.logaddexp(total, log_probs + math.log(weight))
    return total


def _log_linear_product(parts: Sequence[tuple[Tensor, float]]) -> Tensor:
    """log prod_i P_i^{w_i}, normalised.  # (rows, n)"""
    (first, weight), *others = parts
    total = first * weight
    for log_probs, weight in others:
        total = total + log_probs * weight
    result = total.log_softmax(dim=1)
    if not result.shape[1] or bool(result[:, 0].isnan().any()):  # nothing is left to normalise
        raise DragomanError("no word has a probability above 0 by all models together; combine smoothed models")
    return result


def _check_weights(weights: Sequence[float], members: int, mode: CombinationMode) -> None:
    said = f"weights {list(weights)}"
    if len(weights) != members or not all(0 <= weight < math.inf for weight in weights):
        raise DataError(f"{said}: one for each of {members} models, none below 0")
    if mode == "linear" and not abs(sum(weights) - 1) < 1e-6:
        raise DataError(f"{said}: those of a linear combination add up to 1")
    if not any(weights):
        raise DataError(f"{said}: at least one must be above 0")


def _check_same_vocabularies(members: Sequence[Scorer], names: Sequence[str]) -> None:
    """Refuse members that mean different words by the same numbers, on either side."""
    for attribute, side in (("vocab", "target"), ("source_vocab", "source")):
        known: list[tuple[str, Vocab]] = [
            (name, getattr(member, attribute))
            for name, member in zip(names, members, strict=True)
            if hasattr(member, attribute)
        ]
        for other, vocab in known[1:]:
            one, first = known[0]
            if vocab != first:
                told = f"{one} and {other} have different {side} vocabularies ({first.describe_difference(vocab)})"
                raise DataError(f"{told}: train {other} on the same text, or with --vocab {one}")
