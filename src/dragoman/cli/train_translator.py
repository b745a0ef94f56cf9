"""dragoman train translator"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import info, status, suggest_command, warn, warn_if_mostly_unknown
from dragoman.cli.option_groups import GivenSettings, OptionGroup, with_option_groups
from dragoman.cli.options import option
from dragoman.cli.progress import training_progress
from dragoman.core.errors import DataError
from dragoman.models.configs import TranslatorConfig, size_preset
from dragoman.training.config import TRANSLATOR, TrainingConfig, translator_preset

if TYPE_CHECKING:
    from dragoman.data.corpus import ParallelCorpus
    from dragoman.data.tokenizer import LinePairs, Tokenizer
    from dragoman.models.translator import Translator
    from dragoman.models.two_way import TwoWayTranslator

CHOSEN_BY_SIZE = (*size_preset(0), *translator_preset(0))  # the presets of the smallest texts have all settings


@dataclass(frozen=True, kw_only=True)
class TextOptions(OptionGroup):
    """The texts of a training run."""

    panel = "Data"

    src: options.Src
    tgt: options.Tgt
    dev_src: options.DevSrc = None
    dev_tgt: options.DevTgt = None
    src_field: options.SrcField = None
    tgt_field: options.TgtField = None
    alignments: Annotated[
        Path | None,
        options.file_option(
            "--alignments",
            help="Word alignments for --supervision, lines such as 0-0 1-2. Default: an aligner is trained.",
        ),
    ] = None

    def read_dev(self) -> LinePairs | None:
        from dragoman.data.tokenizer import read_pairs

        if (self.dev_src is None) != (self.dev_tgt is None):
            raise DataError("--dev-src and --dev-tgt must be given together")
        if self.dev_src is None or self.dev_tgt is None:
            return None
        return read_pairs(self.dev_src, self.dev_tgt, self.src_field, self.tgt_field)


@dataclass(frozen=True)
class TokenizerOptions(OptionGroup):
    """How lines are split into tokens, and which tokens are known."""

    panel = "Data"

    units: Annotated[
        str,
        typer.Option(
            "--units",
            metavar="KIND",
            help="Kind of tokens: word, char, subword:N (BPE) or unigram:N, with N pieces learned from the text. auto: "
            "characters if lines are single words, words if the text is tokenised and few words are rare, otherwise "
            "subwords.",
        ),
    ] = "auto"
    tgt_units: Annotated[
        str | None, option("--tgt-units", metavar="KIND", help="Kind of target tokens. Default: that of --units.")
    ] = None
    src_format: Annotated[
        str,
        typer.Option(
            "--src-format",
            metavar="text|tree",
            help="Format of the source; tree: one bracketed tree per line, for encoders of trees.",
        ),
    ] = "text"
    min_count: Annotated[
        int | None,
        option(
            "--min-count",
            min=1,
            metavar="N",
            help="Tokens with a lower count become <unk>. Default: 2 for words, else 1.",
        ),
    ] = None
    max_size: Annotated[
        int | None, option("--max-size", min=1, metavar="N", help="Maximum number of tokens in a vocabulary.")
    ] = None
    vocab_from: Annotated[
        Path | None,
        option(
            "--vocab",
            metavar="DIR",
            help="Use the tokenizers of this translator, so that the two can be an ensemble.",
        ),
    ] = None

    def encode(self, lines: LinePairs) -> tuple[ParallelCorpus, Tokenizer, Tokenizer]:
        """Return the encoded texts with the source and target tokenizer: trained on them, or of another translator."""
        from dragoman.data.corpus import ParallelCorpus
        from dragoman.data.tokenizer import PLAIN, TREE, Tokenizer

        if self.src_format not in (PLAIN, TREE):
            raise DataError(f"--src-format {self.src_format}: choose {PLAIN} or {TREE}")
        if self.vocab_from is not None:
            source, target = self._load(self.vocab_from)
            return lines.encode(source, target), source, target
        if self.src_format == TREE and self.units not in ("auto", "word"):
            raise DataError(f"--src-format tree: the words of trees are not split; remove --units {self.units}")
        train = partial(Tokenizer.train_and_encode, min_count=self.min_count, max_size=self.max_size)
        source, source_corpus = train(self.units, lines.source, format=self.src_format, name=lines.name)
        target, target_corpus = train(self.tgt_units or self.units, lines.target)
        return ParallelCorpus(source_corpus, target_corpus), source, target

    def _load(self, path: Path) -> tuple[Tokenizer, Tokenizer]:
        from dragoman.models.loading import load_translator

        if self != replace(TokenizerOptions(), vocab_from=path, src_format=self.src_format):
            names = "--units, --tgt-units, --min-count and --max-size"
            raise DataError(f"--vocab uses tokenizers without changes; remove {names}")
        model = load_translator(path)
        if model.source.format != self.src_format:
            raise DataError(f"--vocab {path}: reads {model.source.format}; use --src-format {model.source.format}")
        return model.source, model.target


@with_option_groups(default_texts=dict.fromkeys(CHOSEN_BY_SIZE, "by the number of training pairs"))
def train_translator(
    texts: TextOptions,
    output: options.Output,
    tokenizers: TokenizerOptions,
    given: GivenSettings,
    model: TranslatorConfig,
    training: TrainingConfig = TRANSLATOR,
    force: options.Force = False,
) -> None:
    """Train a translator: an encoder-decoder with attention.

    Sizes that are not given are chosen by the number of training pairs. Raw text is split into subwords, which are
    learned from the text and stored with the model; translations have capitals, punctuation and spacing.

    If training is interrupted, run the same command again to resume it.

    \b
    Example:
      dragoman train translator --src train.de --tgt train.en --dev-src dev.de --dev-tgt dev.en -o de-en --minutes 20
      dragoman train translator --src train.de --tgt train.en --attention none --encoder reverse -o plain
    """
    from dragoman.data.tokenizer import read_pairs
    from dragoman.experiments import translator_training as steps
    from dragoman.io.storage import CHECKPOINT_FILE, check_output_directory

    start_time = perf_counter()
    if not (output / CHECKPOINT_FILE).is_file():
        check_output_directory(output, replace=force)
    with status("reading"):
        lines, dev_lines = read_pairs(texts.src, texts.tgt, texts.src_field, texts.tgt_field), texts.read_dev()
        steps.check_translator_data(lines, model, given["model"])
        pairs, source, target = tokenizers.encode(lines)
        pairs, translator = steps.create_translator(pairs, source, target, model, given["model"], training.seed)
        dev = None if dev_lines is None else dev_lines.encode(translator.source, translator.target)
    if dev is not None and dev_lines is not None:
        _check_dev(texts, lines, dev_lines, dev)
    chosen_units = tokenizers.units == "auto" and tokenizers.vocab_from is None
    for message in steps.describe_data(translator, pairs, chosen_units=chosen_units):
        info(message)
    with status("aligning the training pairs"):
        pairs = steps.add_alignments(pairs, translator, lines, texts.alignments)
    preset = translator_preset(len(pairs))
    chosen = {name: value for name, value in preset.items() if name not in given["training"]}
    already_finished = _fit(translator, pairs, dev, training.model_copy(update=chosen), output, force=force)
    first = _report(translator, output, dev_lines, already_finished=already_finished)
    info(f"{output}: {perf_counter() - start_time:,.1f} seconds in total")
    suggest_command("translate", first)
    suggest_command("evaluate", first, "--src", "FILE", "--ref", "FILE")


def _check_dev(texts: TextOptions, lines: LinePairs, dev_lines: LinePairs, dev: ParallelCorpus) -> None:
    from dragoman.experiments.translator_training import looks_swapped

    warn_if_mostly_unknown(dev.source, dev_lines.name)
    warn_if_mostly_unknown(dev.target, f"{texts.dev_tgt}")
    if looks_swapped(lines, dev_lines):
        warn(f"{dev_lines.name}: has the words of the target language; are --dev-src and --dev-tgt swapped?")


def _fit(
    translator: Translator | TwoWayTranslator,
    pairs: ParallelCorpus,
    dev: ParallelCorpus | None,
    training: TrainingConfig,
    output: Path,
    *,
    force: bool,
) -> bool:
    """Train, and return whether the training was already finished."""
    from dragoman.data.corpus import BidirectionalCorpus
    from dragoman.data.segmenters import token_name
    from dragoman.training.fit import fit

    if dev is not None and isinstance(pairs, BidirectionalCorpus):
        dev = BidirectionalCorpus(dev.source, dev.target)
    with training_progress(token_name(translator.target.segmenter)) as callback:
        result = fit(translator, pairs, dev, training, output=output, force=force, callback=callback)
    if result.already_finished:
        info(f"{output}: already finished, after {result.stop_reason}; --force trains it again")
    else:
        info(f"finished after {result.stop_reason}")
        if dev is not None and result.progress.best_update == result.progress.update:
            info("the dev loss was still improving; train longer with --minutes or --max-epochs")
    return result.already_finished


def _report(
    translator: Translator | TwoWayTranslator, output: Path, dev: LinePairs | None, *, already_finished: bool
) -> Path:
    """Print scores of the dev text, for the translator or the two of both directions. Return the directory of the first."""
    from dragoman.experiments.translator_training import score_on_dev
    from dragoman.io.model_card import has_scores
    from dragoman.models.two_way import TwoWayTranslator

    if isinstance(translator, TwoWayTranslator):
        trained = [(output / name, member) for name, member in translator.translators.items()]
    else:
        trained = [(output, translator)]
    if dev is not None:
        for (path, model), lines in zip(trained, (dev, dev.reversed), strict=False):
            if not (already_finished and has_scores(path)):
                with status("translating the dev text"):
                    info(score_on_dev(path, model, lines))
    return trained[0][0]
