"""dragoman train cache"""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import suggest
from dragoman.cli.option_groups import grouped
from dragoman.cli.training import Outcome, UnknownChoice, VocabChoice, read_material, save_and_tell


@grouped
def train_cache(
    text: options.Text,
    output: options.Output,
    field: options.Field = None,
    decay: Annotated[
        float, typer.Option("--decay", metavar="X", help="What each word's weight is multiplied by, a word.")
    ] = 0.994,
    prior: Annotated[float, typer.Option("--prior", metavar="X", help="Weight of what shorter contexts say.")] = 2.0,
    order: Annotated[int, typer.Option("--order", metavar="N", help="Longest n-grams remembered.")] = 3,
    vocab: VocabChoice = VocabChoice(),
    unknown: UnknownChoice = UnknownChoice(),
    force: options.Force = False,
) -> None:
    """Make a cache: what was said lately is expected again.

    Of use in a mixture with another model.

    \b
    Example:
      dragoman train cache --text train.txt --vocab kn5 -o cache
      dragoman mix kn5 cache --dev-text dev.txt -o both
    """
    from dragoman.io.storage import check_free
    from dragoman.models.cache import CacheModel

    began = perf_counter()
    check_free(output, replace=force)
    material = read_material(text, None, field, vocab, unknown)
    model = CacheModel.train(material.corpus, unknown=material.unknown, decay=decay, prior=prior, order=order)
    size = f"a cache of {model.size:,} words"
    save_and_tell(Outcome(model, size, began), output, force=force, dev_text=None, material=material)
    if vocab.lender is not None:
        suggest("mix", vocab.lender, output, "--dev-text", "FILE", *options.with_field(field), "-o", "MIXED")
    else:  # it needs a partner first
        suggest("train", "ngram", "--text", text, *options.with_field(field), "--vocab", output, "-o", "DIR")
