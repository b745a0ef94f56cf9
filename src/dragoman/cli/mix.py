"""dragoman mix"""

from __future__ import annotations

from typing import Annotated

from dragoman.cli import options
from dragoman.cli.messages import status, suggest_command
from dragoman.cli.option_groups import option
from dragoman.cli.training import read_dev
from dragoman.core.errors import DataError

Buckets = Annotated[
    str,
    option(
        "--buckets KIND",
        "Weights that depend on the context, by: order (words of context that the first n-gram model knows), entropy "
        "(of its distribution), position (in the sentence), frequency (of the word before), recent (words of context "
        "in the first cache), or several combined, as in entropy+recent.",
    ),
]


def mix(
    models: options.Models,
    output: options.Output,
    dev_text: options.DevText = None,
    equal_weights: Annotated[
        bool, option("--equal-weights", "Give all models the same weight, without a dev text.")
    ] = False,
    buckets: Buckets = "none",
    field: options.Field = None,
    force: options.Force = False,
) -> None:
    """Interpolate language models with weights fitted on a dev text.

    P(w | h) = sum of weight_i P_i(w | h), with the weights that maximise the likelihood of the dev text (EM). Prints
    the weights.

    With --buckets each bucket of contexts has its own weights, smoothed towards those of all contexts. Prints the
    buckets with the number of their dev tokens and their weights.

    All models must have the same vocabulary: train the others with --vocab and the directory of the first.

    \b
    Example:
      dragoman mix news talk --dev-text dev.txt -o mixed
      dragoman mix kn5 cache --dev-text dev.txt --buckets entropy+recent -o both
    """
    from dragoman.combine.buckets import NO_BUCKETS, make_bucketing
    from dragoman.combine.mixture import Mixture
    from dragoman.data.formats import field_for
    from dragoman.io.storage import check_output_directory
    from dragoman.models.language_model import check_compatible
    from dragoman.models.loading import load_language_model
    from dragoman.report.language_models import format_bucket_weights, format_weights

    check_output_directory(output, replace=force)
    options.lock_output(output)
    if (dev_text is None) is not equal_weights:
        raise DataError("give either --dev-text FILE to fit weights on, or --equal-weights")
    if dev_text is None and field is not None:
        raise DataError(f"--field {field} is for --dev-text; --equal-weights reads no text")
    if equal_weights and buckets != NO_BUCKETS:
        raise DataError(f"--buckets {buckets} needs --dev-text; --equal-weights are the same in all contexts")
    names = list(map(str, models))
    members = [load_language_model(path) for path in models]
    check_compatible(members, names)
    make_bucketing(buckets, members)  # raises an error before the text is read
    with status("fitting weights"):
        dev = None if dev_text is None else read_dev(dev_text, members[0].vocab, field_for(dev_text, field))
        mixture = Mixture.uniform(members) if dev is None else Mixture.fit(members, dev, buckets=buckets)
    mixture.save(output, replace=force, data=None if dev is None else {"dev, for the weights": dev.fingerprint()})
    if dev is None or buckets == NO_BUCKETS:
        print(format_weights(mixture, names))
    else:
        print(format_bucket_weights(mixture, names, dev))
    suggest_command("evaluate", *models, output, "--text", "FILE", field=field)
