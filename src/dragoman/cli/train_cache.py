"""dragoman train cache"""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import suggest_command
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.training import TrainedModel, UnknownWordOptions, VocabOptions, read_training_data, save_and_report


@with_option_groups
def train_cache(
    text: options.Text,
    output: options.Output,
    field: options.Field = None,
    decay: Annotated[
        float, typer.Option("--decay", metavar="X", help="What each word's weight is multiplied by, a word.")
    ] = 0.994,
    prior: Annotated[float, typer.Option("--prior", metavar="X", help="Weight of what shorter contexts say.")] = 2.0,
    order: Annotated[int, typer.Option("--order", metavar="N", help="Longest n-grams remembered.")] = 3,
    vocab: VocabOptions = VocabOptions(),
    unknown: UnknownWordOptions = UnknownWordOptions(),
    force: options.Force = False,
) -> None:
    """Create a cache model, which expects recent words again.

    Of use in a mixture with another model.

    \b
    Example:
      dragoman train cache --text train.txt --vocab kn5 -o cache
      dragoman mix kn5 cache --dev-text dev.txt -o both
    """
    from dragoman.io.storage import check_output_directory
    from dragoman.models.cache import CacheModel

    began = perf_counter()
    check_output_directory(output, replace=force)
    material = read_training_data(text, None, field, vocab, unknown)
    model = CacheModel.train(material.corpus, unknown=material.unknown, decay=decay, prior=prior, order=order)
    size = f"a cache of {model.size:,} words"
    save_and_report(TrainedModel(model, size, began), output, force=force, dev_text=None, material=material)
    if vocab.vocab_from is not None:
        suggest_command(
            "mix", vocab.vocab_from, output, "--dev-text", "FILE", *options.field_arguments(field), "-o", "MIXED"
        )
    else:  # it needs a partner first
        suggest_command(
            "train", "ngram", "--text", text, *options.field_arguments(field), "--vocab", output, "-o", "DIR"
        )
