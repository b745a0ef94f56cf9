"""Several scorers used as one: ensembles of translators, and fusion of translators with a language model.

`Combination` works for any scorers. For language models only, `Mixture` also estimates the weights, which may depend on
the context, and can be saved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from dragoman.combine.mixture import join_states, log_weighted_sum, split_state
from dragoman.core.errors import DataError, DragomanError
from dragoman.core.scorer import (
    AttentionScorer,
    Carry,
    CarryScorer,
    Scorer,
    State,
    candidate_log_probs,
    scatter_to_vocabulary,
)
from dragoman.data.vocabulary import Vocab
from dragoman.models.translation import BaseTranslator

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch

CombinationMode = Literal["linear", "log-linear"]


@runtime_checkable
class _HasSourceVocab(Protocol):
    source_vocab: Vocab


class Combination:
    """A distribution over the next token computed from those of its members, which share the target vocabulary.

    - linear: P(e_t) = sum_i w_i P_i(e_t), with weights that sum to one; equal weights are an ensemble (tutorial,
      section "Ensembling Multiple Models").
    - log-linear: P(e_t) proportional to prod_i P_i(e_t)^{w_i}, with weights of 0 or more.

    A language model among translators ignores the source. The unknown-word model is that of the first member.

    >>> from dragoman import Corpus, NgramModel
    >>> corpus = Corpus.from_sentences(["the cat sat", "the dog sat"])
    >>> members = [NgramModel.train(corpus, order=n, smoothing="witten-bell") for n in (1, 2)]
    >>> Combination(members).weights, Combination(members, mode="log-linear").weights
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
        """By default, the weights of a linear combination are equal, and those of a log-linear one are all 1.

        `names` are used in error messages.
        """
        if not members:
            raise DataError("a combination needs at least one model")
        if mode not in ("linear", "log-linear"):
            raise DataError(f"no combination {mode!r}: it is linear or log-linear")
        default = 1 / len(members) if mode == "linear" else 1.0
        self.members, self.mode = tuple(members), mode
        self.weights = tuple([default] * len(members) if weights is None else weights)
        _check_weights(self.weights, len(members), mode)
        _check_same_vocabularies(members, names or [f"model {number}" for number in range(1, len(members) + 1)])
        self.vocab, self.unknown = members[0].vocab, members[0].unknown

    def __repr__(self) -> str:
        members = ", ".join(type(member).__name__ for member in self.members)
        weights = [round(weight, 4) for weight in self.weights]
        return f"{type(self).__name__}([{members}], weights={weights}, mode={self.mode!r})"

    def start(self, batch: Batch, carry: Carry = None) -> State:
        carries = carry or [None] * len(self.members)
        return join_states([member.start(batch, part) for member, part in zip(self.members, carries, strict=True)])

    def log_probs(self, state: State) -> Tensor:
        return scatter_to_vocabulary(*self.sparse_log_probs(state), len(self.vocab))  # (rows, |V|)

    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Return log P of the tokens that any member (linear) or all members (log-linear) allow.

        # (rows, n), (n,) or (rows, n)
        """
        members, states, weights = zip(*self._weighted_member_states(state), strict=True)
        candidates = [candidate_log_probs(member, part) for member, part in zip(members, states, strict=True)]
        ids = _candidate_ids([member_ids for _, member_ids in candidates], self.mode)
        parts = []
        for log_probs, member_ids in candidates:
            if ids is not None and member_ids is not None and member_ids.equal(ids):
                parts.append(log_probs)
                continue
            scattered = scatter_to_vocabulary(log_probs, member_ids, len(self.vocab))
            parts.append(scattered if ids is None else scattered.gather(1, ids.expand(len(scattered), -1)))
        if self.mode == "linear":
            return log_weighted_sum(parts, [math.log(weight) for weight in weights]), ids
        return _log_linear_product(parts, weights), ids

    def advance(self, state: State, words: Tensor) -> State:
        return join_states([member.advance(part, words) for member, part in self._member_states(state)])

    def finish(self, state: State) -> Carry:
        return [member.finish(part) for member, part in self._member_states(state)]

    def attention(self, state: State) -> Tensor | None:
        """Return the weighted average of the attention of the members that have some.  # (rows, longest source)

        None if no member has attention, or if they attend to different things.
        """
        average, total = None, 0.0
        for member, part, weight in self._weighted_member_states(state):
            attention = member.attention(part) if isinstance(member, AttentionScorer) else None
            if attention is None:
                continue
            if average is not None and average.shape != attention.shape:
                return None
            average = weight * attention if average is None else average + weight * attention
            total += weight
        return None if average is None else average / total

    @property
    def carries(self) -> bool:
        return any(isinstance(member, CarryScorer) and member.carries for member in self.members)

    def _member_states(self, state: State) -> Iterable[tuple[Scorer, State]]:
        return zip(self.members, split_state(state), strict=True)

    def _weighted_member_states(self, state: State) -> Iterable[tuple[Scorer, State, float]]:
        """The members whose weight is not 0."""
        for (member, part), weight in zip(self._member_states(state), self.weights, strict=True):
            if weight:
                yield member, part, weight


def _candidate_ids(id_lists: Sequence[Tensor | None], mode: CombinationMode) -> Tensor | None:
    """Return the ids in any list (linear) or in all lists (log-linear); None stands for all ids.

    If rows have lists of their own, different ones of the members give None.  # (n,) or (rows, n)
    """
    import torch

    lists = [ids for ids in id_lists if ids is not None]
    if not lists or (mode == "linear" and len(lists) < len(id_lists)):
        return None
    if all(ids.equal(lists[0]) for ids in lists[1:]):
        return lists[0]
    if any(ids.dim() == 2 for ids in lists):
        return None
    ids, counts = torch.cat(lists).unique(return_counts=True)
    return ids if mode == "linear" else ids[counts == len(lists)]


def _log_linear_product(log_probs: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Return log prod_i P_i^{w_i}, normalised.  # (rows, n)"""
    total = log_probs[0] * weights[0]
    for part, weight in zip(log_probs[1:], weights[1:], strict=True):
        total = total + part * weight
    result = total.log_softmax(dim=1)
    if not result.shape[1] or bool(result[:, 0].isnan().any()):  # all products are 0
        raise DragomanError("no word has a probability above 0 by all models together; combine smoothed models")
    return result


def _check_weights(weights: Sequence[float], members: int, mode: CombinationMode) -> None:
    shown = f"weights {list(weights)}"
    if len(weights) != members or not all(0 <= weight < math.inf for weight in weights):
        raise DataError(f"{shown}: give one for each of {members} models, none below 0")
    if mode == "linear" and not abs(sum(weights) - 1) < 1e-6:
        raise DataError(f"{shown}: those of a linear combination must add up to 1")
    if not any(weights):
        raise DataError(f"{shown}: at least one must be above 0")


def _check_same_vocabularies(members: Sequence[Scorer], names: Sequence[str]) -> None:
    named = list(zip(names, members, strict=True))
    targets = [(name, member.vocab) for name, member in named]
    sources = [(name, member.source_vocab) for name, member in named if isinstance(member, _HasSourceVocab)]
    for side, vocabularies in (("target", targets), ("source", sources)):
        for name, vocab in vocabularies[1:]:
            first_name, first = vocabularies[0]
            if vocab != first:
                difference = first.describe_difference(vocab)
                problem = f"{first_name} and {name} have different {side} vocabularies ({difference})"
                raise DataError(f"{problem}: train {name} on the same text, or with --vocab {first_name}")


class Ensemble(Combination, BaseTranslator):
    """Several translators as one: P(e_t | F, e_1 ... e_{t-1}) is the average of the members' probabilities.

    See the tutorial, section "Ensembling Multiple Models". All members have the same vocabularies and segmenters.
    A language model over the target vocabulary may be a member, except the first (fusion).

    >>> from dragoman import Ensemble, ParallelCorpus, Tokenizer, Translator
    >>> german, english = ["ein hund", "ein vogel"] * 2, ["a dog", "a bird"] * 2
    >>> source, target = Tokenizer.train("word", german), Tokenizer.train("word", english)
    >>> pairs = ParallelCorpus(source.encode(german), target.encode(english))
    >>> members = [Translator.create(pairs, source, target, embedding=4, hidden=4, seed=seed) for seed in (1, 2)]
    >>> ensemble = Ensemble(members)
    >>> ensemble.weights
    (0.5, 0.5)
    >>> translation = ensemble.translate("ein hund")[0].text
    """

    def __init__(
        self,
        members: Sequence[Scorer],
        weights: Sequence[float] | None = None,
        mode: CombinationMode = "linear",
        *,
        names: Sequence[str] | None = None,
    ):
        super().__init__(members, weights, mode, names=names)
        first = members[0]
        if not isinstance(first, BaseTranslator):
            raise DataError("the first model of an ensemble must be a translator")
        self.source, self.target, self.length_prior = first.source, first.target, first.length_prior
        self.source_vocab = first.source.vocab
        for name, member in zip(names or range(1, len(members) + 1), members, strict=True):
            if isinstance(member, BaseTranslator) and member.source.config() != first.source.config():
                configs = f"{member.source.config()} and {first.source.config()}"
                raise DataError(
                    f"model {name} segments its source differently from the first ({configs}); train it with --vocab"
                )

    @property
    def has_attention(self) -> bool:
        return any(isinstance(member, BaseTranslator) and member.has_attention for member in self.members)

    @property
    def has_shortlist(self) -> bool:
        """Whether shortlists save time: an average is over all words if any member is."""
        have_one = [isinstance(member, BaseTranslator) and member.has_shortlist for member in self.members]
        return all(have_one) if self.mode == "linear" else any(have_one)

    def search_scorer(self, *, use_shortlist: bool = True) -> Combination:
        """Return the scorer for one search. It uses the shortlists only if `has_shortlist`."""
        use_shortlist = use_shortlist and self.has_shortlist
        members = [
            member.search_scorer(use_shortlist=use_shortlist) if isinstance(member, BaseTranslator) else member
            for member in self.members
        ]
        return Combination(members, self.weights, self.mode)
