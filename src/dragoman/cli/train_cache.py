"""dragoman train cache"""

from __future__ import annotations

from typing import Annotated

from dragoman.cli.messages import suggest_command
from dragoman.cli.option_groups import option, with_option_groups
from dragoman.cli.training import LanguageModelOptions, report_model


@with_option_groups
def train_cache(
    options: LanguageModelOptions,
    decay: Annotated[float, option("--decay X", "Factor by which the weight of a word decreases per word.")] = 0.994,
    prior: Annotated[float, option("--prior X", "Weight of the distribution of shorter contexts.")] = 2.0,
    order: Annotated[int, option("--order N", "Length of the longest n-grams.")] = 3,
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

    check_output_directory(options.output, replace=options.force)
    data = options.read()
    model = CacheModel.train(data.corpus, unknown=data.unknown, decay=decay, prior=prior, order=order)
    model.save(options.output, replace=options.force)
    report_model(options, data, model, f"a cache of {model.size:,} words")
    if (other := options.vocab.vocab_from) is not None:
        dev = options.dev_text or "FILE"
        suggest_command("mix", other, options.output, "--dev-text", dev, "-o", "MIXED", field=options.field)
    else:
        arguments = ("--text", options.text, "--vocab", options.output, "-o", "DIR")
        suggest_command("train", "ngram", *arguments, field=options.field)
