"""What all commands that train language models share: options, reading texts, and reporting the trained model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Protocol

from dragoman.cli.messages import grouped_warnings, info, status, suggest_command, warn_if_mostly_unknown
from dragoman.cli.option_groups import OptionGroup, option
from dragoman.cli.options import DevText, Field, Force, Output, Text
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.core.types import Json
    from dragoman.data.corpus import Corpus
    from dragoman.data.unknown_words import DistinctWords, UnknownWordModel
    from dragoman.data.vocabulary import Vocab
    from dragoman.models.base import Model
    from dragoman.models.language_model import LanguageModel


@dataclass(frozen=True)
class VocabOptions(OptionGroup):
    """The vocabulary: that of another model, or the frequent tokens of the text."""

    panel = "Data"

    units: Annotated[
        str,
        option(
            "--units KIND",
            "Kind of tokens: word, char, subword:N (BPE) or unigram:N, with N subwords learned from the text. auto: words "
            "if the text is tokenised; if it is raw, subwords, or characters if it is small.",
        ),
    ] = "auto"
    vocab_from: Annotated[
        Path | None, option("--vocab DIR", "Use the vocabulary of this model, and split the text as it does.")
    ] = None
    min_count: Annotated[int, option("--min-count N", "Tokens with a lower count become <unk>.", min=1)] = 1
    max_size: Annotated[int | None, option("--max-size N", "Maximum number of tokens in the vocabulary.", min=1)] = None
    replace_singletons: Annotated[
        bool, option("--replace-singletons", "Words that occur once are unknown; the same as --min-count 2.")
    ] = False

    def load_model(self) -> Model | None:
        from dragoman.models.loading import load

        return None if self.vocab_from is None else load(self.vocab_from)

    @property
    def lowest_count(self) -> int:
        """The count below which tokens become `<unk>`."""
        return max(self.min_count, 2) if self.replace_singletons else self.min_count

    def check_unchanged(self) -> None:
        """Raise an error if options would change a given vocabulary."""
        if self.lowest_count > 1 or self.max_size is not None or self.units != "auto":
            names = "--min-count, --max-size, --replace-singletons and --units"
            raise DataError(f"--vocab uses a vocabulary without changes; remove {names}")

    def read(self, text: str, field: str | None, vocab_model: Model | None) -> Corpus:
        """Read a text with this vocabulary, or that of `vocab_model`."""
        from dragoman.data.corpus import Corpus
        from dragoman.data.formats import display_name
        from dragoman.data.segmenters import token_name

        if vocab_model is None:
            with grouped_warnings():
                corpus = Corpus.read(
                    text, field=field, min_count=self.lowest_count, max_size=self.max_size, units=self.units
                )
            if (segmenter := corpus.vocab.segmenter).kind != "word":
                hint = "; to split it at spaces only, use --units word" if self.units == "auto" else ""
                info(f"{display_name(text)}: split into {token_name(segmenter)}s (--units {segmenter.spec}){hint}")
        else:
            self.check_unchanged()
            corpus = read_with_vocab(text, vocab_model.vocab, field, training=True)
        if not corpus.num_words:
            raise DataError(f"{display_name(text)}: the text has no words")
        return corpus


class TrainingText(Protocol):
    """A training text, in memory or on disk."""

    def fingerprint(self) -> dict[str, Json]: ...


class ReportedData(Protocol):
    """What the report on a training run says about its texts."""

    @property
    def corpus(self) -> TrainingText: ...

    @property
    def dev(self) -> Corpus | None: ...

    @property
    def start_time(self) -> float: ...


@dataclass(frozen=True)
class TrainingData:
    """The encoded texts of a training run."""

    corpus: Corpus
    unknown: UnknownWordModel
    dev: Corpus | None
    start_time: float


@dataclass(frozen=True, kw_only=True)
class LanguageModelOptions(OptionGroup):
    """Options of all commands that train language models."""

    panel = "Data"

    text: Text
    output: Output
    dev_text: DevText = None
    field: Field = None
    vocab: VocabOptions
    unknown: Annotated[
        str | None,
        option(
            "--unknown KIND",
            "Model of unknown words. none: they have probability 0; uniform: all have the same probability; "
            "characters: a character model. Default: uniform, or that of the model of --vocab.",
        ),
    ] = None
    unknown_words: Annotated[
        int | None,
        option(
            "--unknown-words N", "Number of words in the language, for --unknown uniform. Default: 10000000.", min=1
        ),
    ] = None
    force: Force = False

    def read(self, base: Model | None = None, base_name: Path | None = None) -> TrainingData:
        """Read the texts. A trained model `base` that is trained further has the vocabulary."""
        from dragoman.data.formats import display_name, field_for
        from dragoman.data.segmenters import token_name

        start_time = perf_counter()
        with status("reading"):
            vocab_model = self.vocab.load_model() if base is None else base
            vocab_options = self.vocab if base is None else VocabOptions()
            corpus = vocab_options.read(self.text, field_for(self.text, self.field, self.dev_text), vocab_model)
            dev = None
            if self.dev_text is not None:
                dev = read_dev(self.dev_text, corpus.vocab, field_for(self.dev_text, self.field, self.text))
            data = TrainingData(corpus, self.unknown_word_model(corpus, vocab_model), dev, start_time)
        if (vocab_name := self.vocab.vocab_from or base_name) is not None:
            tokens = f"{token_name(corpus.vocab.segmenter)}s"
            counts = f"{len(corpus.unknown_positions):,} of {corpus.num_words:,} {tokens}"
            place = f"the vocabulary of {vocab_name}"
            info(f"{display_name(self.text)}: {counts} are not in {place} and became <unk>")
            warn_if_mostly_unknown(corpus, display_name(self.text))
        return data

    def unknown_word_model(self, corpus: DistinctWords, vocab_model: Model | None) -> UnknownWordModel:
        """Return the unknown-word model. By default that of the model of --vocab, so that the two can be mixed."""
        from dragoman.data.unknown_words import DEFAULT_LANGUAGE_SIZE
        from dragoman.ngram.spelling import create_unknown_word_model

        if self.unknown_words is not None and self.unknown not in (None, "uniform"):
            raise DataError(f"--unknown-words is for --unknown uniform, not {self.unknown}; remove one of them")
        if vocab_model is not None and self.unknown is None and self.unknown_words is None:
            return vocab_model.unknown
        return create_unknown_word_model(self.unknown or "uniform", corpus, self.unknown_words or DEFAULT_LANGUAGE_SIZE)


def read_with_vocab(path: str, vocab: Vocab, field: str | None, *, training: bool = False) -> Corpus:
    """Read a text, which may be already split into the tokens of the vocabulary (see `dragoman units`)."""
    from dragoman.data.corpus import Corpus
    from dragoman.data.formats import decode_lines, read_text
    from dragoman.data.scanner import split_words
    from dragoman.data.text_chunks import MOSTLY_KNOWN
    from dragoman.data.vocabulary import UNK

    if vocab.segmenter.kind == "word":
        return Corpus.read(path, vocab, field=field, training=training)
    lines = decode_lines(read_text(path, field))
    words = [split_words(line) for line in lines]
    known = sum(vocab.id(word) != UNK for line in words for word in line)
    is_split = known > MOSTLY_KNOWN * sum(map(len, words))
    return Corpus.from_sentences(words if is_split else lines, vocab)


def check_dev(path: str | None, field: str | None) -> None:
    """Raise an error for a held-out text that cannot be read or has no words, before a long training begins.

    What can be read only once, such as standard input, is not checked.
    """
    from dragoman.data.formats import decode_lines, display_name, read_text
    from dragoman.data.scanner import split_words

    if path is None or path == "-" or (Path(path).exists() and not Path(path).is_file()):
        return
    if not any(split_words(line) for line in decode_lines(read_text(path, field))):
        raise DataError(f"{display_name(path)}: the dev text has no words")


def read_dev(path: str, vocab: Vocab, field: str | None) -> Corpus:
    """Read a held-out text, which must have words."""
    from dragoman.data.formats import display_name

    dev = read_with_vocab(path, vocab, field)
    if not dev.num_words:
        raise DataError(f"{display_name(path)}: the dev text has no words")
    warn_if_mostly_unknown(dev, display_name(path))
    return dev


def report_model(
    options: LanguageModelOptions,
    data: ReportedData,
    model: LanguageModel,
    size: str,
    coefficients: str = "",
    *,
    save: bool = False,
    card_directory: Path | None = None,
    fingerprint: dict[str, Json] | None = None,
) -> None:
    """Print the size of a model, the time it took and its perplexity on the dev text; write its model card.

    Args:
        coefficients: A description of those that were fitted, if any.
        save: Write the whole model, which is not written yet.
        card_directory: Write the model card there. Default: into the output directory.
        fingerprint: That of the training text, if `data` does not have the text.
    """
    from dragoman.data.detokenize import looks_unsegmented
    from dragoman.data.segmenters import token_name
    from dragoman.evaluation.floor import evaluate_language_model
    from dragoman.evaluation.lab_reference import true_log_probs_of
    from dragoman.io.model_card import CardScore
    from dragoman.report.tables import format_cell, format_with_error

    seconds = perf_counter() - data.start_time
    tokens = f"{token_name(model.vocab.segmenter)}s"
    messages = [f"{options.output}: {size}; {model.vocab.num_known - 1:,} known {tokens}; {seconds:.1f} seconds"]
    if coefficients:
        messages.append(coefficients)
    scores, fingerprints = list[CardScore](), {"train": fingerprint or data.corpus.fingerprint()}
    if data.dev is not None and options.dev_text is not None:
        caution = "; the coefficients were fitted on this text" if coefficients else ""
        evaluation = evaluate_language_model(model, data.dev, true_log_probs_of(options.dev_text, data.dev))
        likelihood, floor = evaluation.likelihood, evaluation.floor
        is_spaced = not looks_unsegmented(data.dev.lines())
        if is_spaced:
            scores.append(CardScore("dev", f"perplexity per word or sentence end{caution}", likelihood.perplexity))
        if model.vocab.segmenter.kind != "word":
            scores.append(CardScore("dev", f"perplexity per character{caution}", likelihood.perplexity_characters))
        floor_text = f" (floor {format_with_error(*floor.perplexity)})" if floor else ""
        per_character = f"{likelihood.perplexity_characters:.4f} per character"
        counts = f"over {likelihood.tokens:,} tokens, {likelihood.unknown_words:,} unknown"
        per_word = f"{format_cell(likelihood.perplexity)} per word{floor_text}, " if is_spaced else ""
        messages.append(f"{options.dev_text}: perplexity {per_word}{per_character}; {counts}{caution}")
        fingerprints["dev"] = data.dev.fingerprint()
    if save:
        model.save(options.output, replace=options.force, scores=scores, data=fingerprints)
    else:
        model.write_card(card_directory or options.output, scores, fingerprints)
    for message in messages:
        info(message)


def suggest_next_commands(options: LanguageModelOptions) -> None:
    """Suggest samples or an evaluation; for models of lab text, minimal pairs."""
    from dragoman.lab.corpus_files import lab_language

    if options.dev_text is None:
        suggest_command("evaluate", options.output, "--text", "FILE", field=options.field)
        return
    with warnings.catch_warnings(action="ignore"):  # they were shown before
        is_lab_text = lab_language(options.dev_text) is not None
    if is_lab_text:
        suggest_command("contrast", options.output)
    suggest_command("sample", options.output, "-n", "3")
