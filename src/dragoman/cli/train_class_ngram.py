"""dragoman train class-ngram"""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

from dragoman.cli import options
from dragoman.cli.cluster import cluster_with_progress, parse_class_count
from dragoman.cli.messages import grouped_warnings, status
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.training import (
    UnknownWordOptions,
    VocabOptions,
    format_coefficients,
    read_training_data,
    report_model,
    suggest_next_commands,
)


@with_option_groups
def train_class_ngram(
    text: options.Text,
    classes: Annotated[
        str,
        options.file_option(
            "--classes",
            help="File with lines `word TAB class`, or from dragoman cluster; other words are classes of their own. "
            "brown:N finds N classes in the text.",
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

    The class of the next word is predicted from the classes before it, then the word from its class. The smoothing
    methods are those of `dragoman train ngram`.

    \b
    Example:
      dragoman train class-ngram --text train.txt --classes classes.tsv -o classes3 --order 3
      dragoman train class-ngram --text train.txt --classes brown:200 -o classes5
    """
    from dragoman.io.storage import check_output_directory
    from dragoman.ngram.class_model import ClassNgramModel, read_classes
    from dragoman.ngram.model import NgramModel

    start_time = perf_counter()
    check_output_directory(output, replace=force)
    config = ngrams.config()
    num_classes = parse_class_count(classes)
    class_of = {} if num_classes is not None else read_classes(classes)
    data = read_training_data(text, dev_text, field, vocab, unknown)
    if num_classes is not None:
        class_of = cluster_with_progress(data.corpus, num_classes).as_mapping()
    with status("counting"), grouped_warnings():
        model = ClassNgramModel.train(data.corpus, class_of, config, unknown=data.unknown, heldout=data.dev)
    model.save(output, replace=force)
    size = f"{len(model.inner.vocab):,} classes and single words"
    inner = model.inner
    coefficients = format_coefficients(inner, dev_text) if isinstance(inner, NgramModel) else ""
    report_model(model, size, output, data, start_time, coefficients)
    suggest_next_commands(output, dev_text, field)
