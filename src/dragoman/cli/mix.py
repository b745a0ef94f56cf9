"""dragoman mix"""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import suggest, working
from dragoman.cli.training import read_dev
from dragoman.errors import DataError


def mix(
    models: options.Models,
    output: options.Output,
    dev_text: options.DevText = None,
    equal_weights: Annotated[
        bool, typer.Option("--equal-weights", help="An ensemble: every model the same weight, no dev text.")
    ] = False,
    field: options.Field = None,
    force: options.Force = False,
) -> None:
    """Mix models, with weights fitted on a dev text.

    P(w | h) = sum of weight_i P_i(w | h), with the weights that make the dev text most probable (EM); they are printed.

    All must share one vocabulary: train the others with --vocab and the first one's directory.

    \b
    Example:
      dragoman mix news talk --dev-text dev.txt -o mixed
    """
    from dragoman.language_model import require_same_vocab
    from dragoman.loading import load
    from dragoman.mixture import Mixture, ensemble
    from dragoman.storage import check_free

    check_free(output, replace=force)
    if (dev_text is None) is not equal_weights:
        raise DataError("give either --dev-text FILE to fit weights on, or --equal-weights")
    if dev_text is None and field is not None:
        raise DataError(f"--field {field} goes with --dev-text; --equal-weights reads no text")
    members = [load(path) for path in models]
    require_same_vocab(members, list(map(str, models)))
    if dev_text is None:
        mixture = ensemble(members)
    else:
        with working("fitting weights"):
            mixture = Mixture.fit(members, read_dev(dev_text, members[0].vocab, options.field_of(dev_text, field)))
    mixture.save(output, replace=force)
    for path, weight in zip(models, mixture.weights.tolist(), strict=True):
        print(f"{weight:.6f}\t{path}")
    suggest("evaluate", *models, output, "--text", "FILE", *options.with_field(field))
