"""dragoman train ngram --memory: training with counts on disk"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.cli.messages import grouped_warnings, info, warn, warn_if_mostly_unknown
from dragoman.cli.stages import stage_progress
from dragoman.cli.training import LanguageModelOptions, check_dev, read_dev, report_model
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.data.text_chunks import StoredCorpus
    from dragoman.models.base import Model
    from dragoman.ngram.disk.training import DiskTraining
    from dragoman.ngram.model import NgramConfig, NgramModel


@dataclass(frozen=True)
class DiskTrainingData:
    """The texts of a training run whose training text is on disk."""

    corpus: StoredCorpus
    dev: Corpus | None
    start_time: float


def train_on_disk(
    options: LanguageModelOptions, config: NgramConfig, memory: str, tmp: Path | None, character_order: int | None
) -> NgramModel:
    """Train, save and report a model. For characters, the order is `character_order`, unless that is None."""
    from dragoman.cli.train_ngram import format_sizes
    from dragoman.core.memory import parse_bytes
    from dragoman.io.storage import new_directory
    from dragoman.ngram.disk.training import check_config, check_scratch, disk_training

    start_time = perf_counter()
    check_config(config)
    if options.vocab.vocab_from is not None:
        options.vocab.check_unchanged()
    if options.field is not None:
        raise DataError(f"--field {options.field}: --memory reads plain text only; write the column to a file first")
    budget, scratch = parse_bytes(memory, "--memory"), tmp or options.output.absolute().parent
    check_scratch(scratch, options.output)
    check_dev(options.dev_text, None)
    with stage_progress() as progress, disk_training(scratch, budget, progress=progress) as training:
        vocab_model = options.vocab.load_model()
        corpus = _read(options, training, config, vocab_model, character_order)
        if corpus.vocab.segmenter.kind == "char" and character_order is not None:
            config = config.model_copy(update={"order": character_order})
        unknown = options.unknown_word_model(corpus, vocab_model)
        dev = None if options.dev_text is None else read_dev(options.dev_text, corpus.vocab, None)
        with new_directory(options.output, replace=options.force) as directory:
            with grouped_warnings():
                model = training.train(corpus, directory, config, unknown)
            model.write_description(directory)
            data = DiskTrainingData(corpus, dev, start_time)
            report_model(options, data, model, format_sizes(model), card_directory=directory)
    return model


def _read(
    options: LanguageModelOptions,
    training: DiskTraining,
    config: NgramConfig,
    vocab_model: Model | None,
    character_order: int | None,
) -> StoredCorpus:
    from dragoman.data.formats import display_name
    from dragoman.data.segmenters import token_name

    vocabulary = options.vocab
    order = max(config.order, character_order or 0) if vocabulary.units == "char" else config.order
    with grouped_warnings():
        corpus = training.read(
            options.text,
            options.output,
            order,
            vocab=None if vocab_model is None else vocab_model.vocab,
            units=vocabulary.units,
            min_count=vocabulary.lowest_count,
            max_size=vocabulary.max_size,
        )
    if vocab_model is not None:
        counts = f"{corpus.num_unknown:,} of {corpus.num_words:,} {token_name(corpus.vocab.segmenter)}s"
        place = f"the vocabulary of {vocabulary.vocab_from}"
        info(f"{display_name(options.text)}: {counts} are not in {place} and became <unk>")
        warn_if_mostly_unknown(corpus, display_name(options.text))
    return corpus


def warn_if_larger_than_memory(text: str) -> None:
    """Warn if the n-grams of a text will not fit into the memory of the machine."""
    from dragoman.core.memory import format_amount, format_bytes, physical_memory
    from dragoman.data.formats import display_name
    from dragoman.ngram.disk.plan import memory_needed

    needed, available = memory_needed(text), physical_memory()
    if available and needed > available:
        sizes = f"training takes about {format_bytes(needed)} of memory, and the machine has {format_bytes(available)}"
        warn(
            f"{display_name(text)}: {sizes}; with --memory {format_amount(available // 2)}, n-grams are counted on disk"
        )
