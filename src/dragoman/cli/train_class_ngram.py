"""dragoman train class-ngram"""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.cluster import clustered, wanted_classes
from dragoman.cli.messages import few_warnings, working
from dragoman.cli.option_groups import grouped
from dragoman.cli.training import (
    Outcome,
    UnknownChoice,
    VocabChoice,
    fitted_told,
    read_material,
    save_and_tell,
    suggest_after,
)


@grouped
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
    ngrams: options.NgramChoice = options.NgramChoice(),
    vocab: VocabChoice = VocabChoice(),
    unknown: UnknownChoice = UnknownChoice(),
    force: options.Force = False,
) -> None:
    """Train n-grams over word classes.

    The class of the next word is predicted from the classes before it, then the word within its class. Smoothing
    methods are those of `dragoman train ngram`.

    \b
    Example:
      dragoman train class-ngram --text train.txt --classes classes.tsv -o classes3 --order 3
      dragoman train class-ngram --text train.txt --classes brown:200 -o classes5
    """
    from dragoman.io.storage import check_free
    from dragoman.ngram.class_model import ClassModel, read_classes
    from dragoman.ngram.model import NgramModel

    began = perf_counter()
    check_free(output, replace=force)
    config = ngrams.config()
    wanted = wanted_classes(classes)
    class_of = {} if wanted is not None else read_classes(classes)
    material = read_material(text, dev_text, field, vocab, unknown)
    if wanted is not None:
        class_of = clustered(material.corpus, wanted).as_mapping()
    with working("counting"), few_warnings():
        model = ClassModel.train(material.corpus, class_of, config, unknown=material.unknown, heldout=material.dev)
    size = f"{len(model.inner.vocab):,} classes and single words"
    told = fitted_told(model.inner, dev_text) if isinstance(model.inner, NgramModel) else ""
    save_and_tell(Outcome(model, size, began, told), output, force=force, dev_text=dev_text, material=material)
    suggest_after(output, dev_text, field)
