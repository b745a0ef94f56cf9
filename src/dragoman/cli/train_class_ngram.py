"""dragoman train class-ngram"""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.cluster import cluster_with_progress, parse_class_count
from dragoman.cli.messages import grouped_warnings, status
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.training import (
    TrainedModel,
    UnknownWordOptions,
    VocabOptions,
    format_coefficients,
    read_training_data,
    save_and_report,
    suggest_next_commands,
)


@with_option_groups
def train_class_ngram(
    text: options.Text,
    classes: Annotated[
        str,
        typer.Option(
            "--classes",
            metavar="FILE",
            help="`word TAB class` a line, or what dragoman cluster writes; other words stand alone. brown:N finds N "
            "classes in the text.",
            show_default=False,
        ),
    ],
    output: options.Output,
    dev_text: options.DevText = None,
    field: options.Field = None,
    ngrams: options.NgramOptions = options.NgramOptions(),
    vocab: VocabOptions = VocabOptions(),
    unknown: UnknownWordOptions = UnknownWordOptions(),
    force: options.Force = False,
) -> None:
    """Train an n-gram model over word classes.

    The class of the next word is predicted from the classes before it, then the word within its class. Smoothing
    methods are those of `dragoman train ngram`.

    \b
    Example:
      dragoman train class-ngram --text train.txt --classes classes.tsv -o classes3 --order 3
      dragoman train class-ngram --text train.txt --classes brown:200 -o classes5
    """
    from dragoman.io.storage import check_output_directory
    from dragoman.ngram.class_model import ClassNgramModel, read_classes
    from dragoman.ngram.model import NgramModel

    began = perf_counter()
    check_output_directory(output, replace=force)
    config = ngrams.config()
    wanted = parse_class_count(classes)
    class_of = {} if wanted is not None else read_classes(classes)
    material = read_training_data(text, dev_text, field, vocab, unknown)
    if wanted is not None:
        class_of = cluster_with_progress(material.corpus, wanted).as_mapping()
    with status("counting"), grouped_warnings():
        model = ClassNgramModel.train(material.corpus, class_of, config, unknown=material.unknown, heldout=material.dev)
    size = f"{len(model.inner.vocab):,} classes and single words"
    told = format_coefficients(model.inner, dev_text) if isinstance(model.inner, NgramModel) else ""
    save_and_report(TrainedModel(model, size, began, told), output, force=force, dev_text=dev_text, material=material)
    suggest_next_commands(output, dev_text, field)
