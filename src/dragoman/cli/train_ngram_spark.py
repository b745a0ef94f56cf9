"""dragoman train ngram --engine spark"""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.cli.messages import grouped_warnings, info, status
from dragoman.cli.options import check_new_file, check_output_file
from dragoman.cli.training import TrainingData, check_dev, read_dev, report_model, suggest_next_commands
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.cli.spark_options import SparkTrainingOptions
    from dragoman.cli.training import LanguageModelOptions
    from dragoman.ngram.model import NgramConfig


def train_ngram_spark(options: LanguageModelOptions, config: NgramConfig, spark_options: SparkTrainingOptions) -> None:
    """Train an n-gram model with Spark, and write it, its ARPA file and its counts."""
    from dragoman.cli.train_ngram import format_sizes
    from dragoman.data.corpus import Corpus
    from dragoman.ngram.arpa import write_arpa
    from dragoman.spark.session import require_spark

    _check(options, spark_options)
    require_spark()
    from dragoman.spark.train import VocabularySource, check_config, train_ngram

    check_config(config)
    check_dev(options.dev_text, options.field)
    start_time, vocab_options = perf_counter(), options.vocab
    vocab_model = vocab_options.load_model()
    if vocab_model is not None:
        vocab_options.check_unchanged()
    source = VocabularySource(
        None if vocab_model is None else vocab_model.vocab,
        vocab_options.units,
        vocab_options.lowest_count,
        vocab_options.max_size,
        with_unknown=options.unknown == "characters",
    )
    with spark_options.spark.session() as spark, grouped_warnings():
        trained = train_ngram(
            spark,
            [options.text],
            config,
            source,
            unknown=partial(options.unknown_word_model, vocab_model=vocab_model),
            counts_path=spark_options.counts,
            partitions=spark_options.spark.partitions,
            report=info,
        )
    model = trained.model
    dev = None if options.dev_text is None else read_dev(options.dev_text, model.vocab, options.field)
    data = TrainingData(Corpus.from_sentences([], model.vocab), model.unknown, dev, start_time)
    report_model(options, data, model, format_sizes(model), save=True, fingerprint=trained.fingerprint)
    if spark_options.arpa is not None:
        with status("writing"):
            write_arpa(model, spark_options.arpa)
        info(f"{spark_options.arpa}: written")
    if trained.counts_error is not None:
        raise trained.counts_error
    suggest_next_commands(options)


def _check(options: LanguageModelOptions, spark_options: SparkTrainingOptions) -> None:
    """Raise an error for texts that Spark does not read, and for files that cannot be written."""
    from dragoman.data.formats import has_fields

    if options.text == "-" or options.field is not None or has_fields(options.text):
        given = f"--field {options.field}" if options.field is not None else f"--text {options.text}"
        raise DataError(
            f"{given}: --engine spark reads plain text files, one sentence per line; write the column to one"
        )
    if spark_options.arpa is not None:
        check_output_file("--arpa", spark_options.arpa)
        check_new_file(spark_options.arpa, replace=options.force)
