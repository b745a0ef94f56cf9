"""dragoman train class-ngram"""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import working
from dragoman.cli.training import UnknownChoice, VocabChoice, read_material, save_and_tell


def train_class_ngram(
    text: options.Text,
    classes: Annotated[
        str,
        typer.Option(
            "--classes", metavar="FILE", help="`word TAB class` a line; other words stand alone.", show_default=False
        ),
    ],
    output: options.Output,
    dev_text: options.DevText = None,
    field: options.Field = None,
    order: options.Order = 5,
    smoothing: options.Smoothing = "modified-kneser-ney",
    coefficients: options.Coefficients = "",
    prune: options.Prune = "",
    vocab: options.VocabOf = None,
    min_count: options.MinCount = 1,
    max_size: options.MaxSize = None,
    replace_singletons: options.ReplaceSingletons = False,
    unknown: options.Unknown = None,
    unknown_total: options.UnknownTotal = None,
    force: options.Force = False,
) -> None:
    """Train n-grams over given word classes.

    The class of the next word is predicted from the classes before it, then the word within its class. Smoothing
    methods are those of `dragoman train ngram`.

    \b
    Example:
      dragoman train class-ngram --text train.txt --classes classes.tsv -o classes3 --order 3
    """
    from dragoman.ngram.classes import ClassModel, read_classes
    from dragoman.ngram.model import NgramConfig
    from dragoman.storage import check_free

    began = perf_counter()
    check_free(output, replace=force)
    config = NgramConfig(
        order=order,
        smoothing=smoothing,
        coefficients=options.numbers("--coefficients", coefficients, float, "0.05,0.5"),
        prune=options.numbers("--prune", prune, int, "0,0,1"),
    )
    class_of = read_classes(classes)
    words = VocabChoice(vocab, min_count, max_size, replace_singletons)
    material = read_material(text, dev_text, field, words, UnknownChoice(unknown, unknown_total))
    with working("counting"):
        model = ClassModel.train(material.corpus, class_of, config, unknown=material.unknown, heldout=material.dev)
    size = f"{len(model.inner.vocab):,} classes and single words"
    save_and_tell(model, output, force=force, began=began, size=size, dev_text=dev_text, material=material)
