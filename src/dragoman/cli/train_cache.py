"""dragoman train cache"""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import suggest_command
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.training import UnknownWordOptions, VocabOptions, read_training_data, report_model


@with_option_groups
def train_cache(
    text: options.Text,
    output: options.Output,
    field: options.Field = None,
    decay: Annotated[
        float, typer.Option("--decay", metavar="X", help="Factor by which the weight of a word decreases per word.")
    ] = 0.994,
    prior: Annotated[
        float, typer.Option("--prior", metavar="X", help="Weight of the distribution of shorter contexts.")
    ] = 2.0,
    order: Annotated[int, typer.Option("--order", metavar="N", help="Length of the longest n-grams.")] = 3,
    vocab: VocabOptions = VocabOptions(),
    unknown: UnknownWordOptions = UnknownWordOptions(),
    force: options.Force = False,
) -> None:
    """Create a cache model, which favours recent words.

    It is useful in a mixture with another model.

    \b
    Example:
      dragoman train cache --text train.txt --vocab kn5 -o cache
      dragoman mix kn5 cache --dev-text dev.txt -o both
    """
    from dragoman.io.storage import check_output_directory
    from dragoman.models.cache import CacheModel

    start_time = perf_counter()
    check_output_directory(output, replace=force)
    data = read_training_data(text, None, field, vocab, unknown)
    model = CacheModel.train(data.corpus, unknown=data.unknown, decay=decay, prior=prior, order=order)
    model.save(output, replace=force)
    report_model(model, f"a cache of {model.size:,} words", output, data, start_time)
    if vocab.vocab_from is not None:
        arguments = ("--dev-text", "FILE", *options.field_arguments(field), "-o", "MIXED")
        suggest_command("mix", vocab.vocab_from, output, *arguments)
    else:
        suggest_command(
            "train", "ngram", "--text", text, *options.field_arguments(field), "--vocab", output, "-o", "DIR"
        )
