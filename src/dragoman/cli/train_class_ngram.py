"""dragoman train class-ngram"""

from __future__ import annotations

from typing import Annotated

from dragoman.cli.cluster import cluster_with_progress, parse_class_count
from dragoman.cli.messages import grouped_warnings, status
from dragoman.cli.option_groups import option, with_option_groups
from dragoman.cli.train_ngram import NgramOptions, format_coefficients
from dragoman.cli.training import LanguageModelOptions, report_model, suggest_next_commands


@with_option_groups
def train_class_ngram(
    options: LanguageModelOptions,
    classes: Annotated[
        str,
        option(
            "--classes FILE",
            "File with lines `word TAB class`, or from dragoman cluster; each other word is a separate class. "
            "brown:N finds N classes in the text.",
            panel="Model",
        ),
    ],
    ngrams: NgramOptions = NgramOptions(),
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

    check_output_directory(options.output, replace=options.force)
    config = ngrams.config()
    num_classes = parse_class_count(classes)
    class_of = {} if num_classes is not None else read_classes(classes)
    data = options.read()
    if num_classes is not None:
        class_of = cluster_with_progress(data.corpus, num_classes).as_mapping()
    with status("counting"), grouped_warnings():
        model = ClassNgramModel.train(data.corpus, class_of, config, unknown=data.unknown, heldout=data.dev)
    model.save(options.output, replace=options.force)
    size = f"{len(model.inner.vocab):,} classes and single words"
    coefficients = format_coefficients(model.inner, options.dev_text) if isinstance(model.inner, NgramModel) else ""
    report_model(options, data, model, size, coefficients)
    suggest_next_commands(options)
