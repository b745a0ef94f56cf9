"""What the kinds of `train` have in common: reading the text before, and saving and telling after."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.cli.messages import say, suggest, working
from dragoman.errors import DataError

if TYPE_CHECKING:
    from dragoman.language_model import LanguageModel
    from dragoman.text.corpus import Corpus
    from dragoman.text.unknown import UnknownWords


@dataclass(frozen=True)
class VocabChoice:
    """Which words are known: those of another model, or the frequent ones of the text."""

    lender: Path | None
    min_count: int
    max_size: int | None
    replace_singletons: bool

    def read(self, text: str, field: str | None) -> Corpus:
        """The training text over these words."""
        from dragoman.loading import load
        from dragoman.text.corpus import Corpus

        min_count = max(self.min_count, 2) if self.replace_singletons else self.min_count
        if self.lender is None:
            return Corpus.read(text, field=field, min_count=min_count, max_size=self.max_size)
        if min_count > 1 or self.max_size is not None:
            raise DataError("--vocab takes a vocabulary as it is: no --min-count, --max-size or --replace-singletons")
        return Corpus.read(text, load(self.lender).vocab, field=field, training=True)


@dataclass(frozen=True)
class UnknownChoice:
    """Which unknown-word model. Unless one is asked for, a model that lends its vocabulary lends this too: so the two
    can be mixed."""

    kind: str | None
    total: int | None

    def make(self, corpus: Corpus, lender: Path | None) -> UnknownWords:
        from dragoman.loading import load
        from dragoman.ngram.spelling import unknown_words
        from dragoman.text.unknown import ALL_WORDS

        if self.total is not None and self.kind not in (None, "uniform"):
            raise DataError(f"--unknown-words goes with --unknown uniform, not {self.kind}")
        if lender is not None and self.kind is None and self.total is None:
            return load(lender).unknown
        return unknown_words(self.kind or "uniform", corpus, self.total or ALL_WORDS)


@dataclass(frozen=True)
class Material:
    """What a model is trained on."""

    corpus: Corpus
    unknown: UnknownWords
    dev: Corpus | None


def read_material(
    text: str, dev_text: str | None, field: str | None, vocab: VocabChoice, unknown: UnknownChoice
) -> Material:
    from dragoman.text.corpus import Corpus

    with working("reading"):
        corpus = vocab.read(text, field)
        dev = None if dev_text is None else Corpus.read(dev_text, corpus.vocab, field=field)
        return Material(corpus, unknown.make(corpus, vocab.lender), dev)


def save_and_tell(
    model: LanguageModel,
    output: Path,
    *,
    force: bool,
    began: float,
    size: str,
    dev_text: str | None,
    material: Material,
) -> None:
    """Write the model, then say how large it is, how long it took, what it makes of the dev text, and what is next."""
    model.save(output, replace=force)
    say(f"{output}: {size}; {model.vocab.known - 1:,} known words; {perf_counter() - began:.1f} seconds")
    if material.dev is not None:
        from dragoman.evaluation.likelihood import likelihood

        dev = likelihood(model, material.dev)
        say(f"{dev_text}: perplexity {dev.perplexity:,.2f} over {dev.tokens:,} tokens, {dev.unknown_words:,} unknown")
    suggest("evaluate", output, "--text", dev_text or "FILE")
