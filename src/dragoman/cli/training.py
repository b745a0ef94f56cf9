"""What all commands that train language models share: reading texts, and reporting the trained model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.cli import options
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


MAX_LISTED_ORDERS = 8  # counts of more orders are added up


@dataclass(frozen=True)
class VocabOptions(OptionGroup):
    """The vocabulary: that of another model, or the frequent words of the text."""

    panel = "Data"

    vocab_from: options.VocabFrom = None
    min_count: options.MinCount = 1
    max_size: options.MaxSize = None
    replace_singletons: options.ReplaceSingletons = False

    def read(self, text: str, field: str | None, vocab_model: Model | None) -> Corpus:
        """Read the training text with this vocabulary."""
        from dragoman.data.corpus import Corpus

        min_count = max(self.min_count, 2) if self.replace_singletons else self.min_count
        if vocab_model is None:
            return Corpus.read(text, field=field, min_count=min_count, max_size=self.max_size)
        if min_count > 1 or self.max_size is not None:
            raise DataError(
                "--vocab uses a vocabulary without changes; remove --min-count, --max-size and --replace-singletons"
            )
        return Corpus.read(text, vocab_model.vocab, field=field, training=True)


@dataclass(frozen=True)
class UnknownWordOptions(OptionGroup):
    """The unknown-word model. By default that of the model of --vocab, so that the two models can be mixed."""

    panel = "Data"

    kind: options.Unknown = None
    total: options.UnknownTotal = None

    def create(self, corpus: Corpus, vocab_model: Model | None) -> UnknownWordModel:
        from dragoman.data.unknown_words import DEFAULT_LANGUAGE_SIZE
        from dragoman.ngram.spelling import create_unknown_word_model

        if self.total is not None and self.kind not in (None, "uniform"):
            raise DataError(f"--unknown-words is for --unknown uniform, not {self.kind}; remove one of them")
        if vocab_model is not None and self.kind is None and self.total is None:
            return vocab_model.unknown
        return create_unknown_word_model(self.kind or "uniform", corpus, self.total or DEFAULT_LANGUAGE_SIZE)


@dataclass(frozen=True)
class TrainingData:
    """The encoded texts of a training run."""

    corpus: Corpus
    unknown: UnknownWordModel
    dev: Corpus | None
    dev_text: str | None = None  # the file of `dev`


def read_training_data(
    text: str, dev_text: str | None, field: str | None, vocab: VocabOptions, unknown: UnknownWordOptions
) -> TrainingData:
    from dragoman.data.formats import display_name, field_for
    from dragoman.models.loading import load

    with status("reading"):
        vocab_model = load(vocab.vocab_from) if vocab.vocab_from is not None else None
        corpus = vocab.read(text, field_for(text, field, dev_text), vocab_model)
        if not corpus.num_words:
            raise DataError(f"{display_name(text)}: the training text has no words")
        dev = None
        if dev_text is not None:
            dev = read_dev(dev_text, corpus.vocab, field_for(dev_text, field, text))
        data = TrainingData(corpus, unknown.create(corpus, vocab_model), dev, dev_text)
    if vocab.vocab_from is not None:
        counts = f"{len(corpus.unknown_positions):,} of {corpus.num_words:,} words"
        info(f"{display_name(text)}: {counts} are not in the vocabulary of {vocab.vocab_from} and became <unk>")
        warn_if_mostly_unknown(corpus, display_name(text))
    return data


def read_dev(path: str, vocab: Vocab, field: str | None) -> Corpus:
    """Read a held-out text, which must have words."""
    from dragoman.data.corpus import Corpus
    from dragoman.data.formats import display_name

    dev = Corpus.read(path, vocab, field=field)
    if not dev.num_words:
        raise DataError(f"{display_name(path)}: the dev text has no words")
    warn_if_mostly_unknown(dev, display_name(path))
    return dev


def report_model(
    model: LanguageModel, size: str, output: Path, data: TrainingData, start_time: float, coefficients: str = ""
) -> None:
    """Print the size of a model, the time it took and its perplexity on the dev text; write its model card.

    `coefficients` describes those that were fitted, if any.
    """
    from dragoman.io.model_card import CardScore

    seconds = perf_counter() - start_time
    info(f"{output}: {size}; {model.vocab.num_known - 1:,} known words; {seconds:.1f} seconds")
    if coefficients:
        info(coefficients)
    scores = list[CardScore]()
    if data.dev is not None and data.dev_text is not None:
        caution = "; the coefficients were fitted on this text" if coefficients else ""
        perplexity, description = _evaluate_on_dev(model, data.dev, data.dev_text)
        scores.append(CardScore("dev", f"perplexity per word or sentence end{caution}", perplexity))
        info(f"{data.dev_text}: {description}{caution}")
    texts = {"train": data.corpus, "dev": data.dev}
    model.write_card(output, scores, {name: text.fingerprint() for name, text in texts.items() if text is not None})


def _evaluate_on_dev(model: LanguageModel, corpus: Corpus, source: str) -> tuple[float, str]:
    """Return the perplexity of the dev text and a description of it, with the floor if it is lab text."""
    from dragoman.evaluation.floor import evaluate_language_model
    from dragoman.evaluation.lab_reference import true_log_probs_of
    from dragoman.report.tables import format_cell, format_with_error

    evaluation = evaluate_language_model(model, corpus, true_log_probs_of(source, corpus))
    likelihood, floor = evaluation.likelihood, evaluation.floor
    least = f" (floor {format_with_error(*floor.perplexity)})" if floor else ""
    counts = f"over {likelihood.tokens:,} tokens, {likelihood.unknown_words:,} unknown"
    return likelihood.perplexity, f"perplexity {format_cell(likelihood.perplexity)}{least} {counts}"


def suggest_next_commands(output: Path, dev_text: str | None, field: str | None) -> None:
    """Suggest samples or an evaluation; for models of lab text, minimal pairs."""
    from dragoman.lab.corpus_files import lab_language

    if dev_text is None:
        suggest_command("evaluate", output, "--text", "FILE", *options.field_arguments(field))
        return
    with warnings.catch_warnings(action="ignore"):  # they were shown before
        is_lab_text = lab_language(dev_text) is not None
    if is_lab_text:
        suggest_command("contrast", output)
    suggest_command("sample", output, "-n", "3")


def format_ngram_counts(counts: Sequence[int]) -> str:
    """Return the number of n-grams of each order, or of all orders if there are many."""
    if len(counts) > MAX_LISTED_ORDERS:
        return f"{sum(counts):,} n-grams of orders 1 to {len(counts)}"
    return ", ".join(f"{count:,} {n}-grams" for n, count in enumerate(counts, 1))


def format_coefficients(model: NgramModel, dev_text: str | None) -> str:
    """Describe the coefficients that were fitted, and on which text; empty if there are none."""
    from dragoman.ngram.model import HELDOUT_EVERY

    if model.coefficients is None:
        return ""
    source = dev_text or f"every {HELDOUT_EVERY}th training sentence (without --dev-text)"
    ranges = [f"alpha_{n} {_format_range(row)}" for n, row in enumerate(model.coefficients.table.tolist(), 1)]
    return f"coefficients fitted on {source}: {', '.join(ranges)}"


def _format_range(numbers: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{number:.3g}" for number in (min(numbers), max(numbers))))
