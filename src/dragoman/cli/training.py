"""What the kinds of `train` have in common: reading the text before, and saving and telling after."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.cli import options
from dragoman.cli.lab_reference import known_truth
from dragoman.cli.messages import doubt, say, suggest, working
from dragoman.cli.option_groups import Group
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.data.unknown_words import UnknownWords
    from dragoman.data.vocabulary import Vocab
    from dragoman.models.base import Model
    from dragoman.models.language_model import LanguageModel
    from dragoman.ngram.model import NgramModel


MANY = 8  # orders, above which they are not told one by one


@dataclass(frozen=True)
class VocabChoice(Group):
    """Which words are known: those of another model, or the frequent ones of the text."""

    lender: options.VocabOf = None
    min_count: options.MinCount = 1
    max_size: options.MaxSize = None
    replace_singletons: options.ReplaceSingletons = False

    def read(self, text: str, field: str | None, lender: Model | None) -> Corpus:
        """The training text over these words."""
        from dragoman.data.corpus import Corpus

        min_count = max(self.min_count, 2) if self.replace_singletons else self.min_count
        if lender is None:
            return Corpus.read(text, field=field, min_count=min_count, max_size=self.max_size)
        if min_count > 1 or self.max_size is not None:
            raise DataError("--vocab takes a vocabulary as it is: no --min-count, --max-size or --replace-singletons")
        return Corpus.read(text, lender.vocab, field=field, training=True)


@dataclass(frozen=True)
class UnknownChoice(Group):
    """Which unknown-word model. Unless one is asked for, a model that lends its vocabulary lends this too: so the two
    can be mixed."""

    kind: options.Unknown = None
    total: options.UnknownTotal = None

    def make(self, corpus: Corpus, lender: Model | None) -> UnknownWords:
        from dragoman.data.unknown_words import ALL_WORDS
        from dragoman.ngram.spelling import unknown_words

        if self.total is not None and self.kind not in (None, "uniform"):
            raise DataError(f"--unknown-words goes with --unknown uniform, not {self.kind}")
        if lender is not None and self.kind is None and self.total is None:
            return lender.unknown
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
    from dragoman.data.formats import source_name
    from dragoman.models.loading import load

    with working("reading"):
        lender = load(vocab.lender) if vocab.lender is not None else None
        corpus = vocab.read(text, options.field_of(text, field, dev_text), lender)
        if not corpus.words:
            raise DataError(f"{source_name(text)}: the training text has no words")
        dev = None
        if dev_text is not None:
            dev = read_dev(dev_text, corpus.vocab, options.field_of(dev_text, field, text))
        material = Material(corpus, unknown.make(corpus, lender), dev)
    if vocab.lender is not None:
        outside = f"{len(corpus.unknown_at):,} of {corpus.words:,} words"
        say(f"{source_name(text)}: {outside} are not in the vocabulary of {vocab.lender} and became <unk>")
        doubt(corpus, source_name(text))
    return material


def read_dev(path: str, vocab: Vocab, field: str | None) -> Corpus:
    """Held-out text, which must have words."""
    from dragoman.data.corpus import Corpus
    from dragoman.data.formats import source_name

    dev = Corpus.read(path, vocab, field=field)
    if not dev.words:
        raise DataError(f"{source_name(path)}: the dev text has no words")
    doubt(dev, source_name(path))
    return dev


@dataclass(frozen=True)
class Outcome:
    """A model that was trained, and what there is to say of it."""

    model: LanguageModel
    size: str
    began: float  # by `perf_counter`
    fitted: str = ""  # which coefficients were found, and on what


def save_and_tell(outcome: Outcome, output: Path, *, force: bool, dev_text: str | None, material: Material) -> None:
    """Write the model, then tell of it."""
    outcome.model.save(output, replace=force)
    tell(outcome, output, dev_text=dev_text, material=material)


def tell(outcome: Outcome, output: Path, *, dev_text: str | None, material: Material) -> None:
    """How large a model is, how long it took, and what it makes of the dev text."""
    from dragoman.data.fingerprint import described
    from dragoman.io.model_card import Score

    model, size = outcome.model, outcome.size
    say(f"{output}: {size}; {model.vocab.known - 1:,} known words; {perf_counter() - outcome.began:.1f} seconds")
    if outcome.fitted:
        say(outcome.fitted)
    scores = list[Score]()
    if material.dev is not None and dev_text is not None:
        caution = "; the coefficients were fitted on this very text" if outcome.fitted else ""
        perplexity, told = _dev_told(model, material.dev, dev_text)
        scores.append(Score("dev", f"perplexity, a word or sentence end{caution}", perplexity))
        say(f"{dev_text}: {told}{caution}")
    texts = {"train": material.corpus, "dev": material.dev}
    model.write_card(output, scores, {name: described(text) for name, text in texts.items() if text is not None})


def _dev_told(model: LanguageModel, corpus: Corpus, source: str) -> tuple[float, str]:
    """The perplexity of the dev text, and what there is to say of it; of laboratory text also the floor."""
    from dragoman.evaluation.floor import measured
    from dragoman.lab.paths import language_of
    from dragoman.report.tables import cell, plus_minus

    language = language_of(source)
    result = measured(model, corpus, known_truth(language, corpus, source) if language else None)
    dev, floor = result.likelihood, result.floor
    least = f" (floor {plus_minus(*floor.perplexity)})" if floor else ""
    told = f"perplexity {cell(dev.perplexity)}{least} over {dev.tokens:,} tokens, {dev.unknown_words:,} unknown"
    return dev.perplexity, told


def suggest_after(output: Path, dev_text: str | None, field: str | None) -> None:
    """What one has not seen yet: samples, or a perplexity; of laboratory text, contrasts."""
    from dragoman.lab.paths import language_of

    if dev_text is None:
        suggest("evaluate", output, "--text", "FILE", *options.with_field(field))
        return
    with warnings.catch_warnings(action="ignore"):  # what there was to say has been said
        is_laboratory = language_of(dev_text) is not None
    if is_laboratory:
        suggest("contrast", output)
    suggest("sample", output, "-n", "3")


def sizes_told(sizes: Sequence[int]) -> str:
    """How many n-grams of each order there are; of many orders, all together."""
    if len(sizes) > MANY:
        return f"{sum(sizes):,} n-grams of orders 1 to {len(sizes)}"
    return ", ".join(f"{size:,} {n}-grams" for n, size in enumerate(sizes, 1))


def fitted_told(model: NgramModel, dev_text: str | None) -> str:
    """The coefficients that training found, and on what; of methods that fit none, nothing."""
    from dragoman.ngram.model import HELDOUT_EVERY

    if model.fitted is None:
        return ""
    source = dev_text or f"every {HELDOUT_EVERY}th training sentence (without --dev-text)"
    alphas = [f"alpha_{n} {_span(row)}" for n, row in enumerate(model.fitted.table.tolist(), 1)]
    return f"coefficients fitted on {source}: {', '.join(alphas)}"


def _span(numbers: Sequence[float]) -> str:
    """From the lowest to the highest, if that is not the same to three digits."""
    return " to ".join(dict.fromkeys(f"{number:.3g}" for number in (min(numbers), max(numbers))))
