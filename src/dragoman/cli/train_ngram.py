"""dragoman train ngram"""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import grouped_warnings, status
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.training import (
    UnknownWordOptions,
    VocabOptions,
    format_coefficients,
    format_ngram_counts,
    read_training_data,
    report_model,
    suggest_next_commands,
)

# The keys are those of dragoman.ngram.smoothing.SMOOTHINGS, which takes long to import.
SMOOTHING_SUMMARIES = {
    "maximum-likelihood": "relative frequencies; unseen n-grams have probability 0",
    "whole-prefix": "relative frequencies given the whole sentence so far",
    "interpolated": "interpolation with shorter contexts, by --coefficients",
    "interpolated-fitted": "the same, fitted on --dev-text or every tenth sentence",
    "interpolated-bucketed": "the same, depending on the count of the context",
    "witten-bell": "by the number of different words after the context",
    "katz": "back-off with Good-Turing discounts",
    "absolute-discounting": "one discount per order",
    "kneser-ney": "lower orders count different preceding words",
    "modified-kneser-ney": "the same with three discounts per order; usually the best",
    "stupid-backoff": "relative frequencies times 0.4 for each back-off",
}
WIDTH = max(map(len, SMOOTHING_SUMMARIES))
HELP = "\n".join(
    [
        "Train an n-gram model.",
        "\nA word is predicted from the n - 1 words before it.",
        "\n\b\nExample:",
        "  dragoman train ngram --text train.txt --dev-text dev.txt --order 5 -o kn5",
        "\n\b\nSmoothing methods:",
        *(f"  {name:{WIDTH}}  {summary}" for name, summary in SMOOTHING_SUMMARIES.items()),
    ]
)


@with_option_groups
def train_ngram(
    text: options.Text,
    output: options.Output,
    dev_text: options.DevText = None,
    field: options.Field = None,
    ngrams: options.NgramOptions = options.NgramOptions(),
    entropy_prune: Annotated[
        float,
        typer.Option(
            "--entropy-prune",
            metavar="X",
            help="Remove n-grams whose removal raises perplexity by less than this share.",
        ),
    ] = 0.0,
    quantise: Annotated[
        bool, typer.Option("--quantise", "--quantize", help="Store each probability in 8 bits.")
    ] = False,
    gap: Annotated[
        int,
        typer.Option(
            "--gap", metavar="N", help="Number of words between context and predicted word, for models in a mixture."
        ),
    ] = 0,
    no_interpolate_unigrams: Annotated[
        bool,
        typer.Option("--no-interpolate-unigrams", help="Give the mass that unigrams discount to <unk> only."),
    ] = False,
    vocab: VocabOptions = VocabOptions(),
    unknown: UnknownWordOptions = UnknownWordOptions(),
    force: options.Force = False,
) -> None:
    from dragoman.io.storage import check_output_directory
    from dragoman.ngram.model import NgramModel

    start_time = perf_counter()
    check_output_directory(output, replace=force)
    config = ngrams.config(
        entropy_prune=entropy_prune,
        quantise=quantise,
        gap=gap,
        interpolate_unigrams=not no_interpolate_unigrams,
    )
    data = read_training_data(text, dev_text, field, vocab, unknown)
    with status("counting"), grouped_warnings():
        model = NgramModel.train(data.corpus, config, unknown=data.unknown, heldout=data.dev)
    model.save(output, replace=force)
    counts = format_ngram_counts(model.table.trie.sizes())
    report_model(model, counts, output, data, start_time, format_coefficients(model, dev_text))
    suggest_next_commands(output, dev_text, field)


train_ngram.__doc__ = HELP
