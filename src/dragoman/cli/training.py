"""What the kinds of `train` have in common: reading the text before, and saving and telling after."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.cli import options
from dragoman.cli.lab_reference import lab_reference_scores
from dragoman.cli.messages import info, status, suggest_command, warn_if_mostly_unknown
from dragoman.cli.option_groups import OptionGroup
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.data.unknown_words import UnknownWordModel
    from dragoman.data.vocabulary import Vocab
    from dragoman.models.base import Model
    from dragoman.models.language_model import LanguageModel
    from dragoman.ngram.model import NgramModel


MANY = 8  # orders, above which they are not told one by one


@dataclass(frozen=True)
class VocabOptions(OptionGroup):
    """Which words are known: those of another model, or the frequent ones of the text."""

    panel = "Data"

    vocab_from: options.VocabFrom = None
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
class UnknownWordOptions(OptionGroup):
    """Which unknown-word model. Unless one is asked for, a model that lends its vocabulary lends this too: so the two
    can be mixed."""

    panel = "Data"

    kind: options.Unknown = None
    total: options.UnknownTotal = None

    def make(self, corpus: Corpus, lender: Model | None) -> UnknownWordModel:
        from dragoman.data.unknown_words import DEFAULT_LANGUAGE_SIZE
        from dragoman.ngram.spelling import create_unknown_word_model

        if self.total is not None and self.kind not in (None, "uniform"):
            raise DataError(f"--unknown-words goes with --unknown uniform, not {self.kind}")
        if lender is not None and self.kind is None and self.total is None:
            return lender.unknown
        return create_unknown_word_model(self.kind or "uniform", corpus, self.total or DEFAULT_LANGUAGE_SIZE)


@dataclass(frozen=True)
class TrainingData:
    """What a model is trained on."""

    corpus: Corpus
    unknown: UnknownWordModel
    dev: Corpus | None


def read_training_data(
    text: str, dev_text: str | None, field: str | None, vocab: VocabOptions, unknown: UnknownWordOptions
) -> TrainingData:
    from dragoman.data.formats import display_name
    from dragoman.models.loading import load

    with status("reading"):
        lender = load(vocab.vocab_from) if vocab.vocab_from is not None else None
        corpus = vocab.read(text, options.field_for(text, field, dev_text), lender)
        if not corpus.num_words:
            raise DataError(f"{display_name(text)}: the training text has no words")
        dev = None
        if dev_text is not None:
            dev = read_dev(dev_text, corpus.vocab, options.field_for(dev_text, field, text))
        material = TrainingData(corpus, unknown.make(corpus, lender), dev)
    if vocab.vocab_from is not None:
        outside = f"{len(corpus.unknown_positions):,} of {corpus.num_words:,} words"
        info(f"{display_name(text)}: {outside} are not in the vocabulary of {vocab.vocab_from} and became <unk>")
        warn_if_mostly_unknown(corpus, display_name(text))
    return material


def read_dev(path: str, vocab: Vocab, field: str | None) -> Corpus:
    """Held-out text, which must have words."""
    from dragoman.data.corpus import Corpus
    from dragoman.data.formats import display_name

    dev = Corpus.read(path, vocab, field=field)
    if not dev.num_words:
        raise DataError(f"{display_name(path)}: the dev text has no words")
    warn_if_mostly_unknown(dev, display_name(path))
    return dev


@dataclass(frozen=True)
class TrainedModel:
    """A model that was trained, and what there is to say of it."""

    model: LanguageModel
    size: str
    start_time: float  # by `perf_counter`
    coefficients: str = ""  # which coefficients were found, and on what


def save_and_report(
    outcome: TrainedModel, output: Path, *, force: bool, dev_text: str | None, material: TrainingData
) -> None:
    """Write the model, then tell of it."""
    outcome.model.save(output, replace=force)
    report_model(outcome, output, dev_text=dev_text, material=material)


def report_model(outcome: TrainedModel, output: Path, *, dev_text: str | None, material: TrainingData) -> None:
    """How large a model is, how long it took, and what it makes of the dev text."""
    from dragoman.io.model_card import CardScore

    model, size = outcome.model, outcome.size
    info(
        f"{output}: {size}; {model.vocab.num_known - 1:,} known words; {perf_counter() - outcome.start_time:.1f} seconds"
    )
    if outcome.coefficients:
        info(outcome.coefficients)
    scores = list[CardScore]()
    if material.dev is not None and dev_text is not None:
        caution = "; the coefficients were fitted on this very text" if outcome.coefficients else ""
        perplexity, told = _dev_told(model, material.dev, dev_text)
        scores.append(CardScore("dev", f"perplexity, a word or sentence end{caution}", perplexity))
        info(f"{dev_text}: {told}{caution}")
    texts = {"train": material.corpus, "dev": material.dev}
    model.write_card(output, scores, {name: text.fingerprint() for name, text in texts.items() if text is not None})


def _dev_told(model: LanguageModel, corpus: Corpus, source: str) -> tuple[float, str]:
    """The perplexity of the dev text, and what there is to say of it; of laboratory text also the floor."""
    from dragoman.evaluation.floor import evaluate_language_model
    from dragoman.lab.paths import language_of
    from dragoman.report.tables import format_cell, format_with_error

    language = language_of(source)
    result = evaluate_language_model(
        model, corpus, lab_reference_scores(language, corpus, source) if language else None
    )
    dev, floor = result.likelihood, result.floor
    least = f" (floor {format_with_error(*floor.perplexity)})" if floor else ""
    told = f"perplexity {format_cell(dev.perplexity)}{least} over {dev.tokens:,} tokens, {dev.unknown_words:,} unknown"
    return dev.perplexity, told


def suggest_next_commands(output: Path, dev_text: str | None, field: str | None) -> None:
    """What one has not seen yet: samples, or a perplexity; of laboratory text, contrasts."""
    from dragoman.lab.paths import language_of

    if dev_text is None:
        suggest_command("evaluate", output, "--text", "FILE", *options.field_arguments(field))
        return
    with warnings.catch_warnings(action="ignore"):  # what there was to say has been said
        is_laboratory = language_of(dev_text) is not None
    if is_laboratory:
        suggest_command("contrast", output)
    suggest_command("sample", output, "-n", "3")


def format_ngram_counts(sizes: Sequence[int]) -> str:
    """How many n-grams of each order there are; of many orders, all together."""
    if len(sizes) > MANY:
        return f"{sum(sizes):,} n-grams of orders 1 to {len(sizes)}"
    return ", ".join(f"{size:,} {n}-grams" for n, size in enumerate(sizes, 1))


def format_coefficients(model: NgramModel, dev_text: str | None) -> str:
    """The coefficients that training found, and on what; of methods that fit none, nothing."""
    from dragoman.ngram.model import HELDOUT_EVERY

    if model.coefficients is None:
        return ""
    source = dev_text or f"every {HELDOUT_EVERY}th training sentence (without --dev-text)"
    alphas = [f"alpha_{n} {_span(row)}" for n, row in enumerate(model.coefficients.table.tolist(), 1)]
    return f"coefficients fitted on {source}: {', '.join(alphas)}"


def _span(numbers: Sequence[float]) -> str:
    """From the lowest to the highest, if that is not the same to three digits."""
    return " to ".join(dict.fromkeys(f"{number:.3g}" for number in (min(numbers), max(numbers))))
