"""dragoman train ngram"""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import few_warnings, working
from dragoman.cli.option_groups import grouped
from dragoman.cli.training import (
    Outcome,
    UnknownChoice,
    VocabChoice,
    fitted_told,
    read_material,
    save_and_tell,
    sizes_told,
    suggest_after,
)

# The names are those of dragoman.ngram.smoothing.SMOOTHINGS, which would take long to import.
MEANINGS = {
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
WIDEST = max(map(len, MEANINGS))
HELP = "\n".join(
    [
        "Train an n-gram model.",
        "\nA word is predicted from the n - 1 words before it.",
        "\n\b\nExample:",
        "  dragoman train ngram --text train.txt --dev-text dev.txt --order 5 -o kn5",
        "\n\b\nSmoothing methods:",
        *(f"  {name:{WIDEST}}  {meaning}" for name, meaning in MEANINGS.items()),
    ]
)


@grouped
def train_ngram(
    text: options.Text,
    output: options.Output,
    dev_text: options.DevText = None,
    field: options.Field = None,
    ngrams: options.NgramChoice = options.NgramChoice(),
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
    vocab: VocabChoice = VocabChoice(),
    unknown: UnknownChoice = UnknownChoice(),
    force: options.Force = False,
) -> None:
    from dragoman.io.storage import check_free
    from dragoman.ngram.model import NgramModel

    began = perf_counter()
    check_free(output, replace=force)
    config = ngrams.config(
        entropy_prune=entropy_prune,
        quantise=quantise,
        gap=gap,
        interpolate_unigrams=not no_interpolate_unigrams,
    )
    material = read_material(text, dev_text, field, vocab, unknown)
    with working("counting"), few_warnings():
        model = NgramModel.train(material.corpus, config, unknown=material.unknown, heldout=material.dev)
    outcome = Outcome(model, sizes_told(model.table.trie.sizes()), began, fitted_told(model, dev_text))
    save_and_tell(outcome, output, force=force, dev_text=dev_text, material=material)
    suggest_after(output, dev_text, field)


train_ngram.__doc__ = HELP
