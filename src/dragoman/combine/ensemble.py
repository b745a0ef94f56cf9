"""Several translators as one, and a translator with a language model beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.combine.combination import Combination, CombinationMode
from dragoman.core.errors import DataError
from dragoman.models.translation import BaseTranslator


class Ensemble(Combination, BaseTranslator):
    """P(e_t | F, e_1 ... e_{t-1}) as the average of its members' (tutorial, section "Ensembling Multiple Models").

    All members read and write the same units. A language model over the target's units may be among them, but not the
    first: its vote counts by its weight.
    """

    def __init__(
        self,
        members: Sequence[Any],
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
                told = f"{member.source.config()} and {first.source.config()}"
                raise DataError(
                    f"model {name} reads its source otherwise than the first ({told}); train it with --vocab"
                )

    @property
    def has_attention(self) -> bool:
        return any(isinstance(member, BaseTranslator) and member.has_attention for member in self.members)

    @property
    def without_shortlist(self) -> Ensemble:
        """The ensemble of the members without their shortlists."""
        members = [getattr(member, "without_shortlist", member) for member in self.members]
        return Ensemble(members, self.weights, self.mode)
