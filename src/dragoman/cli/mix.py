"""dragoman mix"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import status, suggest_command
from dragoman.cli.training import read_dev
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.combine.mixture import Mixture
    from dragoman.data.corpus import Corpus


def mix(
    models: options.Models,
    output: options.Output,
    dev_text: options.DevText = None,
    equal_weights: Annotated[
        bool, typer.Option("--equal-weights", help="An ensemble: every model the same weight, no dev text.")
    ] = False,
    buckets: Annotated[
        str,
        typer.Option(
            "--buckets",
            metavar="KIND",
            help="Weights that depend on the context, by: order (words of context that the first n-gram model knows), "
            "entropy (how unsure it is), position (place in the sentence), frequency (of the word before), recent "
            "(words of context that the first cache holds), or several crossed, as in entropy+recent.",
        ),
    ] = "none",
    field: options.Field = None,
    force: options.Force = False,
) -> None:
    """Interpolate language models with weights fitted on a dev text.

    P(w | h) = sum of weight_i P_i(w | h), with the weights that make the dev text most probable (EM); they are printed.

    With --buckets every sort of context has its own weights, led towards those of all contexts where the dev text has
    little of that sort. Printed are the buckets, the dev tokens in each and their weights.

    All must share one vocabulary: train the others with --vocab and the first one's directory.

    \b
    Example:
      dragoman mix news talk --dev-text dev.txt -o mixed
      dragoman mix kn5 cache --dev-text dev.txt --buckets entropy+recent -o both
    """
    from dragoman.combine.buckets import NO_BUCKETS, make_bucketing
    from dragoman.combine.mixture import Mixture
    from dragoman.io.storage import check_output_directory
    from dragoman.models.language_model import check_compatible
    from dragoman.models.loading import load_language_model

    check_output_directory(output, replace=force)
    if (dev_text is None) is not equal_weights:
        raise DataError("give either --dev-text FILE to fit weights on, or --equal-weights")
    if dev_text is None and field is not None:
        raise DataError(f"--field {field} goes with --dev-text; --equal-weights reads no text")
    if equal_weights and buckets != NO_BUCKETS:
        raise DataError(f"--buckets {buckets} goes with --dev-text; --equal-weights are the same in every context")
    members = [load_language_model(path) for path in models]
    check_compatible(members, list(map(str, models)))
    make_bucketing(buckets, members)  # refuses before the text is read
    with status("fitting weights"):
        dev = None if dev_text is None else read_dev(dev_text, members[0].vocab, options.field_for(dev_text, field))
        mixture = Mixture.uniform(members) if dev is None else Mixture.fit(members, dev, buckets=buckets)
    mixture.save(output, replace=force)
    if dev is not None:
        mixture.write_card(output, [], {"dev, for the weights": dev.fingerprint()})
    if dev is None or buckets == NO_BUCKETS:
        _print_weights(mixture, models)
    else:
        _print_buckets(mixture, models, dev)
    suggest_command("evaluate", *models, output, "--text", "FILE", *options.field_arguments(field))


def _print_weights(mixture: Mixture, models: Sequence[Path]) -> None:
    for path, weight in zip(models, mixture.weights.tolist(), strict=True):
        print(f"{weight:.6f}\t{path}")


def _print_buckets(mixture: Mixture, models: Sequence[Path], dev: Corpus) -> None:
    """A table in TSV: all contexts first, then each bucket, with the dev tokens that its weights were fitted on."""
    import numpy as np

    labels = mixture.bucketing.labels
    tokens = np.bincount(mixture.bucketing.buckets_of_corpus(dev), minlength=len(labels))
    lines = [
        ("all", dev.num_tokens, mixture.weights),
        *zip(labels, tokens.tolist(), mixture.bucket_weights, strict=True),
    ]
    print("bucket", "tokens", *models, sep="\t")
    for label, size, weights in lines:
        print(label, size, *(f"{weight:.6f}" for weight in weights.tolist()), sep="\t")
