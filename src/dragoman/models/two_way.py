"""Two translators in opposite directions, trained together (tutorial, section "Intuitive Priors on Attention").

If a word is translated with attention to another, that one should be translated back with attention to the first. So
training rewards agreement of their attention:

    l = -log P(E | F) - log P(F | E) - symmetry * trace(A B)

where A is the attention of one, (words of E, words of F), and B that of the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import torch
from torch import Generator, Tensor, nn

from dragoman.core.errors import DataError
from dragoman.core.settings import validate
from dragoman.core.types import Arrays
from dragoman.data.batches import Batch
from dragoman.data.corpus import BidirectionalCorpus, ParallelCorpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.io.model_card import render_card
from dragoman.io.storage import BACKWARD, CARD_FILE, CONFIG_FILE, FORWARD, TWO_WAY_KIND, config_text
from dragoman.models.base import FORMAT_VERSION, Config
from dragoman.models.configs import TranslatorConfig, inapplicable_setting
from dragoman.models.translator import Translator
from dragoman.models.translator_parts import TranslatorOutput
from dragoman.nn.attention import agreement


class TwoWayTranslator(nn.Module):
    """A module of two translators for training; afterwards each is an ordinary translator.

    >>> from dragoman import fit
    >>> from dragoman.data.corpus import BidirectionalCorpus
    >>> german, english = ["ein hund bellt .", "eine katze schläft ."] * 2, ["a dog barks .", "a cat sleeps ."] * 2
    >>> source, target = Tokenizer.train("word", german), Tokenizer.train("word", english)
    >>> pairs = BidirectionalCorpus(source.encode(german), target.encode(english))
    >>> shape = {"embedding": 16, "embedding_reach": 1.0, "hidden": 16, "dropout": 0.0}
    >>> both = TwoWayTranslator.create(pairs, source, target, symmetry=1.0, **shape)
    >>> result = fit(both, pairs, max_epochs=40, learning_rate=0.02)
    >>> both.source_to_target.translate("ein hund bellt .")[0].text
    'a dog barks .'
    >>> both.target_to_source.translate("a dog barks .")[0].text
    'ein hund bellt .'
    """

    kind: ClassVar[str] = TWO_WAY_KIND
    supports_label_smoothing: ClassVar[bool] = True
    has_auxiliary_loss: ClassVar[bool] = True  # the agreement
    carries: ClassVar[bool] = False

    def __init__(self, source_to_target: Translator, target_to_source: Translator, settings: TranslatorConfig):
        super().__init__()
        self.source_to_target, self.target_to_source = source_to_target, target_to_source
        self.settings = settings
        self.source, self.target = source_to_target.source, source_to_target.target
        self.source_vocab, self.vocab = source_to_target.source_vocab, source_to_target.vocab
        self.unknown = source_to_target.unknown
        self._training_metadata: Config = {}

    @classmethod
    def create(
        cls,
        pairs: ParallelCorpus,
        source: Tokenizer | None = None,
        target: Tokenizer | None = None,
        settings: TranslatorConfig | None = None,
        *,
        seed: int = 1,
        **overrides: object,
    ) -> Self:
        """Create two untrained translators. See `Translator.create`."""
        settings = validate(settings or TranslatorConfig, overrides, "settings")
        if problem := inapplicable_setting(settings, ()):
            raise DataError(" ".join(problem))
        single = settings.model_copy(update={"symmetry": 0.0})
        return cls(
            Translator.create(pairs, source, target, single, seed=seed),
            Translator.create(pairs.reversed, target, source, single, seed=seed + 1),
            settings,
        ).eval()

    @property
    def translators(self) -> dict[str, Translator]:
        """The translators by the names of their directories."""
        return {FORWARD: self.source_to_target, BACKWARD: self.target_to_source}

    def forward(
        self, batch: BidirectionalCorpus, *, generator: Generator | None = None, label_smoothing: float = 0.0
    ) -> TranslatorOutput:
        """Return log P of the tokens of targets, then sources, and in training the agreement as an auxiliary loss."""
        if not isinstance(batch, BidirectionalCorpus):
            raise DataError("two translators learn from pairs in both directions: BidirectionalCorpus(source, target)")
        options = {"generator": generator, "label_smoothing": label_smoothing}
        first, second = self.source_to_target(batch, **options), self.target_to_source(batch.reversed, **options)
        log_probs = torch.cat([first.log_probs, second.log_probs])
        if not self.training:
            return TranslatorOutput(log_probs)
        assert first.attention is not None and second.attention is not None, "both translators have attention"
        device = first.attention.device
        words = (torch.from_numpy(side.sizes - 1).to(device) for side in (batch.target, batch.source))
        agreements = agreement(first.attention, second.attention, *words)  # (steps, pairs)
        of_tokens = agreements.T[Batch.from_sentences(batch.target).mask.to(device)]  # (tokens,)
        losses = [_auxiliary_loss(first) - self.settings.symmetry * of_tokens, _auxiliary_loss(second)]
        return TranslatorOutput(log_probs, first.attention, torch.cat(losses))

    def __repr__(self) -> str:
        return f"TwoWayTranslator({self.source_to_target!r}, {self.target_to_source!r})"

    @property
    def training_metadata(self) -> Config:
        """How the two translators were trained."""
        return self._training_metadata

    @training_metadata.setter
    def training_metadata(self, training_metadata: Config) -> None:
        """Set the metadata of both translators; source and target are swapped for the second."""
        self._training_metadata = training_metadata
        metadata = {"symmetry": self.settings.symmetry, **training_metadata}
        swapped = {
            name: {"source": texts["target"], "target": texts["source"]} if isinstance(texts, dict) else texts
            for name, texts in training_metadata.get("data", {}).items()
        }
        self.source_to_target.training_metadata = metadata
        self.target_to_source.training_metadata = {**metadata, "data": swapped}

    def config(self) -> Config:
        """Return the contents of config.yaml."""
        settings = self.settings.model_dump(mode="json")
        return {"kind": self.kind, "format": FORMAT_VERSION, "model": settings, **self.training_metadata}

    def configs(self) -> Mapping[str, Config]:
        parts = self.translators.items()
        configs = {f"{name}/{file}": config for name, part in parts for file, config in part.configs().items()}
        return {CONFIG_FILE: self.config(), **configs}

    def arrays(self) -> Arrays:
        parts = self.translators.items()
        return {f"{name}.{key}": array for name, part in parts for key, array in part.arrays().items()}

    def arrays_by_file(self, parameters: Arrays) -> Mapping[str, Arrays]:
        tables: dict[str, Arrays] = {}
        attributes = {FORWARD: "source_to_target", BACKWARD: "target_to_source"}
        for directory, translator in self.translators.items():
            values = {name: parameters[f"{attributes[directory]}.{name}"] for name, _ in translator.named_parameters()}
            tables |= {f"{directory}/{file}": arrays for file, arrays in translator.arrays_by_file(values).items()}
        return tables

    def file_names(self) -> Sequence[str]:
        files = (f"{name}/{file}" for name, part in self.translators.items() for file in part.file_names())
        return [CONFIG_FILE, *files]

    def write_into(self, directory: Path) -> None:
        """Write each translator to its own directory."""
        (directory / CONFIG_FILE).write_text(config_text(directory, self.config()), encoding="utf-8")
        (directory / CARD_FILE).write_text(render_card(self.config(), {}), encoding="utf-8")
        for name, translator in self.translators.items():
            (directory / name).mkdir()
            translator.write_into(directory / name)


def _auxiliary_loss(output: TranslatorOutput) -> Tensor:
    return torch.zeros_like(output.log_probs) if output.auxiliary_loss is None else output.auxiliary_loss
