"""dragoman lab"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from dragoman.cli.messages import info, status, suggest_command


def lab(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The directory to write.", show_default=False)
    ],
    pairs: Annotated[int, typer.Option("--pairs", min=1, metavar="N", help="Sentence pairs to train on.")] = 20_000,
    dev: Annotated[int, typer.Option("--dev", min=1, metavar="N", help="Pairs to develop on.")] = 1000,
    test: Annotated[int, typer.Option("--test", min=1, metavar="N", help="Pairs to test on.")] = 2000,
    seed: Annotated[int, typer.Option("--seed", help="The same files for the same seed.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Replace a corpus that is already there.")] = False,
) -> None:
    """Write a synthetic German-English corpus with known probabilities.

    The sentences are synthetic, drawn from a grammar that comes with dragoman: good for learning how models behave,
    no measure of how well they do on real text. Each of train, dev and test comes as .de and .en (lower-cased words),
    .raw.de and .raw.en (as printed), .de.trees and .en.trees, .align (0-based German-English pairs) and .logprob
    (exact natural log P(E), P(F), P(E | F)). `dragoman evaluate` knows such text and prints the exact floor of
    perplexity beside every model.

    \b
    Example:
      dragoman lab --pairs 20000 --seed 1 -o lab
      dragoman train ngram --text lab/train.en --dev-text lab/dev.en -o lab-kn5
      dragoman evaluate lab-kn5 --text lab/test.en
    """
    from dragoman.io.storage import check_output_directory
    from dragoman.lab.laboratory import laboratory
    from dragoman.lab.write_corpus import CORPUS, write

    check_output_directory(output, replace=force, kind=CORPUS)
    began = perf_counter()
    with status("drawing sentence pairs"):
        write(laboratory(), output, {"train": pairs, "dev": dev, "test": test}, seed, replace=force)
    entropy = laboratory().entropy
    info(f"{output}: {pairs:,} + {dev:,} + {test:,} pairs in {perf_counter() - began:.1f} seconds")
    words = f"{entropy.german_words:.1f} German, {entropy.english_words:.1f} English"
    given = f"{entropy.english_given_german_per_word:.3f} nats a word"
    info(f"expected words: {words}; entropy of the English given the German: {given}")
    model = output.parent / f"{output.name}-kn5"
    suggest_command("train", "ngram", "--text", output / "train.en", "--dev-text", output / "dev.en", "-o", model)
