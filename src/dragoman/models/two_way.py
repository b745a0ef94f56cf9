"""Two translators, there and back, that learn together (tutorial, section "Intuitive Priors on Attention").

If a word is translated by looking at another, that one should be translated back by looking at the first. So beside
what each is trained by, it is worth something that their attention agrees:

    l = -log P(E | F) - log P(F | E) - symmetry * trace(A B)

A being the attention of one, (words of E, words of F), and B that of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman.core.errors import DataError
from dragoman.core.settings import validated
from dragoman.data.batches import Batch
from dragoman.data.corpus import BothWays, ParallelCorpus
from dragoman.data.tokenizer import Side
from dragoman.io.model_card import card
from dragoman.io.storage import BACKWARD, CARD, CONFIG, FORWARD, TWO_WAY, as_yaml
from dragoman.models.base import FORMAT
from dragoman.models.translator import Translator
from dragoman.models.translator_config import TranslatorConfig, meaningless
from dragoman.nn.attention_losses import agreement

T = TypeVar("T")


class TwoWay:
    """What is trained; afterwards there are two ordinary translators.

    >>> from dragoman import BothWays, fit
    >>> german, english = ["ein hund bellt .", "eine katze schläft ."] * 2, ["a dog barks .", "a cat sleeps ."] * 2
    >>> source, target = Side.learn("word", german), Side.learn("word", english)
    >>> pairs = BothWays(source.read(german), target.read(english))
    >>> shape = {"embedding": 16, "embedding_reach": 1.0, "hidden": 16, "dropout": 0.0}
    >>> both = TwoWay.create(pairs, source, target, symmetry=1.0, **shape)
    >>> fitted = fit(both, pairs, max_epochs=40, learning_rate=0.02)
    >>> both.forward.translate("ein hund bellt .")[0].text, both.backward.translate("a dog barks .")[0].text
    ('a dog barks .', 'ein hund bellt .')
    """

    kind: ClassVar[str] = TWO_WAY
    smooths_labels: ClassVar[bool] = True
    taught_besides: ClassVar[bool] = True  # to agree

    def __init__(self, forward: Translator, backward: Translator, settings: TranslatorConfig):
        self.forward, self.backward, self.settings = forward, backward, settings
        self.source, self.target = forward.source, forward.target
        self.source_vocab, self.vocab, self.unknown = forward.source_vocab, forward.vocab, forward.unknown
        self._record: Mapping[str, Any] = {}

    @classmethod
    def create(
        cls,
        pairs: ParallelCorpus,
        source: Side | None = None,
        target: Side | None = None,
        settings: TranslatorConfig | None = None,
        *,
        seed: int = 1,
        **others: Any,
    ) -> Self:
        """Two untrained translators of the words of some pairs. See `Translator.create`."""
        settings = validated(settings or TranslatorConfig, others, "settings")
        if wrong := meaningless(settings, ()):
            raise DataError(wrong)
        own = settings.model_copy(update={"symmetry": 0.0})
        return cls(
            Translator.create(pairs, source, target, own, seed=seed),
            Translator.create(pairs.reversed, target, source, own, seed=seed + 1),
            settings,
        )

    @property
    def translators(self) -> dict[str, Translator]:
        return {FORWARD: self.forward, BACKWARD: self.backward}

    def _of_both(self, what: Callable[[Translator], Mapping[str, T]], between: str = ".") -> dict[str, T]:
        """By names that begin with that of the translator."""
        return {
            f"{name}{between}{own}": found for name, one in self.translators.items() for own, found in what(one).items()
        }

    # -- training ------------------------------------------------------------------------------------------------------

    def parameters(self) -> Mapping[str, Tensor]:
        return self._of_both(Translator.parameters)

    def penalised(self) -> Mapping[str, Tensor]:
        return self._of_both(Translator.penalised)

    def batch_log_probs(self, pairs: BothWays, noise: Generator | None = None, smoothing: float = 0.0) -> Tensor:
        """log P of every token of the targets, then of the sources; in training, what agreement is worth among it."""
        if not isinstance(pairs, BothWays):
            raise DataError("two translators learn from pairs that are predicted both ways: BothWays(source, target)")
        there = self.forward.read_pairs(pairs, noise, smoothing)
        back = self.backward.read_pairs(pairs.reversed, noise, smoothing)
        if noise is None:
            return torch.cat([there.log_probs, back.log_probs])
        assert there.alphas is not None and back.alphas is not None, "both attend to words"
        words, source_words = (torch.from_numpy(side.sizes - 1) for side in (pairs.target, pairs.source))
        device = there.alphas.device
        agreed = agreement(there.alphas, back.alphas, words.to(device), source_words.to(device))  # (steps, pairs)
        of_tokens = agreed.T[Batch.of(pairs.target).mask.to(device)]  # (tokens,)
        return torch.cat([there.log_probs + self.settings.symmetry * of_tokens, back.log_probs])

    # -- on disk -------------------------------------------------------------------------------------------------------

    @property
    def record(self) -> Mapping[str, Any]:
        """How the two were trained; each of them has it as it looks from its side."""
        return self._record

    @record.setter
    def record(self, record: Mapping[str, Any]) -> None:
        self._record = record
        strength = {"symmetry": self.settings.symmetry}
        self.forward.record = {**strength, **record}
        self.backward.record = {**strength, **record, "data": _turned(record.get("data", {}))}

    def configs(self) -> Mapping[str, dict[str, Any]]:
        shape = self.settings.model_dump(mode="json")
        own = {"kind": self.kind, "format": FORMAT, "model": shape, **self.record}
        return {CONFIG: own, **self._of_both(Translator.configs, "/")}

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return self._of_both(Translator.arrays)

    def tables(self, parameters: Mapping[str, NDArray[Any]]) -> Mapping[str, Mapping[str, NDArray[Any]]]:
        found: dict[str, Mapping[str, NDArray[Any]]] = {}
        for name, one in self.translators.items():
            own = {key: parameters[f"{name}.{key}"] for key in one.parameters()}
            found |= {f"{name}/{file}": arrays for file, arrays in one.tables(own).items()}
        return found

    def file_names(self) -> Sequence[str]:
        return [CONFIG, *(f"{name}/{file}" for name, one in self.translators.items() for file in one.file_names())]

    def write_into(self, directory: Path) -> None:
        """Each translator as a directory of its own, and how they were trained beside them."""
        config = self.configs()[CONFIG]
        (directory / CONFIG).write_text(as_yaml(config), encoding="utf-8")
        (directory / CARD).write_text(card(config, {}), encoding="utf-8")
        for name, one in self.translators.items():
            (directory / name).mkdir()
            one.write_into(directory / name)


def _turned(data: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of texts, for the one that translates back."""
    return {
        name: {"source": told["target"], "target": told["source"]} if isinstance(told, dict) else told
        for name, told in data.items()
    }
