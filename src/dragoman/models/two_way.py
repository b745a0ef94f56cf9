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
from dragoman.core.settings import validate
from dragoman.data.batches import Batch
from dragoman.data.corpus import BidirectionalCorpus, ParallelCorpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.io.model_card import render_card
from dragoman.io.storage import BACKWARD, CARD_FILE, CONFIG_FILE, FORWARD, TWO_WAY_KIND, to_yaml
from dragoman.models.base import FORMAT_VERSION
from dragoman.models.translator import Translator
from dragoman.models.translator_config import TranslatorConfig, inapplicable_setting
from dragoman.nn.attention_losses import agreement

T = TypeVar("T")


class TwoWayTranslator:
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

    kind: ClassVar[str] = TWO_WAY_KIND
    supports_label_smoothing: ClassVar[bool] = True
    has_auxiliary_loss: ClassVar[bool] = True  # to agree

    def __init__(self, forward: Translator, backward: Translator, settings: TranslatorConfig):
        self.source_to_target, self.target_to_source, self.settings = forward, backward, settings
        self.source, self.target = forward.source, forward.target
        self.source_vocab, self.vocab, self.unknown = forward.source_vocab, forward.vocab, forward.unknown
        self._record: Mapping[str, Any] = {}

    @classmethod
    def create(
        cls,
        pairs: ParallelCorpus,
        source: Tokenizer | None = None,
        target: Tokenizer | None = None,
        settings: TranslatorConfig | None = None,
        *,
        seed: int = 1,
        **others: Any,
    ) -> Self:
        """Two untrained translators of the words of some pairs. See `Translator.create`."""
        settings = validate(settings or TranslatorConfig, others, "settings")
        if wrong := inapplicable_setting(settings, ()):
            raise DataError(wrong)
        own = settings.model_copy(update={"symmetry": 0.0})
        return cls(
            Translator.create(pairs, source, target, own, seed=seed),
            Translator.create(pairs.reversed, target, source, own, seed=seed + 1),
            settings,
        )

    @property
    def translators(self) -> dict[str, Translator]:
        return {FORWARD: self.source_to_target, BACKWARD: self.target_to_source}

    def _of_both(self, what: Callable[[Translator], Mapping[str, T]], between: str = ".") -> dict[str, T]:
        """By names that begin with that of the translator."""
        return {
            f"{name}{between}{own}": found for name, one in self.translators.items() for own, found in what(one).items()
        }

    # -- training ------------------------------------------------------------------------------------------------------

    def parameters(self) -> Mapping[str, Tensor]:
        return self._of_both(Translator.parameters)

    def regularized_parameters(self) -> Mapping[str, Tensor]:
        return self._of_both(Translator.regularized_parameters)

    def batch_log_probs(
        self, pairs: BidirectionalCorpus, noise: Generator | None = None, smoothing: float = 0.0
    ) -> Tensor:
        """log P of every token of the targets, then of the sources; in training, what agreement is worth among it."""
        if not isinstance(pairs, BidirectionalCorpus):
            raise DataError("two translators learn from pairs that are predicted both ways: BothWays(source, target)")
        there = self.source_to_target.read_pairs(pairs, noise, smoothing)
        back = self.target_to_source.read_pairs(pairs.reversed, noise, smoothing)
        if noise is None:
            return torch.cat([there.log_probs, back.log_probs])
        assert there.attention is not None and back.attention is not None, "both attend to words"
        words, source_words = (torch.from_numpy(side.sizes - 1) for side in (pairs.target, pairs.source))
        device = there.attention.device
        agreed = agreement(there.attention, back.attention, words.to(device), source_words.to(device))  # (steps, pairs)
        of_tokens = agreed.T[Batch.from_sentences(pairs.target).mask.to(device)]  # (tokens,)
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
        self.source_to_target.record = {**strength, **record}
        self.target_to_source.record = {**strength, **record, "data": _turned(record.get("data", {}))}

    def configs(self) -> Mapping[str, dict[str, Any]]:
        shape = self.settings.model_dump(mode="json")
        own = {"kind": self.kind, "format": FORMAT_VERSION, "model": shape, **self.record}
        return {CONFIG_FILE: own, **self._of_both(Translator.configs, "/")}

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return self._of_both(Translator.arrays)

    def tables(self, parameters: Mapping[str, NDArray[Any]]) -> Mapping[str, Mapping[str, NDArray[Any]]]:
        found: dict[str, Mapping[str, NDArray[Any]]] = {}
        for name, one in self.translators.items():
            own = {key: parameters[f"{name}.{key}"] for key in one.parameters()}
            found |= {f"{name}/{file}": arrays for file, arrays in one.tables(own).items()}
        return found

    def file_names(self) -> Sequence[str]:
        return [CONFIG_FILE, *(f"{name}/{file}" for name, one in self.translators.items() for file in one.file_names())]

    def write_into(self, directory: Path) -> None:
        """Each translator as a directory of its own, and how they were trained beside them."""
        config = self.configs()[CONFIG_FILE]
        (directory / CONFIG_FILE).write_text(to_yaml(config), encoding="utf-8")
        (directory / CARD_FILE).write_text(render_card(config, {}), encoding="utf-8")
        for name, one in self.translators.items():
            (directory / name).mkdir()
            one.write_into(directory / name)


def _turned(data: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of texts, for the one that translates back."""
    return {
        name: {"source": told["target"], "target": told["source"]} if isinstance(told, dict) else told
        for name, told in data.items()
    }
