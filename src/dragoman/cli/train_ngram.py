"""dragoman train ngram"""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import working
from dragoman.cli.training import UnknownChoice, VocabChoice, read_material, save_and_tell

# The names are those of dragoman.ngram.smoothing.SMOOTHINGS, which would take long to import.
MEANINGS = {
    "maximum-likelihood": "counts as they are; what was not seen cannot occur",
    "whole-prefix": "maximum likelihood given the whole sentence so far: why not to",
    "interpolated": "with shorter contexts, by fixed --coefficients",
    "interpolated-fitted": "the same, coefficients fitted on --dev-text",
    "interpolated-bucketed": "the same, by how often the context was seen",
    "witten-bell": "by how many different words followed the context",
    "katz": "Good-Turing discounts, backing off",
    "absolute-discounting": "one discount an order",
    "kneser-ney": "shorter contexts count in how many ways a word is preceded",
    "modified-kneser-ney": "the same with three discounts an order: the best of these",
    "stupid-backoff": "relative counts, times 0.4 for each word of context given up",
}
WIDEST = max(map(len, MEANINGS))
HELP = "\n".join(
    [
        "Train an n-gram model: a word is predicted from the n - 1 words before it.",
        "\n\b\nExample:",
        "  dragoman train ngram --text train.txt --dev-text dev.txt --order 5 -o kn5",
        "\n\b\nSmoothing methods:",
        *(f"  {name:{WIDEST}}  {meaning}" for name, meaning in MEANINGS.items()),
    ]
)


def train_ngram(
    text: options.Text,
    output: options.Output,
    dev_text: options.DevText = None,
    field: options.Field = None,
    order: options.Order = 5,
    smoothing: options.Smoothing = "modified-kneser-ney",
    coefficients: options.Coefficients = "",
    prune: options.Prune = "",
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
    vocab: options.VocabOf = None,
    min_count: options.MinCount = 1,
    max_size: options.MaxSize = None,
    replace_singletons: options.ReplaceSingletons = False,
    unknown: options.Unknown = None,
    unknown_total: options.UnknownTotal = None,
    force: options.Force = False,
) -> None:
    from dragoman.ngram.model import NgramConfig, NgramModel
    from dragoman.storage import check_free

    began = perf_counter()
    check_free(output, replace=force)
    config = NgramConfig(
        order=order,
        smoothing=smoothing,
        coefficients=options.numbers("--coefficients", coefficients, float, "0.05,0.5"),
        prune=options.numbers("--prune", prune, int, "0,0,1"),
        entropy_prune=entropy_prune,
        quantise=quantise,
        gap=gap,
        interpolate_unigrams=not no_interpolate_unigrams,
    )
    words = VocabChoice(vocab, min_count, max_size, replace_singletons)
    material = read_material(text, dev_text, field, words, UnknownChoice(unknown, unknown_total))
    with working("counting"):
        model = NgramModel.train(material.corpus, config, unknown=material.unknown, heldout=material.dev)
    sizes = ", ".join(f"{size:,} {n}-grams" for n, size in enumerate(model.table.trie.sizes(), 1))
    save_and_tell(model, output, force=force, began=began, size=sizes, dev_text=dev_text, material=material)


train_ngram.__doc__ = HELP
