"""dragoman train ngram"""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import grouped_warnings, status
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.training import (
    TrainedModel,
    UnknownWordOptions,
    VocabOptions,
    format_coefficients,
    format_ngram_counts,
    read_training_data,
    save_and_report,
    suggest_next_commands,
)

# The names are those of dragoman.ngram.smoothing.SMOOTHINGS, which would take long to import.
SMOOTHING_SUMMARIES = {
    "maximum-likelihood": "counts as they are; what was not seen cannot occur",
    "whole-prefix": "maximum likelihood given the whole sentence so far: why not to",
    "interpolated": "with shorter contexts, by fixed --coefficients",
    "interpolated-fitted": "the same, fitted on --dev-text or every tenth sentence",
    "interpolated-bucketed": "the same, by how often the context was seen",
    "witten-bell": "by how many different words followed the context",
    "katz": "Good-Turing discounts, backing off",
    "absolute-discounting": "one discount an order",
    "kneser-ney": "shorter contexts count in how many ways a word is preceded",
    "modified-kneser-ney": "the same with three discounts an order: the best of these",
    "stupid-backoff": "relative counts, times 0.4 for each word of context given up",
}
WIDEST = max(map(len, SMOOTHING_SUMMARIES))
HELP = "\n".join(
    [
        "Train an n-gram model.",
        "\nA word is predicted from the n - 1 words before it.",
        "\n\b\nExample:",
        "  dragoman train ngram --text train.txt --dev-text dev.txt --order 5 -o kn5",
        "\n\b\nSmoothing methods:",
        *(f"  {name:{WIDEST}}  {meaning}" for name, meaning in SMOOTHING_SUMMARIES.items()),
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
        typer.Option("--entropy-prune", metavar="X", help="Drop n-grams worth less than this share of perplexity."),
    ] = 0.0,
    quantise: Annotated[
        bool, typer.Option("--quantise", "--quantize", help="Keep each probability in 8 bits.")
    ] = False,
    gap: Annotated[
        int, typer.Option("--gap", metavar="N", help="Words skipped between context and word, for a mixture's member.")
    ] = 0,
    no_interpolate_unigrams: Annotated[
        bool, typer.Option("--no-interpolate-unigrams", help="Give what the unigrams leave over to <unk> alone.")
    ] = False,
    vocab: VocabOptions = VocabOptions(),
    unknown: UnknownWordOptions = UnknownWordOptions(),
    force: options.Force = False,
) -> None:
    from dragoman.io.storage import check_output_directory
    from dragoman.ngram.model import NgramModel

    began = perf_counter()
    check_output_directory(output, replace=force)
    config = ngrams.config(
        entropy_prune=entropy_prune,
        quantise=quantise,
        gap=gap,
        interpolate_unigrams=not no_interpolate_unigrams,
    )
    material = read_training_data(text, dev_text, field, vocab, unknown)
    with status("counting"), grouped_warnings():
        model = NgramModel.train(material.corpus, config, unknown=material.unknown, heldout=material.dev)
    outcome = TrainedModel(
        model, format_ngram_counts(model.table.trie.sizes()), began, format_coefficients(model, dev_text)
    )
    save_and_report(outcome, output, force=force, dev_text=dev_text, material=material)
    suggest_next_commands(output, dev_text, field)


train_ngram.__doc__ = HELP
